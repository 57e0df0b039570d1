//! The stage of a policy decision point: after the operation is bound, before anything is spent.
//!
//! Its place is the rule it keeps (D-5): a refusal here must not cost the owner's approval. No decision point can be
//! configured yet, so what reached it is approved.

use crate::grant::{Approved, Bound};

pub(crate) fn consult(bound: Bound<'_>) -> Approved<'_> {
    bound.approved()
}
