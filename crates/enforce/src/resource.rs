//! One protected resource: its address, whose authority decides, and the one registry of its tools (MCP-02).
//!
//! Everything published about a resource is made from this registry, and the public part names no owner (FED-02). It is
//! built once from configuration and refuses what cannot be right; it does not serve anything.

use crate::consequence::Consequence;
pub use crate::enforcement::{Enforcement, Policed};
use sayso_protocol::canon::{CanonError, S256};
use sayso_protocol::message::Mirror;
use sayso_protocol::method::{UmaClass, uma_class};
use sayso_protocol::payload::challenge::Challenge;
use sayso_protocol::payload::edition::Edition;
use sayso_protocol::payload::metadata::{
    OwnedResource, OwnerListing, ResourceMetadata, TokenResourceMetadata, ToolSurface, metadata_url,
};
use sayso_protocol::payload::protection::PermissionRequest;
use sayso_protocol::payload::remediation::Attempted;
use sayso_protocol::sig::authority_of;
use sayso_protocol::{ClientId, OwnerName, Realm, ResourceId, Scope, ToolName};
use std::collections::{BTreeMap, BTreeSet};

/// What an instance in the owner's listing is: a tool of an MCP server.
pub const KIND: &str = "mcp-tool";

/// A tool as configuration names it.
#[derive(Debug, Clone)]
pub struct ToolSettings {
    /// The tool.
    pub tool: ToolName,
    /// Its resource at the owner's authority.
    pub resource_id: ResourceId,
    /// The scopes that suffice to call it; at least one.
    pub scopes: Vec<Scope>,
    /// Whether every call needs a grant of its own, whatever the grant says of itself (CORE-91).
    pub single_use: bool,
    /// Its declared class.
    pub consequence: Option<Consequence>,
    /// The pin of its definition (D-30).
    pub definition: Option<S256>,
    /// What the tool says of itself, for the owner to compare with what she accepted.
    pub surface: Option<serde_json::Value>,
    /// The arguments its schema mirrors in headers.
    pub mirrors: Vec<Mirror>,
}

impl ToolSettings {
    /// A tool whose grants may be for many calls, and of which nothing more is known.
    pub fn new(tool: ToolName, resource_id: ResourceId, scopes: Vec<Scope>) -> Self {
        Self {
            tool,
            resource_id,
            scopes,
            single_use: false,
            consequence: None,
            definition: None,
            surface: None,
            mirrors: Vec::new(),
        }
    }
}

/// A resource as configuration names it.
#[derive(Debug, Clone)]
pub struct ResourceSettings {
    /// The URL agents dial. Its host is the `@authority` of every signature (CORE-59).
    pub url: String,
    /// A constant of the resource server.
    pub realm: Realm,
    /// The issuer of the authority that decides, byte for byte.
    pub as_uri: String,
    /// The resource server's client id: `aud` of every grant (O-28).
    pub client_id: ClientId,
    /// Whose resource it is.
    pub owner: OwnerName,
    /// Which edition's identifiers are emitted.
    pub edition: Edition,
    /// The tools. One that is not here is refused; none at all means that they are not known yet, and then no call is
    /// served until [`crate::Registry::replace`] says what there is.
    pub tools: Vec<ToolSettings>,
    /// What is asked before a message is forwarded.
    pub enforcement: Enforcement,
    /// Methods opened beyond the table of D-6.
    pub open_methods: Vec<String>,
    /// Origins served beside the resource's own; a request without one is served too.
    pub allowed_origins: Vec<String>,
    /// Hosts unsigned requests may name.
    pub hosts: Vec<String>,
    /// Whether older peers may leave the body uncovered, where no single call is approved (D-8).
    pub accept_uncovered_body: bool,
    /// Whether a query is served; then signatures cover it (D-10).
    pub serve_query: bool,
    /// Most bytes of a request body, whatever its host read.
    pub body_limit: usize,
    /// Where the resource server publishes its keys.
    pub jwks_uri: String,
    /// Where her authority reads her instances.
    pub owner_resources_endpoint: String,
}

/// A tool, ready to be asked for.
#[derive(Debug, Clone)]
pub struct Tool {
    /// As configured.
    pub settings: ToolSettings,
    attempted: Attempted,
}

/// A protected resource.
#[derive(Debug, Clone)]
pub struct Resource {
    settings: ResourceSettings,
    tools: BTreeMap<ToolName, Tool>,
    listed: bool,
    origin: String,
    scheme: String,
    authority: String,
    path: String,
    metadata_url: String,
}

