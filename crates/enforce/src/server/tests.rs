//! A configuration that contradicts itself builds nothing, and one public URL makes all that is said of a server.

use super::*;
use crate::call::Head;
use crate::scripted::{NOW, Scripted, key, reusable, settings};

fn resource(path: &str) -> ServerResource {
    let model = settings();
    ServerResource {
        path: path.into(),
        aliases: Vec::new(),
        realm: model.realm,
        owner: model.owner,
        as_uri: model.as_uri,
        authority: Scripted::knowing(reusable()),
        edition: model.edition,
        tools: model.tools,
        enforcement: model.enforcement,
        open_methods: Vec::new(),
        allowed_origins: model.allowed_origins,
        accept_uncovered_body: false,
        serve_query: false,
    }
}

fn config(resources: Vec<ServerResource>) -> ServerConfig {
    let public_url = "https://gw.example.test".into();
    ServerConfig {
        public_url,
        hosts: vec![],
        key: key(0x44),
        readers: vec![],
        resources,
        body_limit: 1 << 20,
    }
}

fn build(config: ServerConfig) -> Result<Server, BadServer> {
    Server::new(config, Arc::new(|| NOW), None)
}

#[test]
fn all_that_is_said_of_a_resource_follows_from_the_public_url() {
    let server = build(config(vec![resource("/mcp")])).unwrap();
    let served = server.engine("/mcp").unwrap().resource();
    assert_eq!(served.settings().url, "https://gw.example.test/mcp");
    assert_eq!(served.settings().client_id.as_str(), "https://gw.example.test");
    assert_eq!(served.settings().hosts, ["gw.example.test"]);
    assert_eq!(served.authority(), "gw.example.test");
    for other in ["//mcp", "/mcp/", "/MCP", "/%6dcp", "", "mcp"] {
        assert!(server.engine(other).is_none(), "{other}");
    }
}

#[test]
fn what_contradicts_itself_is_refused() {
    for url in ["https://gw.example.test/", "https://GW.example.test", "ftp://h", "gw", "http://h:80"] {
        let bad = ServerConfig { public_url: url.into(), ..config(Vec::new()) };
        assert!(matches!(build(bad), Err(BadServer::PublicUrl)), "{url}");
    }
    for path in ["/jwks", "/owner-resources", "/health", "/.well-known/x", "mcp", ""] {
        assert!(matches!(build(config(vec![resource(path)])), Err(BadServer::Path(_))), "{path}");
    }
    let twice = config(vec![resource("/mcp"), resource("/mcp")]);
    assert!(matches!(build(twice), Err(BadServer::Path(_))));
    // A grant names resource ids, so one id at two addresses would be one grant for both.
    let shared = config(vec![resource("/mcp"), resource("/other")]);
    assert!(matches!(build(shared), Err(BadServer::Shared { .. })));
    let bobs = ServerResource { owner: "bob".parse().unwrap(), ..resource("/other") };
    assert!(build(config(vec![resource("/mcp"), bobs])).is_ok());
}

// CORE-11, CORE-115
#[tokio::test]
async fn each_address_of_a_resource_is_a_resource_of_its_own() {
    let aliased = ServerResource { aliases: vec!["/mcp/alice".into()], ..resource("/mcp") };
    let server = build(config(vec![aliased])).unwrap();
    assert_eq!(server.addresses().len(), 2);
    for path in ["/mcp", "/mcp/alice"] {
        let url = format!("https://gw.example.test{path}");
        assert_eq!(server.engine(path).unwrap().resource().settings().url, url);
        let asked = format!("/.well-known/oauth-protected-resource{path}");
        let head = Head { method: http::Method::GET, target: asked.parse().unwrap(), headers: hosted() };
        let document: serde_json::Value =
            serde_json::from_slice(server.published.answer(&head).await.body()).unwrap();
        assert_eq!(document["resource"], url);
    }
    // What is behind them is one thing, so both change at once, and no other address may have its ids.
    server.replace_tools("/mcp/alice", Vec::new()).unwrap();
    assert!(server.engine("/mcp").unwrap().resource().tool("get_positions").is_none());
    for aliases in
        [vec!["/mcp".to_owned()], vec!["/jwks".into()], vec!["alice".into()], vec!["/a".into(), "/a".into()]]
    {
        let bad = ServerResource { aliases, ..resource("/mcp") };
        assert!(matches!(build(config(vec![bad])), Err(BadServer::Path(_))));
    }
    let shared = ServerResource { aliases: vec!["/b".into()], ..resource("/other") };
    assert!(matches!(build(config(vec![resource("/mcp"), shared])), Err(BadServer::Shared { .. })));
}

fn hosted() -> http::HeaderMap {
    http::HeaderMap::from_iter([(http::header::HOST, "gw.example.test".parse().unwrap())])
}
