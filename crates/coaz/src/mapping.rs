//! A mapping, read once into a form in which it cannot be wrong in itself (framework 2.3, binding 5 and 8): one
//! envelope, the parts AuthZEN wants in their places, compiled expressions, no subject inside an entry, and as many
//! decisions as are written out. What depends on a message is in `resolve`.

mod slots;

use sayso_protocol::Json;
use sayso_protocol::canon::{S256, s256};

use crate::authzen::Semantic;
use crate::expr::{self, Expression};
use crate::fault::{Fault, Why};
use crate::template::{Reader, Template};
pub(crate) use slots::{ActionTemplate, EntityTemplate, Slot, SubjectTemplate};

/// The member of a tool's `inputSchema` that declares a mapping.
pub const MEMBER: &str = "x-authzen-mapping";

/// Bytes of one mapping.
pub const MAX_MAPPING: usize = 64 << 10;

/// Decisions one mapping may ask for: as many as are asked for one by one where a policy engine makes no more.
pub const MAX_ENTRIES: usize = 64;

/// A mapping that can be used.
#[derive(Debug)]
pub struct Mapping {
    pub(crate) envelope: Envelope,
    digest: Option<S256>,
    /// Whether `resource.id` is this server, whatever form `aud` has: of default mappings alone.
    pub(crate) names_server: bool,
}

/// Which API a mapping is for, and the template of its body.
#[derive(Debug)]
pub(crate) enum Envelope {
    Evaluation(Box<One>),
    Evaluations(Box<Several>),
}

/// The template for one decision.
#[derive(Debug)]
pub(crate) struct One {
    pub(crate) subject: Option<SubjectTemplate>,
    pub(crate) action: Slot<ActionTemplate>,
    pub(crate) resource: Slot<EntityTemplate>,
    pub(crate) context: Option<Template>,
}

/// The template for several.
#[derive(Debug)]
pub(crate) struct Several {
    pub(crate) subject: Option<SubjectTemplate>,
    pub(crate) top: Parts,
    pub(crate) entries: Vec<Parts>,
    pub(crate) options: Option<Template>,
}

/// What may stand at the top and in each entry.
#[derive(Debug)]
pub(crate) struct Parts {
    pub(crate) action: Option<Slot<ActionTemplate>>,
    pub(crate) resource: Option<Slot<EntityTemplate>>,
    pub(crate) context: Option<Template>,
}

impl Mapping {
    /// Reads a mapping as it is declared.
    ///
    /// # Errors
    /// A mapping fault with the place of what is wrong.
    pub fn parse(json: &Json) -> Result<Mapping, Fault> {
        expr::roomy(|| Mapping::parse_here(json)).unwrap_or_else(|| Err(Why::Compiling.at("")))
    }

    /// The same, where there is stack enough: inside [`expr::roomy`].
    pub(crate) fn parse_here(json: &Json) -> Result<Mapping, Fault> {
        if expr::writable(json).map_err(|_| Why::Number.at(""))? > MAX_MAPPING {
            return Err(Why::TooLarge.at(""));
        }
        let members = json.as_object().ok_or_else(|| Why::NotAnObject.at(""))?;
        let [(name, body)] = members else { return Err(Why::Envelope.at("")) };
        let mut reader = Reader::default();
        let envelope = match name.as_str() {
            "evaluation" => Envelope::Evaluation(Box::new(one(&mut reader, body)?)),
            "evaluations" => Envelope::Evaluations(Box::new(several(&mut reader, body)?)),
            _ => return Err(Why::Envelope.at("")),
        };
        Ok(Mapping { envelope, digest: s256(json).ok(), names_server: false })
    }

    /// The digest of the mapping as it was declared, by which a change is noticed.
    #[must_use]
    pub fn digest(&self) -> Option<&S256> {
        self.digest.as_ref()
    }

    /// Every expression, with its place.
    pub(crate) fn expressions(&self) -> Vec<(String, &Expression)> {
        let mut found = Vec::new();
        match &self.envelope {
            Envelope::Evaluation(one) => {
                one.subject.iter().for_each(|it| it.expressions(&mut found));
                one.action.expressions("action", &mut found);
                one.resource.expressions("resource", &mut found);
                one.context.iter().for_each(|it| it.expressions("context", &mut found));
            }
            Envelope::Evaluations(several) => {
                several.subject.iter().for_each(|it| it.expressions(&mut found));
                several.top.expressions("", &mut found);
                for (at, entry) in several.entries.iter().enumerate() {
                    entry.expressions(&format!("evaluations[{at}]."), &mut found);
                }
                several.options.iter().for_each(|it| it.expressions("options", &mut found));
            }
        }
        found
    }

