//! Getting into her page and out of it: links are good once, sessions end, and neither side of the listener answers in
//! the name of the other (D-16, D-26).

use crate::browser::{Browser, forms, headed, house, member, refused};
use crate::house::House;
use crate::wire::{FORM, Sent};
use futures::future::join_all;
use serde_json::json;

#[tokio::test(flavor = "multi_thread")]
async fn a_link_is_looked_at_often_and_redeemed_once() {
    let house = house().await;
    let mut browser = Browser::new(&house);
    let link = browser.link(&house.alice).await;
    let before = house.dump();
    for method in ["GET", "HEAD", "GET"] {
        let page = house.send(browser.request(method, &format!("/sign-in/{link}"))).await;
        headed(&page);
        assert_eq!((page.status, page.header("set-cookie")), (200, None));
    }
    assert_eq!(house.dump(), before);
    let page = browser.get(&format!("/sign-in/{link}")).await;
    let form = forms(page.text(), &format!("{}/sign-in", browser.base))[0].clone();
    let answer = browser.redeem(member(&form, "link")).await;
    headed(&answer);
    assert_eq!(answer.header("location"), Some(format!("{}/", browser.base).as_str()));
    let cookie = answer.header("set-cookie").unwrap();
    let (value, attributes) = cookie.split_once("; ").unwrap();
    assert_eq!(attributes, format!("Path={}/; HttpOnly; SameSite=Lax", browser.base));
    assert_eq!(value.len(), "sayso=".len() + 43);
    browser.keep(&answer);
    assert!(browser.home().await.contains("<b><bdi>alice</bdi></b>"));

    let rows = house.read(&house.alice, "/ledger").await;
    let row = rows.as_array().unwrap().last().unwrap();
    assert_eq!((&row["kind"], &row["handle"]), (&json!("connected"), &json!(null)));
    assert_eq!(row["author"]["browser"], row["entry"]["session"]);
    assert!(row["entry"]["link_by"]["owner"].is_string());
    assert!(!rows.to_string().contains(&link) && !rows.to_string().contains(value));

    let before = house.dump();
    assert_eq!(refused(&browser.redeem(&link).await), 403);
    for odd in ["", "x", &"A".repeat(43), &"%".repeat(43), &format!("{link}x")] {
        assert_eq!(refused(&browser.redeem(odd).await), 403, "{odd}");
    }
    assert_eq!(house.dump(), before);
}

