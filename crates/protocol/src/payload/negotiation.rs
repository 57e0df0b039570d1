//! The token endpoint on the wire: what an agent or resource server asks, and every answer.
//!
//! A form is read strictly: one of each member, bounded, UTF-8. What a request leads to is the negotiation's
//! business, elsewhere.

use super::assertion::RequiredIdentity;
use super::terms::RequiredClaim;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// `grant_type` of the negotiation.
pub const UMA_TICKET: &str = "urn:ietf:params:oauth:grant-type:uma-ticket";
/// `grant_type` of a protection API token.
pub const CLIENT_CREDENTIALS: &str = "client_credentials";
/// The scope of a protection API token.
pub const UMA_PROTECTION: &str = "uma_protection";
/// Largest form read, in bytes.
pub const MAX_FORM: usize = 128 * 1024;

/// A request to the token endpoint. Holds tickets and claim tokens, so it has no `Debug`.
pub enum TokenRequest {
    /// A step of a negotiation.
    Ticket(TicketRequest),
    /// A resource server asks for its token.
    Protection(ProtectionRequest),
}

/// One presentation of a ticket.
pub struct TicketRequest {
    /// The ticket.
    pub ticket: String,
    /// A claim, where one was demanded.
    pub claim: Option<Claim>,
    /// Whether the agent declines the terms (TERMS-40).
    pub decline: bool,
}

/// A pushed claim and the format it says it has.
pub struct Claim {
    /// The claim token.
    pub token: String,
    /// Its format.
    pub format: Option<String>,
}

/// A request for a protection API token. Authenticated by signature, never by a secret (D-22).
pub struct ProtectionRequest {
    /// The client id, when the form names one.
    pub client_id: Option<String>,
    /// The owner, needed only where several know this client.
    pub owner: Option<String>,
    /// The scope asked for.
    pub scope: Option<String>,
    /// Whether the request tried a secret or an assertion.
    pub offers_secret: bool,
}

impl TokenRequest {
    /// Reads a form.
    ///
    /// # Errors
    /// When it is no form, too large, repeats a member, lacks one, or names a grant type not served.
    pub fn read(form: &[u8]) -> Result<Self, TokenError> {
        if form.len() > MAX_FORM || std::str::from_utf8(form).is_err() {
            return Err(TokenError::InvalidRequest);
        }
        let mut members = BTreeMap::new();
        for (name, value) in url::form_urlencoded::parse(form) {
            if members.insert(name.into_owned(), value.into_owned()).is_some() {
                return Err(TokenError::InvalidRequest);
            }
        }
        let mut take = |name: &str| members.remove(name).filter(|value| !value.is_empty());
        match take("grant_type").ok_or(TokenError::InvalidRequest)?.as_str() {
            UMA_TICKET => {
                let ticket = take("ticket").ok_or(TokenError::InvalidRequest)?;
                let format = take("claim_token_format");
                let claim = take("claim_token").map(|token| Claim { token, format });
                let decline = match take("decline").as_deref() {
                    None | Some("false") => false,
                    Some("true") => true,
                    Some(_) => return Err(TokenError::InvalidRequest),
                };
                Ok(TokenRequest::Ticket(TicketRequest { ticket, claim, decline }))
            }
            CLIENT_CREDENTIALS => Ok(TokenRequest::Protection(ProtectionRequest {
                client_id: take("client_id"),
                owner: take("owner"),
                scope: take("scope"),
                offers_secret: ["client_secret", "client_assertion", "password"]
                    .into_iter()
                    .any(|name| take(name).is_some()),
            })),
            _ => Err(TokenError::UnsupportedGrantType),
        }
    }
}

/// An OAuth error of the token endpoint (register 1.6).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TokenError {
    /// The form is malformed or lacks a member.
    InvalidRequest,
    /// The grant type is not served.
    UnsupportedGrantType,
    /// The ticket is unknown, spent, expired, or another authority's.
    InvalidGrant,
    /// A scope that is not given here.
    InvalidScope,
    /// The client did not prove who it is.
    InvalidClient,
    /// The resource server waits for the owner.
    AuthorizationPending,
    /// The owner revoked the resource server.
    AccessDenied,
    /// The negotiation is over.
    RequestDenied,
    /// Too many open negotiations; try later.
    TooManyRequests,
    /// A dependency failed; nothing was spent.
    TemporarilyUnavailable,
}

