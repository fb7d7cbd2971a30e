//! Which number does a prefix have, and what is kept under it? Prefixes are numbered so that tables of many sessions
//! need no copy of them, and find an entry without a search. Knows no route. Used by [`super::LocRib`] and
//! [`super::AdjRibIn`].

use std::hash::Hash;
use std::net::IpAddr;

use fairway_ground::Prefix;
use foldhash::fast::RandomState;
use hashbrown::HashMap;
use hashbrown::hash_map::Entry as Place;

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
/// So many neighbouring prefixes are found together. Routers announce neighbours in succession, and a search in a large
/// table is a wait for memory.
const NEIGHBOURS: usize = 1 << NEIGHBOUR_BITS;
const NEIGHBOUR_BITS: u32 = 2;

/// Entries by prefix and by number.
pub(super) struct PrefixTable<Entry> {
    ipv4: Index<u32>,
    ipv6: Index<u128>,
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
            ipv4: Index::default(),
            ipv6: Index::default(),
            pages: Vec::new(),
            free: Vec::new(),
            next: 0,
        }
    }
}

impl<Entry> std::fmt::Debug for PrefixTable<Entry> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{} prefixes", self.len())
    }
}

impl<Entry> PrefixTable<Entry> {
    /// The number of `prefix`, if it has one.
    pub(super) fn id(&self, prefix: Prefix) -> Option<PrefixId> {
        match Key::of(prefix) {
            Key::Ipv4(block, place) => self.ipv4.id(block, place),
            Key::Ipv6(block, place) => self.ipv6.id(block, place),
        }
    }

    /// How many prefixes have a number.
    fn len(&self) -> usize {
        self.ipv4.count.saturating_add(self.ipv6.count)
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
        // What it gets if it has none.
        let id = self.free.last().copied().unwrap_or(PrefixId(self.next));
        if id == NO_PREFIX {
            return self.id(prefix);
        }
        let known = match Key::of(prefix) {
            Key::Ipv4(block, place) => self.ipv4.id_or_insert(block, place, id),
            Key::Ipv6(block, place) => self.ipv6.id_or_insert(block, place, id),
        };
        if known != id {
            return Some(known);
        }
        if self.free.pop().is_none() {
            self.next = self.next.saturating_add(1);
        }
        let place = id.place();
        let number = place / PAGE_SLOTS;
        if self.pages.len() <= number {
            self.pages.resize_with(number.saturating_add(1), || None);
        }
        let page = self.pages.get_mut(number)?.get_or_insert_with(Page::empty);
        *page.slots.get_mut(place % PAGE_SLOTS)? = Some(Slot { prefix, entry: Entry::default() });
        page.used = page.used.saturating_add(1);
        Some(id)
    }

