//! What anybody may read, who is let in at all, and how every wrong address is answered.
//!
//! Terms are immutable and readable without a token; nothing public names an agent.

use crate::house::{Agent, House};
use crate::wire::Sent;
use serde_json::json;

// BASE-01, CORE-01, CORE-02, CORE-03, CORE-04, CORE-05, CORE-34, TERMS-21, OWN-01, FED-44
#[tokio::test(flavor = "multi_thread")]
async fn one_metadata_document_at_three_addresses() {
    let house = House::new().await;
    let document = house.get("/.well-known/uma2-configuration").await.ok();
    for name in ["oauth-authorization-server", "uma4agents-configuration"] {
        assert_eq!(house.get(&format!("/.well-known/{name}")).await.ok(), document);
    }
    assert_eq!(document["issuer"], house.issuer.as_str());
    for (member, path) in [
        ("token_endpoint", "/token"),
        ("jwks_uri", "/jwks"),
        ("permission_endpoint", "/perm"),
        ("introspection_endpoint", "/introspect"),
        ("consume_endpoint", "/consume"),
        ("terms_endpoint", "/terms"),
        ("owner_endpoint", "/owner"),
    ] {
        assert_eq!(document[member], format!("{}{path}", house.issuer), "{member}");
    }
    let profiles = document["uma_profiles_supported"].to_string();
    for (profile, there) in
        [("core", true), ("terms", true), ("fedauthz", true), ("lineage", false), ("owner", false)]
    {
        assert_eq!(profiles.contains(&format!("spec/{profile}/1.0")), there, "{profile}");
    }
    assert_eq!(
        document["grant_types_supported"],
        json!(["urn:ietf:params:oauth:grant-type:uma-ticket", "client_credentials"])
    );
    assert_eq!(house.get("/health").await.ok(), json!({ "status": "ok" }));
}

// TERMS-01, TERMS-12, TERMS-13, TERMS-14, TERMS-15, TERMS-16, TERMS-46
#[tokio::test(flavor = "multi_thread")]
async fn every_version_of_terms_stays_as_it_was() {
    let house = House::new().await;
    let talk_agent = Agent::new();
    let talk = talk_agent.negotiate(&house, &house.alice, "execute_trade").await;
    let uri = talk.template["terms_uri"].as_str().unwrap();
    let path = uri.strip_prefix(&house.issuer).unwrap();
    let first = house.get(path).await;
    let document = first.ok();
    for (member, value) in document.as_object().unwrap() {
        assert_eq!(&talk.template[member], value, "{member}");
    }
    let edit = json!({ "terms": { "purpose": "<script>alert(1)</script>" } });
    for _ in 0..2 {
        let sent = Sent::new("PUT", "/owner/policies/trading").json(&edit);
        house.hers(&house.alice, sent).await.ok();
    }
    house.hers(&house.alice, Sent::new("DELETE", "/owner/policies/trading")).await.ok();
    assert_eq!(house.get(path).await.body, first.body);
    let second = path.replace("/v1", "/v2");
    assert_eq!(house.get(&second).await.ok()["purpose"], "<script>alert(1)</script>");
    assert_eq!(house.get(&path.replace("/v1", "/v3")).await.status, 200);
    assert_eq!(house.get(&path.replace("/v1", "/v4")).await.refusal(), (404, "not_found".into()));

    let page = house.send(Sent::new("GET", &second).with("accept", "text/html")).await;
    assert_eq!(page.header("content-type"), Some("text/html; charset=utf-8"));
    assert_eq!(page.header("vary"), Some("accept"));
    assert!(page.header("content-security-policy").unwrap().contains("default-src 'none'"));
    assert!(page.text().contains("&lt;script&gt;") && !page.text().contains("<script"));
    for text in
        ["orders-beyond-approved-parameters", "enforced by the resource", "15 minutes", "trades:execute"]
    {
        assert!(page.text().contains(text), "{text}");
    }
    assert_eq!(house.get(&format!("{second}?format=html")).await.body, page.body);
    let offer = house.send(Sent::new("GET", &second).with("accept", "application/ld+json")).await;
    let offer: serde_json::Value = serde_json::from_slice(&offer.body).unwrap();
    assert_eq!(
        (&offer["@type"], &offer["@id"]),
        (&json!("odrl:Offer"), &json!(format!("{}{second}", house.issuer)))
    );
    assert_eq!(offer["odrl:prohibition"].as_array().unwrap().len(), 2);
    let none = house.send(Sent::new("GET", &second).with("accept", "image/png")).await;
    assert_eq!(none.refusal(), (406, "not_acceptable".into()));
    assert_eq!(house.get(&format!("{second}?format=pdf")).await.refusal().0, 406);
}

