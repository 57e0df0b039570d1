//! The header's grammar on hostile and foreign input, and the round trip of our own challenges.

use super::*;
use crate::payload::edition::Edition;
use crate::payload::remediation::Attempted;
use proptest::prelude::*;

const AS: &str = "https://as.example.test";
const TAIL: &str = r#"error="insufficient_authorization", as_uri="https://as.example.test", ticket="tkt_1", resource_metadata="https://gw.example.test/.well-known/oauth-protected-resource/mcp""#;

fn read(lines: &[&str]) -> Result<Option<ChallengeObject>, BadChallenge> {
    let mut headers = HeaderMap::new();
    for line in lines {
        headers.append(WWW_AUTHENTICATE, HeaderValue::from_bytes(line.as_bytes()).unwrap());
    }
    decode(&headers)
}

fn challenge(realm: &str, ticket: &str, scopes: &[&str]) -> Challenge {
    let scopes: Vec<Scope> = scopes.iter().map(|scope| scope.parse().unwrap()).collect();
    let attempted = Attempted::new(
        Edition::Sept11,
        "https://gw.example.test",
        "alice-vault/execute_trade".parse().unwrap(),
        "execute_trade".parse().unwrap(),
        scopes.clone(),
    );
    Challenge {
        realm: realm.parse().unwrap(),
        as_uri: AS.into(),
        ticket: ticket.into(),
        resource_metadata: "https://gw.example.test/.well-known/oauth-protected-resource/mcp".into(),
        scopes,
        remediation: attempted.unwrap().remediation(AS, ticket),
    }
}

