//! What is said: the objects of the drafts, the same whatever binding carries them.
//!
//! Each file holds one object with its encoder, decoder and checks. How they travel is `envelope`'s business.

pub mod agreement;
pub mod assertion;
mod audience;
pub mod challenge;
pub mod client;
pub mod credential;
pub mod edition;
pub mod introduction;
pub mod metadata;
pub mod negotiation;
pub mod operation;
pub mod protection;
pub mod receipt;
pub mod refusal;
pub mod relink;
pub mod remediation;
pub mod rpt;
pub mod terms;