impl TokenError {
    /// The `error` value.
    pub fn as_str(self) -> &'static str {
        match self {
            TokenError::InvalidRequest => "invalid_request",
            TokenError::UnsupportedGrantType => "unsupported_grant_type",
            TokenError::InvalidGrant => "invalid_grant",
            TokenError::InvalidScope => "invalid_scope",
            TokenError::InvalidClient => "invalid_client",
            TokenError::AuthorizationPending => "authorization_pending",
            TokenError::AccessDenied => "access_denied",
            TokenError::RequestDenied | TokenError::TooManyRequests => "request_denied",
            TokenError::TemporarilyUnavailable => "temporarily_unavailable",
        }
    }

    /// The HTTP status.
    pub fn status(self) -> u16 {
        match self {
            TokenError::InvalidRequest
            | TokenError::UnsupportedGrantType
            | TokenError::InvalidGrant
            | TokenError::InvalidScope => 400,
            TokenError::InvalidClient => 401,
            TokenError::AuthorizationPending | TokenError::AccessDenied | TokenError::RequestDenied => 403,
            TokenError::TooManyRequests => 429,
            TokenError::TemporarilyUnavailable => 503,
        }
    }
}

/// The answer to one presentation of a ticket. Holds tickets and tokens, so it has no `Debug`.
pub enum TokenReply {
    /// 403 `need_info`: agree to these terms (BASE-04).
    NeedInfo {
        /// The next ticket.
        ticket: String,
        /// What is demanded.
        claim: Box<RequiredClaim>,
    },
    /// 403 `need_info`: say whom you act for, by the word of a provider (CORE-35).
    Identify {
        /// The next ticket.
        ticket: String,
        /// What is demanded.
        claim: Box<RequiredIdentity>,
    },
    /// 403 `request_denied` with the very ticket: what was shown of an identity does not count, and the ticket is as good
    /// as before.
    Doubted {
        /// The ticket that was presented.
        ticket: String,
        /// What to do next.
        description: String,
    },
    /// 403 `request_submitted`: the owner has been asked (BASE-05).
    Submitted {
        /// The next ticket.
        ticket: String,
        /// Seconds to wait before the next poll.
        interval: i64,
    },
    /// 200: the grant and its receipt.
    Granted {
        /// The grant.
        access_token: String,
        /// Its life in seconds.
        expires_in: i64,
        /// The counter-signed receipt.
        receipt: String,
    },
    /// Any error.
    Refused {
        /// Which.
        error: TokenError,
        /// What to do next.
        description: String,
    },
}

/// One element of `required_claims`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Demand {
    /// Agree to terms.
    Agreement(Box<RequiredClaim>),
    /// Say whom you act for.
    Identity(Box<RequiredIdentity>),
}

#[derive(Serialize, Deserialize)]
struct Wire {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    error: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    error_description: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    ticket: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    interval: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    required_claims: Option<Vec<Demand>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    access_token: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    token_type: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    expires_in: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    receipt: Option<String>,
}

const EMPTY: Wire = Wire {
    error: None,
    error_description: None,
    ticket: None,
    interval: None,
    required_claims: None,
    access_token: None,
    token_type: None,
    expires_in: None,
    receipt: None,
};

impl TokenReply {
    /// A refusal with its sentence.
    pub fn refused(error: TokenError, description: impl Into<String>) -> Self {
        TokenReply::Refused { error, description: description.into() }
    }

    /// The HTTP status.
    pub fn status(&self) -> u16 {
        match self {
            TokenReply::NeedInfo { .. }
            | TokenReply::Identify { .. }
            | TokenReply::Doubted { .. }
            | TokenReply::Submitted { .. } => 403,
            TokenReply::Granted { .. } => 200,
            TokenReply::Refused { error, .. } => error.status(),
        }
    }

