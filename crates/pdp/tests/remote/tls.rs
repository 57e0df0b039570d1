//! TLS: who is trusted, to whom we show a certificate, and that a doubt is no connection.

use std::sync::Arc;

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair};
use rustls::RootCertStore;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use sayso_coaz::answer::AnswerFault;
use sayso_pdp::client::{Identity, RemoteSettings};
use tokio_rustls::TlsAcceptor;

use crate::engine::{Act, Engine, asked, no_answer, ok, one, remote};

const YES: &str = r#"{"decision":true}"#;

struct Authority(CertifiedIssuer<'static, KeyPair>);

impl Authority {
    fn new(name: &str) -> Authority {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.distinguished_name.push(DnType::CommonName, name);
        Authority(CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap())
    }

    fn pem(&self) -> Vec<u8> {
        self.0.pem().into_bytes()
    }

    fn issue(&self, name: &str, expired: bool) -> (rcgen::Certificate, KeyPair) {
        let mut params = CertificateParams::new(vec![name.to_owned()]).unwrap();
        if expired {
            params.not_before = rcgen::date_time_ymd(2020, 1, 1);
            params.not_after = rcgen::date_time_ymd(2021, 1, 1);
        }
        let key = KeyPair::generate().unwrap();
        (params.signed_by(&key, &self.0).unwrap(), key)
    }

    /// A server for this name; with `clients`, only for those whom that authority knows.
    fn server(&self, name: &str, expired: bool, clients: Option<&Authority>) -> TlsAcceptor {
        let (certificate, key) = self.issue(name, expired);
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let builder = rustls::ServerConfig::builder_with_provider(provider.clone());
        let builder = builder.with_safe_default_protocol_versions().unwrap();
        let builder = match clients {
            None => builder.with_no_client_auth(),
            Some(authority) => {
                let mut roots = RootCertStore::empty();
                roots.add(authority.0.der().clone()).unwrap();
                let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider);
                builder.with_client_cert_verifier(verifier.build().unwrap())
            }
        };
        let key = PrivateKeyDer::try_from(key.serialize_der()).unwrap();
        let chain: Vec<CertificateDer<'static>> = vec![certificate.der().clone()];
        TlsAcceptor::from(Arc::new(builder.with_single_cert(chain, key).unwrap()))
    }

    fn identity(&self) -> Identity {
        let (certificate, key) = self.issue("pep.test", false);
        Identity { chain: certificate.pem().into_bytes(), key: key.serialize_pem().into_bytes() }
    }
}

async fn engine(tls: TlsAcceptor) -> Engine {
    Engine::secure(tls, |_| Act::Say(ok(YES))).await
}

fn trusting(engine: &Engine, authority: &Authority) -> RemoteSettings {
    RemoteSettings {
        evaluation_endpoint: Some(engine.url("/one")),
        roots: Some(authority.pem()),
        ..RemoteSettings::default()
    }
}

// AZ-13, COAZ-FW-49, COAZ-MCP-86
#[tokio::test]
async fn only_the_right_name_by_the_right_authority_in_time_is_asked() {
    let (ours, other) = (Authority::new("ours"), Authority::new("other"));
    let good = engine(ours.server("localhost", false, None)).await;
    assert_eq!(asked(&remote(&trusting(&good, &ours)), &one()).await, Ok(()));
    let nothing = no_answer(AnswerFault::None);
    let cases = [
        ("unknown authority", ours.server("localhost", false, None), &other),
        ("another name", ours.server("elsewhere.test", false, None), &ours),
        ("expired", ours.server("localhost", true, None), &ours),
    ];
    for (name, server, trusted) in cases {
        let engine = engine(server).await;
        assert_eq!(asked(&remote(&trusting(&engine, trusted)), &one()).await, nothing, "{name}");
        assert_eq!(engine.lines().len(), 0, "{name}: nothing was said");
        assert_eq!(engine.connections(), 2, "{name}: tried once more, since nothing was sent");
    }
    let system = RemoteSettings { roots: None, ..trusting(&good, &ours) };
    assert_eq!(asked(&remote(&system), &one()).await, nothing, "not by the system's roots");
    let plain = Engine::saying(Act::Say(ok(YES))).await;
    let mut settings = trusting(&good, &ours);
    settings.evaluation_endpoint = Some(format!("https://localhost:{}/one", plain.port));
    assert_eq!(asked(&remote(&settings), &one()).await, nothing, "no TLS at all");
}

// AZ-11
#[tokio::test]
async fn a_client_certificate_is_shown_to_the_engine_and_to_no_other() {
    let (ours, clients, strangers) =
        (Authority::new("ours"), Authority::new("clients"), Authority::new("strangers"));
    let engine = engine(ours.server("localhost", false, Some(&clients))).await;
    let with = |identity| RemoteSettings { identity, ..trusting(&engine, &ours) };
    assert_eq!(asked(&remote(&with(Some(clients.identity()))), &one()).await, Ok(()));
    for identity in [None, Some(strangers.identity())] {
        assert_eq!(asked(&remote(&with(identity)), &one()).await, no_answer(AnswerFault::None));
    }
    assert_eq!(engine.lines().len(), 1);

    let elsewhere = engine.url("/one");
    let naming = Engine::secure(ours.server("localhost", false, None), move |seen| {
        let host = format!("https://{}", seen.header("host").unwrap());
        let text =
            format!(r#"{{"policy_decision_point":"{host}","access_evaluation_endpoint":"{elsewhere}"}}"#);
        Act::Say(ok(&text))
    })
    .await;
    let discovered = RemoteSettings {
        pdp: Some(naming.url("")),
        evaluation_endpoint: None,
        ..with(Some(clients.identity()))
    };
    assert_eq!(asked(&remote(&discovered), &one()).await, no_answer(AnswerFault::None));
    let allowed = RemoteSettings { credential_origins: vec![engine.url("")], ..discovered };
    assert_eq!(asked(&remote(&allowed), &one()).await, Ok(()));
}

#[test]
fn a_key_of_another_certificate_is_found_at_the_start() {
    let ours = Authority::new("ours");
    let identity = Identity { key: ours.identity().key, ..ours.identity() };
    let settings = RemoteSettings {
        pdp: Some("https://pdp.test".to_owned()),
        identity: Some(identity),
        ..RemoteSettings::default()
    };
    let fault = sayso_pdp::client::Remote::new(&settings).err().unwrap();
    assert!(fault.to_string().contains("does not belong"), "{fault}");
}
