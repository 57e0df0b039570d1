//! Lines of a child, bounded.
//!
//! A line that is too long is never held whole: what identifies it is read on the way past, so that the one call it was
//! for can be told (D-31). What a line means is not known here.

use super::skim::Skim;
use tokio::io::{AsyncBufReadExt, AsyncRead, BufReader};

/// One line, without its end.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Line {
    /// All of it.
    Whole(Vec<u8>),
    /// Its beginning, and the id of the response it seemed to be.
    Long(Vec<u8>, Option<u64>),
}

/// Reads lines.
pub(super) struct Lines<R> {
    inner: BufReader<R>,
    limit: usize,
}

impl<R: AsyncRead + Unpin> Lines<R> {
    pub(super) fn new(inner: R, limit: usize) -> Self {
        Self { inner: BufReader::with_capacity(64 << 10, inner), limit }
    }

    /// The next line; none when there will be no more. What is not ended by a line feed is not a line.
    pub(super) async fn next(&mut self) -> Option<Line> {
        let mut held = Vec::new();
        let mut passed: Option<Skim> = None;
        loop {
            let seen = self.inner.fill_buf().await.ok().filter(|seen| !seen.is_empty())?;
            let end = seen.iter().position(|byte| *byte == b'\n');
            let piece = seen.get(..end.unwrap_or(seen.len())).unwrap_or_default();
            let used = piece.len() + usize::from(end.is_some());
            match &mut passed {
                Some(skim) => skim.feed(piece),
                None if piece.len() > self.limit.saturating_sub(held.len()) => {
                    let skim = passed.insert(Skim::default());
                    skim.feed(&held);
                    skim.feed(piece);
                }
                None => held.extend_from_slice(piece),
            }
            self.inner.consume(used);
            if end.is_some() {
                return Some(match passed {
                    Some(skim) => Line::Long(held, skim.response()),
                    None => Line::Whole(held.strip_suffix(b"\r").map(<[u8]>::to_vec).unwrap_or(held)),
                });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn lines_are_whole_or_known_to_be_cut() {
        let long = format!(r#"{{"result":"{}","id":7}}"#, "x".repeat(100_000));
        let text = format!("one\r\n\n{long}\ntwo\nunfinished");
        let mut lines = Lines::new(text.as_bytes(), 64);
        assert_eq!(lines.next().await, Some(Line::Whole(b"one".to_vec())));
        assert_eq!(lines.next().await, Some(Line::Whole(Vec::new())));
        let Some(Line::Long(_, Some(7))) = lines.next().await else { panic!("not skimmed") };
        assert_eq!(lines.next().await, Some(Line::Whole(b"two".to_vec())));
        assert_eq!(lines.next().await, None);
    }
}
