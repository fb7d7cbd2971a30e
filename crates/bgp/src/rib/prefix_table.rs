//! Which number does a prefix have, and what is kept under it? Prefixes are numbered so that tables of many sessions
//! need no copy of them, and find an entry without a search. Knows no route. Used by [`super::LocRib`] and
//! [`super::AdjRibIn`].

use std::hash::BuildHasher as _;
use std::net::IpAddr;

use fairway_ground::{AddressFamily, PerFamily, Prefix};
use foldhash::fast::RandomState;
use hashbrown::hash_map::Entry as Place;
use hashbrown::hash_table::Entry as Found;
use hashbrown::{HashMap, HashTable};

/// The number of a prefix. Another prefix may get it when nothing is kept under it any more.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PrefixId(u32);

impl PrefixId {
    /// The first one.
    pub const FIRST: Self = Self(0);

    /// The number behind this one.
    pub fn next(self) -> Self {
        Self(self.0.saturating_add(1))
    }

    /// The number at this place in such a table.
    pub(super) fn at(place: usize) -> Option<Self> {
        u32::try_from(place).ok().map(Self)
    }

    /// The place in a table that has one for each number.
    pub(super) fn place(self) -> usize {
        usize::try_from(self.0).unwrap_or(usize::MAX)
    }

    pub(super) const fn new(number: u32) -> Self {
        Self(number)
    }

    pub(super) const fn number(self) -> u32 {
        self.0
    }
}

/// Numbers are given out so many at a time to one family, and their memory is given back when none of them is used.
const PAGE_PREFIXES: usize = 128;
/// An index of this many entries is never made smaller.
const SMALL: usize = 1024;
/// So many neighbouring prefixes are found together. Routers announce neighbours in succession, and a search in a large
/// table is a wait for memory.
const NEIGHBOURS: usize = 1 << NEIGHBOUR_BITS;
const NEIGHBOUR_BITS: u32 = 2;

/// Entries by prefix and by number.
pub(super) struct PrefixTable<Entry> {
    ipv4: Blocks,
    ipv6: Hashed,
    pages: Vec<Option<Page<Entry>>>,
    numbers: PerFamily<Numbers>,
    end: PrefixId,
}

/// Numbers that prefixes of a family may get.
#[derive(Debug, Default)]
struct Numbers {
    /// The next one of the last page of the family. Without one, the first one of another page.
    next: Option<PrefixId>,
    /// Those that prefixes had.
    free: Vec<PrefixId>,
}

/// What is kept under prefixes of one family.
struct Page<Entry> {
    prefixes: Prefixes,
    entries: Box<[Entry]>,
    used: usize,
}

enum Prefixes {
    Ipv4(Box<Packed<u32>>),
    Ipv6(Box<Packed<u128>>),
}

/// Prefixes without a word of padding: of a million, that is a third of what a table takes.
struct Packed<Bits> {
    bits: [Bits; PAGE_PREFIXES],
    /// [`NO_LENGTH`] where there is no prefix.
    lengths: [u8; PAGE_PREFIXES],
}

/// No prefix has this length.
const NO_LENGTH: u8 = u8::MAX;

impl<Entry> Default for PrefixTable<Entry> {
    fn default() -> Self {
        Self {
            ipv4: Blocks::default(),
            ipv6: Hashed::default(),
            pages: Vec::new(),
            numbers: PerFamily::default(),
            end: PrefixId::FIRST,
        }
    }
}

impl<Entry> std::fmt::Debug for PrefixTable<Entry> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{} prefixes", self.len())
    }
}

impl<Entry: Default> PrefixTable<Entry> {
    /// The number of `prefix`, if it has one.
    pub(super) fn id(&self, prefix: Prefix) -> Option<PrefixId> {
        match Node::of(prefix) {
            Some(node) => self.ipv4.id(node),
            None => self.ipv6.id(prefix, &self.pages),
        }
    }

    pub(super) fn prefix(&self, id: PrefixId) -> Option<Prefix> {
        prefix_in(&self.pages, id)
    }

    /// What is kept under a number; what is kept under none is the default.
    pub(super) fn get(&self, id: PrefixId) -> Option<&Entry> {
        let (page, place) = page_of(id);
        self.pages.get(page)?.as_ref()?.entries.get(place)
    }

