//! Which frames does the kernel hand over? A program of classic BPF for each socket, so that requests for
//! addresses of others, most of a segment's, wake nobody.
//!
//! Exact while the addresses form few enough ranges; beyond that neighbouring ranges are joined, and the
//! responder looks the address up anyway. Pure; attached by the edge.

use std::net::{Ipv4Addr, Ipv6Addr};

/// The kernel takes programs of so many instructions, and charges what it makes of them to the socket
/// (`net.core.optmem_max`, 20,480 bytes before Linux 6.7). This many ranges fit below that with room to spare.
pub const RANGES_MAX: usize = 256;
/// Ranges for the address of the sender of an ARP packet: this only finds foreign hosts that claim an address
/// of ours, and need not be exact.
const SENDER_RANGES_MAX: usize = 32;
/// Different first 96 bits of IPv6 addresses that are compared; of more, only the last 32 bits are.
const PREFIXES_MAX: usize = 8;

/// Octets of a frame that are handed over: any message of a neighbour is shorter.
const SNAP_LENGTH_BYTES: u32 = 1_514;

/// Where fields are in a frame.
const ARP_SENDER: u32 = 28;
const ARP_TARGET: u32 = 38;
const NEXT_HEADER: u32 = 20;
const ICMPV6_TYPE: u32 = 54;
const NDP_TARGET: u32 = 62;
const NDP_TARGET_END: u32 = 74;

/// Facts that the kernel has of a frame, in place of bytes (`SKF_AD_OFF` with `SKF_AD_PKTTYPE`, `SKF_AD_IFINDEX`).
const PACKET_TYPE: u32 = 0xFFFF_F004;
const INTERFACE: u32 = 0xFFFF_F008;
/// `PACKET_OTHERHOST`: of a VLAN that this machine has no interface for, or for another machine.
const FOR_OTHERS: u32 = 3;

/// An instruction, as the kernel's `struct sock_filter`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Instruction {
    /// What to do.
    pub code: u16,
    /// Instructions to skip when a condition holds.
    pub if_true: u8,
    /// Instructions to skip when it does not.
    pub if_false: u8,
    /// The operand.
    pub value: u32,
}

const LOAD_WORD: u16 = 0x20;
const LOAD_BYTE: u16 = 0x30;
const SUBTRACT: u16 = 0x14;
const JUMP: u16 = 0x05;
const JUMP_IF_EQUAL: u16 = 0x15;
const JUMP_IF_NOT_LESS: u16 = 0x35;
const RETURN: u16 = 0x06;

const fn plain(code: u16, value: u32) -> Instruction {
    Instruction { code, if_true: 0, if_false: 0, value }
}

/// Hands the frame over.
const ACCEPT: Instruction = plain(RETURN, SNAP_LENGTH_BYTES);
/// Drops it for this socket.
const DROP: Instruction = plain(RETURN, 0);

/// What `program` accepts, of the frames that the interface of this number itself receives. The socket of an
/// interface also gets those of VLANs on it, whose tag is gone by then, with the number of the VLAN's interface; and
/// those of VLANs that nobody receives.
pub fn on_interface(index: u32, program: Vec<Instruction>) -> Vec<Instruction> {
    let mut whole = vec![
        plain(LOAD_WORD, INTERFACE),
        Instruction { code: JUMP_IF_EQUAL, if_true: 1, if_false: 0, value: index },
        DROP,
        plain(LOAD_WORD, PACKET_TYPE),
        Instruction { code: JUMP_IF_EQUAL, if_true: 0, if_false: 1, value: FOR_OTHERS },
        DROP,
    ];
    whole.extend(program);
    whole
}

/// For a socket of ARP: packets about these addresses (sorted), or from a sender that has one of them or one of
/// `checked` (sorted). No more than `ranges_max` ranges are told apart.
pub fn arp(addresses: &[Ipv4Addr], checked: &[Ipv4Addr], ranges_max: usize) -> Vec<Instruction> {
    let values: Vec<u32> = addresses.iter().map(|it| it.to_bits()).collect();
    let mut senders: Vec<u32> = checked.iter().map(|it| it.to_bits()).collect();
    senders.extend(&values);
    senders.sort_unstable();
    let senders = search(ARP_SENDER, &cover(&senders, SENDER_RANGES_MAX.min(ranges_max)), &[DROP]);
    search(ARP_TARGET, &cover(&values, ranges_max), &senders)
}

