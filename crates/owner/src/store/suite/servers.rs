//! Set-up and resource servers: said many times, effective once; what she withdrew stays withdrawn.

use super::Place;
use super::race::{CALLERS, PAIRS, ROUNDS, both, race, wait};
use super::stage::{BOBS, LOOK, NOW, OTHER, SERVER, Said, Stage, TRADE, herself, published, server, unit};
use crate::decision::Answer;
use crate::ledger::{Author, Kind};
use crate::registry::{Introduced, Newcomer, Pat, Standing};
use crate::step::Beat;
use crate::store::{DeviceKey, Digest, Found};
use crate::unit::Owner;
use sayso_protocol::payload::negotiation::TokenError;
use sayso_protocol::payload::protection::Inactive;
use sayso_protocol::{ClientId, Thumbprint};

fn judge(stage: &Stage, caller: usize, client_id: &str, standing: Standing) -> Option<()> {
    let client_id: ClientId = client_id.parse().unwrap();
    let store = stage.any(caller);
    wait(store.judge_resource_server(&stage.alice, &client_id, standing, &herself(), NOW)).unwrap()
}

fn pat(stage: &Stage, name: &str) -> Option<Pat> {
    wait(stage.any(1).pat(Digest::of(name), NOW)).unwrap()
}

fn grant_pat(stage: &Stage, name: &str) {
    let expires = NOW.plus(600);
    wait(stage.any(0).grant_pat(Digest::of(name), &stage.alice, &stage.server, expires)).unwrap();
}

/// Racing set-ups of one owner and one server: each is there once, and recorded once as set-up.
pub fn set_up_happens_once(place: &dyn Place) {
    let stage = Stage::set(place);
    let owner = Owner { name: "carol".parse().unwrap(), namespace: "ns-carol".into() };
    race(CALLERS, |caller| wait(stage.any(caller).settle_owner(&owner)).unwrap());
    let renamed = Owner { namespace: "ns-else".into(), ..owner.clone() };
    wait(stage.any(0).settle_owner(&renamed)).unwrap();
    let owners = wait(stage.any(1).owners()).unwrap();
    assert_eq!(owners.iter().filter(|each| each.name == owner.name).collect::<Vec<_>>(), [&owner]);

    let known = server("carol", SERVER, "key-1");
    race(CALLERS, |caller| wait(stage.any(caller).settle_resource_server(&known, NOW)).unwrap());
    assert_eq!(wait(stage.any(0).resource_servers(&owner.name)).unwrap(), [known]);
    let rows = stage.rows(&owner.name);
    assert_eq!(rows.len(), 1);
    assert_eq!((rows[0].record.kind, &rows[0].record.author), (Kind::Approved, &Author::Setup));
    assert_eq!(wait(stage.any(0).resource_server(&stage.server)).unwrap().len(), 3);
}

/// Racing enrolments of one key: one stands, and it is not another owner's to enrol.
pub fn a_key_is_enrolled_once(place: &dyn Place) {
    let stage = Stage::set(place);
    let jwk = stage.stranger().jwk();
    let thumbprint = jwk.key().unwrap().thumbprint();
    assert_eq!(wait(stage.any(0).device(&thumbprint)).unwrap(), None);
    let key = |owner, label: &str| DeviceKey {
        owner,
        jwk: jwk.clone(),
        thumbprint: thumbprint.clone(),
        label: label.into(),
    };
    race(CALLERS, |caller| {
        let key = key(stage.alice.clone(), &caller.to_string());
        wait(stage.any(caller).enrol(&key, &Author::Setup, NOW)).unwrap();
    });
    let enrolled = wait(stage.any(0).device(&thumbprint)).unwrap().unwrap();
    let again = key(stage.bob.clone(), "mine now");
    wait(stage.any(1).enrol(&again, &Author::Setup, NOW)).unwrap();
    assert_eq!(wait(stage.any(1).device(&thumbprint)).unwrap(), Some(enrolled.clone()));
    assert_eq!(enrolled.owner, stage.alice);
}

