//! Where a request is sent, and from which page: spellings of the resource, foreign hosts and origins, at every host that
//! sees HTTP.

use super::authority::Stub;
use super::standing::{self, listing, one_trade, signed, with};
use super::vectors::{ORIGIN, STAGE};
use bytes::Bytes;
use http::{HeaderValue, Method, Request};
use sayso_enforce::Authority;
use std::sync::Arc;

async fn hosts() -> (Arc<Stub>, Vec<standing::Standing>) {
    let authority = Stub::granting(&one_trade());
    let hosts = standing::all(&STAGE, &(Arc::clone(&authority) as Arc<dyn Authority>)).await;
    (authority, hosts)
}

fn trade() -> Request<Bytes> {
    standing::call("execute_trade", standing::TRADE, "")
}

/// Sent there, by whoever holds a good grant: signed for where it is sent.
fn to(request: Request<Bytes>, target: &str) -> Option<Request<Bytes>> {
    let mut request = request;
    *request.uri_mut() = target.parse().ok()?;
    Some(request)
}

const SPELLINGS: [&str; 20] = [
    "//mcp",
    "/mcp/",
    "/%6Dcp",
    "/%6dcp",
    "/mcp%2F",
    "/mcp%2f..",
    "/mcp;x=1",
    "/mcp;",
    "/./mcp",
    "/x/../mcp",
    "/x/%2e%2e/mcp",
    "/mcp/.",
    "/mcp/%2e",
    "/mcp/..",
    "/mcp%00",
    "/MCP",
    "/mcp%0d%0aX:1",
    "/mcp//",
    "/check/mcp",
    "/.well-known/oauth-protected-resource/../../mcp",
];

// CORE-84, CORE-115
#[tokio::test]
async fn a_resource_has_one_spelling_at_every_host() {
    let (authority, hosts) = hosts().await;
    for host in &hosts {
        for spelling in SPELLINGS {
            for request in [listing(), trade(), signed(to(trade(), spelling).unwrap()), signed(trade())] {
                let answer = host.send(to(request, spelling).unwrap()).await;
                let what = format!("{spelling} at {}: {answer:?}", host.name);
                // What is published is under the well-known paths, and takes other methods.
                let expected =
                    if spelling.starts_with("/.well-known/") && !host.is_asked() { 405 } else { 404 };
                assert!(answer.status == 404 || answer.status == expected, "{what}");
                assert_eq!((host.reached(), authority.asked().len()), (0, 0), "{what}");
            }
        }
        for query in ["/mcp?", "/mcp?x=1", "/mcp?/../mcp", "/mcp?%00"] {
            for request in [listing(), trade(), signed(to(trade(), query).unwrap())] {
                let answer = host.send(to(request, query).unwrap()).await;
                let said = (answer.status, answer.error());
                assert_eq!(said, (400, "invalid_request".into()), "{query} at {}", host.name);
                assert_eq!((host.reached(), authority.asked().len()), (0, 0), "{query} at {}", host.name);
            }
        }
    }
}

// D-16: an absolute target names a host as well, and an unsigned request is for one of the list.
#[tokio::test]
async fn a_name_that_was_bound_anew_is_no_name_of_ours() {
    let (authority, hosts) = hosts().await;
    let foreign = [
        "evil.example.test",
        "gw.example.test.evil.test",
        "gw.example.test:1",
        "127.0.0.1",
        "[::1]",
        "gw.example.test, evil.example.test",
        "",
        "gw.example.test@evil.test",
    ];
    for host in &hosts {
        for name in foreign {
            for request in [listing(), trade()] {
                let mut request = request;
                request.headers_mut().insert("host", HeaderValue::from_static(name));
                let answer = host.send(request).await;
                assert_eq!(
                    (answer.status, answer.error()),
                    (421, "misdirected_request".into()),
                    "{name:?} at {}",
                    host.name
                );
                assert_eq!((host.reached(), authority.asked().len()), (0, 0), "{name:?} at {}", host.name);
            }
        }
        let absolute = to(listing(), "http://evil.example.test/mcp").unwrap();
        if !host.is_asked() {
            let answer = host.send(absolute).await;
            assert_eq!((answer.status, host.reached()), (421, 0), "{}", host.name);
        }
    }
}

// CORE-20, MCP-28
#[tokio::test]
async fn an_origin_is_ours_or_foreign_and_foreign_is_refused_on_every_method() {
    let (authority, hosts) = hosts().await;
    let foreign = [
        "null",
        "",
        "https://app.example.test.evil.test",
        "https://evil-app.example.test",
        "http://app.example.test",
        "https://app.example.test:8443",
        "https://app.example.test/",
        "https://app.example.test/path",
        "https://user@app.example.test",
        "https://app.example.test, https://evil.example.test",
        "file://",
        "chrome-extension://abc",
        r"https://app.example.test\@evil.example.test",
        "https://APP.example.test",
    ];
    let bytes = HeaderValue::from_bytes(b"\xff\xfe").unwrap();
    let values: Vec<_> = foreign.into_iter().map(HeaderValue::from_static).chain([bytes]).collect();
    for host in &hosts {
        for value in &values {
            let verbs = [Method::POST, Method::GET, Method::DELETE, Method::OPTIONS];
            let requests =
                verbs.into_iter().map(|verb| (verb, trade())).chain([(Method::POST, signed(trade()))]);
            for (verb, mut request) in requests {
                *request.method_mut() = verb.clone();
                request.headers_mut().insert("origin", value.clone());
                let answer = host.send(request).await;
                let what = format!("{value:?} by {verb} at {}: {answer:?}", host.name);
                assert_eq!((answer.status, answer.error()), (403, "invalid_origin".into()), "{what}");
                assert!(answer.headers.get("access-control-allow-origin").is_none(), "{what}");
                assert_eq!((host.reached(), authority.asked().len()), (0, 0), "{what}");
            }
        }
        let mut twice = trade();
        with(&mut twice, "origin", ORIGIN);
        with(&mut twice, "origin", "https://evil.example.test");
        assert_eq!(host.send(twice).await.status, 403, "{}", host.name);
        let mut ours = listing();
        with(&mut ours, "origin", ORIGIN);
        assert_eq!((host.send(ours).await.status, host.reached()), (200, 1), "{}", host.name);
    }
}

// E23: whatever is no POST is refused, with and without a session's name, and at every host in the same words.
#[tokio::test]
async fn no_other_method_passes_any_host() {
    let (authority, hosts) = hosts().await;
    for host in &hosts {
        for verb in ["GET", "DELETE", "PUT", "PATCH", "OPTIONS", "HEAD", "TRACE", "PROPFIND", "post"] {
            for body in [trade().into_body(), Bytes::new()] {
                let mut request = trade().map(|_| body.clone());
                *request.method_mut() = verb.parse().unwrap();
                let answer = host.send(request).await;
                let what = format!("{verb} at {}: {answer:?}", host.name);
                assert_eq!(
                    (answer.status, answer.headers["allow"].as_bytes()),
                    (405, &b"POST"[..]),
                    "{what}"
                );
                assert_eq!((host.reached(), authority.asked().len()), (0, 0), "{what}");
            }
        }
        // Nothing said is nothing that is known to be open.
        for mut empty in [trade(), listing(), signed(trade().map(|_| Bytes::new()))] {
            *empty.body_mut() = Bytes::new();
            let answer = host.send(empty).await;
            assert_eq!(
                (answer.status, &answer.json()["error"]["code"]),
                (400, &(-32700).into()),
                "{}",
                host.name
            );
            assert_eq!((host.reached(), authority.asked().len()), (0, 0), "{}", host.name);
        }
    }
}
