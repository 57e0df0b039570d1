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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::Limits;
    use crate::message::{Message, parse};

    // MCP-20: the operation is `params.name` with `params.arguments`; absent arguments are the empty object.
    #[test]
    fn absent_arguments_are_the_empty_object() {
        let digest = |params: &str| {
            let body = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{params}}}"#);
            let Ok(Message::Request(request)) = parse(body.as_bytes(), Limits::default()) else {
                panic!("{params}")
            };
            let call = request.call().unwrap();
            Operation::of("x".parse().unwrap(), call.arguments()).unwrap().params_s256.to_string()
        };
        let empty = "s256:RBNvo1WzZ4oRRq0W9-hknpT7T8If536DEMBg9hyq_4o";
        assert_eq!(digest(r#"{"name":"x"}"#), empty);
        assert_eq!(digest(r#"{"name":"x","arguments":{},"_meta":{"progressToken":7}}"#), empty);
        assert_ne!(digest(r#"{"name":"x","arguments":{"a":null}}"#), empty);
    }
}
