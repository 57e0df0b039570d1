//! SPEC-MAP.md is true: every requirement once, each with a tag or with tests that exist and quote it.
//! What a test proves is for its reader to judge.

#![expect(clippy::expect_used, reason = "a test that cannot read the repository has failed")]

use std::collections::BTreeSet;

use sayso_protocol::Json;
use sayso_protocol::json::Limits;
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

/// Files of vectors whose names begin with the case they show, and the test that runs each.
const NAMED: [(&str, &str); 8] = [
    ("values", "values"),
    ("methods", "methods"),
    ("audience", "audience"),
    ("subject", "subject"),
    ("envelopes", "envelopes"),
    ("answers", "answers"),
    ("listing", "listing"),
    ("shape", "shapes"),
];

/// The case that a vector is named after, where it is one of the binding's.
fn case(name: &str) -> Option<String> {
    let id = name.split(' ').next()?;
    let known = spec_map::ids().iter().any(|known| known == id);
    known.then(|| id.to_owned())
}

/// The vectors of a file, whose names or rows say what they show. They hold numbers that only a reader of exact text can
/// read.
fn vectors(file: &str) -> Vec<Json> {
    let text = std::fs::read(source::root().join("vectors").join(file)).expect("the vectors are there");
    let whole = Json::parse(&text, Limits { bytes: 4 << 20, depth: 128 }).expect("the vectors are JSON");
    whole.get("vectors").and_then(Json::as_array).expect("a list of them").to_vec()
}

/// Whether the case is one that the COAZ binding's tests are named after, and no requirement.
fn is_named(id: &str) -> bool {
    let requirement = ["BASE-", "CORE-", "TERMS-", "FED-", "MCP-", "COAZ-"];
    !requirement.iter().any(|family| id.starts_with(family))
}

#[test]
fn a_test_quotes_the_cases_that_its_vectors_have_and_no_others() {
    let quotes = spec_map::quotes(&source::root()).expect("the tests can be read");
    let held = |file: &str, test: &str, shown: BTreeSet<String>| {
        let quoted = quotes.iter().filter(|quote| quote.reference() == test).map(|quote| quote.id.clone());
        let quoted: BTreeSet<String> = quoted.collect();
        let unquoted: Vec<&String> = shown.difference(&quoted).collect();
        assert!(unquoted.is_empty(), "{file} shows what {test} does not quote: {unquoted:?}");
        let without: Vec<&String> = quoted.difference(&shown).filter(|id| is_named(id)).collect();
        assert!(without.is_empty(), "{test} quotes what {file} has no vector for: {without:?}");
    };
    for (file, test) in NAMED {
        let all = vectors(&format!("coaz/{file}.json"));
        let names = all.iter().filter_map(|vector| vector.get("name")?.as_str());
        held(file, &format!("crates/coaz/tests/vectors/main.rs::{test}"), names.filter_map(case).collect());
    }
    let policed = vectors("policed/requests.json");
    let rows = policed.iter().filter_map(|vector| vector.get("rows")?.as_array()).flatten();
    let named = rows.filter_map(Json::as_str).filter_map(case).filter(|id| is_named(id));
    let test = "crates/testkit/tests/hosts.rs::a_policy_alone_has_its_verdict_at_every_host";
    held("policed/requests.json", test, named.collect());
}

// TERMS-45: a duty of deployments is told to them.
#[test]
fn deployments_are_told_of_rosters() {
    let notes = std::fs::read_to_string(source::root().join("docs/deploying.md")).unwrap();
    assert!(notes.contains("TERMS-45") && notes.contains("roster"));
}
