//! What the agent holds: receipts, kept for ever; grants, while they live; negotiations it waits for.
//! It keeps a single-use grant to one use: it leaves the wallet before the call that spends it leaves the machine,
//! and of two processes one gets it. Verifying receipts is `negotiate`'s, before they come here.

#[cfg(test)]
mod tests;

use crate::folder::{Folder, FolderFault};
use crate::negotiate::{About, Negotiation};
use sayso_protocol::b64;
use sayso_protocol::canon::{S256, sha256};
use sayso_protocol::id::{NegotiationId, TemplateId, Timestamp, ToolName};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::path::Path;
use url::Url;

/// The agent's papers.
pub struct Wallet {
    receipts: Folder,
    grants: Folder,
    negotiations: Folder,
}

/// A grant with what it is good for. Holds a token, so it has no `Debug`.
#[derive(Clone, Serialize, Deserialize)]
pub struct Grant {
    pub(crate) token: String,
    pub(crate) receipt: String,
    /// The resource it was negotiated for.
    pub resource: String,
    /// The tool.
    pub tool: ToolName,
    /// The authorization reference of the refusal it answers, where the refusal had one.
    pub reference: Option<S256>,
    /// Thumbprint of the key it is bound to.
    pub key: String,
    /// The authority that gave it.
    pub authority: String,
    /// The digest of the arguments, when it is for one call and spent by it.
    pub operation: Option<S256>,
    /// Whether it was spent by a call, whose tool may have asked something: it is good for the answer and nothing else.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) spent: bool,
    /// When it ends.
    pub expires: Timestamp,
    /// The negotiation it came from.
    pub family: NegotiationId,
    /// The terms agreed to.
    pub template_id: TemplateId,
}

/// A kept receipt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Kept {
    /// The receipt as the authority signed it.
    pub receipt: String,
    /// The authority.
    pub authority: String,
    /// The resource.
    pub resource: String,
    /// The tool.
    pub tool: ToolName,
    /// The terms agreed to.
    pub template_id: TemplateId,
    /// The negotiation.
    pub family: NegotiationId,
    /// When it came.
    pub kept: Timestamp,
}

/// What a grant is wanted for.
#[derive(Clone, Copy)]
pub(crate) struct Wanted<'a> {
    pub(crate) resource: &'a str,
    pub(crate) tool: &'a ToolName,
    pub(crate) params_s256: &'a S256,
    /// Known once a refusal named it: another address of the same resource has the same.
    pub(crate) reference: Option<Reference<'a>>,
    /// Whether it is for an answer to what the tool asked in a call before.
    pub(crate) follows_up: bool,
}

/// An authorization reference, and the authority that was corroborated for the refusal that named it.
#[derive(Clone, Copy)]
pub(crate) struct Reference<'a> {
    pub(crate) digest: &'a S256,
    pub(crate) authority: &'a str,
}

impl Wanted<'_> {
    fn is_met_by(&self, grant: &Grant, now: Timestamp) -> bool {
        let here = grant.resource == self.resource && grant.tool == *self.tool;
        // A reference is the server's word. It finds grants of its own origin and authority, nobody else's.
        let same = self.reference.is_some_and(|reference| {
            grant.reference.as_ref() == Some(reference.digest)
                && grant.authority == reference.authority
                && same_origin(&grant.resource, self.resource)
        });
        (here || same)
            && grant.operation.as_ref().is_none_or(|operation| operation == self.params_s256)
            // A call that asks anew is no answer, and an answer goes with what the call before was made with.
            && (grant.operation.is_none() || grant.spent == self.follows_up)
            && now < grant.expires
    }
}

fn same_origin(one: &str, other: &str) -> bool {
    let origin = |text: &str| Url::parse(text).ok().map(|url| url.origin());
    origin(one).is_some_and(|one| Some(one) == origin(other))
}

impl Wallet {
    /// Opens the papers in a folder, creating it where needed.
    ///
    /// # Errors
    /// When it cannot be created or entered.
    pub fn open(dir: &Path) -> Result<Wallet, FolderFault> {
        let folder = Folder::open(dir)?;
        Ok(Wallet {
            receipts: folder.within("receipts")?,
            grants: folder.within("grants")?,
            negotiations: folder.within("negotiations")?,
        })
    }

    /// Every receipt, oldest first.
    ///
    /// # Errors
    /// When one cannot be read.
    pub fn receipts(&self) -> Result<Vec<Kept>, FolderFault> {
        let mut kept: Vec<Kept> = all(&self.receipts)?;
        kept.sort_by_key(|receipt| receipt.kept);
        Ok(kept)
    }

    /// Every grant that lives at `now`; dead ones are removed.
    ///
    /// # Errors
    /// When one cannot be read.
    pub fn grants(&self, now: Timestamp) -> Result<Vec<Grant>, FolderFault> {
        let mut live = self.live(now)?;
        live.retain(|grant| !grant.spent);
        Ok(live)
    }

    fn live(&self, now: Timestamp) -> Result<Vec<Grant>, FolderFault> {
        let (live, dead): (Vec<Grant>, Vec<Grant>) =
            all(&self.grants)?.into_iter().partition(|grant: &Grant| now < grant.expires);
        for grant in dead {
            self.grants.remove(&grant_name(&grant))?;
        }
        Ok(live)
    }

