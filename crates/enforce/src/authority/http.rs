//! The authority across a network: its published endpoints, asked with a protection API token.
//!
//! Every question is sent once; only after a 401, which says that nothing was done, does one fresh login earn it a second
//! try. What no answer says is not guessed: whoever asked is told what is not known (D-14).

mod introduction;

pub use introduction::{Admission, Introduced};

use super::keys::discover;
use super::pat::{Login, unavailable};
use super::{Authority, Unavailable};
use crate::engine::Clock;
use async_trait::async_trait;
use bytes::Bytes;
use http::{Request, Response, StatusCode};
use sayso_fetch::{Fetch, Limits};
use sayso_protocol::canon::S256;
use sayso_protocol::json;
use sayso_protocol::payload::metadata::AuthorityMetadata;
use sayso_protocol::payload::protection::{
    AccessReport, ConsumeReply, Continuation, Introspection, PermissionFault, PermissionReply,
    PermissionRequest,
};
use sayso_protocol::{ClientId, OwnerName, SigningKey};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use std::sync::Arc;
use tokio::sync::OnceCell;

/// The form member that carries the id of one attempt to spend.
pub const ATTEMPT: &str = "attempt";

/// The form member that names the round of a call (D-11).
pub const CONTINUATION: &str = "continuation";

const FORM: &str = "application/x-www-form-urlencoded";
const JSON: &str = "application/json";

/// An authority reached over HTTP, in one owner's name.
pub struct HttpAuthority {
    fetch: Arc<dyn Fetch>,
    issuer: String,
    login: Login,
    clock: Clock,
    metadata: OnceCell<AuthorityMetadata>,
}

#[derive(Deserialize)]
struct Fault {
    error: String,
}

impl HttpAuthority {
    /// The authority of this issuer, for the resource server that publishes `key`, in one owner's name (CORE-81). Nothing is asked yet.
    pub fn new(
        fetch: Arc<dyn Fetch>,
        issuer: impl Into<String>,
        client_id: ClientId,
        owner: OwnerName,
        key: SigningKey,
        clock: Clock,
    ) -> Self {
        Self {
            fetch,
            issuer: issuer.into(),
            login: Login::new(client_id, owner, key),
            clock,
            metadata: OnceCell::new(),
        }
    }

    async fn metadata(&self) -> Result<&AuthorityMetadata, Unavailable> {
        self.metadata.get_or_try_init(|| discover(self.fetch.as_ref(), &self.issuer)).await
    }

    async fn ask(
        &self,
        endpoint: &str,
        content_type: &str,
        body: Bytes,
    ) -> Result<Response<Bytes>, Unavailable> {
        let token_endpoint = &self.metadata().await?.token_endpoint;
        let pat = self.login.pat(self.fetch.as_ref(), token_endpoint, (self.clock)(), None).await?;
        let response = self.send(endpoint, content_type, body.clone(), &pat.token).await?;
        if response.status() != StatusCode::UNAUTHORIZED {
            return Ok(response);
        }
        let now = (self.clock)();
        let fresh = self.login.pat(self.fetch.as_ref(), token_endpoint, now, Some(&pat.token)).await?;
        self.send(endpoint, content_type, body, &fresh.token).await
    }

    async fn send(
        &self,
        endpoint: &str,
        content_type: &str,
        body: Bytes,
        pat: &str,
    ) -> Result<Response<Bytes>, Unavailable> {
        let request = Request::post(endpoint)
            .header("authorization", format!("Bearer {pat}"))
            .header("content-type", content_type)
            .header("accept", JSON)
            .body(body)
            .map_err(|_| Unavailable::Nonsense)?;
        self.fetch.send(request, Limits::DOCUMENT).await.map_err(unavailable)
    }

    async fn ask_about(
        &self,
        endpoint: fn(&AuthorityMetadata) -> &str,
        members: &[(&str, &str)],
    ) -> Result<Bytes, Unavailable> {
        let body = url::form_urlencoded::Serializer::new(String::new()).extend_pairs(members).finish();
        let endpoint = endpoint(self.metadata().await?);
        let response = self.ask(endpoint, FORM, body.into()).await?;
        match response.status() {
            StatusCode::OK => Ok(response.into_body()),
            other => Err(refused(other)),
        }
    }
}

