//! Making itself known: what is sent, and what each answer means.

use super::*;
use sayso_protocol::payload::introduction::Introduction;

const RESOURCE: &str = "https://gw.example.test/mcp";

fn waits() -> Answer {
    let reply = json!({ "client_id": "https://gw.example.test", "status": "pending",
                        "error": "authorization_pending", "error_description": "she has not answered" });
    Ok((202, reply.to_string()))
}

// FED-20, FED-21, FED-26
#[tokio::test]
async fn an_introduction_is_signed_whole_with_the_published_key() {
    let (authority, wire, _) = authority([waits()]);
    assert_eq!(authority.introduce(RESOURCE, "vault").await, Ok(Introduced::Waits));
    let [sent] = wire.sent_to("/rs/register").try_into().unwrap();
    assert_eq!(sent.headers()["content-type"], "application/json");
    assert!(!sent.headers().contains_key("authorization"));
    let said = Introduction::read(sent.body()).unwrap();
    assert_eq!((said.owner.as_str(), said.resource_uri.as_str()), ("alice", RESOURCE));
    let facts = Facts {
        method: "POST",
        scheme: "https",
        authority: "as.example.test",
        path: "/rs/register",
        query: None,
        headers: sent.headers(),
        body: Body::Whole(sent.body()),
    };
    let proof =
        sig::read(sent.headers()).unwrap().verify(&facts, key(7).verifying(), &Profile::default(), NOW);
    assert!(proof.unwrap().covers_body);
    assert!(wire.sent_to("/token").is_empty());
}

#[tokio::test]
async fn what_an_authority_makes_of_it() {
    let reply = |status: u16, id: &str, standing: &str| -> Answer {
        Ok((status, json!({ "client_id": id, "status": standing }).to_string()))
    };
    const ID: &str = "https://gw.example.test";
    for (answer, expected) in [
        (waits(), Ok(Introduced::Waits)),
        (reply(200, ID, "active"), Ok(Introduced::Known)),
        (reply(202, ID, "active"), Err(Unavailable::Nonsense)),
        (reply(200, ID, "pending"), Err(Unavailable::Nonsense)),
        (reply(202, "https://other.example", "pending"), Err(Unavailable::Nonsense)),
        (Ok((202, "[]".into())), Err(Unavailable::Nonsense)),
        (Ok((401, json!({ "error": "invalid_client" }).to_string())), Ok(Introduced::Refused)),
        (Ok((404, String::new())), Ok(Introduced::Refused)),
        (Ok((429, String::new())), Ok(Introduced::Later(60))),
        (Ok((302, String::new())), Err(Unavailable::Nonsense)),
        (Ok((503, String::new())), Err(Unavailable::Nonsense)),
        (Err(FetchError::Unreachable), Err(Unavailable::Unreachable)),
    ] {
        let (authority, ..) = authority([answer.clone()]);
        assert_eq!(authority.introduce(RESOURCE, "vault").await, expected, "{answer:?}");
    }
}

// D-22: who was let in at once logs in at once, though it was refused within the same second.
#[tokio::test]
async fn what_a_login_was_told_before_is_forgotten_by_whoever_is_let_in() {
    let unknown = || -> Answer { Ok((401, json!({ "error": "invalid_client" }).to_string())) };
    let known = Ok((200, json!({ "client_id": "https://gw.example.test", "status": "active" }).to_string()));
    for (answer, expected, logins) in [(known, Admission::Admitted, 2), (waits(), Admission::Unknown, 1)] {
        let (authority, wire, _) = authority([answer]);
        wire.logins.lock().unwrap().push_back(unknown());
        assert_eq!(authority.admission().await, Ok(Admission::Unknown));
        authority.introduce(RESOURCE, "vault").await.unwrap();
        assert_eq!(authority.admission().await, Ok(expected));
        assert_eq!(wire.sent_to("/token").len(), logins);
    }
}

// FED-28, FED-32, FED-33
#[tokio::test]
async fn a_login_says_where_we_stand() {
    let error = |status: u16, error: &str| -> Answer { Ok((status, json!({ "error": error }).to_string())) };
    for (answer, expected) in [
        (error(403, "authorization_pending"), Ok(Admission::Waits)),
        (error(403, "access_denied"), Ok(Admission::Withdrawn)),
        (error(401, "invalid_client"), Ok(Admission::Unknown)),
        (error(400, "invalid_request"), Err(Unavailable::NotAdmitted)),
        (error(403, "x"), Err(Unavailable::NotAdmitted)),
        (Ok((403, "<html>".into())), Err(Unavailable::NotAdmitted)),
        (error(503, "temporarily_unavailable"), Err(Unavailable::Unreachable)),
        (Err(FetchError::TimedOut), Err(Unavailable::Unreachable)),
    ] {
        let (authority, wire, _) = authority([]);
        wire.logins.lock().unwrap().push_back(answer.clone());
        assert_eq!(authority.admission().await, expected, "{answer:?}");
        // Questions asked in the same second are answered from that.
        assert!(authority.introspect("t").await.is_err());
        assert_eq!(wire.sent_to("/token").len(), 1);
    }
    let (authority, wire, _) = authority([]);
    assert_eq!(authority.admission().await, Ok(Admission::Admitted));
    assert_eq!(authority.admission().await, Ok(Admission::Admitted));
    assert_eq!(wire.sent_to("/token").len(), 1, "a token that is held is not drawn again");
}
