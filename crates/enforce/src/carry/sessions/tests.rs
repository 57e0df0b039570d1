//! How many sessions there are, and whose place they take.

use super::*;
use http::Method;

/// A server nobody says anything to.
struct Unheard;

#[async_trait]
impl Farewell for Unheard {
    async fn leave(&self, _theirs: HeaderValue) {}
}

fn sessions(capacity: usize) -> Sessions {
    Sessions::bounded(Arc::new(Unheard), capacity)
}

fn open(sessions: &Sessions) -> Option<Arc<Visit>> {
    sessions.has_room().then(|| sessions.open(&HeaderValue::from_static("theirs"), None).unwrap())
}

fn head(visit: &Visit) -> Head {
    let headers = http::HeaderMap::from_iter([(http::HeaderName::from_static(SESSION), visit.ours.clone())]);
    Head { method: Method::POST, target: "/mcp".parse().unwrap(), headers }
}

fn is_known(sessions: &Sessions, visit: &Visit) -> bool {
    matches!(sessions.find(&head(visit)), Found::Visit(_))
}

#[tokio::test]
async fn there_are_never_more_than_so_many() {
    let sessions = sessions(CAPACITY);
    for _ in 0..CAPACITY + 300 {
        assert!(open(&sessions).is_some());
    }
    assert_eq!(sessions.table().by_id.len(), CAPACITY);
}

#[tokio::test(start_paused = true)]
async fn the_one_that_was_silent_longest_makes_room_and_never_one_that_is_somebodys() {
    let sessions = sessions(3);
    let mut visits = Vec::new();
    for _ in 0..3 {
        visits.push(open(&sessions).unwrap());
        tokio::time::advance(Duration::from_secs(1)).await;
    }
    assert!(is_known(&sessions, &visits[0]));
    let next = open(&sessions).unwrap();
    assert!(is_known(&sessions, &visits[0]) && !is_known(&sessions, &visits[1]));
    assert!(is_known(&sessions, &visits[2]) && is_known(&sessions, &next));
    sessions.end(&next);
    assert!(!is_known(&sessions, &next));
}

fn key(seed: u8) -> sayso_protocol::VerifyingKey {
    sayso_protocol::SigningKey::from_seed(&[seed; 32]).unwrap().verifying().clone()
}

// D-14: what is spent for a call must have somewhere to go, whatever strangers do meanwhile.
#[tokio::test(start_paused = true)]
async fn a_session_in_which_a_call_is_being_decided_keeps_its_place() {
    let sessions = sessions(2);
    let (deciding, other) = (open(&sessions).unwrap(), open(&sessions).unwrap());
    let tie = deciding.session.tie(&key(1), "token").ok().unwrap();
    tokio::time::advance(Duration::from_secs(5)).await;
    assert!(is_known(&sessions, &other), "and was spoken in later");
    let next = open(&sessions).unwrap();
    assert!(is_known(&sessions, &deciding) && !is_known(&sessions, &other));
    // Bound, it keeps its place until it is stale.
    let _closing = tie.keep();
    drop(next.session.tie(&key(2), "token").ok().unwrap().keep());
    assert!(!sessions.has_room());
    tokio::time::advance(STALE).await;
    assert!(is_known(&sessions, &deciding));
    assert!(open(&sessions).is_some());
    assert!(is_known(&sessions, &deciding) && !is_known(&sessions, &next));
}

/// A server that takes its time, and counts.
#[derive(Default)]
struct Slow(std::sync::atomic::AtomicUsize);

#[async_trait]
impl Farewell for Slow {
    async fn leave(&self, _theirs: HeaderValue) {
        sleep(Duration::from_millis(100)).await;
        self.0.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
    }
}

#[tokio::test(start_paused = true)]
async fn a_server_is_told_of_every_end() {
    let slow = Arc::new(Slow::default());
    let sessions = Sessions::bounded(Arc::<Slow>::clone(&slow), 200);
    for _ in 0..200 {
        open(&sessions).unwrap();
    }
    tokio::time::advance(IDLE).await;
    assert!(open(&sessions).is_some());
    sleep(Duration::from_secs(30)).await;
    assert_eq!(slow.0.load(std::sync::atomic::Ordering::SeqCst), 200);
}

#[tokio::test(start_paused = true)]
async fn an_idle_session_is_forgotten() {
    let sessions = sessions(3);
    let (idle, busy) = (open(&sessions).unwrap(), open(&sessions).unwrap());
    tokio::time::advance(IDLE - Duration::from_secs(1)).await;
    assert!(is_known(&sessions, &busy));
    tokio::time::advance(Duration::from_secs(2)).await;
    assert!(!is_known(&sessions, &idle) && is_known(&sessions, &busy));
    tokio::time::advance(IDLE).await;
    assert!(open(&sessions).is_some());
    assert_eq!(sessions.table().by_id.len(), 1);
}

#[tokio::test]
async fn a_name_that_cannot_be_kept_opens_nothing() {
    let sessions = sessions(3);
    for name in [vec![b'x'; LONGEST + 1], b" ".to_vec(), vec![0xe9]] {
        assert!(sessions.open(&HeaderValue::from_bytes(&name).unwrap(), None).is_none());
    }
    assert!(sessions.table().by_id.is_empty());
}
