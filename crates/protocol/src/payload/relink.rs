//! A key's successor: the same claims signed by the old key and by the new one, for an owner to accept by hand.
//!
//! No draft offers a pseudonymous agent a way to keep its standing when its key changes, so this form is our own. It
//! proves that whoever holds both keys wants it, and nothing more: only an owner's act makes one of it.

use crate::id::{Handle, Timestamp};
use crate::jws::{self, BadJws, KeyName, Unverified};
use crate::key::SigningKey;
use crate::sig::SKEW_SECONDS;
use serde::{Deserialize, Serialize};

/// The `typ` of both halves.
pub const TYP: &str = "sayso-relink-v1+jws";
/// Longest half read, in bytes.
pub const MAX_HALF: usize = 4096;
/// How long a statement may be good, in seconds: long enough for a person to come back to her desk.
pub const MAX_LIFE: i64 = 7 * 24 * 3600;

/// What both keys say.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Claims {
    aud: String,
    from: Handle,
    to: Handle,
    iat: Timestamp,
    exp: Timestamp,
}

/// The statement as it travels: two compact JWS over the same bytes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Relink {
    /// By the key that is to go.
    pub by_old: String,
    /// By the key that is to come.
    pub by_new: String,
}

/// A statement both keys signed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Proven {
    /// The handle that is to go.
    pub from: Handle,
    /// The handle that is to come.
    pub to: Handle,
}

/// Why a statement proves nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum BadRelink {
    /// A half is not a JWS of this type that its own key signed.
    #[error("each half must be a compact JWS of typ {TYP}, signed by the key in its header")]
    Form,
    /// The halves say different things, or name other keys than those that signed.
    #[error(
        "both halves must say the same, name the handles of the two keys that signed, and those must differ"
    )]
    Halves,
    /// It is for another authority.
    #[error("the statement is for another authority")]
    Audience,
    /// It has run out, is from the future, or would be good for too long.
    #[error("the statement is not good now; have the agent make another one")]
    Time,
}

impl Relink {
    /// States that `new` succeeds `old` at the authority of this issuer, from now on for `life` seconds.
    ///
    /// # Errors
    /// When whoever holds a key does not sign.
    pub fn sign(
        old: &SigningKey,
        new: &SigningKey,
        authority: &str,
        now: Timestamp,
        life: i64,
    ) -> Result<Relink, BadJws> {
        let handle = |key: &SigningKey| Handle::pseudonymous(&key.verifying().thumbprint());
        let claims = Claims {
            aud: authority.to_owned(),
            from: handle(old),
            to: handle(new),
            iat: now,
            exp: now.plus(life.clamp(1, MAX_LIFE)),
        };
        let by = |key| jws::sign(key, TYP, &KeyName::Jwk, &claims);
        Ok(Relink { by_old: by(old)?, by_new: by(new)? })
    }

    /// What the statement proves to the authority of this issuer, now.
    ///
    /// # Errors
    /// When it proves nothing.
    pub fn verify(&self, authority: &str, now: Timestamp) -> Result<Proven, BadRelink> {
        let (old, said) = half(&self.by_old)?;
        let (new, again) = half(&self.by_new)?;
        if said != again || said.from != old || said.to != new || old == new {
            return Err(BadRelink::Halves);
        }
        if said.aud != authority {
            return Err(BadRelink::Audience);
        }
        let life = said.exp.since(said.iat);
        if said.exp <= now || said.iat.since(now) > SKEW_SECONDS || !(1..=MAX_LIFE).contains(&life) {
            return Err(BadRelink::Time);
        }
        Ok(Proven { from: old, to: new })
    }
}

