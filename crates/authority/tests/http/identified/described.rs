//! What describes an agent, at addresses of its operator's: looked up within bounds, shown, and no reason to let it in.

use super::*;

const CLIENT: &str = "https://op.example/agents/ledger.json";
const DIRECTORY: &str = "https://op.example/.well-known/http-message-signatures-directory";
const NAMED: Showing<'_> =
    Showing { credential: None, client_id: Some(CLIENT), directory: Some("https://op.example") };

/// What her API says of a fresh request by an agent that shows this.
async fn seen(house: &House, agent: &Agent, showing: &Showing<'_>) -> Value {
    let mut talk = agent.negotiate(house, &house.alice, "execute_trade").await;
    let answer = commit(&mut talk, showing).await;
    assert_eq!(answer.told(), (403, "request_submitted".into()));
    let seen = house.read(&house.alice, &format!("/pending/{}", talk.family())).await;
    house.decide(&house.alice, &talk.family(), "denied").await.ok();
    seen
}

// CORE-51, CORE-53, CORE-54, POL-28, POL-30, POL-31, POL-33, POL-52, D-41
#[tokio::test(flavor = "multi_thread")]
async fn what_describes_an_agent_is_looked_up_and_lets_nobody_in() {
    let house = House::new().await;
    let agent = Agent::new();
    let plain = seen(&house, &agent, &Showing::default()).await;
    let level = |seen: &Value| seen["assurance"]["accountability"].as_i64().unwrap();
    house.web.asked();
    let mut notes = vec![plain["assurance_notes"][2].clone()];
    let nothing = seen(&house, &agent, &NAMED).await;
    assert_eq!(house.web.asked(), [("strangers", CLIENT.to_owned())]);
    house.web.put(CLIENT, json!({ "client_id": "https://op.example/another" }));
    assert_eq!(level(&seen(&house, &agent, &NAMED).await), 0, "the document of somebody else");
    house.web.put(CLIENT, json!({ "client_id": CLIENT, "client_name": "Ledger bot" }));
    let described = seen(&house, &agent, &NAMED).await;
    house.web.put(DIRECTORY, json!({ "keys": [fresh_key().verifying().jwk()] }));
    assert_eq!(level(&seen(&house, &agent, &NAMED).await), 1, "the directory has another key");
    house.web.put(DIRECTORY, json!({ "keys": [agent.key.verifying().jwk()] }));
    house.web.put(
        "https://other.example/.well-known/http-message-signatures-directory",
        json!({ "keys": [agent.key.verifying().jwk()] }),
    );
    let elsewhere = Showing { directory: Some("https://other.example"), ..NAMED };
    assert_eq!(level(&seen(&house, &agent, &elsewhere).await), 1, "a directory of another origin");
    house.web.asked();
    let published = seen(&house, &agent, &NAMED).await;
    assert_eq!(
        house.web.asked(),
        [("strangers", DIRECTORY.to_owned())],
        "a miss is looked at again, a hit is not"
    );
    seen(&house, &agent, &NAMED).await;
    assert_eq!(house.web.asked(), []);
    for (expected, seen) in [(0, &nothing), (1, &described), (2, &published)] {
        assert_eq!(level(seen), expected);
        notes.push(seen["assurance_notes"][2].clone());
        for member in ["kind", "identity", "handle", "agent", "key", "expires_in", "scope", "because"] {
            assert_eq!(seen[member], plain[member], "{member}");
        }
    }
    for (place, note) in notes.iter().enumerate() {
        assert!(!notes[place + 1..].contains(note), "{note}");
    }
    assert_eq!(
        published["evidence"]["operator"],
        json!({
        "client_id": CLIENT, "name": "Ledger bot", "found": "key_published" })
    );
    // Described or not, its name is that of its key.
    let mut talk = agent.negotiate(&house, &house.alice, "get_positions").await;
    commit(&mut talk, &NAMED).await;
    house.decide(&house.alice, &talk.family(), "approved").await.ok();
    let token = talk.present(&[]).await.ok()["access_token"].as_str().unwrap().to_owned();
    assert_eq!(claims_of(&token).sub, agent.handle());
}

// CORE-54, D-41
#[tokio::test(flavor = "multi_thread")]
async fn addresses_nobody_may_make_us_ask_are_not_asked() {
    let house = House::new().await;
    let agent = Agent::new();
    house.web.asked();
    for address in [
        "http://op.example/a.json",
        "https://op.example",
        "https://user@op.example/a.json",
        "ftp://op.example/a",
        "just a name",
    ] {
        let showing = Showing { client_id: Some(address), ..Showing::default() };
        assert_eq!(seen(&house, &agent, &showing).await["assurance"]["accountability"], 0, "{address}");
        assert_eq!(house.web.asked(), [], "{address}");
    }
}

// D-41
#[tokio::test(flavor = "multi_thread")]
async fn one_ticket_is_looked_at_once_at_a_time() {
    let house = House::new().await;
    let agent = Agent::new();
    let talk = agent.negotiate(&house, &house.alice, "get_positions").await;
    let claims: AgreementClaims = serde_json::from_value(talk.claims()).unwrap();
    let token = agreement::sign_as(&agent.key, &NAMED, &claims).unwrap();
    house.web.slow.store(400, Ordering::SeqCst);
    house.web.asked();
    let more = [("claim_token", &*token), ("claim_token_format", FORMAT)];
    let send = || house.send(talk.request(&talk.ticket, &more));
    let later = async {
        tokio::time::sleep(std::time::Duration::from_millis(100)).await;
        send().await
    };
    let (first, second) = tokio::join!(send(), later);
    assert_eq!(first.told(), (403, "request_submitted".into()));
    assert_eq!(second.told(), (429, "request_denied".into()));
    assert_eq!(house.web.asked().len(), 1);
    assert_eq!(house.read(&house.alice, "/pending").await.as_array().unwrap().len(), 1);
}
