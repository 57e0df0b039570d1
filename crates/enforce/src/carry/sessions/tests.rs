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
    sessions.has_room().then(|| sessions.open(&HeaderValue::from_static("theirs")).unwrap())
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
        assert!(sessions.open(&HeaderValue::from_bytes(&name).unwrap()).is_none());
    }
    assert!(sessions.table().by_id.is_empty());
}
