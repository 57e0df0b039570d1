//! One call with the whole dance: ask, be challenged, corroborate, negotiate, sign, ask again (MCP-16..18).
//! It keeps two counts: a signed request is sent once, whatever becomes of it (D-14), and a call negotiates at most
//! as often as an authority may lose track of it. Who agrees to terms is asked through `Consent`.

mod attempt;
mod events;
mod reply;
mod server;

pub use reply::Refused;

use crate::discover::pins::Pins;
use crate::discover::{Dialled, Doors, corroborate};
use crate::fault::{BadArguments, BadDemand, Fault};
use crate::folder::FolderFault;
use crate::identity::Keystore;
use crate::negotiate::{About, Consent, End, Negotiation, News, Party};
use crate::shows::Shows;
use crate::wallet::{Grant, Reference, Wallet, Wanted};
use attempt::Attempt;
use sayso_fetch::FetchError;
use sayso_protocol::canon::{S256, s256, s256_of};
use sayso_protocol::id::{NegotiationId, Timestamp, ToolName};
use sayso_protocol::json::Limits;
use sayso_protocol::payload::challenge::ChallengeObject;
use sayso_protocol::{Json, SigningKey};
use serde_json::{Map, Value};
use server::{Server, Written};
use std::path::Path;
use url::Url;

/// How often a call is challenged afresh because the authority lost track of the negotiation before.
const MOST_NEGOTIATIONS: usize = 3;

/// An agent: its keys, its papers, and its ways out.
pub struct Agent {
    doors: Doors,
    keys: Keystore,
    pins: Pins,
    wallet: Wallet,
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
    /// She has not decided yet; the same call takes the wait up again.
    Waiting {
        /// The authority that asked her.
        authority: String,
        /// The negotiation, where it has a name.
        family: Option<NegotiationId>,
    },
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
        })
    }

    fn wanted<'a>(&'a self, reference: Option<Reference<'a>>) -> Wanted<'a> {
        let Errand { resource, tool, params_s256, .. } = self;
        Wanted { resource, tool, params_s256, reference }
    }
}

/// What a negotiation within a call led to.
enum Led {
    /// A grant, unless another process got the single-use one first, and whether it was negotiated just now.
    Holding {
        grant: Option<Grant>,
        new: bool,
    },
    Lost,
    Ended(Outcome),
}

impl Agent {
    /// Opens an agent's folder, creating it where needed.
    ///
    /// # Errors
    /// When it cannot be created or entered.
    pub fn open(dir: &Path, doors: Doors, now: fn() -> Timestamp) -> Result<Agent, FolderFault> {
        let (keys, pins, wallet) = (Keystore::open(dir)?, Pins::open(dir)?, Wallet::open(dir)?);
        Ok(Agent { doors, keys, pins, wallet, now })
    }

