//! Pre-approvals: set-up's word lets in one key at one place, once, and never what she withdrew.

use super::Place;
use super::race::{CALLERS, PAIRS, both, race, wait};
use super::stage::{LOOK, NOW, OTHER, SERVER, Stage, herself};
use crate::ledger::{Author, Kind};
use crate::registry::{
    Introduced, IntroducedBy, Newcomer, PRE_APPROVAL_LIFE, PreApproval, ResourceServer, Standing,
};
use crate::store::{Digest, Found};
use sayso_protocol::payload::protection::Inactive;
use sayso_protocol::{OwnerName, Thumbprint, Timestamp};

const NEW: &str = "https://new.example";
const MOVED: &str = "https://moved.example";
const KEY: &str = "key-9";

fn newcomer(client_id: &str, key: &str) -> Newcomer {
    Newcomer {
        client_id: client_id.parse().unwrap(),
        resource_uri: format!("{client_id}/mcp"),
        name: "Expected".into(),
        key: Thumbprint::from_text(key),
        source: client_id.into(),
    }
}

fn expect_of(stage: &Stage, owner: &OwnerName, client_id: &str, key: &str) -> Option<Standing> {
    let said = newcomer(client_id, key);
    let approval = PreApproval { client_id: said.client_id, resource_uri: said.resource_uri, key: said.key };
    wait(stage.any(0).pre_approve(owner, &approval, NOW)).unwrap()
}

fn expect(stage: &Stage, client_id: &str, key: &str) -> Option<Standing> {
    expect_of(stage, &stage.alice, client_id, key)
}

fn introduce(stage: &Stage, caller: usize, client_id: &str, key: &str) -> Introduced {
    introduce_at(stage, caller, &newcomer(client_id, key), NOW)
}

fn introduce_at(stage: &Stage, caller: usize, newcomer: &Newcomer, now: Timestamp) -> Introduced {
    wait(stage.any(caller).introduce(&stage.alice, newcomer, now)).unwrap()
}

fn withdraw(stage: &Stage, client_id: &str) -> Option<()> {
    let client_id = client_id.parse().unwrap();
    let revoked = Standing::Revoked;
    wait(stage.any(1).judge_resource_server(&stage.alice, &client_id, revoked, &herself(), NOW)).unwrap()
}

fn of(stage: &Stage, client_id: &str) -> Option<ResourceServer> {
    let servers = wait(stage.any(1).resource_servers(&stage.alice)).unwrap();
    servers.into_iter().find(|server| server.client_id.as_str() == client_id)
}

fn standing(stage: &Stage, client_id: &str) -> Option<Standing> {
    of(stage, client_id).map(|server| server.status)
}

/// Racing introductions of one that is expected are all told that it is trusted; set-up's row of her record is one.
pub fn one_that_is_expected_is_let_in_once(place: &dyn Place) {
    let stage = Stage::set(place);
    let before = (wait(stage.any(0).resource_servers(&stage.alice)).unwrap(), stage.rows(&stage.alice));
    assert_eq!(expect(&stage, NEW, KEY), None);
    let after = (wait(stage.any(0).resource_servers(&stage.alice)).unwrap(), stage.rows(&stage.alice));
    assert_eq!(before, after, "the word alone lets nobody in");
    assert_eq!(wait(stage.any(0).is_vouched_for(&format!("{NEW}/mcp"), NOW)), Ok(true));
    assert_eq!(wait(stage.any(0).is_vouched_for(&format!("{NEW}/x"), NOW)), Ok(false));

    let said = race(CALLERS, |caller| introduce(&stage, caller, NEW, KEY));
    assert!(said.iter().all(|said| *said == Introduced::Active));
    let row = of(&stage, NEW).unwrap();
    assert_eq!((row.status, row.introduced_by), (Standing::Active, IntroducedBy::Setup));
    assert_eq!((row.pinned_key, row.name), (Some(Thumbprint::from_text(KEY)), "Expected".into()));
    let rows = stage.rows(&stage.alice);
    assert_eq!(rows.len(), before.1.len() + 1);
    let record = &rows.last().unwrap().record;
    assert_eq!((record.kind, &record.author), (Kind::Approved, &Author::Setup));
    assert_eq!(expect(&stage, NEW, KEY), Some(Standing::Active));

    assert_eq!(introduce(&stage, 1, NEW, "key-8"), Introduced::AnotherKey, "it is that key's from now on");
}

/// Another key, another place, another resource, another owner, a later time: each waits like any other, and takes nothing
/// from the one that is meant.
pub fn the_word_is_for_one_key_at_one_place(place: &dyn Place) {
    let stage = Stage::set(place);
    expect(&stage, NEW, KEY);
    let other = Newcomer { resource_uri: format!("{NEW}/other"), ..newcomer(NEW, KEY) };
    for (what, newcomer, now) in [
        ("another place", newcomer(MOVED, KEY), NOW),
        ("a stranger's key", newcomer(NEW, "key-8"), NOW),
        ("another resource", other, NOW),
        ("too late", newcomer(NEW, KEY), NOW.plus(PRE_APPROVAL_LIFE)),
    ] {
        assert_eq!(introduce_at(&stage, 0, &newcomer, now), Introduced::Pending, "{what}");
        let row = of(&stage, newcomer.client_id.as_str()).unwrap();
        assert_eq!((row.status, row.introduced_by), (Standing::Pending, IntroducedBy::Itself), "{what}");
        assert_eq!(row.pinned_key, None, "{what}");
    }
    let bobs = wait(stage.any(1).introduce(&stage.bob, &newcomer(NEW, KEY), NOW));
    assert_eq!(bobs, Ok(Introduced::Pending), "it was not said to bob");

    assert_eq!(introduce(&stage, 1, NEW, KEY), Introduced::Active);
    let row = of(&stage, NEW).unwrap();
    assert_eq!((row.pinned_key, row.introduced_by), (Some(Thumbprint::from_text(KEY)), IntroducedBy::Setup));
    assert_eq!(standing(&stage, MOVED), Some(Standing::Pending));
}

