//! The authority of the vectors: it answers what a vector says, and keeps what it was asked.

use super::vectors::Vector;
use async_trait::async_trait;
use sayso_enforce::{Authority, Unavailable};
use sayso_protocol::payload::protection::{
    AccessReport, ConsumeReply, Introspection, PermissionFault, PermissionReply, PermissionRequest,
};
use serde_json::Value;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

pub(crate) struct Stub {
    permission: Result<(), Unavailable>,
    introspection: Result<Introspection, Unavailable>,
    consume: Result<ConsumeReply, Unavailable>,
    asked: Mutex<Vec<String>>,
    reports: Mutex<Vec<AccessReport>>,
    /// Whether nobody answers for now.
    pub(crate) gone: AtomicBool,
}

impl Stub {
    pub(crate) fn of(vector: &Vector) -> Arc<Self> {
        let introspection = match word(&vector.introspection) {
            Some(gone) => Err(gone),
            None => Ok(Introspection::from_json(vector.introspection.to_string().as_bytes()).unwrap()),
        };
        let consume = match (&vector.consume, word(&vector.consume)) {
            (Value::Null, _) => Ok(ConsumeReply { consumed: true, error: None }),
            (_, Some(gone)) => Err(gone),
            (reply, None) => Ok(serde_json::from_value(reply.clone()).unwrap()),
        };
        let permission =
            word(&vector.permission).filter(|_| !vector.permission.is_null()).map_or(Ok(()), Err);
        Arc::new(Self { permission, ..Self::saying(introspection, consume) })
    }

    /// One that answers so to every token, and spends each as often as it is asked.
    pub(crate) fn granting(introspection: &Value) -> Arc<Self> {
        let introspection = Introspection::from_json(introspection.to_string().as_bytes()).unwrap();
        let consume = Ok(ConsumeReply { consumed: true, error: None });
        Arc::new(Self::saying(Ok(introspection), consume))
    }

    fn saying(
        introspection: Result<Introspection, Unavailable>,
        consume: Result<ConsumeReply, Unavailable>,
    ) -> Self {
        let (asked, reports) = (Mutex::default(), Mutex::default());
        Self { permission: Ok(()), introspection, consume, asked, reports, gone: AtomicBool::new(false) }
    }

    /// What it was told of calls that were let through.
    pub(crate) fn reports(&self) -> Vec<AccessReport> {
        self.reports.lock().unwrap().clone()
    }

    fn heard(&self, what: &str) -> Result<(), Unavailable> {
        self.note(what);
        if self.gone.load(Ordering::SeqCst) { Err(Unavailable::Unreachable) } else { Ok(()) }
    }

    pub(crate) fn asked(&self) -> Vec<String> {
        self.asked.lock().unwrap().clone()
    }

    /// What it was asked, which from now on it was not.
    pub(crate) fn forget(&self) -> Vec<String> {
        std::mem::take(&mut self.asked.lock().unwrap())
    }

    fn note(&self, what: &str) {
        self.asked.lock().unwrap().push(what.to_owned());
    }
}

/// The word for having no answer.
fn word(answer: &Value) -> Option<Unavailable> {
    match answer.as_str() {
        None if answer.is_null() => Some(Unavailable::Unreachable),
        None => None,
        Some("unreachable") => Some(Unavailable::Unreachable),
        Some("interrupted") => Some(Unavailable::Interrupted),
        Some(other) => panic!("no such word: {other}"),
    }
}

#[async_trait]
impl Authority for Stub {
    async fn permission(
        &self,
        _request: &PermissionRequest,
    ) -> Result<Result<PermissionReply, PermissionFault>, Unavailable> {
        self.heard("permission")?;
        self.permission?;
        Ok(Ok("ticket-1".to_owned().into()))
    }

    async fn introspect(&self, _token: &str) -> Result<Introspection, Unavailable> {
        self.heard("introspect")?;
        self.introspection.clone()
    }

    async fn consume(&self, _token: &str, _attempt: &str) -> Result<ConsumeReply, Unavailable> {
        self.heard("consume")?;
        self.consume.clone()
    }

    async fn report(&self, report: &AccessReport) -> Result<(), Unavailable> {
        self.heard("report")?;
        self.reports.lock().unwrap().push(report.clone());
        Ok(())
    }
}
