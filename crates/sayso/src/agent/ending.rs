//! How a call ended, said three times over: words for a person, an exit code for a script, and with `--json` one object on
//! stdout for a program.
//!
//! With `--json` stdout always holds one line: the tool's result, or an object whose `outcome` says why there is none.

use super::{advice, show};
use crate::terminal::plain;
use sayso_agent::fault::Kind;
use sayso_agent::{Fault, Outcome};
use serde_json::{Map, Value};
use std::process::ExitCode;

/// An ending without a result.
pub(super) struct Ending {
    code: u8,
    /// The word of `outcome`.
    outcome: &'static str,
    words: String,
    /// Further members of the object.
    more: Map<String, Value>,
}

impl Ending {
    fn new(code: u8, outcome: &'static str, words: impl Into<String>) -> Self {
        Self { code, outcome, words: words.into(), more: Map::new() }
    }

    fn with(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.more.insert(name.to_owned(), value.into());
        self
    }

    fn advised(mut self, advice: Option<String>) -> Self {
        if let Some(advice) = advice {
            self.words = format!("{}; {advice}", self.words);
        }
        self
    }

    /// A fault met on the way to this resource.
    pub(super) fn of_fault(fault: &Fault, resource: &str) -> Self {
        let (code, outcome) = match fault.kind() {
            Kind::Usage => (2, "usage"),
            Kind::Refused => (6, "refused"),
            Kind::Unavailable => (7, "unavailable"),
        };
        Self::new(code, outcome, fault.to_string()).advised(advice::of(fault, resource))
    }

    /// Says so, and gives the exit code.
    pub(super) fn tell(self, as_json: bool) -> ExitCode {
        eprintln!("sayso agent: {}", self.words);
        let code = ExitCode::from(self.code);
        if as_json {
            show::print(&self.object().to_string());
        }
        code
    }

    fn object(self) -> Value {
        let mut object = self.more;
        object.insert("outcome".into(), self.outcome.into());
        object.insert("message".into(), self.words.into());
        Value::Object(object)
    }
}

/// A usage error that somebody else says to people.
pub(super) fn usage(words: &str) {
    show::print(&Ending::new(2, "usage", plain(words)).object().to_string());
}

/// Says how a call ended, and the exit code that says the same.
pub(super) fn end(outcome: &Outcome, resource: &str, resume: &str, as_json: bool) -> ExitCode {
    let ending = match outcome {
        Outcome::Result { json: result, failed } => {
            show::result(result, as_json);
            if *failed {
                eprintln!("sayso agent: the tool says that it failed");
            }
            return ExitCode::from(u8::from(*failed));
        }
        Outcome::ServerError { json: error } => server_error(error),
        Outcome::NotAccepted { declined } => not_accepted(*declined),
        Outcome::Denied { words } => {
            let said = show::with_words("denied by the owner or her policy", words.as_deref());
            Ending::new(4, "denied", said).with("words", words.clone())
        }
        Outcome::NotBelieved { words } => not_believed(words.as_deref()).with("words", words.clone()),
        Outcome::Unnamed { providers } => unnamed(providers).with("providers", providers.clone()),
        Outcome::Waiting { authority, family } => {
            Ending::new(5, "waiting", show::still_waiting(authority, resume))
                .with("authority", authority.as_str())
                .with("family", family.as_ref().map(ToString::to_string))
                .with("resume", resume)
        }
        // Of a caller who neither puts anything off nor shares the agent with others.
        Outcome::Later | Outcome::Busy | Outcome::Stopped => Ending::new(5, "waiting", "not finished"),
        Outcome::Refused(refused) => {
            let (code, outcome) = if refused.status >= 500 { (7, "unavailable") } else { (6, "refused") };
            Ending::new(code, outcome, show::refused(refused))
                .advised(advice::of_refusal(refused, resource))
                .with("status", refused.status)
                .with("code", refused.code.clone())
                .with("words", refused.words.clone())
        }
        Outcome::Unknown { why } => Ending::new(7, "unknown", show::unknown(*why)),
    };
    ending.tell(as_json)
}

fn server_error(error: &str) -> Ending {
    let value: Value = serde_json::from_str(error).unwrap_or_default();
    let message = value.get("message").and_then(Value::as_str).unwrap_or("no message");
    let code = value.get("code").cloned().unwrap_or_default();
    let words = format!("the server answered with an error: {} ({code})", plain(message));
    Ending::new(1, "failed", words).with("error", value)
}

fn not_believed(words: Option<&str>) -> Ending {
    let said = show::with_words("what was shown of an identity does not count with her authority", words);
    Ending::new(6, "not_believed", said).advised(Some(advice::DOUBTED.into()))
}

fn unnamed(providers: &[String]) -> Ending {
    let words = format!(
        "her authority wants to hear for whom this agent acts, from one of these: {}",
        plain(&providers.join(", "))
    );
    Ending::new(6, "identity_wanted", words).advised(Some(advice::UNNAMED.into()))
}

fn not_accepted(declined: bool) -> Ending {
    if declined {
        return Ending::new(3, "declined", "terms declined; the authority was told");
    }
    let words =
        "terms not accepted: there is no terminal to ask on; read them above, then add --accept-terms";
    Ending::new(3, "not_accepted", words)
}

#[cfg(test)]
mod tests {
    use super::*;
    use sayso_agent::fault::BadArguments;
    use serde_json::json;

    #[test]
    fn an_ending_is_one_object() {
        let object = Ending::new(6, "refused", "no").with("status", 403).advised(Some("x".into())).object();
        assert_eq!(object, json!({ "outcome": "refused", "message": "no; x", "status": 403 }));
        let fault = Fault::Arguments(BadArguments::NotObject);
        let object = Ending::of_fault(&fault, "http://127.0.0.1:8441/mcp").object();
        assert_eq!(object["outcome"], "usage");
        assert!(object["message"].as_str().unwrap().contains("--args '{"), "{object}");
        let error = server_error("{\"code\": -32000, \"message\": \"a\\u001b\"}");
        assert_eq!((error.code, error.words.contains("a\\u{1b} (-32000)")), (1, true), "{}", error.words);
        assert_eq!(error.object()["error"]["code"], -32000);
    }
}
