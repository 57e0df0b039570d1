//! A resource server introduces itself: who speaks for a resource is proven by its own origin, and by nothing else
//! (FED-20..29).
//!
//! A stranger names what is fetched, so it is fetched through the strangers' door alone, at most once a minute for a
//! resource, and not before the request could prove anything (D-41, FED-51). Every check that fails is answered alike,
//! and after a few that named no owner of ours nobody of that source is told anything for a minute (O-24).

mod memory;
mod tally;

pub(crate) use memory::Newcomers;

use crate::Authority;
use crate::http::received::Received;
use http::header::AUTHORIZATION;
use memory::Look;
use sayso_owner::registry::{Introduced, IntroducedBy, Newcomer};
use sayso_owner::store::Unavailable;
use sayso_protocol::payload::introduction::Introduction;
use sayso_protocol::sig::{self, Profile, Unverified};
use sayso_protocol::{ClientId, VerifyingKey};
use url::{Host, Url};

/// Why an introduction is not taken. Which check failed is nobody's to know, nor whether the owner exists (O-24).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Refused {
    /// A check failed.
    Unproven,
    /// A check failed shortly before, or more ask than are looked at at once, or than are heard of one source; nothing
    /// was fetched or stored.
    Busy,
    /// As many wait for the owner as may, or she put it out and it asks again too soon.
    Full,
    /// The store failed.
    Unavailable,
}

impl From<Unavailable> for Refused {
    fn from(_: Unavailable) -> Self {
        Refused::Unavailable
    }
}

/// An introduction that was taken.
pub(crate) struct Taken {
    pub(crate) client_id: ClientId,
    /// Whether the owner trusts it already.
    pub(crate) active: bool,
}

/// What an introduction says that it speaks for.
#[derive(Clone, Copy)]
pub(crate) struct Claimed<'a> {
    pub(crate) resource: &'a str,
    pub(crate) origin: &'a str,
    /// Whom the origin is counted under.
    pub(crate) source: &'a str,
}

impl Authority {
    /// Takes the introduction of whoever signed the request, if it speaks for the resource.
    pub(crate) async fn introduce(&self, said: &Introduction, received: &Received) -> Result<Taken, Refused> {
        let client_id = said.client_id().ok_or(Refused::Unproven)?;
        let signatures = sig::read(&received.headers).map_err(|_| Refused::Unproven)?;
        let facts = received.facts(&self.public);
        let could = signatures.foresee(&facts, &Profile::default(), self.now()).is_ok();
        // There is no credential to introduce oneself with, and one that is offered is not passed over.
        if !could || received.headers.contains_key(AUTHORIZATION) {
            return Err(Refused::Unproven);
        }
        let source = Url::parse(client_id.as_str()).map(|url| source(&url)).unwrap_or_default();
        let claimed = Claimed { resource: &said.resource_uri, origin: client_id.as_str(), source: &source };
        let keys = self.look(&claimed).await?;
        match self.admit_newcomer(said, &client_id, &claimed, &keys, &signatures, received).await {
            // The second within a minute; the first was told that it failed.
            Err(Refused::Unproven) if self.newcomers.failed(&said.resource_uri) => Err(Refused::Busy),
            told => told,
        }
    }

    /// The keys the resource publishes at its origin, with documents that name it and this authority (FED-22, FED-23);
    /// none when it cannot be believed or heard. Looked at anew at most once a minute.
    async fn look(&self, claimed: &Claimed<'_>) -> Result<Vec<VerifyingKey>, Refused> {
        // What the operator named is reached as the operator's; it was not a stranger who led there (D-41). Nor do strangers
        // keep anybody from looking at it.
        let named = self.store.is_vouched_for(claimed.resource, self.now()).await?;
        let place = match self.newcomers.look(claimed, named, self.now()) {
            Look::Known(keys) => return Ok(keys),
            Look::Busy => return Err(Refused::Busy),
            Look::Anew(place) => place,
        };
        let by = if named { IntroducedBy::Setup } else { IntroducedBy::Itself };
        let keys = match self.published(claimed.resource, by).await {
            Ok(published) => published.keys.into_iter().map(|(_, key)| key).collect(),
            Err(fault) => {
                tracing::info!(why = %fault, "introduction.unreadable");
                vec![]
            }
        };
        place.found(&keys, self.now());
        Ok(keys)
    }

