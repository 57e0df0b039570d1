//! The protection API token: one signed login for many questions, in one owner's name (CORE-81).
//!
//! There is no shared secret; the login is signed with the key this resource server publishes (D-22). It is renewed a
//! minute before it ends, by one caller at a time, and a failure is not tried again within a second.

use super::Unavailable;
use super::http::Admission;
use bytes::Bytes;
use http::{HeaderMap, Request, Response, StatusCode};
use sayso_fetch::{Fetch, FetchError, Limits};
use sayso_protocol::json;
use sayso_protocol::sig::{self, Body, Facts, SignOptions, authority_of};
use sayso_protocol::{ClientId, OwnerName, SigningKey, Timestamp, b64};
use serde::Deserialize;
use tokio::sync::Mutex;
use url::Url;

const GRANT: &str = "client_credentials";
const SCOPE: &str = "uma_protection";
const FORM: &str = "application/x-www-form-urlencoded";
/// How long before its end a token is renewed, in seconds.
const MARGIN: i64 = 60;

/// A token and the moment to renew it. Has no `Debug`: it must not print.
#[derive(Clone)]
pub(super) struct Pat {
    pub(super) token: String,
    renew_at: Timestamp,
}

#[derive(Default)]
struct State {
    held: Option<Pat>,
    failed: Option<(Timestamp, Failed)>,
}

/// Why there is no token.
#[derive(Clone, Copy)]
struct Failed {
    why: Unavailable,
    /// Where we stand, when the authority said so.
    told: Option<Admission>,
}

impl From<Unavailable> for Failed {
    fn from(why: Unavailable) -> Self {
        Self { why, told: None }
    }
}

/// Who logs in, and with what.
pub(super) struct Login {
    client_id: ClientId,
    owner: OwnerName,
    key: SigningKey,
    state: Mutex<State>,
}

#[derive(Deserialize)]
struct Refusal {
    error: String,
}

#[derive(Deserialize)]
struct Reply {
    access_token: String,
    expires_in: i64,
}

impl Login {
    pub(super) fn new(client_id: ClientId, owner: OwnerName, key: SigningKey) -> Self {
        Self { client_id, owner, key, state: Mutex::default() }
    }

    pub(super) fn owner(&self) -> &OwnerName {
        &self.owner
    }

    pub(super) fn client_id(&self) -> &ClientId {
        &self.client_id
    }

    pub(super) fn key(&self) -> &SigningKey {
        &self.key
    }

    /// A token that is good now, other than the one just refused.
    pub(super) async fn pat(
        &self,
        fetch: &dyn Fetch,
        token_endpoint: &str,
        now: Timestamp,
        refused: Option<&str>,
    ) -> Result<Pat, Unavailable> {
        self.held(fetch, token_endpoint, now, refused).await.map_err(|failed| failed.why)
    }

    /// Where we stand with the owner.
    pub(super) async fn admission(
        &self,
        fetch: &dyn Fetch,
        token_endpoint: &str,
        now: Timestamp,
    ) -> Result<Admission, Unavailable> {
        match self.held(fetch, token_endpoint, now, None).await {
            Ok(_) => Ok(Admission::Admitted),
            Err(Failed { told: Some(told), .. }) => Ok(told),
            Err(Failed { why, .. }) => Err(why),
        }
    }

    /// What was answered before says nothing any more: something has changed.
    pub(super) async fn anew(&self) {
        self.state.lock().await.failed = None;
    }

    async fn held(
        &self,
        fetch: &dyn Fetch,
        token_endpoint: &str,
        now: Timestamp,
        refused: Option<&str>,
    ) -> Result<Pat, Failed> {
        let mut state = self.state.lock().await;
        if let Some(pat) = &state.held
            && now < pat.renew_at
            && refused != Some(pat.token.as_str())
        {
            return Ok(pat.clone());
        }
        state.held = None;
        if let Some((at, fault)) = state.failed
            && now == at
        {
            return Err(fault);
        }
        match self.log_in(fetch, token_endpoint, now).await {
            Ok(pat) => {
                state.held = Some(pat.clone());
                Ok(pat)
            }
            Err(fault) => {
                state.failed = Some((now, fault));
                Err(fault)
            }
        }
    }

