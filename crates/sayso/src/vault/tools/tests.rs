//! The tools as stated and as parsed agree, and what a policy may conclude from them stays true.

use serde_json::json;

use super::*;

fn arguments(value: Value) -> Option<JsonObject> {
    value.as_object().cloned()
}

#[test]
fn every_listed_tool_can_be_called_and_no_other() {
    for tool in tools() {
        assert!(Call::parse(&tool.name, None).is_some(), "{}", tool.name);
    }
    assert!(Call::parse("get_position", None).is_none());
    assert!(Call::parse("Get_Positions", None).is_none());
}

// D-29: a gateway treats a tool as reading only when all three hints say so.
#[test]
fn the_reading_tools_say_so_with_all_three_hints() {
    for tool in tools() {
        let hints = tool.annotations.unwrap();
        let reads = hints.read_only_hint == Some(true)
            && hints.open_world_hint == Some(false)
            && hints.destructive_hint == Some(false);
        assert_eq!(reads, tool.name != "execute_trade", "{}", tool.name);
    }
}

#[test]
fn what_the_schema_requires_the_parser_requires() {
    let complete = [
        ("get_positions", json!({})),
        ("get_transactions", json!({ "account": "brokerage-main" })),
        ("execute_trade", json!({ "symbol": "VTI", "side": "sell", "quantity": 1 })),
    ];
    for (name, whole) in complete {
        let tool = tools().into_iter().find(|tool| tool.name == name).unwrap();
        let required =
            tool.input_schema.get("required").and_then(Value::as_array).cloned().unwrap_or_default();
        assert_eq!(required.len(), whole.as_object().unwrap().len());
        assert!(matches!(Call::parse(name, arguments(whole.clone())), Some(Ok(_))));
        for member in required {
            let mut part = arguments(whole.clone()).unwrap();
            part.remove(member.as_str().unwrap()).unwrap();
            assert!(
                matches!(Call::parse(name, Some(part)), Some(Err(Rejection::Arguments))),
                "{name} {member}"
            );
        }
        let mut more = arguments(whole).unwrap();
        more.insert("more".into(), json!(1));
        assert!(matches!(Call::parse(name, Some(more)), Some(Err(Rejection::Arguments))), "{name}");
    }
}
