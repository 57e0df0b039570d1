//! docs/attacks.md is whole: every attack has a row for every host, with tests that exist or a reason why there is none.

use sayso_testkit::source;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

const HOSTS: [&str; 5] = ["proxy", "layer", "guard", "http", "grpc"];
/// How many attacks there are at least.
const ATTACKS: usize = 30;

/// The rows of every table of four columns; heads and rules are none.
fn rows(document: &str) -> Vec<[String; 4]> {
    let tables = document.lines().filter(|line| line.starts_with("| ") && !line.starts_with("| attack |"));
    let cells = tables.map(|line| line.trim_matches('|').split(" | ").map(|cell| cell.trim().to_owned()));
    cells.filter_map(|cells| cells.collect::<Vec<_>>().try_into().ok()).collect()
}

/// Whether the file has a function of this name that the runner of its language would run.
fn has_test(path: &Path, name: &str) -> bool {
    let Ok(text) = std::fs::read_to_string(path) else { return false };
    if path.extension().is_some_and(|extension| extension == "py") {
        return name.starts_with("test_") && text.contains(&format!("\ndef {name}("));
    }
    let lines: Vec<&str> = text.lines().map(str::trim_start).collect();
    let (sync, later) = (format!("fn {name}("), format!("async fn {name}("));
    let at = lines.iter().position(|line| line.starts_with(&sync) || line.starts_with(&later));
    at.is_some_and(|at| {
        let above = lines.iter().take(at).rev();
        let mut above = above.take_while(|line| line.starts_with('#') || line.starts_with("//"));
        above.any(|line| line.starts_with("#[test]") || line.starts_with("#[tokio::test"))
    })
}

#[test]
fn every_attack_has_a_test_at_every_host() {
    let root = source::root();
    let document = std::fs::read_to_string(root.join("docs/attacks.md")).expect("docs/attacks.md is there");
    let (mut covered, mut faults) = (BTreeMap::<String, BTreeSet<String>>::new(), Vec::new());
    for [attack, hosts, said, tests] in rows(&document) {
        for host in hosts.split(", ") {
            if !HOSTS.contains(&host) || !covered.entry(attack.clone()).or_default().insert(host.to_owned()) {
                faults.push(format!("{attack}: {host} is no host, or is there twice"));
            }
        }
        if said.len() < 15 {
            faults.push(format!("{attack}: says nothing"));
        }
        for test in tests.split(", ").map(|test| test.trim_matches('`')) {
            if !test.split_once("::").is_some_and(|(path, name)| has_test(&root.join(path), name)) {
                faults.push(format!("{attack}: no test {test}"));
            }
        }
    }
    for (attack, hosts) in &covered {
        if hosts.len() < HOSTS.len() {
            faults.push(format!("{attack}: only at {hosts:?}"));
        }
    }
    assert!(faults.is_empty(), "docs/attacks.md:\n{}", faults.join("\n"));
    assert!(covered.len() >= ATTACKS, "{} attacks", covered.len());
}
