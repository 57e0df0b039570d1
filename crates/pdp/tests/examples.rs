//! The examples of the documentation: tools that declare mappings, and policies that decide on their calls.

#![cfg(feature = "cedar")]
#![expect(clippy::unwrap_used, clippy::panic, reason = "a test that cannot set itself up has failed")]

use sayso_coaz::{
    Category, DecisionPoint as _, Engine, Operation, Projection, Registry, Settings, Source, lint,
};
use sayso_pdp::{Embedded, EmbeddedSettings};
use sayso_protocol::Json;
use sayso_protocol::json::Limits;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

const FOLDER: &str = "../../docs/examples/coaz";

fn path(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(FOLDER).join(name)
}

struct Desk {
    engine: Engine,
    registry: Registry,
    policies: Embedded,
}

impl Desk {
    fn new(listing: &str) -> Self {
        let bytes = std::fs::read(path(listing)).unwrap();
        let document = Json::parse(&bytes, Limits::default()).unwrap();
        for report in lint::lint(&document).unwrap() {
            assert!(report.findings.is_empty(), "{report:?}");
        }
        let registry = Registry::read(&[lint::listing(&document).unwrap()], i64::MAX).unwrap();
        let settings = Settings { server: Some("https://mcp.example.com".to_owned()), ..Settings::default() };
        let policies = Embedded::open(EmbeddedSettings::new(path("policies"))).unwrap();
        Self { engine: Engine::new(settings).unwrap(), registry, policies }
    }

    /// Who calls with which roles, and what comes of it; the category of what is no yes.
    async fn ask(&self, sub: &str, roles: &[&str], method: &str, params: Value) -> Result<(), Category> {
        let token =
            json!({ "sub": sub, "roles": roles, "client_id": "agent-7", "aud": "https://mcp.example.com" });
        let (token, params) = (Json::from(token), Json::from(params));
        let operation = Operation { method, params: Some(&params), is_request: true };
        let projected = self.engine.project(operation, &self.registry, 0, &token);
        let Projection::Ask(asked) = projected.map_err(|fault| fault.category())? else {
            panic!("nobody was asked")
        };
        assert_eq!(asked.source == Source::Declared, method == "tools/call");
        let decisions =
            self.policies.decide(&asked.request, "r-1").await.map_err(|fault| fault.category())?;
        decisions.permit().map(drop).map_err(|fault| fault.category())
    }

    async fn call(&self, sub: &str, roles: &[&str], tool: &str, arguments: Value) -> Result<(), Category> {
        self.ask(sub, roles, "tools/call", json!({ "name": tool, "arguments": arguments })).await
    }
}

const ALICE: &str = "alice@example.com";
const ADA: &str = "ada@example.com";
const BOB: &str = "bob@example.com";
const NO: Result<(), Category> = Err(Category::Denied);

// COAZ-MCP-65
#[tokio::test]
async fn a_customer_is_read_by_the_desk_and_a_restricted_one_for_a_case() {
    let desk = Desk::new("tools.json");
    let get = async |sub, arguments| desk.call(sub, &[], "get_customer", arguments).await;
    assert_eq!(get(ALICE, json!({ "id": "cust-12345", "case": "case-67890" })).await, Ok(()));
    assert_eq!(get(ALICE, json!({ "id": "cust-12345" })).await, NO);
    assert_eq!(get(ALICE, json!({ "id": "cust-1" })).await, Ok(()));
    assert_eq!(get(BOB, json!({ "id": "cust-1", "case": "c" })).await, NO);
    assert_eq!(get("mallory@example.com", json!({ "id": "cust-1", "case": "c" })).await, NO);
    assert_eq!(get(ALICE, json!({})).await, Err(Category::Mapping));
}

// COAZ-MCP-66
#[tokio::test]
async fn an_object_is_copied_by_two_decisions() {
    let desk = Desk::new("tools.json");
    let copy = async |sub, source, destination| {
        desk.call(sub, &[], "copy_object", json!({ "source": source, "destination": destination })).await
    };
    let (report, archive) = ("/bucket/reports/q1.pdf", "/bucket/archive/q1.pdf");
    assert_eq!(copy(ALICE, report, archive).await, Ok(()));
    assert_eq!(copy(ALICE, archive, report).await, NO);
    assert_eq!(copy(ALICE, report, report).await, NO);
    assert_eq!(copy(ALICE, report, "/bucket/archive/../reports/q1.pdf").await, NO);
    assert_eq!(copy(BOB, report, archive).await, NO);
}

// COAZ-MCP-67, COAZ-FW-38
#[tokio::test]
async fn money_is_moved_by_who_is_known_to_and_not_by_who_is_called_so() {
    let desk = Desk::new("tools.json");
    let transfer = async |sub, roles: &[&str], amount: Value, currency: &str| {
        let arguments =
            json!({ "from_account": "A", "to_account": "B", "amount": amount, "currency": currency });
        desk.call(sub, roles, "transfer_funds", arguments).await
    };
    assert_eq!(transfer(ALICE, &["treasury"], json!(20000), "USD").await, Ok(()));
    assert_eq!(transfer(ALICE, &["treasury"], json!(10000.5), "EUR").await, Ok(()));
    assert_eq!(transfer(ALICE, &["treasury"], json!(1_000_000.5), "USD").await, NO);
    assert_eq!(transfer(BOB, &["ops"], json!(10000), "USD").await, Ok(()));
    assert_eq!(transfer(BOB, &["ops"], json!(10000.5), "USD").await, NO);
    assert_eq!(transfer(BOB, &["ops"], json!(1), "EUR").await, NO);
    // The mapping calls him a treasury user; nobody who writes entities does.
    assert_eq!(transfer(BOB, &["treasury"], json!(1), "USD").await, NO);
    // A fraction that no decimal holds is nobody's to round.
    assert_eq!(transfer(ALICE, &["treasury"], json!(0.000_01), "USD").await, Err(Category::Policy));
    assert_eq!(transfer(ALICE, &["treasury"], json!("1"), "USD").await, Err(Category::Mapping));
}

#[tokio::test]
async fn a_customer_moves_between_regions_by_two_decisions() {
    let desk = Desk::new("regions.json");
    let regions =
        json!({ "customer_id": "c", "source_region": "us-west-2", "destination_region": "eu-west-1" });
    let transfer = async |sub| desk.call(sub, &[], "transfer_customer", regions.clone()).await;
    assert_eq!(transfer(ADA).await, Ok(()));
    assert_eq!(transfer(BOB).await, NO, "another department");
    assert_eq!(transfer(ALICE).await, NO, "another team");
    let get = async |sub, id: &str| desk.call(sub, &[], "get_customer", json!({ "customer_id": id })).await;
    assert_eq!(get(ADA, "cust-1").await, Ok(()));
    assert_eq!(get(ADA, "cust-12345").await, NO, "this mapping has no case");
    assert_eq!(get(BOB, "cust-1").await, NO);
}

#[tokio::test]
async fn what_no_policy_allows_is_denied() {
    let desk = Desk::new("tools.json");
    assert_eq!(desk.ask(ALICE, &[], "tools/list", json!({})).await, Ok(()));
    assert_eq!(desk.ask(BOB, &[], "initialize", json!({ "protocolVersion": "2025-11-25" })).await, Ok(()));
    assert_eq!(desk.ask(ALICE, &[], "prompts/list", json!({})).await, NO);
    assert_eq!(desk.ask(ALICE, &[], "resources/read", json!({ "uri": "file:///x" })).await, NO);
}
