//! Challenges and refusals, in each of their forms.

use http::HeaderValue;
use sayso_protocol::envelope::jsonrpc::{self, Codes};
use sayso_protocol::envelope::www_authenticate;
use sayso_protocol::payload::challenge::Challenge;
use sayso_protocol::payload::edition::Edition;
use sayso_protocol::payload::refusal::{Code, Refusal};
use sayso_protocol::payload::remediation::Attempted;
use serde_json::{Value, json};

pub(super) fn challenge() -> Challenge {
    let scopes = vec!["trades:execute".parse().expect("a scope"), "trades:read".parse().expect("a scope")];
    let (resource, tool) = ("vault/execute_trade".parse(), "execute_trade".parse());
    let attempted = Attempted::new(
        Edition::Sept11,
        "https://gw.example",
        resource.expect("an id"),
        tool.expect("a tool"),
        scopes.clone(),
    );
    Challenge {
        realm: "vault \"of\" \\ alice".parse().expect("a realm"),
        as_uri: "https://as.example".into(),
        ticket: "tkt-1".into(),
        resource_metadata: "https://gw.example/.well-known/oauth-protected-resource/mcp".into(),
        scopes,
        remediation: attempted.expect("an attempt").remediation("https://as.example", "tkt-1"),
    }
}

pub(super) fn all() -> Vec<String> {
    let header: HeaderValue = www_authenticate::encode(&challenge()).expect("a challenge");
    let ours = header.to_str().expect("ASCII");
    let bare = r#"UMA error="insufficient_authorization", as_uri="https://as.example", ticket="t""#;
    vec![
        ours.into(),
        bare.into(),
        format!("Basic realm=\"a, b\", {ours}, Bearer realm=x, ticket=\"other\""),
        format!("Negotiate YWJjZA==\n{ours}\nDPoP algs=\"ES256 EdDSA\""),
        format!("{ours}, {bare}"),
        format!(" , {} ,, x-new = a", bare.replace("UMA", "uMa").replace('=', "\t= ")),
        bare.replace("\"t\"", "\"t\", ticket=u"),
        "UMA realm=\"x, UMA as_uri=\\\"https://evil.example\\\"\", error=\"insufficient_authorization\""
            .into(),
        "UMA".into(),
    ]
}

pub(super) fn errors() -> Vec<String> {
    let (id, codes) = ("\"a\\u0062\"".parse().expect("an id"), Codes::default());
    let ours = jsonrpc::response(&id, &jsonrpc::challenge(codes, &challenge())).expect("a response");
    let refused = Refusal::new(Code::OperationMismatch, "another operation");
    let refused = jsonrpc::response(&id, &jsonrpc::refusal(codes, &refused)).expect("a response");
    let error =
        |data: Value| json!({"jsonrpc": "2.0", "id": 1, "error": {"code": -32001, "data": data}}).to_string();
    vec![
        String::from_utf8(ours).expect("UTF-8"),
        String::from_utf8(refused).expect("UTF-8"),
        error(json!({"error": "uma_challenge", "as_uri": "https://as.example", "ticket": "t"})),
        error(json!({"error": "insufficient_authorization", "ticket": "t"})),
        error(json!({"error": "invalid_token", "status": 401})),
        error(json!({"error": 1, "status": 99999})),
        error(Value::Null),
        r#"{"jsonrpc":"2.0","id":1,"result":{}}"#.into(),
    ]
}
