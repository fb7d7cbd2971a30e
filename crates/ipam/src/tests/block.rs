//! Addresses come and go, in their order; and random histories of one block.

use std::collections::BTreeMap;
use std::net::IpAddr;

use fairway_ground::{Prefix, Rng};

use crate::{
    AssignError, Attributes, Block, BlockSizeError, HostReserved, Moment, Owner, Release,
    ReleaseError, Seconds, WINDOWS_RESERVED_HANDLE,
};

fn prefix(text: &str) -> Prefix {
    text.parse().unwrap()
}

fn ip(text: &str) -> IpAddr {
    text.parse().unwrap()
}

fn ips(texts: &[&str]) -> Vec<IpAddr> {
    texts.iter().map(|it| ip(it)).collect()
}

fn of(handle: &str) -> Attributes {
    let secondary = BTreeMap::from([("node".to_owned(), "n1".to_owned())]);
    Attributes { handle: Some(handle.to_owned()), secondary, ..Attributes::default() }
}

fn block(text: &str) -> Block {
    Block::new(prefix(text), Owner::Host("n1".to_owned()), Moment::from_nanoseconds(100), None)
        .unwrap()
}

fn release(text: &str) -> Release {
    Release { address: ip(text), handle: None, sequence: None }
}

const START: Moment = Moment::from_nanoseconds(0);
const NOBODY: fn(IpAddr) -> bool = |_| false;

#[test]
fn addresses_are_given_in_order_and_one_that_comes_back_rests_longest() {
    let mut block = block("10.0.0.0/30");
    assert_eq!(block.assign(2, &of("a"), NOBODY), ips(&["10.0.0.0", "10.0.0.1"]));
    block.release(&[release("10.0.0.0")], 5, 0).unwrap();
    assert_eq!(block.assign(2, &of("b"), NOBODY), ips(&["10.0.0.2", "10.0.0.3"]));
    assert_eq!(block.assign(2, &of("c"), NOBODY), ips(&["10.0.0.0"]), "fewer than asked for");
    assert_eq!(block.free_count(), 0);
    assert_eq!(block.addresses_of("b").collect::<Vec<_>>(), ips(&["10.0.0.2", "10.0.0.3"]));
}

#[test]
fn reserved_addresses_are_left_out_unless_they_are_asked_for() {
    let mut block = block("fd00::/126");
    let is_reserved = |it| it == ip("fd00::") || it == ip("fd00::2");
    assert_eq!(block.assign(4, &of("a"), is_reserved), ips(&["fd00::1", "fd00::3"]));
    block.assign_address(ip("fd00::2"), &of("b")).unwrap();
    assert_eq!(block.free_count(), 1);
    assert_eq!(block.assign_address(ip("fd00::2"), &of("c")), Err(AssignError::AlreadyAssigned));
    assert_eq!(block.assign_address(ip("fd00::4"), &of("c")), Err(AssignError::NotInBlock));
    assert_eq!(block.assign_address(ip("10.0.0.1"), &of("c")), Err(AssignError::NotInBlock));
}

#[test]
fn an_address_cools_before_it_is_given_again() {
    const COOLDOWN: Seconds = 30;
    let mut block = block("10.0.0.0/31");
    block.assign(2, &of("a"), NOBODY);
    let released = block.release_handle("a", 100, COOLDOWN);
    assert_eq!(released.released, ips(&["10.0.0.0", "10.0.0.1"]));
    assert_eq!(released.handles, BTreeMap::from([("a".to_owned(), 2)]));
    assert!(!block.is_empty(), "somebody may still send to it");
    assert!(block.assign(1, &of("b"), NOBODY).is_empty());
    assert_eq!(block.assign_address(ip("10.0.0.1"), &of("b")), Err(AssignError::AlreadyAssigned));
    let again = block.release(&[release("10.0.0.1")], 110, COOLDOWN).unwrap();
    assert_eq!(again.unallocated, ips(&["10.0.0.1"]), "nobody has it");
    assert!(!block.collect(130, COOLDOWN));
    assert!(block.collect(131, COOLDOWN));
    assert!(block.is_empty());
    assert_eq!(block.assign(1, &of("b"), NOBODY), ips(&["10.0.0.0"]));
}

