//! The RFC 9421 profile of these drafts: what a signature must cover, and who proves what (CORE-55..64, D-8, D-9).
//!
//! One signature alone must cover the whole minimum, and the received `@signature-params` text is echoed byte for
//! byte. Which key must have signed is the caller's to say, and so is refusing a replay, by `Proof::each`.

mod base;
mod directory;
mod fields;
mod sign;
#[cfg(test)]
mod tests;

pub use directory::{DIRECTORY_TAG, is_signed_directory, sign_directory};
pub use fields::content_digest;
pub use sign::{SignOptions, Signed, sign};

use crate::canon::sha256;
use crate::id::Timestamp;
use crate::key::{Thumbprint, VerifyingKey};
use base::Request;
use fields::Candidate;
use http::HeaderMap;

/// How far `created` may lie from now, either way (O-16).
pub const SKEW_SECONDS: i64 = 60;

/// What every signature covers, whatever the request (CORE-56).
pub const MINIMUM: [&str; 4] = ["@method", "@authority", "@path", "authorization"];

/// The request as its signer or verifier knows it; what a header could spoof comes from configuration (CORE-59).
#[derive(Debug, Clone, Copy)]
pub struct Facts<'a> {
    /// The method as received; its case counts.
    pub method: &'a str,
    /// `https` or `http`, of the configured public URL.
    pub scheme: &'a str,
    /// The configured authority, lower-case and without the scheme's default port: see [`authority_of`].
    pub authority: &'a str,
    /// The path as received, before percent-decoding, without the query.
    pub path: &'a str,
    /// The query as received, without its `?`; `Some("")` for a bare `?`.
    pub query: Option<&'a str>,
    /// All header fields as received.
    pub headers: &'a HeaderMap,
    /// The body as received, before any content coding is removed.
    pub body: Body<'a>,
}

/// How much of the body is there to be hashed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Body<'a> {
    /// All of it; empty when the request has none.
    Whole(&'a [u8]),
    /// There may be one, but this host did not get it, or not all of it (CORE-64).
    Unavailable,
}

/// What this verifier demands beyond the minimum. The default is the strict one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Profile {
    /// Whether a body may go uncovered.
    pub body: BodyRule,
    /// How a query is covered.
    pub query: QueryRule,
}

/// Whether a body may go uncovered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum BodyRule {
    /// A body is covered through `content-digest` (CORE-62, CORE-63).
    #[default]
    RequireDigest,
    /// Older peers may leave it out; the proof then says so (D-8).
    AcceptUncovered,
}

/// How a query is covered. It always is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum QueryRule {
    /// As `@query`, whenever there is one (D-9).
    #[default]
    Cover,
    /// Or, by older peers that do not sign `@query`, as a part of `@path` (O-21).
    AcceptInPath,
}

/// Why a signature proves nothing. Says what failed, never what was sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SigFault {
    /// No label has both an input and a signature.
    #[error("the request is not signed")]
    Missing,
    /// The fields are not what RFC 9421 writes, or hold what cannot be signed.
    #[error("malformed signature fields")]
    Malformed,
    /// More labels, components or bytes than are looked at.
    #[error("signature fields are too large")]
    TooLarge,
    /// Something that must be signed is not.
    #[error("signature does not cover {0}")]
    UncoveredComponent(&'static str),
    /// A covered component is not defined here, has parameters, or is absent from the request.
    #[error("signature covers an unknown or absent component")]
    UnknownComponent,
    /// A component is listed twice.
    #[error("signature covers a component twice")]
    DuplicateComponent,
    /// A field that may occur once came twice.
    #[error("header {0} is repeated")]
    RepeatedHeader(&'static str),
    /// `created` is absent or not an integer.
    #[error("signature has no integer created time")]
    NoCreated,
    /// `created` lies too far back.
    #[error("signature is too old")]
    Stale,
    /// `created` lies too far ahead.
    #[error("signature is from the future")]
    FromTheFuture,
    /// `expires` has come.
    #[error("signature has expired")]
    Expired,
    /// `alg` is not ed25519.
    #[error("signature algorithm is not ed25519")]
    WrongAlgorithm,
    /// The signature does not verify under the key.
    #[error("signature does not verify")]
    BadSignature,
    /// The covered digest is not that of the body.
    #[error("content digest does not match the body")]
    DigestMismatch,
    /// The covered digest has no sha-256 entry.
    #[error("content digest has no sha-256 entry")]
    DigestUnsupported,
    /// A digest is covered and there is no body to compare it with.
    #[error("content digest cannot be checked without the body")]
    BodyUnavailable,
    /// Whoever holds the key did not sign. Only signing meets this.
    #[error("whoever holds the key did not sign")]
    Unsigned,
}

/// The signatures of a request, read and not yet believed.
pub struct Unverified {
    candidates: Vec<Candidate>,
}

/// Proof that the holder of a key signed this request. Only [`Unverified::verify`] makes one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Proof {
    /// When the signer says it signed.
    pub created: Timestamp,
    /// SHA-256 of the decoded signature: with `thumbprint`, what a replay cache remembers (D-9).
    pub signature_s256: [u8; 32],
    /// The key that verified it.
    pub thumbprint: Thumbprint,
    /// Whether a digest of the body is covered and matches. False for an empty body without a digest.
    pub covers_body: bool,
    /// What the key's further signatures on the request prove: each would do alone, in a copy without the others.
    pub further: Vec<Proof>,
    covered: Vec<String>,
}

