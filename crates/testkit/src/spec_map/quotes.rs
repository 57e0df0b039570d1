//! Which test quotes which requirement: ids in comments inside a test function, directly above it, or in a table of
//! cases that it names. Reads formatted source by its indentation, so no parser is needed.
//! Ranges are not understood: each id is written out.

mod tables;
#[cfg(test)]
mod tests;

use std::io;
use std::path::Path;

use super::FAMILIES;
use tables::Tables;

/// Tests of the tests' own tools: what they quote says nothing of the product.
const TOOLS: [&str; 2] = ["crates/testkit/src/", "tests/blackbox/test_wire.py"];

/// One id quoted by one test function.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Quote {
    /// The file, from the root.
    pub path: String,
    /// The function.
    pub name: String,
    /// The id.
    pub id: String,
}

impl Quote {
    /// How SPEC-MAP.md names the test.
    pub fn reference(&self) -> String {
        format!("{}::{}", self.path, self.name)
    }
}

/// Every quote in the Rust tests below `crates/` and the Python tests below `tests/`.
///
/// # Errors
/// When the repository's files cannot be listed or read.
pub fn quotes(root: &Path) -> io::Result<Vec<Quote>> {
    let mut found = Vec::new();
    for path in crate::source::files(root)? {
        if TOOLS.iter().any(|tool| path.starts_with(tool)) {
            continue;
        }
        let language = match path.rsplit_once('.') {
            Some((stem, "rs")) if stem.starts_with("crates/") => Language::Rust,
            Some((stem, "py")) if stem.starts_with("tests/") => Language::Python,
            _ => continue,
        };
        found.extend(scan(&path, &std::fs::read_to_string(root.join(&path))?, language));
    }
    found.sort();
    found.dedup();
    Ok(found)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Language {
    Rust,
    Python,
}

/// What stands directly above the next item: its comments' ids, whether it is marked as a test, and how many
/// brackets of an attribute or decorator are still open.
#[derive(Default)]
struct Above {
    ids: Vec<String>,
    marked: bool,
    open: usize,
}

fn scan(path: &str, text: &str, language: Language) -> Vec<Quote> {
    let tables = Tables::read(text, language);
    let ids = |line: &str| [language.ids(line), tables.ids_named_in(line)].concat();
    let mut found = Vec::new();
    let mut above = Above::default();
    let mut inside: Option<(usize, String)> = None;
    for line in text.lines() {
        let indent = line.len() - line.trim_start().len();
        if let Some((depth, name)) = inside.clone() {
            if !language.ends(line, indent, depth) {
                found.extend(ids(line).into_iter().map(|id| quote(path, &name, id)));
                continue;
            }
            inside = None;
            if language == Language::Rust {
                continue;
            }
        }
        if language.belongs_above(line.trim(), &mut above) {
            above.ids.extend(ids(line));
            continue;
        }
        let seen = std::mem::take(&mut above);
        if let Some(name) = language.test_name(line.trim(), seen.marked) {
            let quoted = seen.ids.into_iter().chain(ids(line));
            found.extend(quoted.map(|id| quote(path, &name, id)));
            inside = Some((indent, name));
        }
    }
    found
}

fn quote(path: &str, name: &str, id: String) -> Quote {
    Quote { path: path.to_owned(), name: name.to_owned(), id }
}

impl Language {
    fn ends(self, line: &str, indent: usize, depth: usize) -> bool {
        let text = line.trim();
        match self {
            Language::Rust => indent == depth && text == "}",
            // A closing parenthesis at this depth still belongs to the signature.
            Language::Python => !text.is_empty() && indent <= depth && !text.starts_with(')'),
        }
    }

    fn belongs_above(self, text: &str, above: &mut Above) -> bool {
        let (comment, opener) = match self {
            Language::Rust => ("//", "#["),
            Language::Python => ("#", "@"),
        };
        if above.open == 0 && text.starts_with(comment) {
            return true;
        }
        if above.open == 0 && !text.starts_with(opener) {
            return false;
        }
        above.marked |= text.strip_prefix("#[").is_some_and(marks_a_test);
        let opened = text.matches(['(', '[']).count();
        above.open = (above.open + opened).saturating_sub(text.matches([')', ']']).count());
        true
    }

    fn test_name(self, text: &str, marked: bool) -> Option<String> {
        let word = match self {
            Language::Rust => "fn ",
            Language::Python => "def ",
        };
        let mut rest = text;
        for prefix in ["pub ", "async "] {
            rest = rest.strip_prefix(prefix).unwrap_or(rest);
        }
        let rest = rest.strip_prefix(word)?;
        let end = rest.find(|c: char| !(c.is_alphanumeric() || c == '_'))?;
        let name = rest.get(..end)?;
        let is_test = match self {
            Language::Rust => marked && !text.ends_with('}'),
            Language::Python => name.starts_with("test_"),
        };
        is_test.then(|| name.to_owned())
    }

    /// The ids in the line's comment, if it has one.
    fn ids(self, line: &str) -> Vec<String> {
        let mark = match self {
            Language::Rust => "//",
            Language::Python => "#",
        };
        let starts = |at: &usize| line.get(..*at).is_some_and(|l| l.trim().is_empty() || l.ends_with(' '));
        let at = line.match_indices(mark).map(|(at, _)| at).find(starts);
        at.and_then(|at| line.get(at..)).map(ids_in).unwrap_or_default()
    }
}

fn marks_a_test(attribute: &str) -> bool {
    let path = attribute.split(['(', ']']).next().unwrap_or_default();
    path.rsplit("::").next() == Some("test")
}

/// Ids are whole words: a family, a hyphen, digits.
fn ids_in(comment: &str) -> Vec<String> {
    let words = comment.split(|c: char| !(c.is_ascii_alphanumeric() || c == '-'));
    words.filter(|word| is_id(word)).map(str::to_owned).collect()
}

fn is_id(word: &str) -> bool {
    let Some((family, number)) = word.rsplit_once('-') else { return false };
    let known = FAMILIES.iter().any(|(name, _)| *name == family);
    known && number.len() >= 2 && number.bytes().all(|digit| digit.is_ascii_digit())
}
