//! A store with one owner, one resource server, two tools and one agent that keys and signs as a real one does.
//!
//! What is measured is reached through the store's own port; nothing is written around it but copies of one grant.

use sayso_owner::decision::Answer;
use sayso_owner::issue::Issuer;
use sayso_owner::ledger::Author;
use sayso_owner::likeness::Speaker;
use sayso_owner::negotiation::STEP_SECONDS;
use sayso_owner::registry::{IntroducedBy, ResourceServer, Standing};
use sayso_owner::step::{self, Beat, Draws, House};
use sayso_owner::store::{Advanced, Digest, StepFn, Store};
use sayso_owner::unit::{Draft, Owner, Unit};
use sayso_protocol::payload::agreement::{AgreementClaims, OperationClaim, SignedAgreement, sign};
use sayso_protocol::payload::edition::Edition;
use sayso_protocol::payload::metadata::OwnedResource;
use sayso_protocol::payload::negotiation::TokenReply;
use sayso_protocol::payload::terms::Proffer;
use sayso_protocol::ticket::Attempt;
use sayso_protocol::{ClientId, NegotiationId, OwnerName, SigningKey, Timestamp, b64, canon};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

pub(crate) const NOW: Timestamp = Timestamp(1_790_000_000);
pub(crate) const ISSUER: &str = "https://as.example";
pub(crate) const GATEWAY: &str = "https://gw.example";
/// Opened to many calls by one approval.
pub(crate) const READ: &str = "vault/get_positions";
/// Approved one call at a time.
pub(crate) const TRADE: &str = "vault/execute_trade";

pub(crate) struct Stage {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) alice: OwnerName,
    pub(crate) server: ClientId,
    pub(crate) agent: SigningKey,
    house: Arc<House>,
    drawn: AtomicU64,
}

fn scope(resource: &str) -> String {
    format!("{}:use", resource.trim_start_matches("vault/"))
}

fn published(resource: &str) -> OwnedResource {
    let tool = resource.trim_start_matches("vault/");
    OwnedResource {
        id: resource.parse().unwrap(),
        name: tool.into(),
        kind: "mcp-tool".into(),
        tool: tool.parse().unwrap(),
        resource_scopes: vec![scope(resource).parse().unwrap()],
        consequence: None,
        definition: None,
        surface: None,
    }
}

fn unit(id: &str, resource: &str, asks: bool) -> Unit {
    Unit {
        id: id.parse().unwrap(),
        name: id.into(),
        resources: vec![resource.parse().unwrap()],
        bind: false,
        ask_me: asks,
        version: 1,
        terms: Draft {
            purpose: "the quarterly report".into(),
            scope: vec![scope(resource).parse().unwrap()],
            expires_in: 7200,
            prohibited: vec!["resale".into(), "marketing".into()],
            per_operation: asks,
            enforced: [].into(),
        },
    }
}

impl Stage {
    /// Sets the stage in a fresh store.
    pub(crate) async fn set(store: Arc<dyn Store>) -> Self {
        let issuer = Issuer {
            url: ISSUER.into(),
            grants: SigningKey::from_seed(&[1; 32]).unwrap(),
            receipts: SigningKey::from_seed(&[2; 32]).unwrap(),
        };
        let house = House {
            issuer,
            terms_endpoint: format!("{ISSUER}/terms"),
            edition: Edition::default(),
            interval: 5,
            providers: vec![],
        };
        let stage = Self {
            store,
            alice: "alice".parse().unwrap(),
            server: GATEWAY.parse().unwrap(),
            agent: SigningKey::from_seed(&[3; 32]).unwrap(),
            house: Arc::new(house),
            drawn: AtomicU64::new(0),
        };
        let (store, alice) = (&stage.store, &stage.alice);
        store.settle_owner(&Owner { name: alice.clone(), namespace: "ns".into() }).await.unwrap();
        let server = ResourceServer {
            owner: Some(alice.clone()),
            client_id: stage.server.clone(),
            name: "gateway".into(),
            resource_uri: format!("{GATEWAY}/mcp"),
            status: Standing::Active,
            auth_method: "signature".into(),
            registered_at: NOW,
            pinned_key: None,
            introduced_by: IntroducedBy::Setup,
        };
        store.settle_resource_server(&server, NOW).await.unwrap();
        store.pull(alice, &stage.server, &[published(READ), published(TRADE)], NOW).await.unwrap();
        for unit in [unit("reading", READ, false), unit("trading", TRADE, true)] {
            store.create_unit(alice, &unit, ISSUER, &Author::Setup, NOW).await.unwrap().unwrap();
        }
        // First contact asks her whatever her policy says; from then on the agent is known.
        stage.grant(READ).await;
        stage
    }

