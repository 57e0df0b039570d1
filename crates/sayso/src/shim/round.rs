//! A question put to a client that speaks the newest revision: an answer that asks back, and the state it comes back with.
//!
//! The state is sealed and says which call it is of, what was asked, and how often; a call comes back as a new request, to
//! this process or to one that was started since. What the client itself had put into its request before is in it too.

use super::edit::{Escaped, with};
use super::incoming::Incoming;
use super::words;
use sayso_agent::Ask;
use sayso_protocol::canon::{CanonError, S256, s256_of};
use sayso_protocol::id::{NegotiationId, Timestamp};
use sayso_protocol::json::{Json, Limits};
use sayso_protocol::seal::{NotSealed, Seal};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// How often a client is asked back before the wait is handed to it in words: stock clients give up after ten rounds, some
/// of them counting the first.
pub(super) const MOST: u8 = 8;
/// Seconds for which an answer is taken: as long as a person may take to read, and more.
const LIFE: i64 = 1800;
/// Most bytes of its own that a client gets carried through our questions.
const MOST_CARRIED: usize = 64 << 10;

const RESPONSES: [&str; 2] = ["params", "inputResponses"];
const STATE: [&str; 2] = ["params", "requestState"];

/// What was asked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Question {
    /// Whether to agree to terms of this negotiation: who dictates them, and every word of them. What names them is chosen
    /// by the authority, so it could say others under the same name.
    Terms { family: NegotiationId, terms: S256 },
    /// Whether to go on waiting.
    Wait,
}

impl Question {
    /// The question about these terms.
    ///
    /// # Errors
    /// When the terms have no canonical form.
    pub(super) fn about(ask: &Ask<'_>) -> Result<Question, CanonError> {
        let terms = s256_of(&json!([ask.resource, ask.authority, ask.proffer]))?;
        Ok(Question::Terms { family: ask.proffer.family.clone(), terms })
    }

    pub(super) fn key(&self) -> &'static str {
        match self {
            Question::Terms { .. } => "agree",
            Question::Wait => "keep_waiting",
        }
    }

    /// The schema of its one boolean.
    pub(super) fn schema(&self) -> Value {
        match self {
            Question::Terms { .. } => words::yes_or_no(
                self.key(),
                "Agree to these terms",
                "Yes signs the agreement in your name; no declines it, and the owner's authority is told.",
            ),
            Question::Wait => {
                words::yes_or_no(self.key(), "Keep waiting", "Yes goes on waiting for her; no stops.")
            }
        }
    }
}

/// What a person said to a question.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Said {
    Yes,
    No,
    /// Put aside without an answer.
    Nothing,
}

impl Said {
    /// What the result of an elicitation says.
    pub(super) fn of(result: &Json, key: &str) -> Said {
        let content = result.get("content").and_then(|content| content.get(key));
        match (result.get("action").and_then(Json::as_str), content.and_then(Json::as_bool)) {
            (Some("accept"), Some(true)) => Said::Yes,
            (Some("accept"), Some(false)) | (Some("decline"), _) => Said::No,
            _ => Said::Nothing,
        }
    }
}

/// Where a call stands in its rounds.
#[derive(Serialize, Deserialize)]
struct State {
    operation: S256,
    question: Question,
    asked: u8,
    expires: Timestamp,
    /// What the client had sent of its own.
    responses: Option<String>,
    state: Option<String>,
}

/// A call that comes, or comes back.
pub(super) struct Round {
    /// How often it was asked back before this.
    pub(super) asked: u8,
    /// What was asked last, and what was said.
    pub(super) answered: Option<(Question, Said)>,
    pub(super) own: (Option<String>, Option<String>),
}

/// A state that is not taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct NotTaken;

impl From<Escaped> for NotTaken {
    fn from(_: Escaped) -> NotTaken {
        NotTaken
    }
}

impl Round {
    /// Takes what is ours out of a call, and puts what is the client's own back in.
    pub(super) fn open(
        seal: &Seal,
        call: &mut Incoming,
        operation: &S256,
        now: Timestamp,
    ) -> Result<Round, NotTaken> {
        let own = |call: &Incoming| {
            (call.text(&RESPONSES).map(str::to_owned), call.text(&STATE).map(str::to_owned))
        };
        let text = call.param("requestState").and_then(Json::as_str).map(str::to_owned);
        let opened = match text.map(|text| seal.open(&text)) {
            None | Some(Err(NotSealed::Foreign)) => {
                return Ok(Round { asked: 0, answered: None, own: own(call) });
            }
            Some(opened) => opened.map_err(|_| NotTaken)?,
        };
        let state: State = serde_json::from_slice(&opened).map_err(|_| NotTaken)?;
        if state.operation != *operation || state.expires <= now {
            return Err(NotTaken);
        }
        let key = state.question.key();
        let result = call.param("inputResponses").and_then(|responses| responses.get(key));
        let said = result.map_or(Said::Nothing, |result| Said::of(result, key));
        let answered = result.is_some().then_some((state.question, said));
        call.drop(&RESPONSES)?;
        call.drop(&STATE)?;
        for (name, value) in [("inputResponses", &state.responses), ("requestState", &state.state)] {
            if let Some(value) = value {
                let put = with(&call.body, &["params"], name, value.as_bytes()).ok_or(NotTaken)?;
                call.replace(put).map_err(|_| NotTaken)?;
            }
        }
        Ok(Round { asked: state.asked, answered, own: (state.responses, state.state) })
    }

    /// The result that asks back, unless the client has been asked as often as it bears.
    pub(super) fn ask(
        &self,
        seal: &Seal,
        question: Question,
        message: &str,
        operation: &S256,
        (now, nonce): (Timestamp, [u8; 12]),
    ) -> Option<Value> {
        let carried = [&self.own.0, &self.own.1].into_iter().flatten().map(String::len).sum::<usize>();
        if self.asked >= MOST || carried > MOST_CARRIED {
            return None;
        }
        let request = json!({ "method": "elicitation/create", "params": {
            "mode": "form", "message": message, "requestedSchema": question.schema(), "_meta": words::meta(),
        }});
        let key = question.key();
        let state = State {
            operation: operation.clone(),
            question,
            asked: self.asked.saturating_add(1),
            expires: now.plus(LIFE),
            responses: self.own.0.clone(),
            state: self.own.1.clone(),
        };
        let sealed = seal.seal(&serde_json::to_vec(&state).ok()?, nonce).ok()?;
        Some(json!({
            "resultType": "input_required",
            "inputRequests": { key: request },
            "requestState": sealed,
            "_meta": words::meta(),
        }))
    }
}

/// Limits of what a client answers.
pub(super) const ANSWER: Limits = Limits { bytes: super::incoming::LONGEST, depth: 64 };

#[cfg(test)]
mod tests;
