//! What becomes of the kernel's routes: stories, and random histories against a kernel that fails and forgets.

use std::collections::BTreeMap;

use super::*;
use crate::order::{DROP, ways_of};
use crate::surroundings::MARK;
use fairway_ground::{InterfaceName, Prefix, Rng};
use fairway_netlink::{Fact, Link, Machine, RouteKind, RouteOrder};

const MAIN: u32 = 254;
/// The networks of two interfaces; a host of each is a router.
const NETWORKS: [&str; 2] = ["10.1.0.0/24", "10.2.0.0/24"];

/// A kernel with two interfaces.
#[derive(Debug, Clone, Default)]
struct Kernel {
    is_up: [bool; 2],
    ours: BTreeMap<Prefix, Vec<NextHop>>,
    foreign: BTreeMap<Prefix, Route>,
}

impl Kernel {
    fn new() -> Self {
        Self { is_up: [true; 2], ..Self::default() }
    }

    fn machine(&self) -> Machine {
        let link = |index: u32| Link {
            has_carrier: self.is_up[usize::try_from(index).unwrap()],
            ..link(index, &format!("e{index}"))
        };
        let connected =
            (0..2_u32).filter(|it| self.is_up[usize::try_from(*it).unwrap()]).map(|index| {
                let way = NextHop { index: Some(index), gateway: None, weight: 1 };
                let destination = NETWORKS[usize::try_from(index).unwrap()].parse().unwrap();
                route(destination, 2, 0, vec![way])
            });
        let routes = connected.chain(self.foreign.values().cloned());
        let routes = routes.map(|route| Fact::Route { route, replaces: false });
        (0..2).map(|index| Fact::Link(link(index))).chain(routes).collect()
    }

    fn surroundings(&self) -> Surroundings {
        Surroundings::of(self.machine())
    }

    fn listed(&self) -> Vec<Route> {
        let listed = self.ours.iter();
        listed
            .map(|(prefix, ways)| {
                let of_ways = route((*prefix).into(), MARK.protocol, MARK.metric, ways.clone());
                match ways.as_slice() {
                    [DROP] => {
                        Route { kind: RouteKind::Blackhole, next_hops: Vec::new(), ..of_ways }
                    }
                    _ => of_ways,
                }
            })
            .collect()
    }

    /// An interface goes down: what leads only over it goes, and nobody is told.
    fn set_up(&mut self, place: usize, is_up: bool) {
        self.is_up[place] = is_up;
        if is_up {
            return;
        }
        for ways in self.ours.values_mut() {
            ways.retain(|way| way.index != u32::try_from(place).ok());
        }
        self.ours.retain(|_, ways| !ways.is_empty());
    }

    fn carry_out(&mut self, order: &RouteOrder) -> Outcome {
        let (RouteOrder::Add(route) | RouteOrder::Replace(route) | RouteOrder::Remove(route)) =
            order;
        assert!(MARK.is_of(route) && route.table == MAIN, "{order:?}");
        let prefix = crate::surroundings::prefix(route.destination).unwrap();
        let is_up = |index: u32| self.is_up[usize::try_from(index).unwrap()];
        let reaches = |way: &NextHop| way.index.is_some_and(is_up);
        match order {
            RouteOrder::Remove(_) => self.ours.remove(&prefix).map(drop).ok_or(Refused::NotThere),
            RouteOrder::Add(_) if self.ours.contains_key(&prefix) => Err(Refused::Exists),
            _ if !route.next_hops.iter().all(reaches) => Err(Refused::Other(113)),
            _ => {
                self.ours.insert(prefix, ways_of(route.clone()).to_vec());
                Ok(())
            }
        }
    }
}

fn link(index: u32, name: &str) -> Link {
    Link {
        index,
        name: name.to_owned(),
        alternative_names: Vec::new(),
        kind: None,
        is_up: true,
        has_carrier: true,
        is_loopback: false,
        resolves_addresses: true,
        mtu_bytes: 1500,
        mac: None,
        master: None,
        vrf_table: None,
    }
}

fn route(destination: ipnet::IpNet, protocol: u8, metric: u32, next_hops: Vec<NextHop>) -> Route {
    let kind = RouteKind::Unicast;
    Route {
        table: MAIN,
        destination,
        metric,
        type_of_service: 0,
        kind,
        protocol,
        source: None,
        next_hops,
    }
}

