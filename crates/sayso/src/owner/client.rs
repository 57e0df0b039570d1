//! Signed requests to the owner API (OWN-03): the core profile, empty `authorization`, a digest on every body.

use anyhow::{Context as _, bail};
use bytes::Bytes;
use sayso_fetch::{Client as Http, Fetch as _, Limits, Reach};
use sayso_protocol::payload::metadata::{AUTHORITY_PATHS, AuthorityMetadata};
use sayso_protocol::sig::{self, Body, Facts, SignOptions};
use sayso_protocol::{SigningKey, b64};
use serde_json::Value;
use std::path::Path;

const LIMITS: Limits = Limits { bytes: 16 * 1024 * 1024, seconds: 30 };

/// For a stream, which is read as it comes.
const STREAM: Limits = Limits { bytes: 16 * 1024 * 1024, seconds: 2 * 3600 };

/// The authority said no, with its sentence.
#[derive(Debug)]
pub(super) struct Refused {
    sentence: String,
    /// The status of the authority's answer, where it was the authority's.
    status: Option<u16>,
}

impl Refused {
    pub(super) fn because(sentence: &str) -> Self {
        Self { sentence: sentence.to_owned(), status: None }
    }

    /// Whether there is nothing of the name that was given.
    pub(super) fn is_unknown(&self) -> bool {
        self.status == Some(404)
    }

    /// With more words behind.
    pub(super) fn with(self, more: &str) -> Self {
        Self { sentence: self.sentence + more, ..self }
    }
}

impl std::fmt::Display for Refused {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.sentence)
    }
}
impl std::error::Error for Refused {}

/// One owner at one authority.
pub(super) struct Client {
    http: Http,
    key: SigningKey,
    issuer: String,
    endpoint: String,
}

/// One path segment, escaped.
pub(super) fn segment(text: &str) -> String {
    let keep = |byte: &u8| byte.is_ascii_alphanumeric() || b"-._~".contains(byte);
    text.bytes().map(|b| if keep(&b) { char::from(b).to_string() } else { format!("%{b:02X}") }).collect()
}

impl Client {
    pub(super) async fn new(authority: &str, key: &Path) -> anyhow::Result<Self> {
        let pem = std::fs::read_to_string(key).with_context(|| format!("cannot read {}", key.display()))?;
        let key =
            SigningKey::from_pem(&pem).with_context(|| format!("{} holds no Ed25519 key", key.display()))?;
        let http = Http::new(Reach::Configured);
        let issuer = authority.trim_end_matches('/');
        crate::origin::identifier("the authority", issuer)?;
        let [path, ..] = AUTHORITY_PATHS;
        let request = http::Request::get(format!("{issuer}{path}")).body(Bytes::new())?;
        let answer = http.send(request, LIMITS).await.with_context(|| {
            format!("nothing answers at {issuer}; start `sayso up` there, or see that it runs")
        })?;
        let metadata: AuthorityMetadata = serde_json::from_slice(answer.body())
            .context("that is not an authority: its metadata does not read")?;
        if metadata.issuer != issuer {
            bail!("the authority at {issuer} says it is another one");
        }
        Ok(Self { http, key, issuer: metadata.issuer, endpoint: metadata.owner_endpoint })
    }

    /// The authority's issuer.
    pub(super) fn issuer(&self) -> &str {
        &self.issuer
    }

    pub(super) async fn read(&self, path: &str, query: Option<&str>) -> anyhow::Result<Value> {
        self.send(http::Method::GET, path, query, Bytes::new()).await
    }

    pub(super) async fn write(&self, path: &str, body: &Value) -> anyhow::Result<Value> {
        self.send(http::Method::POST, path, None, serde_json::to_vec(body)?.into()).await
    }

    pub(super) async fn edit(&self, path: &str, body: &Value) -> anyhow::Result<Value> {
        self.send(http::Method::PUT, path, None, serde_json::to_vec(body)?.into()).await
    }

    pub(super) async fn delete(&self, path: &str) -> anyhow::Result<Value> {
        self.send(http::Method::DELETE, path, None, Bytes::new()).await
    }

    /// Follows a stream until `enough`, shown each further piece of it, says so, or it ends. `after` is the last event
    /// that was seen.
    pub(super) async fn follow(
        &self,
        path: &str,
        after: Option<&str>,
        enough: &mut (dyn for<'a> FnMut(&'a [u8]) -> bool + Send),
    ) -> anyhow::Result<()> {
        let mut request = self.request(&http::Method::GET, path, None, Bytes::new())?;
        if let Some(after) = after {
            request.headers_mut().insert("last-event-id", after.parse()?);
        }
        let answer = self.http.send_until(request, STREAM, enough).await.context("the stream broke")?;
        if answer.status().is_success() { Ok(()) } else { read(&answer).map(drop) }
    }

    async fn send(
        &self,
        method: http::Method,
        path: &str,
        query: Option<&str>,
        body: Bytes,
    ) -> anyhow::Result<Value> {
        let request = self.request(&method, path, query, body)?;
        let answer = self.http.send(request, LIMITS).await.context("the authority cannot be reached")?;
        read(&answer)
    }

    /// A signed request.
    fn request(
        &self,
        method: &http::Method,
        path: &str,
        query: Option<&str>,
        body: Bytes,
    ) -> anyhow::Result<http::Request<Bytes>> {
        let mut address = format!("{}/{path}", self.endpoint.trim_end_matches('/'));
        if let Some(query) = query {
            address = format!("{address}?{query}");
        }
        let url = url::Url::parse(&address)?;
        let mut request = http::Request::builder().method(method).uri(&address).body(body)?;
        if !request.body().is_empty() {
            request.headers_mut().insert("content-type", http::HeaderValue::from_static("application/json"));
        }
        let nonce = b64::encode(crate::clock::draw::<16>()?);
        let facts = Facts {
            method: method.as_str(),
            scheme: url.scheme(),
            authority: &sig::authority_of(&url).context("the authority's URL has no host")?,
            path: url.path(),
            query: url.query(),
            headers: request.headers(),
            body: Body::Whole(request.body()),
        };
        let options = SignOptions { nonce: Some(&nonce), ..SignOptions::default() };
        let signed = sig::sign(&facts, &self.key, crate::clock::now(), &options)?;
        signed.insert_into(request.headers_mut());
        Ok(request)
    }
}

fn read(answer: &http::Response<Bytes>) -> anyhow::Result<Value> {
    let value: Value = serde_json::from_slice(answer.body()).unwrap_or_default();
    if answer.status().is_success() {
        return Ok(value);
    }
    let sentence = ["detail", "error_description"]
        .iter()
        .find_map(|name| value.get(name)?.as_str())
        .unwrap_or("it gave no reason");
    let status = answer.status().as_u16();
    Err(Refused { sentence: format!("refused ({status}): {sentence}"), status: Some(status) }.into())
}
