//! The follower against a simulated kernel: whatever happens, its snapshot ends equal to a new one.

use super::*;
use crate::address::Address;
use crate::link::Link;
use crate::neighbour::{Neighbour, NeighbourState};
use crate::route::{Route, RouteKind};
use crate::scope::RouteScope;
use crate::simulated::{Kernel, PORT, Random, Socket, address, link, neighbour, route};

fn everything() -> Scope {
    Scope { routes: Some(RouteScope::default()), neighbours: true, receive_buffer_bytes: None }
}

/// One round of the edge: at most `reads` datagrams, then a request.
fn turn(follower: &mut Follower, kernel: &mut Kernel, now: Duration, reads: usize) {
    follower.handle(now, Input::Tick);
    for _ in 0..reads {
        match kernel.receive() {
            Socket::Datagram(bytes) => follower.handle(now, Input::Datagram(&bytes)),
            Socket::Overrun => follower.handle(now, Input::Overrun),
            Socket::Nothing => {
                follower.handle(now, Input::Drained);
                break;
            }
        }
    }
    if let Some(request) = follower.poll_request(now) {
        kernel.ask(&request);
    }
}

/// Lets a follower read until nothing is due before its next audit.
fn settle(follower: &mut Follower, kernel: &mut Kernel, now: &mut Duration) {
    for _ in 0..10_000 {
        turn(follower, kernel, *now, 100);
        let is_quiet = follower.reading.is_none() && follower.due.values().all(|it| it.is_audit);
        if is_quiet && matches!(kernel.receive(), Socket::Nothing) {
            return;
        }
        if follower.reading.is_none() {
            let next = follower.next_deadline().unwrap();
            *now = next.max(*now);
        }
    }
    panic!("it does not settle: {:?}", follower.due);
}

fn remade(kernel: &mut Kernel, scope: &Scope) -> Machine {
    let mut now = Duration::ZERO;
    let mut follower = Follower::new(now, scope.clone(), PORT);
    settle(&mut follower, kernel, &mut now);
    follower.machine().clone()
}

fn follower(kernel: &mut Kernel, scope: Scope) -> (Follower, Duration) {
    let mut now = Duration::ZERO;
    let mut follower = Follower::new(now, scope, PORT);
    settle(&mut follower, kernel, &mut now);
    (follower, now)
}

fn small_kernel() -> Kernel {
    let mut kernel = Kernel::default();
    kernel.put_link(link(1));
    kernel.put_link(link(2));
    for text in ["10.0.0.1/24", "10.0.0.2/24", "2001:db8::1/64", "fe80::1/64"] {
        kernel.add_address(address(1, text));
    }
    kernel.add_route(route("203.0.113.0/24", 1, Some("10.0.0.9")), false);
    kernel.put_neighbour(neighbour(1, "10.0.0.9"));
    while !matches!(kernel.receive(), Socket::Nothing) {}
    kernel
}

#[test]
fn every_table_that_is_asked_for_is_read_once() {
    let mut kernel = small_kernel();
    let (follower, _) = follower(&mut kernel, Scope::default());
    assert!(follower.is_complete());
    assert_eq!(follower.machine().links().count(), 2);
    assert_eq!(follower.machine().addresses().count(), 4);
    assert_eq!(follower.machine().routes().count() + follower.machine().neighbours().count(), 0);
    let machine = remade(&mut kernel, &everything());
    assert_eq!((machine.routes().count(), machine.neighbours().count()), (1, 1));
}

#[test]
fn an_event_changes_the_snapshot_at_once_and_says_which_table() {
    let mut kernel = small_kernel();
    let (mut follower, now) = follower(&mut kernel, everything());
    follower.take_changed();
    kernel.add_address(address(2, "10.5.0.1/24"));
    turn(&mut follower, &mut kernel, now, 10);
    assert_eq!(follower.take_changed(), Kind::Address.into());
    assert_eq!(follower.machine().addresses_of(2).len(), 1);
    kernel.put_link(Link { has_carrier: false, ..link(2) });
    turn(&mut follower, &mut kernel, now, 10);
    assert_eq!(follower.take_changed(), Kind::Link.into());
    assert!(!follower.machine().link(2).unwrap().is_usable());
    assert_eq!(follower.take_changed(), Kinds::NONE);
}

