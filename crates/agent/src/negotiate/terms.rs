//! From a demand to an agreement: is this a demand an agent may meet, and what does it sign then?
//! It keeps the agreement an echo: what was proffered, or something narrower, never wider or altered (TERMS-22..34).
//! Whether to agree at all is somebody else's decision.

use super::About;
use crate::fault::{BadDemand, Fault};
use crate::shows::Shown;
use sayso_protocol::id::{Scope, Timestamp};
use sayso_protocol::payload::agreement::{AgreementClaims, MAX_REASON, OperationClaim, sign_as};
use sayso_protocol::payload::assertion::FORMAT;
use sayso_protocol::payload::edition::Edition;
use sayso_protocol::payload::negotiation::Demand;
use sayso_protocol::payload::terms::{Proffer, RequiredClaim};
use sayso_protocol::{SigningKey, b64};
use serde_json::{Map, Value};
use url::Url;

/// How much less than the terms to agree to. The default is the terms as they are.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Narrower {
    /// Only these scopes, as far as the terms have them.
    pub scope: Option<Vec<Scope>>,
    /// No longer than this, in seconds.
    pub expires_in: Option<i64>,
    /// Promises beyond those asked for.
    pub also_promise: Vec<String>,
}

/// A demand this agent can meet: one agreement, on this authority's terms, for this resource; or one identity, for this
/// authority.
pub(super) fn accept(about: &About, issuer: &str, claims: Vec<Demand>) -> Result<Demand, BadDemand> {
    let [demand] = <[Demand; 1]>::try_from(claims).map_err(|_| BadDemand::Claims)?;
    let claim = match demand {
        Demand::Agreement(claim) => claim,
        Demand::Identity(identity) if !identity.claim_token_format.iter().any(|format| format == FORMAT) => {
            return Err(BadDemand::Format);
        }
        Demand::Identity(identity) if identity.audience != issuer => return Err(BadDemand::Identity),
        identity => return Ok(identity),
    };
    if !Edition::accepts_claim(&claim.claim_type) {
        return Err(BadDemand::ClaimType);
    }
    if !claim.claim_token_format.iter().any(|format| Edition::accepts_format(format)) {
        return Err(BadDemand::Format);
    }
    let proffer = &claim.terms_template;
    let own = about.resource_id.as_ref().is_none_or(|id| *id == proffer.resource_id);
    let origin = |text: &str| Url::parse(text).ok().map(|url| url.origin());
    let here = origin(&proffer.terms_uri).is_some_and(|terms| Some(terms) == origin(issuer));
    if proffer.terms.proffered_by == issuer && own && here {
        Ok(Demand::Agreement(claim))
    } else {
        Err(BadDemand::Terms)
    }
}

/// What is signed, and what the signature was put under.
pub(super) struct Signed {
    /// The `claim_token`.
    pub(super) token: String,
    /// Its format.
    pub(super) format: String,
    /// The compact JWS, whose digest the receipt repeats.
    pub(super) compact: String,
    /// The lifetime agreed to.
    pub(super) expires_in: i64,
}

/// Signs the agreement to a demand, narrowed.
pub(super) fn agree(
    about: &About,
    claim: &RequiredClaim,
    narrower: &Narrower,
    (arguments, reason): (&Map<String, Value>, Option<&str>),
    (key, shown): (&SigningKey, &Shown),
    now: Timestamp,
) -> Result<Signed, Fault> {
    let proffer = &claim.terms_template;
    let claims = AgreementClaims {
        iss: Some(shown.handle.to_string()),
        aud: proffer.terms.proffered_by.clone(),
        iat: now,
        template_id: proffer.terms.template_id.clone(),
        terms_uri: proffer.terms_uri.clone(),
        purpose: proffer.terms.purpose.clone(),
        scope: narrow_scope(proffer, narrower)?,
        expires_in: narrow_life(proffer, narrower)?,
        prohibited: promises(proffer, narrower),
        family: proffer.family.clone(),
        nonce: proffer.nonce.clone(),
        operation: proffer
            .terms
            .per_operation
            .then(|| OperationClaim { tool: about.tool.clone(), params: arguments.clone() }),
        reason: reason.map(|text| bounded(text).to_owned()),
        mission: None,
    };
    let format = claim.claim_token_format.iter().find(|format| Edition::accepts_format(format));
    let format = format.ok_or(BadDemand::Format)?.clone();
    let token = sign_as(key, &shown.showing(), &claims).map_err(|_| Fault::Unwritable)?;
    let compact = b64::decode(&token).ok().and_then(|bytes| String::from_utf8(bytes).ok());
    Ok(Signed { token, format, compact: compact.ok_or(Fault::Unwritable)?, expires_in: claims.expires_in })
}

fn narrow_scope(proffer: &Proffer, narrower: &Narrower) -> Result<Vec<Scope>, BadDemand> {
    let wanted = |scope: &&Scope| narrower.scope.as_ref().is_none_or(|wanted| wanted.contains(scope));
    let scope: Vec<Scope> = proffer.terms.scope.iter().filter(wanted).cloned().collect();
    if scope.is_empty() { Err(BadDemand::Nothing) } else { Ok(scope) }
}

fn narrow_life(proffer: &Proffer, narrower: &Narrower) -> Result<i64, BadDemand> {
    let life = narrower.expires_in.unwrap_or(i64::MAX).min(proffer.terms.expires_in);
    if life > 0 { Ok(life) } else { Err(BadDemand::Nothing) }
}

fn promises(proffer: &Proffer, narrower: &Narrower) -> Vec<String> {
    let mut promises = proffer.terms.prohibited.clone();
    for promise in &narrower.also_promise {
        if !promises.contains(promise) {
            promises.push(promise.clone());
        }
    }
    promises
}

