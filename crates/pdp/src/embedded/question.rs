//! A request of AuthZEN as Cedar is asked it.
//!
//! Subject and resource are entities of their types, the action is one of `Action`, properties are attributes, the context
//! is the context; an action's properties are `context.action`, whatever the context itself has there. Of a type that
//! `entities.json` has entities of, that file is believed and a request's properties are not: a request is a stranger's word.

use super::policies::{Kind, Policies};
use super::shape::Meter;
use cedar_policy::{Context, Entities, Entity, EntityId, EntityUid, Request, RequestValidationError};
use cedar_policy_core::entities::{NoEntitiesSchema, TCComputation};
use cedar_policy_core::extensions::Extensions;
use sayso_coaz::answer::AnswerFault;
use sayso_coaz::authzen::{self, Evaluation};
use sayso_protocol::Json;
use std::collections::HashSet;
use std::sync::Arc;

/// The member of the context that holds an action's properties.
const ACTION: &str = "action";

/// What cannot be put to Cedar, and where.
#[derive(Debug)]
pub(super) struct Unheld {
    pub(super) place: String,
    pub(super) fault: AnswerFault,
}

impl Unheld {
    fn unfit(place: &str) -> Self {
        Self { place: place.to_owned(), fault: AnswerFault::Unfit }
    }
}

/// What Cedar is asked.
pub(super) struct Question {
    pub(super) request: Request,
    /// The entities, where the request says something of its own.
    pub(super) entities: Option<Entities>,
}

impl Question {
    /// Reads a request; the name of what the schema does not know, where there is such.
    pub(super) fn read(
        policies: &Policies,
        asked: &Evaluation,
        meter: &mut Meter<'_>,
    ) -> Result<Result<Question, &'static str>, Unheld> {
        let Some(subject) = policies.kinds.get(&asked.subject.kind) else {
            return Ok(Err("type of the subject"));
        };
        let Some(act) = policies.actions.get(&asked.action.name) else { return Ok(Err("action")) };
        let Some(resource) = policies.kinds.get(&asked.resource.kind) else {
            return Ok(Err("type of the resource"));
        };
        let context = act.context.put(|name| of_context(asked, name), "context", meter)?;
        let context = Context::from_pairs(context).map_err(|_| Unheld::unfit("context"))?;
        let (principal, about_principal) = entity(subject, &asked.subject, "subject", meter)?;
        let (thing, about_thing) = entity(resource, &asked.resource, "resource", meter)?;
        let own = about_principal.into_iter().chain(about_thing.filter(|_| principal != thing));
        let entities = with(&policies.entities, own.collect())?;
        match Request::new(principal, act.uid.clone(), thing, context, Some(&policies.schema)) {
            Ok(request) => Ok(Ok(Question { request, entities })),
            Err(
                RequestValidationError::InvalidPrincipalType(_)
                | RequestValidationError::InvalidResourceType(_),
            ) => Ok(Err("action for these types")),
            Err(RequestValidationError::InvalidEnumEntity(_)) => Ok(Err("id of an enumerated type")),
            Err(_) => Err(Unheld::unfit("context")),
        }
    }
}

/// A member of the context, or the action's properties in their place.
fn of_context<'v>(asked: &'v Evaluation, name: &str) -> Option<&'v Json> {
    match name {
        ACTION => asked.action.properties.as_ref().map(authzen::Object::json),
        name => asked.context.as_ref()?.json().get(name),
    }
}

fn entity(
    kind: &Kind,
    said: &authzen::Entity,
    place: &str,
    meter: &mut Meter<'_>,
) -> Result<(EntityUid, Option<Entity>), Unheld> {
    let uid = EntityUid::from_type_name_and_id(kind.name.clone(), EntityId::new(&said.id));
    if kind.listed {
        return Ok((uid, None));
    }
    let place = format!("{place}.properties");
    let properties = said.properties.as_ref().map(authzen::Object::json);
    let attributes = kind.attributes.put(|name| properties?.get(name), &place, meter)?;
    if attributes.is_empty() {
        return Ok((uid, None));
    }
    let entity = Entity::new(uid.clone(), attributes.into_iter().collect(), HashSet::new());
    Ok((uid, Some(entity.map_err(|_| Unheld::unfit(&place))?)))
}

/// The known entities and these, which have no parents and are nobody's.
fn with(known: &Entities, own: Vec<Entity>) -> Result<Option<Entities>, Unheld> {
    if own.is_empty() {
        return Ok(None);
    }
    let own = own.into_iter().map(|entity| Arc::new(entity.as_ref().clone()));
    let all = known.as_ref().clone().add_entities(
        own,
        None::<&NoEntitiesSchema>,
        TCComputation::AssumeAlreadyComputed,
        Extensions::all_available(),
    );
    all.map(|all| Some(Entities::from(all))).map_err(|_| Unheld::unfit("subject"))
}
