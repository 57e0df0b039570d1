//! Whether the answer to a call asks for another round of it (D-11).
//!
//! Her authority is told of the round before the agent can read that it was asked for, so that whoever answers at once is
//! not refused; the bytes pass as they are. What is too long to be read asks for nothing that will be taken.

use super::body::Piece;
use super::events::{Events, Told};
use crate::engine::Engine;
use sayso_protocol::canon::{S256, s256_bytes};
use sayso_protocol::payload::protection::AccessReport;
use sayso_protocol::{Json, json};
use std::time::Duration;
use tokio::time::timeout;

/// Most bytes of an answer, or of one event of it, that are read for what it asks.
const LONGEST: usize = 1 << 20;
/// How long her authority may take to be told.
const TELL: Duration = Duration::from_secs(2);

const ASKS: &str = "input_required";

/// Reads the answer to a call whose tool may ask.
pub(super) struct Rounds {
    engine: Engine,
    call: AccessReport,
    reader: Reader,
}

enum Reader {
    /// Each event as it passes.
    Events(Events),
    /// One message, held until it is whole.
    Whole { held: Vec<Piece>, bytes: usize },
    /// Too long: the rest passes unread.
    Done,
}

impl Rounds {
    pub(super) fn of(engine: Engine, call: AccessReport, events: bool) -> Self {
        let reader = match events {
            true => Reader::Events(Events::bounded(LONGEST)),
            false => Reader::Whole { held: Vec::new(), bytes: 0 },
        };
        Self { engine, call, reader }
    }

    /// Reads a piece of the answer, or its end; what of it may pass now.
    pub(super) async fn read(&mut self, piece: Option<Piece>) -> Vec<Piece> {
        match &mut self.reader {
            Reader::Done => piece.into_iter().collect(),
            Reader::Events(events) => {
                let data = piece.as_ref().and_then(|piece| piece.as_ref().ok()?.data_ref());
                let told = data.map(|data| events.feed(data)).unwrap_or_default();
                for told in told {
                    if let Told::Data(data) = told {
                        self.tell(&data).await;
                    }
                }
                piece.into_iter().collect()
            }
            Reader::Whole { held, bytes } => {
                let more = matches!(piece, Some(Ok(_)));
                *bytes += size(piece.as_ref());
                held.extend(piece);
                if more && *bytes <= LONGEST {
                    return Vec::new();
                }
                let held = std::mem::take(held);
                self.reader = Reader::Done;
                if !more {
                    self.tell(&joined(&held)).await;
                }
                held
            }
        }
    }

    async fn tell(&self, message: &[u8]) {
        let Some(state) = asked(message) else { return };
        let family = self.call.family.as_str();
        match timeout(TELL, self.engine.offer(self.call.clone(), state)).await {
            Ok(Ok(())) => tracing::info!(family, "continuation.offered"),
            _ => tracing::warn!(family, "continuation.offer_lost"),
        }
    }
}

fn size(piece: Option<&Piece>) -> usize {
    piece.and_then(|piece| piece.as_ref().ok()?.data_ref()).map_or(0, bytes::Bytes::len)
}

fn joined(held: &[Piece]) -> Vec<u8> {
    let data = held.iter().filter_map(|piece| piece.as_ref().ok()?.data_ref());
    data.fold(Vec::new(), |mut whole, data| {
        whole.extend_from_slice(data);
        whole
    })
}

/// The state that an answer asks for another round with. One without is asked for by nothing that could be told again.
fn asked(message: &[u8]) -> Option<S256> {
    let message = Json::parse(message, json::Limits { bytes: LONGEST, ..json::Limits::default() }).ok()?;
    let result = message.get("result")?;
    let asks = result.get("resultType").and_then(Json::as_str) == Some(ASKS);
    asks.then(|| result.get("requestState")?.as_str().map(|state| s256_bytes(state.as_bytes()))).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_result_that_asks_with_a_state_asks() {
        let says =
            |result: &str| asked(format!(r#"{{"jsonrpc":"2.0","id":1,"result":{result}}}"#).as_bytes());
        let state = Some(s256_bytes(b"s\n"));
        assert_eq!(says(r#"{"resultType":"input_required","requestState":"s\n"}"#), state);
        assert_eq!(
            says(r#"{"requestState":"s\u000a","inputRequests":{},"resultType":"input_required"}"#),
            state
        );
        for silent in [
            r#"{"resultType":"complete","requestState":"s"}"#,
            r#"{"requestState":"s"}"#,
            r#"{"resultType":"input_required"}"#,
            r#"{"resultType":"input_required","requestState":7}"#,
            r#"{"resultType":"input_required","requestState":"s","requestState":"t"}"#,
            "[]",
        ] {
            assert_eq!(says(silent), None, "{silent}");
        }
        let long = "s".repeat(LONGEST);
        assert_eq!(says(&format!(r#"{{"resultType":"input_required","requestState":"{long}"}}"#)), None);
        assert_eq!(asked(b"not json"), None);
    }
}