fn gateway(text: &str) -> Gateway {
    Gateway { rank: 0, address: text.parse().unwrap(), on_link_of: None }
}

fn change(prefix: &str, gateways: &[&str]) -> ForwardingChange {
    let forward = Forward::By(gateways.iter().map(|it| gateway(it)).collect());
    ForwardingChange { vrf: None, prefix: prefix.parse().unwrap(), forward }
}

/// Carries out all orders.
fn settle(fib: &mut Fib, kernel: &mut Kernel, now: Instant) {
    loop {
        let orders = fib.poll_orders(3);
        if orders.is_empty() && !fib.has_orders() {
            return;
        }
        let outcomes: Vec<Outcome> =
            orders.iter().map(|order| kernel.carry_out(&order.in_kernel())).collect();
        fib.answered(now, outcomes);
    }
}

fn gateways_of(kernel: &Kernel, prefix: &str) -> Vec<String> {
    let ways = kernel.ours.get(&prefix.parse().unwrap()).cloned().unwrap_or_default();
    ways.iter().map(|way| way.gateway.map(|it| it.to_string()).unwrap_or_default()).collect()
}

#[test]
fn a_route_follows_its_routers() {
    let mut kernel = Kernel::new();
    let mut fib = Fib::new(kernel.surroundings(), []);
    fib.want([change("192.0.2.0/24", &["10.1.0.2", "10.2.0.2"])]);
    settle(&mut fib, &mut kernel, Instant::ZERO);
    assert_eq!(gateways_of(&kernel, "192.0.2.0/24"), ["10.1.0.2", "10.2.0.2"]);
    kernel.set_up(1, false);
    fib.set_surroundings(kernel.surroundings());
    settle(&mut fib, &mut kernel, Instant::ZERO);
    assert_eq!(gateways_of(&kernel, "192.0.2.0/24"), ["10.1.0.2"]);
    kernel.set_up(0, false);
    fib.set_surroundings(kernel.surroundings());
    settle(&mut fib, &mut kernel, Instant::ZERO);
    assert_eq!(fib.poll_note().map(|it| matches!(it, Note::Unreachable(_))), Some(true));
    kernel.set_up(0, true);
    fib.set_surroundings(kernel.surroundings());
    settle(&mut fib, &mut kernel, Instant::ZERO);
    assert_eq!(gateways_of(&kernel, "192.0.2.0/24"), ["10.1.0.2"]);
    fib.want([change("192.0.2.0/24", &[])]);
    settle(&mut fib, &mut kernel, Instant::ZERO);
    assert!(kernel.ours.is_empty() && fib.is_empty());
}

fn tracked(text: &str) -> TrackedNextHop {
    TrackedNextHop { vrf: None, address: text.parse().unwrap(), on_link_of: None }
}

#[test]
fn a_next_hop_that_cannot_be_reached_is_told_and_followed_until_nobody_wants_it() {
    let mut kernel = Kernel::new();
    let mut fib = Fib::new(kernel.surroundings(), []);
    let told = |fib: &mut Fib, kernel: &mut Kernel| -> Vec<(TrackedNextHop, bool)> {
        settle(fib, kernel, Instant::ZERO);
        fib.take_next_hops().into_iter().collect()
    };
    fib.complete();
    fib.want([change("192.0.2.0/24", &["10.1.0.2", "10.2.0.2"])]);
    assert_eq!(
        told(&mut fib, &mut kernel),
        [],
        "nothing need be told of those that can be reached"
    );
    kernel.set_up(1, false);
    fib.set_surroundings(kernel.surroundings());
    assert_eq!(told(&mut fib, &mut kernel), [(tracked("10.2.0.2"), false)]);
    // BGP does not use it any more; it is followed all the same.
    fib.want([change("192.0.2.0/24", &[])]);
    assert_eq!(told(&mut fib, &mut kernel), []);
    assert!(fib.is_empty() && !fib.is_over());
    kernel.set_up(1, true);
    fib.set_surroundings(kernel.surroundings());
    assert_eq!(told(&mut fib, &mut kernel), [(tracked("10.2.0.2"), true)]);
    assert!(fib.is_over());
    // One that never could be reached, and is withdrawn.
    fib.want([change("192.0.2.0/24", &["203.0.113.9"])]);
    assert_eq!(told(&mut fib, &mut kernel), [(tracked("203.0.113.9"), false)]);
    fib.untrack([tracked("203.0.113.9")]);
    assert_eq!(
        told(&mut fib, &mut kernel),
        [(tracked("203.0.113.9"), false)],
        "it is still wanted"
    );
    fib.want([change("192.0.2.0/24", &[])]);
    fib.untrack([tracked("203.0.113.9")]);
    assert_eq!(told(&mut fib, &mut kernel), []);
    assert!(fib.is_over());
}

