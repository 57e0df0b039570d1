//! Every committed fuzz input, through the body the fuzzer runs, on the compiler everything else is built with.
//! An input that once broke a body stays here and keeps breaking it until the fault is gone (docs/fuzzing.md).

#![expect(
    clippy::expect_used,
    clippy::indexing_slicing,
    reason = "a test that cannot read the repository has failed"
)]

#[path = "corpus/seeds.rs"]
mod seeds;
#[path = "../../../fuzz/src/lib.rs"]
pub mod targets;

use std::collections::BTreeSet;
use std::fs;
use std::panic::catch_unwind;
use std::path::{Path, PathBuf};

use sayso_testkit::source;
use targets::TARGETS;

/// Inputs a corpus may have: it is read by people too, and every check runs all of it.
const MOST: usize = 60;
/// Bytes an input may have, the length up to which the fuzzer invents.
const LONGEST: usize = 8192;

fn names(folder: &Path) -> BTreeSet<String> {
    let entries = fs::read_dir(folder).expect("a folder of the fuzz targets");
    entries.map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned()).collect()
}

fn replay(target: &str, body: fn(&[u8])) -> Vec<PathBuf> {
    let folder = source::root().join("fuzz/corpus").join(target);
    let files: Vec<PathBuf> = names(&folder).iter().map(|name| folder.join(name)).collect();
    assert!((1..=MOST).contains(&files.len()), "{target}: {} inputs", files.len());
    let broken = files.into_iter().filter(|path| {
        let input = fs::read(path).expect("an input can be read");
        assert!(input.len() <= LONGEST, "{}: {} bytes", path.display(), input.len());
        catch_unwind(|| body(&input)).is_err()
    });
    broken.collect()
}

#[test]
fn no_committed_input_breaks_its_target() {
    let broken: Vec<PathBuf> = TARGETS.iter().flat_map(|(name, body)| replay(name, *body)).collect();
    assert!(broken.is_empty(), "broken by (the message is above): {broken:#?}");
}

#[test]
fn every_body_has_its_target_and_its_corpus() {
    let fuzz = source::root().join("fuzz");
    let bodies: BTreeSet<String> = TARGETS.iter().map(|(name, _)| (*name).to_owned()).collect();
    let files: BTreeSet<String> = bodies.iter().map(|name| format!("{name}.rs")).collect();
    assert_eq!(names(&fuzz.join("fuzz_targets")), files);
    assert_eq!(names(&fuzz.join("corpus")), bodies);
    let manifest = fs::read_to_string(fuzz.join("Cargo.toml")).expect("the manifest of the fuzz targets");
    for name in &bodies {
        assert!(
            manifest.contains(&format!("\nname = \"{name}\"\n")),
            "fuzz/Cargo.toml has no [[bin]] {name}"
        );
    }
}

#[test]
fn every_seed_is_for_a_target_and_breaks_none() {
    let seeds = seeds::all();
    for (target, body) in TARGETS {
        let mut own = seeds.iter().filter(|(name, _)| *name == target).peekable();
        assert!(own.peek().is_some(), "{target}: no seeds");
        own.for_each(|(_, input)| body(input));
    }
    assert!(seeds.iter().all(|(name, _)| TARGETS.iter().any(|(target, _)| target == name)));
}

/// Writes the seeds where `fuzz/shrink` looks for them.
#[test]
#[ignore = "writes files; fuzz/shrink runs it"]
fn write_the_seeds() {
    let folder = source::root().join("target/fuzz/seeds");
    for (index, (target, input)) in seeds::all().iter().enumerate() {
        let own = folder.join(target);
        fs::create_dir_all(&own).expect("a folder for seeds");
        fs::write(own.join(index.to_string()), input).expect("a seed can be written");
    }
}
