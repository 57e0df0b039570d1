//! Words of strangers on a terminal: shown as text, never obeyed (D-28).
//!
//! Control, bidirectional and zero-width characters are written as escapes; nothing is cut silently.

use sayso_protocol::letters::is_hidden;

/// The text with every character that could move a cursor, hide or reorder text written as an escape.
pub(crate) fn plain(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if is_hidden(c) {
            out.extend(c.escape_unicode());
        } else {
            out.push(c);
        }
    }
    out
}

/// A word as a shell takes it.
pub(crate) fn shell(word: &str) -> String {
    let bare = |c: char| c.is_ascii_alphanumeric() || "-_./:=@%+,".contains(c);
    if !word.is_empty() && word.chars().all(bare) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', "'\\''"))
    }
}

/// A table with a heading, columns as wide as their widest cell. Cells are made plain here.
pub(crate) fn table(heading: &[&str], rows: &[Vec<String>]) -> String {
    let cells: Vec<Vec<String>> = std::iter::once(heading.iter().map(|cell| (*cell).to_owned()).collect())
        .chain(rows.iter().map(|row| row.iter().map(|cell| plain(cell)).collect()))
        .collect();
    let width = |column: usize| {
        cells.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count()).max().unwrap_or(0)
    };
    let line = |row: &Vec<String>| {
        let last = row.len().saturating_sub(1);
        let padded = row.iter().enumerate().map(|(at, cell)| {
            let pad = if at == last { 0 } else { width(at).saturating_sub(cell.chars().count()) };
            format!("{cell}{}", " ".repeat(pad))
        });
        padded.collect::<Vec<_>>().join("  ")
    };
    cells.iter().map(line).collect::<Vec<_>>().join("\n")
}

/// A moment as UTC, to the second.
pub(crate) fn moment(seconds: i64) -> String {
    sayso_protocol::Timestamp(seconds).utc()
}

/// A duration in the largest unit that says it exactly.
pub(crate) fn duration(seconds: i64) -> String {
    match seconds {
        s if s > 0 && s % 86_400 == 0 => format!("{} d", s / 86_400),
        s if s > 0 && s % 3600 == 0 => format!("{} h", s / 3600),
        s if s > 0 && s % 60 == 0 => format!("{} min", s / 60),
        s => format!("{s} s"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_moves_the_cursor_or_hides() {
        assert_eq!(plain("a\u{1b}[2Jb"), "a\\u{1b}[2Jb");
        assert_eq!(plain("pay\u{202e}001"), "pay\\u{202e}001");
        assert_eq!(plain("VTI\u{e0173}\u{3164}"), "VTI\\u{e0173}\\u{3164}");
        assert_eq!(plain("line\nbreak"), "line\\u{a}break");
        assert_eq!(plain("Ünïcödé 日本"), "Ünïcödé 日本");
    }

    #[test]
    fn moments_and_durations_read_well() {
        assert_eq!(moment(1_796_039_055), "2026-11-30 11:44:15Z");
        assert_eq!(duration(172_800), "2 d");
        assert_eq!(duration(900), "15 min");
        assert_eq!(duration(61), "61 s");
    }

    #[test]
    fn columns_line_up() {
        let text = table(&["A", "B"], &[vec!["long".into(), "x".into()], vec!["s".into(), "y\n".into()]]);
        assert_eq!(text, "A     B\nlong  x\ns     y\\u{a}");
    }
}
