//! What is behind the gateway of an `up`: the demo vault, or the server somebody named.
//!
//! A named server is asked what it offers before anything is served; what it says of its tools is all that the first
//! policy is made of (D-29). One that does not answer in time is served without tools until it does (D-30).

use super::keeper::Watched;
use super::parts::Wanted;
use crate::home::Home;
use crate::settings::Settings;
use crate::vault;
use anyhow::{Context as _, bail};
use sayso_authority::demo;
use sayso_enforce::resource::ToolSettings;
use sayso_gateway::classify::{self, Class};
use sayso_gateway::{Credential, HttpSettings, StdioCommand, Surveyed, Upstream, UpstreamConfig};
use sayso_owner::unit::{Draft, Unit};
use sayso_protocol::Realm;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::time::Instant;
use url::Url;

/// How long the first listing is waited for.
const PATIENCE: Duration = Duration::from_secs(5);
const AGAIN: Duration = Duration::from_millis(250);
/// The realm of a server that never said its name.
const UNNAMED: &str = "mcp-server";

/// Which server the settings name.
pub(super) enum Named {
    /// None: the demo vault.
    Vault,
    /// A streamable-HTTP server, and what it is shown.
    Http(String, Option<Credential>),
    /// A command that speaks over its standard input and output.
    Stdio(Box<StdioCommand>),
}

impl Named {
    pub(super) fn read(settings: &Settings) -> anyhow::Result<Self> {
        let environment: Vec<String> = settings.list("gateway.upstream_env");
        match (settings.text("gateway.upstream"), settings.text("gateway.upstream_stdio")) {
            (Some(_), Some(_)) => bail!("name one server: --upstream or --upstream-stdio"),
            (Some(url), None) => Ok(Named::Http(url.to_owned(), credential(settings)?)),
            (None, Some(line)) => {
                let command = StdioCommand::parse(line, &environment, |name| std::env::var_os(name))
                    .context("--upstream-stdio is not a command")?;
                Ok(Named::Stdio(Box::new(command.launched_by("/proc/self/exe"))))
            }
            (None, None) if environment.is_empty() => Ok(Named::Vault),
            (None, None) => bail!("--upstream-env names variables for --upstream-stdio, which is not given"),
        }
    }
}

/// What the server at a URL is shown, out of the environment: the settings can be printed, and name it only.
fn credential(settings: &Settings) -> anyhow::Result<Option<Credential>> {
    let Some(name) = settings.text("gateway.upstream_token_env") else { return Ok(None) };
    let token = std::env::var(name).ok().filter(|token| !token.is_empty());
    let token =
        token.with_context(|| format!("`gateway.upstream_token_env` names {name}, which is not set"))?;
    let credential = Credential::parse("Authorization", &format!("Bearer {token}"));
    Ok(Some(credential.with_context(|| format!("what {name} holds is no bearer token"))?))
}

/// The server behind, opened and asked.
pub(super) struct Behind {
    pub(super) realm: Realm,
    pub(super) tools: Vec<ToolSettings>,
    pub(super) upstream: UpstreamConfig,
    /// The bundled vault, to be served too.
    pub(super) vault: Option<(TcpListener, vault::Vault)>,
    /// A server that has to be asked again now and then.
    pub(super) watched: Option<Watched>,
    /// What a new installation starts from; empty when nothing is known yet.
    pub(super) first: Vec<Unit>,
}

impl Behind {
    pub(super) async fn open(wanted: &mut Wanted, home: &Home, public_url: &str) -> anyhow::Result<Self> {
        crate::roles::gateway::warn_of_nothing(wanted.enforcement, "/mcp");
        let upstream = match std::mem::replace(&mut wanted.named, Named::Vault) {
            Named::Vault => return Self::vault(home).await,
            Named::Http(url, credential) => {
                let open = |host, credential| {
                    Upstream::open(HttpSettings { url: url.clone(), host, credential })
                        .with_context(|| format!("--upstream {url} cannot be dialled"))
                };
                // Beside everything else: a server that keeps strangers waiting must not keep us.
                tokio::spawn(warn_of_the_way_round(open(None, None)?, url.clone()));
                open(wanted.upstream_host.of(public_url), credential)?
            }
            Named::Stdio(command) => {
                Upstream::open(*command).context("the command of --upstream-stdio cannot be run")?
            }
        };
        let survey = first_survey(&upstream).await;
        let saved = std::fs::read_to_string(home.path("realm")).ok().and_then(|text| Realm::parse(text).ok());
        let said = survey.as_ref().and_then(|survey| classify::realm(survey.server_name.as_deref()?));
        let realm = wanted.realm.clone().or(said).or(saved);
        let realm = realm.map_or_else(|| Realm::parse(UNNAMED), Ok)?;
        if let Some(survey) = &survey {
            home.replace("realm", realm.as_str().as_bytes())?;
            for left in &survey.left_out {
                tracing::warn!("a tool of the server cannot be governed and is not served: {}", left.reason);
            }
        } else {
            tracing::warn!("the server did not list its tools; calls are refused until it does");
        }
        let surveyed = survey.map(|survey| survey.tools).unwrap_or_default();
        Ok(Self {
            tools: govern(&surveyed, &realm),
            first: first_units(&surveyed, &realm),
            upstream: upstream.clone().into(),
            watched: Some(Watched { upstream, every: wanted.survey_interval }),
            vault: None,
            realm,
        })
    }

