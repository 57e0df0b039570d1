//! Where an agent has a provider's word from for whom it acts (CORE-35, CORE-37): from a file, from an exchange at the
//! provider, or from the program.
//!
//! What is exchanged goes to the one provider it was configured for, at that provider's own origin, and to nobody an
//! authority merely names. An assertion that is not for the authority that asks is not shown to it.

use crate::fault::{Fault, Party};
use crate::folder::{FolderFault, read_private};
use crate::shows::BadShow;
use async_trait::async_trait;
use bytes::Bytes;
use http::header::{ACCEPT, CONTENT_TYPE};
use sayso_fetch::{Fetch, FetchError, Limits, get};
use sayso_protocol::payload::assertion::{FORMAT, RequiredIdentity, Said, is_provider};
use sayso_protocol::payload::credential::provider_addresses;
use sayso_protocol::{SigningKey, Timestamp, b64, json, jws};
use serde::Deserialize;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use url::Url;
use url::form_urlencoded::Serializer;

/// What is asked for.
pub struct Wanted<'a> {
    /// The authority that asks.
    pub authority: &'a str,
    /// What it asks for. Every text in it is a stranger's.
    pub demand: &'a RequiredIdentity,
    /// The key that signs here, to which an assertion can be bound.
    pub key: &'a SigningKey,
    /// The time.
    pub now: Timestamp,
}

/// Where assertions come from.
#[async_trait]
pub trait Assertions: Send + Sync {
    /// An assertion that meets a demand, or none where there is none for it.
    ///
    /// # Errors
    /// When there should be one and it cannot be had.
    async fn assertion(&self, wanted: &Wanted<'_>) -> Result<Option<String>, Fault>;
}

/// Whether a text is an assertion of a provider that is named, and for whoever asks.
fn meets(text: &str, wanted: &Wanted<'_>) -> bool {
    let Wanted { demand, authority, .. } = wanted;
    Said::read(text)
        .is_ok_and(|said| demand.issuer.iter().any(|named| named == said.issuer()) && said.is_for(authority))
}

/// An assertion in a file (0600), got by other means and read anew each time.
pub struct AssertionFile {
    path: PathBuf,
}

impl AssertionFile {
    /// The assertion in this file.
    #[must_use]
    pub fn at(path: &Path) -> AssertionFile {
        AssertionFile { path: path.to_owned() }
    }
}

#[async_trait]
impl Assertions for AssertionFile {
    async fn assertion(&self, wanted: &Wanted<'_>) -> Result<Option<String>, Fault> {
        let text = secret_text(&self.path)?;
        Ok(Some(text).filter(|text| meets(text, wanted)))
    }
}

/// An exchange of what a person got from a provider for an assertion, at that provider (RFC 8693). The request is proven
/// with the agent's key (RFC 9449), so that a provider can bind the assertion to it.
pub struct Exchange {
    provider: String,
    /// The token endpoint, where it is not the one the provider publishes.
    pub token_endpoint: Option<Url>,
    subject_token: PathBuf,
    /// What the subject token is.
    pub subject_token_type: String,
    /// The name the provider knows this program by, and the file (0600) with its secret, if it has one.
    pub client: Option<(String, Option<PathBuf>)>,
    fetch: Arc<dyn Fetch>,
}

#[derive(Deserialize)]
struct Published {
    issuer: String,
    token_endpoint: Url,
}

#[derive(Deserialize)]
struct Exchanged {
    access_token: String,
    issued_token_type: String,
}

impl Exchange {
    /// Exchanges what is in the file (0600) at this provider.
    ///
    /// # Errors
    /// When the provider is no https URL in its plain form.
    pub fn at(provider: &str, subject_token: &Path, fetch: Arc<dyn Fetch>) -> Result<Exchange, Fault> {
        if !is_provider(provider) {
            return Err(BadShow::Provider.into());
        }
        Ok(Exchange {
            provider: provider.to_owned(),
            token_endpoint: None,
            subject_token: subject_token.to_owned(),
            subject_token_type: "urn:ietf:params:oauth:token-type:id_token".into(),
            client: None,
            fetch,
        })
    }

