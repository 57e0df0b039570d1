//! Tools that say something while they run: log messages, progress, and one that hangs up in the middle so that its
//! answer has to be fetched by another request.

#![expect(deprecated, reason = "the older revisions have log messages, and the newest may ask for them")]

use std::time::Duration;

use http::request::Parts;
use rmcp::model::{
    CallToolRequestParams, ErrorData, LoggingLevel, LoggingMessageNotificationParam,
    ProgressNotificationParam, Tool,
};
use serde_json::json;
use tokio::time::sleep;

use crate::schemas::plain;
use crate::server::{Answer, Context, Fixture, text};

const STEP: Duration = Duration::from_millis(50);
/// How long a caller who was hung up on is given to come back.
const AWAY: Duration = Duration::from_millis(300);
/// How soon it is told to.
const RETRY: Duration = Duration::from_millis(200);
/// The streams a session may have had by then.
const STREAMS: u64 = 16;

pub(crate) fn tools() -> Vec<Tool> {
    vec![
        plain("test_tool_with_logging", "Logs three messages"),
        plain("test_logging_tool", "Logs when the request asks for it"),
        plain("test_tool_with_progress", "Reports progress three times"),
        plain("test_reconnection", "Hangs up before it answers"),
    ]
}

pub(crate) async fn call(
    fixture: &Fixture,
    call: &CallToolRequestParams,
    context: &Context,
) -> Option<Answer> {
    match call.name.as_ref() {
        "test_tool_with_logging" => {
            for said in ["It begins", "It goes on", "It is done"] {
                log(context, LoggingLevel::Info, said).await;
                sleep(STEP).await;
            }
        }
        "test_logging_tool" => {
            if let Some(level) = context.meta.log_level() {
                log(context, level, "as the request asked").await;
            }
        }
        "test_tool_with_progress" => progress(context).await,
        "test_reconnection" => {
            if let Err(fault) = hang_up(fixture, context).await {
                return Some(Err(fault));
            }
            sleep(AWAY).await;
        }
        _ => return None,
    }
    Some(Ok(text("This is what there was to tell.")))
}

/// That nobody hears it is not the tool's concern.
async fn log(context: &Context, level: LoggingLevel, said: &str) {
    let message = LoggingMessageNotificationParam::new(level, json!(said)).with_logger("fixture");
    let _ = context.peer.notify_logging_message(message).await;
}

async fn progress(context: &Context) {
    let token = context.meta.get_progress_token();
    for done in [0.0, 50.0, 100.0] {
        if let Some(token) = &token {
            let step = ProgressNotificationParam::new(token.clone(), done).with_total(100.0);
            let _ = context.peer.notify_progress(step).await;
        }
        sleep(STEP).await;
    }
}

/// Ends the streams of the caller's session, and keeps what is sent from now on for when it comes back.
async fn hang_up(fixture: &Fixture, context: &Context) -> Result<(), ErrorData> {
    let named = context.extensions.get::<Parts>().and_then(|parts| parts.headers.get("mcp-session-id"));
    let Some(named) = named.and_then(|name| name.to_str().ok()) else {
        return Ok(());
    };
    let sessions = fixture.sessions.sessions.read().await;
    let session = sessions.get(named).cloned();
    drop(sessions);
    let session = session.ok_or_else(|| ErrorData::internal_error("the session is gone", None))?;
    for stream in 0..STREAMS {
        // There is no telling which of them is the caller's; those that are not open are not there to end.
        let _ = session.close_sse_stream(stream, Some(RETRY)).await;
    }
    Ok(())
}
