//! Keys seen first over plain http, where nothing else says that a server is the one met before (D-33).
//! It keeps the first sight: another set of keys later is refused until the pin is removed by hand. Over https
//! there are no pins; the certificate says who it is.

use crate::fault::{Fault, Uncorroborated};
use crate::folder::{Folder, FolderFault};
use sayso_protocol::canon::sha256;
use sayso_protocol::{VerifyingKey, b64};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::path::Path;
use url::Url;

/// The pins of one agent.
pub(crate) struct Pins {
    folder: Folder,
}

#[derive(Serialize, Deserialize, PartialEq)]
struct Pin {
    origin: String,
    keys: BTreeSet<String>,
}

impl Pins {
    pub(crate) fn open(dir: &Path) -> Result<Pins, FolderFault> {
        Ok(Pins { folder: Folder::open(dir)?.within("pins")? })
    }

    /// Holds the keys an origin publishes for a role against those it was first seen with; none at all count too.
    pub(crate) fn hold(&self, role: &str, url: &Url, keys: &[(String, VerifyingKey)]) -> Result<(), Fault> {
        if url.scheme() != "http" {
            return Ok(());
        }
        let origin = url.origin().ascii_serialization();
        let keys = keys.iter().map(|(_, key)| key.thumbprint().as_str().to_owned()).collect();
        let name = format!("{}.json", b64::encode(sha256(format!("{role} {origin}").as_bytes())));
        let seen = Pin { origin, keys };
        let damaged = || FolderFault::Damaged { path: self.folder.path_of(&name) };
        let Some(bytes) = self.folder.read(&name)? else {
            // Nothing published, nothing to remember: what is published later is then first sight.
            if !seen.keys.is_empty() {
                self.folder.create(&name, &serde_json::to_vec(&seen).map_err(|_| damaged())?)?;
            }
            return Ok(());
        };
        let pinned: Pin = serde_json::from_slice(&bytes).map_err(|_| damaged())?;
        if pinned == seen { Ok(()) } else { Err(Uncorroborated::PinChanged.into()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sayso_protocol::SigningKey;

    fn keys(seeds: &[u8]) -> Vec<(String, VerifyingKey)> {
        let key = |seed: &u8| SigningKey::from_seed(&[*seed; 32]).unwrap();
        seeds.iter().map(|seed| (key(seed).kid(), key(seed).verifying().clone())).collect()
    }

    #[test]
    fn first_sight_decides_over_http_and_nothing_over_https() {
        let dir = tempfile::tempdir().unwrap();
        let pins = Pins::open(dir.path()).unwrap();
        let http = Url::parse("http://127.0.0.1:8440/a").unwrap();
        let other = Url::parse("http://127.0.0.1:8441/a").unwrap();
        let https = Url::parse("https://as.example.test").unwrap();
        pins.hold("authority", &http, &[]).unwrap();
        pins.hold("authority", &http, &keys(&[1])).unwrap();
        pins.hold("authority", &http, &keys(&[1])).unwrap();
        for changed in [&[2][..], &[1, 2], &[]] {
            let fault = pins.hold("authority", &http, &keys(changed)).unwrap_err();
            assert!(matches!(fault, Fault::Uncorroborated(Uncorroborated::PinChanged)));
        }
        pins.hold("resource", &http, &keys(&[2])).unwrap();
        pins.hold("authority", &other, &keys(&[2])).unwrap();
        for seeds in [&[1][..], &[2]] {
            pins.hold("authority", &https, &keys(seeds)).unwrap();
        }
    }
}
