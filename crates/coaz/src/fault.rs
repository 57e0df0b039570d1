//! Every way a message is not permitted: its category, the place in the mapping, and why (binding section 10).
//! INVARIANT: no variant holds an argument, a claim or an answer of the policy engine's; what it says of an
//! expression are words of that expression.

use sayso_protocol::message::RequestId;
use serde::Serialize;

use crate::answer::AnswerFault;
use crate::expr::ExpressionFault;
use crate::mapping::MAX_ENTRIES;

/// What kind of no it is; each has its JSON-RPC code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Category {
    /// The mapping cannot be resolved for this message.
    Mapping,
    /// The policy engine says no, or nobody may say yes.
    Denied,
    /// The policy engine cannot be asked, or its answer is none.
    Policy,
    /// Nobody knows which mapping applies.
    Unlisted,
}

impl Category {
    /// The JSON-RPC code (D-2).
    #[must_use]
    pub fn code(self) -> i64 {
        match self {
            Category::Mapping => -32602,
            Category::Denied => -32001,
            Category::Policy | Category::Unlisted => -32603,
        }
    }

    /// The name in `data.coaz.category`.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Category::Mapping => "mapping_error",
            Category::Denied => "denied",
            Category::Policy => "pdp_unavailable",
            Category::Unlisted => "mapping_unavailable",
        }
    }

    fn words(self) -> &'static str {
        match self {
            Category::Mapping => "COAZ mapping error",
            Category::Denied => "Access denied",
            Category::Policy => "Authorization service unavailable",
            Category::Unlisted => "Authorization mappings unavailable",
        }
    }
}

/// Why a message is not permitted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// Where in the mapping, as `resource.id` or `evaluations[1].action`; empty for the whole.
    pub place: String,
    /// Why.
    pub why: Why,
}

/// Why a message is not permitted, without the place.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Why {
    /// An expression cannot be compiled or evaluated.
    #[error("expression '{source_text}' failed: {fault}")]
    Expression {
        /// The expression with its `$`, its beginning if it is long.
        source_text: String,
        /// What is wrong with it.
        fault: ExpressionFault,
    },
    /// Something other than an object where an object stands.
    #[error("not an object")]
    NotAnObject,
    /// Not exactly one of `evaluation` and `evaluations`.
    #[error("a mapping has exactly one member, evaluation or evaluations")]
    Envelope,
    /// A member that means nothing there.
    #[error("unknown member")]
    UnknownMember,
    /// A member that must be there.
    #[error("missing")]
    Missing,
    /// Null, or an expression that yields nothing, where a value is required.
    #[error("no value where one is required")]
    NoValue,
    /// Something other than a string where a string stands.
    #[error("not a string")]
    NotAString,
    /// An empty string where a name stands.
    #[error("empty")]
    Empty,
    /// `evaluations` without entries, or not written out as a list of objects.
    #[error("evaluations must be a list of at least one object, written out")]
    Entries,
    /// More entries of `evaluations` than a mapping may have.
    #[error("more than {MAX_ENTRIES} entries")]
    TooManyEntries,
    /// A subject inside an entry.
    #[error("an entry of evaluations may not have a subject")]
    EntrySubject,
    /// A semantic that is unknown, or that cannot yield a decision for every entry.
    #[error("unknown or unusable evaluations_semantic")]
    Semantic,
    /// An element of a list that yields nothing.
    #[error("an element of a list yields nothing")]
    AbsentElement,
    /// The mapping is too large, too deep, or has too many expressions.
    #[error("the mapping is too large")]
    TooLarge,
    /// The inputs of a declared mapping are too large.
    #[error("the inputs are too large")]
    InputsTooLarge,
    /// A number in the inputs that neither 64 bits nor a double can hold.
    #[error("a number in the inputs cannot be represented exactly")]
    Number,
    /// The mapping could not be compiled just now.
    #[error("the mapping could not be compiled")]
    Compiling,
    /// `subject.id` is not the claim it was said to be.
    #[error("the subject is not that of the token")]
    Subject,
    /// The token has no usable subject-identity claim.
    #[error("the token has no subject claim")]
    NoSubject,
    /// Strict mode: `subject.id` cannot be verified against the token.
    #[error("the subject cannot be verified against the token")]
    Unanchored,
    /// `aud` does not name exactly this server.
    #[error("the audience does not name this server")]
    Audience,
    /// Two tools of one name.
    #[error("the tool is listed more than once")]
    Duplicate,
    /// Nothing maps this method.
    #[error("no mapping for this method")]
    Unmapped,
    /// The policy engine said no.
    #[error("the policy says no")]
    Policy,
    /// The policy engine said yes with obligations, which nobody here fulfils.
    #[error("the permit has obligations that are not supported")]
    Obligations,
    /// The policy engine's answer is none.
    #[error("{0}")]
    Answer(AnswerFault),
    /// No complete, fresh listing of the server's tools.
    #[error("the tools of the server are not known")]
    Unlisted,
}

