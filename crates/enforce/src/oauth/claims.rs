//! What the claims of an access token must say, whoever signed them (RFC 9068 section 4, RFC 7519 section 4.1).
//! A claim of another type than it should be is a fault, never absent.

use sayso_protocol::{Json, Timestamp};

use super::keys::Algorithm;

/// What is taken here.
pub(super) struct Rules {
    pub(super) audiences: Vec<String>,
    pub(super) algorithms: Vec<Algorithm>,
    pub(super) require_at_jwt: bool,
    pub(super) skew: i64,
    pub(super) longest: i64,
}

/// Audience, times, and that the token is good for whoever bears it.
pub(super) fn check(claims: &Json, rules: &Rules, now: Timestamp) -> Result<(), &'static str> {
    audience(claims, rules)?;
    times(claims, rules, now)?;
    if claims.get("cnf").is_some() {
        // Taking it from anybody who bears it would undo what it is bound for (RFC 9449 section 7, RFC 8705 section 3).
        return Err("the token is bound to a key, and possession cannot be shown here");
    }
    Ok(())
}

fn audience(claims: &Json, rules: &Rules) -> Result<(), &'static str> {
    const FOREIGN: &str = "the token is not for this resource";
    let named = match claims.get("aud") {
        Some(Json::String(one)) => vec![one.as_str()],
        Some(Json::Array(several)) => {
            several.iter().map(Json::as_str).collect::<Option<Vec<_>>>().ok_or(FOREIGN)?
        }
        _ => return Err(FOREIGN),
    };
    let ours = |name: &&str| rules.audiences.iter().any(|audience| audience == name);
    if named.iter().any(ours) { Ok(()) } else { Err(FOREIGN) }
}

fn times(claims: &Json, rules: &Rules, now: Timestamp) -> Result<(), &'static str> {
    let expires = claims.get("exp").ok_or("the token does not say when it expires")?;
    let expires = seconds(expires).ok_or("the token's exp is no date")?;
    // The first second that is too late is `exp` itself (RFC 7519 section 4.1.4).
    if expires <= now.plus(-rules.skew).0 {
        return Err("the token has expired");
    }
    if expires > now.plus(rules.longest).plus(rules.skew).0 {
        return Err("the token lives longer than is taken here");
    }
    let begins = |name: &str, fault: &'static str, early: &'static str| match claims.get(name) {
        None => Ok(()),
        Some(value) => match seconds(value) {
            None => Err(fault),
            Some(begins) if begins > now.plus(rules.skew).0 => Err(early),
            Some(_) => Ok(()),
        },
    };
    begins("nbf", "the token's nbf is no date", "the token is not good yet")?;
    begins("iat", "the token's iat is no date", "the token was issued in the future")
}

/// The first second at which a token of these claims is not taken any more.
pub(super) fn until(claims: &Json, rules: &Rules) -> Option<Timestamp> {
    let expires = claims.get("exp").and_then(seconds)?;
    Some(Timestamp(expires).plus(rules.skew))
}

/// A NumericDate, a fraction of a second cut off.
fn seconds(value: &Json) -> Option<i64> {
    let number = value.as_number()?;
    if number.is_integer_text() {
        return number.as_i64();
    }
    // Every whole number up to here is a double of its own; no date is larger.
    const MOST: f64 = 9_007_199_254_740_992.0;
    let value = number.exact_f64().filter(|value| value.abs() < MOST)?;
    #[expect(
        clippy::cast_possible_truncation,
        reason = "cutting the fraction off is meant, and it is in range"
    )]
    Some(value.floor() as i64)
}
