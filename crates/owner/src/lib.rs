//! The owner's side as a pure domain: what she shares, on which terms, who may, and what was done.
//!
//! A negotiation is one state machine (`negotiation`), moved by beats of an agent and by her decision, never by
//! both through the same door: no message from an agent moves a state that waits for her. Nothing here does I/O;
//! `store` is the port through which every change is decided and recorded in one step.

pub mod connection;
pub mod decision;
pub mod evidence;
pub mod first;
pub mod issue;
pub mod ledger;
pub mod likeness;
pub mod negotiation;
pub mod registry;
pub mod session;
pub mod step;
pub mod store;
pub mod unit;
