//! The protection API between an enforcement point and its owner's authority: permission, introspection,
//! consumption, access report.
//!
//! It has no operation that returns policy (CORE-121), and no answer has the agent's handle (FED-49): the enforcement
//! point learns what is permitted, and a name for the agent that means nothing anywhere else.

use super::operation::Operation;
use super::rpt::{Confirmation, Permission};
use crate::canon::S256;
use crate::id::{ClientId, NegotiationId, OwnerName, ResourceId, Scope, Timestamp, ToolName};
use crate::json::{self, Json, Limits};
use crate::key::Thumbprint;
use serde::{Deserialize, Serialize};

/// What an enforcement point registers to get a ticket (BASE-02).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PermissionRequest {
    /// The resource reached for.
    pub resource_id: ResourceId,
    /// The scopes that would suffice.
    pub resource_scopes: Vec<Scope>,
}

/// The ticket of a registered attempt.
#[derive(Clone, Serialize, Deserialize)]
pub struct PermissionReply {
    /// The permission ticket.
    pub ticket: String,
    /// The negotiation it opens, where the authority says so: for the logs of the enforcement point alone, which would
    /// learn it from introspection anyway.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub family: Option<NegotiationId>,
}

impl From<String> for PermissionReply {
    fn from(ticket: String) -> Self {
        Self { ticket, family: None }
    }
}

/// Why a permission request is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PermissionFault {
    /// The authority knows no such resource of this owner at this resource server.
    InvalidResourceId,
    /// A scope outside the registration.
    InvalidScope,
    /// The tool is not the one the owner has seen (D-30); negotiating cannot cure that.
    ToolChanged,
}

impl PermissionFault {
    /// Every fault.
    pub const ALL: [PermissionFault; 3] =
        [PermissionFault::InvalidResourceId, PermissionFault::InvalidScope, PermissionFault::ToolChanged];

    /// The `error` value; the status is 400.
    pub fn as_str(self) -> &'static str {
        match self {
            PermissionFault::InvalidResourceId => "invalid_resource_id",
            PermissionFault::InvalidScope => "invalid_scope",
            PermissionFault::ToolChanged => "tool_changed",
        }
    }
}

/// Why a token is not live (FED-38..42).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "String", into = "String")]
pub enum Inactive {
    /// Its time is over.
    Expired,
    /// It does not verify.
    InvalidSignature,
    /// This authority, asked by this resource server, knows no such token.
    UnknownToken,
    /// A single-use token that was spent.
    AlreadyConsumed,
    /// The owner ended the connection.
    ConnectionRevoked,
    /// It died with an earlier ending, or with the unit it was granted under.
    Revoked,
    /// An organization withdrew it.
    OrganizationRevoked,
    /// A reason this program does not know.
    Other(String),
}

impl Inactive {
    /// Whether negotiating afresh cannot help. An unknown reason is terminal (FED-42).
    pub fn is_terminal(&self) -> bool {
        match self {
            Inactive::Expired
            | Inactive::InvalidSignature
            | Inactive::UnknownToken
            | Inactive::AlreadyConsumed
            | Inactive::Revoked => false,
            Inactive::ConnectionRevoked | Inactive::OrganizationRevoked | Inactive::Other(_) => true,
        }
    }

    /// The `error` value.
    pub fn as_str(&self) -> &str {
        match self {
            Inactive::Expired => "expired",
            Inactive::InvalidSignature => "invalid_signature",
            Inactive::UnknownToken => "unknown_token",
            Inactive::AlreadyConsumed => "already_consumed",
            Inactive::ConnectionRevoked => "connection_revoked",
            Inactive::Revoked => "revoked",
            Inactive::OrganizationRevoked => "organization_revoked",
            Inactive::Other(reason) => reason,
        }
    }
}

