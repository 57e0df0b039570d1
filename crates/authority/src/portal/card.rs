//! One waiting request as she sees it: who asks, what was checked, what it would do, and what her answer would mean.
//!
//! Facts come first and the agent's own words last, marked as such. Every text of a stranger's goes through the
//! template's escaper.

use super::act::SignedIn;
use super::arguments::Arguments;
use crate::words::duration;
use crate::{asked, checked};
use sayso_owner::negotiation::{Ask, Commitment};
use sayso_owner::store::Waiting;
use sayso_owner::unit::Unit;
use sayso_protocol::payload::rpt::MAX_LIFE;

/// One waiting request.
pub(super) struct Card {
    pub(super) family: String,
    pub(super) agreement: String,
    pub(super) title: String,
    pub(super) agent: String,
    /// What was checked about it, a sentence an axis.
    pub(super) checked: Vec<String>,
    /// What is known of the agent from her own record.
    pub(super) known: String,
    pub(super) because: &'static str,
    pub(super) resource: String,
    pub(super) server: String,
    pub(super) unit: String,
    pub(super) purpose: String,
    pub(super) scopes: String,
    pub(super) promises: Vec<Promise>,
    pub(super) arguments: Option<Arguments>,
    pub(super) allows: String,
    pub(super) admits: Option<String>,
    /// What she will not see of it.
    pub(super) unseen: Option<&'static str>,
    pub(super) forbids: &'static str,
    pub(super) reason: Option<String>,
    pub(super) mission: Option<String>,
    pub(super) asked: String,
    pub(super) lapses: String,
    /// For the form that approves; none where what is shown is not what was signed.
    pub(super) approve: Option<String>,
    /// For the form that denies.
    pub(super) deny: String,
}

/// One promise.
pub(super) struct Promise {
    pub(super) text: String,
    /// How it is upheld, if it is.
    pub(super) upheld: Option<String>,
}

impl Card {
    pub(super) fn of(waiting: &Waiting, units: &[Unit], by: &SignedIn) -> Self {
        let commitment = &waiting.commitment;
        let terms = &commitment.proffer.terms;
        let arguments = Arguments::of(commitment);
        let (family, agreement) = (waiting.family.to_string(), commitment.agreement.to_string());
        let token = |answer: &str| by.token(&act(answer, &family, &agreement));
        let whole = arguments.as_ref().is_none_or(|arguments| arguments.agrees);
        Self {
            title: title(waiting),
            agent: commitment.handle.to_string(),
            checked: checked::sentences(&commitment.evidence),
            known: known(waiting),
            because: asked::because(waiting),
            resource: waiting.resource.to_string(),
            server: waiting.client_id.to_string(),
            unit: commitment.unit.to_string(),
            purpose: terms.purpose.clone(),
            scopes: commitment.scope.iter().map(ToString::to_string).collect::<Vec<_>>().join(", "),
            promises: promises(commitment),
            arguments,
            allows: allows(commitment, units),
            admits: (waiting.ask == Ask::Connection).then(|| admits(units)),
            unseen: commitment
                .bind
                .then_some("This tool may ask follow-up questions; you will not see the answers."),
            forbids: if terms.per_operation {
                "It does not allow other arguments, a second call, or any other tool."
            } else {
                "It does not allow any other tool or scope, and no other agent can use it."
            },
            reason: commitment.reason.clone(),
            mission: commitment.mission.as_ref().map(|it| format!("{} ({})", it.approver, it.s256)),
            asked: commitment.at.utc(),
            lapses: waiting.deadline.utc(),
            approve: whole.then(|| token("approved")),
            deny: token("denied"),
            family,
            agreement,
        }
    }
}

/// What a form of a card would do, as its token is made for.
pub(super) fn act<'a>(answer: &'a str, family: &'a str, agreement: &'a str) -> [&'a str; 4] {
    ["decide", answer, family, agreement]
}

fn title(waiting: &Waiting) -> String {
    match &waiting.commitment.operation {
        Some(operation) => operation.tool.to_string(),
        None => waiting.resource.to_string(),
    }
}

fn known(waiting: &Waiting) -> String {
    match (&waiting.connection, waiting.ask) {
        (None, _) => "a stranger: this is its first contact".into(),
        (Some(known), Ask::Connection) => {
            format!("you let it in on {} and ended it since", known.first_seen.utc())
        }
        (Some(known), Ask::Operation) => {
            let last = known.last_access.map_or_else(|| "never".into(), |at| at.utc());
            format!("let in since {}; its last call: {last}", known.first_seen.utc())
        }
    }
}

fn promises(commitment: &Commitment) -> Vec<Promise> {
    let enforced = &commitment.proffer.terms.enforced;
    let promise = |text: &String| Promise { text: text.clone(), upheld: enforced.get(text).cloned() };
    commitment.prohibited.iter().map(promise).collect()
}

/// What a yes allows, in one sentence.
fn allows(commitment: &Commitment, units: &[Unit]) -> String {
    let life = duration(commitment.expires_in.min(MAX_LIFE));
    if commitment.proffer.terms.per_operation {
        return format!(
            "one call with exactly these arguments, once, by this agent, within {life} of your answer."
        );
    }
    let asks = units.iter().find(|unit| unit.id == commitment.unit).is_none_or(|unit| unit.ask_me);
    let then = if asks { "Then you are asked again." } else { "It can renew that without asking you." };
    format!("any number of calls within these scopes, by this agent, for {life}. {then}")
}

/// What else a first yes opens.
fn admits(units: &[Unit]) -> String {
    let open: Vec<&str> = units.iter().filter(|unit| !unit.ask_me).map(|unit| unit.name.as_str()).collect();
    if open.is_empty() {
        return "It also lets this agent in. You are still asked about everything it wants.".into();
    }
    format!("It also lets this agent in: from then on it gets, without asking you, {}.", open.join(", "))
}
