//! What her page does: a form acts once, for the session and the request it was made for, and for no other page.
//!
//! A refused form changes nothing.

use crate::browser::{Browser, forms, house, member, refused};
use crate::house::{Agent, House, Talk};
use crate::wire::{FORM, Sent};
use futures::future::join_all;
use serde_json::json;

/// Every way in which a form is none of hers, and what it is told.
pub fn hostile(browser: &Browser<'_>, path: &str, form: &[(&str, &str)]) -> Vec<(&'static str, Sent, u16)> {
    let sent = browser.form(path, form);
    let from = |origin: &str| sent.clone().without("origin").with("origin", origin);
    let without: Vec<_> = form.iter().copied().filter(|(name, _)| *name != "token").collect();
    let with = |token: &str| {
        let mut changed = without.clone();
        changed.push(("token", token));
        browser.form(path, &changed)
    };
    let twice = [form, &[("token", member(form, "token"))]].concat();
    vec![
        ("no origin", sent.clone().without("origin"), 403),
        ("null origin", from("null"), 403),
        ("the API's origin", from(&browser.house.issuer), 403),
        ("another port", from("http://localhost:1"), 403),
        ("no port", from("http://localhost"), 403),
        ("a longer name", from(&format!("{}.evil.example", browser.origin)), 403),
        ("https", from(&browser.origin.replace("http:", "https:")), 403),
        ("two origins", sent.clone().with("origin", "https://evil.example"), 403),
        ("no cookie", sent.clone().without("cookie"), 403),
        (
            "another cookie",
            sent.clone().without("cookie").with("cookie", &format!("sayso={}", "A".repeat(43))),
            403,
        ),
        ("no token", browser.form(path, &without), 400),
        ("an empty token", with(""), 403),
        ("a made-up token", with(&"A".repeat(43)), 403),
        ("a token twice", browser.form(path, &twice), 400),
        ("a member too few", browser.form(path, &[("token", member(form, "token"))]), 400),
        ("JSON", browser.request("POST", path).with("origin", &browser.origin).json(&json!({})), 415),
        (
            "too much",
            browser.request("POST", path).with("origin", &browser.origin).body(FORM, vec![b'x'; 9000]),
            413,
        ),
    ]
}

async fn trade<'a>(house: &'a House, agent: &'a Agent) -> Talk<'a> {
    let mut talk = agent.negotiate(house, &house.alice, "execute_trade").await;
    assert_eq!(talk.commit().await.json()["error"], "request_submitted");
    talk
}

/// The forms of a request: approve, deny.
async fn card(browser: &Browser<'_>, family: &str) -> (String, Vec<Vec<(String, String)>>) {
    let path = format!("/waiting/{family}");
    let page = browser.home().await;
    let found = forms(&page, &format!("{}{path}", browser.base));
    let owned =
        |form: &Vec<(&str, &str)>| form.iter().map(|(a, b)| ((*a).to_owned(), (*b).to_owned())).collect();
    (path, found.iter().map(owned).collect())
}

fn refs(form: &[(String, String)]) -> Vec<(&str, &str)> {
    form.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect()
}