#[test]
fn routes_that_vanish_without_a_message_are_noticed() {
    let mut kernel = small_kernel();
    let (mut follower, mut now) = follower(&mut kernel, everything());
    kernel.put_link(Link { is_up: false, ..link(1) });
    turn(&mut follower, &mut kernel, now, 10);
    let before = now;
    settle(&mut follower, &mut kernel, &mut now);
    assert_eq!(follower.machine().routes().count(), 0);
    assert_eq!(now - before, SETTLE);
}

#[test]
fn routes_of_a_vrf_are_read_when_it_appears() {
    let mut kernel = small_kernel();
    kernel.add_route(Route { table: 1010, ..route("198.51.100.0/24", 2, None) }, false);
    kernel.add_route(Route { table: 2020, ..route("198.51.100.0/24", 2, None) }, false);
    let (mut follower, mut now) = follower(&mut kernel, everything());
    assert_eq!(follower.machine().routes().count(), 1, "a table of policy routing is of no VRF");
    let vrf = Link { kind: Some("vrf".to_owned()), vrf_table: Some(1010), ..link(9) };
    kernel.put_link(vrf);
    turn(&mut follower, &mut kernel, now, 10);
    settle(&mut follower, &mut kernel, &mut now);
    assert_eq!(follower.machine().routes().filter(|it| it.table == 1010).count(), 1);
    kernel.remove_link(9);
    turn(&mut follower, &mut kernel, now, 10);
    settle(&mut follower, &mut kernel, &mut now);
    assert_eq!(follower.machine().routes().count(), 1);
}

#[test]
fn only_routes_of_the_programs_that_are_asked_for_are_kept() {
    let mut kernel = small_kernel();
    kernel.add_route(Route { protocol: 3, ..route("198.51.100.0/24", 2, None) }, false);
    let routes = Some(RouteScope::OfPrograms([3].into()));
    let scope = Scope { routes, ..Scope::default() };
    let machine = remade(&mut kernel, &scope);
    assert_eq!(machine.routes().map(|it| it.protocol).collect::<Vec<_>>(), [3]);
}

#[test]
fn lost_events_have_every_table_read_again_after_the_socket_is_empty() {
    let mut kernel = small_kernel();
    let (mut follower, mut now) = follower(&mut kernel, everything());
    follower.take_notes();
    for octet in 0..100 {
        kernel.add_address(address(2, &format!("10.5.{octet}.1/24")));
    }
    turn(&mut follower, &mut kernel, now, 1);
    assert_eq!(follower.take_notes(), [Note::Lost { attempt: 1, wait: Duration::ZERO }]);
    assert!(follower.reading.is_none(), "events are dropped until the socket is empty");
    turn(&mut follower, &mut kernel, now, 100);
    assert!(follower.reading.is_some());
    settle(&mut follower, &mut kernel, &mut now);
    assert_eq!(follower.machine(), &remade(&mut kernel, &everything()));
    assert_eq!(follower.machine().addresses_of(2).len(), 100);
}

/// An entry that was listed already changes; the kernel may report it, or not.
fn change_during_a_read(is_noticed: bool) {
    let mut kernel = small_kernel();
    for octet in 0..8 {
        kernel.add_address(address(2, &format!("10.5.{octet}.1/24")));
        while !matches!(kernel.receive(), Socket::Nothing) {}
    }
    let (mut follower, now) = follower(&mut kernel, Scope::default());
    follower.due.insert(Kind::Address, Due { at: now, is_audit: false });
    kernel.ask(&follower.poll_request(now).unwrap());
    let Socket::Datagram(first) = kernel.receive() else { panic!("no list") };
    follower.handle(now, Input::Datagram(&first));
    let listed = kernel.addresses[&1][0].clone();
    if is_noticed {
        // Linux counts entries, too: it continues one too far, and reports that it was interrupted.
        kernel.remove_address(&listed);
    } else {
        kernel.add_address(address(1, "10.0.0.77/24"));
        kernel.overlook();
    }
    while follower.reading.is_some() {
        let Socket::Datagram(next) = kernel.receive() else { panic!("no end") };
        follower.handle(now, Input::Datagram(&next));
        let count = if is_noticed { 11 } else { 13 };
        assert_eq!(follower.machine().addresses().count(), count);
        assert_eq!(follower.machine().addresses().any(|it| *it == listed), !is_noticed);
    }
}

#[test]
fn an_event_during_a_read_survives_it() {
    change_during_a_read(false);
}

