//! What is let through, and how it looks inside.

use super::cast::{AS_URI, DOCUMENT, House, RESULT, TRADE, Turn, result};
use super::request::Call;
use crate::Decided;
use serde_json::json;

// MCP-05, CORE-83, CORE-89
#[tokio::test]
async fn open_reusable_and_single_use_calls_get_there_as_they_were_judged() {
    let house = House::open();
    let calls = [
        Call::open("tools/list"),
        Call::open("server/discover"),
        Call::tool("get_positions", "{}").signed("reader"),
        Call::tool("execute_trade", TRADE).signed("trade-1"),
    ];
    for call in &calls {
        let call = call.clone().with("cookie", "a=b").with("x-request-id", "7");
        let call = call.with("x-http-method-override", "DELETE").with("x-forwarded-for", "127.0.0.1");
        let answer = house.send(&call).await;
        assert_eq!((answer.status.as_u16(), &*answer.body), (200, RESULT.as_bytes()));
        let got = house.inside.got.lock().unwrap().pop().unwrap();
        assert_eq!(got.body(), &call.body);
        assert_eq!((got.method(), got.uri()), (&call.method, &"/mcp".parse::<http::Uri>().unwrap()));
        for credential in ["authorization", "signature", "signature-input", "content-digest", "cookie"] {
            assert!(!got.headers().contains_key(credential), "{credential}");
        }
        // What nothing covers, and a server might act on.
        for uncovered in ["x-request-id", "x-http-method-override", "x-forwarded-for"] {
            assert!(!got.headers().contains_key(uncovered), "{uncovered}");
        }
        for kept in ["accept", "mcp-method", "mcp-protocol-version", "host"] {
            assert_eq!(got.headers().get(kept), call.headers.get(kept), "{kept}");
        }
        assert_eq!(got.extensions().get(), Some(&"what its host knows"));
        assert!(got.extensions().get::<Decided>().unwrap().is_good());
    }
    assert_eq!(*house.authority.spent.lock().unwrap(), ["trade-1"]);
}

// CORE-13, CORE-14, CORE-82, MCP-07, MCP-08
#[tokio::test]
async fn a_challenge_is_a_401_that_says_the_same_twice() {
    let house = House::open();
    let unsigned = Call::tool("execute_trade", TRADE);
    for (nth, call) in [unsigned.clone(), unsigned.signed("expired")].iter().enumerate() {
        let answer = house.send(call).await;
        assert_eq!(answer.status, 401);
        let read = sayso_protocol::envelope::www_authenticate::decode(&answer.headers).unwrap().unwrap();
        let body = answer.json();
        assert_eq!(serde_json::to_value(&read).unwrap(), body);
        assert_eq!((&body["ticket"], &body["as_uri"]), (&json!(format!("ticket-{nth}")), &json!(AS_URI)));
        assert_eq!(body["resource_metadata"], DOCUMENT);
    }
    house.assert_untouched("challenged");
}

// D-10: what would speak for the enforcement point stays behind.
#[tokio::test]
async fn an_answer_does_not_speak_for_the_layer() {
    let house = House::open();
    let mut odd = result();
    for (name, value) in [
        ("www-authenticate", "Bearer"),
        ("set-cookie", "a=b"),
        ("access-control-allow-origin", "*"),
        ("x-own", "1"),
    ] {
        odd.headers_mut().insert(name, value.parse().unwrap());
    }
    house.inside.next(Turn::Answer(odd));
    let answer = house.send(&Call::open("tools/list")).await;
    for name in ["www-authenticate", "set-cookie", "access-control-allow-origin"] {
        assert_eq!(answer.header(name), None, "{name}");
    }
    assert_eq!(answer.header("x-own"), Some("1"));
}
