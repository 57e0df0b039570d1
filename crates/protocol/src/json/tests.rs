//! The strict parser: grammar, bounds, and the ways to take a value out.

use std::fmt::Write as _;

use proptest::prelude::*;
use serde::Deserialize;

use super::*;

fn parse(text: &str) -> Result<Json, JsonError> {
    Json::parse(text.as_bytes(), Limits::default())
}

fn fault(text: &str) -> (JsonErrorKind, usize) {
    let error = parse(text).unwrap_err();
    (error.kind, error.at)
}

#[test]
fn numbers_follow_the_grammar_exactly() {
    for good in ["0", "-0", "10", "0.0", "-0.50", "1e5", "1E+05", "1.5e-9", "123456789012345678901234567890"]
    {
        assert_eq!(parse(good).unwrap().as_number().unwrap().text(), good);
    }
    for bad in ["01", "-", "-a", "1.", "1.e5", "1e", "1e+", "00", "-01"] {
        assert_eq!(fault(bad).0, JsonErrorKind::BadNumber, "{bad}");
    }
    for bad in [
        "+1",
        ".5",
        "NaN",
        "Infinity",
        "tru",
        "truE",
        "nul",
        "'a'",
        "[1,]",
        "{,}",
        "[1 2]",
        "{\"a\" 1}",
        "{a:1}",
    ] {
        assert!(matches!(fault(bad).0, JsonErrorKind::Syntax | JsonErrorKind::UnexpectedEnd), "{bad}");
    }
    for bad in ["0x10", "1_000", "1 2", "1a", "{}{}", "[]]"] {
        assert_eq!(fault(bad).0, JsonErrorKind::TrailingBytes, "{bad}");
    }
}

#[test]
fn numbers_give_only_values_they_have() {
    let number = |text: &str| parse(text).unwrap();
    assert_eq!(number("-9223372036854775808").as_i64(), Some(i64::MIN));
    assert_eq!(number("18446744073709551615").as_u64(), Some(u64::MAX));
    assert_eq!(number("18446744073709551615").as_i64(), None);
    assert_eq!((number("1.0").as_i64(), number("1e2").as_u64(), number("-0").as_i64()), (None, None, None));
    assert_eq!(number("1e400").as_f64(), None);
    assert_eq!(number("0.1").as_number().unwrap().exact_f64(), Some(0.1));
    for inexact in ["1e-400", "1e400", "0.123456789012345678"] {
        assert_eq!(number(inexact).as_number().unwrap().exact_f64(), None, "{inexact}");
        assert!(serde_json::to_string(&number(inexact)).is_err(), "{inexact}");
    }
}

