//! Listings as they are learnt, kept and lost, and lists cut to what may be called.

#![cfg(feature = "coaz")]

use super::*;
use crate::scripted_policy::{Lists, Point, Says, filtering, filtering_by, json};
use sayso_coaz::Fault;
use std::sync::atomic::Ordering;
use std::time::Duration;

const PLAIN: &str = r#"{"tools":[{"name":"a","inputSchema":{"type":"object"}}]}"#;

fn learning(lists: &Arc<Lists>) -> Mappings {
    let mappings = Mappings::unknown();
    mappings.learn_from(lists.clone());
    mappings
}

async fn declared(mappings: &Mappings, tool: &str) -> Result<bool, Fault> {
    let listed = mappings.current().await;
    listed.registry.declared(tool, mappings.now()).map(|mapping| mapping.is_some())
}

// COAZ-MCP-04, COAZ-FW-39, D-36, LST-01, LST-02, LST-04, LST-07, LST-08: pages are one listing, asked for when a call needs it and not again while it holds.
#[tokio::test(start_paused = true)]
async fn a_listing_is_learnt_when_it_is_needed_and_kept_while_it_holds() {
    let mapped = r#"{"tools":[{"name":"b","inputSchema":{"x-authzen-mapping":{"evaluation":{"action":{"name":"b"},"resource":{"type":"t","id":"1"}}}}}],"ttlMs":5000}"#;
    let first = r#"{"tools":[{"name":"a","inputSchema":{}}],"nextCursor":"2","ttlMs":90000}"#;
    let lists = Lists::these(&[first, mapped]);
    let mappings = learning(&lists);
    assert_eq!((declared(&mappings, "a").await, declared(&mappings, "b").await), (Ok(false), Ok(true)));
    assert_eq!(lists.asked(), 1);
    tokio::time::advance(Duration::from_millis(4_900)).await;
    assert!(declared(&mappings, "b").await.is_ok());
    assert_eq!(lists.asked(), 1, "the shortest of its pages is not over");
    tokio::time::advance(Duration::from_millis(200)).await;
    assert!(declared(&mappings, "b").await.is_ok());
    assert_eq!(lists.asked(), 2);
    lists.changes.fetch_add(1, Ordering::SeqCst);
    *lists.pages.lock().unwrap() = Some(vec![json(PLAIN)]);
    assert_eq!(declared(&mappings, "b").await, Ok(false), "the server said that its tools changed");
    assert_eq!(lists.asked(), 3);
}

