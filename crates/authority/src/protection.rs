//! The protection API as functions: what an enforcement point may ask, over HTTP or in the same process.
//!
//! Where the resource server stands is read again on every call (FED-53), and nothing here returns policy (CORE-121)
//! or has an agent's handle (FED-49). Minting a ticket writes nothing (D-17).

use crate::{Authority, draw};
use sayso_owner::negotiation::STEP_SECONDS;
use sayso_owner::registry::{Registered, Standing};
use sayso_owner::store::{Digest, Found, Unavailable};
use sayso_protocol::json::{Json, Limits};
use sayso_protocol::payload::protection::{
    AccessReport, ConsumeReply, Continuation, Inactive, Introspection, LiveGrant, PermissionFault,
    PermissionReply, PermissionRequest,
};
use sayso_protocol::payload::rpt::{self, Rpt};
use sayso_protocol::ticket::Attempt;
use sayso_protocol::{ClientId, Handle, NegotiationId, OwnerName, ResourceId, S256, Scope, b64, pairwise};
use std::sync::Arc;

/// Longest text of a report's summary, in bytes.
const MAX_SUMMARY: usize = 512;

/// Most scopes in one permission request.
const MOST_SCOPES: usize = 64;

/// On whose behalf, and by whom, the protection API is called: what a PAT stands for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Caller {
    /// The owner whose resources are protected.
    pub owner: OwnerName,
    /// The resource server that asks.
    pub client_id: ClientId,
}

/// Why a call of the protection API is not answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ProtectionFault {
    /// The owner has not approved the resource server, or withdrew it.
    #[error("the owner does not trust this resource server; she can approve it at her authority")]
    NotTrusted,
    /// A permission request that names nothing registered.
    #[error("ask for a resource the owner has here, and scopes it is registered with")]
    Permission(PermissionFault),
    /// A permission request for several resources.
    #[error("a permission request names exactly one resource")]
    Several,
    /// A report of a negotiation that is not this caller's.
    #[error("report the negotiation that introspection named, for a grant of this resource server")]
    UnknownNegotiation,
    /// A report of a round that its grant does not carry.
    #[error(
        "this call carries no further round: the owner allows none, it has had its number, or it is over"
    )]
    NoRound,
    /// A report that is too long.
    #[error("summary must be at most {MAX_SUMMARY} bytes")]
    Summary,
    /// A dependency failed; nothing was spent.
    #[error(transparent)]
    Unavailable(#[from] Unavailable),
}

/// A caller whose standing was read for this call.
pub(crate) struct Admitted(Caller);

impl Admitted {
    /// Admits a caller that was found together with `standing`.
    pub(crate) fn standing(caller: Caller, standing: Standing) -> Result<Self, ProtectionFault> {
        if standing == Standing::Active { Ok(Self(caller)) } else { Err(ProtectionFault::NotTrusted) }
    }
}

/// The protection API of one authority, for callers in this process.
#[derive(Clone)]
pub struct ProtectionApi {
    authority: Arc<Authority>,
}

impl ProtectionApi {
    /// The protection API of `authority`.
    pub fn new(authority: Arc<Authority>) -> Self {
        Self { authority }
    }

    /// Registers an attempt and returns its ticket (BASE-02, CORE-82).
    ///
    /// # Errors
    /// When the caller is not trusted, or nothing such is registered even after asking the resource server again.
    pub async fn permission(
        &self,
        caller: &Caller,
        requests: &[PermissionRequest],
    ) -> Result<PermissionReply, ProtectionFault> {
        self.authority.permission(&self.admit(caller).await?, requests).await
    }

    /// Whether a token is live for this caller (D-20). Spends nothing.
    ///
    /// # Errors
    /// When the caller is not trusted or the store cannot be asked.
    pub async fn introspect(&self, caller: &Caller, token: &str) -> Result<Introspection, ProtectionFault> {
        // INVARIANT: a grant is live only where its resource server is active, which one statement reads together.
        match self.authority.found(caller, token).await? {
            Found::Live(grant, handle) => Ok(self.authority.named(caller, grant, &handle)),
            other => {
                self.admit(caller).await?;
                Ok(self.authority.told(caller, token, other))
            }
        }
    }

