//! The requesting side: a client that is challenged, checks who decides, agrees to her terms, waits for her, and
//! calls again with what she granted (D-33).
//! It keeps to what it was told: no authority the resource did not publish, no terms nobody agreed to, no signed
//! call sent twice. It prints nothing and reads no clock; whoever embeds it shows the terms and answers for them.
//!
//! [`Agent::call`] makes one call, [`Consent`] is asked about terms, and what was agreed to and granted is in the
//! [`Wallet`]. With the feature `rmcp` an rmcp client is an agent by its transport.

mod asserting;
mod call;
mod discover;
pub mod fault;
mod folder;
pub mod identity;
mod negotiate;
#[cfg(feature = "rmcp")]
pub mod rmcp;
mod secret;
mod shows;
mod standing;
mod stop;
mod turns;
mod wallet;

pub use asserting::{AssertionFile, Assertions, Exchange, Wanted};
pub use call::{Agent, Answer, Errand, Letter, Line, Outcome, Refused};
pub use discover::{Authority, Dialled, Doors};
pub use fault::Fault;
pub use folder::FolderFault;
pub use identity::{Identity, Keystore};
pub use negotiate::{Ask, Consent, Decision, Narrower, News};
pub use shows::{BadShow, CredentialFile, Credentials, Shown, Shows, authority_origin};
pub use standing::{Allowed, Nobody, Rule, Standing};
pub use stop::{Stop, Stopper};
pub use wallet::{Grant, Kept, Wallet};
