//! Which form of a document a client prefers, from its `Accept` header (RFC 9110 section 12.5.1).
//!
//! JSON is what everybody gets who does not ask for something else (TERMS-14). Bounded by the header's own size.

use http::HeaderMap;
use http::header::ACCEPT;

/// A form terms are served in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    /// `application/json`.
    Json,
    /// `text/html`.
    Html,
    /// `application/ld+json`.
    Ld,
}

impl Form {
    /// In order of preference where the client has none.
    const ALL: [Form; 3] = [Form::Json, Form::Html, Form::Ld];

    /// The form `?format=` names.
    pub(super) fn named(name: &str) -> Option<Form> {
        match name {
            "json" => Some(Form::Json),
            "html" => Some(Form::Html),
            "jsonld" => Some(Form::Ld),
            _ => None,
        }
    }

    fn media_type(self) -> (&'static str, &'static str) {
        match self {
            Form::Json => ("application", "json"),
            Form::Html => ("text", "html"),
            Form::Ld => ("application", "ld+json"),
        }
    }
}

/// The form preferred, or `None` when none is acceptable.
pub(super) fn preferred(headers: &HeaderMap) -> Option<Form> {
    let lines: Vec<&str> = headers.get_all(ACCEPT).iter().filter_map(|line| line.to_str().ok()).collect();
    let ranges: Vec<Range> = lines.iter().flat_map(|line| line.split(',')).filter_map(Range::read).collect();
    if ranges.is_empty() {
        return Some(Form::Json);
    }
    let weighed = Form::ALL.map(|form| (form, weight(form, &ranges)));
    let best = weighed.iter().map(|(_, weight)| *weight).max().filter(|best| *best > 0)?;
    weighed.into_iter().find(|(_, weight)| *weight == best).map(|(form, _)| form)
}

/// The weight of a form, in thousandths: that of the most specific range that covers it.
fn weight(form: Form, ranges: &[Range<'_>]) -> u16 {
    let (main, sub) = form.media_type();
    let covering = ranges.iter().filter_map(|range| {
        let specific = match (range.main, range.sub) {
            ("*", "*") => 0,
            (kind, "*") if kind.eq_ignore_ascii_case(main) => 1,
            (kind, of) if kind.eq_ignore_ascii_case(main) && of.eq_ignore_ascii_case(sub) => 2,
            _ => return None,
        };
        Some((specific, range.weight))
    });
    covering.max().map_or(0, |(_, weight)| weight)
}

struct Range<'a> {
    main: &'a str,
    sub: &'a str,
    weight: u16,
}

impl<'a> Range<'a> {
    fn read(text: &'a str) -> Option<Self> {
        let mut parts = text.split(';').map(str::trim);
        let (main, sub) = parts.next()?.split_once('/')?;
        let quality = parts.find_map(|part| part.strip_prefix("q=").or_else(|| part.strip_prefix("Q=")));
        Some(Self { main, sub, weight: quality.map_or(1000, thousandths) })
    }
}

/// A quality value in thousandths; an unreadable one counts as zero.
fn thousandths(text: &str) -> u16 {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let digits: String = fraction.chars().chain("000".chars()).take(3).collect();
    match (whole, digits.parse::<u16>()) {
        ("1", _) => 1000,
        ("0", Ok(value)) => value,
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(accept: &str) -> Option<Form> {
        let mut headers = HeaderMap::new();
        headers.insert(ACCEPT, accept.parse().unwrap());
        preferred(&headers)
    }

    // TERMS-14, TERMS-15, TERMS-16
    #[test]
    fn the_client_chooses_and_json_is_the_default() {
        assert_eq!(preferred(&HeaderMap::new()), Some(Form::Json));
        for (accept, form) in [
            ("*/*", Some(Form::Json)),
            ("application/json", Some(Form::Json)),
            ("text/html", Some(Form::Html)),
            ("text/*", Some(Form::Html)),
            ("TEXT/HTML", Some(Form::Html)),
            ("application/ld+json", Some(Form::Ld)),
            ("text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8", Some(Form::Html)),
            ("application/json;q=0.5, text/html;q=0.9", Some(Form::Html)),
            ("application/json;q=0, */*", Some(Form::Html)),
            ("image/png", None),
            ("text/html;q=0", None),
            ("", Some(Form::Json)),
        ] {
            assert_eq!(of(accept), form, "{accept}");
        }
    }
}
