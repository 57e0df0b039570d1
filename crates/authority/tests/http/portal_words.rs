//! What her page shows: the exact arguments, whole, and the words of strangers as text (D-28).

use crate::browser::{Browser, headed, house};
use crate::house::{Agent, House, known};
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// Texts that act where they are not text, with what must not be on the page and what must.
pub const HOSTILE: [&str; 19] = [
    "<script>fetch('//evil.example.test')</script>",
    "\"><img src=x onerror=alert(1)>",
    "'-alert(1)-'",
    "</textarea><svg/onload=alert(1)>",
    "{{7*7}}${7*7}<%= 7*7 %>",
    "[click](javascript:alert(1))",
    "javascript:alert(1)",
    "data:text/html,<script>alert(1)</script>",
    "<a href=//evil.example.test>",
    "<style>*{display:none}</style>",
    "<meta http-equiv=refresh content=0;url=//evil.example.test>",
    "<!--",
    "]]>",
    "\u{2028}alert(1)//",
    "&lt;b&gt;",
    "<b>x</b>",
    "\u{0}<b>",
    "<base href=//evil.example.test>",
    "😀\u{301}😀\u{301}",
];

/// Every tag and attribute our templates write.
const TAGS: &str = "!doctype html head meta title link body header main nav section article h1 h2 h3 p b bdi a form \
                    input button dl dt dd ul ol li code em i br details summary div span";
const ATTRIBUTES: &str = "lang charset name content rel href id class aria-label aria-labelledby aria-describedby \
                          method action type value tabindex open html";

/// That a page is made of our tags alone, each with our attributes, and every address is ours.
pub fn inert(page: &str) {
    let words = |list: &'static str| list.split_whitespace().collect::<BTreeSet<_>>();
    let (tags, attributes) = (words(TAGS), words(ATTRIBUTES));
    for part in page.split('<').skip(1) {
        let (tag, _) = part.split_once('>').unwrap();
        let mut names = tag.trim_start_matches('/').split_whitespace();
        assert!(tags.contains(names.next().unwrap()), "<{tag}>");
        let rest = tag.split_once(' ').map_or("", |(_, rest)| rest);
        // Between two quotes is a value; what is left are names.
        for (at, outside) in rest.split('"').enumerate() {
            let outside = if at % 2 == 0 { outside } else { "" };
            for name in outside.split_whitespace().map(|name| name.trim_end_matches('=')) {
                assert!(attributes.contains(name), "{name} in <{tag}>");
            }
        }
        for place in ["href=\"", "action=\""] {
            if let Some((_, address)) = tag.split_once(place) {
                assert!(address.starts_with("/s/") || address.starts_with('#'), "<{tag}>");
            }
        }
    }
    let hidden = |letter: &char| letter.is_control() && *letter != '\n';
    assert!(!page.chars().any(|letter| hidden(&letter) || ('\u{2028}'..='\u{202e}').contains(&letter)));
}

/// What a browser shows of a page: its text, marks included.
pub fn shown(page: &str) -> String {
    let text: String =
        page.split('<').map(|part| part.split_once('>').map_or(part, |(_, text)| text)).collect();
    [("&lt;", "<"), ("&gt;", ">"), ("&quot;", "\""), ("&#39;", "'"), ("&amp;", "&")]
        .iter()
        .fold(text, |text, (escaped, letter)| text.replace(escaped, letter))
}

async fn ask(house: &House, agent: &Agent, params: &Value, reason: &str) -> (String, Value) {
    let mut talk = agent.negotiate(house, &house.alice, "execute_trade").await;
    let mut claims = talk.claims();
    claims["operation"]["params"] = params.clone();
    claims["reason"] = reason.into();
    assert_eq!(talk.commit_to(&claims).await.json()["error"], "request_submitted");
    let item = house.read(&house.alice, &format!("/pending/{}", talk.family())).await;
    (talk.family(), item)
}

