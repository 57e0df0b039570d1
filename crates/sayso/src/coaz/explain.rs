//! The request a message maps to, or why there is none.

use super::{Explain, read, read_json};
use crate::terminal::plain;
use anyhow::{Context as _, ensure};
use sayso_coaz::authzen::Request;
use sayso_coaz::{
    Asked, Engine, Fault, NotAListing, NotASample, Notice, Projection, Registry, Sample, Settings, Source,
    Trust, lint,
};
use sayso_protocol::Json;
use serde::Serialize;
use std::path::Path;
use std::process::ExitCode;

#[derive(Serialize)]
struct Shown<'a> {
    source: &'static str,
    api: Option<&'static str>,
    request: Option<&'a Request>,
    warnings: Vec<ShownWarning<'a>>,
}

#[derive(Serialize)]
struct ShownWarning<'a> {
    kind: &'static str,
    path: &'a str,
    message: String,
}

#[derive(Serialize)]
struct Refused<'a> {
    error: RefusedError<'a>,
}

#[derive(Serialize)]
struct RefusedError<'a> {
    code: i64,
    category: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    path: &'a str,
    message: &'a str,
}

/// Exit code of a message that may not pass.
const REFUSED: u8 = 3;

pub(super) fn run(explain: &Explain, json: bool) -> anyhow::Result<ExitCode> {
    let twice = explain.request == Path::new("-") && explain.token == Path::new("-");
    ensure!(!twice, "stdin can hold the message or the token, not both");
    let request = read(&explain.request)?;
    let token = read_json(&explain.token)?;
    ensure!(token.as_object().is_some(), "{} does not hold a JSON object of claims", explain.token.display());
    let registry = match &explain.tools {
        None => Registry::undeclared(),
        Some(path) => registry(path)?,
    };
    let trust = if explain.strict { Trust::Strict } else { Trust::Warn };
    let settings = Settings { server: explain.resource.clone(), trust, ..Settings::default() };
    let engine = Engine::new(settings).context("the default mappings cannot be compiled")?;
    let sample = match Sample::read(&request) {
        Ok(sample) => sample,
        Err(fault) => return malformed(fault, json),
    };
    match engine.project(sample.operation(), &registry, 0, &token) {
        Ok(Projection::PassThrough) => passes(json),
        Ok(Projection::Ask(asked)) => asks(&asked, json),
        Err(fault) => refused(&fault, json),
    }
}

/// The listing, one document or several pages. One that is not complete is none (D-36).
fn registry(path: &Path) -> anyhow::Result<Registry> {
    let document = read_json(path)?;
    let pages = document.as_array().map_or_else(|| vec![&document], |pages| pages.iter().collect());
    let pages = pages.into_iter().map(lint::listing).collect::<Result<Vec<&Json>, _>>();
    match pages.and_then(|pages| Registry::read(&pages, i64::MAX)) {
        Err(NotAListing::Incomplete) => Ok(Registry::unlisted()),
        read => read.with_context(|| format!("{} does not hold a result of tools/list", path.display())),
    }
}

fn passes(json: bool) -> anyhow::Result<ExitCode> {
    if json {
        print(&Shown { source: "pass_through", api: None, request: None, warnings: Vec::new() })?;
    } else {
        println!("the message passes, nobody is asked");
    }
    Ok(ExitCode::SUCCESS)
}

fn asks(asked: &Asked, json: bool) -> anyhow::Result<ExitCode> {
    let warning = |it: &'_ sayso_coaz::Warning| (it.notice.as_str(), it.place.clone(), it.notice.to_string());
    let mut warnings: Vec<_> = asked.warnings.iter().map(warning).collect();
    // A token without client_id leaves it out of every default; a declared mapping should have thought of it.
    if asked.source == Source::Declared && !asked.names_agent() {
        warnings.push((Notice::NoAgent.as_str(), "context".to_owned(), Notice::NoAgent.to_string()));
    }
    let source = match asked.source {
        Source::Default => "default",
        Source::Declared => "declared",
    };
    if json {
        let warnings = warnings.iter().map(|(kind, path, message)| ShownWarning {
            kind,
            path,
            message: message.clone(),
        });
        let shown = Shown {
            source,
            api: Some(asked.request.api()),
            request: Some(&asked.request),
            warnings: warnings.collect(),
        };
        print(&shown)?;
    } else {
        let decisions = match asked.request.decisions() {
            1 => "1 decision".to_owned(),
            many => format!("{many} decisions"),
        };
        println!("{source} mapping, API {}, {decisions}", asked.request.api());
        let request =
            serde_json::to_string_pretty(&asked.request).context("the request cannot be written")?;
        request.lines().for_each(|line| println!("{}", plain(line)));
        for (_, path, message) in warnings {
            eprintln!("warning: {}: {message}", plain(&path));
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn refused(fault: &Fault, json: bool) -> anyhow::Result<ExitCode> {
    let category = fault.category();
    say(category.code(), category.as_str(), &fault.place, &fault.message(), json)
}

fn malformed(fault: NotASample, json: bool) -> anyhow::Result<ExitCode> {
    say(fault.code(), "invalid_request", "", &format!("the message is {fault}"), json)
}

fn say(code: i64, category: &str, path: &str, message: &str, json: bool) -> anyhow::Result<ExitCode> {
    if json {
        print(&Refused { error: RefusedError { code, category, path, message } })?;
    } else {
        eprintln!("sayso coaz: {} ({code}, {category})", plain(message));
    }
    Ok(ExitCode::from(REFUSED))
}

pub(super) fn print(value: &impl Serialize) -> anyhow::Result<()> {
    println!("{}", serde_json::to_string(value).context("the answer cannot be written")?);
    Ok(())
}
