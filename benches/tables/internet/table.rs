//! A synthetic table of the Internet: its shape is that of a full table of 2025, its content belongs to nobody. The shape:
//! 1,000,000 prefixes of IPv4 and 220,000 of IPv6, with the shares of lengths, lengths of paths, and prefixes for each set
//! of attributes that public reports give. The same seed makes the same table.

#![allow(clippy::indexing_slicing)] // A benchmark may end.
#![allow(clippy::cast_possible_truncation)] // All is far below the bounds of its types.

use std::collections::HashMap;
use std::net::{Ipv4Addr, Ipv6Addr};

use fairway_ground::Rng;

use crate::message::{self, UPDATE};

const SEED: u64 = 2025;
const IPV4_PREFIXES: usize = 1_000_000;
const IPV6_PREFIXES: usize = 220_000;

/// Shares in thousandths, by length. /24 is three of five.
const IPV4_LENGTHS: &[(u64, u8)] = &[
    (600, 24),
    (100, 23),
    (112, 22),
    (52, 21),
    (46, 20),
    (30, 19),
    (15, 18),
    (10, 17),
    (14, 16),
    (1, 15),
    (1, 14),
];
/// The mean is 43.
const IPV6_LENGTHS: &[(u64, u8)] = &[
    (480, 48),
    (120, 32),
    (100, 44),
    (90, 40),
    (50, 36),
    (30, 29),
    (40, 46),
    (30, 47),
    (20, 45),
    (20, 42),
    (20, 33),
];
/// How many prefixes share their attributes: half of the sets have one.
const GROUP_SIZES: &[(u64, usize)] =
    &[(500, 1), (200, 2), (100, 4), (120, 10), (70, 30), (10, 150)];
/// AS numbers between the transit's own and the origin: the mean path has between four and five.
const HOPS_BETWEEN: &[(u64, usize)] = &[(60, 0), (240, 1), (330, 2), (220, 3), (100, 4), (50, 6)];
const COMMUNITIES: &[(u64, usize)] = &[(250, 0), (150, 2), (250, 4), (200, 7), (100, 12), (50, 25)];

/// Where addresses may begin that routers refuse, or that the benchmark uses.
const AVOIDED: [u32; 3] = [0, 10, 127];
/// From here on there are no unicast addresses.
const IPV4_END: u32 = 224 << 24;
/// Prefixes that are shorter than this have others inside.
const HOLDING: u8 = 20;
const FIRST_IPV6: u128 = 0x2a00 << 112;

/// An index of no prefix.
const NONE: u32 = u32::MAX;
/// More lengths than this have no IPv4 prefix here.
const IPV4_LENGTH_MAX: u8 = 24;

/// Prefixes in succession that share their attributes.
#[derive(Clone, Copy, Debug)]
struct Group {
    first: usize,
    count: usize,
    is_ipv6: bool,
    origin: u32,
}

/// See the module.
pub(crate) struct Table {
    ipv4: Vec<(u32, u8)>,
    ipv6: Vec<(u128, u8)>,
    groups: Vec<Group>,
    /// The index of an IPv4 prefix by its place among all prefixes of up to 24 bits.
    by_place: Vec<u32>,
    by_ipv6: HashMap<(u128, u8), u32>,
}

/// What a neighbour says of a group.
pub(crate) struct Voice {
    pub(crate) asn: u32,
    pub(crate) next_hop: Ipv4Addr,
    pub(crate) next_hop_ipv6: Ipv6Addr,
    /// Its paths are longer than those of a peer.
    pub(crate) is_transit: bool,
}

fn chosen<T: Copy>(rng: &mut Rng, shares: &[(u64, T)]) -> T {
    let total: u64 = shares.iter().map(|(share, _)| share).sum();
    let mut left = rng.next_u64() % total;
    for (share, value) in shares {
        if left < *share {
            return *value;
        }
        left -= share;
    }
    shares[0].1
}