/// Settings that describe no resource.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadResource {
    /// The URL is not absolute http or https, or has a query, a fragment or a user.
    #[error("the resource's url is not a plain http or https url")]
    Url,
    /// Two tools of one name, or two tools of one resource id.
    #[error("tool {0} is listed twice, or shares its resource id")]
    Repeated(ToolName),
    /// A tool without scopes cannot be granted.
    #[error("tool {0} has no scope")]
    NoScope(ToolName),
    /// A protected method cannot be opened.
    #[error("a protected method cannot be opened")]
    Opened,
    /// Where a policy is asked about every message, what passes unasked is settled and cannot be added to (COAZ-MCP-50).
    #[error("no method can be opened where a policy is asked about every message; map it instead")]
    OpenedToNobody,
    /// What an owner leaves open is read without a token, so nobody knows for whom to cut it.
    #[error("lists are cut for whoever shows a token, and what an owner leaves open is read without one")]
    CutForNobody,
    /// A name has no canonical form.
    #[error("a tool's names have no canonical form")]
    Canon(#[from] CanonError),
}

impl Resource {
    /// Builds the resource.
    ///
    /// # Errors
    /// When the settings contradict themselves.
    pub fn new(mut settings: ResourceSettings) -> Result<Self, BadResource> {
        let url = url::Url::parse(&settings.url).map_err(|_| BadResource::Url)?;
        let authority = authority_of(&url).ok_or(BadResource::Url)?;
        let metadata_url = metadata_url(&settings.url).map_err(|_| BadResource::Url)?;
        // Identifiers are compared as text, so one that a URL library would write differently is refused here.
        let path = settings.url.strip_prefix(&url.origin().ascii_serialization()).ok_or(BadResource::Url)?;
        if !url.username().is_empty() || url.password().is_some() || (path != url.path() && !path.is_empty())
        {
            return Err(BadResource::Url);
        }
        if settings.open_methods.iter().any(|method| uma_class(method) == UmaClass::Protected) {
            return Err(BadResource::Opened);
        }
        if settings.enforcement.policed().is_some() && !settings.open_methods.is_empty() {
            return Err(BadResource::OpenedToNobody);
        }
        if let Enforcement::UmaAndCoaz(policy) = &settings.enforcement
            && policy.filters_lists()
        {
            return Err(BadResource::CutForNobody);
        }
        let origin = url.origin().ascii_serialization();
        // What is of the same origin as the resource is not foreign to it (D-16).
        settings.allowed_origins.push(origin.clone());
        let tools = registry(&settings, &origin)?;
        let path = url.path().to_owned();
        let listed = !tools.is_empty();
        Ok(Self {
            tools,
            listed,
            origin,
            scheme: url.scheme().to_owned(),
            authority,
            path,
            metadata_url,
            settings,
        })
    }

    /// The same resource with these tools instead, which may be none.
    ///
    /// # Errors
    /// When the tools contradict one another.
    pub fn with_tools(&self, tools: Vec<ToolSettings>) -> Result<Self, BadResource> {
        let settings = ResourceSettings { tools, ..self.settings.clone() };
        let tools = registry(&settings, &self.origin)?;
        Ok(Self { tools, listed: true, settings, ..self.clone() })
    }

    /// The same resource under this realm.
    pub(crate) fn in_realm(&self, realm: Realm) -> Self {
        let settings = ResourceSettings { realm, ..self.settings.clone() };
        Self { settings, ..self.clone() }
    }

    /// Whether it is known what tools there are.
    pub fn is_listed(&self) -> bool {
        self.listed
    }

    /// As configured.
    pub fn settings(&self) -> &ResourceSettings {
        &self.settings
    }

    /// The origin of its URL.
    pub fn origin(&self) -> &str {
        &self.origin
    }

    /// `http` or `https`.
    pub fn scheme(&self) -> &str {
        &self.scheme
    }

    /// The `@authority` signatures are checked against.
    pub fn authority(&self) -> &str {
        &self.authority
    }

    /// The one spelling of its path that is served.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// Where its metadata is published (BASE-09).
    pub fn metadata_url(&self) -> &str {
        &self.metadata_url
    }

    /// The path of [`Self::metadata_url`].
    pub fn metadata_path(&self) -> &str {
        self.metadata_url.strip_prefix(&self.origin).unwrap_or_default()
    }

