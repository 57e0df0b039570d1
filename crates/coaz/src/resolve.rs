//! A mapping and a message become a request (binding section 9, steps 3 to 6).
//! It keeps the anchor: the subject's id is decided on the mapping's tree and compared with the token's claim as
//! resolved, and where a mapping takes it from elsewhere somebody is told, or it is refused.

mod anchor;

use sayso_protocol::Json;

use crate::authzen::{Action, Entity, Entry, Evaluation, Evaluations, Object, Request};
use crate::expr::{Evaluator, Inputs};
use crate::fault::{Fault, Why};
use crate::mapping::{ActionTemplate, EntityTemplate, Envelope, Mapping, One, Parts, Several, Slot};
use crate::settings::{Settings, Trust};
use crate::template::{Template, evaluate, text_of};
use anchor::Anchor;

/// Something that is allowed and that somebody should know.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Warning {
    /// Where in the mapping.
    pub place: String,
    /// What.
    pub notice: Notice,
}

/// What a warning is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Notice {
    /// `subject.id` is the mapping author's word.
    #[error("the subject's id cannot be verified against the token: it is the word of the mapping's author")]
    SubjectUnverified,
    /// `subject.id` comes from the token, but is not its subject claim.
    #[error("the subject's id comes from the token, but is not its subject claim")]
    SubjectFromToken,
    /// The context does not say which agent acts.
    #[error("the context does not name the agent")]
    NoAgent,
}

impl Notice {
    /// A name that does not change.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Notice::SubjectUnverified => "subject_unverified",
            Notice::SubjectFromToken => "subject_from_token",
            Notice::NoAgent => "no_agent",
        }
    }
}

/// The request a mapping yields for one message, what is to be said of it, and the steps that were taken.
pub(crate) struct Resolved {
    pub(crate) request: Request,
    pub(crate) warnings: Vec<Warning>,
    pub(crate) steps: u64,
}

/// Resolves a mapping.
pub(crate) fn resolve(
    mapping: &Mapping,
    inputs: Inputs<'_>,
    settings: &Settings,
    budget: u64,
) -> Result<Resolved, Fault> {
    let mut resolver = Resolver {
        evaluator: Evaluator::new(inputs, budget),
        anchor: Anchor::of(inputs.token, settings.claim(inputs.token))?,
        strict: settings.trust == Trust::Strict,
        server: mapping
            .names_server
            .then(|| anchor::server(settings.server.as_deref(), inputs.token))
            .transpose()?,
        warnings: Vec::new(),
    };
    let request = match &mapping.envelope {
        Envelope::Evaluation(one) => Request::Evaluation(Box::new(resolver.one(one)?)),
        Envelope::Evaluations(several) => Request::Evaluations(Box::new(resolver.several(several)?)),
    };
    let steps = budget.saturating_sub(resolver.evaluator.left());
    Ok(Resolved { request, warnings: resolver.warnings, steps })
}

struct Resolver<'a> {
    evaluator: Evaluator<'a>,
    anchor: Anchor<'a>,
    strict: bool,
    /// The server's identity, where that is what `resource.id` is.
    server: Option<String>,
    warnings: Vec<Warning>,
}

