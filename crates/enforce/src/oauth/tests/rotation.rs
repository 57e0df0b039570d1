//! Keys that come and go, and issuers that do: nothing is accepted that no published key has signed, and who cannot be
//! asked is not guessed.

use super::*;
use crate::oauth::NoKeys;
use futures::future::join_all;

fn signed(kid: &str) -> String {
    Signer::ed().token("EdDSA", &header("EdDSA", kid), &claims())
}

/// As long from now, with claims that are good by then.
async fn later(tokens: &JwtTokens, kid: &str, seconds: i64) -> Result<(), TokenFault> {
    let now = NOW.plus(seconds);
    let mut claims = claims();
    claims["exp"] = json!(now.0 + 600);
    let token = Signer::ed().token("EdDSA", &header("EdDSA", kid), &claims);
    tokens.validate(&token, now).await.map(drop)
}

const UNKNOWN: Result<(), TokenFault> =
    Err(TokenFault::Invalid("the token is signed by a key its issuer does not publish"));
const UNAVAILABLE: Result<(), TokenFault> = Err(TokenFault::Unavailable);

#[tokio::test]
async fn keys_are_fetched_once_and_kept() {
    let web = Web::publishing(&[Signer::ed().jwk("ed")]);
    let tokens = tokens(&web);
    for seconds in [0, 1, 3599] {
        assert_eq!(later(&tokens, "ed", seconds).await, Ok(()));
    }
    assert_eq!(web.asked(), [METADATA, JWKS]);
    assert_eq!(later(&tokens, "ed", 3600).await, Ok(()));
    assert_eq!(web.looks(), 2);
}

#[tokio::test]
async fn a_new_key_is_found_and_one_taken_away_is_gone() {
    let web = Web::publishing(&[Signer::ed().jwk("old")]);
    let tokens = tokens(&web);
    assert_eq!(later(&tokens, "old", 0).await, Ok(()));
    web.page(JWKS, &json!({"keys": [Signer::ed().jwk("old"), Signer::ed().jwk("new")]}));
    assert_eq!(later(&tokens, "new", 20).await, Ok(()));
    assert_eq!(later(&tokens, "old", 21).await, Ok(()));
    assert_eq!(web.looks(), 2);
    web.page(JWKS, &json!({"keys": [Signer::ed().jwk("newest")]}));
    assert_eq!(later(&tokens, "old", 22).await, Ok(()), "kept as long as the answer said");
    assert_eq!(later(&tokens, "newest", 40).await, Ok(()));
    assert_eq!(later(&tokens, "old", 41).await, UNKNOWN, "what was published last is all there is");
}

#[tokio::test]
async fn names_of_keys_that_nobody_has_make_us_look_once_in_a_while() {
    let web = Web::publishing(&[Signer::ed().jwk("ed")]);
    let tokens = tokens(&web);
    assert_eq!(later(&tokens, "ed", 0).await, Ok(()));
    for number in 0..100 {
        assert_eq!(later(&tokens, &format!("x{number}"), 20).await, UNKNOWN);
    }
    assert_eq!(web.looks(), 2);
    assert_eq!(later(&tokens, "x", 29).await, UNKNOWN);
    assert_eq!(web.looks(), 2);
    assert_eq!(later(&tokens, "x", 30).await, UNKNOWN);
    assert_eq!(web.looks(), 3);
    assert_eq!(later(&tokens, "ed", 30).await, Ok(()), "and nobody else waits for it");
}

#[tokio::test]
async fn an_issuer_that_cannot_be_reached_is_no_yes() {
    let web = Web::publishing(&[Signer::ed().jwk("ed")]);
    web.down(true);
    let tokens = tokens(&web);
    assert_eq!(later(&tokens, "ed", 0).await, UNAVAILABLE);
    assert_eq!(later(&tokens, "ed", 1).await, UNAVAILABLE);
    let asked = web.asked().len();
    assert!(asked <= 3, "not asked with every token: {asked}");
    web.down(false);
    assert_eq!(later(&tokens, "ed", 10).await, Ok(()));
}

