//! The table itself: every state, every beat, every standing of the facts, and what comes of it.

use super::*;
use crate::decision::Answer;
use crate::registry::Standing;
use sayso_protocol::payload::agreement::Breach;

/// The states a ticket can be live in, plus the closed ones.
const STATES: [&str; 8] =
    ["opened", "proffered", "asked", "overdue", "approved", "denied", "ended by her", "closed"];
const BEATS: [&str; 5] = ["present", "commit", "unreadable", "other format", "decline"];
const FACTS: [&str; 11] = [
    "stranger",
    "ended",
    "standing",
    "standing, ask",
    "edited",
    "pending rs",
    "revoked rs",
    "no rs",
    "unregistered",
    "no unit",
    "no owner",
];

/// One row a state and beat, one cell for each of `FACTS`:
///
/// - `T` terms proffered; `C`, `O` promised and she is asked about a connection, about an operation;
/// - `G` promised and granted; `g` granted; `W` waits on, nothing changes but the ticket;
/// - `u`, `d`, `x`, `b`, `r` closed as denied, revoked, expired, breached, refused, without a row;
/// - `R` closed as refused with a row that names the agent; `D` as declined with a row that names nobody;
/// - `?` 400 `invalid_request`, `!` 400 `invalid_grant`: nothing changes and the ticket is not spent.
const TABLE: [(&str, [&str; 5]); 8] = [
    //                 present       commit         unreadable     other format   decline
    ("opened", ["TTTTTrrrrrr", "TTTTTRRRRRR", "TTTTTrrrrrr", "TTTTTrrrrrr", "???????????"]),
    ("proffered", ["TTTTTrrrrrr", "CCGOTRRRRRR", "bbbbbrrrrrr", "TTTTTrrrrrr", "DDDDDDDDDDD"]),
    ("asked", ["WWWWWWWWWWW", "WWWWWWWWWWW", "WWWWWWWWWWW", "WWWWWWWWWWW", "???????????"]),
    ("overdue", ["xxxxxxxxxxx", "xxxxxxxxxxx", "xxxxxxxxxxx", "xxxxxxxxxxx", "???????????"]),
    ("approved", ["ddggTRRRRRR", "ddggTRRRRRR", "ddggTRRRRRR", "ddggTRRRRRR", "???????????"]),
    ("denied", ["uuuuuuuuuuu", "uuuuuuuuuuu", "uuuuuuuuuuu", "uuuuuuuuuuu", "???????????"]),
    ("ended by her", ["ddddddddddd", "ddddddddddd", "ddddddddddd", "ddddddddddd", "ddddddddddd"]),
    ("closed", ["!!!!!!!!!!!", "!!!!!!!!!!!", "!!!!!!!!!!!", "!!!!!!!!!!!", "!!!!!!!!!!!"]),
];

/// A world in that state; the approval was given under a connection at epoch 0.
fn in_state(state: &str) -> World {
    let mut world = match state {
        "opened" => World::holdings(),
        "proffered" | "ended by her" | "closed" => World::holdings().proffered(),
        "approved" => World::holdings().approved(),
        _ => World::holdings().asked(),
    };
    match state {
        "overdue" => world.now = world.now.plus(PENDING_SECONDS),
        "denied" => drop(world.decide(Answer::Denied).unwrap()),
        "ended by her" => world.negotiation.state = State::Closed { ending: Ending::Revoked },
        "closed" => world.negotiation.state = State::Closed { ending: Ending::Issued },
        _ => {}
    }
    world
}

fn with_facts(mut world: World, facts: &str) -> World {
    world = world.connected();
    match facts {
        "stranger" => world.facts.connection = None,
        "ended" => world.end(),
        // As from the start: no edit, hence no new version.
        "standing, ask" => world.unit().ask_me = true,
        "edited" => {
            world.unit().version += 1;
            world.unit().terms.expires_in = 60;
        }
        "pending rs" => world.facts.standing = Some(Standing::Pending),
        "revoked rs" => world.facts.standing = Some(Standing::Revoked),
        "no rs" => world.facts.standing = None,
        "unregistered" => world.facts.registered = None,
        "no unit" => world.facts.unit = None,
        "no owner" => world.facts.owner = None,
        _ => {}
    }
    world
}