    pub(crate) fn subject(&self) -> Option<&SubjectTemplate> {
        match &self.envelope {
            Envelope::Evaluation(one) => one.subject.as_ref(),
            Envelope::Evaluations(several) => several.subject.as_ref(),
        }
    }
}

impl Parts {
    fn expressions<'a>(&'a self, prefix: &str, found: &mut Vec<(String, &'a Expression)>) {
        self.action.iter().for_each(|it| it.expressions(&format!("{prefix}action"), found));
        self.resource.iter().for_each(|it| it.expressions(&format!("{prefix}resource"), found));
        self.context.iter().for_each(|it| it.expressions(&format!("{prefix}context"), found));
    }
}

/// Members by name, none of them unknown.
fn members<'a>(body: &'a Json, known: &[&str]) -> Result<&'a [(String, Json)], Fault> {
    let members = body.as_object().ok_or_else(|| Why::NotAnObject.at(""))?;
    match members.iter().find(|(name, _)| !known.contains(&name.as_str())) {
        Some((name, _)) => Err(Why::UnknownMember.at(slots::shown(name))),
        None => Ok(members),
    }
}

fn one(reader: &mut Reader, body: &Json) -> Result<One, Fault> {
    members(body, &["subject", "action", "resource", "context"])?;
    let subject = body.get("subject").map(|it| SubjectTemplate::read(reader, it)).transpose()?;
    let parts = parts(reader, body)?;
    Ok(One {
        subject,
        action: parts.action.ok_or_else(|| Why::Missing.at("action"))?,
        resource: parts.resource.ok_or_else(|| Why::Missing.at("resource"))?,
        context: parts.context,
    })
}

fn several(reader: &mut Reader, body: &Json) -> Result<Several, Fault> {
    members(body, &["subject", "action", "resource", "context", "evaluations", "options"])?;
    let subject = body.get("subject").map(|it| SubjectTemplate::read(reader, it)).transpose()?;
    let top = parts(reader, body)?;
    let entries = body.get("evaluations").and_then(Json::as_array).filter(|entries| !entries.is_empty());
    let entries = entries.ok_or_else(|| Why::Entries.at("evaluations"))?;
    if entries.len() > MAX_ENTRIES {
        return Err(Why::TooManyEntries.at("evaluations"));
    }
    let entries = entries.iter().enumerate().map(|(at, entry)| {
        entry_of(reader, entry, &top).map_err(|fault| fault.inside(&format!("evaluations[{at}]")))
    });
    let entries = entries.collect::<Result<_, _>>()?;
    let options = body.get("options").map(|it| options(reader, it)).transpose();
    Ok(Several { subject, top, entries, options: options.map_err(|fault| fault.inside("options"))? })
}

fn entry_of(reader: &mut Reader, entry: &Json, top: &Parts) -> Result<Parts, Fault> {
    if entry.get("subject").is_some() {
        return Err(Why::EntrySubject.at("subject"));
    }
    if entry.as_object().is_none() {
        return Err(Why::Entries.at(""));
    }
    members(entry, &["action", "resource", "context"])?;
    let parts = parts(reader, entry)?;
    if parts.action.is_none() && top.action.is_none() {
        return Err(Why::Missing.at("action"));
    }
    if parts.resource.is_none() && top.resource.is_none() {
        return Err(Why::Missing.at("resource"));
    }
    Ok(parts)
}

fn parts(reader: &mut Reader, body: &Json) -> Result<Parts, Fault> {
    Ok(Parts {
        action: body.get("action").map(|it| ActionTemplate::slot(reader, it)).transpose()?,
        resource: body.get("resource").map(|it| EntityTemplate::slot(reader, it)).transpose()?,
        context: body.get("context").map(|it| slots::object(reader, it, "context")).transpose()?,
    })
}

/// Options, of which only the semantic means something here, and must be written out.
fn options(reader: &mut Reader, value: &Json) -> Result<Template, Fault> {
    match value.get("evaluations_semantic") {
        None => {}
        Some(name) => {
            // One that stops at the first yes can never yield a yes for every entry.
            let usable = |it: &Semantic| *it != Semantic::PermitOnFirstPermit;
            let known = name.as_str().and_then(Semantic::named).filter(usable);
            known.ok_or_else(|| Why::Semantic.at("evaluations_semantic"))?;
        }
    }
    match value {
        Json::Object(_) => reader.template(value, 0),
        _ => Err(Why::NotAnObject.at("")),
    }
}
