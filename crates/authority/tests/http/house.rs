//! One authority with two owners, each with a resource server of her own, and the agents that come to it.
//!
//! `dump` is everything the store holds but signatures seen: what must not change when something is refused.

use crate::server::Server;
use crate::web::Web;
use crate::wire::{Answer, Sent, fresh_key};
use sayso_authority::keys::Keys;
use sayso_authority::store::SqliteStore;
use sayso_authority::{Authority, Caller, Clock, Config, Egress, ProtectionApi, demo, router};
use sayso_fetch::{Client, Reach};
use sayso_owner::ledger::Author;
use sayso_owner::registry::{IntroducedBy, ResourceServer, Standing};
use sayso_owner::store::{DeviceKey, Store};
use sayso_owner::unit::Owner;
use sayso_protocol::payload::agreement;
use sayso_protocol::payload::negotiation::UMA_TICKET;
use sayso_protocol::{ClientId, Handle, OwnerName, SigningKey, Timestamp, b64};
use serde_json::{Value, json};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

/// An owner, her device key, her resource server.
pub struct Person {
    pub name: OwnerName,
    pub device: SigningKey,
    pub server: Server,
}

pub struct House {
    pub address: SocketAddr,
    pub issuer: String,
    pub authority: Arc<Authority>,
    pub alice: Person,
    pub bob: Person,
    /// What is out there beyond loopback.
    pub web: Web,
    ahead: Arc<AtomicI64>,
    database: PathBuf,
    _data: tempfile::TempDir,
}

impl House {
    pub async fn new() -> Self {
        Self::with(|_| {}).await
    }

    pub async fn with(change: impl FnOnce(&mut Config)) -> Self {
        Self::reaching(Reach::Loopback, change).await
    }

    /// With this reach to what strangers name.
    pub async fn reaching(reach: Reach, change: impl FnOnce(&mut Config)) -> Self {
        let data = tempfile::tempdir().unwrap();
        let database = data.path().join("sayso.db");
        let store: Arc<dyn Store> = Arc::new(SqliteStore::open(&database).unwrap());
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let issuer = format!("http://{address}");
        let ahead = Arc::new(AtomicI64::new(0));
        let mut config = Config::at(issuer.clone());
        config.interval = 1;
        config.owners = vec![owner("alice"), owner("bob")];
        change(&mut config);
        let keys = Keys::open_or_create(data.path()).unwrap();
        let web = Web::default();
        let egress = Egress {
            configured: Arc::new(web.behind("configured", Client::new(Reach::Configured))),
            strangers: Arc::new(web.behind("strangers", Client::new(reach))),
        };
        let authority = Authority::open(config, keys, store, egress, clock(ahead.clone())).await.unwrap();
        let routes = router(authority.clone());
        tokio::spawn(async move { axum::serve(listener, routes).await });
        let alice = person(&authority, "alice").await;
        let bob = person(&authority, "bob").await;
        Self { address, issuer, authority, alice, bob, web, ahead, database, _data: data }
    }

    pub fn now(&self) -> Timestamp {
        Timestamp(wall() + self.ahead.load(Ordering::SeqCst))
    }

    /// Lets time pass at once.
    pub fn pass(&self, seconds: i64) {
        self.ahead.fetch_add(seconds, Ordering::SeqCst);
    }

    pub async fn send(&self, sent: Sent) -> Answer {
        sent.to(self.address).await
    }

    pub async fn get(&self, path: &str) -> Answer {
        self.send(Sent::new("GET", path)).await
    }

    pub fn sign(&self, sent: Sent, key: &SigningKey) -> Sent {
        sent.signed(key, &self.address.to_string(), self.now())
    }

    /// A request of an owner's, signed by her device key.
    pub async fn hers(&self, person: &Person, sent: Sent) -> Answer {
        self.send(self.sign(sent, &person.device)).await
    }

    pub async fn read(&self, person: &Person, path: &str) -> Value {
        self.hers(person, Sent::new("GET", &format!("/owner{path}"))).await.ok()
    }

    pub async fn decide(&self, person: &Person, family: &str, decision: &str) -> Answer {
        let path = format!("/owner/pending/{family}/decision");
        self.hers(person, Sent::new("POST", &path).json(&json!({ "decision": decision }))).await
    }

    /// An edit of one of alice's units.
    pub async fn hers_put(&self, unit: &str, body: Value) -> Answer {
        self.hers(&self.alice, Sent::new("PUT", &format!("/owner/policies/{unit}")).json(&body)).await
    }

    pub fn protection(&self) -> ProtectionApi {
        ProtectionApi::new(self.authority.clone())
    }

    /// A protection API token over HTTP.
    pub async fn pat(&self, person: &Person) -> String {
        let sent = Sent::new("POST", "/token").form(&[
            ("grant_type", "client_credentials"),
            ("scope", "uma_protection"),
            ("client_id", &person.server.origin),
        ]);
        let answer = self.send(self.sign(sent, &person.server.key)).await.ok();
        answer["access_token"].as_str().unwrap().to_owned()
    }

