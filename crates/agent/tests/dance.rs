//! The agent against a resource and an authority that play every step, and every trick, over real sockets.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a test that cannot set up its stage has failed"
)]

#[path = "dance/demands.rs"]
mod demands;
#[path = "dance/elsewhere.rs"]
mod elsewhere;
#[path = "dance/hostile.rs"]
mod hostile;
#[path = "dance/house.rs"]
mod house;
#[path = "dance/identity.rs"]
mod identity;
#[path = "dance/line.rs"]
mod line;
#[path = "dance/papers.rs"]
mod papers;
#[cfg(feature = "rmcp")]
#[path = "dance/rmcp_client.rs"]
mod rmcp_client;
#[path = "dance/server.rs"]
mod server;
#[path = "dance/story.rs"]
mod story;
#[path = "dance/stub.rs"]
mod stub;
