//! Who listens to changes (2026-07-28), and the tools that say there was one.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use rmcp::model::{CallToolRequestParams, Tool};
use rmcp::service::{SubscriptionContext, SubscriptionSink};

use crate::schemas::plain;
use crate::server::{Answer, text};

/// Everybody who listens.
#[derive(Clone, Default)]
pub(crate) struct Listeners {
    next: Arc<AtomicU64>,
    sinks: Arc<Mutex<BTreeMap<u64, SubscriptionSink>>>,
}

impl Listeners {
    /// Returns when the listener is gone.
    pub(crate) async fn listen(&self, context: SubscriptionContext) {
        let key = self.next.fetch_add(1, Ordering::Relaxed);
        self.sinks.lock().unwrap_or_else(PoisonError::into_inner).insert(key, context.sink().clone());
        context.cancelled().await;
        self.sinks.lock().unwrap_or_else(PoisonError::into_inner).remove(&key);
    }

    fn all(&self) -> Vec<SubscriptionSink> {
        self.sinks.lock().unwrap_or_else(PoisonError::into_inner).values().cloned().collect()
    }
}

pub(crate) fn tools() -> Vec<Tool> {
    vec![
        plain("test_trigger_tool_change", "Says that the tools changed"),
        plain("test_trigger_prompt_change", "Says that the prompts changed"),
    ]
}

pub(crate) async fn call(listeners: &Listeners, call: &CallToolRequestParams) -> Option<Answer> {
    let tools = match call.name.as_ref() {
        "test_trigger_tool_change" => true,
        "test_trigger_prompt_change" => false,
        _ => return None,
    };
    for sink in listeners.all() {
        // One that did not ask for this kind, or has gone, is not told.
        let _ = if tools {
            sink.notify_tool_list_changed().await
        } else {
            sink.notify_prompt_list_changed().await
        };
    }
    Some(Ok(text("It was said.")))
}
