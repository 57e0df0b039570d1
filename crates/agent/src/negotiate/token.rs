//! One presentation of a ticket at an authority's token endpoint, signed from the commitment on (D-17).
//! It keeps each ticket to one presentation: nothing is repeated here, and a reply that is lost is reported as lost.

use crate::discover::Authority;
use crate::fault::{BadDemand, Fault, Party};
use bytes::Bytes;
use http::header::{ACCEPT, CONTENT_TYPE, HeaderMap, HeaderValue};
use sayso_fetch::{Fetch, Limits};
use sayso_protocol::id::Timestamp;
use sayso_protocol::payload::negotiation::{Answer, UMA_TICKET};
use sayso_protocol::sig::{self, Body, Facts, SignOptions};
use sayso_protocol::{SigningKey, b64};
use url::Url;
use url::form_urlencoded::Serializer;

/// An authority may hold a poll until it is due, so it gets longer than a document.
const LIMITS: Limits = Limits { bytes: 256 * 1024, seconds: 30 };

/// Where the directory is that has the key of a signed request; always covered by its signature (CORE-52).
pub(crate) const SIGNATURE_AGENT: &str = "signature-agent";

/// What is said with a ticket.
pub(super) enum Say<'a> {
    /// Nothing: what do you demand, or has she decided?
    Nothing,
    /// This agreement.
    Claim { token: &'a str, format: &'a str },
    /// No to the terms.
    Decline,
}

/// An authority's answer with its HTTP status.
pub(super) type Answered = (u16, Answer);

/// Presents a ticket. With a key and the time, the request is signed.
pub(super) async fn present(
    fetch: &dyn Fetch,
    authority: &Authority,
    ticket: &str,
    say: Say<'_>,
    signer: Option<(&SigningKey, Timestamp)>,
) -> Result<Answered, Fault> {
    let body = Bytes::from(written(ticket, say));
    let mut headers = HeaderMap::new();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/x-www-form-urlencoded"));
    headers.insert(ACCEPT, HeaderValue::from_static("application/json"));
    if let Some((key, now)) = signer {
        let url = Url::parse(&authority.token_endpoint).map_err(|_| BadDemand::Answer)?;
        sign("POST", &url, &mut headers, &body, key, now)?;
    }
    let mut request =
        http::Request::post(&authority.token_endpoint).body(body).map_err(|_| BadDemand::Answer)?;
    *request.headers_mut() = headers;
    let response = fetch.send(request, LIMITS).await.map_err(|why| Party::Authority.unavailable(why))?;
    let status = response.status().as_u16();
    match Answer::read(status, response.body()) {
        Ok(answer) => Ok((status, answer)),
        // A proxy's page, not the authority's word.
        Err(_) if status >= 500 => Err(Party::Authority.unavailable(sayso_fetch::FetchError::Status(status))),
        Err(_) => Err(BadDemand::Answer.into()),
    }
}

fn written(ticket: &str, say: Say<'_>) -> String {
    let mut form = Serializer::new(String::new());
    form.append_pair("grant_type", UMA_TICKET).append_pair("ticket", ticket);
    match say {
        Say::Nothing => {}
        Say::Claim { token, format } => {
            form.append_pair("claim_token", token).append_pair("claim_token_format", format);
        }
        Say::Decline => {
            form.append_pair("decline", "true");
        }
    }
    form.finish()
}

/// Signs a request, its body's digest included, with a nonce so that no two are alike.
pub(crate) fn sign(
    method: &str,
    url: &Url,
    headers: &mut HeaderMap,
    body: &[u8],
    key: &SigningKey,
    now: Timestamp,
) -> Result<(), Fault> {
    let mut random = [0; 16];
    getrandom::fill(&mut random).map_err(|_| Fault::Random)?;
    let nonce = b64::encode(random);
    let authority = sig::authority_of(url).ok_or(Fault::Resource)?;
    let facts = Facts {
        method,
        scheme: url.scheme(),
        authority: &authority,
        path: url.path(),
        query: url.query(),
        headers,
        body: Body::Whole(body),
    };
    // Beside it the signature is one of Web Bot Auth, which wants to be told so, and an end.
    let bot = headers.contains_key(SIGNATURE_AGENT);
    let options = SignOptions {
        nonce: Some(&nonce),
        expires: bot.then(|| now.plus(sig::SKEW_SECONDS)),
        tag: bot.then_some("web-bot-auth"),
        ..SignOptions::default()
    };
    let signed = sig::sign(&facts, key, now, &options).map_err(|_| Fault::Resource)?;
    signed.insert_into(headers);
    Ok(())
}
