//! What an agent shows of itself beside its key: an issuer's credential for it, and who describes it (AAUTH-01, CORE-51).
//!
//! It shows one level of identity: with a credential the name in it, else the key's own (CORE-44). Where a credential
//! comes from is the program's business; one that is for another key is never shown.

use crate::asserting::{Assertions, Wanted};
use crate::fault::Fault;
use crate::folder::{FolderFault, read_private};
use crate::identity::handle_of;
use http::HeaderValue;
use sayso_protocol::payload::agreement::Showing;
use sayso_protocol::payload::client::{client_address, directory_of};
use sayso_protocol::payload::credential::{self, MAX_CREDENTIAL};
use sayso_protocol::{Handle, SigningKey, Timestamp, VerifyingKey};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use url::Url;

/// Why what an agent shows of itself cannot be shown.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadShow {
    /// It is no credential.
    #[error("{0}: this is no agent credential (one compact JWS of typ aa-agent+jwt)")]
    Credential(String),
    /// It is for another key.
    #[error("the credential is for another key than the one that signs; name that key with --key")]
    AnotherKey,
    /// It has run out.
    #[error("the credential has run out; ask its issuer for another one")]
    Expired,
    /// The provider is none.
    #[error(
        "an identity provider must be an https URL in its plain form, without query, fragment or trailing slash"
    )]
    Provider,
    /// The token endpoint is not the provider's.
    #[error("the token endpoint is not at the identity provider's own origin; nothing was sent there")]
    Endpoint,
    /// The exchange brought nothing that can be shown.
    #[error("the identity provider gave no assertion for this authority")]
    Exchange,
    /// The client id is no address.
    #[error("a client id must be an https URL with a path, in its plain form")]
    ClientId,
    /// The directory is not at the client id's origin.
    #[error("the key directory must be an https origin, the one of the client id, which has to be given too")]
    Directory,
}

/// Where credentials come from: a file, or the program.
pub trait Credentials: Send + Sync {
    /// The credential for `key`, to be shown to the authority of this issuer, or that there is none for it.
    ///
    /// # Errors
    /// When there should be one and it cannot be had.
    fn credential(&self, authority: &str, key: &VerifyingKey) -> Result<Option<String>, Fault>;
}

/// A credential in a file, read anew each time, so that whoever renews it there is heard.
pub struct CredentialFile {
    path: PathBuf,
}

impl CredentialFile {
    /// The credential in this file (0600).
    #[must_use]
    pub fn at(path: &Path) -> CredentialFile {
        CredentialFile { path: path.to_owned() }
    }
}

impl Credentials for CredentialFile {
    fn credential(&self, _: &str, _: &VerifyingKey) -> Result<Option<String>, Fault> {
        let bytes = read_private(&self.path)?;
        let text = String::from_utf8(bytes).map_err(|_| FolderFault::Damaged { path: self.path.clone() })?;
        let text = text.trim();
        if text.len() > MAX_CREDENTIAL || credential::Shown::read(text).is_err() {
            return Err(BadShow::Credential(self.path.display().to_string()).into());
        }
        Ok(Some(text.to_owned()))
    }
}

/// What an agent shows beside its key. The default is nothing.
#[derive(Clone, Default)]
pub struct Shows {
    credentials: Option<Arc<dyn Credentials>>,
    client_id: Option<String>,
    directory: Option<String>,
    assertions: Option<Arc<dyn Assertions>>,
    or_bare: bool,
}

/// What it shows at one authority with one key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shown {
    /// The credential, compact.
    pub credential: Option<String>,
    /// What it will be known by.
    pub handle: Handle,
    /// Who named it, and until when.
    pub issuer: Option<(String, Timestamp)>,
    /// The address of the document that describes it.
    pub client_id: Option<String>,
    /// The origin of the directory that has its key.
    pub directory: Option<String>,
}

impl Shows {
    /// Shows credentials from there.
    #[must_use]
    pub fn named_by(mut self, credentials: Arc<dyn Credentials>) -> Shows {
        self.credentials = Some(credentials);
        self
    }

    /// Says that it is described at `client_id`, and perhaps that the directory at an origin has its key.
    ///
    /// # Errors
    /// When these are no such addresses.
    pub fn described_at(mut self, client_id: &str, directory: Option<&str>) -> Result<Shows, Fault> {
        let address = client_address(client_id).map_err(|_| BadShow::ClientId)?;
        if directory.is_some_and(|origin| directory_of(&address, origin).is_none()) {
            return Err(BadShow::Directory.into());
        }
        self.client_id = Some(client_id.to_owned());
        self.directory = directory.map(|_| address.origin().ascii_serialization());
        Ok(self)
    }

    /// Says for whom it acts, by assertions from there, to an authority that asks.
    #[must_use]
    pub fn asserted_by(mut self, assertions: Arc<dyn Assertions>) -> Shows {
        self.assertions = Some(assertions);
        self
    }

    /// Goes on under the bare key where an authority does not accept the credential.
    #[must_use]
    pub fn or_bare(mut self) -> Shows {
        self.or_bare = true;
        self
    }

    /// The same without a credential, if it goes on without one where it is not accepted.
    pub(crate) fn without_credential(&self) -> Option<Shows> {
        let bare = self.or_bare && self.credentials.is_some();
        bare.then(|| Shows { credentials: None, ..self.clone() })
    }

