//! Host one of the enforcement core: a reverse proxy ahead of an MCP server that knows nothing about any of this.
//!
//! The core reads, decides and carries the answer; this is the way to the upstream, one connection a permit, and the
//! listener with the resource's published documents. Whether a call may pass is never decided here.

pub mod classify;
mod config;
mod serve;
pub mod survey;
mod upstream;

pub use config::{BODY_LIMIT, BadGateway, Gateway, GatewayConfig, ResourceConfig};
pub use sayso_enforce::Enforcement;
pub use serve::{router, serve};
pub use survey::{Survey, SurveyFault, Surveyed};
pub use upstream::stdio::{BadCommand, StdioCommand, launch};
pub use upstream::{BadCredential, BadUpstream, Credential, HttpSettings, Upstream, UpstreamConfig};

#[cfg(test)]
mod tests;
