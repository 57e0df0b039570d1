//! The walls of ARCHITECTURE.md, kept by reading the manifests, and the size and head of every source file.
//! A new arrow, crate or long file fails here until the table, and the decision record behind it, say otherwise.

#![expect(
    clippy::expect_used,
    clippy::indexing_slicing,
    reason = "a test that cannot read the repository has failed"
)]

use std::collections::BTreeSet;
use std::process::Command;

use sayso_testkit::source;
use serde_json::Value;

/// Who may name whom. `testkit` may name anybody and nobody may name it.
const ARROWS: [(&str, &[&str]); 13] = [
    ("sayso-protocol", &[]),
    ("sayso-listen", &[]),
    ("sayso-fetch", &["sayso-protocol"]),
    ("sayso-coaz", &["sayso-protocol"]),
    ("sayso-pdp", &["sayso-protocol", "sayso-fetch", "sayso-listen", "sayso-coaz"]),
    ("sayso-enforce", &["sayso-protocol", "sayso-fetch", "sayso-coaz"]),
    ("sayso-gateway", &["sayso-protocol", "sayso-enforce", "sayso-listen"]),
    ("sayso-embed", &["sayso-protocol", "sayso-fetch", "sayso-enforce"]),
    ("sayso-ext-authz", &["sayso-protocol", "sayso-enforce", "sayso-listen"]),
    ("sayso-owner", &["sayso-protocol"]),
    ("sayso-authority", &["sayso-protocol", "sayso-fetch", "sayso-listen", "sayso-owner"]),
    ("sayso-agent", &["sayso-protocol", "sayso-fetch"]),
    (
        "sayso",
        &[
            "sayso-protocol",
            "sayso-fetch",
            "sayso-listen",
            "sayso-coaz",
            "sayso-pdp",
            "sayso-enforce",
            "sayso-gateway",
            "sayso-ext-authz",
            "sayso-owner",
            "sayso-authority",
            "sayso-agent",
        ],
    ),
];

/// Dependencies that carry a power, and the only crates that may hold it.
const POWERS: [(&str, &[&str]); 12] = [
    ("reqwest", &["sayso-fetch"]),
    ("rusqlite", &["sayso-authority"]),
    // Of the host inside a server, for its examples alone.
    (
        "axum",
        &[
            "sayso-authority",
            "sayso-gateway",
            "sayso-embed",
            "sayso-ext-authz",
            "sayso-listen",
            "sayso-pdp",
            "sayso",
        ],
    ),
    // The doors of `sayso-ext-authz` are called over HTTP/2 by its own tests.
    ("hyper", &["sayso-gateway", "sayso-ext-authz", "sayso-listen"]),
    ("cel", &["sayso-coaz"]),
    ("cedar-policy", &["sayso-pdp"]),
    ("cedar-policy-core", &["sayso-pdp"]),
    ("jsonwebtoken", &["sayso-enforce"]),
    ("prost", &["sayso-ext-authz"]),
    ("rmcp", &["sayso-embed", "sayso-agent", "sayso"]),
    ("clap", &["sayso"]),
    ("anyhow", &["sayso"]),
];

/// Crates without I/O: no runtime, no sockets, no files.
const PURE: [&str; 3] = ["sayso-protocol", "sayso-owner", "sayso-coaz"];
const IO: [&str; 8] = ["tokio", "hyper", "hyper-util", "axum", "reqwest", "rusqlite", "futures", "getrandom"];

const LONGEST: usize = 400;

/// (crate, dependency) for every declared dependency, those of tests included.
fn declared() -> Vec<(String, String)> {
    let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned());
    let output = Command::new(cargo)
        .args(["metadata", "--format-version", "1", "--no-deps"])
        .current_dir(source::root())
        .output()
        .expect("cargo runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let metadata: Value = serde_json::from_slice(&output.stdout).expect("cargo metadata is JSON");
    let mut pairs = Vec::new();
    for package in metadata["packages"].as_array().expect("packages") {
        let name = package["name"].as_str().expect("a package has a name");
        pairs.push((name.to_owned(), name.to_owned()));
        for dependency in package["dependencies"].as_array().expect("dependencies") {
            pairs.push((name.to_owned(), dependency["name"].as_str().expect("a name").to_owned()));
        }
    }
    pairs
}

fn is_test_crate(name: &str) -> bool {
    name == "sayso-testkit"
}

#[test]
fn crates_depend_only_along_the_drawn_arrows() {
    let pairs = declared();
    let members: BTreeSet<&str> = pairs.iter().map(|(from, _)| from.as_str()).collect();
    let drawn: BTreeSet<&str> = ARROWS.iter().map(|(from, _)| *from).chain(["sayso-testkit"]).collect();
    assert_eq!(members, drawn, "a crate was added or removed: draw it here and in ARCHITECTURE.md");
    for (from, to) in pairs.iter().filter(|(from, to)| from != to && members.contains(to.as_str())) {
        let allowed = ARROWS.iter().find(|(name, _)| name == from).map_or(&[][..], |(_, allowed)| *allowed);
        let ok = !is_test_crate(to) && (is_test_crate(from) || allowed.contains(&to.as_str()));
        assert!(ok, "{from} must not depend on {to}");
    }
}

#[test]
fn powers_stay_with_the_crates_that_answer_for_them() {
    for (from, to) in declared().iter().filter(|(from, _)| !is_test_crate(from)) {
        if let Some((_, holders)) = POWERS.iter().find(|(name, _)| name == to) {
            assert!(holders.contains(&from.as_str()), "{from} must not depend on {to}; only {holders:?} may");
        }
        let pure = PURE.contains(&from.as_str());
        assert!(!(pure && IO.contains(&to.as_str())), "{from} is pure and must not depend on {to}");
    }
}

fn rust_files() -> Vec<(String, String)> {
    let root = source::root();
    let files = source::files(&root).expect("the repository's files can be listed");
    let rust = files.into_iter().filter(|path| path.ends_with(".rs"));
    rust.map(|path| (std::fs::read_to_string(root.join(&path)).expect("source is UTF-8"), path))
        .map(|(text, path)| (path, text))
        .collect()
}

#[test]
fn files_are_short_and_begin_by_saying_what_they_are() {
    let mut faults = Vec::new();
    for (path, text) in rust_files() {
        if !text.starts_with("//! ") {
            faults.push(format!("{path}: does not begin with //!"));
        }
        let is_test = path.ends_with("/tests.rs") || path.contains("/tests/");
        let lines = text.lines().count();
        if lines > LONGEST && !is_test {
            faults.push(format!("{path}: {lines} lines, more than {LONGEST}"));
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

/// What evaluates expressions of strangers is metered by a rewriting that knows it inside out.
#[test]
fn the_expression_library_is_named_in_one_file() {
    let names_it = |line: &str| {
        let line = line.trim_start().trim_start_matches("pub(super) ");
        line.starts_with("use cel::") || line.starts_with("use ::cel::")
    };
    let files = rust_files().into_iter().filter(|(_, text)| text.lines().any(names_it));
    let named: Vec<String> = files.map(|(path, _)| path).collect();
    assert_eq!(named, ["crates/coaz/src/expr/library.rs"]);
}

#[test]
fn file_names_say_something() {
    let empty =
        ["mod.rs", "util.rs", "utils.rs", "common.rs", "helpers.rs", "types.rs", "manager.rs", "misc.rs"];
    for (path, _) in rust_files() {
        let name = path.rsplit('/').next().unwrap_or_default();
        assert!(!empty.contains(&name), "{path}: name it for what is in it (mod.rs: name.rs beside name/)");
    }
}
