//! A negotiation to play with: one owner, one agent, one resource, and agreements that are really signed.
//!
//! `play` checks of every step what holds of all of them, so that no test need repeat it. Nothing here is shared
//! between tests.

use super::{Beat, Draws, Facts, House, Step, step};
use crate::connection::{Connection, Identity, Status};
use crate::decision::{Answer, Decision, decide};
use crate::issue::Issuer;
use crate::ledger::{Author, Kind};
use crate::negotiation::{Commitment, Ending, Negotiation, State};
use crate::registry::{Registered, Standing};
use crate::unit::{Draft, Owner, Unit};
use sayso_protocol::jws::{self, KeyName};
use sayso_protocol::payload::agreement::{SignedAgreement, TYP};
use sayso_protocol::payload::edition::Edition;
use sayso_protocol::payload::metadata::OwnedResource;
use sayso_protocol::payload::negotiation::TokenReply;
use sayso_protocol::payload::receipt::Receipt;
use sayso_protocol::payload::rpt::Rpt;
use sayso_protocol::payload::terms::Proffer;
use sayso_protocol::{Handle, SigningKey, Timestamp, b64};
use serde_json::{Value, json};
use std::collections::BTreeMap;

pub(crate) const START: Timestamp = Timestamp(1_790_000_000);
pub(crate) const INTERVAL: i64 = 5;

/// Everything a step reads, and the agent's key.
pub(crate) struct World {
    pub(crate) house: House,
    pub(crate) negotiation: Negotiation,
    pub(crate) facts: Facts,
    pub(crate) now: Timestamp,
    pub(crate) agent: SigningKey,
    /// Draws differ from step to step as long as tests move it.
    pub(crate) draw: u8,
}

impl World {
    /// A stranger with a fresh ticket for one trade: per operation, ask-me, 900 s.
    pub(crate) fn trading() -> Self {
        let terms = Draft {
            purpose: "one trade".into(),
            scope: vec!["trades:execute".parse().unwrap(), "trades:preview".parse().unwrap()],
            expires_in: 900,
            prohibited: vec!["marketing".into(), "resale".into()],
            per_operation: true,
            enforced: BTreeMap::new(),
        };
        Self::of("trading", "execute_trade", "trades:execute", true, terms)
    }

    /// A stranger with a fresh ticket for the positions: reusable, not ask-me, two days.
    pub(crate) fn holdings() -> Self {
        let terms = Draft {
            purpose: "reading positions".into(),
            scope: vec!["positions:read".parse().unwrap(), "positions:export".parse().unwrap()],
            expires_in: 172_800,
            prohibited: vec!["marketing".into()],
            per_operation: false,
            enforced: BTreeMap::new(),
        };
        Self::of("holdings", "get_positions", "positions:read", false, terms)
    }

    fn of(unit: &str, tool: &str, scope: &str, ask_me: bool, terms: Draft) -> Self {
        let key = |seed| SigningKey::from_seed(&[seed; 32]).unwrap();
        let url = "https://as.example".to_owned();
        let house = House {
            terms_endpoint: format!("{url}/terms"),
            issuer: Issuer { url, grants: key(0x11), receipts: key(0x12) },
            edition: Edition::default(),
            interval: INTERVAL,
            providers: vec![],
        };
        let resource: sayso_protocol::ResourceId = format!("vault/{tool}").parse().unwrap();
        let negotiation = Negotiation {
            id: "family-1".parse().unwrap(),
            owner: "alice".parse().unwrap(),
            client_id: "https://gw.example".parse().unwrap(),
            resource: resource.clone(),
            scopes: vec![scope.parse().unwrap()],
            state: State::Opened,
            opened: START,
        };
        let registered = Registered {
            client_id: negotiation.client_id.clone(),
            resource: OwnedResource {
                id: resource.clone(),
                name: tool.into(),
                kind: "mcp-tool".into(),
                tool: tool.parse().unwrap(),
                resource_scopes: negotiation.scopes.clone(),
                consequence: None,
                definition: None,
                surface: None,
            },
            unit: Some(unit.parse().unwrap()),
            changed: false,
            accepted: None,
        };
        let unit = Unit {
            id: unit.parse().unwrap(),
            name: unit.into(),
            resources: vec![resource],
            ask_me,
            bind: false,
            version: 3,
            terms,
        };
        let facts = Facts {
            owner: Some(Owner { name: negotiation.owner.clone(), namespace: "ns".into() }),
            standing: Some(Standing::Active),
            registered: Some(registered),
            unit: Some(unit),
            connection: None,
            twin: None,
        };
        World { house, negotiation, facts, now: START, agent: key(0x22), draw: 1 }
    }

