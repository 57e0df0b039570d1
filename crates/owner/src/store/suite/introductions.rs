//! Introductions: each waits once, for an owner there is; what she withdrew comes back by her hand alone.

use super::Place;
use super::race::{CALLERS, PAIRS, ROUNDS, both, race, wait};
use super::stage::{NOW, OTHER, SERVER, Stage, herself, server};
use crate::ledger::{Author, Kind};
use crate::registry::{
    Introduced, IntroducedBy, MOST_OF_SOURCE, MOST_PENDING, Newcomer, Pat, ResourceServer, Standing,
};
use crate::store::Digest;
use sayso_protocol::{ClientId, OwnerName, Thumbprint};

const NEW: &str = "https://new.example";

fn newcomer(client_id: &str, source: &str) -> Newcomer {
    Newcomer {
        client_id: client_id.parse().unwrap(),
        resource_uri: format!("{client_id}/mcp"),
        name: "Newcomer".into(),
        key: Thumbprint::from_text("key-1"),
        source: source.into(),
    }
}

fn introduce(stage: &Stage, caller: usize, newcomer: &Newcomer) -> Introduced {
    wait(stage.any(caller).introduce(&stage.alice, newcomer, NOW)).unwrap()
}

fn judge(stage: &Stage, caller: usize, client_id: &str, standing: Standing) -> Option<()> {
    let client_id: ClientId = client_id.parse().unwrap();
    let store = stage.any(caller);
    wait(store.judge_resource_server(&stage.alice, &client_id, standing, &herself(), NOW)).unwrap()
}

fn of(stage: &Stage, owner: &OwnerName, client_id: &str) -> Option<ResourceServer> {
    let servers = wait(stage.any(1).resource_servers(owner)).unwrap();
    servers.into_iter().find(|server| server.client_id.as_str() == client_id)
}

fn standing(stage: &Stage, client_id: &str) -> Option<Standing> {
    of(stage, &stage.alice, client_id).map(|server| server.status)
}

fn grant_pat(stage: &Stage, name: &str, client_id: &str) {
    let client_id: ClientId = client_id.parse().unwrap();
    wait(stage.any(0).grant_pat(Digest::of(name), &stage.alice, &client_id, NOW.plus(600))).unwrap();
}

fn pat(stage: &Stage, name: &str) -> Option<Pat> {
    wait(stage.any(1).pat(Digest::of(name), NOW)).unwrap()
}

fn count<T: PartialEq>(all: &[T], one: &T) -> usize {
    all.iter().filter(|it| *it == one).count()
}

/// Racing introductions of one server leave one row that waits and one row of her record, and no token.
pub fn an_introduction_waits_once(place: &dyn Place) {
    let stage = Stage::set(place);
    let (rows, new) = (stage.rows(&stage.alice).len(), newcomer(NEW, "new.example"));
    let said = race(CALLERS, |caller| introduce(&stage, caller, &new));
    assert_eq!(count(&said, &Introduced::Pending), CALLERS);
    let row = of(&stage, &stage.alice, NEW).unwrap();
    assert_eq!((row.status, row.introduced_by), (Standing::Pending, IntroducedBy::Itself));
    assert_eq!((row.resource_uri, row.name), (new.resource_uri.clone(), new.name.clone()));
    assert_eq!((row.auth_method.as_str(), row.registered_at, row.pinned_key), ("signature", NOW, None));
    let record = stage.rows(&stage.alice).pop().unwrap();
    assert_eq!(stage.rows(&stage.alice).len(), rows + 1);
    assert_eq!(record.record.kind, Kind::Promised);
    assert_eq!(record.record.author, Author::ResourceServer(NEW.into()));
    assert_eq!((&record.record.handle, &record.record.family), (&None, &None));
    grant_pat(&stage, "early", NEW);
    assert_eq!(pat(&stage, "early"), None, "no token before her answer");
    assert_eq!(of(&stage, &stage.bob, NEW), None, "another owner was not asked");
}

