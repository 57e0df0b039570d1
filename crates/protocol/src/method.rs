//! Every MCP method, by revision, and what UMA makes of it when a client sends it.
//! One table keeps D-6: open, protected, and everything else not served, so that a method a later revision
//! invents is closed until somebody decides. The table says nothing about a resource's own `open_methods`.

use std::fmt;
use std::str::FromStr;

use self::MethodKind::{Notification, Request};
use self::Revision::{V20250326, V20250618, V20251125, V20260728};
use self::Sender::{Client, Either, Server};
use self::UmaClass::{NotServed, Open, Protected};

/// A revision of MCP, older ones first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Revision {
    /// 2025-03-26: the revision of a peer that names none.
    V20250326,
    /// 2025-06-18.
    V20250618,
    /// 2025-11-25: the last with sessions.
    V20251125,
    /// 2026-07-28: the first without; metadata travels with each request.
    V20260728,
}

impl Revision {
    /// Every revision known here, older ones first.
    pub const ALL: [Revision; 4] = [V20250326, V20250618, V20251125, V20260728];

    /// The name on the wire.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            V20250326 => "2025-03-26",
            V20250618 => "2025-06-18",
            V20251125 => "2025-11-25",
            V20260728 => "2026-07-28",
        }
    }

    /// Whether each request carries its own metadata and routing headers, with no session behind it.
    #[must_use]
    pub fn is_modern(self) -> bool {
        self >= V20260728
    }
}

impl fmt::Display for Revision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The text names no revision known here.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("unknown protocol version")]
pub struct UnknownRevision;

impl FromStr for Revision {
    type Err = UnknownRevision;

    fn from_str(text: &str) -> Result<Self, UnknownRevision> {
        Revision::ALL.into_iter().find(|revision| revision.as_str() == text).ok_or(UnknownRevision)
    }
}

/// What UMA makes of a method (D-6).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UmaClass {
    /// Passes without a grant.
    Open,
    /// Needs a grant.
    Protected,
    /// Refused, unless the resource opens it by name.
    NotServed,
}

/// Whether a message with this method is answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MethodKind {
    /// Has an id and an answer.
    Request,
    /// Has neither.
    Notification,
}

/// Who may send a message with this method.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sender {
    /// The client.
    Client,
    /// The server.
    Server,
    /// Both.
    Either,
}

/// One row of the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Method {
    /// The name on the wire.
    pub name: &'static str,
    /// Request or notification.
    pub kind: MethodKind,
    /// Who may send it.
    pub sender: Sender,
    /// The first revision that has it.
    pub first: Revision,
    /// The last revision that has it; the newest known here when it was not removed.
    pub last: Revision,
    /// What UMA makes of it when a client sends it.
    pub uma: UmaClass,
    /// The member of `params` that the `Mcp-Name` header repeats.
    pub name_from: Option<&'static str>,
}

impl Method {
    /// Whether this revision has the method.
    #[must_use]
    pub fn is_in(&self, revision: Revision) -> bool {
        (self.first..=self.last).contains(&revision)
    }

    const fn row(
        name: &'static str,
        kind: MethodKind,
        sender: Sender,
        (first, last): (Revision, Revision),
        uma: UmaClass,
    ) -> Method {
        Method { name, kind, sender, first, last, uma, name_from: None }
    }

    const fn named_by(self, member: &'static str) -> Method {
        Method { name_from: Some(member), ..self }
    }
}

const ALWAYS: (Revision, Revision) = (V20250326, V20260728);
const SESSIONS: (Revision, Revision) = (V20250326, V20251125);
const TASKS: (Revision, Revision) = (V20251125, V20260728);
const TASKS_OLD: (Revision, Revision) = (V20251125, V20251125);
const MODERN: (Revision, Revision) = (V20260728, V20260728);

