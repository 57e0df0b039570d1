//! A resource server's token for the protection API: proven by a signature, never by a secret (D-22, FED-30..33).
//!
//! The keys are those the resource publishes at its own origin; where set-up vouched for one, that one alone. The
//! token is random, lives an hour, and is stored as its digest.

use crate::http::received::Received;
use crate::{Authority, draw};
use sayso_owner::registry::{ResourceServer, Standing};
use sayso_owner::store::{Digest, Unavailable};
use sayso_protocol::payload::negotiation::{ProtectionRequest, TokenError, UMA_PROTECTION};
use sayso_protocol::sig::{self, Profile, Proof, SKEW_SECONDS};
use sayso_protocol::{ClientId, OwnerName, b64};
use std::sync::Arc;

/// Seconds a token lives.
pub(crate) const LIFE: i64 = 3600;

/// A token freshly granted. Has no `Debug`.
pub(crate) struct Granted {
    pub(crate) token: String,
    pub(crate) expires_in: i64,
}

/// Why none is granted: the code and what to do.
pub(crate) struct Denied {
    pub(crate) error: TokenError,
    pub(crate) description: &'static str,
}

impl From<Unavailable> for Denied {
    fn from(_: Unavailable) -> Self {
        denied(TokenError::TemporarilyUnavailable, "the store is unavailable; try again")
    }
}

fn denied(error: TokenError, description: &'static str) -> Denied {
    Denied { error, description }
}

const UNPROVEN: &str = "sign the request (RFC 9421) with a key the resource publishes, covering @method, @authority, \
                        @path, authorization and content-digest, freshly for every request";

impl Authority {
    /// Grants a token to the resource server that signed the request.
    pub(crate) async fn protection_token(
        self: &Arc<Self>,
        request: &ProtectionRequest,
        received: &Received,
    ) -> Result<Granted, Denied> {
        if request.offers_secret || received.headers.contains_key(http::header::AUTHORIZATION) {
            return Err(denied(TokenError::InvalidClient, "secrets are not accepted here; sign the request"));
        }
        if request.scope.as_deref() != Some(UMA_PROTECTION) {
            return Err(denied(TokenError::InvalidScope, "ask for the scope uma_protection alone"));
        }
        let unknown = || denied(TokenError::InvalidClient, "name a client_id that an owner here knows");
        let client_id = request.client_id.as_deref().and_then(|id| ClientId::parse(id).ok());
        let known = self.store.resource_server(&client_id.ok_or_else(unknown)?).await?;
        let owner = request.owner.as_deref();
        let named = known.into_iter().filter(|server| owner.is_none_or(|name| is_of(server, name))).collect();
        let (proof, proven) = self.proven(named, received).await?;
        self.remember(&proof).await?;
        let server = only(proven)?;
        match server.status {
            Standing::Active => {}
            Standing::Pending => {
                let why = "the owner has not approved this resource server yet";
                return Err(denied(TokenError::AuthorizationPending, why));
            }
            Standing::Revoked => {
                return Err(denied(TokenError::AccessDenied, "the owner withdrew this resource server"));
            }
        }
        self.grant(&server).await
    }

    /// Those registrations whose key signed the request, with the proof.
    async fn proven(
        self: &Arc<Self>,
        named: Vec<ResourceServer>,
        received: &Received,
    ) -> Result<(Proof, Vec<ResourceServer>), Denied> {
        let unproven = || denied(TokenError::InvalidClient, UNPROVEN);
        let signatures = sig::read(&received.headers).map_err(|_| unproven())?;
        let wanted: Vec<&str> = signatures.keyids().collect();
        let mut proof = None;
        let mut proven = vec![];
        for server in named {
            let keys = self.published_keys(&server, &wanted).await;
            let vouched = keys
                .iter()
                .filter(|key| server.pinned_key.as_ref().is_none_or(|pinned| *pinned == key.thumbprint()));
            let facts = received.facts(&self.public);
            let now = self.now();
            let shown = vouched
                .into_iter()
                .find_map(|key| signatures.verify(&facts, key, &Profile::default(), now).ok());
            if let Some(shown) = shown {
                proof = Some(shown);
                proven.push(server);
            }
        }
        proof.map(|proof| (proof, proven)).ok_or_else(unproven)
    }

    async fn remember(&self, proof: &Proof) -> Result<(), Denied> {
        if self.first_use(proof).await? {
            Ok(())
        } else {
            Err(denied(
                TokenError::InvalidClient,
                "this signature was already used; sign every request afresh",
            ))
        }
    }

    /// Whether every signature of this proof is seen for the first time; remembers each in the same step (D-9).
    pub(crate) async fn first_use(&self, proof: &Proof) -> Result<bool, Unavailable> {
        for proof in proof.each() {
            let artifact = format!("{}.{}", b64::encode(proof.signature_s256), proof.thumbprint);
            let until = proof.created.plus(2 * SKEW_SECONDS + 1);
            if !self.store.remember(Digest::of(&artifact), until, self.now()).await? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    async fn grant(&self, server: &ResourceServer) -> Result<Granted, Denied> {
        let owner: &OwnerName = server.owner.as_ref().ok_or(Unavailable)?;
        let token = b64::encode(draw::<32>()?);
        let expires = self.now().plus(LIFE);
        self.store.grant_pat(Digest::of(&token), owner, &server.client_id, expires).await?;
        tracing::info!(client_id = %server.client_id, "pat.issued");
        Ok(Granted { token, expires_in: LIFE })
    }
}

fn is_of(server: &ResourceServer, owner: &str) -> bool {
    server.owner.as_ref().is_some_and(|name| name.as_str() == owner)
}

fn only(proven: Vec<ResourceServer>) -> Result<ResourceServer, Denied> {
    let mut proven = proven.into_iter();
    match (proven.next(), proven.next()) {
        (Some(server), None) => Ok(server),
        _ => Err(denied(TokenError::InvalidRequest, "several owners know this client; name one as owner")),
    }
}
