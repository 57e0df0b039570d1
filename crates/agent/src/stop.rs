//! How a caller that waits no longer says so: the call ends at the next place where nothing is lost by it.
//! It keeps a ticket from being thrown away in the middle of its presentation, which dropping the call would do.

use tokio::sync::watch;

/// Says it.
pub struct Stopper(watch::Sender<bool>);

/// Hears it.
#[derive(Clone)]
pub struct Stop(watch::Receiver<bool>);

impl Stopper {
    /// One who can say it, and what hears it.
    #[must_use]
    pub fn new() -> (Stopper, Stop) {
        let (say, hear) = watch::channel(false);
        (Stopper(say), Stop(hear))
    }

    /// What hears it.
    #[must_use]
    pub fn heard(&self) -> Stop {
        Stop(self.0.subscribe())
    }

    /// Nobody waits any more.
    pub fn stop(&self) {
        self.0.send_replace(true);
    }
}

impl Stop {
    /// Whether it was said.
    #[must_use]
    pub fn is_said(&self) -> bool {
        *self.0.borrow()
    }

    /// Until it is said; for ever, if it never is.
    pub async fn said(&self) {
        let mut hear = self.0.clone();
        if hear.wait_for(|said| *said).await.is_err() {
            std::future::pending().await
        }
    }
}