#[tokio::test]
async fn known_keys_outlive_a_failure_for_an_hour_and_new_ones_are_not_guessed() {
    let web = Web::publishing(&[]);
    web.put(JWKS, 200, "max-age=600", &json!({"keys": [Signer::ed().jwk("ed")]}).to_string());
    let tokens = tokens(&web);
    assert_eq!(later(&tokens, "ed", 0).await, Ok(()));
    web.down(true);
    assert_eq!(later(&tokens, "new", 100).await, UNAVAILABLE, "it may be good");
    assert_eq!(later(&tokens, "new", 101).await, UNAVAILABLE);
    assert_eq!(later(&tokens, "ed", 599).await, Ok(()));
    assert_eq!(later(&tokens, "ed", 600 + 3599).await, Ok(()), "stale, and bounded");
    assert_eq!(later(&tokens, "ed", 600 + 3600).await, UNAVAILABLE);
    web.down(false);
    assert_eq!(later(&tokens, "ed", 600 + 3620).await, Ok(()));
}

#[tokio::test]
async fn lifetimes_have_bounds() {
    for (cache, kept, renewed) in
        [("max-age=0", 59, 60), ("no-store", 59, 60), ("max-age=99999999", 86399, 86400)]
    {
        let web = Web::publishing(&[]);
        web.put(JWKS, 200, cache, &json!({"keys": [Signer::ed().jwk("ed")]}).to_string());
        let tokens = tokens(&web);
        for (seconds, looks) in [(0, 1), (kept, 1), (renewed, 2)] {
            assert_eq!(later(&tokens, "ed", seconds).await, Ok(()));
            assert_eq!(web.looks(), looks, "{cache} after {seconds} s");
        }
    }
}

#[tokio::test]
async fn one_looks_and_the_others_wait() {
    let web = Web::publishing(&[Signer::ed().jwk("ed")]);
    let tokens = tokens(&web);
    let token = signed("ed");
    let all = join_all((0..50).map(|_| validate(&tokens, &token))).await;
    assert!(all.iter().all(Result::is_ok));
    assert_eq!(web.asked().len(), 2);
}

#[tokio::test]
async fn a_clock_that_went_back_does_not_keep_anybody_from_looking() {
    let web = Web::publishing(&[Signer::ed().jwk("ed")]);
    let tokens = tokens(&web);
    web.down(true);
    assert_eq!(later(&tokens, "ed", 1000).await, UNAVAILABLE);
    web.down(false);
    assert_eq!(later(&tokens, "ed", 0).await, Ok(()));
}

