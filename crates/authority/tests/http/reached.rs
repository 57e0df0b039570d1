//! What agents can make an authority reach, wait for and mix up: nothing that stops others, nothing on its own machine, and
//! nobody's standing but their own.

use crate::house::{Agent, FORMAT, House, Talk};
use crate::identified::{ISSUER, Issuer};
use crate::wire::{Answer, Sent};
use sayso_fetch::Reach;
use sayso_protocol::Handle;
use sayso_protocol::payload::agreement::{self, AgreementClaims, Showing};
use serde_json::{Value, json};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

async fn commit(talk: &mut Talk<'_>, showing: &Showing<'_>) -> Answer {
    let claims: AgreementClaims = serde_json::from_value(talk.claims()).unwrap();
    let token = agreement::sign_as(&talk.agent.key, showing, &claims).unwrap();
    talk.present(&[("claim_token", &token), ("claim_token_format", FORMAT)]).await
}

fn told(answer: &Answer) -> (u16, String) {
    (answer.status, answer.json()["error"].as_str().unwrap_or_default().to_owned())
}

// E8
#[tokio::test(flavor = "multi_thread")]
async fn two_tenants_of_one_host_are_two_and_a_credential_ends() {
    let tenant = |path: &str| Handle::identified("bot", &format!("https://ps.example{path}")).unwrap();
    assert_ne!(tenant("/a"), tenant("/b"));
    assert_ne!(tenant("/a"), tenant(""));
    let house = House::with(|config| config.trusted_agent_issuers = vec![ISSUER.into()]).await;
    let issuer = Issuer::at(&house);
    let agent = Agent::new();
    // The one whose issuer is believed is let in.
    let word = issuer.name(&house, &agent.key, json!({}), json!({ "sub": "bot" }));
    let shown = Showing { credential: Some(&word), ..Showing::default() };
    let mut talk = agent.negotiate(&house, &house.alice, "get_positions").await;
    assert_eq!(told(&commit(&mut talk, &shown).await), (403, "request_submitted".into()));
    house.decide(&house.alice, &talk.family(), "approved").await.ok();
    talk.present(&[]).await.ok();
    // Its namesakes under other paths of the host are not it, and so are not let in on its connection.
    let thief = Agent::new();
    let (later, never) = (house.now().plus(300), Value::Null);
    for (name, claims) in [
        ("tenant a", json!({ "sub": "bot", "iss": "https://ps.example/a", "exp": later })),
        ("tenant b", json!({ "sub": "bot", "iss": "https://ps.example/b", "exp": later })),
        ("one that never ends", json!({ "sub": "bot", "exp": never })),
        (
            "one for another authority",
            json!({ "sub": "bot", "exp": later, "aud": "https://as.other.example" }),
        ),
    ] {
        let word = issuer.name(&house, &thief.key, json!({}), claims);
        let mut talk = thief.negotiate(&house, &house.alice, "get_positions").await;
        let token = json!({ "alg": "Ed25519", "typ": agreement::TYP, "agent_token": word });
        let compact = sayso_protocol::jws::sign_under(&thief.key, &token, &talk.claims()).unwrap();
        let more = [("claim_token", &*sayso_protocol::b64::encode(compact)), ("claim_token_format", FORMAT)];
        assert_eq!(told(&talk.present(&more).await), (403, "request_denied".into()), "{name}");
    }
    assert_eq!(house.read(&house.alice, "/connections").await.as_array().unwrap().len(), 1);
}