fn beat(world: &World, beat: &str) -> Beat {
    match beat {
        "present" => Beat::Present,
        // Where nothing is proffered, an agreement to what was proffered somewhere.
        "commit" if world.negotiation.state.word() == "awaiting_agreement" => world.commit(json!({})),
        "commit" => World::holdings().proffered().commit(json!({})),
        "unreadable" => Beat::Unreadable(Breach::Signature),
        "other format" => Beat::OtherFormat,
        _ => Beat::Decline,
    }
}

/// The step as a letter of the table; anything unforeseen has none.
fn letter(world: &World, step: &Step) -> char {
    let named: Vec<bool> = step.records.iter().map(|row| row.handle == Some(world.handle())).collect();
    let reply = reply(step);
    match (step.reply.status(), reply.as_str(), ending(step), kinds(step).as_slice(), named.as_slice()) {
        (403, "need_info", None, [], _) => 'T',
        (403, "request_submitted", None, [], _) if step.state == world.negotiation.state => 'W',
        (403, "request_submitted", None, [Kind::Promised], [true]) => match step.state {
            State::AwaitingOwner { ask: Ask::Connection, .. } => 'C',
            _ => 'O',
        },
        (200, "granted", Some(Ending::Issued), [Kind::Promised], [true]) => 'G',
        (200, "granted", Some(Ending::Issued), [], _) => 'g',
        (403, "request_denied", Some(Ending::Denied), [], _) => 'u',
        (403, "request_denied", Some(Ending::Revoked), [], _) => 'd',
        (403, "request_denied", Some(Ending::Expired), [], _) => 'x',
        (403, "request_denied", Some(Ending::Breached), [], _) => 'b',
        (403, "request_denied", Some(Ending::Refused), [], _) => 'r',
        (403, "request_denied", Some(Ending::Refused), [Kind::Refused], [true]) => 'R',
        (403, "request_denied", Some(Ending::Declined), [Kind::Refused], [false]) => 'D',
        (400, "invalid_request", ..) if step.untouched => '?',
        (400, "invalid_grant", ..) if step.untouched => '!',
        _ => '\0',
    }
}

// CORE-33, CORE-39, CORE-101, TERMS-17, TERMS-40, POL-03
#[test]
fn every_cell_of_the_table() {
    assert!(TABLE.iter().map(|(state, _)| *state).eq(STATES));
    for (state, rows) in TABLE {
        for (row, name) in rows.iter().zip(BEATS) {
            let row: Vec<char> = row.chars().collect();
            assert_eq!(row.len(), FACTS.len());
            for (expected, facts) in row.iter().zip(FACTS) {
                let world = with_facts(in_state(state), facts);
                let step = world.play(&beat(&world, name));
                let found = letter(&world, &step);
                assert_eq!(found, *expected, "{state} / {name} / {facts}: {}", step.reply.body());
            }
        }
    }
}

#[test]
fn a_step_is_a_function_of_what_it_is_given() {
    for state in STATES {
        for (name, facts) in BEATS.iter().flat_map(|beat| FACTS.map(|facts| (beat, facts))) {
            let world = with_facts(in_state(state), facts);
            let beat = beat(&world, name);
            let (first, again) = (world.play(&beat), world.play(&beat));
            assert_eq!(first.reply.body(), again.reply.body(), "{state} / {name} / {facts}");
            assert_eq!((first.state, first.records, first.grant), (again.state, again.records, again.grant));
            assert_eq!(
                (first.rotates, first.due, first.untouched),
                (again.rotates, again.due, again.untouched)
            );
        }
    }
}
