//! Tables of test cases: constants whose lines quote ids, for the tests that name them.
//! A table that names an earlier one has its ids too.

use std::collections::{BTreeMap, BTreeSet};

use super::Language;

/// The ids each constant of a file quotes.
pub(super) struct Tables(BTreeMap<String, BTreeSet<String>>);

impl Tables {
    pub(super) fn read(text: &str, language: Language) -> Tables {
        let mut tables = Tables(BTreeMap::new());
        let mut inside: Option<(usize, Vec<String>)> = None;
        for line in text.lines() {
            let indent = line.len() - line.trim_start().len();
            let (depth, names) = match inside.take() {
                Some(table) => table,
                None => match language.constants(line) {
                    Some(names) => (indent, names),
                    None => continue,
                },
            };
            let ids = [language.ids(line), tables.ids_named_in(line)].concat();
            for name in &names {
                tables.0.entry(name.clone()).or_default().extend(ids.iter().cloned());
            }
            if !language.closes(line, indent == depth) {
                inside = Some((depth, names));
            }
        }
        tables
    }

    /// Every id of every table whose name stands in the line.
    pub(super) fn ids_named_in(&self, line: &str) -> Vec<String> {
        let words = line.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_'));
        words.filter_map(|word| self.0.get(word)).flatten().cloned().collect()
    }
}

impl Language {
    /// The names that the line begins to define, when it does: `const NAME`, or `NAME =` at a module's top.
    fn constants(self, line: &str) -> Option<Vec<String>> {
        let names = match self {
            Language::Rust => {
                let text = line.trim_start().trim_start_matches("pub ");
                let text = text.strip_prefix("const ").or_else(|| text.strip_prefix("static "))?;
                text.split_once(':')?.0
            }
            Language::Python => line.split_once(" = ")?.0,
        };
        let names: Vec<String> = names.split(", ").map(str::to_owned).collect();
        let constant = |name: &String| {
            let mut bytes = name.bytes();
            !name.is_empty() && bytes.all(|b| b.is_ascii_uppercase() || b.is_ascii_digit() || b == b'_')
        };
        names.iter().all(constant).then_some(names)
    }

    /// Whether a table ends with this line; `level` when it is indented as the table's first line was.
    fn closes(self, line: &str, level: bool) -> bool {
        let comment = match self {
            Language::Rust => " //",
            Language::Python => "  #",
        };
        let code = line.split(comment).next().unwrap_or_default().trim_end();
        match self {
            Language::Rust => level && code.ends_with(';'),
            Language::Python => level && !code.ends_with(['[', '(', '{', ',', '\\']),
        }
    }
}
