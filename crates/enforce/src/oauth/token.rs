//! A compact JWT, taken apart strictly: one spelling of every part, no member twice, no header that names a key or asks
//! for something that is not understood.
//! It is readable before it is verified, since its issuer and its key are named inside; only `into_claims` of what a key
//! of that issuer has signed leaves this module.

use sayso_protocol::json::Limits;
use sayso_protocol::{Json, b64};

use super::claims::Rules;
use super::keys::{Algorithm, Key};

/// Bytes a token may have.
pub const MAX_TOKEN: usize = 16 << 10;
/// Levels of its claims; nobody needs more.
const DEPTH: usize = 32;

/// Headers by which a token would bring or fetch its own key, change how it is read, or demand something unknown.
const REFUSED: [&str; 9] = ["crit", "b64", "jku", "jwk", "x5u", "x5c", "zip", "enc", "cty"];

/// A parsed token nobody has vouched for.
pub(super) struct Unverified<'a> {
    signed: &'a [u8],
    signature: Vec<u8>,
    algorithm: Algorithm,
    kid: Option<String>,
    claims: Json,
}

impl<'a> Unverified<'a> {
    pub(super) fn parse(token: &'a str, rules: &Rules) -> Result<Unverified<'a>, &'static str> {
        const FORM: &str = "the token is not a JWT";
        if token.len() > MAX_TOKEN {
            return Err("the token is too long");
        }
        let mut parts = token.split('.');
        let (Some(head), Some(body), Some(tail), None) =
            (parts.next(), parts.next(), parts.next(), parts.next())
        else {
            return Err(FORM);
        };
        let object = |part: &str| {
            let limits = Limits { bytes: MAX_TOKEN, depth: DEPTH };
            let json = Json::parse(&b64::decode(part).ok()?, limits).ok()?;
            json.as_object().is_some().then_some(json)
        };
        let (header, claims) = (object(head).ok_or(FORM)?, object(body).ok_or(FORM)?);
        let signature = b64::decode(tail).map_err(|_| FORM)?;
        if REFUSED.iter().any(|name| header.get(name).is_some()) {
            return Err("the token's header asks for something that is not done here");
        }
        let algorithm = header.get("alg").and_then(Json::as_str).and_then(Algorithm::named);
        let algorithm = algorithm.filter(|algorithm| rules.algorithms.contains(algorithm));
        let algorithm = algorithm.ok_or("the token's signature algorithm is not taken")?;
        typed(&header, rules)?;
        let kid = match header.get("kid") {
            None => None,
            Some(kid) => Some(kid.as_str().ok_or(FORM)?.to_owned()),
        };
        let signed = token.as_bytes().get(..head.len() + 1 + body.len()).ok_or(FORM)?;
        Ok(Unverified { signed, signature, algorithm, kid, claims })
    }

    pub(super) fn issuer(&self) -> Option<&str> {
        self.claims.get("iss").and_then(Json::as_str)
    }

    pub(super) fn kid(&self) -> Option<&str> {
        self.kid.as_deref()
    }

    pub(super) fn algorithm(&self) -> Algorithm {
        self.algorithm
    }

    pub(super) fn claims(&self) -> &Json {
        &self.claims
    }

    pub(super) fn is_signed_by(&self, key: &Key) -> bool {
        key.verifies(self.algorithm, self.signed, &self.signature)
    }

    pub(super) fn into_claims(self) -> Json {
        self.claims
    }
}

/// A token of another kind is not taken for an access token (RFC 8725 section 3.11).
fn typed(header: &Json, rules: &Rules) -> Result<(), &'static str> {
    let plain = match header.get("typ") {
        None => true,
        Some(Json::String(typ)) if typ.eq_ignore_ascii_case("JWT") => true,
        Some(Json::String(typ)) => {
            let at_jwt = ["at+jwt", "application/at+jwt"].iter().any(|name| typ.eq_ignore_ascii_case(name));
            if !at_jwt {
                return Err("the token is of another type");
            }
            false
        }
        Some(_) => return Err("the token is of another type"),
    };
    if plain && rules.require_at_jwt { Err("the token is not of type at+jwt") } else { Ok(()) }
}
