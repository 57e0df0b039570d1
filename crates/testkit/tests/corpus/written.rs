//! Seeds for the targets without vectors, written by our own encoders or, where a peer writes otherwise, by hand.

mod challenges;

use bytes::Bytes;
use http::HeaderValue;
use prost::Message as _;
use sayso_ext_authz::grpc::message::{
    Attributes, CheckRequest, Entry, HeaderList, HttpRequest, Line, Request,
};
use sayso_protocol::envelope::{rfc9728, www_authenticate};
use sayso_protocol::jws::{KeyName, sign};
use sayso_protocol::payload::agreement::{self, AgreementClaims};
use sayso_protocol::payload::edition::Edition;
use sayso_protocol::payload::metadata::KeySet;
use sayso_protocol::payload::negotiation::{TokenError, TokenReply, UMA_TICKET};
use sayso_protocol::payload::terms::RequiredClaim;
use sayso_protocol::payload::{receipt, rpt};
use sayso_protocol::{SigningKey, canon};
use serde_json::{Value, json};

use super::Seed;
use crate::targets::agreement::{NOW, proffer};
use crate::targets::{credential, jws, ticket};

pub(super) fn all() -> Vec<Seed> {
    let mut seeds = Vec::new();
    let mut add = |target: &'static str, inputs: Vec<String>| {
        seeds.extend(inputs.into_iter().map(|input| (target, input.into_bytes())));
    };
    add("agreement", agreements());
    add("answer", conversations());
    add("credential", credentials());
    add("guard", addresses());
    add("challenge", challenges::all());
    add("jsonrpc", challenges::errors());
    add("jws", signed());
    add("keys", keys());
    add("metadata", documents());
    add("mirrors", mirrors());
    add("ticket", tickets());
    add("token_answer", answers());
    add("token_form", forms());
    add("introspection", protection());
    add("ids", names());
    seeds.extend(checks().map(|check| ("ext_authz", check)));
    seeds
}

fn claims() -> Value {
    json!({
        "iss": "agent", "aud": "https://as.example", "iat": NOW.0, "template_id": "alice/trades/v1",
        "terms_uri": "https://as.example/terms/alice/trades/v1", "purpose": "place one order",
        "scope": ["trades:execute"], "expires_in": 600, "prohibited": ["resale"], "family": "neg-1", "nonce": "n-1",
        "operation": {"tool": "execute_trade", "params": {"symbol": "VTI", "quantity": 3, "price": 1.5e2}},
        "reason": "asked to", "mission": {"approver": "https://m.example", "s256": canon::s256_bytes(b"m")},
    })
}

fn token(key: &SigningKey, claims: &Value) -> String {
    let claims: AgreementClaims = serde_json::from_value(claims.clone()).expect("claims");
    agreement::sign(key, &claims).expect("an agreement")
}

/// A header line and claims that hold, the shape of each document beside a credential, and an address.
fn credentials() -> Vec<String> {
    let header = json!({ "alg": "EdDSA", "typ": "aa-agent+jwt", "kid": "k" });
    let claims = json!({
        "iss": "https://ps.example", "sub": "aauth:worker@ps.example", "dwk": "aauth-agent.json", "jti": "j",
        "iat": credential::NOW.0, "exp": credential::NOW.plus(300).0, "aud": "https://as.example",
        "parent_agent": "aauth:boss@ps.example", "cnf": { "jwk": jws::key().verifying().jwk() },
    });
    let client = "https://op.example/agent.json";
    vec![
        format!("{header}\n{claims}"),
        json!({ "issuer": "https://as.example", "jwks_uri": "https://as.example/jwks" }).to_string(),
        serde_json::to_string(&KeySet::of([jws::key().verifying()])).expect("a set"),
        json!({ "client_id": client, "client_name": "x" }).to_string(),
        client.into(),
    ]
}

fn agreements() -> Vec<String> {
    let whole = claims();
    let without = |member: &str| {
        let mut claims = claims();
        claims.as_object_mut().expect("an object").remove(member);
        claims.to_string()
    };
    vec![
        whole.to_string(),
        without("operation"),
        without("nonce"),
        without("mission"),
        whole.to_string().replace("\"quantity\":3", "\"quantity\":9007199254740993"),
        whole.to_string().replace("1.5e2", "0.1234567890123456"),
        token(&jws::key(), &whole),
    ]
}