/// Racing withdrawals of a server: one is hers, and its tokens and grants end with it, for good.
pub fn a_server_is_revoked_once(place: &dyn Place) {
    let stage = Stage::set(place);
    let agent = stage.admitted();
    let (_, token) = stage.reusable(&agent);
    let (_, ticket) = stage.approved(&agent, TRADE);
    grant_pat(&stage, "pat-1");
    let standing = Some(Standing::Active);
    assert_eq!(pat(&stage, "pat-1").map(|pat| pat.standing), standing);
    assert_eq!(wait(stage.any(0).pat(Digest::of("pat-1"), NOW.plus(600))).unwrap(), None, "expired");
    assert_eq!(judge(&stage, 0, SERVER, Standing::Active), None, "it is active already");
    assert_eq!(judge(&stage, 0, SERVER, Standing::Pending), None);

    let judged = race(CALLERS, |caller| judge(&stage, caller, SERVER, Standing::Revoked));
    assert_eq!(judged.iter().filter(|judged| judged.is_some()).count(), 1);
    let row = stage.rows(&stage.alice).pop().unwrap().record;
    assert_eq!((row.kind, row.author), (Kind::Revoked, herself()));
    assert_eq!(pat(&stage, "pat-1"), None);
    assert_eq!(stage.found(0, &token), Found::Dead(Inactive::Revoked));
    assert!(matches!(stage.poll(0, &ticket), Said::Refused(TokenError::RequestDenied)));
    let refused = stage.open(1, &stage.attempt(LOOK), Beat::Present, NOW);
    assert!(matches!(refused, Said::Refused(TokenError::RequestDenied)));

    grant_pat(&stage, "pat-2");
    assert_eq!(pat(&stage, "pat-2"), None, "a withdrawn server gets no token");
    assert_eq!(judge(&stage, 1, SERVER, Standing::Active), None, "a withdrawal is not undone by an approval");
    wait(stage.any(0).settle_resource_server(&server("alice", SERVER, "key-1"), NOW)).unwrap();
    let servers = wait(stage.any(0).resource_servers(&stage.alice)).unwrap();
    assert_eq!(servers.iter().filter(|it| it.status == Standing::Active).count(), 1, "nor by set-up");
    assert_eq!(judge(&stage, 1, "https://nobody.example", Standing::Revoked), None);
    assert_eq!(judge(&stage, 1, OTHER, Standing::Revoked), Some(()));
}

/// What was under way at a server she withdraws is over, in whatever state it was, and stays so when she has let the
/// server in again.
pub fn a_withdrawal_ends_what_is_under_way(place: &dyn Place) {
    let stage = Stage::set(place);
    let agent = stage.admitted();
    let (_, unclaimed) = stage.approved(&agent, TRADE);
    let (family, said) = stage.ask(&stage.stranger(), LOOK);
    let waiting = said.waits();
    let (proffered, proffer) = stage.terms(LOOK);
    let (bobs, his) = stage.terms(BOBS);

    assert_eq!(judge(&stage, 1, SERVER, Standing::Revoked), Some(()));
    assert!(wait(stage.any(0).pending(&stage.alice, NOW)).unwrap().is_empty(), "she is asked no more");
    assert_eq!(stage.decide(0, &family, Answer::Approved), None);
    let again = Newcomer {
        client_id: stage.server.clone(),
        resource_uri: format!("{SERVER}/mcp"),
        name: "gateway".into(),
        key: Thumbprint::from_text("key-1"),
        source: "gw.example".into(),
    };
    assert_eq!(wait(stage.any(0).introduce(&stage.alice, &again, NOW)).unwrap(), Introduced::Pending);
    assert_eq!(judge(&stage, 0, SERVER, Standing::Active), Some(()));

    let rows = stage.rows(&stage.alice).len();
    assert_eq!(stage.decide(1, &family, Answer::Approved), None, "nor by her own late answer");
    for ticket in [&unclaimed, &waiting] {
        assert!(matches!(stage.poll(0, ticket), Said::Refused(TokenError::RequestDenied)));
        assert!(matches!(stage.poll(1, ticket), Said::Lost), "and it was told once");
    }
    let committed = stage.commit(0, &agent, &proffered, &proffer);
    assert!(matches!(committed, Said::Refused(TokenError::RequestDenied)), "{}", committed.word());
    assert_eq!(stage.rows(&stage.alice).len(), rows);
    stage.commit(1, &agent, &bobs, &his).waits();
    // What is asked from now on is asked anew.
    stage.reusable(&agent);
    stage.single_use(&agent);
}

