//! What is let through, and that it is let through once.

use super::cast::{DOORS, Door, House, Request, TRADE};
use std::sync::Arc;

// D-10, CORE-83
#[tokio::test]
async fn an_open_method_passes_without_what_is_the_agents_with_us() {
    for door in DOORS {
        let house = House::open();
        let request =
            Request::list().with("cookie", "a=b").with("x-uma-owner", "bob").with("traceparent", "00");
        let said = house.ask(door, &request).await;
        assert_eq!(said.status, 200, "{door:?}: {said:?}");
        for name in
            ["authorization", "signature", "signature-input", "content-digest", "cookie", "x-uma-owner"]
        {
            assert!(said.removed.iter().any(|removed| removed == name), "{door:?}: {name} stays");
        }
        for name in ["host", "content-type", "accept", "mcp-method", "traceparent", "content-length"] {
            assert!(!said.removed.iter().any(|removed| removed == name), "{door:?}: {name} is removed");
        }
        assert_eq!(house.asked(), 0);
    }
}

// CORE-82, MCP-08, MCP-09
#[tokio::test]
async fn a_call_without_a_grant_is_challenged_whole() {
    for door in DOORS {
        let house = House::open();
        let said = house.ask(door, &Request::call("execute_trade", TRADE)).await;
        assert_eq!(said.status, 401, "{door:?}: {said:?}");
        assert!(said.line("www-authenticate").starts_with("UMA realm=\"vault\""), "{said:?}");
        assert_eq!(said.line("content-type"), "application/json");
        assert_eq!(said.line("cache-control"), "no-store");
        let body = said.json();
        assert_eq!(body["error"], "insufficient_authorization");
        assert_eq!(body["ticket"], "ticket-0");
        assert!(body["authorization_remediation"].is_object() && body.get("jsonrpc").is_none());
        assert_eq!((house.tickets(), house.spent()), (1, 0));
    }
}

// CORE-85, CORE-90
#[tokio::test]
async fn a_proven_call_passes_and_its_signature_is_good_once_at_all_doors() {
    for first in DOORS {
        let house = House::open();
        let request = Request::call("get_positions", "{}").signed("reader");
        let said = house.ask(first, &request).await;
        assert_eq!(said.status, 200, "{first:?}: {said:?}");
        assert!(said.removed.contains(&"authorization".to_owned()));
        for then in DOORS {
            let said = house.ask(then, &request).await;
            assert_eq!(said.error(), (401, "invalid_token".into()), "{first:?} then {then:?}");
            assert!(!said.line("www-authenticate").contains("UMA"), "{said:?}");
        }
        assert_eq!(house.tickets(), 0);
        let fresh = Request::call("get_positions", "{}").signed("reader");
        assert_eq!(house.ask(first, &fresh).await.status, 200);
    }
}

