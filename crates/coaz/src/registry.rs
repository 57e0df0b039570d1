//! Which tools declare a mapping, from complete listings that the host made itself (D-30, D-36).
//! Not knowing is not the same as declaring nothing: without a complete, fresh listing no call is mapped. A mapping
//! that is declared and malformed never gives way to the default. It fetches nothing and reads no clock.

use std::collections::BTreeMap;

use sayso_protocol::Json;
use sayso_protocol::canon::S256;

use crate::expr;
use crate::fault::{Fault, Why};
use crate::mapping::{MEMBER, Mapping};

/// Pages of one listing.
pub const MAX_PAGES: usize = 64;
/// Tools of one listing.
pub const MAX_TOOLS: usize = 4096;
/// Declared mappings of one listing: each is compiled.
pub const MAX_DECLARED: usize = 1024;

/// Bytes of all expressions of one listing: compiling them is what a listing can cost.
const MAX_SOURCES: usize = 128 << 10;

/// Not a complete listing of tools.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NotAListing {
    /// A page that is no result of `tools/list`.
    #[error("not a list of tools")]
    Shape,
    /// A page is missing, or there are pages after the last.
    #[error("not every page of the listing")]
    Incomplete,
    /// Too many pages, tools or mappings.
    #[error("the listing is too large")]
    TooLarge,
}

/// What a listing says of one tool.
#[derive(Debug)]
enum Known {
    Undeclared,
    Declared(Box<Mapping>),
    Malformed(Fault),
    Ambiguous,
}

/// The mappings of one server for one caller, and until when they hold.
#[derive(Debug, Default)]
pub struct Registry {
    tools: BTreeMap<String, Known>,
    /// Milliseconds of the host's clock; nothing when there is no complete listing.
    fresh_until: Option<i64>,
}

/// How a tool's mapping differs between two listings, by digest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// The tool.
    pub tool: String,
    /// Before; nothing where none was declared.
    pub before: Option<S256>,
    /// Now.
    pub after: Option<S256>,
}

impl Registry {
    /// A registry that knows nothing yet: every call waits for a listing.
    #[must_use]
    pub fn unlisted() -> Registry {
        Registry::default()
    }

    /// A registry of a server whose tools declare nothing, for ever.
    #[must_use]
    pub fn undeclared() -> Registry {
        Registry { tools: BTreeMap::new(), fresh_until: Some(i64::MAX) }
    }

    /// Reads the pages of one listing, in order, each the result of one `tools/list`.
    ///
    /// # Errors
    /// When they are no complete listing. A mapping that is malformed is no such error: it is that tool's.
    pub fn read(pages: &[&Json], fresh_until: i64) -> Result<Registry, NotAListing> {
        if pages.len() > MAX_PAGES {
            return Err(NotAListing::TooLarge);
        }
        let (last, before) = pages.split_last().ok_or(NotAListing::Incomplete)?;
        let continued = |page: &&Json| page.get("nextCursor").is_some_and(|cursor| cursor.as_str().is_some());
        if continued(last) || !before.iter().all(continued) {
            return Err(NotAListing::Incomplete);
        }
        let mut listed = Vec::new();
        for page in pages {
            listed.extend(page.get("tools").and_then(Json::as_array).ok_or(NotAListing::Shape)?);
        }
        if listed.len() > MAX_TOOLS {
            return Err(NotAListing::TooLarge);
        }
        if listed.iter().filter_map(|tool| declared(tool)).count() > MAX_DECLARED {
            return Err(NotAListing::TooLarge);
        }
        let tools = expr::roomy(|| known(&listed)).unwrap_or(Err(NotAListing::TooLarge))?;
        Ok(Registry { tools, fresh_until: Some(fresh_until) })
    }

    /// Makes it stale at once: the server said that its tools changed.
    pub fn invalidate(&mut self) {
        self.fresh_until = None;
    }

    /// The mapping a tool declares; nothing when a complete listing has no such tool, or one that declares none.
    ///
    /// # Errors
    /// When the listing is not fresh, the tool is listed twice, or its mapping is malformed.
    pub fn declared(&self, tool: &str, now: i64) -> Result<Option<&Mapping>, Fault> {
        if self.fresh_until.is_none_or(|until| now >= until) {
            return Err(Why::Unlisted.at(""));
        }
        match self.tools.get(tool) {
            None | Some(Known::Undeclared) => Ok(None),
            Some(Known::Declared(mapping)) => Ok(Some(mapping)),
            Some(Known::Malformed(fault)) => Err(fault.clone()),
            Some(Known::Ambiguous) => Err(Why::Duplicate.at("")),
        }
    }

    /// The names of the tools, in order.
    pub fn tools(&self) -> impl Iterator<Item = &str> {
        self.tools.keys().map(String::as_str)
    }

    /// What changed since an earlier listing: mappings declared, dropped or altered.
    #[must_use]
    pub fn changes_since(&self, earlier: &Registry) -> Vec<Change> {
        let mut names: Vec<&String> = self.tools.keys().chain(earlier.tools.keys()).collect();
        names.sort_unstable();
        names.dedup();
        let change = |tool: &String| Change {
            tool: tool.clone(),
            before: earlier.tools.get(tool).and_then(Known::digest),
            after: self.tools.get(tool).and_then(Known::digest),
        };
        names.into_iter().map(change).filter(|change| change.before != change.after).collect()
    }
}

impl Known {
    fn digest(&self) -> Option<S256> {
        if let Known::Declared(mapping) = self { mapping.digest().cloned() } else { None }
    }
}

/// The mapping as a tool declares it: a member of `inputSchema` and nothing else, whatever it refers to.
pub(crate) fn declared(tool: &Json) -> Option<&Json> {
    tool.get("inputSchema")?.get(MEMBER)
}

fn known(listed: &[&Json]) -> Result<BTreeMap<String, Known>, NotAListing> {
    let mut tools = BTreeMap::new();
    let mut sources = 0;
    for tool in listed {
        let name = tool.get("name").and_then(Json::as_str).ok_or(NotAListing::Shape)?;
        let known = match declared(tool) {
            None => Known::Undeclared,
            // Tools further on are refused rather than mapped by default.
            Some(_) if sources > MAX_SOURCES => Known::Malformed(Why::TooLarge.at("")),
            Some(json) => {
                sources += written(json);
                Mapping::parse_here(json)
                    .map_or_else(Known::Malformed, |mapping| Known::Declared(Box::new(mapping)))
            }
        };
        tools.entry(name.to_owned()).and_modify(|earlier| *earlier = Known::Ambiguous).or_insert(known);
    }
    Ok(tools)
}

/// Bytes of the texts in a mapping that are compiled, well-formed or not.
fn written(json: &Json) -> usize {
    match json {
        Json::String(text) if text.starts_with('$') => text.len().min(expr::MAX_SOURCE),
        Json::Array(elements) => elements.iter().map(written).sum(),
        Json::Object(members) => members.iter().map(|(_, value)| written(value)).sum(),
        _ => 0,
    }
}

/// How long a listing may be used, in milliseconds: as long as the server says, where it does, but never longer than
/// `cap`; `usual` where it does not, or says nothing usable.
#[must_use]
pub fn lifetime(page: &Json, usual: i64, cap: i64) -> i64 {
    let said = page.get("ttlMs").and_then(Json::as_i64).filter(|said| *said > 0);
    said.unwrap_or(usual).min(cap)
}
