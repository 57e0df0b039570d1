//! Further rounds of a call at the protection API (D-11): looked at with a continuation, reported as offered, taken once.

use super::*;
use sayso_protocol::canon::s256_bytes;

struct Made<'a> {
    api: Api<'a>,
    token: String,
    family: String,
    operation: Value,
    jkt: String,
}

impl<'a> Made<'a> {
    /// A call that was approved where she allows rounds, and made.
    async fn of(house: &'a House) -> Self {
        assert_eq!(house.hers_put("trading", json!({ "bind": true })).await.status, 200);
        let agent = Agent::new();
        let token = agent.obtain(house, &house.alice, "execute_trade").await;
        let api = Api::of(house, &house.alice).await;
        let live = api.introspect(&token).await;
        assert_eq!(
            (&live["active"], &live["bind"], &live["continuation"]),
            (&json!(true), &json!(true), &Value::Null)
        );
        assert_eq!(api.consume(&token).await, json!({ "consumed": true }));
        let jkt = agent.handle().as_str().trim_start_matches("jkt:").to_owned();
        let family = live["family"].as_str().unwrap().to_owned();
        Self { api, token, family, operation: live["operation"].clone(), jkt }
    }

    async fn offer(&self, state: &str) -> Answer {
        let report = json!({ "family": self.family, "tool": "execute_trade", "continuation": hash(state) });
        self.api.house.send(self.api.bearer(Sent::new("POST", "/audit/access").json(&report))).await
    }

    async fn look(&self, state: &str) -> Value {
        self.api.form("/introspect", &[("token", &self.token), ("continuation", &hash(state))]).await.ok()
    }

    /// Takes a round, with one member as it should not be.
    async fn take(&self, state: &str, attempt: &str, wrong: Option<(&str, &str)>) -> Answer {
        let state = hash(state);
        let mut members = vec![
            ("token", self.token.as_str()),
            ("attempt", attempt),
            ("continuation", &state),
            ("tool", self.operation["tool"].as_str().unwrap()),
            ("params_s256", self.operation["params_s256"].as_str().unwrap()),
            ("jkt", &self.jkt),
        ];
        if let Some((name, value)) = wrong {
            members.retain(|(known, _)| *known != name);
            members.push((name, value));
        }
        members.retain(|(_, value)| !value.is_empty());
        self.api.form("/consume", &members).await
    }
}

fn hash(state: &str) -> String {
    s256_bytes(state.as_bytes()).to_string()
}

// D-11
#[tokio::test(flavor = "multi_thread")]
async fn a_round_that_was_offered_is_taken_once() {
    let house = House::new().await;
    let made = Made::of(&house).await;
    assert_eq!(made.look("one").await, dead("already_consumed"));
    assert_eq!(made.offer("one").await.status, 204);
    let live = made.look("one").await;
    assert_eq!((&live["active"], &live["continuation"]), (&json!(true), &json!(hash("one"))));
    assert_eq!(made.api.introspect(&made.token).await, dead("already_consumed"));
    assert_eq!(
        made.api.consume(&made.token).await,
        json!({ "consumed": false, "error": "already_consumed" })
    );

    let before = house.dump();
    let other = hash("other");
    for wrong in
        [("continuation", other.as_str()), ("tool", "wire_money"), ("params_s256", &other), ("jkt", "x")]
    {
        let told = made.take("one", "try", Some(wrong)).await.ok();
        assert_eq!(told, json!({ "consumed": false, "error": "unknown_continuation" }), "{wrong:?}");
    }
    for wrong in [
        ("continuation", "one"),
        ("tool", ""),
        ("params_s256", ""),
        ("params_s256", "s256:"),
        ("jkt", ""),
        ("answers_s256", "yes"),
        ("attempt", &"x".repeat(129)),
    ] {
        assert_eq!(
            made.take("one", "try", Some(wrong)).await.refusal(),
            (400, "invalid_request".into()),
            "{wrong:?}"
        );
    }
    assert_eq!(house.dump(), before);
    assert_eq!(made.take("one", "try", None).await.ok(), json!({ "consumed": true }));
    assert_eq!(
        made.take("one", "try", None).await.ok(),
        json!({ "consumed": true }),
        "its own try hears it again"
    );
    let late = made.take("one", "other try", None).await.ok();
    assert_eq!(late, json!({ "consumed": false, "error": "already_consumed" }));
    assert_eq!(made.look("one").await, dead("already_consumed"));
}

