//! Host two of the enforcement core: inside the server it protects.
//!
//! [`SiteLayer`] goes around any MCP server that is a tower service and answers over HTTP: real 401s, the resource's
//! documents, and only what was permitted behind it. For servers written with rmcp there is also the guard:
//! `rmcp::over_http` puts it behind the layer, where it lets pass what the layer passed and announces the extension;
//! `rmcp::Guarded` goes around a server on any other transport, where nothing protected is ever allowed (D-15). Whether a
//! call may pass is never decided here.

mod inner;
mod layer;
mod passage;
#[cfg(feature = "rmcp")]
pub mod rmcp;
mod site;
mod spoken;

pub use layer::{Body, BrokenOff, Layered, SiteLayer};
pub use passage::Decided;
pub use sayso_enforce::BadServer;
pub use sayso_enforce::carry::Source;
#[cfg(feature = "coaz")]
pub use sayso_enforce::policy;
pub use sayso_enforce::{AccessTokens, Enforcement, Policed, TokenFault, resource::ToolSettings};
pub use site::{BODY_LIMIT, Hers, Site, SiteConfig, system_clock};

// The examples are driven by the tests, and name this crate as anybody does.
#[cfg(test)]
extern crate self as sayso_embed;
#[cfg(test)]
mod tests;
