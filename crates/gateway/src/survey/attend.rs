//! Hearing from a server over HTTP that its tools changed, on a stream of the gateway's own (D-30).
//!
//! What it hears is a reason to survey and nothing more: no word of it is believed. A server that cannot be listened to
//! is surveyed now and then all the same.

use super::remote::{Listening, Remote};
use crate::upstream::stdio::TOOLS_CHANGED;
use crate::upstream::{HttpUpstream, Kind, Upstream};
use http_body_util::BodyExt;
use sayso_enforce::carry::{Events, Told};
use sayso_protocol::Json;
use sayso_protocol::json::Limits;
use std::future::pending;
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::{Instant, sleep, timeout};

/// How long a server may take to open the stream.
const OPENS: Duration = Duration::from_secs(10);
/// The first pause before a stream that ended is opened again; each is twice the one before.
const PAUSE: Duration = Duration::from_secs(1);
/// The longest, and the one after a server said that it has no such stream.
const LONGEST_PAUSE: Duration = Duration::from_secs(300);
/// How long a stream lives before its end is taken for an accident.
const SETTLED: Duration = Duration::from_secs(60);
/// Longest event that is read.
const EVENT: usize = 64 << 10;

impl Upstream {
    /// Listens for [`Self::changes`], for ever. A server over stdio is heard without it.
    pub async fn attend(&self) {
        let Kind::Http(upstream) = &self.0.kind else { return pending().await };
        let mut pause = PAUSE;
        loop {
            let began = Instant::now();
            pause = match listen(upstream, &self.0.changes).await {
                Heard::Nothing => LONGEST_PAUSE,
                Heard::Stream if began.elapsed() > SETTLED => PAUSE,
                Heard::Stream => (pause * 2).min(LONGEST_PAUSE),
            };
            sleep(pause).await;
        }
    }
}

enum Heard {
    /// There is no such stream here.
    Nothing,
    /// A stream that ended, or one that might have been.
    Stream,
}

/// Listens until the stream ends.
async fn listen(upstream: &HttpUpstream, changes: &watch::Sender<u64>) -> Heard {
    let opening = async {
        let (mut remote, _) = Remote::meet(upstream).await.ok()?;
        let listening = remote.listening().await;
        Some((remote, listening))
    };
    let Ok(Some((mut remote, listening))) = timeout(OPENS, opening).await else { return Heard::Stream };
    let mut body = match listening {
        Listening::Stream(body) => body,
        Listening::Broken => return Heard::Stream,
        Listening::Nowhere => {
            remote.leave().await;
            return Heard::Nothing;
        }
    };
    let mut events = Events::bounded(EVENT);
    while let Some(Ok(frame)) = body.frame().await {
        let Some(piece) = frame.data_ref() else { continue };
        for told in events.feed(piece) {
            if matches!(&told, Told::Data(data) if says_so(data)) {
                changes.send_modify(|count| *count = count.wrapping_add(1));
            }
        }
    }
    remote.leave().await;
    Heard::Stream
}

fn says_so(data: &[u8]) -> bool {
    let said = Json::parse(data, Limits { bytes: EVENT, ..Limits::default() }).ok();
    said.is_some_and(|said| said.get("method").and_then(Json::as_str) == Some(TOOLS_CHANGED))
}