    /// Spends a single-use token. `attempt` names this try: the same one is answered as before (D-14).
    ///
    /// # Errors
    /// When the caller is not trusted or the store cannot be asked.
    pub async fn consume(
        &self,
        caller: &Caller,
        token: &str,
        attempt: &str,
    ) -> Result<ConsumeReply, ProtectionFault> {
        self.authority.consume(&self.admit(caller).await?, token, attempt).await
    }

    /// Whether a token is live for the round of its call that was asked for with `state` (D-11). Spends nothing.
    ///
    /// # Errors
    /// When the caller is not trusted or the store cannot be asked.
    pub async fn introspect_round(
        &self,
        caller: &Caller,
        token: &str,
        state: &S256,
    ) -> Result<Introspection, ProtectionFault> {
        self.authority.introspect_round(&self.admit(caller).await?, token, state).await
    }

    /// Takes a round of the call that a token was spent on; `attempt` as in [`Self::consume`].
    ///
    /// # Errors
    /// When the caller is not trusted or the store cannot be asked.
    pub async fn resume(
        &self,
        caller: &Caller,
        token: &str,
        attempt: &str,
        round: &Continuation,
    ) -> Result<ConsumeReply, ProtectionFault> {
        self.authority.resume(&self.admit(caller).await?, token, attempt, round).await
    }

    /// Records an allowed call (FED-48), or that its tool asks for another round of it (D-11).
    ///
    /// # Errors
    /// When the caller is not trusted, the negotiation is not its own, or the store cannot be asked.
    pub async fn report(&self, caller: &Caller, report: &AccessReport) -> Result<(), ProtectionFault> {
        self.authority.report(&self.admit(caller).await?, report).await
    }

    async fn admit(&self, caller: &Caller) -> Result<Admitted, ProtectionFault> {
        let standing = self.authority.store.standing(&caller.owner, &caller.client_id).await?;
        Admitted::standing(caller.clone(), standing.ok_or(ProtectionFault::NotTrusted)?)
    }
}

impl Authority {
    pub(crate) async fn permission(
        &self,
        Admitted(caller): &Admitted,
        requests: &[PermissionRequest],
    ) -> Result<PermissionReply, ProtectionFault> {
        let (resource, scopes) = one_resource(requests)?;
        let registered = self.registered(caller, resource).await?;
        if registered.changed {
            return Err(ProtectionFault::Permission(PermissionFault::ToolChanged));
        }
        let known = &registered.resource.resource_scopes;
        if scopes.is_empty() || !scopes.iter().all(|scope| known.contains(scope)) {
            return Err(ProtectionFault::Permission(PermissionFault::InvalidScope));
        }
        let negotiation = NegotiationId::parse(b64::encode(draw::<16>()?)).map_err(|_| Unavailable)?;
        let attempt = Attempt {
            negotiation,
            owner: caller.owner.clone(),
            resource_server: caller.client_id.clone(),
            resource: resource.clone(),
            scopes,
            expires: self.now().plus(STEP_SECONDS),
        };
        let ticket = self.sealers.seal(&attempt, draw()?, self.now()).map_err(|_| Unavailable)?;
        tracing::info!(family = %attempt.negotiation, resource = %resource, "permission.registered");
        Ok(PermissionReply { ticket, family: Some(attempt.negotiation) })
    }

    /// The registration, asking the resource server once before saying there is none (FED-17).
    async fn registered(
        &self,
        caller: &Caller,
        resource: &ResourceId,
    ) -> Result<Registered, ProtectionFault> {
        let (owner, client_id) = (&caller.owner, &caller.client_id);
        if let Some(known) = self.store.registered(owner, client_id, resource).await? {
            return Ok(known);
        }
        if let Err(fault) = self.pull(owner, client_id).await {
            tracing::warn!(client_id = %client_id, why = %fault, "registry.pull_failed");
        }
        let known = self.store.registered(owner, client_id, resource).await?;
        known.ok_or(ProtectionFault::Permission(PermissionFault::InvalidResourceId))
    }