/// An answer that is none: we are not admitted, or the authority cannot tell. Only a refusal by status says for sure that
/// nothing was done.
fn refused(status: StatusCode) -> Unavailable {
    match status {
        StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => Unavailable::NotAdmitted,
        StatusCode::TOO_MANY_REQUESTS => Unavailable::Unreachable,
        status if status.is_server_error() => Unavailable::Interrupted,
        _ => Unavailable::Nonsense,
    }
}

fn read<T: DeserializeOwned>(body: &[u8]) -> Result<T, Unavailable> {
    json::strict(body, json::Limits::default()).map_err(|_| Unavailable::Nonsense)
}

#[async_trait]
impl Authority for HttpAuthority {
    async fn permission(
        &self,
        request: &PermissionRequest,
    ) -> Result<Result<PermissionReply, PermissionFault>, Unavailable> {
        let body = serde_json::to_vec(request).map_err(|_| Unavailable::Nonsense)?;
        let endpoint = &self.metadata().await?.permission_endpoint;
        let response = self.ask(endpoint, JSON, body.into()).await?;
        match response.status() {
            StatusCode::CREATED => {
                let reply: PermissionReply = read(response.body())?;
                if reply.ticket.is_empty() { Err(Unavailable::Nonsense) } else { Ok(Ok(reply)) }
            }
            StatusCode::BAD_REQUEST => {
                let fault: Fault = read(response.body())?;
                PermissionFault::ALL
                    .into_iter()
                    .find(|known| known.as_str() == fault.error)
                    .map(Err)
                    .ok_or(Unavailable::Nonsense)
            }
            other => Err(refused(other)),
        }
    }

    async fn introspect(&self, token: &str) -> Result<Introspection, Unavailable> {
        let body = self.ask_about(|metadata| &metadata.introspection_endpoint, &[("token", token)]).await?;
        Introspection::from_json(&body).ok_or(Unavailable::Nonsense)
    }

    async fn consume(&self, token: &str, attempt: &str) -> Result<ConsumeReply, Unavailable> {
        let members = [("token", token), (ATTEMPT, attempt)];
        read(&self.ask_about(|metadata| &metadata.consume_endpoint, &members).await?)
    }

    async fn introspect_round(&self, token: &str, state: &S256) -> Result<Introspection, Unavailable> {
        let members = [("token", token), (CONTINUATION, state.as_str())];
        let body = self.ask_about(|metadata| &metadata.introspection_endpoint, &members).await?;
        Introspection::from_json(&body).ok_or(Unavailable::Nonsense)
    }

    async fn resume(
        &self,
        token: &str,
        attempt: &str,
        round: &Continuation,
    ) -> Result<ConsumeReply, Unavailable> {
        let Continuation { state, answers, operation, key } = round;
        let mut members = vec![("token", token), (ATTEMPT, attempt), (CONTINUATION, state.as_str())];
        members.extend([
            ("tool", operation.tool.as_str()),
            ("params_s256", operation.params_s256.as_str()),
            ("jkt", key.as_str()),
        ]);
        members.extend(answers.as_ref().map(|answers| ("answers_s256", answers.as_str())));
        read(&self.ask_about(|metadata| &metadata.consume_endpoint, &members).await?)
    }

    async fn report(&self, report: &AccessReport) -> Result<(), Unavailable> {
        // Reports are the one thing an authority may do without (FED-48 is a SHOULD).
        let Some(endpoint) = &self.metadata().await?.sayso_audit_endpoint else { return Ok(()) };
        let body = serde_json::to_vec(report).map_err(|_| Unavailable::Nonsense)?;
        let status = self.ask(endpoint, JSON, body.into()).await?.status();
        if status.is_success() { Ok(()) } else { Err(refused(status)) }
    }
}

#[cfg(test)]
mod tests;
