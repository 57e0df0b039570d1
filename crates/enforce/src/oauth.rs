//! Access tokens of OAuth issuers, for a resource that COAZ alone protects: JWTs of configured issuers, by RFC 9068 and
//! RFC 8725. Signatures are checked by a library; what is signed, by whom, for whom and until when is read here, strictly.
//! INVARIANT: nothing in a token decides where a key comes from or what it may be used for.

mod claims;
mod issuer;
mod keys;
mod settings;
#[cfg(test)]
mod tests;
mod token;

use std::sync::Arc;

use async_trait::async_trait;
use sayso_fetch::Fetch;
use sayso_protocol::{Json, Timestamp};

use crate::{AccessTokens, TokenFault};
use claims::Rules;
use issuer::{Found, Issuer};
use token::Unverified;

pub use settings::{BadJwt, IssuerSettings, JwtSettings};
pub use token::MAX_TOKEN;

/// Takes JWTs of the issuers it knows, and no others.
pub struct JwtTokens {
    issuers: Vec<Arc<Issuer>>,
    names: Vec<String>,
    rules: Rules,
}

impl JwtTokens {
    /// Takes tokens of these issuers; their keys are had through `fetch`, when first needed.
    ///
    /// # Errors
    /// When the settings name no issuer, no audience, or something that cannot be one.
    pub fn new(settings: &JwtSettings, fetch: Arc<dyn Fetch>) -> Result<JwtTokens, BadJwt> {
        let rules = settings.rules()?;
        let issuers = settings.issuers(&fetch)?;
        let names = issuers.iter().map(|issuer| issuer.name().to_owned()).collect();
        Ok(JwtTokens { issuers, names, rules })
    }

    /// Fetches the keys of every issuer, for a start that should find a wrong address. An issuer that cannot be reached now is
    /// asked again with the first token.
    ///
    /// # Errors
    /// The first issuer whose keys cannot be had, and why.
    pub async fn prepare(&self, now: Timestamp) -> Result<(), (String, NoKeys)> {
        for issuer in &self.issuers {
            issuer.prepare(now).await.map_err(|fault| (issuer.name().to_owned(), fault))?;
        }
        Ok(())
    }
}

pub use issuer::NoKeys;

#[async_trait]
impl AccessTokens for JwtTokens {
    async fn validate(&self, token: &str, now: Timestamp) -> Result<Json, TokenFault> {
        let token = Unverified::parse(token, &self.rules).map_err(TokenFault::Invalid)?;
        let issuer = self.issuers.iter().find(|issuer| Some(issuer.name()) == token.issuer());
        let issuer =
            issuer.ok_or(TokenFault::Invalid("the token is of an issuer that is not trusted here"))?;
        // What no key can mend is not worth asking for one.
        claims::check(token.claims(), &self.rules, now).map_err(TokenFault::Invalid)?;
        let verified = match issuer.keys_for(token.kid(), token.algorithm(), now).await {
            Found::Keys(keys) => keys.iter().any(|key| token.is_signed_by(key)),
            Found::Unknown => {
                return Err(TokenFault::Invalid("the token is signed by a key its issuer does not publish"));
            }
            Found::Unavailable => return Err(TokenFault::Unavailable),
        };
        if verified {
            Ok(token.into_claims())
        } else {
            Err(TokenFault::Invalid("the token's signature does not verify"))
        }
    }

    fn until(&self, claims: &Json) -> Option<Timestamp> {
        claims::until(claims, &self.rules)
    }

    fn issuers(&self) -> &[String] {
        &self.names
    }
}
