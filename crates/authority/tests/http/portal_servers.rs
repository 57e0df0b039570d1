//! Resource servers on her page: the origin first, the words of strangers as text, and answers that are hers or none.

use crate::browser::{Browser, forms, house, member, refused};
use crate::house::House;
use crate::introductions::{body, introduce, newcomer, row};
use crate::portal_forms::hostile;
use crate::portal_words::{HOSTILE, inert, shown};
use crate::server::Server;
use crate::wire::Sent;
use futures::future::join_all;
use sayso_protocol::b64;

type Form<'p> = Vec<(&'p str, &'p str)>;

/// The forms about a server on a page.
fn about<'p>(browser: &Browser<'_>, page: &'p str, server: &Server) -> Vec<Form<'p>> {
    let named = b64::encode(&server.origin);
    let all = forms(page, &format!("{}/servers", browser.base));
    all.into_iter().filter(|form| member(form, "server") == named).collect()
}

async fn status(house: &House, server: &Server) -> String {
    row(house, server).await["status"].as_str().unwrap().to_owned()
}

// OWN-16, OWN-08, CORE-109
#[tokio::test(flavor = "multi_thread")]
async fn her_answer_is_taken_once_and_from_nobody_else() {
    let house = house().await;
    let server = newcomer(&house).await;
    introduce(&house, &server, "alice").await.ok();
    let browser = Browser::of(&house, &house.alice).await;
    let page = browser.home().await;
    let [approve, deny] = &about(&browser, &page, &server)[..] else { panic!("{page}") };
    assert_eq!((member(approve, "answer"), member(deny, "answer")), ("approved", "revoked"));

    let before = house.dump().without("sessions");
    for (what, sent, expected) in hostile(&browser, "/servers", approve) {
        assert_eq!(refused(&house.send(sent).await), expected, "{what}");
    }
    let swap = |form: &Form<'_>, name: &'static str, value: &str| -> Vec<(String, String)> {
        let swapped = form.iter().map(|(known, old)| (known, if *known == name { value } else { old }));
        swapped.map(|(name, value)| ((*name).to_owned(), value.to_owned())).collect()
    };
    let other = b64::encode(&house.alice.server.origin);
    let nobody = b64::encode("https://nobody.example");
    for (form, expected) in [
        (swap(approve, "token", member(deny, "token")), 403),
        (swap(approve, "answer", "revoked"), 403),
        (swap(approve, "answer", "maybe"), 400),
        (swap(approve, "server", &other), 403),
        (swap(approve, "server", &nobody), 404),
        (swap(approve, "server", "%%%"), 400),
    ] {
        let members: Vec<_> = form.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        assert_eq!(refused(&house.send(browser.form("/servers", &members)).await), expected, "{form:?}");
    }
    let bob = Browser::of(&house, &house.bob).await;
    assert_eq!(refused(&house.send(bob.form("/servers", approve)).await), 404);
    assert_eq!(
        house.dump().without("sessions").without("ledger").without("sign_in_links"),
        before.without("ledger").without("sign_in_links")
    );
    assert_eq!(status(&house, &server).await, "pending");

    let answers = join_all((0..8).map(|_| house.send(browser.form("/servers", approve)))).await;
    assert_eq!(answers.iter().filter(|answer| answer.status == 303).count(), 1);
    assert!(answers.iter().all(|answer| matches!(answer.status, 303 | 409)));
    assert_eq!(status(&house, &server).await, "active");
    let ledger = house.read(&house.alice, "/ledger").await;
    assert!(ledger.as_array().unwrap().last().unwrap()["author"].get("browser").is_some());

    let page = browser.home().await;
    let [withdraw] = &about(&browser, &page, &server)[..] else { panic!("{page}") };
    assert_eq!(house.send(browser.form("/servers", withdraw)).await.status, 303);
    assert_eq!(status(&house, &server).await, "revoked");
    assert!(about(&browser, &browser.home().await, &server).is_empty());
}

// OWN-15, D-22, D-28
#[tokio::test(flavor = "multi_thread")]
async fn the_origin_comes_first_and_a_name_is_only_a_name() {
    let house = house().await;
    let browser = Browser::of(&house, &house.alice).await;
    for name in HOSTILE {
        let server = newcomer(&house).await;
        let mut said = body("alice", &server.resource());
        said["name"] = name.into();
        let sent = Sent::new("POST", "/rs/register").json(&said);
        assert_eq!(house.send(house.sign(sent, &server.key)).await.status, 202, "{name}");
        let page = browser.home().await;
        inert(&page);
        let text = shown(&page);
        let seen = name.replace('\u{0}', "U+0000").replace('\u{2028}', "U+2028");
        let origin = text.find(&server.origin).expect("the origin");
        assert!(text[origin..].contains(&seen), "{name}");
        let [_, deny] = &about(&browser, &page, &server)[..] else { panic!("{page}") };
        assert_eq!(house.send(browser.form("/servers", deny)).await.status, 303);
    }
}

// OWN-08: an answer is to what she was shown.
#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_says_something_else_since_is_not_approved() {
    let house = house().await;
    let server = newcomer(&house).await;
    introduce(&house, &server, "alice").await.ok();
    let browser = Browser::of(&house, &house.alice).await;
    let page = browser.home().await;
    let forms = about(&browser, &page, &server);
    assert_eq!(house.send(browser.form("/servers", &forms[1])).await.status, 303);
    let mut said = body("alice", &server.resource());
    said["name"] = "Something else".into();
    let sent = Sent::new("POST", "/rs/register").json(&said);
    assert_eq!(house.send(house.sign(sent, &server.key)).await.status, 202);
    assert_eq!(refused(&house.send(browser.form("/servers", &forms[0])).await), 403);
    assert_eq!(status(&house, &server).await, "pending");
}
