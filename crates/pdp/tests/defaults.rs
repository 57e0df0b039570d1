//! What the default mappings ask about is what policies can be about: an author who declares nothing can allow any of it.

#![cfg(feature = "cedar")]

use sayso_coaz::{
    DecisionPoint as _, EXTRA_DEFAULTS, Engine, Operation, Projection, Registry, Settings, default_shapes,
};
use sayso_pdp::{Embedded, EmbeddedSettings};
use sayso_protocol::Json;
use serde_json::json;

#[tokio::test]
async fn every_default_mapping_is_about_what_is_declared() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("all.cedar"), "permit (principal, action, resource);").unwrap();
    let policies = Embedded::open(EmbeddedSettings::new(folder.path())).unwrap();
    let extra_defaults = EXTRA_DEFAULTS.iter().map(ToString::to_string).collect();
    let engine = Engine::new(Settings { extra_defaults, ..Settings::default() }).unwrap();
    let token = Json::from(json!({ "sub": "u-ann", "client_id": "agent-7", "aud": "https://mcp.test/mcp" }));
    for kind in ["ref/prompt", "ref/resource"] {
        let params = Json::from(json!({
            "name": "n", "uri": "file:///x", "taskId": "t", "level": "info", "protocolVersion": "2025-11-25",
            "ref": { "type": kind, "name": "p", "uri": "file:///{x}" },
        }));
        for shape in default_shapes() {
            let operation = Operation { method: shape.method, params: Some(&params), is_request: true };
            let projected = engine.project(operation, &Registry::undeclared(), 0, &token);
            let Ok(Projection::Ask(asked)) = projected else { panic!("{}", shape.method) };
            let decisions = policies.decide(&asked.request, "r-1").await.unwrap();
            assert!(decisions.permit().is_ok(), "{}", shape.method);
        }
    }
}