    /// One beat, without applying it.
    pub(crate) fn play(&self, beat: &Beat) -> Step {
        let draws = Draws { ticket: [self.draw; 32], nonce: [self.draw; 16], jti: [self.draw; 16] };
        let step = step(&self.house, &self.negotiation, &self.facts, beat, &draws, self.now);
        self.assert_lawful(&step, &draws);
        step
    }

    /// One beat, applied as a store applies it.
    pub(crate) fn advance(&mut self, beat: &Beat) -> Step {
        let step = self.play(beat);
        self.negotiation.state = step.state.clone();
        self.draw += 1;
        step
    }

    /// What holds of every step there is.
    fn assert_lawful(&self, step: &Step, draws: &Draws) {
        let (ticket, wait) = match &step.reply {
            TokenReply::NeedInfo { ticket, claim } => {
                let State::AwaitingAgreement { proffer, .. } = &step.state else {
                    panic!("demanded nothing")
                };
                assert_eq!(claim.terms_template, **proffer);
                (Some(ticket), 0)
            }
            TokenReply::Identify { ticket, claim } => {
                assert_eq!((step.state.word(), &claim.issuer), ("opened", &self.house.providers));
                (Some(ticket), 0)
            }
            TokenReply::Doubted { .. } => panic!("a step doubts nobody"),
            TokenReply::Submitted { ticket, interval } => {
                assert_eq!((*interval, step.state.word()), (INTERVAL, "awaiting_owner"));
                (Some(ticket), INTERVAL)
            }
            TokenReply::Granted { .. } => {
                assert_eq!(step.state, State::Closed { ending: Ending::Issued });
                (None, 0)
            }
            TokenReply::Refused { description, .. } => {
                assert!(!description.is_empty());
                assert!(step.untouched || matches!(step.state, State::Closed { .. }));
                (None, 0)
            }
        };
        // CORE-33: a live ticket follows exactly where the reply carries one, and it is the one drawn.
        assert_eq!(step.rotates, ticket.is_some());
        assert!(ticket.is_none_or(|ticket| *ticket == b64::encode(draws.ticket)));
        assert_eq!(step.due, self.now.plus(wait));
        assert_eq!(step.grant.is_some(), matches!(step.reply, TokenReply::Granted { .. }));
        if step.untouched {
            assert_eq!(step.state, self.negotiation.state);
            assert!(step.records.is_empty() && !step.rotates);
        }
        for record in &step.records {
            assert_eq!(record.family.as_ref(), Some(&self.negotiation.id));
            assert_eq!(record.entry["resource_id"], self.negotiation.resource.as_str());
            assert!(!record.entry.to_string().contains(&b64::encode(draws.ticket)));
        }
    }

    /// The agent's name.
    pub(crate) fn handle(&self) -> Handle {
        Handle::pseudonymous(&self.agent.verifying().thumbprint())
    }

    /// What is proffered now.
    pub(crate) fn proffer(&self) -> Proffer {
        match &self.negotiation.state {
            State::AwaitingAgreement { proffer, .. } => (**proffer).clone(),
            state => panic!("nothing is proffered in {}", state.word()),
        }
    }

    /// The claims of an honest agreement to what is proffered.
    pub(crate) fn claims(&self) -> Value {
        let proffer = self.proffer();
        let mut claims = json!({
            "iss": "agent", "aud": proffer.terms.proffered_by, "iat": self.now.0,
            "template_id": proffer.terms.template_id, "terms_uri": proffer.terms_uri,
            "purpose": proffer.terms.purpose, "scope": proffer.terms.scope,
            "expires_in": proffer.terms.expires_in, "prohibited": proffer.terms.prohibited,
            "family": proffer.family, "nonce": proffer.nonce,
        });
        if proffer.terms.per_operation {
            claims["operation"] =
                json!({"tool": "execute_trade", "params": {"symbol": "VTI", "quantity": 10}});
        }
        claims
    }

    /// An agreement to what is proffered, with members laid over it; `null` removes one.
    pub(crate) fn agreement(&self, over: Value) -> SignedAgreement {
        let mut claims = self.claims();
        for (name, value) in over.as_object().unwrap() {
            claims[name] = value.clone();
        }
        claims.as_object_mut().unwrap().retain(|_, value| !value.is_null());
        signed(&self.agent, &claims)
    }