fn place(address: u32, length: u8) -> usize {
    let bits = address.checked_shr(32 - u32::from(length)).unwrap_or(0);
    (bits | 1 << length) as usize
}

impl Table {
    /// A table with a part of the Internet's prefixes.
    pub(crate) fn new(divisor: usize) -> Self {
        let mut rng = Rng::seeded(SEED);
        let mut table = Self {
            ipv4: Vec::new(),
            ipv6: Vec::new(),
            groups: Vec::new(),
            by_place: vec![NONE; 2 << IPV4_LENGTH_MAX],
            by_ipv6: HashMap::new(),
        };
        let mut next = 1_u32 << 24;
        while table.ipv4.len() < IPV4_PREFIXES / divisor {
            let count = chosen(&mut rng, GROUP_SIZES);
            let origin = table.begin_group(&mut rng, false, count);
            for _ in 0..count {
                let length = chosen(&mut rng, IPV4_LENGTHS);
                let size = 1_u32 << (32 - length);
                // The start of a block of this size.
                let mut address = next.div_ceil(size).saturating_mul(size);
                while AVOIDED.contains(&(address >> 24)) {
                    address = ((address >> 24) + 1) << 24;
                }
                let index = table.ipv4.len() as u32;
                table.ipv4.push((address, length));
                table.by_place[place(address, length)] = index;
                // Holders of much announce parts of it, too.
                next = address + if length < HOLDING { 256 } else { size };
                assert!(next < IPV4_END, "the table is longer than the addresses there are");
            }
            // Half of the sets are alone in their neighbourhood.
            next += (rng.next_u64() % 3) as u32 * 256 * u32::from(origin.is_multiple_of(2));
        }
        let mut block = 0_u128;
        while table.ipv6.len() < IPV6_PREFIXES / divisor {
            let count = chosen(&mut rng, GROUP_SIZES);
            table.begin_group(&mut rng, true, count);
            // Each holder has a /29, and announces parts of it.
            let holder = FIRST_IPV6 + (block << 99);
            block += 1;
            let mut next = holder;
            for _ in 0..count {
                let length = chosen(&mut rng, IPV6_LENGTHS);
                let size = 1_u128 << (128 - length);
                let address = next.div_ceil(size) * size;
                let index = (table.ipv4.len() + table.ipv6.len()) as u32;
                table.ipv6.push((address, length));
                table.by_ipv6.insert((address, length), index);
                next = address + size;
            }
            block = block.max(((next - FIRST_IPV6) >> 99) + 1);
        }
        table
    }

    fn begin_group(&mut self, rng: &mut Rng, is_ipv6: bool, count: usize) -> u32 {
        let first = if is_ipv6 { self.ipv6.len() } else { self.ipv4.len() };
        let origin = 100_000 + (rng.next_u64() % 78_000) as u32;
        self.groups.push(Group { first, count, is_ipv6, origin });
        origin
    }

    pub(crate) fn len(&self) -> usize {
        self.ipv4.len() + self.ipv6.len()
    }

    pub(crate) fn groups(&self) -> usize {
        self.groups.len()
    }

    /// In words: what was made, to hold it against what is published.
    pub(crate) fn shape(&self) -> String {
        let mean = |lengths: &mut dyn Iterator<Item = u8>| {
            let (sum, count) =
                lengths.fold((0_u64, 0_u64), |(sum, count), it| (sum + u64::from(it), count + 1));
            sum as f64 / count as f64
        };
        format!(
            "{} prefixes of IPv4 (mean length {:.1}), {} of IPv6 ({:.1}), {} sets of attributes",
            self.ipv4.len(),
            mean(&mut self.ipv4.iter().map(|(_, it)| *it)),
            self.ipv6.len(),
            mean(&mut self.ipv6.iter().map(|(_, it)| *it)),
            self.groups.len()
        )
    }

