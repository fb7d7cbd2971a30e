//! Which number does a prefix have, and what is kept under it? Prefixes are numbered so that tables of many sessions
//! need no copy of them, and find an entry without a search. Knows no route. Used by [`super::LocRib`] and
//! [`super::AdjRibIn`].

use std::hash::BuildHasher;
use std::net::IpAddr;

use fairway_ground::Prefix;
use foldhash::fast::RandomState;
use hashbrown::HashTable;

/// The number of a prefix. Another prefix may get it when nothing is kept under it any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PrefixId(u32);

impl PrefixId {
    /// The first one.
    pub const FIRST: Self = Self(0);

    /// The number at this place in such a table.
    pub(super) fn at(place: usize) -> Option<Self> {
        u32::try_from(place).ok().map(Self)
    }

    /// The place in a table that has one for each number.
    pub(super) fn place(self) -> usize {
        usize::try_from(self.0).unwrap_or(usize::MAX)
    }

    #[cfg(test)]
    pub(super) const fn new(number: u32) -> Self {
        Self(number)
    }
}

/// Slots are allocated so many at a time, and given back when all of them are free.
const PAGE_SLOTS: usize = 128;
/// An index of this many entries is never made smaller.
const SMALL: usize = 1024;

/// Entries by prefix and by number.
pub(super) struct PrefixTable<Entry> {
    hasher: RandomState,
    ids: HashTable<PrefixId>,
    pages: Vec<Option<Page<Entry>>>,
    /// Numbers below `next` that no prefix has.
    free: Vec<PrefixId>,
    next: u32,
}

struct Page<Entry> {
    slots: Box<[Option<Slot<Entry>>]>,
    used: usize,
}

/// A prefix and what is kept under it.
pub(super) struct Slot<Entry> {
    pub(super) prefix: Prefix,
    pub(super) entry: Entry,
}

impl<Entry> Default for PrefixTable<Entry> {
    fn default() -> Self {
        Self {
            hasher: RandomState::default(),
            ids: HashTable::new(),
            pages: Vec::new(),
            free: Vec::new(),
            next: 0,
        }
    }
}

impl<Entry> std::fmt::Debug for PrefixTable<Entry> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{} prefixes", self.ids.len())
    }
}

impl<Entry> PrefixTable<Entry> {
    /// The number of `prefix`, if it has one.
    pub(super) fn id(&self, prefix: Prefix) -> Option<PrefixId> {
        let is_it = |id: &PrefixId| self.get(*id).is_some_and(|slot| slot.prefix == prefix);
        self.ids.find(hash(&self.hasher, prefix), is_it).copied()
    }

    pub(super) fn get(&self, id: PrefixId) -> Option<&Slot<Entry>> {
        slot(&self.pages, id)
    }

    pub(super) fn get_mut(&mut self, id: PrefixId) -> Option<&mut Slot<Entry>> {
        let place = id.place();
        let page = self.pages.get_mut(place / PAGE_SLOTS)?.as_mut()?;
        page.slots.get_mut(place % PAGE_SLOTS)?.as_mut()
    }

    /// The number of `prefix`, which has one from now on. `None` when all numbers are given out.
    pub(super) fn id_or_insert(&mut self, prefix: Prefix) -> Option<PrefixId>
    where
        Entry: Default,
    {
        if let Some(id) = self.id(prefix) {
            return Some(id);
        }
        let id = match self.free.pop() {
            Some(id) => id,
            None => {
                let id = PrefixId(self.next);
                self.next = self.next.checked_add(1)?;
                id
            }
        };
        let place = id.place();
        let number = place / PAGE_SLOTS;
        if self.pages.len() <= number {
            self.pages.resize_with(number.saturating_add(1), || None);
        }
        let page = self.pages.get_mut(number)?.get_or_insert_with(Page::empty);
        *page.slots.get_mut(place % PAGE_SLOTS)? = Some(Slot { prefix, entry: Entry::default() });
        page.used = page.used.saturating_add(1);
        let (pages, hasher) = (&self.pages, &self.hasher);
        self.ids.insert_unique(hash(hasher, prefix), id, |id| hash_of(pages, hasher, *id));
        Some(id)
    }

    /// Forgets a prefix and its number.
    pub(super) fn remove(&mut self, id: PrefixId) {
        let Some(prefix) = self.get(id).map(|slot| slot.prefix) else { return };
        if let Ok(found) = self.ids.find_entry(hash(&self.hasher, prefix), |it| *it == id) {
            found.remove();
        }
        let place = id.place();
        if let Some(place_of_page) = self.pages.get_mut(place / PAGE_SLOTS)
            && let Some(page) = place_of_page
        {
            if let Some(slot) = page.slots.get_mut(place % PAGE_SLOTS) {
                *slot = None;
            }
            page.used = page.used.saturating_sub(1);
            if page.used == 0 {
                *place_of_page = None;
            }
        }
        self.free.push(id);
        self.give_back();
    }

    /// What a million prefixes took is given back when they are gone.
    fn give_back(&mut self) {
        let (used, room) = (self.ids.len(), self.ids.capacity());
        if room > SMALL && used < room / 8 {
            let (pages, hasher) = (&self.pages, &self.hasher);
            self.ids.shrink_to(used.saturating_mul(2), |id| hash_of(pages, hasher, *id));
        }
        if used == 0 {
            (self.pages, self.free, self.next) = (Vec::new(), Vec::new(), 0);
        }
    }