#[test]
fn a_read_that_was_interrupted_takes_nothing_away() {
    change_during_a_read(true);
}

#[test]
fn a_machine_that_never_stands_still_is_read_ever_more_rarely() {
    let mut kernel = small_kernel();
    let (mut follower, _) = follower(&mut kernel, Scope::default());
    follower.take_notes();
    let mut waits = Vec::new();
    for _ in 0..12 {
        follower.handle(Duration::from_secs(1), Input::Overrun);
        waits.extend(follower.take_notes().into_iter().map(|note| match note {
            Note::Lost { wait, .. } => wait.as_millis(),
            other => panic!("{other:?}"),
        }));
    }
    assert_eq!(waits, [0, 50, 100, 200, 400, 800, 1600, 3200, 6400, 10_000, 10_000, 10_000]);
    let mut now = Duration::from_secs(1);
    settle(&mut follower, &mut kernel, &mut now);
    follower.handle(now, Input::Overrun);
    assert_eq!(
        follower.take_notes(),
        [Note::Lost { attempt: 1, wait: Duration::ZERO }],
        "it was up to date"
    );
}

#[test]
fn a_list_that_never_ends_is_asked_for_again() {
    let mut now = Duration::ZERO;
    let mut follower = Follower::new(now, Scope::default(), PORT);
    assert!(follower.poll_request(now).is_some() && follower.poll_request(now).is_none());
    now = follower.next_deadline().unwrap();
    assert_eq!(now, ANSWER_TIMEOUT);
    follower.handle(now, Input::Tick);
    assert_eq!(follower.take_notes(), [Note::Silent(Kind::Link)]);
    let mut kernel = small_kernel();
    settle(&mut follower, &mut kernel, &mut now);
    assert!(follower.is_complete());
}

#[test]
fn a_refused_list_is_no_empty_one_and_is_asked_for_again() {
    let mut follower = Follower::new(Duration::ZERO, Scope::default(), PORT);
    assert!(follower.poll_request(Duration::ZERO).is_some());
    let mut refused = vec![36, 0, 0, 0, 2, 0, 0, 0, 1, 0, 0, 0];
    refused.extend(PORT.to_ne_bytes());
    refused.extend((-16_i32).to_ne_bytes());
    refused.extend([0; 16]);
    follower.handle(Duration::ZERO, Input::Datagram(&refused));
    assert_eq!(follower.take_notes(), [Note::Refused(Kind::Link, 16)]);
    assert!(!follower.is_complete() && follower.take_changed().is_empty());
    assert!(follower.poll_request(Duration::ZERO).is_some());
    follower.handle(Duration::ZERO, Input::Datagram(&refused));
    assert_eq!(follower.take_notes(), []);
    assert!(follower.reading.is_some(), "the answer was to the request before");
}

#[test]
fn a_datagram_that_is_cut_off_counts_as_lost() {
    let mut kernel = small_kernel();
    let (mut follower, now) = follower(&mut kernel, Scope::default());
    follower.take_notes();
    follower.handle(now, Input::Datagram(&[1, 2, 3]));
    assert_eq!(follower.take_notes(), [Note::Lost { attempt: 1, wait: Duration::ZERO }]);
}

#[test]
fn an_audit_finds_what_no_event_said() {
    let mut kernel = small_kernel();
    let (mut follower, mut now) = follower(&mut kernel, everything());
    follower.take_notes();
    follower.take_changed();
    kernel.neighbours.clear();
    now = follower.next_deadline().unwrap().max(now);
    assert!(now >= AUDIT_INTERVAL);
    now += AUDIT_INTERVAL;
    for _ in 0..20 {
        turn(&mut follower, &mut kernel, now, 10);
    }
    assert_eq!(follower.take_notes(), [Note::Missed(Kind::Neighbour)]);
    assert_eq!(follower.take_changed(), Kind::Neighbour.into());
}

