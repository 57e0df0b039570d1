//! What a guard says in rmcp's words: refusals, and the extension.
//!
//! Every refusal has `data.error` and `data.status`, and the numbers are those that are announced (D-2, MCP-10..14).

use crate::site::Inner;
use crate::spoken::Said;
use rmcp::model::{ErrorCode, ErrorData, JsonObject, ServerCapabilities, ServerConfig, ServerResult};
use sayso_enforce::carry::Turned;
use sayso_protocol::envelope::jsonrpc::{self, Codes, EXTENSION};
use sayso_protocol::message::MessageFault;
use sayso_protocol::payload::refusal::{Code, Refusal};
use serde_json::{Value, json};

/// Where a configured number does not fit.
const NARROW: i32 = -32002;

/// The error of what was refused.
pub(super) fn turned(codes: Codes, turned: &Turned) -> ErrorData {
    let (code, message, data) = match Said::of(codes, turned) {
        Said::Challenge(error) => (error.code, error.message, serde_json::to_value(error.data)),
        Said::Refusal(error) => (error.code, error.message, serde_json::to_value(error.data)),
    };
    // rmcp's numbers are narrower than JSON-RPC's. INVARIANT: what is said is strings and numbers, so it can be written.
    let code = ErrorCode(i32::try_from(code).unwrap_or(NARROW));
    ErrorData::new(code, message, data.ok())
}

/// The error of a refusal.
pub(super) fn refused(codes: Codes, refusal: Refusal) -> ErrorData {
    turned(codes, &Turned::Refuse(refusal))
}

/// The error where a token must be shown and no transport of this kind can carry one; nothing elsewhere.
pub(super) fn tokenless(site: &Inner) -> Option<ErrorData> {
    let resource = site.engine.resource();
    resource.settings().enforcement.policed()?;
    let at = resource.metadata_url();
    let text = format!("this server takes an access token, which is shown over HTTP; see {at}");
    Some(refused(site.codes, Refusal::new(Code::InvalidToken, text)))
}

/// The error of a method that is not served.
pub(super) fn not_served() -> ErrorData {
    let fault = MessageFault::not_served(404, None);
    let data = json!({ "error": fault.error, "status": fault.http_status });
    ErrorData::new(ErrorCode::METHOD_NOT_FOUND, fault.message, Some(data))
}

/// A result with the extension in it, where it is a handshake's.
pub(super) fn announced(site: &Inner, result: ServerResult) -> ServerResult {
    match result {
        ServerResult::InitializeResult(mut result) => {
            announce(site, &mut result.capabilities);
            ServerResult::InitializeResult(result)
        }
        ServerResult::DiscoverResult(mut result) => {
            announce(site, &mut result.capabilities);
            ServerResult::DiscoverResult(result)
        }
        other => other,
    }
}

/// A server's configuration with the extension in it.
pub(super) fn configured(site: &Inner, mut config: ServerConfig) -> ServerConfig {
    announce(site, &mut config.capabilities);
    config
}

pub(super) fn announce(site: &Inner, capabilities: &mut ServerCapabilities) {
    let resource = site.engine.resource();
    if resource.settings().enforcement.policed().is_some() {
        // There is no owner to negotiate with.
        return;
    }
    let issuer = resource.settings().as_uri.clone();
    let Value::Object(advert) = jsonrpc::advert(site.codes, &[issuer]) else { return };
    let advert: JsonObject = advert;
    capabilities.extensions.get_or_insert_default().insert(EXTENSION.to_owned(), advert);
}
