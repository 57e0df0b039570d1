//! The HTTP client of an authority, against a fetcher that answers by script.

use super::*;
use crate::scripted::{NOW, key, reusable};
use sayso_fetch::FetchError;
use sayso_protocol::Timestamp;
use sayso_protocol::payload::metadata::AUTHORITY_PATHS;
use sayso_protocol::sig::{self, Body, Facts, Profile};
use serde_json::json;
use std::collections::VecDeque;
use std::sync::Mutex;
use std::sync::atomic::{AtomicI64, Ordering};

mod introduction;

const ISSUER: &str = "https://as.example.test";

type Answer = Result<(u16, String), FetchError>;

/// Keeps what was sent; answers metadata and logins by itself and the rest in turn.
#[derive(Default)]
struct Wire {
    sent: Mutex<Vec<Request<Bytes>>>,
    answers: Mutex<VecDeque<Answer>>,
    logins: Mutex<VecDeque<Answer>>,
    issuer: Option<&'static str>,
}

impl Wire {
    fn sent_to(&self, path: &str) -> Vec<Request<Bytes>> {
        self.sent.lock().unwrap().iter().filter(|request| request.uri().path() == path).cloned().collect()
    }
}

fn metadata(issuer: &str) -> String {
    json!({
        "issuer": issuer,
        "token_endpoint": format!("{ISSUER}/token"),
        "jwks_uri": format!("{ISSUER}/jwks"),
        "permission_endpoint": format!("{ISSUER}/perm"),
        "introspection_endpoint": format!("{ISSUER}/introspect"),
        "consume_endpoint": format!("{ISSUER}/consume"),
        "terms_endpoint": format!("{ISSUER}/terms"),
        "owner_endpoint": format!("{ISSUER}/owner"),
        "grant_types_supported": [],
        "claim_token_formats_supported": [],
        "uma_profiles_supported": [],
        "sayso_audit_endpoint": format!("{ISSUER}/audit/access"),
    })
    .to_string()
}

#[async_trait]
impl Fetch for Wire {
    async fn send(&self, request: Request<Bytes>, _limits: Limits) -> Result<Response<Bytes>, FetchError> {
        let path = request.uri().path().to_owned();
        let logins = self.sent_to("/token").len();
        self.sent.lock().unwrap().push(request);
        let answer = if path == AUTHORITY_PATHS[0] {
            Ok((200, metadata(self.issuer.unwrap_or(ISSUER))))
        } else if path == "/token" {
            let pat = json!({ "access_token": format!("pat-{logins}"), "token_type": "Bearer", "expires_in": 3600 });
            self.logins.lock().unwrap().pop_front().unwrap_or(Ok((200, pat.to_string())))
        } else {
            self.answers.lock().unwrap().pop_front().unwrap_or(Err(FetchError::Unreachable))
        };
        let (status, body) = answer?;
        Ok(Response::builder().status(status).body(Bytes::from(body)).unwrap())
    }
}

fn authority(answers: impl IntoIterator<Item = Answer>) -> (HttpAuthority, Arc<Wire>, Arc<AtomicI64>) {
    let wire = Arc::new(Wire { answers: Mutex::new(answers.into_iter().collect()), ..Wire::default() });
    let time = Arc::new(AtomicI64::new(NOW.0));
    let read = Arc::clone(&time);
    let clock: Clock = Arc::new(move || Timestamp(read.load(Ordering::SeqCst)));
    let client_id = "https://gw.example.test".parse().unwrap();
    (HttpAuthority::new(wire.clone(), ISSUER, client_id, "alice".parse().unwrap(), key(7), clock), wire, time)
}

fn ok(body: serde_json::Value) -> Answer {
    Ok((200, body.to_string()))
}

fn bearer(request: &Request<Bytes>) -> &str {
    request.headers()["authorization"].to_str().unwrap()
}

fn request_for(id: &str) -> PermissionRequest {
    PermissionRequest { resource_id: id.parse().unwrap(), resource_scopes: vec!["x:y".parse().unwrap()] }
}

// CORE-81, FED-47
#[tokio::test]
async fn questions_carry_a_pat_that_was_asked_for_with_our_signature() {
    let live = Introspection::Live(Box::new(reusable()));
    let (authority, wire, _) = authority([ok(live.to_json()), ok(json!({ "consumed": true }))]);
    assert_eq!(authority.introspect("a token+1").await.unwrap(), live);
    assert!(authority.consume("a token+1", "attempt-9").await.unwrap().consumed);
    let [login] = wire.sent_to("/token").try_into().unwrap();
    let form: Vec<(String, String)> = url::form_urlencoded::parse(login.body()).into_owned().collect();
    assert!(form.contains(&("grant_type".into(), "client_credentials".into())));
    assert!(form.contains(&("scope".into(), "uma_protection".into())));
    assert!(form.contains(&("client_id".into(), "https://gw.example.test".into())));
    let facts = Facts {
        method: "POST",
        scheme: "https",
        authority: "as.example.test",
        path: "/token",
        query: None,
        headers: login.headers(),
        body: Body::Whole(login.body()),
    };
    let proof =
        sig::read(login.headers()).unwrap().verify(&facts, key(7).verifying(), &Profile::default(), NOW);
    assert!(proof.unwrap().covers_body);
    let introspect = &wire.sent_to("/introspect")[0];
    assert_eq!((bearer(introspect), &introspect.body()[..]), ("Bearer pat-0", &b"token=a+token%2B1"[..]));
    let consume = &wire.sent_to("/consume")[0];
    assert_eq!(&consume.body()[..], b"token=a+token%2B1&attempt=attempt-9");
}