#[test]
fn a_route_that_is_new_when_all_is_known_is_ordered_once() {
    let mut kernel = Kernel::new();
    let mut fib = Fib::new(kernel.surroundings(), []);
    fib.want([change("192.0.2.0/24", &["10.1.0.2"]), change("198.51.100.0/24", &["10.1.0.2"])]);
    fib.complete();
    assert_eq!(fib.poll_orders(99).len(), 2);
    fib.answered(Instant::ZERO, [Ok(()), Ok(())]);
    settle(&mut fib, &mut kernel, Instant::ZERO);
    assert!(!fib.has_orders() && fib.poll_note().is_none());
}

#[test]
fn a_route_falls_back_to_the_routers_of_the_next_best_paths() {
    let mut kernel = Kernel::new();
    let mut fib = Fib::new(kernel.surroundings(), []);
    let ranked = |rank, text| Gateway { rank, ..gateway(text) };
    let gateways = [ranked(0, "10.1.0.2"), ranked(1, "10.2.0.2"), ranked(1, "10.2.0.3")];
    let forward = Forward::By(gateways.into());
    fib.want([ForwardingChange { forward, ..change("192.0.2.0/24", &[]) }]);
    settle(&mut fib, &mut kernel, Instant::ZERO);
    assert_eq!(gateways_of(&kernel, "192.0.2.0/24"), ["10.1.0.2"]);
    for (is_up, expected) in [(false, &["10.2.0.2", "10.2.0.3"][..]), (true, &["10.1.0.2"])] {
        kernel.set_up(0, is_up);
        fib.set_surroundings(kernel.surroundings());
        settle(&mut fib, &mut kernel, Instant::ZERO);
        assert_eq!(gateways_of(&kernel, "192.0.2.0/24"), expected);
    }
    let notes: Vec<Note> = std::iter::from_fn(|| fib.poll_note()).collect();
    let next_hop = tracked("10.1.0.2");
    assert_eq!(notes, [Note::Unreachable(next_hop), Note::Reachable(next_hop)]);
}

#[test]
fn packets_that_shall_be_dropped_are_dropped_whatever_is_up() {
    let mut kernel = Kernel::new();
    let mut fib = Fib::new(kernel.surroundings(), []);
    let place = Place { vrf: None, prefix: "192.0.2.0/24".parse().unwrap() };
    let dropped = ForwardingChange { forward: Forward::Drop, ..change("192.0.2.0/24", &[]) };
    fib.want([change("192.0.2.0/24", &["10.1.0.2"])]);
    settle(&mut fib, &mut kernel, Instant::ZERO);
    fib.want([dropped.clone()]);
    settle(&mut fib, &mut kernel, Instant::ZERO);
    assert_eq!(kernel.ours[&place.prefix], [DROP]);
    kernel.set_up(0, false);
    kernel.set_up(1, false);
    fib.set_surroundings(kernel.surroundings());
    assert!(!fib.has_orders() && fib.poll_note().is_none());
    // After a restart it is as it shall be.
    let mut next = Fib::new(kernel.surroundings(), kernel.listed());
    next.want([dropped]);
    next.complete();
    assert!(next.poll_orders(9).is_empty());
    next.want([change("192.0.2.0/24", &[])]);
    settle(&mut next, &mut kernel, Instant::ZERO);
    assert!(kernel.ours.is_empty());
}

