//! The cases about what a negotiation stands on: set-up, resource servers, policy, isolation, durability.

/// The second half of [`store_suite!`](crate::store_suite).
#[macro_export]
macro_rules! store_suite_grounds {
    ($place:expr) => {
        // CORE-119
        #[test]
        fn set_up_happens_once() {
            $crate::store::suite::servers::set_up_happens_once(&$place);
        }

        #[test]
        fn a_key_is_enrolled_once() {
            $crate::store::suite::servers::a_key_is_enrolled_once(&$place);
        }

        // FED-34, FED-35, FED-37, FED-53
        #[test]
        fn a_server_is_revoked_once() {
            $crate::store::suite::servers::a_server_is_revoked_once(&$place);
        }

        // FED-34
        #[test]
        fn no_claim_outlives_its_server() {
            $crate::store::suite::servers::no_claim_outlives_its_server(&$place);
        }

        // FED-34, FED-37, OWN-16, D-22
        #[test]
        fn a_withdrawal_ends_what_is_under_way() {
            $crate::store::suite::servers::a_withdrawal_ends_what_is_under_way(&$place);
        }

        #[test]
        fn a_server_moves_with_its_key() {
            $crate::store::suite::servers::a_server_moves_with_its_key(&$place);
        }

        #[test]
        fn a_signature_is_seen_once() {
            $crate::store::suite::servers::a_signature_is_seen_once(&$place);
        }

        // FED-26, FED-27, FED-28
        #[test]
        fn an_introduction_waits_once() {
            $crate::store::suite::introductions::an_introduction_waits_once(&$place);
        }

        // FED-29
        #[test]
        fn no_introduction_makes_an_owner() {
            $crate::store::suite::introductions::no_introduction_makes_an_owner(&$place);
        }

        // FED-27, FED-37
        #[test]
        fn what_is_known_is_left_as_it_is() {
            $crate::store::suite::introductions::what_is_known_is_left_as_it_is(&$place);
        }

        // FED-34, OWN-08
        #[test]
        fn a_newcomer_is_judged_once() {
            $crate::store::suite::introductions::a_newcomer_is_judged_once(&$place);
        }

        // FED-34, FED-35, FED-36, FED-37
        #[test]
        fn introductions_race_a_withdrawal() {
            $crate::store::suite::introductions::introductions_race_a_withdrawal(&$place);
        }

        // FED-28, FED-35
        #[test]
        fn no_token_outlives_a_withdrawal() {
            $crate::store::suite::introductions::no_token_outlives_a_withdrawal(&$place);
        }

        // FED-36, D-22
        #[test]
        fn who_was_put_out_asks_ever_less() {
            $crate::store::suite::introductions::who_was_put_out_asks_ever_less(&$place);
        }

        // FED-36, FED-37
        #[test]
        fn set_up_undoes_no_withdrawal() {
            $crate::store::suite::introductions::set_up_undoes_no_withdrawal(&$place);
        }

        // D-22
        #[test]
        fn one_that_is_expected_is_let_in_once() {
            $crate::store::suite::vouching::one_that_is_expected_is_let_in_once(&$place);
        }

        // D-22
        #[test]
        fn the_word_is_for_one_key_at_one_place() {
            $crate::store::suite::vouching::the_word_is_for_one_key_at_one_place(&$place);
        }

        // D-22
        #[test]
        fn the_last_word_counts() {
            $crate::store::suite::vouching::the_last_word_counts(&$place);
        }

        // D-22, FED-36, FED-37
        #[test]
        fn the_word_undoes_no_withdrawal() {
            $crate::store::suite::vouching::the_word_undoes_no_withdrawal(&$place);
        }

        // D-22
        #[test]
        fn one_that_is_known_moves_by_introducing_itself() {
            $crate::store::suite::vouching::one_that_is_known_moves_by_introducing_itself(&$place);
        }

        #[test]
        fn who_waits_is_capped() {
            $crate::store::suite::introductions::who_waits_is_capped(&$place);
        }

        // OWN-08
        #[test]
        fn an_answer_is_to_what_she_was_shown() {
            $crate::store::suite::decisions::an_answer_is_to_what_she_was_shown(&$place);
        }

        #[test]
        fn a_link_opens_one_session() {
            $crate::store::suite::sessions::a_link_opens_one_session(&$place);
        }

        #[test]
        fn links_expire() {
            $crate::store::suite::sessions::links_expire(&$place);
        }

        #[test]
        fn sessions_end() {
            $crate::store::suite::sessions::sessions_end(&$place);
        }

        #[test]
        fn a_session_that_ended_stays_so() {
            $crate::store::suite::sessions::a_session_that_ended_stays_so(&$place);
        }

        #[test]
        fn sessions_survive_a_restart() {
            $crate::store::suite::sessions::sessions_survive_a_restart(&$place);
        }

        // CORE-100, CORE-109, FED-39
        #[test]
        fn owners_are_strangers() {
            $crate::store::suite::isolation::owners_are_strangers(&$place);
        }

        // CORE-100
        #[test]
        fn servers_are_strangers() {
            $crate::store::suite::isolation::servers_are_strangers(&$place);
        }

        // CORE-100, FED-39
        #[test]
        fn the_dead_are_not_told_apart() {
            $crate::store::suite::isolation::the_dead_are_not_told_apart(&$place);
        }

        // CORE-101
        #[test]
        fn a_connection_is_one_owners() {
            $crate::store::suite::isolation::a_connection_is_one_owners(&$place);
        }

        // CORE-81
        #[test]
        fn a_pat_is_one_owners() {
            $crate::store::suite::isolation::a_pat_is_one_owners(&$place);
        }

        #[test]
        fn only_digests_are_kept() {
            $crate::store::suite::durability::only_digests_are_kept(&$place);
        }

        // CORE-94, CORE-103
        #[test]
        fn a_restart_keeps_everything() {
            $crate::store::suite::durability::a_restart_keeps_everything(&$place);
        }

        #[test]
        fn records_have_no_gaps() {
            $crate::store::suite::durability::records_have_no_gaps(&$place);
        }

        #[test]
        fn what_ended_is_kept_for_a_day() {
            $crate::store::suite::durability::what_ended_is_kept_for_a_day(&$place);
        }
    };
}