// RFC 8414 section 3.3
#[tokio::test]
async fn the_metadata_is_the_issuers_own() {
    let cases = [
        (json!({"issuer": "https://as.example.test/", "jwks_uri": JWKS}), NoKeys::Issuer),
        (json!({"issuer": "https://evil.example.test", "jwks_uri": JWKS}), NoKeys::Issuer),
        (json!({"issuer": [ISSUER], "jwks_uri": JWKS}), NoKeys::Issuer),
        (json!({"jwks_uri": JWKS}), NoKeys::Issuer),
        (json!({"issuer": ISSUER}), NoKeys::Form),
        (json!({"issuer": ISSUER, "jwks_uri": 5}), NoKeys::Form),
        (json!({"issuer": ISSUER, "jwks_uri": "http://as.example.test/jwks"}), NoKeys::Jwks),
        (json!({"issuer": ISSUER, "jwks_uri": "file:///etc/keys"}), NoKeys::Jwks),
        (json!([]), NoKeys::Issuer),
    ];
    for (document, expected) in cases {
        let web = Web::publishing(&[Signer::ed().jwk("ed")]);
        web.page(METADATA, &document);
        let tokens = tokens(&web);
        assert_eq!(tokens.prepare(NOW).await, Err((ISSUER.to_owned(), expected)), "{document}");
        assert_eq!(later(&tokens, "ed", 20).await, UNAVAILABLE, "{document}");
        assert_eq!(web.looks(), 0);
    }
    let web = Web::publishing(&[Signer::ed().jwk("ed")]);
    let twice = format!(r#"{{"issuer":"x","issuer":"{ISSUER}","jwks_uri":"{JWKS}"}}"#);
    web.put(METADATA, 200, "", &twice);
    assert_eq!(tokens(&web).prepare(NOW).await.unwrap_err().1, NoKeys::Form);
}

#[tokio::test]
async fn metadata_is_looked_for_where_it_may_be() {
    let issuer = "https://as.example.test/t1";
    let named =
        JwtSettings { issuers: vec![IssuerSettings { issuer: issuer.into(), jwks_uri: None }], ..settings() };
    let places = [
        "https://as.example.test/.well-known/oauth-authorization-server/t1",
        "https://as.example.test/.well-known/openid-configuration/t1",
        "https://as.example.test/t1/.well-known/openid-configuration",
    ];
    for (number, place) in places.iter().enumerate() {
        let web = Web::publishing(&[Signer::ed().jwk("ed")]);
        web.page(place, &json!({"issuer": issuer, "jwks_uri": JWKS}));
        let tokens = JwtTokens::new(&named, web.clone()).unwrap();
        assert_eq!(tokens.prepare(NOW).await, Ok(()));
        assert_eq!(web.asked()[..=number], places[..=number]);
        let token = Signer::ed().token("EdDSA", &header("EdDSA", "ed"), &with("iss", json!(issuer)));
        assert!(validate(&tokens, &token).await.is_ok());
    }
    let direct = JwtSettings {
        issuers: vec![IssuerSettings { issuer: issuer.into(), jwks_uri: Some(JWKS.into()) }],
        ..settings()
    };
    let web = Web::publishing(&[Signer::ed().jwk("ed")]);
    assert_eq!(JwtTokens::new(&direct, web.clone()).unwrap().prepare(NOW).await, Ok(()));
    assert_eq!(web.asked(), [JWKS]);
}

#[tokio::test]
async fn a_key_set_that_is_none_is_no_reason_to_forget() {
    let web = Web::publishing(&[Signer::ed().jwk("ed")]);
    let tokens = tokens(&web);
    assert_eq!(later(&tokens, "ed", 0).await, Ok(()));
    for (number, (status, body)) in
        [(200, "<html>"), (200, "{}"), (500, "{}"), (302, "{}"), (200, r#"{"keys":{}}"#)].iter().enumerate()
    {
        web.put(JWKS, *status, "", body);
        let at = 100 * (i64::try_from(number).unwrap() + 1);
        assert_eq!(later(&tokens, "new", at).await, UNAVAILABLE, "{body}");
        assert_eq!(later(&tokens, "ed", at).await, Ok(()), "{body}");
    }
    web.page(JWKS, &json!({"keys": []}));
    assert_eq!(later(&tokens, "new", 900).await, UNKNOWN);
    assert_eq!(later(&tokens, "ed", 901).await, UNKNOWN, "an empty set is an answer");
}

#[tokio::test]
async fn a_token_without_a_key_name_needs_exactly_one_key() {
    let nameless = Signer::ed().token("EdDSA", &json!({"alg": "EdDSA", "typ": "at+jwt"}), &claims());
    let web = Web::publishing(&[Signer::ed().jwk("ed"), Signer::p256().jwk("p256")]);
    assert!(validate(&tokens(&web), &nameless).await.is_ok());
    let web = Web::publishing(&[Signer::ed().jwk("ed"), Signer::attacker().jwk("other")]);
    refused(&tokens(&web), &nameless, "two keys").await;
    let web = Web::publishing(&[Signer::attacker().jwk("ed"), Signer::ed().jwk("ed")]);
    assert!(validate(&tokens(&web), &signed("ed")).await.is_ok(), "two of one name are both tried");
}

/// Whoever sends a token and hangs up at once must not keep the keys from everybody.
#[tokio::test]
async fn whoever_leaves_in_the_middle_takes_nothing_along() {
    let web = Web::publishing(&[Signer::ed().jwk("ed")]);
    let tokens = tokens(&web);
    let token = signed("ed");
    for _ in 0..3 {
        let mut asking = Box::pin(validate(&tokens, &token));
        assert!(futures::poll!(&mut asking).is_pending());
        drop(asking);
    }
    for _ in 0..20 {
        tokio::task::yield_now().await;
    }
    assert_eq!(web.asked(), [METADATA, JWKS], "found all the same, and once");
    web.down(true);
    assert!(validate(&tokens, &token).await.is_ok());
}
