//! What the claims say: of whom, for whom, from when until when.

use super::*;
use crate::oauth::BadJwt;

fn web() -> Arc<Web> {
    Web::publishing(&[Signer::ed().jwk("ed")])
}

async fn judged(tokens: &JwtTokens, claims: &Value) -> Result<Json, TokenFault> {
    validate(tokens, &Signer::ed().token("EdDSA", &header("EdDSA", "ed"), claims)).await
}

// TOK-04
#[tokio::test]
async fn the_issuer_is_the_one_that_is_trusted_byte_for_byte() {
    let web = web();
    let tokens = tokens(&web);
    for issuer in [
        json!("https://as.example.test/"),
        json!("https://as.example.test2"),
        json!("https://AS.example.test"),
        json!("https://as.example.test:443"),
        json!("http://as.example.test"),
        json!("https://evil.example.test"),
        json!([ISSUER]),
        json!(""),
        json!(7),
        json!(null),
    ] {
        let fault = judged(&tokens, &with("iss", issuer.clone())).await.unwrap_err();
        let words = "the token is of an issuer that is not trusted here";
        assert_eq!(fault, TokenFault::Invalid(words), "{issuer}");
    }
    assert!(web.asked().is_empty(), "no issuer that a token names is asked");
}

// TOK-04
#[tokio::test]
async fn a_key_of_one_issuer_signs_nothing_for_another() {
    let web = web();
    let other = "https://other.example.test";
    web.page(
        "https://other.example.test/.well-known/oauth-authorization-server",
        &json!({"issuer": other, "jwks_uri": "https://other.example.test/jwks"}),
    );
    web.page("https://other.example.test/jwks", &json!({"keys": [Signer::attacker().jwk("ed")]}));
    let mut settings = settings();
    settings.issuers.push(IssuerSettings { issuer: other.to_owned(), jwks_uri: None });
    let tokens = JwtTokens::new(&settings, web).unwrap();
    assert_eq!(tokens.issuers(), [ISSUER, other]);
    for (issuer, signer, taken) in [
        (ISSUER, Signer::ed(), true),
        (other, &Signer::attacker(), true),
        (ISSUER, &Signer::attacker(), false),
        (other, Signer::ed(), false),
    ] {
        let token = signer.token("EdDSA", &header("EdDSA", "ed"), &with("iss", json!(issuer)));
        assert_eq!(validate(&tokens, &token).await.is_ok(), taken, "{issuer}");
    }
}

// TOK-05, AUD-11
#[tokio::test]
async fn the_audience_names_this_resource() {
    let web = web();
    let tokens = tokens(&web);
    for audience in [
        json!(AUDIENCE),
        json!([AUDIENCE]),
        json!(["https://other.example.test", AUDIENCE]),
        json!([AUDIENCE, AUDIENCE]),
    ] {
        assert!(judged(&tokens, &with("aud", audience.clone())).await.is_ok(), "{audience}");
    }
    let asked = web.asked().len();
    for audience in [
        json!("https://gw.example.test/mcp2"),
        json!("https://gw.example.test/mc"),
        json!("https://gw.example.test"),
        json!("https://gw.example.test/mcp/"),
        json!("https://GW.example.test/mcp"),
        json!("https://gw.example.test:443/mcp"),
        json!(null),
        json!(""),
        json!([]),
        json!(7),
        json!({AUDIENCE: 1}),
        json!([[AUDIENCE]]),
        json!([AUDIENCE, 7]),
        json!(format!("{AUDIENCE},https://other.example.test")),
        json!(format!("{AUDIENCE} https://other.example.test")),
        json!("*"),
    ] {
        let fault = judged(&tokens, &with("aud", audience.clone())).await.unwrap_err();
        assert_eq!(fault, TokenFault::Invalid("the token is not for this resource"), "{audience}");
    }
    assert_eq!(web.asked().len(), asked);
}

