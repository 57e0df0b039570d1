//! The mark on a request that its layer let through: what the guard behind the layer goes by.
//!
//! Only the layer makes one, one for each request, and it is good once: a server that handles one request twice runs one
//! call at most.

use sayso_protocol::payload::protection::AccessReport;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

/// Leave for the request in whose extensions it is. Nothing outside this crate makes one.
#[derive(Clone)]
pub struct Decided(Arc<Mutex<Option<Leave>>>);

/// What was decided.
pub(crate) struct Leave {
    /// The call a grant was spent on.
    #[cfg_attr(not(feature = "rmcp"), expect(dead_code, reason = "the layer itself knows"))]
    pub(crate) spent: Option<AccessReport>,
}

impl Decided {
    pub(crate) fn new(spent: Option<AccessReport>) -> Self {
        Self(Arc::new(Mutex::new(Some(Leave { spent }))))
    }

    /// The leave, for the first who asks.
    #[cfg(feature = "rmcp")]
    pub(crate) fn take(&self) -> Option<Leave> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Whether the leave was not taken yet.
    pub fn is_good(&self) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).is_some()
    }
}

impl fmt::Debug for Decided {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Decided")
    }
}
