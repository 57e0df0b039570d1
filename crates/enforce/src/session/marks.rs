//! A bounded memory of what was seen, by digest, each thing open or struck.
//!
//! The oldest is forgotten for the newest; what is forgotten was never seen. Nothing of what was seen is kept.

use sayso_protocol::canon::sha256;
use std::collections::VecDeque;

type Mark = [u8; 16];

/// At most `N` of them.
#[derive(Default)]
pub(super) struct Marks<const N: usize>(VecDeque<(Mark, bool)>);

impl<const N: usize> Marks<N> {
    /// Remembers something, open; what is known stays as it is.
    pub(super) fn add(&mut self, what: &[u8]) {
        let mark = mark(what);
        // The newest are at the end, and the same is told again soon or never.
        if self.0.iter().rev().any(|(known, _)| *known == mark) {
            return;
        }
        if self.0.len() >= N {
            self.0.pop_front();
        }
        self.0.push_back((mark, false));
    }

    /// Strikes something out, once.
    pub(super) fn strike(&mut self, what: &[u8]) -> bool {
        let mark = mark(what);
        let open = self.0.iter_mut().find(|(known, struck)| *known == mark && !*struck);
        open.map(|(_, struck)| *struck = true).is_some()
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    pub(super) fn has(&self, what: &[u8]) -> bool {
        let mark = mark(what);
        self.0.iter().any(|(known, _)| *known == mark)
    }
}

fn mark(what: &[u8]) -> Mark {
    let mut mark = Mark::default();
    for (to, from) in mark.iter_mut().zip(sha256(what)) {
        *to = from;
    }
    mark
}
