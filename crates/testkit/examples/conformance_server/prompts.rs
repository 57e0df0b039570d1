//! Prompts: plain, with arguments, with content other than text, and one that asks before it answers.

use rmcp::model::{
    ContentBlock, ErrorData, GetPromptRequestParams, GetPromptResponse, GetPromptResult, Prompt,
    PromptArgument, PromptMessage, Role,
};
use serde_json::Value;

use crate::content::{PIXEL, written};
use crate::rounds::{ask, form, response};

pub(crate) fn all() -> Vec<Prompt> {
    let required = |names: &[&str]| {
        let arguments = names.iter().map(|name| PromptArgument::new(*name).with_required(true));
        Some(arguments.collect())
    };
    vec![
        Prompt::new("test_simple_prompt", Some("A prompt"), None),
        Prompt::new(
            "test_prompt_with_arguments",
            Some("A prompt with two arguments"),
            required(&["arg1", "arg2"]),
        ),
        Prompt::new(
            "test_prompt_with_embedded_resource",
            Some("A prompt around a resource"),
            required(&["resourceUri"]),
        ),
        Prompt::new("test_prompt_with_image", Some("A prompt with a picture"), None),
        Prompt::new("test_input_required_result_prompt", Some("A prompt that asks first"), None),
    ]
}

pub(crate) fn get(asked: &GetPromptRequestParams) -> Result<GetPromptResponse, ErrorData> {
    let argument = |name: &str| {
        let given = asked.arguments.as_ref().and_then(|arguments| arguments.get(name));
        given.and_then(Value::as_str).unwrap_or_default().to_owned()
    };
    let messages = match asked.name.as_str() {
        "test_simple_prompt" => vec![text("Say something.")],
        "test_prompt_with_arguments" => {
            let (first, second) = (argument("arg1"), argument("arg2"));
            vec![text(&format!("Compare {first} with {second}."))]
        }
        "test_prompt_with_embedded_resource" => {
            let (uri, held) = (argument("resourceUri"), "What the resource holds.");
            vec![message(written(&uri, "text/plain", held)), text("Summarize it.")]
        }
        "test_prompt_with_image" => {
            let picture = ContentBlock::image(PIXEL, "image/png");
            vec![message(picture), text("Say what is in the picture.")]
        }
        "test_input_required_result_prompt" => return inquiring(asked),
        other => return Err(ErrorData::invalid_params(format!("there is no prompt {other}"), None)),
    };
    Ok(GetPromptResult::new(messages).into())
}

fn inquiring(asked: &GetPromptRequestParams) -> Result<GetPromptResponse, ErrorData> {
    match response(asked.input_responses.as_ref(), "user_context") {
        Some(said) => {
            let said = text(&format!("The client said {}", Value::Object(said.clone())));
            Ok(GetPromptResult::new(vec![said]).into())
        }
        None => {
            let question = form("In which setting?", "context", "string")?;
            Ok(ask([("user_context", question)], None))
        }
    }
}

fn text(said: &str) -> PromptMessage {
    PromptMessage::new_text(Role::User, said)
}

fn message(content: ContentBlock) -> PromptMessage {
    PromptMessage::new(Role::User, content)
}
