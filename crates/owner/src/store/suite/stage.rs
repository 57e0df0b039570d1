//! The stage of every case: two owners, their resource servers, registry and units, on two openings of one place.
//!
//! Alice has a reusable resource she is not asked about and a per-operation one she is; Bob has one of his own at the
//! same server. Callers are spread over both openings, so that what one decides the other must know.

use super::Place;
use super::agent::{Agent, Draw, house};
use super::race::wait;
use crate::decision::Answer;
use crate::ledger::{Author, Kind, Row};
use crate::likeness::Speaker;
use crate::negotiation::STEP_SECONDS;
use crate::registry::{IntroducedBy, ResourceServer, Standing};
use crate::step::{self, Beat, House};
use crate::store::{Advanced, Digest, Found, Store};
use crate::unit::{Draft, Owner, Unit};
use sayso_protocol::payload::metadata::OwnedResource;
use sayso_protocol::payload::negotiation::{TokenError, TokenReply};
use sayso_protocol::payload::protection::ConsumeReply;
use sayso_protocol::payload::terms::Proffer;
use sayso_protocol::ticket::Attempt;
use sayso_protocol::{ClientId, NegotiationId, OwnerName, ResourceId, Thumbprint, Timestamp, b64};
use std::sync::Arc;

/// When everything happens.
pub(crate) const NOW: Timestamp = Timestamp(1_790_000_000);
/// The server both owners know.
pub(crate) const SERVER: &str = "https://gw.example";
/// A server only Alice knows.
pub(crate) const OTHER: &str = "https://other.example";
/// Reusable, not asked about.
pub(crate) const LOOK: &str = "vault/look";
/// Single use, asked about.
pub(crate) const TRADE: &str = "vault/trade";
/// Bob's.
pub(crate) const BOBS: &str = "shed/look";

/// How a presentation went.
pub(crate) enum Said {
    /// Terms, and the ticket to answer them with.
    Terms(String, Box<Proffer>),
    /// She is asked; the ticket to poll with.
    Waits(String),
    /// A token.
    Granted(String),
    /// An error.
    Refused(TokenError),
    /// The ticket was no longer good.
    Lost,
    /// Too many.
    Full,
}

impl Said {
    fn of(advanced: Advanced) -> Self {
        match advanced {
            Advanced::Won(TokenReply::NeedInfo { ticket, claim }) => {
                Said::Terms(ticket, Box::new(claim.terms_template))
            }
            Advanced::Won(TokenReply::Submitted { ticket, .. }) => Said::Waits(ticket),
            Advanced::Won(TokenReply::Granted { access_token, .. }) => Said::Granted(access_token),
            Advanced::Won(TokenReply::Refused { error, .. }) => Said::Refused(error),
            Advanced::Won(TokenReply::Identify { .. } | TokenReply::Doubted { .. }) => {
                panic!("nobody is asked for an identity here")
            }
            Advanced::Lost => Said::Lost,
            Advanced::Full => Said::Full,
        }
    }

    pub(crate) fn word(&self) -> &'static str {
        match self {
            Said::Terms(..) => "terms",
            Said::Waits(_) => "waits",
            Said::Granted(_) => "granted",
            Said::Refused(_) => "refused",
            Said::Lost => "lost",
            Said::Full => "full",
        }
    }

    pub(crate) fn terms(self) -> (String, Proffer) {
        match self {
            Said::Terms(ticket, proffer) => (ticket, *proffer),
            other => panic!("expected terms, got {}", other.word()),
        }
    }

    pub(crate) fn waits(self) -> String {
        match self {
            Said::Waits(ticket) => ticket,
            other => panic!("expected to wait, got {}", other.word()),
        }
    }

    pub(crate) fn granted(self) -> String {
        match self {
            Said::Granted(token) => token,
            other => panic!("expected a grant, got {}", other.word()),
        }
    }
}

/// How often each outcome was had.
pub(crate) fn count(all: &[Said], word: &str) -> usize {
    all.iter().filter(|said| said.word() == word).count()
}

/// The stage.
pub(crate) struct Stage {
    stores: [Arc<dyn Store>; 2],
    pub(crate) alice: OwnerName,
    pub(crate) bob: OwnerName,
    pub(crate) server: ClientId,
    house: Arc<House>,
    draw: Draw,
}

/// Her own hand.
pub(crate) fn herself() -> Author {
    Author::Owner("her-device".into())
}

