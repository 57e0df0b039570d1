//! Whoever asks may hang up at any time: nothing is spent for nobody without her record being told.

use super::cast::{DOORS, Door, House, Request, TRADE};
use std::sync::Arc;
use std::time::Duration;

async fn until(what: impl Fn() -> bool) {
    let waiting = async {
        while !what() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(10), waiting).await.unwrap();
}

/// A single-use call whose asker hangs up while her authority takes its time at a question.
async fn hang_up(door: Door, held: &'static str) -> Arc<House> {
    let house = Arc::new(House::open());
    *house.authority.held.lock().unwrap() = Some(held);
    let asking = house.clone();
    let asked = tokio::spawn(async move {
        asking.ask(door, &Request::call("execute_trade", TRADE).signed("trade-1")).await
    });
    let questions = if held == "consume" { 2 } else { 1 };
    until(|| house.asked() == questions).await;
    asked.abort();
    assert!(asked.await.unwrap_err().is_cancelled());
    house.authority.go_on.notify_one();
    house
}

// D-14, POL-48
#[tokio::test]
async fn a_grant_spent_for_nobody_is_recorded() {
    for door in DOORS {
        let house = hang_up(door, "consume").await;
        let told = || house.authority.told();
        until(|| !told().is_empty()).await;
        assert_eq!(told(), ["the call was not let through: its caller hung up"], "{door:?}");
        assert_eq!(house.spent(), 1);
    }
}

// D-14
#[tokio::test]
async fn nothing_is_spent_for_whoever_hung_up_before() {
    for door in DOORS {
        let house = hang_up(door, "introspect").await;
        tokio::time::sleep(Duration::from_millis(50)).await;
        assert_eq!((house.spent(), house.asked()), (0, 1), "{door:?}");
        assert!(house.authority.told().is_empty());
        // So the grant is as good as before.
        *house.authority.held.lock().unwrap() = None;
        let again = Request::call("execute_trade", TRADE).signed("trade-1");
        assert_eq!(house.ask(door, &again).await.status, 200);
        assert!(house.authority.told().is_empty(), "what was heard is not reported");
    }
}
