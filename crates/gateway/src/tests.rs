//! The gateway over real sockets: a scripted authority behind it, a canary upstream that keeps every byte, and a client
//! that sends exactly what it is told.

mod cast;
mod forwarding;
mod hostile;
mod listening;
mod policed;
mod published;
mod refusals;
mod rounds;
mod sessions;
mod stdio;
mod surveyed;
mod tls;
mod transport;
mod wire;