/// The handle of the key that signed a half, and what it says.
fn half(compact: &str) -> Result<(Handle, Claims), BadRelink> {
    let jws = Unverified::parse(compact, MAX_HALF).map_err(|_| BadRelink::Form)?;
    if jws.typ() != Some(TYP) {
        return Err(BadRelink::Form);
    }
    let key = jws.jwk().map_err(|_| BadRelink::Form)?;
    let verified = jws.verify(&key).map_err(|_| BadRelink::Form)?;
    let claims = verified.claims().map_err(|_| BadRelink::Form)?;
    Ok((Handle::pseudonymous(&key.thumbprint()), claims))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    const NOW: Timestamp = Timestamp(1_790_000_000);
    const US: &str = "https://as.example";

    fn key(seed: u8) -> SigningKey {
        SigningKey::from_seed(&[seed; 32]).unwrap()
    }

    fn handle(seed: u8) -> Handle {
        Handle::pseudonymous(&key(seed).verifying().thumbprint())
    }

    fn stated() -> Relink {
        Relink::sign(&key(1), &key(2), US, NOW, 600).unwrap()
    }

    #[test]
    fn both_keys_say_so() {
        let proven = stated().verify(US, NOW.plus(599)).unwrap();
        assert_eq!(proven, Proven { from: handle(1), to: handle(2) });
        let text = serde_json::to_string(&stated()).unwrap();
        assert_eq!(serde_json::from_str::<Relink>(&text).unwrap(), stated());
        assert!(serde_json::from_str::<Relink>(r#"{"by_old":"a","by_new":"b","by":"c"}"#).is_err());
    }

    #[test]
    fn one_key_alone_proves_nothing() {
        let Relink { by_old, by_new } = stated();
        let fault = |by_old: &str, by_new: &str| {
            Relink { by_old: by_old.into(), by_new: by_new.into() }.verify(US, NOW).unwrap_err()
        };
        assert_eq!(fault(&by_old, &by_old), BadRelink::Halves);
        assert_eq!(fault(&by_new, &by_old), BadRelink::Halves, "the wrong way round");
        assert_eq!(fault(&by_old, ""), BadRelink::Form);
        let thief = Relink::sign(&key(3), &key(2), US, NOW, 600).unwrap();
        assert_eq!(
            fault(&thief.by_old, &by_new),
            BadRelink::Halves,
            "another key says that it is the old one"
        );
        let same = Relink::sign(&key(1), &key(1), US, NOW, 600).unwrap();
        assert_eq!(same.verify(US, NOW), Err(BadRelink::Halves));
    }

    /// The statement with claims altered, both halves signed anew.
    fn with(over: Value) -> Result<Proven, BadRelink> {
        let mut claims =
            json!({ "aud": US, "from": handle(1), "to": handle(2), "iat": NOW, "exp": NOW.plus(600) });
        for (name, value) in over.as_object().unwrap() {
            claims[name] = value.clone();
        }
        let by = |seed| jws::sign(&key(seed), TYP, &KeyName::Jwk, &claims).unwrap();
        Relink { by_old: by(1), by_new: by(2) }.verify(US, NOW)
    }

    #[test]
    fn what_it_says_is_checked() {
        assert!(with(json!({})).is_ok());
        assert_eq!(with(json!({ "aud": "https://other.example" })), Err(BadRelink::Audience));
        assert_eq!(with(json!({ "aud": "https://as.example/" })), Err(BadRelink::Audience));
        assert_eq!(with(json!({ "from": handle(3) })), Err(BadRelink::Halves));
        assert_eq!(with(json!({ "to": handle(3) })), Err(BadRelink::Halves));
        assert_eq!(with(json!({ "exp": NOW })), Err(BadRelink::Time));
        assert_eq!(with(json!({ "exp": NOW.plus(MAX_LIFE + 1) })), Err(BadRelink::Time));
        assert_eq!(with(json!({ "iat": NOW.plus(61), "exp": NOW.plus(100) })), Err(BadRelink::Time));
        assert_eq!(with(json!({ "iat": "now" })), Err(BadRelink::Form));
        let other = jws::sign(&key(1), "x+jws", &KeyName::Jwk, &json!({})).unwrap();
        assert_eq!(Relink { by_old: other, ..stated() }.verify(US, NOW), Err(BadRelink::Form));
        let mut forged = stated();
        forged.by_old.pop();
        assert_eq!(forged.verify(US, NOW), Err(BadRelink::Form));
    }
}