// D-11
#[tokio::test]
async fn a_round_is_named_whole() {
    let state = sayso_protocol::canon::s256_bytes(b"asked");
    let live = Introspection::Live(Box::new(sayso_protocol::payload::protection::LiveGrant {
        bind: true,
        continuation: Some(state.clone()),
        ..crate::scripted::single_use()
    }));
    let told = json!({ "consumed": true });
    let (authority, wire, _) =
        authority([ok(live.to_json()), ok(told.clone()), ok(told), Ok((204, String::new()))]);
    assert_eq!(authority.introspect_round("t", &state).await.unwrap(), live);
    let operation = crate::scripted::single_use().operation.unwrap();
    let key = key(7).verifying().thumbprint();
    let silent = Continuation { state: state.clone(), answers: None, operation, key: key.clone() };
    let said = Continuation { answers: Some(state.clone()), ..silent.clone() };
    assert!(authority.resume("t", "try", &silent).await.unwrap().consumed);
    assert!(authority.resume("t", "try", &said).await.unwrap().consumed);
    let form = |path: &str, nth: usize| -> Vec<(String, String)> {
        url::form_urlencoded::parse(wire.sent_to(path)[nth].body()).into_owned().collect()
    };
    let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    let about = [pair("token", "t"), pair("continuation", state.as_str())];
    assert_eq!(form("/introspect", 0), about);
    let mut members = vec![
        pair("token", "t"),
        pair("attempt", "try"),
        pair("continuation", state.as_str()),
        pair("tool", "execute_trade"),
        pair("params_s256", silent.operation.params_s256.as_str()),
        pair("jkt", key.as_str()),
    ];
    assert_eq!(form("/consume", 0), members);
    members.push(pair("answers_s256", state.as_str()));
    assert_eq!(form("/consume", 1), members);

    let report = AccessReport {
        family: "f".parse().unwrap(),
        tool: "execute_trade".parse().unwrap(),
        params_s256: None,
        summary: None,
        continuation: Some(state.clone()),
    };
    authority.report(&report).await.unwrap();
    let reported: serde_json::Value =
        serde_json::from_slice(wire.sent_to("/audit/access")[0].body()).unwrap();
    assert_eq!(reported, json!({ "family": "f", "tool": "execute_trade", "continuation": state.as_str() }));
}

#[tokio::test]
async fn a_pat_is_renewed_before_it_ends_and_once_after_a_401() {
    let refused = || Ok((401, String::new()));
    let dead = || ok(json!({ "active": false, "error": "expired" }));
    let (authority, wire, time) =
        authority([dead(), dead(), dead(), refused(), dead(), refused(), refused()]);
    let ask = || authority.introspect("t");
    ask().await.unwrap();
    time.fetch_add(3539, Ordering::SeqCst);
    ask().await.unwrap();
    assert_eq!(wire.sent_to("/token").len(), 1);
    time.fetch_add(1, Ordering::SeqCst);
    ask().await.unwrap();
    assert_eq!(wire.sent_to("/token").len(), 2);
    ask().await.unwrap();
    assert_eq!(wire.sent_to("/token").len(), 3);
    assert_eq!(bearer(wire.sent_to("/introspect").last().unwrap()), "Bearer pat-2");
    assert_eq!(ask().await.unwrap_err(), Unavailable::NotAdmitted);
    assert_eq!(wire.sent_to("/token").len(), 4);
}

// CORE-22
#[tokio::test]
async fn who_is_not_admitted_says_so_and_does_not_hammer() {
    let (authority, wire, time) = authority([]);
    let pending = || Ok((403, json!({ "error": "authorization_pending" }).to_string()));
    wire.logins.lock().unwrap().extend([pending(), pending()]);
    for _ in 0..5 {
        assert_eq!(authority.introspect("t").await.unwrap_err(), Unavailable::NotAdmitted);
    }
    assert_eq!(wire.sent_to("/token").len(), 1);
    assert!(wire.sent_to("/introspect").is_empty());
    time.fetch_add(1, Ordering::SeqCst);
    assert!(authority.introspect("t").await.is_err());
    assert_eq!(wire.sent_to("/token").len(), 2);
}

