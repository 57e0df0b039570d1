//! The schema policies are held against: what the default mappings can ask about, and over it what the author declares.
//!
//! The author's `schema.cedarschema` wins name by name: an entity type, action or common type it declares takes the
//! place of the derived one of that name, whole.

use super::fault::{BadPolicies, BadPolicy};
use super::folder::Text;
use super::policies::line_of;
use cedar_policy::{Schema, SchemaFragment};
use miette::Diagnostic;
use sayso_coaz::{IDENTITY, default_shapes};
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;
use std::path::Path;

/// The parts of a namespace that are told apart by name.
const BY_NAME: [&str; 3] = ["entityTypes", "actions", "commonTypes"];

/// Both schemas, merged.
pub(super) fn merged(root: &Path, author: Option<&Text>) -> Result<Schema, BadPolicies> {
    let mut schema = derived();
    let path = author.map_or(root, |file| &file.path);
    let bad = |fault: &dyn Diagnostic, text: &str| BadPolicies {
        path: path.to_owned(),
        why: BadPolicy::Schema { line: line_of(fault, text), fault: fault.to_string().into() },
    };
    if let Some(file) = author {
        let (fragment, warnings) =
            SchemaFragment::from_cedarschema_str(&file.text).map_err(|fault| bad(&fault, &file.text))?;
        for warning in warnings {
            tracing::warn!(file = %file.path.display(), %warning, "policies.schema");
        }
        overlay(&mut schema, fragment.to_json_value().map_err(|fault| bad(&fault, ""))?);
    }
    Schema::from_json_value(schema).map_err(|fault| bad(&fault, ""))
}

fn overlay(schema: &mut Value, author: Value) {
    let (Value::Object(schema), Value::Object(author)) = (schema, author) else { return };
    for (name, namespace) in author {
        let Some(Value::Object(known)) = schema.get_mut(&name) else {
            schema.insert(name, namespace);
            continue;
        };
        let Value::Object(namespace) = namespace else { continue };
        for (part, declared) in namespace.into_iter().filter(|(part, _)| BY_NAME.contains(&part.as_str())) {
            let known = known.entry(part).or_insert_with(|| json!({}));
            if let (Value::Object(known), Value::Object(declared)) = (known, declared) {
                known.extend(declared);
            }
        }
    }
}

/// What the default mappings can ask about.
fn derived() -> Value {
    let shapes = default_shapes();
    let mut types = BTreeSet::from([IDENTITY]);
    types.extend(shapes.iter().flat_map(|shape| shape.resources.iter().copied()));
    let types: Map<String, Value> = types.into_iter().map(|name| (name.to_owned(), json!({}))).collect();
    let actions: Map<String, Value> = shapes
        .iter()
        .map(|shape| {
            let member = |name: &&str| ((*name).to_owned(), json!({ "type": "String", "required": false }));
            let context: Map<String, Value> = shape.context.iter().map(member).collect();
            let applies = json!({
                "principalTypes": [IDENTITY],
                "resourceTypes": shape.resources,
                "context": { "type": "Record", "attributes": context },
            });
            (shape.method.to_owned(), json!({ "appliesTo": applies }))
        })
        .collect();
    json!({ "": { "entityTypes": types, "actions": actions } })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_defaults_ask_about_is_a_schema() {
        let schema = Schema::from_json_value(derived()).unwrap();
        let types: BTreeSet<String> = schema.entity_types().map(ToString::to_string).collect();
        assert_eq!(
            types.into_iter().collect::<Vec<_>>(),
            ["identity", "mcp_server", "prompt", "resource", "task", "tool"]
        );
        assert_eq!(schema.actions().count(), default_shapes().len());
    }
}
