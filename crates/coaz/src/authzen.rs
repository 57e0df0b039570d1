//! Requests of the OpenID AuthZEN Authorization API 1.0 as they travel, written and read.
//! Every part that must be there is a field that is: a `Request` cannot lack a subject or name a resource by a list.
//! Answers are read in `answer`.

use std::sync::Arc;

use sayso_protocol::Json;
use serde::{Serialize, Serializer};

/// A JSON object. Its copies share it: what stands at the top of a request for several decisions is there once, however
/// many entries take it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Object(Arc<Json>);

impl Serialize for Object {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}

impl Object {
    /// The value, if it is an object.
    #[must_use]
    pub fn of(value: Json) -> Option<Object> {
        matches!(value, Json::Object(_)).then(|| Object(Arc::new(value)))
    }

    /// The object as a value.
    #[must_use]
    pub fn json(&self) -> &Json {
        &self.0
    }
}

/// A subject or a resource.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Entity {
    /// What kind of thing it is.
    #[serde(rename = "type")]
    pub kind: String,
    /// Which one.
    pub id: String,
    /// Anything else about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub properties: Option<Object>,
}

/// An action.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Action {
    /// Which one.
    pub name: String,
    /// Anything else about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub properties: Option<Object>,
}

/// A request for one decision (AuthZEN section 6).
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Evaluation {
    /// Who asks.
    pub subject: Entity,
    /// What for.
    pub action: Action,
    /// On what.
    pub resource: Entity,
    /// Under which circumstances.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub context: Option<Object>,
}

/// One of several decisions; what is absent is taken from the top.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Entry {
    /// Who asks. A mapping never says so here (binding section 8).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub subject: Option<Entity>,
    /// What for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub action: Option<Action>,
    /// On what.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resource: Option<Entity>,
    /// Under which circumstances, in place of those at the top.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub context: Option<Object>,
}

/// A request for several decisions (AuthZEN section 7).
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Evaluations {
    /// What holds for every entry that does not say otherwise.
    #[serde(flatten)]
    pub defaults: Entry,
    /// One for each decision.
    pub evaluations: Vec<Entry>,
    /// How the policy engine goes about them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub options: Option<Object>,
}

/// How many decisions a policy engine makes of several.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Semantic {
    /// All.
    #[default]
    ExecuteAll,
    /// Up to the first no.
    DenyOnFirstDeny,
    /// Up to the first yes.
    PermitOnFirstPermit,
}

impl Semantic {
    /// Its name on the wire.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Semantic::ExecuteAll => "execute_all",
            Semantic::DenyOnFirstDeny => "deny_on_first_deny",
            Semantic::PermitOnFirstPermit => "permit_on_first_permit",
        }
    }

    /// The one of this name.
    #[must_use]
    pub fn named(name: &str) -> Option<Semantic> {
        let all = [Semantic::ExecuteAll, Semantic::DenyOnFirstDeny, Semantic::PermitOnFirstPermit];
        all.into_iter().find(|semantic| semantic.as_str() == name)
    }
}

/// A request, by the API it goes to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum Request {
    /// To the Access Evaluation API.
    Evaluation(Box<Evaluation>),
    /// To the Access Evaluations API.
    Evaluations(Box<Evaluations>),
}

/// A request that is not one, and where.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{0} is missing or of another type")]
pub struct NotARequest(pub &'static str);

impl Request {
    /// The API it goes to, as mappings name it.
    #[must_use]
    pub fn api(&self) -> &'static str {
        match self {
            Request::Evaluation(_) => "evaluation",
            Request::Evaluations(_) => "evaluations",
        }
    }

    /// How many decisions it asks for.
    #[must_use]
    pub fn decisions(&self) -> usize {
        match self {
            Request::Evaluation(_) => 1,
            Request::Evaluations(several) => several.evaluations.len(),
        }
    }

    /// The body that is sent.
    ///
    /// # Errors
    /// When a number in it cannot be written without rounding.
    pub fn body(&self) -> Result<Vec<u8>, serde_json::Error> {
        serde_json::to_vec(self)
    }
}

impl Evaluation {
    /// Reads a request for one decision. Members that mean nothing are passed over (AuthZEN section 5).
    ///
    /// # Errors
    /// When a part that must be there is not, or is of another type.
    pub fn read(body: &Json) -> Result<Evaluation, NotARequest> {
        let entry = Entry::read(body)?;
        Ok(Evaluation {
            subject: entry.subject.ok_or(NotARequest("subject"))?,
            action: entry.action.ok_or(NotARequest("action"))?,
            resource: entry.resource.ok_or(NotARequest("resource"))?,
            context: entry.context,
        })
    }
}