/// For a socket of IPv6: neighbour solicitations and advertisements with one of these targets (sorted).
pub fn ndp(addresses: &[Ipv6Addr], ranges_max: usize) -> Vec<Instruction> {
    let mut prefixes: Vec<[u32; 3]> = addresses.iter().map(|it| split(*it).0).collect();
    prefixes.dedup();
    let mut ends: Vec<u32> = addresses.iter().map(|it| split(*it).1).collect();
    ends.sort_unstable();
    ends.dedup();
    let ends = search(NDP_TARGET_END, &cover(&ends, ranges_max), &[DROP]);
    let mut program = vec![
        plain(LOAD_BYTE, NEXT_HEADER),
        Instruction { code: JUMP_IF_EQUAL, if_true: 1, if_false: 0, value: 58 },
        DROP,
        plain(LOAD_BYTE, ICMPV6_TYPE),
        Instruction { code: JUMP_IF_EQUAL, if_true: 2, if_false: 0, value: 135 },
        Instruction { code: JUMP_IF_EQUAL, if_true: 1, if_false: 0, value: 136 },
        DROP,
    ];
    if prefixes.len() <= PREFIXES_MAX {
        program.extend(one_of(&prefixes));
    }
    program.extend(ends);
    program
}

/// The first 96 bits of an address, and the last 32.
fn split(address: Ipv6Addr) -> ([u32; 3], u32) {
    let bits = address.to_bits();
    let word = |shift: u32| u32::try_from((bits >> shift) & 0xFFFF_FFFF).unwrap_or(0);
    ([word(96), word(64), word(32)], word(0))
}

/// Goes on behind this code where the target begins with one of `prefixes`.
fn one_of(prefixes: &[[u32; 3]]) -> Vec<Instruction> {
    /// Instructions for a prefix, the last of which jumps behind all of this.
    const EACH: usize = 7;
    let mut code = Vec::new();
    for (place, [first, second, third]) in prefixes.iter().enumerate() {
        let others = prefixes.len().saturating_sub(place).saturating_sub(1);
        // Those of the other prefixes, and what drops the frame.
        let rest = others.saturating_mul(EACH).saturating_add(1);
        let words = [(first, 5), (second, 3), (third, 1)];
        for (offset, (word, if_false)) in [0, 4, 8].into_iter().zip(words) {
            code.push(plain(LOAD_WORD, NDP_TARGET.saturating_add(offset)));
            code.push(Instruction { code: JUMP_IF_EQUAL, if_true: 0, if_false, value: *word });
        }
        code.push(plain(JUMP, u32::try_from(rest).unwrap_or(0)));
    }
    code.push(DROP);
    code
}

/// A sorted set as at most `ranges_max` ranges, both ends included: those with the smallest gaps between them
/// are joined where there would be more.
fn cover(values: &[u32], ranges_max: usize) -> Vec<(u32, u32)> {
    let mut gaps: Vec<u32> = values
        .windows(2)
        .filter_map(|pair| Some(pair.last()?.saturating_sub(*pair.first()?)))
        .collect();
    gaps.retain(|gap| *gap > 1);
    gaps.sort_unstable();
    // As many of the widest gaps as there are between the ranges stay.
    let stay = ranges_max.max(1).saturating_sub(1);
    let joined = gaps.len().saturating_sub(stay);
    let joined_max = joined.checked_sub(1).and_then(|last| gaps.get(last)).copied().unwrap_or(1);
    let mut ranges: Vec<(u32, u32)> = Vec::new();
    for value in values {
        match ranges.last_mut() {
            Some((_, end)) if value.saturating_sub(*end) <= joined_max => *end = *value,
            _ => ranges.push((*value, *value)),
        }
    }
    ranges
}

