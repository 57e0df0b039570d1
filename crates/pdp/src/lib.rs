//! OpenID AuthZEN policy decision points, whoever decides: one that is asked over HTTPS (`client`), one in this process
//! (`embedded`) and that one served to others (`serve`). Each is a [`sayso_coaz::DecisionPoint`].
//! It knows nothing of UMA; what of an answer is a yes is `sayso-coaz`'s.

pub mod client;
#[cfg(feature = "cedar")]
pub mod embedded;
pub mod serve;

#[cfg(feature = "cedar")]
pub use embedded::{BadPolicies, Embedded, EmbeddedSettings};
