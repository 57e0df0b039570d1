//! Who is connected, and who makes room when a listener is full: whoever has said nothing whole for longest, from where
//! most came.
//!
//! A source that has a quarter of the places gets another only while more than a quarter is free, so no single one keeps
//! the others out; nor do two, for where nobody is silent an answer that goes on is cut, of a source that has more than its
//! quarter. A line on which a request is being worked on is never taken.

use std::collections::{HashMap, VecDeque};
use std::net::{IpAddr, Ipv6Addr};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::Notify;
use tokio::time::Instant;

/// One part in so many is everybody's share, and as much is kept for those who have not had theirs.
const SHARE: usize = 4;
/// Entries of connections that have left which are not worth looking for.
const SLACK: usize = 64;

/// The connections of one listener.
#[derive(Clone)]
pub(crate) struct Crowd(Arc<Mutex<State>>);

struct State {
    most: usize,
    last: u64,
    lines: HashMap<u64, Arc<Line>>,
    by_source: HashMap<IpAddr, Queue>,
}

/// The connections from one source, in the order in which they may have to leave: by when each was last seen silent, so
/// that making room looks at few of them however many there are.
#[derive(Default)]
struct Queue {
    lines: usize,
    order: VecDeque<(Instant, u64)>,
}

/// One connection.
pub(crate) struct Line {
    pub(crate) from: IpAddr,
    source: IpAddr,
    /// Requests that are here in full and have no answer yet.
    working: AtomicUsize,
    /// Answers under way.
    telling: AtomicUsize,
    /// When something was last begun or ended on it.
    silent: Mutex<Instant>,
    /// Whether it has lost its place: nothing more is begun on it.
    lost: AtomicBool,
    leave: Notify,
}

/// A connection's place; given up when it is dropped.
pub(crate) struct Place {
    crowd: Crowd,
    number: u64,
    pub(crate) line: Arc<Line>,
}

/// A request that is being worked on.
pub(crate) struct Working(Arc<Line>);

/// An answer under way.
pub(crate) struct Telling(Arc<Line>);

/// What a line that makes room may be doing.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Doing {
    /// Nothing, or it has begun to say something.
    Nothing,
    /// Being told an answer.
    Listening,
}

impl Drop for Place {
    fn drop(&mut self) {
        self.crowd.state().remove(self.number);
    }
}

impl Drop for Working {
    fn drop(&mut self) {
        self.0.speak();
        self.0.working.fetch_sub(1, Ordering::AcqRel);
    }
}

impl Drop for Telling {
    fn drop(&mut self) {
        self.0.speak();
        self.0.telling.fetch_sub(1, Ordering::AcqRel);
    }
}

impl Line {
    fn new(from: IpAddr, now: Instant) -> Line {
        let (working, telling) = (AtomicUsize::new(0), AtomicUsize::new(0));
        let (silent, lost, leave) = (Mutex::new(now), AtomicBool::new(false), Notify::new());
        Line { from, source: source(from), working, telling, silent, lost, leave }
    }

    /// Something was said on it, or ended.
    pub(crate) fn speak(&self) {
        *self.silent.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
    }

    /// A request is here in full. It is not worked on where the line has lost its place: nobody would count it, and what it
    /// costs would be spent on an answer that is cut.
    pub(crate) fn work(self: &Arc<Self>) -> Option<Working> {
        self.working.fetch_add(1, Ordering::SeqCst);
        let working = Working(Arc::clone(self));
        (!self.lost.load(Ordering::SeqCst)).then_some(working)
    }

    /// Takes its place, unless a request is being worked on by now: of the two that look at each other one gives way.
    fn lose(&self) -> bool {
        self.lost.store(true, Ordering::SeqCst);
        let lost = self.working.load(Ordering::SeqCst) == 0;
        self.lost.store(lost, Ordering::SeqCst);
        lost
    }

