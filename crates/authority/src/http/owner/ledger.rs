//! Her record, oldest first, a page at a time; `?handle=` narrows it to one agent (OWN-24).
//!
//! A page that is not the last carries `Link: <…>; rel="next"`.

use super::super::Shared;
use super::super::answer::{Detail, json};
use super::Hers;
use axum::extract::State;
use axum::response::Response;
use http::header::LINK;
use http::{HeaderValue, StatusCode};
use sayso_owner::ledger::Row;
use sayso_protocol::{Handle, OwnerName};
use serde::Serialize;

/// Rows of a page, at most and by default.
const PAGE: i64 = 500;

#[derive(Serialize)]
struct Entry<'a> {
    owner: &'a OwnerName,
    #[serde(flatten)]
    row: &'a Row,
}

struct Wanted {
    handle: Option<Handle>,
    after: i64,
    limit: i64,
}

pub(in super::super) async fn page(State(authority): Shared, hers: Hers) -> Result<Response, Detail> {
    let wanted = wanted(&hers)?;
    // One more than asked for tells whether there is a next page.
    let rows =
        authority.store.ledger(&hers.owner, wanted.handle.as_ref(), wanted.after, wanted.limit + 1).await?;
    let most = usize::try_from(wanted.limit).unwrap_or_default();
    let shown = rows.get(..most).unwrap_or(&rows);
    let entries: Vec<Entry<'_>> = shown.iter().map(|row| Entry { owner: &hers.owner, row }).collect();
    let mut response = json(StatusCode::OK, &entries);
    if let Some(last) = shown.last().filter(|_| rows.len() > shown.len()) {
        let link = next(authority.issuer(), &wanted, last.seq);
        let link =
            HeaderValue::from_str(&link).map_err(|_| Detail::invalid("that handle cannot be linked to"))?;
        response.headers_mut().insert(LINK, link);
    }
    Ok(response)
}

fn wanted(hers: &Hers) -> Result<Wanted, Detail> {
    let mut wanted = Wanted { handle: None, after: 0, limit: PAGE };
    for (name, value) in hers.query()? {
        match name.as_str() {
            "handle" => {
                wanted.handle = Some(
                    Handle::parse(value).map_err(|_| Detail::invalid("handle is not a connection handle"))?,
                );
            }
            "after" => wanted.after = number(&value, 0, i64::MAX - 1)?,
            "limit" => wanted.limit = number(&value, 1, PAGE)?,
            _ => return Err(Detail::invalid("the ledger takes handle, after and limit")),
        }
    }
    Ok(wanted)
}

fn number(text: &str, least: i64, most: i64) -> Result<i64, Detail> {
    let number = text.parse().ok().filter(|number| (least..=most).contains(number));
    number.ok_or_else(|| Detail::invalid("after must be a row's seq, and limit between 1 and 500"))
}

fn next(issuer: &str, wanted: &Wanted, after: i64) -> String {
    let mut query = url::form_urlencoded::Serializer::new(String::new());
    if let Some(handle) = &wanted.handle {
        query.append_pair("handle", handle.as_str());
    }
    query.append_pair("after", &after.to_string()).append_pair("limit", &wanted.limit.to_string());
    format!("<{issuer}/owner/ledger?{}>; rel=\"next\"", query.finish())
}
