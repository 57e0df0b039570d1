//! Tokens that would be good if something in them were believed that must not be.

use super::*;
use sayso_protocol::b64;

/// An issuer with a key of each kind, and one of each that must not be used.
fn web() -> Arc<Web> {
    let mut told = Signer::rsa().jwk("rsa-rs256");
    told["alg"] = json!("RS256");
    let changed = |name: &str, member: &str, value: Value| {
        let mut jwk = Signer::ed().jwk(name);
        jwk[member] = value;
        jwk
    };
    Web::publishing(&[
        Signer::ed().jwk("ed"),
        Signer::p256().jwk("p256"),
        Signer::p384().jwk("p384"),
        Signer::rsa().jwk("rsa"),
        told,
        changed("enc", "use", json!("enc")),
        changed("use-list", "use", json!(["sig"])),
        changed("sign-only", "key_ops", json!(["sign"])),
        changed("ops-text", "key_ops", json!("verify")),
        changed("private", "d", json!(b64::encode([0x11; 32]))),
        changed("alg-other", "alg", json!("ES256")),
        changed("alg-unknown", "alg", json!("HS256")),
        changed("alg-number", "alg", json!(7)),
        changed("crv-other", "crv", json!("X25519")),
        changed("kty-other", "kty", json!("EC")),
        json!({"kty": "oct", "kid": "oct", "k": b64::encode("shared secret of both sides"), "alg": "HS256"}),
    ])
}

// TOK-02
#[tokio::test]
async fn every_algorithm_verifies_with_the_key_that_fits_it() {
    let tokens = tokens(&web());
    let all = [
        ("EdDSA", Signer::ed(), "ed"),
        ("Ed25519", Signer::ed(), "ed"),
        ("ES256", Signer::p256(), "p256"),
        ("ES384", Signer::p384(), "p384"),
        ("PS256", Signer::rsa(), "rsa"),
        ("PS384", Signer::rsa(), "rsa"),
        ("PS512", Signer::rsa(), "rsa"),
        ("RS256", Signer::rsa(), "rsa"),
        ("RS384", Signer::rsa(), "rsa"),
        ("RS512", Signer::rsa(), "rsa"),
        ("RS256", Signer::rsa(), "rsa-rs256"),
    ];
    for (alg, signer, kid) in all {
        let token = signer.token(alg, &header(alg, kid), &claims());
        let validated = validate(&tokens, &token).await.unwrap();
        assert_eq!(validated.get("sub").and_then(Json::as_str), Some("u-ann"), "{alg}");
        assert!(validated.get("roles").is_some(), "all claims are there");
    }
}

// TOK-02, TOK-03, COAZ-MCP-70, COAZ-MCP-81
#[tokio::test]
async fn no_confusion_of_keys_and_algorithms() {
    let web = web();
    let tokens = tokens(&web);
    let (ed, p256, p384, rsa) = (Signer::ed(), Signer::p256(), Signer::p384(), Signer::rsa());
    // (what is done, the header's alg, its kid, who signs, by which algorithm)
    let table: [(&str, &str, &str, &Signer, &str); 24] = [
        ("Ed25519 key under an EC name", "ES256", "ed", ed, "EdDSA"),
        ("Ed25519 key under an RSA name", "RS256", "ed", ed, "EdDSA"),
        ("P-256 key under EdDSA", "EdDSA", "p256", p256, "ES256"),
        ("P-256 key under ES384", "ES384", "p256", p256, "ES256"),
        ("P-384 key under ES256", "ES256", "p384", p384, "ES384"),
        ("RSA key under ES256", "ES256", "rsa", rsa, "RS256"),
        ("RSA key under EdDSA", "EdDSA", "rsa", rsa, "RS256"),
        ("PSS by a key for PKCS 1 alone", "PS256", "rsa-rs256", rsa, "PS256"),
        ("another hash by a key for one alone", "RS384", "rsa-rs256", rsa, "RS384"),
        ("PSS named, PKCS 1 made", "PS256", "rsa", rsa, "RS256"),
        ("PKCS 1 named, PSS made", "RS256", "rsa", rsa, "PS256"),
        ("another hash than named", "RS256", "rsa", rsa, "RS512"),
        ("a key for encryption", "EdDSA", "enc", ed, "EdDSA"),
        ("a use that is no text", "EdDSA", "use-list", ed, "EdDSA"),
        ("a key for signing alone", "EdDSA", "sign-only", ed, "EdDSA"),
        ("operations that are no list", "EdDSA", "ops-text", ed, "EdDSA"),
        ("a published private key", "EdDSA", "private", ed, "EdDSA"),
        ("a key for another algorithm", "EdDSA", "alg-other", ed, "EdDSA"),
        ("a key for one with a shared secret", "EdDSA", "alg-unknown", ed, "EdDSA"),
        ("a key for a number", "EdDSA", "alg-number", ed, "EdDSA"),
        ("a key for agreement", "EdDSA", "crv-other", ed, "EdDSA"),
        ("a key of another type", "EdDSA", "kty-other", ed, "EdDSA"),
        ("a key nobody published", "EdDSA", "nobody", ed, "EdDSA"),
        ("another's key of the right name", "EdDSA", "ed", &Signer::attacker(), "EdDSA"),
    ];
    for (name, alg, kid, signer, made) in table {
        let token = signer.token(made, &header(alg, kid), &claims());
        let words = refused(&tokens, &token, name).await;
        let signature = "the token's signature does not verify";
        assert!(words == signature || words.contains("does not publish"), "{name}: {words}");
    }
    assert!(web.looks() <= 2, "names of keys make us look once");
}

