//! Upstreams over TLS, the name they are called by, and the gateway's own credential.

use super::cast::{Canary, House, RESULT, TRADE};
use super::wire::Request;
use crate::upstream::{Credential, HttpSettings, HttpUpstream, Kind, Open, Upstream, UpstreamConfig};
use rustls::RootCertStore;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use std::net::SocketAddr;
use std::sync::Arc;
use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio_rustls::TlsAcceptor;

const CERTIFICATE: &[u8] = include_bytes!("../../tests/fixtures/tls/cert.pem");
const KEY: &[u8] = include_bytes!("../../tests/fixtures/tls/key.pem");

fn certificate() -> CertificateDer<'static> {
    CertificateDer::from_pem_slice(CERTIFICATE).unwrap()
}

/// TLS ahead of the canary.
async fn wrapped(canary: SocketAddr) -> SocketAddr {
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certificate()], PrivateKeyDer::from_pem_slice(KEY).unwrap())
        .unwrap();
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let acceptor = acceptor.clone();
            tokio::spawn(async move {
                let Ok(mut outer) = acceptor.accept(stream).await else { return };
                let mut inner = TcpStream::connect(canary).await.unwrap();
                let _ = copy_bidirectional(&mut outer, &mut inner).await;
            });
        }
    });
    address
}

async fn house(settings: HttpSettings, canary: Arc<Canary>, trusted: bool) -> House {
    let mut roots = RootCertStore::empty();
    if trusted {
        roots.add(certificate()).unwrap();
    }
    let upstream = HttpUpstream::trusting(settings, Some(roots)).unwrap();
    House::before(
        canary,
        UpstreamConfig::Open(Upstream(Arc::new(Open {
            kind: Kind::Http(upstream),
            changes: watch::Sender::new(0),
        }))),
    )
    .await
}

fn requests() -> [Request; 3] {
    [
        Request::list(),
        Request::call("get_positions", "{}").signed("reader"),
        Request::call("execute_trade", TRADE).signed("trade-1"),
    ]
}

fn secret() -> Option<Credential> {
    Some(Credential::parse("Authorization", "Bearer of-the-gateway").unwrap())
}

// D-32, D-42
#[tokio::test]
async fn calls_cross_tls_over_the_pool_and_over_a_connection_of_their_own() {
    for (request, host) in requests().into_iter().zip([None, Some("gw.example.test".to_owned()), None]) {
        let (canary, address) = Canary::open().await;
        let outer = wrapped(address).await;
        let settings = HttpSettings {
            url: format!("https://localhost:{}/mcp", outer.port()),
            host: host.clone(),
            credential: secret(),
        };
        let house = house(settings, canary, true).await;
        let response = house.send(&request).await;
        assert_eq!((response.status, response.body.as_slice()), (200, RESULT.as_bytes()), "{response:?}");
        let (head, body) = house.canary.only();
        assert_eq!(body, request.body);
        let lines: Vec<&str> = head.split("\r\n").collect();
        let named = host.unwrap_or_else(|| format!("localhost:{}", outer.port()));
        assert!(lines.contains(&format!("host: {named}").as_str()), "{head}");
        // The gateway's own credential stands where the agent's never passes.
        let shown: Vec<&&str> = lines.iter().filter(|line| line.starts_with("authorization:")).collect();
        assert_eq!(shown, [&"authorization: Bearer of-the-gateway"]);
    }
}

// CORE-89: a server that is not who it should be costs nothing.
#[tokio::test]
async fn a_certificate_that_is_not_trusted_or_of_another_name_spends_nothing() {
    for (host, trusted) in [("localhost", false), ("127.0.0.2", true)] {
        let (canary, address) = Canary::open().await;
        let outer = wrapped(address).await;
        let settings = HttpSettings {
            url: format!("https://{host}:{}/mcp", outer.port()),
            host: Some("localhost".into()),
            credential: secret(),
        };
        let house = house(settings, canary, trusted).await;
        let response = house.send(&requests()[2]).await;
        assert_eq!(
            (response.status, response.json()["error"].as_str()),
            (503, Some("temporarily_unavailable"))
        );
        house.assert_untouched(host);
        let response = house.send(&Request::list()).await;
        assert_eq!((response.status, response.json()["forwarded"].as_str()), (502, Some("no")));
        assert_eq!(house.canary.count(), 0);
    }
}

#[tokio::test]
async fn a_credential_stays_with_its_upstream_and_the_answer_does_not_show_it() {
    let (canary, address) = Canary::open().await;
    let settings = HttpSettings { url: format!("http://{address}/mcp"), host: None, credential: secret() };
    let house = House::before(canary, UpstreamConfig::Http(settings)).await;
    let response = house.send(&Request::list()).await;
    let shown = format!("{response:?}{}", String::from_utf8_lossy(&response.body));
    assert!(!shown.contains("of-the-gateway"));
    assert!(house.canary.only().0.contains("of-the-gateway"));
}
