//! A resource and its authority that do everything right, unless a test puts words in their mouths.

use crate::stub::{Answer, Bound, Seen, Site};
use async_trait::async_trait;
use sayso_agent::{Agent, Ask, Consent, Decision, Doors, Errand, Fault, Narrower, News, Outcome};
use sayso_protocol::canon::s256_bytes;
use sayso_protocol::envelope::{rfc9728, www_authenticate};
use sayso_protocol::id::{Handle, Scope, Timestamp};
use sayso_protocol::payload::agreement::SignedAgreement;
use sayso_protocol::payload::challenge::Challenge;
use sayso_protocol::payload::edition::Edition;
use sayso_protocol::payload::metadata::{KeySet, ResourceMetadata};
use sayso_protocol::payload::negotiation::{TokenError, TokenReply};
use sayso_protocol::payload::receipt::Receipt;
use sayso_protocol::payload::remediation::Attempted;
use sayso_protocol::payload::terms::{Proffer, RequiredClaim, Terms};
use sayso_protocol::sig::{self, Body, Facts, Profile};
use sayso_protocol::{SigningKey, VerifyingKey};
use serde_json::{Value, json};
use std::collections::VecDeque;
use std::path::Path;
use std::sync::{Arc, Mutex};

pub(crate) const TOOL: &str = "execute_trade";
pub(crate) const ARGUMENTS: &str = r#"{"symbol":"VTI","side":"buy","quantity":3}"#;

#[expect(clippy::disallowed_methods, reason = "a test is an edge")]
pub(crate) fn now() -> Timestamp {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
    Timestamp(since.as_secs().try_into().unwrap())
}

pub(crate) fn key(seed: u8) -> SigningKey {
    SigningKey::from_seed(&[seed; 32]).unwrap()
}

/// What both sites know.
pub(crate) struct Plan {
    /// `…/mcp`.
    pub(crate) resource: String,
    pub(crate) gateway: String,
    pub(crate) authority: String,
    /// Whether grants are for one call.
    pub(crate) per_operation: bool,
    /// How often a poll is told to wait.
    pub(crate) polls: usize,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    agreement: Option<SignedAgreement>,
    tickets: usize,
    polled: usize,
    spent: bool,
}

impl Plan {
    /// What a test may put in the resource's or the authority's place.
    pub(crate) fn document(&self) -> Value {
        rfc9728::document(&self.metadata(), &key(1), now()).unwrap()
    }

    pub(crate) fn metadata(&self) -> ResourceMetadata {
        ResourceMetadata {
            resource: self.resource.clone(),
            authorization_servers: vec![self.authority.clone()],
            jwks_uri: format!("{}/jwks", self.gateway),
            scopes_supported: vec![scope()],
            bearer_methods_supported: vec!["header".into()],
            resource_signing_alg_values_supported: vec!["EdDSA".into()],
            tool_surfaces: Vec::new(),
            owner_resources_endpoint: format!("{}/owner-resources", self.gateway),
        }
    }

    pub(crate) fn challenge(&self, as_uri: &str, ticket: &str) -> Challenge {
        let attempted = Attempted::new(
            Edition::Sept11,
            &self.gateway,
            "vault/execute_trade".parse().unwrap(),
            TOOL.parse().unwrap(),
            vec![scope()],
        );
        Challenge {
            realm: "vault".parse().unwrap(),
            as_uri: as_uri.into(),
            ticket: ticket.into(),
            resource_metadata: format!("{}/.well-known/oauth-protected-resource/mcp", self.gateway),
            scopes: vec![scope()],
            remediation: attempted.unwrap().remediation(as_uri, ticket),
        }
    }

    pub(crate) fn proffer(&self) -> Proffer {
        let terms = Terms {
            template_id: "a/trading/v1".parse().unwrap(),
            purpose: "trading on \u{202e}Alice's behalf".into(),
            scope: vec![scope()],
            expires_in: 900,
            prohibited: vec!["resale".into()],
            proffered_by: self.authority.clone(),
            per_operation: self.per_operation,
            enforced: Default::default(),
        };
        Proffer {
            terms,
            terms_uri: format!("{}/terms/a/trading/v1", self.authority),
            nonce: "nonce-1".into(),
            family: "family-1".parse().unwrap(),
            resource_id: "vault/execute_trade".parse().unwrap(),
        }
    }

    pub(crate) fn need_info(&self, alter: impl Fn(&mut Proffer)) -> Answer {
        let mut proffer = self.proffer();
        alter(&mut proffer);
        let claim = Box::new(RequiredClaim::agreement(Edition::Sept11, proffer));
        reply(&TokenReply::NeedInfo { ticket: self.next_ticket(), claim })
    }

    pub(crate) fn submitted(&self) -> Answer {
        reply(&TokenReply::Submitted { ticket: self.next_ticket(), interval: 1 })
    }

