//! A resource server makes itself known to an authority that nobody configured for it (FED-20).
//!
//! It signs with the key it publishes; whatever is answered, there is no token before the owner approves (FED-28). When
//! to ask, and how often, is for whoever runs it: asking again and again would be pestering her.

use super::{HttpAuthority, JSON, read};
use crate::authority::Unavailable;
use crate::authority::pat::{sign_in, unavailable};
use bytes::Bytes;
use http::header::{ACCEPT, CONTENT_TYPE, RETRY_AFTER};
use http::{HeaderMap, HeaderValue, Request, Response, StatusCode};
use sayso_fetch::Limits;
use sayso_protocol::payload::introduction::{Introduction, IntroductionReply, PATH};

/// Longest wait an authority is believed to ask for, in seconds.
const LONGEST_WAIT: u64 = 600;
/// The wait where it asks for none.
const USUAL_WAIT: u64 = 60;

/// Where this resource server stands with the owner, as the answer to its login says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Admission {
    /// It has a token.
    Admitted,
    /// She has not answered (FED-32).
    Waits,
    /// She withdrew it (FED-33).
    Withdrawn,
    /// The authority does not know it, or could not read what it publishes.
    Unknown,
}

/// What an authority made of an introduction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Introduced {
    /// It waits for the owner (FED-26).
    Waits,
    /// She trusts it already.
    Known,
    /// A check failed, or this authority takes no introductions.
    Refused,
    /// It is to be tried again after so many seconds.
    Later(u64),
}

impl HttpAuthority {
    /// Where this resource server stands. Logs in, unless it holds a token.
    ///
    /// # Errors
    /// When the authority cannot be asked, or its answer is none.
    pub async fn admission(&self) -> Result<Admission, Unavailable> {
        let token_endpoint = &self.metadata().await?.token_endpoint;
        self.login.admission(self.fetch.as_ref(), token_endpoint, (self.clock)()).await
    }

    /// Introduces this resource server as what serves `resource_uri`, under a name for people.
    ///
    /// # Errors
    /// When the authority cannot be asked, or its answer is none.
    pub async fn introduce(&self, resource_uri: &str, name: &str) -> Result<Introduced, Unavailable> {
        let advertised = self.metadata().await?.sayso_registration_endpoint.clone();
        let endpoint = advertised.unwrap_or_else(|| format!("{}{PATH}", self.issuer));
        let said = Introduction::new(self.login.owner().clone(), resource_uri, name);
        let body = Bytes::from(serde_json::to_vec(&said).map_err(|_| Unavailable::Nonsense)?);
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(JSON));
        headers.insert(ACCEPT, HeaderValue::from_static(JSON));
        sign_in(&mut headers, &endpoint, &body, self.login.key(), (self.clock)())?;
        let mut request = Request::post(endpoint).body(body).map_err(|_| Unavailable::Nonsense)?;
        *request.headers_mut() = headers;
        let response = self.fetch.send(request, Limits::DOCUMENT).await.map_err(unavailable)?;
        let made = self.made_of(&response)?;
        if made == Introduced::Known {
            // A login that failed before, also within this second, is another one now.
            self.login.anew().await;
        }
        Ok(made)
    }

    fn made_of(&self, response: &Response<Bytes>) -> Result<Introduced, Unavailable> {
        match response.status() {
            StatusCode::ACCEPTED | StatusCode::OK => {
                let reply: IntroductionReply = read(response.body())?;
                // Under another name nothing that was agreed on would be about us.
                if reply.client_id != *self.login.client_id() {
                    return Err(Unavailable::Nonsense);
                }
                match (response.status(), reply.status.as_str()) {
                    (StatusCode::ACCEPTED, "pending") => Ok(Introduced::Waits),
                    (StatusCode::OK, "active") => Ok(Introduced::Known),
                    _ => Err(Unavailable::Nonsense),
                }
            }
            StatusCode::TOO_MANY_REQUESTS => {
                let asked = response.headers().get(RETRY_AFTER).and_then(|value| value.to_str().ok());
                let wait = asked.and_then(|seconds| seconds.parse().ok()).unwrap_or(USUAL_WAIT);
                Ok(Introduced::Later(wait.clamp(1, LONGEST_WAIT)))
            }
            status if status.is_client_error() => Ok(Introduced::Refused),
            _ => Err(Unavailable::Nonsense),
        }
    }
}
