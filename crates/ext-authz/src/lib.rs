//! The external-authorization hosts of the enforcement core: a gateway of others asks, and does as it is told.
//!
//! Over HTTP and over gRPC the same request gets the same decision. These hosts see neither the server nor its answer
//! (D-15): they let a call through or not, at most once, and what happens to it afterwards nobody here learns. No
//! refusal leaves here that a gateway could read as a yes (D-3).

mod authorizer;
mod decision;
pub mod grpc;
mod http;
mod outward;
mod passed;
mod ties;

pub use authorizer::ExtAuthz;
pub use decision::{Decision, Denial};
pub use grpc::{router as grpc_router, serve as serve_grpc};
pub use http::{CHECK, router as http_router, serve as serve_http};
pub use outward::{NeverPasses, Outward};
pub use passed::Whole;

#[cfg(test)]
mod tests;
