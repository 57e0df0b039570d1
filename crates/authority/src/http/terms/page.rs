//! Terms as a page for people: purpose, scopes, lifetime and every prohibition, each marked as enforced or promised.
//!
//! Every value is escaped, and characters that hide or reorder text are shown by their number (TERMS-15, D-28). The
//! page holds no script, style or form.

use crate::words::{duration, escape};
use sayso_protocol::payload::terms::Terms;

/// The page of the terms at `uri`.
pub(super) fn render(terms: &Terms, uri: &str) -> String {
    let scopes: String = terms.scope.iter().map(|scope| item(&code(scope.as_str()))).collect();
    let kind = if terms.per_operation {
        "<p>Each approval is for one operation, named in advance, and is used up by it.</p>\n"
    } else {
        ""
    };
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<title>Terms {id}</title>\n</head>\n\
         <body>\n<h1>Terms {id}</h1>\n<p>Purpose: {purpose}</p>\n<h2>What these terms can grant</h2>\n\
         <ul>\n{scopes}</ul>\n<p>For at most {life} ({seconds} seconds).</p>\n{kind}\
         <h2>What the agent must not do</h2>\n{prohibited}\
         <p>Proffered by {issuer}. This version never changes; it is at {uri}.</p>\n</body>\n</html>\n",
        id = escape(terms.template_id.as_str()),
        purpose = escape(&terms.purpose),
        life = duration(terms.expires_in),
        seconds = terms.expires_in,
        prohibited = prohibitions(terms),
        issuer = code(&terms.proffered_by),
        uri = code(uri),
    )
}

fn prohibitions(terms: &Terms) -> String {
    if terms.prohibited.is_empty() {
        return "<p>Nothing beyond what these terms do not grant.</p>\n".into();
    }
    let line = |promise: &String| {
        let how = match terms.enforced.get(promise) {
            Some(mechanism) => format!("enforced by the resource: {}", escape(mechanism)),
            None => "undertaken: the agent's promise, recorded under its signature".into(),
        };
        item(&format!("{} ({how})", code(promise)))
    };
    format!("<ul>\n{}</ul>\n", terms.prohibited.iter().map(line).collect::<String>())
}

fn item(html: &str) -> String {
    format!("<li>{html}</li>\n")
}

fn code(text: &str) -> String {
    format!("<code>{}</code>", escape(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn terms(purpose: &str) -> Terms {
        Terms {
            template_id: "ns/trading/v1".parse().unwrap(),
            purpose: purpose.into(),
            scope: vec!["trades:execute".parse().unwrap()],
            expires_in: 900,
            prohibited: vec!["resale".into(), "<i>reuse".into()],
            proffered_by: "https://as.example".into(),
            per_operation: true,
            enforced: [("<i>reuse".to_owned(), "single-use".to_owned())].into(),
        }
    }

    // TERMS-15, TERMS-44
    #[test]
    fn the_page_says_everything_and_marks_what_is_enforced() {
        let page = render(&terms("one trade"), "https://as.example/terms/ns/trading/v1");
        for text in [
            "one trade",
            "trades:execute",
            "15 minutes",
            "resale</code> (undertaken",
            "enforced by the resource: single-use",
        ] {
            assert!(page.contains(text), "{text}");
        }
    }

    // TERMS-15, D-28
    #[test]
    fn nothing_a_stranger_wrote_is_markup() {
        for hostile in [
            "<script>alert(1)</script>",
            "\"><img src=x onerror=alert(1)>",
            "'-alert(1)-'",
            "<!--",
            "a\u{202e}b\u{0}c\u{200b}",
        ] {
            let page = render(&terms(hostile), "https://as.example/x");
            assert!(!page.contains(hostile), "{hostile}");
            assert!(!page.contains("<script") && !page.contains("<img"), "{hostile}");
            assert!(!page.contains(['\u{202e}', '\u{0}', '\u{200b}']));
        }
    }
}
