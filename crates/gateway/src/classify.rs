//! The first policy for a tool nobody described but its server (D-29).
//!
//! Pure. What its server states makes its scope and resource; the unit it is in is the owner's side of it and made there.
//! Her own choices come later and elsewhere, and consequence classes never come from a server's claims.

use crate::survey::Surveyed;
use sayso_enforce::resource::ToolSettings;
use sayso_protocol::id::BadId;
pub use sayso_protocol::message::Class;
use sayso_protocol::{Realm, ResourceId, Scope, ToolName};

/// Longest realm made here.
const REALM: usize = 64;

fn word(class: Class) -> &'static str {
    match class {
        Class::Read => "read",
        Class::Act => "call",
    }
}

/// The scope that suffices to call a tool.
///
/// # Errors
/// When no scope can be written for its name: one with a space, or too long.
pub fn scope(tool: &ToolName, class: Class) -> Result<Scope, BadId> {
    Scope::parse(format!("{tool}:{}", word(class)))
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

#[cfg(test)]
mod tests;
