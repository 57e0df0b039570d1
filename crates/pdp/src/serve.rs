//! A decision point served to others: the Access Evaluation and Access Evaluations APIs of OpenID AuthZEN 1.0, and its
//! metadata. Search is not offered, and not advertised.
//!
//! A denial is a decision and travels with 200; an HTTP error says nothing about access. Every request is bounded in size,
//! depth and time, and asked for by a host that is named in full (D-16). Which policies decide is the decision point's.

mod guard;
mod reading;
mod reply;
mod room;
#[cfg(test)]
mod tests;

use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::middleware;
use axum::response::{IntoResponse as _, Response};
use axum::routing::{get, post};
use http::StatusCode;
use http::header::ALLOW;
use reading::{Asked, Entries};
use reply::{Item, Said};
use room::{Held, Room};
use sayso_coaz::authzen::{self, Semantic};
use sayso_coaz::{DecisionPoint, Tally};
use serde_json::json;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::time::timeout;

pub use guard::{Secret, WeakSecret};

/// Where metadata is.
pub const METADATA: &str = "/.well-known/authzen-configuration";
/// Where one decision is asked for.
pub const EVALUATION: &str = "/access/v1/evaluation";
/// Where several are.
pub const EVALUATIONS: &str = "/access/v1/evaluations";
/// Most bytes of a request.
pub const MAX_REQUEST: usize = 1 << 20;
/// Most entries of one request.
pub const MAX_ENTRIES: usize = 256;
/// How long all decisions of one request may take.
const PATIENCE: Duration = Duration::from_secs(10);

/// Told what was decided, in words of ours, and how long it took.
pub trait Observer: Send + Sync {
    /// One decision: `permit`, `deny` or `error`.
    fn decided(&self, result: &'static str, took: Duration);
}

/// What is served.
pub struct Served {
    /// Who decides.
    pub point: Arc<dyn DecisionPoint>,
    /// The identifier of this decision point: an origin, without a slash behind.
    pub url: String,
    /// The hosts a request may name, with their ports.
    pub hosts: Vec<String>,
    /// What those who ask must show; without it anybody may ask.
    pub secret: Option<Secret>,
    /// Who counts.
    pub observer: Option<Arc<dyn Observer>>,
}

/// Who answers.
struct Desk {
    served: Arc<Served>,
    room: Room,
}

/// The routes.
pub fn router(served: Served) -> Router {
    let served = Arc::new(served);
    let asking = Router::new()
        .route(EVALUATION, post(evaluation))
        .route(EVALUATIONS, post(evaluations))
        .route_layer(middleware::from_fn_with_state(Arc::clone(&served), guard::authenticate));
    Router::new()
        .merge(asking)
        .route(METADATA, get(metadata))
        .route("/health", get(async || reply::json(&json!({ "status": "ok" }))))
        .fallback(async || reply::refusal(StatusCode::NOT_FOUND, "this decision point has nothing here"))
        .method_not_allowed_fallback(not_allowed)
        .layer(middleware::from_fn_with_state(Arc::clone(&served), guard::guard))
        .with_state(Arc::new(Desk { served, room: Room::new() }))
}

async fn not_allowed(request: Request) -> Response {
    let asked = [EVALUATION, EVALUATIONS].contains(&request.uri().path());
    let methods = if asked { "POST" } else { "GET, HEAD" };
    let text = format!("this address takes {methods}");
    let mut response = reply::refusal(StatusCode::METHOD_NOT_ALLOWED, &text);
    if let Ok(methods) = methods.parse() {
        response.headers_mut().insert(ALLOW, methods);
    }
    response
}

async fn metadata(State(desk): State<Arc<Desk>>) -> Response {
    let url = &desk.served.url;
    reply::json(&json!({
        "policy_decision_point": url,
        "access_evaluation_endpoint": format!("{url}{EVALUATION}"),
        "access_evaluations_endpoint": format!("{url}{EVALUATIONS}"),
    }))
}

async fn evaluation(State(desk): State<Arc<Desk>>, request: Request<Body>) -> Response {
    let request_id = guard::request_id(request.headers());
    match reading::body(&desk.room, request).await {
        Ok(held) => within(desk.one(&held, &request_id)).await,
        Err(unread) => unread.into_response(),
    }
}

async fn evaluations(State(desk): State<Arc<Desk>>, request: Request<Body>) -> Response {
    let request_id = guard::request_id(request.headers());
    match reading::body(&desk.room, request).await {
        Ok(held) => within(desk.several(&held, &request_id)).await,
        Err(unread) => unread.into_response(),
    }
}

async fn within(answering: impl Future<Output = Response>) -> Response {
    let late = |_| reply::refusal(StatusCode::INTERNAL_SERVER_ERROR, "no decision was made in time");
    timeout(PATIENCE, answering).await.unwrap_or_else(late)
}

impl Desk {
    async fn one(&self, held: &Held, request_id: &str) -> Response {
        let Some(_turn) = self.room.turn(held).await else { return Item::none().into_response() };
        match reading::read(held).and_then(|body| reading::single(&body)) {
            Ok(asked) => self.served.one(asked, request_id).await,
            Err(unread) => unread.into_response(),
        }
    }

    async fn several(&self, held: &Held, request_id: &str) -> Response {
        let Some(_turn) = self.room.turn(held).await else { return Item::none().into_response() };
        match reading::read(held).and_then(Asked::read) {
            Ok(Asked::One(asked)) => self.served.one(*asked, request_id).await,
            Ok(Asked::Several(entries, semantic)) => {
                self.served.several(&entries, semantic, request_id).await
            }
            Err(unread) => unread.into_response(),
        }
    }
}

impl Served {
    /// Without a single decision there is nothing but an HTTP error to say so with.
    async fn one(&self, asked: authzen::Evaluation, request_id: &str) -> Response {
        match self.decide(asked, request_id, &Tally::default()).await {
            Ok(said) => reply::json(&said),
            Err(item) => item.into_response(),
        }
    }

    async fn several(&self, entries: &Entries, semantic: Semantic, request_id: &str) -> Response {
        let (mut all, tally) = (Vec::new(), Tally::default());
        for entry in entries.each() {
            // The others' requests are to have their turns between the decisions of this one.
            tokio::task::yield_now().await;
            let said = match entry {
                Ok(asked) => self.decide(asked, request_id, &tally).await.unwrap_or_else(Item::said),
                Err(unread) => Item::from(unread).said(),
            };
            let ends = match semantic {
                Semantic::ExecuteAll => false,
                Semantic::DenyOnFirstDeny => !said.decision,
                Semantic::PermitOnFirstPermit => said.decision,
            };
            all.push(said);
            if ends {
                break;
            }
        }
        reply::json(&json!({ "evaluations": all }))
    }

    async fn decide(
        &self,
        asked: authzen::Evaluation,
        request_id: &str,
        tally: &Tally,
    ) -> Result<Said, Item> {
        let begun = Instant::now();
        let request = authzen::Request::Evaluation(Box::new(asked));
        let said = match self.point.decide_among(&request, request_id, tally).await {
            Ok(decisions) => decisions.each().first().map(Said::of).ok_or_else(Item::none),
            Err(fault) => Err(Item::of(&fault)),
        };
        if let Some(observer) = &self.observer {
            let result = match &said {
                Ok(said) if said.decision => "permit",
                Ok(_) => "deny",
                Err(_) => "error",
            };
            observer.decided(result, begun.elapsed());
        }
        said
    }
}
