//! Tools that appear, change and go while calls are decided.

use super::*;
use crate::engine::{Engine, Outlet};
use crate::scripted::{NOW, Scene, Scripted, call, reusable, settings, signed, told};
use crate::verdict::Verdict;
use crate::{Authority, Replay, ResourceSettings, Unavailable};
use sayso_protocol::canon::{S256, s256_bytes};
use sayso_protocol::payload::protection::LiveGrant;
use sayso_protocol::payload::refusal::Code;

fn unlisted() -> ResourceSettings {
    ResourceSettings { tools: Vec::new(), ..settings() }
}

fn pinned(definition: &[u8]) -> Vec<ToolSettings> {
    settings()
        .tools
        .into_iter()
        .map(|tool| ToolSettings { definition: Some(s256_bytes(definition)), ..tool })
        .collect()
}

fn granted_on(definition: S256) -> LiveGrant {
    let mut grant = reusable();
    grant.permissions[0].definition = Some(definition);
    grant
}

// D-30
#[tokio::test]
async fn until_tools_are_known_no_call_is_decided() {
    let scene = Scene::of(reusable(), unlisted());
    for incoming in [call("get_positions", "{}"), signed("get_positions", "{}")] {
        let refusal = scene.refused(&incoming).await;
        assert_eq!((refusal.code, refusal.spent), (Code::TemporarilyUnavailable, false));
    }
    assert!(scene.authority.names().is_empty(), "the authority was asked");
    scene.engine.registry().replace(settings().tools).unwrap();
    assert_eq!(told(&scene.decide(&signed("get_positions", "{}")).await), "permit");
    scene.engine.registry().replace(Vec::new()).unwrap();
    assert_eq!(scene.code(&signed("get_positions", "{}")).await, Code::UnknownTool);
}

// D-29
#[test]
fn a_realm_that_was_learnt_late_is_the_one_in_challenges() {
    let registry = Registry::from(Resource::new(unlisted()).unwrap());
    registry.name("late".parse().unwrap());
    assert!(!registry.snapshot().is_listed(), "that makes no tool known");
    registry.replace(settings().tools).unwrap();
    let resource = registry.snapshot();
    let challenge = resource.challenge(resource.tool("get_positions").unwrap(), "t".into());
    assert_eq!(challenge.realm.as_str(), "late");
}

// D-30
#[tokio::test]
async fn a_changed_pin_suspends_the_grant_and_a_returning_one_restores_it() {
    let scene = Scene::of(granted_on(s256_bytes(b"first")), unlisted());
    let registry = scene.engine.registry();
    registry.replace(pinned(b"first")).unwrap();
    assert_eq!(told(&scene.decide(&signed("get_positions", "{}")).await), "permit");
    registry.replace(pinned(b"second")).unwrap();
    assert_eq!(scene.code(&signed("get_positions", "{}")).await, Code::ToolChanged);
    assert_eq!(scene.authority.tickets(), 0, "negotiating was offered");
    registry.replace(pinned(b"first")).unwrap();
    assert_eq!(told(&scene.decide(&signed("get_positions", "{}")).await), "permit");
}

// MCP-02
#[test]
fn a_replacement_that_contradicts_itself_changes_nothing() {
    let registry = Registry::from(Resource::new(settings()).unwrap());
    let twice = [settings().tools, settings().tools].concat();
    assert!(matches!(registry.replace(twice), Err(BadResource::Repeated(_))));
    assert_eq!(registry.snapshot().listing().resources.len(), 2);
    registry.replace(pinned(b"new")).unwrap();
    let listed = registry.snapshot().listing().resources;
    assert!(listed.iter().all(|tool| tool.definition == Some(s256_bytes(b"new"))));
}

/// Takes the tools away while a connection is checked out.
struct Thief(Registry);

impl Outlet for Thief {
    type Sender = ();

    async fn checkout(&self) -> Result<(), Unavailable> {
        self.0.replace(Vec::new()).map_err(|_| Unavailable::Exhausted)
    }
}

#[tokio::test]
async fn a_decision_ends_with_the_registry_it_began_with() {
    let authority: Arc<dyn Authority> = Scripted::knowing(crate::scripted::single_use());
    let registry = Registry::from(Resource::new(settings()).unwrap());
    let engine =
        Engine::new(registry.clone(), authority, Arc::new(Replay::new(NOW.plus(-300))), Arc::new(|| NOW));
    let thief = Thief(registry);
    let trade = || signed("execute_trade", crate::scripted::ARGUMENTS);
    assert!(matches!(engine.decide(&trade(), &thief).await, Verdict::Permit(_)));
    let Verdict::Refuse(refusal) = engine.decide(&trade(), &thief).await else { panic!("not refused") };
    assert_eq!(refusal.code, Code::UnknownTool);
}
