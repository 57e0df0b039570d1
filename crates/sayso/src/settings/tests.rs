//! Where a value comes from, and what is refused by name.

use super::*;

fn load(
    file: &str,
    env: &[(&str, &str)],
    flags: &[(&'static str, Option<String>)],
) -> anyhow::Result<Settings> {
    let dir = tempfile::tempdir()?;
    let path = dir.path().join("sayso.toml");
    std::fs::write(&path, file)?;
    let env = env.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
    Settings::load(Some(&path), env.collect::<Vec<_>>(), flags)
}

#[test]
fn the_nearer_source_wins() {
    let file = "data = 'f'\n[authority]\nlisten = 'f:1'\ninterval = 3\n[gateway]\nlisten = 'f:2'\n";
    let env = [("SAYSO_GATEWAY__LISTEN", "e:2"), ("SAYSO_BIN", "x"), ("HOME", "/")];
    let settings = load(file, &env, &[("authority.listen", Some("g:1".into()))]).unwrap();
    assert_eq!(settings.text("data"), Some("f"));
    assert_eq!(settings.text("authority.listen"), Some("g:1"));
    assert_eq!(settings.text("gateway.listen"), Some("e:2"));
    assert_eq!(settings.parse::<i64>("authority.interval").unwrap(), 3);
    assert!(settings.print().contains("gateway.listen = \"e:2\"  # environment"));
}

#[test]
fn an_unknown_key_names_its_neighbour() {
    let fault = load("[authority]\nlisen = 'x'\n", &[], &[]).err().unwrap();
    assert!(format!("{fault:#}").contains("did you mean `authority.listen`"), "{fault:#}");
    for variable in ["SAYSO_GATEWAY__LISTN", "SAYSO_GATWAY__LISTEN"] {
        let fault = load("", &[(variable, "x")], &[]).err().unwrap();
        assert!(format!("{fault:#}").contains("did you mean `gateway.listen`"), "{fault:#}");
    }
    let fault = load("", &[("SAYSO_EDITON", "x")], &[]).err().unwrap();
    assert!(format!("{fault:#}").contains("did you mean `edition`"), "{fault:#}");
    load("", &[("SAYSO_LOG", "x"), ("SAYSO_BIN", "x"), ("SAYSO_CONFIG_DIR", "x")], &[]).unwrap();
}

#[test]
fn a_table_that_repeats_is_written_so() {
    for (file, meant) in [("[[resourcs]]\nx = 1\n", "[[resource]]"), ("[resource]\nx = 1\n", "[[resource]]")]
    {
        let fault = load(file, &[], &[]).err().unwrap();
        assert!(format!("{fault:#}").contains(meant), "{fault:#}");
    }
}

// D-6
#[test]
fn that_nothing_is_enforced_has_to_be_said() {
    let enforced = |file: &str| load(file, &[], &[]).and_then(|settings| settings.asked());
    assert_eq!(enforced("").unwrap(), Asked::Owner);
    assert_eq!(enforced("[gateway]\nenforce = ['uma']\n").unwrap(), Asked::Owner);
    assert_eq!(enforced("[gateway]\nenforce = []\n").unwrap(), Asked::Nobody);
    for bad in ["''", "false", "'none'", "['uma', 'uma']", "['']"] {
        assert!(enforced(&format!("[gateway]\nenforce = {bad}\n")).is_err(), "{bad}");
    }
}

#[test]
fn a_number_has_its_range() {
    let settings = load("[authority]\ninterval = 61\n", &[], &[]).unwrap();
    let fault = settings.whole("authority.interval", 1..=60).unwrap_err().to_string();
    assert!(fault.contains("between 1 and 60"), "{fault}");
    assert_eq!(settings.whole("authority.interval", 1..=61).unwrap(), 61);
}
