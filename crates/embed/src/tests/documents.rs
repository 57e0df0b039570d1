//! What the layer publishes, and that nothing else is behind it.

use super::cast::{House, PUBLIC, key};
use super::request::Call;
use crate::{BadServer, Site, ToolSettings};
use http::Method;
use serde_json::json;

fn get(target: &str) -> Call {
    Call::bodiless(Method::GET).at(target)
}

// MCP-01, MCP-02, CORE-11
#[tokio::test]
async fn the_documents_of_the_resource_are_the_layers() {
    let house = House::open();
    for path in ["/.well-known/oauth-protected-resource/mcp", "/.well-known/oauth-protected-resource"] {
        let body = house.send(&get(path)).await.json();
        assert_eq!(
            (&body["resource"], &body["authorization_servers"][0]),
            (&json!(format!("{PUBLIC}/mcp")), &json!("https://as.example.test"))
        );
    }
    let keys = house.send(&get("/jwks")).await.json();
    assert_eq!(keys["keys"][0]["x"], serde_json::to_value(key(0x44).verifying().jwk()).unwrap()["x"]);
    assert_eq!(house.send(&get("/health")).await.status, 200);
    assert_eq!(house.send(&get("/owner-resources")).await.json()["error"], "invalid_signature");
    let listing = get("/owner-resources").signed_by(&key(0x11), super::cast::NOW, super::cast::HOST);
    assert_eq!(house.send(&listing).await.json()["resources"].as_array().unwrap().len(), 2);
    house.assert_untouched("documents");
}

#[tokio::test]
async fn another_spelling_of_the_resource_is_nothing() {
    let house = House::open();
    let call = Call::tool("get_positions", "{}");
    for other in ["/mcp/", "//mcp", "/MCP", "/%6dcp", "/mcp;x", "/", "/mcp/x", "/.well-known/../mcp"] {
        for call in [call.clone().at(other), call.clone().at(other).signed("reader")] {
            assert_eq!(house.send(&call).await.status, 404, "{other}");
        }
    }
    house.assert_untouched("spelled otherwise");
}

#[tokio::test]
async fn tools_learnt_later_are_published_and_decided_by_at_once() {
    let house = House::open();
    let tool = |id: &str| {
        ToolSettings::new("get_all".parse().unwrap(), id.parse().unwrap(), vec!["all:read".parse().unwrap()])
    };
    house.site.replace_tools(vec![tool("vault/get_all")]).unwrap();
    assert_eq!(house.send(&Call::tool("get_all", "{}")).await.status, 401);
    assert_eq!(house.send(&Call::tool("get_positions", "{}")).await.status, 403);
    let body = house.send(&get("/.well-known/oauth-protected-resource/mcp")).await.json();
    assert_eq!(body["scopes_supported"], json!(["all:read"]));
    assert!(house.site.replace_tools(vec![tool("vault/a"), tool("vault/b")]).is_err());
    assert_eq!(house.send(&Call::tool("get_all", "{}")).await.status, 401);
}

#[test]
fn a_site_that_contradicts_itself_is_none() {
    let site = |change: fn(&mut crate::SiteConfig)| {
        let mut config = super::cast::config(std::sync::Arc::new(super::cast::Scripted::default()));
        change(&mut config);
        Site::new(config, super::cast::clock()).err()
    };
    assert!(site(|_| {}).is_none());
    assert!(matches!(site(|config| config.public_url.push('/')), Some(BadServer::PublicUrl)));
    assert!(matches!(site(|config| config.path = "/jwks".into()), Some(BadServer::Path(_))));
    assert!(matches!(site(|config| config.path = "mcp".into()), Some(BadServer::Path(_))));
    assert!(matches!(
        site(|config| config.tools[1].resource_id = config.tools[0].resource_id.clone()),
        Some(BadServer::Resource { .. })
    ));
}
