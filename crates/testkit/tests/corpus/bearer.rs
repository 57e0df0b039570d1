//! Seeds for the reader of OAuth access tokens: good ones, near misses, and the key sets they are checked with.

use serde_json::json;

use super::Seed;
use crate::targets::{access_token, jws};

pub(super) fn all() -> Vec<Seed> {
    tokens().into_iter().map(|text| ("access_token", text.into_bytes())).collect()
}

/// A header line with claims, whole tokens, and key sets.
fn tokens() -> Vec<String> {
    let now = access_token::NOW.0;
    let good = json!({"iss": access_token::ISSUER, "aud": access_token::AUDIENCE, "sub": "u-ann", "iat": now, "nbf": now,
        "exp": now + 600, "client_id": "agent-7", "roles": ["ops"]});
    let listed = json!({"iss": access_token::ISSUER, "aud": ["https://other.example", access_token::AUDIENCE],
        "exp": 1.790_000_100_5e9, "act": {"sub": "x"}});
    let bound = json!({"iss": access_token::ISSUER, "aud": access_token::AUDIENCE, "exp": now + 9, "cnf": {"jkt": "x"}});
    let header = json!({"alg": "EdDSA", "typ": "at+jwt", "kid": jws::KID});
    let other = json!({"alg": "RS256", "typ": "JWT", "kid": "r", "x5t": "AAAA"});
    let bringing = json!({"alg": "Ed25519", "jwk": {"kty": "OKP"}, "crit": ["b64"], "b64": false});
    let mut seeds = Vec::new();
    for header in [&header, &other, &bringing] {
        for claims in [&good, &listed, &bound] {
            seeds.push(format!("{header}\n{claims}"));
        }
    }
    let key = jws::key();
    seeds.push(jws::signed(header.to_string().as_bytes(), good.to_string().as_bytes(), &key));
    let mut jwk = serde_json::to_value(key.verifying().jwk()).expect("a key in JSON");
    jwk["kid"] = json!(jws::KID);
    seeds.push(json!({"keys": [jwk]}).to_string());
    jwk["use"] = json!("sig");
    jwk["alg"] = json!("EdDSA");
    jwk["key_ops"] = json!(["verify"]);
    let point = "AQIDBAUGBwgJCgsMDQ4PEBESExQVFhcYGRobHB0eHyA";
    let rsa = json!({"kty": "RSA", "n": "w".repeat(342), "e": "AQAB", "kid": "r", "alg": "RS256"});
    seeds
        .push(json!({"keys": [{"kty": "EC", "crv": "P-256", "x": point, "y": point}, rsa, jwk]}).to_string());
    seeds
}
