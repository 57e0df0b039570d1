//! One call with the whole dance: ask, be challenged, corroborate, negotiate, sign, ask again (MCP-16..18).
//! It keeps two counts: a signed request is sent once, whatever becomes of it (D-14), and a call negotiates at most
//! as often as an authority may lose track of it. Who agrees to terms is asked through `Consent`.

mod attempt;
mod dance;
mod events;
mod line;
mod reply;
mod server;

pub use line::{Answer, Letter, Line};
pub use reply::Refused;

use crate::discover::pins::Pins;
use crate::discover::{Dialled, Doors};
use crate::fault::{BadArguments, BadServer, Fault};
use crate::folder::FolderFault;
use crate::identity::Keystore;
use crate::negotiate::Consent;
use crate::secret::Secrets;
use crate::shows::Shows;
use crate::stop::Stop;
use crate::turns::Turns;
use crate::wallet::{Reference, Wallet, Wanted};
use dance::Over;
use sayso_fetch::FetchError;
use sayso_protocol::canon::{S256, s256, s256_of};
use sayso_protocol::id::{NegotiationId, Timestamp, ToolName};
use sayso_protocol::json::Limits;
use sayso_protocol::{Json, SigningKey};
use serde_json::{Map, Value};
use server::{Server, Written};
use std::path::Path;

/// An agent: its keys, its papers, and its ways out.
pub struct Agent {
    doors: Doors,
    keys: Keystore,
    pins: Pins,
    wallet: Wallet,
    secrets: Secrets,
    turns: Turns,
    now: fn() -> Timestamp,
}

/// A tool call somebody wants made.
pub struct Errand {
    resource: String,
    tool: ToolName,
    arguments: Map<String, Value>,
    params_s256: S256,
    /// The key to use in place of the authority's own.
    pub key: Option<SigningKey>,
    /// What to show beside the key; nothing unless it is set.
    pub shows: Shows,
    /// Why, for the owner to read.
    pub reason: Option<String>,
    /// How long to wait for the owner, in seconds.
    pub wait: u32,
    /// Whether the call answers what its tool asked in the one before (D-11).
    pub follows_up: bool,
    /// How whoever made it says that nobody waits for it any more.
    pub stop: Option<Stop>,
}

/// How a call ended.
#[derive(Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The tool answered.
    Result {
        /// The result as the server wrote it.
        json: String,
        /// Whether it says that the tool failed.
        failed: bool,
    },
    /// The server answered with an error of its own.
    ServerError {
        /// The error as the server wrote it.
        json: String,
    },
    /// Nobody agreed to the terms.
    NotAccepted {
        /// Whether the authority was told so.
        declined: bool,
    },
    /// The owner, or her policy, said no.
    Denied {
        /// The authority's words.
        words: Option<String>,
    },
    /// What was shown of an identity does not count with the authority. Nothing is lost: the same call, made while the terms
    /// are fresh, goes on with whatever it shows then.
    NotBelieved {
        /// The authority's words.
        words: Option<String>,
    },
    /// The authority wants the word of one of these providers for whom the agent acts, and there is none to show.
    Unnamed {
        /// Who would be believed; strangers' words.
        providers: Vec<String>,
    },
    /// She has not decided yet; the same call takes the wait up again.
    Waiting {
        /// The authority that asked her.
        authority: String,
        /// The negotiation, where it has a name.
        family: Option<NegotiationId>,
    },
    /// Whoever is asked about the terms answers later; the same call takes them up again.
    Later,
    /// Another call negotiates about the same thing, and took longer than this one waits.
    Busy,
    /// Whoever made the call waits for it no longer. Nothing is lost: the same call goes on from here.
    Stopped,
    /// The enforcement point refused, and negotiating does not cure it.
    Refused(Refused),
    /// The call may have been executed, and its grant is spent or counts as spent.
    Unknown {
        /// What went wrong, when it was the way there.
        why: Option<FetchError>,
    },
}