    /// The tool of this name.
    pub fn tool(&self, name: &str) -> Option<&Tool> {
        ToolName::parse(name).ok().and_then(|name| self.tools.get(&name))
    }

    /// Whether a method passes without a grant: by the table, because this resource opens it, or because nothing is
    /// enforced here. A client's response, which has no method, is named by an empty one.
    pub fn opens(&self, method: &str) -> bool {
        match &self.settings.enforcement {
            Enforcement::Nothing => true,
            Enforcement::Coaz(_) => false,
            Enforcement::Uma | Enforcement::UmaAndCoaz(_) => {
                uma_class(method) == UmaClass::Open
                    || self.settings.open_methods.iter().any(|open| open == method)
            }
        }
    }

    /// The public facts.
    pub fn metadata(&self) -> ResourceMetadata {
        let scopes: BTreeSet<&Scope> = self.tools.values().flat_map(|tool| &tool.settings.scopes).collect();
        ResourceMetadata {
            resource: self.settings.url.clone(),
            authorization_servers: vec![self.settings.as_uri.clone()],
            jwks_uri: self.settings.jwks_uri.clone(),
            scopes_supported: scopes.into_iter().cloned().collect(),
            bearer_methods_supported: vec!["header".to_owned()],
            resource_signing_alg_values_supported: vec!["EdDSA".to_owned()],
            tool_surfaces: self.tools.values().map(Tool::surface).collect(),
            owner_resources_endpoint: self.settings.owner_resources_endpoint.clone(),
        }
    }

    /// The public facts of a resource that takes access tokens; nothing of one that does not.
    pub fn token_metadata(&self) -> Option<TokenResourceMetadata> {
        let policed = self.settings.enforcement.policed()?;
        Some(TokenResourceMetadata {
            resource: self.settings.url.clone(),
            authorization_servers: policed.tokens.issuers().to_vec(),
            jwks_uri: self.settings.jwks_uri.clone(),
            bearer_methods_supported: vec!["header".to_owned()],
        })
    }

    /// The owner's instances, for her authority alone.
    pub fn listing(&self) -> OwnerListing {
        OwnerListing { resources: self.tools.values().map(Tool::instance).collect() }
    }

    /// The challenge for a tool, with the ticket her authority gave for it.
    pub fn challenge(&self, tool: &Tool, ticket: String) -> Challenge {
        Challenge {
            realm: self.settings.realm.clone(),
            as_uri: self.settings.as_uri.clone(),
            resource_metadata: self.metadata_url.clone(),
            scopes: tool.settings.scopes.clone(),
            remediation: tool.attempted.remediation(&self.settings.as_uri, &ticket),
            ticket,
        }
    }
}

impl Tool {
    /// What an attempt at this tool is registered as.
    pub fn permission_request(&self) -> PermissionRequest {
        PermissionRequest {
            resource_id: self.settings.resource_id.clone(),
            resource_scopes: self.settings.scopes.clone(),
        }
    }

    fn surface(&self) -> ToolSurface {
        ToolSurface {
            tool: self.settings.tool.clone(),
            resource_scopes: self.settings.scopes.clone(),
            consequence: self.declared(),
        }
    }

    fn instance(&self) -> OwnedResource {
        OwnedResource {
            id: self.settings.resource_id.clone(),
            name: self.settings.tool.to_string(),
            kind: KIND.to_owned(),
            tool: self.settings.tool.clone(),
            resource_scopes: self.settings.scopes.clone(),
            consequence: self.declared(),
            definition: self.settings.definition.clone(),
            surface: self.settings.surface.clone(),
        }
    }

    fn declared(&self) -> Option<String> {
        self.settings.consequence.map(|class| class.as_str().to_owned())
    }
}

fn registry(settings: &ResourceSettings, origin: &str) -> Result<BTreeMap<ToolName, Tool>, BadResource> {
    let mut tools = BTreeMap::new();
    let mut ids = BTreeSet::new();
    for tool in &settings.tools {
        let name = tool.tool.clone();
        if tool.scopes.is_empty() {
            return Err(BadResource::NoScope(name));
        }
        let id = tool.resource_id.clone();
        let attempted = Attempted::new(settings.edition, origin, id, name.clone(), tool.scopes.clone())?;
        let fresh = ids.insert(tool.resource_id.clone());
        let other = tools.insert(name.clone(), Tool { settings: tool.clone(), attempted });
        if !fresh || other.is_some() {
            return Err(BadResource::Repeated(name));
        }
    }
    Ok(tools)
}

#[cfg(test)]
mod tests;