// OWN-06, OWN-07, OWN-08, CORE-109
#[tokio::test(flavor = "multi_thread")]
async fn an_answer_is_hers_or_none() {
    let house = house().await;
    let (one, two) = (Agent::new(), Agent::new());
    let first = trade(&house, &one).await;
    let second = trade(&house, &two).await;
    let browser = Browser::of(&house, &house.alice).await;
    let (path, of_first) = card(&browser, &first.family()).await;
    let (other_path, of_second) = card(&browser, &second.family()).await;
    let [approve, deny] = [refs(&of_first[0]), refs(&of_first[1])];
    assert_eq!((member(&approve, "answer"), member(&deny, "answer")), ("approved", "denied"));
    let another = Browser::of(&house, &house.alice).await;
    let (_, of_another) = card(&another, &first.family()).await;
    let of_bob = Browser::of(&house, &house.bob).await;

    let before = house.dump();
    let mut wrong = hostile(&browser, &path, &approve);
    let swapped = |name: &'static str, value: &str| {
        let swap = |(known, old): &(&'static str, String)| {
            (*known, if *known == name { value.to_owned() } else { old.clone() })
        };
        let names = ["answer", "agreement", "token"].map(|known| (known, member(&approve, known).to_owned()));
        names.iter().map(swap).collect::<Vec<_>>()
    };
    for (what, name, value) in [
        ("another session's token", "token", member(&refs(&of_another[0]), "token").to_owned()),
        ("another request's token", "token", member(&refs(&of_second[0]), "token").to_owned()),
        ("the other answer's token", "token", member(&deny, "token").to_owned()),
        ("another answer", "answer", "denied".into()),
        ("no answer", "answer", "maybe".into()),
        ("another agreement", "agreement", member(&refs(&of_second[0]), "agreement").to_owned()),
    ] {
        let form = swapped(name, &value);
        let form: Vec<_> = form.iter().map(|(name, value)| (*name, value.as_str())).collect();
        wrong.push((what, browser.form(&path, &form), 403));
    }
    wrong.push(("another request's page", browser.form(&other_path, &approve), 403));
    wrong.push(("another session", another.form(&path, &approve), 403));
    wrong.push(("another owner", of_bob.form(&path, &approve), 403));
    wrong.push(("another owner looks", of_bob.request("GET", &path), 404));
    for (what, sent, status) in wrong {
        let answer = house.send(sent).await;
        assert_eq!(refused(&answer), status, "{what}");
        assert_eq!(house.dump(), before, "{what}");
    }
}

// OWN-07, OWN-08
#[tokio::test(flavor = "multi_thread")]
async fn an_answer_is_taken_once() {
    let house = house().await;
    let agent = Agent::new();
    let mut first = trade(&house, &agent).await;
    let browser = Browser::of(&house, &house.alice).await;
    let (path, forms) = card(&browser, &first.family()).await;
    let [approve, deny] = [refs(&forms[0]), refs(&forms[1])];
    let answer = house.send(browser.form(&path, &approve)).await;
    assert_eq!(
        (answer.status, answer.header("location")),
        (303, Some(format!("{}/", browser.base).as_str()))
    );
    let after = house.dump();
    for (what, sent, status) in [
        ("again", browser.form(&path, &approve), 409),
        ("the other answer", browser.form(&path, &deny), 409),
        ("a look", browser.request("GET", &path), 404),
    ] {
        assert_eq!(refused(&house.send(sent).await), status, "{what}");
    }
    assert_eq!(house.dump(), after);
    assert_eq!(first.present(&[]).await.status, 200);
    let rows = house.read(&house.alice, "/ledger").await;
    let decided = rows
        .as_array()
        .unwrap()
        .iter()
        .find(|row| row["kind"] == "approved" && row["family"] == first.family());
    assert!(decided.unwrap()["author"]["browser"].is_string());
}

// OWN-08: 32 presses are one answer.
#[tokio::test(flavor = "multi_thread")]
async fn of_thirty_two_presses_one_counts() {
    let house = house().await;
    let agent = Agent::new();
    let mut talk = trade(&house, &agent).await;
    let browser = Browser::of(&house, &house.alice).await;
    let (path, forms) = card(&browser, &talk.family()).await;
    let press = |at: usize| browser.house.send(browser.form(&path, &refs(&forms[at % 2])));
    let answers = join_all((0..32).map(press)).await;
    assert_eq!(answers.iter().filter(|answer| answer.status == 303).count(), 1);
    assert!(answers.iter().all(|answer| answer.status == 303 || refused(answer) == 409));
    let approved = answers.iter().position(|answer| answer.status == 303).unwrap() % 2 == 0;
    assert_eq!(talk.present(&[]).await.status == 200, approved);
}

