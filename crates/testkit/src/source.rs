//! The repository's own files, for tests that read them.
//! A file counts when a commit of everything would hold it, so build output and ignored files never do.

use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The folder that holds the workspace manifest.
pub fn root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.ancestors().nth(2).unwrap_or(here).to_path_buf()
}

/// Paths, relative to the root and with `/` between their parts, of every file that is tracked or about to be.
///
/// # Errors
/// When neither git nor a walk through the folders can list them.
pub fn files(root: &Path) -> io::Result<Vec<String>> {
    let git = Command::new("git")
        .args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"])
        .current_dir(root)
        .output();
    let mut found = match git {
        Ok(listing) if listing.status.success() => String::from_utf8_lossy(&listing.stdout)
            .split('\0')
            .filter(|path| !path.is_empty() && root.join(path).is_file())
            .map(str::to_owned)
            .collect(),
        // A source archive has no repository around it.
        _ => {
            let mut found = Vec::new();
            walk(root, "", &mut found)?;
            found
        }
    };
    found.sort();
    found.dedup();
    Ok(found)
}

fn walk(folder: &Path, prefix: &str, found: &mut Vec<String>) -> io::Result<()> {
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        if matches!(name.as_str(), ".git" | "target" | ".sayso" | ".venv" | "__pycache__") {
            continue;
        }
        let path = format!("{prefix}{name}");
        if entry.file_type()?.is_dir() {
            walk(&entry.path(), &format!("{path}/"), found)?;
        } else {
            found.push(path);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_file_is_among_the_files_both_ways() {
        let here = "crates/testkit/src/source.rs".to_owned();
        assert!(files(&root()).unwrap().contains(&here));
        let mut walked = Vec::new();
        walk(&root(), "", &mut walked).unwrap();
        assert!(walked.contains(&here));
        assert!(!walked.iter().any(|path| path.starts_with("target/")));
    }
}
