//! Runs every vector of `vectors/sig`.
//!
//! Where a vector shows its signature base, ours must equal it byte for byte. A file not listed fails the test.

use super::*;

const FILES: [(&str, &str); 5] = [
    ("coverage", include_str!("../../../../../vectors/sig/coverage.json")),
    ("labels", include_str!("../../../../../vectors/sig/labels.json")),
    ("target", include_str!("../../../../../vectors/sig/target.json")),
    ("freshness", include_str!("../../../../../vectors/sig/freshness.json")),
    ("digest", include_str!("../../../../../vectors/sig/digest.json")),
];

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(rename = "about")]
    _about: String,
    vectors: Vec<Vector>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Vector {
    name: String,
    rows: Vec<String>,
    now: i64,
    key_seed: String,
    #[serde(default)]
    profile: Demands,
    request: Sent,
    base: Option<String>,
    expect: Expect,
}

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields)]
struct Demands {
    body: Option<String>,
    query: Option<String>,
}

impl Demands {
    fn profile(&self) -> Profile {
        let body = self.body.as_deref().map_or(BodyRule::RequireDigest, |rule| {
            assert_eq!(rule, "accept_uncovered");
            BodyRule::AcceptUncovered
        });
        let query = self.query.as_deref().map_or(QueryRule::Cover, |rule| {
            assert_eq!(rule, "accept_in_path");
            QueryRule::AcceptInPath
        });
        Profile { body, query }
    }
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Expect {
    Verified { verified: bool, covers_body: bool },
    Refused { refused: String },
}

impl Vector {
    fn key(&self) -> SigningKey {
        let pairs = self.key_seed.as_bytes().chunks(2);
        let seed: Vec<u8> =
            pairs.map(|pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap()).collect();
        SigningKey::from_seed(&seed.try_into().unwrap()).unwrap()
    }

    /// What differs from the expectation, if anything.
    fn difference(&self) -> Option<String> {
        let (key, profile) = (self.key(), self.profile.profile());
        match (self.request.verify(key.verifying(), &profile, Timestamp(self.now)), &self.expect) {
            (Ok(proof), Expect::Verified { verified: true, covers_body }) => {
                let base = self.base(&profile);
                (proof.covers_body != *covers_body || self.base.as_ref().is_some_and(|shown| *shown != base))
                    .then(|| format!("{proof:?}\n{base}"))
            }
            (Err(fault), Expect::Refused { refused }) => {
                (fault.to_string() != *refused).then(|| fault.to_string())
            }
            (found, _) => Some(format!("{found:?}")),
        }
    }

    fn base(&self, profile: &Profile) -> String {
        let headers = self.request.headers();
        let read = read(&headers).unwrap();
        let last = read.candidates.last().unwrap();
        let request = Request {
            facts: &self.request.facts(&headers),
            content_digest: None,
            query_in_path: profile.query == QueryRule::AcceptInPath && !last.covers("@query"),
        };
        base::signature_base(&last.covered, &last.params, &request).unwrap()
    }
}

#[test]
fn every_vector_comes_out_as_it_says() {
    let mut wrong = Vec::new();
    for (file, text) in FILES {
        let file_read: File = serde_json::from_str(text).unwrap();
        for vector in file_read.vectors {
            assert!(!vector.rows.is_empty(), "{file}: {}", vector.name);
            if let Some(found) = vector.difference() {
                wrong.push(format!("{file}: {} {:?}: {found}", vector.name, vector.rows));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_file_of_vectors_is_run() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../vectors/sig");
    for entry in std::fs::read_dir(folder).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        assert!(FILES.iter().any(|(file, _)| format!("{file}.json") == name), "{name} is not run");
    }
}
