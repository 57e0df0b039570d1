//! The MCP server dialled: which revision it speaks, and how a request to it is written (MCP-05, MCP-18).
//! It keeps a request's bytes: a body is written once and sent as it is, whether the first time or signed. The
//! modern revision is tried first; a server that does not know it is met the older way.

use super::events::Events;
use super::reply::{MAX_BYTES, Reply, completes, read};
use crate::discover::Dialled;
use crate::fault::{BadServer, Fault, Party};
use crate::negotiate::token::sign;
use bytes::Bytes;
use http::header::{ACCEPT, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use http::{Request, Response};
use sayso_fetch::{Fetch, FetchError, Limits, OwnConnection};
use sayso_protocol::SigningKey;
use sayso_protocol::id::Timestamp;
use sayso_protocol::message::{META_CAPABILITIES, META_VERSION, RequestId, encode_value};
use sayso_protocol::method::Revision;
use serde_json::{Map, Value, json};
use std::sync::atomic::{AtomicU64, Ordering};

/// How long a tool may take, in seconds.
const PATIENCE: u64 = 600;
/// How long a handshake or a listing may take, in seconds.
const BRIEF: u64 = 30;
/// How long the end of a session may take, in seconds.
const FAREWELL: u64 = 2;

/// Most pages of a tool listing.
const MOST_PAGES: usize = 100;

const VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");
const SESSION: HeaderName = HeaderName::from_static("mcp-session-id");

/// A server whose revision is known.
pub(super) struct Server {
    revision: Revision,
    session: Option<HeaderValue>,
    ids: AtomicU64,
}

/// A request, written: its bytes never change after this.
#[derive(Clone)]
pub(super) struct Written {
    pub(super) id: RequestId,
    pub(super) headers: HeaderMap,
    pub(super) body: Bytes,
    /// Whether it can be sent once only, so that a connection about to close must not swallow it.
    pub(super) once: bool,
    seconds: u64,
}

impl Server {
    /// Meets the server: `server/discover` first, `initialize` where that is unknown.
    pub(super) async fn meet(fetch: &dyn Fetch, dialled: &Dialled) -> Result<Server, Fault> {
        let modern = Server { revision: Revision::V20260728, session: None, ids: AtomicU64::new(1) };
        let asked = modern.write("server/discover", None, Map::new())?;
        let (_, reply) = exchange(fetch, dialled, &asked).await?;
        match reply {
            Reply::Result(result) if lists(&result, Revision::V20260728)? => Ok(modern),
            // Modern, and it does not like the request: the older way would not help.
            Reply::Error { code: Some(-32020 | -32021), .. } | Reply::Challenge(_) => {
                Err(BadServer::Answer.into())
            }
            Reply::Refused(refused) if !matches!(refused.status, 200 | 400 | 404 | 405 | 406) => {
                match refused.status {
                    421 => Err(BadServer::Misdirected.into()),
                    status if refused.code.as_deref() == Some("upstream_failed") => {
                        Err(BadServer::Behind(status).into())
                    }
                    500.. => Err(Party::Resource.unavailable(FetchError::Status(refused.status))),
                    _ => Err(BadServer::Answer.into()),
                }
            }
            Reply::Result(_) | Reply::Error { .. } | Reply::Refused(_) => {
                modern.initialize(fetch, dialled).await
            }
        }
    }

    async fn initialize(self, fetch: &dyn Fetch, dialled: &Dialled) -> Result<Server, Fault> {
        let mut older = Server { revision: Revision::V20251125, ..self };
        let mut params = Map::new();
        params.insert("protocolVersion".into(), older.revision.as_str().into());
        params.insert("capabilities".into(), json!({}));
        params.insert("clientInfo".into(), client_info());
        let asked = older.write("initialize", None, params)?;
        let (headers, reply) = exchange(fetch, dialled, &asked).await?;
        let result = match reply {
            Reply::Result(result) => result,
            Reply::Refused(refused) if matches!(refused.status, 404 | 405) => {
                return Err(BadServer::Absent.into());
            }
            _ => return Err(BadServer::Version.into()),
        };
        let result: Value = serde_json::from_str(&result).map_err(|_| BadServer::Answer)?;
        let version = result.get("protocolVersion").and_then(Value::as_str).unwrap_or_default();
        // Asked for an older revision, a server answers with that or an older one; a newer one it cannot mean.
        let version = version.parse().ok().filter(|version: &Revision| !version.is_modern());
        older.revision = version.ok_or(BadServer::Version)?;
        older.session = headers.get(SESSION).cloned();
        let note = older.note("notifications/initialized")?;
        fetch
            .send(post(dialled, &note)?, limits(BRIEF))
            .await
            .map_err(|why| Party::Resource.unavailable(why))?;
        Ok(older)
    }

    /// Whether it keeps a session with us.
    pub(super) fn has_session(&self) -> bool {
        self.session.is_some()
    }

    /// Ends our session, if there is one, by the key that called in it: what a server keeps for it is not kept for
    /// nobody. One that cannot be told ends it by itself.
    pub(super) async fn leave(
        &self,
        fetch: &dyn Fetch,
        dialled: &Dialled,
        key: Option<&SigningKey>,
        now: Timestamp,
    ) {
        let Some(session) = &self.session else { return };
        let mut headers = HeaderMap::new();
        headers.insert(SESSION, session.clone());
        headers.insert(VERSION, HeaderValue::from_static(self.revision.as_str()));
        if let Some(key) = key
            && sign("DELETE", dialled.url(), &mut headers, b"", key, now).is_err()
        {
            return;
        }
        let Ok(mut request) = Request::delete(dialled.text()).body(Bytes::new()) else { return };
        *request.headers_mut() = headers;
        // Its answer changes nothing.
        let _ = fetch.send(request, limits(FAREWELL)).await;
    }

    /// The tools, page by page, each as the server describes it.
    pub(super) async fn tools(&self, fetch: &dyn Fetch, dialled: &Dialled) -> Result<Vec<Value>, Fault> {
        let (mut tools, mut cursor) = (Vec::new(), None);
        for _ in 0..MOST_PAGES {
            let params = cursor.map(|cursor| ("cursor".to_owned(), cursor)).into_iter().collect();
            let (_, reply) = exchange(fetch, dialled, &self.write("tools/list", None, params)?).await?;
            let Reply::Result(page) = reply else { return Err(BadServer::Answer.into()) };
            let mut page: Value = serde_json::from_str(&page).map_err(|_| BadServer::Answer)?;
            let Some(Value::Array(listed)) = page.get_mut("tools").map(Value::take) else {
                return Err(BadServer::Answer.into());
            };
            tools.extend(listed);
            match page.get_mut("nextCursor").map(Value::take) {
                Some(Value::String(next)) => cursor = Some(Value::String(next)),
                _ => return Ok(tools),
            }
        }
        Err(BadServer::Endless.into())
    }

    /// Writes a request.
    pub(super) fn write(
        &self,
        method: &str,
        name: Option<&str>,
        mut params: Map<String, Value>,
    ) -> Result<Written, Fault> {
        let id = RequestId::from(self.ids.fetch_add(1, Ordering::Relaxed));
        let mut headers = self.headers();
        if self.revision.is_modern() {
            let value =
                |text: &str| HeaderValue::from_str(&encode_value(text)).map_err(|_| Fault::Unwritable);
            headers.insert("mcp-method", value(method)?);
            if let Some(name) = name {
                headers.insert("mcp-name", value(name)?);
            }
            let meta = json!({
                META_VERSION: self.revision.as_str(),
                META_CAPABILITIES: {},
                "io.modelcontextprotocol/clientInfo": client_info(),
            });
            params.insert("_meta".into(), meta);
        }
        let body = json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params });
        let seconds = if method == "tools/call" { PATIENCE } else { BRIEF };
        Ok(Written { id, headers, body: body.to_string().into(), once: false, seconds })
    }

    fn note(&self, method: &str) -> Result<Written, Fault> {
        let body = json!({ "jsonrpc": "2.0", "method": method }).to_string().into();
        Ok(Written { id: RequestId::from(0), headers: self.headers(), body, once: false, seconds: BRIEF })
    }

    fn headers(&self) -> HeaderMap {
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        headers.insert(ACCEPT, HeaderValue::from_static("application/json, text/event-stream"));
        headers.insert(VERSION, HeaderValue::from_static(self.revision.as_str()));
        if let Some(session) = &self.session {
            headers.insert(SESSION, session.clone());
        }
        headers
    }
}

