//! One set of policies with its schema and its entities, whole and valid: what decides.

use super::fault::{BadPolicies, BadPolicy};
use super::folder::{ENTITIES_NAME, Found, Text};
use super::question::{Question, Unheld};
use super::schema;
use super::shape::{Meter, Record};
use cedar_policy::{
    AuthorizationError, Authorizer, Decision as Effective, Entities, EntityTypeName, EntityUid, Policy,
    PolicyId, PolicySet, Schema, ValidationMode, Validator,
};
use miette::Diagnostic;
use sayso_coaz::Tally;
use sayso_coaz::answer::{AnswerFault, Decision};
use sayso_coaz::authzen::{Evaluation, Object};
use sayso_protocol::Json;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::{Path, PathBuf};

/// Most names of policies that one line of a log repeats.
const NAMES: usize = 16;

/// What decides.
pub(super) struct Policies {
    root: PathBuf,
    set: PolicySet,
    pub(super) schema: Schema,
    pub(super) entities: Entities,
    pub(super) kinds: HashMap<String, Kind>,
    pub(super) actions: HashMap<String, Act>,
    /// Every type that `entities.json` has, or had, entities of since the start.
    listed: BTreeSet<String>,
}

/// A type of subjects and resources.
pub(super) struct Kind {
    pub(super) name: EntityTypeName,
    pub(super) attributes: Record,
    /// Whether `entities.json` has some: then it has all that is known of any.
    pub(super) listed: bool,
}

/// An action.
pub(super) struct Act {
    pub(super) uid: EntityUid,
    pub(super) context: Record,
}

impl Policies {
    /// Reads all of it, and holds the policies against the schema.
    pub(super) fn compile(found: &Found) -> Result<Self, BadPolicies> {
        let schema = schema::merged(&found.root, found.schema.as_ref())?;
        let entities = entities(found.entities.as_ref(), &schema)?;
        let (set, places) = policies(&found.policies)?;
        validate(&set, &schema, &places)?;
        let place = found.schema.as_ref().map_or(&found.root, |file| &file.path);
        let unfit = |fault: &str| {
            bad(place, BadPolicy::Schema { line: None, fault: format!("{fault} cannot be used here").into() })
        };
        let kinds = schema.entity_types().map(|name| {
            let attributes = schema.as_ref().get_entity_type(name.as_ref());
            let attributes = attributes.and_then(|kind| Record::of(kind.attributes()));
            let attributes = attributes.ok_or_else(|| unfit(&format!("entity type `{name}`")))?;
            let listed = entities.iter().any(|entity| entity.uid().type_name() == name);
            Ok((name.to_string(), Kind { name: name.clone(), attributes, listed }))
        });
        let kinds = kinds.collect::<Result<HashMap<_, _>, BadPolicies>>()?;
        let actions = schema.actions().map(|uid| {
            let context = match schema.as_ref().get_action_id(uid.as_ref()).and_then(|it| it.context()) {
                Some(kind) => Record::of_type(kind),
                None => Some(Record::default()),
            };
            let context = context.ok_or_else(|| unfit(&format!("the context of `{uid}`")))?;
            Ok((name_of(uid), Act { uid: uid.clone(), context }))
        });
        let actions = actions.collect::<Result<_, BadPolicies>>()?;
        let listed = listed(&kinds);
        if let Some(file) = found.entities.as_ref().filter(|_| listed.is_empty()) {
            return Err(bad(&file.path, BadPolicy::NoEntities));
        }
        Ok(Self { root: found.root.clone(), set, schema, entities, kinds, actions, listed })
    }

    /// The set to take the place of the one that decides now.
    ///
    /// # Errors
    /// When a type has no entities any more: what requests say of it would be believed from then on, and a file that went
    /// missing is no word of the operator's that it should be.
    pub(super) fn after(mut self, before: &Policies) -> Result<Self, BadPolicies> {
        let lost = |name: &&String| self.kinds.get(*name).is_some_and(|kind| !kind.listed);
        if let Some(name) = before.listed.iter().find(lost) {
            return Err(bad(&self.root.join(ENTITIES_NAME), BadPolicy::Unlisted(name.clone())));
        }
        self.listed.extend(before.listed.iter().cloned());
        Ok(self)
    }

    /// Says what there is, once it counts, and of which types the file is believed.
    pub(super) fn tell(&self, event: &str) {
        let (policies, entities) = (self.set.num_of_policies(), self.entities.len());
        let listed = Vec::from_iter(listed(&self.kinds)).join(" ");
        tracing::info!(folder = %self.root.display(), policies, entities, listed, "{event}");
    }

    /// Decides on one request. What the schema does not know is denied: no policy can be about it.
    pub(super) fn decide(
        &self,
        asked: &Evaluation,
        request_id: &str,
        tally: &Tally,
    ) -> Result<Decision, Unheld> {
        let mut meter = Meter::new(tally);
        let question = Question::read(self, asked, &mut meter);
        meter.tell(request_id);
        let question = match question? {
            Ok(question) => question,
            Err(unknown) => {
                tracing::info!(request = request_id, decision = false, unknown, "policy.decided");
                return Ok(Decision { decision: false, context: reason(unknown) });
            }
        };
        let entities = question.entities.as_ref().unwrap_or(&self.entities);
        let response = Authorizer::new().is_authorized(&question.request, &self.set, entities);
        let decision = response.decision() == Effective::Allow;
        let policies = names(response.diagnostics().reason());
        let failed = names(response.diagnostics().errors().map(|fault| match fault {
            AuthorizationError::PolicyEvaluationError(fault) => fault.policy_id(),
        }));
        if !failed.is_empty() {
            tracing::warn!(request = request_id, policies = failed, "policy.failed");
            // A policy that failed may have been the one that forbids, so a yes of the others is none.
            if decision {
                return Err(Unheld { place: String::new(), fault: AnswerFault::Unevaluated });
            }
        }
        tracing::info!(request = request_id, decision, policies, "policy.decided");
        Ok(Decision { decision, context: None })
    }
}

