//! Every way an agent's errand ends without an answer from the other side, and whose fault it was.
//! It keeps strangers' words out: what a peer wrote travels in outcomes, never in an error.

use crate::folder::FolderFault;
use crate::shows::BadShow;
use sayso_fetch::FetchError;
use sayso_protocol::canon::CanonError;
use sayso_protocol::envelope::rfc9728::BadDocument;
use sayso_protocol::json::JsonError;
use sayso_protocol::payload::challenge::BadChallenge;

/// Why there is neither a result nor a decision.
#[derive(Debug, thiserror::Error)]
pub enum Fault {
    /// The resource's URL is not one that can be compared byte for byte.
    #[error(
        "not a resource URL: write http or https, the host in lower case, no default port, user, query or fragment"
    )]
    Resource,
    /// The arguments are no object, or hold what canonical JSON cannot say.
    #[error("the arguments must be one JSON object: {0}")]
    Arguments(#[from] BadArguments),
    /// What is to be sent cannot be written: a name that fits no header, an agreement that fits no token.
    #[error("the call cannot be written: a name or text in it is none that can be sent")]
    Unwritable,
    /// A file of the agent's own.
    #[error(transparent)]
    Folder(#[from] FolderFault),
    /// What it shows of itself cannot be shown.
    #[error(transparent)]
    Show(#[from] BadShow),
    /// The system has no randomness to give.
    #[error("the system gives no random bytes")]
    Random,
    /// The challenge cannot be acted on.
    #[error(transparent)]
    Challenge(#[from] BadChallenge),
    /// The challenge is not corroborated by the resource.
    #[error(transparent)]
    Uncorroborated(#[from] Uncorroborated),
    /// What the authority demands or answers is not what the protocol lets it.
    #[error(transparent)]
    Demand(#[from] BadDemand),
    /// The server does not speak MCP as known here.
    #[error(transparent)]
    Server(#[from] BadServer),
    /// A party could not be asked.
    #[error("{who}: {why}")]
    Unavailable {
        /// Which.
        who: Party,
        /// Why.
        why: FetchError,
    },
}

/// What is wrong with arguments.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum BadArguments {
    /// Not strict JSON.
    #[error(transparent)]
    Text(#[from] JsonError),
    /// JSON that nothing can be bound to.
    #[error(transparent)]
    Canon(#[from] CanonError),
    /// Another kind of value.
    #[error("this is JSON, and not an object")]
    NotObject,
    /// A number that a double does not hold.
    #[error("a number in it is none that a double holds exactly")]
    Inexact,
}

/// Whom a request was for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Party {
    /// The MCP server, or whoever stands before it.
    Resource,
    /// The owner's authority.
    Authority,
    /// An identity provider of the agent's own.
    Provider,
}

impl std::fmt::Display for Party {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Party::Resource => "the resource",
            Party::Authority => "the owner's authority",
            Party::Provider => "the identity provider",
        })
    }
}

impl Party {
    /// This party, not reached.
    pub(crate) fn unavailable(self, why: FetchError) -> Fault {
        Fault::Unavailable { who: self, why }
    }
}

/// Why a challenge is not corroborated; nothing was sent to the authority it names (D-33).
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Uncorroborated {
    /// The challenge names a metadata document of somebody else's.
    #[error("the challenge names a metadata document that is not on the resource's own origin")]
    ForeignDocument,
    /// The document says other things than it should.
    #[error(transparent)]
    Document(#[from] BadDocument),
    /// There is no document.
    #[error("the resource publishes no metadata (status {0})")]
    NoDocument(u16),
    /// The resource's keys are published elsewhere.
    #[error("the resource's keys are not on its own origin")]
    ForeignKeys,
    /// The resource does not list the authority.
    #[error("the resource does not name this authority as one that decides for it")]
    NotPublished,
    /// The authority's identifier is not one to talk to.
    #[error("the authority's identifier is not an acceptable URL for this resource")]
    Authority,
    /// The authority's own metadata is missing, malformed, or names another issuer.
    #[error("the authority's own metadata does not name it as its issuer")]
    Issuer,
    /// An endpoint of the authority is on another origin.
    #[error("the authority's endpoints are not on its own origin")]
    ForeignEndpoint,
    /// The authority does not take permission tickets.
    #[error("the authority does not accept permission tickets")]
    NoTickets,
    /// Keys seen first over plain http have changed.
    #[error("the keys published over plain http are not those seen first; if that is right, remove the pin")]
    PinChanged,
}

/// What an authority may not demand or answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum BadDemand {
    /// Not an answer of the protocol.
    #[error("the authority's answer is not one of the protocol's")]
    Answer,
    /// An identity asked for again, or for somebody else than whoever asks.
    #[error("the authority asks for an identity again, or not for itself")]
    Identity,
    /// More or fewer than one claim.
    #[error("the authority demands other than exactly one claim")]
    Claims,
    /// A claim that is not an agreement.
    #[error("the authority demands a kind of claim this agent does not give")]
    ClaimType,
    /// No format this agent can write.
    #[error("the authority accepts the agreement in no format this agent writes")]
    Format,
    /// The terms are another authority's, or for another resource.
    #[error("the terms are not this authority's for this resource")]
    Terms,
    /// Nothing is left of the terms once narrowed.
    #[error("nothing is left of the terms once narrowed")]
    Nothing,
    /// A grant although nobody agreed to anything.
    #[error("the authority granted without terms")]
    Unasked,
    /// The receipt is missing, does not verify, or is for another agreement.
    #[error("the authority's receipt is missing or is not for what was agreed")]
    Receipt,
    /// The token cannot be presented.
    #[error("the authority's token is not usable")]
    Token,
    /// The terms changed more often than anybody can be asked.
    #[error("the authority keeps changing its terms")]
    Restless,
    /// A grant just given is challenged again.
    #[error("the resource does not accept what its authority just granted")]
    CounterChallenge,
}

/// What keeps an MCP server from being called.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum BadServer {
    /// There is nothing at the address.
    #[error("nothing speaks MCP at this address; write it exactly as the resource names itself")]
    Absent,
    /// It says that it is not what the address names (421).
    #[error(
        "the server there goes by another name than this address has; write it exactly as the resource names itself"
    )]
    Misdirected,
    /// Whoever stands before it answers, and it does not.
    #[error(
        "whoever guards the resource answers, and the server behind it does not (status {0}); that one has to be mended"
    )]
    Behind(u16),
    /// It speaks no revision known here.
    #[error("the server speaks no MCP revision known here")]
    Version,
    /// Its answer is not an answer to what was asked.
    #[error("the server's answer is not an MCP answer to the request")]
    Answer,
    /// Its list of tools does not end.
    #[error("the server's list of tools does not end")]
    Endless,
}

/// Whose fault it was, which is what an exit code says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// The caller's: asking again needs another question.
    Usage,
    /// A peer broke a rule, so nothing further was sent to it.
    Refused,
    /// Somebody could not be asked; later may be different.
    Unavailable,
}

impl Fault {
    /// The kind of fault.
    pub fn kind(&self) -> Kind {
        match self {
            Fault::Resource | Fault::Arguments(_) | Fault::Unwritable | Fault::Folder(_) | Fault::Show(_) => {
                Kind::Usage
            }
            Fault::Unavailable { why: FetchError::Refused, .. } => Kind::Refused,
            Fault::Unavailable { .. } | Fault::Random | Fault::Server(BadServer::Behind(_)) => {
                Kind::Unavailable
            }
            Fault::Challenge(_) | Fault::Uncorroborated(_) | Fault::Demand(_) | Fault::Server(_) => {
                Kind::Refused
            }
        }
    }
}
