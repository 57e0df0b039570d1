//! The published documents, and who may read which.

use super::cast::{AS_URI, Canary, HOST, House, NOW, PUBLIC, Scripted, config, key, resource};
use super::wire::Request;
use crate::{BadGateway, Gateway, GatewayConfig, ResourceConfig};
use sayso_enforce::BadServer;
use sayso_protocol::envelope::{aauth, rfc9728};
use sayso_protocol::payload::metadata::KeySet;
use serde_json::{Value, json};
use std::sync::Arc;

const ROOT: &str = "/.well-known/oauth-protected-resource";

fn get(path: &str) -> Request {
    Request { line: format!("GET {path} HTTP/1.1"), headers: Vec::new(), body: Vec::new() }.with("Host", HOST)
}

// FED-01, FED-02, FED-06, FED-07, MCP-01, CORE-10, CORE-118, BASE-09
#[tokio::test]
async fn a_resource_publishes_its_signed_document_and_its_keys() {
    let house = House::open().await;
    let keys = house.send(&get("/jwks")).await;
    assert_eq!(keys.status, 200);
    let keys: KeySet = serde_json::from_slice(&keys.body).unwrap();
    for path in [format!("{ROOT}/mcp"), ROOT.to_owned()] {
        let response = house.send(&get(&path)).await;
        assert_eq!(response.status, 200, "{path}");
        let document = rfc9728::read(&response.body, &format!("{PUBLIC}/mcp")).unwrap();
        assert_eq!(document.jwks_uri(), Some("http://gw.example.test/jwks"));
        assert!(document.trust(&keys.keys(), sayso_protocol::Timestamp(0)).is_ok());
        let body = response.json();
        assert_eq!(body["authorization_servers"], json!([AS_URI]));
        assert_eq!(body["owner_resources_endpoint"], "http://gw.example.test/owner-resources");
        assert!(!String::from_utf8(response.body).unwrap().contains("alice"));
    }
    assert_eq!(house.send(&get("/health")).await.json(), json!({ "status": "ok" }));
    house.assert_untouched("published");
}

// AAUTH-19, FED-08, MCP-02
#[tokio::test]
async fn the_older_encoding_says_what_the_newer_one_says() {
    let house = House::open().await;
    let keys: KeySet = serde_json::from_slice(&house.send(&get("/jwks")).await.body).unwrap();
    let now = sayso_protocol::Timestamp(0);
    let newer = house.send(&get(ROOT)).await;
    let newer =
        rfc9728::read(&newer.body, &format!("{PUBLIC}/mcp")).unwrap().trust(&keys.keys(), now).unwrap();
    let older = house.send(&get(aauth::PATH)).await;
    assert_eq!(older.status, 200);
    assert!(!String::from_utf8(older.body.clone()).unwrap().contains("alice"));
    let older = aauth::read(&older.body, &format!("{PUBLIC}/mcp")).unwrap().trust(&keys.keys(), now).unwrap();
    assert_eq!(aauth::metadata(&older), newer.metadata());
    let post = Request { line: format!("POST {} HTTP/1.1", aauth::PATH), ..get(aauth::PATH) };
    assert_eq!(house.send(&post).await.status, 405);
    house.assert_untouched("published");
}

// CORE-11, CORE-115
#[tokio::test]
async fn two_resources_have_two_documents_and_no_root() {
    let authority = Arc::new(Scripted::default());
    let mut two = ["/mcp", "/mcp/alice"].map(|path| resource(path, authority.clone(), "http://127.0.0.1:1/"));
    for tool in &mut two[1].resource.tools {
        tool.resource_id = format!("other/{}", tool.tool).parse().unwrap();
    }
    let house = House::with(Arc::new(Canary::default()), authority, config(two.into())).await;
    for path in ["/mcp", "/mcp/alice"] {
        let document = house.send(&get(&format!("{ROOT}{path}"))).await.json();
        assert_eq!(document["resource"], format!("{PUBLIC}{path}"));
        let call = Request { line: format!("POST {path} HTTP/1.1"), ..Request::call("get_positions", "{}") };
        let challenge = house.send(&call).await.json();
        assert_eq!(challenge["resource_metadata"], format!("{PUBLIC}{ROOT}{path}"));
    }
    assert_eq!(house.send(&get(ROOT)).await.status, 404);
    assert_eq!(house.send(&get(aauth::PATH)).await.status, 404);
}

fn query(seed: u8) -> Request {
    get("/owner-resources").signed_by(&key(seed), NOW, HOST)
}

