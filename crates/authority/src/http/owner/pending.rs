//! What waits for her, and her answer (OWN-05..08).
//!
//! The agent's reason and arguments are given verbatim, as JSON text; whoever shows them renders text (OWN-06). An
//! answer is taken once: a second one finds nothing.

use super::super::Shared;
use super::super::answer::{Detail, json};
use super::{Hers, named};
use crate::{asked, checked};
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, State};
use axum::response::Response;
use http::StatusCode;
use sayso_owner::connection::Identity;
use sayso_owner::decision::Answer;
use sayso_owner::evidence::Evidence;
use sayso_owner::negotiation::Ask;
use sayso_owner::store::Waiting;
use sayso_protocol::payload::agreement::Mission;
use sayso_protocol::{ClientId, Handle, NegotiationId, ResourceId, S256, Scope, Timestamp, ToolName, UnitId};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use std::collections::BTreeMap;

const UNKNOWN: &str = "no such request waits for you; it may have been answered, or its time ran out";

/// The three axes of assurance, never summed (POL-28, POL-29).
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
    identity: Identity,
    assurance: Assurance,
    assurance_notes: Vec<String>,
    evidence: &'a Evidence,
    because: Vec<&'static str>,
    handle: Option<&'a Handle>,
    agent: &'a Handle,
    key: String,
    resource_id: &'a ResourceId,
    client_id: &'a ClientId,
    scope: &'a [Scope],
    expires_in: i64,
    per_operation: bool,
    bind: bool,
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
    let found =
        asked::find(&authority, &hers.owner, &family).await?.ok_or_else(|| Detail::unknown(UNKNOWN))?;
    Ok(json(StatusCode::OK, &item(&found)))
}

pub(in super::super) async fn decide(
    State(authority): Shared,
    family: Result<Path<String>, PathRejection>,
    hers: Hers,
) -> Result<Response, Detail> {
    let family = named(family, |id| NegotiationId::parse(id).ok(), UNKNOWN)?;
    let Decision { decision } = hers.json()?;
    let decided = asked::answer(&authority, &hers.owner, &family, &decision.into(), &hers.author).await?;
    decided.ok_or_else(|| Detail::unknown(UNKNOWN))?;
    Ok(json(StatusCode::OK, &serde_json::json!({ "family": family, "decision": decision })))
}

fn item(waiting: &Waiting) -> Item<'_> {
    let commitment = &waiting.commitment;
    let (terms, evidence) = (&commitment.proffer.terms, &commitment.evidence);
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
            .and_then(|named| asked::arguments(commitment).map(|params| Act { tool: &named.tool, params })),
        params_s256: operation.map(|named| &named.params_s256),
        definition: commitment.definition.as_ref(),
        reason: commitment.reason.as_deref(),
        mission: commitment.mission.as_ref(),
        identity: evidence.identity(),
        assurance: Assurance {
            binding: evidence.binding(),
            provenance: evidence.provenance(),
            accountability: evidence.accountability(),
        },
        assurance_notes: checked::sentences(evidence),
        evidence,
        because: vec![asked::because(waiting)],
        handle: known.map(|connection| &connection.handle),
        agent: &commitment.handle,
        key: commitment.cnf.key().map(|key| key.thumbprint().to_string()).unwrap_or_default(),
        resource_id: &waiting.resource,
        client_id: &waiting.client_id,
        scope: &commitment.scope,
        expires_in: commitment.expires_in,
        per_operation: terms.per_operation,
        bind: commitment.bind,
        terms_uri: &commitment.proffer.terms_uri,
        asked_at: commitment.at,
        deadline: waiting.deadline,
    }
}
