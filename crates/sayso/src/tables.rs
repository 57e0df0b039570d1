//! The repeated tables of a configuration file: owners, resource servers, resources with their tools.
//!
//! Parsed once into types that cannot be wrong; a member nobody knows is refused by name.

use crate::policed::{Asked, Binding, Told, Trusted, Wishes};
use anyhow::{Context as _, bail};
use sayso_enforce::consequence::Consequence;
use sayso_enforce::resource::ToolSettings;
use sayso_protocol::{ClientId, OwnerName, Realm, ResourceId, Scope, ToolName};
use serde::Deserialize;
use std::collections::BTreeSet;
use std::path::Path;
use std::str::FromStr;

/// Names of the tables that repeat; everything else in a file is a setting.
pub(crate) const NAMES: [&str; 3] = ["owner", "resource_server", "resource"];

/// The repeated tables of one file.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Tables {
    /// `[[owner]]`
    #[serde(default)]
    pub(crate) owner: Vec<OwnerTable>,
    /// `[[resource_server]]`
    #[serde(default)]
    pub(crate) resource_server: Vec<ResourceServerTable>,
    /// `[[resource]]`
    #[serde(default)]
    pub(crate) resource: Vec<ResourceTable>,
}

/// An owner this authority serves.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct OwnerTable {
    /// Her name here.
    pub(crate) name: OwnerName,
}

/// A resource server that is known, and trusted, from the start (D-22). Its keys are those it publishes.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ResourceServerTable {
    /// Its origin.
    pub(crate) client_id: ClientId,
    /// Whose resources it has.
    pub(crate) owner: OwnerName,
    /// The resource it fronts.
    pub(crate) resource_uri: String,
    /// For people.
    pub(crate) name: Option<String>,
}

/// A resource behind a gateway, ours or another.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ResourceTable {
    /// Its path, e.g. `/mcp`.
    pub(crate) path: String,
    /// Further paths it is served at; each has a metadata document of its own.
    #[serde(default)]
    pub(crate) aliases: Vec<String>,
    /// Whose it is; nobody's where a policy alone is asked.
    pub(crate) owner: Option<OwnerName>,
    /// The issuer of the authority she chose.
    pub(crate) authority: Option<String>,
    /// A constant of this server, never a person's name.
    pub(crate) realm: Option<Realm>,
    /// The MCP endpoint behind it; a gateway needs one, external authorization has none.
    #[serde(default)]
    pub(crate) upstream: Option<String>,
    /// Or the command it is run as, which speaks over stdio; no shell reads it (D-31).
    #[serde(default)]
    pub(crate) upstream_stdio: Option<String>,
    /// The variables that command may see beside the usual ones.
    #[serde(default)]
    pub(crate) upstream_env: Vec<String>,
    /// The variable that holds the bearer token the server at the URL is shown.
    #[serde(default)]
    pub(crate) upstream_token_env: Option<String>,
    /// Which host it is told that it was asked for.
    #[serde(default)]
    pub(crate) upstream_host: UpstreamHost,
    /// The tools. One that is not here is refused; to have none is to be said.
    pub(crate) tools: Option<Vec<ToolTable>>,
    /// Whether they are what the server behind lists, instead, each under a scope of its own (D-29).
    #[serde(default)]
    pub(crate) discover: bool,
    /// Tools whose every call needs a grant of its own.
    #[serde(default)]
    pub(crate) single_use: Vec<ToolName>,
    /// Who is asked before a message is forwarded: `["uma"]`, `["coaz"]`, both, or `[]` for nobody.
    #[serde(default)]
    pub(crate) enforce: Option<Vec<String>>,
    /// The policy engine: `embedded`, or its https URL; that of `[pdp]` when absent.
    pub(crate) pdp: Option<String>,
    /// Methods mapped beyond COAZ's own defaults.
    #[serde(default)]
    pub(crate) extra_defaults: Vec<String>,
    /// Whether lists are cut to what the policy lets their reader call.
    #[serde(default)]
    pub(crate) filter_lists: bool,
    /// The token's claim that names the subject.
    pub(crate) subject_claim: Option<String>,
    /// How far the server's own words about the subject are taken.
    #[serde(default)]
    pub(crate) trust: Trusted,
    /// Which text of COAZ's binding is followed.
    #[serde(default)]
    pub(crate) binding: Binding,
    /// Whether the log has what a policy engine was asked, values and all.
    #[serde(default)]
    pub(crate) audit_arguments: bool,
    /// How a denied call of a tool is answered.
    #[serde(default)]
    pub(crate) denials: Told,
    /// The member of a policy engine's context whose text a denial repeats.
    pub(crate) denial_text: Option<String>,
    /// What a token's audience must name; that of `[oauth]`, else the resource's URL, when absent.
    pub(crate) audience: Option<String>,
    /// A file with a `tools/list` of the server, or `none` when its tools declare no mapping; else it is asked.
    pub(crate) mappings: Option<String>,
    /// Methods opened beyond the usual ones.
    #[serde(default)]
    pub(crate) open_methods: Vec<String>,
    /// Browser origins served.
    #[serde(default)]
    pub(crate) allowed_origins: Vec<String>,
    /// Whether older peers may leave the body uncovered (D-8).
    #[serde(default)]
    pub(crate) accept_uncovered_body: bool,
}

