//! An answer of the token endpoint, `STATUS BODY`: what an agent reads, an authority can say, and it is then read as
//! the same (BASE-04, BASE-05, CORE-65).

use sayso_protocol::payload::negotiation::{Answer, Demand, TokenReply};
use serde_json::Value;

/// The body.
pub fn check(bytes: &[u8]) {
    let (status, body) = bytes.split_at_checked(3).unwrap_or_default();
    let Some(status) = std::str::from_utf8(status).ok().and_then(|status| status.parse().ok()) else {
        return;
    };
    let Ok(answer) = Answer::read(status, body) else { return };
    let lax = serde_json::from_slice::<Value>(body).unwrap_or_default();
    let same = |name: &str, ours: &str| {
        assert!(lax.is_null() || lax[name] == *ours, "another reader, another {name}")
    };
    match &answer {
        Answer::Granted { access_token, expires_in, .. } => {
            assert_eq!(status, 200);
            same("access_token", access_token);
            assert!(lax.is_null() || lax["expires_in"] == *expires_in);
        }
        Answer::NeedInfo { ticket, .. }
        | Answer::Doubted { ticket, .. }
        | Answer::Submitted { ticket, .. } => {
            assert_eq!(status, 403);
            same("ticket", ticket);
        }
        Answer::Error { code, .. } => {
            assert!(status >= 400);
            same("error", code);
        }
    }
    if let Some(reply) = reply(&answer) {
        let body = serde_json::to_vec(&reply.body()).expect("a reply can be written");
        assert!(Answer::read(reply.status(), &body).is_ok_and(|again| alike(&answer, &again)));
    }
}

/// The reply an authority of ours makes to say so.
fn reply(answer: &Answer) -> Option<TokenReply> {
    match answer {
        Answer::NeedInfo { ticket, claims } => {
            let [claim] = claims.as_slice() else { return None };
            let ticket = ticket.clone();
            Some(match claim {
                Demand::Agreement(claim) => TokenReply::NeedInfo { ticket, claim: claim.clone() },
                Demand::Identity(claim) => TokenReply::Identify { ticket, claim: claim.clone() },
            })
        }
        Answer::Doubted { ticket, description } => {
            Some(TokenReply::Doubted { ticket: ticket.clone(), description: description.clone()? })
        }
        Answer::Submitted { ticket, interval } => {
            Some(TokenReply::Submitted { ticket: ticket.clone(), interval: (*interval)? })
        }
        Answer::Granted { access_token, expires_in, receipt } => Some(TokenReply::Granted {
            access_token: access_token.clone(),
            expires_in: *expires_in,
            receipt: receipt.clone()?,
        }),
        Answer::Error { .. } => None,
    }
}

fn alike(one: &Answer, other: &Answer) -> bool {
    match (one, other) {
        (Answer::NeedInfo { ticket, claims }, Answer::NeedInfo { ticket: again, claims: others }) => {
            ticket == again && claims == others
        }
        (Answer::Doubted { ticket, description }, Answer::Doubted { ticket: again, description: other }) => {
            ticket == again && description == other
        }
        (Answer::Submitted { ticket, interval }, Answer::Submitted { ticket: again, interval: other }) => {
            ticket == again && interval == other
        }
        (
            Answer::Granted { access_token, expires_in, receipt },
            Answer::Granted { access_token: again, expires_in: life, receipt: other },
        ) => access_token == again && expires_in == life && receipt == other,
        _ => false,
    }
}