    /// Forgets a prefix and its number.
    pub(super) fn remove(&mut self, id: PrefixId) {
        let Some(prefix) = self.get(id).map(|slot| slot.prefix) else { return };
        match Key::of(prefix) {
            Key::Ipv4(block, place) => self.ipv4.remove(block, place),
            Key::Ipv6(block, place) => self.ipv6.remove(block, place),
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
        // What a million prefixes took is given back when they are gone.
        if self.len() == 0 {
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

/// The number that no prefix has.
const NO_PREFIX: PrefixId = PrefixId(u32::MAX);

/// The numbers of the prefixes of one family, by the block of neighbours to which a prefix belongs, and its place there.
struct Index<Block> {
    blocks: HashMap<Block, [PrefixId; NEIGHBOURS], RandomState>,
    /// Prefixes in all of them.
    count: usize,
}

impl<Block> Default for Index<Block> {
    fn default() -> Self {
        Self { blocks: HashMap::default(), count: 0 }
    }
}

impl<Block: Hash + Eq> Index<Block> {
    fn id(&self, block: Block, place: usize) -> Option<PrefixId> {
        let id = self.blocks.get(&block)?.get(place).copied();
        id.filter(|id| *id != NO_PREFIX)
    }

    /// The number that is known, or else `id`, which is known from now on.
    fn id_or_insert(&mut self, block: Block, place: usize, id: PrefixId) -> PrefixId {
        let ids = self.blocks.entry(block).or_insert([NO_PREFIX; NEIGHBOURS]);
        let Some(known) = ids.get_mut(place) else { return id };
        if *known == NO_PREFIX {
            *known = id;
            self.count = self.count.saturating_add(1);
        }
        *known
    }

    fn remove(&mut self, block: Block, place: usize) {
        let Place::Occupied(mut found) = self.blocks.entry(block) else { return };
        let Some(known) = found.get_mut().get_mut(place) else { return };
        if std::mem::replace(known, NO_PREFIX) != NO_PREFIX {
            self.count = self.count.saturating_sub(1);
        }
        if found.get().iter().all(|id| *id == NO_PREFIX) {
            found.remove();
            self.give_back();
        }
    }

    fn give_back(&mut self) {
        let (used, room) = (self.blocks.len(), self.blocks.capacity());
        if room > SMALL && used < room / 8 {
            self.blocks.shrink_to(used.saturating_mul(2));
        }
    }
}

/// A block of neighbours, and the place of a prefix in it.
enum Key {
    Ipv4(u32, usize),
    Ipv6(u128, usize),
}

impl Key {
    /// Prefixes are counted as the nodes of a binary tree are: the default route is 1, and below `n` there are `2n` and
    /// `2n + 1`. Neighbours of one length have numbers in succession, and no other prefix has them. A block is such a
    /// number without its last bits.
    fn of(prefix: Prefix) -> Self {
        let length = u32::from(prefix.length());
        let above = length.checked_sub(NEIGHBOUR_BITS);
        match prefix.address() {
            IpAddr::V4(address) => {
                let bits =
                    address.to_bits().checked_shr(u32::BITS.saturating_sub(length)).unwrap_or(0);
                match above {
                    Some(above) => Self::Ipv4(bits >> NEIGHBOUR_BITS | 1 << above, place(bits)),
                    None => Self::Ipv4(0, place(bits | 1 << length)),
                }
            }
            IpAddr::V6(address) => {
                let bits =
                    address.to_bits().checked_shr(u128::BITS.saturating_sub(length)).unwrap_or(0);
                let last = u32::try_from(bits & u128::from(u32::MAX)).unwrap_or(0);
                match above {
                    Some(above) => Self::Ipv6(bits >> NEIGHBOUR_BITS | 1 << above, place(last)),
                    None => Self::Ipv6(0, place(last | 1 << length)),
                }
            }
        }
    }
}

/// The last bits of the number of a node.
const fn place(bits: u32) -> usize {
    bits as usize % NEIGHBOURS
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

    /// All prefixes of up to seven bits, and the last ones of all lengths.
    #[test]
    fn every_prefix_has_a_place_of_its_own() {
        let mut table: PrefixTable<()> = PrefixTable::default();
        let mut all = BTreeMap::new();
        let short = (0..=7_u8).flat_map(|length| (0..1_u32 << length).map(move |it| (it, length)));
        let ipv4 = short.clone().map(|(bits, length)| {
            let bits = bits.checked_shl(32 - u32::from(length)).unwrap_or(0);
            Prefix::from_ipv4_bits(bits, length).unwrap()
        });
        let ipv6 = short.map(|(bits, length)| {
            let bits = u128::from(bits).checked_shl(128 - u32::from(length)).unwrap_or(0);
            Prefix::from_ipv6_bits(bits, length).unwrap()
        });
        let last_ipv4 = (8..=32).map(|it| Prefix::from_ipv4_bits(u32::MAX, it).unwrap());
        let last_ipv6 = (8..=128).map(|it| Prefix::from_ipv6_bits(u128::MAX, it).unwrap());
        for prefix in ipv4.chain(ipv6).chain(last_ipv4).chain(last_ipv6) {
            assert_eq!(table.id(prefix), None, "{prefix}");
            assert!(all.insert(table.id_or_insert(prefix).unwrap(), prefix).is_none(), "{prefix}");
        }
        assert!(all.iter().all(|(id, prefix)| table.id(*prefix) == Some(*id)));
        assert_eq!(table.len(), all.len());
    }

    #[test]
    fn what_many_prefixes_took_is_given_back() {
        let mut table: PrefixTable<u32> = PrefixTable::default();
        let ids: Vec<_> = (0..50_000).map(|it| table.id_or_insert(prefix(it)).unwrap()).collect();
        let full = table.ipv4.blocks.capacity();
        ids[10..].iter().for_each(|id| table.remove(*id));
        assert!(table.ipv4.blocks.capacity() <= SMALL.max(full / 8));
        assert_eq!(table.pages.iter().flatten().count(), 1);
        assert_eq!(table.iter().count(), 10);
        ids[..10].iter().for_each(|id| table.remove(*id));
        assert_eq!((table.pages.len(), table.free.len()), (0, 0));
        assert_eq!(table.id_or_insert(prefix(7)), Some(PrefixId::new(0)));
    }
}