#[test]
fn packets_of_a_vrf_that_comes_later_are_dropped_then() {
    let mut fib = Fib::new(Surroundings::default(), []);
    let vrf = "red".parse().ok();
    let dropped = ForwardingChange { vrf, forward: Forward::Drop, ..change("192.0.2.0/24", &[]) };
    fib.want([dropped]);
    assert!(fib.poll_orders(9).is_empty());
    let red = Link { vrf_table: Some(100), ..link(7, "red") };
    fib.set_surroundings(Surroundings::of([Fact::Link(red)].into_iter().collect()));
    let orders = fib.poll_orders(9);
    assert_eq!(orders.iter().map(|it| it.table).collect::<Vec<_>>(), [100]);
}

#[test]
fn routes_of_an_earlier_run_stay_until_all_is_known() {
    let mut kernel = Kernel::new();
    let mut fib = Fib::new(kernel.surroundings(), []);
    let prefixes = ["192.0.2.0/24", "198.51.100.0/24"];
    fib.want(prefixes.map(|it| change(it, &["10.1.0.2"])));
    settle(&mut fib, &mut kernel, Instant::ZERO);
    let mut next = Fib::new(kernel.surroundings(), kernel.listed());
    next.want([change("192.0.2.0/24", &["10.1.0.2"])]);
    assert!(next.poll_orders(9).is_empty(), "the route is as it shall be");
    // One that was withdrawn before it was known may come again.
    next.want([change("198.51.100.0/24", &[])]);
    settle(&mut next, &mut kernel, Instant::ZERO);
    assert_eq!(kernel.ours.len(), 2);
    next.complete();
    settle(&mut next, &mut kernel, Instant::ZERO);
    assert_eq!(kernel.ours.keys().map(ToString::to_string).collect::<Vec<_>>(), ["192.0.2.0/24"]);
}

#[test]
fn a_route_of_somebody_else_stays_alone() {
    let mut kernel = Kernel::new();
    let mut fib = Fib::new(kernel.surroundings(), []);
    fib.want([change("0.0.0.0/0", &["10.1.0.2"])]);
    settle(&mut fib, &mut kernel, Instant::ZERO);
    let way = NextHop { index: Some(1), gateway: "10.2.0.9".parse().ok(), weight: 1 };
    let theirs = route("0.0.0.0/0".parse().unwrap(), 16, 100, vec![way]);
    kernel.foreign.insert("0.0.0.0/0".parse().unwrap(), theirs.clone());
    fib.set_surroundings(kernel.surroundings());
    settle(&mut fib, &mut kernel, Instant::ZERO);
    assert!(kernel.ours.is_empty());
    let place = Place { vrf: None, prefix: "0.0.0.0/0".parse().unwrap() };
    assert_eq!(fib.poll_note(), Some(Note::Foreign(place, theirs)));
    kernel.foreign.clear();
    fib.set_surroundings(kernel.surroundings());
    settle(&mut fib, &mut kernel, Instant::ZERO);
    assert_eq!(gateways_of(&kernel, "0.0.0.0/0"), ["10.1.0.2"]);
    assert_eq!(fib.poll_note(), None);
}

#[test]
fn a_next_hop_behind_the_default_route_is_not_reachable() {
    let mut kernel = Kernel::new();
    let way = NextHop { index: Some(0), gateway: "10.1.0.1".parse().ok(), weight: 1 };
    for (prefix, metric) in [("0.0.0.0/0", 0), ("172.16.0.0/12", 20)] {
        let theirs = route(prefix.parse().unwrap(), 3, metric, vec![way.clone()]);
        kernel.foreign.insert(prefix.parse().unwrap(), theirs);
    }
    let mut fib = Fib::new(kernel.surroundings(), []);
    fib.want([
        change("192.0.2.0/24", &["203.0.113.1"]),
        change("198.51.100.0/24", &["172.16.0.9"]),
    ]);
    settle(&mut fib, &mut kernel, Instant::ZERO);
    assert_eq!(gateways_of(&kernel, "192.0.2.0/24"), [""; 0]);
    // By way of the router of the static route.
    assert_eq!(gateways_of(&kernel, "198.51.100.0/24"), ["10.1.0.1"]);
}

#[test]
fn without_the_capability_the_kernel_is_asked_once_in_a_while() {
    let kernel = Kernel::new();
    let mut fib = Fib::new(kernel.surroundings(), []);
    fib.want((0..9).map(|it| change(&format!("192.0.{it}.0/24"), &["10.1.0.2"])));
    let orders = fib.poll_orders(4);
    fib.answered(Instant::ZERO, orders.iter().map(|_| Err(Refused::NotPermitted)));
    assert_eq!((fib.poll_note(), fib.poll_note()), (Some(Note::NotPermitted), None));
    assert!(!fib.has_orders() && fib.poll_orders(4).is_empty());
    let later = fib.next_deadline().unwrap();
    fib.tick(later);
    assert_eq!(fib.poll_orders(99).len(), 9);
}

