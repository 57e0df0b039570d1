//! The enforcement core: what an enforcement point owes whatever hosts it, in one order, with a permit only it makes.
//!
//! A host is two functions, request to [`Incoming`] and [`Verdict`] to response, around [`Engine::decide`]. This crate
//! knows no server framework, and never sees the owner's policy: it asks her authority and keeps the answer.

mod access_token;
pub mod address;
mod admit;
pub mod answer;
pub mod authority;
pub mod bearer;
pub mod call;
pub mod carry;
pub mod consequence;
mod enforcement;
pub mod engine;
mod grant;
pub mod listener;
pub mod listing;
#[cfg(feature = "coaz")]
pub mod oauth;
mod observe;
pub mod policy;
pub mod publish;
pub mod reading;
pub mod registry;
pub mod replay;
pub mod resource;
#[cfg(test)]
mod scripted;
#[cfg(test)]
mod scripted_policy;
pub mod server;
pub mod session;
pub mod verdict;

pub use access_token::{AccessTokens, TokenFault};
pub use address::Address;
pub use authority::{Authority, AuthorityKeys, Unavailable};
pub use call::{Body, Head, Incoming};
pub use engine::{Clock, Engine, Outlet};
pub use observe::{Observer, Outcome};
pub use policy::{Policy, PolicyRefusal};
pub use publish::Published;
pub use registry::Registry;
pub use replay::Replay;
pub use resource::{Enforcement, Policed, Resource, ResourceSettings, Tool};
pub use server::{BadServer, Served, Server, ServerConfig, ServerResource};
pub use session::{Closing, Named, Session, Shown};
pub use verdict::{Clearance, Permit, Verdict, Void};
