//! Before a ticket goes anywhere: does the resource itself say that this authority decides for it? (CORE-30..32,
//! MCP-04, D-33)
//! It keeps the order: everything is asked of the origin the user dialled first, and an authority that origin does
//! not publish gets not one byte. Identifiers are compared as bytes, never as parsed URLs.

pub(crate) mod pins;

use crate::fault::{Fault, Party, Uncorroborated};
use pins::Pins;
use sayso_fetch::{Client, Fetch, FetchError, Limits, Reach, get, guard};
use sayso_protocol::envelope::rfc9728;
use sayso_protocol::json;
use sayso_protocol::payload::challenge::ChallengeObject;
use sayso_protocol::payload::metadata::{AUTHORITY_PATHS, KeySet, metadata_url};
use sayso_protocol::payload::negotiation::UMA_TICKET;
use sayso_protocol::{Timestamp, VerifyingKey};
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use url::{Host, Url};

/// The ways out: one for what the user named, one for what strangers named.
#[derive(Clone)]
pub struct Doors {
    /// For the resource dialled, and for authorities of a resource that is itself on loopback or a private network.
    pub near: Arc<dyn Fetch>,
    /// For authorities of every other resource.
    pub far: Arc<dyn Fetch>,
}

impl Doors {
    /// The ways out that an agent on somebody's machine has.
    #[must_use]
    pub fn usual() -> Doors {
        Doors {
            near: Arc::new(Client::new(Reach::Configured)),
            far: Arc::new(Client::new(Reach::PublicAnyPort)),
        }
    }
}

/// How near the resource is, and so how near its authority may be.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Nearness {
    /// A public address.
    Far,
    /// Https to a name with private addresses: the authority may be as near, and needs https too.
    Within,
    /// Plain http, or a literal loopback or private address.
    Here,
}

/// The resource the user dialled.
#[derive(Clone)]
pub struct Dialled {
    text: String,
    url: Url,
    nearness: Nearness,
}

impl Dialled {
    /// Reads the URL as the user wrote it, and finds out how near it is.
    ///
    /// # Errors
    /// When it is not an absolute http(s) URL in its plain form, or its name cannot be resolved.
    pub async fn parse(text: &str) -> Result<Dialled, Fault> {
        let url = plain_url(text).ok_or(Fault::Resource)?;
        let literal = match url.host() {
            Some(Host::Domain(name)) => name == "localhost",
            _ => true,
        };
        let local = || async { guard::is_local(&url).await.map_err(|why| Party::Resource.unavailable(why)) };
        let nearness = match url.scheme() {
            // INVARIANT: over plain http the door itself reaches loopback and private addresses only.
            "http" => Nearness::Here,
            _ if !local().await? => Nearness::Far,
            _ if literal => Nearness::Here,
            _ => Nearness::Within,
        };
        Ok(Dialled { text: text.to_owned(), url, nearness })
    }

    /// The URL as the user wrote it: the resource's identifier.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The URL.
    pub fn url(&self) -> &Url {
        &self.url
    }

    fn is_origin_of(&self, url: &str) -> bool {
        Url::parse(url).is_ok_and(|url| url.origin() == self.url.origin() && url.username().is_empty())
    }
}

/// An authority the resource publishes, by its own metadata.
#[derive(Clone, Serialize, Deserialize)]
pub struct Authority {
    /// Its issuer identifier, exactly as published.
    pub issuer: String,
    pub(crate) token_endpoint: String,
    jwks_uri: String,
    near: bool,
}

/// What an agent needs of an authority's metadata; the rest is for others.
#[derive(Deserialize)]
struct Facts {
    issuer: String,
    token_endpoint: String,
    jwks_uri: String,
    grant_types_supported: Option<Vec<String>>,
}

impl Authority {
    pub(crate) fn door<'a>(&self, doors: &'a Doors) -> &'a dyn Fetch {
        if self.near { &*doors.near } else { &*doors.far }
    }

    /// Its published keys, held against the pin where there is one.
    pub(crate) async fn keys(
        &self,
        doors: &Doors,
        pins: &Pins,
    ) -> Result<Vec<(String, VerifyingKey)>, Fault> {
        let body = get(self.door(doors), &self.jwks_uri, Limits::DOCUMENT).await;
        let body = body.map_err(|why| Party::Authority.unavailable(why))?;
        let keys = key_set(&body).ok_or(Uncorroborated::Issuer)?;
        pins.hold("authority", &Url::parse(&self.issuer).map_err(|_| Uncorroborated::Authority)?, &keys)?;
        Ok(keys)
    }
}

