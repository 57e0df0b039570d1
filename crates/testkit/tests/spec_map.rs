//! SPEC-MAP.md is true: every requirement once, each with a tag or with tests that exist and quote it.
//! What a test proves is for its reader to judge.

#![expect(clippy::expect_used, reason = "a test that cannot read the repository has failed")]

use std::collections::BTreeSet;

use sayso_testkit::{source, spec_map};

fn rows() -> Vec<spec_map::Row> {
    let map =
        std::fs::read_to_string(source::root().join("SPEC-MAP.md")).expect("SPEC-MAP.md is at the root");
    spec_map::rows(&map)
}

fn assert_none(what: &str, faults: &[String]) {
    assert!(faults.is_empty(), "{what} (see CONTRIBUTING.md):\n{}", faults.join("\n"));
}

#[test]
fn every_requirement_has_exactly_one_row() {
    let listed: Vec<String> = rows().into_iter().map(|row| row.id).collect();
    assert_eq!(listed, spec_map::ids(), "ids missing, repeated, unknown or out of order");
}

#[test]
fn every_row_says_what_it_asks_and_how_it_is_shown() {
    let mut faults = Vec::new();
    for row in rows() {
        if row.section.is_empty() || row.requirement.is_empty() {
            faults.push(format!("{}: no section or requirement", row.id));
        }
        if !row.unknown.is_empty() {
            faults.push(format!("{}: neither a test nor a tag: {}", row.id, row.unknown.join(", ")));
        }
        if row.files.is_empty() && !row.tests.is_empty() {
            faults.push(format!("{}: tested, but no file is named", row.id));
        }
    }
    assert_none("rows that are not finished", &faults);
}

#[test]
fn every_file_and_test_named_is_there_and_quotes_the_id() {
    let root = source::root();
    let quotes = spec_map::quotes(&root).expect("the tests can be read");
    let quoted: BTreeSet<(String, String)> =
        quotes.iter().map(|quote| (quote.reference(), quote.id.clone())).collect();
    let mut faults = Vec::new();
    for row in rows() {
        for file in row.files.iter().filter(|file| !root.join(file).is_file()) {
            faults.push(format!("{}: no file {file}", row.id));
        }
        for test in &row.tests {
            if !quoted.contains(&(test.clone(), row.id.clone())) {
                faults.push(format!("{}: no test {test} that quotes it", row.id));
            }
        }
    }
    assert_none("the map names what is not there; run the spec_map_fill example", &faults);
}

#[test]
fn every_id_quoted_is_a_requirement() {
    let known = spec_map::ids();
    let quotes = spec_map::quotes(&source::root()).expect("the tests can be read");
    let strangers = quotes.iter().filter(|quote| !known.contains(&quote.id));
    let faults: Vec<String> = strangers.map(|quote| format!("{}: {}", quote.reference(), quote.id)).collect();
    assert_none("ids that no row has", &faults);
}

// TERMS-45: a duty of deployments is told to them.
#[test]
fn deployments_are_told_of_rosters() {
    let notes = std::fs::read_to_string(source::root().join("docs/deploying.md")).unwrap();
    assert!(notes.contains("TERMS-45") && notes.contains("roster"));
}
