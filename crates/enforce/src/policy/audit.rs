//! What is told of every decision, and what somebody should know of a mapping.
//!
//! Names come from closed lists, digests from the listing and the id from us; what an argument or a claim holds is told
//! only where an operator switched that on, and then as it was put to the decision point and no more: an input that the
//! mapping leaves out is not covered by the decision (COAZ-MCP-90).

use crate::observe::Observer;
use sayso_coaz::{Asked, Category, Fault, Operation, Source};
use sayso_protocol::ToolName;
use serde::Serialize;
use std::collections::BTreeSet;
use std::io::{self, Write};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// Mappings that were warned about and are remembered.
const WARNED: usize = 4096;
/// Most bytes of a question in the log.
const SHOWN: usize = 8 << 10;

/// How a question ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Outcome {
    Permit,
    Deny,
    Fault,
}

impl Outcome {
    /// Of what there is instead of a yes, if anything.
    pub(super) fn of(fault: Option<&Fault>) -> Self {
        match fault {
            None => Outcome::Permit,
            Some(fault) if fault.category() == Category::Denied => Outcome::Deny,
            Some(_) => Outcome::Fault,
        }
    }

    pub(super) fn as_str(self) -> &'static str {
        match self {
            Outcome::Permit => "permit",
            Outcome::Deny => "deny",
            Outcome::Fault => "fault",
        }
    }
}

/// Tells of decisions.
pub(super) struct Audit {
    arguments: bool,
    warned: Mutex<BTreeSet<String>>,
}

impl Audit {
    pub(super) fn new(arguments: bool) -> Self {
        Self { arguments, warned: Mutex::default() }
    }

    /// One event for one decision.
    pub(super) fn tell(
        &self,
        request_id: &str,
        operation: Operation<'_>,
        asked: &Asked,
        outcome: Outcome,
        took: Duration,
    ) {
        // INVARIANT: a method that was mapped is one of those that have a mapping.
        let (method, tool) = (operation.method, operation.tool().and_then(name));
        let tool = tool.as_ref().map(ToolName::as_str);
        let source = match asked.source {
            Source::Default => "default",
            Source::Declared => "declared",
        };
        let mapping = asked.mapping.as_ref().map(ToString::to_string);
        let latency_ms = u64::try_from(took.as_millis()).unwrap_or(u64::MAX);
        let decision = outcome.as_str();
        let question = self.arguments.then(|| shown(&asked.request));
        tracing::info!(
            request_id,
            method,
            tool,
            source,
            mapping,
            decision,
            latency_ms,
            question,
            "policy.decided"
        );
    }

    /// Once for each mapping: that its subject is the word of its author (COAZ-MCP-58).
    pub(super) fn warn(&self, tool: Option<&str>, asked: &Asked, observer: Option<&Arc<dyn Observer>>) {
        let (Some(tool), Some(mapping)) = (tool.and_then(name), &asked.mapping) else { return };
        for warning in &asked.warnings {
            let notice = warning.notice.as_str();
            let mark = format!("{notice} {mapping} {tool}");
            let mut warned = self.warned.lock().unwrap_or_else(PoisonError::into_inner);
            if warned.len() < WARNED && warned.insert(mark) {
                let (tool, mapping) = (tool.as_str(), mapping.to_string());
                tracing::warn!(tool, mapping, notice, "mapping.unverified: {}", warning.notice);
                observer.into_iter().for_each(|observer| observer.warned(notice));
            }
        }
    }
}

/// A tool's name as it may be told.
fn name(tool: &str) -> Option<ToolName> {
    ToolName::parse(tool).ok()
}

/// The beginning of a text, as long as may be shown. More is not taken.
struct Beginning(Vec<u8>);

impl Write for Beginning {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let room = SHOWN.saturating_sub(self.0.len()).min(bytes.len());
        self.0.extend_from_slice(bytes.get(..room).unwrap_or_default());
        Ok(room)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// What was asked, its beginning if it is long: no more is written than is shown.
fn shown(asked: &impl Serialize) -> String {
    let mut beginning = Beginning(Vec::new());
    // Where there is no more room, writing fails, and what is there is the beginning.
    let _ = serde_json::to_writer(&mut beginning, asked);
    beginning.0.utf8_chunks().next().map(|text| text.valid().to_owned()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde::Serializer;
    use std::cell::Cell;

    /// A long list of texts that counts those that were written.
    struct Long<'a>(&'a Cell<usize>);

    impl Serialize for Long<'_> {
        fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
            serializer.collect_seq((0..1 << 20).map(|_| {
                self.0.set(self.0.get() + 1);
                "\u{e9}\u{e9}\u{e9}\u{e9}"
            }))
        }
    }

    // D-35
    #[test]
    fn of_a_long_question_the_beginning_is_written_and_no_more() {
        assert_eq!(shown(&["a", "\u{e9}"]), "[\"a\",\"\u{e9}\"]");
        let written = Cell::new(0);
        let text = shown(&Long(&written));
        assert!((SHOWN - 4..=SHOWN).contains(&text.len()) && text.starts_with("[\"\u{e9}"), "{}", text.len());
        assert!(written.get() < 1000, "{}", written.get());
    }
}
