//! What an introduction makes this authority reach: what is written, where it is written, and no place of its own network.

use super::*;

// FED-22: what is fetched is what is written, at the origin that is written.
#[tokio::test(flavor = "multi_thread")]
async fn a_resource_that_could_be_read_in_two_ways_is_not_fetched() {
    let house = House::new().await;
    let server = newcomer(&house).await;
    let before = house.dump();
    for path in ["/mcp/../mcp", "/x/%2e%2e/mcp", "/mcp%2f", "//mcp", "/mcp?x=1", "/mcp#x", "/./mcp", "\\mcp"]
    {
        let sent = unsigned("alice", &format!("{}{path}", server.origin));
        assert_eq!(house.send(house.sign(sent, &server.key)).await.status, 401, "{path}");
    }
    assert_eq!(server.read(), 0);
    assert_eq!(house.dump(), before);
}

// FED-50, D-41, D-42
#[tokio::test(flavor = "multi_thread")]
async fn no_stranger_makes_a_public_authority_ask_its_own_network() {
    let house = House::reaching(Reach::Public, |_| {}).await;
    let server = newcomer(&house).await;
    let before = house.dump();
    let elsewhere = [
        "http://rs.example.test/a",
        "https://127.0.0.1/a",
        "https://[::1]/a",
        "https://[::ffff:7f00:1]/a",
        "https://[64:ff9b::7f00:1]/a",
        "https://169.254.169.254/latest",
        "https://10.0.0.1/a",
        "https://100.64.0.1/a",
        "https://0.0.0.0/a",
        "https://[fe80::1]/a",
        "https://[fd00::1]/a",
        "https://192.0.2.1/a",
        "https://localhost/a",
        "https://rs.example.test:22/a",
        "https://user:pw@rs.example.test/a",
        "file:///etc/passwd",
    ];
    let expected = house.send(house.sign(unsigned("alice", &server.resource()), &server.key)).await;
    assert_eq!(expected.refusal(), (401, "invalid_client".into()));
    for url in elsewhere {
        let answer = house.send(house.sign(unsigned("alice", url), &server.key)).await;
        assert_eq!((answer.status, answer.text()), (401, expected.text()), "{url}");
    }
    assert_eq!(server.read(), 0);
    assert_eq!(house.dump(), before);
}

// D-41: what introduced itself is asked through the strangers' door for ever after.
#[tokio::test(flavor = "multi_thread")]
async fn her_approval_does_not_widen_what_is_reached() {
    let house = House::reaching(Reach::Public, |_| {}).await;
    let server = newcomer(&house).await;
    let db = rusqlite::Connection::open(house.database()).unwrap();
    db.execute(
        "INSERT INTO resource_servers (owner, client_id, name, resource_uri, status, auth_method, registered_at,
                                       introduced_by) VALUES ('alice', ?1, 'x', ?2, 'active', 'signature', 0, 'itself')",
        [&server.origin, &server.resource()],
    )
    .unwrap();
    assert!(house.authority.pull(&house.alice.name, &server.origin.parse().unwrap()).await.is_err());
    assert_eq!(ask_token(&house, &server, "alice").await.status, 401);
    assert_eq!(server.read(), 0);
}
