//! The first policy: what a new installation starts from, once the registry knows what there is.
//!
//! It is made once for a server; what she deletes stays deleted, and a tool that appears later is ungoverned until
//! she has seen it (D-29).

use crate::clock;
use crate::home::Home;
use anyhow::{Context as _, bail};
use sayso_authority::Authority;
use sayso_gateway::classify::{self, Class};
use sayso_owner::ledger::Author;
use sayso_owner::store::Edit;
use sayso_owner::unit::{TermsEdit, Unit};
use sayso_protocol::canon::sha256;
use sayso_protocol::{ClientId, OwnerName, Realm, ToolName, b64};
use std::path::PathBuf;
use std::time::Duration;
use tokio::time::Instant;

/// How long the ready line waits for the first pull (D-30).
const PATIENCE: Duration = Duration::from_secs(5);
const AGAIN: Duration = Duration::from_millis(50);

/// Longest name of a mark.
const MARK: usize = 200;

/// The first policies of this folder: of each realm one, and a mark that says it was made.
#[derive(Clone)]
pub(super) struct FirstPolicy {
    marks: PathBuf,
}

impl FirstPolicy {
    pub(super) fn of(home: &Home) -> anyhow::Result<Self> {
        Ok(Self { marks: home.folder("first-policy")? })
    }

    /// The mark of the server known as `realm`.
    fn mark(&self, realm: &Realm) -> PathBuf {
        // A realm is anybody's text of any length; a file's name is not.
        let name = b64::encode(realm.as_str());
        let name = if name.len() > MARK { b64::encode(sha256(realm.as_str().as_bytes())) } else { name };
        self.marks.join(name)
    }

    /// Lets the authority read what is listed, gives units to a server that never had any, and lets the terms of a tool
    /// that changed class follow it.
    pub(super) async fn settle(
        &self,
        authority: &Authority,
        owner: &OwnerName,
        client_id: &ClientId,
        realm: &Realm,
        units: &[Unit],
    ) -> anyhow::Result<()> {
        if units.is_empty() {
            return Ok(());
        }
        pulled(authority, owner, client_id).await?;
        reclassify(authority, owner, client_id, units).await?;
        let mark = self.mark(realm);
        if mark.exists() {
            return Ok(());
        }
        let store = authority.store();
        let registered = store.resources(owner).await?;
        for unit in units {
            let governed = registered.iter().any(|entry| {
                entry.client_id == *client_id
                    && unit.resources.contains(&entry.resource.id)
                    && entry.unit.is_some()
            });
            if !governed && let Err(why) = authority.make_first(owner, unit, &Author::Setup).await? {
                // What nothing governs is refused, so that to go on is safe; not to would be a dead end.
                tracing::warn!(
                    "no first unit for `{}`, which is refused until she makes one: {why}",
                    unit.id
                );
            }
        }
        std::fs::write(&mark, b"").with_context(|| format!("cannot write {}", mark.display()))
    }
}

/// A tool that changed class has another scope, which the terms of its unit must offer; one that may now do anything is
/// asked about each time, whatever its unit said (D-30: by itself this only tightens). Until she has seen the change the
/// tool is suspended all the same.
async fn reclassify(
    authority: &Authority,
    owner: &OwnerName,
    client_id: &ClientId,
    now_wanted: &[Unit],
) -> anyhow::Result<()> {
    let store = authority.store();
    let (registered, units) = (store.resources(owner).await?, store.units(owner).await?);
    for entry in registered.iter().filter(|entry| entry.client_id == *client_id) {
        let wanted = now_wanted.iter().find(|wanted| wanted.resources.contains(&entry.resource.id));
        let unit = units.iter().find(|unit| Some(&unit.id) == entry.unit.as_ref());
        let edit = wanted.zip(unit).and_then(|(wanted, unit)| retermed(wanted, unit, &entry.resource.tool));
        if let (Some(edit), Some(unit)) = (edit, unit) {
            let edited = store
                .edit_unit(owner, &unit.id, &edit, authority.issuer(), &Author::Setup, clock::now())
                .await?;
            edited.with_context(|| format!("the terms of `{}` cannot follow its tool", unit.id))?;
            tracing::info!(unit = %unit.id, "policy.reclassified");
        }
    }
    Ok(())
}

/// The edit that makes a unit's terms fit the class its tool has now, if they fit the other one.
fn retermed(wanted: &Unit, unit: &Unit, tool: &ToolName) -> Option<Edit> {
    let class = if wanted.terms.per_operation { Class::Act } else { Class::Read };
    let other = if class == Class::Act { Class::Read } else { Class::Act };
    let (new, old) = (classify::scope(tool, class).ok()?, classify::scope(tool, other).ok()?);
    if unit.terms.scope.contains(&new) || !unit.terms.scope.contains(&old) {
        return None;
    }
    let scope = unit.terms.scope.iter().map(|scope| if *scope == old { new.clone() } else { scope.clone() });
    let terms = TermsEdit { scope: Some(scope.collect()), ..TermsEdit::default() };
    Some(match class {
        Class::Read => Edit { terms, ..Edit::default() },
        Class::Act => {
            let expires_in = Some(unit.terms.expires_in.min(wanted.terms.expires_in));
            let terms = TermsEdit { expires_in, per_operation: Some(true), ..terms };
            Edit { ask_me: Some(true), terms, ..Edit::default() }
        }
    })
}

async fn pulled(authority: &Authority, owner: &OwnerName, client_id: &ClientId) -> anyhow::Result<()> {
    let start = Instant::now();
    while let Err(fault) = authority.pull(owner, client_id).await {
        if start.elapsed() > PATIENCE {
            bail!("the authority cannot read what its own gateway lists: {fault}");
        }
        tokio::time::sleep(AGAIN).await;
    }
    Ok(())
}

/// Published terms name the issuer that proffers them and never change, so under a new public URL every unit gets a
/// new version.
pub(super) async fn reissue(authority: &Authority, owner: &OwnerName, home: &Home) -> anyhow::Result<()> {
    let before = std::fs::read_to_string(home.path("issuer")).unwrap_or_default();
    if before == authority.issuer() {
        return Ok(());
    }
    let store = authority.store();
    for unit in store.units(owner).await? {
        let edited = store
            .edit_unit(owner, &unit.id, &Edit::default(), authority.issuer(), &Author::Setup, clock::now())
            .await?;
        edited.with_context(|| format!("the terms of `{}` cannot be renewed", unit.id))?;
    }
    home.replace("issuer", authority.issuer().as_bytes())
}
