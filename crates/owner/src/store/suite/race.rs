//! Races: callers that start together on threads of their own, and a way to wait for a future without a runtime.

use std::future::Future;
use std::pin::pin;
use std::sync::{Arc, Barrier};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};

/// Callers of a race for one artifact.
pub(crate) const CALLERS: usize = 32;
/// How often such a race is run.
pub(crate) const ROUNDS: usize = 4;
/// How often a race of two intents is run.
pub(crate) const PAIRS: usize = 12;

struct Parked(Thread);

impl Wake for Parked {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// Waits for a future on this thread.
pub fn wait<F: Future>(future: F) -> F::Output {
    let mut future = pin!(future);
    let waker = Waker::from(Arc::new(Parked(thread::current())));
    let mut context = Context::from_waker(&waker);
    loop {
        match future.as_mut().poll(&mut context) {
            Poll::Ready(output) => return output,
            Poll::Pending => thread::park(),
        }
    }
}

/// Runs `each` on as many threads as there are callers, all released at once.
pub(crate) fn race<T: Send>(callers: usize, each: impl Fn(usize) -> T + Sync) -> Vec<T> {
    let barrier = Barrier::new(callers);
    let run = |caller| {
        barrier.wait();
        each(caller)
    };
    thread::scope(|scope| {
        let running: Vec<_> = (0..callers).map(|caller| scope.spawn(move || run(caller))).collect();
        running.into_iter().map(|thread| thread.join().expect("a caller panicked")).collect()
    })
}

/// Runs two calls at once.
pub(crate) fn both<A: Send, B: Send>(
    left: impl FnOnce() -> A + Send,
    right: impl FnOnce() -> B + Send,
) -> (A, B) {
    let barrier = Barrier::new(2);
    thread::scope(|scope| {
        let left = scope.spawn(|| {
            barrier.wait();
            left()
        });
        barrier.wait();
        let right = right();
        (left.join().expect("a caller panicked"), right)
    })
}
