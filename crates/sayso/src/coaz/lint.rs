//! The checks of a listing, for a terminal or a script.

use super::{Lint, explain::print, read_json};
use crate::terminal::plain;
use anyhow::{Context as _, ensure};
use sayso_coaz::lint::{Level, Report, lint};
use sayso_gateway::{HttpSettings, Upstream};
use sayso_protocol::Json;
use serde::Serialize;
use std::process::ExitCode;
use url::Url;

#[derive(Serialize)]
struct Shown<'a> {
    tools: Vec<ShownTool<'a>>,
}

#[derive(Serialize)]
struct ShownTool<'a> {
    tool: &'a str,
    mapping: &'static str,
    findings: Vec<ShownFinding<'a>>,
}

#[derive(Serialize)]
struct ShownFinding<'a> {
    level: &'static str,
    path: &'a str,
    message: &'a str,
}

/// Exit code when calls of a tool would be refused.
const REFUSED: u8 = 3;

pub(super) async fn run(command: &Lint, json: bool) -> anyhow::Result<ExitCode> {
    let path = &command.listing;
    let url = path.to_str().filter(|it| it.starts_with("http://") || it.starts_with("https://"));
    let document = match url {
        Some(url) => live(url, command.token_env.as_deref()).await?,
        None => {
            ensure!(
                command.token_env.is_none(),
                "--token-env is for a server, and {} is a file",
                path.display()
            );
            read_json(path)?
        }
    };
    let reports = lint(&document)
        .with_context(|| format!("{} does not hold a result of tools/list", path.display()))?;
    if json {
        print(&Shown { tools: reports.iter().map(shown).collect() })?;
    } else {
        tell(&reports);
    }
    let fails = reports.iter().any(Report::fails);
    Ok(if fails { ExitCode::from(REFUSED) } else { ExitCode::SUCCESS })
}

/// What a server lists, all pages of it.
async fn live(url: &str, token: Option<&str>) -> anyhow::Result<Json> {
    let credential = token.map(|name| {
        let host = Url::parse(url).context("not a URL")?;
        let plain = host.origin().ascii_serialization();
        crate::origin::identifier("the server", &plain).context("a token is not shown in clear")?;
        crate::upstream::credential("--token-env", name)
    });
    let settings = HttpSettings { url: url.to_owned(), host: None, credential: credential.transpose()? };
    let upstream = Upstream::open(settings).with_context(|| format!("{url} cannot be asked"))?;
    let tools = upstream.listing().await.with_context(|| format!("{url} does not list its tools"))?;
    Ok(Json::Object(vec![("tools".to_owned(), Json::Array(tools))]))
}

fn shown(report: &Report) -> ShownTool<'_> {
    let findings = report.findings.iter().map(|finding| ShownFinding {
        level: finding.level.as_str(),
        path: &finding.place,
        message: &finding.text,
    });
    let mapping = if report.declares { "declared" } else { "default" };
    ShownTool { tool: &report.tool, mapping, findings: findings.collect() }
}

fn tell(reports: &[Report]) {
    for report in reports {
        for finding in &report.findings {
            let place =
                if finding.place.is_empty() { String::new() } else { format!("{}: ", plain(&finding.place)) };
            println!("{}: {}: {place}{}", finding.level.as_str(), plain(&report.tool), plain(&finding.text));
        }
    }
    let count = |level| reports.iter().flat_map(|it| &it.findings).filter(|it| it.level == level).count();
    let mappings = reports.iter().filter(|report| report.declares).count();
    println!(
        "tools: {}, with a mapping: {mappings}, errors: {}, warnings: {}",
        reports.len(),
        count(Level::Error),
        count(Level::Warning)
    );
}