// OWN-06, TERMS-15
#[tokio::test(flavor = "multi_thread")]
async fn nothing_a_stranger_wrote_acts() {
    let house = house().await;
    let browser = Browser::of(&house, &house.alice).await;
    for hostile in HOSTILE {
        let agent = Agent::new();
        let (family, item) =
            ask(&house, &agent, &json!({ "note": hostile, hostile: [hostile] }), hostile).await;
        assert_eq!(item["reason"], hostile, "escaping is for display");
        let named = hostile.replace('\u{0}', "");
        let mut server = known(&house.alice.name, &house.alice.server, house.now());
        server.name = named.clone();
        house.authority.store().settle_resource_server(&server, house.now()).await.unwrap();
        for path in ["/", &format!("/waiting/{family}")] {
            let page = browser.get(path).await;
            headed(&page);
            assert_eq!(page.status, 200);
            inert(page.text());
            let seen = hostile.replace('\u{0}', "U+0000").replace('\u{2028}', "U+2028");
            assert!(shown(page.text()).matches(&seen).count() >= 1, "{hostile}");
        }
        house.decide(&house.alice, &family, "denied").await.ok();
    }
    // What was asked for is not repeated by the page that says it is not there.
    for path in
        ["/<script>", "/waiting/%3Cscript%3Ealert(1)%3C%2Fscript%3E", "/sign-in/%3Cscript%3E", "/x?<script>"]
    {
        let page = browser.get(path).await;
        inert(page.text());
        assert!(!shown(page.text()).contains("script"), "{path}");
    }
}

// CORE-39, OWN-06: what is shown is what is hashed, whole.
#[tokio::test(flavor = "multi_thread")]
async fn every_argument_is_shown_as_it_is_hashed() {
    let house = house().await;
    let browser = Browser::of(&house, &house.alice).await;
    let keys =
        |at: usize| (format!("k{at:03}"), if at == 137 { json!({ "to": "attacker" }) } else { json!(at) });
    let many: Value = Value::Object((0..200).map(keys).collect());
    let blob = "QUJD".repeat(8 * 1024);
    let flood: Value = json!({ "many": vec![0; 5000] });
    for (params, visible) in [
        (
            json!({ "note": format!("ok{}; qty below is 1000000", " ".repeat(4000)), "qty": 1_000_000 }),
            vec!["4000 spaces", "; qty below is 1000000", "qty 1000000"],
        ),
        (
            json!({ "note": "qty: 1\naccount: mine\n\n", "qty": 999 }),
            vec!["\"qty: 1\\naccount: mine\\n\\n\"", "qty 999"],
        ),
        (
            json!({ "a": { "b": { "c": { "d": { "e": { "f": { "to": "attacker" } } } } } } }),
            vec!["to \"attacker\""],
        ),
        (many, vec!["k000 0", "k136 136", "k137 1 member", "to \"attacker\"", "k199 199"]),
        (
            json!({ "to": "alice", "tо": "mallory" }),
            vec!["to \"alice\"", "tо with letters that may look like others: U+043E \"mallory\""],
        ),
        (json!({ "qty": 1e21, "r": 0.1, "z": -0.0 }), vec!["qty 1e+21", "r 0.1", "z 0"]),
        (
            json!({ "note": "\u{1b}[2K\u{1b}[1A\u{1b}[32mapproved" }),
            vec!["\"\\u001b[2K\\u001b[1A\\u001b[32mapproved\""],
        ),
        (
            json!({ "note": "<details><summary>1 share</summary>" }),
            vec!["\"<details><summary>1 share</summary>\""],
        ),
        (json!({ "data": blob }), vec!["32770 letters, all of them here", &blob]),
        (json!({ "qty": 1000 }), vec!["qty 1000"]),
        (json!({ "": "", "a b": null, "l": [], "m": {} }), vec!["\"\" \"\"", "\"a b\" null", "l []", "m {}"]),
        (flood.clone(), vec!["5001 values: too many to lay out"]),
        (json!({}), vec!["None."]),
    ] {
        let agent = Agent::new();
        let (family, item) = ask(&house, &agent, &params, "buys 1 share").await;
        let page = browser.get(&format!("/waiting/{family}")).await;
        let text = shown(page.text()).split_whitespace().collect::<Vec<_>>().join(" ");
        for part in visible {
            assert!(
                text.contains(&part.split_whitespace().collect::<Vec<_>>().join(" ")),
                "{part:.80} in {text:.3000}"
            );
        }
        assert!(text.contains(item["params_s256"].as_str().unwrap()));
        let canonical = sayso_protocol::canon::to_bytes(&params.into()).unwrap();
        let canonical = String::from_utf8(canonical).unwrap().replace(&" ".repeat(4000), "4000 spaces");
        assert!(text.contains(&canonical), "{canonical:.200}");
        let facts = text.find("As they are hashed").unwrap();
        assert!(facts < text.find("own words").unwrap() && facts < text.find("buys 1 share").unwrap());
        house.decide(&house.alice, &family, "denied").await.ok();
    }
}

