//! An rmcp client whose transport is the agent: a stock lifecycle above, the dance below, and every ending in between.

use crate::house::{House, Person, TOOL, Words, challenged, honest, reply, result};
use crate::stub::Seen;
use rmcp::model::{CallToolRequestParams, CallToolResult, ProtocolVersion};
use rmcp::service::{ClientLifecycleMode, RunningService};
use rmcp::{ClientServiceExt as _, RoleClient};
use sayso_agent::rmcp::{OUTCOME, Settings};
use sayso_agent::{Allowed, Consent, Decision, Nobody, Rule, Standing};
use sayso_protocol::payload::negotiation::{TokenError, TokenReply};
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;

type Client = RunningService<RoleClient, ()>;

/// The resource says what rmcp wants to hear first; the rest is the house's.
fn greeting(
    and: impl Fn(&crate::house::Plan, &Seen) -> Option<crate::stub::Answer> + Send + Sync + 'static,
) -> Words {
    Box::new(move |plan, seen| match seen.json()["method"].as_str() {
        Some("server/discover") => Some(result(
            seen,
            json!({ "resultType": "complete", "supportedVersions": ["2026-07-28"], "capabilities": { "tools": {} },
                    "ttlMs": 0, "cacheScope": "private" }),
        )),
        _ => and(plan, seen),
    })
}

async fn house(per_operation: bool, polls: usize, at_authority: Words) -> House {
    House::start(per_operation, polls, greeting(|_, _| None), at_authority).await
}

async fn client(house: &House, consent: impl Consent + 'static, wait: u32) -> Client {
    let mut settings = Settings::new(house.agent(), &house.plan.resource, consent);
    settings.wait = wait;
    let lifecycle = ClientLifecycleMode::Discover { preferred_versions: vec![ProtocolVersion::V_2026_07_28] };
    ().serve_with_lifecycle(settings.transport().await.unwrap(), lifecycle).await.unwrap()
}

async fn call(client: &Client) -> CallToolResult {
    let mut params = CallToolRequestParams::new(TOOL);
    params.arguments = serde_json::from_str(crate::house::ARGUMENTS).unwrap();
    client.call_tool(params).await.unwrap()
}

fn ended(result: &CallToolResult) -> (bool, Value, String) {
    let value = serde_json::to_value(result).unwrap();
    let text = value["content"][0]["text"].as_str().unwrap_or_default().to_owned();
    (value["isError"] == true, value["_meta"][OUTCOME].clone(), text)
}

// MCP-16, MCP-18
#[tokio::test]
async fn a_guarded_tool_answers_after_the_dance() {
    let house = house(true, 1, honest()).await;
    let client = client(&house, Person::willing(), 30).await;
    let answer = serde_json::to_value(call(&client).await).unwrap();
    assert_eq!((&answer["structuredContent"]["filled"], &answer["isError"]), (&json!(3), &Value::Null));
    let [first, second] = &house.calls()[..] else { panic!("two calls") };
    assert_eq!(first.body, second.body);
    assert!(first.header("signature").is_none() && second.header("signature").is_some());
    assert_eq!(first.header("mcp-name"), Some(TOOL));
    client.cancel().await.unwrap();
}

#[tokio::test]
async fn terms_that_nobody_agrees_to_are_not_signed() {
    for (says, told) in [(Decision::Decline, true), (Decision::NotNow, false)] {
        let house = house(true, 0, honest()).await;
        let client = client(&house, Person::saying([], says), 5).await;
        let (failed, outcome, _) = ended(&call(&client).await);
        assert_eq!((failed, outcome), (true, json!("not_accepted")));
        assert!(house.plan.agreement().is_none() && house.calls().len() == 1);
        assert_eq!(house.presented().iter().any(|seen| seen.form("decline").is_some()), told);
    }
    let house = house(true, 0, honest()).await;
    let rule = Rule { longest: 899, prohibitions: Allowed::Any, purposes: Allowed::Any };
    let client = client(&house, Standing { rule: Some(rule), otherwise: Nobody }, 5).await;
    assert_eq!(ended(&call(&client).await).1, "not_accepted");
    assert!(house.plan.agreement().is_none());
}