// E11
#[tokio::test(flavor = "multi_thread")]
async fn nobody_waits_for_what_an_agent_makes_us_fetch() {
    let house = House::with(|config| config.trusted_agent_issuers = vec![ISSUER.into()]).await;
    let issuer = Issuer::at(&house);
    let slow: Vec<Agent> = (0..6).map(|_| Agent::new()).collect();
    let mut talks = vec![];
    for agent in &slow {
        talks.push(agent.negotiate(&house, &house.alice, "get_positions").await);
    }
    house.web.slow.store(3000, Ordering::SeqCst);
    let words: Vec<String> = slow
        .iter()
        .map(|agent| issuer.name(&house, &agent.key, json!({}), json!({ "sub": "bot" })))
        .collect();
    let waiting = talks.iter_mut().zip(&words).map(|(talk, word)| async move {
        let shown = Showing {
            credential: Some(word),
            client_id: Some("https://op.example/a.json"),
            directory: Some("https://op.example"),
        };
        commit(talk, &shown).await.status
    });
    let others = async {
        tokio::time::sleep(Duration::from_millis(200)).await;
        let began = Instant::now();
        house.send(Sent::new("GET", "/health")).await.ok();
        let agent = Agent::new();
        let mut talk = agent.negotiate(&house, &house.bob, "get_positions").await;
        assert_eq!(told(&talk.commit().await), (403, "request_submitted".into()));
        house.read(&house.alice, "/pending").await;
        began.elapsed()
    };
    let (statuses, took) = tokio::join!(futures::future::join_all(waiting), others);
    assert!(took < Duration::from_secs(2), "others waited {took:?}");
    assert!(statuses.iter().all(|status| *status == 403), "{statuses:?}");
}

// E12
#[tokio::test(flavor = "multi_thread")]
async fn no_address_of_an_agents_or_an_issuers_leads_to_this_machine() {
    let inner = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = inner.local_addr().unwrap().port();
    let trusts = |config: &mut sayso_authority::Config| {
        config.trusted_agent_issuers = vec![ISSUER.into()];
        config.identity_providers = vec![];
    };
    let house = House::reaching(Reach::Public, trusts).await;
    let issuer = Issuer::at(&house);
    let agent = Agent::new();
    let mut bodies = vec![];
    for client_id in [
        format!("https://127.0.0.1:{port}/a.json"),
        format!("https://localhost:{port}/a.json"),
        format!("https://[::ffff:127.0.0.1]:{port}/a.json"),
        "https://10.0.0.1/a.json".into(),
        "https://169.254.169.254/latest/meta-data".into(),
    ] {
        let mut talk = agent.negotiate(&house, &house.alice, "execute_trade").await;
        let shown = Showing { client_id: Some(&client_id), ..Showing::default() };
        let answer = commit(&mut talk, &shown).await;
        assert_eq!(told(&answer), (403, "request_submitted".into()), "{client_id}");
        bodies.push(answer.json());
        let seen = house.read(&house.alice, &format!("/pending/{}", talk.family())).await;
        assert_eq!(seen["assurance"]["accountability"], 0);
        house.decide(&house.alice, &talk.family(), "denied").await.ok();
    }
    let members: Vec<Vec<&String>> =
        bodies.iter().map(|body| body.as_object().unwrap().keys().collect()).collect();
    assert!(members.iter().all(|all| all == &members[0]), "an outcome tells nothing: {members:?}");
    // An issuer that is believed still cannot send us there, nor to plain http, nor elsewhere.
    let word = issuer.name(&house, &agent.key, json!({}), json!({ "sub": "bot" }));
    let shown = Showing { credential: Some(&word), ..Showing::default() };
    let mut told_of = vec![];
    for keys in [
        format!("http://127.0.0.1:{port}/internal"),
        format!("https://127.0.0.1:{port}/jwks"),
        "file:///etc".into(),
    ] {
        house.pass(60);
        house.web.put(
            "https://ps.example/.well-known/aauth-agent.json",
            json!({ "issuer": ISSUER, "jwks_uri": keys }),
        );
        let mut talk = agent.negotiate(&house, &house.alice, "execute_trade").await;
        let answer = commit(&mut talk, &shown).await;
        assert_eq!(told(&answer), (403, "request_denied".into()), "{keys}");
        told_of.push(answer.json()["error_description"].clone());
    }
    assert!(
        told_of.iter().all(|words| *words == told_of[0] && !words.to_string().contains("127")),
        "{told_of:?}"
    );
    let reached = tokio::time::timeout(Duration::from_millis(300), inner.accept()).await;
    assert!(reached.is_err(), "somebody was led to this machine");
}
