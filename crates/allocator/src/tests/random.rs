//! Invariants, under operations chosen by a seed. Every converge also checks that deciding
//! incrementally comes to the same as a full pass (see `World::converge`).

use fairway_ground::Rng;
use fairway_model::{LabelSelector, Namespace, Operator, Requirement, ServiceAllocation};

use super::*;

const STEPS: u32 = 300;
/// How many histories; `FAIRWAY_SEEDS` overrides it with more.
const SEEDS: u64 = 12;
const NAMESPACES: [&str; 2] = ["default", "other"];

fn seeds() -> std::ops::Range<u64> {
    let more = std::env::var("FAIRWAY_SEEDS").ok().and_then(|it| it.parse().ok());
    0..more.unwrap_or(SEEDS)
}

struct Dice(Rng);

impl Dice {
    fn below(&mut self, limit: u64) -> u64 {
        self.0.next_u64() % limit
    }

    fn one_in(&mut self, chances: u64) -> bool {
        self.below(chances) == 0
    }

    fn pick<'a, T: ?Sized>(&mut self, from: &[&'a T]) -> &'a T {
        let position = usize::try_from(self.below(u64::try_from(from.len()).unwrap())).unwrap();
        from[position]
    }

    fn labels(&mut self) -> Labels {
        if self.one_in(2) {
            Labels::from([("gold".to_owned(), String::new())])
        } else {
            Labels::new()
        }
    }

    fn service_name(&mut self) -> ObjectName {
        ObjectName::new(self.pick(&NAMESPACES), format!("s{}", self.below(9)))
    }

    fn address(&mut self, family: AddressFamily) -> IpAddr {
        let (pool, number) = (self.below(4), self.below(5));
        ip(&match family {
            V4 => format!("10.{pool}.0.{number}"),
            V6 => format!("fd00:{pool}::{number}"),
        })
    }
}

fn some_service(dice: &mut Dice) -> Service {
    let first = if dice.one_in(2) { V4 } else { V6 };
    let families = match dice.below(4) {
        0 | 1 => FamilyPolicy::Single(first),
        2 => FamilyPolicy::PreferDual(first),
        _ => FamilyPolicy::RequireDual(first),
    };
    let mut service = wanting("", families);
    service.name = dice.service_name();
    service.labels = dice.labels();
    if dice.one_in(2) {
        service.sharing_key = Some(dice.pick(&["", "k", "l"]).to_owned());
        service.ports[0].port = u16::try_from(dice.below(3)).unwrap();
    }
    if dice.one_in(4) {
        service.traffic_policy = TrafficPolicy::Local;
        service.selector = dice.pick(&["app=x", "app=y"]).to_owned();
    }
    if dice.one_in(4) {
        service.requested_pools.push(dice.pick(&["p0", "p1", "p2", "p9"]).to_owned());
        let other = dice.pick(&["p0", "p1", "p2", "p9"]).to_owned();
        if dice.one_in(2) && !service.requested_pools.contains(&other) {
            service.requested_pools.push(other);
        }
    }
    if dice.one_in(3) {
        service.requested_addresses.push(dice.address(first));
        if dice.one_in(2) {
            service.requested_addresses.push(dice.address(first.other()));
        }
    }
    if dice.one_in(4) {
        service.status_addresses.push(dice.address(first));
        if dice.one_in(2) {
            service.status_addresses.push(dice.address(first.other()));
        }
    }
    if dice.one_in(20) {
        service.load_balancer_class = Some("other".to_owned());
    }
    service
}

