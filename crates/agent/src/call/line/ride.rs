//! One sending of a call on a line, and what its answer makes of the grant it carried (D-14).
//! It keeps to what `attempt` keeps: a grant that was certainly not spent is kept, and nothing is sent a second time.

use super::{Letter, Line, PATIENCE, SESSION, peek};
use crate::call::attempt::judge;
use crate::call::dance::{Attempt, Over, Road};
use crate::call::reply::Reply;
use crate::call::{Agent, Errand, Outcome, Refused};
use crate::fault::{BadDemand, Fault, Party};
use crate::negotiate::token::{SIGNATURE_AGENT, sign};
use crate::stop::Stop;
use crate::wallet::Grant;
use async_trait::async_trait;
use bytes::Bytes;
use http::header::{AUTHORIZATION, HeaderValue};
use http::{Method, Request};
use sayso_fetch::{FetchError, OwnConnection};
use sayso_protocol::payload::rpt::SCHEME;

/// One call on a line.
pub(super) struct Ride<'a> {
    pub(super) line: &'a Line,
    pub(super) letter: &'a Letter,
}

#[async_trait]
impl Road for Ride<'_> {
    async fn attempt(
        &mut self,
        agent: &Agent,
        errand: &Errand,
        grant: Option<&Grant>,
    ) -> Result<Attempt, Fault> {
        if errand.stop.as_ref().is_some_and(Stop::is_said) {
            if let Some(grant) = grant {
                agent.wallet.put(grant)?;
            }
            return Ok(Outcome::Stopped.into());
        }
        let request = self.request(agent, errand, grant)?;
        let sent = async {
            let answer = agent.doors.near.open(request, PATIENCE).await?;
            peek::reply(answer, self.letter.id.as_ref()).await
        };
        let peeked = tokio::select! {
            peeked = sent => peeked,
            // What was sent with a grant may be running by now.
            () = stopped(errand) => return Ok(match grant {
                Some(_) => Outcome::Unknown { why: None },
                None => Outcome::Stopped,
            }.into()),
        };
        let (answer, reply) = match peeked {
            Ok(peeked) => peeked,
            Err(why) => return self.lost(agent, grant, why),
        };
        if answer.status() == 404 && self.line.has_session() {
            let gone = Refused { status: 404, code: Some("session_not_found".into()), ..Default::default() };
            return self.judge(agent, grant, Reply::Refused(gone));
        }
        match reply {
            Some(reply) => self.judge(agent, grant, reply),
            None => Ok(Attempt::Over(Over::Carried(Box::new(answer)))),
        }
    }

    async fn anew(&mut self, agent: &Agent, _: &Errand) -> Result<bool, Fault> {
        Ok(self.line.has_session() && agent.begin_anew(self.line).await?)
    }
}

impl Ride<'_> {
    fn request(
        &self,
        agent: &Agent,
        errand: &Errand,
        grant: Option<&Grant>,
    ) -> Result<Request<Bytes>, Fault> {
        let mut headers = self.line.headers(&self.letter.headers);
        if let Some(grant) = grant {
            let token =
                HeaderValue::from_str(&format!("{SCHEME} {}", grant.token)).map_err(|_| BadDemand::Token)?;
            headers.insert(AUTHORIZATION, token);
            if let Some(directory) = errand.shows.signature_agent() {
                headers.insert(SIGNATURE_AGENT, directory);
            }
            let key = agent.key_at(errand, &grant.authority)?;
            let url = self.line.dialled.url();
            sign("POST", url, &mut headers, &self.letter.body, &key, (agent.now)())?;
            if headers.contains_key(SESSION) {
                self.line.state().signer = Some(key);
            }
        }
        let mut request = self.line.request(Method::POST, headers, self.letter.body.clone())?;
        if grant.is_some_and(|grant| grant.operation.is_some()) {
            request.extensions_mut().insert(OwnConnection);
        }
        Ok(request)
    }

    /// What no answer makes of the grant the call carried.
    fn lost(&self, agent: &Agent, grant: Option<&Grant>, why: FetchError) -> Result<Attempt, Fault> {
        match grant {
            Some(grant) if why.nothing_sent() => agent.wallet.put(grant)?,
            // Whether it ran nobody here can know, so it is not sent again.
            Some(_) => return Ok(Outcome::Unknown { why: Some(why) }.into()),
            None => {}
        }
        Err(Party::Resource.unavailable(why))
    }

    fn judge(&self, agent: &Agent, grant: Option<&Grant>, reply: Reply) -> Result<Attempt, Fault> {
        match grant {
            Some(grant) => agent.settle(grant, reply),
            None => Ok(judge(reply)),
        }
    }
}

async fn stopped(errand: &Errand) {
    match &errand.stop {
        Some(stop) => stop.said().await,
        None => std::future::pending().await,
    }
}
