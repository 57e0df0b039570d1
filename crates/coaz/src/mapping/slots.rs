//! The parts of a request inside a mapping: subject, action, resource, and the objects they carry.
//! Each may be written out, its members then checked here, or be one expression, its value then checked when it is
//! resolved.

use sayso_protocol::Json;

use crate::expr::Expression;
use crate::fault::{Fault, Why};
use crate::template::{Leaf, Reader, Template, Text, leaf};

/// A part that is written out, or computed whole.
#[derive(Debug)]
pub(crate) enum Slot<T> {
    Members(T),
    Whole(Expression),
}

/// A resource.
#[derive(Debug)]
pub(crate) struct EntityTemplate {
    pub(crate) kind: Text,
    pub(crate) id: Text,
    pub(crate) properties: Option<Template>,
}

/// An action.
#[derive(Debug)]
pub(crate) struct ActionTemplate {
    pub(crate) name: Text,
    pub(crate) properties: Option<Template>,
}

/// A subject; what is left out is supplied.
#[derive(Debug)]
pub(crate) enum SubjectTemplate {
    Members { kind: Option<Text>, id: Option<Text>, properties: Option<Template> },
    Whole(Expression),
}

impl<T> Slot<T> {
    fn read(
        reader: &mut Reader,
        value: &Json,
        name: &str,
        members: impl FnOnce(&mut Reader, &Json) -> Result<T, Fault>,
    ) -> Result<Slot<T>, Fault> {
        let slot = match whole(value) {
            Some(source) => reader.expression(source).map(Slot::Whole),
            None => members(reader, value).map(Slot::Members),
        };
        slot.map_err(|fault| fault.inside(name))
    }
}

impl EntityTemplate {
    pub(super) fn slot(reader: &mut Reader, value: &Json) -> Result<Slot<EntityTemplate>, Fault> {
        Slot::read(reader, value, "resource", |reader, value| {
            super::members(value, &["type", "id", "properties"])?;
            Ok(EntityTemplate {
                kind: required(reader, value, "type")?,
                id: required(reader, value, "id")?,
                properties: properties(reader, value)?,
            })
        })
    }
}

impl ActionTemplate {
    pub(super) fn slot(reader: &mut Reader, value: &Json) -> Result<Slot<ActionTemplate>, Fault> {
        Slot::read(reader, value, "action", |reader, value| {
            super::members(value, &["name", "properties"])?;
            Ok(ActionTemplate {
                name: required(reader, value, "name")?,
                properties: properties(reader, value)?,
            })
        })
    }
}

impl SubjectTemplate {
    pub(super) fn read(reader: &mut Reader, value: &Json) -> Result<SubjectTemplate, Fault> {
        let subject = match whole(value) {
            Some(source) => reader.expression(source).map(SubjectTemplate::Whole),
            None => SubjectTemplate::members(reader, value),
        };
        subject.map_err(|fault| fault.inside("subject"))
    }

    fn members(reader: &mut Reader, value: &Json) -> Result<SubjectTemplate, Fault> {
        super::members(value, &["type", "id", "properties"])?;
        Ok(SubjectTemplate::Members {
            kind: optional(reader, value, "type")?,
            id: optional(reader, value, "id")?,
            properties: properties(reader, value)?,
        })
    }
}

/// The source, when the whole part is one expression.
fn whole(value: &Json) -> Option<&str> {
    match leaf(value.as_str()?) {
        Leaf::Expression(source) => Some(source),
        Leaf::Literal(_) => None,
    }
}

fn optional(reader: &mut Reader, value: &Json, name: &str) -> Result<Option<Text>, Fault> {
    value.get(name).map(|it| reader.text(it).map_err(|fault| fault.inside(name))).transpose()
}

fn required(reader: &mut Reader, value: &Json, name: &str) -> Result<Text, Fault> {
    optional(reader, value, name)?.ok_or_else(|| Why::Missing.at(name))
}

fn properties(reader: &mut Reader, value: &Json) -> Result<Option<Template>, Fault> {
    value.get("properties").map(|it| object(reader, it, "properties")).transpose()
}

/// An object of any members, or an expression that must yield one.
pub(super) fn object(reader: &mut Reader, value: &Json, name: &str) -> Result<Template, Fault> {
    let read = match value {
        Json::Object(_) => reader.template(value, 0),
        _ if whole(value).is_some() => reader.template(value, 0),
        _ => Err(Why::NotAnObject.at("")),
    };
    read.map_err(|fault| fault.inside(name))
}

/// A member's name as it is repeated in a place: a stranger chose it.
pub(super) fn shown(name: &str) -> String {
    name.chars().take(64).collect()
}

impl Slot<EntityTemplate> {
    pub(super) fn expressions<'a>(&'a self, place: &str, found: &mut Vec<(String, &'a Expression)>) {
        match self {
            Slot::Whole(expression) => found.push((place.to_owned(), expression)),
            Slot::Members(entity) => {
                texts(place, &[("type", Some(&entity.kind)), ("id", Some(&entity.id))], found);
                entity.properties.iter().for_each(|it| it.expressions(&format!("{place}.properties"), found));
            }
        }
    }
}

impl Slot<ActionTemplate> {
    pub(super) fn expressions<'a>(&'a self, place: &str, found: &mut Vec<(String, &'a Expression)>) {
        match self {
            Slot::Whole(expression) => found.push((place.to_owned(), expression)),
            Slot::Members(action) => {
                texts(place, &[("name", Some(&action.name))], found);
                action.properties.iter().for_each(|it| it.expressions(&format!("{place}.properties"), found));
            }
        }
    }
}

impl SubjectTemplate {
    pub(super) fn expressions<'a>(&'a self, found: &mut Vec<(String, &'a Expression)>) {
        match self {
            SubjectTemplate::Whole(expression) => found.push(("subject".to_owned(), expression)),
            SubjectTemplate::Members { kind, id, properties } => {
                texts("subject", &[("type", kind.as_ref()), ("id", id.as_ref())], found);
                properties.iter().for_each(|it| it.expressions("subject.properties", found));
            }
        }
    }
}

fn texts<'a>(place: &str, parts: &[(&str, Option<&'a Text>)], found: &mut Vec<(String, &'a Expression)>) {
    for (name, text) in parts {
        let expression = text.and_then(Text::expression);
        found.extend(expression.map(|expression| (format!("{place}.{name}"), expression)));
    }
}