/// Accepts the frame if the word at `offset` is in one of the ranges; goes on with `otherwise` if not, which
/// ends in a return. Takes as many comparisons as the number of ranges has binary digits, and one more.
fn search(offset: u32, ranges: &[(u32, u32)], otherwise: &[Instruction]) -> Vec<Instruction> {
    let Some((base, _)) = ranges.first().copied() else { return otherwise.to_vec() };
    // Relative to the first: the kernel needs more instructions for a comparison with a number of 32 bits.
    let mut limits = Vec::new();
    for (start, end) in ranges {
        limits.push(start.saturating_sub(base));
        // No limit behind the last number there is.
        limits.extend(end.saturating_sub(base).checked_add(1));
    }
    let mut code = vec![plain(LOAD_WORD, offset), plain(SUBTRACT, base)];
    let tree = tree(&limits, false);
    let length = tree.len();
    for (place, instruction) in tree.into_iter().enumerate() {
        code.push(match instruction {
            Branch::Instruction(instruction) => instruction,
            Branch::Found => ACCEPT,
            Branch::NotFound => {
                let rest = length.saturating_sub(place).saturating_sub(1);
                plain(JUMP, u32::try_from(rest).unwrap_or(0))
            }
        });
    }
    code.extend(otherwise);
    code
}

/// What a search consists of.
enum Branch {
    Instruction(Instruction),
    Found,
    NotFound,
}