impl From<String> for Inactive {
    fn from(reason: String) -> Self {
        match reason.as_str() {
            "expired" => Inactive::Expired,
            "invalid_signature" => Inactive::InvalidSignature,
            "unknown_token" => Inactive::UnknownToken,
            "already_consumed" => Inactive::AlreadyConsumed,
            "connection_revoked" => Inactive::ConnectionRevoked,
            "revoked" => Inactive::Revoked,
            "organization_revoked" => Inactive::OrganizationRevoked,
            _ => Inactive::Other(reason),
        }
    }
}

impl From<Inactive> for String {
    fn from(reason: Inactive) -> Self {
        reason.as_str().to_owned()
    }
}

/// A live grant as introspection describes it (CORE-99). The handle is not in it (O-10); its agent has a pairwise name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LiveGrant {
    /// The authority.
    pub iss: String,
    /// The resource server.
    pub aud: ClientId,
    /// Whose resource.
    pub owner: OwnerName,
    /// When it was issued.
    pub iat: Timestamp,
    /// When it ends.
    pub exp: Timestamp,
    /// `PoP`.
    pub token_type: String,
    /// The key that must be proven (CORE-93).
    pub cnf: Confirmation,
    /// What it permits.
    pub permissions: Vec<Permission>,
    /// The agreement's digest.
    pub contract: S256,
    /// The negotiation, for reports (O-47).
    pub family: NegotiationId,
    /// The agent, by a name that is stable for one owner at one resource server and never its handle (D-7).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sub: Option<String>,
    /// The same name: policies look for who acts in either place.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client_id: Option<String>,
    /// The declared class at issue time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub consequence: Option<String>,
    /// Whether one call spends it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub single_use: bool,
    /// The one call it is for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub operation: Option<Operation>,
    /// Whether the owner lets the tool ask follow-up questions in that call (D-11).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub bind: bool,
    /// The call is made; the grant lives on for the round that was asked about, and for nothing else.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub continuation: Option<S256>,
}

/// One more round of a call that a single-use grant was spent on: the answer to a question of its tool's (D-11).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Continuation {
    /// `s256` of the `requestState` that the tool gave, byte for byte.
    pub state: S256,
    /// `s256` of the canonical form of the `inputResponses`, if there are any.
    pub answers: Option<S256>,
    /// The call, which stays the one approved.
    pub operation: Operation,
    /// The key that the round was signed with.
    pub key: Thumbprint,
}

/// An introspection answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Introspection {
    /// The token is live.
    Live(Box<LiveGrant>),
    /// It is not, and why.
    Dead(Inactive),
}

#[derive(Serialize)]
struct IntrospectionWire {
    active: bool,
    #[serde(flatten)]
    grant: Option<LiveGrant>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<Inactive>,
}

/// What says whether the rest is a grant. Read on its own: behind `flatten`, serde takes arrays for objects.
#[derive(Deserialize)]
struct State {
    active: bool,
    #[serde(default)]
    error: Option<Inactive>,
}

impl Introspection {
    /// The JSON answer.
    pub fn to_json(&self) -> serde_json::Value {
        let wire = match self {
            Introspection::Live(grant) => {
                IntrospectionWire { active: true, grant: Some((**grant).clone()), error: None }
            }
            Introspection::Dead(reason) => {
                IntrospectionWire { active: false, grant: None, error: Some(reason.clone()) }
            }
        };
        serde_json::to_value(wire).unwrap_or_else(|_| serde_json::json!({ "active": false }))
    }

    /// Reads an answer. An active one without its members is no answer at all; an inactive one without a reason
    /// is terminal, since nothing says that negotiating would help.
    pub fn from_json(bytes: &[u8]) -> Option<Self> {
        let answer = Json::parse(bytes, Limits::default()).ok()?;
        let state: State = json::typed(&answer).ok()?;
        if state.active {
            json::typed(&answer).ok().map(|grant| Introspection::Live(Box::new(grant)))
        } else {
            Some(Introspection::Dead(state.error.unwrap_or(Inactive::Other(String::new()))))
        }
    }
}