impl Errand {
    /// A call of `tool` at the resource of this URL. The arguments are JSON text, an object.
    ///
    /// # Errors
    /// When the arguments are no object or cannot be bound to a grant.
    pub fn new(resource: &str, tool: ToolName, arguments: &str) -> Result<Errand, Fault> {
        let exact = Json::parse(arguments.as_bytes(), Limits::default()).map_err(BadArguments::from)?;
        if exact.as_object().is_none() {
            return Err(BadArguments::NotObject.into());
        }
        let params_s256 = s256(&exact).map_err(BadArguments::from)?;
        let arguments: Map<String, Value> =
            serde_json::from_str(arguments).map_err(|_| BadArguments::Inexact)?;
        // What is sent and signed is written from this map; it must say what the text says.
        if s256_of(&arguments).ok().as_ref() != Some(&params_s256) {
            return Err(BadArguments::Inexact.into());
        }
        let resource = resource.to_owned();
        Ok(Errand {
            resource,
            tool,
            arguments,
            params_s256,
            key: None,
            shows: Shows::default(),
            reason: None,
            wait: 0,
            follows_up: false,
            stop: None,
        })
    }

    /// The tool.
    pub fn tool(&self) -> &ToolName {
        &self.tool
    }

    /// The digest of its arguments.
    pub fn params_s256(&self) -> &S256 {
        &self.params_s256
    }

    fn wanted<'a>(&'a self, reference: Option<Reference<'a>>) -> Wanted<'a> {
        let Errand { resource, tool, params_s256, follows_up, .. } = self;
        Wanted { resource, tool, params_s256, reference, follows_up: *follows_up }
    }
}

impl Agent {
    /// Opens an agent's folder, creating it where needed.
    ///
    /// # Errors
    /// When it cannot be created or entered.
    pub fn open(dir: &Path, doors: Doors, now: fn() -> Timestamp) -> Result<Agent, FolderFault> {
        let (keys, pins, wallet) = (Keystore::open(dir)?, Pins::open(dir)?, Wallet::open(dir)?);
        let (secrets, turns) = (Secrets::open(dir)?, Turns::default());
        Ok(Agent { doors, keys, pins, wallet, secrets, turns, now })
    }

    /// Makes a call, negotiating where the owner has to be asked.
    ///
    /// # Errors
    /// When a party cannot be asked, or one breaks a rule of the protocol.
    pub async fn call(&self, errand: &Errand, consent: &dyn Consent) -> Result<Outcome, Fault> {
        let dialled = Dialled::parse(&errand.resource).await?;
        let mut visit = self.visit(errand, &dialled).await?;
        let outcome = self.dance(errand, &dialled, &mut (&dialled, &mut visit), consent).await;
        let Visit { server, signer, .. } = visit;
        server.leave(&*self.doors.near, &dialled, signer.as_ref(), (self.now)()).await;
        match outcome? {
            Over::Outcome(outcome) => Ok(outcome),
            // INVARIANT: a visit reads its answers whole.
            Over::Carried(_) => Err(BadServer::Answer.into()),
        }
    }

    /// The tools a resource offers, each as the server describes it.
    ///
    /// # Errors
    /// When the server cannot be asked or does not answer.
    pub async fn tools(&self, resource: &str) -> Result<Vec<Value>, Fault> {
        let dialled = Dialled::parse(resource).await?;
        let server = Server::meet(&*self.doors.near, &dialled).await?;
        let tools = server.tools(&*self.doors.near, &dialled).await;
        server.leave(&*self.doors.near, &dialled, None, (self.now)()).await;
        tools
    }

    /// A secret of this agent's own for a host, drawn at first use.
    ///
    /// # Errors
    /// When it cannot be read, written or drawn.
    pub fn secret(&self, name: &str) -> Result<[u8; 32], Fault> {
        self.secrets.of(name)
    }

    /// The agent's papers.
    pub fn wallet(&self) -> &Wallet {
        &self.wallet
    }

    /// The agent's keys.
    pub fn keys(&self) -> &Keystore {
        &self.keys
    }
}

/// A server met for an errand.
struct Visit {
    server: Server,
    /// The call, as it is sent unsigned and signed.
    written: Written,
    /// The key that signed a call in its session.
    signer: Option<SigningKey>,
}

impl Agent {
    async fn visit(&self, errand: &Errand, dialled: &Dialled) -> Result<Visit, Fault> {
        let server = Server::meet(&*self.doors.near, dialled).await?;
        let mut params = Map::new();
        params.insert("name".into(), errand.tool.as_str().into());
        params.insert("arguments".into(), errand.arguments.clone().into());
        let written = server.write("tools/call", Some(errand.tool.as_str()), params)?;
        Ok(Visit { server, written, signer: None })
    }
}
