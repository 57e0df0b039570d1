//! Whom a client trusts over TLS, and what it shows of itself: the system's roots and nothing, unless a file says else.
//! Everything is read and fitted together here, once, so that a wrong file is found at the start and not at a request.

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ClientConfig, RootCertStore};
use std::sync::Arc;

/// Why a file is no use for TLS. None of it repeats the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum BadTls {
    /// No certificate in the file of roots.
    #[error("the file of trusted roots holds no certificate; put the CA's certificate there, as PEM")]
    NoRoot,
    /// A root that is no certificate.
    #[error("the file of trusted roots holds something that is no certificate; it must be PEM, and X.509")]
    Root,
    /// No certificate to show.
    #[error(
        "the client certificate's file holds no certificate; put the chain there, as PEM, one's own first"
    )]
    NoCertificate,
    /// No key that goes with it.
    #[error("the client key's file holds no private key; put it there unencrypted, as PEM")]
    NoKey,
    /// A key of another certificate.
    #[error("the client key does not belong to the client certificate; take both from the same place")]
    Mismatch,
}

/// Whom TLS trusts and what it shows. Has no `Debug`: there is a private key in it.
#[derive(Clone, Default)]
pub struct Tls {
    roots: Option<Arc<RootCertStore>>,
    identity: Option<Arc<Identity>>,
}

struct Identity {
    chain: Vec<CertificateDer<'static>>,
    key: PrivateKeyDer<'static>,
}

impl Tls {
    /// The system's roots, and no certificate of one's own.
    #[must_use]
    pub fn system() -> Tls {
        Tls::default()
    }

    /// Trusts the certificates of this PEM, and no others.
    ///
    /// # Errors
    /// When there is none, or one cannot be a root.
    pub fn trusting(mut self, pem: &[u8]) -> Result<Tls, BadTls> {
        let mut roots = RootCertStore::empty();
        for certificate in CertificateDer::pem_slice_iter(pem) {
            roots.add(certificate.map_err(|_| BadTls::Root)?).map_err(|_| BadTls::Root)?;
        }
        if roots.is_empty() {
            return Err(BadTls::NoRoot);
        }
        self.roots = Some(Arc::new(roots));
        Ok(self)
    }

    /// Shows this certificate, with the chain above it, to a server that asks.
    ///
    /// # Errors
    /// When one of the two is missing, or they do not belong together.
    pub fn showing(mut self, chain: &[u8], key: &[u8]) -> Result<Tls, BadTls> {
        let chain = CertificateDer::pem_slice_iter(chain).collect::<Result<Vec<_>, _>>();
        let chain = chain.ok().filter(|chain| !chain.is_empty()).ok_or(BadTls::NoCertificate)?;
        let key = PrivateKeyDer::from_pem_slice(key).map_err(|_| BadTls::NoKey)?;
        self.identity = Some(Arc::new(Identity { chain, key }));
        self.fit(RootCertStore::empty())?;
        Ok(self)
    }

    /// The same without what it shows: for servers it is not meant for.
    #[must_use]
    pub fn anonymous(&self) -> Tls {
        Tls { roots: self.roots.clone(), identity: None }
    }

    /// The configuration for a client; the system's roots are read here.
    pub(crate) fn config(&self) -> Result<ClientConfig, BadTls> {
        self.fit(self.roots.as_deref().cloned().unwrap_or_else(system_roots))
    }

    /// The configuration of a client that never speaks TLS: reading the system's roots takes a while.
    pub(crate) fn unused() -> Result<ClientConfig, BadTls> {
        Tls::default().fit(RootCertStore::empty())
    }

    fn fit(&self, roots: RootCertStore) -> Result<ClientConfig, BadTls> {
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let versions = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
        let builder = versions.map_err(|_| BadTls::Mismatch)?.with_root_certificates(roots);
        let Some(identity) = self.identity.as_deref() else { return Ok(builder.with_no_client_auth()) };
        builder
            .with_client_auth_cert(identity.chain.clone(), identity.key.clone_key())
            .map_err(|_| BadTls::Mismatch)
    }
}

/// The roots the system trusts; with none, every https connection fails and nothing else does.
fn system_roots() -> RootCertStore {
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    roots
}

#[cfg(test)]
mod tests {
    use super::*;

    const NONSENSE: &[u8] = b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";

    #[test]
    fn a_file_that_is_no_use_is_named() {
        let roots = |pem: &[u8]| Tls::system().trusting(pem).err();
        assert_eq!(roots(b""), Some(BadTls::NoRoot));
        assert_eq!(roots(b"not PEM"), Some(BadTls::NoRoot));
        assert_eq!(roots(NONSENSE), Some(BadTls::Root));
        assert_eq!(roots(b"-----BEGIN CERTIFICATE-----\n!\n-----END CERTIFICATE-----\n"), Some(BadTls::Root));
        let identity = |chain: &[u8], key: &[u8]| Tls::system().showing(chain, key).err();
        assert_eq!(identity(b"", b""), Some(BadTls::NoCertificate));
        assert_eq!(identity(NONSENSE, b""), Some(BadTls::NoKey));
        assert_eq!(identity(NONSENSE, NONSENSE), Some(BadTls::NoKey));
    }
}
