//! Her page, for tools that came later and tools that say the same in other words (D-29, D-30).

use crate::browser::{Browser, forms, house, refused};
use crate::house::{Agent, House};
use crate::portal_forms::hostile;
use sayso_protocol::payload::metadata::OwnedResource;
use serde_json::{Value, json};

const GOVERN: &str = "/things/govern";

fn publish(house: &House, change: impl FnOnce(&mut Vec<OwnedResource>)) {
    change(&mut house.alice.server.told.lock().unwrap().listing);
}

async fn pull(house: &House) {
    house.authority.pull(&house.alice.name, &house.alice.client_id()).await.unwrap();
}

/// A tool called `late` that says this of itself.
fn late(house: &House, said: Value) {
    publish(house, |listing| {
        listing.retain(|entry| entry.tool.as_str() != "late");
        let mut entry = listing[0].clone();
        entry.id = "vault/late".parse().unwrap();
        (entry.tool, entry.name) = ("late".parse().unwrap(), "late".into());
        entry.definition = Some(sayso_protocol::canon::s256_bytes(said.to_string().as_bytes()));
        entry.surface = Some(said);
        listing.push(entry);
    });
}

// D-29
#[tokio::test(flavor = "multi_thread")]
async fn a_tool_that_came_later_is_shown_and_governed() {
    let house = house().await;
    let browser = Browser::of(&house, &house.alice).await;
    let action = format!("{}{GOVERN}", browser.base);
    late(&house, json!({ "description": "<b>looks</b>" }));
    pull(&house).await;
    let page = browser.home().await;
    assert!(page.contains("ungoverned") && page.contains("every single call"), "{page}");
    assert!(page.contains("&lt;b&gt;looks") && !page.contains("<b>looks"), "its words are text");
    let first = forms(&page, &action)[0].clone();

    let harmless = json!({ "annotations": { "readOnlyHint": true, "openWorldHint": false } });
    late(&house, harmless);
    pull(&house).await;
    let page = browser.home().await;
    assert!(page.contains("it only reads"));
    let form = forms(&page, &action)[0].clone();
    let before = house.dump();
    for (what, sent, status) in hostile(&browser, GOVERN, &form) {
        assert_eq!(refused(&house.send(sent).await), status, "{what}");
    }
    assert_eq!(refused(&house.send(browser.form(GOVERN, &first)).await), 409, "it changed since");
    assert_eq!(house.dump(), before);

    assert_eq!(house.send(browser.form(GOVERN, &form)).await.status, 303);
    let unit = house.read(&house.alice, "/policies").await["late"].clone();
    assert_eq!(unit["resources"], json!(["vault/late"]));
    assert_eq!((&unit["ask_me"], &unit["terms"]["per_operation"]), (&json!(true), &json!(false)));
    assert!(forms(&browser.home().await, &action).is_empty());
    let again = house.dump();
    assert_eq!(
        refused(&house.send(browser.form(GOVERN, &form)).await),
        409,
        "there is nothing left to govern"
    );
    assert_eq!(house.dump(), again);
}

// D-29
#[tokio::test(flavor = "multi_thread")]
async fn a_unit_of_hers_of_that_name_is_left_alone() {
    let house = house().await;
    let browser = Browser::of(&house, &house.alice).await;
    publish(&house, |listing| {
        let mut entry = listing[0].clone();
        entry.id = "other/holdings".parse().unwrap();
        (entry.tool, entry.name) = ("holdings".parse().unwrap(), "holdings".into());
        listing.push(entry);
    });
    pull(&house).await;
    let before = house.read(&house.alice, "/policies").await["holdings"].clone();
    let page = browser.home().await;
    let form = forms(&page, &format!("{}{GOVERN}", browser.base))[0].clone();
    assert_eq!(house.send(browser.form(GOVERN, &form)).await.status, 303);
    let policies = house.read(&house.alice, "/policies").await;
    assert_eq!(policies["holdings"], before);
    assert_eq!(policies["holdings-2"]["resources"], json!(["other/holdings"]));
}

// D-30
#[tokio::test(flavor = "multi_thread")]
async fn other_words_are_shown_and_suspend_nothing() {
    let house = house().await;
    let browser = Browser::of(&house, &house.alice).await;
    let say = |words: &str| {
        publish(&house, |listing| {
            let tool = listing.iter_mut().find(|entry| entry.tool.as_str() == "get_positions").unwrap();
            tool.surface = Some(json!({ "description": words }));
            tool.definition = Some(sayso_protocol::canon::s256_bytes(b"the same"));
        });
    };
    let action = format!("{}/things/seen", browser.base);
    say("one thing");
    pull(&house).await;
    let page = browser.home().await;
    let form = forms(&page, &action)[0].clone();
    assert_eq!(house.send(browser.form("/things/seen", &form)).await.status, 303);
    say("another");
    pull(&house).await;
    let page = browser.home().await;
    assert!(page.contains("in other words") && !page.contains("suspended"), "{page}");
    assert!(page.contains("&quot;one thing&quot;") && page.contains("&quot;another&quot;"));
    let agent = Agent::new();
    let mut talk = agent.negotiate(&house, &house.alice, "get_positions").await;
    assert_eq!(talk.commit().await.json()["error"], "request_submitted", "it can be asked for");
    let form = forms(&page, &action)[0].clone();
    assert_eq!(house.send(browser.form("/things/seen", &form)).await.status, 303);
    assert!(!browser.home().await.contains("in other words"));
}
