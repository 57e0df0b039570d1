//! An OAuth access token as a request shows it (RFC 6750), and the 401 that says where one is to be had (RFC 9728).
//!
//! For resources that a policy alone protects. A token is shown in one `Authorization` header or it is not shown; what it
//! claims is somebody else's to check ([`crate::AccessTokens`]).

use http::{HeaderMap, HeaderValue};
use sayso_protocol::Json;
use sayso_protocol::canon::sha256;
use sayso_protocol::payload::rpt::LONGEST;
use std::fmt;
use std::sync::Arc;

const SCHEME: &str = "Bearer";

/// The `error` of a token that is not good here; its status is 401.
pub const INVALID_TOKEN: &str = "invalid_token";

/// What a request shows.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum ShownToken<'a> {
    Nothing,
    /// Something that is no token, or two of them.
    Unreadable,
    Token(&'a str),
}

/// The token a request shows. Another scheme is not a way to show one.
pub(crate) fn shown(headers: &HeaderMap) -> ShownToken<'_> {
    let mut lines = headers.get_all("authorization").iter();
    let (Some(line), None) = (lines.next(), lines.next()) else {
        let none = !headers.contains_key("authorization");
        return if none { ShownToken::Nothing } else { ShownToken::Unreadable };
    };
    let Ok(text) = line.to_str() else { return ShownToken::Unreadable };
    let (scheme, token) = text.split_once(' ').unwrap_or((text, ""));
    if !scheme.eq_ignore_ascii_case(SCHEME) {
        return ShownToken::Nothing;
    }
    let token = token.trim_matches(' ');
    // RFC 6750 section 2.1: `b64token`.
    let of_a_token = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~+/=".contains(&byte);
    if !token.is_empty() && token.len() <= LONGEST && token.bytes().all(of_a_token) {
        ShownToken::Token(token)
    } else {
        ShownToken::Unreadable
    }
}

/// Show a token, or another one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BearerChallenge {
    /// Where the resource says who issues tokens for it.
    pub resource_metadata: String,
    /// Whether a token was shown.
    pub shown: bool,
    /// What is wrong, in our words.
    pub description: &'static str,
}

impl BearerChallenge {
    pub(crate) fn missing(resource_metadata: &str) -> Self {
        let description = "show an access token for this resource as `Authorization: Bearer`";
        Self { resource_metadata: resource_metadata.to_owned(), shown: false, description }
    }

    pub(crate) fn invalid(resource_metadata: &str, description: &'static str) -> Self {
        Self { resource_metadata: resource_metadata.to_owned(), shown: true, description }
    }

    /// The `WWW-Authenticate` header. `error` is there only when a token was shown (RFC 6750 section 3.1).
    pub fn header(&self) -> Option<HeaderValue> {
        let Self { resource_metadata, shown, description } = self;
        let mut text = format!("{SCHEME} resource_metadata=\"{resource_metadata}\"");
        if *shown {
            let plain = |c: &char| matches!(c, ' '..='~') && !matches!(c, '"' | '\\');
            let description: String = description.chars().filter(plain).collect();
            text.push_str(&format!(", error=\"{INVALID_TOKEN}\", error_description=\"{description}\""));
        }
        HeaderValue::from_str(&text).ok()
    }
}

/// Whose a session is where tokens say so: the same subject by the same client, in the words of one issuer. Where another
/// claim is designated for the subject it counts as well as `sub`.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(crate) struct Holder(Arc<[u8; 32]>);

impl fmt::Debug for Holder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Holder")
    }
}