    /// Puts a grant and its receipt away.
    pub(crate) fn keep(&self, grant: &Grant, now: Timestamp) -> Result<(), FolderFault> {
        let kept = Kept {
            receipt: grant.receipt.clone(),
            authority: grant.authority.clone(),
            resource: grant.resource.clone(),
            tool: grant.tool.clone(),
            template_id: grant.template_id.clone(),
            family: grant.family.clone(),
            kept: now,
        };
        let name = format!("{}.json", b64::encode(sha256(grant.receipt.as_bytes())));
        self.receipts.create(&name, &written(&self.receipts, &name, &kept)?)?;
        self.put(grant)
    }

    /// A grant back in the wallet.
    pub(crate) fn put(&self, grant: &Grant) -> Result<(), FolderFault> {
        let name = grant_name(grant);
        self.grants.write(&name, &written(&self.grants, &name, grant)?)
    }

    /// Keeps what a call was made with, for answers to what its tool may ask in it; nothing, where it was for many calls.
    pub(crate) fn keep_spent(&self, grant: &Grant) -> Result<(), FolderFault> {
        match grant.operation {
            Some(_) => self.put(&Grant { spent: true, ..grant.clone() }),
            None => Ok(()),
        }
    }

    /// A usable grant for a call, claimed.
    pub(crate) fn take(
        &self,
        wanted: &Wanted<'_>,
        now: Timestamp,
        usable: &dyn Fn(&Grant) -> bool,
    ) -> Result<Option<Grant>, FolderFault> {
        let mut fitting: Vec<Grant> = self.live(now)?;
        fitting.retain(|grant| wanted.is_met_by(grant, now) && usable(grant));
        fitting.sort_by_key(|grant| std::cmp::Reverse(grant.expires));
        for grant in fitting {
            if let Some(claimed) = self.claim(grant)? {
                return Ok(Some(claimed));
            }
        }
        Ok(None)
    }

    /// A grant to be used now. A single-use one is gone from the wallet with that, and one caller gets it.
    pub(crate) fn claim(&self, grant: Grant) -> Result<Option<Grant>, FolderFault> {
        let claimed = grant.operation.is_none() || self.grants.remove(&grant_name(&grant))?;
        Ok(claimed.then_some(grant))
    }

    /// Throws a grant away.
    pub(crate) fn discard(&self, grant: &Grant) -> Result<(), FolderFault> {
        self.grants.remove(&grant_name(grant)).map(|_| ())
    }

    /// Puts a negotiation away, to be taken up by the same call later, or by any call of the tool where the terms are
    /// for all of them.
    pub(crate) fn park(&self, negotiation: &Negotiation) -> Result<(), FolderFault> {
        let name = place_of(negotiation);
        self.negotiations.write(&name, &written(&self.negotiations, &name, negotiation)?)
    }

    /// The negotiation an earlier call of the same kind left.
    pub(crate) fn parked(&self, wanted: &Wanted<'_>) -> Result<Option<Negotiation>, FolderFault> {
        for name in [exact_place(wanted), wide_place(wanted)] {
            let Some(bytes) = self.negotiations.read(&name)? else { continue };
            // What an older version of this program left, or half a disk, is no reason not to ask again.
            if let Ok(negotiation) = serde_json::from_slice(&bytes) {
                return Ok(Some(negotiation));
            }
        }
        Ok(None)
    }

    /// Forgets a negotiation.
    pub(crate) fn forget(&self, negotiation: &Negotiation) -> Result<(), FolderFault> {
        self.negotiations.remove(&place_of(negotiation)).map(|_| ())
    }
}

fn all<T: DeserializeOwned>(folder: &Folder) -> Result<Vec<T>, FolderFault> {
    let mut found = Vec::new();
    for name in folder.names(".json")? {
        // Between listing and reading, another process may have taken it.
        let Some(bytes) = folder.read(&name)? else { continue };
        let damaged = |_| FolderFault::Damaged { path: folder.path_of(&name) };
        found.push(serde_json::from_slice(&bytes).map_err(damaged)?);
    }
    Ok(found)
}

fn written<T: Serialize>(folder: &Folder, name: &str, value: &T) -> Result<Vec<u8>, FolderFault> {
    serde_json::to_vec(value).map_err(|_| FolderFault::Damaged { path: folder.path_of(name) })
}

fn grant_name(grant: &Grant) -> String {
    format!("{}.json", b64::encode(sha256(grant.token.as_bytes())))
}

fn place_of(negotiation: &Negotiation) -> String {
    let About { resource, tool, params_s256, .. } = &negotiation.about;
    negotiation_name(resource, tool, negotiation.is_exact().then_some(params_s256))
}

/// The name of what is negotiated for one operation.
pub(crate) fn exact_place(wanted: &Wanted<'_>) -> String {
    negotiation_name(wanted.resource, wanted.tool, Some(wanted.params_s256))
}

/// The name of what is negotiated for every call of a tool.
pub(crate) fn wide_place(wanted: &Wanted<'_>) -> String {
    negotiation_name(wanted.resource, wanted.tool, None)
}

fn negotiation_name(resource: &str, tool: &ToolName, params: Option<&S256>) -> String {
    let params = params.map(ToString::to_string).unwrap_or_default();
    let all = format!("{resource}\n{tool}\n{params}");
    format!("{}.json", b64::encode(sha256(all.as_bytes())))
}