// CORE-05, CORE-118
#[tokio::test(flavor = "multi_thread")]
async fn the_roster_lists_current_terms_and_no_resources() {
    let house = House::new().await;
    let roster = house.get("/terms").await.ok();
    assert_eq!(roster["terms"].as_array().unwrap().len(), 6);
    for entry in roster["terms"].as_array().unwrap() {
        let uri = entry["terms_uri"].as_str().unwrap().strip_prefix(&house.issuer).unwrap().to_owned();
        assert_eq!(house.get(&uri).await.ok()["template_id"], entry["template_id"]);
    }
    assert!(!roster.to_string().contains("get_positions"));
}

#[tokio::test(flavor = "multi_thread")]
async fn wrong_addresses_and_methods_are_answered_in_json() {
    let house = House::new().await;
    for path in [
        "/",
        "/nothing",
        "/terms/",
        "/terms/x",
        "/terms/%ff",
        "/token/x",
        "/health/registry",
        "/rs",
        "/rs/register/x",
    ] {
        assert_eq!(house.get(path).await.refusal(), (404, "not_found".into()), "{path}");
    }
    for path in ["/owner", "/owner/operators", "/owner/organization", "/owner/joint", "/owner/x"] {
        assert_eq!(house.get(path).await.detail(), 404, "{path}");
    }
    for (method, path, allowed) in [
        ("GET", "/token", "POST"),
        ("PUT", "/perm", "POST"),
        ("POST", "/jwks", "GET,HEAD"),
        ("DELETE", "/terms/x", "GET,HEAD"),
        ("OPTIONS", "/token", "POST"),
        ("GET", "/rs/register", "POST"),
        ("TRACE", "/introspect", "POST"),
    ] {
        let answer = house.send(Sent::new(method, path)).await;
        assert_eq!(answer.refusal(), (405, "method_not_allowed".into()), "{method} {path}");
        assert_eq!(answer.header("allow"), Some(allowed));
    }
    let answer = house.send(Sent::new("POST", "/owner/pending")).await;
    assert_eq!((answer.detail(), answer.header("allow")), (405, Some("GET,HEAD")));
}

// D-16
#[tokio::test(flavor = "multi_thread")]
async fn only_exact_hosts_and_our_own_origin() {
    let house = House::with(|config| config.hosts = vec!["Authority.internal:8440".into()]).await;
    let path = "/.well-known/uma2-configuration";
    let address = house.address.to_string();
    let port = house.address.port();
    for host in [address.as_str(), "authority.internal:8440", "AUTHORITY.INTERNAL:8440"] {
        assert_eq!(house.send(Sent::new("GET", path).with("host", host)).await.status, 200, "{host}");
    }
    let suffixed = format!("{address}.evil.example");
    let other = format!("localhost:{port}");
    for host in ["evil.example", "127.0.0.1", "authority.internal", &suffixed, &other, ""] {
        let answer = house.send(Sent::new("GET", path).with("host", host)).await;
        assert_eq!(answer.refusal(), (421, "misdirected_request".into()), "{host}");
    }
    let twice = Sent::new("GET", path).with("host", &address).with("host", "evil.example");
    let answer = house.send(twice).await;
    assert!([400, 421].contains(&answer.status), "{answer:?}");
    let absolute = Sent::new("GET", &format!("http://evil.example{path}")).with("host", &address);
    assert_eq!(house.send(absolute).await.refusal().0, 421);
    for origin in ["https://evil.example", "null", "http://localhost", "http://127.0.0.1"] {
        for sent in
            [Sent::new("GET", path), Sent::new("GET", "/owner/pending"), Sent::new("OPTIONS", "/token")]
        {
            let answer = house.send(sent.with("origin", origin)).await;
            assert_eq!(answer.status, 403, "{origin}");
            assert_eq!(answer.header("access-control-allow-origin"), None);
        }
    }
    let answer = house.send(Sent::new("GET", path).with("origin", &house.issuer)).await;
    assert_eq!((answer.status, answer.header("x-content-type-options")), (200, Some("nosniff")));
}
