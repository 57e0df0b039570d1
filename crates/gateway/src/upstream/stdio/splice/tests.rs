//! What goes out differs in ids and tokens alone, and what comes back has the client's.

use super::*;

const IDS: [&str; 9] = [
    "1",
    "-7",
    "0",
    "123456789012345678901234567890",
    r#""""#,
    r#""a""#,
    r#""\u0061\/b""#,
    r#""line\nbreak \ud83d\ude00""#,
    r#""5""#,
];

fn request(id: &str, token: &str) -> String {
    format!(
        "{{ \"method\":\"tools/call\", \"id\" : {id} ,\n\r\"jsonrpc\":\"2.0\",\"params\":{{\"name\":\"x\",\"id\":5,\"arguments\":{{\"id\":1,\
         \"_meta\":{{\"progressToken\":9}}}},\"_meta\":{{\"z\":1,\"progressToken\":{token}}} }} }}"
    )
}

// D-4, D-31
#[test]
fn ids_and_tokens_of_every_kind_go_and_come_back_as_they_were() {
    for id in IDS {
        for token in IDS {
            let body = request(id, token);
            let (line, names) = outbound(body.as_bytes(), 42).unwrap();
            let expected = request("42", "42").replace(['\n', '\r'], " ") + "\n";
            assert_eq!(String::from_utf8(line).unwrap(), expected);
            assert_eq!((names.id.as_str(), names.token.as_deref()), (id, Some(token)));
            let back = answer(br#"{"jsonrpc":"2.0","result":{"id":42}, "id":42}"#, 42, &names).unwrap();
            assert_eq!(
                String::from_utf8(back).unwrap(),
                format!(r#"{{"jsonrpc":"2.0","result":{{"id":42}}, "id":{id}}}"#)
            );
            let note = br#"{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":42,"progress":42}}"#;
            let back = String::from_utf8(progress(note, 42, &names).unwrap()).unwrap();
            assert!(back.contains(&format!(r#""progressToken":{token},"progress":42"#)), "{back}");
        }
    }
}

#[test]
fn what_is_no_token_stays() {
    for token in ["null", "{\"a\":1}", "[1]", "true"] {
        let body = request("1", token);
        let (line, names) = outbound(body.as_bytes(), 42).unwrap();
        assert!(String::from_utf8(line).unwrap().contains(&format!("\"progressToken\":{token}")));
        assert_eq!(names.token, None);
    }
    let (_, names) = outbound(br#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#, 3).unwrap();
    assert_eq!(names.token, None);
}

// D-31
#[test]
fn a_line_is_claimed_by_what_it_says_and_by_nothing_like_it() {
    for (line, expected) in [
        (r#"{"jsonrpc":"2.0","id":4,"result":{}}"#, Some(Claim::Answer(4))),
        (r#"{"jsonrpc":"2.0","id":4,"error":{"code":1,"message":""}}"#, Some(Claim::Answer(4))),
        (r#"{"jsonrpc":"2.0","id":4,"result":{},"error":{}}"#, None),
        (r#"{"jsonrpc":"2.0","id":4}"#, None),
        (r#"{"jsonrpc":"2.0","id":"4","result":{}}"#, None),
        (r#"{"jsonrpc":"2.0","id":4.0,"result":{}}"#, None),
        (r#"{"jsonrpc":"2.0","id":null,"error":{}}"#, None),
        (r#"{"id":4,"result":{}}"#, None),
        (r#"{"jsonrpc":"2.0","id":4,"id":5,"result":{}}"#, None),
        (r#"[{"jsonrpc":"2.0","id":4,"result":{}}]"#, None),
        ("server started", None),
        (r#"{"jsonrpc":"2.0","method":7}"#, None),
        (
            r#"{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":4}}"#,
            Some(Claim::Progress(4)),
        ),
        (r#"{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"4"}}"#, None),
        (
            r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":4}}"#,
            Some(Claim::Cancelled(4)),
        ),
        (
            r#"{"jsonrpc":"2.0","method":"x","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":4}}}"#,
            Some(Claim::Subscribed(4)),
        ),
        (
            r#"{"jsonrpc":"2.0","id":"a","method":"ping"}"#,
            Some(Claim::Asks { id: "\"a\"".into(), method: "ping".into() }),
        ),
        (
            r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#,
            Some(Claim::Tells { method: "notifications/tools/list_changed".into() }),
        ),
    ] {
        assert_eq!(claim(line.as_bytes()), expected, "{line}");
    }
}

#[test]
fn a_subscription_is_named_by_the_clients_id() {
    let names = Names { id: "\"s\"".into(), token: None };
    let note =
        br#"{"jsonrpc":"2.0","method":"x","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":4}}}"#;
    let back = String::from_utf8(subscribed(note, 4, &names).unwrap()).unwrap();
    assert!(back.contains(r#"subscriptionId":"s""#));
    let end = br#"{"jsonrpc":"2.0","id":4,"result":{"_meta":{"io.modelcontextprotocol/subscriptionId":4}}}"#;
    let back = String::from_utf8(answer(end, 4, &names).unwrap()).unwrap();
    assert_eq!(back.matches("\"s\"").count(), 2, "{back}");
    assert_eq!(progress(br#"{"params":{"progressToken":4}}"#, 4, &names), None);
}
