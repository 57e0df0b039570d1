//! A round that is handed to the client comes back as it was, for the call it was about, or is none.

use super::*;
use sayso_protocol::payload::terms::Proffer;

const NOW: Timestamp = Timestamp(1000);

fn seal() -> Seal {
    Seal::new(&[7; 32], "rounds").unwrap()
}

fn call(params: Value) -> Incoming {
    let mut params = params;
    params["name"] = "x".into();
    let whole = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params});
    Incoming::read(whole.to_string().as_bytes()).unwrap()
}

fn operation() -> S256 {
    s256_of(&json!({"a": 1})).unwrap()
}

fn open(params: Value, now: Timestamp) -> Result<(Round, Value), NotTaken> {
    let mut call = call(params);
    let round = Round::open(&seal(), &mut call, &operation(), now)?;
    Ok((round, serde_json::from_slice(&call.body).unwrap()))
}

fn asked(round: &Round, question: Question) -> Option<Value> {
    round.ask(&seal(), question, "?", &operation(), (NOW, [3; 12]))
}

// MCP-21
#[test]
fn an_answer_comes_back_to_the_question_it_is_to() {
    let (first, _) = open(json!({}), NOW).unwrap();
    assert!(first.answered.is_none());
    let back = asked(&first, Question::Wait).unwrap();
    assert_eq!(back["inputRequests"]["keep_waiting"]["params"]["mode"], "form");
    for (result, said) in [
        (json!({"action": "accept", "content": {"keep_waiting": true}}), Said::Yes),
        (json!({"action": "accept", "content": {"keep_waiting": false}}), Said::No),
        (json!({"action": "accept", "content": {"keep_waiting": "true"}}), Said::Nothing),
        (json!({"action": "accept"}), Said::Nothing),
        (json!({"action": "decline"}), Said::No),
        (json!({"action": "cancel"}), Said::Nothing),
        (json!("accept"), Said::Nothing),
    ] {
        let params =
            json!({"requestState": back["requestState"], "inputResponses": {"keep_waiting": result}});
        let (round, body) = open(params, NOW).unwrap();
        assert_eq!((round.asked, round.answered), (1, Some((Question::Wait, said))));
        assert_eq!(body["params"], json!({"name": "x"}), "what is ours goes no further");
    }
    let (round, _) = open(json!({"requestState": back["requestState"]}), NOW).unwrap();
    assert_eq!(round.answered, None, "no answer is asked for again");
}

#[test]
fn what_the_client_had_said_to_the_server_comes_through() {
    let own = json!({"requestState": "theirs", "inputResponses": {"name": {"action": "accept"}}});
    let (round, body) = open(own.clone(), NOW).unwrap();
    assert_eq!(body["params"]["requestState"], "theirs", "a state of the server's is the server's");
    let back = asked(&round, Question::Wait).unwrap();
    let answer = json!({"keep_waiting": {"action": "accept", "content": {"keep_waiting": true}}});
    let (_, body) =
        open(json!({"requestState": back["requestState"], "inputResponses": answer}), NOW).unwrap();
    assert_eq!(body["params"]["requestState"], own["requestState"]);
    assert_eq!(body["params"]["inputResponses"], own["inputResponses"]);
}

#[test]
fn a_state_is_of_one_call_for_a_while_and_unaltered() {
    let (round, _) = open(json!({}), NOW).unwrap();
    let back = asked(&round, Question::Wait).unwrap();
    let state = back["requestState"].as_str().unwrap().to_owned();
    assert!(open(json!({"requestState": state}), NOW.plus(LIFE)).is_err());
    assert!(open(json!({"requestState": format!("{state}A")}), NOW).is_err());
    let mut other = call(json!({"requestState": state}));
    let another = s256_of(&json!({"a": 2})).unwrap();
    assert!(Round::open(&seal(), &mut other, &another, NOW).is_err());
}

#[test]
fn a_client_is_asked_no_more_often_than_it_bears() {
    let mut params = json!({});
    for count in 0..MOST {
        let (round, _) = open(params, NOW).unwrap();
        assert_eq!(round.asked, count);
        params = json!({"requestState": asked(&round, Question::Wait).unwrap()["requestState"]});
    }
    let (round, _) = open(params, NOW).unwrap();
    assert!(asked(&round, Question::Wait).is_none());
    let (round, _) = open(json!({"requestState": "x".repeat(MOST_CARRIED)}), NOW).unwrap();
    assert!(asked(&round, Question::Wait).is_none());
}

fn proffer(change: impl FnOnce(&mut Value)) -> Proffer {
    let mut terms = json!({
        "template_id": "a/b/v1", "purpose": "look", "scope": ["s"], "expires_in": 60, "prohibited": ["marketing"],
        "proffered_by": "http://as.test", "per_operation": false, "terms_uri": "http://as.test/terms/a/b/v1",
        "nonce": "n", "family": "f", "resource_id": "v/x",
    });
    change(&mut terms);
    serde_json::from_value(terms).unwrap()
}

fn about(authority: &str, proffer: &Proffer) -> Question {
    let (tool, arguments) = ("x".parse().unwrap(), serde_json::Map::new());
    let resource = "http://rs.test/mcp";
    Question::about(&Ask { resource, authority, proffer, tool: &tool, arguments: &arguments }).unwrap()
}

// The authority chooses what names a negotiation, so no name stands for terms.
#[test]
fn what_was_said_to_some_terms_is_said_to_no_others() {
    let shown = about("http://as.test", &proffer(|_| ()));
    assert_eq!(shown, about("http://as.test", &proffer(|_| ())));
    let others: [fn(&mut Value); 4] = [
        |terms| terms["expires_in"] = 315_360_000.into(),
        |terms| terms["prohibited"] = json!([]),
        |terms| terms["per_operation"] = true.into(),
        |terms| terms["purpose"] = "sell".into(),
    ];
    for other in others {
        assert_ne!(shown, about("http://as.test", &proffer(other)));
    }
    assert_ne!(shown, about("http://other.test", &proffer(|_| ())));
}
