//! The tower layer, around a server in the same process.

use super::authority::Stub;
use super::proxy::canary;
use super::told::Told;
use super::vectors::{self, Vector};
use super::{Host, async_trait};
use axum::body::Body;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use tower::{Layer, ServiceExt};

pub(crate) struct OverHttp;

#[async_trait]
impl Host for OverHttp {
    fn name(&self) -> &'static str {
        "layer"
    }

    fn sees(&self, _vector: &Vector) -> bool {
        true
    }

    async fn judge(&self, vector: &Vector, authority: Arc<Stub>) -> Told {
        let (server, count) = canary();
        let guarded = vectors::site(vector, authority).layer().layer(server);
        let response = guarded.oneshot(vector.request::<Body>()).await.unwrap();
        Told::over_http(response, || count.load(Ordering::SeqCst)).await
    }
}
