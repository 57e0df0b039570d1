//! What of a request gets behind each host: nothing that is the agent's with us, and nothing that the server might act on
//! and neither signature nor approval covers.

use super::authority::Stub;
use super::standing::{self, Standing, TRADE, call, listing, one_trade, reading, signed, with};
use super::vectors::STAGE;
use bytes::Bytes;
use http::Request;
use sayso_enforce::Authority;
use serde_json::Value;
use std::sync::Arc;

async fn hosts(introspection: &Value) -> (Arc<Stub>, Vec<Standing>) {
    let authority = Stub::granting(introspection);
    let hosts = standing::all(&STAGE, &(Arc::clone(&authority) as Arc<dyn Authority>)).await;
    (authority, hosts)
}

/// Claims of identity, of address and of decisions, and what is meant for others on the way.
const CLAIMS: [(&str, &str); 23] = [
    ("X-Uma-Owner", "bob"),
    ("x-uma-agent", "jkt:attacker"),
    ("X-Uma-Scopes", "trades:execute"),
    ("X_Uma_Owner", "bob"),
    ("X-Remote-User", "bob"),
    ("X-Forwarded-User", "bob"),
    ("X-Forwarded-Host", "evil.example.test"),
    ("X-Forwarded-For", "127.0.0.1"),
    ("X-Forwarded-Proto", "http"),
    ("Forwarded", "host=evil.example.test"),
    ("X-Original-URL", "/admin"),
    ("X-Rewrite-URL", "/admin"),
    ("X-HTTP-Method-Override", "DELETE"),
    ("x-envoy-auth-failure-mode-allowed", "true"),
    ("x-envoy-original-path", "/admin"),
    ("x-envoy-retry-on", "5xx"),
    ("x-ext-authz-check-result", "allowed"),
    ("Cookie", "session=1"),
    ("Proxy-Authorization", "Basic eDp5"),
    ("Signature-Agent", "\"https://evil.example.test\""),
    ("Last-Modified", "Mon, 30 Nov 2026 00:00:00 GMT"),
    ("X-Request-Id", "1"),
    // A revision without sessions has no name for one.
    ("Mcp-Session-Id", "somebodys"),
];

/// What is the message's own.
const PASSED: [&str; 9] = [
    "accept",
    "content-length",
    "content-type",
    "host",
    "mcp-method",
    "mcp-name",
    "mcp-protocol-version",
    "traceparent",
    "transfer-encoding",
];

fn claiming(mut request: Request<Bytes>) -> Request<Bytes> {
    for (name, value) in CLAIMS {
        with(&mut request, &name.to_ascii_lowercase(), value);
    }
    request
}

// D-10: what public case 22 sends, at each host, on open methods as on calls.
#[tokio::test]
async fn nothing_an_agent_says_of_itself_gets_behind_any_host() {
    let trade = || call("execute_trade", TRADE, "");
    for (introspection, request) in
        [(reading(), listing()), (reading(), call("get_positions", "{}", "")), (one_trade(), trade())]
    {
        let (_, hosts) = hosts(&introspection).await;
        for host in &hosts {
            let request = claiming(request.clone());
            host.send(signed(request)).await;
            assert_eq!(host.reached(), 1, "{}", host.name);
            let got = host.behind.last();
            let more: Vec<_> = got.keys().filter(|name| !PASSED.contains(&name.as_str())).collect();
            assert!(more.is_empty(), "{more:?} at {}", host.name);
            for name in ["mcp-method", "mcp-protocol-version", "content-type", "accept"] {
                assert_eq!(got.get_all(name).iter().count(), 1, "{name} at {}", host.name);
            }
        }
    }
    // And nobody is let in for it.
    let (authority, hosts) = hosts(&one_trade()).await;
    for host in &hosts {
        let answer = host.send(claiming(trade())).await;
        assert_eq!((answer.refused_with(), host.reached()), (401, 0), "{}: {answer:?}", host.name);
        assert_eq!(authority.forget(), ["permission"], "{}", host.name);
    }
}

// MCP-29: the word of a gateway about a body is heard from a gateway. Where there is none it is a client's noise, and at
// external authorization Envoy puts its own in its place.
#[tokio::test]
async fn a_clients_word_about_its_body_is_noise() {
    for word in ["true", "false", "false,true"] {
        let (_, hosts) = hosts(&reading()).await;
        for host in &hosts {
            let mut request = listing();
            with(&mut request, "x-envoy-auth-partial-body", word);
            let answer = host.send(request).await;
            assert_eq!((answer.status, host.reached()), (200, 1), "{word} at {}: {answer:?}", host.name);
            assert!(!host.behind.last().contains_key("x-envoy-auth-partial-body"), "{}", host.name);
        }
    }
}