    pub(crate) fn granted(&self, alter: impl Fn(&mut Receipt)) -> Answer {
        let state = self.state.lock().unwrap();
        let agreement = state.agreement.as_ref().unwrap();
        let mut receipt = Receipt {
            iss: self.authority.clone(),
            sub: agreement.handle(),
            iat: now(),
            terms_uri: self.proffer().terms_uri,
            template_id: self.proffer().terms.template_id,
            agreement: agreement.digest(),
            agreement_jws: agreement.compact().into(),
            family: self.proffer().family,
        };
        alter(&mut receipt);
        receipt.agreement = s256_bytes(receipt.agreement_jws.as_bytes());
        let receipt = receipt.sign(&key(2)).unwrap();
        reply(&TokenReply::Granted { access_token: "grant-token".into(), expires_in: 600, receipt })
    }

    pub(crate) fn agreement(&self) -> Option<SignedAgreement> {
        self.state.lock().unwrap().agreement.clone()
    }

    pub(crate) fn agent_key(&self) -> VerifyingKey {
        self.agreement().unwrap().key().clone()
    }

    pub(crate) fn next_ticket(&self) -> String {
        let mut state = self.state.lock().unwrap();
        state.tickets += 1;
        format!("ticket-{}", state.tickets)
    }

    fn at_the_resource(&self, seen: &Seen) -> Answer {
        match (seen.method.as_str(), seen.path.as_str()) {
            ("GET", "/.well-known/oauth-protected-resource/mcp") => Answer::json(200, self.document()),
            ("GET", "/jwks") => Answer::json(200, jwks(1)),
            ("POST", "/mcp") => self.mcp(seen),
            _ => Answer::json(404, json!({"error": "not_found"})),
        }
    }

    fn mcp(&self, seen: &Seen) -> Answer {
        let asked = seen.json();
        match asked["method"].as_str().unwrap_or_default() {
            "server/discover" => {
                result(seen, json!({"supportedVersions": ["2026-07-28"], "resultType": "complete"}))
            }
            "tools/call" if seen.header("authorization").is_none() => {
                let challenge = self.challenge(&self.authority, &self.next_ticket());
                challenged(&challenge)
            }
            "tools/call" => self.authorized(seen),
            _ => Answer::json(
                404,
                json!({"jsonrpc": "2.0", "id": asked["id"], "error": {"code": -32601, "message": "no"}}),
            ),
        }
    }

    fn authorized(&self, seen: &Seen) -> Answer {
        assert_eq!(seen.header("authorization"), Some("PoP grant-token"));
        proven(seen, &self.gateway, &self.agent_key());
        let mut state = self.state.lock().unwrap();
        if self.per_operation && std::mem::replace(&mut state.spent, true) {
            return Answer::json(403, json!({"error": "already_consumed"}));
        }
        result(
            seen,
            json!({"content": [{"type": "text", "text": "done"}], "structuredContent": {"filled": 3}}),
        )
    }

    fn at_the_authority(&self, seen: &Seen) -> Answer {
        match (seen.method.as_str(), seen.path.as_str()) {
            ("GET", "/.well-known/uma2-configuration") => Answer::json(200, self.issuer_metadata()),
            ("GET", "/jwks") => Answer::json(200, jwks(2)),
            ("POST", "/token") => self.token(seen),
            _ => Answer::json(404, json!({"error": "not_found"})),
        }
    }

    pub(crate) fn issuer_metadata(&self) -> Value {
        json!({
            "issuer": self.authority,
            "token_endpoint": format!("{}/token", self.authority),
            "jwks_uri": format!("{}/jwks", self.authority),
            "grant_types_supported": ["urn:ietf:params:oauth:grant-type:uma-ticket"],
        })
    }

    fn token(&self, seen: &Seen) -> Answer {
        let live = format!("ticket-{}", self.state.lock().unwrap().tickets);
        if seen.form("ticket") != Some(live) {
            return reply(&TokenReply::refused(TokenError::InvalidGrant, "no such ticket"));
        }
        if seen.form("decline").is_some() {
            return reply(&TokenReply::refused(TokenError::RequestDenied, "declined"));
        }
        if let Some(token) = seen.form("claim_token") {
            let agreement = SignedAgreement::read(&token).unwrap();
            agreement.assents_to(&self.proffer(), Some(&TOOL.parse().unwrap()), now()).unwrap();
            self.state.lock().unwrap().agreement = Some(agreement);
        } else if self.agreement().is_none() || seen.header("signature").is_none() {
            return self.need_info(|_| {});
        } else {
            proven(seen, &self.authority, &self.agent_key());
            self.state.lock().unwrap().polled += 1;
        }
        let waits = self.state.lock().unwrap().polled < self.polls;
        if waits { self.submitted() } else { self.granted(|_| {}) }
    }
}

fn scope() -> Scope {
    "trades:execute".parse().unwrap()
}

pub(crate) fn jwks(seed: u8) -> Value {
    serde_json::to_value(KeySet::of([key(seed).verifying()])).unwrap()
}

pub(crate) fn reply(reply: &TokenReply) -> Answer {
    Answer::json(reply.status(), reply.body())
}