/// The `Host` that a server behind a gateway is sent. Either way it is one that was configured, never what a caller wrote.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum UpstreamHost {
    /// Its own, as its URL has it.
    #[default]
    Rewrite,
    /// The one agents dial: that of the gateway's public URL.
    Preserve,
}

impl FromStr for UpstreamHost {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> anyhow::Result<Self> {
        match text {
            "rewrite" => Ok(Self::Rewrite),
            "preserve" => Ok(Self::Preserve),
            _ => bail!("it must be rewrite or preserve"),
        }
    }
}

impl UpstreamHost {
    /// The host to send, when it is not the server's own.
    pub(crate) fn of(self, public_url: &str) -> Option<String> {
        let (_, host) = public_url.split_once("://")?;
        (self == Self::Preserve).then(|| host.to_owned())
    }
}

/// Whose a resource is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Hers<'a> {
    /// The issuer of the authority she chose.
    pub(crate) authority: &'a str,
    /// Her.
    pub(crate) owner: &'a OwnerName,
    /// The server's name in ids.
    pub(crate) realm: &'a Realm,
}

/// A tool of a resource.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ToolTable {
    /// The tool's name.
    pub(crate) name: ToolName,
    /// The scopes that suffice to call it.
    pub(crate) scopes: Vec<Scope>,
    /// Its resource id; `realm/name` when absent.
    pub(crate) resource_id: Option<ResourceId>,
    /// How much remedy there is after a call.
    pub(crate) consequence: Option<String>,
}

impl Tables {
    /// Reads the repeated tables of a file.
    pub(crate) fn read(path: &Path) -> anyhow::Result<Self> {
        let text =
            std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
        let mut table: toml::Table =
            text.parse().with_context(|| format!("{} is not TOML", path.display()))?;
        table.retain(|name, value| NAMES.iter().any(|it| *name == **it) && value.is_array());
        let tables: Self = table.try_into().with_context(|| format!("in {}", path.display()))?;
        tables.check().with_context(|| format!("in {}", path.display()))?;
        Ok(tables)
    }

    /// What no single member shows: identifiers in their one spelling, and nothing twice.
    fn check(&self) -> anyhow::Result<()> {
        let mut owners = BTreeSet::new();
        if let Some(twice) = self.owner.iter().find(|owner| !owners.insert(&owner.name)) {
            bail!("[[owner]] names `{}` twice", twice.name);
        }
        let mut servers = BTreeSet::new();
        for server in &self.resource_server {
            server.check()?;
            if !servers.insert((&server.client_id, &server.owner)) {
                bail!("[[resource_server]] names {} of `{}` twice", server.client_id, server.owner);
            }
        }
        self.resource.iter().try_for_each(ResourceTable::check)
    }
}

impl ResourceServerTable {
    fn check(&self) -> anyhow::Result<()> {
        crate::origin::identifier("client_id", self.client_id.as_str())?;
        let path = self.resource_uri.strip_prefix(self.client_id.as_str());
        if !path.is_some_and(|path| path.starts_with('/')) {
            bail!(
                "`resource_uri` is {}: it must be under the client_id, {}",
                self.resource_uri,
                self.client_id
            );
        }
        Ok(())
    }
}

impl ResourceTable {
    fn check(&self) -> anyhow::Result<()> {
        let mut paths = std::iter::once(&self.path).chain(&self.aliases);
        if let Some(odd) = paths.find(|path| !path.starts_with('/')) {
            bail!(
                "the `path` of a [[resource]] begins with a slash, and so do its `aliases`, unlike `{odd}`"
            );
        }
        let asked = self.asked()?;
        if asked != Asked::Policy {
            let hers = self.hers().with_context(|| {
                format!("{} needs an `owner`, the `authority` she chose, and a `realm`", self.path)
            })?;
            crate::origin::identifier("authority", hers.authority)?;
        }
        self.check_policy(asked)?;
        match (self.tools.is_none(), self.discover) {
            (true, false) if asked.asks_owner() => bail!(
                "{} has no tools: name them as [[resource.tools]], or say discover = true to take what its server lists",
                self.path
            ),
            (false, true) => {
                bail!("{} says `discover` and names tools as well; leave one of them out", self.path)
            }
            _ => {}
        }
        let mut origins = self.allowed_origins.iter();
        origins.try_for_each(|origin| crate::origin::of_page("allowed_origins", origin))
    }

