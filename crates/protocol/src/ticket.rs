//! Sealed permission tickets (D-17): minting writes nothing, and only the authority that sealed one can open it.
//!
//! A fresh ticket is AES-256-GCM-SIV over the facts of the attempt, bound to issuer and store epoch; from its
//! first presentation on, tickets are random and live in the store. Who presented first is the store's decision.

use crate::b64;
use crate::id::{ClientId, NegotiationId, OwnerName, ResourceId, Scope, Timestamp};
use aws_lc_rs::aead::{AES_256_GCM_SIV, Aad, LessSafeKey, Nonce, UnboundKey};
use aws_lc_rs::hmac;
use serde::{Deserialize, Serialize};

/// What a sealed ticket says about the refused attempt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attempt {
    /// The negotiation this ticket opens: 128 random bits, base64url.
    pub negotiation: NegotiationId,
    /// The owner whose resource was reached for.
    pub owner: OwnerName,
    /// The resource server that asked.
    pub resource_server: ClientId,
    /// The resource.
    pub resource: ResourceId,
    /// The scopes that would suffice.
    pub scopes: Vec<Scope>,
    /// When the ticket stops being accepted.
    pub expires: Timestamp,
}

/// The text is no ticket of this authority and epoch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not a ticket of this authority")]
pub struct NotOurs;

/// The key that seals fresh tickets for one issuer and store epoch. Has no `Debug`.
pub struct Sealer {
    key: LessSafeKey,
    kid: String,
    aad: Vec<u8>,
}

const PREFIX: &str = "tkt1";
const LONGEST: usize = 4096;

impl Sealer {
    /// A sealer under `key`, named `kid`, whose tickets are valid at `issuer` in `epoch` only.
    ///
    /// # Errors
    /// When the key is not usable.
    pub fn new(key: &[u8; 32], kid: &str, issuer: &str, epoch: i64) -> Result<Self, NotOurs> {
        let unbound = UnboundKey::new(&AES_256_GCM_SIV, key).map_err(|_| NotOurs)?;
        let aad = format!("sayso-ticket\n1\n{kid}\n{issuer}\n{epoch}").into_bytes();
        Ok(Self { key: LessSafeKey::new(unbound), kid: kid.to_owned(), aad })
    }

    /// Seals an attempt. `nonce` must be 12 fresh random bytes.
    ///
    /// # Errors
    /// When the attempt is too large to seal.
    pub fn seal(&self, attempt: &Attempt, nonce: [u8; 12]) -> Result<String, NotOurs> {
        let mut sealed = serde_json::to_vec(attempt).map_err(|_| NotOurs)?;
        self.key
            .seal_in_place_append_tag(
                Nonce::assume_unique_for_key(nonce),
                Aad::from(&self.aad[..]),
                &mut sealed,
            )
            .map_err(|_| NotOurs)?;
        let body = [&nonce[..], &sealed].concat();
        Ok(format!("{PREFIX}.{}.{}", self.kid, b64::encode(body)))
    }

    /// Opens a ticket this key sealed. Expiry is the caller's to check, against its own clock.
    ///
    /// # Errors
    /// When it was sealed elsewhere, under another key or epoch, or was altered.
    pub fn open(&self, ticket: &str) -> Result<Attempt, NotOurs> {
        if ticket.len() > LONGEST {
            return Err(NotOurs);
        }
        let rest = ticket.strip_prefix(PREFIX).and_then(|rest| rest.strip_prefix('.')).ok_or(NotOurs)?;
        let body =
            rest.strip_prefix(self.kid.as_str()).and_then(|rest| rest.strip_prefix('.')).ok_or(NotOurs)?;
        let bytes = b64::decode(body).map_err(|_| NotOurs)?;
        let (nonce, sealed) = bytes.split_first_chunk::<12>().ok_or(NotOurs)?;
        let mut sealed = sealed.to_vec();
        let plain = self
            .key
            .open_in_place(Nonce::assume_unique_for_key(*nonce), Aad::from(&self.aad[..]), &mut sealed)
            .map_err(|_| NotOurs)?;
        serde_json::from_slice(plain).map_err(|_| NotOurs)
    }
}

/// Seconds a sealing key is used.
const DAY: i64 = 86_400;

/// The sealers of one authority: a key a day, all drawn from one secret, so that every process that has it accepts a
/// day's key before anyone uses it and for a day after (D-17). Has no `Debug`.
pub struct Sealers {
    secret: hmac::Key,
    name: String,
    issuer: String,
    epoch: i64,
}

impl Sealers {
    /// The sealers under `secret` for one issuer and store epoch.
    pub fn new(secret: &[u8; 32], issuer: &str, epoch: i64) -> Self {
        let secret = hmac::Key::new(hmac::HMAC_SHA256, secret);
        // The name in clear is a digest that says nothing about the secret.
        let name = b64::encode(hmac::sign(&secret, b"sayso ticket key name")).chars().take(8).collect();
        Self { secret, name, issuer: issuer.to_owned(), epoch }
    }

