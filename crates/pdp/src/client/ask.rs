//! One exchange with a policy engine: what is sent, to whom our credentials are shown, and when it may be sent again.
//! INVARIANT: no header of a caller's, and no word of an answer, passes through here to anybody.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Request, header};
use sayso_coaz::answer::MAX_ANSWER;
use sayso_fetch::{Client, Fetch, FetchError, Limits, Reach};

use super::knowledge::{Answer, Endpoint};
use super::settings::{BadRemote, RemoteSettings};

/// AuthZEN's name for a request, in both logs (section 10.1.4).
const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// The ways out: one that shows what we are, one that does not, and one to this machine in development.
pub(super) struct Doors {
    ours: Arc<dyn Fetch>,
    others: Arc<dyn Fetch>,
    plain: Arc<dyn Fetch>,
    authorization: Option<HeaderValue>,
    seconds: u64,
}

impl Doors {
    pub(super) fn new(settings: &RemoteSettings) -> Result<Doors, BadRemote> {
        let tls = settings.tls()?;
        let time_limit = settings.time_limit;
        let others = Client::with_tls(Reach::Configured, tls.anonymous());
        Ok(Doors {
            ours: Arc::new(Client::with_tls(Reach::Configured, tls)),
            others: Arc::new(others),
            // Its addresses are judged again once a name is resolved: `localhost` may lead elsewhere.
            plain: Arc::new(Client::new(Reach::Loopback)),
            authorization: settings.authorization()?,
            seconds: time_limit.as_secs() + u64::from(time_limit.subsec_nanos() > 0),
        })
    }

    fn to(&self, endpoint: &Endpoint) -> &dyn Fetch {
        match (endpoint.secure, endpoint.ours) {
            (true, true) => &*self.ours,
            (true, false) => &*self.others,
            (false, _) => &*self.plain,
        }
    }

    pub(super) async fn get(&self, endpoint: &Endpoint, bytes: usize) -> Result<Answer, FetchError> {
        let request = Request::get(&endpoint.url).header(header::ACCEPT, "application/json");
        self.send(endpoint, &request.body(Bytes::new()).map_err(|_| FetchError::Refused)?, bytes).await
    }

    pub(super) async fn post(
        &self,
        endpoint: &Endpoint,
        body: Bytes,
        request_id: &str,
    ) -> Result<Answer, FetchError> {
        let mut request = Request::post(&endpoint.url)
            .header(header::CONTENT_TYPE, "application/json")
            .header(header::ACCEPT, "application/json");
        if let Ok(id) = HeaderValue::from_str(request_id) {
            request = request.header(REQUEST_ID, id);
        }
        if let Some(authorization) = self.authorization.as_ref().filter(|_| endpoint.ours) {
            request = request.header(header::AUTHORIZATION, authorization);
        }
        let request = request.body(body).map_err(|_| FetchError::Refused)?;
        let answer = self.send(endpoint, &request, MAX_ANSWER).await?;
        if answer.headers().get(REQUEST_ID).is_some_and(|echo| echo.as_bytes() != request_id.as_bytes()) {
            // The register has it accepted and logged (AZ-10). What it says instead is a stranger's text.
            tracing::warn!(request_id, "pdp.other_request_id");
        }
        Ok(answer)
    }

    /// Sends it, and once more if no byte of it was sent (AZ-20).
    async fn send(
        &self,
        endpoint: &Endpoint,
        request: &Request<Bytes>,
        bytes: usize,
    ) -> Result<Answer, FetchError> {
        let limits = Limits { bytes, seconds: self.seconds };
        match self.to(endpoint).send(request.clone(), limits).await {
            Err(FetchError::Unreachable) => {
                tokio::time::sleep(Duration::from_millis(20)).await;
                self.to(endpoint).send(request.clone(), limits).await
            }
            answer => answer,
        }
    }
}

/// The media type of an answer that states exactly one.
pub(super) fn media_type(headers: &HeaderMap) -> Option<&str> {
    let mut stated = headers.get_all(header::CONTENT_TYPE).iter();
    let first = stated.next()?.to_str().ok()?;
    stated.next().is_none().then_some(first)
}
