//! What goes to a provider, and to nobody else.

use super::*;
use http::{Request, Response};
use serde_json::{Value, json as object};
use std::os::unix::fs::PermissionsExt as _;
use std::sync::Mutex;

const PROVIDER: &str = "https://idp.example/t1";
const TOKEN: &str = "https://idp.example/t1/token";
const AUTHORITY: &str = "https://as.example";
const SECRETS: [&str; 2] = ["id-token-of-kim", "client-secret"];

type Gives = Box<dyn Fn() -> (u16, Value) + Send + Sync>;

/// A provider that publishes an endpoint and exchanges, and everything that went out.
struct Web {
    endpoint: &'static str,
    issuer: &'static str,
    sent: Mutex<Vec<Request<Bytes>>>,
    gives: Gives,
}

#[async_trait]
impl Fetch for Web {
    async fn send(&self, request: Request<Bytes>, _: Limits) -> Result<Response<Bytes>, FetchError> {
        let posted = request.method() == http::Method::POST;
        let document = request.uri() == "https://idp.example/.well-known/oauth-authorization-server/t1";
        self.sent.lock().unwrap().push(request);
        let (status, body) = match (posted, document) {
            (true, _) => (self.gives)(),
            (false, true) => (200, object!({ "issuer": self.issuer, "token_endpoint": self.endpoint })),
            _ => (404, object!({})),
        };
        Ok(Response::builder().status(status).body(Bytes::from(body.to_string())).unwrap())
    }
}

fn assertion(issuer: &str, audience: &str) -> String {
    let key = SigningKey::from_seed(&[9; 32]).unwrap();
    let claims = object!({
        "iss": issuer, "sub": "kim", "aud": audience, "client_id": "c", "jti": "j", "iat": 1, "exp": 2,
    });
    jws::sign_under(&key, &object!({ "alg": "EdDSA", "typ": "oauth-id-jag+jwt" }), &claims).unwrap()
}

fn gives(token: String, kind: &'static str) -> Gives {
    Box::new(move || {
        (200, object!({ "access_token": token, "issued_token_type": kind, "token_type": "N_A" }))
    })
}

fn honest() -> Gives {
    gives(assertion(PROVIDER, AUTHORITY), FORMAT)
}

struct Stage {
    web: Arc<Web>,
    dir: tempfile::TempDir,
}

impl Stage {
    fn new(endpoint: &'static str, issuer: &'static str, gives: Gives) -> Stage {
        let web = Web { endpoint, issuer, sent: Mutex::default(), gives };
        let dir = tempfile::tempdir().unwrap();
        for secret in SECRETS {
            let path = dir.path().join(secret);
            std::fs::write(&path, secret).unwrap();
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
        }
        Stage { web: Arc::new(web), dir }
    }

    fn exchange(&self) -> Exchange {
        let [token, secret] = SECRETS.map(|name| self.dir.path().join(name));
        let mut exchange = Exchange::at(PROVIDER, &token, self.web.clone()).unwrap();
        exchange.client = Some(("c".into(), Some(secret)));
        exchange
    }

    /// What it gives to an authority that would believe this provider.
    async fn asked(&self, exchange: &Exchange, provider: &str) -> Result<Option<String>, Fault> {
        let scopes = ["a".parse().unwrap()];
        let demand = RequiredIdentity::of(&[provider.to_owned()], AUTHORITY, "https://gw.example", &scopes);
        let key = SigningKey::from_seed(&[1; 32]).unwrap();
        exchange
            .assertion(&Wanted { authority: AUTHORITY, demand: &demand, key: &key, now: Timestamp(5) })
            .await
    }

    fn leaked(&self) -> bool {
        self.web.sent.lock().unwrap().iter().any(|request| {
            let all = format!("{request:?} {}", String::from_utf8_lossy(request.body()));
            SECRETS.iter().any(|secret| all.contains(secret))
        })
    }
}