    async fn log_in(&self, fetch: &dyn Fetch, endpoint: &str, now: Timestamp) -> Result<Pat, Failed> {
        let request = self.request(endpoint, now)?;
        // A login spends nothing, whatever became of it.
        let response = fetch.send(request, Limits::DOCUMENT).await.map_err(|_| Unavailable::Unreachable)?;
        if response.status() != StatusCode::OK {
            return Err(refusal(&response));
        }
        let reply: Reply =
            json::strict(response.body(), json::Limits::default()).map_err(|_| Unavailable::Nonsense)?;
        if reply.access_token.is_empty() || reply.expires_in <= 0 {
            return Err(Unavailable::Nonsense.into());
        }
        let life = reply.expires_in.saturating_sub(MARGIN).max(reply.expires_in / 2);
        Ok(Pat { token: reply.access_token, renew_at: now.plus(life) })
    }

    fn request(&self, endpoint: &str, now: Timestamp) -> Result<Request<Bytes>, Unavailable> {
        let body = url::form_urlencoded::Serializer::new(String::new())
            .append_pair("grant_type", GRANT)
            .append_pair("scope", SCOPE)
            .append_pair("client_id", self.client_id.as_str())
            .append_pair("owner", self.owner.as_str())
            .finish();
        let mut headers = HeaderMap::new();
        headers.insert("content-type", http::HeaderValue::from_static(FORM));
        headers.insert("accept", http::HeaderValue::from_static("application/json"));
        sign_in(&mut headers, endpoint, body.as_bytes(), &self.key, now)?;
        let mut request =
            Request::post(endpoint).body(Bytes::from(body)).map_err(|_| Unavailable::Nonsense)?;
        *request.headers_mut() = headers;
        Ok(request)
    }
}

pub(super) fn sign_in(
    headers: &mut HeaderMap,
    endpoint: &str,
    body: &[u8],
    key: &SigningKey,
    now: Timestamp,
) -> Result<(), Unavailable> {
    let url = Url::parse(endpoint).map_err(|_| Unavailable::Nonsense)?;
    let facts = Facts {
        method: "POST",
        scheme: url.scheme(),
        authority: &authority_of(&url).ok_or(Unavailable::Nonsense)?,
        path: url.path(),
        query: url.query(),
        headers,
        body: Body::Whole(body),
    };
    let nonce = super::random_text()?;
    let options = SignOptions { nonce: Some(&nonce), ..SignOptions::default() };
    let signed = sig::sign(&facts, key, now, &options).map_err(|_| Unavailable::Nonsense)?;
    signed.insert_into(headers);
    Ok(())
}

/// What a failed login means: the owner has not said yes, or said no; anything else is a fault of the authority's.
fn refusal(response: &Response<Bytes>) -> Failed {
    let status = response.status().as_u16();
    if !(400..=403).contains(&status) {
        return Unavailable::Unreachable.into();
    }
    let said = json::strict::<Refusal>(response.body(), json::Limits::default()).ok();
    let told = match (status, said.as_ref().map(|said| said.error.as_str())) {
        (401, Some("invalid_client")) => Some(Admission::Unknown),
        (403, Some("authorization_pending")) => Some(Admission::Waits),
        (403, Some("access_denied")) => Some(Admission::Withdrawn),
        _ => None,
    };
    Failed { why: Unavailable::NotAdmitted, told }
}

/// What a failed exchange leaves open.
pub(super) fn unavailable(fault: FetchError) -> Unavailable {
    if fault.nothing_sent() { Unavailable::Unreachable } else { Unavailable::Interrupted }
}

/// 128 fresh random bits as text.
pub(crate) fn random_text() -> Result<String, Unavailable> {
    let mut bytes = [0_u8; 16];
    getrandom::fill(&mut bytes).map_err(|_| Unavailable::Exhausted)?;
    Ok(b64::encode(bytes))
}