// CORE-15
#[test]
fn one_uma_challenge_is_found_among_others() {
    for line in [
        format!(r#"UMA realm="vault", {TAIL}"#),
        format!(r#"Basic realm="a, b", UMA realm="vault", {TAIL}"#),
        format!(r#"Negotiate YWJjZA==, UMA realm="vault", {TAIL}"#),
        format!(r#"DPoP algs="ES256 EdDSA", UMA realm="vault", {TAIL}"#),
        format!(r#"UMA realm="vault", {TAIL}, Bearer realm="x", ticket="tkt_WRONG""#),
        format!(r#"Bearer realm="x", ticket="tkt_WRONG", ticket="again", UMA realm="vault", {TAIL}"#),
        format!(r#"uMa realm="vault", {TAIL}"#),
        format!(r#"UMA realm="vault", {}"#, TAIL.replace("as_uri", "AS_URI").replace("ticket", "Ticket")),
        format!(r#"UMA realm = "vault", {}"#, TAIL.replace("=\"", " =\t\"")),
        format!(r#"UMA realm="vault",{}"#, TAIL.replace(", ", ",")),
        format!(r#"UMA realm="x, UMA as_uri=\"https://evil.example.test\", ticket=\"tkt_evil\"", {TAIL}"#),
        format!(r#"UMA realm="a\\", {TAIL}"#),
        format!(r#"UMA x_as_uri="https://evil.example.test", x-ticket="tkt_evil", {TAIL}"#),
        format!(r#"UMA realm=vault, {}"#, TAIL.replace("\"tkt_1\"", "tkt_1")),
        format!(r#", , UMA realm="vault", {TAIL} , ,"#),
        format!(r#"UMA , realm="vault", {TAIL}, x-new="1""#),
        format!(r#"UMA realm="vault", {TAIL}, pad="{}""#, "x".repeat(40_000)),
    ] {
        let found = read(&[&line]).unwrap().unwrap_or_else(|| panic!("none in {line:.80}"));
        assert_eq!((found.as_uri.as_str(), found.ticket.as_str()), (AS, "tkt_1"), "{line:.80}");
    }
}

#[test]
fn several_lines_are_one_list() {
    let uma = format!(r#"UMA realm="vault", {TAIL}"#);
    assert_eq!(read(&["Bearer", &uma, "Negotiate a=="]).unwrap().unwrap().ticket, "tkt_1");
    assert_eq!(read(&[&uma, &uma]), Err(BadChallenge::Several));
    assert_eq!(read(&[&uma, r#"ticket="tkt_evil""#]), Err(BadChallenge::Malformed));
}

#[test]
fn another_scheme_is_no_challenge_of_ours() {
    for line in [
        r#"UMAX as_uri="https://evil.example.test", ticket="tkt_evil""#,
        r#"Bearer realm="UMA as_uri=\"https://evil.example.test\", ticket=\"t\"""#,
        "Negotiate",
        "",
        " , ",
    ] {
        assert_eq!(read(&[line]), Ok(None), "{line}");
    }
    assert_eq!(decode(&HeaderMap::new()), Ok(None));
}

#[test]
fn what_breaks_the_grammar_is_refused_whole() {
    let uma = format!(r#"UMA realm="vault", {TAIL}"#);
    let many = vec!["Basic"; 40].join(", ");
    for (line, fault) in [
        (
            r#"UMA realm="vault, as_uri="https://as.example.test", ticket="tkt_1""#.to_owned(),
            BadChallenge::Malformed,
        ),
        (r#"UMA realm="vault", as_uri="https://as.example.test""#.to_owned(), BadChallenge::Incomplete),
        (format!(r#"{uma}, ticket="tkt_2""#), BadChallenge::Malformed),
        (format!(r#"{uma}, TICKET=tkt_1"#), BadChallenge::Malformed),
        (format!("{uma}\\"), BadChallenge::Malformed),
        (format!("{uma} x"), BadChallenge::Malformed),
        (format!(r#"realm="x", {uma}"#), BadChallenge::Malformed),
        (format!(r#"Negotiate abc, ticket=x, {uma}"#), BadChallenge::Malformed),
        (format!("{uma}, authorization_remediation=\"!\""), BadChallenge::Malformed),
        (format!("{uma}, pad=\"{}\"", "x".repeat(MAX_BYTES)), BadChallenge::Malformed),
        (format!("{many}, {uma}"), BadChallenge::Malformed),
        (uma.replace("insufficient_authorization", "invalid_token"), BadChallenge::NotOne),
        (uma.replace("as_uri=\"https://as.example.test\"", "as_uri=\"\""), BadChallenge::Incomplete),
        ("UMA\"x\"".to_owned(), BadChallenge::Malformed),
    ] {
        assert_eq!(read(&[&line]), Err(fault), "{line:.80}");
    }
}

// CORE-28, CORE-29
#[test]
fn a_remediation_that_names_others_is_a_contradiction() {
    let mut forged = challenge("vault", "tkt_1", &["trades:execute"]);
    forged.ticket = "tkt_2".into();
    let mut headers = HeaderMap::new();
    headers.insert(WWW_AUTHENTICATE, encode(&forged).unwrap());
    assert_eq!(decode(&headers), Err(BadChallenge::Contradiction));
}

#[test]
fn what_cannot_stand_in_a_header_is_not_encoded() {
    assert!(encode(&challenge("vault", "tkt\n1", &[])).is_err());
}

#[test]
fn the_order_of_the_parameters_is_fixed() {
    let value = encode(&challenge("vault", "tkt_1", &["trades:execute"])).unwrap();
    let text = value.to_str().unwrap();
    let names =
        ["realm=", "error=", "as_uri=", "ticket=", "resource_metadata=", "scope=", "authorization_rem"];
    let at: Vec<usize> = names.iter().map(|name| text.find(name).unwrap()).collect();
    assert!(at.is_sorted() && text.starts_with("UMA realm="), "{text}");
}

proptest! {
    // CORE-14, CORE-25
    #[test]
    fn all_seven_survive(realm in r#"[ -~äñ✓]{1,40}"#, ticket in r#"[!-~]{1,80}"#, scopes in prop::collection::vec("[a-z\":,\\\\]{1,12}", 0..4)) {
        let scopes: Vec<&str> = scopes.iter().map(String::as_str).collect();
        let sent = challenge(&realm, &ticket, &scopes);
        let mut headers = HeaderMap::new();
        headers.append(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer realm=\"x\""));
        headers.append(WWW_AUTHENTICATE, encode(&sent).unwrap());
        prop_assert_eq!(decode(&headers).unwrap().unwrap(), sent.object());
    }

    #[test]
    fn no_bytes_make_it_panic(bytes in prop::collection::vec(any::<u8>(), 0..200), junk in r#"[UMA="\\, \tx-]{0,60}"#) {
        let mut headers = HeaderMap::new();
        for line in [&bytes[..], junk.as_bytes()] {
            if let Ok(value) = HeaderValue::from_bytes(line) {
                headers.append(WWW_AUTHENTICATE, value);
            }
        }
        let _ = decode(&headers);
    }
}
