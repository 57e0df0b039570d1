//! What a call says that its caller can read, as far as a server may refuse it for that.

use http::HeaderMap;
use sayso_protocol::payload::refusal::{Code, Refusal};

/// A call that can be made once says that it takes both answers that MCP gives, as every client must: a server refuses it
/// otherwise, and nothing of a refusal shows that a grant was spent (D-14).
pub(crate) fn check_answers(headers: &HeaderMap) -> Result<(), Refusal> {
    let takes = |wanted: &str| headers.get_all("accept").iter().any(|line| accepts(line.as_bytes(), wanted));
    if takes("application/json") && takes("text/event-stream") {
        return Ok(());
    }
    let text = "say that you accept application/json and text/event-stream, or the server may refuse a call that is spent";
    Err(Refusal::new(Code::InvalidRequest, text))
}

/// Whether a list of media types has this one, by its name and with a weight above nothing.
fn accepts(line: &[u8], wanted: &str) -> bool {
    let entries = std::str::from_utf8(line).unwrap_or_default().split(',');
    entries.into_iter().any(|entry| {
        let mut parts = entry.split(';').map(str::trim);
        let named = parts.next().is_some_and(|essence| essence.eq_ignore_ascii_case(wanted));
        named && !parts.any(is_weightless)
    })
}

fn is_weightless(parameter: &str) -> bool {
    let weight = parameter.split_once('=').filter(|(name, _)| name.trim().eq_ignore_ascii_case("q"));
    weight.is_some_and(|(_, weight)| weight.trim().parse::<f32>().is_ok_and(|weight| weight <= 0.0))
}