// TOK-02, TOK-03
#[tokio::test]
async fn an_algorithm_that_is_not_taken_is_refused_before_anything_is_fetched() {
    let web = web();
    let tokens = tokens(&web);
    for alg in [
        "none", "None", "NONE", "nOnE", "", "HS256", "HS384", "HS512", "ES256K", "ES512", "dir", "eddsa",
        "RS256 ",
    ] {
        for signature in ["", "AA", "x"] {
            let token = format!(
                "{}.{}.{signature}",
                b64::encode(header(alg, "rsa").to_string()),
                b64::encode(claims().to_string())
            );
            let words = refused(&tokens, &token, alg).await;
            assert!(words.contains("algorithm") || words == "the token is not a JWT", "{alg}: {words}");
        }
    }
    for alg in [json!(null), json!(5), json!(["EdDSA"]), json!({"EdDSA": 1})] {
        let token = Signer::ed().token("EdDSA", &json!({"alg": alg, "kid": "ed"}), &claims());
        refused(&tokens, &token, "alg").await;
    }
    let token = Signer::ed().token("EdDSA", &json!({"kid": "ed"}), &claims());
    refused(&tokens, &token, "no alg").await;
    assert!(web.asked().is_empty());
}

// TOK-02
#[tokio::test]
async fn a_token_does_not_bring_its_own_key_or_rules() {
    let (web, attacker) = (web(), Signer::attacker());
    let tokens = tokens(&web);
    let brought = [
        ("jwk", attacker.jwk("ed")),
        ("jku", json!("https://evil.example.test/jwks")),
        ("x5u", json!("https://evil.example.test/chain")),
        ("x5c", json!(["AAAA"])),
        ("crit", json!([])),
        ("crit", json!(["exp"])),
        ("b64", json!(false)),
        ("zip", json!("DEF")),
        ("enc", json!("A256GCM")),
        ("cty", json!("JWT")),
        ("jku", json!(null)),
    ];
    for (name, value) in brought {
        for signer in [&attacker, Signer::ed()] {
            let mut header = header("EdDSA", "ed");
            header[name] = value.clone();
            let token = signer.token("EdDSA", &header, &claims());
            let words = refused(&tokens, &token, name).await;
            assert_eq!(words, "the token's header asks for something that is not done here", "{name}");
        }
    }
    assert!(web.asked().is_empty(), "nothing is fetched");
    let mut harmless = header("EdDSA", "ed");
    harmless["x5t"] = json!("AAAA");
    harmless["nonce"] = json!("n");
    assert!(validate(&tokens, &Signer::ed().token("EdDSA", &harmless, &claims())).await.is_ok());
}