impl Resolver<'_> {
    fn one(&mut self, one: &One) -> Result<Evaluation, Fault> {
        Ok(Evaluation {
            subject: self.subject(one.subject.as_ref())?,
            action: self.action(&one.action)?,
            resource: self.resource(&one.resource)?,
            context: self.object(one.context.as_ref(), "context")?,
        })
    }

    fn several(&mut self, several: &Several) -> Result<Evaluations, Fault> {
        let subject = self.subject(several.subject.as_ref())?;
        let defaults = Entry { subject: Some(subject), ..self.parts(&several.top)? };
        let mut evaluations = Vec::with_capacity(several.entries.len());
        for (at, entry) in several.entries.iter().enumerate() {
            let entry = self.parts(entry).map_err(|fault| fault.inside(&format!("evaluations[{at}]")))?;
            evaluations.push(entry);
        }
        let options = self.object(several.options.as_ref(), "options")?;
        Ok(Evaluations { defaults, evaluations, options })
    }

    fn parts(&mut self, parts: &Parts) -> Result<Entry, Fault> {
        Ok(Entry {
            subject: None,
            action: parts.action.as_ref().map(|it| self.action(it)).transpose()?,
            resource: parts.resource.as_ref().map(|it| self.resource(it)).transpose()?,
            context: self.object(parts.context.as_ref(), "context")?,
        })
    }

    fn action(&mut self, slot: &Slot<ActionTemplate>) -> Result<Action, Fault> {
        let action = match slot {
            Slot::Whole(expression) => evaluate(expression, &mut self.evaluator).and_then(computed_action),
            Slot::Members(action) => self.written_action(action),
        };
        action.map_err(|fault| fault.inside("action"))
    }

    fn written_action(&mut self, action: &ActionTemplate) -> Result<Action, Fault> {
        Ok(Action {
            name: action.name.resolve(&mut self.evaluator).map_err(|fault| fault.inside("name"))?,
            properties: self.object(action.properties.as_ref(), "properties")?,
        })
    }

    fn resource(&mut self, slot: &Slot<EntityTemplate>) -> Result<Entity, Fault> {
        let resource = match slot {
            Slot::Whole(expression) => evaluate(expression, &mut self.evaluator).and_then(computed_entity),
            Slot::Members(entity) => self.written_entity(entity),
        };
        resource.map_err(|fault| fault.inside("resource"))
    }

    fn written_entity(&mut self, entity: &EntityTemplate) -> Result<Entity, Fault> {
        let kind = entity.kind.resolve(&mut self.evaluator).map_err(|fault| fault.inside("type"))?;
        let id = match &self.server {
            Some(server) => server.clone(),
            None => entity.id.resolve(&mut self.evaluator).map_err(|fault| fault.inside("id"))?,
        };
        Ok(Entity { kind, id, properties: self.object(entity.properties.as_ref(), "properties")? })
    }

    /// An object of any members, left out when an expression yields nothing.
    fn object(&mut self, template: Option<&Template>, name: &str) -> Result<Option<Object>, Fault> {
        let Some(template) = template else { return Ok(None) };
        let value = template.resolve(&mut self.evaluator).map_err(|fault| fault.inside(name))?;
        value.map(|value| Object::of(value).ok_or_else(|| Why::NotAnObject.at(name))).transpose()
    }
}

/// A part that an expression yields whole: an object of the members it may have, and no others.
fn computed(value: Option<Json>, known: &[&str]) -> Result<Vec<(String, Json)>, Fault> {
    match value {
        None | Some(Json::Null) => Err(Why::NoValue.at("")),
        Some(Json::Object(members)) => {
            // The name is not repeated: an argument may have chosen it.
            let strange = members.iter().any(|(name, _)| !known.contains(&name.as_str()));
            if strange { Err(Why::UnknownMember.at("")) } else { Ok(members) }
        }
        Some(_) => Err(Why::NotAnObject.at("")),
    }
}

fn take(members: &mut Vec<(String, Json)>, name: &str) -> Option<Json> {
    let at = members.iter().position(|(member, _)| member == name)?;
    Some(members.swap_remove(at).1)
}

fn taken_text(members: &mut Vec<(String, Json)>, name: &str) -> Result<String, Fault> {
    text_of(take(members, name)).map_err(|fault| fault.inside(name))
}

fn taken_properties(members: &mut Vec<(String, Json)>) -> Result<Option<Object>, Fault> {
    take(members, "properties")
        .map(|it| Object::of(it).ok_or_else(|| Why::NotAnObject.at("properties")))
        .transpose()
}

fn computed_entity(value: Option<Json>) -> Result<Entity, Fault> {
    let mut members = computed(value, &["type", "id", "properties"])?;
    Ok(Entity {
        kind: taken_text(&mut members, "type")?,
        id: taken_text(&mut members, "id")?,
        properties: taken_properties(&mut members)?,
    })
}

fn computed_action(value: Option<Json>) -> Result<Action, Fault> {
    let mut members = computed(value, &["name", "properties"])?;
    Ok(Action { name: taken_text(&mut members, "name")?, properties: taken_properties(&mut members)? })
}