fn some_pool(dice: &mut Dice) -> Pool {
    let number = dice.below(4);
    let (last, last_six) = (dice.below(5), dice.below(4));
    let four = format!("10.{number}.0.0-10.{number}.0.{last}");
    let six = format!("fd00:{number}::-fd00:{number}::{last_six}");
    let ranges: &[&str] = match dice.below(3) {
        0 => &[&four],
        1 => &[&six],
        _ => &[&four, &six],
    };
    let mut pool = pool(&format!("p{number}"), ranges);
    pool.auto_assign = !dice.one_in(4);
    pool.avoid_buggy_addresses = dice.one_in(4);
    if dice.one_in(3) {
        pool.reserved = vec![format!("10.{number}.0.1-10.{number}.0.2").parse().unwrap()];
    }
    if dice.one_in(3) {
        let (key, values) = ("gold".to_owned(), BTreeSet::new());
        let gold = Requirement { key, operator: Operator::Exists, values };
        let gold = LabelSelector { requirements: BTreeSet::from([gold]) };
        let mut allocation = ServiceAllocation {
            priority: i32::try_from(dice.below(3)).unwrap(),
            ..ServiceAllocation::default()
        };
        match dice.below(4) {
            0 => allocation.namespaces.extend([dice.pick(&NAMESPACES).to_owned()]),
            1 => allocation.namespace_selectors.push(gold),
            2 => allocation.service_selectors.push(gold),
            _ => {}
        }
        pool.allocation = Some(allocation);
    }
    pool
}

fn step(world: &mut World, dice: &mut Dice) {
    match dice.below(16) {
        0..=6 => {
            world.add(some_service(dice));
        }
        7..=9 => {
            let key = ObjectKey { kind: Kind::Service, name: dice.service_name() };
            world.changes.absorb(world.index.delete(&key));
        }
        10 => {
            world.pool(some_pool(dice));
        }
        11 => {
            let number = dice.below(4);
            world.delete(Kind::IpAddressPool, &format!("p{number}"));
        }
        12 => {
            let name = dice.pick(&NAMESPACES).to_owned();
            world.apply(Object::Namespace(Namespace { name, labels: dice.labels() }));
        }
        _ => {
            world.wait(dice.below(45));
        }
    }
}

/// The invariants after every converge; of two Services on one address, that they may share it (I1).
fn check(world: &World, outcomes: &Outcomes) {
    let pools = PoolLookup::new(&world.index);
    let mut users: BTreeMap<IpAddr, Vec<&Service>> = BTreeMap::new();
    let ours = world.index.services.values().filter(|it| it.load_balancer_class.is_none());
    assert!(outcomes.keys().eq(ours.map(|service| &service.name)));
    for (name, outcome) in outcomes {
        let service = &world.index.services[name];
        assert!(!outcome.is_pending() || outcome.reason.is_some(), "{name} waits without a reason");
        if world.index.pools.is_empty() {
            assert_eq!(outcome.reason, Some(Reason::NoPools));
            continue;
        }
        assert_eq!(outcome.pool.is_none(), outcome.is_pending());
        for address in &outcome.addresses {
            request::allowed(service, *address, &pools).unwrap();
            users.entry(*address).or_default().push(service);
        }
        request::together(service, &outcome.addresses, &pools).unwrap();
        if outcome.is_pending() {
            continue;
        }
        let wanted = match service.families {
            FamilyPolicy::Single(_) => 1..=1,
            FamilyPolicy::PreferDual(_) => 1..=2,
            FamilyPolicy::RequireDual(_) => 2..=2,
        };
        assert!(wanted.contains(&outcome.addresses.len()), "{name}: {outcome:?}");
        if !service.requested_addresses.is_empty() {
            let sorted = |addresses: &[IpAddr]| addresses.iter().copied().collect::<BTreeSet<_>>();
            assert_eq!(sorted(&service.requested_addresses), sorted(&outcome.addresses));
        }
    }
    for (address, sharers) in users {
        for (position, one) in sharers.iter().enumerate() {
            for other in &sharers[..position] {
                let (mine, theirs) = (Claim::of(one), Claim::of(other));
                let is_fine = mine.has_key_of(&theirs)
                    && mine.has_backend_of(&theirs)
                    && !one.ports.iter().any(|port| other.ports.contains(port));
                assert!(is_fine, "{} and {} on {address}", one.name, other.name);
            }
        }
    }
}

