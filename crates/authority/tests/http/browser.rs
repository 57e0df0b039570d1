//! A browser at her portal: it keeps the cookie it was given and sends forms as browsers do, from the page's origin.

use crate::house::{House, Person};
use crate::wire::{Answer, Sent};
use sayso_authority::Portal;
use serde_json::json;

pub struct Browser<'a> {
    pub house: &'a House,
    pub host: String,
    pub origin: String,
    pub base: String,
    pub cookie: Option<String>,
}

/// A house with a portal under `localhost`.
pub async fn house() -> House {
    House::with(|config| {
        let port = config.public_url.rsplit(':').next().unwrap();
        config.portal = Some(Portal::at(&format!("http://localhost:{port}"), &[7; 16]).unwrap());
    })
    .await
}

impl<'a> Browser<'a> {
    /// Before anybody signed in.
    pub fn new(house: &'a House) -> Self {
        let host = format!("localhost:{}", house.address.port());
        let (origin, base) =
            (format!("http://{host}"), format!("/s/{}", sayso_protocol::b64::encode([7; 16])));
        Self { house, host, origin, base, cookie: None }
    }

    /// With a session of this owner's.
    pub async fn of(house: &'a House, person: &Person) -> Self {
        let mut browser = Self::new(house);
        let link = browser.link(person).await;
        let answer = browser.redeem(&link).await;
        assert_eq!(answer.status, 303, "{answer:?}");
        browser.keep(&answer);
        browser
    }

    /// A fresh link of hers, as her device key gets it; the token alone.
    pub async fn link(&self, person: &Person) -> String {
        let sent = Sent::new("POST", "/owner/sign-in-links").json(&json!({}));
        let made = self.house.hers(person, sent).await.ok();
        assert_eq!(made["expires_in"], 300);
        let url = made["url"].as_str().unwrap().to_owned();
        url.strip_prefix(&format!("{}{}/sign-in/", self.origin, self.base)).unwrap().to_owned()
    }

    /// The form of a link's page.
    pub async fn redeem(&self, link: &str) -> Answer {
        self.house.send(self.form("/sign-in", &[("link", link)])).await
    }

    pub fn keep(&mut self, answer: &Answer) {
        let line = answer.header("set-cookie").unwrap();
        self.cookie = Some(line.split(';').next().unwrap().to_owned());
    }

    /// A request to one of her pages.
    pub fn request(&self, method: &str, path: &str) -> Sent {
        let sent = Sent::new(method, &format!("{}{path}", self.base)).with("host", &self.host);
        match &self.cookie {
            Some(cookie) => sent.with("cookie", cookie),
            None => sent,
        }
    }

    /// A form, sent from the portal's own page.
    pub fn form(&self, path: &str, members: &[(&str, &str)]) -> Sent {
        self.request("POST", path).with("origin", &self.origin).form(members)
    }

    pub async fn get(&self, path: &str) -> Answer {
        self.house.send(self.request("GET", path)).await
    }

    /// The start page, which must be there.
    pub async fn home(&self) -> String {
        let answer = self.get("/").await;
        assert_eq!(answer.status, 200, "{answer:?}");
        answer.text().to_owned()
    }
}

/// The hidden members of every form to `action` on a page, in order.
pub fn forms<'p>(page: &'p str, action: &str) -> Vec<Vec<(&'p str, &'p str)>> {
    let opening = format!("<form method=\"post\" action=\"{action}\">");
    let found = page.split(opening.as_str()).skip(1).map(|rest| rest.split("</form>").next().unwrap());
    let members = |form: &'p str| {
        let inputs = form.split("<input type=\"hidden\" name=\"").skip(1);
        let pair = |input: &'p str| {
            let (name, rest) = input.split_once("\" value=\"").unwrap();
            (name, rest.split('"').next().unwrap())
        };
        inputs.map(pair).collect()
    };
    found.map(members).collect()
}

/// A member of a form.
pub fn member<'p>(form: &[(&'p str, &'p str)], name: &str) -> &'p str {
    form.iter().find(|(known, _)| *known == name).unwrap().1
}

/// A page that refuses: its status, that it keeps every header of a page, and that it gives no session.
pub fn refused(answer: &Answer) -> u16 {
    headed(answer);
    assert_eq!(answer.header("set-cookie"), None, "{answer:?}");
    assert!(answer.text().contains("<h1>"), "{answer:?}");
    answer.status
}

/// What every answer of the portal carries.
pub fn headed(answer: &Answer) {
    let csp = answer.header("content-security-policy").unwrap();
    for part in [
        "default-src 'none'",
        "frame-ancestors 'none'",
        "base-uri 'none'",
        "form-action 'self'",
        "object-src 'none'",
    ] {
        assert!(csp.contains(part), "{csp}");
    }
    assert!(!csp.contains("unsafe") && !csp.contains("script"), "{csp}");
    for (name, value) in [
        ("referrer-policy", "same-origin"),
        ("cache-control", "no-store"),
        ("x-content-type-options", "nosniff"),
        ("x-frame-options", "DENY"),
    ] {
        assert_eq!(answer.header(name), Some(value), "{answer:?}");
    }
}