#[tokio::test]
async fn her_no_is_a_failed_result_that_says_so() {
    let denies: Words = Box::new(|_, seen| {
        seen.form("claim_token")
            .map(|_| reply(&TokenReply::refused(TokenError::RequestDenied, "never\u{202e}")))
    });
    let house = house(true, 0, denies).await;
    let client = client(&house, Person::willing(), 5).await;
    let (failed, outcome, text) = ended(&call(&client).await);
    assert_eq!((failed, outcome), (true, json!("denied")));
    assert!(text.ends_with("never\\u{202e}"), "{text}");
    assert_eq!(house.calls().len(), 1, "no call goes out again");
}

// MCP-21, MCP-22, MCP-23
#[tokio::test]
async fn a_wait_is_handed_back_and_the_same_call_takes_it_up() {
    let house = house(true, 2, honest()).await;
    let client = client(&house, Person::willing(), 0).await;
    let (failed, outcome, text) = ended(&call(&client).await);
    assert!(failed && outcome == "waiting" && text.contains("She is not you"), "{outcome} {text}");
    let claims = || house.presented().iter().filter(|seen| seen.form("claim_token").is_some()).count();
    let last = tokio::time::timeout(Duration::from_secs(20), async {
        loop {
            let answer = call(&client).await;
            if ended(&answer).1 != "waiting" {
                return answer;
            }
        }
    });
    assert!(!ended(&last.await.unwrap()).0);
    assert_eq!(claims(), 1, "she was asked once");
}

#[tokio::test]
async fn a_call_that_is_dropped_leaves_its_request_to_be_taken_up() {
    let house = house(true, 3, honest()).await;
    let client = Arc::new(client(&house, Person::willing(), 60).await);
    let dropped = tokio::time::timeout(Duration::from_millis(1500), call(&client)).await;
    assert!(dropped.is_err());
    assert!(!ended(&call(&client).await).0);
    let claims = house.presented().iter().filter(|seen| seen.form("claim_token").is_some()).count();
    assert_eq!(claims, 1, "she was asked once");
}

#[tokio::test]
async fn an_authority_that_cannot_be_reached_fails_the_call_and_nothing_else() {
    let closed = crate::stub::Bound::new().await.url;
    let words = greeting(move |plan, seen| {
        let published = closed.clone();
        match (seen.path.as_str(), seen.json()["method"] == "tools/call") {
            (_, true) => Some(challenged(&plan.challenge(&published, "t"))),
            ("/.well-known/oauth-protected-resource/mcp", _) => {
                let mut metadata = plan.metadata();
                metadata.authorization_servers = vec![published];
                let key = crate::house::key(1);
                let document =
                    sayso_protocol::envelope::rfc9728::document(&metadata, &key, crate::house::now());
                Some(crate::stub::Answer::json(200, document.unwrap()))
            }
            _ => None,
        }
    });
    let house = House::start(true, 0, words, honest()).await;
    let client = client(&house, Person::willing(), 5).await;
    for _ in 0..2 {
        let (failed, outcome, text) = ended(&call(&client).await);
        assert!(failed && outcome == "not_called" && text.contains("authority"), "{outcome} {text}");
    }
    assert_eq!(house.calls().len(), 2, "each was tried once and unsigned");
}

// CORE-32, MCP-04
#[tokio::test]
async fn a_rogue_authority_gets_no_connection() {
    let rogue = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let named = format!("http://{}", rogue.local_addr().unwrap());
    let words = greeting(move |plan, seen| {
        (seen.json()["method"] == "tools/call").then(|| challenged(&plan.challenge(&named, "t")))
    });
    let house = House::start(true, 0, words, honest()).await;
    let client = client(&house, Person::willing(), 5).await;
    let (failed, outcome, _) = ended(&call(&client).await);
    assert_eq!((failed, outcome), (true, json!("not_called")));
    assert!(tokio::time::timeout(Duration::from_millis(200), rogue.accept()).await.is_err());
    assert!(house.authority.seen().is_empty());
}
