//! In a build without COAZ: a policy nobody can have, so that what would ask one cannot be made.

use super::{Leave, Objection, Question};
use bytes::Bytes;
use sayso_protocol::Json;
use std::sync::Arc;

/// There is none: the feature `coaz` is off.
#[derive(Debug)]
pub enum Policy {}

/// What there is none of either.
pub(crate) enum Filter {}

impl Policy {
    pub(crate) async fn consult(&self, _question: &Question<'_>) -> Result<Leave, Objection> {
        match *self {}
    }

    pub(crate) fn subject_claim(&self, _token: &Json) -> &str {
        match *self {}
    }

    /// Not at all.
    pub fn denies_by_result(&self) -> bool {
        match *self {}
    }

    /// Not at all.
    pub fn filters_lists(&self) -> bool {
        match *self {}
    }

    pub(crate) fn filter(self: &Arc<Self>, _question: &Question<'_>) -> Option<Filter> {
        match **self {}
    }
}

impl Filter {
    pub(crate) async fn apply(self, _answer: Option<&[u8]>) -> Bytes {
        match self {}
    }
}
