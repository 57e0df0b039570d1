//! How many sessions there are, and whose place they take.

use super::super::source::Source;
use super::*;
use crate::bearer::Holder;
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
    open_from(sessions, Source::default())
}

fn open_from(sessions: &Sessions, source: Source) -> Option<Arc<Visit>> {
    open_for(sessions, &from(source))
}

fn open_for(sessions: &Sessions, who: &Who) -> Option<Arc<Visit>> {
    let place = sessions.place(who.clone())?;
    Some(sessions.open(&HeaderValue::from_static("theirs"), place).unwrap())
}

fn from(source: Source) -> Who {
    Who { source, holder: None }
}

/// Whoever holds tokens of this subject, from there.
fn by(name: &str, last: u8) -> Who {
    let claims = format!(r#"{{"iss":"https://idp.example.test","sub":"{name}"}}"#);
    let claims = sayso_protocol::Json::parse(claims.as_bytes(), sayso_protocol::json::Limits::default());
    Who { source: source(last), holder: Holder::of(&claims.unwrap(), "sub") }
}

fn source(last: u8) -> Source {
    Source::from(std::net::IpAddr::from([192, 0, 2, last]))
}

fn known(sessions: &Sessions) -> usize {
    sessions.0.table().by_id.len()
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
    for nth in 0..CAPACITY + 300 {
        assert!(open_from(&sessions, source(u8::try_from(nth % 8).unwrap())).is_some());
    }
    assert_eq!(known(&sessions), CAPACITY);
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
    assert!(sessions.place(Who::default()).is_none());
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
    for nth in 0..200 {
        open_from(&sessions, source(nth % 8)).unwrap();
    }
    tokio::time::advance(IDLE).await;
    assert!(open(&sessions).is_some());
    sleep(SWEEP + Duration::from_secs(30)).await;
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
    sleep(SWEEP).await;
    assert!(open(&sessions).is_some());
    assert_eq!(known(&sessions), 1);
}

#[tokio::test]
async fn a_name_that_cannot_be_kept_opens_nothing() {
    let sessions = sessions(3);
    for name in [vec![b'x'; LONGEST + 1], b" ".to_vec(), vec![0xe9]] {
        let place = sessions.place(Who::default()).unwrap();
        assert!(sessions.open(&HeaderValue::from_bytes(&name).unwrap(), place).is_none());
    }
    assert_eq!(known(&sessions), 0);
    // Their places were given back.
    assert!((0..3).all(|_| open(&sessions).is_some()));
}

// D-13: whoever opens as many as there are, and a call in each of them, leaves a quarter to others.
#[tokio::test(start_paused = true)]
async fn no_single_source_has_every_place() {
    let sessions = sessions(32);
    for nth in 0..60 {
        let visit = open_from(&sessions, source(1));
        let bound = visit.map(|visit| drop(visit.session.tie(&key(1), "token").ok().unwrap().keep()));
        assert_eq!(bound.is_some(), nth < 24, "{nth}");
    }
    let guests: Vec<_> = (2..10).map(|last| open_from(&sessions, source(last)).unwrap()).collect();
    assert!(guests.iter().all(|guest| is_known(&sessions, guest)));
    assert_eq!(known(&sessions), 32);
    // Full: sessions that are somebody's keep their places for a while, and one that is nobody's makes room.
    tokio::time::advance(Duration::from_secs(1)).await;
    assert!(open_from(&sessions, source(1)).is_none(), "it has more than its share");
    let last = open_from(&sessions, source(77)).unwrap();
    assert!(is_known(&sessions, &last));
    assert_eq!(guests.iter().filter(|guest| is_known(&sessions, guest)).count(), 7);
}

// D-13: a server that is slow to answer a first word keeps no more places than that.
#[tokio::test]
async fn a_place_that_is_waited_for_counts_and_is_given_back() {
    let sessions = sessions(32);
    let mut asked: Vec<_> = (0..60).filter_map(|_| sessions.place(from(source(1)))).collect();
    assert_eq!(asked.len(), 24);
    assert!(open_from(&sessions, source(2)).is_some());
    assert!(sessions.place(from(source(1))).is_none());
    drop((asked.pop(), asked.pop()));
    assert!(sessions.place(from(source(1))).is_some());
    drop(asked);
    assert_eq!(
        (0..60).filter(|_| open_from(&sessions, source(1)).is_some()).count(),
        60,
        "its own make room"
    );
    assert_eq!(known(&sessions), 24);
}

// D-13, COAZ-MCP-87: where every session is somebody's from its first word, nobody keeps others out with one token.
#[tokio::test(start_paused = true)]
async fn no_single_holder_has_every_place() {
    let sessions = sessions(32);
    let mut eves = Vec::new();
    for nth in 0..60_u8 {
        eves.push(open_for(&sessions, &by("eve", nth % 5)).unwrap());
        tokio::time::advance(Duration::from_secs(1)).await;
    }
    let hers = |eves: &[Arc<Visit>]| eves.iter().filter(|visit| is_known(&sessions, visit)).count();
    assert_eq!((known(&sessions), hers(&eves[36..])), (24, 24), "her own make room, from wherever she comes");
    let guest = |nth: u8| open_for(&sessions, &by(&format!("guest {nth}"), 100 + nth % 9));
    let mut guests: Vec<_> = (0..31).map(|nth| guest(nth).unwrap()).collect();
    assert_eq!((known(&sessions), hers(&eves)), (32, 1), "whoever has most makes room for whoever has none");
    assert!(guests.iter().all(|guest| is_known(&sessions, guest)));
    // One each, and something was said in all of them of late: that is all there is.
    assert!(guest(77).is_none() && open_for(&sessions, &by("eve", 1)).is_none());
    tokio::time::advance(STALE).await;
    guests.iter().skip(1).for_each(|guest| assert!(is_known(&sessions, guest)));
    assert!(guest(78).is_some() && !is_known(&sessions, &guests.remove(0)));
}

// D-13: whoever shares an address with her finds a place too.
#[tokio::test(start_paused = true)]
async fn a_holder_leaves_room_in_a_source_that_many_share() {
    let sessions = sessions(32);
    let mut asked: Vec<_> = (0..60).filter_map(|_| sessions.place(by("eve", 1))).collect();
    assert_eq!(asked.len(), 24, "what is waited for counts");
    assert!(sessions.place(by("ann", 1)).is_none() && sessions.place(by("ann", 2)).is_some());
    asked.clear();
    let eves: Vec<_> = (0..60).map(|_| open_for(&sessions, &by("eve", 1)).unwrap()).collect();
    for name in ["ann", "bob", "ann"] {
        let theirs = open_for(&sessions, &by(name, 1)).unwrap();
        assert!(is_known(&sessions, &theirs));
    }
    assert_eq!(eves.iter().filter(|visit| is_known(&sessions, visit)).count(), 21);
    assert_eq!(known(&sessions), 24);
}

/// A server whose sessions are dear.
struct Dear;

#[async_trait]
impl Farewell for Dear {
    async fn leave(&self, _theirs: HeaderValue) {}

    fn patience(&self) -> Duration {
        Duration::from_secs(600)
    }
}

// D-31: nobody has to come for a child of nobody's to be ended.
#[tokio::test(start_paused = true)]
async fn what_is_nobodys_and_dear_ends_by_itself() {
    let sessions = Sessions::bounded(Arc::new(Dear), 32);
    let (stray, own) = (open(&sessions).unwrap(), open(&sessions).unwrap());
    drop(own.session.tie(&key(1), "token").ok().unwrap().keep());
    sleep(Duration::from_secs(590)).await;
    assert_eq!(known(&sessions), 2);
    sleep(Duration::from_secs(80)).await;
    assert_eq!(known(&sessions), 1);
    assert!(!is_known(&sessions, &stray) && is_known(&sessions, &own));
    sleep(IDLE + SWEEP).await;
    assert_eq!(known(&sessions), 0);
    // And whoever looks through them begins anew with the next.
    open(&sessions).unwrap();
    sleep(Duration::from_secs(700)).await;
    assert_eq!(known(&sessions), 0);
}