/// Withdrawing a server while an approval at it is claimed.
pub fn no_claim_outlives_its_server(place: &dyn Place) {
    let mut stage = Stage::set(place);
    let agent = stage.admitted();
    for round in 0..PAIRS {
        let (client_id, resource) = (format!("https://gw{round}.example"), format!("vault/at{round}"));
        let known = server("alice", &client_id, &format!("key-at-{round}"));
        wait(stage.any(0).settle_resource_server(&known, NOW)).unwrap();
        wait(stage.any(1).pull(&stage.alice, &known.client_id, &[published(&resource)], NOW)).unwrap();
        stage.server = known.client_id;
        stage.create(&stage.alice, &unit(&format!("at-{round}"), &resource, true));
        let (_, ticket) = stage.approved(&agent, &resource);
        let (said, judged) =
            both(|| stage.poll(0, &ticket), || judge(&stage, 1, &client_id, Standing::Revoked));
        assert_eq!(judged, Some(()));
        match said {
            Said::Granted(token) => assert_eq!(stage.found(0, &token), Found::Dead(Inactive::Revoked)),
            Said::Refused(TokenError::RequestDenied) => {}
            other => panic!("{}", other.word()),
        }
    }
}

/// A server known by its key moves with its address: what is hers stays, what was addressed ends.
pub fn a_server_moves_with_its_key(place: &dyn Place) {
    const MOVED: &str = "https://moved.example";
    let mut stage = Stage::set(place);
    let agent = stage.admitted();
    let (_, token) = stage.reusable(&agent);
    let (family, said) = stage.ask(&agent, TRADE);
    let (waiting, sealed) = (said.waits(), stage.attempt(LOOK));
    grant_pat(&stage, "pat-1");
    let rows = stage.rows(&stage.alice);

    let moved = server("alice", MOVED, "key-1");
    race(CALLERS, |caller| wait(stage.any(caller).settle_resource_server(&moved, NOW)).unwrap());
    let servers = wait(stage.any(1).resource_servers(&stage.alice)).unwrap();
    let ids: Vec<&str> = servers.iter().map(|server| server.client_id.as_str()).collect();
    assert_eq!(ids, [MOVED, OTHER]);
    assert_eq!(stage.rows(&stage.alice).len(), rows.len() + 1);
    assert_eq!(pat(&stage, "pat-1"), None);
    assert_eq!(stage.found(0, &token), Found::Dead(Inactive::Revoked));
    assert!(matches!(stage.poll(0, &waiting), Said::Lost | Said::Refused(_)));
    assert_eq!(stage.decide(0, &family, Answer::Approved), None);
    assert!(matches!(stage.open(0, &sealed, Beat::Present, NOW), Said::Refused(TokenError::RequestDenied)));
    assert_eq!(wait(stage.any(0).resource_servers(&stage.bob)).unwrap()[0].client_id.as_str(), SERVER);

    // Her units and her connection are at the new address.
    stage.server = MOVED.parse().unwrap();
    let (_, token) = stage.reusable(&agent);
    assert!(matches!(stage.found(0, &token), Found::Live(..)));
}

/// Racing uses of one signature: one is the first.
pub fn a_signature_is_seen_once(place: &dyn Place) {
    let stage = Stage::set(place);
    for round in 0..ROUNDS {
        let signature = Digest::of(&format!("signature {round}"));
        let first =
            race(CALLERS, |caller| wait(stage.any(caller).remember(signature, NOW.plus(121), NOW)).unwrap());
        assert_eq!(first.iter().filter(|first| **first).count(), 1);
    }
}
