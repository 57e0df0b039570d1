//! Access tokens of OAuth issuers: as they come, signed here so that the claims behind the signature are judged too, and
//! under whatever key set an issuer might publish. What is taken says, to a laxer reader as well, what it must say.

use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use http::{Request, Response};
use sayso_enforce::oauth::{IssuerSettings, JwtSettings, JwtTokens};
use sayso_enforce::{AccessTokens, TokenFault};
use sayso_fetch::{Fetch, FetchError, Limits};
use sayso_protocol::{Json, Timestamp, b64};
use serde_json::{Value, json};

use super::{framed, jws, ready};

/// When the tokens are looked at.
pub const NOW: Timestamp = Timestamp(1_790_000_000);
/// Who issues them.
pub const ISSUER: &str = "https://as.example";
/// Whom they are for.
pub const AUDIENCE: &str = "https://gw.example/mcp";

/// The body.
pub fn check(bytes: &[u8]) {
    let published = json!({"keys": [known()]}).to_string();
    let tokens = tokens(published.as_bytes());
    if let Ok(text) = std::str::from_utf8(bytes)
        && let Ok(claims) = judged(&tokens, text)
    {
        let parts: Vec<Vec<u8>> = text.split('.').map(|part| b64::decode(part).expect("base64url")).collect();
        assert_eq!(text, jws::signed(&parts[0], &parts[1], &jws::key()), "taken, and not signed by us");
        says_what_it_must(&parts[0], &parts[1], &claims);
    }
    let (header, payload) = framed::first_line(bytes);
    let token = jws::signed(header.as_bytes(), payload, &jws::key());
    if let Ok(claims) = judged(&tokens, &token) {
        says_what_it_must(header.as_bytes(), payload, &claims);
        for at in [0, token.len() / 2, token.len() - 1] {
            let mut altered = token.clone().into_bytes();
            altered[at] ^= 1;
            let altered = String::from_utf8(altered).expect("ASCII, still");
            assert!(judged(&tokens, &altered).is_err(), "a changed token is taken");
        }
    }
    key_set(bytes);
}

/// Whatever is published, only with our key in it does our token pass.
fn key_set(bytes: &[u8]) {
    let header = json!({"alg": "EdDSA", "typ": "at+jwt", "kid": jws::KID}).to_string();
    let claims = json!({"iss": ISSUER, "aud": AUDIENCE, "exp": NOW.0 + 60}).to_string();
    let token = jws::signed(header.as_bytes(), claims.as_bytes(), &jws::key());
    if ready::with_tasks(self::tokens(bytes).validate(&token, NOW)).is_ok() {
        let lax: Value = serde_json::from_slice(bytes).expect("a key set in JSON");
        let ours = |key: &Value| key["x"] == known()["x"] && key["kid"] == jws::KID && key.get("d").is_none();
        assert!(
            lax["keys"].as_array().is_some_and(|keys| keys.iter().any(ours)),
            "by a key that is not there"
        );
    }
}

/// Our key as it is published.
fn known() -> Value {
    let mut jwk = serde_json::to_value(jws::key().verifying().jwk()).expect("a key in JSON");
    jwk["kid"] = json!(jws::KID);
    jwk
}

fn judged(tokens: &JwtTokens, token: &str) -> Result<Json, TokenFault> {
    let judged = ready::with_tasks(tokens.validate(token, NOW));
    assert!(!matches!(judged, Err(TokenFault::Unavailable)), "the keys are published");
    judged
}

fn says_what_it_must(header: &[u8], payload: &[u8], claims: &Json) {
    let limits = sayso_protocol::json::Limits::default();
    assert_eq!(Json::parse(payload, limits).as_ref(), Ok(claims));
    let lax = |bytes: &[u8]| serde_json::from_slice::<Value>(bytes).ok();
    if let Some(header) = lax(header) {
        assert!(matches!(header["alg"].as_str(), Some("EdDSA" | "Ed25519")), "another algorithm");
        assert!(header.get("kid").is_none_or(|kid| kid == jws::KID), "another key");
        assert!(["crit", "b64", "jku", "jwk", "x5u", "x5c"].iter().all(|name| header.get(*name).is_none()));
    }
    let Some(claims) = lax(payload) else { return };
    assert_eq!(claims["iss"], ISSUER);
    let audience = &claims["aud"];
    let ours =
        audience == AUDIENCE || audience.as_array().is_some_and(|all| all.iter().any(|it| it == AUDIENCE));
    assert!(ours, "for another resource");
    let now = f64::from(i32::try_from(NOW.0).expect("a small number"));
    assert!(claims["exp"].as_f64().is_some_and(|exp| exp > now - 60.0), "expired");
    for name in ["nbf", "iat"] {
        assert!(claims.get(name).is_none_or(|at| at.as_f64().is_some_and(|at| at < now + 61.0)), "{name}");
    }
    assert!(claims.get("cnf").is_none(), "bound to a key");
}

fn tokens(published: &[u8]) -> JwtTokens {
    let issuer = IssuerSettings { issuer: ISSUER.into(), jwks_uri: Some("https://as.example/jwks".into()) };
    let settings =
        JwtSettings { issuers: vec![issuer], audiences: vec![AUDIENCE.into()], ..JwtSettings::default() };
    let keys = Keys(Bytes::copy_from_slice(published));
    JwtTokens::new(&settings, Arc::new(keys)).expect("fixed settings")
}

/// An issuer that publishes these bytes.
struct Keys(Bytes);

#[async_trait]
impl Fetch for Keys {
    async fn send(&self, _: Request<Bytes>, _: Limits) -> Result<Response<Bytes>, FetchError> {
        Ok(Response::new(self.0.clone()))
    }
}