#[tokio::test]
async fn tickets_and_registry_faults_are_told_apart() {
    let fault = |error: &str| Ok((400, json!({ "error": error }).to_string()));
    let (authority, wire, _) = authority([
        Ok((201, json!({ "ticket": "t1", "family": "n1" }).to_string())),
        fault("invalid_resource_id"),
        fault("invalid_scope"),
        fault("invalid_request"),
        Ok((201, json!({ "ticket": "" }).to_string())),
        ok(json!({ "ticket": "t2" })),
    ]);
    let ask = async || {
        let answer = authority.permission(&request_for("vault/x")).await;
        answer.map(|answer| answer.map(|reply| (reply.ticket, reply.family)))
    };
    assert_eq!(ask().await, Ok(Ok(("t1".to_owned(), "n1".parse().ok()))));
    assert_eq!(ask().await, Ok(Err(PermissionFault::InvalidResourceId)));
    assert_eq!(ask().await, Ok(Err(PermissionFault::InvalidScope)));
    for _ in 0..3 {
        assert_eq!(ask().await, Err(Unavailable::Nonsense));
    }
    let sent = &wire.sent_to("/perm")[0];
    assert_eq!(&sent.body()[..], br#"{"resource_id":"vault/x","resource_scopes":["x:y"]}"#);
}

// CORE-95
#[tokio::test]
async fn whether_something_was_done_is_never_guessed() {
    let table: [(Answer, bool); 9] = [
        (Err(FetchError::Unreachable), true),
        (Err(FetchError::Interrupted), false),
        (Err(FetchError::TimedOut), false),
        (Err(FetchError::TooLarge), false),
        (Ok((403, String::new())), true),
        (Ok((500, String::new())), false),
        (Ok((429, String::new())), true),
        (Ok((200, "{".into())), false),
        (Ok((200, r#"{"consumed":true,"consumed":false}"#.into())), false),
    ];
    for (answer, nothing_done) in table {
        let (authority, wire, _) = authority([answer.clone(), ok(json!({ "consumed": true }))]);
        let gone = authority.consume("t", "a").await.unwrap_err();
        assert_eq!(gone.nothing_done(), nothing_done, "{answer:?}");
        assert_eq!(wire.sent_to("/consume").len(), 1, "{answer:?}");
    }
}

// CORE-96
#[tokio::test]
async fn nonsense_is_not_an_introspection() {
    for body in [r#"{"active":true}"#, "null", "", r#"{"active":"yes"}"#, r#"{"active":false,"active":true}"#]
    {
        let (authority, ..) = authority([Ok((200, body.to_owned()))]);
        assert_eq!(authority.introspect("t").await.unwrap_err(), Unavailable::Nonsense, "{body}");
    }
}

// CORE-08
#[tokio::test]
async fn an_authority_that_names_itself_otherwise_is_not_asked() {
    let wire = Arc::new(Wire { issuer: Some("https://as.example.test/"), ..Wire::default() });
    let client_id = "https://gw.example.test".parse().unwrap();
    let authority = HttpAuthority::new(
        wire.clone(),
        ISSUER,
        client_id,
        "alice".parse().unwrap(),
        key(7),
        Arc::new(|| NOW),
    );
    assert!(authority.introspect("t").await.is_err());
    assert!(wire.sent_to("/token").is_empty());
}

// CORE-22, CORE-96: what is no answer is never read as one, and a redirect leads nowhere.
#[tokio::test]
async fn no_answer_is_never_a_yes() {
    let refusals = [302, 307, 400, 403, 404, 429, 500, 503].map(|status| Ok((status, String::new())));
    let odd =
        ["<html>", r#"{"active":true,"exp":17"#, "[]", "true", r#"{"active":1}"#, r#"{"ticket":["t"]}"#];
    let gone = [
        FetchError::Unreachable,
        FetchError::Interrupted,
        FetchError::TimedOut,
        FetchError::TooLarge,
        FetchError::Refused,
        FetchError::Status(302),
    ];
    let answers = refusals.into_iter().chain(odd.map(|body| Ok((200, body.to_owned())))).chain(gone.map(Err));
    for answer in answers {
        let scripted = || authority([answer.clone(), answer.clone()]);
        let (authority, wire, _) = scripted();
        assert!(authority.introspect("t").await.is_err(), "{answer:?}");
        assert_eq!(wire.sent_to("/introspect").len(), 1, "{answer:?}");
        let (authority, ..) = scripted();
        assert!(authority.permission(&request_for("vault/x")).await.is_err(), "{answer:?}");
        let (authority, ..) = scripted();
        assert!(authority.consume("t", "a").await.is_err(), "{answer:?}");
        if !matches!(answer, Ok((200, _))) {
            let report = AccessReport {
                family: "f".parse().unwrap(),
                tool: "t".parse().unwrap(),
                params_s256: None,
                summary: None,
                continuation: None,
            };
            let (authority, ..) = scripted();
            assert!(authority.report(&report).await.is_err(), "{answer:?}");
        }
    }
}
