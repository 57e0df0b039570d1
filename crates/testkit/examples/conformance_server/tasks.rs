//! Tools that a client may let run as tasks (the extension of 2026-07-28), one that needs it to, and what becomes of
//! them. A client that did not say it knows tasks gets its answer at once.

use std::time::Duration;

use rmcp::model::{
    CallToolRequestParams, CallToolResult, ClientCapabilities, ContentBlock, CreateTaskResult, ErrorData,
    InputRequest, Tool,
};
use rmcp::task_manager::{TaskContext, TaskExit, TaskManager, TaskOptions};
use serde_json::{Value, json};
use tokio::time::sleep;

use crate::rounds::{ask, form, response};
use crate::schemas::{argument, plain, taking};
use crate::server::{Answer, Context, text};

/// How long a job takes that fails.
const SHORT: Duration = Duration::from_millis(300);
/// The longest a job may be asked to take.
const LONGEST: f64 = 120.0;

pub(crate) fn tools() -> Vec<Tool> {
    let greeted = json!({ "type": "object", "properties": { "name": { "type": "string" } } });
    let slow = json!({
        "type": "object",
        "properties": { "seconds": { "type": "number" }, "label": { "type": "string" } },
    });
    let deleted = json!({ "type": "object", "properties": { "filename": { "type": "string" } } });
    vec![
        taking("greet", "Answers at once, never as a task", greeted),
        taking("slow_compute", "Takes as long as it is told to", slow),
        plain("failing_job", "A task that ends in an error of the tool's"),
        plain("protocol_error_job", "A task that ends in an error of the protocol's"),
        taking("confirm_delete", "A task that asks once", deleted),
        plain("multi_input", "A task that asks for two things at once"),
        plain("test_tool_with_task", "Asks, and goes on as a task"),
    ]
}

/// Something that may run as a task.
enum Job {
    Sleep(Duration, String),
    Fail,
    Break,
    Ask(Vec<(&'static str, InputRequest)>),
    Greet(String),
}

pub(crate) async fn call(
    tasks: &TaskManager,
    call: &CallToolRequestParams,
    context: &Context,
) -> Option<Answer> {
    let knows = context.client_capabilities().is_some_and(|can| can.supports_tasks());
    let needs = matches!(
        call.name.as_ref(),
        "failing_job" | "confirm_delete" | "multi_input" | "test_tool_with_task"
    );
    if needs && !knows {
        let needed = ClientCapabilities::builder().enable_tasks().build();
        return Some(Err(ErrorData::missing_required_client_capability(needed)));
    }
    let job = match call.name.as_ref() {
        "greet" => {
            let name = argument(call, "name").unwrap_or_default();
            return Some(Ok(text(format!("Hello, {name}!"))));
        }
        "test_tool_with_task" => match response(call.input_responses.as_ref(), "user_name") {
            Some(said) => Ok(Job::Greet(filled(&Value::Object(said.clone()), "name"))),
            None => {
                let asked = form("Who is asking?", "name", "string");
                return Some(asked.map(|name| ask([("user_name", name)], None)));
            }
        },
        _ => job(call)?,
    };
    Some(match job {
        Err(fault) => Err(fault),
        Ok(job) if knows => Ok(start(tasks, job)),
        Ok(job) => at_once(job).await,
    })
}

fn job(call: &CallToolRequestParams) -> Option<Result<Job, ErrorData>> {
    Some(match call.name.as_ref() {
        "slow_compute" => {
            let seconds = call.arguments.as_ref().and_then(|given| given.get("seconds")?.as_f64());
            let seconds = Duration::from_secs_f64(seconds.unwrap_or(1.0).clamp(0.0, LONGEST));
            Ok(Job::Sleep(seconds, argument(call, "label").unwrap_or_default()))
        }
        "failing_job" => Ok(Job::Fail),
        "protocol_error_job" => Ok(Job::Break),
        "confirm_delete" => {
            let file = argument(call, "filename").unwrap_or_default();
            form(&format!("Delete {file}?"), "confirm", "boolean")
                .map(|asked| Job::Ask(vec![("confirm", asked)]))
        }
        "multi_input" => both().map(Job::Ask),
        _ => return None,
    })
}

fn both() -> Result<Vec<(&'static str, InputRequest)>, ErrorData> {
    Ok(vec![
        ("input-a", form("What is A?", "value", "string")?),
        ("input-b", form("What is B?", "value", "string")?),
    ])
}

fn start(tasks: &TaskManager, job: Job) -> rmcp::model::CallToolResponse {
    let task = tasks.spawn(TaskOptions::default(), move |task| {
        Box::pin(async move {
            tokio::select! {
                () = task.cancelled() => Err(TaskExit::Cancelled),
                ended = run(job, &task) => ended,
            }
        })
    });
    CreateTaskResult::new(task).into()
}

async fn run(job: Job, task: &TaskContext) -> Result<CallToolResult, TaskExit> {
    let Job::Ask(questions) = job else { return done(job).await.map_err(TaskExit::Error) };
    let asked = questions.into_iter().map(|(key, question)| task.request_input(key, question));
    let mut said = Vec::new();
    for answer in futures::future::join_all(asked).await {
        said.push(json!(answer?));
    }
    Ok(CallToolResult::success(vec![ContentBlock::text(format!("The client said {}", json!(said)))]))
}

async fn at_once(job: Job) -> Answer {
    done(job).await.map(Into::into)
}

async fn done(job: Job) -> Result<CallToolResult, ErrorData> {
    let said = match job {
        Job::Sleep(time, label) => {
            sleep(time).await;
            format!("{label} took {time:?}")
        }
        Job::Greet(name) => format!("Hello, {name}!"),
        Job::Fail => {
            sleep(SHORT).await;
            return Ok(CallToolResult::error(vec![ContentBlock::text("This job fails.")]));
        }
        Job::Break => return Err(ErrorData::internal_error("this job breaks", None)),
        Job::Ask(_) => return Err(ErrorData::internal_error("this job has to ask", None)),
    };
    Ok(CallToolResult::success(vec![ContentBlock::text(said)]))
}

/// A field of a form that was filled in.
fn filled(answer: &Value, field: &str) -> String {
    let content = answer.get("content").and_then(|content| content.get(field));
    content.and_then(Value::as_str).unwrap_or_default().to_owned()
}
