//! The authority as a function call, for a gateway in the same process.
//!
//! The same questions, answered by the same code as over HTTP; the resource server's standing is still read from
//! the store on every call (FED-53).

use async_trait::async_trait;
use sayso_authority::{Caller, ProtectionApi, ProtectionFault};
use sayso_enforce::{Authority, Unavailable};
use sayso_protocol::canon::S256;
use sayso_protocol::payload::protection::{
    AccessReport, ConsumeReply, Continuation, Introspection, PermissionFault, PermissionReply,
    PermissionRequest,
};

/// One resource server's view of an authority in this process.
pub struct LocalAuthority {
    api: ProtectionApi,
    caller: Caller,
}

impl LocalAuthority {
    /// The authority as `caller` meets it.
    pub fn new(api: ProtectionApi, caller: Caller) -> Self {
        Self { api, caller }
    }
}

#[async_trait]
impl Authority for LocalAuthority {
    async fn permission(
        &self,
        request: &PermissionRequest,
    ) -> Result<Result<PermissionReply, PermissionFault>, Unavailable> {
        match self.api.permission(&self.caller, std::slice::from_ref(request)).await {
            Ok(reply) => Ok(Ok(reply)),
            Err(ProtectionFault::Permission(fault)) => Ok(Err(fault)),
            Err(fault) => Err(unavailable(&fault)),
        }
    }

    async fn introspect(&self, token: &str) -> Result<Introspection, Unavailable> {
        self.api.introspect(&self.caller, token).await.map_err(|fault| unavailable(&fault))
    }

    async fn consume(&self, token: &str, attempt: &str) -> Result<ConsumeReply, Unavailable> {
        self.api.consume(&self.caller, token, attempt).await.map_err(|fault| unavailable(&fault))
    }

    async fn introspect_round(&self, token: &str, state: &S256) -> Result<Introspection, Unavailable> {
        self.api.introspect_round(&self.caller, token, state).await.map_err(|fault| unavailable(&fault))
    }

    async fn resume(
        &self,
        token: &str,
        attempt: &str,
        round: &Continuation,
    ) -> Result<ConsumeReply, Unavailable> {
        self.api.resume(&self.caller, token, attempt, round).await.map_err(|fault| unavailable(&fault))
    }

    async fn report(&self, report: &AccessReport) -> Result<(), Unavailable> {
        self.api.report(&self.caller, report).await.map_err(|fault| unavailable(&fault))
    }
}

/// A store that did not answer may have written: only a refusal is known to have done nothing.
fn unavailable(fault: &ProtectionFault) -> Unavailable {
    match fault {
        ProtectionFault::NotTrusted => Unavailable::NotAdmitted,
        ProtectionFault::Unavailable(_) => Unavailable::Interrupted,
        _ => Unavailable::Nonsense,
    }
}