/// Whoever is named, there are as many owners as before, and nothing was kept.
pub fn no_introduction_makes_an_owner(place: &dyn Place) {
    let stage = Stage::set(place);
    let (owners, nobody) = (wait(stage.any(0).owners()).unwrap(), "mallory".parse().unwrap());
    let said = race(CALLERS, |caller| {
        wait(stage.any(caller).introduce(&nobody, &newcomer(NEW, "new.example"), NOW)).unwrap()
    });
    assert_eq!(count(&said, &Introduced::NoOwner), CALLERS);
    assert_eq!(wait(stage.any(1).owners()).unwrap(), owners);
    assert!(wait(stage.any(1).resource_server(&NEW.parse().unwrap())).unwrap().is_empty());
    assert!(stage.rows(&nobody).is_empty());
}

/// An active server, and one that waits, stay what she was shown; a key that set-up did not vouch for says nothing.
pub fn what_is_known_is_left_as_it_is(place: &dyn Place) {
    let stage = Stage::set(place);
    introduce(&stage, 0, &newcomer(NEW, "new.example"));
    let before = (wait(stage.any(0).resource_servers(&stage.alice)).unwrap(), stage.rows(&stage.alice));
    let known = newcomer(SERVER, "gw.example");
    let other = Newcomer { resource_uri: format!("{SERVER}/other"), name: "Other".into(), ..known.clone() };
    assert_eq!(introduce(&stage, 1, &other), Introduced::Active);
    let stolen = Newcomer { key: Thumbprint::from_text("key-9"), ..known };
    assert_eq!(introduce(&stage, 0, &stolen), Introduced::AnotherKey);
    let again = Newcomer {
        resource_uri: format!("{NEW}/other"),
        name: "Other".into(),
        key: Thumbprint::from_text("key-9"),
        ..newcomer(NEW, "elsewhere.example")
    };
    assert_eq!(introduce(&stage, 1, &again), Introduced::Pending);
    let after = (wait(stage.any(1).resource_servers(&stage.alice)).unwrap(), stage.rows(&stage.alice));
    assert_eq!(before, after);
}

/// Racing decisions: one approves, one revokes, and whatever came first it ends revoked.
pub fn a_newcomer_is_judged_once(place: &dyn Place) {
    let stage = Stage::set(place);
    for round in 0..ROUNDS {
        let id = format!("https://new{round}.example");
        introduce(&stage, 0, &newcomer(&id, &id));
        let said = race(CALLERS, |caller| judge(&stage, caller, &id, Standing::Active));
        assert_eq!(count(&said, &Some(())), 1, "one approval");
        grant_pat(&stage, &id, &id);
        assert!(pat(&stage, &id).is_some());

        let id = format!("https://torn{round}.example");
        introduce(&stage, 0, &newcomer(&id, &id));
        let rows = stage.rows(&stage.alice).len();
        let answer = |caller| if caller % 4 < 2 { Standing::Active } else { Standing::Revoked };
        let said = race(CALLERS, |caller| (answer(caller), judge(&stage, caller, &id, answer(caller))));
        assert_eq!(count(&said, &(Standing::Revoked, Some(()))), 1);
        let approved = count(&said, &(Standing::Active, Some(())));
        assert!(approved <= 1);
        assert_eq!(stage.rows(&stage.alice).len(), rows + 1 + approved);
        assert_eq!(standing(&stage, &id), Some(Standing::Revoked));
        grant_pat(&stage, &id, &id);
        assert_eq!(pat(&stage, &id), None);
    }
}

