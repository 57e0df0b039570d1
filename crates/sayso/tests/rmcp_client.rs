//! An rmcp client that is an agent by its transport, against `sayso up` and its owner, in both lifecycles.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::disallowed_methods,
    reason = "a test that cannot run the binary has failed, and a test is an edge"
)]

use rmcp::model::{CallToolRequestParams, ProtocolVersion};
use rmcp::service::{ClientLifecycleMode, RunningService};
use rmcp::{ClientServiceExt as _, RoleClient};
use sayso_agent::rmcp::{OUTCOME, Settings};
use sayso_agent::{Agent, Allowed, Doors, Nobody, Rule, Standing};
use sayso_protocol::Timestamp;
use serde_json::{Value, json};
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

fn now() -> Timestamp {
    Timestamp(SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs().try_into().unwrap())
}

struct House {
    dir: tempfile::TempDir,
    up: Child,
    resource: String,
}

impl Drop for House {
    fn drop(&mut self) {
        let _ = self.up.kill();
        let _ = self.up.wait();
    }
}

fn sayso(dir: &Path, words: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_sayso"));
    command.current_dir(dir).args(words).env("HOME", dir).env_remove("XDG_CONFIG_HOME").stdin(Stdio::null());
    command
}

impl House {
    fn start() -> House {
        let dir = tempfile::tempdir().unwrap();
        let words =
            ["up", "--data", "data", "--authority", "127.0.0.1:0", "--gateway", "127.0.0.1:0", "--json"];
        let mut up = sayso(dir.path(), &words).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(up.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let ready: Value = serde_json::from_str(&line).unwrap();
        House { resource: ready["resource"].as_str().unwrap().to_owned(), dir, up }
    }

    fn owner(&self, words: &[&str]) -> Value {
        let output =
            sayso(self.dir.path(), &[&["owner", "--data", "data"], words].concat()).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        serde_json::from_slice(&output.stdout).unwrap_or_default()
    }

    /// Waits until she is asked, and answers.
    async fn decide(&self, word: &str) {
        for _ in 0..100 {
            if let Some(family) = self.owner(&["pending", "--json"])[0]["family"].as_str() {
                self.owner(&[word, family]);
                return;
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        panic!("she was never asked");
    }

    async fn client(&self, lifecycle: ClientLifecycleMode) -> RunningService<RoleClient, ()> {
        let agent = Agent::open(&self.dir.path().join("agent"), Doors::usual(), now).unwrap();
        let rule = Rule { longest: 172_800, prohibitions: Allowed::Any, purposes: Allowed::Any };
        let consent = Standing { rule: Some(rule), otherwise: Nobody };
        let transport = Settings::new(agent, &self.resource, consent).transport().await.unwrap();
        ().serve_with_lifecycle(transport, lifecycle).await.unwrap()
    }
}

async fn trade(client: &RunningService<RoleClient, ()>, quantity: u32) -> Value {
    let mut params = CallToolRequestParams::new("execute_trade");
    let arguments = json!({ "symbol": "VTI", "side": "buy", "quantity": quantity });
    params.arguments = arguments.as_object().cloned();
    serde_json::to_value(client.call_tool(params).await.unwrap()).unwrap()
}

async fn story(lifecycle: ClientLifecycleMode) {
    let house = House::start();
    let client = house.client(lifecycle).await;
    let tools = client.list_all_tools().await.unwrap();
    assert!(tools.iter().any(|tool| tool.name == "execute_trade"));
    let (done, ()) = tokio::join!(trade(&client, 3), house.decide("approve"));
    assert_ne!(done["isError"], true, "{done}");
    let (denied, ()) = tokio::join!(trade(&client, 4), house.decide("deny"));
    assert_eq!((&denied["isError"], &denied["_meta"][OUTCOME]), (&json!(true), &json!("denied")), "{denied}");
    // An approval is for one call: the same one again asks her again.
    let (again, ()) = tokio::join!(trade(&client, 3), house.decide("approve"));
    assert_ne!(again["isError"], true, "{again}");
    let ledger = house.owner(&["ledger", "--json"]).to_string();
    assert_eq!(ledger.matches("\"touched\"").count(), 2, "{ledger}");
    client.cancel().await.unwrap();
}

#[tokio::test]
async fn a_client_of_the_newest_revision_is_an_agent_by_its_transport() {
    story(ClientLifecycleMode::Discover { preferred_versions: vec![ProtocolVersion::V_2026_07_28] }).await;
}

#[tokio::test]
async fn a_client_with_a_session_is_an_agent_by_its_transport() {
    story(ClientLifecycleMode::Initialize).await;
}
