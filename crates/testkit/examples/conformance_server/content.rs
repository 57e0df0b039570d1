//! Tools that answer at once, with one kind of content each, or with several.

use rmcp::model::{
    AudioContent, CallToolRequestParams, CallToolResult, ContentBlock, ResourceContents, Tool,
};

use crate::schemas::plain;
use crate::server::{Answer, text};

/// One red pixel, a PNG in base64.
pub(crate) const PIXEL: &str =
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVR4nGP4z8AAAAMBAQDJ/pLvAAAAAElFTkSuQmCC";
/// A WAV without samples, in base64.
const SILENCE: &str = "UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAEAfAAABAAgAZGF0YQAAAAA=";

pub(crate) fn tools() -> Vec<Tool> {
    vec![
        plain("test_simple_text", "Answers with a text"),
        plain("test_image_content", "Answers with an image"),
        plain("test_audio_content", "Answers with a sound"),
        plain("test_embedded_resource", "Answers with a resource"),
        plain("test_multiple_content_types", "Answers with a text, an image and a resource"),
        plain("test_error_handling", "Fails, and says so in its result"),
    ]
}

pub(crate) fn call(call: &CallToolRequestParams) -> Option<Answer> {
    let content = match call.name.as_ref() {
        "test_simple_text" => return Some(Ok(text("A text, and nothing else."))),
        "test_image_content" => vec![ContentBlock::image(PIXEL, "image/png")],
        "test_audio_content" => vec![ContentBlock::Audio(AudioContent::new(SILENCE, "audio/wav"))],
        "test_embedded_resource" => {
            vec![written("test://embedded-resource", "text/plain", "What the resource holds.")]
        }
        "test_multiple_content_types" => vec![
            ContentBlock::text("Three kinds of content:"),
            ContentBlock::image(PIXEL, "image/png"),
            written("test://mixed-content-resource", "application/json", r#"{"kind":"third"}"#),
        ],
        "test_error_handling" => {
            let said = ContentBlock::text("This tool has never worked.");
            return Some(Ok(CallToolResult::error(vec![said]).into()));
        }
        _ => return None,
    };
    Some(Ok(CallToolResult::success(content).into()))
}

/// A resource of text, inside a result.
pub(crate) fn written(uri: &str, kind: &str, text: &str) -> ContentBlock {
    ContentBlock::resource(ResourceContents::TextResourceContents {
        uri: uri.into(),
        mime_type: Some(kind.into()),
        text: text.into(),
        meta: None,
    })
}