#[test]
fn a_route_is_in_the_table_of_its_vrf_for_as_long_as_that_exists() {
    const TABLE: u32 = 100;
    let link = |index: u32, name: &str, vrf_table: Option<u32>| {
        Fact::Link(Link {
            index,
            name: name.to_owned(),
            alternative_names: Vec::new(),
            kind: vrf_table.map(|_| "vrf".to_owned()),
            is_up: true,
            has_carrier: true,
            is_loopback: false,
            resolves_addresses: true,
            mtu_bytes: 1500,
            mac: None,
            master: None,
            vrf_table,
        })
    };
    let with_table = |table: u32| -> Surroundings {
        let way = NextHop { index: Some(1), gateway: None, weight: 1 };
        let connected = Route { table, ..route(NETWORKS[0].parse().unwrap(), 2, 0, vec![way]) };
        let facts = [
            link(1, "e1", None),
            link(9, "red", Some(table)),
            Fact::Route { route: connected, replaces: false },
        ];
        Surroundings::of(facts.into_iter().collect())
    };
    let mut fib = Fib::new(with_table(TABLE), []);
    let red: InterfaceName = "red".parse().unwrap();
    let wanted = ForwardingChange { vrf: Some(red), ..change("192.0.2.0/24", &["10.1.0.2"]) };
    fib.want([wanted, change("192.0.2.0/24", &["10.1.0.2"])]);
    let written = |fib: &mut Fib| -> Vec<u32> {
        let orders = fib.poll_orders(9);
        fib.answered(Instant::ZERO, orders.iter().map(|_| Ok(())));
        orders.iter().map(|order| order.table).collect()
    };
    // In the main table nothing leads to the router.
    assert_eq!(written(&mut fib), [TABLE]);
    fib.set_surroundings(with_table(TABLE + 1));
    assert_eq!(written(&mut fib), [TABLE + 1]);
    // The VRF is gone, and its table with it.
    fib.set_surroundings(Surroundings::of([link(1, "e1", None)].into_iter().collect()));
    assert!(written(&mut fib).is_empty());
    fib.set_surroundings(with_table(TABLE));
    assert_eq!(written(&mut fib), [TABLE]);
}

/// What the routers of a random route are; one of them is nowhere.
const ROUTERS: [&str; 4] = ["10.1.0.2", "10.1.0.3", "10.2.0.2", "203.0.113.9"];

struct History {
    rng: Rng,
    kernel: Kernel,
    fib: Fib,
    now: Instant,
    wanted: BTreeMap<Prefix, Forward>,
}

impl History {
    fn below(&mut self, bound: u64) -> usize {
        usize::try_from(self.rng.next_u64() % bound).unwrap()
    }

    fn prefix(&mut self) -> Prefix {
        let prefixes =
            ["0.0.0.0/0", "192.0.2.0/24", "198.51.100.0/24", "10.1.0.0/24", "10.3.0.0/16"];
        prefixes[self.below(5)].parse().unwrap()
    }

