//! What counts as an identifier, where an authority's metadata is, and how near an authority may be.

use super::*;
use async_trait::async_trait;
use bytes::Bytes;
use http::{Request, Response};
use serde_json::json;
use std::sync::Mutex;

#[test]
fn only_the_plain_form_is_an_identifier() {
    for good in
        ["https://gw.example.test/mcp", "https://gw.example.test", "http://[::1]:8441/mcp", "https://h/"]
    {
        assert!(plain_url(good).is_some(), "{good}");
    }
    for odd in [
        "https://gw.example.test:443/mcp",
        "https://GW.example.test/mcp",
        "https://gw.example.test/mcp?x",
        "https://gw.example.test/mcp#x",
        "https://gw.example.test/a/../mcp",
        "https://as.example.test@evil.example.test",
        "https://127.1/mcp",
        "ftp://gw.example.test",
        "gw.example.test/mcp",
        " https://gw.example.test/mcp",
        "",
    ] {
        assert!(plain_url(odd).is_none(), "{odd}");
    }
}

#[test]
fn metadata_of_a_tenant_is_looked_for_both_ways() {
    let places = places(&Url::parse("https://as.example.test/t1").unwrap());
    assert_eq!(places[0], "https://as.example.test/.well-known/uma2-configuration/t1");
    assert_eq!(places[3], "https://as.example.test/t1/.well-known/uma2-configuration");
}

/// A resource on a public address that names this authority; every URL that is asked for is kept.
struct Published {
    authority: &'static str,
    asked: Mutex<Vec<String>>,
}

#[async_trait]
impl Fetch for Published {
    async fn send(&self, request: Request<Bytes>, _limits: Limits) -> Result<Response<Bytes>, FetchError> {
        self.asked.lock().unwrap().push(request.uri().to_string());
        let document = json!({"resource": "https://1.1.1.1/mcp", "authorization_servers": [self.authority]});
        Ok(Response::new(Bytes::from(document.to_string())))
    }
}

// CORE-32: even the resource's own word does not send a ticket over a line anybody can read.
#[tokio::test]
async fn a_resource_far_away_has_no_authority_over_plain_http() {
    for authority in
        ["http://as.example.test", "http://127.0.0.1:8440", "HTTP://as.example.test", "as.example.test"]
    {
        let published = Arc::new(Published { authority, asked: Mutex::default() });
        let doors = Doors { near: published.clone(), far: published.clone() };
        let folder = tempfile::tempdir().unwrap();
        let pins = Pins::open(folder.path()).unwrap();
        let dialled = Dialled::parse("https://1.1.1.1/mcp").await.unwrap();
        let challenge = serde_json::from_value(json!({
            "realm": "vault", "error": "insufficient_authorization", "as_uri": authority, "ticket": "ticket-0",
        }));
        let found = corroborate(&doors, &pins, &dialled, &challenge.unwrap(), Timestamp(0)).await;
        let refused = found.err().expect("an authority");
        assert!(
            matches!(refused, Fault::Uncorroborated(Uncorroborated::Authority)),
            "{authority}: {refused}"
        );
        let asked = published.asked.lock().unwrap().clone();
        assert_eq!(asked, ["https://1.1.1.1/.well-known/oauth-protected-resource/mcp"], "{authority}");
    }
}
