//! What waits for her, and her answer (OWN-05..08).
//!
//! The agent's reason and arguments are given verbatim, as JSON text; whoever shows them renders text (OWN-06). An
//! answer is taken once: a second one finds nothing.

use super::super::Shared;
use super::super::answer::{Detail, json};
use super::{Hers, named};
use crate::Authority;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, State};
use axum::response::Response;
use http::StatusCode;
use sayso_owner::decision::Answer;
use sayso_owner::negotiation::{Ask, Commitment};
use sayso_owner::store::{Unavailable, Waiting};
use sayso_protocol::payload::agreement::Mission;
use sayso_protocol::{
    ClientId, Handle, NegotiationId, OwnerName, ResourceId, S256, Scope, Timestamp, ToolName, UnitId, b64,
    json,
};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use std::collections::BTreeMap;

const UNKNOWN: &str = "no such request waits for you; it may have been answered, or its time ran out";

/// The three axes of assurance, never summed (POL-28, POL-29). A bare key has shown that it signs, and no more.
#[derive(Serialize)]
struct Assurance {
    binding: u8,
    provenance: u8,
    accountability: u8,
}

/// The act asked for; the arguments exactly as they were signed.
#[derive(Serialize)]
struct Act<'a> {
    tool: &'a ToolName,
    params: Box<RawValue>,
}

/// One waiting request as she reads it.
#[derive(Serialize)]
struct Item<'a> {
    family: &'a NegotiationId,
    kind: Ask,
    tier: &'a UnitId,
    purpose: &'a str,
    prohibited: &'a [String],
    enforced: &'a BTreeMap<String, String>,
    operation: Option<Act<'a>>,
    params_s256: Option<&'a S256>,
    definition: Option<&'a S256>,
    reason: Option<&'a str>,
    mission: Option<&'a Mission>,
    identity: &'static str,
    assurance: Assurance,
    assurance_notes: Vec<&'static str>,
    because: Vec<&'static str>,
    handle: Option<&'a Handle>,
    key: String,
    resource_id: &'a ResourceId,
    client_id: &'a ClientId,
    scope: &'a [Scope],
    expires_in: i64,
    per_operation: bool,
    terms_uri: &'a str,
    asked_at: Timestamp,
    deadline: Timestamp,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Decision {
    decision: Answer,
}

pub(in super::super) async fn list(State(authority): Shared, hers: Hers) -> Result<Response, Detail> {
    let waiting = authority.store.pending(&hers.owner, authority.now()).await?;
    let items: Vec<Item<'_>> = waiting.iter().map(item).collect();
    Ok(json(StatusCode::OK, &items))
}

pub(in super::super) async fn show(
    State(authority): Shared,
    family: Result<Path<String>, PathRejection>,
    hers: Hers,
) -> Result<Response, Detail> {
    let family = named(family, |id| NegotiationId::parse(id).ok(), UNKNOWN)?;
    let found = find(&authority, &hers.owner, &family).await?.ok_or_else(|| Detail::unknown(UNKNOWN))?;
    Ok(json(StatusCode::OK, &item(&found)))
}

pub(in super::super) async fn decide(
    State(authority): Shared,
    family: Result<Path<String>, PathRejection>,
    hers: Hers,
) -> Result<Response, Detail> {
    let family = named(family, |id| NegotiationId::parse(id).ok(), UNKNOWN)?;
    let Decision { decision } = hers.json()?;
    // Read for the log alone; whether it still waits is decided by the store.
    let asked = find(&authority, &hers.owner, &family).await?.map(|waiting| waiting.ask);
    let decided =
        authority.store.decide(&hers.owner, &family, decision, &hers.author, authority.now()).await?;
    decided.ok_or_else(|| Detail::unknown(UNKNOWN))?;
    tracing::info!(family = %family, decision = ?decision, "owner.decision");
    if decision == Answer::Approved && asked == Some(Ask::Connection) {
        tracing::info!(family = %family, "connection.approved");
    }
    Ok(json(StatusCode::OK, &serde_json::json!({ "family": family, "decision": decision })))
}

async fn find(
    authority: &Authority,
    owner: &OwnerName,
    family: &NegotiationId,
) -> Result<Option<Waiting>, Unavailable> {
    let waiting = authority.store.pending(owner, authority.now()).await?;
    Ok(waiting.into_iter().find(|waiting| waiting.family == *family))
}

fn item(waiting: &Waiting) -> Item<'_> {
    let commitment = &waiting.commitment;
    let terms = &commitment.proffer.terms;
    let known = waiting.connection.as_ref();
    let operation = commitment.operation.as_ref();
    Item {
        family: &waiting.family,
        kind: waiting.ask,
        tier: &commitment.unit,
        purpose: &terms.purpose,
        prohibited: &commitment.prohibited,
        enforced: &terms.enforced,
        operation: operation
            .and_then(|named| arguments(commitment).map(|params| Act { tool: &named.tool, params })),
        params_s256: operation.map(|named| &named.params_s256),
        definition: commitment.definition.as_ref(),
        reason: commitment.reason.as_deref(),
        mission: commitment.mission.as_ref(),
        identity: "pseudonymous",
        assurance: Assurance { binding: 0, provenance: 0, accountability: 0 },
        assurance_notes: vec![
            "This agent shows a key and nothing else: nobody vouches for who runs it.",
            "The same key will be recognised when it comes again.",
        ],
        because: because(waiting),
        handle: known.map(|connection| &connection.handle),
        key: commitment.cnf.key().map(|key| key.thumbprint().to_string()).unwrap_or_default(),
        resource_id: &waiting.resource,
        client_id: &waiting.client_id,
        scope: &commitment.scope,
        expires_in: commitment.expires_in,
        per_operation: terms.per_operation,
        terms_uri: &commitment.proffer.terms_uri,
        asked_at: commitment.at,
        deadline: waiting.deadline,
    }
}

fn because(waiting: &Waiting) -> Vec<&'static str> {
    match (waiting.ask, &waiting.connection) {
        (Ask::Connection, None) => vec!["You have never let this agent in."],
        (Ask::Connection, Some(_)) => vec!["You ended this agent's connection; approving lets it in again."],
        (Ask::Operation, _) => vec!["This unit asks you every time."],
    }
}

/// The arguments as the agent wrote and signed them, cut out of the agreement; rewriting a number could show her
/// something else than what is hashed.
fn arguments(commitment: &Commitment) -> Option<Box<RawValue>> {
    let verbatim = || {
        let payload = b64::decode(commitment.agreement_jws.split('.').nth(1)?).ok()?;
        let at = json::locate(&payload, &["operation", "params"])?;
        RawValue::from_string(String::from_utf8(payload.get(at)?.to_vec()).ok()?).ok()
    };
    verbatim().or_else(|| serde_json::value::to_raw_value(commitment.params.as_ref()?).ok())
}
