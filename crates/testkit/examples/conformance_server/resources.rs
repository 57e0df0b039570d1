//! Resources: a text, a picture, and a template of any number of texts.

use rmcp::model::{ErrorData, ReadResourceResult, Resource, ResourceContents, ResourceTemplate};
use serde_json::json;

use crate::content::PIXEL;

const TEXT: &str = "test://static-text";
const PICTURE: &str = "test://static-binary";

pub(crate) fn all() -> Vec<Resource> {
    vec![
        Resource::new(TEXT, "A text").with_description("Always the same text").with_mime_type("text/plain"),
        Resource::new(PICTURE, "A picture").with_description("One red pixel").with_mime_type("image/png"),
    ]
}

pub(crate) fn templates() -> Vec<ResourceTemplate> {
    vec![
        ResourceTemplate::new("test://template/{id}/data", "Data by id")
            .with_description("Says which id it was asked for")
            .with_mime_type("application/json"),
    ]
}

pub(crate) fn read(uri: &str) -> Result<ReadResourceResult, ErrorData> {
    let contents = match uri {
        TEXT => text(uri, "text/plain", "The same text, always.".into()),
        PICTURE => ResourceContents::BlobResourceContents {
            uri: uri.into(),
            mime_type: Some("image/png".into()),
            blob: PIXEL.into(),
            meta: None,
        },
        _ => {
            let id = uri.strip_prefix("test://template/").and_then(|rest| rest.strip_suffix("/data"));
            let Some(id) = id.filter(|id| !id.contains('/')) else {
                let asked = Some(json!({ "uri": uri }));
                return Err(ErrorData::invalid_params("there is no such resource", asked));
            };
            let data = json!({ "id": id, "asked": uri });
            text(uri, "application/json", data.to_string())
        }
    };
    Ok(ReadResourceResult::new(vec![contents]))
}

fn text(uri: &str, kind: &str, text: String) -> ResourceContents {
    ResourceContents::TextResourceContents { uri: uri.into(), mime_type: Some(kind.into()), text, meta: None }
}