/// A resource server as set-up knows it.
pub(crate) fn server(owner: &str, client_id: &str, key: &str) -> ResourceServer {
    ResourceServer {
        owner: Some(owner.parse().unwrap()),
        client_id: client_id.parse().unwrap(),
        name: "gateway".into(),
        resource_uri: format!("{client_id}/mcp"),
        status: Standing::Active,
        auth_method: "signature".into(),
        registered_at: NOW,
        pinned_key: Some(Thumbprint::from_text(key)),
        introduced_by: IntroducedBy::Setup,
    }
}

/// A published resource.
pub(crate) fn published(id: &str) -> OwnedResource {
    let tool = id.rsplit('/').next().unwrap();
    OwnedResource {
        id: id.parse().unwrap(),
        name: tool.into(),
        kind: "mcp-tool".into(),
        tool: tool.parse().unwrap(),
        resource_scopes: vec![format!("{tool}:use").parse().unwrap()],
        consequence: None,
        definition: None,
        surface: None,
    }
}

/// A unit over one resource.
pub(crate) fn unit(id: &str, resource: &str, asks: bool) -> Unit {
    let scope = published(resource).resource_scopes;
    Unit {
        id: id.parse().unwrap(),
        name: id.into(),
        resources: vec![resource.parse().unwrap()],
        ask_me: asks,
        bind: false,
        version: 99,
        terms: Draft {
            purpose: "a look".into(),
            scope,
            expires_in: 7200,
            prohibited: vec!["resale".into()],
            per_operation: asks,
            enforced: [].into(),
        },
    }
}

impl Stage {
    /// Sets the stage in a fresh place.
    pub(crate) fn set(place: &dyn Place) -> Self {
        let stage = Self::behind(place, Draw::default());
        for (name, resources) in [("alice", vec![LOOK, TRADE]), ("bob", vec![BOBS])] {
            let owner = Owner { name: name.parse().unwrap(), namespace: format!("ns-{name}") };
            wait(stage.any(0).settle_owner(&owner)).unwrap();
            wait(stage.any(0).settle_resource_server(&server(name, SERVER, "key-1"), NOW)).unwrap();
            let listing: Vec<_> = resources.into_iter().map(published).collect();
            wait(stage.any(0).pull(&owner.name, &stage.server, &listing, NOW)).unwrap();
        }
        wait(stage.any(1).settle_resource_server(&server("alice", OTHER, "key-2"), NOW)).unwrap();
        stage.create(&stage.alice, &unit("reading", LOOK, false));
        stage.create(&stage.alice, &unit("trading", TRADE, true));
        stage.create(&stage.bob, &unit("reading", BOBS, false));
        stage
    }

    /// The same place, closed and opened again.
    pub(crate) fn again(self, place: &dyn Place) -> Self {
        let Stage { stores, draw, .. } = self;
        drop(stores);
        Self::behind(place, draw)
    }

    fn behind(place: &dyn Place, draw: Draw) -> Self {
        Self {
            stores: [place.open(), place.open()],
            alice: "alice".parse().unwrap(),
            bob: "bob".parse().unwrap(),
            server: SERVER.parse().unwrap(),
            house: Arc::new(house()),
            draw,
        }
    }

    /// One of the two openings.
    pub(crate) fn any(&self, caller: usize) -> &dyn Store {
        &*self.stores[caller % 2]
    }

    pub(crate) fn create(&self, owner: &OwnerName, unit: &Unit) -> Unit {
        wait(self.any(0).create_unit(owner, unit, &self.house.issuer.url, &herself(), NOW)).unwrap().unwrap()
    }

    /// A fresh sealed ticket of a refused attempt.
    pub(crate) fn attempt(&self, resource: &str) -> Attempt {
        self.attempt_at(resource, NOW)
    }

    /// The same, at another time.
    pub(crate) fn attempt_at(&self, resource: &str, now: Timestamp) -> Attempt {
        Attempt {
            negotiation: NegotiationId::parse(b64::encode(self.draw.fresh())).unwrap(),
            owner: if resource == BOBS { self.bob.clone() } else { self.alice.clone() },
            resource_server: self.server.clone(),
            resource: resource.parse().unwrap(),
            scopes: published(resource).resource_scopes,
            expires: now.plus(STEP_SECONDS),
        }
    }

    /// Presents a sealed ticket.
    pub(crate) fn open(&self, caller: usize, attempt: &Attempt, beat: Beat, now: Timestamp) -> Said {
        let (next, speaker, step) = self.play(beat, now);
        let store = self.any(caller);
        Said::of(wait(store.open(attempt, next, speaker.as_ref(), step, now)).unwrap())
    }

