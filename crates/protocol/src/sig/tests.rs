//! The profile against its vectors, the RFCs' own examples, and hostile input.
//!
//! The vectors in `vectors/sig` were signed by another implementation; each names the register rows it checks.

use super::*;
use crate::key::SigningKey;
use http::{HeaderName, HeaderValue};
use proptest::prelude::*;
use serde::Deserialize;

mod vectors;

const NOW: Timestamp = Timestamp(1_800_000_000);

/// A request that owns its parts, so that a test can change one.
#[derive(Debug, Clone, Deserialize)]
struct Sent {
    method: String,
    scheme: String,
    authority: String,
    path: String,
    query: Option<String>,
    headers: Vec<(String, String)>,
    body: Option<String>,
}

impl Sent {
    fn headers(&self) -> HeaderMap {
        let mut map = HeaderMap::new();
        for (name, value) in &self.headers {
            let name = HeaderName::from_bytes(name.as_bytes()).unwrap();
            map.append(name, HeaderValue::from_bytes(value.as_bytes()).unwrap());
        }
        map
    }

    fn facts<'a>(&'a self, headers: &'a HeaderMap) -> Facts<'a> {
        Facts {
            method: &self.method,
            scheme: &self.scheme,
            authority: &self.authority,
            path: &self.path,
            query: self.query.as_deref(),
            headers,
            body: self.body.as_deref().map_or(Body::Unavailable, |body| Body::Whole(body.as_bytes())),
        }
    }

    fn sign(&mut self, key: &SigningKey, options: &SignOptions<'_>) -> Result<(), SigFault> {
        let mut headers = self.headers();
        sign(&self.facts(&headers), key, NOW, options)?.insert_into(&mut headers);
        let text = |value: &HeaderValue| value.to_str().unwrap().to_owned();
        self.headers = headers.iter().map(|(name, value)| (name.as_str().to_owned(), text(value))).collect();
        Ok(())
    }

    fn verify(&self, key: &VerifyingKey, profile: &Profile, now: Timestamp) -> Result<Proof, SigFault> {
        let headers = self.headers();
        let read = read(&headers)?;
        let proof = read.verify(&self.facts(&headers), key, profile, now);
        // Whoever looks before it has a key never turns away what the key would prove.
        assert!(proof.is_err() || read.foresee(&self.facts(&headers), profile, now).is_ok());
        proof
    }

    fn field(&mut self, name: &str) -> &mut String {
        &mut self.headers.iter_mut().find(|(known, _)| known == name).unwrap().1
    }
}

fn key(byte: u8) -> SigningKey {
    SigningKey::from_seed(&[byte; 32]).unwrap()
}