/// Every method of every known revision, the tasks extension included.
pub const METHODS: &[Method] = &[
    Method::row("initialize", Request, Client, SESSIONS, Open),
    Method::row("ping", Request, Either, SESSIONS, Open),
    Method::row("server/discover", Request, Client, MODERN, Open),
    Method::row("tools/list", Request, Client, ALWAYS, Open),
    Method::row("tools/call", Request, Client, ALWAYS, Protected).named_by("name"),
    Method::row("prompts/list", Request, Client, ALWAYS, Open),
    Method::row("prompts/get", Request, Client, ALWAYS, NotServed).named_by("name"),
    Method::row("resources/list", Request, Client, ALWAYS, Open),
    Method::row("resources/templates/list", Request, Client, ALWAYS, Open),
    Method::row("resources/read", Request, Client, ALWAYS, NotServed).named_by("uri"),
    Method::row("resources/subscribe", Request, Client, SESSIONS, NotServed).named_by("uri"),
    Method::row("resources/unsubscribe", Request, Client, SESSIONS, NotServed).named_by("uri"),
    Method::row("subscriptions/listen", Request, Client, MODERN, NotServed),
    Method::row("completion/complete", Request, Client, ALWAYS, NotServed),
    Method::row("logging/setLevel", Request, Client, SESSIONS, Open),
    Method::row("tasks/get", Request, Either, TASKS, NotServed).named_by("taskId"),
    Method::row("tasks/cancel", Request, Either, TASKS, NotServed).named_by("taskId"),
    Method::row("tasks/update", Request, Client, MODERN, NotServed).named_by("taskId"),
    Method::row("tasks/result", Request, Either, TASKS_OLD, NotServed),
    Method::row("tasks/list", Request, Either, TASKS_OLD, NotServed),
    Method::row("notifications/initialized", Notification, Client, SESSIONS, Open),
    Method::row("notifications/cancelled", Notification, Either, ALWAYS, Open),
    Method::row("notifications/progress", Notification, Either, ALWAYS, Open),
    Method::row("notifications/roots/list_changed", Notification, Client, SESSIONS, Open),
    Method::row("notifications/tasks/status", Notification, Either, TASKS_OLD, NotServed),
    Method::row("sampling/createMessage", Request, Server, SESSIONS, NotServed),
    Method::row("roots/list", Request, Server, SESSIONS, NotServed),
    Method::row("elicitation/create", Request, Server, (V20250618, V20251125), NotServed),
    Method::row("notifications/message", Notification, Server, ALWAYS, NotServed),
    Method::row("notifications/tools/list_changed", Notification, Server, ALWAYS, NotServed),
    Method::row("notifications/prompts/list_changed", Notification, Server, ALWAYS, NotServed),
    Method::row("notifications/resources/list_changed", Notification, Server, ALWAYS, NotServed),
    Method::row("notifications/resources/updated", Notification, Server, ALWAYS, NotServed),
    Method::row("notifications/elicitation/complete", Notification, Server, TASKS_OLD, NotServed),
    Method::row("notifications/subscriptions/acknowledged", Notification, Server, MODERN, NotServed),
    Method::row("notifications/tasks", Notification, Server, MODERN, NotServed),
];

/// The row of a method, if any known revision has it.
#[must_use]
pub fn lookup(name: &str) -> Option<&'static Method> {
    METHODS.iter().find(|method| method.name == name)
}

/// What UMA makes of a method when a client sends it; of an unknown one, that it is not served.
#[must_use]
pub fn uma_class(method: &str) -> UmaClass {
    lookup(method).map_or(NotServed, |row| row.uma)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn clients(class: UmaClass) -> Vec<&'static str> {
        METHODS.iter().filter(|row| row.uma == class).map(|row| row.name).collect()
    }

    // D-6: exactly these are open, exactly one is protected.
    #[test]
    fn the_open_and_protected_sets_are_exact() {
        let mut open = clients(Open);
        open.sort_unstable();
        let mut expected = [
            "initialize",
            "ping",
            "server/discover",
            "tools/list",
            "prompts/list",
            "resources/list",
            "resources/templates/list",
            "logging/setLevel",
            "notifications/initialized",
            "notifications/cancelled",
            "notifications/progress",
            "notifications/roots/list_changed",
        ];
        expected.sort_unstable();
        assert_eq!(open, expected);
        assert_eq!(clients(Protected), ["tools/call"]);
    }

    #[test]
    fn unknown_methods_and_other_spellings_are_not_served() {
        for method in ["tasks/teleport", "Tools/Call", "tools/call ", "tools/list/", "", "notifications/new"]
        {
            assert_eq!(uma_class(method), NotServed, "{method}");
        }
    }

    #[test]
    fn names_are_unique_and_rows_are_consistent() {
        for (index, row) in METHODS.iter().enumerate() {
            assert!(row.first <= row.last, "{}", row.name);
            assert_eq!(row.kind == Notification, row.name.starts_with("notifications/"), "{}", row.name);
            assert!(row.sender != Server || row.uma == NotServed, "{}", row.name);
            assert!(METHODS[..index].iter().all(|other| other.name != row.name), "{}", row.name);
        }
    }

    #[test]
    fn revisions_are_ordered_and_parsed_exactly() {
        assert!(Revision::ALL.is_sorted());
        for revision in Revision::ALL {
            assert_eq!(revision.as_str().parse(), Ok(revision));
        }
        assert_eq!("2026-07-28 ".parse::<Revision>(), Err(UnknownRevision));
        assert!(V20260728.is_modern() && !V20251125.is_modern());
        assert!(lookup("ping").is_some_and(|row| row.is_in(V20251125) && !row.is_in(V20260728)));
        assert!(lookup("server/discover").is_some_and(|row| !row.is_in(V20251125) && row.is_in(V20260728)));
    }
}
