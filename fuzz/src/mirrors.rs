//! Arguments repeated in headers: header lines, an empty line, and an object of a `schema` and `arguments`.
//! Headers that are accepted say what the arguments say, and headers that say it are accepted (D-10).

use http::{HeaderMap, HeaderName, HeaderValue};
use sayso_protocol::Json;
use sayso_protocol::json::{Limits, locate};
use sayso_protocol::message::{
    Message, Mirror, Request, decode_value, encode_value, mirrors, parse, reconcile_mirrors,
};
use sayso_protocol::method::Revision;

use super::framed;

const LIMITS: Limits = Limits { bytes: 64 * 1024, depth: 32 };

/// The body.
pub fn check(bytes: &[u8]) {
    let (headers, body) = framed::message(bytes);
    let Ok(input) = Json::parse(body, LIMITS) else { return };
    let Some(Ok(mirrors)) = input.get("schema").map(mirrors) else { return };
    for (index, mirror) in mirrors.iter().enumerate() {
        assert!(mirror.header.starts_with("mcp-param-") && !mirror.path.is_empty());
        let name = HeaderName::from_bytes(mirror.header.as_bytes()).expect("a mirror's header has a name");
        assert_eq!(name.as_str(), mirror.header, "a header name is compared in lower case");
        assert!(mirrors.iter().take(index).all(|other| other.header != mirror.header));
    }
    let Some(request) = call(body) else { return };
    if reconcile_mirrors(&headers, &mirrors, &request, Revision::V20260728).is_ok() {
        for mirror in &mirrors {
            agrees(&headers, mirror, &request);
        }
    }
    honest(&mirrors, &request);
}

/// A call with the input's arguments, byte for byte.
fn call(body: &[u8]) -> Option<Request> {
    let arguments = body.get(locate(body, &["arguments"])?)?;
    let before = br#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t","arguments":"#;
    match parse(&[&before[..], arguments, b"}}"].concat(), Limits::default()) {
        Ok(Message::Request(request)) => Some(request),
        _ => None,
    }
}

fn argument<'a>(mirror: &Mirror, request: &'a Request) -> Option<&'a Json> {
    let arguments = request.call()?.arguments();
    let value = mirror.path.iter().try_fold(arguments, |value, name| value.get(name))?;
    (*value != Json::Null).then_some(value)
}

fn agrees(headers: &HeaderMap, mirror: &Mirror, request: &Request) {
    let value = headers.get(&mirror.header).map(|value| value.to_str().expect("visible ASCII"));
    let Some(argument) = argument(mirror, request) else { return assert_eq!(value, None) };
    let said = value.and_then(|value| decode_value(value.trim_matches([' ', '\t'])));
    let said = said.expect("a mirrored argument has a header");
    match argument {
        Json::String(text) => assert_eq!(&said, text),
        Json::Bool(truth) => assert_eq!(said, truth.to_string()),
        Json::Number(number) => {
            assert_eq!(said.parse::<f64>().ok(), number.as_f64(), "{said} is not {}", number.text());
        }
        _ => assert_eq!(said, "", "a structure has no header form"),
    }
}

/// Headers written from the arguments are accepted, if every mirrored argument has a header form.
fn honest(mirrors: &[Mirror], request: &Request) {
    let mut headers = HeaderMap::new();
    for mirror in mirrors {
        let text = match argument(mirror, request) {
            None => continue,
            Some(Json::String(text)) => text.clone(),
            Some(Json::Bool(truth)) => truth.to_string(),
            Some(Json::Number(number)) if number.as_i64().is_some() => number.text().to_owned(),
            Some(_) => return,
        };
        let name = HeaderName::from_bytes(mirror.header.as_bytes()).expect("a mirror's header has a name");
        let value = HeaderValue::from_str(&encode_value(&text)).expect("an encoded value fits a header");
        headers.insert(name, value);
    }
    assert_eq!(reconcile_mirrors(&headers, mirrors, request, Revision::V20260728), Ok(()));
}