/// A binary search among limits: below the first one a value is found if `is_found`, and it is the other way
/// round behind each.
fn tree(limits: &[u32], is_found: bool) -> Vec<Branch> {
    let middle = limits.len() / 2;
    let Some(limit) = limits.get(middle).copied() else {
        return vec![if is_found { Branch::Found } else { Branch::NotFound }];
    };
    let (low, high) = (limits.get(..middle), limits.get(middle.saturating_add(1)..));
    let low = tree(low.unwrap_or_default(), is_found);
    let is_found_behind = is_found ^ (middle.is_multiple_of(2));
    let high = tree(high.unwrap_or_default(), is_found_behind);
    let mut code = Vec::with_capacity(low.len().saturating_add(high.len()).saturating_add(2));
    let compare = |if_true, if_false| {
        let code = JUMP_IF_NOT_LESS;
        Branch::Instruction(Instruction { code, if_true, if_false, value: limit })
    };
    if let Ok(distance) = u8::try_from(low.len()) {
        code.push(compare(distance, 0));
    } else {
        // Conditions jump no further than 255 instructions.
        code.push(compare(0, 1));
        code.push(Branch::Instruction(plain(JUMP, u32::try_from(low.len()).unwrap_or(0))));
    }
    code.extend(low);
    code.extend(high);
    code
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use fairway_ground::{MacAddress, Rng};

    use super::*;
    use crate::arp::{ArpFrame, Operation};
    use crate::ndp::Advertisement;

    /// What the kernel would do.
    fn accepts(program: &[Instruction], frame: &[u8]) -> bool {
        accepts_on(program, frame, 1, 0)
    }

    /// The same, with a frame of this type that interface `index` received.
    fn accepts_on(program: &[Instruction], frame: &[u8], index: u32, packet_type: u32) -> bool {
        let (mut at, mut value) = (0, 0_u32);
        loop {
            let Instruction { code, if_true, if_false, value: operand } = program[at];
            let place = usize::try_from(operand).unwrap();
            at += 1;
            match code {
                LOAD_WORD if operand == INTERFACE => value = index,
                LOAD_WORD if operand == PACKET_TYPE => value = packet_type,
                LOAD_WORD => {
                    value = u32::from_be_bytes(frame[place..place + 4].try_into().unwrap())
                }
                LOAD_BYTE => value = u32::from(frame[place]),
                SUBTRACT => value = value.wrapping_sub(operand),
                JUMP => at += place,
                JUMP_IF_EQUAL if value == operand => at += usize::from(if_true),
                JUMP_IF_NOT_LESS if value >= operand => at += usize::from(if_true),
                JUMP_IF_EQUAL | JUMP_IF_NOT_LESS => at += usize::from(if_false),
                RETURN => return operand != 0,
                _ => panic!("unknown instruction {code:#x}"),
            }
        }
    }

    fn question(target: u32, sender: u32) -> Vec<u8> {
        let mac = MacAddress([2, 0, 0, 0, 0, 9]);
        let frame = ArpFrame {
            sender: Ipv4Addr::from_bits(sender),
            ..ArpFrame::gratuitous(mac, Ipv4Addr::from_bits(target), Operation::Request)
        };
        frame.encode()
    }

    #[test]
    fn arp_is_exact_while_the_ranges_fit_and_never_too_narrow() {
        for seed in 0..200 {
            let mut rng = Rng::seeded(seed);
            let count = 1 + rng.next_u64() % 600;
            let near = |rng: &mut Rng| {
                0xC633_6400_u32.wrapping_add(u32::try_from(rng.next_u64() % 2_000).unwrap())
            };
            let owned: BTreeSet<u32> = (0..count).map(|_| near(&mut rng)).collect();
            let addresses: Vec<Ipv4Addr> =
                owned.iter().map(|it| Ipv4Addr::from_bits(*it)).collect();
            let ranges_max = [4, RANGES_MAX, 2_000][usize::try_from(seed % 3).unwrap()];
            let program = arp(&addresses, &[], ranges_max);
            let is_exact =
                cover(&owned.iter().copied().collect::<Vec<_>>(), usize::MAX).len() <= ranges_max;
            for _ in 0..300 {
                let target = near(&mut rng);
                let accepted = accepts(&program, &question(target, 1));
                assert!(
                    accepted || !owned.contains(&target),
                    "seed {seed}: {target:#x} is dropped"
                );
                assert!(
                    !accepted || !is_exact || owned.contains(&target),
                    "seed {seed}: {target:#x} is handed over"
                );
            }
            let ours = *owned.first().unwrap();
            assert!(
                accepts(&program, &question(1, ours)),
                "seed {seed}: a foreign claim is dropped"
            );
            assert!(!accepts(&program, &question(1, 1)));
        }
    }

    #[test]
    fn frames_of_vlans_on_the_interface_are_not_its_own() {
        let addresses = [Ipv4Addr::from_bits(7)];
        let program = on_interface(4, arp(&addresses, &[], RANGES_MAX));
        let question = question(7, 1);
        // PACKET_HOST, PACKET_BROADCAST.
        assert!(accepts_on(&program, &question, 4, 0) && accepts_on(&program, &question, 4, 1));
        assert!(!accepts_on(&program, &question, 5, 1), "eth0.10 has received it");
        assert!(!accepts_on(&program, &question, 4, FOR_OTHERS), "nobody has the VLAN");
    }

    #[test]
    fn the_ends_of_the_number_range_are_addresses_like_others() {
        let addresses = [Ipv4Addr::UNSPECIFIED, Ipv4Addr::BROADCAST];
        let program = arp(&addresses, &[], RANGES_MAX);
        for (target, is_ours) in [(0, true), (1, false), (u32::MAX, true), (u32::MAX - 1, false)] {
            assert_eq!(accepts(&program, &question(target, 7)), is_ours, "{target:#x}");
        }
    }

    #[test]
    fn ndp_compares_whole_addresses() {
        let mac = MacAddress([2, 0, 0, 0, 0, 9]);
        let frame = |address: &str| {
            let address = address.parse().unwrap();
            Advertisement { address, mac, is_router: false, asker: None }.encode()
        };
        let addresses: Vec<Ipv6Addr> =
            ["2001:db8::10", "2001:db8::11", "2001:db8:1::20", "fd00::10"]
                .map(|it| it.parse().unwrap())
                .to_vec();
        let program = ndp(&addresses, RANGES_MAX);
        for address in &addresses {
            assert!(accepts(&program, &frame(&address.to_string())), "{address}");
        }
        for other in ["2001:db8::12", "2001:db8:2::10", "fd00:0:0:1::10", "2001:db8::1:0:10"] {
            assert!(!accepts(&program, &frame(other)), "{other}");
        }
        let mut other = frame("2001:db8::10");
        other[54] = 134;
        assert!(!accepts(&program, &other), "a router advertisement");
        other[20] = 6;
        assert!(!accepts(&program, &other), "TCP");
    }

    #[test]
    fn no_address_hands_over_no_frame() {
        assert_eq!(arp(&[], &[], RANGES_MAX), [DROP]);
        let frame = Advertisement {
            address: Ipv6Addr::LOCALHOST,
            mac: MacAddress::BROADCAST,
            is_router: false,
            asker: None,
        };
        assert!(!accepts(&ndp(&[], RANGES_MAX), &frame.encode()));
    }
}
