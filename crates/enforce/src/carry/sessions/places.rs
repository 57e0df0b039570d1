//! Whose the places for sessions are: counted by where they came from, and by whose they are where tokens say so.
//!
//! A source, or a holder of tokens, that has a quarter of all places gets another only while more than a quarter is free, so
//! no single one can take them all, and one that has fewer finds a place or is made one. What makes room is not known
//! here.

use super::super::source::Source;
use crate::bearer::Holder;
use std::collections::HashMap;
use std::hash::Hash;

/// One part in so many is everybody's share, and as much is kept for those who have not had theirs.
const SHARE: usize = 4;

/// Whose a place is.
#[derive(Debug, Clone, Default)]
pub(in super::super) struct Who {
    /// Where it was asked for.
    pub(in super::super) source: Source,
    /// Whose token began what is in it, where tokens say so.
    pub(in super::super) holder: Option<Holder>,
}

/// How many places there are, and who has them.
pub(super) struct Places {
    capacity: usize,
    taken: usize,
    by_source: Counts<Source>,
    by_holder: Counts<Holder>,
}

/// Whether somebody may have another place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Room {
    Free,
    /// If one of that holder's goes.
    HoldersOwnGoes,
    /// If one of that source's goes.
    OwnGoes,
    /// If one goes, of this source first: it has most.
    Goes(Source),
}

impl Places {
    pub(super) fn of(capacity: usize) -> Self {
        Self { capacity, taken: 0, by_source: Counts::default(), by_holder: Counts::default() }
    }

    pub(super) fn room(&self, who: &Who) -> Room {
        let (share, free) = (self.capacity / SHARE, self.capacity.saturating_sub(self.taken));
        let (crowded, has_share) = (free <= share, |had: usize| had >= share.max(1));
        if crowded && has_share(self.holders(who.holder.as_ref())) {
            return Room::HoldersOwnGoes;
        }
        if has_share(self.by_source.of(&who.source)) {
            return if crowded { Room::OwnGoes } else { Room::Free };
        }
        match self.by_source.largest() {
            Some(largest) if free == 0 => Room::Goes(*largest),
            _ => Room::Free,
        }
    }

    /// How many places this holder has.
    pub(super) fn holders(&self, holder: Option<&Holder>) -> usize {
        holder.map_or(0, |holder| self.by_holder.of(holder))
    }

    pub(super) fn take(&mut self, who: &Who) {
        self.taken = self.taken.saturating_add(1);
        self.by_source.add(who.source);
        who.holder.iter().for_each(|holder| self.by_holder.add(holder.clone()));
    }

    pub(super) fn give_back(&mut self, who: &Who) {
        self.taken = self.taken.saturating_sub(1);
        self.by_source.subtract(&who.source);
        who.holder.iter().for_each(|holder| self.by_holder.subtract(holder));
    }
}

/// How many each has; who has none leaves nothing behind.
struct Counts<K>(HashMap<K, usize>);

impl<K> Default for Counts<K> {
    fn default() -> Self {
        Self(HashMap::new())
    }
}

impl<K: Hash + Eq> Counts<K> {
    fn of(&self, whose: &K) -> usize {
        self.0.get(whose).copied().unwrap_or_default()
    }

    fn largest(&self) -> Option<&K> {
        self.0.iter().max_by_key(|(_, count)| **count).map(|(whose, _)| whose)
    }

    fn add(&mut self, whose: K) {
        let count = self.0.entry(whose).or_default();
        *count = count.saturating_add(1);
    }

    fn subtract(&mut self, whose: &K) {
        if let Some(count) = self.0.get_mut(whose) {
            *count = count.saturating_sub(1);
            if *count == 0 {
                self.0.remove(whose);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sayso_protocol::Json;
    use sayso_protocol::json::Limits;
    use std::net::IpAddr;

    fn source(last: u8) -> Who {
        Who { source: Source::from(IpAddr::from([192, 0, 2, last])), holder: None }
    }

    fn by(name: &str, last: u8) -> Who {
        let claims = Json::parse(format!(r#"{{"sub":"{name}"}}"#).as_bytes(), Limits::default()).unwrap();
        Who { holder: Holder::of(&claims, "sub"), ..source(last) }
    }

    fn fill(places: &mut Places, who: &Who) -> usize {
        let mut filled = 0;
        while places.room(who) == Room::Free {
            places.take(who);
            filled += 1;
        }
        filled
    }

    #[test]
    fn nobody_gets_all_of_them_and_the_others_get_theirs() {
        let mut places = Places::of(32);
        assert_eq!(fill(&mut places, &source(1)), 24);
        assert_eq!(places.room(&source(1)), Room::OwnGoes);
        assert_eq!(fill(&mut places, &source(2)), 8);
        assert_eq!(places.room(&source(2)), Room::OwnGoes);
        // All are taken: whoever has most makes room for whoever has least.
        assert_eq!(places.room(&source(3)), Room::Goes(source(1).source));
        places.give_back(&source(1));
        assert_eq!(places.room(&source(3)), Room::Free);
        assert_eq!(places.room(&source(1)), Room::OwnGoes);
        for _ in 0..23 {
            places.give_back(&source(1));
        }
        assert_eq!(places.by_source.0.len(), 1, "what is over leaves nothing behind");
        assert_eq!(places.room(&source(1)), Room::Free);
    }

    // D-13, COAZ-MCP-87
    #[test]
    fn a_holder_has_one_share_wherever_they_come_from() {
        let mut places = Places::of(32);
        let filled: Vec<usize> = (1..5).map(|last| fill(&mut places, &by("eve", last))).collect();
        assert_eq!(filled, [24, 0, 0, 0]);
        assert_eq!(places.room(&by("eve", 9)), Room::HoldersOwnGoes);
        assert_eq!(places.room(&by("ann", 1)), Room::OwnGoes, "hers is a crowded source");
        assert_eq!(fill(&mut places, &by("ann", 2)), 8);
        assert_eq!(places.room(&by("bob", 3)), Room::Goes(source(1).source));
        assert_eq!(places.holders(by("eve", 1).holder.as_ref()), 24);
        for _ in 0..24 {
            places.give_back(&by("eve", 1));
        }
        assert_eq!(places.by_holder.0.len(), 1, "what is over leaves nothing behind");
        assert_eq!(places.room(&by("eve", 9)), Room::Free);
    }

    #[test]
    fn where_there_are_few_they_are_everybodys() {
        for capacity in 1..4 {
            let mut places = Places::of(capacity);
            assert_eq!(fill(&mut places, &source(1)), capacity);
            assert_eq!(places.room(&source(2)), Room::Goes(source(1).source));
        }
    }
}
