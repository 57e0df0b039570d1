//! Input schemas, and the tools that are here for theirs: one mirrors an argument in a header, one uses much of the
//! vocabulary of JSON Schema 2020-12.

use rmcp::model::{CallToolRequestParams, ErrorData, JsonObject, Tool};
use serde_json::{Value, json};

use crate::server::{Answer, text};

const MIRRORING: &str = "test_mirrored_argument";
const VOCABULARY: &str = "json_schema_2020_12_tool";

pub(crate) fn tools() -> Vec<Tool> {
    let mirroring = json!({
        "type": "object",
        "properties": { "region": { "type": "string", "x-mcp-header": "Region" } },
        "required": ["region"],
    });
    vec![
        taking(MIRRORING, "Answers with an argument that a header mirrors", mirroring),
        taking(VOCABULARY, "Has a schema with much in it", vocabulary()),
    ]
}

pub(crate) fn call(call: &CallToolRequestParams) -> Option<Answer> {
    match call.name.as_ref() {
        MIRRORING => Some(match argument(call, "region") {
            Some(region) => Ok(text(region)),
            None => Err(ErrorData::invalid_params("region is a string", None)),
        }),
        VOCABULARY => Some(Ok(text("This is how the tool with a long schema answers."))),
        _ => None,
    }
}

/// A tool without arguments.
pub(crate) fn plain(name: &'static str, says: &'static str) -> Tool {
    taking(name, says, json!({ "type": "object", "properties": {} }))
}

/// A tool with these.
pub(crate) fn taking(name: &'static str, says: &'static str, schema: Value) -> Tool {
    Tool::new(name, says, object(schema))
}

/// An argument that is a string.
pub(crate) fn argument(call: &CallToolRequestParams, name: &str) -> Option<String> {
    Some(call.arguments.as_ref()?.get(name)?.as_str()?.to_owned())
}

fn object(value: Value) -> JsonObject {
    match value {
        Value::Object(members) => members,
        _ => JsonObject::new(),
    }
}

fn vocabulary() -> Value {
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "$defs": {
            "address": {
                "$anchor": "addressDef",
                "type": "object",
                "properties": { "street": { "type": "string" }, "city": { "type": "string" } },
            },
        },
        "properties": {
            "name": { "type": "string" },
            "address": { "$ref": "#/$defs/address" },
            "contactMethod": { "type": "string", "enum": ["phone", "email"] },
            "phone": { "type": "string" },
            "email": { "type": "string" },
        },
        "allOf": [{ "anyOf": [{ "required": ["phone"] }, { "required": ["email"] }] }],
        "if": { "properties": { "contactMethod": { "const": "phone" } }, "required": ["contactMethod"] },
        "then": { "required": ["phone"] },
        "else": { "required": ["email"] },
        "additionalProperties": false,
    })
}
