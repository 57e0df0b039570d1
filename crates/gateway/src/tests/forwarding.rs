//! What is forwarded: the very bytes, a few headers, once; and what comes back.

use super::cast::{Canary, House, RESULT, TRADE};
use super::wire::Request;
use serde_json::json;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::oneshot;
use tokio::time::timeout;

fn trade() -> Request {
    Request::call("execute_trade", TRADE)
}

fn read() -> Request {
    Request::call("get_positions", "{}")
}

fn older(method: &str) -> Request {
    let body = format!(r#"{{"jsonrpc":"2.0","id":7,"method":"{method}","params":{{}}}}"#);
    Request::post(method, None, body).but("MCP-Protocol-Version", "2025-11-25").without("Mcp-Method")
}

// MCP-05, CORE-83
#[tokio::test]
async fn open_reusable_and_single_use_calls_arrive_byte_for_byte() {
    let odd = r#"{ "quantity" : 3.0,	"symbol":"\u0056TI" }"#;
    let requests = [
        Request::list(),
        older("ping"),
        read().signed("reader"),
        Request::call("execute_trade", odd).signed("trade-1"),
    ];
    for request in requests {
        let house = House::open().await;
        let response = house.send(&request).await;
        assert_eq!((response.status, response.body.as_slice()), (200, RESULT.as_bytes()), "{response:?}");
        assert_eq!(house.canary.only().1, request.body);
    }
}

// CORE-66
#[tokio::test]
async fn no_credential_or_claim_of_identity_reaches_the_upstream() {
    for request in [read().signed("reader"), trade().signed("trade-1"), Request::list()] {
        let house = House::open().await;
        let request = request
            .with("Cookie", "a=b")
            .with("X-Uma-Owner", "bob")
            .with("X_Uma_Owner", "bob")
            .with("X-Forwarded-Host", "evil.example")
            .with("Proxy-Authorization", "Basic x")
            .with("traceparent", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01");
        assert_eq!(house.send(&request).await.status, 200);
        let (head, _) = house.canary.only();
        let mut lines = head.split("\r\n");
        assert_eq!(lines.next().unwrap(), "POST /behind/mcp HTTP/1.1");
        let mut names: Vec<&str> = lines.filter_map(|line| Some(line.split_once(':')?.0)).collect();
        names.sort_unstable();
        names.retain(|name| *name != "mcp-name");
        let expected = [
            "accept",
            "content-length",
            "content-type",
            "host",
            "mcp-method",
            "mcp-protocol-version",
            "traceparent",
        ];
        assert_eq!(names, expected);
        let host = head.split("\r\n").find_map(|line| line.strip_prefix("host: ")).unwrap();
        assert!(host.starts_with("127.0.0.1:"), "{host}");
    }
}

#[tokio::test]
async fn a_response_is_passed_on_without_what_would_speak_for_the_gateway() {
    let house = House::open().await;
    *house.canary.answer.lock().unwrap() =
        b"HTTP/1.1 403 Forbidden\r\nwww-authenticate: UMA ticket=\"x\"\r\n\
        set-cookie: a=b\r\naccess-control-allow-origin: *\r\nconnection: x-internal\r\nx-internal: 1\r\n\
        mcp-session-id: s\r\ncontent-type: text/plain\r\ncontent-length: 4\r\n\r\nnope"
            .to_vec();
    let response = house.send(&Request::list()).await;
    assert_eq!((response.status, response.body.as_slice()), (403, &b"nope"[..]));
    let gone =
        ["www-authenticate", "set-cookie", "access-control-allow-origin", "x-internal", "mcp-session-id"];
    for gone in gone {
        assert_eq!(response.all(gone), [""; 0], "{gone}");
    }
    assert_eq!(response.all("content-type"), ["text/plain"]);
}

// CORE-18, CORE-95
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_thirty_two_racing_spends_one_reaches_the_upstream() {
    let house = Arc::new(House::open().await);
    let racers: Vec<_> = (0..32)
        .map(|_| {
            let house = Arc::clone(&house);
            tokio::spawn(async move { house.send(&trade().signed("trade-1")).await })
        })
        .collect();
    let mut statuses = Vec::new();
    for racer in racers {
        let response = racer.await.unwrap();
        if response.status == 403 {
            assert_eq!(response.json()["error"], "already_consumed");
        }
        statuses.push(response.status);
    }
    statuses.sort_unstable();
    assert_eq!((statuses[0], &statuses[1..]), (200, &[403; 31][..]));
    assert_eq!(house.canary.count(), 1);
}

// FED-48
#[tokio::test]
async fn a_reusable_call_is_reported_once_and_a_single_one_by_its_spending() {
    let house = House::open().await;
    house.send(&read().signed("reader")).await;
    let reports = house.authority.reports.lock().unwrap().clone();
    assert_eq!(reports.len(), 1);
    assert_eq!((reports[0].family.as_str(), reports[0].tool.as_str()), ("family-1", "get_positions"));
    house.send(&trade().signed("trade-1")).await;
    assert_eq!(house.authority.reports.lock().unwrap().len(), 1);
}

// CORE-22, CORE-89
#[tokio::test]
async fn an_upstream_that_is_not_there_costs_nothing() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let nobody = format!("http://{}/mcp", listener.local_addr().unwrap());
    drop(listener);
    let house = House::before(Arc::new(Canary::default()), nobody.as_str()).await;
    let response = house.send(&trade().signed("trade-1")).await;
    assert_eq!((response.status, response.json()["error"].as_str()), (503, Some("temporarily_unavailable")));
    house.assert_untouched("no upstream");
    let response = house.send(&Request::list()).await;
    let body = response.json();
    assert_eq!((response.status, &body["error"]), (502, &json!("upstream_failed")));
    assert_eq!((body.get("spent"), &body["forwarded"]), (None, &json!("no")));
}

#[tokio::test]
async fn a_failure_after_spending_is_told_and_recorded_and_never_retried() {
    let house = House::open().await;
    *house.canary.mute.lock().unwrap() = true;
    let response = house.send(&trade().signed("trade-1")).await;
    let body = response.json();
    assert_eq!((response.status, &body["error"]), (502, &json!("upstream_failed")));
    assert_eq!((&body["spent"], &body["forwarded"]), (&json!(true), &json!("unknown")));
    assert_eq!(house.canary.count(), 1);
    let reports = house.authority.reports.lock().unwrap().clone();
    assert_eq!(reports.len(), 1);
    assert!(reports[0].summary.as_ref().unwrap().contains("not known"));
    let again = house.send(&trade().signed("trade-1")).await;
    assert_eq!(again.json()["error"], "already_consumed");
    assert_eq!(house.canary.count(), 1);
}

#[tokio::test]
async fn the_pool_does_not_send_twice_either() {
    let house = House::open().await;
    assert_eq!(house.send(&Request::list()).await.status, 200);
    *house.canary.mute.lock().unwrap() = true;
    for request in [Request::list(), read().signed("reader")] {
        let before = house.canary.count();
        let response = house.send(&request).await;
        assert_eq!((response.status, response.json()["error"].as_str()), (502, Some("upstream_failed")));
        assert!(house.canary.count() <= before + 1);
    }
}

#[tokio::test]
async fn redirects_are_neither_followed_nor_passed_on() {
    let house = House::open().await;
    *house.canary.answer.lock().unwrap() =
        b"HTTP/1.1 307 Temporary Redirect\r\nlocation: http://127.0.0.1:1/x\r\ncontent-length: 0\r\n\r\n"
            .to_vec();
    for request in [Request::list(), trade().signed("trade-1")] {
        let response = house.send(&request).await;
        assert_eq!((response.status, response.json()["error"].as_str()), (502, Some("upstream_failed")));
        assert_eq!(response.all("location"), [""; 0]);
    }
    assert_eq!(house.canary.count(), 2);
}

// D-14: the server's own refusal of a call that was paid for would not say that the grant is gone.
#[tokio::test]
async fn a_status_of_the_servers_for_a_spent_call_is_said_to_have_cost_it() {
    for status in ["400 Bad Request", "401 Unauthorized", "404 Not Found", "500 Internal Server Error"] {
        let house = House::open().await;
        let answer =
            format!("HTTP/1.1 {status}\r\ncontent-type: application/json\r\ncontent-length: 2\r\n\r\n{{}}");
        *house.canary.answer.lock().unwrap() = answer.into_bytes();
        let response = house.send(&trade().signed("trade-1")).await;
        let said = response.json();
        assert_eq!((response.status, said["error"].as_str()), (502, Some("upstream_failed")), "{status}");
        assert_eq!(
            (said["spent"].as_bool(), said["forwarded"].as_str()),
            (Some(true), Some("unknown")),
            "{status}"
        );
        assert_eq!((house.canary.count(), house.authority.reports.lock().unwrap().len()), (1, 1), "{status}");
        // Of a grant for many calls it says nothing, and passes.
        let response = house.send(&read().signed("reader")).await;
        assert!(status.starts_with(&response.status.to_string()), "{status}");
    }
}

const STREAM: &[u8] =
    b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n\
    b\r\ndata: one\n\n\r\n";

/// Reads until the first event has come through.
async fn first_event(house: &House, request: &Request) -> TcpStream {
    let mut stream = TcpStream::connect(house.gateway).await.unwrap();
    stream.write_all(&request.bytes()).await.unwrap();
    let mut seen = Vec::new();
    let mut piece = [0; 1024];
    while !seen.windows(9).any(|window| window == b"data: one") {
        let read = timeout(Duration::from_secs(5), stream.read(&mut piece)).await.unwrap().unwrap();
        assert!(read > 0, "{}", String::from_utf8_lossy(&seen));
        seen.extend_from_slice(&piece[..read]);
    }
    stream
}

async fn hold(house: &House) -> oneshot::Receiver<()> {
    let (sender, closed) = oneshot::channel();
    *house.canary.answer.lock().unwrap() = STREAM.to_vec();
    *house.canary.held.lock().unwrap() = Some(sender);
    closed
}

#[tokio::test]
async fn a_stream_passes_as_it_comes_and_a_modern_client_that_hangs_up_cancels_it() {
    let house = House::open().await;
    for request in [Request::list(), read().signed("reader"), trade().signed("trade-1")] {
        let closed = hold(&house).await;
        let stream = first_event(&house, &request).await;
        drop(stream);
        timeout(Duration::from_secs(5), closed).await.expect("the upstream notices").unwrap();
    }
}

#[tokio::test]
async fn an_older_client_that_hangs_up_cancels_nothing() {
    let house = House::open().await;
    let mut closed = hold(&house).await;
    let stream = first_event(&house, &older("ping")).await;
    drop(stream);
    let noticed = timeout(Duration::from_millis(500), &mut closed).await;
    assert!(noticed.is_err(), "the upstream noticed: {noticed:?}");
}

#[tokio::test]
async fn hanging_up_before_there_is_an_answer_counts_as_well() {
    let house = House::open().await;
    for (request, cancels) in [
        (Request::list(), true),
        (read().signed("reader"), true),
        (trade().signed("trade-1"), true),
        (older("ping"), false),
    ] {
        let mut closed = hold(&house).await;
        house.canary.answer.lock().unwrap().clear();
        let before = house.canary.count();
        let mut stream = TcpStream::connect(house.gateway).await.unwrap();
        stream.write_all(&request.bytes()).await.unwrap();
        while house.canary.count() == before {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        drop(stream);
        let noticed = timeout(Duration::from_millis(if cancels { 5000 } else { 300 }), &mut closed).await;
        assert_eq!(noticed.is_ok(), cancels, "{}", String::from_utf8_lossy(&request.body));
    }
}

// D-10, D-14: hanging up cancels a modern call, and costs nothing while nothing is spent.
#[tokio::test]
async fn a_caller_that_hangs_up_before_its_grant_is_spent_keeps_it() {
    let body = format!(
        r#"{{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{{"name":"execute_trade","arguments":{TRADE}}}}}"#
    );
    let older = || {
        let plain = Request::post("tools/call", None, body.clone()).without("Mcp-Method");
        plain.but("MCP-Protocol-Version", "2025-11-25").signed("trade-1")
    };
    for (request, runs) in [(trade().signed("trade-1"), 0), (older(), 1)] {
        let house = House::open().await;
        *house.authority.slow_introspect.lock().unwrap() = Duration::from_millis(200);
        let mut stream = TcpStream::connect(house.gateway).await.unwrap();
        stream.write_all(&request.bytes()).await.unwrap();
        tokio::time::sleep(Duration::from_millis(100)).await;
        drop(stream);
        tokio::time::sleep(Duration::from_millis(500)).await;
        assert_eq!((house.authority.spent.lock().unwrap().len(), house.canary.count()), (runs, runs));
        assert!(house.authority.reports.lock().unwrap().is_empty());
    }
}

// D-14: what was spent for nothing is on her record, whoever gave up.
#[tokio::test]
async fn a_caller_that_hangs_up_while_its_grant_is_spent_is_told_on() {
    for (delay, told, forwarded) in [(300, "not forwarded", 0), (0, "not known", 1)] {
        let house = House::open().await;
        *house.authority.slow_consume.lock().unwrap() = Duration::from_millis(delay);
        let _closed = hold(&house).await;
        house.canary.answer.lock().unwrap().clear();
        let mut stream = TcpStream::connect(house.gateway).await.unwrap();
        stream.write_all(&trade().signed("trade-1").bytes()).await.unwrap();
        while house.authority.spent.lock().unwrap().is_empty() || house.canary.count() < forwarded {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        drop(stream);
        let reported = async {
            while house.authority.reports.lock().unwrap().is_empty() {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        timeout(Duration::from_secs(5), reported).await.expect("a report");
        let reports = house.authority.reports.lock().unwrap().clone();
        let summary = reports[0].summary.as_ref().unwrap();
        assert!(summary.contains("hung up") && summary.contains(told), "{summary}");
        assert_eq!((reports.len(), house.canary.count()), (1, forwarded));
        let again = house.send(&trade().signed("trade-1")).await;
        assert_eq!(again.json()["error"], "already_consumed");
    }
}
