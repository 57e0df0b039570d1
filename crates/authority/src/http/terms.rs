//! The owner's terms for anybody to read: the roster, and every version at its own address, for ever (TERMS-01).
//!
//! One URI gives JSON, a page for people, or JSON-LD, by `Accept` or by `?format=` (TERMS-14..16). No token is asked
//! for, and nothing here tells which version governs what.

mod accept;
mod ld;
mod page;

use super::Shared;
use super::answer::{Fault, json};
use super::discovery::kept;
use accept::Form;
use axum::extract::rejection::{PathRejection, QueryRejection};
use axum::extract::{Path, Query, State};
use axum::response::{IntoResponse as _, Response};
use http::header::{CONTENT_SECURITY_POLICY, CONTENT_TYPE, REFERRER_POLICY, VARY};
use http::{HeaderMap, HeaderValue, StatusCode};
use sayso_protocol::TemplateId;
use serde::Deserialize;
use serde_json::json;

/// The page is text: it loads, runs and sends nothing.
const CSP: &str = "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// A form of the document asked for in the URL.
#[derive(Deserialize)]
pub(super) struct Asked {
    format: Option<String>,
}

pub(super) async fn roster(State(authority): Shared) -> Result<Response, Fault> {
    let entry = |template: TemplateId| {
        let terms_uri = format!("{}/{template}", authority.house.terms_endpoint);
        json!({ "template_id": template, "terms_uri": terms_uri })
    };
    let current: Vec<_> = authority.store.roster().await?.into_iter().map(entry).collect();
    Ok(json(StatusCode::OK, &json!({ "terms": current })))
}

pub(super) async fn version(
    State(authority): Shared,
    template: Result<Path<String>, PathRejection>,
    asked: Result<Query<Asked>, QueryRejection>,
    headers: HeaderMap,
) -> Result<Response, Fault> {
    let unknown = || Fault::new(StatusCode::NOT_FOUND, "not_found", "no such terms were ever published here");
    let template = template.ok().and_then(|Path(id)| TemplateId::parse(id).ok()).ok_or_else(unknown)?;
    let terms = authority.store.terms(&template).await?.ok_or_else(unknown)?;
    let Ok(Query(asked)) = asked else { return Err(Fault::invalid("the query takes format, once")) };
    let form = asked.format.map_or_else(|| accept::preferred(&headers), |name| Form::named(&name));
    let Some(form) = form else {
        let description = "these terms are served as application/json, text/html and application/ld+json";
        return Ok(varying(
            Fault::new(StatusCode::NOT_ACCEPTABLE, "not_acceptable", description).into_response(),
        ));
    };
    let uri = format!("{}/{template}", authority.house.terms_endpoint);
    let response = match form {
        Form::Json => json(StatusCode::OK, &terms),
        Form::Html => {
            let headers = [
                (CONTENT_TYPE, "text/html; charset=utf-8"),
                (CONTENT_SECURITY_POLICY, CSP),
                (REFERRER_POLICY, "no-referrer"),
            ];
            (headers, page::render(&terms, &uri)).into_response()
        }
        Form::Ld => {
            ([(CONTENT_TYPE, "application/ld+json")], ld::offer(&terms, &uri).to_string()).into_response()
        }
    };
    Ok(varying(kept(response)))
}

fn varying(mut response: Response) -> Response {
    response.headers_mut().insert(VARY, HeaderValue::from_static("accept"));
    response
}
