//! A challenge or refusal as a JSON-RPC error, and the extension that announces them (MCP-03, MCP-10..15).
//! It keeps D-2: the numbers are configured and advertised, a reader looks at `data` alone, and the id is repeated
//! as its exact text. Hosts that answer over HTTP statuses use `www_authenticate` and plain bodies instead (D-3).

#[cfg(test)]
mod tests;

use crate::json::{self, Json, JsonError, Limits};
use crate::message::RequestId;
use crate::payload::challenge::{BadChallenge, Challenge, ChallengeObject, ERROR, ERROR_OF_PEERS};
use crate::payload::negotiation::UMA_TICKET;
use crate::payload::refusal::{Refusal, RefusalBody};
use serde::Serialize;

/// The capability extension of an enforcement point inside a server (MCP-03).
pub const EXTENSION: &str = "dev.uma4agents/uma-enforcement";

/// The numbers emitted. Peers are told of them; nobody may conclude anything from them (D-2).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Codes {
    /// Of a challenge.
    pub challenge: i64,
    /// Of every other refusal.
    pub refusal: i64,
}

impl Default for Codes {
    fn default() -> Self {
        Self { challenge: -32001, refusal: -32002 }
    }
}

/// A JSON-RPC error object, members in the wire's order.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ErrorObject<D> {
    /// The number.
    pub code: i64,
    /// For people.
    pub message: &'static str,
    /// What a machine reads.
    pub data: D,
}

/// `data` of a refusal: the HTTP body and the status it would have had (MCP-13).
#[derive(Debug, Serialize)]
pub struct RefusalData<'a> {
    #[serde(flatten)]
    body: RefusalBody<'a>,
    status: u16,
}

/// The error of a challenge; `data` is the object an HTTP body would be.
pub fn challenge(codes: Codes, challenge: &Challenge) -> ErrorObject<ChallengeObject> {
    ErrorObject { code: codes.challenge, message: "authorization required", data: challenge.object() }
}

/// The error of any other refusal.
pub fn refusal(codes: Codes, refusal: &Refusal) -> ErrorObject<RefusalData<'_>> {
    let data = RefusalData { body: refusal.body(), status: refusal.code.status() };
    ErrorObject { code: codes.refusal, message: "refused", data }
}

/// The response that carries an error, for the request of this id.
///
/// # Errors
/// When the error's data cannot be written as JSON.
pub fn response<D: Serialize>(id: &RequestId, error: &ErrorObject<D>) -> Result<Vec<u8>, serde_json::Error> {
    #[derive(Serialize)]
    struct Response<'a, D> {
        jsonrpc: &'static str,
        id: &'a RequestId,
        error: &'a ErrorObject<D>,
    }
    serde_json::to_vec(&Response { jsonrpc: "2.0", id, error })
}

/// The settings of [`EXTENSION`] in a handshake's `capabilities.extensions`.
pub fn advert(codes: Codes, authorization_servers: &[String]) -> serde_json::Value {
    serde_json::json!({
        "grant_type": UMA_TICKET,
        "authorization_servers": authorization_servers,
        "challenge": { "jsonrpc_error_code": codes.challenge },
    })
}

/// What a JSON-RPC error says, by its `data`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Failure {
    /// Negotiate, then call again.
    Challenge(Box<ChallengeObject>),
    /// Refused; negotiating cannot help. Both are the peer's words.
    Refusal {
        /// `data.error`.
        error: String,
        /// `data.status`, when it is a status.
        status: Option<u16>,
    },
    /// An error of the server's own, or of a kind nobody here knows.
    Other {
        /// The number, when it is one.
        code: Option<i64>,
    },
}

/// Why an error that says it is a challenge is not one to act on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum BadResponse {
    /// Not JSON.
    #[error(transparent)]
    Text(#[from] JsonError),
    /// The challenge is incomplete or contradicts itself.
    #[error(transparent)]
    Challenge(#[from] BadChallenge),
}

impl Failure {
    /// The failure of a response body; `None` when it is no error response.
    ///
    /// # Errors
    /// When the body is not JSON, or its error claims to be a challenge and is not a good one.
    pub fn read(body: &[u8], limits: Limits) -> Result<Option<Failure>, BadResponse> {
        let root = Json::parse(body, limits)?;
        Ok(root.get("error").map(Failure::of).transpose()?)
    }

    /// The failure an `error` member describes. Neither its number nor its message is looked at.
    ///
    /// # Errors
    /// When it claims to be a challenge and is not a good one.
    pub fn of(error: &Json) -> Result<Failure, BadChallenge> {
        let data = error.get("data");
        match data.and_then(|data| data.get("error")).and_then(Json::as_str) {
            Some(ERROR | ERROR_OF_PEERS) => {
                let data = data.filter(|data| data.get("as_uri").is_some() && data.get("ticket").is_some());
                let data = data.ok_or(BadChallenge::Incomplete)?;
                let object: ChallengeObject = json::typed(data).map_err(|_| BadChallenge::Malformed)?;
                Ok(Failure::Challenge(Box::new(object.check()?)))
            }
            Some(word) => {
                let status = data.and_then(|data| data.get("status")).and_then(Json::as_u64);
                let status = status.and_then(|status| u16::try_from(status).ok());
                Ok(Failure::Refusal { error: word.to_owned(), status })
            }
            None => Ok(Failure::Other { code: error.get("code").and_then(Json::as_i64) }),
        }
    }
}