// TOK-06, TOK-07
#[tokio::test]
async fn clocks_may_differ_by_so_much_and_no_more() {
    let tokens = tokens(&web());
    let far = NOW.0 + 24 * 3600;
    let table = [
        ("exp", json!(NOW.0 - 59), true),
        ("exp", json!(NOW.0 - 60), false),
        ("exp", json!(NOW.0 as f64 - 59.5), false),
        ("exp", json!(NOW.0 as f64 + 0.5), true),
        ("exp", json!(far + 60), true),
        ("exp", json!(far + 61), false),
        ("exp", json!((NOW.0 + 3600) * 1000), false),
        ("exp", json!(null), false),
        ("exp", json!("1790003600"), false),
        ("exp", json!("never"), false),
        ("exp", json!([NOW.0 + 3600]), false),
        ("exp", json!(true), false),
        ("exp", json!(-1), false),
        ("exp", json!(0), false),
        ("exp", json!(1e30), false),
        ("exp", json!(9_223_372_036_854_775_808_u64), false),
        ("exp", json!(i64::MAX), false),
        ("exp", json!(i64::MIN), false),
        ("nbf", json!(NOW.0 + 60), true),
        ("nbf", json!(NOW.0 + 61), false),
        ("nbf", json!(NOW.0 as f64 + 61.5), false),
        ("nbf", json!("1790001800"), false),
        ("nbf", json!(i64::MAX), false),
        ("nbf", json!(0), true),
        ("nbf", json!(null), true),
        ("iat", json!(NOW.0 + 60), true),
        ("iat", json!(NOW.0 + 61), false),
        ("iat", json!("x"), false),
        ("iat", json!(null), true),
    ];
    for (name, value, taken) in table {
        let judged = judged(&tokens, &with(name, value.clone())).await;
        assert_eq!(judged.is_ok(), taken, "{name} {value}: {judged:?}");
        assert!(!matches!(judged, Err(TokenFault::Unavailable)));
    }
    let raw = claims().to_string().replacen(&format!(r#""exp":{}"#, NOW.0 + 3600), r#""exp":1e400"#, 1);
    assert!(raw.contains("1e400"));
    let token = Signer::ed().raw("EdDSA", header("EdDSA", "ed").to_string().as_bytes(), raw.as_bytes());
    refused(&tokens, &token, "1e400").await;
}

#[tokio::test]
async fn without_skew_the_second_of_expiry_is_too_late() {
    let settings = JwtSettings { skew: 0, ..settings() };
    let tokens = JwtTokens::new(&settings, web()).unwrap();
    for (name, value, taken) in
        [("exp", NOW.0, false), ("exp", NOW.0 + 1, true), ("nbf", NOW.0, true), ("nbf", NOW.0 + 1, false)]
    {
        assert_eq!(judged(&tokens, &with(name, json!(value))).await.is_ok(), taken, "{name} {value}");
    }
}

// RFC 9449 section 7, RFC 8705 section 3
#[tokio::test]
async fn a_token_bound_to_a_key_is_not_taken_from_whoever_bears_it() {
    let tokens = tokens(&web());
    for cnf in [json!({"jkt": "x"}), json!({"x5t#S256": "x"}), json!({}), json!("x")] {
        let fault = judged(&tokens, &with("cnf", cnf.clone())).await.unwrap_err();
        let words = "the token is bound to a key, and possession cannot be shown here";
        assert_eq!(fault, TokenFault::Invalid(words), "{cnf}");
    }
}

#[test]
fn settings_that_take_nothing_say_what_to_write() {
    let fault = |change: fn(&mut JwtSettings)| {
        let mut settings = settings();
        change(&mut settings);
        JwtTokens::new(&settings, Arc::new(Web::default())).err()
    };
    assert_eq!(fault(|_| {}), None);
    assert_eq!(fault(|it| it.issuers.clear()), Some(BadJwt::NoIssuer));
    assert_eq!(fault(|it| it.issuers.push(it.issuers[0].clone())), Some(BadJwt::Twice(ISSUER.into())));
    assert_eq!(fault(|it| it.audiences.clear()), Some(BadJwt::NoAudience));
    assert_eq!(fault(|it| it.audiences.push(String::new())), Some(BadJwt::NoAudience));
    assert_eq!(fault(|it| it.skew = 61), Some(BadJwt::Skew));
    assert_eq!(fault(|it| it.skew = -1), Some(BadJwt::Skew));
    assert_eq!(fault(|it| it.longest = 0), Some(BadJwt::Longest));
    for name in ["none", "HS256", "es256"] {
        let settings = JwtSettings { algorithms: vec![name.to_owned()], ..settings() };
        let fault = JwtTokens::new(&settings, Arc::new(Web::default())).err().unwrap();
        assert_eq!(fault, BadJwt::Algorithm(name.to_owned()));
        assert!(fault.to_string().contains("EdDSA, ES256"), "{fault}");
    }
    for url in ["http://as.test", "as.test", "https://u:p@as.test", "https://as.test/#f", "ftp://as.test"] {
        let named = |issuer: &str, jwks: Option<&str>, development| JwtSettings {
            issuers: vec![IssuerSettings { issuer: issuer.into(), jwks_uri: jwks.map(str::to_owned) }],
            development,
            ..settings()
        };
        let fault = |settings| JwtTokens::new(&settings, Arc::new(Web::default())).err();
        for development in [false, true] {
            assert_eq!(fault(named(url, None, development)), Some(BadJwt::Issuer(url.into())), "{url}");
            let jwks = named(ISSUER, Some(url), development);
            assert_eq!(fault(jwks), Some(BadJwt::Jwks(url.into())), "{url}");
        }
        assert!(fault(named("http://127.0.0.1:9", None, false)).is_some());
        assert!(fault(named("http://127.0.0.1:9", None, true)).is_none());
        assert!(fault(named("https://as.test/?q", None, true)).is_some());
    }
}

#[tokio::test]
async fn algorithms_can_be_fewer() {
    let settings = JwtSettings { algorithms: vec!["ES256".to_owned()], ..settings() };
    let web = Web::publishing(&[Signer::ed().jwk("ed"), Signer::p256().jwk("p256")]);
    let tokens = JwtTokens::new(&settings, web).unwrap();
    assert_eq!(refused(&tokens, &good(), "EdDSA").await, "the token's signature algorithm is not taken");
    let token = Signer::p256().token("ES256", &header("ES256", "p256"), &claims());
    assert!(validate(&tokens, &token).await.is_ok());
}

// D-13: what a token opened lasts as long as the token would be taken, to the second.
#[tokio::test]
async fn until_when_a_token_is_good_is_the_first_second_at_which_it_is_not_taken() {
    let web = web();
    for skew in [0, 60] {
        let tokens = JwtTokens::new(&JwtSettings { skew, ..settings() }, web.clone()).unwrap();
        for expires in [json!(NOW.0 + 30), json!(1_790_000_030.9)] {
            let claims = judged(&tokens, &with("exp", expires.clone())).await.unwrap();
            let until = tokens.until(&claims).unwrap();
            let token = Signer::ed().token("EdDSA", &header("EdDSA", "ed"), &with("exp", expires));
            assert!(tokens.validate(&token, until.plus(-1)).await.is_ok(), "{skew}");
            assert!(tokens.validate(&token, until).await.is_err(), "{skew}");
        }
        assert_eq!(tokens.until(&Json::from(json!({}))), None);
    }
}
