//! What is held for a request, and for how long.

use super::*;
use crate::reading::NoRoom;
use crate::scripted::{Scene, post, reusable};
use http::HeaderValue;
use http_body_util::Full;
use std::time::Duration;
use tokio::sync::Notify;
use tokio::time::timeout;

struct Nobody;

#[async_trait::async_trait]
impl Farewell for Nobody {
    async fn leave(&self, _theirs: HeaderValue) {}
}

/// A server that answers when it is told to.
#[derive(Default, Clone)]
struct Waits {
    asked: Arc<Notify>,
    answer: Arc<Notify>,
}

impl Way for Waits {
    type Sender = ();
    type Body = Full<Bytes>;

    async fn checkout(&self, _head: &Head) -> Result<(), Unavailable> {
        Ok(())
    }

    async fn send(&self, _sent: Sent<'_, ()>) -> Result<Response<Full<Bytes>>, Broken> {
        self.asked.notify_one();
        self.answer.notified().await;
        Ok(Response::new(Full::default()))
    }
}

fn large() -> Incoming {
    let padding = "x".repeat(200 << 10);
    let body = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"ping","params":{{"x":"{padding}"}}}}"#);
    let mut incoming = post(body, "ping", None);
    incoming.head.headers.insert("mcp-protocol-version", HeaderValue::from_static("2025-11-25"));
    incoming
}

fn bytes(incoming: &Incoming) -> Full<Bytes> {
    Full::new(crate::scripted::body_of(incoming))
}

// D-10: an older client's call runs on when it hangs up, and so does the claim of its body on memory.
#[tokio::test]
async fn a_body_keeps_its_place_as_long_as_it_is_held() {
    // There is room for one large body.
    let bodies = Arc::new(Bodies::new(usize::MAX));
    let (incoming, way) = (large(), Waits::default());
    let carrier = Arc::new(Carrier::new(Scene::with(reusable()).engine, Arc::new(Nobody)));
    let (held, head, body) = (Arc::clone(&bodies), incoming.head.clone(), bytes(&incoming));
    let calling = way.clone();
    let caller =
        tokio::spawn(async move { drop(carrier.pass(calling, &held, Source::default(), head, body).await) });
    timeout(Duration::from_secs(5), way.asked.notified()).await.unwrap();
    caller.abort();
    assert!(caller.await.unwrap_err().is_cancelled());
    let again = || bodies.read(bytes(&incoming), &incoming.head.headers);
    assert!(matches!(again().await, Err(NoRoom)), "the call runs on with its body");
    way.answer.notify_one();
    let freed = async {
        while again().await.is_err() {
            tokio::task::yield_now().await;
        }
    };
    timeout(Duration::from_secs(5), freed).await.unwrap();
}
