//! `sayso owner add`: another owner at an authority, enrolled on its machine (D-24, O-43).
//!
//! The store arbitrates, so the authority may be running; it serves her from then on.

use crate::home::Home;
use crate::{clock, roles};
use anyhow::Context as _;
use sayso_authority::store::SqliteStore;
use sayso_owner::store::Store as _;
use sayso_owner::unit::Owner;
use sayso_protocol::OwnerName;
use serde_json::json;
use std::path::Path;
use std::process::ExitCode;

/// Makes the owner known and prints where her key is.
pub(super) async fn run(data: &Path, name: &str, as_json: bool) -> anyhow::Result<ExitCode> {
    let home = Home::visit(data)?;
    let name = OwnerName::parse(name).context("an owner needs a name")?;
    roles::authority::check_name(&name)?;
    let path = home.path("sayso.db");
    let store =
        SqliteStore::open(&path).with_context(|| format!("cannot open the store {}", path.display()))?;
    store.settle_owner(&Owner { name: name.clone(), namespace: clock::name()? }).await?;
    let key = roles::authority::enrol(&store, &home, &name).await?;
    if as_json {
        println!("{}", json!({ "owner": name, "owner_key": key }));
    } else {
        println!("{name} is an owner here; her device key is {}", key.display());
    }
    Ok(ExitCode::SUCCESS)
}
