//! An agreement as it arrives: by a bare key, or by a key that a credential names and that somebody has yet to vouch for.
//!
//! Both are verified under their key before anything else is made of them, so that nobody is asked about an agent that
//! did not sign (D-41). An agreement under a credential says nothing to anybody until the issuer's key vouched.

use super::{
    AgreementClaims, Breach, Described, MAX_CLAIM_TOKEN, SignedAgreement, TYP, is_for, operation_of,
};
use crate::b64;
use crate::id::Timestamp;
use crate::jws::Unverified;
use crate::payload::credential::{BadCredential, IssuerKeys, Shown};

/// An agreement whose signature verified under the key its header names.
pub enum Presented {
    /// By a bare key.
    Bare(Box<SignedAgreement>),
    /// By the key of a credential.
    Named(Box<Unvouched>),
}

/// An agreement by the key of a credential that nobody has vouched for.
pub struct Unvouched {
    agreement: SignedAgreement,
    credential: Shown,
}

impl Presented {
    /// Reads a `claim_token` and verifies it under its header's key (TERMS-22..24, AAUTH-01, AAUTH-10).
    ///
    /// # Errors
    /// When it is malformed, names no single key, shows what is no credential, or does not verify.
    pub fn read(claim_token: &str) -> Result<Self, Breach> {
        if claim_token.len() > MAX_CLAIM_TOKEN {
            return Err(Breach::Form);
        }
        let compact = b64::decode(claim_token).ok().and_then(|bytes| String::from_utf8(bytes).ok());
        let jws =
            Unverified::parse(&compact.ok_or(Breach::Form)?, MAX_CLAIM_TOKEN).map_err(|_| Breach::Form)?;
        if jws.typ() != Some(TYP) {
            return Err(Breach::Form);
        }
        match (jws.has("jwk"), jws.has("agent_token")) {
            (true, false) => {
                let key = jws.jwk().map_err(|_| Breach::Key)?;
                Ok(Presented::Bare(Box::new(verified(jws, &key)?)))
            }
            (false, true) => {
                let shown = jws.text("agent_token").and_then(|token| Shown::read(token).ok());
                let credential = shown.ok_or(Breach::Credential)?;
                // Which algorithm the key is used with is for its issuer to say, not for whoever wrote the header.
                if jws.alg() != credential.algorithm() {
                    return Err(Breach::Credential);
                }
                let agreement = verified(jws, credential.confirmed())?;
                Ok(Presented::Named(Box::new(Unvouched { agreement, credential })))
            }
            _ => Err(Breach::Key),
        }
    }
}

fn verified(jws: Unverified, key: &crate::VerifyingKey) -> Result<SignedAgreement, Breach> {
    let member = |name: &str| jws.text(name).map(str::to_owned);
    let described = Described { client_id: member("client_id"), directory: member("signature_agent") };
    let jws = jws.verify(key).map_err(|_| Breach::Signature)?;
    let claims: AgreementClaims = jws.claims().map_err(|_| Breach::Claims)?;
    let operation = operation_of(&jws)?;
    Ok(SignedAgreement { jws, claims, operation, credential: None, described })
}

impl Unvouched {
    /// The credential, as far as it can be read.
    pub fn credential(&self) -> &Shown {
        &self.credential
    }

    /// Whether it was signed recently and for this authority.
    pub fn is_for(&self, issuer: &str, now: Timestamp) -> bool {
        is_for(&self.agreement.claims, issuer, now)
    }

    /// The agreement under the name its credential gives it, if a key of the issuer's vouches for that (CORE-46).
    ///
    /// # Errors
    /// When none does, or the credential is not good for this authority now.
    pub fn vouched(
        self,
        keys: &IssuerKeys,
        authority: &str,
        now: Timestamp,
    ) -> Result<SignedAgreement, BadCredential> {
        let credential = self.credential.vouched(keys, authority, now)?;
        Ok(SignedAgreement { credential: Some(credential), ..self.agreement })
    }
}