/// Unchanged Services keep the addresses that pools still allow
/// (I5).
fn check_nobody_moved(before: &World, old: &Outcomes, after: &World, new: &Outcomes) {
    let pools = PoolLookup::new(&after.index);
    for (name, outcome) in old {
        let Some(service) = after.index.services.get(name) else { continue };
        let healthy = outcome.reason != Some(Reason::NoPools)
            && before.index.services.get(name) == Some(service)
            && request::still_valid(service, &outcome.addresses, &pools) == outcome.addresses;
        if healthy {
            let now = &new[name].addresses;
            assert!(
                outcome.addresses.iter().all(|address| now.contains(address)),
                "{name} moved from {:?} to {:?}: {service:?}",
                outcome.addresses,
                new[name],
            );
        }
    }
}

/// What neighbours may believe of each address: its holders since they were last updated.
#[derive(Default)]
struct Believed(BTreeMap<IpAddr, BTreeSet<ObjectName>>);

fn announced(outcomes: &Outcomes) -> BTreeMap<IpAddr, BTreeSet<ObjectName>> {
    let mut users: BTreeMap<IpAddr, BTreeSet<ObjectName>> = BTreeMap::new();
    for (name, outcome) in outcomes.iter().filter(|(_, it)| it.reason != Some(Reason::NoPools)) {
        for address in &outcome.addresses {
            users.entry(*address).or_default().insert(name.clone());
        }
    }
    users
}

impl Believed {
    /// No address goes to another Service while neighbours may still send its traffic to its former
    /// holder (I13).
    fn check(&mut self, outcomes: &Outcomes) {
        for (address, users) in announced(outcomes) {
            let believed = self.0.entry(address).or_default();
            let is_handed_over = !believed.is_empty() && believed.is_disjoint(&users);
            assert!(!is_handed_over, "{address} of {believed:?} went to {users:?}");
            believed.extend(users);
        }
    }

    /// Neighbours have received these outcomes.
    fn told(&mut self, outcomes: &Outcomes) {
        self.0 = announced(outcomes);
    }
}

#[test]
fn invariants_hold_under_random_operations() {
    for seed in seeds() {
        let mut dice = Dice(Rng::seeded(seed));
        let mut world = World::default();
        let mut believed = Believed::default();
        let mut old = Outcomes::new();
        for _ in 0..STEPS {
            let before = World { index: world.index.clone(), ..World::default() };
            for _ in 0..=dice.below(3) {
                step(&mut world, &mut dice);
            }
            if dice.one_in(3) {
                world.told();
                believed.told(&old);
            }
            let new = world.converge();
            check(&world, &new);
            check_nobody_moved(&before, &old, &world, &new);
            believed.check(&new);
            let mut restarted = world.clone();
            restarted.restart();
            // The reason of a waiting Service may differ: reported withdrawals are not known any more.
            let addresses = |outcomes: &Outcomes| -> Vec<_> {
                outcomes.values().map(|it| (it.pool.clone(), it.addresses.clone())).collect()
            };
            // The first decision is about everything, so there is none to compare it with.
            restarted.allocator.converge(world.now, &world.index, &Changes::default());
            let after = restarted.allocator.outcomes();
            assert_eq!(addresses(after), addresses(&new), "seed {seed}: restart");
            assert_eq!(restarted.allocator.memory().assignments, world.kept.assignments);
            if dice.one_in(5) {
                world = restarted;
            }
            old = new;
        }
    }
}

#[test]
fn the_order_in_which_facts_arrive_does_not_matter() {
    for seed in seeds() {
        let mut dice = Dice(Rng::seeded(seed));
        let mut world = World::default();
        for _ in 0..60 {
            step(&mut world, &mut dice);
        }
        let mut objects: Vec<Object> = Vec::new();
        objects.extend(world.index.pools.values().cloned().map(Object::from));
        objects.extend(world.index.services.values().cloned().map(Object::Service));
        objects.extend(world.index.namespaces.values().cloned().map(Object::Namespace));
        for position in 0..objects.len() {
            let limit = u64::try_from(objects.len()).unwrap();
            objects.swap(position, usize::try_from(dice.below(limit)).unwrap());
        }
        let mut shuffled = World::default();
        // The first half is decided about again once all objects are there.
        let later = objects.split_off(objects.len() / 2);
        for object in objects.into_iter().chain(later.clone()).chain(later) {
            shuffled.apply(object);
        }
        assert_eq!(world.converge(), shuffled.converge(), "seed {seed}");
    }
}