    pub fn database(&self) -> &Path {
        &self.database
    }

    /// Everything stored but signatures seen, tokens given to resource servers, and whether a grant was asked about.
    pub fn dump(&self) -> Dump {
        let db = rusqlite::Connection::open(&self.database).unwrap();
        let names = "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT IN ('replay', 'pats')";
        let mut read = db.prepare(names).unwrap();
        let tables: Vec<String> = read.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect();
        Dump(tables.iter().flat_map(|table| rows(&db, table)).collect())
    }
}

/// Rows of the store as text.
#[derive(PartialEq)]
pub struct Dump(Vec<String>);

impl Dump {
    /// The rows of one table.
    pub fn of(&self, table: &str) -> usize {
        self.0.iter().filter(|row| row.starts_with(&format!("{table}: "))).count()
    }

    /// All rows but those of one table.
    pub fn without(mut self, table: &str) -> Self {
        self.0.retain(|row| !row.starts_with(&format!("{table}: ")));
        self
    }
}

impl std::fmt::Debug for Dump {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.iter().try_for_each(|row| write!(f, "\n  {row:.300}"))
    }
}

fn rows(db: &rusqlite::Connection, table: &str) -> Vec<String> {
    let mut read = db.prepare(&format!("SELECT * FROM {table}")).unwrap();
    let names: Vec<String> = read.column_names().map(str::to_owned).collect();
    let text = |row: &rusqlite::Row<'_>| {
        let kept = names.iter().enumerate().filter(|(_, name)| *name != "introspected_at");
        let cells = kept.map(|(at, name)| format!("{name}={}", cell(row.get_ref(at).unwrap())));
        Ok(format!("{table}: {}", cells.collect::<Vec<_>>().join(" ")))
    };
    read.query_map([], text).unwrap().map(Result::unwrap).collect()
}

fn cell(value: rusqlite::types::ValueRef<'_>) -> String {
    match value {
        rusqlite::types::ValueRef::Text(text) => String::from_utf8_lossy(text).into_owned(),
        rusqlite::types::ValueRef::Blob(bytes) => b64::encode(bytes),
        other => format!("{other:?}"),
    }
}

fn owner(name: &str) -> Owner {
    Owner { name: name.parse().unwrap(), namespace: name.into() }
}

async fn person(authority: &Arc<Authority>, name: &str) -> Person {
    let (store, now) = (authority.store(), Timestamp(wall()));
    let realm = format!("{name}-vault");
    let person = Person {
        name: name.parse().unwrap(),
        device: fresh_key(),
        server: Server::start(authority.issuer(), &realm).await,
    };
    let key = person.device.verifying();
    let device = DeviceKey {
        owner: person.name.clone(),
        jwk: key.jwk(),
        thumbprint: key.thumbprint(),
        label: "test".into(),
    };
    store.enrol(&device, &Author::Setup, now).await.unwrap();
    store.settle_resource_server(&known(&person.name, &person.server, now), now).await.unwrap();
    authority.pull(&person.name, &person.client_id()).await.unwrap();
    for unit in demo::first_units(&realm).unwrap() {
        store
            .create_unit(&person.name, &unit, authority.issuer(), &Author::Setup, now)
            .await
            .unwrap()
            .unwrap();
    }
    person
}

/// A resource server as set-up records it.
pub fn known(owner: &OwnerName, server: &Server, now: Timestamp) -> ResourceServer {
    ResourceServer {
        owner: Some(owner.clone()),
        client_id: server.origin.parse().unwrap(),
        name: "vault".into(),
        resource_uri: server.resource(),
        status: Standing::Active,
        auth_method: "signature".into(),
        registered_at: now,
        pinned_key: Some(server.key.verifying().thumbprint()),
        introduced_by: IntroducedBy::Setup,
    }
}

impl Person {
    pub fn client_id(&self) -> ClientId {
        self.server.origin.parse().unwrap()
    }

    pub fn caller(&self) -> Caller {
        Caller { owner: self.name.clone(), client_id: self.client_id() }
    }

    pub fn resource(&self, tool: &str) -> String {
        format!("{}-vault/{tool}", self.name)
    }
}

#[allow(clippy::disallowed_methods, reason = "the edge of the test reads the clock")]
fn wall() -> i64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
    i64::try_from(since.as_secs()).unwrap()
}

fn clock(ahead: Arc<AtomicI64>) -> Clock {
    Arc::new(move || Timestamp(wall() + ahead.load(Ordering::SeqCst)))
}

/// The scope of a demo tool.
pub fn scope(tool: &str) -> &'static str {
    match tool {
        "get_positions" => "positions:read",
        "get_transactions" => "transactions:read",
        _ => "trades:execute",
    }
}