    async fn vault(home: &Home) -> anyhow::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await.context("no free port for the demo vault")?;
        let vault = vault::Vault::open(&home.folder("vault")?)?.hidden()?;
        let realm: Realm = vault::SERVER_NAME.parse()?;
        Ok(Self {
            tools: vault_tools(&realm)?,
            first: demo::first_units(realm.as_str())?,
            upstream: format!("http://{}{}", listener.local_addr()?, vault.path()).into(),
            vault: Some((listener, vault)),
            watched: None,
            realm,
        })
    }
}

/// Whoever can do what is tried here need not come by us (D-32).
async fn warn_of_the_way_round(stranger: Upstream, url: String) {
    if stranger.survey().await.is_ok() {
        // Not what follows the host: some URLs are secrets.
        let server = Url::parse(&url).map(|url| url.origin().ascii_serialization()).unwrap_or_default();
        tracing::warn!(
            "the server at {server} answers without credentials: whoever can reach it bypasses sayso. Run it with --upstream-stdio, let \
             nobody but this gateway reach it, or have it demand a token (gateway.upstream_token_env)"
        );
    }
}

async fn first_survey(upstream: &Upstream) -> Option<sayso_gateway::Survey> {
    let start = Instant::now();
    loop {
        match upstream.survey().await {
            Ok(survey) => return Some(survey),
            Err(fault) if start.elapsed() > PATIENCE => {
                tracing::warn!("{fault}");
                return None;
            }
            Err(_) => tokio::time::sleep(AGAIN).await,
        }
    }
}

/// The tools that can be governed. One whose name makes no scope is not served.
pub(super) fn govern(tools: &[Surveyed], realm: &Realm) -> Vec<ToolSettings> {
    tools.iter().filter_map(|tool| classify::govern(tool, realm).ok()).collect()
}

/// The units these tools would be in at first.
pub(super) fn first_units(tools: &[Surveyed], realm: &Realm) -> Vec<Unit> {
    tools.iter().filter_map(|tool| first_unit(tool, realm)).collect()
}

/// The unit a tool is in at first, alone. She is asked each time until rules can say otherwise (D-29).
fn first_unit(tool: &Surveyed, realm: &Realm) -> Option<Unit> {
    let settings = classify::govern(tool, realm).ok()?;
    let acts = Class::of(&tool.annotations) == Class::Act;
    let (beyond, reuse) = ("calls-beyond-approved-arguments", "reuse-of-an-approval");
    let upheld = [(beyond, "operation-binding"), (reuse, "single-use")];
    let upheld = upheld.map(|(promise, mechanism)| (promise.to_owned(), mechanism.to_owned()));
    let terms = Draft {
        purpose: if acts { "one call the owner approved" } else { "reading what this tool shows" }.into(),
        scope: settings.scopes,
        expires_in: if acts { 900 } else { 86_400 },
        prohibited: if acts { vec![beyond.into(), reuse.into()] } else { vec![] },
        per_operation: acts,
        enforced: if acts { upheld.into() } else { [].into() },
    };
    Some(Unit {
        id: classify::unit(&tool.name).ok()?,
        name: tool.name.to_string().chars().take(200).collect(),
        resources: vec![settings.resource_id],
        ask_me: true,
        version: 1,
        terms,
    })
}

/// The demo vault's tools; other servers say their own.
fn vault_tools(realm: &Realm) -> anyhow::Result<Vec<ToolSettings>> {
    let tools = [
        ("get_positions", "positions:read"),
        ("get_transactions", "transactions:read"),
        ("execute_trade", "trades:execute"),
    ];
    let settings = |(tool, scope): (&str, &str)| {
        Ok(ToolSettings {
            tool: tool.parse()?,
            resource_id: format!("{realm}/{tool}").parse()?,
            scopes: vec![scope.parse()?],
            single_use: tool == "execute_trade",
            consequence: None,
            definition: None,
            surface: None,
            mirrors: vec![],
        })
    };
    tools.into_iter().map(settings).collect()
}
