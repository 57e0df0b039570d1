//! A policy engine that does as it is told, on a real socket, and keeps what it was asked.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use sayso_coaz::answer::{AnswerFault, Decisions};
use sayso_coaz::authzen::{Evaluation, Evaluations, Request};
use sayso_coaz::{DecisionPoint, Fault, Why};
use sayso_pdp::client::{Remote, RemoteSettings};
use sayso_protocol::Json;
use sayso_protocol::json::Limits;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

/// A request as it came.
#[derive(Debug, Clone)]
pub(crate) struct Seen {
    pub(crate) line: String,
    pub(crate) head: String,
    pub(crate) body: String,
}

impl Seen {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let lines = self.head.lines().filter_map(|line| line.split_once(':'));
        lines.clone().find(|(it, _)| it.eq_ignore_ascii_case(name)).map(|(_, value)| value.trim())
    }
}

/// What it does with a request.
#[derive(Debug, Clone)]
pub(crate) enum Act {
    /// Writes this and waits for the next.
    Say(Vec<u8>),
    /// Writes this and ends the connection.
    SayAndClose(Vec<u8>),
    /// Writes this, a byte every 100 ms.
    Drip(Vec<u8>),
    /// Nothing.
    Hang,
}

pub(crate) struct Engine {
    pub(crate) port: u16,
    pub(crate) scheme: &'static str,
    seen: Arc<Mutex<Vec<Seen>>>,
    connections: Arc<AtomicUsize>,
}

type Script = Arc<dyn Fn(&Seen) -> Act + Send + Sync>;

impl Engine {
    pub(crate) async fn start(script: impl Fn(&Seen) -> Act + Send + Sync + 'static) -> Engine {
        Engine::serve(None, Arc::new(script)).await
    }

    pub(crate) async fn secure(
        tls: TlsAcceptor,
        script: impl Fn(&Seen) -> Act + Send + Sync + 'static,
    ) -> Engine {
        Engine::serve(Some(tls), Arc::new(script)).await
    }

    /// Says the same to everybody.
    pub(crate) async fn saying(act: Act) -> Engine {
        Engine::start(move |_| act.clone()).await
    }

    async fn serve(tls: Option<TlsAcceptor>, script: Script) -> Engine {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let scheme = if tls.is_some() { "https" } else { "http" };
        let port = listener.local_addr().unwrap().port();
        let engine = Engine { port, scheme, seen: Arc::default(), connections: Arc::default() };
        let (seen, connections) = (engine.seen.clone(), engine.connections.clone());
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                connections.fetch_add(1, Ordering::SeqCst);
                let (script, seen, tls) = (script.clone(), seen.clone(), tls.clone());
                tokio::spawn(async move {
                    match tls {
                        None => converse(stream, script, seen).await,
                        Some(tls) => {
                            if let Ok(stream) = tls.accept(stream).await {
                                converse(stream, script, seen).await;
                            }
                        }
                    }
                });
            }
        });
        engine
    }

    pub(crate) fn url(&self, path: &str) -> String {
        let host = if self.scheme == "https" { "localhost" } else { "127.0.0.1" };
        format!("{}://{host}:{}{path}", self.scheme, self.port)
    }

    pub(crate) fn seen(&self) -> Vec<Seen> {
        self.seen.lock().unwrap().clone()
    }

    pub(crate) fn connections(&self) -> usize {
        self.connections.load(Ordering::SeqCst)
    }

    /// Lines of the requests so far, as `POST /path`.
    pub(crate) fn lines(&self) -> Vec<String> {
        self.seen().into_iter().map(|seen| seen.line.trim_end_matches(" HTTP/1.1").to_owned()).collect()
    }

    /// Settings that name its endpoints and discover nothing.
    pub(crate) fn configured(&self) -> RemoteSettings {
        RemoteSettings {
            evaluation_endpoint: Some(self.url("/one")),
            evaluations_endpoint: Some(self.url("/many")),
            development: true,
            ..RemoteSettings::default()
        }
    }

    /// Settings that name it and nothing more.
    pub(crate) fn identified(&self, path: &str) -> RemoteSettings {
        RemoteSettings { pdp: Some(self.url(path)), development: true, ..RemoteSettings::default() }
    }
}

