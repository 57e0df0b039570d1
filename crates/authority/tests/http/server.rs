//! A resource server as an authority meets it: signed metadata, keys, an owner's listing, and ways to lie.
//!
//! It protects nothing; it only publishes.

use crate::wire::fresh_key;
use axum::Json;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::routing::get;
use sayso_protocol::envelope::rfc9728;
use sayso_protocol::payload::metadata::{KeySet, OwnedResource, ResourceMetadata, ToolSurface};
use sayso_protocol::{SigningKey, Timestamp};
use serde_json::{Value, json};
use std::sync::{Arc, Mutex};

/// A way not to be believed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lie {
    Unsigned,
    ForeignKey,
    WrongIssuer,
    AnotherResource,
    AnotherAuthority,
    KeysElsewhere,
    ListingElsewhere,
    OddConsequence,
    TwiceListed,
    Down,
    Garbage,
    Empty,
}

pub struct Told {
    pub listing: Vec<OwnedResource>,
    pub lie: Option<Lie>,
    pub asked: usize,
    /// How often the metadata was read.
    pub read: usize,
    pub signatures: Vec<String>,
}

#[derive(Clone)]
pub struct Server {
    pub origin: String,
    pub issuer: String,
    pub key: SigningKey,
    pub told: Arc<Mutex<Told>>,
}

impl Server {
    pub async fn start(issuer: &str, realm: &str) -> Self {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let origin = format!("http://{}", listener.local_addr().unwrap());
        let listing = [
            entry(realm, "get_positions", "positions:read"),
            entry(realm, "get_transactions", "transactions:read"),
            entry(realm, "execute_trade", "trades:execute"),
        ];
        let told = Told { listing: listing.into(), lie: None, asked: 0, read: 0, signatures: vec![] };
        let told = Arc::new(Mutex::new(told));
        let server = Self { origin, issuer: issuer.into(), key: fresh_key(), told };
        server.serve(listener);
        server
    }

    /// The same under another key, at an origin of its own.
    pub async fn under(self, key: SigningKey) -> Self {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let origin = format!("http://{}", listener.local_addr().unwrap());
        let server = Self { origin, key, ..self };
        server.serve(listener);
        server
    }

    fn serve(&self, listener: tokio::net::TcpListener) {
        let routes = axum::Router::new()
            .route("/.well-known/oauth-protected-resource/mcp", get(metadata))
            .route("/jwks", get(keys))
            .route("/owner-resources", get(listed))
            .with_state(self.clone());
        tokio::spawn(async move { axum::serve(listener, routes).await });
    }

    pub fn resource(&self) -> String {
        format!("{}/mcp", self.origin)
    }

    pub fn lie(&self, lie: Option<Lie>) {
        self.told.lock().unwrap().lie = lie;
    }

    /// How often the metadata was read.
    pub fn read(&self) -> usize {
        self.told.lock().unwrap().read
    }

    fn lies(&self, lie: Lie) -> bool {
        self.told.lock().unwrap().lie == Some(lie)
    }

    fn document(&self) -> Value {
        let elsewhere = |lie, path: &str| {
            let origin = if self.lies(lie) { "http://127.0.0.1:9" } else { &self.origin };
            format!("{origin}{path}")
        };
        let consequence = self.lies(Lie::OddConsequence).then(|| "grave".to_owned());
        let surface = |entry: &OwnedResource| ToolSurface {
            tool: entry.tool.clone(),
            resource_scopes: entry.resource_scopes.clone(),
            consequence: consequence.clone(),
        };
        let listing = self.told.lock().unwrap().listing.clone();
        let mut metadata = ResourceMetadata {
            resource: self.resource(),
            authorization_servers: vec![self.issuer.clone()],
            jwks_uri: elsewhere(Lie::KeysElsewhere, "/jwks"),
            scopes_supported: vec![],
            bearer_methods_supported: vec![],
            resource_signing_alg_values_supported: vec![],
            tool_surfaces: listing.iter().map(surface).collect(),
            owner_resources_endpoint: elsewhere(Lie::ListingElsewhere, "/owner-resources"),
        };
        if self.lies(Lie::AnotherAuthority) {
            metadata.authorization_servers = vec!["https://other.example".into()];
        }
        if self.lies(Lie::AnotherResource) {
            metadata.resource += "/x";
        }
        let key = if self.lies(Lie::ForeignKey) { fresh_key() } else { self.key.clone() };
        let mut document = rfc9728::document(&metadata, &key, Timestamp(1)).unwrap();
        if self.lies(Lie::Unsigned) {
            document.as_object_mut().unwrap().remove("signed_metadata");
        }
        if self.lies(Lie::WrongIssuer) {
            let other = ResourceMetadata { resource: "https://x.example".into(), ..metadata };
            let other = rfc9728::document(&other, &self.key, Timestamp(1)).unwrap();
            document["signed_metadata"] = other["signed_metadata"].clone();
        }
        document
    }
}

pub fn entry(realm: &str, tool: &str, scope: &str) -> OwnedResource {
    OwnedResource {
        id: format!("{realm}/{tool}").parse().unwrap(),
        name: tool.into(),
        kind: "mcp-tool".into(),
        tool: tool.parse().unwrap(),
        resource_scopes: vec![scope.parse().unwrap()],
        consequence: None,
        definition: None,
        surface: None,
    }
}

async fn metadata(State(server): State<Server>) -> Result<Json<Value>, StatusCode> {
    server.told.lock().unwrap().read += 1;
    if server.lies(Lie::Down) { Err(StatusCode::SERVICE_UNAVAILABLE) } else { Ok(Json(server.document())) }
}

async fn keys(State(server): State<Server>) -> Json<KeySet> {
    Json(KeySet::of([server.key.verifying()]))
}

async fn listed(State(server): State<Server>, headers: HeaderMap) -> Json<Value> {
    let signature = headers.get("signature").map(|value| value.to_str().unwrap().to_owned());
    let mut told = server.told.lock().unwrap();
    told.asked += 1;
    told.signatures.extend(signature);
    match told.lie {
        Some(Lie::Garbage) => Json(json!({ "resources": "none" })),
        Some(Lie::Empty) => Json(json!({ "resources": [] })),
        Some(Lie::TwiceListed) => {
            let twice: Vec<_> = told.listing.iter().chain(&told.listing).collect();
            Json(json!({ "resources": twice }))
        }
        _ => Json(json!({ "resources": told.listing })),
    }
}
