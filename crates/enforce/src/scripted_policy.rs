//! The cast of tests about policies, and requests by whoever shows a token.

#![cfg(feature = "coaz")]

use crate::call::Incoming;
use crate::enforcement::{Enforcement, Policed};
pub(crate) use crate::policy::scripted::{Lists, Point, SERVER, Says, Script, Tokens, json};
use crate::policy::{Filter, Mappings, Policy, Question};
use crate::resource::ResourceSettings;
use crate::scripted::{post, settings};
use http::HeaderValue;
use sayso_protocol::json::Limits;
use sayso_protocol::method::Revision;
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

/// The same where another claim is designated for the subject.
pub(crate) fn claiming(point: &Arc<Point>, claim: &str) -> Arc<Policy> {
    Script { subject_claim: Some(claim.to_owned()), ..Script::default() }.by(point)
}

/// The scripted resource before a policy alone.
pub(crate) fn policed(policy: Arc<Policy>) -> ResourceSettings {
    let enforcement = Enforcement::Coaz(Policed { policy, tokens: Arc::new(Tokens) });
    ResourceSettings { enforcement, tools: vec![], ..settings() }
}

/// How the answer to a `tools/list` is cut by what this point says, where one tool declares a mapping.
pub(crate) fn filtering(point: &Arc<Point>) -> Filter {
    let page = r#"{"tools":[{"name":"b","inputSchema":{"x-authzen-mapping":{"evaluation":{
        "action":{"name":"pay"},"resource":{"type":"account","id":"$params.arguments.account"}}}}}]}"#;
    filtering_by(point, Mappings::fixed(&[json(page)]).unwrap())
}

/// The same by these mappings.
pub(crate) fn filtering_by(point: &Arc<Point>, mappings: Mappings) -> Filter {
    let body = br#"{"jsonrpc":"2.0","id":"x","method":"tools/list"}"#;
    let message = sayso_protocol::message::parse(body, Limits::default()).unwrap();
    let token = json(r#"{"sub":"u-ann","client_id":"agent-7"}"#);
    let (headers, revision) = (http::HeaderMap::new(), Revision::V20260728);
    let question = Question { message: &message, headers: &headers, revision, token: &token, observer: None };
    policy(point, mappings, &[], true).filter(&question).unwrap()
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
