//! The arguments of a call, laid out from the canonical bytes that are hashed and approved (D-28).
//!
//! Every member is a line of its own, whole and in the order of the hash; what is too much to lay out is shown as its
//! canonical text. A layout that would not agree with the digest of the agreement says so.

use crate::asked;
use sayso_owner::negotiation::Commitment;
use sayso_protocol::json::Limits;
use sayso_protocol::{Json, canon};

/// Lines that are laid out; more are shown as text.
const MOST: usize = 1000;
/// Levels that are indented; deeper ones say how deep they are.
const INDENTED: usize = 8;
/// Letters of a value from which on it says how many it has.
const LONG: usize = 300;

/// Arguments as they are shown.
pub(super) struct Arguments {
    /// One a member; empty when there are too many, or none.
    pub(super) lines: Vec<Line>,
    /// How many there are.
    pub(super) count: usize,
    /// The very text that is hashed.
    pub(super) canonical: String,
    /// Its digest.
    pub(super) digest: String,
    /// Whether that is the digest the agent signed.
    pub(super) agrees: bool,
}

/// One member.
pub(super) struct Line {
    /// How far it is indented.
    pub(super) indent: usize,
    /// How deep it is.
    pub(super) level: usize,
    /// Its name, or its place.
    pub(super) name: String,
    /// Letters of the name that may look like others.
    pub(super) unlike: String,
    /// Its value as canonical text; empty for what has members of its own.
    pub(super) value: String,
    /// What it holds, for what has members of its own.
    pub(super) holds: String,
    /// How many letters a long value has; 0 for a short one.
    pub(super) letters: usize,
}

impl Arguments {
    /// Those of the act an agreement names, if it names one.
    pub(super) fn of(commitment: &Commitment) -> Option<Self> {
        let operation = commitment.operation.as_ref()?;
        let raw = asked::arguments(commitment);
        let text = raw.as_ref().map_or("{}", |raw| raw.get());
        let read = Json::parse(text.as_bytes(), Limits::default()).ok();
        let canonical = read.and_then(|value| String::from_utf8(canon::to_bytes(&value).ok()?).ok());
        let Some(canonical) = canonical else {
            let (lines, canonical, digest) = (vec![], text.to_owned(), String::new());
            return Some(Self { lines, count: 0, canonical, digest, agrees: false });
        };
        let digest = canon::s256_bytes(canonical.as_bytes());
        let mut lines = vec![];
        let mut count = 0;
        if let Ok(value) = Json::parse(canonical.as_bytes(), Limits::default()) {
            for (name, value) in members(&value) {
                lay(name, value, 0, &mut lines, &mut count);
            }
        }
        if count > MOST {
            lines.clear();
        }
        let agrees = digest == operation.params_s256;
        Some(Self { lines, count, canonical, digest: digest.to_string(), agrees })
    }
}

/// Members of an object by name, of an array by place; nothing for other values.
fn members(value: &Json) -> Vec<(String, &Json)> {
    match value {
        Json::Object(members) => members.iter().map(|(name, value)| (label(name), value)).collect(),
        Json::Array(items) => items.iter().enumerate().map(|(at, item)| (format!("[{at}]"), item)).collect(),
        _ => vec![],
    }
}

/// A name as it is, or quoted where it is not plain.
fn label(name: &str) -> String {
    let plain = |letter: char| letter.is_alphanumeric() || "_-.".contains(letter);
    if !name.is_empty() && name.chars().all(plain) {
        name.to_owned()
    } else {
        text(&Json::String(name.to_owned()))
    }
}

fn lay(name: String, value: &Json, level: usize, lines: &mut Vec<Line>, count: &mut usize) {
    *count += 1;
    let inner = members(value);
    if *count <= MOST {
        let leaf = if inner.is_empty() { text(value) } else { String::new() };
        let letters = leaf.chars().count();
        lines.push(Line {
            indent: level.min(INDENTED),
            level: level + 1,
            unlike: unlike(&name),
            name,
            value: leaf,
            holds: holds(value, inner.len()),
            letters: if letters > LONG { letters } else { 0 },
        });
    }
    for (name, value) in inner {
        lay(name, value, level + 1, lines, count);
    }
}

fn holds(value: &Json, members: usize) -> String {
    match (value, members) {
        (_, 0) => String::new(),
        (Json::Array(_), 1) => "a list of 1".into(),
        (Json::Array(_), many) => format!("a list of {many}"),
        (_, 1) => "1 member".into(),
        (_, many) => format!("{many} members"),
    }
}

/// The letters of a name that are not of the keyboard's, by number.
fn unlike(name: &str) -> String {
    let odd = name.chars().filter(|letter| !letter.is_ascii());
    odd.map(|letter| format!("U+{:04X}", u32::from(letter))).collect::<Vec<_>>().join(" ")
}

/// The canonical text of a value that was read from canonical text.
fn text(value: &Json) -> String {
    canon::to_bytes(value).ok().and_then(|bytes| String::from_utf8(bytes).ok()).unwrap_or_default()
}
