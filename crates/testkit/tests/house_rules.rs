//! Words that must not be in any tracked text file: notes to self, registry hosts, paths of one machine.
//! The words are put together from pieces here, so that this file keeps its own rule.

use sayso_testkit::source;

/// (pieces of the word, why it must not stand there)
const BANNED: [(&[&str], &str); 15] = [
    (&["TO", "DO"], "finish it or leave it out"),
    (&["FIX", "ME"], "finish it or leave it out"),
    (&["XX", "X"], "finish it or leave it out"),
    (&["crates", ".io"], "name packages, not the registry they come from"),
    (&["pypi", ".org"], "name packages, not the registry they come from"),
    (&["pythonhosted", ".org"], "name packages, not the registry they come from"),
    (&["npmjs", ".org"], "name packages, not the registry they come from"),
    (&["npmjs", ".com"], "name packages, not the registry they come from"),
    (&["deb.debian", ".org"], "name packages, not the registry they come from"),
    (&["security.debian", ".org"], "name packages, not the registry they come from"),
    (&["proxy.golang", ".org"], "name packages, not the registry they come from"),
    (&["/wo", "rk/"], "a path of one machine"),
    (&["/ro", "ot/"], "a path of one machine"),
    (&["../sha", "red"], "a folder outside the repository"),
    (&["/ho", "me/"], "a path of one machine"),
];

/// Cargo writes the registry's address into its lock file itself, npm likewise.
const WRITTEN_BY_TOOLS: [&str; 2] = ["Cargo.lock", "package-lock.json"];

/// True when `word` stands in `line` as a word of its own: `XYZ` inside a token or a digest is chance.
fn has(line: &str, word: &str) -> bool {
    let joined = |c: Option<char>| c.is_some_and(|c| c.is_ascii_alphanumeric() || c == '_');
    line.match_indices(word).any(|(at, _)| {
        let opens =
            word.starts_with(|c: char| c.is_ascii_alphanumeric()) && joined(line[..at].chars().next_back());
        let rest = &line[at + word.len()..];
        let closes = word.ends_with(|c: char| c.is_ascii_alphanumeric()) && joined(rest.chars().next());
        let inside_a_path = word.starts_with('/') && joined(line[..at].chars().next_back());
        !(opens || closes || inside_a_path)
    })
}

#[test]
fn no_tracked_text_holds_a_banned_word() {
    let root = source::root();
    let mut faults = Vec::new();
    for path in source::files(&root).expect("the repository's files can be listed") {
        if WRITTEN_BY_TOOLS.iter().any(|name| path.ends_with(name)) {
            continue;
        }
        // What is not UTF-8 is not text.
        let Ok(text) = std::fs::read_to_string(root.join(&path)) else { continue };
        for (number, line) in text.lines().enumerate() {
            for (pieces, why) in BANNED {
                let word = pieces.concat();
                if has(line, &word) {
                    faults.push(format!("{path}:{}: {word}: {why}", number + 1));
                }
            }
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn a_word_counts_only_when_it_stands_alone() {
    let word = ["XX", "X"].concat();
    assert!(has(&format!("// {word}: later"), &word));
    assert!(!has(&format!("aGVs{word}bG8"), &word));
    let path = ["/wo", "rk/"].concat();
    assert!(has(&format!("in {path}x"), &path));
    assert!(!has(&format!("a/net{path}x"), &path));
}
