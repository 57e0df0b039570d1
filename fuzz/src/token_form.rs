//! A form of the token endpoint: one of each member, whoever reads it, and the same when it is written and read again.

use sayso_protocol::payload::negotiation::{CLIENT_CREDENTIALS, TokenError, TokenRequest, UMA_TICKET};
use url::form_urlencoded;

/// The body.
pub fn check(bytes: &[u8]) {
    match TokenRequest::read(bytes) {
        Err(fault) => {
            assert!(matches!(fault, TokenError::InvalidRequest | TokenError::UnsupportedGrantType));
            assert_eq!(fault.status(), 400);
        }
        Ok(TokenRequest::Ticket(request)) => {
            let claim = request.claim.as_ref();
            let token = claim.map(|claim| claim.token.as_str());
            let format = claim.and_then(|claim| claim.format.as_deref());
            one_of_each(bytes, &[("grant_type", Some(UMA_TICKET)), ("ticket", Some(&request.ticket))]);
            one_of_each(bytes, &[("claim_token", token)]);
            if claim.is_some() {
                one_of_each(bytes, &[("claim_token_format", format)]);
            }
            one_of_each(bytes, &[("decline", request.decline.then_some("true"))]);
            let again = write(&[
                ("grant_type", Some(UMA_TICKET)),
                ("ticket", Some(&request.ticket)),
                ("claim_token", token),
                ("claim_token_format", format),
                ("decline", request.decline.then_some("true")),
            ]);
            let Ok(TokenRequest::Ticket(again)) = TokenRequest::read(&again) else {
                return assert!(again.len() > bytes.len(), "what was read cannot be written");
            };
            assert!(again.ticket == request.ticket && again.decline == request.decline);
            assert_eq!(again.claim.map(|claim| claim.token).as_deref(), token);
        }
        Ok(TokenRequest::Protection(request)) => {
            one_of_each(bytes, &[("grant_type", Some(CLIENT_CREDENTIALS))]);
            one_of_each(
                bytes,
                &[("client_id", request.client_id.as_deref()), ("owner", request.owner.as_deref())],
            );
            one_of_each(bytes, &[("scope", request.scope.as_deref())]);
            if !request.offers_secret {
                one_of_each(
                    bytes,
                    &[("client_secret", None), ("client_assertion", None), ("password", None)],
                );
            }
        }
    }
}

/// A reader that takes the first of several finds what one that takes the last finds, and what we found.
fn one_of_each(form: &[u8], members: &[(&str, Option<&str>)]) {
    for (name, value) in members {
        let found: Vec<_> = form_urlencoded::parse(form).filter(|(known, _)| known == name).collect();
        assert!(found.len() <= 1, "{name} was accepted twice");
        let found = found.first().map(|(_, value)| value.as_ref()).filter(|value| !value.is_empty());
        let declined_in_words = *name == "decline" && found == Some("false");
        assert!(found == *value || declined_in_words, "another reader finds another {name}");
    }
}

fn write(members: &[(&str, Option<&str>)]) -> Vec<u8> {
    let present = members.iter().filter_map(|(name, value)| Some((*name, (*value)?)));
    form_urlencoded::Serializer::new(String::new()).extend_pairs(present).finish().into_bytes()
}