/// The authority of a challenge, if the resource corroborates it.
pub(crate) async fn corroborate(
    doors: &Doors,
    pins: &Pins,
    dialled: &Dialled,
    challenge: &ChallengeObject,
    now: Timestamp,
) -> Result<Authority, Fault> {
    let url = match &challenge.resource_metadata {
        Some(named) if dialled.is_origin_of(named) => named.clone(),
        Some(_) => return Err(Uncorroborated::ForeignDocument.into()),
        None => metadata_url(&dialled.text).map_err(|_| Fault::Resource)?,
    };
    let body = match get(&*doors.near, &url, rfc9728_limits()).await {
        Err(FetchError::Status(status)) => return Err(Uncorroborated::NoDocument(status).into()),
        other => other.map_err(|why| Party::Resource.unavailable(why))?,
    };
    let unverified = rfc9728::read(&body, &dialled.text).map_err(Uncorroborated::from)?;
    let document = if unverified.is_signed() {
        let keys = resource_keys(doors, pins, dialled, &unverified).await?;
        unverified.trust(&keys, now)
    } else {
        pins.hold("resource", &dialled.url, &[])?;
        unverified.accept_unsigned()
    };
    let document = document.map_err(Uncorroborated::from)?;
    if !document.authorization_servers().contains(&challenge.as_uri.as_str()) {
        return Err(Uncorroborated::NotPublished.into());
    }
    let authority = find(doors, dialled, &challenge.as_uri).await?;
    authority.keys(doors, pins).await?;
    Ok(authority)
}

async fn resource_keys(
    doors: &Doors,
    pins: &Pins,
    dialled: &Dialled,
    document: &rfc9728::Unverified,
) -> Result<Vec<(String, VerifyingKey)>, Fault> {
    let uri =
        document.jwks_uri().filter(|uri| dialled.is_origin_of(uri)).ok_or(Uncorroborated::ForeignKeys)?;
    let body = get(&*doors.near, uri, Limits::DOCUMENT).await;
    let body = body.map_err(|why| Party::Resource.unavailable(why))?;
    let keys = key_set(&body).ok_or(Uncorroborated::ForeignKeys)?;
    pins.hold("resource", &dialled.url, &keys)?;
    Ok(keys)
}

/// The authority of an issuer that the resource has just named, by the metadata it publishes about itself.
async fn find(doors: &Doors, dialled: &Dialled, issuer: &str) -> Result<Authority, Fault> {
    let url = plain_url(issuer).ok_or(Uncorroborated::Authority)?;
    if url.scheme() == "http" && dialled.nearness != Nearness::Here {
        return Err(Uncorroborated::Authority.into());
    }
    let near = dialled.nearness != Nearness::Far;
    let door = if near { &*doors.near } else { &*doors.far };
    for place in places(&url) {
        let body = match get(door, &place, Limits::DOCUMENT).await {
            Err(FetchError::Status(404)) => continue,
            Err(FetchError::Status(_)) => return Err(Uncorroborated::Issuer.into()),
            Err(FetchError::Refused) => return Err(Uncorroborated::Authority.into()),
            other => other.map_err(|why| Party::Authority.unavailable(why))?,
        };
        let facts: Facts = json::strict(&body, rfc9728::LIMITS).map_err(|_| Uncorroborated::Issuer)?;
        return settle(&url, issuer, facts, near).map_err(Fault::from);
    }
    Err(Uncorroborated::Issuer.into())
}

fn settle(url: &Url, issuer: &str, facts: Facts, near: bool) -> Result<Authority, Uncorroborated> {
    if facts.issuer != issuer {
        return Err(Uncorroborated::Issuer);
    }
    let own = |endpoint: &str| plain_url(endpoint).is_some_and(|endpoint| endpoint.origin() == url.origin());
    if !own(&facts.token_endpoint) || !own(&facts.jwks_uri) {
        return Err(Uncorroborated::ForeignEndpoint);
    }
    if facts.grant_types_supported.is_some_and(|grants| !grants.iter().any(|grant| grant == UMA_TICKET)) {
        return Err(Uncorroborated::NoTickets);
    }
    let Facts { issuer, token_endpoint, jwks_uri, .. } = facts;
    Ok(Authority { issuer, token_endpoint, jwks_uri, near })
}

/// Where an authority may publish its metadata: the well-known string after the host, or after the issuer's path.
fn places(issuer: &Url) -> Vec<String> {
    let origin = issuer.origin().ascii_serialization();
    let path = issuer.path().trim_end_matches('/');
    let mut places: Vec<String> =
        AUTHORITY_PATHS.iter().map(|known| format!("{origin}{known}{path}")).collect();
    if !path.is_empty() {
        places.extend(AUTHORITY_PATHS.iter().map(|known| format!("{origin}{path}{known}")));
    }
    places
}

/// A URL that is written in its plain form and is nothing but scheme, host, port and path.
fn plain_url(text: &str) -> Option<Url> {
    let url = Url::parse(text).ok()?;
    let bare = matches!(url.scheme(), "http" | "https") && url.host().is_some();
    let bare = bare && url.username().is_empty() && url.password().is_none();
    let bare = bare && url.query().is_none() && url.fragment().is_none();
    let same = url.as_str() == text || (url.path() == "/" && url.as_str().strip_suffix('/') == Some(text));
    (bare && same).then_some(url)
}

fn key_set(body: &[u8]) -> Option<Vec<(String, VerifyingKey)>> {
    let set: KeySet = json::strict(body, rfc9728::LIMITS).ok()?;
    Some(set.keys())
}

fn rfc9728_limits() -> Limits {
    Limits { bytes: rfc9728::LIMITS.bytes, ..Limits::DOCUMENT }
}

#[cfg(test)]
mod tests;
