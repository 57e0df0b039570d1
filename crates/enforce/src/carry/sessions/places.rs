//! Whose the places for sessions are: counted by where they came from.
//!
//! A source that has a quarter of all places gets another only while more than a quarter is free, so no single one can
//! take them all, and one that has fewer finds a place or is made one. What makes room is not known here.

use super::super::source::Source;
use std::collections::HashMap;

/// One part in so many is everybody's share, and as much is kept for those who have not had theirs.
const SHARE: usize = 4;

/// How many places there are, and who has them.
pub(super) struct Places {
    capacity: usize,
    taken: usize,
    by_source: HashMap<Source, usize>,
}

/// Whether somebody may have another place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Room {
    Free,
    /// If one of its own goes.
    OwnGoes,
    /// If one goes, of this source first: it has most.
    Goes(Source),
}

impl Places {
    pub(super) fn of(capacity: usize) -> Self {
        Self { capacity, taken: 0, by_source: HashMap::new() }
    }

    pub(super) fn room(&self, source: Source) -> Room {
        let (share, free) = (self.capacity / SHARE, self.capacity.saturating_sub(self.taken));
        if self.had(source) >= share.max(1) {
            return if free > share { Room::Free } else { Room::OwnGoes };
        }
        match self.by_source.iter().max_by_key(|(_, places)| **places) {
            Some((largest, _)) if free == 0 => Room::Goes(*largest),
            _ => Room::Free,
        }
    }

    pub(super) fn take(&mut self, source: Source) {
        self.taken = self.taken.saturating_add(1);
        let places = self.by_source.entry(source).or_default();
        *places = places.saturating_add(1);
    }

    pub(super) fn give_back(&mut self, source: Source) {
        self.taken = self.taken.saturating_sub(1);
        if let Some(places) = self.by_source.get_mut(&source) {
            *places = places.saturating_sub(1);
            if *places == 0 {
                self.by_source.remove(&source);
            }
        }
    }

    fn had(&self, source: Source) -> usize {
        self.by_source.get(&source).copied().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::IpAddr;

    fn source(last: u8) -> Source {
        Source::from(IpAddr::from([192, 0, 2, last]))
    }

    fn fill(places: &mut Places, who: Source) -> usize {
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
        assert_eq!(fill(&mut places, source(1)), 24);
        assert_eq!(places.room(source(1)), Room::OwnGoes);
        assert_eq!(fill(&mut places, source(2)), 8);
        assert_eq!(places.room(source(2)), Room::OwnGoes);
        // All are taken: whoever has most makes room for whoever has least.
        assert_eq!(places.room(source(3)), Room::Goes(source(1)));
        places.give_back(source(1));
        assert_eq!(places.room(source(3)), Room::Free);
        assert_eq!(places.room(source(1)), Room::OwnGoes);
        for _ in 0..23 {
            places.give_back(source(1));
        }
        assert_eq!(places.by_source.len(), 1, "what is over leaves nothing behind");
        assert_eq!(places.room(source(1)), Room::Free);
    }

    #[test]
    fn where_there_are_few_they_are_everybodys() {
        for capacity in 1..4 {
            let mut places = Places::of(capacity);
            assert_eq!(fill(&mut places, source(1)), capacity);
            assert_eq!(places.room(source(2)), Room::Goes(source(1)));
        }
    }
}
