//! The one client of a session's child, and what the child has to say to it beside answers (D-13).
//!
//! It listens on one stream at a time; what is said while nobody listens is kept, to a bound, for the next listening.
//! Further words are dropped then, the oldest stay: a server's first words are what a client waits for.

use bytes::Bytes;
use std::collections::VecDeque;
use tokio::sync::mpsc;

/// Lines that may wait for a listener who reads slowly, or for one to come.
const LINES: usize = 64;
/// Bytes that are kept for one to come.
const BYTES: usize = 1 << 20;

/// A client.
#[derive(Default)]
pub(super) struct Hearer {
    listening: Option<mpsc::Sender<Bytes>>,
    kept: VecDeque<Bytes>,
}

impl Hearer {
    /// Whether there is a stream it listens on.
    pub(super) fn listens(&self) -> bool {
        self.listening.as_ref().is_some_and(|listening| !listening.is_closed())
    }

    /// A stream to listen on; the one before ends.
    pub(super) fn listen(&mut self) -> mpsc::Receiver<Bytes> {
        let (sender, listening) = mpsc::channel(LINES);
        for line in self.kept.drain(..) {
            // INVARIANT: no more is kept than the channel holds.
            let _ = sender.try_send(line);
        }
        self.listening = Some(sender);
        listening
    }

    /// Says a line to it.
    pub(super) fn hear(&mut self, line: Bytes) {
        let said = match &self.listening {
            Some(listening) if !listening.is_closed() => listening.try_send(line).is_ok(),
            _ => self.keep(line),
        };
        if !said {
            tracing::debug!("upstream.note_dropped");
        }
    }

    fn keep(&mut self, line: Bytes) -> bool {
        let held: usize = self.kept.iter().map(Bytes::len).sum();
        let fits = self.kept.len() < LINES && line.len() <= BYTES.saturating_sub(held);
        if fits {
            self.kept.push_back(line);
        }
        fits
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_said_to_nobody_is_kept_to_a_bound() {
        let mut hearer = Hearer::default();
        hearer.hear(Bytes::from(vec![b'x'; BYTES + 1]));
        for number in 0..=LINES {
            hearer.hear(Bytes::from(number.to_string()));
        }
        let mut first = hearer.listen();
        assert!(hearer.listens());
        let heard: Vec<Bytes> = std::iter::from_fn(|| first.try_recv().ok()).collect();
        assert_eq!((heard.len(), heard.first().cloned()), (LINES, Some(Bytes::from("0"))));
        // Another listening ends the first, and hears what comes.
        let mut second = hearer.listen();
        assert!(first.try_recv().is_err() && first.is_closed());
        hearer.hear(Bytes::from("news"));
        assert_eq!(second.try_recv().ok(), Some(Bytes::from("news")));
        drop(second);
        assert!(!hearer.listens());
        hearer.hear(Bytes::from("later"));
        assert_eq!(hearer.listen().try_recv().ok(), Some(Bytes::from("later")));
    }
}
