//! What follows from the one public URL of a resource server, so that it cannot contradict itself: who it is, by which
//! hosts it is reached, and where its documents are.

use crate::publish::{JWKS, OWNER_RESOURCES};
use sayso_protocol::ClientId;
use sayso_protocol::sig::authority_of;
use url::Url;

/// The origin agents dial, and what follows from it.
#[derive(Debug, Clone)]
pub struct Address {
    origin: String,
    client_id: ClientId,
    hosts: Vec<String>,
    listing: Url,
}

/// The public URL is not an origin.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the public url is not an http or https origin without a trailing slash")]
pub struct NoOrigin;

impl Address {
    /// The address of this public URL. `hosts` are further names that unsigned requests may use.
    ///
    /// # Errors
    /// When it is not an origin, written the one way there is.
    pub fn parse(public_url: &str, hosts: &[String]) -> Result<Self, NoOrigin> {
        let url = Url::parse(public_url).map_err(|_| NoOrigin)?;
        let origin = url.origin().ascii_serialization();
        if origin != public_url || !matches!(url.scheme(), "http" | "https") {
            return Err(NoOrigin);
        }
        let mut hosts = hosts.to_vec();
        hosts.push(authority_of(&url).ok_or(NoOrigin)?);
        let listing = Url::parse(&format!("{origin}{OWNER_RESOURCES}")).map_err(|_| NoOrigin)?;
        let client_id = ClientId::parse(origin.clone()).map_err(|_| NoOrigin)?;
        Ok(Self { origin, client_id, hosts, listing })
    }

    /// The client id of the resource server: `aud` of every grant (O-28).
    pub fn client_id(&self) -> &ClientId {
        &self.client_id
    }

    /// Hosts that unsigned requests may name.
    pub fn hosts(&self) -> &[String] {
        &self.hosts
    }

    /// The URL of a path here.
    pub fn at(&self, path: &str) -> String {
        format!("{}{path}", self.origin)
    }

    /// Where the resource server publishes its keys.
    pub fn jwks_uri(&self) -> String {
        self.at(JWKS)
    }

    /// Where her authority reads her instances.
    pub fn listing(&self) -> &Url {
        &self.listing
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_follows_from_an_origin_and_nothing_from_anything_else() {
        let address = Address::parse("https://gw.example.test:8443", &["other.test".to_owned()]).unwrap();
        assert_eq!(address.client_id().as_str(), "https://gw.example.test:8443");
        assert_eq!(address.hosts(), ["other.test", "gw.example.test:8443"]);
        assert_eq!(address.jwks_uri(), "https://gw.example.test:8443/jwks");
        assert_eq!(address.listing().as_str(), "https://gw.example.test:8443/owner-resources");
        for odd in ["https://gw.example.test/", "https://GW.example.test", "ftp://gw.example.test", "gw", ""]
        {
            assert_eq!(Address::parse(odd, &[]).err(), Some(NoOrigin), "{odd}");
        }
    }
}