// FED-09, FED-10, FED-11
#[tokio::test]
async fn the_listing_is_for_her_authority() {
    let house = House::open().await;
    let once = query(0x11);
    let response = house.send(&once).await;
    assert_eq!(response.status, 200);
    let ids: Vec<Value> =
        response.json()["resources"].as_array().unwrap().iter().map(|owned| owned["_id"].clone()).collect();
    assert_eq!(ids, ["vault/execute_trade", "vault/get_positions"]);
    let refused = [
        once,
        get("/owner-resources"),
        query(0x22),
        get("/owner-resources").signed_by(&key(0x11), NOW.plus(-61), HOST),
        get("/owner-resources").signed_by(&key(0x11), NOW, "other.example.test"),
        Request { line: "GET /owner-resources?owner=bob HTTP/1.1".into(), ..query(0x11) },
    ];
    for request in refused {
        let response = house.send(&request).await;
        assert_eq!((response.status, response.json()["error"].as_str()), (401, Some("invalid_signature")));
        assert!(response.json().get("resources").is_none());
        assert!(!response.is_challenge());
    }
}

#[tokio::test]
async fn published_addresses_keep_the_listeners_rules() {
    let house = House::open().await;
    for path in ["/jwks", "/health", ROOT, "/owner-resources"] {
        let foreign = get(path).with("Origin", "https://evil.example");
        let response = house.send(&foreign).await;
        assert_eq!(
            (response.status, response.json()["error"].as_str()),
            (403, Some("invalid_origin")),
            "{path}"
        );
        let own = house.send(&get(path).with("Origin", PUBLIC)).await;
        assert_ne!(own.status, 403, "{path}");
        let post = Request { line: format!("POST {path} HTTP/1.1"), ..get(path) };
        let response = house.send(&post).await;
        assert_eq!((response.status, response.all("allow")), (405, vec!["GET, HEAD"]), "{path}");
        if path != "/owner-resources" {
            let other = house.send(&get(path).but("Host", "evil.example.test")).await;
            assert_eq!((other.status, other.json()["error"].as_str()), (421, Some("misdirected_request")));
        }
    }
    for path in [
        "/",
        "/jwks/",
        "/JWKS",
        "/.well-known/oauth-protected-resource/",
        "/.well-known/openid-configuration",
    ] {
        assert_eq!(house.send(&get(path)).await.status, 404, "{path}");
        assert_eq!(house.send(&get(path).but("Host", "evil.example.test")).await.status, 421, "{path}");
        assert_eq!(house.send(&get(path).with("Origin", "null")).await.status, 403, "{path}");
    }
}

#[test]
fn a_configuration_that_contradicts_itself_is_refused() {
    let authority = Arc::new(Scripted::default());
    let site = |path: &str, upstream: &str| resource(path, authority.clone(), upstream);
    let build =
        |config: GatewayConfig| Gateway::new(config, Arc::new(|| NOW)).err().map(|bad| bad.to_string());
    assert_eq!(build(config(vec![site("/mcp", "http://127.0.0.1:1/mcp")])), None);
    for url in [
        "http://gw.example.test/",
        "http://GW.example.test",
        "ftp://gw.example.test",
        "gw.example.test",
        "http://h:80",
    ] {
        let bad = GatewayConfig { public_url: url.into(), ..config(Vec::new()) };
        assert!(
            matches!(Gateway::new(bad, Arc::new(|| NOW)), Err(BadGateway::Server(BadServer::PublicUrl))),
            "{url}"
        );
    }
    for upstream in ["ftp://h/mcp", "h:1", "http://u:p@h/", "http://h/#x", "unix:/x"] {
        assert!(
            build(config(vec![site("/mcp", upstream)])).unwrap().contains("upstream of /mcp"),
            "{upstream}"
        );
    }
    for path in ["/jwks", "/owner-resources", "/health", "/.well-known/x"] {
        assert!(build(config(vec![site(path, "http://h/")])).unwrap().contains("is taken"), "{path}");
    }
    let twice = || vec![site("/mcp", "http://h/"), site("/mcp", "http://h/")];
    assert!(build(config(twice())).unwrap().contains("is taken"));
    // A grant names resource ids, so one id at two addresses would be one grant for both.
    let [mut one, mut other] = twice().try_into().ok().unwrap();
    other.resource.path = "/other".into();
    let shared = vec![one, other];
    assert!(build(config(shared)).unwrap().contains("shares the resource id vault/execute_trade"));
    for apart in [
        |it: &mut ResourceConfig| it.resource.owner = "bob".parse().unwrap(),
        |it: &mut ResourceConfig| {
            it.resource.as_uri = "https://elsewhere.test".into();
        },
    ] {
        [one, other] = twice().try_into().ok().unwrap();
        other.resource.path = "/other".into();
        apart(&mut other);
        assert_eq!(build(config(vec![one, other])), None);
    }
}