/// At most as many bytes as an authority reads, cut between characters.
fn bounded(text: &str) -> &str {
    let mut end = text.len().min(MAX_REASON);
    while !text.is_char_boundary(end) {
        end = end.saturating_sub(1);
    }
    text.get(..end).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use sayso_protocol::payload::agreement::SignedAgreement;
    use sayso_protocol::payload::terms::Terms;

    const ISSUER: &str = "https://as.example.test";

    fn about() -> About {
        About {
            resource: "https://gw.example.test/mcp".into(),
            tool: "execute_trade".parse().unwrap(),
            params_s256: sayso_protocol::canon::s256_of(&serde_json::json!({})).unwrap(),
            resource_id: Some("vault/execute_trade".parse().unwrap()),
            reference: None,
            key: "k".into(),
        }
    }

    fn claim() -> RequiredClaim {
        let terms = Terms {
            template_id: "a/trading/v1".parse().unwrap(),
            purpose: "trading".into(),
            scope: vec!["a".parse().unwrap(), "b".parse().unwrap()],
            expires_in: 900,
            prohibited: vec!["resale".into()],
            proffered_by: ISSUER.into(),
            per_operation: true,
            enforced: Default::default(),
        };
        RequiredClaim::agreement(
            Edition::Sept11,
            Proffer {
                terms,
                terms_uri: format!("{ISSUER}/terms/a/trading/v1"),
                nonce: "n".into(),
                family: "f".parse().unwrap(),
                resource_id: "vault/execute_trade".parse().unwrap(),
            },
        )
    }

    fn signed(narrower: &Narrower) -> Result<SignedAgreement, Fault> {
        let key = SigningKey::from_seed(&[4; 32]).unwrap();
        let long = "é".repeat(400);
        let shown = crate::shows::Shows::default().at(ISSUER, &key, Timestamp(5))?;
        let said = (&Map::new(), Some(&*long));
        let signed = agree(&about(), &claim(), narrower, said, (&key, &shown), Timestamp(5))?;
        Ok(SignedAgreement::read(&signed.token).unwrap())
    }

    // TERMS-22, TERMS-26, TERMS-30, TERMS-33
    #[test]
    fn the_agreement_is_one_the_authority_accepts() {
        let agreement = signed(&Narrower::default()).unwrap();
        let tool = "execute_trade".parse().unwrap();
        assert_eq!(agreement.assents_to(&claim().terms_template, Some(&tool), Timestamp(5)), Ok(()));
        assert_eq!(agreement.operation().unwrap().tool, tool);
        assert_eq!(agreement.claims().reason.as_ref().map(String::len), Some(512));
    }

    // TERMS-27, TERMS-28, TERMS-29
    #[test]
    fn whatever_is_wished_the_agreement_is_never_wider() {
        let wished = Narrower {
            scope: Some(vec!["b".parse().unwrap(), "admin".parse().unwrap()]),
            expires_in: Some(999_999),
            also_promise: vec!["resale".into(), "marketing".into()],
        };
        let agreement = signed(&wished).unwrap();
        assert_eq!(agreement.assents_to(&claim().terms_template, None, Timestamp(5)), Ok(()));
        let claims = agreement.claims();
        assert_eq!(claims.scope, ["b".parse().unwrap()]);
        assert_eq!(claims.expires_in, 900);
        assert_eq!(claims.prohibited, ["resale", "marketing"]);
        let shorter = Narrower { expires_in: Some(60), ..Narrower::default() };
        assert_eq!(signed(&shorter).unwrap().claims().expires_in, 60);
        let nothing = Narrower { scope: Some(vec!["admin".parse().unwrap()]), ..Narrower::default() };
        assert!(matches!(signed(&nothing), Err(Fault::Demand(BadDemand::Nothing))));
        let never = Narrower { expires_in: Some(0), ..Narrower::default() };
        assert!(matches!(signed(&never), Err(Fault::Demand(BadDemand::Nothing))));
    }

    // TERMS-17, TERMS-18, TERMS-20
    #[test]
    fn only_one_agreement_on_its_own_terms_is_a_demand_to_meet() {
        let with = |alter: &dyn Fn(&mut RequiredClaim)| {
            let mut claim = claim();
            alter(&mut claim);
            accept(&about(), ISSUER, vec![Demand::Agreement(Box::new(claim))]).err()
        };
        assert_eq!(with(&|_| {}), None);
        assert_eq!(accept(&about(), ISSUER, vec![]).err(), Some(BadDemand::Claims));
        let one = || Demand::Agreement(Box::new(claim()));
        assert_eq!(accept(&about(), ISSUER, vec![one(), one()]).err(), Some(BadDemand::Claims));
        assert_eq!(with(&|claim| claim.claim_type = "urn:x".into()), Some(BadDemand::ClaimType));
        assert_eq!(with(&|claim| claim.claim_token_format = vec!["urn:x".into()]), Some(BadDemand::Format));
        let evil = "https://evil.example.test";
        let by_another = |claim: &mut RequiredClaim| claim.terms_template.terms.proffered_by = evil.into();
        assert_eq!(with(&by_another), Some(BadDemand::Terms));
        let elsewhere = |claim: &mut RequiredClaim| claim.terms_template.terms_uri = format!("{evil}/terms");
        assert_eq!(with(&elsewhere), Some(BadDemand::Terms));
        let other = |claim: &mut RequiredClaim| claim.terms_template.resource_id = "vault/x".parse().unwrap();
        assert_eq!(with(&other), Some(BadDemand::Terms));
    }
}
