//! The listing is for the authority the owner named.

use super::*;
use crate::authority::keys::KnownKeys;
use crate::scripted::{NOW, key, settings};
use async_trait::async_trait;
use http::{HeaderMap, HeaderValue, Method};
use sayso_protocol::sig::SignOptions;
use sayso_protocol::{SigningKey, Timestamp};
use std::sync::atomic::{AtomicUsize, Ordering};

const AUTHORITY: u8 = 0x11;
const PATH: &str = "/owner-resources";

fn listing_with(keys: Arc<dyn AuthorityKeys>) -> Listing {
    let mut other = settings();
    other.url = "https://gw.example.test/other".into();
    other.as_uri = "https://elsewhere.test".into();
    other.owner = "bob".parse().unwrap();
    let resources = [settings(), other].map(|settings| Arc::new(Resource::new(settings).unwrap()));
    let reader = Reader { issuer: "https://as.example.test".into(), keys };
    let endpoint = Url::parse("https://gw.example.test/owner-resources").unwrap();
    let replay = Arc::new(Replay::new(NOW.plus(-300)));
    Listing::new(&endpoint, resources.to_vec(), vec![reader], replay, Arc::new(|| NOW))
}

fn listing() -> Listing {
    listing_with(Arc::new(KnownKeys(vec![key(AUTHORITY).verifying().clone()])))
}

fn query(target: &str, signer: &SigningKey, at: Timestamp, authority: &str, nonce: &str) -> Head {
    let target: http::Uri = target.parse().unwrap();
    let mut headers = HeaderMap::new();
    headers.insert("host", HeaderValue::from_static("gw.example.test"));
    let facts = Facts {
        method: "GET",
        scheme: "https",
        authority,
        path: target.path(),
        query: target.query(),
        headers: &headers,
        body: Body::Whole(b""),
    };
    let options = SignOptions { nonce: Some(nonce), ..SignOptions::default() };
    sig::sign(&facts, signer, at, &options).unwrap().insert_into(&mut headers);
    Head { method: Method::GET, target, headers }
}

fn honest(nonce: &str) -> Head {
    query(PATH, &key(AUTHORITY), NOW, "gw.example.test", nonce)
}

// FED-09, FED-10, FED-11, CORE-58
#[tokio::test]
async fn the_authority_she_named_reads_her_instances_and_no_other_owners() {
    let shown = listing().answer(&honest("a")).await.unwrap();
    let names: Vec<&str> = shown.resources.iter().map(|owned| owned.id.as_str()).collect();
    assert_eq!(names, ["vault/execute_trade", "vault/get_positions"]);
    let named = query("/owner-resources?owner=alice", &key(AUTHORITY), NOW, "gw.example.test", "b");
    assert_eq!(listing().answer(&named).await.unwrap().resources.len(), 2);
    // Another authority's owner is nobody here.
    let bob = query("/owner-resources?owner=bob", &key(AUTHORITY), NOW, "gw.example.test", "c");
    assert_eq!(listing().answer(&bob).await.unwrap().resources, Vec::new());
}

// FED-10, FED-11, CORE-59
#[tokio::test]
async fn nobody_else_reads_it() {
    let unsigned = Head { headers: HeaderMap::new(), ..honest("x") };
    let mut uncovered = honest("x");
    uncovered.target = "/owner-resources?owner=bob".parse().unwrap();
    let mut body = honest("x");
    body.headers.insert("content-length", HeaderValue::from_static("2"));
    let refused = [
        unsigned,
        uncovered,
        body,
        query(PATH, &key(0x22), NOW, "gw.example.test", "x"),
        query(PATH, &key(AUTHORITY), NOW.plus(-61), "gw.example.test", "x"),
        query(PATH, &key(AUTHORITY), NOW, "other.example.test", "x"),
        query("/owner-resource", &key(AUTHORITY), NOW, "gw.example.test", "x"),
    ];
    let mut refused = refused.into_iter().collect::<Vec<_>>();
    refused[6].target = PATH.parse().unwrap();
    for (at, head) in refused.iter().enumerate() {
        assert_eq!(listing().answer(head).await.unwrap_err(), NotShown::InvalidSignature, "{at}");
    }
}

#[tokio::test]
async fn a_query_is_read_once() {
    let (listing, query) = (listing(), honest("once"));
    assert!(listing.answer(&query).await.is_ok());
    assert_eq!(listing.answer(&query).await.unwrap_err(), NotShown::InvalidSignature);
}

/// Keys that are published late, or not at all.
struct Late {
    asked: AtomicUsize,
    ever: bool,
}

#[async_trait]
impl AuthorityKeys for Late {
    async fn keys(&self, anew: bool) -> Result<Vec<VerifyingKey>, Unavailable> {
        self.asked.fetch_add(1, Ordering::SeqCst);
        match (self.ever, anew) {
            (false, _) => Err(Unavailable::Unreachable),
            (true, false) => Ok(vec![key(0x44).verifying().clone()]),
            (true, true) => Ok(vec![key(AUTHORITY).verifying().clone()]),
        }
    }
}

// FED-19
#[tokio::test]
async fn a_new_key_is_looked_for_once_and_no_key_is_said_so() {
    let late = Arc::new(Late { asked: AtomicUsize::new(0), ever: true });
    assert!(listing_with(late.clone()).answer(&honest("a")).await.is_ok());
    assert_eq!(late.asked.load(Ordering::SeqCst), 2);
    let never = Arc::new(Late { asked: AtomicUsize::new(0), ever: false });
    let refused = listing_with(never).answer(&honest("b")).await.unwrap_err();
    assert_eq!(refused, NotShown::Unavailable(Unavailable::Unreachable));
}

// D-30: an empty listing would tell her authority that everything is gone.
#[tokio::test]
async fn instances_that_are_not_known_yet_are_not_told_as_none() {
    let mut unlisted = settings();
    unlisted.tools.clear();
    let registry = Registry::from(Resource::new(unlisted).unwrap());
    let keys = Arc::new(KnownKeys(vec![key(AUTHORITY).verifying().clone()]));
    let reader = Reader { issuer: "https://as.example.test".into(), keys };
    let endpoint = Url::parse("https://gw.example.test/owner-resources").unwrap();
    let replay = Arc::new(Replay::new(NOW.plus(-300)));
    let listing = Listing::new(&endpoint, [registry.clone()], vec![reader], replay, Arc::new(|| NOW));
    let unknown = listing.answer(&honest("unlisted-a")).await;
    assert_eq!(unknown.err(), Some(NotShown::Unavailable(Unavailable::NoUpstream)));
    registry.replace(settings().tools).unwrap();
    assert_eq!(listing.answer(&honest("unlisted-b")).await.unwrap().resources.len(), 2);
}
