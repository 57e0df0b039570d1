//! A resource whose tools can be learnt while it is served.
//!
//! Whoever decides or publishes takes one snapshot and uses it to the end, so no answer mixes two listings (MCP-02,
//! D-30). What a tool is and which definition of it the owner accepted is not decided here.

use crate::resource::{BadResource, Resource, ToolSettings};
use sayso_protocol::Realm;
use std::sync::{Arc, PoisonError, RwLock};

/// The current resource; clones share it.
#[derive(Clone)]
pub struct Registry(Arc<RwLock<Arc<Resource>>>);

impl Registry {
    /// The resource as it is now.
    pub fn snapshot(&self) -> Arc<Resource> {
        // INVARIANT: what is behind the lock is replaced whole, so a writer that panicked left nothing half done.
        Arc::clone(&self.0.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Replaces all tools at once. Requests that are being decided keep the ones they began with.
    ///
    /// # Errors
    /// When the tools contradict one another; then nothing changes.
    pub fn replace(&self, tools: Vec<ToolSettings>) -> Result<(), BadResource> {
        let mut current = self.0.write().unwrap_or_else(PoisonError::into_inner);
        *current = Arc::new(current.with_tools(tools)?);
        Ok(())
    }

    /// Names the realm, for a server that was not heard before it was served. For before its tools are known: ids are
    /// made of it.
    pub fn name(&self, realm: Realm) {
        let mut current = self.0.write().unwrap_or_else(PoisonError::into_inner);
        *current = Arc::new(current.in_realm(realm));
    }
}

impl From<Arc<Resource>> for Registry {
    fn from(resource: Arc<Resource>) -> Self {
        Self(Arc::new(RwLock::new(resource)))
    }
}

impl From<Resource> for Registry {
    fn from(resource: Resource) -> Self {
        Arc::new(resource).into()
    }
}

#[cfg(test)]
mod tests;