    /// Makes a call, negotiating where the owner has to be asked.
    ///
    /// # Errors
    /// When a party cannot be asked, or one breaks a rule of the protocol.
    pub async fn call(&self, errand: &Errand, consent: &dyn Consent) -> Result<Outcome, Fault> {
        let dialled = Dialled::parse(&errand.resource).await?;
        let mut visit = self.visit(errand, &dialled).await?;
        let outcome = self.dance(errand, &dialled, &mut visit, consent).await;
        let Visit { server, signer, .. } = visit;
        server.leave(&*self.doors.near, &dialled, signer.as_ref(), (self.now)()).await;
        outcome
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

    async fn dance(
        &self,
        errand: &Errand,
        dialled: &Dialled,
        visit: &mut Visit,
        consent: &dyn Consent,
    ) -> Result<Outcome, Fault> {
        let (mut held, mut fresh, mut again) = (self.held(errand, None)?, false, false);
        if held.is_some() {
            consent.tell(&News::Reusing);
        } else if let Some(parked) = self.parked(errand)? {
            consent.tell(&News::Resuming { authority: &parked.authority.issuer });
            match self.negotiate(errand, parked, consent).await? {
                Led::Ended(outcome) => return Ok(outcome),
                Led::Holding { grant, new } => (fresh, held) = (new && grant.is_some(), grant),
                Led::Lost => consent.tell(&News::Restarting),
            }
        }
        for _ in 0..=MOST_NEGOTIATIONS {
            if let Some(grant) = &held {
                visit.signer = Some(self.key_at(errand, &grant.authority)?);
            }
            let challenge = match self.attempt(dialled, &visit.written, held.as_ref(), errand).await? {
                // The owner took her time, and the server did not wait; of this call it heard nothing.
                Attempt::Over(Outcome::Refused(refused))
                    if refused.has_no_session() && visit.server.has_session() && !again =>
                {
                    *visit = self.visit(errand, dialled).await?;
                    (held, again) = (self.held(errand, None)?, true);
                    continue;
                }
                Attempt::Over(outcome) => return Ok(outcome),
                Attempt::Challenged(_) if fresh => return Err(BadDemand::CounterChallenge.into()),
                Attempt::Challenged(challenge) => challenge,
            };
            held = None;
            match self.answer(errand, dialled, *challenge, consent).await? {
                Led::Ended(outcome) => return Ok(outcome),
                Led::Holding { grant, new } => (fresh, held) = (new && grant.is_some(), grant),
                Led::Lost => consent.tell(&News::Restarting),
            }
        }
        Err(BadDemand::Restless.into())
    }

    /// Corroborates a challenge and negotiates, unless a grant for the same reference is held already.
    async fn answer(
        &self,
        errand: &Errand,
        dialled: &Dialled,
        challenge: ChallengeObject,
        consent: &dyn Consent,
    ) -> Result<Led, Fault> {
        let authority = corroborate(&self.doors, &self.pins, dialled, &challenge, (self.now)()).await?;
        consent.tell(&News::Challenged { authority: &authority.issuer });
        let remediation = challenge.authorization_remediation;
        let known = remediation.as_ref().map(|remediation| Reference {
            digest: &remediation.authorization_reference,
            authority: &authority.issuer,
        });
        if let Some(grant) = known.map(|known| self.held(errand, Some(known))).transpose()?.flatten() {
            consent.tell(&News::Reusing);
            return Ok(Led::Holding { grant: Some(grant), new: false });
        }
        let key = self.key_at(errand, &authority.issuer)?;
        let detail = remediation.as_ref().and_then(|remediation| remediation.authorization_details.first());
        let about = About {
            resource: errand.resource.clone(),
            tool: errand.tool.clone(),
            params_s256: errand.params_s256.clone(),
            resource_id: detail.map(|detail| detail.identifier.clone()),
            reference: remediation.map(|remediation| remediation.authorization_reference),
            key: key.kid(),
        };
        let negotiation = Negotiation::start(authority, about, challenge.ticket);
        self.negotiate(errand, negotiation, consent).await
    }

    async fn negotiate(
        &self,
        errand: &Errand,
        mut negotiation: Negotiation,
        consent: &dyn Consent,
    ) -> Result<Led, Fault> {
        let key = self.key_at(errand, &negotiation.authority.issuer)?;
        let party = Party {
            doors: &self.doors,
            pins: &self.pins,
            key: &key,
            shows: &errand.shows,
            now: self.now,
            consent,
            arguments: &errand.arguments,
            reason: errand.reason.as_deref(),
            deadline: (self.now)().plus(errand.wait.into()),
        };
        let park = |negotiation: &Negotiation| self.wallet.park(negotiation).map_err(Fault::from);
        let end = negotiation.run(&party, &park).await?;
        if !matches!(end, End::Waiting) {
            self.wallet.forget(&errand.wanted(None))?;
        }
        Ok(match end {
            End::Granted(grant) => {
                self.wallet.keep(&grant, (self.now)())?;
                Led::Holding { grant: self.wallet.claim(*grant)?, new: true }
            }
            End::Lost => Led::Lost,
            End::Declined => Led::Ended(Outcome::NotAccepted { declined: true }),
            End::NotNow => Led::Ended(Outcome::NotAccepted { declined: false }),
            End::Denied { words } => Led::Ended(Outcome::Denied { words }),
            End::Waiting => Led::Ended(Outcome::Waiting {
                authority: negotiation.authority.issuer.clone(),
                family: negotiation.family().cloned(),
            }),
        })
    }

    /// A grant in the wallet that this errand's key can use; a single-use one is out of the wallet with that.
    fn held(&self, errand: &Errand, reference: Option<Reference<'_>>) -> Result<Option<Grant>, Fault> {
        let usable = |grant: &Grant| self.holds(errand, &grant.authority, &grant.key);
        Ok(self.wallet.take(&errand.wanted(reference), (self.now)(), &usable)?)
    }

    /// The wait an earlier call of the same kind left, if it was this errand's key that agreed.
    fn parked(&self, errand: &Errand) -> Result<Option<Negotiation>, Fault> {
        let parked = self.wallet.parked(&errand.wanted(None))?;
        Ok(parked.filter(|parked| self.holds(errand, &parked.authority.issuer, &parked.about.key)))
    }

    /// Whether the key this errand uses at an authority is the one of this thumbprint.
    fn holds(&self, errand: &Errand, issuer: &str, thumbprint: &str) -> bool {
        self.key_at(errand, issuer).is_ok_and(|key| key.kid() == thumbprint)
    }

    fn key_at(&self, errand: &Errand, issuer: &str) -> Result<SigningKey, Fault> {
        match &errand.key {
            Some(key) => Ok(key.clone()),
            None => self.keys.key_for(&Url::parse(issuer).map_err(|_| BadDemand::Terms)?),
        }
    }
}
