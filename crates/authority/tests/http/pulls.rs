//! Learning what an owner has: what is believed, what is not, and that a failure changes nothing.
//!
//! The authority never waits for a resource server to be ready (FED-18).

use crate::house::House;
use crate::server::{Lie, entry};
use sayso_authority::pull::PullFault;
use serde_json::json;
use std::time::Duration;
use tokio::io::AsyncWriteExt as _;

// FED-14, FED-07, FED-04, FED-22, FED-23, CORE-112
#[tokio::test(flavor = "multi_thread")]
async fn a_document_that_lies_changes_nothing() {
    let house = House::new().await;
    let person = &house.alice;
    person.server.told.lock().unwrap().listing.push(entry("alice-vault", "more", "more:read"));
    let before = house.dump();
    for lie in [
        Lie::Unsigned,
        Lie::ForeignKey,
        Lie::WrongIssuer,
        Lie::AnotherResource,
        Lie::AnotherAuthority,
        Lie::KeysElsewhere,
        Lie::ListingElsewhere,
        Lie::OddConsequence,
        Lie::TwiceListed,
        Lie::Garbage,
        Lie::Down,
    ] {
        person.server.lie(Some(lie));
        let fault = house.authority.pull(&person.name, &person.client_id()).await;
        assert!(fault.is_err(), "{lie:?}");
        assert_eq!(house.dump(), before, "{lie:?}");
    }
    person.server.lie(None);
    assert_eq!(house.authority.pull(&person.name, &person.client_id()).await, Ok(4));
    let stranger = house.authority.pull(&house.bob.name, &person.client_id()).await;
    assert_eq!(stranger, Err(PullFault::NotTrusted));
}

// FED-15, FED-16
#[tokio::test(flavor = "multi_thread")]
async fn a_pull_is_signed_afresh_and_replaces_the_registry() {
    let house = House::new().await;
    let person = &house.alice;
    for _ in 0..2 {
        house.authority.pull(&person.name, &person.client_id()).await.unwrap();
    }
    {
        let mut told = person.server.told.lock().unwrap();
        assert_eq!(told.signatures.len(), told.asked);
        told.signatures.sort();
        told.signatures.dedup();
        assert_eq!(told.signatures.len(), told.asked);
        told.listing.retain(|entry| entry.name != "execute_trade");
    }
    assert_eq!(house.authority.pull(&person.name, &person.client_id()).await, Ok(2));
    let resources = house.read(person, "/resources").await;
    assert_eq!(resources.as_array().unwrap().len(), 2);
    assert_eq!(house.read(&house.bob, "/resources").await.as_array().unwrap().len(), 3);
}

// D-30
#[tokio::test(flavor = "multi_thread")]
async fn an_empty_listing_is_believed_after_ten_minutes() {
    let house = House::new().await;
    let person = &house.alice;
    let client_id = person.client_id();
    let pull = || house.authority.pull(&person.name, &client_id);
    person.server.lie(Some(Lie::Empty));
    assert_eq!(pull().await, Err(PullFault::Emptied));
    house.pass(599);
    assert_eq!(pull().await, Err(PullFault::Emptied));
    assert_eq!(house.read(person, "/resources").await.as_array().unwrap().len(), 3);
    house.pass(1);
    assert_eq!(pull().await, Ok(0));
    assert_eq!(house.read(person, "/resources").await, json!([]));
}

// FED-18
#[tokio::test(flavor = "multi_thread")]
async fn serving_starts_without_any_resource_server() {
    let house = House::new().await;
    for person in [&house.alice, &house.bob] {
        person.server.lie(Some(Lie::Down));
    }
    assert_eq!(house.authority.pull_all().await, Ok(false));
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let shutdown = async move { drop(stopped.await) };
    let served = tokio::spawn(sayso_authority::serve(vec![listener], house.authority.clone(), shutdown));
    let health = crate::wire::Sent::new("GET", "/health").with("host", &house.address.to_string());
    assert_eq!(health.to(address).await.status, 200);
    for person in [&house.alice, &house.bob] {
        person.server.lie(None);
    }
    assert_eq!(house.authority.pull_all().await, Ok(true));
    // A head that never ends, or is too large, holds nobody else up.
    let mut slow = tokio::net::TcpStream::connect(address).await.unwrap();
    slow.write_all(b"GET /health HTTP/1.1\r\nx: ").await.unwrap();
    let large = health.clone().with("x", &"x".repeat(400_000)).to(address).await;
    assert_eq!(large.status, 431);
    assert_eq!(health.to(address).await.status, 200);
    drop(slow);
    stop.send(()).unwrap();
    tokio::time::timeout(Duration::from_secs(5), served).await.unwrap().unwrap();
}
