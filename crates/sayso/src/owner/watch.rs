//! `sayso owner watch`: her events as they happen, one line each, for as long as she likes.
//!
//! A stream that breaks is taken up where it broke. An event carries words of ours alone, so nothing an agent wrote is
//! printed here.

use super::client::{Client, Refused};
use crate::terminal::{moment, plain};
use serde_json::Value;
use std::io::Write as _;
use std::time::Duration;

/// How long to wait before a broken stream is taken up again.
const PAUSE: Duration = Duration::from_secs(1);
/// Longest line of a stream that is kept.
const LINE: usize = 64 * 1024;

/// One event.
#[derive(Debug, PartialEq)]
pub(super) struct Event {
    /// Its place in her record.
    pub(super) id: String,
    /// What it says.
    pub(super) data: Value,
}

/// Reads events out of a stream's pieces, wherever those were cut.
#[derive(Default)]
pub(super) struct Reader {
    line: Vec<u8>,
    id: String,
    data: String,
}

impl Reader {
    /// The events that a further piece completes.
    pub(super) fn take(&mut self, piece: &[u8]) -> Vec<Event> {
        let mut events = vec![];
        for byte in piece {
            match byte {
                b'\n' => events.extend(self.end_of_line()),
                b'\r' => {}
                byte if self.line.len() < LINE => self.line.push(*byte),
                _ => {}
            }
        }
        events
    }

    fn end_of_line(&mut self) -> Option<Event> {
        let line = String::from_utf8_lossy(&std::mem::take(&mut self.line)).into_owned();
        if line.is_empty() {
            let (id, data) = (std::mem::take(&mut self.id), std::mem::take(&mut self.data));
            return serde_json::from_str(&data).ok().map(|data| Event { id, data });
        }
        match line.split_once(':') {
            Some(("id", id)) => self.id = id.trim().to_owned(),
            Some(("data", data)) => self.data.push_str(data.trim_start()),
            _ => {}
        }
        None
    }
}

/// Prints events until the process ends, or nobody reads what it prints.
pub(super) async fn run(client: &Client, as_json: bool) -> anyhow::Result<Option<String>> {
    let mut last: Option<String> = None;
    let mut lost = false;
    loop {
        let (mut reader, mut unread) = (Reader::default(), false);
        let after = last.clone();
        let mut print = |piece: &[u8]| {
            for event in reader.take(piece) {
                let line = if as_json { event.data.to_string() } else { line(&event.data) };
                unread |= writeln!(std::io::stdout(), "{line}").is_err();
                last = Some(event.id);
            }
            lost = false;
            unread
        };
        let ended = client.follow("events", after.as_deref(), &mut print).await;
        match ended {
            _ if unread => return Ok(None),
            Ok(()) => {}
            Err(fault) if fault.downcast_ref::<Refused>().is_some() => return Err(fault),
            Err(fault) if !lost => {
                eprintln!("sayso owner: {}; trying again", plain(&format!("{fault:#}")));
                lost = true;
            }
            Err(_) => {}
        }
        tokio::time::sleep(PAUSE).await;
    }
}

/// An event as a line.
fn line(data: &Value) -> String {
    let text = |name: &str| data.get(name).and_then(Value::as_str).unwrap_or_default();
    let when = data.get("ts").and_then(Value::as_i64).map(moment).unwrap_or_default();
    let what = match (text("type"), text("what")) {
        ("pending", _) => "waits for you",
        ("decided", "approved") => "approved",
        ("decided", _) => "denied",
        ("resource_server", "promised") => "a resource server asks to act for you",
        ("resource_server", "approved") => "resource server approved",
        ("resource_server", "revoked") => "resource server withdrawn",
        ("resource_server", _) => "resource server",
        ("signed_in", _) => "signed in to your page",
        ("revoked", _) => "ended",
        (other, _) => other,
    };
    let which = if text("family").is_empty() { text("resource_server") } else { text("family") };
    plain(format!("{when}  {what}  {which}").trim_end())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn events_are_read_wherever_the_stream_is_cut() {
        let stream = b": hello\n\nevent: pending\nid: 7\ndata: {\"type\":\"pending\",\"seq\":7}\n\nid: 8\r\ndata: {}\r\n\r\nid: 9\n";
        let whole = [
            Event { id: "7".into(), data: json!({ "type": "pending", "seq": 7 }) },
            Event { id: "8".into(), data: json!({}) },
        ];
        for cut in 0..stream.len() {
            let mut reader = Reader::default();
            let (one, two) = stream.split_at(cut);
            let mut events = reader.take(one);
            events.extend(reader.take(two));
            assert_eq!(events, whole, "cut at {cut}");
        }
    }

    #[test]
    fn a_line_says_when_what_and_which() {
        let pending = json!({ "type": "pending", "what": "promised", "ts": 1_796_039_055, "family": "f-1" });
        assert_eq!(line(&pending), "2026-11-30 11:44:15Z  waits for you  f-1");
        let asks = json!({ "type": "resource_server", "what": "promised", "ts": 1_796_039_055, "family": null,
                           "resource_server": "https://rs.example" });
        let said = "2026-11-30 11:44:15Z  a resource server asks to act for you  https://rs.example";
        assert_eq!(line(&asks), said);
        let odd = json!({ "type": "\u{1b}[2J", "family": null });
        assert_eq!(line(&odd), "  \\u{1b}[2J");
    }
}