// CORE-103, OWN-11
#[tokio::test(flavor = "multi_thread")]
async fn an_agent_is_ended_from_her_page() {
    let house = house().await;
    let agent = Agent::new();
    agent.obtain(&house, &house.alice, "get_positions").await;
    let browser = Browser::of(&house, &house.alice).await;
    let page = browser.home().await;
    let form = forms(&page, &format!("{}/agents/end", browser.base))[0].clone();
    let before = house.dump();
    for (what, sent, status) in hostile(&browser, "/agents/end", &form) {
        assert_eq!(refused(&house.send(sent).await), status, "{what}");
    }
    let other = [("agent", "amt0OngteA"), ("token", member(&form, "token"))];
    assert_eq!(refused(&house.send(browser.form("/agents/end", &other)).await), 403);
    assert_eq!(house.dump(), before);
    assert_eq!(house.send(browser.form("/agents/end", &form)).await.status, 303);
    let row = house.read(&house.alice, "/connections").await[0].clone();
    assert_eq!((&row["status"], &row["revocations"]), (&json!("revoked"), &json!(1)));
    assert!(forms(&browser.home().await, &format!("{}/agents/end", browser.base)).is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_changed_tool_is_shown_and_released() {
    let house = house().await;
    let browser = Browser::of(&house, &house.alice).await;
    let define = |to: &str| {
        let definition = sayso_protocol::canon::s256_bytes(to.as_bytes());
        let surface = json!({ "description": to, "readOnlyHint": true });
        let mut told = house.alice.server.told.lock().unwrap();
        let tool = told.listing.iter_mut().find(|entry| entry.tool.as_str() == "get_positions").unwrap();
        (tool.definition, tool.surface) = (Some(definition), Some(surface));
    };
    let pull = async || house.authority.pull(&house.alice.name, &house.alice.client_id()).await.unwrap();
    let action = format!("{}/things/seen", browser.base);
    define("tells her holdings");
    pull().await;
    let page = browser.home().await;
    let form = forms(&page, &action)[0].clone();
    assert_eq!(house.send(browser.form("/things/seen", &form)).await.status, 303);
    assert!(!browser.home().await.contains("suspended"));
    define("tells everybody");
    pull().await;
    let page = browser.home().await;
    let first = forms(&page, &action)[0].clone();
    define("<script>sells</script> her holdings");
    pull().await;
    let page = browser.home().await;
    let suspended = page.find("suspended").unwrap();
    assert!(suspended < page.find("get_transactions").unwrap(), "what she should see to comes first");
    assert!(page.contains("was <code class=\"long\" tabindex=\"0\"><bdi>&quot;tells her holdings&quot;"));
    assert!(page.contains("is now <code class=\"long\" tabindex=\"0\"><bdi>&quot;&lt;script&gt;sells"));
    assert!(!page.contains("readOnlyHint"), "what is the same is not shown");
    let form = forms(&page, &action)[0].clone();
    let before = house.dump();
    for (what, sent, status) in hostile(&browser, "/things/seen", &form) {
        assert_eq!(refused(&house.send(sent).await), status, "{what}");
    }
    assert_eq!(
        refused(&house.send(browser.form("/things/seen", &first)).await),
        409,
        "another change came since"
    );
    assert_eq!(house.dump(), before);
    assert_eq!(house.send(browser.form("/things/seen", &form)).await.status, 303);
    assert!(!browser.home().await.contains("suspended"));
    let rows = house.read(&house.alice, "/ledger").await;
    let row = rows.as_array().unwrap().last().unwrap();
    assert_eq!(row["kind"], "approved");
    assert!(row["author"]["browser"].is_string());
}

#[tokio::test(flavor = "multi_thread")]
async fn signing_out_ends_the_session() {
    let house = house().await;
    let (browser, other) = (Browser::of(&house, &house.alice).await, Browser::of(&house, &house.alice).await);
    let page = browser.home().await;
    let form = forms(&page, &format!("{}/sign-out", browser.base))[0].clone();
    let before = house.dump();
    let wrong = hostile(&browser, "/sign-out", &form).into_iter();
    for (what, sent, status) in wrong.filter(|(what, ..)| *what != "a member too few") {
        assert_eq!(refused(&house.send(sent).await), status, "{what}");
    }
    assert_eq!(refused(&house.send(other.form("/sign-out", &form)).await), 403);
    assert_eq!(house.dump(), before);
    let answer = house.send(browser.form("/sign-out", &form)).await;
    assert_eq!(answer.status, 200);
    assert!(answer.header("set-cookie").unwrap().starts_with("sayso=; "));
    assert!(answer.header("set-cookie").unwrap().ends_with("; Max-Age=0"));
    assert_eq!(refused(&browser.get("/").await), 403);
    other.home().await;
}
