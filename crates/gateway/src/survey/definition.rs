//! One tool as a server defines it, and the digest by which a change is noticed (D-30).
//!
//! The pin is over what a call means: name, schemas, annotations, and the mapping, which lives in the input schema. Its
//! description has a digest of its own, because a change of words is shown and does not suspend.

use sayso_protocol::canon::{self, CanonError, S256};
use sayso_protocol::message::{Annotations, Mirror, mirrors};
use sayso_protocol::{Json, ToolName};

/// What the pin is made of.
const PINNED: [&str; 4] = ["name", "inputSchema", "outputSchema", "annotations"];
/// What a tool says of itself to people.
const WORDS: [&str; 2] = ["title", "description"];
/// Longest name that is repeated of a tool that is left out.
const NAME: usize = 128;

/// A tool that can be governed.
#[derive(Debug, Clone)]
pub struct Surveyed {
    /// Its name.
    pub name: ToolName,
    /// Its description, the server's own words.
    pub description: Option<String>,
    /// What it claims about its effects.
    pub annotations: Annotations,
    /// The arguments its schema asks clients to repeat in headers.
    pub mirrors: Vec<Mirror>,
    /// The members that are pinned, for showing what changed.
    pub pinned: Json,
    /// Their digest.
    pub definition: S256,
    /// The digest of title and description.
    pub words: S256,
}

/// A tool that is not governed, and therefore not served.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeftOut {
    /// Its name, perhaps cut. The server's own words.
    pub name: String,
    /// Why.
    pub reason: Unfit,
}

/// Why a tool cannot be governed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Unfit {
    /// Its name is empty, too long, or holds what a name may not.
    #[error("its name cannot be used")]
    Name,
    /// It is not shaped like a tool.
    #[error("its schema or annotations are not objects")]
    Shape,
    /// It mirrors arguments in a way that MCP forbids.
    #[error("its x-mcp-header breaks the rules")]
    Mirrors,
    /// Its definition cannot be pinned.
    #[error("its definition has no canonical form: {0}")]
    Canon(CanonError),
}

impl LeftOut {
    pub(super) fn new(name: &str, reason: Unfit) -> Self {
        Self { name: name.chars().take(NAME).collect(), reason }
    }
}

impl Surveyed {
    /// Reads one entry of a listing.
    pub(super) fn read(name: &str, tool: &Json) -> Result<Self, Unfit> {
        let name = ToolName::parse(name).map_err(|_| Unfit::Name)?;
        let objects = ["inputSchema", "outputSchema", "annotations"];
        let shaped = |name: &&str| matches!(tool.get(name), None | Some(Json::Object(_)));
        if !objects.iter().all(shaped) {
            return Err(Unfit::Shape);
        }
        let mirrors = tool.get("inputSchema").map_or(Ok(Vec::new()), mirrors).map_err(|_| Unfit::Mirrors)?;
        let pinned = pick(tool, &PINNED);
        Ok(Self {
            name,
            description: tool.get("description").and_then(Json::as_str).map(str::to_owned),
            annotations: Annotations::read(tool.get("annotations")),
            mirrors,
            definition: canon::s256(&pinned).map_err(Unfit::Canon)?,
            words: canon::s256(&pick(tool, &WORDS)).map_err(Unfit::Canon)?,
            pinned,
        })
    }
}

fn pick(tool: &Json, names: &[&str]) -> Json {
    let member = |name: &&str| Some(((*name).to_owned(), tool.get(name)?.clone()));
    Json::Object(names.iter().filter_map(member).collect())
}

#[cfg(test)]
mod tests;
