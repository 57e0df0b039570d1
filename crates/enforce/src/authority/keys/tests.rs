//! How often an authority is asked for its keys, whatever strangers send.

use super::*;
use crate::scripted::{NOW, key};
use bytes::Bytes;
use http::{Request, Response};
use sayso_fetch::FetchError;
use serde_json::json;
use std::sync::atomic::{AtomicI64, AtomicUsize, Ordering};
use tokio::task::JoinSet;

const ISSUER: &str = "https://as.example.test";

/// An authority that is slow, or away.
#[derive(Default)]
struct Wire {
    asked: AtomicUsize,
    away: bool,
}

#[async_trait]
impl Fetch for Wire {
    async fn send(&self, request: Request<Bytes>, _limits: Limits) -> Result<Response<Bytes>, FetchError> {
        tokio::task::yield_now().await;
        if self.away {
            self.asked.fetch_add(1, Ordering::SeqCst);
            return Err(FetchError::Unreachable);
        }
        if request.uri().path() == AUTHORITY_PATHS[0] {
            return Ok(Response::new(Bytes::from(metadata())));
        }
        self.asked.fetch_add(1, Ordering::SeqCst);
        let set = serde_json::to_vec(&KeySet::of([key(7).verifying()])).unwrap();
        Ok(Response::new(Bytes::from(set)))
    }
}

fn metadata() -> String {
    let at = |path: &str| format!("{ISSUER}{path}");
    json!({
        "issuer": ISSUER,
        "token_endpoint": at("/token"),
        "jwks_uri": at("/jwks"),
        "permission_endpoint": at("/perm"),
        "introspection_endpoint": at("/introspect"),
        "consume_endpoint": at("/consume"),
        "terms_endpoint": at("/terms"),
        "owner_endpoint": at("/owner"),
        "grant_types_supported": [],
        "claim_token_formats_supported": [],
        "uma_profiles_supported": [],
    })
    .to_string()
}

fn keys(away: bool) -> (HttpKeys, Arc<Wire>, Arc<AtomicI64>) {
    let wire = Arc::new(Wire { away, ..Wire::default() });
    let time = Arc::new(AtomicI64::new(NOW.0));
    let read = Arc::clone(&time);
    let clock: Clock = Arc::new(move || Timestamp(read.load(Ordering::SeqCst)));
    (HttpKeys::new(wire.clone(), ISSUER, clock), wire, time)
}

#[tokio::test]
async fn many_at_once_make_one_question() {
    for away in [false, true] {
        let (keys, wire, _) = keys(away);
        let keys = Arc::new(keys);
        let askers: JoinSet<_> =
            std::iter::repeat_n(keys, 32).map(|keys| async move { keys.keys(true).await }).collect();
        let told = askers.join_all().await;
        assert!(told.iter().all(|told| told.is_err() == away));
        assert_eq!(wire.asked.load(Ordering::SeqCst), 1, "away: {away}");
    }
}

#[tokio::test]
async fn a_key_nobody_has_is_looked_for_every_few_seconds_and_the_rest_kept() {
    let (keys, wire, time) = keys(false);
    for (after, anew, asked) in
        [(0, false, 1), (1, true, 1), (PAUSE, true, 2), (PAUSE + 1, false, 2), (PAUSE + KEPT, false, 3)]
    {
        time.store(NOW.0 + after, Ordering::SeqCst);
        assert_eq!(keys.keys(anew).await.unwrap().len(), 1);
        assert_eq!(wire.asked.load(Ordering::SeqCst), asked, "after {after} s");
    }
}

#[tokio::test]
async fn an_authority_that_is_away_is_tried_again_soon() {
    let (keys, wire, time) = keys(true);
    for (after, asked) in [(0, 1), (0, 1), (FAILED, 2)] {
        time.store(NOW.0 + after, Ordering::SeqCst);
        assert_eq!(keys.keys(false).await, Err(Unavailable::Unreachable));
        assert_eq!(wire.asked.load(Ordering::SeqCst), asked, "after {after} s");
    }
}
