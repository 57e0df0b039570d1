//! The unit a tool is in at first, when nobody but its server described it (D-29).
//!
//! `up` makes it for the tools a server has when it is heard for the first time; for one that appears later the owner
//! does, with `sayso owner accept`. It is the same unit, so that it makes no difference when a tool was seen.

use sayso_gateway::classify::{self, Class};
use sayso_owner::unit::{Draft, Unit};
use sayso_protocol::{ResourceId, Scope, ToolName};

/// How long the promises for one approved call last, in seconds.
const ONE_CALL: i64 = 900;
/// How long those for reading last.
const READING: i64 = 86_400;
/// Longest name of a unit, in characters.
const NAME: usize = 200;

/// A unit of its own for a tool. She is asked each time until rules can say otherwise.
pub(crate) fn unit(tool: &ToolName, resource: ResourceId, scope: Vec<Scope>, class: Class) -> Option<Unit> {
    Some(Unit {
        id: classify::unit(tool).ok()?,
        name: tool.to_string().chars().take(NAME).collect(),
        resources: vec![resource],
        ask_me: true,
        version: 1,
        terms: terms(scope, class),
    })
}

fn terms(scope: Vec<Scope>, class: Class) -> Draft {
    let acts = class == Class::Act;
    let (beyond, reuse) = ("calls-beyond-approved-arguments", "reuse-of-an-approval");
    let upheld = [(beyond, "operation-binding"), (reuse, "single-use")];
    let upheld = upheld.map(|(promise, mechanism)| (promise.to_owned(), mechanism.to_owned()));
    Draft {
        purpose: if acts { "one call the owner approved" } else { "reading what this tool shows" }.into(),
        scope,
        expires_in: if acts { ONE_CALL } else { READING },
        prohibited: if acts { vec![beyond.into(), reuse.into()] } else { vec![] },
        per_operation: acts,
        enforced: if acts { upheld.into() } else { [].into() },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // D-29
    #[test]
    fn the_first_units_can_stand() {
        for class in [Class::Read, Class::Act] {
            let scope = vec!["look:read".parse().unwrap()];
            let unit = unit(&"look".parse().unwrap(), "x/look".parse().unwrap(), scope, class).unwrap();
            assert_eq!(unit.check(), Ok(()));
            assert_eq!((unit.ask_me, unit.terms.per_operation), (true, class == Class::Act));
            assert_eq!(unit.terms.enforced.len(), unit.terms.prohibited.len());
        }
    }
}