    /// Presents a rotated ticket.
    pub(crate) fn advance(&self, caller: usize, ticket: &str, beat: Beat, now: Timestamp) -> Said {
        let (next, speaker, step) = self.play(beat, now);
        let store = self.any(caller);
        Said::of(wait(store.advance(Digest::of(ticket), next, speaker.as_ref(), step, now)).unwrap())
    }

    fn play(&self, beat: Beat, now: Timestamp) -> (Digest, Option<Speaker>, crate::store::StepFn) {
        let (house, draws) = (self.house.clone(), self.draw.draws());
        let next = Digest::of(&b64::encode(draws.ticket));
        let speaker = match &beat {
            Beat::Commit(agreement, _) => Some(Speaker::of(agreement, None)),
            _ => None,
        };
        let step =
            move |negotiation: &_, facts: &_| step::step(&house, negotiation, facts, &beat, &draws, now);
        (next, speaker, Box::new(step))
    }

    /// Polls.
    pub(crate) fn poll(&self, caller: usize, ticket: &str) -> Said {
        self.advance(caller, ticket, Beat::Present, NOW)
    }

    /// Opens a negotiation up to its terms.
    pub(crate) fn terms(&self, resource: &str) -> (String, Proffer) {
        self.open(0, &self.attempt(resource), Beat::Present, NOW).terms()
    }

    /// Commits.
    pub(crate) fn commit(&self, caller: usize, agent: &Agent, ticket: &str, proffer: &Proffer) -> Said {
        self.advance(caller, ticket, agent.agree(proffer, NOW), NOW)
    }

    /// Opens and commits.
    pub(crate) fn ask(&self, agent: &Agent, resource: &str) -> (NegotiationId, Said) {
        let (ticket, proffer) = self.terms(resource);
        let family = proffer.family.clone();
        (family, self.commit(1, agent, &ticket, &proffer))
    }

    /// Her answer.
    pub(crate) fn decide(&self, caller: usize, family: &NegotiationId, answer: Answer) -> Option<()> {
        wait(self.any(caller).decide(&self.alice, family, &answer.into(), &herself(), NOW)).unwrap()
    }

    /// An approved request that was not claimed.
    pub(crate) fn approved(&self, agent: &Agent, resource: &str) -> (NegotiationId, String) {
        let (family, said) = self.ask(agent, resource);
        let ticket = said.waits();
        assert_eq!(self.decide(0, &family, Answer::Approved), Some(()));
        (family, ticket)
    }

    /// Admits a new agent to Alice's.
    pub(crate) fn admitted(&self) -> Agent {
        let agent = self.draw.agent();
        let (_, ticket) = self.approved(&agent, LOOK);
        self.poll(0, &ticket).granted();
        agent
    }

    /// An agent nobody has seen.
    pub(crate) fn stranger(&self) -> Agent {
        self.draw.agent()
    }

    /// A single-use grant of a connected agent.
    pub(crate) fn single_use(&self, agent: &Agent) -> (NegotiationId, String) {
        let (family, ticket) = self.approved(agent, TRADE);
        (family, self.poll(1, &ticket).granted())
    }

    /// A reusable grant of a connected agent.
    pub(crate) fn reusable(&self, agent: &Agent) -> (NegotiationId, String) {
        let (family, said) = self.ask(agent, LOOK);
        (family, said.granted())
    }

    /// What introspection finds.
    pub(crate) fn found(&self, caller: usize, token: &str) -> Found {
        wait(self.any(caller).introspect(&self.alice, &self.server, Digest::of(token), NOW)).unwrap()
    }

    /// Spends.
    pub(crate) fn consume(&self, caller: usize, token: &str, attempt: &str) -> ConsumeReply {
        let store = self.any(caller);
        wait(store.consume(&self.alice, &self.server, Digest::of(token), attempt, NOW)).unwrap()
    }

    /// Her record, whole; it has no gaps.
    pub(crate) fn rows(&self, owner: &OwnerName) -> Vec<Row> {
        let rows = wait(self.any(0).ledger(owner, None, 0, i64::MAX)).unwrap();
        let seqs: Vec<i64> = rows.iter().map(|row| row.seq).collect();
        assert_eq!(seqs, (1..).take(rows.len()).collect::<Vec<i64>>(), "the record has gaps");
        rows
    }

    /// Kinds of the rows of a negotiation.
    pub(crate) fn kinds(&self, family: &NegotiationId) -> Vec<Kind> {
        let rows = self.rows(&self.alice).into_iter();
        rows.filter(|row| row.record.family.as_ref() == Some(family)).map(|row| row.record.kind).collect()
    }

    /// A resource of Alice's.
    pub(crate) fn resource(id: &str) -> ResourceId {
        id.parse().unwrap()
    }
}
