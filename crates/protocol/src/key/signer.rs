//! The seam for private keys that are not in this process: a token, a signing agent, the program that embeds us.
//!
//! Only the signature crosses it; what comes back is verified before it is used. Waiting for a person who has to touch
//! something is the implementer's business.

/// Whoever holds the key did not sign.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("whoever holds the key did not sign")]
pub struct NotSigned;

/// Holds an Ed25519 key and signs with it. `sign` is called where an answer is waited for: it should be quick.
pub trait Signer: Send + Sync {
    /// The public half, 32 bytes.
    fn public_key(&self) -> [u8; 32];
    /// The signature over exactly these bytes (RFC 8032, no prehash), or nothing.
    fn sign(&self, message: &[u8]) -> Option<[u8; 64]>;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::key::SigningKey;
    use std::sync::Arc;

    /// Signs with one key and names perhaps another; gives up when told to.
    struct Token {
        named: SigningKey,
        held: SigningKey,
        there: bool,
    }

    impl Signer for Token {
        fn public_key(&self) -> [u8; 32] {
            *self.named.verifying().as_bytes()
        }
        fn sign(&self, message: &[u8]) -> Option<[u8; 64]> {
            self.there.then(|| self.held.sign(message).ok()).flatten()
        }
    }

    fn key(named: u8, held: u8, there: bool) -> SigningKey {
        let seed = |seed| SigningKey::from_seed(&[seed; 32]).unwrap();
        SigningKey::elsewhere(Arc::new(Token { named: seed(named), held: seed(held), there })).unwrap()
    }

    #[test]
    fn a_key_held_elsewhere_signs_as_one_that_is_here() {
        let here = SigningKey::from_seed(&[7; 32]).unwrap();
        assert_eq!(key(7, 7, true).sign(b"m"), here.sign(b"m"));
        assert_eq!(key(7, 7, true).kid(), here.kid());
    }

    #[test]
    fn what_does_not_hold_is_not_used() {
        assert_eq!(key(7, 7, false).sign(b"m"), Err(NotSigned));
        assert_eq!(key(7, 8, true).sign(b"m"), Err(NotSigned), "signed with another key");
        struct Weak;
        impl Signer for Weak {
            fn public_key(&self) -> [u8; 32] {
                [0; 32]
            }
            fn sign(&self, _: &[u8]) -> Option<[u8; 64]> {
                None
            }
        }
        assert!(SigningKey::elsewhere(Arc::new(Weak)).is_err());
    }
}
