//! Forms read once and strictly, and answers that come back as they were given.

use super::*;

fn fault(form: &str) -> Option<TokenError> {
    TokenRequest::read(form.as_bytes()).err()
}

#[test]
fn a_form_is_read_once_and_strictly() {
    let good = "grant_type=urn%3Aietf%3Aparams%3Aoauth%3Agrant-type%3Auma-ticket&ticket=t";
    assert!(
        matches!(TokenRequest::read(good.as_bytes()), Ok(TokenRequest::Ticket(request)) if !request.decline)
    );
    assert_eq!(fault(""), Some(TokenError::InvalidRequest));
    assert_eq!(fault(&format!("{good}&ticket=u")), Some(TokenError::InvalidRequest));
    assert_eq!(fault(&format!("{good}&decline=maybe")), Some(TokenError::InvalidRequest));
    assert_eq!(fault("grant_type=password"), Some(TokenError::UnsupportedGrantType));
    assert_eq!(fault(&"a".repeat(MAX_FORM + 1)), Some(TokenError::InvalidRequest));
}

// CORE-36
#[test]
fn an_identity_assertion_is_no_grant() {
    let form = "grant_type=urn%3Aietf%3Aparams%3Aoauth%3Agrant-type%3Ajwt-bearer&assertion=x";
    assert_eq!(fault(form), Some(TokenError::UnsupportedGrantType));
}

// BASE-05, CORE-65
#[test]
fn answers_round_trip() {
    let reply = TokenReply::Granted { access_token: "a".into(), expires_in: 5, receipt: "r".into() };
    let body = serde_json::to_vec(&reply.body()).unwrap();
    assert!(matches!(Answer::read(200, &body), Ok(Answer::Granted { expires_in: 5, .. })));
    let reply = TokenReply::Submitted { ticket: "t".into(), interval: 5 };
    assert_eq!(reply.status(), 403);
    let body = serde_json::to_vec(&reply.body()).unwrap();
    assert!(matches!(Answer::read(403, &body), Ok(Answer::Submitted { interval: Some(5), .. })));
    assert!(Answer::read(200, br#"{"access_token":"a","expires_in":1,"token_type":"Bearer"}"#).is_err());
}

// CORE-35, CORE-38
#[test]
fn a_demand_for_an_identity_is_no_demand_for_an_agreement() {
    let providers = ["https://idp.example".to_owned()];
    let scopes = ["a".parse().unwrap(), "b".parse().unwrap()];
    let claim = RequiredIdentity::of(&providers, "https://as.example", "https://gw.example", &scopes);
    let reply = TokenReply::Identify { ticket: "t".into(), claim: Box::new(claim.clone()) };
    let body = reply.body();
    assert_eq!((reply.status(), &body["error"]), (403, &"need_info".into()));
    assert!(body["required_claims"][0].get("terms_template").is_none());
    assert_eq!(body["required_claims"][0]["scope"], "a b");
    let read = Answer::read(403, body.to_string().as_bytes());
    let claims = match read {
        Ok(Answer::NeedInfo { claims, .. }) => claims,
        _ => vec![],
    };
    assert_eq!(claims, [Demand::Identity(Box::new(claim))]);
}

#[test]
fn a_doubt_brings_the_ticket_back_and_a_no_does_not() {
    let reply = TokenReply::Doubted { ticket: "t".into(), description: "d".into() };
    assert_eq!(reply.status(), 403);
    let body = reply.body();
    assert_eq!(body["error"], "request_denied");
    assert!(matches!(
        Answer::read(403, body.to_string().as_bytes()),
        Ok(Answer::Doubted { ticket, .. }) if ticket == "t"
    ));
    let no = TokenReply::refused(TokenError::RequestDenied, "no").body();
    assert!(matches!(Answer::read(403, no.to_string().as_bytes()), Ok(Answer::Error { .. })));
}