#[test]
fn strings_are_decoded_and_lone_surrogates_refused() {
    assert_eq!(
        parse(r#""\ud83d\ude00\u00e9\/\b\f\n\r\t\"\\""#).unwrap().as_str(),
        Some("😀é/\u{8}\u{c}\n\r\t\"\\")
    );
    for lone in [r#""\ud800""#, r#""\udc00""#, r#""\ud800\ud800""#, r#""\ud800\n""#, r#"{"\udfff":1}"#] {
        assert_eq!(fault(lone).0, JsonErrorKind::LoneSurrogate, "{lone}");
    }
    for bad in ["\"\u{1}\"", "\"\n\"", r#""\x""#, r#""\u12g4""#] {
        assert_eq!(fault(bad).0, JsonErrorKind::Syntax, "{bad:?}");
    }
    assert_eq!(fault(r#""\u12"#).0, JsonErrorKind::UnexpectedEnd);
}

#[test]
fn duplicates_are_refused_at_any_depth_and_size() {
    assert_eq!(fault(r#"{"a":1,"a":2}"#), (JsonErrorKind::DuplicateMember, 7));
    assert_eq!(fault(r#"[{"b":{"a":1,"\u0061":2}}]"#).0, JsonErrorKind::DuplicateMember);
    let mut many = String::from("{");
    for index in 0..100_000 {
        write!(many, "\"member {index}\":0,").unwrap();
    }
    assert_eq!(parse(&format!("{many}\"last\":0}}")).unwrap().as_object().unwrap().len(), 100_001);
    assert_eq!(fault(&format!("{many}\"member 3\":0}}")), (JsonErrorKind::DuplicateMember, many.len()));
    assert_eq!(fault(&format!("{many}\"member 70000\":0}}")), (JsonErrorKind::DuplicateMember, many.len()));
}

#[test]
fn every_bound_holds() {
    let nested = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
    assert!(parse(&nested(64)).is_ok());
    assert_eq!(fault(&nested(65)), (JsonErrorKind::TooDeep, 64));
    let generous = Limits { bytes: usize::MAX, depth: usize::MAX };
    assert!(Json::parse(nested(MAX_DEPTH).as_bytes(), generous).is_ok());
    assert_eq!(Json::parse(nested(1_000_000).as_bytes(), generous).unwrap_err().kind, JsonErrorKind::TooDeep);
    assert_eq!(fault(&"{\"a\":".repeat(100_000)).0, JsonErrorKind::TooDeep);
    let values = format!("[{}0]", "0,".repeat(MAX_VALUES));
    assert_eq!(Json::parse(values.as_bytes(), generous).unwrap_err().kind, JsonErrorKind::TooLarge);
    let tight = Limits { bytes: 4, depth: 64 };
    assert!(Json::parse(b"[10]", tight).is_ok());
    assert_eq!(Json::parse(b"[100]", tight).unwrap_err().kind, JsonErrorKind::TooLarge);
}

#[test]
fn text_that_is_not_plain_utf8_is_refused() {
    let kind = |bytes: &[u8]| Json::parse(bytes, Limits::default()).unwrap_err().kind;
    assert_eq!(kind(b"\xef\xbb\xbf{}"), JsonErrorKind::ByteOrderMark);
    assert_eq!(kind(b"\xff\xfe{\0"), JsonErrorKind::ByteOrderMark);
    assert_eq!(kind(b"\"\xc3\x28\""), JsonErrorKind::NotUtf8);
    assert_eq!(kind(b""), JsonErrorKind::UnexpectedEnd);
    assert_eq!(kind(b"{} \0"), JsonErrorKind::TrailingBytes);
    assert_eq!(kind("\u{a0}{}".as_bytes()), JsonErrorKind::Syntax);
}

#[test]
fn spans_are_those_of_the_text() {
    let text = br#" { "x" : "}\"]" , "params":{"_meta":{"progressToken" : [1, "]"] }}, "\u0069d" :-12.5e3 }"#;
    let found = |path: &[&str]| locate(text, path).map(|span| std::str::from_utf8(&text[span]).unwrap());
    assert_eq!(found(&["x"]), Some(r#""}\"]""#));
    assert_eq!(found(&["id"]), Some("-12.5e3"));
    assert_eq!(found(&["params", "_meta", "progressToken"]), Some(r#"[1, "]"]"#));
    assert_eq!(found(&["params", "missing"]), None);
    assert_eq!(found(&["x", "y"]), None);
    assert_eq!(locate(b"{\"a\":#", &["a"]), None);
}

#[test]
fn strict_types_come_after_strict_text() {
    #[derive(Debug, Deserialize, PartialEq)]
    struct Pair {
        a: u8,
        b: serde_json::Value,
    }
    let pair: Pair = strict(br#"{"a":1,"b":{"n":1.50}}"#, Limits::default()).unwrap();
    assert_eq!((pair.a, pair.b["n"].as_f64()), (1, Some(1.5)));
    let error = strict::<Pair>(b"{\"a\":1,\n\"b\":1,\"a\":2}", Limits::default()).unwrap_err();
    assert_eq!(error.kind, JsonErrorKind::DuplicateMember);
    let error = strict::<Pair>(b"{\"b\":1,\n\"a\":300}", Limits::default()).unwrap_err();
    assert_eq!((error.kind, error.at), (JsonErrorKind::Shape, 14));
    assert_eq!(error.to_string(), "not of the expected shape at byte 14");
}

// D-10
#[test]
fn members_are_never_read_from_an_array() {
    #[derive(Debug, Deserialize, PartialEq)]
    struct Inner {
        a: u8,
    }
    #[derive(Debug, Deserialize, PartialEq)]
    struct Outer {
        inner: Option<Vec<Inner>>,
    }
    let read = |text: &str| strict::<Outer>(text.as_bytes(), Limits::default());
    assert_eq!(read(r#"{"inner":[{"a":1}]}"#), Ok(Outer { inner: Some(vec![Inner { a: 1 }]) }));
    assert_eq!(read(r#"{"inner":null,"b":[1e400,{}]}"#), Ok(Outer { inner: None }));
    for array in ["[null]", "[[]]", r#"{"inner":[[1]]}"#] {
        assert_eq!(read(array).unwrap_err().kind, JsonErrorKind::Shape, "{array}");
    }
}

#[test]
fn debug_and_errors_show_no_value() {
    let shown = format!("{:?} {:?}", parse(r#"{"secret":"s3cr3t"}"#).unwrap(), parse("[12345]").unwrap());
    assert_eq!(shown, "object of 1 array of 1");
}

proptest! {
    #[test]
    fn random_bytes_never_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        let _ = Json::parse(&bytes, Limits::default());
        let _ = locate(&bytes, &["id"]);
    }

    #[test]
    fn json_like_text_never_panics(text in r#"[\[\]{}:,"\\u0-9a-f.eE+\- truefalsn]{0,80}"#) {
        let strict = parse(&text);
        let _ = locate(text.as_bytes(), &["a"]);
        // Whatever is accepted here, an ordinary reader accepts and reads alike.
        if let Ok(value) = strict {
            let lax: serde_json::Value = serde_json::from_str(&text).unwrap();
            prop_assert_eq!(serde_json::to_value(&value).ok(), Some(lax));
        }
    }
}