    /// An assertion that meets a demand, if there is one.
    pub(crate) async fn assertion(&self, wanted: &Wanted<'_>) -> Result<Option<String>, Fault> {
        match &self.assertions {
            Some(source) => source.assertion(wanted).await,
            None => Ok(None),
        }
    }

    /// What is shown to the authority of this issuer by the holder of `key`, now.
    ///
    /// # Errors
    /// When there is a credential that cannot be had, is for another key, or has run out.
    pub fn at(&self, authority: &str, key: &SigningKey, now: Timestamp) -> Result<Shown, Fault> {
        let credentials = self.credentials.as_ref();
        let found = credentials.map(|source| source.credential(authority, key.verifying())).transpose()?;
        let mut shown = Shown {
            credential: found.flatten(),
            handle: handle_of(key),
            issuer: None,
            client_id: self.client_id.clone(),
            directory: self.directory.clone(),
        };
        if let Some(text) = &shown.credential {
            let read =
                credential::Shown::read(text).map_err(|_| BadShow::Credential(authority.to_owned()))?;
            if read.confirmed() != key.verifying() {
                return Err(BadShow::AnotherKey.into());
            }
            if read.expires() <= now {
                return Err(BadShow::Expired.into());
            }
            shown.handle = read.handle().clone();
            shown.issuer = Some((read.issuer().to_owned(), read.expires()));
        }
        Ok(shown)
    }

    /// The `Signature-Agent` of a signed request, where a directory has the key.
    pub(crate) fn signature_agent(&self) -> Option<HeaderValue> {
        let origin = self.directory.as_ref()?;
        HeaderValue::from_str(&format!("\"{origin}\"")).ok()
    }
}

impl Shown {
    pub(crate) fn showing(&self) -> Showing<'_> {
        Showing {
            credential: self.credential.as_deref(),
            client_id: self.client_id.as_deref(),
            directory: self.directory.as_deref(),
        }
    }
}

/// The origin of a URL somebody names as an authority's.
///
/// # Errors
/// When it is no http(s) URL.
pub fn authority_origin(url: &str) -> Result<Url, Fault> {
    let url = Url::parse(url).map_err(|_| Fault::Resource)?;
    if matches!(url.scheme(), "http" | "https") && url.has_host() { Ok(url) } else { Err(Fault::Resource) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sayso_protocol::jws::sign_under;
    use serde_json::json;
    use std::os::unix::fs::PermissionsExt as _;

    const AUTHORITY: &str = "https://as.example.test";

    fn key(seed: u8) -> SigningKey {
        SigningKey::from_seed(&[seed; 32]).unwrap()
    }

    fn credential(for_key: &SigningKey, expires: i64) -> String {
        let header = json!({ "alg": "EdDSA", "typ": "aa-agent+jwt" });
        let claims = json!({ "iss": "https://ps.example", "sub": "bot", "exp": expires,
                             "cnf": { "jwk": for_key.verifying().jwk() } });
        sign_under(&key(9), &header, &claims).unwrap()
    }

    /// What the file shows for key 1 at time 100.
    fn from_file(text: &str, mode: u32) -> Result<Shown, Fault> {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("credential");
        std::fs::write(&path, text).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
        let shows = Shows::default().named_by(Arc::new(CredentialFile::at(&path)));
        shows.at(AUTHORITY, &key(1), Timestamp(100))
    }

    // CORE-44, CORE-49, AAUTH-01
    #[test]
    fn one_level_is_shown() {
        let bare = Shows::default().at(AUTHORITY, &key(1), Timestamp(100)).unwrap();
        assert_eq!((bare.handle, bare.issuer, bare.credential), (handle_of(&key(1)), None, None));
        let named = from_file(&format!("{}\n", credential(&key(1), 101)), 0o600).unwrap();
        assert_eq!(named.handle.as_str(), "bot@ps.example");
        assert_eq!(named.issuer, Some(("https://ps.example".into(), Timestamp(101))));
    }

    #[test]
    fn a_credential_that_cannot_help_is_not_shown() {
        let fault = |text: &str, mode| from_file(text, mode).unwrap_err().to_string();
        assert!(fault(&credential(&key(2), 101), 0o600).contains("another key"));
        assert!(fault(&credential(&key(1), 100), 0o600).contains("run out"));
        assert!(fault("nonsense", 0o600).contains("no agent credential"));
        assert!(fault(&credential(&key(1), 101), 0o644).contains("others can read it"));
    }

    // CORE-51, POL-30
    #[test]
    fn a_description_is_an_address_and_its_directory_beside_it() {
        let client = "https://op.example/a.json";
        let shows = |client: &str, directory| Shows::default().described_at(client, directory);
        let both = shows(client, Some("https://op.example/")).unwrap();
        assert_eq!(both.signature_agent().unwrap(), "\"https://op.example\"");
        assert!(shows(client, None).unwrap().signature_agent().is_none());
        assert!(shows("http://op.example/a.json", None).is_err());
        assert!(shows("https://op.example/", None).is_err());
        assert!(shows(client, Some("https://other.example")).is_err());
    }
}
