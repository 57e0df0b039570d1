//! The registry and what is published from it.

use super::*;
use serde_json::json;

fn tool(name: &str, scope: &str, consequence: Option<Consequence>) -> ToolSettings {
    ToolSettings {
        tool: name.parse().unwrap(),
        resource_id: format!("alice-vault/{name}").parse().unwrap(),
        scopes: vec![scope.parse().unwrap()],
        single_use: consequence.is_some(),
        consequence,
        definition: None,
        surface: None,
        mirrors: Vec::new(),
    }
}

fn settings() -> ResourceSettings {
    ResourceSettings {
        url: "https://gateway.uma.lab/mcp".into(),
        realm: "alice-vault".parse().unwrap(),
        as_uri: "https://as.example".into(),
        client_id: "https://gateway.uma.lab".parse().unwrap(),
        owner: "alice-the-owner".parse().unwrap(),
        edition: Edition::default(),
        tools: vec![
            tool("get_positions", "positions:read", None),
            tool("execute_trade", "trades:execute", Some(Consequence::Irreversible)),
        ],
        enforcement: crate::resource::Enforcement::Uma,
        open_methods: Vec::new(),
        allowed_origins: Vec::new(),
        hosts: Vec::new(),
        accept_uncovered_body: false,
        serve_query: false,
        body_limit: 1 << 20,
        jwks_uri: "https://gateway.uma.lab/jwks".into(),
        owner_resources_endpoint: "https://gateway.uma.lab/owner-resources".into(),
    }
}

// BASE-09, CORE-10, FED-01, FED-03, FED-06, MCP-01
#[test]
fn a_resource_has_its_document() {
    let resource = Resource::new(settings()).unwrap();
    assert_eq!(resource.metadata_url(), "https://gateway.uma.lab/.well-known/oauth-protected-resource/mcp");
    assert_eq!(resource.metadata_path(), "/.well-known/oauth-protected-resource/mcp");
    let document = serde_json::to_value(resource.metadata()).unwrap();
    assert_eq!(document["resource"], "https://gateway.uma.lab/mcp");
    assert_eq!(document["authorization_servers"], json!(["https://as.example"]));
    assert_eq!(document["scopes_supported"], json!(["positions:read", "trades:execute"]));
    assert_eq!(document["owner_resources_endpoint"], "https://gateway.uma.lab/owner-resources");
    let surfaces = document["tool_surfaces"].as_array().unwrap();
    assert_eq!(
        surfaces[0],
        json!({
            "tool": "execute_trade", "resource_scopes": ["trades:execute"], "consequence": "irreversible"
        })
    );
}

// FED-02, CORE-118
#[test]
fn the_public_document_names_no_owner_and_no_instance() {
    let text = serde_json::to_string(&Resource::new(settings()).unwrap().metadata()).unwrap();
    assert!(!text.contains("alice"), "{text}");
}

// MCP-02, FED-09, FED-12
#[test]
fn every_document_comes_from_the_one_registry() {
    let mut changed = settings();
    changed.tools[0].scopes = vec!["positions:list".parse().unwrap()];
    changed.tools[0].consequence = Some(Consequence::Reversible);
    for settings in [settings(), changed] {
        let resource = Resource::new(settings).unwrap();
        let (public, listing) = (resource.metadata(), resource.listing());
        assert_eq!(public.tool_surfaces.len(), listing.resources.len());
        for (surface, owned) in public.tool_surfaces.iter().zip(&listing.resources) {
            assert_eq!((&surface.tool, &surface.resource_scopes), (&owned.tool, &owned.resource_scopes));
            assert_eq!(surface.consequence, owned.consequence);
            let tool = resource.tool(surface.tool.as_str()).unwrap();
            assert_eq!(tool.permission_request().resource_id, owned.id);
            let challenge = resource.challenge(tool, "t".into());
            assert_eq!(challenge.scopes, owned.resource_scopes);
            assert_eq!(challenge.remediation.authorization_details[0].identifier, owned.id);
        }
    }
}

// CORE-06, CORE-08, CORE-12, CORE-13, CORE-26, CORE-28, CORE-29
#[test]
fn a_challenge_says_what_its_remediation_says() {
    let resource = Resource::new(settings()).unwrap();
    let challenge = resource.challenge(resource.tool("execute_trade").unwrap(), "ticket-1".into());
    let object = serde_json::to_value(challenge.object()).unwrap();
    assert_eq!(object["realm"], "alice-vault");
    assert_eq!(object["error"], "insufficient_authorization");
    assert_eq!(object["scope"], "trades:execute");
    assert_eq!(object["resource_metadata"], resource.metadata_url());
    let remediation = &object["authorization_remediation"];
    assert_eq!(remediation["ticket"], object["ticket"]);
    assert_eq!(remediation["authorization_server"], object["as_uri"]);
    let digest = "s256:6cR6qTmCj6s0S95MxCfdfwfXJ8myLtBg-PiL8v93H0g";
    assert_eq!(remediation["authorization_reference"], digest);
}

#[test]
fn settings_that_contradict_themselves_are_refused() {
    let broken = |change: fn(&mut ResourceSettings)| {
        let mut settings = settings();
        change(&mut settings);
        Resource::new(settings).err().unwrap()
    };
    for url in [
        "/mcp",
        "ftp://h/mcp",
        "https://h/mcp?x",
        "https://h/mcp#x",
        "https://u@h/mcp",
        "https://H/mcp",
        "https://h:443/mcp",
    ] {
        let mut settings = settings();
        settings.url = url.into();
        assert_eq!(Resource::new(settings).err(), Some(BadResource::Url), "{url}");
    }
    assert_eq!(broken(|s| s.open_methods.push("tools/call".into())), BadResource::Opened);
    assert!(matches!(broken(|s| s.tools[0].scopes.clear()), BadResource::NoScope(_)));
    assert!(matches!(broken(|s| s.tools[1] = s.tools[0].clone()), BadResource::Repeated(_)));
    assert!(matches!(
        broken(|s| s.tools[1].resource_id = s.tools[0].resource_id.clone()),
        BadResource::Repeated(_)
    ));
}

// CORE-84
#[test]
fn a_tool_is_found_by_its_exact_name_alone() {
    let resource = Resource::new(settings()).unwrap();
    assert!(resource.tool("execute_trade").is_some());
    for name in ["Execute_Trade", "execute_trade ", "execute_trade\0", "", "execute"] {
        assert!(resource.tool(name).is_none(), "{name:?}");
    }
}
