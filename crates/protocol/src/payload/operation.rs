//! One act, not one kind of act: a tool and the digest of its arguments (CORE-80, MCP-20).

use crate::canon::{self, CanonError, S256};
use crate::id::ToolName;
use crate::json::Json;
use serde::{Deserialize, Serialize};

/// A tool call as a grant names it. Absent arguments are the empty object (O-13).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Operation {
    /// The tool.
    pub tool: ToolName,
    /// `s256` of the canonical form of the arguments.
    pub params_s256: S256,
}

impl Operation {
    /// The operation that calls `tool` with these arguments.
    ///
    /// # Errors
    /// When the arguments have no canonical form.
    pub fn of(tool: ToolName, arguments: &Json) -> Result<Self, CanonError> {
        Ok(Self { tool, params_s256: canon::s256(arguments)? })
    }
}
