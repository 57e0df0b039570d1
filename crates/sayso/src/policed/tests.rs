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
        Policies::read(&settings, "http://127.0.0.1:8441")?.enforcement(asked, URL, wishes)
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
    let held = |lines: &str| named::bearer(&case.settings(lines));
    assert_eq!(held("").unwrap(), None);
    assert_eq!(held(&format!("[pdp]\ntoken_file = '{file}'\n")).unwrap().as_deref(), Some("secret"));
    assert!(held("[pdp]\ntoken_file = 'DIR/none'\n").is_err());
    assert!(held(&format!("[pdp]\ntoken_file = '{file}'\ntoken_env = 'PATH'\n")).is_err());
}

// COAZ-MCP-86: what is set is read at the start, whoever will ask.
#[test]
fn what_cannot_be_used_is_refused_though_nobody_asks() {
    let case = Case::new();
    case.put("bad/p.cedar", "permit(principal, action, resource) when { what };\n");
    case.put("noise.pem", "noise");
    case.put("spaced", "a secret\n");
    let two = "issuers = ['https://a.example.test', 'https://b.example.test']\n";
    let fault = |lines: &str| {
        let read = Policies::read(&case.settings(lines), "http://127.0.0.1:8441");
        format!("{:#}", read.err().unwrap_or_else(|| panic!("{lines} starts")))
    };
    for (lines, word) in [
        ("url = 'http://pdp.example.test'", "use https"),
        ("url = 'pdp.example.test'", "https URL"),
        ("url = 'https://pdp.example.test?a=b'", "no query"),
        ("url = 'embedded'", "`policies`, a folder"),
        ("policies = 'DIR/none'", "none"),
        ("policies = 'DIR/bad'", "p.cedar"),
        ("timeout = 0", "between 1 and 30000"),
        ("timeout = 'soon'", "between 1 and 30000"),
        ("ca = 'DIR/none.pem'", "name a PEM file that is there"),
        ("ca = 'DIR/noise.pem'", "PEM"),
        ("certificate = 'DIR/noise.pem'", "set both, or neither"),
        ("certificate = 'DIR/noise.pem'\nkey = 'DIR/noise.pem'", "PEM"),
        ("token_env = 'SAYSO_NO_SUCH'", "SAYSO_NO_SUCH"),
        ("token_file = 'DIR/none'", "cannot read"),
        ("token_file = 'DIR/spaced'", "bare token"),
    ] {
        let fault = fault(&format!("[pdp]\n{lines}\n"));
        assert!(fault.contains(word), "{lines}: {fault}");
    }
    for (lines, word) in [
        ("issuers = ['idp.example.test']", "https URL"),
        ("issuers = ['http://idp.example.test']", "https URL"),
        ("issuers = ['https://a.example.test', 'https://a.example.test']", "twice"),
        ("algorithms = ['HS256']", "HS256"),
        ("require_at_jwt = 'maybe'", "require_at_jwt"),
        ("jwks_uri = 'https://keys.example.test'", "0 issuers"),
        ("algorithms = ['HS256']", "`oauth.algorithms`"),
        ("issuers = ['https://a.example.test']\njwks_uri = 'keys'", "https URL"),
        (
            "issuers = ['https://a.example.test']\njwks_uri = ['https://k.example.test', 'https://l.example.test']",
            "twice",
        ),
        (&format!("{two}jwks_uri = 'https://keys.example.test'"), "ISSUER URL"),
        (&format!("{two}jwks_uri = ['https://c.example.test https://keys.example.test']"), "list it there"),
        (&format!("{two}jwks_uri = ['https://a.example.test https://k.example.test x']"), "ISSUER URL"),
    ] {
        let fault = fault(&format!("[oauth]\n{lines}\n"));
        assert!(fault.contains(word), "{lines}: {fault}");
    }
    for good in [
        "[pdp]\npolicies = 'DIR/p'\n".to_owned(),
        "[pdp]\nurl = 'http://127.0.0.1:9'\n".to_owned(),
        format!("[oauth]\n{two}jwks_uri = ['https://b.example.test https://keys.example.test/b']\n"),
        "[oauth]\nissuers = ['https://a.example.test']\njwks_uri = 'https://keys.example.test'\n".to_owned(),
    ] {
        assert!(Policies::read(&case.settings(&good), "http://127.0.0.1:8441").is_ok(), "{good}");
    }
    let there =
        Policies::read(&case.settings("[pdp]\nurl = 'http://127.0.0.1:9'\n"), "https://gw.example.test");
    assert!(there.is_err(), "plain http is for development");
}

// COAZ-MCP-78, COAZ-MCP-79
#[test]
fn how_a_denial_is_told_is_set() {
    let case = Case::new();
    for (lines, denials) in [
        ("", Some((false, false))),
        ("[gateway]\ndenials = 'tool_result'\ndenial_text = 'reason_user.en'\n", Some((true, true))),
        ("[gateway]\ndenials = 'error'\n", Some((false, false))),
        ("[gateway]\ndenials = 'result'\n", None),
        ("[gateway]\ndenial_text = 'reason..en'\n", None),
    ] {
        let wishes = Wishes::of(&case.settings(lines)).and_then(|wishes| wishes.denials());
        let told = wishes.ok().map(|denials| (denials.as_result, denials.words.is_some()));
        assert_eq!(told, denials, "{lines}");
    }
}
