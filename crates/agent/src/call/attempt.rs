//! One sending of a call, and what its answer makes of the grant it carried (D-14).
//! It keeps a grant that was certainly not spent, and never again uses one that may have been. Nothing here sends a
//! second time.

use super::dance::{Attempt, Over, Road};
use super::reply::Reply;
use super::server::{Written, exchange};
use super::{Agent, Errand, Outcome, Visit};
use crate::discover::Dialled;
use crate::fault::{BadDemand, Fault, Party};
use crate::negotiate::token::{SIGNATURE_AGENT, sign};
use crate::wallet::Grant;
use async_trait::async_trait;
use http::header::{AUTHORIZATION, HeaderValue};
use sayso_protocol::payload::rpt::SCHEME;
use serde_json::Value;

#[async_trait]
impl Road for (&Dialled, &mut Visit) {
    async fn attempt(
        &mut self,
        agent: &Agent,
        errand: &Errand,
        grant: Option<&Grant>,
    ) -> Result<Attempt, Fault> {
        let (dialled, visit) = self;
        if let Some(grant) = grant {
            visit.signer = Some(agent.key_at(errand, &grant.authority)?);
        }
        agent.attempt(dialled, &visit.written, grant, errand).await
    }

    async fn anew(&mut self, agent: &Agent, errand: &Errand) -> Result<bool, Fault> {
        let (dialled, visit) = self;
        let had = visit.server.has_session();
        if had {
            **visit = agent.visit(errand, dialled).await?;
        }
        Ok(had)
    }
}

impl Agent {
    /// Sends the call: as it is, or with a grant and signed. A single-use grant is out of the wallet by now.
    async fn attempt(
        &self,
        dialled: &Dialled,
        written: &Written,
        grant: Option<&Grant>,
        errand: &Errand,
    ) -> Result<Attempt, Fault> {
        let Some(grant) = grant else {
            let (_, reply) = exchange(&*self.doors.near, dialled, written).await?;
            return Ok(judge(reply));
        };
        let mut signed = written.clone();
        signed.once = grant.operation.is_some();
        let token =
            HeaderValue::from_str(&format!("{SCHEME} {}", grant.token)).map_err(|_| BadDemand::Token)?;
        signed.headers.insert(AUTHORIZATION, token);
        if let Some(directory) = errand.shows.signature_agent() {
            signed.headers.insert(SIGNATURE_AGENT, directory);
        }
        let key = self.key_at(errand, &grant.authority)?;
        sign("POST", dialled.url(), &mut signed.headers, &signed.body, &key, (self.now)())?;
        match exchange(&*self.doors.near, dialled, &signed).await {
            Ok((_, reply)) => self.settle(grant, reply),
            Err(Fault::Unavailable { why, .. }) if why.nothing_sent() => {
                self.wallet.put(grant)?;
                Err(Party::Resource.unavailable(why))
            }
            // Whether it ran nobody here can know, so it is not sent again.
            Err(Fault::Unavailable { why, .. }) => Ok(Outcome::Unknown { why: Some(why) }.into()),
            Err(Fault::Server(_)) => Ok(Outcome::Unknown { why: None }.into()),
            Err(other) => Err(other),
        }
    }

    /// What a reply to a signed call makes of its grant.
    pub(super) fn settle(&self, grant: &Grant, reply: Reply) -> Result<Attempt, Fault> {
        if let Reply::Refused(refused) = &reply {
            let unspent = refused.code.as_deref() == Some("temporarily_unavailable") && !refused.spent;
            if refused.spent || (refused.status >= 500 && !unspent) {
                return Ok(Outcome::Unknown { why: None }.into());
            }
            match refused.code.as_deref() {
                Some("access_revoked" | "already_consumed") => self.wallet.discard(grant)?,
                _ => self.wallet.put(grant)?,
            }
        }
        if let Reply::Challenge(_) = &reply {
            self.wallet.discard(grant)?;
        }
        Ok(judge(reply))
    }
}

pub(super) fn judge(reply: Reply) -> Attempt {
    Attempt::Over(Over::Outcome(match reply {
        Reply::Challenge(challenge) => return Attempt::Challenged(challenge),
        Reply::Result(json) => {
            let value: Value = serde_json::from_str(&json).unwrap_or_default();
            let failed = value.get("isError").and_then(Value::as_bool).unwrap_or_default();
            Outcome::Result { json, failed }
        }
        Reply::Error { json, .. } => Outcome::ServerError { json },
        Reply::Refused(refused) => Outcome::Refused(refused),
    }))
}
