//! An HTTP server of a few lines: it notes what it was sent, byte for byte, and answers what it is told to.

use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

/// One request as received.
#[derive(Clone)]
pub(crate) struct Seen {
    pub(crate) method: String,
    pub(crate) path: String,
    pub(crate) headers: http::HeaderMap,
    pub(crate) body: Vec<u8>,
}

impl Seen {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(|value| value.to_str().unwrap())
    }

    pub(crate) fn json(&self) -> serde_json::Value {
        serde_json::from_slice(&self.body).unwrap_or_default()
    }

    pub(crate) fn form(&self, name: &str) -> Option<String> {
        let mut pairs = url::form_urlencoded::parse(&self.body);
        pairs.find(|(key, _)| key == name).map(|(_, value)| value.into_owned())
    }
}

/// An answer; without a status the connection is dropped.
pub(crate) struct Answer {
    status: Option<u16>,
    headers: Vec<(String, String)>,
    body: String,
    after: Duration,
}

impl Answer {
    pub(crate) fn json(status: u16, body: serde_json::Value) -> Answer {
        Answer::text(status, "application/json", body.to_string())
    }

    pub(crate) fn text(status: u16, kind: &str, body: impl Into<String>) -> Answer {
        Answer {
            status: Some(status),
            headers: vec![("content-type".into(), kind.into())],
            body: body.into(),
            after: Duration::ZERO,
        }
    }

    pub(crate) fn drop_connection() -> Answer {
        Answer { status: None, headers: Vec::new(), body: String::new(), after: Duration::ZERO }
    }

    /// Comes so much later.
    pub(crate) fn after(self, after: Duration) -> Answer {
        Answer { after, ..self }
    }

    pub(crate) fn with(mut self, name: &str, value: &str) -> Answer {
        self.headers.push((name.into(), value.into()));
        self
    }
}

/// A running server.
#[derive(Clone)]
pub(crate) struct Site {
    pub(crate) url: String,
    seen: Arc<Mutex<Vec<Seen>>>,
}

/// A socket that is bound, so that its address is known before anybody answers on it.
pub(crate) struct Bound {
    listener: TcpListener,
    pub(crate) url: String,
}

impl Bound {
    pub(crate) async fn new() -> Bound {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        Bound { listener, url }
    }

    pub(crate) fn serve(self, answer: impl Fn(&Seen) -> Answer + Send + Sync + 'static) -> Site {
        let site = Site { url: self.url, seen: Arc::default() };
        let (seen, answer) = (site.seen.clone(), Arc::new(answer));
        tokio::spawn(async move {
            while let Ok((stream, _)) = self.listener.accept().await {
                let (seen, answer) = (seen.clone(), answer.clone());
                tokio::spawn(async move { one(stream, &seen, &*answer).await });
            }
        });
        site
    }
}

impl Site {
    /// Everything received so far.
    pub(crate) fn seen(&self) -> Vec<Seen> {
        self.seen.lock().unwrap().clone()
    }

    /// The paths asked for, in order.
    pub(crate) fn paths(&self) -> Vec<String> {
        self.seen().into_iter().map(|seen| seen.path).collect()
    }
}

/// Reads one request, answers it and closes.
async fn one(
    mut stream: TcpStream,
    seen: &Mutex<Vec<Seen>>,
    answer: &(dyn Fn(&Seen) -> Answer + Send + Sync),
) {
    let Some(request) = read(&mut stream).await else { return };
    seen.lock().unwrap().push(request.clone());
    let answer = answer(&request);
    tokio::time::sleep(answer.after).await;
    let Some(status) = answer.status else { return };
    let mut head =
        format!("HTTP/1.1 {status} X\r\nconnection: close\r\ncontent-length: {}\r\n", answer.body.len());
    for (name, value) in answer.headers {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    let _ = stream.write_all(format!("{head}\r\n{}", answer.body).as_bytes()).await;
}

async fn read(stream: &mut TcpStream) -> Option<Seen> {
    let mut bytes = Vec::new();
    let end = loop {
        if let Some(end) = bytes.windows(4).position(|four| four == b"\r\n\r\n") {
            break end;
        }
        if stream.read_buf(&mut bytes).await.ok()? == 0 {
            return None;
        }
    };
    let head = String::from_utf8(bytes[..end].to_vec()).ok()?;
    let mut lines = head.split("\r\n");
    let mut first = lines.next()?.split(' ');
    let mut headers = http::HeaderMap::new();
    for line in lines {
        let (name, value) = line.split_once(':')?;
        let name: http::HeaderName = name.parse().ok()?;
        headers.append(name, value.trim().parse().ok()?);
    }
    let length = headers.get("content-length").and_then(|text| text.to_str().ok()?.parse().ok()).unwrap_or(0);
    let mut body = bytes.split_off(end + 4);
    while body.len() < length {
        if stream.read_buf(&mut body).await.ok()? == 0 {
            return None;
        }
    }
    Some(Seen { method: first.next()?.into(), path: first.next()?.into(), headers, body })
}
