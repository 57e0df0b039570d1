//! An rmcp client that calls one guarded tool, within a rule about terms: rmcp_client URL FOLDER TOOL ARGUMENTS

use rmcp::{ServiceExt as _, model::CallToolRequestParams};
use sayso_agent::{Agent, Allowed, Doors, Nobody, Rule, Standing, rmcp::Settings};
use std::time::{SystemTime, UNIX_EPOCH};

#[expect(clippy::disallowed_methods, reason = "an example is an edge")]
fn now() -> sayso_protocol::Timestamp {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    sayso_protocol::Timestamp(since.as_secs().cast_signed())
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let words: Vec<String> = std::env::args().collect();
    let [_, url, folder, tool, arguments] = &words[..] else {
        return Err("URL FOLDER TOOL ARGUMENTS".into());
    };
    let agent = Agent::open(folder.as_ref(), Doors::usual(), now)?;
    let rule = Rule { longest: 172_800, prohibitions: Allowed::Any, purposes: Allowed::Any };
    let consent = Standing { rule: Some(rule), otherwise: Nobody };
    let client = ().serve(Settings::new(agent, url, consent).transport().await?).await?;
    let mut call = CallToolRequestParams::new(tool.clone());
    call.arguments = serde_json::from_str(arguments)?;
    println!("{}", serde_json::to_string(&client.call_tool(call).await?)?);
    client.cancel().await?;
    Ok(())
}