// CORE-90, CORE-91, CORE-18
#[tokio::test]
async fn a_single_use_grant_is_spent_before_the_yes_and_once() {
    for door in DOORS {
        let house = House::open();
        let changed = Request::call("execute_trade", r#"{"symbol":"VTI","quantity":4}"#).signed("trade-1");
        assert_eq!(house.ask(door, &changed).await.error(), (403, "operation_mismatch".into()));
        assert_eq!(house.spent(), 0);
        let call = || Request::call("execute_trade", TRADE).signed("trade-1");
        assert_eq!(house.ask(door, &call()).await.status, 200);
        assert_eq!(house.spent(), 1);
        assert_eq!(house.ask(door, &call()).await.error(), (403, "already_consumed".into()));
    }
}

/// Thirty-two askers of one request, at every door at once.
async fn race(request: Request) -> (Arc<House>, usize) {
    let house = Arc::new(House::open());
    let mut asking = tokio::task::JoinSet::new();
    for door in DOORS.into_iter().cycle().take(32) {
        let (house, request) = (Arc::clone(&house), request.clone());
        asking.spawn(async move { house.ask(door, &request).await.status });
    }
    let told = asking.join_all().await;
    assert!(told.iter().all(|status| [200, 401, 403].contains(status)), "{told:?}");
    let allowed = told.iter().filter(|status| **status == 200).count();
    (house, allowed)
}

// CORE-90, D-14
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn of_thirty_two_equal_checks_one_is_allowed() {
    let (house, allowed) = race(Request::call("execute_trade", TRADE).signed("trade-1")).await;
    assert_eq!((allowed, house.spent()), (1, 1));
    let (house, allowed) = race(Request::call("get_positions", "{}").signed("reader")).await;
    assert_eq!((allowed, house.spent(), house.tickets()), (1, 0, 0));
}

// CORE-90
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn of_thirty_two_calls_on_one_grant_one_is_allowed() {
    let house = Arc::new(House::open());
    let mut asking = tokio::task::JoinSet::new();
    for door in DOORS.into_iter().cycle().take(32) {
        let house = Arc::clone(&house);
        let request = Request::call("execute_trade", TRADE).signed("trade-1");
        asking.spawn(async move { house.ask(door, &request).await.status });
    }
    let told = asking.join_all().await;
    assert_eq!(told.iter().filter(|status| **status == 200).count(), 1, "{told:?}");
    assert_eq!(told.iter().filter(|status| **status == 403).count(), 31, "{told:?}");
}

// CORE-22
#[tokio::test]
async fn after_an_outage_the_same_request_is_good() {
    for door in DOORS {
        let house = House::open();
        let request = Request::call("get_positions", "{}").signed("reader");
        house.authority.gone.store(true, std::sync::atomic::Ordering::SeqCst);
        let said = house.ask(door, &request).await;
        assert_eq!(said.error(), (503, "temporarily_unavailable".into()));
        assert_eq!(said.line("retry-after"), "1", "{door:?}");
        house.authority.gone.store(false, std::sync::atomic::Ordering::SeqCst);
        assert_eq!(house.ask(door, &request).await.status, 200);
    }
}

// MCP-20, D-15
#[tokio::test]
async fn a_post_in_an_older_clients_session_is_judged_by_itself() {
    let body = r#"{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{}}"#;
    let request = Request::post("tools/list", None, body)
        .without("mcp-method")
        .but("mcp-protocol-version", "2025-06-18")
        .with("mcp-session-id", "of-the-servers");
    for door in DOORS {
        assert_eq!(House::open().ask(door, &request).await.status, 200, "{door:?}");
    }
    let answer = Request { body: br#"{"jsonrpc":"2.0","id":1,"result":{}}"#.to_vec(), ..request };
    for door in DOORS {
        let said = House::open().ask(door, &answer).await;
        assert_eq!(said.status, 403, "{door:?}: {said:?}");
        assert_eq!(said.json()["error"]["data"]["error"], "unknown_method");
    }
}

// MCP: a revision without sessions has no name for one, and nothing that says one reaches the server.
#[tokio::test]
async fn a_modern_request_loses_the_name_of_a_session() {
    let named = |request: Request| request.with("mcp-session-id", "somebodys");
    for door in DOORS {
        let house = House::open();
        for request in [
            named(Request::list()),
            named(Request::call("get_positions", "{}")).signed("reader"),
            named(Request::call("execute_trade", TRADE)).signed("trade-1"),
        ] {
            let said = house.ask(door, &request).await;
            assert_eq!(said.status, 200, "{door:?}: {said:?}");
            assert!(said.removed.iter().any(|name| name == "mcp-session-id"), "{door:?}: {said:?}");
            assert!(!said.removed.iter().any(|name| name == "mcp-method"), "{door:?}");
        }
        let older =
            named(Request::post("tools/list", None, r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#))
                .without("mcp-method")
                .but("mcp-protocol-version", "2025-06-18");
        let said = house.ask(door, &older).await;
        assert!(said.status == 200 && !said.removed.iter().any(|name| name == "mcp-session-id"), "{door:?}");
    }
}

#[tokio::test]
async fn what_the_resource_server_publishes_is_on_the_http_listener() {
    let house = House::open();
    let get = |target: &'static str| Request { method: "GET", body: vec![], ..Request::list().to(target) };
    for path in [
        "/.well-known/oauth-protected-resource/mcp",
        "/.well-known/oauth-protected-resource",
        "/jwks",
        "/health",
    ] {
        assert_eq!(house.ask_http(path, &get(path)).await.status, 200, "{path}");
        assert_eq!(house.ask(Door::Http, &get(path)).await.status, 404, "{path} is not let through");
    }
    for path in ["/mcp", "/check", "/checkmcp", "/check?x", "/"] {
        assert_eq!(house.ask_http(path, &Request::list()).await.status, 404, "{path}");
    }
    assert_eq!(house.ask_http("/owner-resources", &get("/owner-resources")).await.status, 401);
}
