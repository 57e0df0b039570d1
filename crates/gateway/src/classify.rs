//! The first policy for a tool nobody described but its server (D-29).
//!
//! Pure. A tool is Read only when its server states all that makes it harmless; whatever is missing makes it Act. Her
//! own choices come later and elsewhere, and consequence classes never come from a server's claims.

use crate::survey::{Annotations, Surveyed};
use sayso_enforce::resource::ToolSettings;
use sayso_protocol::canon::sha256;
use sayso_protocol::id::BadId;
use sayso_protocol::{Realm, ResourceId, Scope, ToolName, UnitId};

/// Longest unit id made here; her API takes none that is longer.
const UNIT: usize = 64;
/// Longest realm made here.
const REALM: usize = 64;

/// What a tool is taken for at first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Class {
    /// It looks, in a closed world, and changes nothing.
    Read,
    /// It may do anything.
    Act,
}

impl Class {
    /// What a tool is taken for.
    pub fn of(annotations: &Annotations) -> Self {
        let harmless = annotations.read_only == Some(true)
            && annotations.open_world == Some(false)
            && annotations.destructive != Some(true);
        if harmless { Class::Read } else { Class::Act }
    }

    fn word(self) -> &'static str {
        match self {
            Class::Read => "read",
            Class::Act => "call",
        }
    }
}

/// The scope that suffices to call a tool.
///
/// # Errors
/// When no scope can be written for its name: one with a space, or too long.
pub fn scope(tool: &ToolName, class: Class) -> Result<Scope, BadId> {
    Scope::parse(format!("{tool}:{}", class.word()))
}

/// A surveyed tool as the registry governs it.
///
/// # Errors
/// When its name makes no scope or resource id; such a tool is not served.
pub fn govern(tool: &Surveyed, realm: &Realm) -> Result<ToolSettings, BadId> {
    Ok(ToolSettings {
        tool: tool.name.clone(),
        resource_id: ResourceId::parse(format!("{realm}/{}", tool.name))?,
        scopes: vec![scope(&tool.name, Class::of(&tool.annotations))?],
        // That a grant is for one call is her decision and is in the grant.
        single_use: false,
        consequence: None,
        definition: Some(tool.definition.clone()),
        surface: Some(surface(tool)),
        mirrors: tool.mirrors.clone(),
    })
}

/// What she is shown of a tool: what is pinned, and its description beside it.
fn surface(tool: &Surveyed) -> serde_json::Value {
    let mut shown = serde_json::to_value(&tool.pinned).unwrap_or_default();
    if let (Some(members), Some(description)) = (shown.as_object_mut(), &tool.description) {
        members.insert("description".into(), description.clone().into());
    }
    shown
}

/// A realm from what a server calls itself: lower-case words joined by dashes; none if there are none.
pub fn realm(server_name: &str) -> Option<Realm> {
    let lower: String = server_name.chars().map(|character| character.to_ascii_lowercase()).collect();
    let words: Vec<&str> = lower
        .split(|character: char| !character.is_ascii_alphanumeric())
        .filter(|word| !word.is_empty())
        .collect();
    let slug: String = words.join("-").chars().take(REALM).collect();
    Realm::parse(slug.trim_end_matches('-')).ok()
}

/// The unit a tool is in at first, alone: its name where that is one word of letters, digits, `.`, `_` and `-`, else as
/// much of it as is, and a digest that keeps it apart from every other.
///
/// # Errors
/// Never at present: what is made here is a unit id.
pub fn unit(tool: &ToolName) -> Result<UnitId, BadId> {
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
