//! What waits for her and her answer, as every surface of hers shows and takes them.
//!
//! The arguments are those the agent wrote and signed, cut out of the agreement; an answer is taken once, by the store.

use crate::Authority;
use sayso_owner::decision::{Answer, Ruling};
use sayso_owner::ledger::Author;
use sayso_owner::negotiation::{Ask, Commitment};
use sayso_owner::store::{Unavailable, Waiting};
use sayso_protocol::{NegotiationId, OwnerName, b64, json};
use serde_json::value::RawValue;

/// One request that waits for her.
pub(crate) async fn find(
    authority: &Authority,
    owner: &OwnerName,
    family: &NegotiationId,
) -> Result<Option<Waiting>, Unavailable> {
    let waiting = authority.store.pending(owner, authority.now()).await?;
    Ok(waiting.into_iter().find(|waiting| waiting.family == *family))
}

/// Her answer; `None` when the request does not wait for it.
pub(crate) async fn answer(
    authority: &Authority,
    owner: &OwnerName,
    family: &NegotiationId,
    ruling: &Ruling,
    author: &Author,
) -> Result<Option<()>, Unavailable> {
    // Read for the log alone; whether it still waits is decided by the store.
    let asked = find(authority, owner, family).await?.map(|waiting| waiting.ask);
    let decided = authority.store.decide(owner, family, ruling, author, authority.now()).await?;
    if decided.is_some() {
        tracing::info!(family = %family, decision = ?ruling.answer, "owner.decision");
        if ruling.answer == Answer::Approved && asked == Some(Ask::Connection) {
            tracing::info!(family = %family, "connection.approved");
        }
    }
    Ok(decided)
}

/// Why she is asked.
pub(crate) fn because(waiting: &Waiting) -> &'static str {
    match (waiting.ask, &waiting.connection) {
        (Ask::Connection, None) => "You have never let this agent in.",
        (Ask::Connection, Some(_)) => "You ended this agent's connection; approving lets it in again.",
        (Ask::Operation, _) => "This unit asks you every time.",
    }
}

/// The arguments as the agent wrote and signed them; rewriting a number could show her something else than what is
/// hashed.
pub(crate) fn arguments(commitment: &Commitment) -> Option<Box<RawValue>> {
    let verbatim = || {
        let payload = b64::decode(commitment.agreement_jws.split('.').nth(1)?).ok()?;
        let at = json::locate(&payload, &["operation", "params"])?;
        RawValue::from_string(String::from_utf8(payload.get(at)?.to_vec()).ok()?).ok()
    };
    verbatim().or_else(|| serde_json::value::to_raw_value(commitment.params.as_ref()?).ok())
}