impl Entity {
    /// Reads a subject or a resource, if it is one.
    #[must_use]
    pub fn read(value: &Json) -> Option<Entity> {
        let text = |name: &str| value.get(name)?.as_str().map(str::to_owned);
        Some(Entity { kind: text("type")?, id: text("id")?, properties: properties(value)? })
    }
}

impl Action {
    /// Reads an action, if it is one.
    #[must_use]
    pub fn read(value: &Json) -> Option<Action> {
        Some(Action { name: value.get("name")?.as_str()?.to_owned(), properties: properties(value)? })
    }
}

impl Entry {
    fn read(body: &Json) -> Result<Entry, NotARequest> {
        if !matches!(body, Json::Object(_)) {
            return Err(NotARequest("the request"));
        }
        let part = |name: &'static str| body.get(name);
        Ok(Entry {
            subject: part("subject").map(|it| Entity::read(it).ok_or(NotARequest("subject"))).transpose()?,
            action: part("action").map(|it| Action::read(it).ok_or(NotARequest("action"))).transpose()?,
            resource: part("resource")
                .map(|it| Entity::read(it).ok_or(NotARequest("resource")))
                .transpose()?,
            context: part("context").map(|it| object(it).ok_or(NotARequest("context"))).transpose()?,
        })
    }
}

impl Evaluations {
    /// Reads a request for several decisions.
    ///
    /// # Errors
    /// When a part is of another type. What an entry lacks is a matter of that entry, not of the request.
    pub fn read(body: &Json) -> Result<Evaluations, NotARequest> {
        let entries = body.get("evaluations").and_then(Json::as_array).unwrap_or_default();
        let options = body.get("options").map(|it| object(it).ok_or(NotARequest("options"))).transpose()?;
        Ok(Evaluations {
            defaults: Entry::read(body)?,
            evaluations: entries.iter().map(Entry::read).collect::<Result<_, _>>()?,
            options,
        })
    }

    /// How many decisions come back.
    #[must_use]
    pub fn semantic(&self) -> Option<Semantic> {
        let Some(options) = &self.options else { return Some(Semantic::ExecuteAll) };
        match options.json().get("evaluations_semantic") {
            None => Some(Semantic::ExecuteAll),
            Some(name) => Semantic::named(name.as_str()?),
        }
    }

    /// One request for each entry, with what holds for all: for a policy engine that decides only one at a time.
    /// A part of an entry replaces the whole part at the top (AuthZEN section 7.1.1). Each is made when it is its turn.
    ///
    /// # Errors
    /// When an entry has a part neither itself nor from the top.
    pub fn singles(&self) -> Result<impl ExactSizeIterator<Item = Evaluation>, NotARequest> {
        let single = |entry| Single::of(entry, &self.defaults);
        let singles = self.evaluations.iter().map(single).collect::<Result<Vec<_>, _>>()?;
        Ok(singles.into_iter().map(Single::made))
    }
}

/// The parts of one request, where they are.
struct Single<'a> {
    subject: &'a Entity,
    action: &'a Action,
    resource: &'a Entity,
    context: Option<&'a Object>,
}

impl<'a> Single<'a> {
    fn of(entry: &'a Entry, top: &'a Entry) -> Result<Self, NotARequest> {
        let either = |own: &'a Option<Entity>, top: &'a Option<Entity>| own.as_ref().or(top.as_ref());
        Ok(Single {
            subject: either(&entry.subject, &top.subject).ok_or(NotARequest("subject"))?,
            action: entry.action.as_ref().or(top.action.as_ref()).ok_or(NotARequest("action"))?,
            resource: either(&entry.resource, &top.resource).ok_or(NotARequest("resource"))?,
            context: entry.context.as_ref().or(top.context.as_ref()),
        })
    }

    fn made(self) -> Evaluation {
        Evaluation {
            subject: self.subject.clone(),
            action: self.action.clone(),
            resource: self.resource.clone(),
            context: self.context.cloned(),
        }
    }
}

fn object(value: &Json) -> Option<Object> {
    Object::of(value.clone())
}

/// The properties of something; present and no object is a fault.
fn properties(value: &Json) -> Option<Option<Object>> {
    value.get("properties").map_or(Some(None), |it| object(it).map(Some))
}
