//! Everything under `.example` over https: pages by address, and who asked for them through which door. The rest of the
//! world is reached as it is.

use async_trait::async_trait;
use bytes::Bytes;
use http::{Request, Response};
use sayso_fetch::{Client, Fetch, FetchError, Limits};
use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Header lines.
type Lines = Vec<(&'static str, String)>;

#[derive(Clone, Default)]
pub struct Web {
    pages: Arc<Mutex<HashMap<String, (String, Lines)>>>,
    asked: Arc<Mutex<Vec<(&'static str, String)>>>,
    /// How long a page takes, in milliseconds.
    pub slow: Arc<std::sync::atomic::AtomicU64>,
}

/// A door to it.
pub struct Door {
    web: Web,
    name: &'static str,
    inner: Client,
}

impl Web {
    pub fn behind(&self, name: &'static str, inner: Client) -> Door {
        Door { web: self.clone(), name, inner }
    }

    pub fn put(&self, url: &str, page: impl ToString) {
        self.put_with(url, page, vec![]);
    }

    /// A page that is served with these headers.
    pub fn put_with(&self, url: &str, page: impl ToString, headers: Lines) {
        self.pages.lock().unwrap().insert(url.into(), (page.to_string(), headers));
    }

    pub fn remove(&self, url: &str) {
        self.pages.lock().unwrap().remove(url);
    }

    /// Who was asked for what since the last time, in order.
    pub fn asked(&self) -> Vec<(&'static str, String)> {
        std::mem::take(&mut *self.asked.lock().unwrap())
    }
}

#[async_trait]
impl Fetch for Door {
    async fn send(&self, request: Request<Bytes>, limits: Limits) -> Result<Response<Bytes>, FetchError> {
        let url = request.uri().to_string();
        let far = request.uri().scheme_str() == Some("https")
            && request.uri().host().is_some_and(|host| host.ends_with(".example"));
        if !far {
            return self.inner.send(request, limits).await;
        }
        self.web.asked.lock().unwrap().push((self.name, url.clone()));
        let slow = self.web.slow.load(std::sync::atomic::Ordering::SeqCst);
        tokio::time::sleep(Duration::from_millis(slow)).await;
        let page = self.web.pages.lock().unwrap().get(&url).cloned();
        let (page, headers) = page.ok_or(FetchError::Unreachable)?;
        let mut response = Response::new(Bytes::from(page));
        for (name, value) in headers {
            response.headers_mut().insert(name, value.parse().unwrap());
        }
        Ok(response)
    }
}
