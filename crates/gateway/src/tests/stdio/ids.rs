//! Ids of every kind come back as they went.

use super::{Fixture, said};
use crate::tests::wire::Request;

fn call(id: &str) -> Request {
    let meta = r#"{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}"#;
    let body = format!(
        r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"get_positions","arguments":{{"id":1}},"_meta":{meta}}}}}"#
    );
    Request::post("tools/call", Some("get_positions"), body).signed("reader")
}

// D-4, D-31
#[tokio::test]
async fn ids_of_every_kind_are_restored_exactly() {
    let fixture = Fixture::with("");
    let house = fixture.house().await;
    for id in [
        "0",
        "1",
        "-5",
        "9007199254740993",
        "123456789012345678901234567890",
        r#""""#,
        r#""1""#,
        r#""\u0061\/\"quoted\"\\""#,
        r#""line\nbreak""#,
        r#""日本 😀""#,
        r#""\ud83d\ude00""#,
    ] {
        let response = house.send(&call(id)).await;
        let text = String::from_utf8(response.body.clone()).unwrap();
        assert!(text.contains(&format!(r#""id": {id}, "result""#)), "{id}: {text}");
        assert!(said(&response).contains("arguments"));
    }
}

// D-31
#[tokio::test]
async fn equal_ids_at_one_time_do_not_mix() {
    let fixture = Fixture::with("");
    let house = std::sync::Arc::new(fixture.house().await);
    let calls: Vec<_> = (0..20)
        .map(|nth| {
            let house = std::sync::Arc::clone(&house);
            tokio::spawn(async move {
                let seconds = f64::from(20 - nth) / 50.0;
                let arguments = serde_json::json!({ "habit": "sleep", "seconds": seconds, "nth": nth });
                let response = house.send(&super::read(&arguments)).await;
                assert!(said(&response).contains(&format!("\"nth\": {nth}")), "{response:?}");
            })
        })
        .collect();
    for call in calls {
        call.await.unwrap();
    }
}
