//! A policy alone behind somebody else's gateway: every no has an error status, whatever it is at hosts that answer themselves.

use super::cast::{DOORS, House, Request, authorizer};
use crate::Whole;
use sayso_enforce::policy::Denials;
use sayso_enforce::policy::coaz::Trust;
use sayso_enforce::policy::scripted::{Point, Says, Script};
use sayso_enforce::{BadServer, ServerResource};
use serde_json::json;

fn by(token: &str, request: Request) -> Request {
    request.with("authorization", format!("Bearer {token}"))
}

fn look() -> Request {
    Request::call("look", r#"{"who":"u-bob"}"#)
}

// D-3, COAZ-MCP-02, COAZ-MCP-75: the three errors ride 403, with the body they have everywhere.
#[tokio::test]
async fn the_three_errors_ride_403() {
    for door in DOORS {
        for (says, script, code, category) in [
            (Says::No, Script::default(), -32001, "denied"),
            (Says::Nothing, Script::default(), -32603, "pdp_unavailable"),
            (Says::Yes, Script::unanchored("look", Trust::Strict), -32602, "mapping_error"),
        ] {
            let house = House::policed(&Point::saying(says), script);
            let said = house.ask(door, &by("ann", look())).await;
            let error = &said.json()["error"];
            assert_eq!((said.status, &error["code"]), (403, &json!(code)), "{door:?}");
            assert_eq!(
                (&error["data"]["coaz"]["category"], &said.json()["id"]),
                (&json!(category), &json!(1))
            );
            assert!(said.json().get("result").is_none() && said.line("www-authenticate").is_empty());
        }
        let house = House::policed(&Point::saying(Says::Yes), Script::default());
        let yes = house.ask(door, &by("ann", look())).await;
        assert!(yes.status == 200 && yes.removed.iter().any(|name| name == "authorization"), "{yes:?}");
        assert_eq!(
            house
                .ask(
                    door,
                    &by("ann", Request::post("no/such", None, r#"{"jsonrpc":"2.0","method":"no/such"}"#))
                )
                .await
                .status,
            400
        );
    }
}

// COAZ-MCP-81
#[tokio::test]
async fn who_shows_no_good_token_is_told_where_one_is_to_be_had() {
    let point = Point::saying(Says::Yes);
    let house = House::policed(&point, Script::default());
    for door in DOORS {
        let at =
            "Bearer resource_metadata=\"http://gw.example.test/.well-known/oauth-protected-resource/mcp\"";
        let bare = house.ask(door, &look()).await;
        assert_eq!((bare.status, bare.line("www-authenticate")), (401, at), "{door:?}");
        let bad = house.ask(door, &by("eve", look())).await;
        assert!(
            bad.status == 401 && bad.line("www-authenticate").starts_with(&format!("{at}, error=")),
            "{bad:?}"
        );
        assert_eq!(house.ask(door, &by("unheard", look())).await.status, 503);
    }
    assert!(point.bodies().is_empty());
}

fn older(method: &str, session: &str) -> Request {
    let body = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{method}","params":{{}}}}"#);
    let request = Request::post(method, None, body).without("mcp-method");
    request.but("mcp-protocol-version", "2025-11-25").with("mcp-session-id", session)
}

// COAZ-MCP-87, D-15: it sees no session begin, so one is whose call was first let through in it.
#[tokio::test]
async fn a_session_is_whose_call_was_first_let_through_in_it() {
    for door in DOORS {
        let point = Point::saying(Says::Yes);
        let house = House::policed(&point, Script::default());
        let ask = async |token: &str| house.ask(door, &by(token, older("tools/list", "s-1"))).await;
        assert_eq!(ask("ann").await.status, 200);
        let asked = point.bodies().len();
        for stranger in ["bob", "ann-elsewhere"] {
            assert_eq!(ask(stranger).await.error(), (403, "session_bound".to_owned()), "{door:?} {stranger}");
        }
        assert_eq!(point.bodies().len(), asked);
        assert_eq!(ask("brief").await.status, 200, "another token of the same holder");
    }
}

// COAZ-MCP-79, D-3: what cannot be kept here is refused at the start.
#[test]
fn what_only_a_host_that_answers_can_do_is_no_configuration_here() {
    let point = Point::saying(Says::Yes);
    let with = |script: Script| {
        let resource = ServerResource::policed("/mcp", script.policed(&point)).unwrap();
        authorizer(vec![resource], Whole::ByFlag).err()
    };
    let denials = Denials { words: None, as_result: true };
    assert!(matches!(with(Script { denials, ..Script::default() }), Some(BadServer::ByResult(_))));
    assert!(matches!(with(Script { filter_lists: true, ..Script::default() }), Some(BadServer::Unseen(_))));
    assert!(with(Script::default()).is_none());
}