#[test]
fn one_address_of_somebody_else_keeps_all_of_a_request() {
    let mut block = block("10.0.0.0/29");
    block.assign(1, &of("a"), NOBODY);
    block.assign(1, &of("b"), NOBODY);
    let (_, first) = block.inspect(ip("10.0.0.0")).unwrap();
    let (_, second) = block.inspect(ip("10.0.0.1")).unwrap();
    assert_eq!((first, second, block.sequence()), (100, 101, 102), "the number before each write");
    let before = block.clone();
    let mine = Release { handle: Some("a".to_owned()), ..release("10.0.0.0") };
    let theirs = Release { handle: Some("a".to_owned()), ..release("10.0.0.1") };
    let refused = block.release(&[mine.clone(), theirs], 0, 0);
    assert_eq!(refused, Err(ReleaseError::Handle(ip("10.0.0.1"))));
    let old = Release { sequence: Some(first), ..release("10.0.0.1") };
    let refused = block.release(&[mine.clone(), old], 0, 0);
    assert_eq!(refused, Err(ReleaseError::Sequence(ip("10.0.0.1"))));
    assert_eq!(block, before);
    let twice = block.release(&[mine.clone(), mine, release("10.0.0.7")], 0, 0).unwrap();
    assert_eq!(twice.released, ips(&["10.0.0.0"]));
    assert_eq!(twice.unallocated, ips(&["10.0.0.7"]));
}

#[test]
fn what_is_reserved_for_the_host_leaves_a_block_empty() {
    let attributes = Attributes { secondary: BTreeMap::new(), ..of(WINDOWS_RESERVED_HANDLE) };
    let reserved = HostReserved { start: 3, end: 1, attributes };
    let owner = Owner::Host("n1".to_owned());
    let mut block = Block::new(prefix("10.0.0.0/29"), owner, START, Some(&reserved)).unwrap();
    assert!(block.is_empty());
    assert_eq!(
        block.assign(9, &of("a"), NOBODY),
        ips(&["10.0.0.3", "10.0.0.4", "10.0.0.5", "10.0.0.6"])
    );
    assert!(!block.is_empty());
}

#[test]
fn a_block_has_a_size() {
    let new =
        |text| Block::new(prefix(text), Owner::Virtual("load-balancer".to_owned()), START, None);
    assert_eq!(new("10.0.0.1/32").map(|it| it.free_count()), Ok(1));
    assert_eq!(new("10.0.0.0/20").map(|it| it.free_count()), Ok(4096));
    assert_eq!(new("fd00::/116").map(|it| it.free_count()), Ok(4096));
    assert_eq!(new("10.0.0.0/19"), Err(BlockSizeError(prefix("10.0.0.0/19"))));
    assert_eq!(new("::/0"), Err(BlockSizeError(prefix("::/0"))));
}

/// What must hold after each step: each address is free, taken or cooling; numbers rise; no address has two owners.
#[test]
fn any_history_keeps_each_address_once() {
    const COOLDOWN: Seconds = 10;
    let seed = std::env::var("FAIRWAY_SEED").ok().and_then(|it| it.parse().ok());
    for seed in seed.map_or(0..200, |it: u64| it..it + 1) {
        let mut dice = Rng::seeded(seed);
        let mut below = move |end: u64| dice.next_u64() % end;
        let mut block = block("10.0.0.0/28");
        let mut given: BTreeMap<IpAddr, String> = BTreeMap::new();
        let mut now = 0;
        for step in 0..200 {
            let before = block.sequence();
            let handle = format!("h{}", below(5));
            let address = IpAddr::V4((0x0A00_0000 + u32::try_from(below(17)).unwrap()).into());
            match below(6) {
                0 | 1 => {
                    let count = usize::try_from(below(4)).unwrap();
                    for address in block.assign(count, &of(&handle), |it| it == ip("10.0.0.5")) {
                        let other = given.insert(address, handle.clone());
                        assert_eq!(other, None, "seed {seed}, step {step}: {address} twice");
                    }
                }
                2 => {
                    let is_given = block.assign_address(address, &of(&handle)).is_ok();
                    if is_given {
                        let other = given.insert(address, handle);
                        assert_eq!(other, None, "seed {seed}, step {step}: {address} twice");
                    }
                }
                3 => {
                    let wish = Release { address, handle: Some(handle), sequence: None };
                    let outcome = block.release(&[wish], now, COOLDOWN).unwrap_or_default();
                    outcome.released.iter().for_each(|it| drop(given.remove(it)));
                }
                4 => {
                    let outcome = block.release_handle(&handle, now, COOLDOWN);
                    assert!(outcome.released.iter().all(|it| given.remove(it).is_some()));
                }
                _ => {
                    now += below(8);
                    block.collect(now, COOLDOWN);
                }
            }
            let mut taken = block.taken();
            let owned: BTreeMap<IpAddr, String> = taken
                .by_ref()
                .filter_map(|(address, it)| Some((address, it.handle.clone()?)))
                .collect();
            assert_eq!(owned, given, "seed {seed}, step {step}");
            assert_eq!(block.taken().count() + block.free_count(), 16, "seed {seed}, step {step}");
            assert!(block.sequence() >= before);
        }
    }
}