    /// The beat that presents such an agreement.
    pub(crate) fn commit(&self, over: Value) -> Beat {
        Beat::Commit(Box::new(self.agreement(over)), None)
    }

    /// Plays up to the proffer.
    pub(crate) fn proffered(mut self) -> Self {
        assert_eq!(reply(&self.advance(&Beat::Present)), "need_info");
        self
    }

    /// Plays up to the point where she is asked.
    pub(crate) fn asked(mut self) -> Self {
        self = self.proffered();
        let commit = self.commit(json!({}));
        assert_eq!(reply(&self.advance(&commit)), "request_submitted");
        self
    }

    /// Plays up to her yes.
    pub(crate) fn approved(mut self) -> Self {
        self = self.asked();
        self.decide(Answer::Approved).unwrap();
        self
    }

    /// Her answer, applied as a store applies it.
    pub(crate) fn decide(&mut self, answer: Answer) -> Option<Decision> {
        let decision = decide(
            &self.negotiation,
            self.facts.connection.as_ref(),
            answer,
            &Author::Owner("key".into()),
            self.now,
        )?;
        self.negotiation.state = decision.state.clone();
        if let Some(connection) = &decision.admits {
            self.facts.connection = Some(connection.clone());
        }
        Some(decision)
    }

    /// The agent is let in, before anything else happened.
    pub(crate) fn connected(mut self) -> Self {
        self.facts.connection = Some(Connection {
            handle: self.handle(),
            identity: Identity::Pseudonymous,
            status: Status::Active,
            epoch: 0,
            first_seen: START,
            last_access: None,
            revocations: 0,
        });
        self
    }

    /// She ends the connection, as the store does: the epoch moves on.
    pub(crate) fn end(&mut self) {
        let connection = self.facts.connection.as_mut().unwrap();
        connection.status = Status::Revoked;
        connection.epoch += 1;
        connection.revocations += 1;
    }

    /// She lets it in again; the epoch stays where the ending put it.
    pub(crate) fn readmit(&mut self) {
        self.facts.connection.as_mut().unwrap().status = Status::Active;
    }

    /// The governing unit.
    pub(crate) fn unit(&mut self) -> &mut Unit {
        self.facts.unit.as_mut().unwrap()
    }

    /// The registration.
    pub(crate) fn resource(&mut self) -> &mut OwnedResource {
        &mut self.facts.registered.as_mut().unwrap().resource
    }

    /// What the agent committed to.
    pub(crate) fn commitment(&self) -> Commitment {
        self.negotiation.commitment().unwrap().clone()
    }

    /// The claims of the grant a step issued, from the token itself, checked against what the store is told.
    pub(crate) fn rpt(&self, step: &Step) -> Rpt {
        let TokenReply::Granted { access_token, expires_in, .. } = &step.reply else {
            panic!("nothing granted")
        };
        let (rpt, _) = Rpt::read(access_token, self.house.issuer.grants.verifying()).unwrap();
        let grant = step.grant.as_ref().unwrap();
        assert_eq!(grant.rpt, rpt);
        assert_eq!(grant.token_sha256, sayso_protocol::canon::sha256(access_token.as_bytes()));
        assert_eq!(*expires_in, rpt.exp.since(self.now));
        rpt
    }

    /// The receipt a step gave.
    pub(crate) fn receipt(&self, step: &Step) -> Receipt {
        let TokenReply::Granted { receipt, .. } = &step.reply else { panic!("nothing granted") };
        let key = &self.house.issuer.receipts;
        Receipt::read(receipt, &[(key.kid(), key.verifying().clone())]).unwrap()
    }
}

/// Signs claims as an agreement and reads it back as the authority does.
pub(crate) fn signed(key: &SigningKey, claims: &Value) -> SignedAgreement {
    let compact = jws::sign(key, TYP, &KeyName::Jwk, claims).unwrap();
    SignedAgreement::read(&b64::encode(compact)).unwrap()
}

/// The reply in a word: its `error`, or `granted`.
pub(crate) fn reply(step: &Step) -> String {
    step.reply.body()["error"].as_str().unwrap_or("granted").to_owned()
}

/// How the step leaves the negotiation closed, if it does.
pub(crate) fn ending(step: &Step) -> Option<Ending> {
    match step.state {
        State::Closed { ending } => Some(ending),
        _ => None,
    }
}

/// The kinds of the rows written.
pub(crate) fn kinds(step: &Step) -> Vec<Kind> {
    step.records.iter().map(|record| record.kind).collect()
}
