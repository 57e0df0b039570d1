//! Expressions: what they yield over given inputs, what they are refused for, and that walks without CEL agree with
//! CEL. The register's own vectors are data, run by `tests/vectors.rs`.

use proptest::prelude::*;

use super::*;
use sayso_protocol::json::Limits;

fn json(text: &str) -> Json {
    Json::parse(text.as_bytes(), Limits::default()).unwrap()
}

fn compile(source: &str) -> Result<Expression, ExpressionFault> {
    roomy(|| Expression::compile(source)).unwrap()
}

fn run(source: &str, params: &str, token: &str) -> Result<Option<String>, ExpressionFault> {
    let expression = compile(source)?;
    let (params, token) = (json(params), json(token));
    let mut evaluator = Evaluator::new(Inputs { params: &params, token: &token }, BUDGET);
    let value = evaluator.evaluate(&expression)?;
    Ok(value.map(|value| serde_json::to_string(&value).unwrap()))
}

fn yields(source: &str, value: &str) {
    let params = r#"{"n":5,"f":1.5,"list":[1,2,3],"text":"abc","map":{"a":{"b":1}},"nul":null}"#;
    let token = r#"{"sub":"u-ann","roles":["ops","treasury"],"exp":1750000000}"#;
    assert_eq!(run(source, params, token), Ok(Some(value.to_owned())), "{source}");
}

