//! Arguments that a tool's input schema asks the client to repeat in `Mcp-Param-*` headers.
//! It keeps D-10: a header of the known schema equals the argument it mirrors, so nobody can be steered by one
//! while the other is executed. Headers no schema names are left alone.

use http::HeaderMap;

use crate::canon;
use crate::json::Json;
use crate::method::Revision;

use super::routing::{decode_value, header};
use super::{MessageFault, Request};

/// One mirrored argument.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mirror {
    /// The whole header name, in lower case.
    pub header: String,
    /// Where the argument is: member names from `arguments` inward.
    pub path: Vec<String>,
}

/// An `x-mcp-header` that breaks MCP's rules; clients do not offer a tool that has one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("x-mcp-header that breaks the rules")]
pub struct NotMirrored;

/// Every mirrored argument of an input schema.
pub fn mirrors(schema: &Json) -> Result<Vec<Mirror>, NotMirrored> {
    let mut found = Vec::new();
    collect(schema, &mut Vec::new(), &mut found)?;
    let mut names: Vec<_> = found.iter().map(|mirror: &Mirror| &mirror.header).collect();
    names.sort_unstable();
    if names.windows(2).any(|pair| pair.first() == pair.last()) { Err(NotMirrored) } else { Ok(found) }
}

// INVARIANT: the recursion is bounded by the depth a parsed schema can have.
fn collect(schema: &Json, path: &mut Vec<String>, found: &mut Vec<Mirror>) -> Result<(), NotMirrored> {
    for (name, property) in schema.get("properties").and_then(Json::as_object).unwrap_or_default() {
        path.push(name.clone());
        if let Some(label) = property.get("x-mcp-header") {
            let label = label.as_str().filter(|label| is_token(label)).ok_or(NotMirrored)?;
            let primitive = property.get("type").and_then(Json::as_str);
            if !matches!(primitive, Some("string" | "integer" | "boolean")) {
                return Err(NotMirrored);
            }
            let header = format!("mcp-param-{}", label.to_ascii_lowercase());
            found.push(Mirror { header, path: path.clone() });
        }
        collect(property, path, found)?;
        path.pop();
    }
    Ok(())
}

fn is_token(label: &str) -> bool {
    !label.is_empty()
        && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte))
}

/// Holds the `Mcp-Param-*` headers of a call against its arguments. They are required from 2026-07-28 on and
/// compared wherever they are present.
pub fn reconcile_mirrors(
    headers: &HeaderMap,
    mirrors: &[Mirror],
    request: &Request,
    revision: Revision,
) -> Result<(), MessageFault> {
    let Some(call) = request.call() else { return Ok(()) };
    for mirror in mirrors {
        let argument = mirror.path.iter().try_fold(call.arguments(), |value, name| value.get(name));
        let argument = argument.filter(|value| **value != Json::Null);
        let value = header(headers, &mirror.header).map_err(|fault| fault.about(Some(&request.id)))?;
        let fault = match (argument, value) {
            (None, None) => continue,
            (Some(argument), Some(value))
                if decode_value(value).is_some_and(|value| says(argument, &value)) =>
            {
                continue;
            }
            (Some(_), None) if !revision.is_modern() => continue,
            (Some(_), None) => MessageFault::missing_header("a mirrored argument has no header"),
            _ => MessageFault::mismatch("Mcp-Param header differs from its argument"),
        };
        return Err(fault.about(Some(&request.id)));
    }
    Ok(())
}

fn says(argument: &Json, value: &str) -> bool {
    match argument {
        Json::String(text) => text == value,
        Json::Bool(truth) => value == if *truth { "true" } else { "false" },
        Json::Number(number) => {
            let text =
                if number.is_integer_text() { Ok(number.text().into()) } else { canon::number_text(number) };
            let number = text.ok().and_then(|text| text.parse::<i128>().ok());
            number.is_some() && value.parse().ok() == number
        }
        _ => false,
    }
}