fn post() -> Sent {
    Sent {
        method: "POST".into(),
        scheme: "https".into(),
        authority: "gateway.example".into(),
        path: "/mcp".into(),
        query: None,
        headers: vec![("authorization".into(), "PoP token-1".into())],
        body: Some(r#"{"jsonrpc":"2.0"}"#.into()),
    }
}

// BASE-10: RFC 9421 appendix B.2.6
#[test]
fn the_ed25519_example_of_rfc_9421() {
    let key = SigningKey::from_pem(
        "-----BEGIN PRIVATE KEY-----\nMC4CAQAwBQYDK2VwBCIEIJ+DYvh6SEqVTm50DFtMDoQikTmiCqirVv9mWG9qfSnF\n\
         -----END PRIVATE KEY-----\n",
    )
    .unwrap();
    let sent = Sent {
        authority: "example.com".into(),
        path: "/foo".into(),
        query: Some("param=Value&Pet=dog".into()),
        headers: [
            ("date", "Tue, 20 Apr 2021 02:07:55 GMT"),
            ("content-type", "application/json"),
            ("content-length", "18"),
        ]
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .into(),
        ..post()
    };
    let names = ["date", "@method", "@path", "@authority", "content-type", "content-length"];
    let params = r#"("date" "@method" "@path" "@authority" "content-type" "content-length");created=1618884473;keyid="test-key-ed25519""#;
    let headers = sent.headers();
    let request = Request { facts: &sent.facts(&headers), content_digest: None, query_in_path: false };
    let base = base::signature_base(&names.map(str::to_owned), params, &request).unwrap();
    assert_eq!(
        base,
        format!(
            "\"date\": Tue, 20 Apr 2021 02:07:55 GMT\n\"@method\": POST\n\"@path\": /foo\n\
             \"@authority\": example.com\n\"content-type\": application/json\n\"content-length\": 18\n\
             \"@signature-params\": {params}"
        )
    );
    assert_eq!(
        crate::b64::encode_standard(key.sign(base.as_bytes()).unwrap()),
        "wqcAqbmYJ2ji2glfAMaRy4gruYYnx2nEFN2HN6jrnDnQCK1u02Gb04v9EDgwUPiu4A0w6vuQv5lIp5WPpBKRCw=="
    );
}

// BASE-11: RFC 9530 appendices A and B
#[test]
fn the_digests_of_rfc_9530() {
    let line = "{\"hello\": \"world\"}\n";
    assert_eq!(content_digest(line.as_bytes()), "sha-256=:RK/0qy18MlBSVnWgjwz6lZEWjP/lF5HF9bvEF8FabDg=:");
    assert_eq!(
        content_digest(line.trim().as_bytes()),
        "sha-256=:X48E9qOokqqrvdts8nOJRJN3OWDUoyWxBf7kbu9DBPE=:"
    );
}

// CORE-56, CORE-61, O-22, O-23
#[test]
fn what_we_sign_reads_as_the_drafts_show_it() {
    let (key, mut sent) = (key(7), post());
    sent.sign(&key, &SignOptions::default()).unwrap();
    let kid = key.kid();
    assert_eq!(
        *sent.field("signature-input"),
        format!(
            r#"sig1=("@method" "@authority" "@path" "authorization" "content-digest");created={NOW};keyid="{kid}";alg="ed25519""#
        )
    );
    let proof = sent.verify(key.verifying(), &Profile::default(), NOW).unwrap();
    assert!(proof.covers_body && proof.covers("content-digest") && !proof.covers("@query"));
    assert_eq!((proof.created, proof.thumbprint.as_str()), (NOW, kid.as_str()));
    assert_eq!(read(&sent.headers()).unwrap().keyid(), Some(kid.as_str()));
}

// CORE-52, O-21
#[test]
fn what_must_be_covered_is_covered_unasked() {
    let mut sent = Sent { query: Some(String::new()), ..post() };
    sent.headers.push(("signature-agent".into(), "\"https://agent.example\"".into()));
    sent.sign(&key(7), &SignOptions::default()).unwrap();
    let proof = sent.verify(key(7).verifying(), &Profile::default(), NOW).unwrap();
    assert!(proof.covers("@query") && proof.covers("signature-agent"));
}

#[test]
fn nothing_is_signed_that_could_not_be_verified() {
    let refused = |change: fn(&mut Sent), options: &SignOptions<'_>| {
        let mut sent = post();
        change(&mut sent);
        sent.sign(&key(7), options).unwrap_err()
    };
    let plain = SignOptions::default();
    assert_eq!(refused(|sent| sent.body = None, &plain), SigFault::BodyUnavailable);
    assert_eq!(refused(|sent| sent.path = "/\n".into(), &plain), SigFault::Malformed);
    let twice: fn(&mut Sent) = |sent| sent.headers.push(("authorization".into(), "PoP token-2".into()));
    assert_eq!(refused(twice, &plain), SigFault::RepeatedHeader("authorization"));
    let absent = SignOptions { also_cover: &["x-absent"], ..plain };
    assert_eq!(refused(|_| (), &absent), SigFault::UnknownComponent);
    let broken = SignOptions { nonce: Some("n\n"), ..plain };
    assert_eq!(refused(|_| (), &broken), SigFault::Malformed);
}

// D-9: of two signatures by one key each could be shown again alone, so the proof names both.
// FED-21
#[test]
fn what_could_prove_nothing_is_foreseen_without_a_key() {
    let foresee = |sent: &Sent, now: Timestamp| {
        let headers = sent.headers();
        read(&headers).and_then(|read| read.foresee(&sent.facts(&headers), &Profile::default(), now))
    };
    let mut sent = post();
    assert_eq!(foresee(&sent, NOW), Err(SigFault::Missing));
    sent.sign(&key(1), &SignOptions::default()).unwrap();
    assert_eq!(foresee(&sent, NOW), Ok(()));
    assert_eq!(foresee(&sent, NOW.plus(61)), Err(SigFault::Stale));
    assert_eq!(foresee(&sent, NOW.plus(-61)), Err(SigFault::FromTheFuture));
    let other = Sent { body: Some("{}".into()), ..sent.clone() };
    assert_eq!(foresee(&other, NOW), Err(SigFault::DigestMismatch));
    let queried = Sent { query: Some("x".into()), ..sent.clone() };
    assert_eq!(foresee(&queried, NOW), Err(SigFault::UncoveredComponent("@query")));
    let mut bare = Sent { body: None, ..post() };
    bare.body = Some(String::new());
    bare.sign(&key(1), &SignOptions::default()).unwrap();
    bare.body = Some("{}".into());
    assert_eq!(foresee(&bare, NOW), Err(SigFault::UncoveredComponent("content-digest")));
}

#[test]
fn every_signature_of_the_key_is_named() {
    let (ours, other) = (key(7), key(9));
    let signed = |signer: &SigningKey, label: &str, nonce: &str| {
        let mut sent = post();
        sent.sign(signer, &SignOptions { nonce: Some(nonce), ..SignOptions::default() }).unwrap();
        for name in ["signature", "signature-input"] {
            *sent.field(name) = sent.field(name).replace("sig1", label);
        }
        sent
    };
    let mut sent = signed(&ours, "a", "1");
    for mut further in [signed(&other, "b", "2"), signed(&ours, "c", "3")] {
        for name in ["signature", "signature-input"] {
            let added = further.field(name).clone();
            sent.field(name).push_str(&format!(", {added}"));
        }
    }
    let proof = sent.verify(ours.verifying(), &Profile::default(), NOW).unwrap();
    let digests: Vec<_> = proof.each().map(|proof| proof.signature_s256).collect();
    assert_eq!(digests.len(), 2);
    assert_ne!(digests[0], digests[1]);
    let alone = signed(&ours, "c", "3").verify(ours.verifying(), &Profile::default(), NOW).unwrap();
    assert_eq!((alone.signature_s256, alone.each().count()), (digests[1], 1));
}

