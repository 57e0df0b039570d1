//! Tables that are read, and those that are refused by name.

use super::*;

fn read(text: &str) -> anyhow::Result<Tables> {
    let dir = tempfile::tempdir()?;
    let path = dir.path().join("sayso.toml");
    std::fs::write(&path, text)?;
    Tables::read(&path)
}

const RESOURCE: &str = r#"
    [gateway]
    listen = "127.0.0.1:0"
    [[resource]]
    path = "/mcp"
    owner = "alice"
    authority = "http://127.0.0.1:8440"
    realm = "vault"
    upstream = "http://127.0.0.1:9/mcp"
    single_use = ["trade"]
    [[resource.tools]]
    name = "trade"
    scopes = ["trade:call"]
"#;

#[test]
fn tools_are_named_under_their_realm() {
    let tables = read(RESOURCE).unwrap();
    let [tool] = &tables.resource[0].tools().unwrap()[..] else { panic!("one tool") };
    assert_eq!(tool.resource_id.as_str(), "vault/trade");
    assert!(tool.single_use);
}

#[test]
fn a_member_nobody_knows_is_refused_by_name() {
    let fault = read(&RESOURCE.replace("single_use", "single_user")).err().unwrap();
    assert!(format!("{fault:#}").contains("single_user"), "{fault:#}");
    let tables = read(&RESOURCE.replace("[\"trade\"]", "[\"other\"]")).unwrap();
    assert!(tables.resource[0].tools().is_err());
}

#[test]
fn a_server_is_told_its_own_host_unless_the_public_one_is_to_be_kept() {
    let told = |line: &str| {
        let text = RESOURCE.replacen("path =", &format!("{line}\npath ="), 1);
        read(&text).map(|tables| tables.resource[0].upstream_host.of("https://gw.example:8443"))
    };
    assert_eq!(told("").unwrap(), None);
    assert_eq!(told("upstream_host = 'rewrite'").unwrap(), None);
    assert_eq!(told("upstream_host = 'preserve'").unwrap().as_deref(), Some("gw.example:8443"));
    for bad in ["keep", "Preserve", "", "gw.example"] {
        let fault = told(&format!("upstream_host = '{bad}'")).err().unwrap();
        assert!(format!("{fault:#}").contains("preserve"), "{fault:#}");
        assert!(bad.parse::<UpstreamHost>().is_err());
    }
}

// D-29
#[test]
fn tools_are_named_or_discovered_and_never_both() {
    let (head, _) = RESOURCE.split_once("[[resource.tools]]").unwrap();
    let nameless = |line: &str| head.replacen("path =", &format!("{line}\npath ="), 1);
    assert!(read(&nameless("discover = true")).unwrap().resource[0].tools().unwrap().is_empty());
    assert!(read(&nameless("enforce = []").replace("single_use = [\"trade\"]", "")).is_ok());
    for bad in [
        nameless(""),
        nameless("discover = false"),
        RESOURCE.replacen("path =", "discover = true\npath =", 1),
    ] {
        let fault = read(&bad).err().unwrap();
        assert!(format!("{fault:#}").contains("discover"), "{fault:#}");
    }
}

// D-6
#[test]
fn a_policy_alone_needs_no_owner_and_says_what_it_cannot_have() {
    let policed = |lines: &str| {
        read(&format!("[[resource]]\npath = '/mcp'\nupstream = 'http://127.0.0.1:9/mcp'\n{lines}"))
    };
    let table =
        policed("enforce = ['coaz']\npdp = 'embedded'\ntrust = 'strict'\nbinding = '2026-09'").unwrap();
    assert_eq!(table.resource[0].asked().unwrap(), Asked::Policy);
    assert!(table.resource[0].hers().is_none());
    for (lines, word) in [
        ("", "owner"),
        ("enforce = ['uma', 'coaz']", "owner"),
        ("enforce = ['coaz']\nsingle_use = ['x']", "single_use"),
        ("enforce = ['coaz']\naliases = ['/m']", "aliases"),
        ("enforce = ['coaz']\ntrust = 'blind'", "trust"),
        ("enforce = ['coaz']\nbinding = '2026-08'", "2026-08"),
    ] {
        let fault = policed(lines).err().unwrap();
        assert!(format!("{fault:#}").contains(word), "{lines}: {fault:#}");
    }
    let (head, _) = RESOURCE.split_once("[[resource.tools]]").unwrap();
    for line in ["pdp = 'embedded'", "filter_lists = true", "extra_defaults = ['server/discover']"] {
        let text = format!("{}\ndiscover = true\n{line}", head.trim_end());
        let fault = read(&text).err().unwrap();
        assert!(format!("{fault:#}").contains("nobody asks one"), "{line}: {fault:#}");
    }
}

// D-6
#[test]
fn that_nothing_is_enforced_has_to_be_said() {
    let enforced = |line: &str| {
        let text = RESOURCE.replacen("path =", &format!("{line}\npath ="), 1);
        read(&text).and_then(|tables| tables.resource[0].asked())
    };
    assert_eq!(enforced("").unwrap(), Asked::Owner);
    assert_eq!(enforced("enforce = ['uma']").unwrap(), Asked::Owner);
    assert_eq!(enforced("enforce = ['uma', 'coaz']").unwrap(), Asked::Both);
    assert_eq!(enforced("enforce = ['coaz', 'uma']").unwrap(), Asked::Both);
    assert_eq!(enforced("enforce = []").unwrap(), Asked::Nobody);
    for bad in [
        "enforce = ['none']",
        "enforce = ['uma', 'uma']",
        "enforce = ['coaz', 'coaz']",
        "enforce = ''",
        "enforce = false",
    ] {
        assert!(enforced(bad).is_err(), "{bad}");
    }
}