    /// The same, to change it, with the family of its prefix.
    pub(super) fn get_mut(&mut self, id: PrefixId) -> Option<(AddressFamily, &mut Entry)> {
        let (page, place) = page_of(id);
        let page = self.pages.get_mut(page)?.as_mut()?;
        Some((page.prefixes.family(), page.entries.get_mut(place)?))
    }

    /// The number of `prefix`, which has one from now on. `None` when all numbers are given out.
    pub(super) fn id_or_insert(&mut self, prefix: Prefix) -> Option<PrefixId> {
        let family = prefix.family();
        // What it gets if it has none.
        let numbers = self.numbers.of(family);
        let last = numbers.free.last().copied().or(numbers.next);
        let of_new_page = || PrefixId::at(self.pages.len().checked_mul(PAGE_PREFIXES)?);
        let Some(id) = last.or_else(of_new_page).filter(|id| *id != NO_PREFIX) else {
            return self.id(prefix);
        };
        let known = match Node::of(prefix) {
            Some(node) => self.ipv4.id_or_insert(node, id),
            None => self.ipv6.id_or_insert(prefix, id, &self.pages),
        };
        if known != id {
            return Some(known);
        }
        let numbers = self.numbers.of_mut(family);
        let (page, place) = page_of(id);
        if numbers.free.pop().is_none() {
            let is_last = place.saturating_add(1) == PAGE_PREFIXES;
            numbers.next = Some(id.next()).filter(|_| !is_last);
            self.end = self.end.max(id.next());
        }
        if self.pages.len() <= page {
            self.pages.resize_with(page.saturating_add(1), || None);
        }
        let page = self.pages.get_mut(page)?.get_or_insert_with(|| Page::empty(family));
        page.prefixes.set(place, Some(prefix));
        page.used = page.used.saturating_add(1);
        Some(id)
    }

    /// Forgets a prefix and its number.
    pub(super) fn remove(&mut self, id: PrefixId) {
        let Some(prefix) = self.prefix(id) else { return };
        match Node::of(prefix) {
            Some(node) => self.ipv4.remove(node),
            None => self.ipv6.remove(prefix, &self.pages),
        }
        let (number, place) = page_of(id);
        if let Some(place_of_page) = self.pages.get_mut(number)
            && let Some(page) = place_of_page
        {
            page.prefixes.set(place, None);
            if let Some(entry) = page.entries.get_mut(place) {
                *entry = Entry::default();
            }
            page.used = page.used.saturating_sub(1);
            if page.used == 0 {
                *place_of_page = None;
            }
        }
        self.numbers.of_mut(prefix.family()).free.push(id);
        // What a million prefixes took is given back when they are gone.
        if self.len() == 0 {
            *self = Self::default();
        }
    }

    /// Above the numbers of all prefixes.
    pub(super) fn end(&self) -> PrefixId {
        self.end
    }

    /// All prefixes, in the order of their numbers.
    pub(super) fn iter(&self) -> impl Iterator<Item = (PrefixId, Prefix, &Entry)> {
        self.iter_from(PrefixId::FIRST)
    }

    /// The same from this number on.
    pub(super) fn iter_from(
        &self,
        first: PrefixId,
    ) -> impl Iterator<Item = (PrefixId, Prefix, &Entry)> {
        let (first_page, first_place) = page_of(first);
        let pages = self.pages.iter().enumerate().skip(first_page);
        pages.filter_map(|(number, page)| Some((number, page.as_ref()?))).flat_map(
            move |(number, page)| {
                let start = if number == first_page { first_place } else { 0 };
                (start..PAGE_PREFIXES).filter_map(move |place| {
                    let id =
                        PrefixId::at(number.saturating_mul(PAGE_PREFIXES).saturating_add(place))?;
                    Some((id, page.prefixes.get(place)?, page.entries.get(place)?))
                })
            },
        )
    }

    /// The same, to change what is kept.
    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = (Prefix, &mut Entry)> {
        self.pages.iter_mut().flatten().flat_map(|Page { prefixes, entries, .. }| {
            let entries = entries.iter_mut().enumerate();
            entries.filter_map(|(place, entry)| Some((prefixes.get(place)?, entry)))
        })
    }

    /// All prefixes, in their own order.
    pub(super) fn sorted(&self) -> Vec<(Prefix, &Entry)> {
        let mut all: Vec<_> = self.iter().map(|(_, prefix, entry)| (prefix, entry)).collect();
        all.sort_unstable_by_key(|(prefix, _)| *prefix);
        all
    }
}

