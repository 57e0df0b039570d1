//! Words of strangers on a page: text, never markup, and every letter of it to be seen (D-28).
//!
//! Characters that hide or reorder text, and runs of spaces that would push the rest out of sight, are shown by their
//! number in marks that no text can imitate. Nothing is left out. Spans of time are spelled here too.

use sayso_protocol::letters::is_hidden;
use std::fmt::{self, Write};

/// Spaces in a row that are still shown as spaces.
const SPACES: usize = 3;

/// The escaper of every template here.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Visible;

impl askama::filters::Escaper for Visible {
    fn write_escaped_str<W: Write>(&self, dest: W, text: &str) -> fmt::Result {
        write(dest, text)
    }
}

/// Text as HTML text or as a quoted attribute's value.
pub(crate) fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    // INVARIANT: writing to a string does not fail.
    let _ = write(&mut out, text);
    out
}

fn write(mut out: impl Write, text: &str) -> fmt::Result {
    let mut letters = text.chars().peekable();
    while let Some(letter) = letters.next() {
        match letter {
            '&' => out.write_str("&amp;")?,
            '<' => out.write_str("&lt;")?,
            '>' => out.write_str("&gt;")?,
            '"' => out.write_str("&quot;")?,
            '\'' => out.write_str("&#39;")?,
            ' ' => {
                let mut run = 1;
                while letters.next_if_eq(&' ').is_some() {
                    run += 1;
                }
                spaces(&mut out, run)?;
            }
            hidden if is_hidden(hidden) => write!(out, "<i>U+{:04X}</i>", u32::from(hidden))?,
            plain => out.write_char(plain)?,
        }
    }
    Ok(())
}

fn spaces(out: &mut impl Write, run: usize) -> fmt::Result {
    if run > SPACES {
        return write!(out, "<i>{run} spaces</i>");
    }
    (0..run).try_for_each(|_| out.write_char(' '))
}

/// Marks that begin or end a quotation in any script, and those that look like one: initial and final punctuation,
/// Unicode's quotation marks, ornaments, primes, apostrophes, accents that stand alone and ditto marks.
pub(crate) fn is_quote(letter: char) -> bool {
    matches!(letter,
        '"' | '\'' | '`' | '\u{ab}' | '\u{b4}' | '\u{bb}' | '\u{2b9}'..='\u{2bd}' | '\u{2c8}' | '\u{2ca}' | '\u{2cb}'
        | '\u{2dd}' | '\u{2ee}' | '\u{2f4}'..='\u{2f6}' | '\u{374}' | '\u{55a}' | '\u{5f3}' | '\u{5f4}'
        | '\u{7f4}' | '\u{7f5}' | '\u{1425}' | '\u{2018}'..='\u{201f}' | '\u{2032}'..='\u{2037}' | '\u{2039}'
        | '\u{203a}' | '\u{2057}' | '\u{275b}'..='\u{2760}' | '\u{276e}' | '\u{276f}' | '\u{2e02}'..='\u{2e0d}'
        | '\u{2e1c}' | '\u{2e1d}' | '\u{2e20}' | '\u{2e21}' | '\u{2e32}' | '\u{2e41}' | '\u{2e42}' | '\u{3003}'
        | '\u{300c}'..='\u{300f}' | '\u{301d}'..='\u{301f}' | '\u{fe41}'..='\u{fe44}' | '\u{ff02}' | '\u{ff07}'
        | '\u{ff40}' | '\u{ff62}' | '\u{ff63}' | '\u{1f676}'..='\u{1f678}')
}

/// A span in the largest unit that says it exactly.
pub(crate) fn duration(seconds: i64) -> String {
    for (name, length) in [("day", 86_400), ("hour", 3600), ("minute", 60)] {
        if seconds >= length && seconds % length == 0 {
            let count = seconds / length;
            return format!("{count} {name}{}", if count == 1 { "" } else { "s" });
        }
    }
    format!("{seconds} second{}", if seconds == 1 { "" } else { "s" })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_text_and_whole() {
        assert_eq!(escape("<b>x</b> & \"y\" 'z'"), "&lt;b&gt;x&lt;/b&gt; &amp; &quot;y&quot; &#39;z&#39;");
        assert_eq!(
            escape("a\u{202e}\nb\u{200b}\u{e0041}"),
            "a<i>U+202E</i><i>U+000A</i>b<i>U+200B</i><i>U+E0041</i>"
        );
        assert_eq!(escape("a   b"), "a   b");
        assert_eq!(escape(&format!("ok{}; 1000000", " ".repeat(4000))), "ok<i>4000 spaces</i>; 1000000");
        assert_eq!(escape("no\u{a0}break"), "no<i>U+00A0</i>break");
        assert_eq!(escape("Ünïcödé 日本 😀"), "Ünïcödé 日本 😀");
        assert_eq!(escape("<i>U+202E</i>"), "&lt;i&gt;U+202E&lt;/i&gt;", "a mark cannot be imitated");
    }
}