// COAZ-FW-17, COAZ-MCP-12, COAZ-MCP-17, COAZ-MCP-67: conditionals, macros and the standard functions.
#[test]
fn the_language_is_there() {
    yields("token.roles.exists(r, r == 'treasury') ? 'a' : 'b'", "\"a\"");
    yields("token.roles.all(r, size(r) > 2)", "true");
    yields("params.list.filter(x, x > 1).map(x, x * 2)", "[4,6]");
    yields("params.list.map(x, x > 1, x * 10)", "[20,30]");
    yields("token.roles.exists_one(r, r.startsWith('tr'))", "true");
    yields("{'k': params.n, 'a': [true, null]}", r#"{"a":[true,null],"k":5}"#);
    yields("params.text.contains('b') && params.text.endsWith('c') && params.text.matches('^a.c$')", "true");
    yields("matches(params.text, 'x')", "false");
    yields("string(params.n) + '-' + string(params.f)", "\"5-1.5\"");
    yields("timestamp(token.exp) < timestamp('2030-01-01T00:00:00Z')", "true");
    yields("string(timestamp(token.exp).getFullYear()) + string(duration('90m').getHours())", "\"20251\"");
    yields("type(params.n) == int && type(params.f) == double", "true");
    yields("has(token.nick) ? token.nick : 'none'", "\"none\"");
    yields("params.?map.?a.optMap(a, a.b + 1).orValue(0)", "2");
    yields("token.?nick.optFlatMap(n, optional.of(n)).orValue('none')", "\"none\"");
    yields("optional.of(1).or(optional.none()).value()", "1");
    yields("params.list[0] in params.list && !(9 in params.list)", "true");
    yields("params.map['a'].b", "1");
    yields("[?token.?nick, 'x']", "[\"x\"]");
    yields("18446744073709551615u", "18446744073709551615");
    yields("[0, 1].exists(x, 1 / x == 1) && ![0, 1].all(x, 1 / x == 2)", "true");
    yields("[{'x': 'y'}].map(token, token.x)", "[\"y\"]");
}

// COAZ-FW-02, COAZ-FW-18, COAZ-MCP-84: nothing but the two inputs is reachable, and that is known before any call.
#[test]
fn nothing_else_is_reachable() {
    for name in ["request.x", "env", "claims", "Token.sub", "[1].map(x, y)", "[1].map(x, x) + [x]"] {
        assert!(matches!(compile(name), Err(ExpressionFault::UnknownName(_))), "{name}");
    }
    for call in
        ["now()", "http.get('u')", "token.lowerAscii()", "cel.bind(x, 1, x)", "f(1)", "base64.encode(b'a')"]
    {
        let refused = compile(call);
        let known =
            matches!(refused, Err(ExpressionFault::UnknownFunction(_) | ExpressionFault::UnknownName(_)));
        assert!(known, "{call}: {refused:?}");
    }
    for broken in [
        "",
        " ",
        "token.",
        "@copy(token)",
        "a{b: 1}",
        "Foo{}",
        "token.`sub`",
        "'open",
        "a\0b",
        "1 +",
        "$token.sub",
        "\u{feff}1",
    ] {
        assert!(compile(broken).is_err(), "{broken}");
    }
}

// COAZ-MCP-90
#[test]
fn the_same_inputs_come_to_the_same_value() {
    let token = r#"{"d":1,"b":2,"a":3,"c":4,"é":5,"e":6}"#;
    for _ in 0..20 {
        let keys = run("token.map(k, k) + [1, 2].map(x, [x])[0]", "{}", token);
        assert_eq!(keys, Ok(Some(r#"["a","b","c","d","e","é",1]"#.to_owned())));
        let values = run("{3: 'x', true: 'y', 'z': 'w'}.map(k, dyn(string(k)))", "{}", token);
        assert_eq!(values, run("{'z': 'w', true: 'y', 3: 'x'}.map(k, dyn(string(k)))", "{}", token));
        assert_eq!(
            run("token.exists(k, k == 'b') && token.all(k, size(k) == 1)", "{}", token),
            Ok(Some("true".into()))
        );
    }
}

#[test]
fn sizes_are_bounded() {
    assert_eq!(compile(&"1".repeat(2049)).unwrap_err(), ExpressionFault::TooLong);
    assert_eq!(compile(&format!("[{}1]", "1,".repeat(600))).unwrap_err(), ExpressionFault::TooManyNodes);
    for chain in [
        format!("1{}", "+1".repeat(40)),
        format!("token{}", ".a".repeat(40)),
        format!("token{}", "[0]".repeat(680)),
        "!".repeat(41) + "true",
    ] {
        assert!(
            matches!(compile(&chain), Err(ExpressionFault::TooDeep | ExpressionFault::TooManyNodes) | Ok(_)),
            "{chain}"
        );
    }
    assert_eq!(compile(&format!("token{}", ".a".repeat(40))).unwrap_err(), ExpressionFault::TooDeep);
}

// COAZ-FW-19, COAZ-MCP-13
#[test]
fn only_json_comes_out() {
    for source in [
        "b'abc'",
        "timestamp('2026-01-01T00:00:00Z')",
        "duration('1h')",
        "0.0/0.0",
        "1.0/0.0",
        "{1:'a'}",
        "type(1)",
        "[optional.none()]",
        "[type(1)]",
        "{'a': optional.of(1)}",
        "[0.0/0.0]",
    ] {
        assert!(matches!(run(source, "{}", "{}"), Err(ExpressionFault::NotJson(_))), "{source}");
    }
}

// COAZ-MCP-76: words of the expression are repeated, values never.
#[test]
fn a_fault_names_the_key_and_no_value() {
    let token = r#"{"sub":"secret-sub","key":"secret-key"}"#;
    assert_eq!(
        run("params.arguments.region", r#"{"arguments":{}}"#, token).unwrap_err(),
        ExpressionFault::MissingKey("region".into())
    );
    assert_eq!(
        run("params.arguments.region + ''", r#"{"arguments":{}}"#, token).unwrap_err(),
        ExpressionFault::MissingKey("region".into())
    );
    for source in [
        "params[token.key]",
        "token[token.key] + ''",
        "1 / size(token.sub.substring)",
        "token.sub + 1",
        "int(token.sub)",
        "token.sub[0]",
        "[1][size(token.sub)]",
        "timestamp(token.sub)",
        "token.sub.matches('[')",
        "{token.sub: 1, token.sub: 2}",
    ] {
        let fault = run(source, "{}", token).map_or_else(|fault| fault.to_string(), |_| "a value".to_owned());
        assert!(!fault.contains("secret") && fault != "a value", "{source}: {fault}");
    }
}

#[test]
fn what_absorbs_faults_does_not_absorb_the_budget() {
    let big = format!("[{}0]", "0,".repeat(200));
    let params = format!(r#"{{"l":{big}}}"#);
    let bomb = "params.l.all(a, params.l.all(b, params.l.all(c, c == 0)))";
    for source in [
        format!("{bomb} || true"),
        format!("true || {bomb}"),
        format!("[{bomb} || true, true][1]"),
        format!("params.l.exists(x, {bomb}) || true"),
    ] {
        let fault = run(&source, &params, "{}");
        let spent = fault == Err(ExpressionFault::Budget);
        assert!(spent || source.starts_with("true ||"), "{source}: {fault:?}");
    }
}

fn paths() -> impl Strategy<Value = String> {
    let root = prop::sample::select(vec!["params", "token"]);
    let key = prop::sample::select(vec!["a", "b", "c"]);
    let step = (key, 0..4).prop_map(|(key, how)| match how {
        0 => format!(".{key}"),
        1 => format!(".?{key}"),
        2 => format!("[\"{key}\"]"),
        _ => format!("[?'{key}']"),
    });
    (root, prop::collection::vec(step, 0..5)).prop_map(|(root, steps)| format!("{root}{}", steps.concat()))
}

fn values() -> impl Strategy<Value = String> {
    let leaf = prop::sample::select(vec!["null", "1", "-2.5", "true", "\"x\"", "[]", "{}", "[{\"a\":1}]"]);
    leaf.prop_map(str::to_owned).prop_recursive(4, 24, 3, |inner| {
        prop::collection::vec(inner, 0..3).prop_map(|values| {
            let members = ["a", "b", "c"].iter().zip(values).map(|(key, value)| format!("\"{key}\":{value}"));
            format!("{{{}}}", members.collect::<Vec<_>>().join(","))
        })
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1000, failure_persistence: None, ..ProptestConfig::default() })]

    /// The conditional keeps the right side from being a walk, so it goes through CEL.
    #[test]
    fn a_walk_is_what_cel_would_yield(path in paths(), params in values(), token in values()) {
        let walked = run(&path, &params, &token);
        let evaluated = run(&format!("true ? {path} : null"), &params, &token);
        prop_assert_eq!(walked, evaluated, "{} over {} {}", path, params, token);
    }
}
