//! Her hand puts an agent's new key in the place of its old one: the agent proves both, she accepts.
//!
//! Nothing of it happens by itself: without her request a new key is a stranger, and without both keys her request does
//! nothing. What she ended before stays ended.

use super::super::Shared;
use super::super::answer::{Detail, json};
use super::Hers;
use axum::extract::State;
use axum::response::Response;
use http::StatusCode;
use sayso_owner::connection::Relinked;
use sayso_protocol::payload::relink::{BadRelink, Relink};

pub(in super::super) async fn relink(State(authority): Shared, hers: Hers) -> Result<Response, Detail> {
    let statement: Relink = hers.json()?;
    let proven = statement.verify(authority.issuer(), authority.now()).map_err(detail)?;
    let (from, to) = (&proven.from, &proven.to);
    let done = authority.store.relink(&hers.owner, from, to, &hers.author, authority.now()).await?;
    match done {
        Relinked::Done(ended) => {
            tracing::info!(rpts = ended.rpts_deactivated, "connection.relinked");
            let body = serde_json::json!({
                "from": from, "to": to, "rpts_deactivated": ended.rpts_deactivated,
            });
            Ok(json(StatusCode::OK, &body))
        }
        Relinked::Unknown => Err(Detail::unknown("you have no connection of the old key")),
        Relinked::Over => {
            Err(Detail::invalid("the old key's connection has ended; the agent has to ask anew"))
        }
        Relinked::Taken => Err(Detail::invalid("the new key has a connection of its own, or had one")),
    }
}

fn detail(fault: BadRelink) -> Detail {
    Detail::invalid(match fault {
        BadRelink::Form => {
            "send by_old and by_new as the agent wrote them: two signed halves of one statement"
        }
        BadRelink::Halves => "the two halves must say the same and be signed by the two keys they name",
        BadRelink::Audience => "the statement is for another authority",
        BadRelink::Time => "the statement is not good now; have the agent make another one",
    })
}
