//! Vectors have names of their own. Which named case of the binding is shown where is a row of SPEC-MAP.md, whose
//! test holds these files against what the tests above them quote.

use std::collections::BTreeSet;

use super::read::{Vector, file};

#[test]
fn every_vector_has_a_name_of_its_own() {
    for name in
        ["values", "methods", "audience", "subject", "envelopes", "examples", "answers", "listing", "shape"]
    {
        let vectors = file(name).vectors();
        let once: BTreeSet<&str> = vectors.iter().map(Vector::name).collect();
        assert_eq!(vectors.len(), once.len(), "{name}: a name is used twice");
    }
}