/// The answer to a consume request (FED-46).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConsumeReply {
    /// Whether this caller spent it.
    pub consumed: bool,
    /// Why not: `not_single_use`, `already_consumed`, or an introspection reason.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// `error` of a consume request for a reusable token.
pub const NOT_SINGLE_USE: &str = "not_single_use";

/// `error` of a consume request for a round that the tool did not ask for, or not of this call.
pub const UNKNOWN_CONTINUATION: &str = "unknown_continuation";

/// A report of one allowed call (FED-48). Has no place for a handle.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AccessReport {
    /// The negotiation the grant came from.
    pub family: NegotiationId,
    /// The tool reached.
    pub tool: ToolName,
    /// Digest of the arguments; the arguments themselves are not reported.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub params_s256: Option<S256>,
    /// What happened to the call after the decision, in our words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub summary: Option<String>,
    /// `s256` of the state with which the tool asks for another round of this call (D-11).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub continuation: Option<S256>,
}

#[cfg(test)]
mod tests {
    use super::*;

    // FED-40, FED-41, FED-42
    #[test]
    fn unknown_reasons_are_terminal() {
        assert!(Inactive::from("x_new".to_owned()).is_terminal());
        assert!(Inactive::from("connection_revoked".to_owned()).is_terminal());
        assert!(Inactive::from("organization_revoked".to_owned()).is_terminal());
        for reason in ["expired", "invalid_signature", "unknown_token", "already_consumed", "revoked"] {
            assert!(!Inactive::from(reason.to_owned()).is_terminal(), "{reason}");
        }
    }

    // CORE-96
    #[test]
    fn an_answer_without_its_members_is_no_answer() {
        assert_eq!(Introspection::from_json(br#"{"active":true}"#), None);
        assert_eq!(Introspection::from_json(br#"{"active":"true"}"#), None);
        assert_eq!(
            Introspection::from_json(br#"{"active":false,"error":"expired"}"#),
            Some(Introspection::Dead(Inactive::Expired))
        );
        let dead = Introspection::from_json(br#"{"active":false}"#).unwrap();
        assert!(matches!(dead, Introspection::Dead(reason) if reason.is_terminal()));
    }

    /// An active answer whose `exp`, `iat` or permission's `exp` is this text.
    fn answer(exp: &str, iat: &str, permission: &str) -> Option<Introspection> {
        let jwk = r#"{"kty":"OKP","crv":"Ed25519","x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"}"#;
        let permission =
            format!(r#"{{"resource_id":"vault/x","resource_scopes":["x:read"],"exp":{permission}}}"#);
        let text = format!(
            r#"{{"active":true,"iss":"https://as","aud":"https://gw","owner":"alice","iat":{iat},"exp":{exp},
                "token_type":"PoP","cnf":{{"jwk":{jwk}}},"permissions":[{permission}],
                "contract":"s256:RBNvo1WzZ4oRRq0W9-hknpT7T8If536DEMBg9hyq_4o","family":"f"}}"#
        );
        Introspection::from_json(text.as_bytes())
    }

    // CORE-86, CORE-96: a time of another type is not a time that was left out.
    #[test]
    fn times_of_an_answer_are_whole_numbers() {
        let live = |found: Option<Introspection>| matches!(found, Some(Introspection::Live(_)));
        assert!(live(answer("1790000000", "-1", "1790000000")));
        for text in [
            "\"1790000000\"",
            "\"soon\"",
            "true",
            "[1790000000]",
            "{}",
            "1790000000.0",
            "1.79e9",
            "1e400",
            "1e30",
            "9223372036854775808",
        ] {
            assert_eq!(answer(text, "1", "1"), None, "exp {text}");
            assert_eq!(answer("1", text, "1"), None, "iat {text}");
            assert_eq!(answer("1", "1", text), None, "permission {text}");
        }
        assert_eq!((answer("null", "1", "1"), answer("1", "null", "1")), (None, None));
    }
}
