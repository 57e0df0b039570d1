//! Her browser's session, and the single-use link that opens one (D-26).
//!
//! Link and cookie are drawn elsewhere and known here by their digests. A session ends by itself: when nobody uses it,
//! and for good after half a day.

use crate::ledger::{Author, Kind, Record};
use sayso_protocol::{OwnerName, Timestamp};
use serde_json::json;

/// How long a sign-in link is good for, in seconds.
pub const LINK_SECONDS: i64 = 300;
/// How long a session outlives its last use, in seconds.
pub const IDLE_SECONDS: i64 = 30 * 60;
/// How long a session lives at most, in seconds.
pub const SESSION_SECONDS: i64 = 12 * 3600;
/// How old the noted last use of a session may be before a new one is noted, in seconds.
pub const NOTE_SECONDS: i64 = 60;

/// One session of one owner.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Session {
    /// Whose.
    pub owner: OwnerName,
    /// What her record calls it; opens nothing.
    pub name: String,
    /// Who made the link it was opened with.
    pub link_by: Author,
    /// When it was opened.
    pub opened: Timestamp,
    /// When it was last used, within [`NOTE_SECONDS`].
    pub seen: Timestamp,
    /// When it ends whatever she does.
    pub expires: Timestamp,
}

impl Session {
    /// The session that a link of `link_by` opens.
    pub fn open(owner: OwnerName, name: &str, link_by: Author, now: Timestamp) -> Self {
        let expires = now.plus(SESSION_SECONDS);
        Self { owner, name: name.to_owned(), link_by, opened: now, seen: now, expires }
    }

    /// Whether it can still be used.
    pub fn is_live(&self, now: Timestamp) -> bool {
        now < self.expires && now.since(self.seen) < IDLE_SECONDS
    }

    /// Whether its use now is worth noting.
    pub fn is_worth_noting(&self, now: Timestamp) -> bool {
        now.since(self.seen) >= NOTE_SECONDS
    }

    /// Who acts when she acts in it.
    pub fn author(&self) -> Author {
        Author::Browser(self.name.clone())
    }

    /// The row of her record that says it was opened.
    pub fn record(&self) -> Record {
        let entry = json!({ "session": self.name, "link_by": self.link_by, "expires": self.expires });
        Record { kind: Kind::Connected, family: None, handle: None, author: self.author(), entry }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_ends_by_itself() {
        let now = Timestamp(1_790_000_000);
        let mut session = Session::open("alice".parse().unwrap(), "s", Author::Setup, now);
        assert!(session.is_live(now.plus(IDLE_SECONDS - 1)) && !session.is_live(now.plus(IDLE_SECONDS)));
        assert!(!session.is_worth_noting(now.plus(59)) && session.is_worth_noting(now.plus(60)));
        session.seen = now.plus(SESSION_SECONDS - 1);
        assert!(
            session.is_live(now.plus(SESSION_SECONDS - 1)) && !session.is_live(now.plus(SESSION_SECONDS))
        );
        assert_eq!(session.record().author, Author::Browser("s".into()));
    }
}