impl<Entry> PrefixTable<Entry> {
    /// How many prefixes have a number.
    fn len(&self) -> usize {
        self.ipv4.count.saturating_add(self.ipv6.numbers.len())
    }
}

impl<Entry: Default> Page<Entry> {
    fn empty(family: AddressFamily) -> Self {
        let prefixes = match family {
            AddressFamily::Ipv4Unicast => Prefixes::Ipv4(Box::default()),
            AddressFamily::Ipv6Unicast => Prefixes::Ipv6(Box::default()),
        };
        let entries = std::iter::repeat_with(Entry::default).take(PAGE_PREFIXES).collect();
        Self { prefixes, entries, used: 0 }
    }
}

impl Prefixes {
    fn family(&self) -> AddressFamily {
        match self {
            Self::Ipv4(_) => AddressFamily::Ipv4Unicast,
            Self::Ipv6(_) => AddressFamily::Ipv6Unicast,
        }
    }

    #[inline]
    fn get(&self, place: usize) -> Option<Prefix> {
        match self {
            Self::Ipv4(packed) => {
                let (bits, length) = packed.get(place)?;
                Prefix::from_ipv4_bits(bits, length).ok()
            }
            Self::Ipv6(packed) => {
                let (bits, length) = packed.get(place)?;
                Prefix::from_ipv6_bits(bits, length).ok()
            }
        }
    }

    fn set(&mut self, place: usize, prefix: Option<Prefix>) {
        let length = prefix.map_or(NO_LENGTH, Prefix::length);
        match (self, prefix.map(Prefix::address)) {
            (Self::Ipv4(packed), Some(IpAddr::V4(address))) => {
                packed.set(place, address.to_bits(), length);
            }
            (Self::Ipv6(packed), Some(IpAddr::V6(address))) => {
                packed.set(place, address.to_bits(), length);
            }
            (Self::Ipv4(packed), _) => packed.set(place, 0, NO_LENGTH),
            (Self::Ipv6(packed), _) => packed.set(place, 0, NO_LENGTH),
        }
    }
}

impl<Bits: Copy + Default> Default for Packed<Bits> {
    fn default() -> Self {
        Self { bits: [Bits::default(); PAGE_PREFIXES], lengths: [NO_LENGTH; PAGE_PREFIXES] }
    }
}

impl<Bits: Copy> Packed<Bits> {
    fn get(&self, place: usize) -> Option<(Bits, u8)> {
        let length = self.lengths.get(place).copied().filter(|it| *it != NO_LENGTH)?;
        Some((*self.bits.get(place)?, length))
    }

    fn set(&mut self, place: usize, bits: Bits, length: u8) {
        if let (Some(known), Some(known_length)) =
            (self.bits.get_mut(place), self.lengths.get_mut(place))
        {
            (*known, *known_length) = (bits, length);
        }
    }
}

/// The page of a number, and its place there.
fn page_of(id: PrefixId) -> (usize, usize) {
    (id.place() / PAGE_PREFIXES, id.place() % PAGE_PREFIXES)
}

/// The number that no prefix has.
const NO_PREFIX: PrefixId = PrefixId(u32::MAX);

fn prefix_in<Entry>(pages: &[Option<Page<Entry>>], id: PrefixId) -> Option<Prefix> {
    let (page, place) = page_of(id);
    pages.get(page)?.as_ref()?.prefixes.get(place)
}

/// The numbers of IPv4's prefixes, by the block of neighbours to which a prefix belongs, and its place there.
#[derive(Default)]
struct Blocks {
    blocks: HashMap<u32, [PrefixId; NEIGHBOURS], RandomState>,
    /// Prefixes in all of them.
    count: usize,
}

impl Blocks {
    fn id(&self, node: Node) -> Option<PrefixId> {
        let id = self.blocks.get(&node.block)?.get(node.place).copied();
        id.filter(|id| *id != NO_PREFIX)
    }

    /// The number that is known, or else `id`, which is known from now on.
    fn id_or_insert(&mut self, node: Node, id: PrefixId) -> PrefixId {
        let ids = self.blocks.entry(node.block).or_insert([NO_PREFIX; NEIGHBOURS]);
        let Some(known) = ids.get_mut(node.place) else { return id };
        if *known == NO_PREFIX {
            *known = id;
            self.count = self.count.saturating_add(1);
        }
        *known
    }