/// Introductions that race a withdrawal: never active, and what it had stays dead whichever came last.
pub fn introductions_race_a_withdrawal(place: &dyn Place) {
    let stage = Stage::set(place);
    for round in 0..ROUNDS {
        let id = format!("https://gone{round}.example");
        let new = newcomer(&id, &id);
        introduce(&stage, 0, &new);
        judge(&stage, 1, &id, Standing::Active).unwrap();
        grant_pat(&stage, &id, &id);
        assert!(pat(&stage, &id).is_some());
        let rows = stage.rows(&stage.alice).len();
        let said = race(CALLERS, |caller| match caller {
            16 => judge(&stage, caller, &id, Standing::Revoked).map(|()| None),
            _ => Some(Some(introduce(&stage, caller, &new))),
        });
        assert_eq!(count(&said, &Some(None)), 1, "her withdrawal stands");
        let again = count(&said, &Some(Some(Introduced::Pending)));
        assert_eq!(again + count(&said, &Some(Some(Introduced::Active))), CALLERS - 1);
        let left = if again > 0 { Standing::Pending } else { Standing::Revoked };
        assert_eq!(standing(&stage, &id), Some(left));
        assert_eq!(stage.rows(&stage.alice).len(), rows + 1 + usize::from(again > 0));
        assert_eq!(pat(&stage, &id), None);

        introduce(&stage, 0, &new);
        assert_eq!((standing(&stage, &id), pat(&stage, &id)), (Some(Standing::Pending), None));
        grant_pat(&stage, &format!("{id} early"), &id);
        assert_eq!(pat(&stage, &format!("{id} early")), None);
        judge(&stage, 0, &id, Standing::Active).unwrap();
        assert_eq!(pat(&stage, &id), None, "approving it again revives no token");
    }
}

/// A token drawn while she withdraws its server is dead when both are done.
pub fn no_token_outlives_a_withdrawal(place: &dyn Place) {
    let stage = Stage::set(place);
    for round in 0..PAIRS {
        let id = format!("https://late{round}.example");
        introduce(&stage, 0, &newcomer(&id, &id));
        judge(&stage, 1, &id, Standing::Active).unwrap();
        let (_, judged) = both(|| grant_pat(&stage, &id, &id), || judge(&stage, 1, &id, Standing::Revoked));
        assert_eq!((judged, pat(&stage, &id)), (Some(()), None));
    }
}

/// Set-up vouches for one that waits, unless she withdrew it: neither saying it again nor another address helps then.
pub fn set_up_undoes_no_withdrawal(place: &dyn Place) {
    const MOVED: &str = "https://moved.example";
    let stage = Stage::set(place);
    let settle = |id: &str, key: &str| {
        wait(stage.any(0).settle_resource_server(&server("alice", id, key), NOW)).unwrap();
    };
    introduce(&stage, 0, &newcomer(NEW, "new.example"));
    settle(NEW, "key-3");
    let row = of(&stage, &stage.alice, NEW).unwrap();
    assert_eq!((row.status, row.introduced_by), (Standing::Active, IntroducedBy::Setup));

    judge(&stage, 0, OTHER, Standing::Revoked).unwrap();
    let again = Newcomer { key: Thumbprint::from_text("key-2"), ..newcomer(OTHER, "other.example") };
    assert_eq!(introduce(&stage, 1, &again), Introduced::Pending);
    let rows = stage.rows(&stage.alice).len();
    race(CALLERS, |_| settle(OTHER, "key-2"));
    assert_eq!(standing(&stage, OTHER), Some(Standing::Pending));
    assert_eq!(stage.rows(&stage.alice).len(), rows);
    settle(MOVED, "key-2");
    assert_eq!((standing(&stage, OTHER), standing(&stage, MOVED)), (None, Some(Standing::Pending)));
    grant_pat(&stage, "pat", MOVED);
    assert_eq!(pat(&stage, "pat"), None);
    judge(&stage, 0, MOVED, Standing::Active).unwrap();
    settle(MOVED, "key-2");
    assert_eq!(standing(&stage, MOVED), Some(Standing::Active), "what she brought back stays");
}

