//! Her policy: units, each with its current terms (OWN-18..22).
//!
//! Every edit is a new version of the terms and old versions stay published; resources never change by an edit. Rules
//! come with a later ring, so that only an empty list of them is taken.

use super::super::Shared;
use super::super::answer::{Detail, json};
use super::{Hers, named};
use crate::Authority;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, State};
use axum::response::Response;
use http::StatusCode;
use sayso_owner::store::{Edit, Unavailable, Unsaved};
use sayso_owner::unit::{Draft, Owner, TermsEdit, Unit};
use sayso_protocol::payload::terms::Terms;
use sayso_protocol::{OwnerName, ResourceId, UnitId};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

const UNKNOWN: &str = "you have no unit of that id";
/// Longest unit id; it becomes part of public URLs.
const MAX_ID: usize = 64;

/// A unit as she reads it.
#[derive(Serialize)]
struct Entry<'a> {
    id: &'a UnitId,
    name: &'a str,
    resources: &'a [ResourceId],
    ask_me: bool,
    bind: bool,
    rules: [(); 0],
    version: i64,
    terms: Published,
}

#[derive(Serialize)]
struct Published {
    #[serde(flatten)]
    terms: Terms,
    /// Given even where the terms leave it out, so that she need not know what absence means.
    #[serde(rename = "per_operation")]
    always: bool,
    terms_uri: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct New {
    id: String,
    name: String,
    resources: Vec<ResourceId>,
    ask_me: bool,
    #[serde(default)]
    bind: bool,
    #[serde(default)]
    rules: Vec<serde_json::Value>,
    terms: Draft,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Changes {
    ask_me: Option<bool>,
    bind: Option<bool>,
    rules: Option<Vec<serde_json::Value>>,
    terms: Option<TermsEdit>,
}

/// The members of terms that an edit may change; those left out stay.
pub(in super::super) async fn list(State(authority): Shared, hers: Hers) -> Result<Response, Detail> {
    let owner = owner(&authority, &hers.owner).await?;
    let units = authority.store.units(&hers.owner).await?;
    let entries: Result<BTreeMap<&str, Entry<'_>>, Unavailable> =
        units.iter().map(|unit| Ok((unit.id.as_str(), entry(&authority, &owner, unit)?))).collect();
    Ok(json(StatusCode::OK, &entries?))
}

pub(in super::super) async fn create(State(authority): Shared, hers: Hers) -> Result<Response, Detail> {
    let New { id, name, resources, ask_me, bind, rules, terms } = hers.json()?;
    no_rules(&rules)?;
    let id = unit_id(id)
        .ok_or_else(|| Detail::invalid("id must be 1 to 64 letters, digits, dots, dashes or underscores"))?;
    // INVARIANT: the store gives the version; one is a placeholder.
    let unit = Unit { id, name, resources, ask_me, bind, version: 1, terms };
    let (issuer, now) = (authority.issuer(), authority.now());
    let saved = authority.store.create_unit(&hers.owner, &unit, issuer, &hers.author, now).await?;
    stored(&authority, &hers.owner, StatusCode::CREATED, &saved.map_err(unsaved)?).await
}

pub(in super::super) async fn edit(
    State(authority): Shared,
    id: Result<Path<String>, PathRejection>,
    hers: Hers,
) -> Result<Response, Detail> {
    let id = named(id, unit_id, UNKNOWN)?;
    let Changes { ask_me, bind, rules, terms } = hers.json()?;
    no_rules(rules.as_deref().unwrap_or_default())?;
    let edit = Edit { ask_me, bind, terms: terms.unwrap_or_default() };
    let (issuer, now) = (authority.issuer(), authority.now());
    let saved = authority.store.edit_unit(&hers.owner, &id, &edit, issuer, &hers.author, now).await?;
    stored(&authority, &hers.owner, StatusCode::OK, &saved.map_err(unsaved)?).await
}

pub(in super::super) async fn delete(
    State(authority): Shared,
    id: Result<Path<String>, PathRejection>,
    hers: Hers,
) -> Result<Response, Detail> {
    let id = named(id, unit_id, UNKNOWN)?;
    let deleted = authority.store.delete_unit(&hers.owner, &id, &hers.author, authority.now()).await?;
    let ungoverned = deleted.map_err(unsaved)?;
    Ok(json(StatusCode::OK, &serde_json::json!({ "id": id, "ungoverned": ungoverned })))
}

async fn stored(
    authority: &Authority,
    name: &OwnerName,
    status: StatusCode,
    unit: &Unit,
) -> Result<Response, Detail> {
    #[derive(Serialize)]
    struct Reply<'a> {
        #[serde(flatten)]
        unit: Entry<'a>,
        clamped: [(); 0],
    }
    let owner = owner(authority, name).await?;
    Ok(json(status, &Reply { unit: entry(authority, &owner, unit)?, clamped: [] }))
}

fn entry<'a>(authority: &Authority, owner: &Owner, unit: &'a Unit) -> Result<Entry<'a>, Unavailable> {
    let terms = unit.published(&owner.namespace, authority.issuer()).map_err(|_| Unavailable)?;
    let terms_uri = format!("{}/{}", authority.house.terms_endpoint, terms.template_id);
    Ok(Entry {
        id: &unit.id,
        name: &unit.name,
        resources: &unit.resources,
        ask_me: unit.ask_me,
        bind: unit.bind,
        rules: [],
        version: unit.version,
        terms: Published {
            always: terms.per_operation,
            // Left out of the flattened copy, since it is given beside it.
            terms: Terms { per_operation: false, ..terms },
            terms_uri,
        },
    })
}

async fn owner(authority: &Authority, name: &OwnerName) -> Result<Owner, Unavailable> {
    let owners = authority.store.owners().await?;
    owners.into_iter().find(|owner| owner.name == *name).ok_or(Unavailable)
}

fn unit_id(text: String) -> Option<UnitId> {
    let plain = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '.' | '-' | '_');
    let fits = text.len() <= MAX_ID && text.chars().all(plain) && !text.chars().all(|letter| letter == '.');
    UnitId::parse(text).ok().filter(|_| fits)
}

fn no_rules(rules: &[serde_json::Value]) -> Result<(), Detail> {
    if rules.is_empty() {
        Ok(())
    } else {
        Err(Detail::invalid("rules are not supported yet; leave them empty"))
    }
}

fn unsaved(why: Unsaved) -> Detail {
    match why {
        Unsaved::Unknown => Detail::unknown(UNKNOWN),
        Unsaved::Unfit(unfit) => Detail::invalid(unfit.to_string()),
    }
}
