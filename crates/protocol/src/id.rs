//! Names that cannot be confused with one another, and the clock's unit.
//!
//! Every identifier a peer sends becomes one of these at the edge: not empty, at most 512 bytes, no control
//! characters. What an identifier refers to is decided by the store, never by its spelling.

use serde::{Deserialize, Serialize};
use std::fmt;

/// Longest identifier accepted from a peer, in bytes.
pub const MAX_BYTES: usize = 512;

/// An identifier that is empty, too long, or holds control characters; or a scope that holds a space.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("identifier is empty, longer than {MAX_BYTES} bytes, or holds control characters")]
pub struct BadId;

macro_rules! name {
    ($(#[$doc:meta])* $name:ident $(without $banned:literal)?) => {
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(try_from = "String", into = "String")]
        pub struct $name(String);

        impl $name {
            /// Parses the identifier.
            ///
            /// # Errors
            /// When it is empty, too long, or holds what such a name may not.
            pub fn parse(text: impl Into<String>) -> Result<Self, BadId> {
                let text = text.into();
                let fits = !text.is_empty() && text.len() <= MAX_BYTES $(&& !text.contains($banned))?;
                if fits && !text.chars().any(char::is_control) { Ok(Self(text)) } else { Err(BadId) }
            }

            /// The identifier as it is written on the wire.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Debug::fmt(&self.0, f)
            }
        }

        impl TryFrom<String> for $name {
            type Error = BadId;
            fn try_from(text: String) -> Result<Self, BadId> {
                Self::parse(text)
            }
        }

        impl std::str::FromStr for $name {
            type Err = BadId;
            fn from_str(text: &str) -> Result<Self, BadId> {
                Self::parse(text)
            }
        }

        impl From<$name> for String {
            fn from(id: $name) -> String {
                id.0
            }
        }

        impl AsRef<str> for $name {
            fn as_ref(&self) -> &str {
                &self.0
            }
        }
    };
}

name! {
    /// A protected resource at its owner's authority, e.g. `alice-vault/execute_trade`.
    ResourceId
}
name! {
    /// One scope of a resource. Never holds a space: scopes travel space-separated (CORE-12).
    Scope without ' '
}
name! {
    /// An MCP tool's name, as `params.name` carries it.
    ToolName
}
name! {
    /// One negotiation, from its ticket to its end; the wire says `family`.
    NegotiationId
}
name! {
    /// The name of a connection: `jkt:` + thumbprint, or `sub@issuer` (CORE-45, CORE-49).
    Handle
}
name! {
    /// One immutable version of an owner's terms (TERMS-02).
    TemplateId
}
name! {
    /// An owner at an authority.
    OwnerName
}
name! {
    /// A resource server's registered client id: its origin (O-28).
    ClientId
}
name! {
    /// The realm of a challenge: a constant of the resource server, never a person's name (O-34).
    Realm
}
name! {
    /// A policy unit of one owner: the resources under one set of terms.
    UnitId
}

impl Scope {
    /// Splits a space-separated scope list.
    ///
    /// # Errors
    /// When a scope is too long or holds control characters.
    pub fn split(text: &str) -> Result<Vec<Scope>, BadId> {
        text.split(' ').filter(|part| !part.is_empty()).map(Scope::parse).collect()
    }

    /// Joins scopes with single spaces, the form of challenges and token requests.
    pub fn join(scopes: &[Scope]) -> String {
        scopes.iter().map(Scope::as_str).collect::<Vec<_>>().join(" ")
    }
}

impl Handle {
    /// The handle of a pseudonymous agent (CORE-45).
    pub fn pseudonymous(thumbprint: &crate::key::Thumbprint) -> Handle {
        Handle(format!("jkt:{thumbprint}"))
    }

    /// The handle of an identified agent: `sub@` + issuer without scheme and trailing slash, path kept;
    /// a subject that already ends so is its own handle (CORE-49).
    ///
    /// # Errors
    /// When the result is not a usable identifier.
    pub fn identified(subject: &str, issuer: &str) -> Result<Handle, BadId> {
        let bare = issuer.split_once("://").map_or(issuer, |(_, rest)| rest).trim_end_matches('/');
        let suffix = format!("@{bare}");
        Handle::parse(if subject.ends_with(&suffix) {
            subject.to_owned()
        } else {
            subject.to_owned() + &suffix
        })
    }
}

/// Seconds since the Unix epoch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Timestamp(pub i64);

impl Timestamp {
    /// This moment plus `seconds`, saturating.
    #[must_use]
    pub fn plus(self, seconds: i64) -> Timestamp {
        Timestamp(self.0.saturating_add(seconds))
    }

    /// Seconds from `earlier` to this moment, negative when it lies ahead.
    pub fn since(self, earlier: Timestamp) -> i64 {
        self.0.saturating_sub(earlier.0)
    }

    /// The moment as people write it, in UTC and to the second.
    #[must_use]
    pub fn utc(self) -> String {
        let (days, rest) = (self.0.div_euclid(86_400), self.0.rem_euclid(86_400));
        let (year, month, day) = civil(days);
        format!("{year:04}-{month:02}-{day:02} {:02}:{:02}:{:02}Z", rest / 3600, rest % 3600 / 60, rest % 60)
    }
}

/// The civil date of a day counted from 1970-01-01, in the proleptic Gregorian calendar.
fn civil(days: i64) -> (i64, i64, i64) {
    let shifted = days.saturating_add(719_468);
    let era = shifted.div_euclid(146_097);
    let of_era = shifted.rem_euclid(146_097);
    let year_of_era = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_index = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month_index + 2) / 5 + 1;
    let month = if month_index < 10 { month_index + 3 } else { month_index - 9 };
    (year_of_era + era * 400 + i64::from(month <= 2), month, day)
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn identifiers_are_bounded() {
        assert!(ResourceId::parse("alice-vault/execute_trade").is_ok());
        for bad in [String::new(), "a\u{0}b".into(), "x".repeat(MAX_BYTES + 1)] {
            assert_eq!(ResourceId::parse(bad), Err(BadId));
        }
    }

    #[test]
    fn moments_read_well() {
        assert_eq!(Timestamp(0).utc(), "1970-01-01 00:00:00Z");
        assert_eq!(Timestamp(1_796_039_055).utc(), "2026-11-30 11:44:15Z");
        assert_eq!(Timestamp(951_827_696).utc(), "2000-02-29 12:34:56Z");
        for far in [i64::MIN, i64::MAX] {
            assert!(Timestamp(far).utc().ends_with('Z'));
        }
    }

    // CORE-49
    #[test]
    fn identified_handles_keep_the_issuers_path() {
        for (sub, iss, want) in [
            ("bot", "https://idp.example/t1/", "bot@idp.example/t1"),
            ("bot", "https://idp.example/t2", "bot@idp.example/t2"),
            ("aauth:x@ps.example", "https://ps.example", "aauth:x@ps.example"),
            ("bot@idp.example", "https://idp.example/t1", "bot@idp.example@idp.example/t1"),
        ] {
            assert_eq!(Handle::identified(sub, iss).unwrap().as_str(), want);
        }
    }

    #[test]
    fn scopes_split_and_join() {
        let scopes = Scope::split("a:read  b:call").unwrap();
        assert_eq!(Scope::join(&scopes), "a:read b:call");
        assert_eq!(Scope::parse("a:read b:call"), Err(BadId), "one scope would travel as two");
    }
}