    /// Above the numbers of all prefixes.
    pub(super) fn end(&self) -> PrefixId {
        PrefixId(self.next)
    }

    /// All prefixes, in the order of their numbers.
    pub(super) fn iter(&self) -> impl Iterator<Item = (PrefixId, &Slot<Entry>)> {
        self.iter_from(PrefixId::FIRST)
    }

    /// The same from this number on.
    pub(super) fn iter_from(
        &self,
        first: PrefixId,
    ) -> impl Iterator<Item = (PrefixId, &Slot<Entry>)> {
        let pages = self.pages.iter().zip((0_u32..).step_by(PAGE_SLOTS));
        let pages = pages.skip(first.place() / PAGE_SLOTS);
        let pages = pages.filter_map(|(page, number)| Some((page.as_ref()?, number)));
        let all = pages.flat_map(|(page, number)| {
            let slots = page.slots.iter().zip(number..);
            slots.filter_map(|(slot, number)| Some((PrefixId(number), slot.as_ref()?)))
        });
        all.skip_while(move |(id, _)| *id < first)
    }

    /// The same, to change what is kept.
    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Slot<Entry>> {
        self.pages.iter_mut().flatten().flat_map(|page| page.slots.iter_mut().flatten())
    }

    /// All prefixes, in their own order.
    pub(super) fn sorted(&self) -> Vec<&Slot<Entry>> {
        let mut slots: Vec<_> = self.iter().map(|(_, slot)| slot).collect();
        slots.sort_unstable_by_key(|slot| slot.prefix);
        slots
    }
}

impl<Entry> Page<Entry> {
    fn empty() -> Self {
        Self { slots: (0..PAGE_SLOTS).map(|_| None).collect(), used: 0 }
    }
}

fn slot<Entry>(pages: &[Option<Page<Entry>>], id: PrefixId) -> Option<&Slot<Entry>> {
    let place = id.place();
    pages.get(place / PAGE_SLOTS)?.as_ref()?.slots.get(place % PAGE_SLOTS)?.as_ref()
}

/// A number rather than the fields of the prefix: those would be hashed one by one.
fn hash(hasher: &RandomState, prefix: Prefix) -> u64 {
    let length = prefix.length();
    match prefix.address() {
        IpAddr::V4(address) => {
            hasher.hash_one(u64::from(address.to_bits()) << 8 | u64::from(length))
        }
        IpAddr::V6(address) => hasher.hash_one((address.to_bits(), length)),
    }
}

fn hash_of<Entry>(pages: &[Option<Page<Entry>>], hasher: &RandomState, id: PrefixId) -> u64 {
    slot(pages, id).map_or(0, |slot| hash(hasher, slot.prefix))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use fairway_ground::Rng;

    fn prefix(number: u32) -> Prefix {
        if number.is_multiple_of(5) {
            Prefix::from_ipv6_bits(u128::from(number) << 64, 64).unwrap()
        } else {
            Prefix::from_ipv4_bits(number << 8, 24).unwrap()
        }
    }

    #[test]
    fn a_prefix_keeps_its_number_until_it_goes() {
        let mut rng = Rng::seeded(3);
        let mut table: PrefixTable<u32> = PrefixTable::default();
        let mut plain: BTreeMap<Prefix, (PrefixId, u32)> = BTreeMap::new();
        for round in 0..20_000_u32 {
            let prefix = prefix(u32::try_from(rng.next_u64() % 3_000).unwrap());
            if rng.next_u64().is_multiple_of(2) {
                let id = table.id_or_insert(prefix).unwrap();
                table.get_mut(id).unwrap().entry = round;
                let known = plain.entry(prefix).or_insert((id, round));
                assert_eq!(known.0, id);
                known.1 = round;
            } else {
                assert_eq!(table.id(prefix), plain.get(&prefix).map(|(id, _)| *id));
                if let Some((id, _)) = plain.remove(&prefix) {
                    table.remove(id);
                }
            }
        }
        let sorted: Vec<_> = table.sorted().iter().map(|it| (it.prefix, it.entry)).collect();
        assert!(sorted.iter().copied().eq(plain.iter().map(|(it, (_, value))| (*it, *value))));
        let by_number: Vec<_> = table.iter().map(|(id, slot)| (id, slot.prefix)).collect();
        assert!(by_number.is_sorted() && by_number.len() == plain.len());
        assert!(by_number.iter().all(|(id, prefix)| plain[prefix].0 == *id));
    }

    #[test]
    fn what_many_prefixes_took_is_given_back() {
        let mut table: PrefixTable<u32> = PrefixTable::default();
        let ids: Vec<_> = (0..50_000).map(|it| table.id_or_insert(prefix(it)).unwrap()).collect();
        let full = table.ids.capacity();
        ids[10..].iter().for_each(|id| table.remove(*id));
        assert!(table.ids.capacity() < full / 20);
        assert_eq!(table.pages.iter().flatten().count(), 1);
        assert_eq!(table.iter().count(), 10);
        ids[..10].iter().for_each(|id| table.remove(*id));
        assert_eq!((table.pages.len(), table.free.len()), (0, 0));
        assert_eq!(table.id_or_insert(prefix(7)), Some(PrefixId::new(0)));
    }
}