// POL-03, CORE-39
#[tokio::test(flavor = "multi_thread")]
async fn she_is_told_what_her_answer_means() {
    let house = house().await;
    let browser = Browser::of(&house, &house.alice).await;
    let agent = Agent::new();
    let mut talk = agent.negotiate(&house, &house.alice, "get_positions").await;
    talk.commit().await;
    let text = shown(&browser.home().await);
    for sentence in [
        "any number of calls within these scopes, by this agent, for 1 hour. It can renew that without asking you.",
        "It also lets this agent in: from then on it gets, without asking you, Holdings.",
        "You have never let this agent in.",
        "Nobody vouches for who runs it.",
    ] {
        assert!(text.contains(sentence), "{sentence}");
    }
    house.decide(&house.alice, &talk.family(), "approved").await.ok();
    ask(&house, &agent, &json!({ "quantity": 3 }), "r").await;
    let text = shown(&browser.home().await);
    for sentence in [
        "one call with exactly these arguments, once, by this agent, within 15 minutes of your answer.",
        "It does not allow other arguments, a second call, or any other tool.",
        "upheld here (single-use)",
        "Agents you let in",
        agent.handle().as_str(),
    ] {
        assert!(text.contains(sentence), "{sentence}");
    }
    assert!(!text.contains("It also lets this agent in") && !text.contains("ungoverned"));
    let sent = crate::wire::Sent::new("DELETE", "/owner/policies/holdings");
    house.hers(&house.alice, sent).await.ok();
    let page = browser.home().await;
    let (ungoverned, governed) = (page.find("ungoverned").unwrap(), page.find("every single call").unwrap());
    assert!(
        page.find("id=\"things\"").unwrap() < ungoverned
            && ungoverned < page.rfind("every single call").unwrap().max(governed)
    );
}

// What strangers can make many stays bounded, and agents she let in stay in sight.
#[tokio::test(flavor = "multi_thread")]
async fn a_flood_is_counted_and_hides_nobody() {
    let house = house().await;
    let friend = Agent::new();
    friend.obtain(&house, &house.alice, "get_positions").await;
    let strangers: Vec<Agent> = (0..14).map(|_| Agent::new()).collect();
    for stranger in &strangers {
        let mut talk = stranger.negotiate(&house, &house.alice, "get_positions").await;
        talk.commit().await;
    }
    let (family, _) = ask(&house, &friend, &json!({ "quantity": 3 }), "r").await;
    let browser = Browser::of(&house, &house.alice).await;
    let page = browser.home().await;
    assert_eq!(page.matches("<article ").count(), 11);
    assert!(page.contains("15 in all."));
    let first = page.split("<article ").nth(1).unwrap();
    assert!(first.contains(&family));
    let links = page.matches(&format!("<a href=\"{}/waiting/", browser.base)).count();
    assert_eq!(links, 4);
}
