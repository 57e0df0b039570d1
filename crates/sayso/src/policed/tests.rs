//! What names a policy starts, or says what to write instead; nothing starts without the one it names.

use super::*;

const CEDAR: &str = "permit(principal, action, resource);\n";
const URL: &str = "http://127.0.0.1:8441/mcp";

struct Case(tempfile::TempDir);

impl Case {
    fn new() -> Self {
        let case = Self(tempfile::tempdir().unwrap());
        case.put("p/all.cedar", CEDAR);
        case
    }

    fn put(&self, name: &str, text: &str) -> String {
        let path = self.0.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    }

    fn settings(&self, lines: &str) -> Settings {
        let text = lines.replace("DIR", self.0.path().to_str().unwrap());
        let path = self.put("sayso.toml", &text);
        Settings::load(Some(Path::new(&path)), [], &[]).unwrap()
    }

    fn made(&self, asked: Asked, lines: &str, wishes: &Wishes) -> anyhow::Result<Enforcement> {
        let settings = self.settings(lines);
        Policies::of(&settings, "http://127.0.0.1:8441").enforcement(asked, URL, wishes)
    }

    fn fault(&self, asked: Asked, lines: &str, wishes: &Wishes) -> String {
        format!("{:#}", self.made(asked, lines, wishes).expect_err(lines))
    }
}

const EMBEDDED_PDP: &str = "[pdp]\npolicies = 'DIR/p'\n";
const OAUTH: &str = "[oauth]\nissuers = ['https://idp.example.test']\n";

// D-6, COAZ-FW-49, COAZ-MCP-86
#[test]
fn who_is_asked_is_there_or_nothing_starts() {
    let case = Case::new();
    let plain = Wishes::default();
    let all = format!("{EMBEDDED_PDP}{OAUTH}");
    assert!(matches!(case.made(Asked::Owner, "", &plain), Ok(Enforcement::Uma)));
    assert!(matches!(case.made(Asked::Nobody, "", &plain), Ok(Enforcement::Nothing)));
    assert!(matches!(case.made(Asked::Both, EMBEDDED_PDP, &plain), Ok(Enforcement::UmaAndCoaz(_))));
    let Ok(Enforcement::Coaz(policed)) = case.made(Asked::Policy, &all, &plain) else { panic!() };
    assert_eq!(policed.tokens.issuers(), ["https://idp.example.test"]);
    let remote = format!("[pdp]\nurl = 'https://pdp.example.test'\n{OAUTH}");
    assert!(matches!(case.made(Asked::Policy, &remote, &plain), Ok(Enforcement::Coaz(_))));

    let embedded = Wishes { pdp: Some(EMBEDDED.into()), ..Wishes::default() };
    let elsewhere = Wishes { pdp: Some("http://pdp.example.test".into()), ..Wishes::default() };
    let odd = Wishes { extra_defaults: vec!["tools/run".into()], ..Wishes::default() };
    let cut = Wishes { filter_lists: true, ..Wishes::default() };
    for (asked, lines, wishes, word) in [
        (Asked::Policy, EMBEDDED_PDP, &plain, "issuer"),
        (Asked::Policy, OAUTH, &plain, "asks a policy engine"),
        (Asked::Both, "", &plain, "asks a policy engine"),
        (Asked::Both, "", &embedded, "policies"),
        (Asked::Both, "[pdp]\npolicies = 'DIR/none'\n", &plain, "none"),
        (Asked::Both, "", &elsewhere, "plain http"),
        (
            Asked::Both,
            "[pdp]\nurl = 'https://pdp.example.test'\npolicies = 'DIR/p'\n",
            &plain,
            "which of them",
        ),
        (
            Asked::Both,
            "[pdp]\nurl = 'https://pdp.example.test'\ntoken_env = 'SAYSO_NO_SUCH'\n",
            &plain,
            "SAYSO_NO_SUCH",
        ),
        (Asked::Both, "[pdp]\nurl = 'https://pdp.example.test'\nca = 'DIR/no.pem'\n", &plain, "pdp.ca"),
        (Asked::Both, "[pdp]\nurl = 'https://pdp.example.test'\ntimeout = 0\n", &plain, "pdp.timeout"),
        (Asked::Policy, &all, &odd, "extra_defaults"),
        (Asked::Both, EMBEDDED_PDP, &cut, "filter_lists"),
        (Asked::Policy, &format!("{all}algorithms = ['none']\n"), &plain, "none"),
    ] {
        let fault = case.fault(asked, lines, wishes);
        assert!(fault.contains(word), "{lines}: {fault}");
    }
}

// D-36: a listing that is not one is no listing.
#[test]
fn mappings_are_asked_for_said_to_be_none_or_read_from_a_file() {
    let case = Case::new();
    let with = |mappings: String| Wishes { mappings: Some(mappings), ..Wishes::default() };
    for good in [
        NONE.to_owned(),
        case.put("one.json", r#"{"tools":[]}"#),
        case.put("pages.json", r#"[{"tools":[],"nextCursor":"2"},{"tools":[]}]"#),
        case.put("answer.json", r#"{"jsonrpc":"2.0","id":1,"result":{"tools":[]}}"#),
    ] {
        assert!(case.made(Asked::Both, EMBEDDED_PDP, &with(good.clone())).is_ok(), "{good}");
    }
    for bad in [
        "/no/such/file".to_owned(),
        case.put("bad.json", "{"),
        case.put("other.json", r#"{"prompts":[]}"#),
        case.put("part.json", r#"{"tools":[],"nextCursor":"2"}"#),
    ] {
        let fault = case.fault(Asked::Both, EMBEDDED_PDP, &with(bad.clone()));
        assert!(fault.contains("mappings"), "{bad}: {fault}");
    }
}

#[test]
fn a_token_for_the_policy_engine_is_in_a_file_or_a_variable() {
    let case = Case::new();
    let file = case.put("token", "secret\n");
    let held = |lines: &str| bearer(&case.settings(lines));
    assert_eq!(held("").unwrap(), None);
    assert_eq!(held(&format!("[pdp]\ntoken_file = '{file}'\n")).unwrap().as_deref(), Some("secret"));
    assert!(held("[pdp]\ntoken_file = 'DIR/none'\n").is_err());
    assert!(held(&format!("[pdp]\ntoken_file = '{file}'\ntoken_env = 'PATH'\n")).is_err());
}
