//! What the schema has in each place, and values of JSON put into those places.
//!
//! What the schema does not declare is left out: a valid policy cannot read it. Null is left out as well, for Cedar has
//! none. Anything else that does not fit is a fault with its place, and nothing is rounded or converted.

use super::number;
use super::question::Unheld;
use cedar_policy::{EntityId, EntityTypeName, EntityUid, RestrictedExpression};
use cedar_policy_core::validator::types::{Attributes, EntityKind, Type};
use sayso_coaz::Tally;
use sayso_coaz::answer::AnswerFault;
use sayso_protocol::Json;
use sayso_protocol::json::Limits;
use std::collections::BTreeMap;

/// Values and bytes of text one request may put into attributes.
const MOST: usize = 1 << 20;
/// What one value counts for beside its text.
const VALUE: usize = 64;

/// What a place holds.
#[derive(Debug)]
pub(super) enum Shape {
    Bool,
    Long,
    Text,
    Decimal,
    Entity(EntityTypeName),
    Set(Box<Shape>),
    Record(Record),
}

/// Attributes by name.
#[derive(Debug, Default)]
pub(super) struct Record(BTreeMap<String, Attribute>);

#[derive(Debug)]
struct Attribute {
    shape: Shape,
    required: bool,
}

/// What one request may put into attributes, of all its decisions together; and what was null of one of them.
pub(super) struct Meter<'a> {
    tally: &'a Tally,
    nulls: usize,
    first: Option<String>,
}

impl<'a> Meter<'a> {
    pub(super) fn new(tally: &'a Tally) -> Self {
        Self { tally, nulls: 0, first: None }
    }

    fn take(&mut self, bytes: usize, place: &str) -> Result<(), Unheld> {
        let room = self.tally.take(VALUE.saturating_add(bytes), MOST);
        if room { Ok(()) } else { Err(AnswerFault::TooMuch.at(place)) }
    }

    /// Whether a value is there. Cedar has no null, so what is null is not; it is paid for as anything else.
    fn is_there(&mut self, value: &Json, place: &str) -> Result<bool, Unheld> {
        if *value != Json::Null {
            return Ok(true);
        }
        self.take(0, place)?;
        self.nulls += 1;
        self.first.get_or_insert_with(|| place.to_owned());
        Ok(false)
    }

    /// Says that something was null: once for a request, with the place of the first.
    pub(super) fn tell(&self, request_id: &str) {
        if let Some(place) = self.first.as_ref().filter(|_| self.tally.is_first()) {
            tracing::warn!(request = request_id, place, count = self.nulls, "policy.null_left_out");
        }
    }
}

/// A fault, at a place.
trait At {
    fn at(self, place: &str) -> Unheld;
}

impl At for AnswerFault {
    fn at(self, place: &str) -> Unheld {
        Unheld { place: place.to_owned(), fault: self }
    }
}

impl Shape {
    /// A type of a resolved schema; none for what cannot stand in a schema of ours.
    fn of(kind: &Type) -> Option<Shape> {
        Some(match kind {
            Type::Bool(_) => Shape::Bool,
            Type::Long => Shape::Long,
            Type::String => Shape::Text,
            Type::Entity(EntityKind::Entity(one)) => {
                Shape::Entity(EntityTypeName::from(one.get_single_entity()?.clone()))
            }
            Type::Set { element_type } => Shape::Set(Box::new(Shape::of(element_type.as_deref()?)?)),
            Type::Record { attrs, .. } => Shape::Record(Record::of(attrs)?),
            Type::ExtensionType { name } if name.to_string() == "decimal" => Shape::Decimal,
            Type::Never | Type::Entity(EntityKind::AnyEntity) | Type::ExtensionType { .. } => return None,
        })
    }