    async fn admit_newcomer(
        &self,
        said: &Introduction,
        client_id: &ClientId,
        claimed: &Claimed<'_>,
        keys: &[VerifyingKey],
        signatures: &Unverified,
        received: &Received,
    ) -> Result<Taken, Refused> {
        let (facts, now) = (received.facts(&self.public), self.now());
        let mut proofs =
            keys.iter().filter_map(|key| signatures.verify(&facts, key, &Profile::default(), now).ok());
        let proof = proofs.next().ok_or(Refused::Unproven)?;
        self.newcomers.proved(claimed, now);
        // Before the store is asked, whoever is named: what is answered past this must not tell who has an owner here.
        let turn = self.newcomers.tally.turn(claimed.source, now).ok_or(Refused::Busy)?;
        if !self.first_use(&proof).await? {
            return Err(Refused::Unproven);
        }
        let newcomer = Newcomer {
            client_id: client_id.clone(),
            resource_uri: said.resource_uri.clone(),
            name: said.name.clone(),
            key: proof.thumbprint,
            source: claimed.source.to_owned(),
        };
        let introduced = self.store.introduce(&said.owner, &newcomer, now).await?;
        tracing::info!(client_id = %client_id, outcome = ?introduced, "resource_server.introduced");
        if !matches!(introduced, Introduced::NoOwner | Introduced::AnotherKey) {
            turn.met();
        }
        match introduced {
            Introduced::Pending => Ok(Taken { client_id: client_id.clone(), active: false }),
            Introduced::Active => Ok(Taken { client_id: client_id.clone(), active: true }),
            Introduced::NoOwner | Introduced::AnotherKey => Err(Refused::Unproven),
            Introduced::Full | Introduced::Early => Err(Refused::Full),
        }
    }
}

/// Whom an origin is counted under: its address, or the last two labels of its name, since one party may have any
/// number of names below those. Where two labels are everybody's suffix, everybody under it shares the count. On this
/// machine every port is a party of its own.
pub(crate) fn source(url: &Url) -> String {
    let origin = || url.origin().ascii_serialization();
    match url.host() {
        Some(Host::Ipv4(address)) if address.is_loopback() => origin(),
        Some(Host::Ipv6(address)) if address.is_loopback() => origin(),
        Some(Host::Domain("localhost")) => origin(),
        Some(Host::Ipv4(address)) => address.to_string(),
        // Whoever has one address of a network has them all.
        Some(Host::Ipv6(address)) => {
            let [a, b, c, d, ..] = address.segments();
            format!("{a:x}:{b:x}:{c:x}:{d:x}::/64")
        }
        Some(Host::Domain(name)) => {
            let mut labels: Vec<&str> = name.trim_end_matches('.').rsplit('.').take(2).collect();
            labels.reverse();
            labels.join(".")
        }
        None => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // D-22
    #[test]
    fn names_below_one_name_are_one_source() {
        let source = |origin: &str| source(&Url::parse(origin).unwrap());
        for (origin, expected) in [
            ("https://rs.example", "rs.example"),
            ("https://a.b.rs.example:8443", "rs.example"),
            ("https://a.rs.example.", "rs.example"),
            ("https://localhost:8441", "https://localhost:8441"),
            ("http://127.0.0.1:8441", "http://127.0.0.1:8441"),
            ("http://[::1]:8441", "http://[::1]:8441"),
            ("https://192.0.2.7:8441", "192.0.2.7"),
            ("https://[2001:db8:1:2:3::4]", "2001:db8:1:2::/64"),
        ] {
            assert_eq!(source(origin), expected, "{origin}");
        }
    }
}
