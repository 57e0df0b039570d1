//! The doors out of an authority (D-41): what the operator named and what strangers named are not reached alike.
//!
//! A resource server that introduced itself stays a stranger to the operator also when an owner approved it: she may
//! trust it with her things, but not with what this machine can reach.

use sayso_fetch::Fetch;
use sayso_owner::registry::IntroducedBy;
use std::sync::Arc;

/// The clients an authority asks resource servers with.
#[derive(Clone)]
pub struct Egress {
    /// For those of the deployment's configuration.
    pub configured: Arc<dyn Fetch>,
    /// For those that introduced themselves.
    pub strangers: Arc<dyn Fetch>,
}

impl Egress {
    /// The client for a resource server that became known in this way.
    pub(crate) fn to(&self, introduced: IntroducedBy) -> &dyn Fetch {
        match introduced {
            IntroducedBy::Setup => &*self.configured,
            IntroducedBy::Itself => &*self.strangers,
        }
    }
}
