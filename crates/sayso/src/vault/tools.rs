//! The vault's three tools as MCP states and calls them. What an argument may be is said twice, in the schema a
//! client reads and in the type a call is parsed into; a call that does not parse is a tool error and does nothing.

use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, ErrorData, Implementation,
    JsonObject, ListToolsResult, PaginatedRequestParams, ServerCapabilities, ServerConfig, Tool,
    ToolAnnotations,
};
use rmcp::service::RequestContext;
use rmcp::{RoleServer, ServerHandler};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::SERVER_NAME;
use super::book::{KEPT_TRANSACTIONS, MAX_QUANTITY, Order, Rejection, TRADING_ACCOUNT};
use super::file::BookFile;

const INSTRUCTIONS: &str = "Alice's investment accounts: what they hold, what was traded, and trading.";
const UNREADABLE: &str = "the vault cannot read its records";
const UNCONFIRMED: &str = "the vault could not confirm the trade; read get_transactions before trying again";

/// Answers MCP requests from the book in a file.
#[derive(Clone)]
pub(super) struct VaultTools {
    file: Arc<BookFile>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct NoArguments {}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct OfAccount {
    account: String,
}

/// A call that named a tool of ours and whose arguments parsed.
enum Call {
    Positions,
    Transactions(String),
    Trade(Order),
}

/// Why a call has no result to show.
enum Failure {
    Rejected(Rejection),
    Unreadable(anyhow::Error),
    Unconfirmed(anyhow::Error),
}

impl From<Rejection> for Failure {
    fn from(rejection: Rejection) -> Self {
        Self::Rejected(rejection)
    }
}

impl Call {
    /// The call `name` stands for, or `None` when there is no such tool.
    fn parse(name: &str, arguments: Option<JsonObject>) -> Option<Result<Self, Rejection>> {
        Some(match name {
            "get_positions" => parsed(arguments).map(|NoArguments {}| Self::Positions),
            "get_transactions" => parsed(arguments).map(|OfAccount { account }| Self::Transactions(account)),
            "execute_trade" => parsed(arguments).map(Self::Trade),
            _ => return None,
        })
    }
}

fn parsed<T: DeserializeOwned>(arguments: Option<JsonObject>) -> Result<T, Rejection> {
    serde_json::from_value(Value::Object(arguments.unwrap_or_default())).map_err(|_| Rejection::Arguments)
}

impl VaultTools {
    pub(super) fn new(file: Arc<BookFile>) -> Self {
        Self { file }
    }
}

fn answer(file: &BookFile, call: Call) -> Result<Value, Failure> {
    match call {
        Call::Positions => {
            let book = file.read().map_err(Failure::Unreadable)?;
            Ok(json!({ "accounts": book.holdings() }))
        }
        Call::Transactions(account) => {
            let book = file.read().map_err(Failure::Unreadable)?;
            let transactions = book.transactions(&account)?;
            Ok(json!({ "account": account, "transactions": transactions }))
        }
        Call::Trade(order) => {
            let trade = file.execute(order, now()).map_err(Failure::Unconfirmed)??;
            Ok(json!({ "account": TRADING_ACCOUNT, "trade": trade }))
        }
    }
}

#[expect(clippy::disallowed_methods, reason = "a transaction is dated where the server takes the order")]
fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

fn result(answer: Result<Value, Failure>) -> CallToolResult {
    let text = match answer {
        Ok(value) => return CallToolResult::structured(value),
        Err(Failure::Rejected(rejection)) => rejection.to_string(),
        Err(Failure::Unreadable(error)) => {
            tracing::error!("{UNREADABLE}: {error:#}");
            UNREADABLE.to_owned()
        }
        Err(Failure::Unconfirmed(error)) => {
            tracing::error!("{UNCONFIRMED}: {error:#}");
            UNCONFIRMED.to_owned()
        }
    };
    CallToolResult::error(vec![ContentBlock::text(text)])
}

impl ServerHandler for VaultTools {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
            .with_server_info(Implementation::new(SERVER_NAME, env!("CARGO_PKG_VERSION")))
            .with_instructions(INSTRUCTIONS)
    }

    async fn list_tools(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        Ok(ListToolsResult::with_all_items(tools()))
    }

    fn get_tool(&self, name: &str) -> Option<Tool> {
        tools().into_iter().find(|tool| tool.name == name)
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let Some(call) = Call::parse(&request.name, request.arguments) else {
            return Err(ErrorData::invalid_params("there is no such tool", None));
        };
        let file = Arc::clone(&self.file);
        // A call that is cancelled from here on still runs to its end, so a trade is never half done.
        let answered = tokio::task::spawn_blocking(move || answer(&file, call?)).await;
        match answered {
            Ok(answered) => Ok(result(answered).into()),
            Err(_) => Err(ErrorData::internal_error("the call was interrupted", None)),
        }
    }
}

fn tools() -> Vec<Tool> {
    vec![
        tool(
            "get_positions",
            "What each of Alice's accounts holds: symbols and quantities.",
            json!({ "type": "object", "properties": {}, "additionalProperties": false }),
            reading("Read positions"),
        ),
        tool(
            "get_transactions",
            &format!(
                "The transactions of one account, oldest first; the newest {KEPT_TRANSACTIONS} are kept."
            ),
            json!({
                "type": "object",
                "properties": {
                    "account": { "type": "string", "description": "The account's name, such as brokerage-main" }
                },
                "required": ["account"],
                "additionalProperties": false
            }),
            reading("Read transactions"),
        ),
        tool(
            "execute_trade",
            &format!("Buys or sells shares in {TRADING_ACCOUNT} at once. A trade cannot be taken back."),
            json!({
                "type": "object",
                "properties": {
                    "symbol": {
                        "type": "string",
                        "pattern": "^[A-Z][A-Z0-9.-]{0,11}$",
                        "description": "The ticker symbol, such as VTI"
                    },
                    "side": { "type": "string", "enum": ["buy", "sell"] },
                    "quantity": {
                        "type": "integer",
                        "minimum": 1,
                        "maximum": MAX_QUANTITY,
                        "description": "How many shares"
                    }
                },
                "required": ["symbol", "side", "quantity"],
                "additionalProperties": false
            }),
            ToolAnnotations::from_raw(
                Some("Execute a trade".into()),
                Some(false),
                Some(true),
                Some(false),
                Some(true),
            ),
        ),
    ]
}

fn reading(title: &str) -> ToolAnnotations {
    ToolAnnotations::from_raw(Some(title.to_owned()), Some(true), Some(false), None, Some(false))
}

fn tool(name: &'static str, description: &str, schema: Value, annotations: ToolAnnotations) -> Tool {
    let schema = match schema {
        Value::Object(schema) => schema,
        _ => JsonObject::default(),
    };
    Tool::new(name, description.to_owned(), schema).with_annotations(annotations)
}

#[cfg(test)]
mod tests;
