//! Agents with real keys, who sign real agreements, and the draws and the house they meet.

use crate::issue::Issuer;
use crate::step::{Beat, Draws, House};
use sayso_protocol::payload::agreement::{AgreementClaims, OperationClaim, SignedAgreement, sign};
use sayso_protocol::payload::edition::Edition;
use sayso_protocol::payload::terms::Proffer;
use sayso_protocol::{Handle, SigningKey, Timestamp, canon};
use serde_json::json;
use std::sync::atomic::{AtomicU64, Ordering};

/// The issuer of every case.
pub(crate) const ISSUER: &str = "https://as.example";

/// The authority's constants.
pub(crate) fn house() -> House {
    House {
        issuer: Issuer {
            url: ISSUER.into(),
            grants: SigningKey::from_seed(&[1; 32]).unwrap(),
            receipts: SigningKey::from_seed(&[2; 32]).unwrap(),
        },
        terms_endpoint: format!("{ISSUER}/terms"),
        edition: Edition::default(),
        interval: 5,
        providers: vec![],
    }
}

/// A source of bytes that never repeat.
#[derive(Default)]
pub(crate) struct Draw(AtomicU64);

impl Draw {
    fn bytes(&self) -> [u8; 32] {
        canon::sha256(&self.0.fetch_add(1, Ordering::Relaxed).to_be_bytes())
    }

    /// Sixteen of them.
    pub(crate) fn fresh(&self) -> [u8; 16] {
        let bytes = self.bytes();
        *bytes.first_chunk().unwrap()
    }

    /// A step's draws.
    pub(crate) fn draws(&self) -> Draws {
        Draws { ticket: self.bytes(), nonce: self.fresh(), jti: self.fresh() }
    }

    /// An agent nobody has seen.
    pub(crate) fn agent(&self) -> Agent {
        Agent { key: SigningKey::from_seed(&self.bytes()).unwrap() }
    }
}

/// An agent.
pub(crate) struct Agent {
    key: SigningKey,
}

impl Agent {
    /// Its handle.
    pub(crate) fn handle(&self) -> Handle {
        Handle::pseudonymous(&self.key.verifying().thumbprint())
    }

    /// Its public key.
    pub(crate) fn jwk(&self) -> sayso_protocol::Jwk {
        self.key.verifying().jwk()
    }

    /// The beat that agrees to exactly these terms; for a call like no other where they are per operation.
    pub(crate) fn agree(&self, proffer: &Proffer, now: Timestamp) -> Beat {
        self.agree_to(proffer, now, json!({ "note": proffer.nonce }))
    }

    /// The beat that agrees to these terms, for a call with these arguments where they are per operation.
    pub(crate) fn agree_to(&self, proffer: &Proffer, now: Timestamp, params: serde_json::Value) -> Beat {
        let terms = &proffer.terms;
        let operation = terms.per_operation.then(|| OperationClaim {
            tool: proffer.resource_id.as_str().rsplit('/').next().unwrap().parse().unwrap(),
            params: params.as_object().unwrap().clone(),
        });
        let claims = AgreementClaims {
            iss: None,
            aud: ISSUER.into(),
            iat: now,
            template_id: terms.template_id.clone(),
            terms_uri: proffer.terms_uri.clone(),
            purpose: terms.purpose.clone(),
            scope: terms.scope.clone(),
            expires_in: terms.expires_in,
            prohibited: terms.prohibited.clone(),
            family: proffer.family.clone(),
            nonce: proffer.nonce.clone(),
            operation,
            reason: Some("the quarterly report".into()),
            mission: None,
        };
        let token = sign(&self.key, &claims).unwrap();
        Beat::Commit(Box::new(SignedAgreement::read(&token).unwrap()), None)
    }
}
