//! The authority of the vectors: it answers what a vector says, and keeps what it was asked.

use super::vectors::Vector;
use async_trait::async_trait;
use sayso_enforce::{Authority, Unavailable};
use sayso_protocol::payload::protection::{
    AccessReport, ConsumeReply, Introspection, PermissionFault, PermissionReply, PermissionRequest,
};
use serde_json::Value;
use std::sync::{Arc, Mutex};

pub(crate) struct Stub {
    introspection: Result<Introspection, Unavailable>,
    consume: Result<ConsumeReply, Unavailable>,
    asked: Mutex<Vec<String>>,
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
        Arc::new(Self { introspection, consume, asked: Mutex::default() })
    }

    /// One that answers so to every token, and spends each as often as it is asked.
    pub(crate) fn granting(introspection: &Value) -> Arc<Self> {
        let introspection = Introspection::from_json(introspection.to_string().as_bytes()).unwrap();
        let consume = Ok(ConsumeReply { consumed: true, error: None });
        Arc::new(Self { introspection: Ok(introspection), consume, asked: Mutex::default() })
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
        self.note("permission");
        Ok(Ok("ticket-1".to_owned().into()))
    }

    async fn introspect(&self, _token: &str) -> Result<Introspection, Unavailable> {
        self.note("introspect");
        self.introspection.clone()
    }

    async fn consume(&self, _token: &str, _attempt: &str) -> Result<ConsumeReply, Unavailable> {
        self.note("consume");
        self.consume.clone()
    }

    async fn report(&self, _report: &AccessReport) -> Result<(), Unavailable> {
        self.note("report");
        Ok(())
    }
}
