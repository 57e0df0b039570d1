//! How long an answer may be kept, by its own word (RFC 9111): `max-age` less `Age`. What is said twice, or is no number,
//! is read as the shorter life; whoever keeps it sets the bounds.

use http::{HeaderMap, header};
use std::time::Duration;

/// How long an answer says it may be kept; zero for one that may not, nothing for one that does not say.
#[must_use]
pub fn freshness(headers: &HeaderMap) -> Option<Duration> {
    let mut stated: Option<u64> = None;
    for line in headers.get_all(header::CACHE_CONTROL) {
        for directive in line.to_str().unwrap_or_default().split(',').map(str::trim) {
            let (name, value) = directive.split_once('=').unwrap_or((directive, ""));
            if name.eq_ignore_ascii_case("no-store") || name.eq_ignore_ascii_case("no-cache") {
                return Some(Duration::ZERO);
            }
            if name.eq_ignore_ascii_case("max-age") {
                let seconds = value.trim_matches('"').parse().unwrap_or(0);
                stated = Some(stated.map_or(seconds, |before| before.min(seconds)));
            }
        }
    }
    let age = headers.get(header::AGE).and_then(|age| age.to_str().ok()?.parse().ok()).unwrap_or(0);
    stated.map(|seconds| Duration::from_secs(seconds.saturating_sub(age)))
}

#[cfg(test)]
mod tests {
    use super::*;

    // AZ-08
    #[test]
    fn an_answer_says_how_long_it_may_be_kept() {
        type Line = (&'static str, &'static str);
        let cases: [(&[Line], Option<u64>); 10] = [
            (&[], None),
            (&[("cache-control", "private")], None),
            (&[("cache-control", "max-age=60")], Some(60)),
            (&[("cache-control", "public, MAX-AGE=\"60\"")], Some(60)),
            (&[("cache-control", "max-age=60"), ("age", "50")], Some(10)),
            (&[("cache-control", "max-age=60"), ("age", "70")], Some(0)),
            (&[("cache-control", "max-age=60, max-age=5")], Some(5)),
            (&[("cache-control", "max-age=soon")], Some(0)),
            (&[("cache-control", "max-age=600"), ("cache-control", "no-store")], Some(0)),
            (&[("cache-control", "no-cache=\"x\", max-age=600")], Some(0)),
        ];
        for (lines, seconds) in cases {
            let mut headers = HeaderMap::new();
            for (name, value) in lines {
                headers.append(*name, value.parse().unwrap());
            }
            assert_eq!(freshness(&headers), seconds.map(Duration::from_secs), "{lines:?}");
        }
    }
}