/// The types that the file has entities of.
fn listed(kinds: &HashMap<String, Kind>) -> BTreeSet<String> {
    kinds.iter().filter(|(_, kind)| kind.listed).map(|(name, _)| name.clone()).collect()
}

fn reason(unknown: &'static str) -> Option<Object> {
    let reason = ("reason".to_owned(), Json::String(format!("the schema does not know the {unknown}")));
    Object::of(Json::Object(vec![reason]))
}

fn names<'a>(ids: impl Iterator<Item = &'a PolicyId>) -> String {
    let mut names: Vec<String> = ids.map(ToString::to_string).collect();
    names.sort();
    names.truncate(NAMES);
    names.join(" ")
}

/// An action by the name a request has for it: its own, behind its namespace where it has one.
fn name_of(uid: &EntityUid) -> String {
    let id = uid.id().unescaped();
    match uid.type_name().namespace() {
        namespace if namespace.is_empty() => id.to_owned(),
        namespace => format!("{namespace}::{id}"),
    }
}

fn bad(path: &Path, why: BadPolicy) -> BadPolicies {
    BadPolicies { path: path.to_owned(), why }
}

fn entities(file: Option<&Text>, schema: &Schema) -> Result<Entities, BadPolicies> {
    let Some(file) = file else {
        return Entities::from_entities([], Some(schema))
            .map_err(|fault| bad(Path::new(""), BadPolicy::Entities(fault.to_string().into())));
    };
    Entities::from_json_str(&file.text, Some(schema))
        .map_err(|fault| bad(&file.path, BadPolicy::Entities(chain(&fault).into())))
}

/// The policies of all files under names of their own, and the file of each with its text.
type Places<'a> = BTreeMap<String, &'a Text>;

fn policies(files: &[Text]) -> Result<(PolicySet, Places<'_>), BadPolicies> {
    let mut set = PolicySet::new();
    let mut places = Places::new();
    for file in files {
        let parsed: PolicySet = file.text.parse().map_err(|fault: cedar_policy::ParseErrors| {
            let line = line_of(&fault, &file.text);
            bad(&file.path, BadPolicy::Syntax { line, fault: chain(&fault).into() })
        })?;
        if let Some(template) = parsed.templates().next() {
            return Err(bad(&file.path, BadPolicy::Template(template.id().to_string())));
        }
        for policy in parsed.policies() {
            let name = named(file, policy);
            if places.insert(name.clone(), file).is_some() {
                return Err(bad(&file.path, BadPolicy::Named(name)));
            }
            let named = set.add(policy.new_id(PolicyId::new(&name)));
            named.map_err(|_| bad(&file.path, BadPolicy::Named(name)))?;
        }
    }
    if set.is_empty() {
        let path = files.first().and_then(|file| file.path.parent()).unwrap_or(Path::new("."));
        return Err(bad(path, BadPolicy::Empty));
    }
    Ok((set, places))
}

/// What its author named it, or its file and its place among the policies there, from 1.
fn named(file: &Text, policy: &Policy) -> String {
    if let Some(name) = policy.annotation("id").filter(|name| !name.is_empty()) {
        return name.to_owned();
    }
    let stem = file.path.file_name().unwrap_or_default().to_string_lossy();
    let id = policy.id().to_string();
    let at: usize = id.trim_start_matches("policy").parse().unwrap_or_default();
    format!("{stem}#{}", at + 1)
}

fn validate(set: &PolicySet, schema: &Schema, places: &Places<'_>) -> Result<(), BadPolicies> {
    let result = Validator::new(schema.clone()).validate(set, ValidationMode::Strict);
    for warning in result.validation_warnings() {
        tracing::warn!(%warning, "policies.doubtful");
    }
    let Some(fault) = result.validation_errors().next() else { return Ok(()) };
    let policy = fault.policy_id().to_string();
    let (path, text) = places.get(&policy).map_or((Path::new(""), ""), |file| (&file.path, &file.text));
    let line = line_of(fault, text);
    Err(bad(path, BadPolicy::Invalid { policy, line, fault: chain(fault).into() }))
}

/// What Cedar says, and what it advises.
fn chain<T: Diagnostic>(fault: &T) -> String {
    let mut text = fault.to_string();
    let mut source = std::error::Error::source(fault);
    while let Some(inner) = source {
        let inner_text = inner.to_string();
        if !text.contains(&inner_text) {
            text = format!("{text}: {inner_text}");
        }
        source = inner.source();
    }
    if let Some(help) = fault.help() {
        text = format!("{text} ({help})");
    }
    text
}

/// The line of a text, from 1, that a fault is about.
pub(super) fn line_of(fault: &dyn Diagnostic, text: &str) -> Option<usize> {
    let at = fault.labels()?.next()?.offset();
    Some(text.get(..at)?.matches('\n').count() + 1)
}
