//! The cast of tests about policies, and requests by whoever shows a token.

#![cfg(feature = "coaz")]

use crate::call::Incoming;
use crate::enforcement::{Enforcement, Policed};
pub(crate) use crate::policy::scripted::{Lists, Point, SERVER, Says, Script, Tokens, json};
use crate::policy::{Mappings, Policy};
use crate::resource::ResourceSettings;
use crate::scripted::{post, settings};
use http::HeaderValue;
use std::sync::Arc;

pub(crate) fn policy(
    point: &Arc<Point>,
    mappings: Mappings,
    extra: &[&str],
    filter_lists: bool,
) -> Arc<Policy> {
    let extra = extra.iter().map(|method| (*method).to_owned()).collect();
    Script { mappings, extra, filter_lists, ..Script::default() }.by(point)
}

/// The scripted resource before a policy alone.
pub(crate) fn policed(policy: Arc<Policy>) -> ResourceSettings {
    let enforcement = Enforcement::Coaz(Policed { policy, tokens: Arc::new(Tokens) });
    ResourceSettings { enforcement, tools: vec![], ..settings() }
}

/// The same request, by whoever holds this token.
pub(crate) fn by(mut incoming: Incoming, token: &str) -> Incoming {
    let value = HeaderValue::from_str(&format!("Bearer {token}")).unwrap();
    incoming.head.headers.insert("authorization", value);
    incoming
}

const META: &str = r#"{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}"#;

/// A modern request of any method.
pub(crate) fn asks(method: &str, name: Option<&str>, params: &str) -> Incoming {
    let params = if params.is_empty() { String::new() } else { format!("{params},") };
    let body =
        format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{method}","params":{{{params}"_meta":{META}}}}}"#);
    post(body, method, name)
}