    fn remove(&mut self, node: Node) {
        let Place::Occupied(mut found) = self.blocks.entry(node.block) else { return };
        let Some(known) = found.get_mut().get_mut(node.place) else { return };
        if std::mem::replace(known, NO_PREFIX) != NO_PREFIX {
            self.count = self.count.saturating_sub(1);
        }
        if found.get().iter().all(|id| *id == NO_PREFIX) {
            found.remove();
            if let Some(room) = less_room(self.blocks.len(), self.blocks.capacity()) {
                self.blocks.shrink_to(room);
            }
        }
    }
}

/// The numbers of IPv6's prefixes, which are rarely neighbours: with their blocks, an eighth of a full table.
#[derive(Default)]
struct Hashed {
    numbers: HashTable<PrefixId>,
    hash: RandomState,
}

impl Hashed {
    fn id<Entry>(&self, prefix: Prefix, pages: &[Option<Page<Entry>>]) -> Option<PrefixId> {
        let is_it = |id: &PrefixId| prefix_in(pages, *id) == Some(prefix);
        self.numbers.find(self.hash.hash_one(prefix), is_it).copied()
    }

    /// The number that is known, or else `id`, which is known from now on.
    fn id_or_insert<Entry>(
        &mut self,
        prefix: Prefix,
        id: PrefixId,
        pages: &[Option<Page<Entry>>],
    ) -> PrefixId {
        let Self { numbers, hash } = self;
        let is_it = |id: &PrefixId| prefix_in(pages, *id) == Some(prefix);
        let hash_of = |id: &PrefixId| prefix_in(pages, *id).map_or(0, |it| hash.hash_one(it));
        *numbers.entry(hash.hash_one(prefix), is_it, hash_of).or_insert(id).get()
    }

    fn remove<Entry>(&mut self, prefix: Prefix, pages: &[Option<Page<Entry>>]) {
        let Self { numbers, hash } = self;
        let is_it = |id: &PrefixId| prefix_in(pages, *id) == Some(prefix);
        let hash_of = |id: &PrefixId| prefix_in(pages, *id).map_or(0, |it| hash.hash_one(it));
        if let Found::Occupied(found) = numbers.entry(hash.hash_one(prefix), is_it, hash_of) {
            found.remove();
        }
        if let Some(room) = less_room(numbers.len(), numbers.capacity()) {
            numbers.shrink_to(room, hash_of);
        }
    }
}

/// The room that an index keeps that has so few entries that it gives the rest back.
fn less_room(used: usize, room: usize) -> Option<usize> {
    (room > SMALL && used < room / 8).then_some(used.saturating_mul(2))
}

/// Where a prefix of IPv4 is among its neighbours.
#[derive(Clone, Copy)]
struct Node {
    block: u32,
    place: usize,
}

impl Node {
    /// Prefixes are counted as the nodes of a binary tree are: the default route is 1, and below `n` there are `2n` and
    /// `2n + 1`. Neighbours of one length have numbers in succession, and no other prefix has them. A block is such a
    /// number without its last bits.
    fn of(prefix: Prefix) -> Option<Self> {
        let IpAddr::V4(address) = prefix.address() else { return None };
        let length = u32::from(prefix.length());
        let bits = address.to_bits().checked_shr(u32::BITS.saturating_sub(length)).unwrap_or(0);
        Some(match length.checked_sub(NEIGHBOUR_BITS) {
            Some(above) => Self { block: bits >> NEIGHBOUR_BITS | 1 << above, place: place(bits) },
            None => Self { block: 0, place: place(bits | 1 << length) },
        })
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
                *table.get_mut(id).unwrap().1 = round;
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
        let sorted = table.sorted().into_iter().map(|(prefix, value)| (prefix, *value));
        assert!(sorted.eq(plain.iter().map(|(it, (_, value))| (*it, *value))));
        let by_number: Vec<_> = table.iter().map(|(id, prefix, _)| (id, prefix)).collect();
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
        assert_eq!(table.pages.iter().flatten().count(), 2, "one of each family");
        assert_eq!(table.iter().count(), 10);
        ids[..10].iter().for_each(|id| table.remove(*id));
        assert_eq!((table.pages.len(), table.end()), (0, PrefixId::FIRST));
        assert_eq!(table.id_or_insert(prefix(7)), Some(PrefixId::new(0)));
    }
}
