//! SPEC-MAP.md as data: its rows, its tags, and its test column written anew from what the tests quote.
//! The rule: a row is shown by a test that names its id, or says by tag which later work will show it.
//! It does not judge whether a test is a good one.

use std::collections::BTreeSet;

mod quotes;

pub use quotes::{Quote, quotes};

/// The requirement families and how many rows each has. After the requirements, the named cases of the COAZ binding:
/// an input each, and what has to become of it.
pub const FAMILIES: [(&str, usize); 19] = [
    ("BASE", 13),
    ("CORE", 121),
    ("TERMS", 46),
    ("FED", 53),
    ("MCP", 30),
    ("COAZ-FW", 50),
    ("COAZ-MCP", 90),
    ("ROW", 23),
    ("CMP", 3),
    ("ERR", 23),
    ("EX", 23),
    ("AUD", 11),
    ("SUB", 16),
    ("ENV", 12),
    ("EVS", 22),
    ("LST", 17),
    ("MSG", 19),
    ("TOK", 10),
    ("AZ", 20),
];

/// What a test column may say instead of, or beside, a test.
pub const TAGS: [&str; 8] =
    ["complete", "any-server", "hosts", "coaz", "agent", "owner", "operations", "open (D-43)"];

/// Stands in a test column that has neither test nor tag; never in a finished map.
pub const EMPTY: &str = concat!("TO", "DO");

/// Every id the map must hold, in order.
pub fn ids() -> Vec<String> {
    FAMILIES.iter().flat_map(|(name, count)| (1..=*count).map(move |n| format!("{name}-{n:02}"))).collect()
}

/// One requirement's line in the map.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row {
    /// The requirement's id.
    pub id: String,
    /// The section it comes from.
    pub section: String,
    /// What it asks.
    pub requirement: String,
    /// Source files below `crates/`, as paths from the root; empty when the cell is a dash.
    pub files: Vec<String>,
    /// `path::name` of each test.
    pub tests: Vec<String>,
    /// Tags of the work that shows the rest.
    pub tags: Vec<String>,
    /// Entries of the test column that are neither.
    pub unknown: Vec<String>,
}

/// Every row of the map, in its order; lines that are not rows are passed over.
pub fn rows(map: &str) -> Vec<Row> {
    map.lines().filter_map(row).collect()
}

fn cells(line: &str) -> Option<[&str; 5]> {
    let inner = line.strip_prefix("| ")?.strip_suffix(" |")?;
    let cells: Vec<&str> = inner.split(" | ").map(str::trim).collect();
    cells.try_into().ok()
}

fn row(line: &str) -> Option<Row> {
    let [id, section, requirement, file, test] = cells(line)?;
    let (family, _) = id.rsplit_once('-')?;
    FAMILIES.iter().find(|(name, _)| *name == family)?;
    let files = file.split(", ").filter_map(source_path).collect();
    let (mut tests, mut tags, mut unknown) = (Vec::new(), Vec::new(), Vec::new());
    for entry in test.split([',', ';']).map(str::trim) {
        let bin = match entry {
            tag if TAGS.contains(&tag) => &mut tags,
            test if test.contains("::") => &mut tests,
            _ => &mut unknown,
        };
        bin.push(entry.to_owned());
    }
    let (id, section, requirement) = (id.to_owned(), section.to_owned(), requirement.to_owned());
    Some(Row { id, section, requirement, files, tests, tags, unknown })
}

/// `enforce/engine.rs`, in backticks, is `crates/enforce/src/engine.rs`.
fn source_path(cell: &str) -> Option<String> {
    let (package, rest) = cell.trim_matches('`').split_once('/')?;
    Some(format!("crates/{package}/src/{rest}"))
}

/// The same map with its test column as the quotes have it. Tags stay; a row left with neither shows [`EMPTY`],
/// and so does a row of which only half belongs to later work while the other half has no test.
pub fn refill(map: &str, quotes: &[Quote]) -> String {
    let mut filled = String::with_capacity(map.len());
    for line in map.lines() {
        match (row(line), cells(line)) {
            (Some(row), Some([id, section, requirement, file, _])) => {
                let test = column(&row, quotes);
                filled.push_str(&format!("| {id} | {section} | {requirement} | {file} | {test} |\n"));
            }
            _ => {
                filled.push_str(line);
                filled.push('\n');
            }
        }
    }
    filled
}

fn column(row: &Row, quotes: &[Quote]) -> String {
    let tests: BTreeSet<String> =
        quotes.iter().filter(|quote| quote.id == row.id).map(Quote::reference).collect();
    let mut parts = Vec::new();
    let tests = tests.into_iter().collect::<Vec<_>>().join(", ");
    let was_whole = row.tests.is_empty() && row.unknown.is_empty();
    if !tests.is_empty() {
        parts.push(tests);
    } else if row.tags.is_empty() || !was_whole {
        parts.push(EMPTY.to_owned());
    }
    if !row.tags.is_empty() {
        parts.push(row.tags.join(", "));
    }
    parts.join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(id: &str, test: &str) -> String {
        format!("| {id} | Section | asks `a` | `owner/store.rs`, `owner/issue.rs` | {test} |")
    }

    fn quote(id: &str) -> Quote {
        Quote { path: "crates/x/src/y.rs".into(), name: "spends".into(), id: id.into() }
    }

    #[test]
    fn there_are_as_many_ids_as_the_registers_count() {
        assert_eq!(ids().len(), 403 + 199);
        assert_eq!(ids().first().map(String::as_str), Some("BASE-01"));
        assert!(ids().contains(&"CORE-121".to_owned()));
        assert!(ids().contains(&"COAZ-MCP-07".to_owned()));
    }

    #[test]
    fn a_row_tells_tests_from_tags_and_from_neither() {
        let rows = rows(&line("CORE-94", "a.rs::b, c.py::d; hosts, open (D-43), perhaps"));
        let row = rows.first().unwrap();
        assert_eq!(row.files, ["crates/owner/src/store.rs", "crates/owner/src/issue.rs"]);
        assert_eq!(row.tests, ["a.rs::b", "c.py::d"]);
        assert_eq!(row.tags, ["hosts", "open (D-43)"]);
        assert_eq!(row.unknown, ["perhaps"]);
    }

    #[test]
    fn filling_writes_tests_keeps_tags_and_shows_what_is_missing() {
        let fill = |test: &str, quotes: &[Quote]| rows(&refill(&line("MCP-13", test), quotes)).remove(0);
        let found = fill(EMPTY, &[quote("MCP-13"), quote("MCP-01")]);
        assert_eq!((found.tests.len(), found.unknown.len()), (1, 0));
        assert_eq!(fill("gone.rs::gone", &[]).unknown, [EMPTY]);
        assert_eq!(fill("hosts", &[]).tags, ["hosts"]);
        assert!(fill("hosts", &[]).unknown.is_empty());
        let half = fill(&format!("{EMPTY}; hosts"), &[]);
        assert_eq!((half.unknown.len(), half.tags.len()), (1, 1));
        let whole = fill(&format!("{EMPTY}; hosts"), &[quote("MCP-13")]);
        assert_eq!((whole.tests.len(), whole.tags.len(), whole.unknown.len()), (1, 1, 0));
    }
}
