//! Links with which she signs in to her page: made here for her device key, redeemed there (D-26).

use super::super::Shared;
use super::super::answer::{Detail, json};
use super::Hers;
use axum::extract::State;
use axum::response::Response;
use http::StatusCode;
use serde::de::IgnoredAny;
use std::collections::BTreeMap;

const NO_PORTAL: &str =
    "this authority has no page for its owners; its operator can set `authority.portal_url`";

pub(in super::super) async fn create(State(authority): Shared, hers: Hers) -> Result<Response, Detail> {
    if !hers.is_empty() && !hers.json::<BTreeMap<String, IgnoredAny>>()?.is_empty() {
        return Err(Detail::invalid(
            "a link is for the owner who asks for it; send nothing, or an empty object",
        ));
    }
    let link = authority.sign_in_link(&hers.owner, &hers.author).await?;
    let link = link.ok_or_else(|| Detail::unknown(NO_PORTAL))?;
    tracing::info!(owner = %hers.owner, "owner.sign_in_link");
    Ok(json(StatusCode::CREATED, &link))
}