impl Holder {
    /// The holder of a token with these claims, whose subject is named by this one (COAZ-MCP-09). A token that names no
    /// subject either way is anybody's, and nobody is its holder.
    pub(crate) fn of(claims: &Json, subject: &str) -> Option<Self> {
        let claim = |name| claims.get(name).and_then(Json::as_str).unwrap_or_default();
        if claim(subject).is_empty() && claim("sub").is_empty() {
            return None;
        }
        let client =
            [claim("client_id"), claim("azp")].into_iter().find(|it| !it.is_empty()).unwrap_or_default();
        let mut text = Vec::new();
        for part in [claim("iss"), claim(subject), claim("sub"), client] {
            // With its length, so that no two holders are one text.
            text.extend_from_slice(&u64::try_from(part.len()).unwrap_or(u64::MAX).to_be_bytes());
            text.extend_from_slice(part.as_bytes());
        }
        Some(Holder(Arc::new(sha256(&text))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sayso_protocol::json::Limits;

    fn headers(lines: &[&str]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for line in lines {
            headers.append("authorization", line.parse().unwrap());
        }
        headers
    }

    // COAZ-MCP-81
    #[test]
    fn a_token_is_shown_once_as_bearer_or_not_at_all() {
        for good in ["Bearer a.b.c", "bearer a.b.c", "BEARER  a.b.c "] {
            assert_eq!(shown(&headers(&[good])), ShownToken::Token("a.b.c"), "{good}");
        }
        for none in [&[] as &[_], &["PoP a.b.c"], &["Basic YTpi"], &["a.b.c"], &["Bearera.b.c"]] {
            assert_eq!(shown(&headers(none)), ShownToken::Nothing, "{none:?}");
        }
        for odd in [
            &["Bearer"] as &[_],
            &["Bearer "],
            &["Bearer a b"],
            &["Bearer a.b.c, Bearer d"],
            &["Bearer a\"b"],
            &["Bearer a", "Bearer a"],
            &["Bearer a", "PoP b"],
        ] {
            assert_eq!(shown(&headers(odd)), ShownToken::Unreadable, "{odd:?}");
        }
        let long = format!("Bearer {}", "a".repeat(LONGEST + 1));
        assert_eq!(shown(&headers(&[&long])), ShownToken::Unreadable);
    }

    #[test]
    fn a_challenge_says_where_and_what_is_wrong_only_of_a_token_that_was_shown() {
        let at = "https://gw.example.test/.well-known/oauth-protected-resource/mcp";
        let header = |challenge: BearerChallenge| challenge.header().unwrap().to_str().unwrap().to_owned();
        let missing = header(BearerChallenge::missing(at));
        assert_eq!(missing, format!("Bearer resource_metadata=\"{at}\""));
        let invalid = header(BearerChallenge::invalid(at, "it is \"over\""));
        assert_eq!(
            invalid,
            format!(
                "Bearer resource_metadata=\"{at}\", error=\"invalid_token\", error_description=\"it is over\""
            )
        );
    }

    fn holder(text: &str, subject: &str) -> Option<Holder> {
        Holder::of(&Json::parse(text.as_bytes(), Limits::default()).unwrap(), subject)
    }

    #[test]
    fn holders_are_told_apart_by_issuer_subject_and_client() {
        let of = |text: &str| holder(text, "sub").unwrap();
        let one = of(r#"{"iss":"i","sub":"s","client_id":"c","exp":1}"#);
        assert!(one == of(r#"{"iss":"i","sub":"s","client_id":"c","exp":2,"azp":"x"}"#));
        assert!(one == of(r#"{"iss":"i","sub":"s","azp":"c"}"#));
        for other in [
            r#"{"iss":"j","sub":"s","client_id":"c"}"#,
            r#"{"iss":"i","sub":"t","client_id":"c"}"#,
            r#"{"iss":"i","sub":"s","client_id":"d"}"#,
            r#"{"iss":"i","sub":"s"}"#,
        ] {
            assert!(one != of(other), "{other}");
        }
    }

    // COAZ-MCP-09, MSG-16: two who are told apart in decisions are told apart in sessions.
    #[test]
    fn holders_are_told_apart_by_the_claim_that_is_designated() {
        let of = |text: &str| holder(text, "obo").unwrap();
        let ann = of(r#"{"iss":"i","sub":"agent-7","obo":"u-ann","client_id":"c"}"#);
        assert!(ann == of(r#"{"iss":"i","sub":"agent-7","obo":"u-ann","client_id":"c","exp":2}"#));
        for other in [
            r#"{"iss":"i","sub":"agent-7","obo":"u-bob","client_id":"c"}"#,
            r#"{"iss":"i","sub":"agent-8","obo":"u-ann","client_id":"c"}"#,
            r#"{"iss":"i","sub":"agent-7","obo":["u-ann"],"client_id":"c"}"#,
            r#"{"iss":"i","sub":"u-ann","obo":"agent-7","client_id":"c"}"#,
            r#"{"iss":"i","obo":"u-ann","client_id":"c"}"#,
            r#"{"iss":"i","sub":"agent-7","client_id":"c"}"#,
        ] {
            assert!(ann != of(other), "{other}");
        }
        let nameless = [
            r#"{"iss":"i","client_id":"c"}"#,
            r#"{"iss":"i","sub":"","obo":""}"#,
            r#"{"sub":7,"obo":null}"#,
            "{}",
        ];
        for text in nameless {
            assert!(holder(text, "obo").is_none() && holder(text, "sub").is_none(), "{text}");
        }
        assert!(holder(r#"{"iss":"i","obo":"u-ann","client_id":"c"}"#, "sub").is_none());
    }
}
