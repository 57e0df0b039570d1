//! The first policy of the bundled demo vault: three units, each with terms a person can read (design 4.4).
//!
//! It is what a new installation starts from; from then on the policy is the owner's.

use sayso_owner::unit::{Draft, Unit};
use sayso_protocol::ResourceId;
use sayso_protocol::id::BadId;
use std::collections::BTreeMap;

/// The three units over the demo vault's tools in `realm`.
///
/// # Errors
/// When the realm makes an id too long.
pub fn first_units(realm: &str) -> Result<Vec<Unit>, BadId> {
    Ok(vec![holdings(realm)?, transactions(realm)?, trading(realm)?])
}

fn holdings(realm: &str) -> Result<Unit, BadId> {
    let terms = Draft {
        purpose: "review of current holdings".into(),
        scope: vec!["positions:read".parse()?],
        expires_in: 172_800,
        prohibited: strings(["retention-after-review", "marketing", "model-training"]),
        per_operation: false,
        enforced: BTreeMap::new(),
    };
    unit("holdings", "Holdings", resource(realm, "get_positions")?, false, terms)
}

fn transactions(realm: &str) -> Result<Unit, BadId> {
    let terms = Draft {
        purpose: "review of past transactions".into(),
        scope: vec!["transactions:read".parse()?],
        expires_in: 86_400,
        prohibited: strings(["retention-after-review", "marketing", "model-training"]),
        per_operation: false,
        enforced: BTreeMap::new(),
    };
    // She is asked each time until rules can say "only the first time".
    unit("transactions", "Transactions", resource(realm, "get_transactions")?, true, terms)
}

fn trading(realm: &str) -> Result<Unit, BadId> {
    let beyond = "orders-beyond-approved-parameters";
    let reuse = "discretionary-reuse-of-authority";
    let terms = Draft {
        purpose: "execution of one order the owner approved".into(),
        scope: vec!["trades:execute".parse()?],
        expires_in: 900,
        prohibited: strings([beyond, reuse]),
        per_operation: true,
        enforced: [(beyond, "operation-binding"), (reuse, "single-use")]
            .map(|(promise, mechanism)| (promise.to_owned(), mechanism.to_owned()))
            .into(),
    };
    unit("trading", "Trading", resource(realm, "execute_trade")?, true, terms)
}

fn unit(id: &str, name: &str, resource: ResourceId, ask_me: bool, terms: Draft) -> Result<Unit, BadId> {
    Ok(Unit {
        id: id.parse()?,
        name: name.into(),
        resources: vec![resource],
        ask_me,
        bind: false,
        version: 1,
        terms,
    })
}

fn resource(realm: &str, tool: &str) -> Result<ResourceId, BadId> {
    ResourceId::parse(format!("{realm}/{tool}"))
}

fn strings<const N: usize>(texts: [&str; N]) -> Vec<String> {
    texts.map(str::to_owned).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    // POL-02, TERMS-44
    #[test]
    fn the_first_units_can_stand() {
        let units = first_units("alice-vault").unwrap();
        assert_eq!(units.len(), 3);
        let governed: std::collections::BTreeSet<_> = units.iter().flat_map(|unit| &unit.resources).collect();
        assert_eq!(governed.len(), 3);
        for unit in &units {
            assert_eq!(unit.check(), Ok(()));
        }
        let trading = &units[2];
        assert!(trading.ask_me && trading.terms.per_operation);
        assert_eq!(trading.terms.enforced.len(), trading.terms.prohibited.len());
    }
}
