//! The unit a tool is in at first, when nobody but its server described it (D-29).
//!
//! Set-up makes it for the tools a server has when it is heard for the first time; for one that appears later the owner
//! does, when she has looked at it. It is the same unit, so that it makes no difference when a tool was seen.

use crate::unit::{Draft, Unit};
use sayso_protocol::canon::sha256;
use sayso_protocol::id::BadId;
use sayso_protocol::message::{Annotations, Class};
use sayso_protocol::payload::metadata::OwnedResource;
use sayso_protocol::{Json, ResourceId, Scope, ToolName, UnitId};

/// How long the promises for one approved call last, in seconds.
const ONE_CALL: i64 = 900;
/// How long those for reading last.
const READING: i64 = 86_400;
/// Longest name of a unit, in characters.
const NAME: usize = 200;
/// Longest unit id made here; her API takes none that is longer.
const UNIT: usize = 64;

/// A unit of its own for a tool. She is asked each time until rules can say otherwise.
///
/// # Errors
/// Never at present: what is made here is a unit id.
pub fn unit(tool: &ToolName, resource: ResourceId, scope: Vec<Scope>, class: Class) -> Result<Unit, BadId> {
    Ok(Unit {
        id: id(tool)?,
        name: tool.to_string().chars().take(NAME).collect(),
        resources: vec![resource],
        ask_me: true,
        bind: false,
        version: 1,
        terms: terms(scope, class),
    })
}

/// What a registered resource is taken for, by what it says of itself. One that says nothing may do anything.
pub fn class(resource: &OwnedResource) -> Class {
    let said = resource.surface.as_ref().and_then(|surface| surface.get("annotations"));
    Class::of(&Annotations::read(said.cloned().map(Json::from).as_ref()))
}

/// The unit that a registered resource would have been in at first.
///
/// # Errors
/// Never at present.
pub fn unit_of(resource: &OwnedResource) -> Result<Unit, BadId> {
    unit(&resource.tool, resource.id.clone(), resource.resource_scopes.clone(), class(resource))
}

fn terms(scope: Vec<Scope>, class: Class) -> Draft {
    let acts = class == Class::Act;
    let (beyond, reuse) = ("calls-beyond-approved-arguments", "reuse-of-an-approval");
    let upheld = [(beyond, "operation-binding"), (reuse, "single-use")];
    let upheld = upheld.map(|(promise, mechanism)| (promise.to_owned(), mechanism.to_owned()));
    Draft {
        purpose: if acts { "one call the owner approved" } else { "reading what this tool shows" }.into(),
        scope,
        expires_in: if acts { ONE_CALL } else { READING },
        prohibited: if acts { vec![beyond.into(), reuse.into()] } else { vec![] },
        per_operation: acts,
        enforced: if acts { upheld.into() } else { [].into() },
    }
}

/// The id of a tool's own unit: its name where that is one word of letters, digits, `.`, `_` and `-`, else as much of it
/// as is, and a digest that keeps it apart from every other.
fn id(tool: &ToolName) -> Result<UnitId, BadId> {
    let name = tool.as_str();
    let plain = |character: char| character.is_ascii_alphanumeric() || "._-".contains(character);
    let begins = name.starts_with(|character: char| character.is_ascii_alphanumeric());
    if begins && name.len() <= UNIT && name.chars().all(plain) {
        return UnitId::parse(name);
    }
    let digest: String = sha256(name.as_bytes()).iter().take(8).map(|byte| format!("{byte:02x}")).collect();
    let slug: String = name.chars().map(|character| if plain(character) { character } else { '-' }).collect();
    let slug = slug.trim_start_matches(['.', '_', '-']);
    let slug: String = slug.chars().take(UNIT - digest.len() - 1).collect();
    UnitId::parse(if slug.is_empty() { digest } else { format!("{slug}-{digest}") })
}

/// The `n`th id to try for a unit, when units over other things have those before it.
///
/// # Errors
/// Never at present: what is made here is a unit id.
pub fn nth(unit: &UnitId, n: usize) -> Result<UnitId, BadId> {
    if n < 2 {
        return Ok(unit.clone());
    }
    let suffix = format!("-{n}");
    let kept: String = unit.as_str().chars().take(UNIT.saturating_sub(suffix.len())).collect();
    UnitId::parse(format!("{kept}{suffix}"))
}

#[cfg(test)]
mod tests;
