//! Which sessions there are, and which of them makes room for another.

use super::places::{Places, Room, Who};
use super::{STALE, Visit};
use crate::session::Session;
use std::cmp::Reverse;
use std::collections::HashMap;
use std::sync::Arc;

pub(super) struct Table {
    pub(super) by_id: HashMap<Box<str>, Arc<Visit>>,
    pub(super) places: Places,
    /// Whether somebody looks through them.
    pub(super) swept: bool,
}

/// What must go before there is another place.
pub(super) enum Making {
    Nothing,
    Room(Arc<Visit>),
}

impl Table {
    pub(super) fn of(capacity: usize) -> Self {
        Self { by_id: HashMap::new(), places: Places::of(capacity), swept: false }
    }

    pub(super) fn remove(&mut self, visit: &Visit) {
        let ours = visit.ours.to_str().unwrap_or_default();
        if self.by_id.remove(ours).is_some() {
            self.places.give_back(&visit.who);
        }
    }

    /// How another place for them is made; not at all if what there is must stay.
    pub(super) fn making(&self, who: &Who) -> Option<Making> {
        let from = |visit: &Visit| visit.who.source == who.source;
        match self.places.room(who) {
            Room::Free => return Some(Making::Nothing),
            Room::HoldersOwnGoes => self.own(who),
            Room::OwnGoes => self.of_most(who, from).or_else(|| self.longest_silent(from)),
            Room::Goes(largest) => self
                .of_most(who, |_| true)
                .or_else(|| self.longest_silent(|visit| visit.who.source == largest))
                .or_else(|| self.longest_silent(|_| true)),
        }
        .map(Making::Room)
    }

    /// Of those, the one that makes room. One in which a first call is being decided is neither nobody's nor stale: what
    /// is spent for it must have somewhere to go.
    fn longest_silent(&self, which: impl Fn(&Visit) -> bool) -> Option<Arc<Visit>> {
        let longest = |one: fn(&Session) -> bool| {
            let visits = self.by_id.values().filter(|visit| which(visit) && one(&visit.session));
            visits.min_by_key(|visit| visit.used())
        };
        let stale = || longest(Session::is_bound).filter(|visit| visit.used().elapsed() >= STALE);
        longest(Session::is_idle).or_else(stale).cloned()
    }

    /// That holder's own, the one that was silent longest.
    fn own(&self, who: &Who) -> Option<Arc<Visit>> {
        let own = |visit: &&Arc<Visit>| who.holder.is_some() && visit.who.holder == who.holder;
        self.by_id.values().filter(own).min_by_key(|visit| visit.used()).cloned()
    }

    /// Of those, one of whichever holder has most: where tokens say whose they are, every session is somebody's from its
    /// first word, so that none would make room. It goes only if its holder has more left than they have.
    fn of_most(&self, who: &Who, which: impl Fn(&Visit) -> bool) -> Option<Arc<Visit>> {
        who.holder.as_ref()?;
        let places = |visit: &Arc<Visit>| self.places.holders(visit.who.holder.as_ref());
        let enough = self.places.holders(who.holder.as_ref()).saturating_add(1);
        let more = self.by_id.values().filter(|visit| which(visit) && places(visit) > enough);
        more.min_by_key(|visit| (Reverse(places(visit)), visit.used())).cloned()
    }
}