    fn draw(&self) -> [u8; 32] {
        canon::sha256(&self.drawn.fetch_add(1, Ordering::Relaxed).to_be_bytes())
    }

    fn draw_half(&self) -> [u8; 16] {
        *self.draw().first_chunk().unwrap()
    }

    /// What a presentation brings along.
    pub(crate) fn shown(&self, beat: Beat) -> (Digest, Option<Speaker>, StepFn) {
        let draws = Draws { ticket: self.draw(), nonce: self.draw_half(), jti: self.draw_half() };
        let (house, next) = (self.house.clone(), Digest::of(&b64::encode(draws.ticket)));
        let speaker = match &beat {
            Beat::Commit(agreement, _) => Some(Speaker::of(agreement, None)),
            _ => None,
        };
        (next, speaker, Box::new(move |known, facts| step::step(&house, known, facts, &beat, &draws, NOW)))
    }

    /// A ticket with which terms can be agreed to, and the terms.
    pub(crate) async fn terms(&self, resource: &str) -> (String, Proffer) {
        let attempt = Attempt {
            negotiation: NegotiationId::parse(b64::encode(self.draw_half())).unwrap(),
            owner: self.alice.clone(),
            resource_server: self.server.clone(),
            resource: resource.parse().unwrap(),
            scopes: published(resource).resource_scopes,
            expires: NOW.plus(STEP_SECONDS),
        };
        let (next, speaker, step) = self.shown(Beat::Present);
        match self.store.open(&attempt, next, speaker.as_ref(), step, NOW).await.unwrap() {
            Advanced::Won(TokenReply::NeedInfo { ticket, claim }) => (ticket, claim.terms_template),
            _ => panic!("no terms"),
        }
    }

    /// The beat that agrees to these terms.
    pub(crate) fn agree(&self, proffer: &Proffer) -> Beat {
        let terms = &proffer.terms;
        let operation = terms.per_operation.then(|| OperationClaim {
            tool: proffer.resource_id.as_str().trim_start_matches("vault/").parse().unwrap(),
            params: [("note".to_owned(), proffer.nonce.clone().into())].into_iter().collect(),
        });
        let claims = AgreementClaims {
            iss: None,
            aud: ISSUER.into(),
            iat: NOW,
            template_id: terms.template_id.clone(),
            terms_uri: proffer.terms_uri.clone(),
            purpose: terms.purpose.clone(),
            scope: terms.scope.clone(),
            expires_in: terms.expires_in,
            prohibited: terms.prohibited.clone(),
            family: proffer.family.clone(),
            nonce: proffer.nonce.clone(),
            operation,
            reason: None,
            mission: None,
        };
        Beat::Commit(Box::new(SignedAgreement::read(&sign(&self.agent, &claims).unwrap()).unwrap()), None)
    }

    pub(crate) async fn advance(&self, ticket: &str, beat: Beat) -> TokenReply {
        let (next, speaker, step) = self.shown(beat);
        match self.store.advance(Digest::of(ticket), next, speaker.as_ref(), step, NOW).await.unwrap() {
            Advanced::Won(reply) => reply,
            _ => panic!("the ticket was not live"),
        }
    }

    /// A token for a resource, her approval included where she is asked.
    pub(crate) async fn grant(&self, resource: &str) -> String {
        let (ticket, proffer) = self.terms(resource).await;
        let mut reply = self.advance(&ticket, self.agree(&proffer)).await;
        if let TokenReply::Submitted { ticket, .. } = &reply {
            let hers = Author::Owner("device".into());
            let yes = Answer::Approved.into();
            let said = self.store.decide(&self.alice, &proffer.family, &yes, &hers, NOW).await;
            assert_eq!(said.unwrap(), Some(()));
            reply = self.advance(ticket, Beat::Present).await;
        }
        match reply {
            TokenReply::Granted { access_token, .. } => access_token,
            _ => panic!("no grant"),
        }
    }
}