    /// The index of this prefix, IPv4's before IPv6's.
    pub(crate) fn index_of_ipv4(&self, address: u32, length: u8) -> Option<usize> {
        let known = self.by_place.get(place(address, length.min(IPV4_LENGTH_MAX)))?;
        (*known != NONE).then_some(*known as usize)
    }

    pub(crate) fn index_of_ipv6(&self, address: u128, length: u8) -> Option<usize> {
        self.by_ipv6.get(&(address, length)).map(|it| *it as usize)
    }

    /// How many prefixes these groups have.
    pub(crate) fn count_of(&self, groups: std::ops::Range<usize>) -> usize {
        self.groups[groups].iter().map(|it| it.count).sum()
    }

    /// The UPDATEs for these groups, which a neighbour announces; with another `round`, other paths.
    pub(crate) fn announcements(
        &self,
        groups: std::ops::Range<usize>,
        voice: &Voice,
        round: u32,
    ) -> Vec<u8> {
        let mut bytes = Vec::new();
        for number in groups {
            self.announce(number, voice, round, &mut bytes);
        }
        bytes
    }

    fn announce(&self, number: usize, voice: &Voice, round: u32, bytes: &mut Vec<u8>) {
        let group = self.groups[number];
        let mut rng =
            Rng::seeded(number as u64 ^ u64::from(voice.asn) << 32 ^ u64::from(round) << 52);
        let mut attributes = vec![0x40, 1, 1, 0];
        let hops = if voice.is_transit { 1 + chosen(&mut rng, HOPS_BETWEEN) } else { 0 };
        let mut path = vec![voice.asn];
        path.extend((0..hops).map(|_| 1_000 + (rng.next_u64() % 2_000) as u32));
        // As long as before: a change is one of the path alone.
        path.push(if round == 0 { group.origin } else { 200_000 + round });
        attributes.extend([0x40, 2, (2 + 4 * path.len()) as u8, 2, path.len() as u8]);
        path.iter().for_each(|it| attributes.extend(it.to_be_bytes()));
        if !group.is_ipv6 {
            attributes.extend([0x40, 3, 4]);
            attributes.extend(voice.next_hop.octets());
        }
        let communities = chosen(&mut rng, COMMUNITIES);
        if communities > 0 {
            attributes.extend([0xC0, 8, (4 * communities) as u8]);
            for _ in 0..communities {
                let value = (rng.next_u64() % 500) as u32;
                attributes.extend((path[0] << 16 | value).to_be_bytes());
            }
        }
        let prefixes =
            (group.first..group.first + group.count).map(|it| self.encoded(it, group.is_ipv6));
        let prefixes: Vec<Vec<u8>> = prefixes.collect();
        // At most 17 octets for each.
        for part in prefixes.chunks(150) {
            let (mut of_part, mut nlri) = (attributes.clone(), Vec::<u8>::new());
            if group.is_ipv6 {
                let mut value = vec![0, 2, 1, 16];
                value.extend(voice.next_hop_ipv6.octets());
                value.push(0);
                part.iter().for_each(|it| value.extend(it));
                of_part.extend([0x90, 14]);
                of_part.extend((value.len() as u16).to_be_bytes());
                of_part.extend(value);
            } else {
                part.iter().for_each(|it| nlri.extend(it));
            }
            let mut body = vec![0, 0];
            body.extend((of_part.len() as u16).to_be_bytes());
            body.extend(of_part);
            body.extend(nlri);
            bytes.extend(message::message(UPDATE, &body));
        }
    }

    fn encoded(&self, number: usize, is_ipv6: bool) -> Vec<u8> {
        let (length, octets) = if is_ipv6 {
            let (address, length) = self.ipv6[number];
            (length, address.to_be_bytes().to_vec())
        } else {
            let (address, length) = self.ipv4[number];
            (length, address.to_be_bytes().to_vec())
        };
        let mut bytes = vec![length];
        bytes.extend(&octets[..usize::from(length).div_ceil(8)]);
        bytes
    }
}
