//! The conformance suite of the port: what every store owes, raced.
//!
//! A backend implements [`Place`] and calls [`store_suite!`](crate::store_suite); each case is then a test of its own.
//! A place is opened twice, so every race is also one between two processes' worth of store.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a case that meets what it does not expect has failed"
)]

mod agent;
mod grounds;
mod race;
mod stage;

pub mod attach;
pub mod decisions;
pub mod durability;
pub mod endings;
pub mod grants;
pub mod introductions;
pub mod isolation;
pub mod policy;
pub mod registry;
pub mod relinks;
pub mod rounds;
pub mod servers;
pub mod sessions;
pub mod tickets;
pub mod vouching;

pub use race::wait;

use super::Store;
use std::sync::Arc;

/// Where one store's data live; empty at first.
pub trait Place {
    /// Opens the store over them. It is opened more than once at a time, and again after every opening was dropped.
    fn open(&self) -> Arc<dyn Store>;
    /// Every byte written there, once every opening was dropped: to look for what must not be among them.
    fn contents(&self) -> Vec<u8>;
}

/// Makes a test of every case. `$place` is an expression that gives a fresh [`Place`](crate::store::suite::Place).
#[macro_export]
macro_rules! store_suite {
    ($place:expr) => {
        $crate::store_suite_grounds!($place);

        // CORE-33, CORE-94
        #[test]
        fn a_sealed_ticket_opens_once() {
            $crate::store::suite::tickets::a_sealed_ticket_opens_once(&$place);
        }

        // CORE-33, CORE-94
        #[test]
        fn a_rotated_ticket_is_spent_once() {
            $crate::store::suite::tickets::a_rotated_ticket_is_spent_once(&$place);
        }

        // CORE-94
        #[test]
        fn a_ticket_has_one_agent() {
            $crate::store::suite::tickets::a_ticket_has_one_agent(&$place);
        }

        // BASE-03
        #[test]
        fn spent_and_expired_tickets_are_dead() {
            $crate::store::suite::tickets::spent_and_expired_tickets_are_dead(&$place);
        }

        #[test]
        fn a_senseless_beat_spends_nothing() {
            $crate::store::suite::tickets::a_senseless_beat_spends_nothing(&$place);
        }

        // TERMS-40, TERMS-41, TERMS-42, POL-46
        #[test]
        fn a_closed_negotiation_stays_closed() {
            $crate::store::suite::tickets::a_closed_negotiation_stays_closed(&$place);
        }

        #[test]
        fn a_request_lapses_at_its_deadline() {
            $crate::store::suite::tickets::a_request_lapses_at_its_deadline(&$place);
        }

        #[test]
        fn uncommitted_negotiations_are_capped() {
            $crate::store::suite::tickets::uncommitted_negotiations_are_capped(&$place);
        }

        // D-33
        #[test]
        fn a_new_key_takes_the_place_of_the_old() {
            $crate::store::suite::relinks::a_new_key_takes_the_place_of_the_old(&$place);
        }

        #[test]
        fn only_a_standing_key_gives_its_place_and_only_to_a_new_one() {
            $crate::store::suite::relinks::only_a_standing_key_gives_its_place_and_only_to_a_new_one(&$place);
        }

        #[test]
        fn a_key_has_one_successor() {
            $crate::store::suite::relinks::a_key_has_one_successor(&$place);
        }

        #[test]
        fn no_successor_outlives_an_ending() {
            $crate::store::suite::relinks::no_successor_outlives_an_ending(&$place);
        }

        #[test]
        fn asking_again_takes_its_own_place() {
            $crate::store::suite::attach::asking_again_takes_its_own_place(&$place);
        }

        #[test]
        fn racing_repetitions_leave_one_question() {
            $crate::store::suite::attach::racing_repetitions_leave_one_question(&$place);
        }

        #[test]
        fn another_question_is_not_attached() {
            $crate::store::suite::attach::another_question_is_not_attached(&$place);
        }

        #[test]
        fn an_approval_nobody_heard_of_is_issued_once() {
            $crate::store::suite::attach::an_approval_nobody_heard_of_is_issued_once(&$place);
        }

        #[test]
        fn a_grant_that_was_shown_is_asked_for_afresh() {
            $crate::store::suite::attach::a_grant_that_was_shown_is_asked_for_afresh(&$place);
        }

        #[test]
        fn repetitions_race_her_decision() {
            $crate::store::suite::attach::repetitions_race_her_decision(&$place);
        }

        // OWN-08
        #[test]
        fn she_decides_once() {
            $crate::store::suite::decisions::she_decides_once(&$place);
        }

        // OWN-08
        #[test]
        fn a_poll_never_loses_a_decision() {
            $crate::store::suite::decisions::a_poll_never_loses_a_decision(&$place);
        }

        // CORE-39, CORE-101, CORE-102
        #[test]
        fn an_approval_admits_a_stranger() {
            $crate::store::suite::decisions::an_approval_admits_a_stranger(&$place);
        }

        #[test]
        fn a_denial_admits_nobody() {
            $crate::store::suite::decisions::a_denial_admits_nobody(&$place);
        }

        // TERMS-31
        #[test]
        fn an_approval_lapses() {
            $crate::store::suite::decisions::an_approval_lapses(&$place);
        }

        // CORE-70
        #[test]
        fn an_approval_cannot_be_borrowed() {
            $crate::store::suite::decisions::an_approval_cannot_be_borrowed(&$place);
        }

        // POL-11
        #[test]
        fn rows_name_their_authors() {
            $crate::store::suite::decisions::rows_name_their_authors(&$place);
        }

        // CORE-94, FED-46
        #[test]
        fn a_grant_is_spent_once() {
            $crate::store::suite::grants::a_grant_is_spent_once(&$place);
        }

        // CORE-94, D-11
        #[test]
        fn a_round_is_taken_once() {
            $crate::store::suite::rounds::a_round_is_taken_once(&$place);
        }

        // CORE-91, D-11
        #[test]
        fn a_round_is_of_one_call() {
            $crate::store::suite::rounds::a_round_is_of_one_call(&$place);
        }

        // D-11
        #[test]
        fn no_round_outlives_what_it_stands_on() {
            $crate::store::suite::rounds::no_round_outlives_what_it_stands_on(&$place);
        }

        // D-11
        #[test]
        fn a_round_races_her_ending_it() {
            $crate::store::suite::rounds::a_round_races_her_ending_it(&$place);
        }

        // D-11
        #[test]
        fn rounds_are_hers_to_allow() {
            $crate::store::suite::rounds::rounds_are_hers_to_allow(&$place);
        }

        // CORE-94
        #[test]
        fn one_attempt_is_one_spend() {
            $crate::store::suite::grants::one_attempt_is_one_spend(&$place);
        }

        // FED-43
        #[test]
        fn introspection_spends_nothing() {
            $crate::store::suite::grants::introspection_spends_nothing(&$place);
        }

        // CORE-99, FED-49
        #[test]
        fn introspection_repeats_the_token() {
            $crate::store::suite::grants::introspection_repeats_the_token(&$place);
        }

        // CORE-97, FED-38, FED-46
        #[test]
        fn a_dead_grant_says_why() {
            $crate::store::suite::grants::a_dead_grant_says_why(&$place);
        }

        // FED-48, POL-48
        #[test]
        fn reports_are_recorded() {
            $crate::store::suite::grants::reports_are_recorded(&$place);
        }

        // FED-48
        #[test]
        fn a_spend_is_one_row() {
            $crate::store::suite::grants::a_spend_is_one_row(&$place);
        }

        // CORE-103, OWN-11
        #[test]
        fn an_ending_ends_everything() {
            $crate::store::suite::endings::an_ending_ends_everything(&$place);
        }

        // CORE-104, CORE-105
        #[test]
        fn readmission_revives_nothing() {
            $crate::store::suite::endings::readmission_revives_nothing(&$place);
        }

        // CORE-103, OWN-11
        #[test]
        fn a_connection_ends_once() {
            $crate::store::suite::endings::a_connection_ends_once(&$place);
        }

        // CORE-101, CORE-103, CORE-105
        #[test]
        fn no_claim_outlives_an_ending() {
            $crate::store::suite::endings::no_claim_outlives_an_ending(&$place);
        }

        // CORE-101, CORE-103
        #[test]
        fn no_automatic_grant_outlives_an_ending() {
            $crate::store::suite::endings::no_automatic_grant_outlives_an_ending(&$place);
        }

        // CORE-103
        #[test]
        fn no_decision_outlives_an_ending() {
            $crate::store::suite::endings::no_decision_outlives_an_ending(&$place);
        }

        // CORE-94, CORE-103
        #[test]
        fn no_spend_follows_an_ending() {
            $crate::store::suite::endings::no_spend_follows_an_ending(&$place);
        }

        // FED-48
        #[test]
        fn a_report_survives_an_ending() {
            $crate::store::suite::endings::a_report_survives_an_ending(&$place);
        }

        // CORE-103
        #[test]
        fn an_ending_is_seen_at_once() {
            $crate::store::suite::endings::an_ending_is_seen_at_once(&$place);
        }

        // POL-02, OWN-19
        #[test]
        fn a_unit_is_created_once() {
            $crate::store::suite::policy::a_unit_is_created_once(&$place);
        }

        // POL-01, POL-02, OWN-19
        #[test]
        fn unfit_units_leave_nothing() {
            $crate::store::suite::policy::unfit_units_leave_nothing(&$place);
        }

        // TERMS-12, TERMS-13, OWN-21
        #[test]
        fn every_edit_is_a_version() {
            $crate::store::suite::policy::every_edit_is_a_version(&$place);
        }

        // TERMS-12, TERMS-13, POL-03, OWN-22
        #[test]
        fn a_version_is_never_used_again() {
            $crate::store::suite::policy::a_version_is_never_used_again(&$place);
        }

        // TERMS-13
        #[test]
        fn an_edit_is_heeded_by_what_is_under_way() {
            $crate::store::suite::policy::an_edit_is_heeded_by_what_is_under_way(&$place);
        }

        // POL-03
        #[test]
        fn no_claim_outlives_its_unit() {
            $crate::store::suite::policy::no_claim_outlives_its_unit(&$place);
        }

        // FED-16, CORE-112
        #[test]
        fn a_pull_replaces_what_is_there() {
            $crate::store::suite::registry::a_pull_replaces_what_is_there(&$place);
        }

        // FED-16
        #[test]
        fn pulls_do_not_mix() {
            $crate::store::suite::registry::pulls_do_not_mix(&$place);
        }

        #[test]
        fn a_changed_tool_waits_for_her() {
            $crate::store::suite::registry::a_changed_tool_waits_for_her(&$place);
        }

        // D-30
        #[test]
        fn other_words_are_shown_and_suspend_nothing() {
            $crate::store::suite::registry::other_words_are_shown_and_suspend_nothing(&$place);
        }

        // FED-16
        #[test]
        fn no_claim_outlives_its_resource() {
            $crate::store::suite::registry::no_claim_outlives_its_resource(&$place);
        }

        // FED-16
        #[test]
        fn an_opening_heeds_a_pull() {
            $crate::store::suite::registry::an_opening_heeds_a_pull(&$place);
        }
    };
}
