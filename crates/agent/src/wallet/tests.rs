//! Which grant a call gets, and that a single-use one is got once.

use super::*;
use sayso_protocol::canon::s256_of;

const NOW: Timestamp = Timestamp(1000);

fn digest(text: &str) -> S256 {
    s256_of(text).unwrap()
}

fn grant(token: &str, operation: Option<&str>, expires: i64) -> Grant {
    Grant {
        token: token.into(),
        receipt: format!("receipt of {token}"),
        resource: "https://gw.example.test/mcp".into(),
        tool: "execute_trade".parse().unwrap(),
        reference: Some(digest("reference")),
        key: "thumb".into(),
        authority: "https://as.example.test".into(),
        operation: operation.map(digest),
        spent: false,
        expires: Timestamp(expires),
        family: "f".parse().unwrap(),
        template_id: "a/u/v1".parse().unwrap(),
    }
}

fn opened() -> (tempfile::TempDir, Wallet) {
    let dir = tempfile::tempdir().unwrap();
    let wallet = Wallet::open(dir.path()).unwrap();
    (dir, wallet)
}

struct Want {
    resource: &'static str,
    arguments: &'static str,
    reference: Option<S256>,
    authority: &'static str,
    key: &'static str,
    follows_up: bool,
}

const HERE: Want = Want {
    resource: "https://gw.example.test/mcp",
    arguments: "args",
    reference: None,
    authority: "https://as.example.test",
    key: "thumb",
    follows_up: false,
};

fn take(wallet: &Wallet, want: &Want) -> Option<String> {
    let tool = "execute_trade".parse().unwrap();
    let params = digest(want.arguments);
    let reference = want.reference.as_ref().map(|digest| Reference { digest, authority: want.authority });
    let wanted = Wanted {
        resource: want.resource,
        tool: &tool,
        params_s256: &params,
        reference,
        follows_up: want.follows_up,
    };
    wallet.take(&wanted, NOW, &|grant| grant.key == want.key).unwrap().map(|grant| grant.token)
}

#[test]
fn a_reusable_grant_stays_and_a_single_use_one_goes() {
    let (_dir, wallet) = opened();
    wallet.keep(&grant("once", Some("args"), 2000), NOW).unwrap();
    assert_eq!(take(&wallet, &Want { arguments: "other", ..HERE }), None);
    assert_eq!(take(&wallet, &HERE), Some("once".into()));
    assert_eq!(take(&wallet, &HERE), None);
    wallet.keep(&grant("many", None, 2000), NOW).unwrap();
    for _ in 0..3 {
        assert_eq!(take(&wallet, &Want { arguments: "other", ..HERE }), Some("many".into()));
    }
}

#[test]
fn a_grant_fits_its_resource_or_its_reference_its_key_and_its_time() {
    let (_dir, wallet) = opened();
    wallet.keep(&grant("many", None, 1001), NOW).unwrap();
    let alias = |reference: &str| Want {
        resource: "https://gw.example.test/mcp/alice",
        reference: Some(digest(reference)),
        ..HERE
    };
    assert_eq!(take(&wallet, &Want { reference: None, ..alias("") }), None);
    assert_eq!(take(&wallet, &alias("another")), None);
    assert_eq!(take(&wallet, &alias("reference")), Some("many".into()));
    let stranger = "https://evil.example.test";
    assert_eq!(take(&wallet, &Want { resource: stranger, ..alias("reference") }), None);
    assert_eq!(take(&wallet, &Want { authority: stranger, ..alias("reference") }), None);
    assert_eq!(take(&wallet, &Want { key: "another", ..HERE }), None);
    assert_eq!(take(&wallet, &HERE), Some("many".into()));
    assert!(wallet.grants(Timestamp(1001)).unwrap().is_empty());
    assert_eq!(take(&wallet, &HERE), None, "dead grants are removed");
}

#[test]
fn one_of_many_callers_gets_a_single_use_grant() {
    let (dir, wallet) = opened();
    wallet.keep(&grant("once", Some("args"), 2000), NOW).unwrap();
    let got: usize = std::thread::scope(|scope| {
        let one = || usize::from(take(&Wallet::open(dir.path()).unwrap(), &HERE).is_some());
        let threads: Vec<_> = (0..16).map(|_| scope.spawn(one)).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).sum()
    });
    assert_eq!(got, 1);
}

#[test]
fn receipts_stay() {
    let (_dir, wallet) = opened();
    let grant = grant("once", Some("args"), 1001);
    wallet.keep(&grant, NOW).unwrap();
    wallet.keep(&grant, Timestamp(1005)).unwrap();
    wallet.discard(&grant).unwrap();
    let receipts = wallet.receipts().unwrap();
    assert_eq!(receipts.len(), 1);
    assert_eq!((receipts[0].receipt.as_str(), receipts[0].kept), ("receipt of once", NOW));
}

// D-11
#[test]
fn a_spent_grant_is_for_answers_alone() {
    let (_dir, wallet) = opened();
    wallet.keep_spent(&grant("one", Some("args"), 2000)).unwrap();
    wallet.keep_spent(&grant("many", None, 2000)).unwrap();
    assert!(wallet.grants(NOW).unwrap().is_empty(), "it is none that can be used");
    assert_eq!(take(&wallet, &HERE), None, "a call anew is negotiated anew");
    let answer = Want { follows_up: true, ..HERE };
    assert_eq!(take(&wallet, &Want { arguments: "others", ..answer }), None);
    let answer = Want { follows_up: true, ..HERE };
    assert_eq!(take(&wallet, &answer).as_deref(), Some("one"));
    assert_eq!(take(&wallet, &answer), None, "and is got once");
    wallet.put(&grant("fresh", Some("args"), 2000)).unwrap();
    assert_eq!(take(&wallet, &answer), None, "a grant nobody spent answers nothing");
    wallet.put(&grant("reusable", None, 2000)).unwrap();
    assert_eq!(take(&wallet, &answer).as_deref(), Some("reusable"));
}