async fn converse(
    mut stream: impl AsyncRead + AsyncWrite + Unpin,
    script: Script,
    all: Arc<Mutex<Vec<Seen>>>,
) {
    while let Some(seen) = read(&mut stream).await {
        all.lock().unwrap().push(seen.clone());
        match script(&seen) {
            Act::Say(bytes) => {
                if stream.write_all(&bytes).await.is_err() {
                    return;
                }
                let _ = stream.flush().await;
            }
            Act::SayAndClose(bytes) => {
                let _ = stream.write_all(&bytes).await;
                let _ = stream.shutdown().await;
                return;
            }
            Act::Drip(bytes) => {
                for byte in bytes {
                    if stream.write_all(&[byte]).await.is_err() {
                        return;
                    }
                    let _ = stream.flush().await;
                    tokio::time::sleep(Duration::from_millis(100)).await;
                }
            }
            Act::Hang => tokio::time::sleep(Duration::from_secs(30)).await,
        }
    }
}

async fn read(stream: &mut (impl AsyncRead + Unpin)) -> Option<Seen> {
    let mut bytes = Vec::new();
    let end = loop {
        if let Some(at) = bytes.windows(4).position(|it| it == b"\r\n\r\n") {
            break at + 4;
        }
        let mut piece = [0; 4096];
        match stream.read(&mut piece).await {
            Ok(read @ 1..) => bytes.extend_from_slice(&piece[..read]),
            _ => return None,
        }
    };
    let head = String::from_utf8(bytes[..end].to_vec()).unwrap();
    let (line, head) =
        head.split_once("\r\n").map(|(line, head)| (line.to_owned(), head.to_owned())).unwrap();
    let mut seen = Seen { line, head, body: String::new() };
    let length: usize = seen.header("content-length").map_or(0, |text| text.parse().unwrap());
    while bytes.len() < end + length {
        let mut piece = [0; 4096];
        match stream.read(&mut piece).await {
            Ok(read @ 1..) => bytes.extend_from_slice(&piece[..read]),
            _ => return None,
        }
    }
    seen.body = String::from_utf8(bytes[end..].to_vec()).unwrap();
    Some(seen)
}

/// An answer with a status and any further header lines.
pub(crate) fn answer(status: u16, head: &str, body: &str) -> Vec<u8> {
    format!("HTTP/1.1 {status} X\r\n{head}content-length: {}\r\n\r\n{body}", body.len()).into_bytes()
}

pub(crate) const JSON: &str = "content-type: application/json\r\n";

/// 200 and JSON.
pub(crate) fn ok(body: &str) -> Vec<u8> {
    answer(200, JSON, body)
}

pub(crate) fn remote(settings: &RemoteSettings) -> Remote {
    Remote::new(settings).unwrap()
}

/// A request for one decision.
pub(crate) fn one() -> Request {
    Request::Evaluation(Box::new(evaluation()))
}

pub(crate) fn evaluation() -> Evaluation {
    Evaluation::read(&json(
        r#"{"subject":{"type":"identity","id":"u-ann"},"action":{"name":"a"},"resource":{"type":"r","id":"1"}}"#,
    ))
    .unwrap()
}

/// A request for as many decisions as there are names, the subject and the action at the top.
pub(crate) fn several(names: &[&str], semantic: Option<&str>) -> Request {
    let entries: Vec<String> =
        names.iter().map(|name| format!(r#"{{"resource":{{"type":"r","id":"{name}"}}}}"#)).collect();
    let options =
        semantic.map_or(String::new(), |it| format!(r#","options":{{"evaluations_semantic":"{it}"}}"#));
    let text = format!(
        r#"{{"subject":{{"type":"identity","id":"u-ann"}},"action":{{"name":"a"}},"context":{{"a":1}},"evaluations":[{}]{options}}}"#,
        entries.join(",")
    );
    Request::Evaluations(Box::new(Evaluations::read(&json(&text)).unwrap()))
}

pub(crate) fn json(text: &str) -> Json {
    Json::parse(text.as_bytes(), Limits::default()).unwrap()
}

/// What comes of asking, as a host uses it.
pub(crate) async fn asked(remote: &Remote, request: &Request) -> Result<(), Fault> {
    remote.decide(request, "id-1").await?.permit().map(drop)
}

pub(crate) async fn decisions(remote: &Remote, request: &Request) -> Result<Decisions, Fault> {
    remote.decide(request, "id-1").await
}

pub(crate) fn no_answer(fault: AnswerFault) -> Result<(), Fault> {
    Err(Fault { place: String::new(), why: Why::Answer(fault) })
}

pub(crate) fn denied() -> Result<(), Fault> {
    Err(Fault { place: String::new(), why: Why::Policy })
}
