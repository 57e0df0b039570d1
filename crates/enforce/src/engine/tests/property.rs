//! No permit without proof: whatever mixture of right and wrong a request and the authority's answers are.

use super::*;
use proptest::prelude::*;

/// One choice for every thing that can be right or wrong; 0 is the right one.
#[derive(Debug, Clone)]
struct Mixture {
    single: bool,
    scheme: u8,
    signer: u8,
    authority: u8,
    age: i64,
    body: u8,
    arguments: u8,
    liveness: u8,
    permission: u8,
    consume: u8,
    door: bool,
    report: bool,
}

/// The right choice mostly, or hardly any mixture would get far.
fn choice(wrong: u8) -> impl Strategy<Value = u8> {
    prop_oneof![8 => Just(0), 1 => 1..=wrong]
}

prop_compose! {
    fn mixture()(
        single: bool, scheme in choice(2), signer in choice(1), authority in choice(1),
        age in prop_oneof![6 => -60..=60_i64, 1 => 61..90_i64, 1 => -90..-60_i64], body in choice(1),
        arguments in choice(1), liveness in choice(2), permission in choice(2), consume in choice(2),
        door in prop::bool::weighted(0.1), report in prop::bool::weighted(0.1),
    ) -> Mixture {
        Mixture {
            single, scheme, signer, authority, age, body, arguments, liveness, permission, consume, door, report,
        }
    }
}

impl Mixture {
    fn tool(&self) -> &'static str {
        if self.single { "execute_trade" } else { "get_positions" }
    }

    fn request(&self) -> Incoming {
        let arguments = if self.arguments == 0 { ARGUMENTS } else { "{}" };
        let authority = if self.authority == 0 { "gw.example.test" } else { "evil.example.test" };
        let signer = key(if self.signer == 0 { 0x22 } else { 0x33 });
        let mut incoming = sign(call(self.tool(), arguments), &signer, NOW.plus(-self.age), authority);
        if self.body != 0 {
            incoming.body = crate::Body::Whole(call_body(self.tool(), &arguments.replace('{', "{ ")).into());
        }
        match self.scheme {
            1 => {
                incoming
                    .head
                    .headers
                    .insert("authorization", HeaderValue::from_static("Bearer header.claims.signature"));
            }
            2 => {
                incoming.head.headers.remove("authorization");
            }
            _ => {}
        }
        incoming
    }

    fn scene(&self) -> Scene {
        let mut grant = if self.single { single_use() } else { reusable() };
        match self.permission {
            1 => grant.permissions.clear(),
            2 => grant.permissions[0].exp = Some(NOW),
            _ => {}
        }
        let mut scene = Scene::with(grant);
        match self.liveness {
            1 => dead(&scene, "expired"),
            2 => dead(&scene, "connection_revoked"),
            _ => {}
        }
        let lost = ConsumeReply { consumed: false, error: Some("already_consumed".into()) };
        *scene.authority.consume.lock().unwrap() = match self.consume {
            1 => Some(Ok(lost)),
            2 => Some(Err(Unavailable::Interrupted)),
            _ => None,
        };
        scene.door.closed = self.door;
        if self.report {
            *scene.authority.report.lock().unwrap() = Err(Unavailable::Unreachable);
        }
        scene
    }

    /// Whether everything that must hold holds.
    fn is_right(&self) -> bool {
        let shown = self.scheme == 0 && self.signer == 0 && self.authority == 0 && self.age.abs() <= 60;
        let granted = self.liveness == 0 && self.permission == 0;
        let used =
            if self.single { self.arguments == 0 && self.consume == 0 && !self.door } else { !self.report };
        shown && self.body == 0 && granted && used
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1500, ..ProptestConfig::default() })]

    // CORE-55, CORE-83, CORE-89, CORE-90
    #[test]
    fn no_permit_without_introspection_and_possession(mixture in mixture()) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let scene = mixture.scene();
        let verdict = runtime.block_on(scene.decide(&mixture.request()));
        let names = scene.authority.names();
        prop_assert_eq!(told(&verdict) == "permit", mixture.is_right(), "{} {:?}", told(&verdict), names);
        if let Verdict::Permit(_) = verdict {
            prop_assert_eq!(names.first(), Some(&"introspect"));
            prop_assert_eq!(names.last(), Some(if mixture.single { &"consume" } else { &"report" }));
        }
        // The authority is asked to spend only what passed everything before.
        let ready = Mixture { consume: 0, door: false, report: false, ..mixture.clone() }.is_right();
        prop_assert!(scene.authority.consumed() == 0 || (ready && !mixture.door));
    }
}
