//! Tools that ask their caller's client something while they run, as the older revisions do: a request of the server's
//! on the stream of the call. In 2026-07-28 the same is asked in rounds.

#![expect(deprecated, reason = "the older revisions have sampling")]

use rmcp::model::{
    CallToolRequestParams, CallToolResult, ClientCapabilities, ContentBlock, CreateMessageRequestParams,
    ElicitRequestParams, ErrorData, SamplingMessage, Tool,
};
use serde_json::{Value, json};

use crate::schemas::{argument, plain, taking};
use crate::server::{Answer, Context, text};

/// Words a model may take to answer.
const TOKENS: u32 = 100;

pub(crate) fn tools() -> Vec<Tool> {
    let one = |name: &str| json!({ "type": "object", "properties": { name: { "type": "string" } }, "required": [name] });
    vec![
        taking("test_sampling", "Asks the client's model", one("prompt")),
        taking("test_elicitation", "Asks the client's user", one("message")),
        plain("test_elicitation_sep1034_defaults", "Asks for values that have defaults"),
        plain("test_elicitation_sep1330_enums", "Asks for choices of every kind"),
        plain("test_missing_capability", "Needs a client that can sample"),
    ]
}

pub(crate) async fn call(call: &CallToolRequestParams, context: &Context) -> Option<Answer> {
    Some(match call.name.as_ref() {
        "test_sampling" => sample(context, argument(call, "prompt").unwrap_or_default()).await,
        "test_elicitation" => {
            let message = argument(call, "message").unwrap_or_default();
            elicit(context, &message, person()).await
        }
        "test_elicitation_sep1034_defaults" => elicit(context, "Change what is not right", defaults()).await,
        "test_elicitation_sep1330_enums" => elicit(context, "Choose", choices()).await,
        "test_missing_capability" => sampling_only(context),
        _ => return None,
    })
}

async fn sample(context: &Context, prompt: String) -> Answer {
    let asked = CreateMessageRequestParams::new(vec![SamplingMessage::user_text(prompt)], TOKENS);
    Ok(match context.peer.create_message(asked).await {
        Ok(answer) => {
            let said = answer.message.content.first().and_then(|content| content.as_text());
            text(format!("The model said {}", said.map_or("", |said| &said.text)))
        }
        Err(fault) => failed(&fault),
    })
}

async fn elicit(context: &Context, message: &str, schema: Value) -> Answer {
    let requested_schema =
        serde_json::from_value(schema).map_err(|fault| ErrorData::internal_error(fault.to_string(), None))?;
    let asked =
        ElicitRequestParams::FormElicitationParams { meta: None, message: message.into(), requested_schema };
    Ok(match context.peer.create_elicitation(asked).await {
        Ok(answer) => {
            let action = serde_json::to_value(&answer.action).unwrap_or_default();
            let content = json!(answer.content);
            text(format!("action={}, content={content}", action.as_str().unwrap_or_default()))
        }
        Err(fault) => failed(&fault),
    })
}

fn failed(fault: &rmcp::ServiceError) -> rmcp::model::CallToolResponse {
    CallToolResult::error(vec![ContentBlock::text(fault.to_string())]).into()
}

fn sampling_only(context: &Context) -> Answer {
    let can = context.client_capabilities().is_some_and(|can| can.sampling.is_some());
    if can {
        return Ok(text("The client can sample."));
    }
    let needed = ClientCapabilities::builder().enable_sampling().build();
    Err(ErrorData::missing_required_client_capability(needed))
}

fn person() -> Value {
    json!({
        "type": "object",
        "properties": {
            "username": { "type": "string", "description": "a name" },
            "email": { "type": "string", "description": "an address" },
        },
        "required": ["username", "email"],
    })
}

fn defaults() -> Value {
    json!({
        "type": "object",
        "properties": {
            "name": { "type": "string", "default": "John Doe" },
            "age": { "type": "integer", "default": 30 },
            "score": { "type": "number", "default": 95.5 },
            "status": { "type": "string", "enum": ["active", "inactive", "pending"], "default": "active" },
            "verified": { "type": "boolean", "default": true },
        },
        "required": [],
    })
}

fn choices() -> Value {
    let titled = |first: &str| {
        json!([
            { "const": "value1", "title": format!("First {first}") },
            { "const": "value2", "title": format!("Second {first}") },
            { "const": "value3", "title": format!("Third {first}") },
        ])
    };
    json!({
        "type": "object",
        "properties": {
            "untitledSingle": { "type": "string", "enum": ["option1", "option2", "option3"] },
            "titledSingle": { "type": "string", "oneOf": titled("Option") },
            "legacyEnum": {
                "type": "string",
                "enum": ["opt1", "opt2", "opt3"],
                "enumNames": ["Option One", "Option Two", "Option Three"],
            },
            "untitledMulti": {
                "type": "array",
                "items": { "type": "string", "enum": ["option1", "option2", "option3"] },
            },
            "titledMulti": { "type": "array", "items": { "anyOf": titled("Choice") } },
        },
        "required": [],
    })
}
