//! What counts as quoting an id, by example; the ids here are examples and show nothing.

use super::*;

fn pairs(text: &str, language: Language) -> Vec<(String, String)> {
    scan("f", text, language).into_iter().map(|quote| (quote.name, quote.id)).collect()
}

fn pair(name: &str, id: &str) -> (String, String) {
    (name.to_owned(), id.to_owned())
}

#[test]
fn rust_tests_quote_above_and_inside() {
    let text = "//! BASE-10\n\n    // CORE-89, CORE-90: last\n    #[tokio::test(flavor = \"x\")]\n    \
                async fn spends() {\n        let a = 1; // MCP-01\n        let url = \"http://CORE-01\";\n    \
                }\n\n    // CORE-02\n    fn helper() {\n        // CORE-03\n    }\n\n    // FED-01\n\n    \
                #[test]\n    fn alone() {\n        // TERMS-1 XCORE-04 CORE-121.\n    }\n";
    let want = [("spends", "CORE-89"), ("spends", "CORE-90"), ("spends", "MCP-01"), ("alone", "CORE-121")];
    assert_eq!(pairs(text, Language::Rust), want.map(|(name, id)| pair(name, id)));
}

#[test]
fn attributes_over_several_lines_do_not_part_a_comment_from_its_test() {
    let text = "// CORE-07\n#[test]\n#[expect(\n    clippy::x,\n    reason = \"y\"\n)]\nfn a() {\n}\n";
    assert_eq!(pairs(text, Language::Rust), [pair("a", "CORE-07")]);
}

#[test]
fn a_test_quotes_what_the_table_it_names_quotes() {
    let text = "A = [\n    1,  # CORE-16\n]\nB = [2]  # CORE-17\nC = [\n    *A,\n    3,  # CORE-18\n]\n\n\
                @pytest.mark.parametrize(\"x\", [*C, 4])\ndef test_one(x):\n    pass\n\n\
                def test_two():\n    for x in B:\n        pass\n";
    let want = [("test_one", "CORE-16"), ("test_one", "CORE-18"), ("test_two", "CORE-17")];
    assert_eq!(pairs(text, Language::Python), want.map(|(name, id)| pair(name, id)));
    let text = "const ROWS: [u8; 2] = [\n    // MCP-25\n    1,\n    2, // MCP-26\n];\n\n#[test]\n\
                fn each() {\n    for row in ROWS {}\n}\n";
    let want = [("each", "MCP-25"), ("each", "MCP-26")];
    assert_eq!(pairs(text, Language::Rust), want.map(|(name, id)| pair(name, id)));
}

#[test]
fn python_tests_quote_above_inside_and_in_decorators() {
    let text = "# BASE-01\nX = 1\n\n# CORE-15\n@pytest.mark.parametrize(\n    \"a\",\n    [1],  # CORE-23\n)\n\
                def test_one(\n    a,\n):\n    # CORE-16\n    assert a\n\ndef helper():\n    # CORE-17\n    \
                pass\n\nasync def test_two():\n    pass  # FED-50\n# CORE-18\ndef test_three():\n    pass\n";
    let want = [
        ("test_one", "CORE-15"),
        ("test_one", "CORE-23"),
        ("test_one", "CORE-16"),
        ("test_two", "FED-50"),
        ("test_three", "CORE-18"),
    ];
    assert_eq!(pairs(text, Language::Python), want.map(|(name, id)| pair(name, id)));
}
