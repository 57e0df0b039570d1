//! Looking for whoever an agent says runs it: a client metadata document, and the key directory of the same origin
//! (CORE-51, CORE-53, CORE-54, POL-30..32).
//!
//! A stranger names what is fetched, so it is fetched through the strangers' door, after the agreement verified and
//! within bounds (D-41). What cannot be read changes nothing but a sentence she reads.

mod looks;

pub(crate) use looks::Looks;

use crate::Authority;
use crate::introduction::source;
use bytes::Bytes;
use http::Response;
use looks::Page;
use sayso_fetch::{Limits, get_with_headers};
use sayso_owner::evidence::{Found, Operator};
use sayso_protocol::id::MAX_BYTES;
use sayso_protocol::payload::agreement::SignedAgreement;
use sayso_protocol::payload::client::{ClientMetadata, client_address, directory_keys, directory_of};
use sayso_protocol::sig::{authority_of, is_signed_directory};
use sayso_protocol::{Thumbprint, VerifyingKey};
use url::Url;

impl Authority {
    /// Looks for the operator an agreement names, if it names one.
    pub(crate) async fn operator(&self, agreement: &SignedAgreement) -> Option<Operator> {
        let described = agreement.described();
        let client_id = described.client_id.as_deref()?;
        let nothing = || Operator { client_id: bounded(client_id), name: None, found: Found::Nothing };
        // An agreement that breaks every terms there are is nobody's reason to ask anybody.
        let worth = agreement.is_for(self.issuer(), self.now());
        let Some(address) = client_address(client_id).ok().filter(|_| worth) else { return Some(nothing()) };
        let Some(document) = self.described(&address, client_id).await else { return Some(nothing()) };
        let directory = described.directory.as_deref().and_then(|origin| directory_of(&address, origin));
        let key = agreement.key().thumbprint();
        let published = match directory {
            Some(directory) => self.publishes(&address, &directory, &key).await,
            None => false,
        };
        let found = if published { Found::KeyPublished } else { Found::Described };
        Some(Operator { client_id: client_id.to_owned(), name: document.client_name, found })
    }

    async fn described(&self, address: &Url, client_id: &str) -> Option<ClientMetadata> {
        if let Some(Page::Client(known)) = self.looks.known(client_id, self.now()) {
            return Some(known);
        }
        let answer = self.looked(address, client_id).await?;
        let read = ClientMetadata::read(client_id, answer.body()).ok();
        self.looked_at(address, client_id, read.clone().map(Page::Client));
        read
    }

    /// Whether the directory there has the key. A directory that has it is remembered; one that does not is asked again.
    async fn publishes(&self, address: &Url, directory: &str, key: &Thumbprint) -> bool {
        let has = |keys: &[Thumbprint]| keys.contains(key);
        if let Some(Page::Directory(known)) = self.looks.known(directory, self.now())
            && has(&known)
        {
            return true;
        }
        let Some(answer) = self.looked(address, directory).await else { return false };
        // Anybody can list anybody's key. What counts is that each key listed signed for this very place.
        let host = authority_of(address).unwrap_or_default();
        let signed = |key: &VerifyingKey| is_signed_directory(answer.headers(), &host, key, self.now());
        let keys = directory_keys(answer.body()).unwrap_or_default();
        let keys: Vec<Thumbprint> =
            keys.iter().filter(|key| signed(key)).map(VerifyingKey::thumbprint).collect();
        let found = has(&keys);
        self.looked_at(address, directory, found.then_some(Page::Directory(keys)));
        found
    }

    /// What is at an address, if there is room to look now.
    async fn looked(&self, client: &Url, address: &str) -> Option<Response<Bytes>> {
        let source = source(client);
        let _place = self.looks.place(&source, self.now())?;
        match get_with_headers(&*self.egress.strangers, address, Limits::DOCUMENT).await {
            Ok(answer) => Some(answer),
            Err(fault) => {
                tracing::info!(why = %fault, "operator.unreadable");
                self.looks.failed(&source, self.now());
                None
            }
        }
    }

    fn looked_at(&self, client: &Url, address: &str, page: Option<Page>) {
        match page {
            Some(page) => self.looks.found(address, page, self.now()),
            None => self.looks.failed(&source(client), self.now()),
        }
    }
}

/// A name that was given and looked for nowhere, in bounds.
fn bounded(name: &str) -> String {
    let mut end = name.len().min(MAX_BYTES);
    while !name.is_char_boundary(end) {
        end = end.saturating_sub(1);
    }
    name.get(..end).unwrap_or_default().to_owned()
}