// TOK-08
#[tokio::test]
async fn a_token_has_one_spelling() {
    let web = web();
    let tokens = tokens(&web);
    let good = good();
    assert!(validate(&tokens, &good).await.is_ok());
    let [head, body, tail] = good.split('.').collect::<Vec<_>>()[..] else { panic!() };
    let last = tail.chars().last().unwrap();
    // The last of 86 characters carries two bits, so three others decode to the same bytes laxly.
    let loose: Vec<char> =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_".chars().collect();
    let at = loose.iter().position(|it| *it == last).unwrap();
    let stray = loose[at ^ 1];
    let texts = [
        String::new(),
        "opaque-token".to_owned(),
        ".".to_owned(),
        "..".to_owned(),
        format!("{head}.{body}"),
        format!("{head}.{body}."),
        format!("{head}.{body}.{tail}."),
        format!("{head}.{body}.{tail}.{tail}"),
        format!("{head}.{body}.{tail}.a.b"),
        format!("{head}.{body}.{tail}=="),
        format!("{head}=.{body}.{tail}"),
        format!(" {good}"),
        format!("{good}\n"),
        format!("{head}.{body}\n.{tail}"),
        format!("{head}.{body}.{}{stray}", &tail[..tail.len() - 1]),
        format!("{head}.{body}.{}", &tail[..tail.len() - 4]),
        format!("{head}.{}.{tail}", b64::encode(with("sub", json!("u-bob")).to_string())),
        format!("{}.{body}.{tail}", b64::encode(json!({"alg": "EdDSA", "kid": "ed"}).to_string())),
        format!("{head}..{tail}"),
        format!("{}.{body}.{tail}", b64::encode("[]")),
    ];
    for text in &texts {
        refused(&tokens, text, text).await;
    }
    let header = header("EdDSA", "ed").to_string();
    let claims = claims().to_string();
    let twice = |text: &str, member: &str| text.replacen('{', &format!("{{{member},"), 1);
    for (header, claims) in [
        (twice(&header, r#""alg":"none""#), claims.clone()),
        (twice(&header, r#""kid":"x""#), claims.clone()),
        (header.clone(), twice(&claims, r#""iss":"https://evil.example.test""#)),
        (header.clone(), twice(&claims, r#""\u0061ud":"x""#)),
        (header.clone(), twice(&claims, r#""exp":9999999999"#)),
        (format!("\u{feff}{header}"), claims.clone()),
        (header.clone(), format!("{claims} x")),
        (header.clone(), format!("[{claims}]")),
        (header.clone(), "\"text\"".to_owned()),
        (header.clone(), twice(&claims, &format!(r#""deep":{}1{}"#, "[".repeat(40), "]".repeat(40)))),
        (header.clone(), twice(&claims, &format!(r#""long":"{}""#, "x".repeat(16 << 10)))),
    ] {
        refused(&tokens, &Signer::ed().raw("EdDSA", header.as_bytes(), claims.as_bytes()), &header).await;
    }
    let mut broken = claims.into_bytes();
    let at = broken.windows(5).position(|it| it == b"u-ann").unwrap();
    broken[at] = 0xff;
    refused(&tokens, &Signer::ed().raw("EdDSA", header.as_bytes(), &broken), "not UTF-8").await;
}

// TOK-02
#[tokio::test]
async fn signatures_that_anybody_can_make_verify_nothing() {
    let tokens = tokens(&web());
    let signed = |alg: &str, kid: &str| {
        format!("{}.{}", b64::encode(header(alg, kid).to_string()), b64::encode(claims().to_string()))
    };
    let mut neutral = [0; 64];
    neutral[0] = 1;
    for (alg, kid, signature) in [
        ("ES256", "p256", vec![0; 64]),
        ("ES256", "p256", vec![0xff; 64]),
        ("ES384", "p384", vec![0; 96]),
        ("EdDSA", "ed", vec![0; 64]),
        ("EdDSA", "ed", neutral.to_vec()),
        ("RS256", "rsa", vec![0; 256]),
        ("RS256", "rsa", vec![1]),
        ("PS256", "rsa", vec![0; 256]),
    ] {
        let token = format!("{}.{}", signed(alg, kid), b64::encode(signature));
        assert_eq!(refused(&tokens, &token, alg).await, "the token's signature does not verify");
    }
    let message = signed("ES256", "p256");
    let fixed = Signer::p256().sign("ES256", message.as_bytes());
    let (r, s) = fixed.split_at(32);
    let integer = |it: &[u8]| [&[2, 33, 0], it].concat();
    let der = [&[0x30, 70], integer(r).as_slice(), &integer(s)].concat();
    refused(&tokens, &format!("{message}.{}", b64::encode(der)), "DER").await;
}

// RFC 8725 section 3.11
#[tokio::test]
async fn a_token_of_another_type_is_no_access_token() {
    let web = web();
    let tokens = tokens(&web);
    let strict = JwtSettings { require_at_jwt: true, ..settings() };
    let strict = JwtTokens::new(&strict, web).unwrap();
    let table = [
        (json!("at+jwt"), true, true),
        (json!("AT+JWT"), true, true),
        (json!("application/at+jwt"), true, true),
        (json!("JWT"), true, false),
        (json!("jwt"), true, false),
        (json!(null), true, false),
        (json!("dpop+jwt"), false, false),
        (json!("logout+jwt"), false, false),
        (json!("secevent+jwt"), false, false),
        (json!("oauth-id-jag+jwt"), false, false),
        (json!("at+jwt "), false, false),
        (json!(""), false, false),
        (json!(1), false, false),
        (json!(["at+jwt"]), false, false),
    ];
    for (typ, taken, strictly) in table {
        let mut header = header("EdDSA", "ed");
        header["typ"] = typ.clone();
        if typ.is_null() {
            header.as_object_mut().unwrap().remove("typ");
        }
        let token = Signer::ed().token("EdDSA", &header, &claims());
        assert_eq!(validate(&tokens, &token).await.is_ok(), taken, "{typ}");
        assert_eq!(validate(&strict, &token).await.is_ok(), strictly, "{typ}");
    }
}
