//! What a host said, read from its answer alone.

use bytes::Bytes;
use http::{HeaderMap, Response};
use http_body::Body;
use http_body_util::BodyExt;
use sayso_protocol::envelope::www_authenticate;
use sayso_protocol::payload::refusal::Code;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

#[derive(Default)]
pub(crate) struct Told {
    /// In the form of the vectors.
    pub(crate) verdict: Value,
    /// A challenge, whole, out of whichever envelope.
    pub(crate) challenge: Option<Value>,
    /// Its remediation, byte for byte.
    pub(crate) remediation: Option<String>,
    /// The id of an answer in JSON-RPC, as it is written there.
    pub(crate) id: Option<String>,
    /// How many requests, or calls, the server behind the host got.
    pub(crate) reached: usize,
}

#[derive(Deserialize)]
struct Challenge {
    authorization_remediation: Box<RawValue>,
}

#[derive(Deserialize)]
struct Error {
    data: Box<RawValue>,
}

#[derive(Deserialize)]
struct Answer {
    error: Error,
}

#[derive(Deserialize)]
struct Addressed {
    id: Box<RawValue>,
}

fn challenged(challenge: &str, status: u16, data: Value) -> Told {
    let read: Challenge = serde_json::from_str(challenge).unwrap();
    let identifier = &data["authorization_remediation"]["authorization_details"][0]["identifier"];
    let verdict =
        json!({ "kind": "challenge", "status": status, "scope": data["scope"], "resource_id": identifier });
    let remediation = Some(read.authorization_remediation.get().to_owned());
    Told { verdict, remediation, challenge: Some(data), ..Told::default() }
}

/// CORE-16, CORE-23, CORE-24: a word of the list, and nothing beside it that is not documented.
fn refused(data: &Value, status: u16) -> Value {
    assert!(Code::ALL.iter().any(|code| code.as_str() == data["error"]), "no such word: {data}");
    let known = ["error", "error_description", "status", "spent", "forwarded"];
    assert!(data.as_object().unwrap().keys().all(|member| known.contains(&member.as_str())), "{data}");
    let mut verdict = json!({ "kind": "refuse", "error": data["error"], "status": status });
    if data["spent"] == true {
        verdict["spent"] = true.into();
    }
    verdict
}

fn passes(reached: usize) -> Told {
    Told { verdict: json!({ "kind": "passes" }), reached, ..Told::default() }
}

/// CORE-15, MCP-07: the header says what the body says, in one challenge.
fn is_said_twice(headers: &HeaderMap, said: &Value) {
    assert_eq!(headers.get_all("www-authenticate").iter().count(), 1);
    let read = www_authenticate::decode(headers).unwrap().unwrap();
    assert_eq!(&serde_json::to_value(&read).unwrap(), said);
}

impl Told {
    /// Of an answer over HTTP, by a host whose server got so many requests.
    pub(crate) async fn over_http<B>(response: Response<B>, reached: impl Fn() -> usize) -> Self
    where
        B: Body<Data = Bytes>,
        B::Error: std::fmt::Debug,
    {
        let (parts, body) = response.into_parts();
        let status = parts.status.as_u16();
        let scheme = parts.headers.get("www-authenticate").map(|line| line.to_str().unwrap().to_owned());
        let body = body.collect().await.unwrap().to_bytes();
        let reached = reached();
        if reached > 0 {
            return passes(reached);
        }
        let text = std::str::from_utf8(&body).unwrap();
        let said: Value = serde_json::from_str(text).unwrap();
        if let Some(scheme) = scheme.as_ref().filter(|scheme| scheme.starts_with("Bearer ")) {
            assert!(scheme.contains("resource_metadata=\"https://gw.example.test/"), "{scheme}");
            let shown = scheme.contains("error=\"invalid_token\"");
            let verdict = json!({ "kind": "bearer", "shown": shown, "status": status });
            return Told { verdict, ..Told::default() };
        }
        if said.get("ticket").is_some() {
            is_said_twice(&parts.headers, &said);
            return challenged(text, status, said);
        }
        assert!(scheme.is_none_or(|scheme| !scheme.starts_with("UMA")), "a challenge beside {said}");
        if said.get("jsonrpc").is_some() {
            return Self::in_json_rpc(text, status).unwrap_or_else(|| passes(reached));
        }
        Told { verdict: refused(&said, status), ..Told::default() }
    }

    /// Of a JSON-RPC message; none when it is no error.
    pub(crate) fn in_json_rpc(text: &str, status: u16) -> Option<Self> {
        let said: Value = serde_json::from_str(text).unwrap();
        let (code, data) = (said["error"]["code"].as_i64()?, &said["error"]["data"]);
        assert!(said.get("result").is_none(), "{said}");
        let status_said = || u16::try_from(data["status"].as_u64().unwrap()).unwrap();
        let told = |verdict| Told { verdict, ..Told::default() };
        let category = &data["coaz"]["category"];
        let read = match code {
            code if category.is_string() => {
                told(json!({ "kind": "policy", "jsonrpc": code, "category": category, "status": status }))
            }
            -32001 => {
                let raw: Answer = serde_json::from_str(text).unwrap();
                let mut parameters = data.clone();
                parameters.as_object_mut().unwrap().remove("status");
                challenged(raw.error.data.get(), status_said(), parameters)
            }
            -32002 => told(refused(data, status_said())),
            code => {
                let status = data["status"].as_u64().map_or(status, |said| u16::try_from(said).unwrap());
                told(json!({ "kind": "fault", "status": status, "jsonrpc": code, "error": data["error"] }))
            }
        };
        let addressed: Addressed = serde_json::from_str(text).unwrap();
        Some(Told { id: Some(addressed.id.get().to_owned()), ..read })
    }
}
