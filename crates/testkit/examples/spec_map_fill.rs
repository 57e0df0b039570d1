//! Writes the test column of SPEC-MAP.md anew from the ids that tests quote, and names what is still missing.
//! It changes no other column and removes no tag.

use sayso_testkit::{source, spec_map};

fn main() -> std::io::Result<()> {
    let root = source::root();
    let path = root.join("SPEC-MAP.md");
    let map = std::fs::read_to_string(&path)?;
    let filled = spec_map::refill(&map, &spec_map::quotes(&root)?);
    if filled != map {
        std::fs::write(&path, &filled)?;
    }
    let rows = spec_map::rows(&filled);
    let empty: Vec<&str> =
        rows.iter().filter(|row| !row.unknown.is_empty()).map(|row| row.id.as_str()).collect();
    println!("{} rows, {} with neither test nor tag: {}", rows.len(), empty.len(), empty.join(" "));
    let mut gone: Vec<&String> =
        rows.iter().flat_map(|row| &row.files).filter(|file| !root.join(file).is_file()).collect();
    gone.sort();
    gone.dedup();
    for file in gone {
        println!("no such file: {file}");
    }
    Ok(())
}