#[tokio::test(flavor = "multi_thread")]
async fn of_thirty_two_redemptions_one_counts() {
    let house = house().await;
    let browser = Browser::new(&house);
    let link = browser.link(&house.alice).await;
    let answers = join_all((0..32).map(|_| browser.redeem(&link))).await;
    assert_eq!(answers.iter().filter(|answer| answer.status == 303).count(), 1);
    assert!(answers.iter().all(|answer| answer.status == 303 || refused(answer) == 403));
    assert_eq!(house.dump().of("sessions"), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn links_and_sessions_end() {
    let house = house().await;
    let browser = Browser::new(&house);
    let link = browser.link(&house.alice).await;
    house.pass(300);
    let before = house.dump();
    assert_eq!(refused(&browser.redeem(&link).await), 403);
    assert_eq!(house.dump(), before);

    let idle = Browser::of(&house, &house.alice).await;
    let used = Browser::of(&house, &house.alice).await;
    house.pass(30 * 60 - 10);
    used.home().await;
    house.pass(10);
    assert_eq!(refused(&idle.get("/").await), 403);
    for _ in 0..24 {
        used.home().await;
        house.pass(29 * 60);
    }
    assert_eq!(refused(&used.get("/").await), 403, "no session lives longer than half a day");
}

// A session is drawn where it is opened: nobody who set a cookie before knows it.
#[tokio::test(flavor = "multi_thread")]
async fn a_session_cannot_be_fixed_beforehand() {
    let house = house().await;
    let mut browser = Browser::new(&house);
    let planted = format!("sayso={}", "A".repeat(43));
    browser.cookie = Some(planted.clone());
    let link = browser.link(&house.alice).await;
    let answer = browser.redeem(&link).await;
    assert!(!answer.header("set-cookie").unwrap().starts_with(&planted));
    assert_eq!(refused(&browser.get("/").await), 403);
    // Beside one that another server of this name planted, hers still counts.
    browser.keep(&answer);
    browser.cookie = Some(format!("{planted}; {}", browser.cookie.unwrap()));
    browser.home().await;
    // Signing in again ends the session the browser had.
    let former = browser.cookie.clone();
    let link = browser.link(&house.alice).await;
    let answer = browser.redeem(&link).await;
    browser.keep(&answer);
    browser.home().await;
    browser.cookie = former;
    assert_eq!(refused(&browser.get("/").await), 403);
}

#[tokio::test(flavor = "multi_thread")]
async fn only_the_file_that_posts_a_link_comes_from_nowhere() {
    let house = house().await;
    let browser = Browser::new(&house);
    let link = browser.link(&house.alice).await;
    let before = house.dump();
    let form =
        |origin: &str| browser.request("POST", "/sign-in").with("origin", origin).form(&[("link", &link)]);
    for origin in
        ["http://localhost:1", "http://localhost", "https://evil.example", &house.issuer, "file://", ""]
    {
        assert_eq!(refused(&house.send(form(origin)).await), 403, "{origin}");
        let page = browser.request("GET", &format!("/sign-in/{link}")).with("origin", origin);
        assert_eq!(refused(&house.send(page).await), 403, "{origin}");
    }
    let twice = form("null").with("origin", "null");
    assert_eq!(refused(&house.send(twice).await), 403);
    let elsewhere = browser.request("POST", "/sign-out").with("origin", "null").form(&[("link", &link)]);
    assert_eq!(refused(&house.send(elsewhere).await), 403);
    for sent in [
        browser.request("POST", "/sign-in").form(&[("link", &link), ("link", &link)]),
        browser.request("POST", "/sign-in").body(("content-type", "text/plain"), format!("link={link}")),
        browser.request("POST", "/sign-in").body(FORM, vec![b'x'; 5000]),
        browser.request("PUT", "/sign-in").form(&[("link", &link)]),
    ] {
        assert!((400..500).contains(&refused(&house.send(sent).await)));
    }
    assert_eq!(house.dump(), before);
    assert_eq!(house.send(form("null")).await.status, 303);
}

// CORE-108: the API takes no cookie, and neither side answers under the other's name.
#[tokio::test(flavor = "multi_thread")]
async fn the_two_sides_do_not_meet() {
    let house = house().await;
    let browser = Browser::of(&house, &house.alice).await;
    let cookie = browser.cookie.clone().unwrap();
    let before = house.dump();
    for path in ["/owner/pending", "/owner/ledger", "/owner/sign-in-links"] {
        let method = if path.ends_with("links") { "POST" } else { "GET" };
        let with_cookie = Sent::new(method, path).with("cookie", &cookie);
        assert_eq!(house.send(with_cookie).await.detail(), 401, "{path}");
        // Even signed for the right authority.
        let signed = house.sign(Sent::new(method, path), &house.alice.device).with("host", &browser.host);
        assert_eq!(refused(&house.send(signed).await), 421, "{path}");
    }
    for path in
        ["/token", "/jwks", "/health", "/terms", "/.well-known/uma2-configuration", "/introspect", "/x"]
    {
        let sent = Sent::new("GET", path).with("host", &browser.host).with("cookie", &cookie);
        assert_eq!(refused(&house.send(sent).await), 421, "{path}");
    }
    for path in ["/", "/style.css", "/sign-in", "/waiting/x", "/agents/end", "/sign-out"] {
        for method in ["GET", "POST"] {
            let sent = Sent::new(method, &format!("{}{path}", browser.base)).with("cookie", &cookie);
            assert_eq!(house.send(sent).await.refusal().0, 404, "{method} {path}");
        }
    }
    let address = house.address.to_string();
    for (host, target) in [(&browser.host, &address), (&address, &browser.host)] {
        let sent = Sent::new("GET", &format!("http://{target}{}/", browser.base)).with("host", host);
        assert_eq!(house.send(sent.with("cookie", &cookie)).await.status, 421, "{host} {target}");
    }
    for host in ["localhost", "localhost:1", "portal.localhost", &format!("{}.evil.example", browser.host)] {
        let sent = Sent::new("GET", &format!("{}/", browser.base)).with("host", host).with("cookie", &cookie);
        assert_eq!(house.send(sent).await.status, 421, "{host}");
    }
    assert_eq!(house.dump(), before);
    // Under its own name it says how to get in, and nothing of where the page is.
    let root = house.send(Sent::new("GET", "/").with("host", &browser.host)).await;
    assert_eq!(refused(&root), 404);
    assert!(root.text().contains("sayso owner open") && !root.text().contains(&browser.base));
    for inside in ["/nothing", "/sign-in/", "/waiting/"] {
        assert_eq!(refused(&browser.get(inside).await), 404, "{inside}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_link_is_asked_for_with_her_key() {
    let house = house().await;
    let before = house.dump();
    let sent = || Sent::new("POST", "/owner/sign-in-links").json(&json!({}));
    assert_eq!(house.send(sent()).await.detail(), 401);
    for body in [json!({ "owner": "bob" }), json!([]), json!(null), json!("bob")] {
        let more = Sent::new("POST", "/owner/sign-in-links").json(&body);
        assert_eq!(house.hers(&house.alice, more).await.detail(), 400, "{body}");
    }
    assert_eq!(house.dump(), before);
    let browser = Browser::of(&house, &house.bob).await;
    assert!(browser.home().await.contains("<b><bdi>bob</bdi></b>"));
    // Where there is no portal there is no link.
    let plain = House::new().await;
    assert_eq!(plain.hers(&plain.alice, sent()).await.detail(), 404);
}
