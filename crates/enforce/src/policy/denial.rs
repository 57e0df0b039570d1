//! How a no of a policy's is told to whoever asked (binding section 10.2).
//!
//! No member of a decision's context has a fixed meaning, so words of the policy engine are told only where an operator says
//! which member holds them, and then as text: short, on one line, without a letter that hides or reorders others.

use sayso_coaz::answer::{Decision, Decisions};
use sayso_protocol::letters::is_hidden;
use std::str::FromStr;

/// Most letters of a policy engine's that are told.
const TOLD: usize = 300;
/// Longest way to them, in members and in bytes.
const MEMBERS: usize = 8;
const BYTES: usize = 256;

/// How a no of a policy's is told.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Denials {
    /// Where the policy engine has words for whoever asked; without it they are ours.
    pub words: Option<Words>,
    /// Whether a call of a tool is denied by a result that says so, instead of an error. Other messages, and other faults,
    /// are answered with errors all the same.
    pub as_result: bool,
}

/// The way through a decision's context to a text: names of members, with dots between.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Words(Vec<String>);

/// A way that leads nowhere.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "write the names of at most {MEMBERS} members of a decision's context with dots between, as in reason_user.en"
)]
pub struct NoWay;

impl FromStr for Words {
    type Err = NoWay;

    fn from_str(text: &str) -> Result<Self, NoWay> {
        let members: Vec<String> = text.split('.').map(str::to_owned).collect();
        let named = members.iter().all(|member| !member.is_empty() && !member.chars().any(is_hidden));
        if named && members.len() <= MEMBERS && text.len() <= BYTES { Ok(Self(members)) } else { Err(NoWay) }
    }
}

impl Denials {
    /// What is told of a no, where the policy engine has words for it: those of the first decision that is one.
    pub(super) fn said(&self, decisions: &Decisions) -> Option<String> {
        let no = decisions.each().iter().find(|decision| !decision.permits())?;
        self.words.as_ref()?.of(no)
    }
}

impl Words {
    fn of(&self, decision: &Decision) -> Option<String> {
        let context = decision.context.as_ref()?.json();
        let text = self.0.iter().try_fold(context, |value, member| value.get(member))?.as_str()?;
        told(text)
    }
}

/// A stranger's text on one line, its beginning if it is long; nothing where nothing is left of it.
fn told(text: &str) -> Option<String> {
    let mut line = String::new();
    for word in text.split(|letter: char| letter.is_whitespace() || letter.is_control()) {
        let word: String = word.chars().filter(|letter| !is_hidden(*letter)).collect();
        if !word.is_empty() {
            let between = if line.is_empty() { "" } else { " " };
            line.push_str(between);
            line.push_str(&word);
        }
        if line.len() > TOLD.saturating_mul(4) {
            break;
        }
    }
    let mut letters = line.chars();
    let mut short: String = letters.by_ref().take(TOLD).collect();
    if letters.next().is_some() {
        short.push('\u{2026}');
    }
    Some(short).filter(|short| !short.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;
    use sayso_coaz::authzen::Object;
    use sayso_protocol::Json;
    use sayso_protocol::json::Limits;

    fn no(context: &str) -> Decision {
        let context = Json::parse(context.as_bytes(), Limits::default()).unwrap();
        Decision { decision: false, context: Object::of(context) }
    }

    // COAZ-MCP-78: no member has a fixed meaning.
    #[test]
    fn words_are_told_of_the_member_that_was_named_and_of_no_other() {
        let way: Words = "reason_user.en".parse().unwrap();
        assert_eq!(way.of(&no(r#"{"reason_user":{"en":"no trades today"}}"#)).unwrap(), "no trades today");
        for silent in [
            r#"{"reason":"x"}"#,
            "{}",
            r#"{"reason_user":"x"}"#,
            r#"{"reason_user":{"en":["x"]}}"#,
            r#"{"reason_user":{"en":7}}"#,
            r#"{"reason_user":{"en":""}}"#,
            r#"{"reason_user":{"en":" \n\u200b "}}"#,
            r#"{"reason_user":{"en":null}}"#,
        ] {
            assert_eq!(way.of(&no(silent)), None, "{silent}");
        }
        assert_eq!(way.of(&Decision { decision: false, context: None }), None);
    }

    #[test]
    fn words_are_one_short_line_that_hides_nothing() {
        assert_eq!(told("a\n\n  b\u{202e}c\u{200b}d\u{1b}[31m e").unwrap(), "a bcd [31m e");
        assert_eq!(
            told("Größe 日本 \u{1f600} \u{201c}x\u{201d}").unwrap(),
            "Größe 日本 \u{1f600} \u{201c}x\u{201d}"
        );
        let long = told(&"\u{1f600}".repeat(5000)).unwrap();
        assert_eq!((long.chars().count(), long.chars().last()), (TOLD + 1, Some('\u{2026}')));
        assert_eq!(told(&"x".repeat(TOLD)).unwrap().len(), TOLD);
        assert_eq!(told(&format!("{}tail", " ".repeat(1 << 16))).unwrap(), "tail");
    }

    #[test]
    fn a_way_is_names_with_dots_between() {
        for good in ["reason", "reason_user.en", "a.b.c.d.e.f.g.h", "grün"] {
            assert!(good.parse::<Words>().is_ok(), "{good}");
        }
        let long = "x".repeat(BYTES + 1);
        for bad in ["", ".", "a.", ".a", "a..b", "a.b.c.d.e.f.g.h.i", "a\u{200b}", "a b\n", &long] {
            assert_eq!(bad.parse::<Words>(), Err(NoWay), "{bad:?}");
        }
    }
}
