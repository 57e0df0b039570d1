//! What is behind the gateway of an `up`: the demo vault, or the server somebody named.
//!
//! A named server is asked what it offers before anything is served; what it says of its tools is all that the first
//! policy is made of (D-29). One that does not answer in time is served without tools until it does (D-30).

use super::keeper::Watched;
use super::parts::Wanted;
use crate::home::Home;
use crate::settings::Settings;
use crate::upstream::{self, BadUpstream};
use crate::vault;
use anyhow::{Context as _, bail};
use sayso_authority::demo;
use sayso_enforce::resource::ToolSettings;
use sayso_gateway::classify;
use sayso_gateway::{
    Credential, HttpSettings, StdioCommand, Survey, SurveyFault, Surveyed, Upstream, UpstreamConfig,
};
use sayso_owner::first;
use sayso_owner::unit::Unit;
use sayso_protocol::Realm;
use sayso_protocol::message::Class;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::time::{sleep, timeout};
use url::Url;

/// How long the first listing is waited for.
const PATIENCE: Duration = Duration::from_secs(5);
const AGAIN: Duration = Duration::from_millis(250);
/// The realm of a server that has no name of its own, and of one that was not heard yet.
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
            (Some(url), None) => {
                let named = settings.text("gateway.upstream_token_env");
                let credential =
                    named.map(|name| upstream::credential("gateway.upstream_token_env", name)).transpose()?;
                Ok(Named::Http(url.to_owned(), credential))
            }
            (None, Some(line)) => {
                let command = upstream::command(line, &environment).map_err(|fault| match fault {
                    BadUpstream::Variable(name) => anyhow::anyhow!(
                        "--upstream-env names {name}, which is not set; set it or leave it out"
                    ),
                    BadUpstream::Shell(name) => anyhow::anyhow!(
                        "--upstream-stdio begins with {name}=…, and no shell reads it: set {name} where you start sayso, name it with \
                         --upstream-env {name}, and begin with the program"
                    ),
                    BadUpstream::Command(fault) => {
                        anyhow::Error::new(fault).context("--upstream-stdio is not a command")
                    }
                })?;
                Ok(Named::Stdio(Box::new(command)))
            }
            (None, None) if environment.is_empty() => Ok(Named::Vault),
            (None, None) => bail!("--upstream-env names variables for --upstream-stdio, which is not given"),
        }
    }
}

