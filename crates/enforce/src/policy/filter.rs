//! A list cut to what its reader may call, read or get.
//!
//! Each thing in it is asked about as the call of it would be, several at once. A tool whose mapping needs arguments that
//! nobody has yet is asked about by the default of its method. What gets no yes is not shown, and a decision point that
//! cannot be asked shows nothing: the list is then refused, never left as it was.

use super::asked::{Policy, refusal, unanswered};
use crate::authority::random_text;
use bytes::Bytes;
use sayso_coaz::authzen::{Entry, Evaluation, Evaluations, Request};
use sayso_coaz::{Fault, Operation, Projection, Registry, Why};
use sayso_protocol::json::Limits;
use sayso_protocol::message::{self, RequestId};
use sayso_protocol::{Json, json};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::timeout;

/// A list, by its method: where its things are, what is done with one, and which member of a thing names it, there and in
/// the parameters of that.
const LISTS: [(&str, &str, &str, &str, &str); 5] = [
    ("tools/list", "tools", "tools/call", "name", "name"),
    ("prompts/list", "prompts", "prompts/get", "name", "name"),
    ("resources/list", "resources", "resources/read", "uri", "uri"),
    ("resources/templates/list", "resourceTemplates", "resources/read", "uriTemplate", "uri"),
    ("tasks/list", "tasks", "tasks/get", "taskId", "taskId"),
];

/// Who may be shown a page that is kept.
const SCOPE: &str = "cacheScope";
/// What a page says beside its things, but for that.
const BESIDE: [&str; 4] = [META, "nextCursor", "resultType", "ttlMs"];
const META: &str = "_meta";
const OF_MCP: &str = "io.modelcontextprotocol/";

/// Things asked about at once.
const TOGETHER: usize = 64;
/// Things of one page that are asked about at all.
const MOST: usize = 1024;
/// How long all of a page may take.
const LONGEST: Duration = Duration::from_secs(30);
/// Most bytes of a list.
pub(crate) const BYTES: usize = 8 << 20;

/// Cuts the answer to one message.
pub(crate) struct Filter {
    policy: Arc<Policy>,
    list: &'static (&'static str, &'static str, &'static str, &'static str, &'static str),
    id: RequestId,
    token: Json,
}

impl Filter {
    pub(super) fn of(policy: &Arc<Policy>, request: &message::Request, token: &Json) -> Option<Self> {
        let list = LISTS.iter().find(|(method, ..)| *method == request.method)?;
        Some(Self { policy: Arc::clone(policy), list, id: request.id.clone(), token: token.clone() })
    }

    /// The answer in place of the server's: the same one without what its reader may not have, or a refusal. Nothing is
    /// an answer that could not be read.
    pub(crate) async fn apply(self, answer: Option<&[u8]>) -> Bytes {
        let cut = async {
            let answer = answer.ok_or_else(unanswered)?;
            let limits = Limits { bytes: BYTES, ..Limits::default() };
            let mut answer = Json::parse(answer, limits).map_err(|_| unanswered())?;
            self.cut(&mut answer).await?;
            serde_json::to_vec(&answer).map_err(|_| unanswered())
        };
        let cut = timeout(LONGEST, cut).await.unwrap_or_else(|_| Err(unanswered()));
        cut.map_or_else(|fault| refusal(&fault, Some(&self.id)).body().clone(), Bytes::from)
    }

    async fn cut(&self, answer: &mut Json) -> Result<(), Fault> {
        let (_, member, ..) = self.list;
        let Some(result) = inner(answer, "result") else {
            // An error lists nothing.
            return if answer.get("error").is_some() { Ok(()) } else { Err(unanswered()) };
        };
        let Some(Json::Array(things)) = inner(result, member) else { return Err(unanswered()) };
        if things.len() > MOST {
            return Err(unanswered());
        }
        let listed = self.policy.mappings().current().await;
        let now = self.policy.mappings().now();
        let asked: Vec<Option<Evaluation>> =
            things.iter().map(|thing| self.about(thing, &listed.registry, now)).collect::<Result<_, _>>()?;
        let mut shown = vec![false; things.len()];
        let askable: Vec<(usize, Evaluation)> =
            asked.into_iter().enumerate().filter_map(|(at, asked)| Some((at, asked?))).collect();
        for group in askable.chunks(TOGETHER) {
            for ((at, _), may) in group.iter().zip(self.may(group).await?) {
                if let Some(shown) = shown.get_mut(*at) {
                    *shown = may;
                }
            }
        }
        let mut shown = shown.into_iter();
        things.retain(|_| shown.next().unwrap_or(false));
        make_private(result, member);
        keep(answer, |name| ["jsonrpc", "id", "result"].contains(&name));
        Ok(())
    }

