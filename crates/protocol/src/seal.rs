//! State put into a stranger's hands and taken back: sealed, so that it can be neither read nor altered on the way.
//!
//! AES-256-GCM-SIV under one key for one purpose. The key's name is in clear, so that what somebody else sealed is told
//! from what was tampered with. That a state is used once, and not too late, is its reader's to check.

use crate::b64;
use aws_lc_rs::aead::{AES_256_GCM_SIV, Aad, LessSafeKey, Nonce, UnboundKey};
use aws_lc_rs::hmac;

/// A key for one purpose. Has no `Debug`.
pub struct Seal {
    key: LessSafeKey,
    prefix: String,
    aad: Vec<u8>,
}

/// Why a state is none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NotSealed {
    /// It was not sealed here.
    #[error("sealed elsewhere, or not at all")]
    Foreign,
    /// It was, and altered since; or it is larger than any that is sealed.
    #[error("a sealed state was altered")]
    Altered,
}

const LONGEST: usize = 256 << 10;

impl Seal {
    /// A seal under this key. States sealed for one purpose do not open for another.
    ///
    /// # Errors
    /// When the key is not usable.
    pub fn new(key: &[u8; 32], purpose: &str) -> Result<Seal, NotSealed> {
        // Key and name are derived apart, so that the name in clear says nothing about the key.
        let secret = hmac::Key::new(hmac::HMAC_SHA256, key);
        let derive = |what: &str| hmac::sign(&secret, format!("sayso seal {what}\n{purpose}").as_bytes());
        let sealing = derive("key");
        let unbound = UnboundKey::new(&AES_256_GCM_SIV, sealing.as_ref()).map_err(|_| NotSealed::Foreign)?;
        let name: String = b64::encode(derive("name")).chars().take(10).collect();
        let aad = format!("sayso-state\n1\n{purpose}").into_bytes();
        Ok(Seal { key: LessSafeKey::new(unbound), prefix: format!("say1.{name}."), aad })
    }

    /// Seals a state. `nonce` must be 12 fresh random bytes.
    ///
    /// # Errors
    /// When it is too large.
    pub fn seal(&self, state: &[u8], nonce: [u8; 12]) -> Result<String, NotSealed> {
        let mut sealed = state.to_vec();
        let nonced = Nonce::assume_unique_for_key(nonce);
        let done = self.key.seal_in_place_append_tag(nonced, Aad::from(&self.aad[..]), &mut sealed);
        done.map_err(|_| NotSealed::Altered)?;
        let text = format!("{}{}", self.prefix, b64::encode([&nonce[..], &sealed].concat()));
        if text.len() > LONGEST { Err(NotSealed::Altered) } else { Ok(text) }
    }

    /// The state in a text that was sealed here.
    ///
    /// # Errors
    /// When it was not, or was altered.
    pub fn open(&self, text: &str) -> Result<Vec<u8>, NotSealed> {
        let body = text.strip_prefix(&self.prefix).ok_or(NotSealed::Foreign)?;
        if text.len() > LONGEST {
            return Err(NotSealed::Altered);
        }
        let bytes = b64::decode(body).map_err(|_| NotSealed::Altered)?;
        let (nonce, sealed) = bytes.split_first_chunk::<12>().ok_or(NotSealed::Altered)?;
        let mut sealed = sealed.to_vec();
        let nonced = Nonce::assume_unique_for_key(*nonce);
        let plain = self.key.open_in_place(nonced, Aad::from(&self.aad[..]), &mut sealed);
        plain.map(|plain| plain.to_vec()).map_err(|_| NotSealed::Altered)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_opens_where_it_was_sealed_and_unaltered() {
        let here = Seal::new(&[1; 32], "rounds").unwrap();
        let text = here.seal(b"state", [9; 12]).unwrap();
        assert!(!text.contains("state"));
        assert_eq!(here.open(&text).unwrap(), b"state");
        for other in [Seal::new(&[2; 32], "rounds"), Seal::new(&[1; 32], "other")] {
            assert_eq!(other.unwrap().open(&text), Err(NotSealed::Foreign));
        }
        for at in here.prefix.len()..text.len() {
            let mut altered = text.clone().into_bytes();
            altered[at] = if altered[at] == b'A' { b'B' } else { b'A' };
            assert_eq!(here.open(std::str::from_utf8(&altered).unwrap()), Err(NotSealed::Altered), "{at}");
        }
        for short in [0, 1, 20] {
            assert_eq!(here.open(&text[..here.prefix.len() + short]), Err(NotSealed::Altered));
        }
        assert_eq!(here.open("anything"), Err(NotSealed::Foreign));
        assert_eq!(here.seal(&vec![0; LONGEST], [9; 12]), Err(NotSealed::Altered));
    }
}