impl Why {
    pub(crate) fn at(self, place: impl Into<String>) -> Fault {
        Fault { place: place.into(), why: self }
    }
}

/// Bytes of a member's name that a place repeats.
const NAME: usize = 64;
/// Bytes of an expression that a fault repeats.
const ECHO: usize = 200;

impl Fault {
    pub(crate) fn expression(place: &str, source: &str, fault: ExpressionFault) -> Fault {
        let cut = (0..=ECHO).rev().find(|at| source.is_char_boundary(*at)).unwrap_or_default();
        let (shown, more) =
            if source.len() > ECHO { (source.get(..cut).unwrap_or_default(), "…") } else { (source, "") };
        Why::Expression { source_text: format!("${shown}{more}"), fault }.at(place)
    }

    /// The same fault, seen from one level further out.
    pub(crate) fn inside(mut self, part: &str) -> Fault {
        let between = if self.place.is_empty() || self.place.starts_with('[') { "" } else { "." };
        // A stranger chose the names of members; they are repeated, but not at any length.
        let cut = (0..=NAME).rev().find(|at| part.is_char_boundary(*at)).unwrap_or_default();
        let part = part.get(..cut).unwrap_or(part);
        self.place = format!("{part}{between}{}", self.place);
        self
    }

    /// What kind of no it is.
    #[must_use]
    pub fn category(&self) -> Category {
        match self.why {
            Why::Unmapped | Why::Policy | Why::Obligations => Category::Denied,
            Why::Answer(_) => Category::Policy,
            Why::Unlisted => Category::Unlisted,
            _ => Category::Mapping,
        }
    }

    /// What whoever sent the message is told. A policy engine's troubles are not told: they are not theirs.
    #[must_use]
    pub fn message(&self) -> String {
        let category = self.category();
        let words = category.words();
        match (&self.why, self.place.as_str()) {
            (Why::Answer(_), _) => words.to_owned(),
            (why @ Why::Expression { .. }, _) | (why, "") => format!("{words}: {why}"),
            (why, place) => format!("{words}: {place}: {why}"),
        }
    }

    /// The same in words of the deployment's choosing.
    #[must_use]
    pub fn message_saying(&self, said: &str) -> String {
        format!("{}: {said}", self.category().words())
    }

    /// The JSON-RPC error, as the answer to the message with this id; `null` when the id is not known.
    #[must_use]
    pub fn body(&self, id: Option<&RequestId>) -> Vec<u8> {
        self.answer(id, &self.message())
    }

    /// The same, for a denial in words of the deployment's choosing.
    #[must_use]
    pub fn answer(&self, id: Option<&RequestId>, message: &str) -> Vec<u8> {
        let coaz = Coaz { category: self.category().as_str(), path: &self.place };
        let error = ErrorObject { code: self.category().code(), message, data: Data { coaz } };
        // An id is kept as its own text and everything else is text of ours, so nothing here can fail to be written.
        serde_json::to_vec(&Answer { jsonrpc: "2.0", id, error }).unwrap_or_default()
    }

    /// A denial as a tool result that says so, for deployments whose agents read results better than errors
    /// (binding section 10.2); nothing for faults that are no denial.
    #[must_use]
    pub fn tool_result(&self, id: &RequestId) -> Option<Vec<u8>> {
        self.tool_result_saying(id, &self.message())
    }

    /// The same, in words of the deployment's choosing.
    #[must_use]
    pub fn tool_result_saying(&self, id: &RequestId, message: &str) -> Option<Vec<u8>> {
        if self.category() != Category::Denied {
            return None;
        }
        let content = [Content { r#type: "text", text: message }];
        let result = ToolResult { content, is_error: true, result_type: "complete" };
        serde_json::to_vec(&Refused { jsonrpc: "2.0", id, result }).ok()
    }
}

#[derive(Serialize)]
struct Answer<'a> {
    jsonrpc: &'static str,
    id: Option<&'a RequestId>,
    error: ErrorObject<'a>,
}

#[derive(Serialize)]
struct ErrorObject<'a> {
    code: i64,
    message: &'a str,
    data: Data<'a>,
}

#[derive(Serialize)]
struct Data<'a> {
    coaz: Coaz<'a>,
}

#[derive(Serialize)]
struct Coaz<'a> {
    category: &'static str,
    #[serde(skip_serializing_if = "str::is_empty")]
    path: &'a str,
}

#[derive(Serialize)]
struct Refused<'a> {
    jsonrpc: &'static str,
    id: &'a RequestId,
    result: ToolResult<'a>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ToolResult<'a> {
    content: [Content<'a>; 1],
    is_error: bool,
    result_type: &'static str,
}

#[derive(Serialize)]
struct Content<'a> {
    r#type: &'static str,
    text: &'a str,
}

impl std::fmt::Display for Fault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.message())
    }
}

impl std::error::Error for Fault {}
