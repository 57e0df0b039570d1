//! Who the subject is and which server this is, both from the validated token (binding 3.1, 7 and 8).

use sayso_protocol::Json;

use crate::authzen::Entity;
use crate::defaults::IDENTITY;
use crate::fault::{Fault, Why};
use crate::mapping::SubjectTemplate;
use crate::template::{Text, evaluate, text_of};

use super::{Notice, Resolver, Warning, computed_entity};

/// The subject-identity claim of one token, and its value.
pub(super) struct Anchor<'a> {
    claim: &'a str,
    value: &'a str,
}

impl<'a> Anchor<'a> {
    /// Reads the claim; a token without it authorizes nothing, whatever the mapping says.
    pub(super) fn of(token: &'a Json, claim: &'a str) -> Result<Anchor<'a>, Fault> {
        let value = token.get(claim).and_then(Json::as_str).filter(|value| !value.is_empty());
        let value = value.ok_or_else(|| Why::NoSubject.at("subject.id"))?;
        Ok(Anchor { claim, value })
    }

    /// Checks a resolved id that was said to be the claim, byte for byte.
    fn verify(&self, id: String) -> Result<String, Fault> {
        if id == self.value { Ok(id) } else { Err(Why::Subject.at("")) }
    }
}

impl Resolver<'_> {
    /// The subject of every decision of the request.
    pub(super) fn subject(&mut self, template: Option<&SubjectTemplate>) -> Result<Entity, Fault> {
        let subject = match template {
            None => {
                Ok(Entity { kind: IDENTITY.to_owned(), id: self.anchor.value.to_owned(), properties: None })
            }
            Some(SubjectTemplate::Whole(expression)) => {
                let told = self.elsewhere(expression.is_of_token(), "subject");
                told.and_then(|()| evaluate(expression, &mut self.evaluator)).and_then(computed_entity)
            }
            Some(SubjectTemplate::Members { kind, id, properties }) => {
                let kind = match kind {
                    None => Ok(IDENTITY.to_owned()),
                    Some(kind) => kind.resolve(&mut self.evaluator).map_err(|fault| fault.inside("type")),
                };
                kind.and_then(|kind| {
                    let id = self.subject_id(id.as_ref()).map_err(|fault| fault.inside("id"))?;
                    Ok(Entity { kind, id, properties: self.object(properties.as_ref(), "properties")? })
                })
            }
        };
        subject.map_err(|fault| fault.inside("subject"))
    }

    fn subject_id(&mut self, template: Option<&Text>) -> Result<String, Fault> {
        let Some(template) = template else { return Ok(self.anchor.value.to_owned()) };
        let expression = template.expression();
        let claim = expression.and_then(crate::expr::Expression::claim);
        if claim == Some(self.anchor.claim) {
            let id = template.resolve(&mut self.evaluator)?;
            return self.anchor.verify(id);
        }
        // Where another claim is designated, `$token.sub` as the subject means that claim.
        if claim == Some("sub") {
            return Ok(self.anchor.value.to_owned());
        }
        self.elsewhere(expression.is_some_and(crate::expr::Expression::is_of_token), "subject.id")?;
        template.resolve(&mut self.evaluator)
    }

    /// The subject comes from somewhere that cannot be verified.
    fn elsewhere(&mut self, of_token: bool, place: &str) -> Result<(), Fault> {
        if self.strict {
            return Err(Why::Unanchored.at(""));
        }
        let notice = if of_token { Notice::SubjectFromToken } else { Notice::SubjectUnverified };
        self.warnings.push(Warning { place: place.to_owned(), notice });
        Ok(())
    }
}

/// The one string that names this server. A configured identifier must be among the audiences, and is sent as it is
/// configured; without one there must be exactly one audience.
pub(super) fn server(configured: Option<&str>, token: &Json) -> Result<String, Fault> {
    let fault = || Why::Audience.at("resource.id");
    let mut audiences: Vec<&str> = match token.get("aud") {
        Some(Json::String(one)) => vec![one],
        Some(Json::Array(several)) => {
            several.iter().map(Json::as_str).collect::<Option<_>>().ok_or_else(fault)?
        }
        _ => return Err(fault()),
    };
    audiences.sort_unstable();
    audiences.dedup();
    let only = match (configured, audiences.as_slice()) {
        (Some(own), several) => several.iter().any(|it| same(own, it)).then_some(own),
        (None, [only]) => Some(*only),
        (None, _) => None,
    };
    text_of(only.map(|only| Json::String(only.to_owned()))).map_err(|_| fault())
}

/// Equal but for the letter case of scheme and host, which has no meaning (RFC 3986 section 6.2.2.1).
fn same(one: &str, other: &str) -> bool {
    let split = |uri: &str| {
        let authority = uri.find("://").map_or(0, |at| at + 3);
        uri.get(authority..)
            .and_then(|rest| rest.find(['/', '?', '#']))
            .map_or(uri.len(), |at| authority + at)
    };
    let (at, other_at) = (split(one), split(other));
    let head = |uri: &str, at: usize| uri.get(..at).unwrap_or_default().to_ascii_lowercase();
    head(one, at) == head(other, other_at) && one.get(at..) == other.get(other_at..)
}

#[cfg(test)]
mod tests {
    use super::*;

    // COAZ-MCP-55, COAZ-MCP-72, COAZ-MCP-84, SUB-02: the resolved value is compared, whatever the tree promised.
    #[test]
    fn an_anchored_id_that_resolves_to_another_is_refused() {
        let token = Json::Object(vec![("sub".into(), Json::String("u-ann".into()))]);
        let anchor = Anchor::of(&token, "sub").unwrap();
        assert_eq!(anchor.verify("u-ann".into()), Ok("u-ann".into()));
        for other in ["u-bob", "U-ann", "u-ann ", "u-\u{430}nn", ""] {
            assert_eq!(anchor.verify(other.into()).unwrap_err().why, Why::Subject, "{other}");
        }
    }

    #[test]
    fn identifiers_differ_by_case_only_where_it_means_something() {
        assert!(same("https://mcp.test/mcp", "HTTPS://MCP.TEST/mcp"));
        assert!(!same("https://mcp.test/mcp", "https://mcp.test/MCP"));
        assert!(!same("https://mcp.test/mcp", "https://mcp.test/mcp/"));
        assert!(!same("https://mcp.test", "https://mcp.test.evil"));
    }
}