    /// Its answer begins.
    pub(crate) fn tell(self: &Arc<Self>) -> Telling {
        self.telling.fetch_add(1, Ordering::AcqRel);
        Telling(Arc::clone(self))
    }

    pub(crate) fn is_working(&self) -> bool {
        self.working.load(Ordering::Acquire) > 0
    }

    fn may_leave(&self, doing: Doing) -> bool {
        let telling = self.telling.load(Ordering::Acquire) > 0;
        !self.is_working() && (doing == Doing::Listening || !telling)
    }

    /// Returns when somebody else is to have its place.
    pub(crate) async fn is_to_leave(&self) {
        self.leave.notified().await;
    }

    fn silent(&self) -> Instant {
        *self.silent.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Crowd {
    pub(crate) fn of(most: usize) -> Self {
        let (lines, by_source) = (HashMap::new(), HashMap::new());
        Self(Arc::new(Mutex::new(State { most, last: 0, lines, by_source })))
    }

    /// A place for somebody from there; none while all are taken by whoever may keep them.
    pub(crate) fn admit(&self, from: IpAddr) -> Option<Place> {
        let source = source(from);
        let mut state = self.state();
        let (share, had) = (state.most / SHARE, state.by_source.get(&source).map_or(0, |queue| queue.lines));
        let free = state.most.saturating_sub(state.lines.len());
        if had >= share.max(1) {
            if free <= share {
                state.clear(source, Doing::Nothing)?;
            }
        } else if free == 0 {
            state.clear_any()?;
        }
        let now = Instant::now();
        let (number, line) = (state.last, Arc::new(Line::new(from, now)));
        state.last = state.last.wrapping_add(1);
        state.lines.insert(number, Arc::clone(&line));
        let queue = state.by_source.entry(source).or_default();
        queue.lines = queue.lines.saturating_add(1);
        queue.order.push_back((now, number));
        drop(state);
        Some(Place { crowd: self.clone(), number, line })
    }

    /// Has one leave: the system has no more room.
    pub(crate) fn thin(&self) {
        self.state().clear_any();
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // INVARIANT: lines and their count are changed together, by steps that do not panic.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Makes room at the cost of whoever was silent longest, of the source with most or else of another; where nobody is
    /// silent, at the cost of the source with most, if that is more than its share.
    fn clear_any(&mut self) -> Option<()> {
        let (&largest, queue) = self.by_source.iter().max_by_key(|(_, queue)| queue.lines)?;
        let has_more = queue.lines > self.most / SHARE;
        let others: Vec<IpAddr> =
            self.by_source.keys().copied().filter(|source| *source != largest).collect();
        self.clear(largest, Doing::Nothing)
            .or_else(|| others.into_iter().find_map(|source| self.clear(source, Doing::Nothing)))
            .or_else(|| has_more.then(|| self.clear(largest, Doing::Listening)).flatten())
    }

    /// Makes room at the cost of whoever of this source was silent longest, of those who do no more than this.
    fn clear(&mut self, source: IpAddr, doing: Doing) -> Option<()> {
        let queue = self.by_source.get_mut(&source)?;
        // Each is looked at, and once more if it was not silent since it was put there.
        for _ in 0..queue.order.len().saturating_mul(2) {
            let (since, number) = queue.order.pop_front()?;
            let Some(line) = self.lines.get(&number) else { continue };
            if !line.may_leave(doing) {
                queue.order.push_back((Instant::now(), number));
            } else if line.silent() > since {
                queue.order.push_back((line.silent(), number));
            } else if !line.lose() {
                queue.order.push_back((Instant::now(), number));
            } else {
                line.leave.notify_one();
                self.remove(number);
                return Some(());
            }
        }
        None
    }

    fn remove(&mut self, number: u64) {
        let Some(line) = self.lines.remove(&number) else { return };
        let Some(queue) = self.by_source.get_mut(&line.source) else { return };
        queue.lines = queue.lines.saturating_sub(1);
        if queue.lines == 0 {
            self.by_source.remove(&line.source);
        } else if queue.order.len() > queue.lines.saturating_mul(2).saturating_add(SLACK) {
            // What has left is forgotten at the latest when it is more than what is there.
            let lines = &self.lines;
            queue.order.retain(|(_, number)| lines.contains_key(number));
        }
    }
}

/// An address; of the sixth version its network, since whoever has one address there has all of it.
fn source(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => IpAddr::V6(Ipv6Addr::from_bits(address.to_bits() >> 64 << 64)),
        v4 => v4,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn address(last: u8) -> IpAddr {
        IpAddr::from([192, 0, 2, last])
    }

    async fn is_told(place: &Place) -> bool {
        tokio::time::timeout(Duration::from_millis(1), place.line.is_to_leave()).await.is_ok()
    }

    #[tokio::test(start_paused = true)]
    async fn one_source_never_has_all_the_places() {
        let crowd = Crowd::of(8);
        let mut many = Vec::new();
        for _ in 0..8 {
            many.push(crowd.admit(address(1)).unwrap());
            tokio::time::advance(Duration::from_secs(1)).await;
        }
        // It had six; the seventh and eighth took the places of its own first ones.
        assert!(is_told(&many[0]).await && is_told(&many[1]).await && !is_told(&many[2]).await);
        let others: Vec<_> = (2..4).map(|last| crowd.admit(address(last)).unwrap()).collect();
        assert!(!is_told(&many[2]).await);
        // Full: the source with most makes room for one that has none.
        let newcomer = crowd.admit(address(9)).unwrap();
        assert!(is_told(&many[2]).await);
        // Whoever comes and goes leaves nothing behind.
        for _ in 0..1000 {
            drop(crowd.admit(address(9)));
        }
        assert!(crowd.state().by_source[&address(9)].order.len() <= 2 + SLACK + 1);
        drop((others, newcomer, many));
        assert!(crowd.state().lines.is_empty() && crowd.state().by_source.is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn where_a_request_is_worked_on_is_never_taken() {
        let crowd = Crowd::of(4);
        let places: Vec<_> = [1, 1, 1, 2].into_iter().filter_map(|from| crowd.admit(address(from))).collect();
        let busy: Vec<_> = places.iter().map(|place| place.line.work()).collect();
        assert!(places.len() == 4 && crowd.admit(address(9)).is_none());
        crowd.thin();
        drop(busy);
        tokio::time::advance(Duration::from_secs(1)).await;
        drop(places[0].line.work());
        assert!(crowd.admit(address(9)).is_some());
        assert!(places[1].line.work().is_none(), "what has lost its place begins nothing");
        assert!(!is_told(&places[0]).await, "it spoke last");
        assert!(is_told(&places[1]).await && !is_told(&places[3]).await);
    }

    #[tokio::test(start_paused = true)]
    async fn streams_of_whoever_has_more_than_a_share_make_room_and_no_others() {
        let crowd = Crowd::of(8);
        let (mut many, mut told) = (Vec::new(), Vec::new());
        for from in [1, 1, 1, 1, 1, 1, 2, 2] {
            let place = crowd.admit(address(from)).unwrap();
            told.push(place.line.tell());
            many.push(place);
            tokio::time::advance(Duration::from_secs(1)).await;
        }
        assert!(crowd.admit(address(1)).is_none(), "its own do not make room for its own");
        let (mut newcomers, mut working) = (Vec::new(), Vec::new());
        for last in 3..7 {
            let place = crowd.admit(address(last)).unwrap();
            working.push(place.line.work());
            newcomers.push(place);
        }
        for place in &many[..4] {
            assert!(is_told(place).await);
        }
        assert!(crowd.admit(address(9)).is_none(), "nobody has more than a share, and nobody is silent");
        drop(working);
        assert!(crowd.admit(address(9)).is_some() && !is_told(&many[4]).await && !is_told(&many[6]).await);
    }
}
