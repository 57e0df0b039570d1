//! What a tool claims about its effects, and what that lets it be taken for (D-29).
//! It keeps one rule: a tool is a reader only when its server states all that makes it harmless, so whatever is missing,
//! or no boolean, makes it act. These are claims; what is decided of them is decided elsewhere.

use crate::json::Json;

/// The hints of a tool that are booleans; anything else was not said.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Annotations {
    /// `readOnlyHint`.
    pub read_only: Option<bool>,
    /// `destructiveHint`.
    pub destructive: Option<bool>,
    /// `idempotentHint`.
    pub idempotent: Option<bool>,
    /// `openWorldHint`.
    pub open_world: Option<bool>,
}

impl Annotations {
    /// Reads the member `annotations` of a tool.
    pub fn read(annotations: Option<&Json>) -> Self {
        let hint = |name: &str| annotations?.get(name)?.as_bool();
        Self {
            read_only: hint("readOnlyHint"),
            destructive: hint("destructiveHint"),
            idempotent: hint("idempotentHint"),
            open_world: hint("openWorldHint"),
        }
    }
}

/// What a tool is taken for at first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Class {
    /// It looks, in a closed world, and changes nothing.
    Read,
    /// It may do anything.
    Act,
}

impl Class {
    /// What a tool is taken for.
    pub fn of(annotations: &Annotations) -> Self {
        let harmless = annotations.read_only == Some(true)
            && annotations.open_world == Some(false)
            && annotations.destructive != Some(true);
        if harmless { Class::Read } else { Class::Act }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // D-29
    #[test]
    fn read_is_stated_and_everything_else_acts() {
        let said = [None, Some(false), Some(true)];
        let mut read = Vec::new();
        for read_only in said {
            for open_world in said {
                for destructive in said {
                    for idempotent in said {
                        let annotations = Annotations { read_only, destructive, idempotent, open_world };
                        if Class::of(&annotations) == Class::Read {
                            read.push((read_only, open_world, destructive));
                        }
                    }
                }
            }
        }
        read.dedup();
        assert_eq!(read, [(Some(true), Some(false), None), (Some(true), Some(false), Some(false))]);
    }
}
