//! Hostile bytes: the bodies of the shared message vectors, spellings of a path, and what is not HTTP.

use super::cast::{House, Scripted, config, resource};
use super::wire::{Request, Response};
use sayso_protocol::message::vectors::body;
use serde_json::Value;
use std::path::Path;

fn vectors() -> Vec<(String, Value)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../vectors/message");
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let file: Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        for (nth, vector) in file["vectors"].as_array().unwrap().iter().enumerate() {
            found.push((format!("{name} {nth} {}", vector["name"]), vector.clone()));
        }
    }
    found
}

/// The request of a vector: with its own headers where it has any, and those of a call where it is about the body.
fn request(input: &Value) -> Request {
    let mut request = Request::post("tools/call", Some("execute_trade"), body(input));
    if let Some(lines) = input["headers"].as_array() {
        request.headers.truncate(3);
        for line in lines {
            request = request.with(line[0].as_str().unwrap(), line[1].as_str().unwrap());
        }
    }
    request
}

// CORE-84
#[tokio::test]
async fn no_hostile_message_reaches_the_upstream() {
    let house = House::open().await;
    let mut tried = 0;
    for (name, vector) in vectors() {
        let fault = &vector["expect"]["fault"];
        if fault.is_null() {
            continue;
        }
        let plain = request(&vector["input"]);
        let signed = plain.is_signable().then(|| plain.clone().signed("trade-1"));
        for request in [plain].into_iter().chain(signed) {
            let response = house.send(&request).await;
            assert!((400..500).contains(&response.status), "{name}: {response:?}");
            assert!(!response.is_challenge(), "{name}");
            // A listener may refuse before the message is looked at; who gets as far says what the vector says.
            if let Some(code) = response.body.first().and_then(|_| response.json()["error"]["code"].as_i64())
            {
                assert_eq!(Some(code), fault["jsonrpc_code"].as_i64(), "{name}");
                assert_eq!(Some(u64::from(response.status)), fault["http_status"].as_u64(), "{name}");
            } else {
                assert!([400, 403, 413, 415, 421].contains(&response.status), "{name}: {response:?}");
            }
            house.assert_untouched(&name);
        }
        tried += 1;
    }
    assert!(tried > 100, "only {tried} hostile messages were found");
    assert_eq!(house.send(&Request::list()).await.status, 200);
}

#[tokio::test]
async fn a_resource_has_one_spelling() {
    let house = House::open().await;
    let spellings = [
        "//mcp",
        "/mcp/",
        "/%6Dcp",
        "/%6dcp",
        "/mcp%2F",
        "/mcp;x=1",
        "/./mcp",
        "/x/../mcp",
        "/x/%2e%2e/mcp",
        "/mcp%00",
        "/MCP",
        "/\\mcp",
        "/.well-known/oauth-protected-resource/../../mcp",
        "/mcp/%2e",
        "*",
        "/check/mcp",
        "/mcp%0d%0aX:1",
        "/mcp//",
        "/behind/mcp",
        "http://evil.example.test/mcp",
        "http://gw.example.test/mcp/",
    ];
    for spelling in spellings {
        for request in [Request::call("execute_trade", "{}"), Request::list()] {
            let request = Request { line: format!("POST {spelling} HTTP/1.1"), ..request };
            let response = house.send(&request).await;
            assert!([400, 404, 421].contains(&response.status), "{spelling}: {response:?}");
            house.assert_untouched(spelling);
        }
    }
    let missing = Request { line: "POST //mcp HTTP/1.1".into(), ..Request::list() };
    let response = house.send(&missing).await;
    assert_eq!((response.status, response.json()["error"].as_str()), (404, Some("not_found")));
}

// MCP-29, CORE-116
#[tokio::test]
async fn a_body_that_stops_short_is_nobodys_request() {
    let house = House::open().await;
    let mut short = Request::list().with("Content-Length", "4000");
    short.body.truncate(20);
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let mut stream = tokio::net::TcpStream::connect(house.gateway).await.unwrap();
    stream.write_all(&short.bytes()).await.unwrap();
    stream.shutdown().await.unwrap();
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer).await;
    assert!(answer.is_empty() || Response::parse(&answer).status >= 400);
    house.assert_untouched("short");
}

#[tokio::test]
async fn two_lengths_or_a_length_beside_chunks_are_not_one_request() {
    let house = House::open().await;
    let body = Request::list().body;
    let length = body.len().to_string();
    let smuggled = [
        Request::list().with("Content-Length", &length).with("Content-Length", "5"),
        Request::list().with("Content-Length", "5").with("Transfer-Encoding", "chunked"),
        Request::list().with("Transfer-Encoding", "xchunked"),
        Request::list().with("Transfer-Encoding", "gzip"),
    ];
    for request in smuggled {
        let response = house.send(&request).await;
        assert!(response.status >= 400, "{response:?}");
        house.assert_untouched("smuggled");
    }
}

#[tokio::test]
async fn heads_are_bounded() {
    let house = House::open().await;
    let large = Request::list().with("X-Large", &"a".repeat(200_000));
    let mut many = Request::list();
    for nth in 0..200 {
        many = many.with(&format!("X-{nth}"), "a");
    }
    for request in [large, many] {
        let response = house.send(&request).await;
        assert!((400..500).contains(&response.status), "{}", response.status);
        house.assert_untouched("large head");
    }
    let token = Request::call("get_positions", "{}").shown(&".".repeat(60_000));
    assert!((400..500).contains(&house.send(&token).await.status));
    house.assert_untouched("large token");
    assert_eq!(house.send(&Request::list()).await.status, 200);
}

// D-10: what waits to be read is bounded together, and small requests are not the ones that wait.
#[tokio::test]
async fn large_bodies_have_room_for_so_many_at_once() {
    use tokio::io::AsyncWriteExt;
    let (canary, authority) = (Default::default(), std::sync::Arc::new(Scripted::default()));
    let mut wide = config(vec![resource("/mcp", authority.clone(), "http://127.0.0.1:1/")]);
    wide.body_limit = 24 << 20;
    let house = House::with(canary, authority, wide).await;
    let mut large = Request::call("get_positions", "{}");
    large.body.extend(std::iter::repeat_n(b' ', 100 << 10));
    let mut held = Vec::new();
    for _ in 0..2 {
        let mut stream = tokio::net::TcpStream::connect(house.gateway).await.unwrap();
        let bytes = large.bytes();
        stream.write_all(&bytes[..bytes.len() - 1]).await.unwrap();
        held.push(stream);
    }
    let refused = async {
        loop {
            let response = house.send(&large).await;
            if response.status == 503 {
                return response;
            }
        }
    };
    let refused = tokio::time::timeout(std::time::Duration::from_secs(5), refused).await.unwrap();
    assert_eq!(refused.json()["error"], "temporarily_unavailable");
    assert!(house.send(&Request::call("get_positions", "{}")).await.is_challenge());
    drop(held);
    let served = async { while house.send(&large).await.status == 503 {} };
    tokio::time::timeout(std::time::Duration::from_secs(5), served).await.unwrap();
    house.assert_untouched("large");
}
