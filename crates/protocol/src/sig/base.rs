//! The signature base of RFC 9421 (BASE-10): one line a covered component, in the order listed.
//!
//! Values are those of the request as received: nothing is decoded, sorted or repaired. Which components must be
//! there is not decided here.

use super::{Facts, SigFault};
use http::HeaderName;
use std::borrow::Cow;

/// Bytes that the covered components of a call take but for an unusual one.
const ROOM: usize = 2048;

/// Where component values come from.
pub(super) struct Request<'a> {
    pub(super) facts: &'a Facts<'a>,
    /// The digest about to be sent, in place of the header's.
    pub(super) content_digest: Option<&'a str>,
    /// Whether `@path` carries the query as well (O-21).
    pub(super) query_in_path: bool,
}

/// The text that is signed. `params` is the value of `@signature-params`, verbatim (CORE-60).
pub(super) fn signature_base(
    covered: &[String],
    params: &str,
    request: &Request<'_>,
) -> Result<String, SigFault> {
    let mut base = String::with_capacity(ROOM + params.len());
    for name in covered {
        let value = request.value(name)?;
        // INVARIANT: no value holds a line break, or one component could pose as several.
        if !is_visible(&value) {
            return Err(SigFault::Malformed);
        }
        base.extend(["\"", name, "\": ", &value, "\n"]);
    }
    base.extend(["\"@signature-params\": ", params]);
    Ok(base)
}

/// Looks at every byte, so that the compiler may look at many at a time: a token is a thousand of them.
fn is_visible(value: &str) -> bool {
    value.bytes().fold(true, |so_far, byte| so_far & (byte == b'\t' || (b' '..=b'~').contains(&byte)))
}

impl Request<'_> {
    fn value(&self, component: &str) -> Result<Cow<'_, str>, SigFault> {
        let Facts { method, scheme, authority, .. } = *self.facts;
        match component {
            "@method" => Ok(method.into()),
            "@authority" => Ok(authority.into()),
            "@scheme" => Ok(scheme.into()),
            "@path" if self.query_in_path => Ok(self.target().into()),
            "@path" => Ok(self.path().into()),
            // RFC 9421 section 2.2.7: an absent query is a lone question mark.
            "@query" => Ok(format!("?{}", self.facts.query.unwrap_or_default()).into()),
            "@request-target" => Ok(self.target().into()),
            "@target-uri" => Ok(format!("{scheme}://{authority}{}", self.target()).into()),
            "content-digest" if self.content_digest.is_some() => {
                Ok(self.content_digest.unwrap_or_default().into())
            }
            field => self.field(field),
        }
    }

    fn path(&self) -> &str {
        if self.facts.path.is_empty() { "/" } else { self.facts.path }
    }

    fn target(&self) -> String {
        let query = self.facts.query.map(|query| format!("?{query}"));
        self.path().to_owned() + query.as_deref().unwrap_or_default()
    }

    /// The lines of a field, trimmed and joined as RFC 9421 section 2.1 has it.
    fn field(&self, component: &str) -> Result<Cow<'_, str>, SigFault> {
        // Only lower-case names are components, though fields compare without regard to case.
        let name =
            HeaderName::from_lowercase(component.as_bytes()).map_err(|_| SigFault::UnknownComponent)?;
        let lines = self.facts.headers.get_all(&name).iter();
        let lines = lines
            .map(|line| line.to_str().map(|text| text.trim_matches([' ', '\t'])))
            .collect::<Result<Vec<_>, _>>()
            .map_err(|_| SigFault::Malformed)?;
        match lines.as_slice() {
            // The drafts' one departure from RFC 9421: no token is signed as an empty one (CORE-58).
            [] if component == "authorization" => Ok("".into()),
            [] => Err(SigFault::UnknownComponent),
            [line] => Ok((*line).into()),
            lines => Ok(lines.join(", ").into()),
        }
    }
}