/// Racing newcomers: as many wait as may, of one source and in all; one more waits when she has answered one.
pub fn who_waits_is_capped(place: &dyn Place) {
    let stage = Stage::set(place);
    let waiting = |stage: &Stage| {
        let servers = wait(stage.any(0).resource_servers(&stage.alice)).unwrap();
        servers.iter().filter(|server| server.status == Standing::Pending).count()
    };
    let said = race(CALLERS, |caller| {
        introduce(&stage, caller, &newcomer(&format!("https://a{caller}.one.example"), "one.example"))
    });
    assert_eq!(count(&said, &Introduced::Pending), MOST_OF_SOURCE);
    assert_eq!(count(&said, &Introduced::Full), CALLERS - MOST_OF_SOURCE);
    assert_eq!(waiting(&stage), MOST_OF_SOURCE);
    let said = race(CALLERS, |caller| {
        let source = format!("s{caller}.example");
        introduce(&stage, caller, &newcomer(&format!("https://{source}"), &source))
    });
    assert_eq!(count(&said, &Introduced::Pending), MOST_PENDING - MOST_OF_SOURCE);
    assert_eq!(waiting(&stage), MOST_PENDING);
    let late = newcomer(NEW, "new.example");
    assert_eq!(introduce(&stage, 0, &late), Introduced::Full);
    assert_eq!(of(&stage, &stage.alice, NEW), None, "nothing is kept of what does not fit");
    let bobs = wait(stage.any(1).introduce(&stage.bob, &late, NOW)).unwrap();
    assert_eq!(bobs, Introduced::Pending, "another owner's list is another list");

    let servers = wait(stage.any(0).resource_servers(&stage.alice)).unwrap();
    let one = servers.into_iter().find(|server| server.status == Standing::Pending).unwrap();
    judge(&stage, 1, one.client_id.as_str(), Standing::Revoked).unwrap();
    assert_eq!(introduce(&stage, 0, &late), Introduced::Pending);
    let denied = newcomer(one.client_id.as_str(), "again.example");
    assert_eq!(introduce(&stage, 1, &denied), Introduced::Full, "one she revoked needs a place too");
    assert_eq!(standing(&stage, one.client_id.as_str()), Some(Standing::Revoked));
}

/// One she puts out again and again asks her ever more rarely; the first time at once. Nobody else waits longer for it.
pub fn who_was_put_out_asks_ever_less(place: &dyn Place) {
    const DAY: i64 = 24 * 3600;
    let stage = Stage::set(place);
    let new = newcomer(NEW, "new.example");
    let ask = |caller: usize, now| wait(stage.any(caller).introduce(&stage.alice, &new, now)).unwrap();
    let mut now = NOW;
    // Denied when it first asks, and again at once when it asks anew.
    for days in [0, 0, 1, 2, 4, 8, 16, 30, 30, 30] {
        if days > 0 {
            let before = (of(&stage, &stage.alice, NEW), stage.rows(&stage.alice));
            let early = race(CALLERS, |caller| ask(caller, now.plus(days * DAY - 1)));
            assert_eq!(count(&early, &Introduced::Early), CALLERS, "{days}");
            assert_eq!((of(&stage, &stage.alice, NEW), stage.rows(&stage.alice)), before);
        }
        now = now.plus(days * DAY);
        assert_eq!(ask(0, now), Introduced::Pending, "{days}");
        judge(&stage, 1, NEW, Standing::Revoked).unwrap();
    }
    assert_eq!(ask(0, now), Introduced::Early);
    assert_eq!(
        introduce(&stage, 0, &newcomer("https://other.new.example", "new.example")),
        Introduced::Pending
    );
    assert_eq!(wait(stage.any(1).introduce(&stage.bob, &new, now)).unwrap(), Introduced::Pending);
    // Her own yes is bound by nothing.
    assert_eq!(ask(0, now.plus(30 * DAY)), Introduced::Pending);
    assert_eq!(judge(&stage, 0, NEW, Standing::Active), Some(()));
}
