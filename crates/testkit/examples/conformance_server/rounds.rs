//! Tools that need something of their caller's and end their answer there: the caller calls again with it (2026-07-28).
//! What a round has to remember travels sealed with the caller.

#![expect(deprecated, reason = "the newest revision still lets sampling and roots be asked for in a round")]

use rmcp::model::{
    CallToolRequestParams, ClientCapabilities, CreateMessageRequest, CreateMessageRequestParams,
    ElicitRequest, ElicitRequestParams, ErrorData, InputRequest, InputRequests, InputRequiredResult,
    InputResponses, ListRootsRequest, RequestStateCodec, SamplingMessage, Tool,
};
use serde_json::{Map, Value, json};

use crate::schemas::plain;
use crate::server::{Answer, Context, text};

/// What all their names begin with.
const PREFIX: &str = "test_input_required_result_";
const TOKENS: u32 = 100;

pub(crate) fn tools() -> Vec<Tool> {
    vec![
        plain("test_input_required_result_elicitation", "Asks for a name"),
        plain("test_input_required_result_sampling", "Asks for an answer of a model's"),
        plain("test_input_required_result_list_roots", "Asks for roots"),
        plain("test_input_required_result_request_state", "Asks, and remembers that it did"),
        plain("test_input_required_result_tampered_state", "Refuses a memory that was changed"),
        plain("test_input_required_result_multiple_inputs", "Asks for three things at once"),
        plain("test_input_required_result_multi_round", "Asks twice"),
        plain("test_input_required_result_capabilities", "Asks only what the client can answer"),
        plain("test_streaming_elicitation", "Asks, on a stream"),
    ]
}

pub(crate) fn call(
    states: &RequestStateCodec,
    call: &CallToolRequestParams,
    context: &Context,
) -> Option<Answer> {
    if call.name == "test_streaming_elicitation" {
        return Some(name().map(|name| ask([("value", name)], None)));
    }
    let kind = call.name.strip_prefix(PREFIX)?;
    let responses = call.input_responses.as_ref();
    let answer = match kind {
        "elicitation" => single(responses, "user_name", name),
        "sampling" => single(responses, "capital_question", || Ok(sampling("How much is seven times six?"))),
        "list_roots" => single(responses, "client_roots", || Ok(roots())),
        "request_state" | "tampered_state" => remembering(states, call),
        "multiple_inputs" => several(states, call),
        "multi_round" => twice(states, call),
        "capabilities" => able(responses, &context.client_capabilities().unwrap_or_default()),
        _ => return None,
    };
    Some(answer)
}

/// A usable response: an object. Anything else is as good as none, and is asked for again.
pub(crate) fn response<'a>(
    responses: Option<&'a InputResponses>,
    key: &str,
) -> Option<&'a Map<String, Value>> {
    responses?.get(key)?.as_object()
}

/// A form of one required text.
pub(crate) fn form(message: &str, field: &str, kind: &str) -> Result<InputRequest, ErrorData> {
    let schema = json!({ "type": "object", "properties": { field: { "type": kind } }, "required": [field] });
    let requested_schema =
        serde_json::from_value(schema).map_err(|fault| ErrorData::internal_error(fault.to_string(), None))?;
    let asked =
        ElicitRequestParams::FormElicitationParams { meta: None, message: message.into(), requested_schema };
    Ok(InputRequest::Elicitation(ElicitRequest::new(asked)))
}

/// What ends a round that asks.
pub(crate) fn ask<'a, R: From<InputRequiredResult>>(
    requests: impl IntoIterator<Item = (&'a str, InputRequest)>,
    state: Option<String>,
) -> R {
    let requests: InputRequests =
        requests.into_iter().map(|(key, request)| (key.to_owned(), request)).collect();
    InputRequiredResult::new(Some(requests), state).into()
}

fn name() -> Result<InputRequest, ErrorData> {
    form("Who is asking?", "name", "string")
}

fn sampling(prompt: &str) -> InputRequest {
    let asked = CreateMessageRequestParams::new(vec![SamplingMessage::user_text(prompt)], TOKENS);
    InputRequest::CreateMessage(CreateMessageRequest::new(asked))
}

fn roots() -> InputRequest {
    InputRequest::ListRoots(ListRootsRequest::default())
}

/// One question, answered in the second round.
fn single(
    responses: Option<&InputResponses>,
    key: &str,
    question: impl Fn() -> Result<InputRequest, ErrorData>,
) -> Answer {
    match response(responses, key) {
        Some(said) => Ok(text(format!("The client said {}", Value::Object(said.clone())))),
        None => Ok(ask([(key, question()?)], None)),
    }
}

fn seal(states: &RequestStateCodec, state: &Value) -> Result<String, ErrorData> {
    states.seal_json(state).map_err(|fault| ErrorData::internal_error(fault.to_string(), None))
}

/// What was sealed, if this server sealed it.
fn open(states: &RequestStateCodec, call: &CallToolRequestParams) -> Result<Option<Value>, ErrorData> {
    let Some(sealed) = call.request_state.as_deref() else { return Ok(None) };
    let opened = states.open_json(sealed);
    opened.map(Some).map_err(|_| ErrorData::invalid_params("requestState was not issued here", None))
}

fn remembering(states: &RequestStateCodec, call: &CallToolRequestParams) -> Answer {
    if open(states, call)?.is_some() {
        return Ok(text("It is as it was left."));
    }
    let confirm = form("Is that so?", "ok", "boolean")?;
    Ok(ask([("confirm", confirm)], Some(seal(states, &json!("asked"))?)))
}

fn several(states: &RequestStateCodec, call: &CallToolRequestParams) -> Answer {
    let keys = ["user_name", "greeting", "client_roots"];
    let responses = call.input_responses.as_ref();
    if open(states, call)?.is_some() && keys.iter().all(|key| response(responses, key).is_some()) {
        return Ok(text("All three were answered."));
    }
    let requests = [name()?, sampling("Greet somebody"), roots()];
    Ok(ask(keys.into_iter().zip(requests), Some(seal(states, &json!("asked"))?)))
}

fn twice(states: &RequestStateCodec, call: &CallToolRequestParams) -> Answer {
    let round = open(states, call)?.and_then(|state| state.as_u64()).unwrap_or(0);
    let (key, question) = match round {
        0 => ("step1", form("First: who is asking?", "name", "string")?),
        1 => ("step2", form("Second: which color?", "color", "string")?),
        _ => return Ok(text("Both were answered.")),
    };
    Ok(ask([(key, question)], Some(seal(states, &json!(round + 1))?)))
}

fn able(responses: Option<&InputResponses>, can: &ClientCapabilities) -> Answer {
    let mut requests = Vec::new();
    if can.elicitation.is_some() {
        requests.push(("user_name", name()?));
    }
    if can.sampling.is_some() {
        requests.push(("greeting", sampling("Greet somebody")));
    }
    if can.roots.is_some() {
        requests.push(("client_roots", roots()));
    }
    if responses.is_some() || requests.is_empty() {
        return Ok(text("There is nothing to ask."));
    }
    Ok(ask(requests, None))
}
