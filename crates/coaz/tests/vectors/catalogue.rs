//! The catalogue is complete: every named case has a vector, or the list of those that are shown elsewhere says where.

use std::collections::BTreeSet;

use sayso_protocol::Json;

use super::read::file;

const FAMILIES: [(&str, usize); 11] = [
    ("CMP", 3),
    ("ERR", 23),
    ("EX", 23),
    ("AUD", 11),
    ("SUB", 16),
    ("ENV", 12),
    ("EVS", 22),
    ("LST", 17),
    ("MSG", 19),
    ("TOK", 10),
    ("AZ", 20),
];

#[test]
fn every_named_case_is_somewhere() {
    let elsewhere = file("elsewhere");
    let elsewhere = elsewhere.get("elsewhere").and_then(Json::as_object).unwrap();
    let mut named: BTreeSet<String> = elsewhere.iter().map(|(name, _)| name.clone()).collect();
    for name in
        ["values", "methods", "audience", "subject", "envelopes", "examples", "answers", "listing", "shape"]
    {
        let vectors = file(name).vectors();
        named.extend(vectors.iter().filter_map(|vector| vector.name().split(' ').next().map(str::to_owned)));
        let all: Vec<&str> = vectors.iter().map(super::read::Vector::name).collect();
        let once: BTreeSet<&&str> = all.iter().collect();
        assert_eq!(all.len(), once.len(), "{name}: a name is used twice");
    }
    let missing: Vec<String> = FAMILIES
        .iter()
        .flat_map(|(family, count)| (1..=*count).map(move |n| format!("{family}-{n:02}")))
        .filter(|id| !named.contains(id))
        .collect();
    assert!(missing.is_empty(), "{missing:?}");
}