/// The server behind, opened and asked.
pub(super) struct Behind {
    /// Its realm; provisional while it was not heard, and then nothing is made of it (D-30).
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
        crate::roles::gateway::warn_of_nothing(wanted.asked, "/mcp");
        let advice;
        let upstream = match std::mem::replace(&mut wanted.named, Named::Vault) {
            Named::Vault => return Self::vault(home).await,
            Named::Http(url, credential) => {
                advice = Advice::Http { server: origin(&url), token: credential.is_some() };
                let open = |host, credential| {
                    Upstream::open(HttpSettings { url: url.clone(), host, credential })
                        .with_context(|| format!("--upstream {url} cannot be dialled"))
                };
                // Beside everything else: a server that keeps strangers waiting must not keep us.
                tokio::spawn(warn_of_the_way_round(open(None, None)?, url.clone()));
                open(wanted.upstream_host.of(public_url), credential)?
            }
            Named::Stdio(command) => {
                advice = Advice::Stdio;
                Upstream::open(*command).context("the command of --upstream-stdio cannot be run")?
            }
        };
        let survey = first_survey(&upstream, &advice).await;
        let heard = survey.as_ref().map(|survey| realm(wanted.realm.as_ref(), survey)).transpose()?;
        if let Some(survey) = &survey {
            for left in &survey.left_out {
                tracing::warn!("a tool of the server cannot be governed and is not served: {}", left.reason);
            }
        } else {
            tracing::warn!("calls are refused until the server lists its tools");
        }
        let surveyed = survey.map(|survey| survey.tools).unwrap_or_default();
        let watched =
            Watched { upstream: upstream.clone(), every: wanted.survey_interval, heard: heard.clone() };
        let realm = heard.or_else(|| wanted.realm.clone()).map_or_else(|| Realm::parse(UNNAMED), Ok)?;
        Ok(Self {
            tools: govern(&surveyed, &realm),
            first: first_units(&surveyed, &realm),
            upstream: upstream.into(),
            watched: Some(watched),
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
        let server = origin(&url);
        tracing::warn!(
            "the server at {server} answers without credentials: whoever can reach it bypasses sayso. Run it with --upstream-stdio, let \
             nobody but this gateway reach it, or have it demand a token (gateway.upstream_token_env)"
        );
    }
}

/// Not what follows the host: some URLs are secrets.
fn origin(url: &str) -> String {
    Url::parse(url).map(|url| url.origin().ascii_serialization()).unwrap_or_default()
}

/// What to look at when the server cannot be heard.
enum Advice {
    Http { server: String, token: bool },
    Stdio,
}

impl Advice {
    fn about(&self, fault: SurveyFault) -> String {
        match (self, fault) {
            (Advice::Http { server, token: false }, SurveyFault::Denied(_)) => format!(
                "{fault} ({server}): put the token it wants into a variable, and name that in gateway.upstream_token_env"
            ),
            (Advice::Http { server, token: true }, SurveyFault::Denied(_)) => {
                format!("{fault} ({server}): it does not take what the variable of gateway.upstream_token_env holds")
            }
            (Advice::Http { server, .. }, SurveyFault::Unreachable) => {
                format!("the server at {server} cannot be reached, or broke off; see that it runs, and check --upstream")
            }
            (Advice::Http { server, .. }, _) => format!("{fault} ({server})"),
            (Advice::Stdio, SurveyFault::Unreachable) => {
                "the command of --upstream-stdio does not answer, or ended: check it, and that what it needs of the \
                 environment is named with --upstream-env"
                    .to_owned()
            }
            (Advice::Stdio, _) => fault.to_string(),
        }
    }
}

/// What the server lists, if it says so in time: the ready line waits no longer (D-30).
async fn first_survey(upstream: &Upstream, advice: &Advice) -> Option<Survey> {
    let mut last = SurveyFault::TimedOut;
    let asking = async {
        loop {
            match upstream.survey().await {
                Ok(survey) => return survey,
                Err(fault) => last = fault,
            }
            sleep(AGAIN).await;
        }
    };
    let listed = timeout(PATIENCE, asking).await.ok();
    if listed.is_none() {
        tracing::warn!("{}", advice.about(last));
    }
    listed
}

/// The realm of a server that was heard: the one asked for, else made of what it calls itself. It is the same at each
/// start, however long the server took to speak, since every id is made of it (D-29).
pub(super) fn realm(wanted: Option<&Realm>, survey: &Survey) -> anyhow::Result<Realm> {
    let said = survey.server_name.as_deref().and_then(classify::realm);
    Ok(wanted.cloned().or(said).map_or_else(|| Realm::parse(UNNAMED), Ok)?)
}

/// The tools that can be governed. One whose name makes no scope is not served.
pub(super) fn govern(tools: &[Surveyed], realm: &Realm) -> Vec<ToolSettings> {
    tools.iter().filter_map(|tool| classify::govern(tool, realm).ok()).collect()
}

/// The units these tools would be in at first.
pub(super) fn first_units(tools: &[Surveyed], realm: &Realm) -> Vec<Unit> {
    tools.iter().filter_map(|tool| first_unit(tool, realm)).collect()
}

/// The unit a tool is in at first, alone.
fn first_unit(tool: &Surveyed, realm: &Realm) -> Option<Unit> {
    let settings = classify::govern(tool, realm).ok()?;
    first::unit(&tool.name, settings.resource_id, settings.scopes, Class::of(&tool.annotations)).ok()
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