    /// What says `coaz` and what does not go together.
    fn check_policy(&self, asked: Asked) -> anyhow::Result<()> {
        let path = &self.path;
        let wishes = [
            ("pdp", self.pdp.is_some()),
            ("extra_defaults", !self.extra_defaults.is_empty()),
            ("filter_lists", self.filter_lists),
            ("subject_claim", self.subject_claim.is_some()),
            ("trust", self.trust != Trusted::default()),
            ("binding", self.binding != Binding::default()),
            ("audit_arguments", self.audit_arguments),
            ("denials", self.denials != Told::default()),
            ("denial_text", self.denial_text.is_some()),
            ("audience", self.audience.is_some()),
            ("mappings", self.mappings.is_some()),
        ];
        self.wishes().denials().with_context(|| format!("resource {path}"))?;
        match wishes.iter().find(|(_, wished)| *wished) {
            Some((name, _)) if !asked.asks_policy() => {
                bail!("`{name}` of {path} is for a policy, and nobody asks one: say enforce = [\"coaz\"]")
            }
            _ => {}
        }
        if asked == Asked::Policy && (!self.single_use.is_empty() || self.accept_uncovered_body) {
            bail!(
                "`single_use` and `accept_uncovered_body` of {path} are about an owner's grants, and no owner is asked"
            );
        }
        if asked == Asked::Policy && !self.aliases.is_empty() {
            bail!("{path} has `aliases`, and tokens are for one URL: make each a [[resource]] of its own");
        }
        Ok(())
    }

    /// Who is asked before a message is forwarded.
    pub(crate) fn asked(&self) -> anyhow::Result<Asked> {
        let Some(asked) = &self.enforce else { return Ok(Asked::Owner) };
        let asked: Vec<&str> = asked.iter().map(String::as_str).collect();
        Asked::these(&asked).with_context(|| {
            let path = &self.path;
            format!(
                "the `enforce` of {path} must be [\"uma\"], [\"coaz\"], both, or [] to forward whatever is a message"
            )
        })
    }

    /// Whose it is.
    pub(crate) fn hers(&self) -> Option<Hers<'_>> {
        let (owner, authority) = (self.owner.as_ref()?, self.authority.as_deref()?);
        Some(Hers { owner, authority, realm: self.realm.as_ref()? })
    }

    /// What its policy is to be like.
    pub(crate) fn wishes(&self) -> Wishes {
        Wishes {
            pdp: self.pdp.clone(),
            extra_defaults: self.extra_defaults.clone(),
            filter_lists: self.filter_lists,
            subject_claim: self.subject_claim.clone(),
            trust: self.trust,
            binding: self.binding,
            audit_arguments: self.audit_arguments,
            denials: self.denials,
            denial_text: self.denial_text.clone(),
            audience: self.audience.clone(),
            mappings: self.mappings.clone(),
        }
    }

    fn named(&self) -> impl Iterator<Item = &ToolTable> {
        self.tools.iter().flatten()
    }

    /// Its tools as the enforcement core takes them.
    pub(crate) fn tools(&self) -> anyhow::Result<Vec<ToolSettings>> {
        let listed = |name: &ToolName| self.discover || self.named().any(|it| it.name == *name);
        if let Some(unknown) = self.single_use.iter().find(|name| !listed(name)) {
            bail!("single_use names `{unknown}`, which is not among the tools of {}", self.path);
        }
        let settings = |tool: &ToolTable| {
            let realm = self.realm.as_ref().context("a resource without a realm has no tools")?;
            let named = || ResourceId::parse(format!("{realm}/{}", tool.name));
            Ok(ToolSettings {
                tool: tool.name.clone(),
                resource_id: tool.resource_id.clone().map_or_else(named, Ok)?,
                scopes: tool.scopes.clone(),
                single_use: self.single_use.contains(&tool.name),
                consequence: tool.consequence()?,
                definition: None,
                surface: None,
                mirrors: vec![],
            })
        };
        self.named().map(settings).collect()
    }
}

impl ToolTable {
    fn consequence(&self) -> anyhow::Result<Option<Consequence>> {
        let Some(class) = &self.consequence else { return Ok(None) };
        let parsed = class.parse();
        parsed.map(Some).with_context(|| format!("the `consequence` of tool {} is `{class}`", self.name))
    }
}

#[cfg(test)]
mod tests;