fn grant() -> Value {
    let key = jws::key();
    let digest = canon::s256_bytes(b"agreement");
    json!({
        "iss": "https://as.example", "aud": "https://gw.example", "jti": "j", "iat": NOW.0, "exp": NOW.0 + 600,
        "sub": "jkt:x", "client_id": "jkt:x", "cnf": {"jwk": key.verifying().jwk()}, "owner": "alice",
        "permissions": [{"resource_id": "vault/x", "resource_scopes": ["x:call"], "exp": NOW.0 + 60, "nbf": NOW.0}],
        "contract": digest, "consequence": "irreversible", "single_use": true,
        "operation": {"tool": "x", "params_s256": digest},
    })
}

fn signed() -> Vec<String> {
    let key = jws::key();
    let accepted = token(&key, &claims());
    let receipt = json!({
        "iss": "https://as.example", "sub": "jkt:x", "iat": NOW.0, "terms_uri": "https://as.example/t", "family": "n",
        "template_id": "alice/x/v1", "agreement": canon::s256_bytes(accepted.as_bytes()), "agreement_jws": accepted,
    });
    let head = |typ: &str, more: Value| {
        let mut head = json!({"alg": "EdDSA", "typ": typ});
        head.as_object_mut().expect("an object").extend(more.as_object().cloned().unwrap_or_default());
        head.to_string()
    };
    let published = json!({"kid": jws::KID});
    vec![
        format!("{}\n{receipt}", head(receipt::TYP, published.clone())),
        format!("{}\n{}", head(receipt::TYP, published.clone()), json!({"agreement": "s256:AA"})),
        format!("{}\n{}", head(rpt::TYP, published), grant()),
        format!("{}\n{{}}", head("x", json!({"jwk": key.verifying().jwk()}))),
        format!("{}\n{{}}", head("x", json!({"crit": ["b64"], "b64": false}))),
        "{\"alg\":\"none\"}\n{}".into(),
        sign(&key, rpt::TYP, &KeyName::Jwk, &grant()).expect("a grant"),
    ]
}

fn keys() -> Vec<String> {
    let key = jws::key();
    let mut set = serde_json::to_value(KeySet::of([key.verifying()])).expect("a key set");
    let foreign = json!({"kty": "EC", "crv": "P-256", "x": "AA", "y": "AA", "kid": "ec"});
    let weak = json!({"kty": "OKP", "crv": "Ed25519", "x": "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"});
    let one = set.to_string();
    set["keys"].as_array_mut().expect("keys").extend([foreign, weak]);
    let jwk = serde_json::to_string(&key.verifying().jwk()).expect("a key");
    vec![one, set.to_string(), jwk, SigningKey::seed_to_pem(&[3; 32]), "\u{1}".repeat(32)]
}

fn documents() -> Vec<String> {
    let resource = json!({
        "resource": "https://gw.example/mcp", "authorization_servers": ["https://as.example"],
        "jwks_uri": "https://gw.example/jwks", "scopes_supported": ["x:call"], "bearer_methods_supported": ["header"],
        "resource_signing_alg_values_supported": ["EdDSA"], "owner_resources_endpoint": "https://gw.example/owner",
        "tool_surfaces": [{"tool": "x", "resource_scopes": ["x:call"], "consequence": "reversible"}],
    });
    let metadata = serde_json::from_value(resource.clone()).expect("metadata");
    let listing = json!({"resources": [{
        "_id": "vault/x", "name": "x", "type": "tool", "tool": "x", "resource_scopes": ["x:call"],
        "consequence": "reversible", "definition": canon::s256_bytes(b"d"),
    }]});
    let authority = json!({
        "issuer": "https://as.example", "token_endpoint": "https://as.example/token", "jwks_uri": "https://as.example/k",
        "permission_endpoint": "p", "introspection_endpoint": "i", "consume_endpoint": "c", "terms_endpoint": "t",
        "owner_endpoint": "o", "grant_types_supported": [UMA_TICKET], "claim_token_formats_supported": [],
        "uma_profiles_supported": [], "sayso_audit_endpoint": "a",
    });
    let signed = rfc9728::document(&metadata, &jws::key(), NOW).expect("a document");
    let terms = serde_json::to_string(&proffer().terms).expect("terms");
    let demand =
        serde_json::to_string(&RequiredClaim::agreement(Edition::Sept15, proffer())).expect("a demand");
    vec![
        resource.to_string(),
        signed.to_string(),
        listing.to_string(),
        authority.to_string(),
        terms,
        demand,
        json!({"resource": "http://[::1]:8441/a%20b/", "jwks_uri": 1, "n": 1.5}).to_string(),
    ]
}