// LST-08: what a server says holds for a moment holds for the call that had it asked, and for those of the same second.
#[tokio::test(start_paused = true)]
async fn a_listing_holds_for_a_second_at_least() {
    for ttl in [1, 20, 999] {
        let lists = Lists::these(&[&PLAIN.replace("]}", &format!(r#"],"ttlMs":{ttl}}}"#))]);
        let mappings = learning(&lists);
        let listed = mappings.current().await;
        tokio::time::advance(Duration::from_millis(990)).await;
        assert!(
            listed.registry.declared("a", mappings.now()).is_ok() && declared(&mappings, "a").await.is_ok()
        );
        assert_eq!(lists.asked(), 1, "{ttl}");
        tokio::time::advance(Duration::from_millis(20)).await;
        assert!(listed.registry.declared("a", mappings.now()).is_ok(), "a call that has it goes on with it");
        assert!(declared(&mappings, "a").await.is_ok());
        assert_eq!(lists.asked(), 2, "{ttl}");
    }
}

// COAZ-FW-46, D-36, LST-03: what cannot be learnt is not known, whatever was known before.
#[tokio::test(start_paused = true)]
async fn a_listing_that_is_over_is_never_used_again() {
    let lists = Lists::these(&[PLAIN]);
    let mappings = learning(&lists);
    assert!(declared(&mappings, "a").await.is_ok());
    *lists.pages.lock().unwrap() = None;
    tokio::time::advance(Duration::from_secs(61)).await;
    for _ in 0..3 {
        assert_eq!(declared(&mappings, "a").await.unwrap_err().category().as_str(), "mapping_unavailable");
    }
    *lists.pages.lock().unwrap() = Some(vec![json(r#"{"tools":[],"nextCursor":"2"}"#)]);
    assert!(declared(&mappings, "a").await.is_err(), "a page is missing");
    *lists.pages.lock().unwrap() = Some(vec![json(PLAIN)]);
    assert!(declared(&mappings, "a").await.is_ok());
}

// However many calls wait, the server is asked once.
#[tokio::test]
async fn one_question_answers_everybody_who_waits() {
    for lost in [false, true] {
        let lists = Lists::these(&[PLAIN]);
        if lost {
            *lists.pages.lock().unwrap() = None;
        }
        let mappings = Arc::new(learning(&lists));
        let ask = || declared(&mappings, "a");
        let all = tokio::join!(ask(), ask(), ask(), ask());
        assert_eq!((all.0.is_ok(), all.3.is_ok()), (!lost, !lost));
        assert_eq!(lists.asked(), 1);
    }
}

#[tokio::test]
async fn what_nobody_can_learn_is_fixed_or_unknown() {
    assert!(declared(&Mappings::unknown(), "a").await.is_err());
    assert_eq!(declared(&Mappings::undeclared(), "a").await, Ok(false));
    assert_eq!(declared(&Mappings::fixed(&[json(PLAIN)]).unwrap(), "a").await, Ok(false));
    assert!(Mappings::fixed(&[]).is_err());
}

// COAZ-MCP-60 and its like, LST-06, ENV-01: one name twice is refused, and never mapped by default.
#[tokio::test]
async fn a_tool_listed_twice_or_malformed_is_refused() {
    let page = r#"{"tools":[{"name":"a","inputSchema":{}},{"name":"a","inputSchema":{}},
        {"name":"m","inputSchema":{"x-authzen-mapping":null}}]}"#;
    let mappings = Mappings::fixed(&[json(page)]).unwrap();
    for tool in ["a", "m"] {
        assert_eq!(declared(&mappings, tool).await.unwrap_err().category().as_str(), "mapping_error");
    }
}

async fn filtered(says: Says, answer: &str) -> (serde_json::Value, Arc<Point>) {
    let point = Point::saying(says);
    let cut = filtering(&point).apply(Some(answer.as_bytes())).await;
    (serde_json::from_slice(&cut).unwrap(), point)
}

const LIST: &str = r#"{"jsonrpc":"2.0","id":"x","result":{"ttlMs":1,"tools":[{"name":"a","n":1.50},{"name":"b"},{"title":"nameless"}]}}"#;

#[tokio::test]
async fn a_list_shows_what_may_be_called_and_nothing_else() {
    let (all, point) = filtered(Says::Yes, LIST).await;
    let names = |list: &serde_json::Value| -> Vec<String> {
        let tools = list["result"]["tools"].as_array().unwrap();
        tools.iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(names(&all), ["a", "b"]);
    assert_eq!(all["result"]["ttlMs"], 1);
    let asked = point.only();
    let entries = asked["evaluations"].as_array().unwrap();
    assert_eq!(entries.len(), 2, "what has no name is not shown");
    for (entry, name) in entries.iter().zip(["a", "b"]) {
        // The mapping of `b` needs an argument, so its default is asked about.
        assert_eq!(entry["action"]["name"], "tools/call");
        assert_eq!((&entry["resource"]["id"], &entry["subject"]["id"]), (&name.into(), &"u-ann".into()));
    }
    let (some, _) = filtered(Says::FirstOnly, LIST).await;
    assert_eq!(names(&some), ["a"]);
    let (none, _) = filtered(Says::No, LIST).await;
    assert!(names(&none).is_empty());
}

// COAZ-MCP-04, D-36: without mappings nobody can say what may be called, and a list of nothing would say that.
#[tokio::test]
async fn without_a_listing_no_list_is_cut() {
    let lost = Lists::these(&[PLAIN]);
    *lost.pages.lock().unwrap() = None;
    for mappings in [Mappings::unknown(), learning(&lost)] {
        let point = Point::saying(Says::Yes);
        let cut = filtering_by(&point, mappings).apply(Some(LIST.as_bytes())).await;
        let answer: serde_json::Value = serde_json::from_slice(&cut).unwrap();
        let error = &answer["error"];
        assert_eq!((&answer["id"], &error["code"]), (&"x".into(), &(-32603).into()), "{answer}");
        assert_eq!(error["data"]["coaz"]["category"], "mapping_unavailable");
        assert!(answer.get("result").is_none() && point.bodies().is_empty());
    }
}

// MCP 3: what is cut for one reader is shown to no other, and no page says otherwise.
#[tokio::test]
async fn a_cut_list_is_its_readers_alone() {
    for scope in ["", r#""cacheScope":"public","#, r#""cacheScope":"private","#, r#""cacheScope":7,"#] {
        for (says, things) in [(Says::Yes, r#"{"name":"a"}"#), (Says::No, r#"{"name":"a"}"#), (Says::Yes, "")]
        {
            let list = format!(
                r#"{{"jsonrpc":"2.0","id":"x","result":{{{scope}"tools":[{things}],"nextCursor":"2","ttlMs":300000}}}}"#
            );
            let (cut, _) = filtered(says, &list).await;
            assert_eq!(cut["result"]["cacheScope"], "private", "{list}");
            assert_eq!(
                (&cut["result"]["nextCursor"], &cut["result"]["ttlMs"]),
                (&"2".into(), &300_000.into())
            );
        }
    }
}

// COAZ-FW-43: nor is there a word beside it that tells how long it was.
#[tokio::test]
async fn nothing_beside_a_cut_list_tells_what_was_cut() {
    let whole = r#"{"jsonrpc":"2.0","id":"x","count":2,"result":{"resultType":"complete","total":2,"names":["a","b"],
        "_meta":{"io.modelcontextprotocol/serverInfo":{"name":"s","version":"1"},"com.example/total":2},
        "tools":[{"name":"a","_meta":{"com.example/x":1}},{"name":"b"}]}}"#;
    let (cut, _) = filtered(Says::FirstOnly, whole).await;
    let wanted = serde_json::json!({
        "jsonrpc": "2.0", "id": "x",
        "result": {
            "resultType": "complete", "cacheScope": "private",
            "_meta": {"io.modelcontextprotocol/serverInfo": {"name": "s", "version": "1"}},
            "tools": [{"name": "a", "_meta": {"com.example/x": 1}}],
        },
    });
    assert_eq!(cut, wanted);
    for odd in [r#""_meta":7,"#, r#""_meta":["b"],"#] {
        let (cut, _) =
            filtered(Says::Yes, &whole.replacen("\"_meta\":{\"io", &format!("{odd}\"x\":{{\"io"), 1)).await;
        assert_eq!(cut["result"]["_meta"], serde_json::json!({}), "{odd}");
    }
}

// COAZ-FW-43: no answer, no list.
#[tokio::test]
async fn a_list_that_cannot_be_judged_is_refused() {
    for says in [Says::Nothing, Says::TooFew] {
        let (answer, _) = filtered(says, LIST).await;
        assert_eq!((&answer["id"], &answer["error"]["code"]), (&"x".into(), &(-32603).into()), "{says:?}");
        assert!(answer.get("result").is_none());
    }
    for odd in [
        "",
        "{}",
        "[]",
        r#"{"result":{}}"#,
        r#"{"result":{"tools":{}}}"#,
        r#"{"result":{"tools":[]},"result":1}"#,
    ] {
        let (answer, _) = filtered(Says::Yes, odd).await;
        assert_eq!(answer["error"]["code"], -32603, "{odd}");
    }
    let (error, _) =
        filtered(Says::No, r#"{"jsonrpc":"2.0","id":"x","error":{"code":-1,"message":"m"}}"#).await;
    assert_eq!(error["error"]["code"], -1, "an error lists nothing");
}