// D-11, CORE-100
#[tokio::test(flavor = "multi_thread")]
async fn no_round_without_her_leave_or_for_another_server() {
    let house = House::new().await;
    let token = Agent::new().obtain(&house, &house.alice, "execute_trade").await;
    let api = Api::of(&house, &house.alice).await;
    let family = api.introspect(&token).await["family"].clone();
    api.consume(&token).await;
    let report = json!({ "family": family, "tool": "execute_trade", "continuation": hash("one") });
    let offer = |api: &Api<'_>| api.bearer(Sent::new("POST", "/audit/access").json(&report));
    assert_eq!(house.send(offer(&api)).await.refusal(), (400, "invalid_request".into()), "she allows none");

    let made = Made::of(&house).await;
    let bobs = Api::of(&house, &house.bob).await;
    let report = json!({ "family": made.family, "tool": "execute_trade", "continuation": hash("one") });
    let stolen = bobs.bearer(Sent::new("POST", "/audit/access").json(&report));
    assert_eq!(house.send(stolen).await.refusal().0, 400);
    assert_eq!(made.offer("one").await.status, 204);
    let asked =
        bobs.form("/introspect", &[("token", &made.token), ("continuation", &hash("one"))]).await.ok();
    assert_eq!(asked, dead("unknown_token"));
    house.hers_put("trading", json!({ "bind": false })).await;
    assert_eq!(made.look("one").await, dead("already_consumed"));
    let told = made.take("one", "try", None).await.ok();
    assert_eq!(told, json!({ "consumed": false, "error": "unknown_continuation" }));
}

// D-11: hers to set, by an edit that is recorded, and only where there is something to allow.
#[tokio::test(flavor = "multi_thread")]
async fn she_allows_rounds_where_calls_are_approved_one_at_a_time() {
    let house = House::new().await;
    let edited = house.hers_put("trading", json!({ "bind": true })).await.ok();
    assert_eq!((&edited["bind"], &edited["version"]), (&json!(true), &json!(2)));
    assert_eq!(house.read(&house.alice, "/policies").await["trading"]["bind"], true);
    assert_eq!(house.read(&house.alice, "/policies").await["holdings"]["bind"], false);
    let before = house.dump();
    assert_eq!(house.hers_put("holdings", json!({ "bind": true })).await.detail(), 400);
    assert_eq!(house.hers_put("trading", json!({ "bind": "yes" })).await.detail(), 400);
    assert_eq!(house.dump(), before);
    let rows = house.read(&house.alice, "/ledger").await;
    let last = rows.as_array().unwrap().last().unwrap();
    assert_eq!((&last["kind"], &last["entry"]["bind"]), (&json!("approved"), &json!(true)));
    assert!(last["author"].to_string().contains("owner"), "{last}");
}

// D-11, D-28: what she gives away with it is on her page before she answers.
#[tokio::test(flavor = "multi_thread")]
async fn her_page_says_what_she_will_not_see() {
    const UNSEEN: &str = "This tool may ask follow-up questions; you will not see the answers.";
    let house = crate::browser::house().await;
    let browser = crate::browser::Browser::of(&house, &house.alice).await;
    let agent = Agent::new();
    let mut plain = agent.negotiate(&house, &house.alice, "execute_trade").await;
    assert_eq!(plain.commit().await.json()["error"], "request_submitted");
    assert!(!browser.home().await.contains(UNSEEN));
    assert_eq!(house.hers_put("trading", json!({ "bind": true })).await.status, 200);
    let bound = Agent::new();
    let mut talk = bound.negotiate(&house, &house.alice, "execute_trade").await;
    assert_eq!(talk.commit().await.json()["error"], "request_submitted");
    let page = browser.home().await;
    assert_eq!(page.matches(UNSEEN).count(), 1, "beside the one request that was made since");
    assert!(
        page.contains("follow-up questions allowed")
            && page.contains("follow-up questions you will not see answered")
    );
}