    fn put(&self, value: &Json, place: &str, meter: &mut Meter<'_>) -> Result<RestrictedExpression, Unheld> {
        meter.take(value.as_str().map_or(0, str::len), place)?;
        let unfit = || AnswerFault::Unfit.at(place);
        match (self, value) {
            (Shape::Bool, Json::Bool(value)) => Ok(RestrictedExpression::new_bool(*value)),
            (Shape::Text, Json::String(text)) => Ok(RestrictedExpression::new_string(text.clone())),
            (Shape::Long, Json::Number(number)) => {
                let whole = number::whole(number.text()).ok_or_else(|| AnswerFault::Number.at(place))?;
                Ok(RestrictedExpression::new_long(whole))
            }
            (Shape::Decimal, Json::Number(number)) => decimal(number.text(), place),
            // Peers that fear for their fractions write them as texts.
            (Shape::Decimal, Json::String(text)) => match Json::parse(text.as_bytes(), Limits::default()) {
                Ok(Json::Number(number)) => decimal(number.text(), place),
                _ => Err(unfit()),
            },
            (Shape::Entity(kind), named) => {
                let id = entity(kind, named).ok_or_else(unfit)?;
                Ok(RestrictedExpression::new_entity_uid(EntityUid::from_type_name_and_id(
                    kind.clone(),
                    EntityId::new(id),
                )))
            }
            (Shape::Set(element), Json::Array(values)) => {
                let mut all = Vec::new();
                for value in values {
                    if meter.is_there(value, place)? {
                        all.push(element.put(value, place, meter)?);
                    }
                }
                Ok(RestrictedExpression::new_set(all))
            }
            (Shape::Record(record), members @ Json::Object(_)) => {
                let members = record.put(|name| members.get(name), place, meter)?;
                RestrictedExpression::new_record(members).map_err(|_| unfit())
            }
            _ => Err(unfit()),
        }
    }
}

impl Record {
    /// The attributes of a resolved schema.
    pub(super) fn of(attributes: &Attributes) -> Option<Record> {
        let attribute = |required, kind| Some(Attribute { shape: Shape::of(kind)?, required });
        let all = attributes
            .iter()
            .map(|(name, it)| Some((name.to_string(), attribute(it.is_required, &it.attr_type)?)));
        all.collect::<Option<_>>().map(Record)
    }

    /// The record a type is.
    pub(super) fn of_type(kind: &Type) -> Option<Record> {
        match Shape::of(kind)? {
            Shape::Record(record) => Some(record),
            _ => None,
        }
    }

    /// Puts what is declared of an object into it; nothing else of the object is looked at.
    pub(super) fn put<'v>(
        &self,
        member: impl Fn(&str) -> Option<&'v Json>,
        place: &str,
        meter: &mut Meter<'_>,
    ) -> Result<Vec<(String, RestrictedExpression)>, Unheld> {
        let mut all = Vec::with_capacity(self.0.len());
        for (name, attribute) in &self.0 {
            let place = format!("{place}.{name}");
            match member(name) {
                Some(value) if meter.is_there(value, &place)? => {
                    all.push((name.clone(), attribute.shape.put(value, &place, meter)?));
                }
                _ if attribute.required => return Err(AnswerFault::Unfit.at(&place)),
                _ => {}
            }
        }
        Ok(all)
    }
}

fn decimal(text: &str, place: &str) -> Result<RestrictedExpression, Unheld> {
    let text = number::decimal(text).ok_or_else(|| AnswerFault::Number.at(place))?;
    Ok(RestrictedExpression::new_decimal(text))
}

/// The id of an entity: its text, where the schema says of which type it is, or an object that says both.
fn entity<'a>(kind: &EntityTypeName, named: &'a Json) -> Option<&'a str> {
    match named {
        Json::String(id) => Some(id),
        Json::Object(_) => {
            let text = |name: &str| named.get(name).and_then(Json::as_str);
            text("id").filter(|_| text("type") == Some(&kind.to_string()))
        }
        _ => None,
    }
}