    /// What is asked about one thing; nothing where it cannot be had at all. Without a listing
    /// that is no answer about the things but a fault: nobody can say what to ask.
    fn about(&self, thing: &Json, registry: &Registry, now: i64) -> Result<Option<Evaluation>, Fault> {
        let (_, _, method, named, parameter) = *self.list;
        let Some(name) = thing.get(named).and_then(Json::as_str).map(str::to_owned) else { return Ok(None) };
        let params = Json::Object(vec![(parameter.to_owned(), Json::String(name))]);
        let operation = Operation { method, params: Some(&params), is_request: true };
        let undeclared = Registry::undeclared();
        let project = |registry: &Registry| self.policy.engine.project(operation, registry, now, &self.token);
        let projected = project(registry).or_else(|fault| match fault.why {
            // It says what to ask only of a call with arguments.
            Why::Expression { .. } | Why::NoValue | Why::NotAString | Why::Empty => project(&undeclared),
            _ => Err(fault),
        });
        let asked = match projected {
            Ok(Projection::Ask(asked)) => asked,
            Err(fault) if matches!(fault.why, Why::Unlisted) => return Err(fault),
            Ok(Projection::PassThrough) | Err(_) => return Ok(None),
        };
        Ok(match asked.request {
            Request::Evaluation(one) => Some(*one),
            // All of them would have to be yes; what a list shows is asked about by one question each.
            Request::Evaluations(_) => match project(&undeclared) {
                Ok(Projection::Ask(asked)) => match asked.request {
                    Request::Evaluation(one) => Some(*one),
                    Request::Evaluations(_) => None,
                },
                _ => None,
            },
        })
    }

    /// Which of these may be had.
    async fn may(&self, group: &[(usize, Evaluation)]) -> Result<Vec<bool>, Fault> {
        let entry = |(_, one): &(usize, Evaluation)| Entry {
            subject: Some(one.subject.clone()),
            action: Some(one.action.clone()),
            resource: Some(one.resource.clone()),
            context: one.context.clone(),
        };
        let evaluations = group.iter().map(entry).collect();
        let request = Evaluations { defaults: Entry::default(), evaluations, options: None };
        let id = random_text().map_err(|_| unanswered())?;
        let request = Request::Evaluations(Box::new(request));
        let decisions = self.policy.point.decide(&request, &id).await?;
        let may: Vec<bool> = decisions.each().iter().map(sayso_coaz::answer::Decision::permits).collect();
        let (shown, hidden) =
            (may.iter().filter(|may| **may).count(), may.iter().filter(|may| !**may).count());
        tracing::info!(request_id = id, method = self.list.0, shown, hidden, "policy.filtered");
        if may.len() == group.len() { Ok(may) } else { Err(unanswered()) }
    }
}

/// Says that a page is its reader's alone, whether or not anything was cut from it: another's may be longer or shorter.
/// Beside its things it keeps what MCP gives a meaning; a count of them, say, would tell what is not there.
fn make_private(result: &mut Json, things: &str) {
    keep(result, |name| name == things || BESIDE.contains(&name));
    if let Some(meta) = inner(result, META) {
        keep(meta, |name| name.starts_with(OF_MCP));
    }
    if let Json::Object(members) = result {
        members.push((SCOPE.to_owned(), Json::String("private".to_owned())));
    }
}

/// Drops the members of other names, and whatever is no object altogether.
fn keep(json: &mut Json, which: impl Fn(&str) -> bool) {
    match json {
        Json::Object(members) => members.retain(|(name, _)| which(name)),
        other => *other = Json::Object(Vec::new()),
    }
}

fn inner<'j>(json: &'j mut Json, name: &str) -> Option<&'j mut Json> {
    let json::Json::Object(members) = json else { return None };
    members.iter_mut().find(|(member, _)| member == name).map(|(_, value)| value)
}
