//! What it takes to undo a tool's effect: four classes, declared in configuration and nowhere else (FED-04).
//!
//! Absence is neither safe nor grave (FED-05), so it has no place in the order.

use std::fmt;
use std::str::FromStr;

/// A class, from most remedy left to least.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Consequence {
    /// It can be taken back.
    Reversible,
    /// It can be made good.
    Compensatable,
    /// It can only be carried to its end.
    ForwardRecoverable,
    /// It stands.
    Irreversible,
}

/// The text names no class.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not a consequence class")]
pub struct NotAClass;

impl Consequence {
    /// Every class, gravest last.
    pub const ALL: [Consequence; 4] = [
        Consequence::Reversible,
        Consequence::Compensatable,
        Consequence::ForwardRecoverable,
        Consequence::Irreversible,
    ];

    /// The name on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Consequence::Reversible => "reversible",
            Consequence::Compensatable => "compensatable",
            Consequence::ForwardRecoverable => "forward_recoverable",
            Consequence::Irreversible => "irreversible",
        }
    }
}

impl fmt::Display for Consequence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for Consequence {
    type Err = NotAClass;

    fn from_str(text: &str) -> Result<Self, NotAClass> {
        Consequence::ALL.into_iter().find(|class| class.as_str() == text).ok_or(NotAClass)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // FED-04
    #[test]
    fn there_are_four_classes_in_order_of_remedy() {
        for class in Consequence::ALL {
            assert_eq!(class.as_str().parse(), Ok(class));
        }
        assert!(Consequence::ALL.is_sorted());
        assert_eq!("severe".parse::<Consequence>(), Err(NotAClass));
    }
}
