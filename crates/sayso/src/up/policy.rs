//! The first policy: what a new installation starts from, once the registry knows what there is.
//!
//! A unit is made only if it was never there, so that what she deleted stays deleted.

use super::parts::Wanted;
use crate::clock;
use crate::home::Home;
use anyhow::{Context as _, bail};
use sayso_authority::{Authority, demo};
use sayso_owner::ledger::Author;
use sayso_owner::store::Edit;
use sayso_protocol::ClientId;
use std::time::Duration;
use tokio::time::Instant;

/// How long the ready line waits for the first pull (D-30).
const PATIENCE: Duration = Duration::from_secs(5);
const AGAIN: Duration = Duration::from_millis(50);

/// Pulls the gateway's listing, then sees to it that the first units exist and carry this issuer.
pub(super) async fn settle(
    authority: &Authority,
    wanted: &Wanted,
    client_id: &ClientId,
    home: &Home,
) -> anyhow::Result<()> {
    let start = Instant::now();
    while let Err(fault) = authority.pull(&wanted.owner, client_id).await {
        if start.elapsed() > PATIENCE {
            bail!("the authority cannot read what its own gateway lists: {fault}");
        }
        tokio::time::sleep(AGAIN).await;
    }
    reissue(authority, wanted, home).await?;
    let store = authority.store();
    for unit in demo::first_units(wanted.realm.as_str())? {
        let first = unit.template_id(wanted.owner.as_str())?;
        if store.terms(&first).await?.is_none() {
            let created = store
                .create_unit(&wanted.owner, &unit, authority.issuer(), &Author::Setup, clock::now())
                .await?;
            created.with_context(|| format!("the first unit `{}` cannot be made", unit.id))?;
        }
    }
    Ok(())
}

/// Published terms name the issuer that proffers them and never change, so under a new public URL every unit gets a
/// new version.
async fn reissue(authority: &Authority, wanted: &Wanted, home: &Home) -> anyhow::Result<()> {
    let before = std::fs::read_to_string(home.path("issuer")).unwrap_or_default();
    if before == authority.issuer() {
        return Ok(());
    }
    let store = authority.store();
    for unit in store.units(&wanted.owner).await? {
        let edited = store
            .edit_unit(
                &wanted.owner,
                &unit.id,
                &Edit::default(),
                authority.issuer(),
                &Author::Setup,
                clock::now(),
            )
            .await?;
        edited.with_context(|| format!("the terms of `{}` cannot be renewed", unit.id))?;
    }
    home.replace("issuer", authority.issuer().as_bytes())
}