/// One random change of the kernel.
#[allow(clippy::too_many_lines)] // A table of what can change.
fn change(kernel: &mut Kernel, random: &mut Random) {
    let index = random.below(4) + 1;
    match random.below(12) {
        0 => {
            let master = random.one_in(3).then_some(9);
            let is_up = !random.one_in(3);
            let has_carrier = is_up && random.one_in(2);
            kernel.put_link(Link { master, is_up, has_carrier, ..link(index) });
        }
        1 if random.one_in(3) => kernel.remove_link(index),
        2 => {
            let (kind, vrf_table) = (Some("vrf".to_owned()), Some(1010));
            if random.one_in(4) {
                kernel.remove_link(9);
            } else {
                kernel.put_link(Link { kind, vrf_table, ..link(9) });
            }
        }
        3 | 4 => {
            let text = match random.below(3) {
                0 => format!("10.{}.0.{}/24", random.below(3), random.below(4) + 1),
                1 => format!("10.{}.0.{}/16", random.below(3), random.below(4) + 1),
                _ => format!("2001:db8::{}/64", random.below(9) + 1),
            };
            kernel.put_link(link(index));
            kernel.add_address(address(index, &text));
        }
        5 => {
            let all: Vec<Address> = kernel.addresses.values().flatten().cloned().collect();
            if let Some(one) = all.get(usize::try_from(random.below(8)).unwrap()) {
                kernel.remove_address(one);
            }
        }
        6 | 7 => {
            let text = match random.below(2) {
                0 => format!("203.0.{}.0/24", random.below(5)),
                _ => format!("2001:db8:{}::/48", random.below(5)),
            };
            let gateway = if text.contains(':') { "fe80::1" } else { "10.0.0.9" };
            let mut new = route(&text, index, Some(gateway).filter(|_| random.one_in(2)));
            new.metric = random.below(2);
            new.table = if random.one_in(4) { 1010 } else { 254 };
            if random.one_in(5) && !text.contains(':') {
                (new.kind, new.next_hops) = (RouteKind::Blackhole, Vec::new());
            }
            new.source =
                random.one_in(6).then(|| [10, 0, 0, 1].into()).filter(|_| !text.contains(':'));
            let replaces = random.one_in(3);
            kernel.add_route(new, replaces);
        }
        8 => {
            let place = usize::try_from(random.below(8)).unwrap();
            if let Some(one) = kernel.routes.get(place).cloned() {
                if one.next_hops.len() > 1 {
                    kernel.remove_way(&one);
                } else {
                    kernel.remove_route(&one);
                }
            }
        }
        9 | 10 => {
            let text = format!("10.0.0.{}", random.below(5) + 1);
            let state =
                if random.one_in(4) { NeighbourState::Failed } else { NeighbourState::Stale };
            let is_router = random.one_in(2);
            kernel.put_neighbour(Neighbour { state, is_router, ..neighbour(index, &text) });
        }
        _ => {
            let place = usize::try_from(random.below(8)).unwrap();
            if let Some(one) = kernel.neighbours.get(place).cloned() {
                kernel.remove_neighbour(&one);
            }
        }
    }
}

/// Changes, reads, lists and overruns in every order that a seed makes: once the kernel stands still, the
/// snapshot is the one that a new follower makes. `FAIRWAY_SEEDS=10000` asks for more orders.
#[test]
fn after_any_events_the_snapshot_is_the_one_made_anew() {
    let (mut overruns, mut interruptions) = (0, 0);
    let seeds = std::env::var("FAIRWAY_SEEDS").ok().and_then(|it| it.parse().ok()).unwrap_or(200);
    for seed in 0..seeds {
        let mut random = Random(seed);
        let mut kernel = Kernel::default();
        let mut now = Duration::ZERO;
        let mut follower = Follower::new(now, everything(), PORT);
        for _ in 0..60 {
            let most = if random.one_in(6) { 30 } else { 4 };
            for _ in 0..random.below(most) {
                change(&mut kernel, &mut random);
            }
            now += Duration::from_millis(u64::from(random.below(40)));
            turn(&mut follower, &mut kernel, now, usize::try_from(random.below(8)).unwrap());
        }
        settle(&mut follower, &mut kernel, &mut now);
        (overruns, interruptions) =
            (overruns + kernel.overruns, interruptions + kernel.interruptions);
        let remade = remade(&mut kernel, &everything());
        let differences = follower.machine().differences(&remade);
        assert_eq!(
            differences,
            Kinds::NONE,
            "seed {seed}: {:#?} and a new snapshot {remade:#?}",
            follower.machine()
        );
    }
    let least = u32::try_from(seeds).unwrap() / 2;
    assert!(
        overruns > least && interruptions > least,
        "{overruns} overruns, {interruptions} interruptions"
    );
}
