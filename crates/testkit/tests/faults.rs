//! docs/faults.md is whole: every fault it has to list stands in it once, with tests that exist.
//! What a test proves is for its reader to judge.

#![expect(clippy::expect_used, clippy::panic, reason = "a test that cannot read the repository has failed")]

use sayso_testkit::source;
use std::path::Path;

/// The weaknesses of the earlier implementation that this one has to be free of by now.
const WEAKNESSES: [&str; 18] = [
    "E1", "E2", "E3", "E4", "E5", "E6", "E7", "E9", "E10", "E13", "E15", "E16", "E17", "E18", "E19", "E21",
    "E22", "E23",
];

/// The public faults whose areas are built.
const CASES: [&str; 33] = [
    "01", "03", "06", "08", "10", "11", "12", "16", "17", "19", "22", "23", "25", "27", "28", "31", "32",
    "35", "37", "39", "41", "43", "44", "46", "47", "48", "51", "53", "55", "57", "59", "62", "65",
];

/// One row: its id, what went wrong, what happens here, the tests.
struct Row {
    id: String,
    said: [String; 2],
    tests: Vec<String>,
}

fn document() -> String {
    std::fs::read_to_string(source::root().join("docs/faults.md")).expect("docs/faults.md is there")
}

/// The rows of every table; heads and rules are none.
fn rows(document: &str) -> Vec<Row> {
    let tables = document.lines().filter(|line| line.starts_with("| "));
    let cells = tables.map(|line| line.trim_matches('|').split(" | ").map(str::trim).collect::<Vec<_>>());
    let row = |cells: Vec<&str>| {
        let [first, wrong, here, tests] = cells[..] else { return None };
        let tests = tests.split(", ").map(|test| test.trim_matches('`').to_owned()).collect();
        let id = first.split(' ').next().unwrap_or_default().to_owned();
        Some(Row { id, said: [wrong.to_owned(), here.to_owned()], tests })
    };
    cells.map(|cells| row(cells.clone()).unwrap_or_else(|| panic!("not four cells: {cells:?}"))).collect()
}

/// Whether the file has a test of this name: a function that the runner of its language would run.
fn has_test(path: &Path, name: &str) -> bool {
    let Ok(text) = std::fs::read_to_string(path) else { return false };
    let lines: Vec<&str> = text.lines().map(str::trim_start).collect();
    if path.extension().is_some_and(|extension| extension == "py") {
        let defined = format!("def {name}(");
        return name.starts_with("test_") && text.lines().any(|line| line.starts_with(&defined));
    }
    let (sync, later) = (format!("fn {name}("), format!("async fn {name}("));
    let at = lines.iter().position(|line| line.starts_with(&sync) || line.starts_with(&later));
    at.is_some_and(|at| {
        let above =
            lines.iter().take(at).rev().take_while(|line| line.starts_with('#') || line.starts_with("//"));
        above.into_iter().any(|line| line.starts_with("#[test]") || line.starts_with("#[tokio::test"))
    })
}

#[test]
fn every_fault_has_its_row() {
    let listed: Vec<String> = rows(&document())
        .into_iter()
        .map(|row| row.id)
        .filter(|id| !["id", "case"].contains(&&**id))
        .collect();
    let wanted: Vec<&str> = WEAKNESSES.into_iter().chain(CASES).collect();
    assert_eq!(listed, wanted, "rows missing, repeated, unknown or out of order");
}

#[test]
fn every_row_names_tests_that_are_there() {
    let root = source::root();
    let mut faults = Vec::new();
    for row in rows(&document()).iter().filter(|row| !["id", "case"].contains(&&*row.id)) {
        if row.said.iter().any(|said| said.len() < 20) {
            faults.push(format!("{}: says nothing", row.id));
        }
        if row.tests.is_empty() {
            faults.push(format!("{}: no test", row.id));
        }
        for test in &row.tests {
            let found = test.split_once("::").is_some_and(|(path, name)| has_test(&root.join(path), name));
            if !found {
                faults.push(format!("{}: no test {test}", row.id));
            }
        }
    }
    assert!(faults.is_empty(), "docs/faults.md names what is not there:\n{}", faults.join("\n"));
}

#[test]
fn only_what_runs_is_a_test() {
    let here = source::root().join("crates/testkit/tests/faults.rs");
    assert!(has_test(&here, "only_what_runs_is_a_test"));
    assert!(!has_test(&here, "has_test") && !has_test(&here, "only_what_runs"));
    let python = source::root().join("tests/blackbox/test_faults.py");
    assert!(has_test(&python, "test_every_identifier_is_the_configured_text") && !has_test(&python, "raw"));
}