pub(crate) fn challenged(challenge: &Challenge) -> Answer {
    let header = www_authenticate::encode(challenge).unwrap();
    let body = serde_json::to_value(challenge.object()).unwrap();
    Answer::json(401, body).with("www-authenticate", header.to_str().unwrap())
}

pub(crate) fn result(seen: &Seen, result: Value) -> Answer {
    Answer::json(200, json!({"jsonrpc": "2.0", "id": seen.json()["id"], "result": result}))
}

/// The strict verifier's view: minimum, body digest, freshness, this key.
pub(crate) fn proven(seen: &Seen, site: &str, key: &VerifyingKey) {
    let authority = site.strip_prefix("http://").unwrap();
    let facts = Facts {
        method: &seen.method,
        scheme: "http",
        authority,
        path: &seen.path,
        query: None,
        headers: &seen.headers,
        body: Body::Whole(&seen.body),
    };
    let proof = sig::read(&seen.headers).unwrap().verify(&facts, key, &Profile::default(), now()).unwrap();
    assert!(proof.covers_body);
}

/// What a test says in the place of the resource or the authority; `None` leaves it to them.
pub(crate) type Words = Box<dyn Fn(&Plan, &Seen) -> Option<Answer> + Send + Sync>;

pub(crate) fn honest() -> Words {
    Box::new(|_, _| None)
}

/// Both sites, running, and the agent's folder.
pub(crate) struct House {
    pub(crate) resource: Site,
    pub(crate) authority: Site,
    pub(crate) plan: Arc<Plan>,
    pub(crate) dir: tempfile::TempDir,
}

impl House {
    pub(crate) async fn start(
        per_operation: bool,
        polls: usize,
        at_resource: Words,
        at_authority: Words,
    ) -> House {
        let (gateway, authority) = (Bound::new().await, Bound::new().await);
        let plan = Arc::new(Plan {
            resource: format!("{}/mcp", gateway.url),
            gateway: gateway.url.clone(),
            authority: authority.url.clone(),
            per_operation,
            polls,
            state: Mutex::default(),
        });
        let (one, two) = (plan.clone(), plan.clone());
        let resource =
            gateway.serve(move |seen| at_resource(&one, seen).unwrap_or_else(|| one.at_the_resource(seen)));
        let authority = authority
            .serve(move |seen| at_authority(&two, seen).unwrap_or_else(|| two.at_the_authority(seen)));
        House { resource, authority, plan, dir: tempfile::tempdir().unwrap() }
    }

    pub(crate) async fn honest(per_operation: bool, polls: usize) -> House {
        House::start(per_operation, polls, honest(), honest()).await
    }

    pub(crate) fn agent(&self) -> Agent {
        agent(self.dir.path())
    }

    pub(crate) fn errand(&self, wait: u32) -> Errand {
        let mut errand = Errand::new(&self.plan.resource, TOOL.parse().unwrap(), ARGUMENTS).unwrap();
        errand.wait = wait;
        errand
    }

    /// One call by an agent whose person says yes to everything.
    pub(crate) async fn call(&self, wait: u32) -> Result<Outcome, Fault> {
        self.agent().call(&self.errand(wait), &Person::willing()).await
    }

    /// The tool calls the resource saw.
    pub(crate) fn calls(&self) -> Vec<Seen> {
        self.resource.seen().into_iter().filter(|seen| seen.json()["method"] == "tools/call").collect()
    }

    /// The presentations the authority saw.
    pub(crate) fn presented(&self) -> Vec<Seen> {
        self.authority.seen().into_iter().filter(|seen| seen.path == "/token").collect()
    }

    pub(crate) fn handle(&self) -> Handle {
        Handle::pseudonymous(&self.plan.agent_key().thumbprint())
    }
}

pub(crate) fn agent(dir: &Path) -> Agent {
    Agent::open(dir, Doors::usual(), now).unwrap()
}

/// The agent's user, who says what was planned and then yes, or nothing.
pub(crate) struct Person {
    says: Mutex<VecDeque<Decision>>,
    then: Decision,
    pub(crate) asked: Mutex<Vec<Proffer>>,
    pub(crate) heard: Mutex<Vec<String>>,
}

impl Person {
    pub(crate) fn willing() -> Person {
        Person::saying([], Decision::Agree(Narrower::default()))
    }

    pub(crate) fn saying(says: impl IntoIterator<Item = Decision>, then: Decision) -> Person {
        Person {
            says: Mutex::new(says.into_iter().collect()),
            then,
            asked: Mutex::default(),
            heard: Mutex::default(),
        }
    }
}

#[async_trait]
impl Consent for Person {
    async fn agree(&self, ask: &Ask<'_>) -> Decision {
        self.asked.lock().unwrap().push(ask.proffer.clone());
        self.says.lock().unwrap().pop_front().unwrap_or_else(|| self.then.clone())
    }

    fn tell(&self, news: &News<'_>) {
        self.heard.lock().unwrap().push(format!("{news:?}"));
    }
}