/// Sends a request once and reads the answer to it.
pub(super) async fn exchange(
    fetch: &dyn Fetch,
    dialled: &Dialled,
    written: &Written,
) -> Result<(HeaderMap, Reply), Fault> {
    let mut events = Events::default();
    let mut enough = |piece: &[u8]| completes(&mut events, piece, &written.id);
    let sent = fetch.send_until(post(dialled, written)?, limits(written.seconds), &mut enough).await;
    let response: Response<Bytes> = sent.map_err(|why| Party::Resource.unavailable(why))?;
    let reply = read(&response, &written.id)?;
    Ok((response.into_parts().0.headers, reply))
}

fn post(dialled: &Dialled, written: &Written) -> Result<Request<Bytes>, Fault> {
    let mut request =
        Request::post(dialled.text()).body(written.body.clone()).map_err(|_| Fault::Resource)?;
    *request.headers_mut() = written.headers.clone();
    if written.once {
        request.extensions_mut().insert(OwnConnection);
    }
    Ok(request)
}

fn limits(seconds: u64) -> Limits {
    Limits { bytes: MAX_BYTES, seconds }
}

fn client_info() -> Value {
    json!({ "name": "sayso", "version": env!("CARGO_PKG_VERSION") })
}

/// Whether a discovery result lists a revision.
fn lists(result: &str, revision: Revision) -> Result<bool, Fault> {
    let result: Value = serde_json::from_str(result).map_err(|_| BadServer::Answer)?;
    let listed = result.get("supportedVersions").and_then(Value::as_array).ok_or(BadServer::Version)?;
    Ok(listed.iter().any(|version| version == revision.as_str()))
}
