//! Tokens that are taken, and every neighbour that is not: confused keys and algorithms, other audiences, other times.

mod attacks;
mod claimed;
mod keys;
mod rotation;
mod signer;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use bytes::Bytes;
use http::{Request, Response};
use sayso_fetch::{Fetch, FetchError, Limits};
use sayso_protocol::{Json, Timestamp};
use serde_json::{Value, json};

use super::{IssuerSettings, JwtSettings, JwtTokens};
use crate::{AccessTokens, TokenFault};
use signer::Signer;

const NOW: Timestamp = Timestamp(1_790_000_000);
const ISSUER: &str = "https://as.example.test";
const AUDIENCE: &str = "https://gw.example.test/mcp";
const METADATA: &str = "https://as.example.test/.well-known/oauth-authorization-server";
const JWKS: &str = "https://as.example.test/jwks";

/// What is published, by URL; anything else is 404.
#[derive(Default)]
struct Web {
    pages: Mutex<BTreeMap<String, (u16, String, String)>>,
    down: Mutex<bool>,
    asked: Mutex<Vec<String>>,
}

impl Web {
    /// The usual issuer with these keys.
    fn publishing(keys: &[Value]) -> Arc<Web> {
        let web = Arc::new(Web::default());
        web.page(METADATA, &json!({"issuer": ISSUER, "jwks_uri": JWKS}));
        web.page(JWKS, &json!({"keys": keys}));
        web
    }

    fn page(&self, url: &str, body: &Value) {
        self.put(url, 200, "", &body.to_string());
    }

    fn put(&self, url: &str, status: u16, cache: &str, body: &str) {
        self.pages.lock().unwrap().insert(url.to_owned(), (status, cache.to_owned(), body.to_owned()));
    }

    fn down(&self, down: bool) {
        *self.down.lock().unwrap() = down;
    }

    fn asked(&self) -> Vec<String> {
        self.asked.lock().unwrap().clone()
    }

    fn looks(&self) -> usize {
        self.asked().iter().filter(|url| *url == JWKS).count()
    }
}

#[async_trait]
impl Fetch for Web {
    async fn send(&self, request: Request<Bytes>, _: Limits) -> Result<Response<Bytes>, FetchError> {
        assert_eq!(request.headers().len(), 1, "accept, and nothing of a caller's");
        let url = request.uri().to_string();
        self.asked.lock().unwrap().push(url.clone());
        tokio::task::yield_now().await;
        if *self.down.lock().unwrap() {
            return Err(FetchError::Unreachable);
        }
        let missing = (404, String::new(), String::new());
        let (status, cache, body) = self.pages.lock().unwrap().get(&url).cloned().unwrap_or(missing);
        let mut answer = Response::builder().status(status);
        if !cache.is_empty() {
            answer = answer.header("cache-control", cache);
        }
        Ok(answer.body(body.into()).unwrap())
    }
}

fn settings() -> JwtSettings {
    JwtSettings {
        issuers: vec![IssuerSettings { issuer: ISSUER.to_owned(), jwks_uri: None }],
        audiences: vec![AUDIENCE.to_owned()],
        ..JwtSettings::default()
    }
}

fn tokens(web: &Arc<Web>) -> JwtTokens {
    JwtTokens::new(&settings(), web.clone()).unwrap()
}

fn claims() -> Value {
    json!({"iss": ISSUER, "sub": "u-ann", "client_id": "agent-7", "aud": AUDIENCE,
        "iat": NOW.0 - 10, "exp": NOW.0 + 3600, "roles": ["ops"]})
}

/// The claims with one changed; null takes it away.
fn with(name: &str, value: Value) -> Value {
    let mut claims = claims();
    claims[name] = value;
    if claims[name].is_null() {
        claims.as_object_mut().unwrap().remove(name);
    }
    claims
}

fn header(alg: &str, kid: &str) -> Value {
    json!({"alg": alg, "typ": "at+jwt", "kid": kid})
}

/// A good token of the Ed25519 key.
fn good() -> String {
    Signer::ed().token("EdDSA", &header("EdDSA", "ed"), &claims())
}

async fn validate(tokens: &JwtTokens, token: &str) -> Result<Json, TokenFault> {
    tokens.validate(token, NOW).await
}

/// Refused, and in which words; anything else fails.
async fn refused(tokens: &JwtTokens, token: &str, name: &str) -> &'static str {
    match validate(tokens, token).await {
        Err(TokenFault::Invalid(words)) => words,
        other => panic!("{name}: {other:?}"),
    }
}
