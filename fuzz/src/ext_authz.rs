//! A gateway's check before a scripted authority: `METHOD TARGET GRANT [sign] [joined]`, header lines, an empty line, a
//! body, passed on as a gateway would; or `bytes` and whatever a message may be. Whatever comes, the answer says one
//! thing, and nothing is let through that the core would not, or of which a part may be missing (CORE-116, MCP-09).

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use http::HeaderMap;
use sayso_enforce::authority::keys::KnownKeys;
use sayso_enforce::listing::Reader;
use sayso_enforce::{
    Authority, Body, Clock, Enforcement, Engine, Head, Incoming, Replay, ServerConfig, ServerResource,
    Verdict,
};
use sayso_ext_authz::grpc::message::{
    Attributes, CheckRequest, CheckResponse, Entry, HeaderList, HttpRequest, Line, Request, Told,
};
use sayso_ext_authz::{ExtAuthz, Outward, Whole};
use sayso_protocol::payload::edition::Edition;

use super::engine::{Door, NOW, Scripted, key, resource, shown, tools};
use super::{framed, ready};

/// The length at which the gateway of these inputs cuts a body.
const CEILING: usize = 4 << 10;
const FLAG: &str = "x-envoy-auth-partial-body";

/// The body.
pub fn check(bytes: &[u8]) {
    let (line, rest) = framed::first_line(bytes);
    let words: Vec<&str> = line.split(' ').collect();
    let [method, target, grant, more @ ..] = words.as_slice() else {
        if line == "bytes" {
            let house = authorizer(&Arc::new(Scripted::knowing("dead")));
            if let Some(answer) = ready::with_tasks(house.answer_bytes(Bytes::copy_from_slice(rest))) {
                says_one_thing(&answer);
            }
        }
        return;
    };
    let (headers, body) = framed::message(rest);
    let (Ok(method), Ok(uri)) = (method.parse(), target.parse()) else { return };
    let mut incoming = Incoming {
        head: Head { method, target: uri, headers },
        body: Body::Whole(Bytes::copy_from_slice(body)),
    };
    if more.contains(&"sign") && shown(&mut incoming, body).is_none() {
        return;
    }
    let joined = more.contains(&"joined");
    let authority = Arc::new(Scripted::knowing(grant));
    let http = Some(message(&incoming.head, target, body, joined));
    let request = CheckRequest { attributes: Some(Attributes { request: Some(Request { http }) }) };
    let answer = ready::with_tasks(authorizer(&authority).answer(request));
    if says_one_thing(&answer) {
        allowed(&answer, incoming, body, joined, grant);
    } else {
        assert!(!authority.asked().contains(&"consume"), "spent, and refused");
    }
}

/// Whether it is a yes.
fn says_one_thing(answer: &CheckResponse) -> bool {
    let code = answer.status.as_ref().expect("every answer has a status").code;
    match answer.told.as_ref().expect("and says what to do") {
        Told::Ok(_) => {
            assert_eq!(code, 0);
            true
        }
        Told::Denied(denied) => {
            let status = denied.status.as_ref().expect("a denial has a status").code;
            assert!(code != 0 && (400..600).contains(&status), "a no that reads as a yes: {code}, {status}");
            assert!(denied.body.starts_with('{'), "a no without a reason");
            false
        }
    }
}

