//! What a host said, read from its answer alone.

use bytes::Bytes;
use http::Response;
use http_body::Body;
use http_body_util::BodyExt;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

pub(crate) struct Told {
    /// In the form of the vectors.
    pub(crate) verdict: Value,
    /// The remediation of a challenge, byte for byte.
    pub(crate) remediation: Option<String>,
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

fn remediation(challenge: &str) -> String {
    serde_json::from_str::<Challenge>(challenge).unwrap().authorization_remediation.get().to_owned()
}

fn challenged(data: &Value, status: u16) -> Value {
    let identifier = &data["authorization_remediation"]["authorization_details"][0]["identifier"];
    json!({ "kind": "challenge", "status": status, "scope": data["scope"], "resource_id": identifier })
}

fn refused(data: &Value, status: u16) -> Value {
    let mut verdict = json!({ "kind": "refuse", "error": data["error"], "status": status });
    if data["spent"] == true {
        verdict["spent"] = true.into();
    }
    verdict
}

fn passes(reached: usize) -> Told {
    Told { verdict: json!({ "kind": "passes" }), remediation: None, reached }
}

impl Told {
    /// Of an answer over HTTP, by a host whose server got so many requests.
    pub(crate) async fn over_http<B>(response: Response<B>, reached: impl Fn() -> usize) -> Self
    where
        B: Body<Data = Bytes>,
        B::Error: std::fmt::Debug,
    {
        let status = response.status().as_u16();
        let scheme = response.headers().get("www-authenticate").map(|line| line.to_str().unwrap().to_owned());
        let body = response.into_body().collect().await.unwrap().to_bytes();
        let reached = reached();
        if reached > 0 {
            return passes(reached);
        }
        let text = std::str::from_utf8(&body).unwrap();
        let said: Value = serde_json::from_str(text).unwrap();
        if let Some(scheme) = scheme.filter(|scheme| scheme.starts_with("Bearer ")) {
            assert!(scheme.contains("resource_metadata=\"https://gw.example.test/"), "{scheme}");
            let shown = scheme.contains("error=\"invalid_token\"");
            let verdict = json!({ "kind": "bearer", "shown": shown, "status": status });
            return Told { verdict, remediation: None, reached };
        }
        if said.get("jsonrpc").is_some() {
            return Self::in_json_rpc(text, status).unwrap_or_else(|| passes(reached));
        }
        if said.get("ticket").is_some() {
            let remediation = Some(remediation(text));
            return Told { verdict: challenged(&said, status), remediation, reached };
        }
        Told { verdict: refused(&said, status), remediation: None, reached }
    }

    /// Of a JSON-RPC message; none when it is no error.
    pub(crate) fn in_json_rpc(text: &str, status: u16) -> Option<Self> {
        let said: Value = serde_json::from_str(text).unwrap();
        let (code, data) = (said["error"]["code"].as_i64()?, &said["error"]["data"]);
        let status_said = || u16::try_from(data["status"].as_u64().unwrap()).unwrap();
        let told = |verdict, remediation| Told { verdict, remediation, reached: 0 };
        let category = &data["coaz"]["category"];
        Some(match code {
            code if category.is_string() => told(
                json!({ "kind": "policy", "jsonrpc": code, "category": category, "status": status }),
                None,
            ),
            -32001 => {
                let raw: Answer = serde_json::from_str(text).unwrap();
                told(challenged(data, status_said()), Some(remediation(raw.error.data.get())))
            }
            -32002 => told(refused(data, status_said()), None),
            code => {
                let status = data["status"].as_u64().map_or(status, |said| u16::try_from(said).unwrap());
                told(
                    json!({ "kind": "fault", "status": status, "jsonrpc": code, "error": data["error"] }),
                    None,
                )
            }
        })
    }
}