// CORE-37
#[tokio::test]
async fn what_is_exchanged_goes_to_its_own_provider() {
    let stage = Stage::new(TOKEN, PROVIDER, honest());
    let got = stage.asked(&stage.exchange(), PROVIDER).await.unwrap();
    assert_eq!(got, Some(assertion(PROVIDER, AUTHORITY)));
    let sent = stage.web.sent.lock().unwrap();
    let posted = sent.last().unwrap();
    assert_eq!((posted.uri().to_string().as_str(), sent.len()), (TOKEN, 2));
    let form: std::collections::HashMap<_, _> =
        url::form_urlencoded::parse(posted.body()).into_owned().collect();
    for (name, value) in [
        ("grant_type", "urn:ietf:params:oauth:grant-type:token-exchange"),
        ("requested_token_type", FORMAT),
        ("audience", AUTHORITY),
        ("resource", "https://gw.example"),
        ("scope", "a"),
        ("subject_token", "id-token-of-kim"),
        ("subject_token_type", "urn:ietf:params:oauth:token-type:id_token"),
        ("client_id", "c"),
        ("client_secret", "client-secret"),
    ] {
        assert_eq!(form.get(name).map(String::as_str), Some(value), "{name}");
    }
    let proof = jws::Unverified::parse(posted.headers()["dpop"].to_str().unwrap(), 4096).unwrap();
    assert_eq!(proof.typ(), Some("dpop+jwt"));
    let key = proof.jwk().unwrap();
    let claims: Value = proof.verify(&key).unwrap().claims().unwrap();
    assert_eq!((&claims["htu"], &claims["htm"], &claims["iat"]), (&TOKEN.into(), &"POST".into(), &5.into()));
    assert_eq!(key, *SigningKey::from_seed(&[1; 32]).unwrap().verifying());
}

// CORE-37
#[tokio::test]
async fn a_provider_that_only_the_authority_names_gets_nothing() {
    let stage = Stage::new(TOKEN, PROVIDER, honest());
    let others =
        ["https://p2.example", "https://idp.example/t1/", "https://idp.example", "https://idp.example/t2"];
    for named in others {
        assert!(matches!(stage.asked(&stage.exchange(), named).await, Ok(None)), "{named}");
    }
    assert!(stage.web.sent.lock().unwrap().is_empty(), "nobody was asked anything");
}

// CORE-37
#[tokio::test]
async fn a_token_endpoint_that_is_not_the_providers_gets_nothing() {
    for endpoint in [
        "https://evil.example/token",
        "https://idp.example.evil.example/token",
        "https://idp.example:8443/token",
        "http://idp.example/token",
        "https://user@idp.example/token",
    ] {
        let stage = Stage::new(endpoint, PROVIDER, honest());
        let published = stage.asked(&stage.exchange(), PROVIDER).await;
        assert!(matches!(published, Err(Fault::Show(BadShow::Endpoint))), "{endpoint}");
        let mut configured = stage.exchange();
        configured.token_endpoint = Some(endpoint.parse().unwrap());
        assert!(stage.asked(&configured, PROVIDER).await.is_err(), "{endpoint}");
        assert!(!stage.leaked() && stage.web.sent.lock().unwrap().len() == 1, "{endpoint}");
    }
    let stage = Stage::new(TOKEN, "https://idp.example", honest());
    assert!(stage.asked(&stage.exchange(), PROVIDER).await.is_err(), "the document of another tenant");
    assert!(!stage.leaked());
}

#[tokio::test]
async fn only_an_assertion_for_whoever_asks_is_shown() {
    for gives in [
        gives(assertion("https://p2.example", AUTHORITY), FORMAT),
        gives(assertion(PROVIDER, "https://other.example"), FORMAT),
        gives("an access token".into(), FORMAT),
        gives(assertion(PROVIDER, AUTHORITY), "urn:ietf:params:oauth:token-type:access_token"),
        Box::new(|| (400, object!({ "error": "invalid_grant" }))),
    ] {
        let stage = Stage::new(TOKEN, PROVIDER, gives);
        let got = stage.asked(&stage.exchange(), PROVIDER).await;
        assert!(matches!(got, Err(Fault::Show(BadShow::Exchange))));
    }
    let stage = Stage::new(TOKEN, PROVIDER, Box::new(|| (503, object!({}))));
    assert!(matches!(stage.asked(&stage.exchange(), PROVIDER).await, Err(Fault::Unavailable { .. })));
    assert!(Exchange::at("http://idp.example", Path::new("x"), stage.web.clone()).is_err());
}

#[tokio::test]
async fn a_file_is_shown_to_the_authority_it_is_for() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("assertion");
    let shown = async |text: &str, authority: &str| {
        std::fs::write(&path, text).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
        let demand = RequiredIdentity::of(&[PROVIDER.to_owned()], authority, "https://gw.example", &[]);
        let key = SigningKey::from_seed(&[1; 32]).unwrap();
        let wanted = Wanted { authority, demand: &demand, key: &key, now: Timestamp(5) };
        AssertionFile::at(&path).assertion(&wanted).await.unwrap()
    };
    let text = assertion(PROVIDER, AUTHORITY);
    assert_eq!(shown(&format!("{text}\n"), AUTHORITY).await, Some(text.clone()));
    assert_eq!(shown(&text, "https://other.example").await, None);
    assert_eq!(shown(&assertion("https://p2.example", AUTHORITY), AUTHORITY).await, None);
    assert_eq!(shown("nonsense", AUTHORITY).await, None);
}