    fn of_day(&self, day: i64) -> Result<Sealer, NotOurs> {
        let drawn = hmac::sign(&self.secret, format!("sayso ticket key of day {day}").as_bytes());
        let key: [u8; 32] = drawn.as_ref().try_into().map_err(|_| NotOurs)?;
        Sealer::new(&key, &format!("{}-{day}", self.name), &self.issuer, self.epoch)
    }

    /// Seals an attempt under the key of the day. `nonce` must be 12 fresh random bytes.
    ///
    /// # Errors
    /// When the attempt is too large to seal.
    pub fn seal(&self, attempt: &Attempt, nonce: [u8; 12], now: Timestamp) -> Result<String, NotOurs> {
        self.of_day(now.0.div_euclid(DAY))?.seal(attempt, nonce)
    }

    /// Opens a ticket that is not expired, sealed under the key of this day or of a neighbouring one.
    ///
    /// # Errors
    /// When it was sealed elsewhere, is too old, or was altered.
    pub fn open(&self, ticket: &str, now: Timestamp) -> Result<Attempt, NotOurs> {
        let today = now.0.div_euclid(DAY);
        let attempt = [today, today.saturating_sub(1), today.saturating_add(1)]
            .into_iter()
            .find_map(|day| self.of_day(day).ok()?.open(ticket).ok())
            .ok_or(NotOurs)?;
        if attempt.expires > now { Ok(attempt) } else { Err(NotOurs) }
    }
}

/// Whether the text has the form of a sealed ticket, so that the store need not be asked about it.
pub fn is_sealed(ticket: &str) -> bool {
    ticket.starts_with("tkt1.")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn attempt() -> Attempt {
        Attempt {
            negotiation: "n1".parse().unwrap(),
            owner: "alice".parse().unwrap(),
            resource_server: "https://gw.example".parse().unwrap(),
            resource: "vault/x".parse().unwrap(),
            scopes: vec!["x:call".parse().unwrap()],
            expires: Timestamp(100),
        }
    }

    // CORE-110
    #[test]
    fn a_ticket_opens_only_where_it_was_sealed() {
        let here = Sealer::new(&[1; 32], "k1", "https://as.example", 1).unwrap();
        let ticket = here.seal(&attempt(), [9; 12]).unwrap();
        assert_eq!(here.open(&ticket).unwrap(), attempt());
        let others = [
            Sealer::new(&[2; 32], "k1", "https://as.example", 1).unwrap(),
            Sealer::new(&[1; 32], "k2", "https://as.example", 1).unwrap(),
            Sealer::new(&[1; 32], "k1", "https://other.example", 1).unwrap(),
            Sealer::new(&[1; 32], "k1", "https://as.example", 2).unwrap(),
        ];
        for other in others {
            assert_eq!(other.open(&ticket), Err(NotOurs));
        }
    }

    #[test]
    fn a_days_key_opens_until_the_day_after() {
        let sealers = Sealers::new(&[1; 32], "https://as.example", 1);
        let noon = Timestamp(20_000 * DAY + DAY / 2);
        let attempt = Attempt { expires: noon.plus(3 * DAY), ..attempt() };
        let ticket = sealers.seal(&attempt, [9; 12], noon).unwrap();
        let same_secret = Sealers::new(&[1; 32], "https://as.example", 1);
        for at in [noon, noon.plus(-DAY), noon.plus(DAY)] {
            assert_eq!(same_secret.open(&ticket, at).as_ref(), Ok(&attempt));
        }
        assert_eq!(sealers.open(&ticket, noon.plus(2 * DAY)), Err(NotOurs));
        assert_ne!(sealers.seal(&attempt, [9; 12], noon.plus(DAY)).unwrap(), ticket);
        let expired = sealers.seal(&Attempt { expires: noon, ..attempt.clone() }, [9; 12], noon).unwrap();
        assert_eq!(sealers.open(&expired, noon), Err(NotOurs));
        assert_eq!(Sealers::new(&[2; 32], "https://as.example", 1).open(&ticket, noon), Err(NotOurs));
    }

    #[test]
    fn an_altered_ticket_does_not_open() {
        let here = Sealer::new(&[1; 32], "k1", "https://as.example", 1).unwrap();
        let ticket = here.seal(&attempt(), [9; 12]).unwrap();
        for at in 0..ticket.len() {
            let mut bytes = ticket.clone().into_bytes();
            bytes[at] = if bytes[at] == b'A' { b'B' } else { b'A' };
            assert_eq!(here.open(&String::from_utf8(bytes).unwrap()), Err(NotOurs), "byte {at}");
        }
        assert_eq!(here.open(&"x".repeat(10_000)), Err(NotOurs));
    }
}
