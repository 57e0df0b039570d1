//! Names are compared whole: nothing that only begins like ours, or only a folding would call the same, is ours.
//! And a key under which one signature fits every text proves nothing, whoever says that it is the grant's.

use super::*;
use crate::resource::{Resource, ResourceSettings};
use sayso_protocol::b64;
use sayso_protocol::payload::protection::LiveGrant;
use serde_json::json;

/// What becomes of the honest call under this grant; where it is not let through, nothing was reported of it.
async fn verdict(grant: LiveGrant) -> String {
    let scene = Scene::with(grant);
    let verdict = told(&scene.decide(&signed("get_positions", "{}")).await);
    let reports = scene.authority.count(|asked| matches!(asked, Asked::Report(_)));
    assert_eq!(reports, usize::from(verdict == "permit"));
    verdict
}

// CORE-68, CORE-72, CORE-86
#[tokio::test]
async fn issuer_audience_and_owner_are_ours_to_the_letter() {
    let spoilt = |ours: &str| {
        [
            format!("{ours}/"),
            format!("{ours}.evil.test"),
            ours[..ours.len() - 1].to_owned(),
            ours.to_uppercase(),
            format!("{ours}:443"),
            format!("{ours},https://evil.example.test"),
            format!("{ours} "),
            "https://evil.example.test".to_owned(),
            "*".to_owned(),
        ]
    };
    for iss in spoilt("https://as.example.test").into_iter().chain([String::new()]) {
        let grant = LiveGrant { iss: iss.clone(), ..reusable() };
        assert_eq!(verdict(grant).await, "challenge", "iss {iss}");
    }
    for aud in spoilt("https://gw.example.test").into_iter().chain(["https://gw.example.test/mcp".into()]) {
        let grant = LiveGrant { aud: aud.parse().unwrap(), ..reusable() };
        assert_eq!(verdict(grant).await, "challenge", "aud {aud}");
    }
    for owner in ["Alice", "alice ", "alic", "alice2", "\u{430}lice", "bob", "*"] {
        let grant = LiveGrant { owner: owner.parse().unwrap(), ..reusable() };
        assert_eq!(verdict(grant).await, "challenge", "owner {owner}");
    }
    assert_eq!(verdict(reusable()).await, "permit");
}

// CORE-86
#[tokio::test]
async fn a_permission_is_for_what_it_names_and_nothing_like_it() {
    for id in [
        "vault",
        "vault/",
        "vault/*",
        "vault/get_",
        "vault/get_position",
        "vault/get_positions/",
        "vault/get_positions ",
        "vault/get_positions%",
        "vault//get_positions",
        "vault/./get_positions",
        "VAULT/get_positions",
        "other/get_positions",
        "get_positions",
        "*",
    ] {
        let mut grant = reusable();
        grant.permissions[0].resource_id = id.parse().unwrap();
        assert_eq!(verdict(grant).await, "challenge", "{id}");
    }
    for scopes in
        [&[][..], &["positions"], &["positions:*"], &["*"], &["Positions:Read"], &["positions:reader"]]
    {
        let mut grant = reusable();
        grant.permissions[0].resource_scopes = scopes.iter().map(|scope| scope.parse().unwrap()).collect();
        assert_eq!(verdict(grant).await, "challenge", "{scopes:?}");
    }
    // Two halves are no whole.
    let mut halves = reusable();
    halves.permissions.push(halves.permissions[0].clone());
    halves.permissions[0].resource_scopes.clear();
    halves.permissions[1].resource_id = "vault/get_transactions".parse().unwrap();
    assert_eq!(verdict(halves).await, "challenge");
}

#[tokio::test]
async fn an_authority_whose_clock_is_a_little_ahead_is_believed() {
    let mut grant = reusable();
    grant.iat = NOW.plus(4);
    assert_eq!(verdict(grant).await, "permit");
}

// CORE-55, CORE-87
#[tokio::test]
async fn a_key_that_proves_nothing_proves_nothing_here() {
    let order_eight = "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac03fa";
    let mut points = vec![[0; 32], [0; 32], [0xff; 32], [0xff; 32]];
    points[1][0] = 1;
    points[2][0] = 0xec;
    points[3][0] = 0xee;
    points[2][31] = 0x7f;
    points[3][31] = 0x7f;
    let pairs = (0..32).map(|at| u8::from_str_radix(&order_eight[2 * at..2 * at + 2], 16).unwrap());
    points.push(pairs.collect::<Vec<u8>>().try_into().unwrap());
    let universal = b64::encode_standard([[1].as_slice(), &[0; 63]].concat());
    for point in points {
        let jwk = json!({"kty": "OKP", "crv": "Ed25519", "x": b64::encode(point)});
        let mut grant = single_use();
        grant.cnf.jwk = serde_json::from_value(jwk.clone()).unwrap();
        let scene = Scene::with(grant);
        let mut incoming = trade();
        let signature = HeaderValue::from_str(&format!("sig1=:{universal}:")).unwrap();
        incoming.head.headers.insert("signature", signature);
        assert_eq!(scene.code(&incoming).await, Code::InvalidToken, "{jwk}");
        assert_eq!((scene.authority.consumed(), scene.authority.tickets()), (0, 0));
    }
}

// BASE-09, CORE-08
#[test]
fn what_is_published_is_what_was_configured_to_the_letter() {
    for (url, as_uri) in [
        ("https://gw.example.test", "https://as.example.test"),
        ("https://gw.example.test/", "https://as.example.test/"),
        ("https://gw.example.test/mcp", "https://as.example.test/tenant1"),
        ("https://gw.example.test/mcp/", "https://as.example.test/tenant1/"),
        ("https://gw.example.test:8443/a%20b/mcp", "http://127.0.0.1:8440"),
    ] {
        let settings = ResourceSettings { url: url.into(), as_uri: as_uri.into(), ..settings() };
        let resource = Resource::new(settings).unwrap();
        let document = resource.metadata();
        assert_eq!(
            (document.resource.as_str(), &document.authorization_servers[..]),
            (url, &[as_uri.into()][..])
        );
        let challenge = resource.challenge(resource.tool("get_positions").unwrap(), "ticket-1".into());
        assert_eq!(
            (challenge.as_uri.as_str(), challenge.remediation.authorization_server.as_str()),
            (as_uri, as_uri)
        );
    }
}