    /// The JSON body.
    pub fn body(&self) -> serde_json::Value {
        let wire = match self {
            TokenReply::NeedInfo { ticket, claim } => Wire {
                error: Some("need_info".into()),
                ticket: Some(ticket.clone()),
                required_claims: Some(vec![Demand::Agreement(claim.clone())]),
                ..EMPTY
            },
            TokenReply::Identify { ticket, claim } => Wire {
                error: Some("need_info".into()),
                ticket: Some(ticket.clone()),
                required_claims: Some(vec![Demand::Identity(claim.clone())]),
                ..EMPTY
            },
            TokenReply::Doubted { ticket, description } => Wire {
                error: Some(TokenError::RequestDenied.as_str().into()),
                error_description: Some(description.clone()),
                ticket: Some(ticket.clone()),
                ..EMPTY
            },
            TokenReply::Submitted { ticket, interval } => Wire {
                error: Some("request_submitted".into()),
                ticket: Some(ticket.clone()),
                interval: Some(*interval),
                ..EMPTY
            },
            TokenReply::Granted { access_token, expires_in, receipt } => Wire {
                access_token: Some(access_token.clone()),
                token_type: Some(super::rpt::SCHEME.into()),
                expires_in: Some(*expires_in),
                receipt: Some(receipt.clone()),
                ..EMPTY
            },
            TokenReply::Refused { error, description } => Wire {
                error: Some(error.as_str().into()),
                error_description: Some(description.clone()),
                ..EMPTY
            },
        };
        serde_json::to_value(wire).unwrap_or_default()
    }
}

/// A token endpoint's answer as the agent reads it. Holds tickets and tokens, so it has no `Debug`.
pub enum Answer {
    /// Agree to these terms, then present the ticket.
    NeedInfo {
        /// The next ticket.
        ticket: String,
        /// Every demand; more than one cannot be met here.
        claims: Vec<Demand>,
    },
    /// What was shown of an identity does not count; the ticket that was presented is as good as before.
    Doubted {
        /// That ticket.
        ticket: String,
        /// `error_description`, a stranger's words.
        description: Option<String>,
    },
    /// The owner has been asked.
    Submitted {
        /// The next ticket.
        ticket: String,
        /// Seconds to wait.
        interval: Option<i64>,
    },
    /// The grant.
    Granted {
        /// The grant.
        access_token: String,
        /// Its life in seconds.
        expires_in: i64,
        /// The receipt, where the authority gave one.
        receipt: Option<String>,
    },
    /// An error: its code and sentence, both a stranger's words.
    Error {
        /// `error`.
        code: String,
        /// `error_description`.
        description: Option<String>,
    },
}

impl Answer {
    /// Reads an answer.
    ///
    /// # Errors
    /// When it is none of the answers the drafts define, or its token type is not `PoP`.
    pub fn read(status: u16, body: &[u8]) -> Result<Self, BadAnswer> {
        let wire: Wire = crate::json::strict(body, crate::json::Limits::default()).map_err(|_| BadAnswer)?;
        match (status, wire.error.as_deref()) {
            (200, None) => {
                let scheme =
                    wire.token_type.is_some_and(|kind| kind.eq_ignore_ascii_case(super::rpt::SCHEME));
                let (Some(access_token), Some(expires_in), true) =
                    (wire.access_token, wire.expires_in, scheme)
                else {
                    return Err(BadAnswer);
                };
                Ok(Answer::Granted { access_token, expires_in, receipt: wire.receipt })
            }
            (403, Some("need_info")) => {
                let claims = wire.required_claims.ok_or(BadAnswer)?;
                Ok(Answer::NeedInfo { ticket: wire.ticket.ok_or(BadAnswer)?, claims })
            }
            (403, Some("request_submitted")) => {
                Ok(Answer::Submitted { ticket: wire.ticket.ok_or(BadAnswer)?, interval: wire.interval })
            }
            (403, Some("request_denied")) if wire.ticket.is_some() => Ok(Answer::Doubted {
                ticket: wire.ticket.ok_or(BadAnswer)?,
                description: wire.error_description,
            }),
            (400.., Some(code)) => {
                Ok(Answer::Error { code: code.into(), description: wire.error_description })
            }
            _ => Err(BadAnswer),
        }
    }
}

/// The token endpoint's answer is not one the drafts define.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the authority's answer is not one of the protocol's")]
pub struct BadAnswer;

#[cfg(test)]
mod tests;