/// What was let through is whole, and the core lets it through as well.
fn allowed(answer: &CheckResponse, mut incoming: Incoming, body: &[u8], joined: bool, grant: &str) {
    let headers = &incoming.head.headers;
    let lines = |name: &str| headers.get_all(name).iter().map(|value| value.as_bytes()).collect::<Vec<_>>();
    let declared = lines("content-length") == [body.len().to_string().as_bytes()];
    assert!(body.len() < CEILING, "as long as the gateway cuts at");
    assert!(lines(FLAG) == [b"false"] || (lines(FLAG).is_empty() && declared), "perhaps not whole");
    let Some(Told::Ok(ok)) = &answer.told else { return };
    for name in ["authorization", "signature", "signature-input", "content-digest", "cookie"] {
        assert!(ok.headers_to_remove.iter().any(|removed| removed == name), "{name} is passed on");
    }
    if joined {
        incoming.head.headers = join(headers).into_iter().collect();
        let odd = |(name, value): (&http::HeaderName, &http::HeaderValue)| {
            name.as_str().starts_with("mcp-") && value.as_bytes().contains(&b',')
        };
        assert!(!incoming.head.headers.iter().any(odd), "several lines in one");
    }
    let clock: Clock = Arc::new(|| NOW);
    let authority: Arc<dyn Authority> = Arc::new(Scripted::knowing(grant));
    let core = Engine::new(resource(), authority, Arc::new(Replay::new(NOW.plus(-300))), clock);
    let verdict = ready::with_tasks(core.decide(&incoming, &Door));
    assert!(matches!(verdict, Verdict::Permit(_)), "let through, and not by the core");
}

fn join(headers: &HeaderMap) -> Vec<(http::HeaderName, http::HeaderValue)> {
    let mut joined: BTreeMap<&str, Vec<u8>> = BTreeMap::new();
    for (name, value) in headers {
        let known = joined.entry(name.as_str()).or_default();
        if !known.is_empty() {
            known.push(b',');
        }
        known.extend_from_slice(value.as_bytes());
    }
    let pair = |(name, value): (&str, Vec<u8>)| Some((name.parse().ok()?, value.try_into().ok()?));
    joined.into_iter().filter_map(pair).collect()
}

fn message(head: &Head, target: &str, body: &[u8], joined: bool) -> HttpRequest {
    let copy = |bytes: &[u8]| Bytes::copy_from_slice(bytes);
    let mut message = HttpRequest {
        method: copy(head.method.as_str().as_bytes()),
        path: copy(target.as_bytes()),
        size: i64::try_from(body.len()).expect("a short body"),
        ..HttpRequest::default()
    };
    if joined {
        let entry = |(name, value): (http::HeaderName, http::HeaderValue)| Entry {
            key: copy(name.as_str().as_bytes()),
            value: copy(value.as_bytes()),
        };
        message.headers = join(&head.headers).into_iter().map(entry).collect();
        message.body = copy(body);
    } else {
        let line = |(name, value): (&http::HeaderName, &http::HeaderValue)| Line {
            key: copy(name.as_str().as_bytes()),
            value: Bytes::new(),
            raw_value: copy(value.as_bytes()),
        };
        message.header_map = Some(HeaderList { headers: head.headers.iter().map(line).collect() });
        message.raw_body = copy(body);
    }
    message
}

fn authorizer(authority: &Arc<Scripted>) -> ExtAuthz {
    let authority: Arc<dyn Authority> = Arc::<Scripted>::clone(authority);
    let resource = ServerResource {
        path: "/mcp".into(),
        aliases: Vec::new(),
        realm: "vault".parse().expect("a realm"),
        owner: "alice".parse().expect("an owner"),
        as_uri: "https://as.example.test".into(),
        authority,
        edition: Edition::default(),
        tools: tools(),
        enforcement: Enforcement::Uma,
        open_methods: Vec::new(),
        allowed_origins: vec!["https://app.example.test".into()],
        accept_uncovered_body: false,
        serve_query: false,
    };
    let config = ServerConfig {
        public_url: "https://gw.example.test".into(),
        hosts: Vec::new(),
        key: key(),
        readers: vec![Reader {
            issuer: "https://as.example.test".into(),
            keys: Arc::new(KnownKeys(Vec::new())),
        }],
        resources: vec![resource],
        body_limit: CEILING,
    };
    // The replay cache remembers from before any signature of these inputs.
    let first = Mutex::new(true);
    let clock: Clock = Arc::new(move || {
        let first = std::mem::take(&mut *first.lock().expect("a clock is not poisoned"));
        if first { NOW.plus(-300) } else { NOW }
    });
    ExtAuthz::new(config, Whole::ByFlag, Outward::default(), clock, None).expect("a fixed server")
}
