//! The owner's API: who may come in, and the parts behind the door (OWN-01..03).
//!
//! Every request is signed (RFC 9421) by a device key she enrolled; the key says whose data is acted on, and nothing
//! in a path or body can name another owner (CORE-109). No cookie, bearer token or secret opens it (CORE-108).

pub(super) mod connections;
pub(super) mod events;
pub(super) mod ledger;
pub(super) mod links;
pub(super) mod pending;
pub(super) mod policies;
pub(super) mod relink;
pub(super) mod resources;

use super::answer::{Detail, Fault};
use super::received::{Received, Takes};
use crate::Authority;
use axum::extract::rejection::PathRejection;
use axum::extract::{FromRequest, Path, Request};
use http::StatusCode;
use http::header::AUTHORIZATION;
use sayso_owner::ledger::Author;
use sayso_owner::store::Unavailable;
use sayso_protocol::sig::{self, Profile, Proof};
use sayso_protocol::{OwnerName, Thumbprint};
use serde::de::DeserializeOwned;
use std::sync::Arc;

const TAKES: Takes = Takes::json(256 * 1024);

const UNSIGNED: &str = "sign the request (RFC 9421) with an enrolled device key: cover @method, @authority, @path, an \
                        empty authorization, @query if there is one, and content-digest if there is a body";

/// A request of the owner's, proven by one of her device keys.
pub(super) struct Hers {
    /// Who she is.
    pub(super) owner: OwnerName,
    /// What is written as the author of what she does.
    pub(super) author: Author,
    received: Received,
}

impl Hers {
    /// The body as strict JSON of this shape.
    pub(super) fn json<T: DeserializeOwned>(&self) -> Result<T, Detail> {
        self.received.json().map_err(Detail::from)
    }

    /// Whether there is no body.
    pub(super) fn is_empty(&self) -> bool {
        self.received.body.is_empty()
    }

    /// A header of the request, where it is text.
    pub(super) fn header(&self, name: &str) -> Option<&str> {
        self.received.headers.get(name)?.to_str().ok()
    }

    /// The query, each member once.
    pub(super) fn query(&self) -> Result<Vec<(String, String)>, Detail> {
        let mut members: Vec<(String, String)> = vec![];
        let query = self.received.uri.query().unwrap_or_default();
        for (name, value) in url::form_urlencoded::parse(query.as_bytes()) {
            if members.iter().any(|(known, _)| *known == name) {
                return Err(Detail::invalid("the query names a member twice"));
            }
            members.push((name.into_owned(), value.into_owned()));
        }
        Ok(members)
    }
}

impl FromRequest<Arc<Authority>> for Hers {
    type Rejection = Detail;

    async fn from_request(request: Request, authority: &Arc<Authority>) -> Result<Self, Detail> {
        let received = Received::read(request, TAKES).await?;
        // There is no bearer credential here, and one that is offered is not passed over (CORE-107).
        if received.headers.contains_key(AUTHORIZATION) {
            return Err(refused("this API takes no bearer credential; sign the request instead"));
        }
        let (owner, proof) = prove(authority, &received).await?.ok_or_else(|| refused(UNSIGNED))?;
        if !authority.first_use(&proof).await? {
            return Err(refused("this signature was already used; sign every request afresh"));
        }
        Ok(Self { owner, author: Author::Owner(proof.thumbprint.to_string()), received })
    }
}

/// The owner whose enrolled key signed the request, and the proof.
async fn prove(
    authority: &Authority,
    received: &Received,
) -> Result<Option<(OwnerName, Proof)>, Unavailable> {
    let Ok(signatures) = sig::read(&received.headers) else { return Ok(None) };
    for keyid in signatures.keyids() {
        let Some(device) = authority.store.device(&Thumbprint::from_text(keyid)).await? else { continue };
        let Ok(key) = device.jwk.key() else { continue };
        let facts = received.facts(&authority.public);
        if let Ok(proof) = signatures.verify(&facts, &key, &Profile::default(), authority.now()) {
            return Ok(Some((device.owner, proof)));
        }
    }
    Ok(None)
}

fn refused(detail: &'static str) -> Detail {
    Fault::new(StatusCode::UNAUTHORIZED, "invalid_token", detail).into()
}

/// A name in the path, or that there is nothing of that name.
fn named<T>(
    path: Result<Path<String>, PathRejection>,
    read: impl Fn(String) -> Option<T>,
    unknown: &'static str,
) -> Result<T, Detail> {
    path.ok().and_then(|Path(name)| read(name)).ok_or_else(|| Detail::unknown(unknown))
}
