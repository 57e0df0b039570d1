//! What a server says of its own tools, asked by the gateway itself (D-30).
//!
//! All pages or nothing, in whichever era the server speaks, with no word of any agent's in the questions. A listing that
//! is too large, too slow or contradicts itself is no listing; one tool that cannot be pinned is left out with its
//! reason. What follows from a listing is decided elsewhere.

mod attend;
mod definition;
mod mapped;
mod remote;

pub use definition::{LeftOut, Surveyed, Unfit};
pub use sayso_protocol::message::Annotations;

use crate::upstream::stdio::{Era, StdioUpstream, own_meta};
use crate::upstream::{Kind, Upstream};
use remote::Remote;
use sayso_protocol::Json;
use sayso_protocol::json::{Limits, MAX_DEPTH};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::time::Duration;
use tokio::time::timeout;

/// Most pages of a listing.
const PAGES: usize = 100;
/// Most tools.
const TOOLS: usize = 2000;
/// Most bytes of all answers together.
const BYTES: usize = 8 << 20;
/// Longest survey.
const TIME: Duration = Duration::from_secs(10);

/// A complete listing.
#[derive(Debug, Clone)]
pub struct Survey {
    /// What the server calls itself. Its own words, and nobody checked them.
    pub server_name: Option<String>,
    /// The revision it was asked in.
    pub revision: String,
    /// The revisions it says it speaks; at least the one it was asked in.
    pub revisions: Vec<String>,
    /// Its tools, in its order.
    pub tools: Vec<Surveyed>,
    /// Tools that cannot be governed, and why.
    pub left_out: Vec<LeftOut>,
    /// For how long the server says the listing holds; the shortest of its pages'.
    pub holds: Option<Duration>,
}

/// Why there is no listing. Nothing is known then, least of all that there are no tools.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SurveyFault {
    /// It could not be asked.
    #[error("the server cannot be reached, or broke off")]
    Unreachable,
    /// It took too long.
    #[error("the server did not list its tools in time")]
    TimedOut,
    /// It listed too much.
    #[error("the server's listing is too large")]
    TooLarge,
    /// It speaks no revision known here.
    #[error("the server speaks no revision that is known here")]
    Unspoken,
    /// It let nobody in who showed what was shown, with this status: 401 or 403.
    #[error("the server refused us with status {0}")]
    Denied(u16),
    /// It answered with an error.
    #[error("the server refused to list its tools, with error {0}")]
    Refused(i64),
    /// Its answer is not what a listing is.
    #[error("the server's listing is malformed")]
    Malformed,
    /// Two of its tools have one name.
    #[error("two of the server's tools have one name")]
    Repeated,
}

impl Upstream {
    /// Asks the server for its tools.
    ///
    /// # Errors
    /// When there is no complete listing to be had.
    pub async fn survey(&self) -> Result<Survey, SurveyFault> {
        timeout(TIME, self.list()).await.map_err(|_| SurveyFault::TimedOut)?
    }

    /// Asks the server for its tools as it writes them, for whoever checks what it declares.
    ///
    /// # Errors
    /// When there is no complete listing to be had. Tools of one name, and tools that cannot be governed, are listed.
    pub async fn listing(&self) -> Result<Vec<Json>, SurveyFault> {
        let pages = self.pages().await?;
        let tools = pages.iter().map(tools).collect::<Result<Vec<_>, _>>()?;
        Ok(tools.into_iter().flatten().cloned().collect())
    }

    /// The same, page by page: each the result of one question.
    ///
    /// # Errors
    /// When there is no complete listing to be had.
    pub async fn pages(&self) -> Result<Vec<Json>, SurveyFault> {
        let listing = async {
            match &self.0.kind {
                Kind::Http(upstream) => {
                    let (mut remote, about) = Remote::meet(upstream).await?;
                    let listed = written(Talk::Remote(&mut remote), about.has_tools).await;
                    remote.leave().await;
                    listed
                }
                Kind::Stdio(upstream) => {
                    let (era, about) = meet(upstream).await?;
                    written(Talk::Child(upstream, era, BYTES), about.has_tools).await
                }
            }
        };
        timeout(TIME, listing).await.map_err(|_| SurveyFault::TimedOut)?
    }

    async fn list(&self) -> Result<Survey, SurveyFault> {
        match &self.0.kind {
            Kind::Http(upstream) => {
                let (mut remote, about) = Remote::meet(upstream).await?;
                let listed = pages(Talk::Remote(&mut remote), about).await;
                remote.leave().await;
                listed
            }
            Kind::Stdio(upstream) => {
                let (era, about) = meet(upstream).await?;
                pages(Talk::Child(upstream, era, BYTES), about).await
            }
        }
    }
}

/// What a server said of itself.
struct About {
    name: Option<String>,
    revision: String,
    revisions: Vec<String>,
    has_tools: bool,
}

impl About {
    fn read(era: Era, revision: String, result: &Json) -> Self {
        let info = match era {
            Era::Modern => {
                result.get("_meta").and_then(|meta| meta.get("io.modelcontextprotocol/serverInfo"))
            }
            Era::Legacy => result.get("serverInfo"),
        };
        let name = info.and_then(|info| info.get("name")).and_then(Json::as_str);
        let listed = result.get("supportedVersions").and_then(Json::as_array).unwrap_or_default();
        let mut revisions: Vec<String> =
            listed.iter().filter_map(|version| version.as_str().map(str::to_owned)).collect();
        if !revisions.contains(&revision) {
            revisions.push(revision.clone());
        }
        let has_tools = result.get("capabilities").is_some_and(|known| known.get("tools").is_some());
        Self { name: name.map(str::to_owned), revision, revisions, has_tools }
    }
}