    pub(crate) async fn introspect(
        &self,
        Admitted(caller): &Admitted,
        token: &str,
    ) -> Result<Introspection, ProtectionFault> {
        Ok(self.told(caller, token, self.found(caller, token).await?))
    }

    async fn found(&self, caller: &Caller, token: &str) -> Result<Found, Unavailable> {
        self.store.introspect(&caller.owner, &caller.client_id, Digest::of(token), self.now()).await
    }

    /// The grant with its agent's name for this owner at this resource server (D-7).
    fn named(&self, caller: &Caller, mut grant: Box<LiveGrant>, handle: &Handle) -> Introspection {
        let name = pairwise::name(&self.pairwise, &caller.owner, &caller.client_id, handle);
        (grant.sub, grant.client_id) = (Some(name.clone()), Some(name));
        Introspection::Live(grant)
    }

    fn told(&self, caller: &Caller, token: &str, found: Found) -> Introspection {
        match found {
            Found::Live(grant, handle) => self.named(caller, grant, &handle),
            Found::Dead(reason) => Introspection::Dead(reason),
            Found::Unknown => Introspection::Dead(self.miss(caller, token)),
        }
    }

    pub(crate) async fn consume(
        &self,
        admitted: &Admitted,
        token: &str,
        attempt: &str,
    ) -> Result<ConsumeReply, ProtectionFault> {
        let Admitted(caller) = admitted;
        let digest = Digest::of(token);
        // Read first, for the log alone: a spent grant no longer tells its negotiation.
        let found = self.store.introspect(&caller.owner, &caller.client_id, digest, self.now()).await?;
        if found == Found::Unknown {
            let error = Some(self.miss(caller, token).as_str().to_owned());
            return Ok(ConsumeReply { consumed: false, error });
        }
        let reply = self.store.consume(&caller.owner, &caller.client_id, digest, attempt, self.now()).await?;
        if let (true, Found::Live(grant, _)) = (reply.consumed, found) {
            tracing::info!(family = %grant.family, "rpt.consumed");
        }
        Ok(reply)
    }

    pub(crate) async fn introspect_round(
        &self,
        Admitted(caller): &Admitted,
        token: &str,
        state: &S256,
    ) -> Result<Introspection, ProtectionFault> {
        let (owner, client_id) = (&caller.owner, &caller.client_id);
        let found = self.store.round(owner, client_id, Digest::of(token), state, self.now()).await?;
        Ok(self.told(caller, token, found))
    }

    pub(crate) async fn resume(
        &self,
        Admitted(caller): &Admitted,
        token: &str,
        attempt: &str,
        round: &Continuation,
    ) -> Result<ConsumeReply, ProtectionFault> {
        let (owner, client_id) = (&caller.owner, &caller.client_id);
        let (digest, now) = (Digest::of(token), self.now());
        let reply = self.store.resume(owner, client_id, digest, attempt, round, now).await?;
        if reply.consumed {
            tracing::info!(tool = %round.operation.tool, "rpt.continued");
        }
        Ok(reply)
    }

    pub(crate) async fn report(
        &self,
        Admitted(caller): &Admitted,
        report: &AccessReport,
    ) -> Result<(), ProtectionFault> {
        if report.summary.as_ref().is_some_and(|summary| summary.len() > MAX_SUMMARY) {
            return Err(ProtectionFault::Summary);
        }
        if let Some(state) = &report.continuation {
            let (owner, client_id, family) = (&caller.owner, &caller.client_id, &report.family);
            let offered = self.store.offer(owner, client_id, family, state, self.now()).await?;
            return if offered { Ok(()) } else { Err(ProtectionFault::NoRound) };
        }
        let recorded = self.store.report(&caller.owner, &caller.client_id, report, self.now()).await?;
        if recorded { Ok(()) } else { Err(ProtectionFault::UnknownNegotiation) }
    }

