//! What an author of mappings should know before anybody relies on them: the checks a registry makes, and what is
//! legal but probably not meant. It looks at a listing alone, so it says nothing of a particular call.

use sayso_protocol::Json;

use crate::expr::{Expression, How, Path, Root};
use crate::mapping::{Envelope, MEMBER, Mapping, SubjectTemplate};
use crate::registry::{NotAListing, declared};
use crate::resolve::Notice;
use crate::template::Template;

/// How bad it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Level {
    /// Every call of the tool is refused.
    Error,
    /// It works, and is probably not meant.
    Warning,
}

impl Level {
    /// Its name.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Level::Error => "error",
            Level::Warning => "warning",
        }
    }
}

/// One thing found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// How bad it is.
    pub level: Level,
    /// Where: in the mapping, or in the tool.
    pub place: String,
    /// What.
    pub text: String,
}

/// What was found of one tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Report {
    /// Its name; empty when it has none.
    pub tool: String,
    /// Whether it declares a mapping.
    pub declares: bool,
    /// What was found.
    pub findings: Vec<Finding>,
}

impl Report {
    fn say(&mut self, level: Level, place: impl Into<String>, text: impl Into<String>) {
        self.findings.push(Finding { level, place: place.into(), text: text.into() });
    }

    /// Whether a call of the tool cannot succeed.
    #[must_use]
    pub fn fails(&self) -> bool {
        self.findings.iter().any(|finding| finding.level == Level::Error)
    }
}

/// The result of `tools/list` in a document: itself, or the answer that carries it.
///
/// # Errors
/// When it is neither.
pub fn listing(document: &Json) -> Result<&Json, NotAListing> {
    let result = document.get("result").unwrap_or(document);
    result.get("tools").and_then(Json::as_array).map(|_| result).ok_or(NotAListing::Shape)
}

/// Checks every tool of a listing.
///
/// # Errors
/// When the document is no listing.
pub fn lint(document: &Json) -> Result<Vec<Report>, NotAListing> {
    let tools = listing(document)?.get("tools").and_then(Json::as_array).unwrap_or_default();
    let name = |tool: &Json| tool.get("name").and_then(Json::as_str).map(str::to_owned);
    let mut reports: Vec<Report> = Vec::with_capacity(tools.len());
    for tool in tools {
        let named = name(tool);
        let earlier = reports.iter_mut().find(|report| Some(&report.tool) == named.as_ref());
        let mut report = of_tool(tool, named.clone().unwrap_or_default());
        if named.is_none() {
            report.say(Level::Error, "name", "a tool without a name makes the whole listing unusable");
        }
        if let Some(earlier) = earlier {
            earlier.say(Level::Error, "name", "the tool is listed more than once");
            report.say(Level::Error, "name", "the tool is listed more than once");
        }
        reports.push(report);
    }
    Ok(reports)
}

fn of_tool(tool: &Json, name: String) -> Report {
    let mut report = Report { tool: name, declares: false, findings: Vec::new() };
    let mut strays = Vec::new();
    stray(tool, "", &mut strays);
    for place in strays {
        report.say(Level::Warning, place, format!("{MEMBER} counts only as a member of inputSchema itself"));
    }
    let Some(json) = declared(tool) else {
        if tool.get("coaz").and_then(Json::as_bool) == Some(true) {
            report.say(
                Level::Warning,
                "coaz",
                "no marker declares a mapping; without one the default applies",
            );
        }
        return report;
    };
    report.declares = true;
    match Mapping::parse(json) {
        Err(fault) => report.say(Level::Error, fault.place.clone(), fault.why.to_string()),
        Ok(mapping) => {
            subject(&mapping, &mut report);
            agent(&mapping, &mut report);
            let schema = tool.get("inputSchema").unwrap_or(&Json::Null);
            for (place, expression) in mapping.expressions() {
                arguments(&place, expression, schema, &mut report);
            }
        }
    }
    report
}

/// Every place of the member but the one where it counts.
fn stray(value: &Json, place: &str, found: &mut Vec<String>) {
    let inside = |part: &str| if place.is_empty() { part.to_owned() } else { format!("{place}.{part}") };
    match value {
        Json::Object(members) => {
            for (name, value) in members {
                match name == MEMBER {
                    true if place == "inputSchema" => {}
                    true => found.push(inside(name)),
                    false => stray(value, &inside(name), found),
                }
            }
        }
        Json::Array(elements) => elements.iter().for_each(|element| stray(element, place, found)),
        _ => {}
    }
}

fn subject(mapping: &Mapping, report: &mut Report) {
    let (place, expression) = match mapping.subject() {
        None | Some(SubjectTemplate::Members { id: None, .. }) => return,
        Some(SubjectTemplate::Whole(expression)) => ("subject", Some(expression)),
        Some(SubjectTemplate::Members { id: Some(id), .. }) => ("subject.id", id.expression()),
    };
    if place == "subject.id" && expression.and_then(Expression::claim) == Some("sub") {
        return;
    }
    let of_token = expression.is_some_and(Expression::is_of_token);
    let notice = if of_token { Notice::SubjectFromToken } else { Notice::SubjectUnverified };
    report.say(Level::Warning, place, notice.to_string());
}

/// Autonomous agents are to be named, and one decision has an envelope of its own.
fn agent(mapping: &Mapping, report: &mut Report) {
    let named = match &mapping.envelope {
        Envelope::Evaluation(one) => names_agent(one.context.as_ref()),
        Envelope::Evaluations(several) => {
            if several.entries.len() == 1 {
                report.say(Level::Warning, "evaluations", "for one decision the envelope is evaluation");
            }
            let own = |at: &Template| names_agent(Some(at));
            several.entries.iter().all(|entry| {
                entry.context.as_ref().map_or_else(|| names_agent(several.top.context.as_ref()), own)
            })
        }
    };
    if !named {
        report.say(Level::Warning, "context", Notice::NoAgent.to_string());
    }
}

fn names_agent(context: Option<&Template>) -> bool {
    match context {
        None => false,
        Some(Template::Literal(json)) => json.get("agent").is_some(),
        Some(Template::Map(members)) => members.iter().any(|(name, _)| name == "agent"),
        // Nobody can say what it yields.
        Some(Template::Expression(_) | Template::List(_)) => true,
    }
}

/// Arguments an expression reads, against the tool's own schema.
fn arguments(place: &str, expression: &Expression, schema: &Json, report: &mut Report) {
    let properties = schema.get("properties");
    let required = schema.get("required").and_then(Json::as_array).unwrap_or_default();
    for (name, how) in expression.reads().iter().filter_map(argument) {
        let known = properties.is_some_and(|properties| properties.get(name).is_some());
        if !known && properties.is_some() {
            report.say(Level::Warning, place, format!("the schema has no argument '{name}'"));
            continue;
        }
        let needed = required.iter().any(|it| it.as_str() == Some(name));
        if known && !needed && how != How::Optional && !expression.source().contains("has(") {
            let text = format!(
                "the argument '{name}' may be left out, and then the call fails; read it with .?{name}"
            );
            report.say(Level::Warning, place, text);
        }
    }
}

/// The argument a walk leads to, and how it takes that step.
fn argument(path: &Path) -> Option<(&str, How)> {
    match (path.root, path.steps.as_slice()) {
        (Root::Params, [arguments, step, ..]) if &*arguments.key == "arguments" => {
            let optional = arguments.how == How::Optional;
            Some((&step.key, if optional { How::Optional } else { step.how }))
        }
        _ => None,
    }
}