impl Proof {
    /// Whether the signature covers `component`, e.g. `"@query"` or `"signature-agent"`.
    pub fn covers(&self, component: &str) -> bool {
        self.covered.iter().any(|name| name == component)
    }

    /// Every signature this request could be shown with again: what whoever refuses replays has to remember (D-9).
    pub fn each(&self) -> impl Iterator<Item = &Proof> {
        std::iter::once(self).chain(&self.further)
    }
}

/// Reads the signatures of a request: those labels that could qualify, at most four.
///
/// # Errors
/// When there is none, with the fault of the first label that fell short.
pub fn read(headers: &HeaderMap) -> Result<Unverified, SigFault> {
    Ok(Unverified { candidates: fields::candidates(headers)? })
}

impl Unverified {
    /// The key id the first candidate names: a hint for finding a key, never a proof (O-23).
    pub fn keyid(&self) -> Option<&str> {
        self.keyids().next()
    }

    /// The key ids of all candidates, in order.
    pub fn keyids(&self) -> impl Iterator<Item = &str> {
        self.candidates.iter().filter_map(|candidate| candidate.keyid.as_deref())
    }

    /// Looks at everything but the key: whether one of the signatures is fresh, covers what `profile` demands of `facts`,
    /// and names the body's digest. Proves nothing; it spares the search for a key that could not help.
    ///
    /// # Errors
    /// When none is, with the fault of the first.
    pub fn foresee(&self, facts: &Facts<'_>, profile: &Profile, now: Timestamp) -> Result<(), SigFault> {
        let mut first = None;
        for candidate in &self.candidates {
            match candidate.could_prove(facts, profile, now) {
                Ok(()) => return Ok(()),
                Err(fault) => first = first.or(Some(fault)),
            }
        }
        Err(first.unwrap_or(SigFault::Missing))
    }

    /// Verifies that one of the signatures is by `key`, fresh, and covers what `profile` demands of `facts`.
    ///
    /// # Errors
    /// When none is, with the fault of the first.
    pub fn verify(
        &self,
        facts: &Facts<'_>,
        key: &VerifyingKey,
        profile: &Profile,
        now: Timestamp,
    ) -> Result<Proof, SigFault> {
        for name in ["authorization", "content-digest"] {
            if facts.headers.get_all(name).iter().nth(1).is_some() {
                return Err(SigFault::RepeatedHeader(name));
            }
        }
        let (mut proofs, mut first) = (Vec::new(), None);
        for candidate in &self.candidates {
            match candidate.prove(facts, key, profile, now) {
                Ok(proof) => proofs.push(proof),
                Err(fault) => first = first.or(Some(fault)),
            }
        }
        let mut proofs = proofs.into_iter();
        let proof = proofs.next().ok_or(first.unwrap_or(SigFault::Missing))?;
        Ok(Proof { further: proofs.collect(), ..proof })
    }
}

impl Candidate {
    fn prove(
        &self,
        facts: &Facts<'_>,
        key: &VerifyingKey,
        profile: &Profile,
        now: Timestamp,
    ) -> Result<Proof, SigFault> {
        self.require_coverage(facts, profile)?;
        self.require_fresh(now)?;
        let request = Request {
            facts,
            content_digest: None,
            query_in_path: profile.query == QueryRule::AcceptInPath && !self.covers("@query"),
        };
        let base = base::signature_base(&self.covered, &self.params, &request)?;
        key.verify(base.as_bytes(), &self.signature).map_err(|_| SigFault::BadSignature)?;
        // Hashed last: until the signature verifies, the digest is anybody's claim and the work is theirs to cause.
        let covers_body = self.covers("content-digest");
        if covers_body {
            fields::require_digest(facts)?;
        }
        Ok(Proof {
            created: self.created,
            signature_s256: sha256(&self.signature),
            thumbprint: key.thumbprint(),
            covers_body,
            further: Vec::new(),
            covered: self.covered.clone(),
        })
    }

    fn could_prove(&self, facts: &Facts<'_>, profile: &Profile, now: Timestamp) -> Result<(), SigFault> {
        self.require_coverage(facts, profile)?;
        self.require_fresh(now)?;
        if self.covers("content-digest") { fields::require_digest(facts) } else { Ok(()) }
    }

    fn require_coverage(&self, facts: &Facts<'_>, profile: &Profile) -> Result<(), SigFault> {
        let body = facts.body != Body::Whole(b"") && profile.body == BodyRule::RequireDigest;
        let query = facts.query.is_some() && profile.query == QueryRule::Cover;
        let agent = facts.headers.contains_key("signature-agent");
        for (needed, name) in [(body, "content-digest"), (query, "@query"), (agent, "signature-agent")] {
            if needed && !self.covers(name) {
                return Err(SigFault::UncoveredComponent(name));
            }
        }
        Ok(())
    }

    fn require_fresh(&self, now: Timestamp) -> Result<(), SigFault> {
        let age = now.since(self.created);
        if age > SKEW_SECONDS {
            return Err(SigFault::Stale);
        }
        if age < -SKEW_SECONDS {
            return Err(SigFault::FromTheFuture);
        }
        match self.expires {
            Some(expires) if expires <= now || expires < self.created => Err(SigFault::Expired),
            _ => Ok(()),
        }
    }
}

/// The authority of a public URL in the form signatures carry: lower-case, default port dropped.
pub fn authority_of(url: &url::Url) -> Option<String> {
    let host = url.host_str()?;
    Some(url.port().map_or_else(|| host.to_owned(), |port| format!("{host}:{port}")))
}
