//! The tower layer, around a server in the same process.

use super::authority::Stub;
use super::proxy::canary;
use super::standing::Standing;
use super::told::Told;
use super::vectors::{self, Stage, Vector};
use super::{Host, async_trait};
use axum::body::Body;
use bytes::Bytes;
use futures::FutureExt;
use http::Request;
use sayso_enforce::Authority;
use sayso_protocol::payload::edition::Edition;
use std::sync::Arc;
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

    async fn judge(&self, vector: &Vector, edition: Edition, authority: Arc<Stub>) -> Told {
        let host = open(&vector.stage(edition), authority);
        Told::over_http(host.respond(vector.request()).await, || host.reached()).await
    }
}

/// One, around a server of its own.
pub(crate) fn open(stage: &Stage, authority: Arc<dyn Authority>) -> Standing {
    let (server, behind) = canary();
    let guarded = vectors::site(stage, authority).layer().layer(server);
    let sending = move |request: Request<Bytes>| {
        let guarded = guarded.clone();
        async move { guarded.oneshot(request.map(Body::from)).await.unwrap().map(Body::new) }.boxed()
    };
    Standing { name: "layer", sending: Box::new(sending), behind, _keeping: None }
}
