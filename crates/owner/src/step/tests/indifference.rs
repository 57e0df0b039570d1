//! Whatever the agent writes beyond the echo decides nothing.

use super::*;
use crate::decision::Answer;
use crate::negotiation::Commitment;
use proptest::prelude::*;
use sayso_protocol::payload::agreement::AgreementClaims;
use serde_json::{Map, Value};

/// Everything of an outcome but what quotes the agreement itself: its text, its digest, and the words kept.
fn outcome(world: &World, step: &Step) -> Value {
    let mut records = serde_json::to_value(&step.records).unwrap();
    for record in records.as_array_mut().unwrap() {
        let entry = record["entry"].as_object_mut().unwrap();
        entry.retain(|name, _| !["agreement", "reason", "mission"].contains(&name.as_str()));
    }
    let state = match step.state.clone() {
        State::AwaitingOwner { commitment, ask, deadline } => {
            State::AwaitingOwner { commitment: Box::new(silenced(*commitment)), ask, deadline }
        }
        state => state,
    };
    let grant = step.grant.as_ref().map(|_| {
        let mut rpt = serde_json::to_value(world.rpt(step)).unwrap();
        assert_eq!(
            rpt.as_object_mut().unwrap().remove("contract").unwrap(),
            json!(world.receipt(step).agreement)
        );
        rpt
    });
    let mut reply = step.reply.body();
    reply.as_object_mut().unwrap().retain(|name, _| name != "access_token" && name != "receipt");
    json!({
        "status": step.reply.status(), "reply": reply, "state": state, "records": records, "grant": grant,
        "rotates": step.rotates, "untouched": step.untouched, "due": step.due,
    })
}

fn silenced(commitment: Commitment) -> Commitment {
    let quiet = sayso_protocol::canon::s256_bytes(b"");
    Commitment { agreement_jws: String::new(), agreement: quiet, reason: None, mission: None, ..commitment }
}

/// One world for each way a commit can go: asked as stranger, asked about an operation, granted, refused.
fn worlds() -> [World; 4] {
    let mut ended = World::holdings().connected();
    ended.end();
    [
        World::trading().proffered(),
        World::trading().connected().proffered(),
        World::holdings().connected().proffered(),
        ended.proffered(),
    ]
}

/// The outcome of the commit and, where she is asked and says yes, of the claim.
fn played(mut world: World, over: Value) -> [Value; 2] {
    let commit = world.commit(over);
    let step = world.advance(&commit);
    let first = outcome(&world, &step);
    let claimed = world.decide(Answer::Approved).map(|_| {
        let step = world.play(&Beat::Present);
        outcome(&world, &step)
    });
    [first, claimed.unwrap_or_default()]
}

fn reason() -> impl Strategy<Value = String> {
    prop_oneof![
        ".{1,512}".prop_filter("at most 512 bytes", |text| text.len() <= 512),
        Just("please approve: true".to_owned()),
        Just("<script>alert(1)</script>".to_owned()),
        Just("\u{202e}x\u{0}".to_owned()),
        Just("x".repeat(512)),
    ]
}

fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Bool(true)),
        (-1_000_000_i64..1_000_000).prop_map(Value::from),
        "[ -~]{0,24}".prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 16, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map("[a-z_]{1,8}", inner, 0..4)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

/// Members the agreement does not define; some have the names of things that decide elsewhere.
fn extras() -> impl Strategy<Value = Map<String, Value>> {
    let name = prop_oneof![
        "[a-z_]{1,12}".prop_map(String::from),
        prop::sample::select(vec![
            "ask_me",
            "per_operation",
            "handle",
            "sub",
            "owner",
            "single_use",
            "decision",
            "epoch",
            "exp",
            "enforced",
            "resource_id",
            "resource_scopes",
            "template",
            "introduction",
            "assurance",
            "consequence",
        ])
        .prop_map(String::from),
    ];
    let defined = |name: &String| DEFINED.contains(&name.as_str());
    prop::collection::btree_map(name, value(), 0..6)
        .prop_map(move |members| members.into_iter().filter(|(name, _)| !defined(name)).collect())
}

const DEFINED: [&str; 14] = [
    "iss",
    "aud",
    "iat",
    "template_id",
    "terms_uri",
    "purpose",
    "scope",
    "expires_in",
    "prohibited",
    "family",
    "nonce",
    "operation",
    "reason",
    "mission",
];

/// The list above is the agreement's; a member added there has to be judged here.
#[test]
fn the_defined_claims_are_the_agreements() {
    let mission =
        json!({"approver": "https://m.example", "s256": sayso_protocol::canon::s256_bytes(b"").to_string()});
    let world = World::trading().proffered();
    let agreement = world.agreement(json!({"reason": "r", "mission": mission}));
    let claims: AgreementClaims = agreement.claims().clone();
    let written = serde_json::to_value(claims).unwrap();
    let mut names: Vec<&str> = written.as_object().unwrap().keys().map(String::as_str).collect();
    let mut defined = DEFINED.to_vec();
    names.sort_unstable();
    defined.sort_unstable();
    assert_eq!(names, defined);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    // CORE-120, TERMS-33, TERMS-35
    #[test]
    fn no_reason_is_better_than_another(reason in reason()) {
        for (world, same) in worlds().into_iter().zip(worlds()) {
            prop_assert_eq!(played(world, json!({ "reason": reason })), played(same, json!({ "reason": "because" })));
        }
    }

    // TERMS-32
    #[test]
    fn nothing_else_the_agent_writes_counts(extras in extras()) {
        for (world, same) in worlds().into_iter().zip(worlds()) {
            prop_assert_eq!(played(world, Value::Object(extras.clone())), played(same, json!({})));
        }
    }

    // TERMS-34, TERMS-35
    #[test]
    fn no_mission_is_better_than_another(host in "[a-z]{1,12}", content in "[ -~]{0,64}") {
        let s256 = sayso_protocol::canon::s256_bytes(content.as_bytes()).to_string();
        let mission = json!({"approver": format!("https://{host}.example"), "s256": s256});
        for (world, same) in worlds().into_iter().zip(worlds()) {
            prop_assert_eq!(played(world, json!({ "mission": mission })), played(same, json!({})));
        }
    }
}
