//! Making the unit a tool is in at first, by set-up or by her hand (D-29).

use crate::Authority;
use sayso_owner::first;
use sayso_owner::ledger::Author;
use sayso_owner::store::{Saved, Unavailable, Unsaved};
use sayso_owner::unit::{Unfit, Unit};
use sayso_protocol::OwnerName;

/// How many units of one name there may be before a first one is given up.
const NAMESAKES: usize = 1000;

impl Authority {
    /// Makes a first unit, under a further id where a unit over other things has its own: that of another server's tool of
    /// the same name, or one of hers. No unit there is is touched.
    ///
    /// # Errors
    /// When the store cannot be asked.
    pub async fn make_first(
        &self,
        owner: &OwnerName,
        unit: &Unit,
        author: &Author,
    ) -> Result<Saved<Unit>, Unavailable> {
        let mut n = 1;
        loop {
            let Ok(id) = first::nth(&unit.id, n) else { return Ok(Err(Unfit::Id.into())) };
            let named = Unit { id, ..unit.clone() };
            match self.store.create_unit(owner, &named, self.issuer(), author, self.now()).await? {
                Err(Unsaved::Unfit(Unfit::Taken(_))) if n < NAMESAKES => n += 1,
                made => return Ok(made),
            }
        }
    }
}
