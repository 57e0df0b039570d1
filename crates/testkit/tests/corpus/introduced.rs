//! Seeds of introductions and their replies: the drafts' example as it is printed, and spellings that lead elsewhere.

use serde_json::json;

use super::Seed;

const EXAMPLE: &str = "{\n  \"owner\": \"alice\",\n  \"resource_uri\": \"https://rs.example/mcp/alice\",\n  \
                       \"name\": \"Meridian Vault\"\n}";
const RESOURCES: [&str; 10] = [
    "https://rs.example",
    "https://rs.example:8443/a/b/",
    "http://127.0.0.1:8441/mcp",
    "https://[2001:db8::1]/mcp",
    "https://xn--bcher-kva.example/x",
    "https://rs.example/a/../b",
    "https://rs.example/%2e%2e/b",
    "https://u:p@rs.example/x?y#z",
    "https:\\\\rs.example\\x",
    "https://0x7f000001/a",
];

pub(super) fn all() -> Vec<Seed> {
    let about = |resource: &&str| {
        json!({ "owner": "alice", "resource_uri": resource, "name": "<b>\u{202e}", "more": [1] }).to_string()
    };
    let reply = json!({ "client_id": "https://rs.example", "status": "pending", "error": "authorization_pending",
                        "error_description": "it waits" });
    let twice = r#"{"owner":"alice","owner":"bob","resource_uri":"https://h/x","name":"n"}"#;
    let whole = [EXAMPLE.to_owned(), reply.to_string(), twice.to_owned()];
    let inputs = whole.into_iter().chain(RESOURCES.iter().map(about));
    inputs.map(|input| ("introduction", input.into_bytes())).collect()
}
