//! What passes between an enforcement point and its authority: introspection first, then the other objects of the
//! protection API. A live grant is live to every reader, and each object survives being written (CORE-96, FED-42).

use sayso_protocol::json::{Limits, strict};
use sayso_protocol::payload::protection::{
    AccessReport, ConsumeReply, Introspection, PermissionReply, PermissionRequest,
};
use sayso_protocol::payload::rpt::MAX_LIFE;
use serde_json::Value;

use super::same;

/// The body.
pub fn check(bytes: &[u8]) {
    if let Some(answer) = Introspection::from_json(bytes) {
        introspected(bytes, &answer);
    }
    same::round_trip::<PermissionRequest>(bytes);
    same::round_trip::<AccessReport>(bytes);
    same::round_trip::<ConsumeReply>(bytes);
    if let Ok(reply) = strict::<PermissionReply>(bytes, Limits::default()) {
        let lax = serde_json::from_slice::<Value>(bytes).unwrap_or_default();
        assert!(lax.is_null() || lax["ticket"] == *reply.ticket);
    }
}

fn introspected(bytes: &[u8], answer: &Introspection) {
    let written = serde_json::to_vec(&answer.to_json()).expect("an answer can be written");
    assert_eq!(Introspection::from_json(&written).as_ref(), Some(answer));
    let Ok(lax) = serde_json::from_slice::<Value>(bytes) else { return };
    let live = matches!(answer, Introspection::Live(_));
    assert_eq!(lax["active"].as_bool(), Some(live), "another reader sees another state");
    match answer {
        Introspection::Live(grant) => {
            assert_eq!(lax["exp"].as_i64(), Some(grant.exp.0));
            assert_eq!(lax["aud"].as_str(), Some(grant.aud.as_str()));
            assert_eq!(lax["single_use"].as_bool().unwrap_or_default(), grant.single_use);
            assert_eq!(lax["permissions"].as_array().map(Vec::len), Some(grant.permissions.len()));
            for permission in &grant.permissions {
                let end = permission.exp.unwrap_or(grant.exp);
                assert!(permission.exp.is_none() || !permission.admits(end), "admitted at its own end");
                assert!(permission.exp.is_none() || !permission.admits(end.plus(MAX_LIFE)));
            }
        }
        Introspection::Dead(reason) => {
            assert!(lax["error"].is_null() || lax["error"] == *reason.as_str());
            assert!(
                !lax["error"].is_null() || reason.is_terminal(),
                "nothing said that negotiating would help"
            );
        }
    }
}
