//! Hostile messages where a policy alone is asked, and a transport that shows no token: nobody is asked about them, and
//! nobody behind a host gets them.

use super::authority::Stub;
use super::hostile::{is_said, request, vectors};
use super::policy::Scripted;
use super::standing::{self, reading};
use super::vectors::{STAGE, Stage, policed};
use super::{Host, pipe};
use sayso_enforce::Authority;
use sayso_protocol::payload::edition::Edition;
use std::sync::Arc;

// MSG-01, MSG-02, MSG-03, MSG-04, MSG-05, MSG-07, MSG-11, MSG-12, MSG-13, MSG-17
#[tokio::test]
async fn a_hostile_message_reaches_neither_a_policy_nor_a_server() {
    let policy = Scripted::alone("yes");
    let stage = Stage { enforcement: policy.enforcement(), ..STAGE };
    let authority = Stub::granting(&reading());
    let hosts = standing::all(&stage, &(Arc::clone(&authority) as Arc<dyn Authority>)).await;
    let mut tried = 0;
    for (name, vector) in vectors().iter().filter(|(_, vector)| !vector["expect"]["fault"].is_null()) {
        let mut hostile = request(&vector["input"]);
        if hostile.headers().get("authorization").is_none() {
            standing::with(&mut hostile, "authorization", "Bearer ann");
        }
        for host in &hosts {
            let what = format!("{name} at {}", host.name);
            let answer = host.send(hostile.clone()).await;
            assert!(is_said(&answer, &vector["expect"]["fault"]), "{what}: {answer:?}");
            assert_eq!((host.reached(), policy.asked()), (0, 0), "{what}");
        }
        tried += 1;
    }
    assert!(tried > 120, "only {tried} hostile messages were found");
    for (lines, status, word) in [
        (vec![("content-encoding", "gzip")], 415, "unsupported_media_type"),
        (vec![("content-length", "9000")], 413, "request_body_too_large"),
    ] {
        let mut coded = standing::call("get_positions", "{}", "");
        standing::with(&mut coded, "authorization", "Bearer ann");
        lines.iter().for_each(|(name, value)| standing::with(&mut coded, name, value));
        for host in hosts.iter().filter(|host| status == 415 || host.is_asked()) {
            let answer = host.send(coded.clone()).await;
            assert_eq!((answer.status, answer.error()), (status, word.into()), "{word} at {}", host.name);
            assert_eq!((host.reached(), policy.asked()), (0, 0), "{word} at {}", host.name);
        }
    }
    let mut large = standing::call("get_positions", &format!(r#"{{"x":"{}"}}"#, "x".repeat(1 << 20)), "");
    standing::with(&mut large, "authorization", "Bearer ann");
    for host in &hosts {
        let answer = host.send(large.clone()).await;
        assert_eq!((answer.status, answer.error()), (413, "request_body_too_large".into()), "{}", host.name);
        assert_eq!((host.reached(), policy.asked()), (0, 0), "{}", host.name);
    }
    // The control: the same hosts, and nothing wrong with the message.
    for host in &hosts {
        let mut honest = standing::call("get_positions", "{}", "");
        standing::with(&mut honest, "authorization", "Bearer ann");
        host.send(honest).await;
        assert_eq!((host.reached(), policy.asked()), (1, 1), "{}", host.name);
    }
    assert_eq!(authority.asked(), Vec::<String>::new(), "there is no owner to ask");
}

// TOK-09: a pipe shows no token, so what a policy decides about is refused there and nobody is asked.
#[tokio::test]
async fn over_a_pipe_nobody_has_a_token() {
    let permitted = policed().into_iter().filter(|vector| vector.passes() && pipe::modern_request(vector));
    let mut tried = 0;
    for vector in permitted {
        let told = pipe::Pipe.judge(&vector, Edition::default(), Stub::of(&vector)).await;
        assert_eq!(told.reached, 0, "{}", vector.name);
        assert_eq!(
            (&told.verdict["kind"], &told.verdict["error"]),
            (&"refuse".into(), &"invalid_token".into())
        );
        assert_eq!(vector.policy.as_ref().unwrap().asked(), 0, "{}", vector.name);
        tried += 1;
    }
    assert!(tried >= 2, "{tried}");
}