fn conversations() -> Vec<String> {
    let result = |id: &str, result: &str| format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{result}}}");
    let modern = result("1", r#"{"supportedVersions":["2025-11-25","2026-07-28"]}"#);
    let older = result("2", r#"{"protocolVersion":"2025-06-18","capabilities":{},"serverInfo":{}}"#);
    let page = |id: &str, more: &str| {
        result(id, &format!(r#"{{"tools":[{{"name":"t","inputSchema":{{}}}}]{more}}}"#))
    };
    let json = |body: &str| format!("200 application/json\n\n{body}");
    let stream = |body: &str| {
        let note = r#"{"jsonrpc":"2.0","method":"notifications/progress","params":{}}"#;
        format!(
            "200 text/event-stream; charset=utf-8\nmcp-session-id: s\n\n: hi\r\ndata: {note}\n\nid: 1\ndata:{body}\n\n"
        )
    };
    let refused = r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"no"}}"#;
    let challenge: HeaderValue = www_authenticate::encode(&challenges::challenge()).expect("a challenge");
    let challenge = challenge.to_str().expect("ASCII");
    [
        vec![json(&modern), json(&page("2", r#","nextCursor":"c""#)), json(&page("3", ""))],
        vec![stream(&modern), stream(&page("2", ""))],
        vec![
            format!("404 application/json\n\n{refused}"),
            json(&older),
            "202 \n\n".into(),
            json(&page("4", "")),
        ],
        vec![format!("400 text/plain\n\nno"), stream(&older), "202 \n\n".into(), stream(&page("3", ""))],
        vec![format!("401 application/json\nwww-authenticate: {challenge}\n\n{{}}")],
        vec![json(&modern), "403 application/json\n\n{\"error\":\"access_revoked\",\"spent\":true}".into()],
        vec![json(&modern.replace(":1,", ":\"1\","))],
        vec!["503 \n\n".into()],
    ]
    .map(|answers| answers.join("\u{1}"))
    .into()
}

fn addresses() -> Vec<String> {
    let urls = [
        "https://as.example/x",
        "https://as.example:8443/",
        "http://as.example/",
        "https://127.0.0.1/",
        "http://0x7f.1/",
        "https://10.1.2.3/",
        "https://169.254.169.254/latest",
        "https://[::ffff:169.254.169.254]/",
        "https://[::1]/",
        "https://[64:ff9b::8.8.8.8]/",
        "https://[64:ff9b::a00:1]/",
        "https://[2606:4700::1111]/",
        "https://8.8.8.8/",
        "https://user:password@as.example/",
        "ftp://as.example/",
        "https://2130706433/",
        "https://[fd00::1]:443/",
        "https://\u{ff11}27.0.0.1/",
        "https://localhost./",
        "file:///x",
        "\u{8}\u{8}\u{8}\u{8}",
    ];
    urls.map(str::to_owned).into()
}

fn mirrors() -> Vec<String> {
    let schema = json!({"type": "object", "properties": {
        "symbol": {"type": "string", "x-mcp-header": "Symbol"},
        "order": {"type": "object", "properties": {
            "quantity": {"type": "integer", "x-mcp-header": "Quantity"},
            "dry": {"type": "boolean", "x-mcp-header": "Dry"},
        }},
    }});
    let arguments = r#"{"symbol":"VTI","order":{"quantity":3e0,"dry":true}}"#;
    let lines = "mcp-param-symbol: VTI\nmcp-param-quantity: 3\nmcp-param-dry: true\n";
    let body = |arguments: &str| format!("{{\"schema\":{schema},\"arguments\":{arguments}}}");
    let named = |label: &str| body(arguments).replace("Quantity", label);
    vec![
        format!("{lines}\n{}", body(arguments)),
        format!(
            "{}\n{}",
            lines.replace("VTI", "=?base64?w6k=?="),
            body(&arguments.replace("VTI", "\\u00e9"))
        ),
        format!("{lines}\n{}", body(r#"{"symbol":null,"order":{"quantity":-0,"dry":false}}"#)),
        format!("{}\n{}", lines.replace('3', "+3"), body(r#"{"symbol":" VTI","order":[]}"#)),
        format!("\n{}", named("symbol")),
        format!("\n{}", named("a b")),
        format!("\n{}", named("Quantity").replace("\"integer\"", "\"number\"")),
    ]
}

fn tickets() -> Vec<String> {
    let attempt = json!({
        "negotiation": "neg-1", "owner": "alice", "resource_server": "https://gw.example", "resource": "vault/x",
        "scopes": ["x:call"], "expires": NOW.0,
    });
    let sealed =
        ticket::sealer(1).seal(&serde_json::from_value(attempt.clone()).expect("an attempt"), [9; 12]);
    let sealed = sealed.expect("a ticket");
    vec![attempt.to_string(), sealed.replace("tkt1.k1", "tkt1.k2"), sealed]
}

fn answers() -> Vec<String> {
    let demand = RequiredClaim::agreement(Edition::Sept11, proffer());
    let replies = [
        TokenReply::NeedInfo { ticket: "t".into(), claim: Box::new(demand) },
        TokenReply::Submitted { ticket: "t".into(), interval: 5 },
        TokenReply::Granted { access_token: "a".into(), expires_in: 60, receipt: "r".into() },
        TokenReply::refused(TokenError::InvalidGrant, "present a ticket of this authority"),
    ];
    let mut answers: Vec<String> =
        replies.iter().map(|reply| format!("{}{}", reply.status(), reply.body())).collect();
    answers.push(r#"200{"access_token":"a","expires_in":1,"token_type":"Bearer"}"#.into());
    answers.push(r#"503{"error":"temporarily_unavailable"}"#.into());
    answers
}

fn forms() -> Vec<String> {
    let ticket = "grant_type=urn%3Aietf%3Aparams%3Aoauth%3Agrant-type%3Auma-ticket&ticket=tkt1.k1.AA";
    let format = "urn%3Auma4agents%3Aformat%3Amyterms-agreement-v1%2Bjws";
    vec![
        ticket.into(),
        format!("{ticket}&claim_token=ZXk&claim_token_format={format}"),
        format!("{ticket}&decline=true"),
        format!("{ticket}&decline=false&ticket="),
        "grant_type=client_credentials&scope=uma_protection&client_id=https%3A%2F%2Fgw.example&owner=alice"
            .into(),
        "grant_type=client_credentials&client_secret=s&client_assertion=".into(),
        "grant_type=password&username=a+b&password=%zz%C3".into(),
    ]
}

fn protection() -> Vec<String> {
    let mut live = grant();
    live["active"] = true.into();
    live["token_type"] = rpt::SCHEME.into();
    live["family"] = "neg-1".into();
    let dead = |reason: &str| json!({"active": false, "error": reason}).to_string();
    vec![
        live.to_string(),
        dead("already_consumed"),
        dead("x-new"),
        r#"{"active":false}"#.into(),
        r#"{"active":true}"#.into(),
        json!({"resource_id": "vault/x", "resource_scopes": ["x:call"]}).to_string(),
        json!({"family": "n", "tool": "x", "params_s256": canon::s256_bytes(b"p"), "summary": "s"})
            .to_string(),
        r#"{"consumed":false,"error":"not_single_use"}"#.into(),
        r#"{"ticket":"t"}"#.into(),
    ]
}

fn names() -> Vec<String> {
    let names = [
        "alice-vault/execute_trade",
        "trades:execute trades:read",
        " a  b ",
        "a\u{0}b",
        "2026-07-28",
        "tools/call",
        "\"a\\u0062\"",
        "-12",
        " 7 ",
        "1e3",
        "bot@idp.example/t1\nhttps://idp.example/t1/",
        "bot\nhttps://idp.example",
        "=?base64?w6k=?=",
        "=?base64?!?=",
        "\u{e9}",
        "AA",
        "AB",
        "AA==",
        "",
    ];
    let mut names: Vec<String> = names.map(str::to_owned).into();
    names.push(canon::s256_bytes(b"x").to_string());
    names
}

/// Checks as a gateway sends them: with everything in them, and with a part of it.
fn checks() -> [Vec<u8>; 2] {
    let text = Bytes::from_static;
    let line = |key: &'static str, value: &'static str| Line {
        key: text(key.as_bytes()),
        value: Bytes::new(),
        raw_value: text(value.as_bytes()),
    };
    let http = HttpRequest {
        method: text(b"POST"),
        path: text(b"/mcp"),
        host: text(b"gw.example.test"),
        size: 40,
        raw_body: text(br#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#),
        header_map: Some(HeaderList {
            headers: vec![
                line(":path", "/mcp"),
                line("content-type", "application/json"),
                line("x-envoy-auth-partial-body", "false"),
            ],
        }),
        ..HttpRequest::default()
    };
    let headers = vec![Entry { key: text(b"content-type"), value: text(b"application/json") }];
    let plain = HttpRequest { header_map: None, headers, body: http.raw_body.clone(), ..http.clone() };
    let message =
        |http| CheckRequest { attributes: Some(Attributes { request: Some(Request { http: Some(http) }) }) };
    let messages = [http, plain].map(|http| message(http).encode_to_vec());
    messages.map(|message| [b"bytes\n", message.as_slice()].concat())
}
