//! What whoever counts is told of presentations and of the store: words of ours, each once.

use crate::house::{Agent, House};
use sayso_authority::store::SqliteStore;
use sayso_authority::{Observed, Observer};
use sayso_owner::store::Store;
use sayso_owner::unit::Owner;
use std::sync::{Arc, Mutex};
use std::time::Duration;

#[derive(Default)]
struct Tally {
    results: Mutex<Vec<&'static str>>,
    ops: Mutex<Vec<&'static str>>,
}

impl Observer for Tally {
    fn presented(&self, result: &'static str) {
        self.results.lock().unwrap().push(result);
    }

    fn stored(&self, op: &'static str, _took: Duration) {
        self.ops.lock().unwrap().push(op);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn presentations_are_counted_by_where_they_led() {
    let tally = Arc::new(Tally::default());
    let house = House::with(|config| config.observed = Observed::by(tally.clone())).await;
    let told = || std::mem::take(&mut *tally.results.lock().unwrap());
    let agent = Agent::new();
    let mut talk = agent.negotiate(&house, &house.alice, "get_positions").await;
    assert_eq!(told(), ["proffered"]);
    talk.commit().await;
    talk.present(&[]).await;
    assert_eq!(told(), ["submitted"], "a poll that still waits is counted again");
    house.decide(&house.alice, &talk.family(), "approved").await.ok();
    talk.present(&[]).await.ok();
    assert_eq!(told(), ["issued"]);
    talk.present(&[]).await;
    house.send(talk.request("nonsense", &[])).await;
    assert_eq!(told(), ["lost", "lost"]);
    agent.negotiate(&house, &house.alice, "get_positions").await.present(&[("decline", "true")]).await;
    assert_eq!(told(), ["proffered", "declined"]);
    let mut known = agent.negotiate(&house, &house.alice, "get_positions").await;
    known.commit().await.ok();
    assert_eq!(told(), ["proffered", "issued"], "a known agent is not submitted to her");
    let mut bad = agent.negotiate(&house, &house.alice, "get_positions").await;
    let mut claims = bad.claims();
    claims["purpose"] = "another".into();
    bad.commit_to(&claims).await;
    let mut denied = agent.negotiate(&house, &house.alice, "execute_trade").await;
    denied.commit().await;
    house.decide(&house.alice, &denied.family(), "denied").await.ok();
    denied.present(&[]).await;
    assert_eq!(told(), ["proffered", "breached", "proffered", "submitted", "denied"]);
}

#[tokio::test]
async fn the_store_says_what_it_did() {
    let folder = tempfile::tempdir().unwrap();
    let tally = Arc::new(Tally::default());
    let store = SqliteStore::open(&folder.path().join("sayso.db")).unwrap();
    let store = store.observed(Observed::by(tally.clone()));
    store.settle_owner(&Owner { name: "alice".parse().unwrap(), namespace: "ns".into() }).await.unwrap();
    store.owners().await.unwrap();
    assert_eq!(*tally.ops.lock().unwrap(), ["settle_owner", "owners"]);
}
