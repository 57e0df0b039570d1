//! Serves the demo vault alone: `cargo run --example vault -- FOLDER [ADDRESS]`. It is for trying an MCP client
//! against a server without authorization; `sayso up` puts it behind a gateway.

use std::path::Path;

use anyhow::Context as _;
use sayso::vault::{Vault, serve};

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let mut arguments = std::env::args().skip(1);
    let folder = arguments.next().context("the first argument is the folder to keep the vault in")?;
    let address = arguments.next().unwrap_or_else(|| "127.0.0.1:8442".to_owned());
    let vault = Vault::open(Path::new(&folder))?;
    let listener = tokio::net::TcpListener::bind(&address).await.context("listening")?;
    eprintln!("http://{}/mcp", listener.local_addr()?);
    serve(vault, listener, async {
        let _ = tokio::signal::ctrl_c().await;
    })
    .await;
    Ok(())
}