// D-9: equal bytes are one signature under any label, and a nonce tells equal requests apart.
#[test]
fn a_replay_is_known_by_its_signature() {
    let digest = |options: &SignOptions<'_>, label: &str| {
        let mut sent = post();
        sent.sign(&key(7), options).unwrap();
        for name in ["signature", "signature-input"] {
            *sent.field(name) = sent.field(name).replace("sig1", label);
        }
        sent.verify(key(7).verifying(), &Profile::default(), NOW).unwrap().signature_s256
    };
    let plain = SignOptions::default();
    assert_eq!(digest(&plain, "sig1"), digest(&plain, "other"));
    assert_ne!(digest(&plain, "sig1"), digest(&SignOptions { nonce: Some("n1"), ..plain }, "sig1"));
}

// CORE-59
#[test]
fn an_authority_is_lower_case_and_without_default_port() {
    for (url, authority) in [
        ("https://GW.example:443/mcp", "gw.example"),
        ("http://127.0.0.1:8441/mcp", "127.0.0.1:8441"),
        ("http://[::1]:80/", "[::1]"),
    ] {
        assert_eq!(authority_of(&url::Url::parse(url).unwrap()).as_deref(), Some(authority));
    }
    assert_eq!(authority_of(&url::Url::parse("data:x").unwrap()), None);
}

fn any_request() -> impl Strategy<Value = Sent> {
    let word = "[a-z0-9./_%-]{1,12}";
    (word, proptest::option::of("[ -~&&[^#]]{0,12}"), "[!-~]{1,20}", "[ -~]{0,12}", "\\PC{0,40}").prop_map(
        |(path, query, token, note, body)| Sent {
            path: format!("/{path}"),
            query,
            headers: vec![("authorization".into(), format!("PoP {token}")), ("x-note".into(), note)],
            body: Some(body),
            ..post()
        },
    )
}

/// Every way of changing one signed thing.
fn changed(sent: &Sent) -> Vec<Sent> {
    let with = |change: &dyn Fn(&mut Sent)| {
        let mut other = sent.clone();
        change(&mut other);
        other
    };
    let mut all = vec![
        with(&|other| other.method.push('X')),
        with(&|other| other.authority.insert(0, 'x')),
        with(&|other| other.path.push('x')),
        with(&|other| other.query.get_or_insert_default().push('x')),
        with(&|other| other.body.get_or_insert_default().push('x')),
    ];
    for (name, _) in &sent.headers {
        all.push(with(&|other| other.field(name).push('x')));
        all.push(with(&|other| other.headers.retain(|(known, _)| known != name)));
    }
    all
}

proptest! {
    // CORE-55, CORE-56, CORE-61
    #[test]
    fn what_is_signed_verifies_and_nothing_else_does(mut sent in any_request(), nonce in "[ -~]{0,20}") {
        let options = SignOptions { also_cover: &["x-note"], nonce: Some(&nonce), expires: Some(NOW.plus(60)), tag: Some("web-bot-auth") };
        sent.sign(&key(7), &options).unwrap();
        let (ours, profile) = (key(7), Profile::default());
        prop_assert!(sent.verify(ours.verifying(), &profile, NOW.plus(59)).is_ok());
        prop_assert_eq!(sent.verify(key(8).verifying(), &profile, NOW), Err(SigFault::BadSignature));
        for other in changed(&sent) {
            prop_assert!(other.verify(ours.verifying(), &profile, NOW).is_err(), "{:?}", other);
        }
    }

    #[test]
    fn hostile_fields_are_refused_without_a_panic(
        input in "(sig1=)?[ -~\\t]{0,80}", signature in "(sig1=:)?[ -~]{0,60}:?", digest in "(sha-256=:)?[ -~]{0,60}:?",
    ) {
        let mut sent = post();
        sent.headers.extend([
            ("signature-input".to_owned(), input),
            ("signature".to_owned(), signature),
            ("content-digest".to_owned(), digest.clone()),
        ]);
        prop_assert!(sent.verify(key(7).verifying(), &Profile::default(), NOW).is_err());
        let headers = sent.headers();
        prop_assert!(fields::require_digest(&sent.facts(&headers)).is_err());
    }

    #[test]
    fn arbitrary_bytes_are_refused_without_a_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        if let Ok(value) = HeaderValue::from_bytes(&bytes) {
            let mut headers = HeaderMap::new();
            headers.insert("signature-input", value.clone());
            headers.insert("signature", value);
            prop_assert!(read(&headers).is_err());
        }
    }
}