    /// Why a token that is not in the store is not live. Another owner's or server's is unknown, whatever it is
    /// (CORE-100, FED-39); what claims to be this caller's and does not verify is said to be forged.
    fn miss(&self, caller: &Caller, token: &str) -> Inactive {
        if !claims_to_be_for(caller, token) {
            return Inactive::UnknownToken;
        }
        match Rpt::read(token, self.house.issuer.grants.verifying()) {
            Err(_) => Inactive::InvalidSignature,
            Ok((claims, _)) if claims.exp <= self.now() => Inactive::Expired,
            Ok(_) => Inactive::UnknownToken,
        }
    }
}

/// The one resource of a request and its scopes. Several entries are one request when they name one resource (O-5).
fn one_resource(requests: &[PermissionRequest]) -> Result<(&ResourceId, Vec<Scope>), ProtectionFault> {
    let (first, rest) = requests.split_first().ok_or(ProtectionFault::Several)?;
    if rest.iter().any(|request| request.resource_id != first.resource_id) {
        return Err(ProtectionFault::Several);
    }
    let many = requests.iter().map(|request| request.resource_scopes.len()).sum::<usize>() > MOST_SCOPES;
    if many {
        return Err(ProtectionFault::Permission(PermissionFault::InvalidScope));
    }
    let mut scopes: Vec<Scope> = vec![];
    for scope in requests.iter().flat_map(|request| &request.resource_scopes) {
        if !scopes.contains(scope) {
            scopes.push(scope.clone());
        }
    }
    Ok((&first.resource_id, scopes))
}

/// Whether an unverified token says it is this owner's at this resource server. Decides between two words only.
fn claims_to_be_for(caller: &Caller, token: &str) -> bool {
    let payload = (token.len() <= rpt::LONGEST).then(|| token.split('.').nth(1)).flatten();
    let Some(bytes) = payload.and_then(|part| b64::decode(part).ok()) else { return false };
    let Ok(claims) = Json::parse(&bytes, Limits { bytes: rpt::LONGEST, depth: 16 }) else { return false };
    let says = |member: &str| claims.get(member).and_then(Json::as_str);
    says("owner") == Some(caller.owner.as_str()) && says("aud") == Some(caller.client_id.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(resource: &str, scopes: &[&str]) -> PermissionRequest {
        PermissionRequest {
            resource_id: resource.parse().unwrap(),
            resource_scopes: scopes.iter().map(|scope| scope.parse().unwrap()).collect(),
        }
    }

    #[test]
    fn an_array_of_one_resource_is_one_request() {
        let requests = [request("v/x", &["a"]), request("v/x", &["b"])];
        let (resource, scopes) = one_resource(&requests).unwrap();
        assert_eq!((resource.as_str(), scopes.len()), ("v/x", 2));
        let two = [request("v/x", &["a"]), request("v/y", &["a"])];
        assert_eq!(one_resource(&two).unwrap_err(), ProtectionFault::Several);
        assert_eq!(one_resource(&[]).unwrap_err(), ProtectionFault::Several);
    }

    // CORE-100, FED-39
    #[test]
    fn a_token_is_only_talked_about_to_whom_it_names() {
        let caller = Caller { owner: "alice".parse().unwrap(), client_id: "https://gw".parse().unwrap() };
        let token = |claims: &str| format!("e30.{}.AA", b64::encode(claims));
        assert!(claims_to_be_for(&caller, &token(r#"{"owner":"alice","aud":"https://gw"}"#)));
        for other in [
            r#"{"owner":"bob","aud":"https://gw"}"#,
            r#"{"owner":"alice","aud":"https://x"}"#,
            r#"{"owner":"alice","owner":"alice","aud":"https://gw"}"#,
            "[]",
        ] {
            assert!(!claims_to_be_for(&caller, &token(other)), "{other}");
        }
        assert!(!claims_to_be_for(&caller, "garbage"));
    }
}