/// The last word about a key or a place is the one that counts.
pub fn the_last_word_counts(place: &dyn Place) {
    let stage = Stage::set(place);
    expect(&stage, NEW, KEY);
    expect(&stage, MOVED, KEY);
    assert_eq!(introduce(&stage, 0, NEW, KEY), Introduced::Pending);
    expect(&stage, MOVED, "key-8");
    assert_eq!(introduce(&stage, 0, MOVED, KEY), Introduced::Pending);
    assert_eq!(introduce(&stage, 0, MOVED, "key-8"), Introduced::Active);
    let nobody = "mallory".parse().unwrap();
    let approval = PreApproval {
        client_id: NEW.parse().unwrap(),
        resource_uri: format!("{NEW}/mcp"),
        key: Thumbprint::from_text(KEY),
    };
    assert!(wait(stage.any(0).pre_approve(&nobody, &approval, NOW)).is_err(), "there is no such owner");
}

/// What she withdrew waits for her, whatever set-up says and under whichever address; racing her, it is out as well.
pub fn the_word_undoes_no_withdrawal(place: &dyn Place) {
    let stage = Stage::set(place);
    for round in 0..PAIRS {
        let (id, key) = (format!("https://gone{round}.example"), format!("key-of-{round}"));
        expect(&stage, &id, &key);
        assert_eq!(introduce(&stage, 0, &id, &key), Introduced::Active);
        assert_eq!(expect(&stage, &id, &key), Some(Standing::Active));
        let (said, judged) = both(|| introduce(&stage, 0, &id, &key), || withdraw(&stage, &id));
        assert_eq!(judged, Some(()), "hers stands");
        let left = if said == Introduced::Active { Standing::Revoked } else { Standing::Pending };
        assert_eq!(standing(&stage, &id), Some(left));
        assert_eq!(expect(&stage, &id, &key), Some(left));
        assert_eq!(introduce(&stage, 1, &id, &key), Introduced::Pending);
        // Under another address it is the same one, which she put out.
        let moved = format!("https://back{round}.example");
        assert_eq!(expect(&stage, &moved, &key), Some(Standing::Pending));
        assert_eq!(introduce(&stage, 0, &moved, &key), Introduced::Pending);
        assert_eq!((standing(&stage, &id), standing(&stage, &moved)), (None, Some(Standing::Pending)));
        wait(stage.any(0).grant_pat(Digest::of(&id), &stage.alice, &moved.parse().unwrap(), NOW.plus(60)))
            .unwrap();
        assert_eq!(wait(stage.any(0).pat(Digest::of(&id), NOW)), Ok(None));
        assert_eq!(withdraw(&stage, &moved), Some(()));
    }
}

/// One that is known by its key and comes from another place is the same one: what is hers stays, what was addressed ends.
/// Whoever asked for that place before is asked about no more.
pub fn one_that_is_known_moves_by_introducing_itself(place: &dyn Place) {
    let mut stage = Stage::set(place);
    let agent = stage.admitted();
    let (_, token) = stage.reusable(&agent);
    assert_eq!(introduce(&stage, 0, MOVED, "key-8"), Introduced::Pending);
    assert_eq!(expect(&stage, MOVED, "key-1"), Some(Standing::Pending));
    let rows = stage.rows(&stage.alice).len();
    let said = race(CALLERS, |caller| introduce(&stage, caller, MOVED, "key-1"));
    assert!(said.iter().all(|said| *said == Introduced::Active));
    let servers = wait(stage.any(1).resource_servers(&stage.alice)).unwrap();
    let mut ids: Vec<&str> = servers.iter().map(|server| server.client_id.as_str()).collect();
    ids.sort_unstable();
    assert_eq!(ids, [MOVED, OTHER]);
    assert_eq!(stage.rows(&stage.alice).len(), rows + 1);
    assert_eq!(stage.found(0, &token), Found::Dead(Inactive::Revoked));
    assert_eq!(wait(stage.any(0).resource_servers(&stage.bob)).unwrap()[0].client_id.as_str(), SERVER);

    // Her units and her connection are at the new address.
    stage.server = MOVED.parse().unwrap();
    let (_, token) = stage.reusable(&agent);
    assert!(matches!(stage.found(0, &token), Found::Live(..)));
    assert!(
        wait(stage.any(0).resources(&stage.alice))
            .unwrap()
            .iter()
            .any(|one| one.resource.id.as_str() == LOOK)
    );
}