async fn meet(upstream: &StdioUpstream) -> Result<(Era, About), SurveyFault> {
    for era in [Era::Modern, Era::Legacy] {
        if let Some((revision, result)) = upstream.hello(era).await {
            return Ok((era, About::read(era, revision, &read(&result)?)));
        }
    }
    Err(SurveyFault::Unreachable)
}

/// A server one can put questions to.
enum Talk<'a, 'u> {
    Remote(&'a mut Remote<'u>),
    /// With the bytes it may still answer.
    Child(&'a StdioUpstream, Era, usize),
}

impl Talk<'_, '_> {
    fn era(&self) -> Era {
        match self {
            Talk::Remote(remote) => remote.era(),
            Talk::Child(_, era, _) => *era,
        }
    }

    async fn ask(&mut self, method: &str, params: &Value) -> Result<Json, SurveyFault> {
        match self {
            Talk::Remote(remote) => remote.ask(method, params).await,
            Talk::Child(upstream, era, left) => {
                let answer = upstream.ask(*era, method, params).await.ok_or(SurveyFault::Unreachable)?;
                *left = left.checked_sub(answer.len()).ok_or(SurveyFault::TooLarge)?;
                read(&answer)
            }
        }
    }
}

fn read(text: &[u8]) -> Result<Json, SurveyFault> {
    Json::parse(text, Limits { bytes: BYTES, depth: MAX_DEPTH }).map_err(|_| SurveyFault::Malformed)
}

async fn pages(mut talk: Talk<'_, '_>, about: About) -> Result<Survey, SurveyFault> {
    let mut survey = Survey {
        server_name: about.name,
        revision: about.revision,
        revisions: about.revisions,
        tools: Vec::new(),
        left_out: Vec::new(),
        holds: None,
    };
    let mut names = BTreeSet::new();
    let take = |result: &Json| {
        let holds = result.get("ttlMs").and_then(Json::as_u64).map(Duration::from_millis);
        survey.holds = survey.holds.into_iter().chain(holds).min();
        for tool in tools(result)? {
            let name = tool.get("name").and_then(Json::as_str).ok_or(SurveyFault::Malformed)?;
            if !names.insert(name.to_owned()) {
                return Err(SurveyFault::Repeated);
            }
            match Surveyed::read(name, tool) {
                Ok(surveyed) => survey.tools.push(surveyed),
                Err(reason) => survey.left_out.push(LeftOut::new(name, reason)),
            }
        }
        if names.len() > TOOLS { Err(SurveyFault::TooLarge) } else { Ok(()) }
    };
    walk(&mut talk, about.has_tools, take).await?;
    Ok(survey)
}

/// Every page as the server wrote it, with the tools that cannot be governed.
async fn written(mut talk: Talk<'_, '_>, has_tools: bool) -> Result<Vec<Json>, SurveyFault> {
    let (mut all, mut count) = (Vec::new(), 0);
    let take = |result: &Json| {
        count += tools(result)?.len();
        all.push(result.clone());
        if count > TOOLS { Err(SurveyFault::TooLarge) } else { Ok(()) }
    };
    walk(&mut talk, has_tools, take).await?;
    if all.is_empty() {
        // One that has no tools and need not know how to list them.
        all.push(Json::Object(vec![("tools".to_owned(), Json::Array(Vec::new()))]));
    }
    Ok(all)
}

fn tools(result: &Json) -> Result<&[Json], SurveyFault> {
    result.get("tools").and_then(Json::as_array).ok_or(SurveyFault::Malformed)
}

/// Asks for one page after the other, to the last.
async fn walk(
    talk: &mut Talk<'_, '_>,
    has_tools: bool,
    mut take: impl FnMut(&Json) -> Result<(), SurveyFault>,
) -> Result<(), SurveyFault> {
    let mut cursor: Option<String> = None;
    for _ in 0..PAGES {
        let answer = talk.ask("tools/list", &question(talk.era(), cursor.as_deref())).await?;
        let code =
            answer.get("error").map(|error| error.get("code").and_then(Json::as_i64).unwrap_or_default());
        match code {
            // A server without tools need not know how to list them.
            Some(-32601) if !has_tools && cursor.is_none() => return Ok(()),
            Some(code) => return Err(SurveyFault::Refused(code)),
            None => {}
        }
        let result = answer.get("result").ok_or(SurveyFault::Malformed)?;
        let next = match result.get("nextCursor") {
            None | Some(Json::Null) => None,
            Some(Json::String(cursor)) => Some(cursor.clone()).filter(|cursor| !cursor.is_empty()),
            Some(_) => return Err(SurveyFault::Malformed),
        };
        take(result)?;
        cursor = next;
        if cursor.is_none() {
            return Ok(());
        }
    }
    Err(SurveyFault::TooLarge)
}

fn question(era: Era, cursor: Option<&str>) -> Value {
    let mut params = match era {
        Era::Modern => json!({ "_meta": own_meta() }),
        Era::Legacy => json!({}),
    };
    if let (Some(cursor), Some(params)) = (cursor, params.as_object_mut()) {
        params.insert("cursor".to_owned(), cursor.into());
    }
    params
}