// CORE-66: what is no token is seen to be none before anybody is asked; what may be one is somebody else's to know.
#[tokio::test]
async fn what_is_no_token_is_refused_and_nobody_is_asked() {
    let long = format!("PoP {}", ".".repeat(60_000));
    let shown = |value: &str| {
        let mut request = call("get_positions", "{}", "");
        with(&mut request, "authorization", value);
        request
    };
    let values = [
        &*long,
        "PoP",
        "PoP ",
        "PoP a b",
        "PoP \u{fc}",
        "PoPt.o.k",
        "t.o.k",
        "",
        "Bearer t.o.k",
        "bearer t.o.k",
        "UMA t.o.k",
        "Basic eDp5",
        "DPoP t.o.k",
        "PoP t.o.k, PoP t.o.k",
        "PoP\tt.o.k",
        ", PoP t.o.k",
    ];
    let (authority, hosts) = hosts(&reading()).await;
    for host in &hosts {
        for value in values {
            // Whoever holds a good grant signs it, so that the token alone is wrong.
            let proven =
                value.is_ascii().then(|| standing::signed_by(shown(value), &standing::agent(), None));
            for request in [Some(shown(value)), proven].into_iter().flatten() {
                let answer = host.send(request).await;
                let (start, said) = (&value[..value.len().min(20)], (answer.error(), answer.refused_with()));
                assert_eq!(said, ("invalid_token".into(), 401), "{start:?} at {}: {answer:?}", host.name);
                assert_eq!((host.reached(), authority.asked().len()), (0, 0), "{start:?} at {}", host.name);
            }
        }
    }
    // Nothing of it is read here: a token in another form is unknown, and that is all.
    let dead = serde_json::json!({ "active": false, "error": "unknown_token" });
    let (authority, hosts) = self::hosts(&dead).await;
    for host in &hosts {
        let answer = host
            .send(shown("PoP eyJhbGciOiJkaXIiLCJlbmMiOiJBMjU2R0NNIiwiemlwIjoiREVGIn0..AAAA.AAAA.AAAA"))
            .await;
        assert_eq!((answer.refused_with(), host.reached()), (401, 0), "{}", host.name);
        assert_eq!(authority.forget(), ["introspect", "permission"], "{}", host.name);
    }
}

// CORE-89: a second line beside an honest one spoils it, wherever it stands.
#[tokio::test]
async fn a_second_line_beside_an_honest_proof_is_refused_at_every_host() {
    let (authority, hosts) = hosts(&one_trade()).await;
    let lines = [
        ("authorization", "PoP other"),
        ("authorization", "Bearer abc"),
        ("authorization", "PoP t.o.k"),
        ("mcp-method", "tools/call"),
        ("mcp-method", "tools/list"),
        ("mcp-name", "get_positions"),
        ("mcp-protocol-version", "2025-06-18"),
        ("content-type", "text/plain"),
        ("content-type", "application/json"),
        ("host", "evil.example.test"),
        ("mcp_method", "tools/list"),
        ("mcp_name", "get_positions"),
    ];
    for host in &hosts {
        for (name, value) in lines {
            let honest = || signed(call("execute_trade", TRADE, ""));
            let mut last = honest();
            with(&mut last, name, value);
            let mut first = honest();
            let own: Vec<_> = first.headers().get_all(name).iter().cloned().collect();
            first.headers_mut().remove(name);
            with(&mut first, name, value);
            for own in own {
                first.headers_mut().append(name, own);
            }
            for request in [last, first] {
                let answer = host.send(request).await;
                let what = format!("{name}: {value} at {}: {answer:?}", host.name);
                assert_eq!(answer.status, 400, "{what}");
                assert!(answer.headers.get("www-authenticate").is_none(), "{what}");
                assert_eq!((host.reached(), authority.asked().len()), (0, 0), "{what}");
            }
        }
        host.send(signed(call("execute_trade", TRADE, ""))).await;
        assert_eq!((host.reached(), authority.forget().len()), (1, 2), "{}", host.name);
    }
}