/// A requesting agent: one key.
pub struct Agent {
    pub key: SigningKey,
}

/// A negotiation as its agent sees it.
pub struct Talk<'a> {
    pub house: &'a House,
    pub agent: &'a Agent,
    pub ticket: String,
    pub template: Value,
    pub tool: String,
}

impl Agent {
    pub fn new() -> Self {
        Self { key: fresh_key() }
    }

    pub fn handle(&self) -> Handle {
        Handle::pseudonymous(&self.key.verifying().thumbprint())
    }

    /// A ticket for one of `person`'s tools, not yet presented.
    pub async fn reach<'a>(&'a self, house: &'a House, person: &Person, tool: &str) -> Talk<'a> {
        let request = sayso_protocol::payload::protection::PermissionRequest {
            resource_id: person.resource(tool).parse().unwrap(),
            resource_scopes: vec![scope(tool).parse().unwrap()],
        };
        let reply = house.protection().permission(&person.caller(), &[request]).await.unwrap();
        Talk { house, agent: self, ticket: reply.ticket, template: Value::Null, tool: tool.into() }
    }

    /// Up to the owner's terms.
    pub async fn negotiate<'a>(&'a self, house: &'a House, person: &Person, tool: &str) -> Talk<'a> {
        let mut talk = self.reach(house, person, tool).await;
        let answer = talk.present(&[]).await;
        assert_eq!((answer.status, answer.json()["error"].as_str()), (403, Some("need_info")), "{answer:?}");
        talk
    }

    /// To a token, the owner approving where she is asked.
    pub async fn obtain(&self, house: &House, person: &Person, tool: &str) -> String {
        let mut talk = self.negotiate(house, person, tool).await;
        let mut answer = talk.commit().await;
        if answer.status != 200 {
            assert_eq!(answer.json()["error"], "request_submitted", "{answer:?}");
            house.decide(person, &talk.family(), "approved").await.ok();
            answer = talk.present(&[]).await;
        }
        answer.ok()["access_token"].as_str().unwrap().to_owned()
    }
}

impl Talk<'_> {
    pub fn family(&self) -> String {
        self.template["family"].as_str().unwrap().to_owned()
    }

    pub fn request(&self, ticket: &str, more: &[(&str, &str)]) -> Sent {
        let members = [&[("grant_type", UMA_TICKET), ("ticket", ticket)], more].concat();
        Sent::new("POST", "/token").form(&members)
    }

    /// Presents the live ticket; the next one is kept.
    pub async fn present(&mut self, more: &[(&str, &str)]) -> Answer {
        let answer = self.house.send(self.request(&self.ticket, more)).await;
        self.keep(&answer);
        answer
    }

    pub fn keep(&mut self, answer: &Answer) {
        let body = answer.json();
        if let Some(ticket) = body["ticket"].as_str() {
            // A doubt gives the same one back; every other answer has the next.
            assert_eq!(self.ticket == ticket, body["error"] == "request_denied");
            self.ticket = ticket.into();
        }
        if let Some(template) = body["required_claims"].get(0).map(|claim| &claim["terms_template"]) {
            self.template = template.clone();
        }
    }

    /// The agreement an honest agent signs.
    pub fn claims(&self) -> Value {
        let mut claims = json!({ "aud": self.house.issuer, "iat": self.house.now() });
        for member in
            ["template_id", "terms_uri", "purpose", "scope", "expires_in", "prohibited", "family", "nonce"]
        {
            claims[member] = self.template[member].clone();
        }
        if self.template["per_operation"] == true {
            claims["operation"] = json!({ "tool": self.tool, "params": { "symbol": "VTI", "quantity": 3 } });
        }
        claims
    }

    pub fn claim_token(&self, claims: &Value) -> String {
        let claims = serde_json::from_value(claims.clone()).unwrap();
        agreement::sign(&self.agent.key, &claims).unwrap()
    }

    /// A claim token over these very bytes.
    pub fn sign_raw(&self, payload: &str) -> String {
        let header =
            json!({ "alg": "EdDSA", "typ": agreement::TYP, "jwk": self.agent.key.verifying().jwk() });
        let signed = format!("{}.{}", b64::encode(header.to_string()), b64::encode(payload));
        let signature = b64::encode(self.agent.key.sign(signed.as_bytes()).unwrap());
        b64::encode(format!("{signed}.{signature}"))
    }

    pub async fn commit(&mut self) -> Answer {
        self.commit_to(&self.claims()).await
    }

    pub async fn commit_to(&mut self, claims: &Value) -> Answer {
        let token = self.claim_token(claims);
        self.present(&[("claim_token", &token), ("claim_token_format", FORMAT)]).await
    }
}

pub const FORMAT: &str = "urn:uma4agents:format:myterms-agreement-v1+jws";
