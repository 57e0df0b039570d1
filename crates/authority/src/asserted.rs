//! For whom an agent acts, by the word of a provider that is believed here (CORE-35, CORE-36).
//!
//! An assertion is looked at where it was asked for and nowhere else, counts once, and opens nothing: what it leads to is the
//! terms. Whatever is wrong with one is answered alike, and its ticket stays good.

use crate::Authority;
use crate::gather::doubted;
use sayso_fetch::{Fetch, Limits, get};
use sayso_owner::step::Beat;
use sayso_owner::store::{Digest, Peek};
use sayso_protocol::payload::assertion::{Asked, BadAssertion, Said};
use sayso_protocol::payload::credential::{IssuerKeys, provider_addresses, provider_keys_address};
use sayso_protocol::payload::negotiation::{TokenError, TokenReply};
use std::sync::Arc;

const UNCONVINCED: &str = "the identity assertion is not one this authority accepts; present the ticket again with another \
                           one: from a provider that is named, for this authority, fresh, and bound to your key";
const UNABLE: &str = "whether this was used before cannot be found out now; nothing was spent, try again";

impl Authority {
    /// The beat of an assertion, or an answer that leaves the ticket as it is.
    pub(crate) async fn asserted(&self, token: &str, ticket: &str, peek: &Peek) -> Result<Beat, TokenReply> {
        let refused = |why: BadAssertion| {
            tracing::info!(%why, "assertion.refused");
            doubted(ticket, UNCONVINCED)
        };
        let asked = Asked {
            authority: self.issuer(),
            server: peek.client_id.as_str(),
            scopes: &peek.scopes,
            subject: &self.identity_claim,
        };
        let said = Said::read(token).map_err(refused)?;
        let provider = said.issuer().to_owned();
        if !self.providers.believes(&provider) {
            return Err(refused(BadAssertion::Issuer));
        }
        said.could_hold(&asked, self.now()).map_err(refused)?;
        let kid = said.kid().map(str::to_owned);
        let serves = |keys: &IssuerKeys| keys.knows(kid.as_deref());
        let ask = || ask_provider(self.egress.configured.clone(), provider.clone());
        let keys = self.providers.keys(&provider, serves, &self.clock, ask).await;
        let keys = keys.ok_or(BadAssertion::Unpublished).map_err(refused)?;
        let (once, until) = said.once();
        let asserted = said.vouched(&keys, &asked, self.now()).map_err(refused)?;
        // Last, so that nothing but a true assertion is remembered, and nobody else can use one up.
        match self.store.remember(Digest::of(&once), until, self.now()).await {
            Ok(true) => Ok(Beat::Identify(asserted)),
            Ok(false) => Err(refused(BadAssertion::Used)),
            Err(_) => Err(TokenReply::refused(TokenError::TemporarilyUnavailable, UNABLE)),
        }
    }
}

/// What a provider publishes now: where an authorization server says so, else where OpenID does.
async fn ask_provider(fetch: Arc<dyn Fetch>, provider: String) -> Option<IssuerKeys> {
    for document in provider_addresses(&provider)? {
        let read = async {
            let document = get(&*fetch, &document, Limits::DOCUMENT).await.map_err(|why| why.to_string())?;
            let address = provider_keys_address(&provider, &document).map_err(|why| why.to_string())?;
            let set = get(&*fetch, &address, Limits::DOCUMENT).await.map_err(|why| why.to_string())?;
            IssuerKeys::read(&set).map_err(|why| why.to_string())
        };
        match read.await {
            Ok(keys) => return Some(keys),
            Err(why) => tracing::warn!(provider, why, "provider.unreadable"),
        }
    }
    None
}