    fn step(&mut self) {
        match self.below(10) {
            0..4 => {
                let prefix = self.prefix();
                let mask = self.below(16);
                let routers = ROUTERS.iter().enumerate().filter(|(bit, _)| mask >> bit & 1 == 1);
                let first_rank = self.below(3);
                let rank = |bit: usize| u8::from(bit > first_rank);
                let gateways =
                    routers.map(|(bit, it)| Gateway { rank: rank(bit), ..gateway(it) }).collect();
                let drops = self.below(5) == 0;
                let forward = if drops { Forward::Drop } else { Forward::By(gateways) };
                self.wanted.insert(prefix, forward.clone());
                self.fib.want([ForwardingChange { vrf: None, prefix, forward }]);
            }
            4 => {
                let (place, is_up) = (self.below(2), self.below(2) == 0);
                self.kernel.set_up(place, is_up);
            }
            5 => {
                let prefix = self.prefix();
                let way = NextHop { index: Some(0), gateway: "10.1.0.9".parse().ok(), weight: 1 };
                let metric = u32::try_from(self.below(3)).unwrap() * 1000;
                let theirs = route(prefix.into(), 3, metric, vec![way]);
                if self.kernel.foreign.remove(&prefix).is_none() {
                    self.kernel.foreign.insert(prefix, theirs);
                }
            }
            // Somebody removes a route of ours.
            6 => drop(self.kernel.ours.pop_first()),
            7 => {
                // A restart; what is wanted is said again, some of it later.
                self.fib = Fib::new(self.kernel.surroundings(), self.kernel.listed());
                let again = self.wanted.iter().map(|(prefix, forward)| ForwardingChange {
                    vrf: None,
                    prefix: *prefix,
                    forward: forward.clone(),
                });
                self.fib.want(again.collect::<Vec<_>>());
                self.fib.complete();
            }
            8 => self.fib.set_surroundings(self.kernel.surroundings()),
            _ => self.fib.audit(self.kernel.listed()),
        }
    }

    /// One batch, of which the kernel may refuse some.
    fn write(&mut self) {
        let orders = self.fib.poll_orders(2);
        let mut outcomes = Vec::new();
        for order in &orders {
            let fails = self.below(8) == 0;
            let outcome = self.kernel.carry_out(&order.in_kernel());
            outcomes.push(if fails && outcome.is_err() {
                Err(Refused::Other(12))
            } else {
                outcome
            });
        }
        if self.below(20) == 0 {
            outcomes.pop();
        }
        self.fib.answered(self.now, outcomes);
    }

    /// The kernel is left alone: it has what is wanted in the end.
    fn end(&mut self, seed: u64) {
        let foreign = self.kernel.foreign.clone();
        self.fib.set_surroundings(self.kernel.surroundings());
        for _ in 0..3 {
            self.now = self.now + RETRY_WAIT;
            self.fib.tick(self.now);
            settle(&mut self.fib, &mut self.kernel, self.now);
            self.fib.audit(self.kernel.listed());
        }
        settle(&mut self.fib, &mut self.kernel, self.now);
        let surroundings = self.kernel.surroundings();
        let mut expected: BTreeMap<Prefix, Vec<NextHop>> = BTreeMap::new();
        for (prefix, forward) in &self.wanted {
            let ways = match forward {
                Forward::By(gateways) => surroundings.ways(None, gateways),
                Forward::Drop => [DROP].into(),
            };
            if surroundings.foreign(MAIN, *prefix).is_none() && !ways.is_empty() {
                expected.insert(*prefix, ways.to_vec());
            }
        }
        assert_eq!(self.kernel.ours, expected, "seed {seed}: {:#?}", self.fib);
        let told: BTreeSet<_> =
            self.fib.next_hops().filter(|it| !surroundings.reaches(*it)).collect();
        assert!(told.is_subset(&self.fib.unreachable), "seed {seed}: {told:?}");
        let lost = self.fib.unreachable.iter().filter(|it| surroundings.reaches(**it)).count();
        assert_eq!(lost, 0, "seed {seed}: one that can be reached is not told");
        assert_eq!(self.kernel.foreign, foreign, "seed {seed}");
        let wanted: usize = self.wanted.values().filter(|it| !it.is_nothing()).count();
        assert_eq!(self.fib.entries.len(), wanted, "seed {seed}: nothing else is remembered");
    }
}

/// `FAIRWAY_SEED` replays one history, `FAIRWAY_SEEDS` says how many there are.
#[test]
fn after_any_history_the_kernel_has_what_is_wanted() {
    let number = |name: &str| std::env::var(name).ok().and_then(|it| it.parse::<u64>().ok());
    let first = number("FAIRWAY_SEED").unwrap_or(1);
    for seed in first..first + number("FAIRWAY_SEEDS").unwrap_or(3_000) {
        let kernel = Kernel::new();
        let fib = Fib::new(kernel.surroundings(), []);
        let wanted = BTreeMap::new();
        let mut history =
            History { rng: Rng::seeded(seed), kernel, fib, now: Instant::ZERO, wanted };
        history.fib.complete();
        for _ in 0..40 {
            history.step();
            history.write();
        }
        history.end(seed);
    }
}
