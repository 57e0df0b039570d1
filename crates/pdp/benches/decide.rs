//! What an embedded decision costs: the request put into Cedar's terms, its types held against the schema, the policies
//! asked, and the line in the log left out; beside Cedar alone, asked with everything ready.

#![expect(clippy::unwrap_used, reason = "a benchmark that cannot set itself up has failed")]

#[path = "../../../benches/beside.rs"]
mod beside;

use beside::{Beside, Floor};
use cedar_policy::{Authorizer, Context, Entities, Entity, PolicySet, Request, RestrictedExpression};
use sayso_coaz::authzen::Evaluation;
use sayso_pdp::{Embedded, EmbeddedSettings};
use sayso_protocol::Json;
use serde_json::{Value, json};
use std::collections::HashSet;
use std::hint::black_box;
use std::path::Path;
use std::time::{Duration, Instant};

const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/examples/coaz/policies");

fn often<T>(mut work: impl FnMut() -> T) -> impl FnMut(u64) -> Duration {
    move |times| {
        let began = Instant::now();
        for _ in 0..times {
            black_box(work());
        }
        began.elapsed()
    }
}

/// The same policies and entities, without any schema.
struct Bare {
    set: PolicySet,
    entities: Entities,
}

impl Bare {
    fn open() -> Self {
        let read = |name: &str| std::fs::read_to_string(Path::new(FOLDER).join(name)).unwrap();
        let text =
            ["methods", "customers", "storage", "transfers"].map(|name| read(&format!("{name}.cedar")));
        Self {
            set: text.join("\n").parse().unwrap(),
            entities: Entities::from_json_str(&read("entities.json"), None).unwrap(),
        }
    }

    fn with(mut self, entity: Entity) -> Self {
        self.entities = self.entities.add_entities([entity], None).unwrap();
        self
    }

    fn floor(
        self,
        principal: &str,
        action: &str,
        resource: &str,
        context: Context,
    ) -> impl FnMut(u64) -> Duration {
        let uid = |text: &str| text.parse().unwrap();
        let request = Request::new(uid(principal), uid(action), uid(resource), context, None).unwrap();
        often(move || Authorizer::new().is_authorized(black_box(&request), &self.set, &self.entities))
    }
}

fn evaluation(body: Value) -> Evaluation {
    Evaluation::read(&Json::from(body)).unwrap()
}

fn main() {
    let embedded = Embedded::open(EmbeddedSettings::new(FOLDER)).unwrap();
    let mut beside = Beside::new();
    let mut measure = |what: &'static str, body: Value, floor| {
        let asked = evaluation(body);
        assert!(embedded.evaluate(&asked, "r").unwrap().decision, "{what}");
        let floor = Floor { what: "Cedar alone, the request ready", timed: floor };
        beside.measure(what, floor, often(|| embedded.evaluate(black_box(&asked), "r").unwrap()));
    };
    let text = |text: &str| RestrictedExpression::new_string(text.to_owned());
    let agent = ("agent".to_owned(), text("agent-7"));
    measure(
        "decide/default mapping",
        json!({ "subject": { "type": "identity", "id": "alice@example.com" }, "action": { "name": "tools/list" },
            "resource": { "type": "mcp_server", "id": "https://mcp.example.com" }, "context": { "agent": "agent-7" } }),
        Bare::open().floor(
            r#"identity::"alice@example.com""#,
            r#"Action::"tools/list""#,
            r#"mcp_server::"https://mcp.example.com""#,
            Context::from_pairs([agent.clone()]).unwrap(),
        ),
    );
    let account = Entity::new(
        r#"account::"A""#.parse().unwrap(),
        [("sensitivity".to_owned(), text("high"))].into(),
        HashSet::new(),
    );
    let amount = ("amount".to_owned(), RestrictedExpression::new_decimal("20000.0"));
    let target = ("target_account".to_owned(), text("B"));
    measure(
        "decide/transfer_funds, properties and a decimal",
        json!({ "subject": { "type": "treasury_user", "id": "alice@example.com" },
            "action": { "name": "domestic_transfer" },
            "resource": { "type": "account", "id": "A", "properties": { "sensitivity": "high" } },
            "context": { "agent": "agent-7", "amount": 20000, "target_account": "B" } }),
        Bare::open().with(account.unwrap()).floor(
            r#"treasury_user::"alice@example.com""#,
            r#"Action::"domestic_transfer""#,
            r#"account::"A""#,
            Context::from_pairs([agent, amount, target]).unwrap(),
        ),
    );
    beside.show();
}