    /// Where the exchange is: as configured, else as the provider publishes; at its own origin, whoever says so.
    async fn endpoint(&self) -> Result<Url, Fault> {
        let found = match &self.token_endpoint {
            Some(configured) => configured.clone(),
            None => self.published().await?,
        };
        let own = Url::parse(&self.provider).is_ok_and(|provider| provider.origin() == found.origin());
        if own && found.username().is_empty() { Ok(found) } else { Err(BadShow::Endpoint.into()) }
    }

    async fn published(&self) -> Result<Url, Fault> {
        let mut why = FetchError::Unreachable;
        for address in provider_addresses(&self.provider).into_iter().flatten() {
            match get(&*self.fetch, &address, Limits::DOCUMENT).await {
                Ok(bytes) => {
                    let read: Option<Published> = json::strict(&bytes, json::Limits::default()).ok();
                    let own = read.filter(|read| read.issuer == self.provider);
                    return own.map(|own| own.token_endpoint).ok_or_else(|| BadShow::Endpoint.into());
                }
                Err(fault) => why = fault,
            }
        }
        Err(Party::Provider.unavailable(why))
    }

    fn form(&self, wanted: &Wanted<'_>) -> Result<String, Fault> {
        let demand = wanted.demand;
        let mut form = Serializer::new(String::new());
        form.append_pair("grant_type", "urn:ietf:params:oauth:grant-type:token-exchange")
            .append_pair("requested_token_type", FORMAT)
            .append_pair("audience", wanted.authority)
            .append_pair("subject_token", &secret_text(&self.subject_token)?)
            .append_pair("subject_token_type", &self.subject_token_type);
        for (name, value) in [("resource", &demand.resource), ("scope", &demand.scope)] {
            if let Some(value) = value {
                form.append_pair(name, value);
            }
        }
        if let Some((name, secret)) = &self.client {
            form.append_pair("client_id", name);
            if let Some(secret) = secret {
                form.append_pair("client_secret", &secret_text(secret)?);
            }
        }
        Ok(form.finish())
    }
}

#[async_trait]
impl Assertions for Exchange {
    async fn assertion(&self, wanted: &Wanted<'_>) -> Result<Option<String>, Fault> {
        // Whoever else is named gets nothing, and nobody is asked (CORE-37).
        if !wanted.demand.issuer.contains(&self.provider) {
            return Ok(None);
        }
        let endpoint = self.endpoint().await?;
        let request = http::Request::post(endpoint.as_str())
            .header(CONTENT_TYPE, "application/x-www-form-urlencoded")
            .header(ACCEPT, "application/json")
            .header("dpop", proof(&endpoint, wanted)?)
            .body(Bytes::from(self.form(wanted)?))
            .map_err(|_| Fault::from(BadShow::Endpoint))?;
        let answer = self.fetch.send(request, Limits::DOCUMENT).await;
        let answer = answer.map_err(|why| Party::Provider.unavailable(why))?;
        match answer.status().as_u16() {
            200 => {}
            status @ (429 | 500..) => return Err(Party::Provider.unavailable(FetchError::Status(status))),
            _ => return Err(BadShow::Exchange.into()),
        }
        let read: Option<Exchanged> = json::strict(answer.body(), json::Limits::default()).ok();
        let read = read.filter(|read| read.issued_token_type == FORMAT && meets(&read.access_token, wanted));
        Ok(Some(read.ok_or(BadShow::Exchange)?.access_token))
    }
}

/// That the key which will sign here made this very request.
fn proof(endpoint: &Url, wanted: &Wanted<'_>) -> Result<String, Fault> {
    let mut random = [0; 16];
    getrandom::fill(&mut random).map_err(|_| Fault::Random)?;
    let header =
        serde_json::json!({ "alg": jws::ALG, "typ": "dpop+jwt", "jwk": wanted.key.verifying().jwk() });
    let claims = serde_json::json!({
        "jti": b64::encode(random), "htm": "POST", "htu": endpoint.as_str(), "iat": wanted.now,
    });
    jws::sign_under(wanted.key, &header, &claims).map_err(|_| Fault::Unwritable)
}

fn secret_text(path: &Path) -> Result<String, Fault> {
    let text = String::from_utf8(read_private(path)?);
    let text = text.map_err(|_| FolderFault::Damaged { path: path.to_owned() })?;
    Ok(text.trim().to_owned())
}

#[cfg(test)]
mod tests;
