//! Invariants, under operations that a seed chooses.

use fairway_sessions::rng::Rng;

use super::*;

const STEPS: u32 = 400;
const SEEDS: std::ops::Range<u64> = 0..20;

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
}

fn some_service(dice: &mut Dice) -> Service {
    let called = format!("s{}", dice.below(14));
    let first = if dice.one_in(2) { V4 } else { V6 };
    let families = match dice.below(4) {
        0 | 1 => FamilyPolicy::Single(first),
        2 => FamilyPolicy::PreferDual(first),
        _ => FamilyPolicy::RequireDual(first),
    };
    let mut service = wanting(&called, families);
    if dice.one_in(2) {
        service.sharing_key = Some(dice.pick(&["", "k", "l"]).to_owned());
        service.ports[0].port = u16::try_from(dice.below(3)).unwrap();
    }
    if dice.one_in(4) {
        service.traffic_policy = TrafficPolicy::Local;
        service.selector = dice.pick(&["app=x", "app=y"]).to_owned();
    }
    if dice.one_in(4) {
        service.requested_pool = Some(dice.pick(&["p0", "p1", "p2", "p9"]).to_owned());
    }
    if dice.one_in(3) {
        let text = |dice: &mut Dice, family| match family {
            V4 => format!("10.{}.0.{}", dice.below(4), dice.below(5)),
            V6 => format!("fd00:{}::{}", dice.below(4), dice.below(5)),
        };
        service.requested_addresses.push(ip(&text(dice, first)));
        if dice.one_in(2) {
            service.requested_addresses.push(ip(&text(dice, first.other())));
        }
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
    pool
}

fn step(world: &mut World, dice: &mut Dice) {
    match dice.below(10) {
        0..=5 => {
            world.add(some_service(dice));
        }
        6 | 7 => {
            world.index.services.remove(&name(&format!("s{}", dice.below(14))));
        }
        8 => {
            world.pool(some_pool(dice));
        }
        _ => {
            world.index.pools.remove(&name(&format!("p{}", dice.below(4))));
        }
    }
}

/// What must hold after every converge.
fn check(world: &World, outcomes: &Outcomes) {
    let pools = PoolLookup::new(&world.index);
    let mut users: BTreeMap<IpAddr, Vec<&Service>> = BTreeMap::new();
    for (name, outcome) in outcomes {
        let service = &world.index.services[name];
        assert_eq!(outcome.pool.is_none(), outcome.is_pending());
        assert!(!outcome.is_pending() || outcome.reason.is_some(), "{name} waits without a reason");
        if world.index.pools.is_empty() {
            assert_eq!(outcome.reason, Some(Reason::NoPools));
            continue;
        }
        for address in &outcome.addresses {
            assert!(pools.offering(*address).is_some(), "{address} of {name} is in no pool");
            users.entry(*address).or_default().push(service);
        }
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
                let conflict = Claim::of(one).conflict(&Claim::of(other));
                assert_eq!(conflict, None, "{} and {} on {address}", one.name, other.name);
            }
        }
    }
}

/// Services that nobody touched and whose addresses the pools still offer stay where they are.
fn check_nobody_moved(before: &World, old: &Outcomes, after: &World, new: &Outcomes) {
    let pools = PoolLookup::new(&after.index);
    for (name, outcome) in old {
        let untouched = before.index.services.get(name) == after.index.services.get(name);
        let healthy = outcome.reason != Some(Reason::NoPools)
            && outcome.addresses.iter().all(|address| {
                let holder = pools.offering(*address).map(|pool| &pool.name);
                let before = PoolLookup::new(&before.index);
                holder.is_some() && holder == before.offering(*address).map(|pool| &pool.name)
            });
        if untouched && healthy {
            let now = &new[name].addresses;
            assert!(
                outcome.addresses.iter().all(|address| now.contains(address)),
                "{name} moved from {:?} to {:?}: {:?}",
                outcome.addresses,
                new[name],
                after.index.services[name]
            );
        }
    }
}

#[test]
fn invariants_hold_under_random_operations() {
    for seed in SEEDS {
        let mut dice = Dice(Rng::seeded(seed));
        let mut world = World::default();
        let mut old = Outcomes::new();
        for _ in 0..STEPS {
            let before = World { index: world.index.clone(), allocator: Allocator::default() };
            for _ in 0..=dice.below(3) {
                step(&mut world, &mut dice);
            }
            let new = world.converge();
            check(&world, &new);
            check_nobody_moved(&before, &old, &world, &new);
            assert_eq!(world.converge(), new, "seed {seed}: a second pass changed something");
            let memory = world.allocator.memory();
            let mut restarted = Allocator::restore(None, memory.clone());
            restarted.converge(Instant::ZERO, &world.index, &Changes::default());
            assert_eq!(*restarted.outcomes(), new, "seed {seed}: restart");
            assert_eq!(restarted.memory(), memory);
            if dice.one_in(5) {
                world.allocator = restarted;
            }
            old = new;
        }
    }
}

#[test]
fn the_order_in_which_facts_arrive_does_not_matter() {
    for seed in SEEDS {
        let mut dice = Dice(Rng::seeded(seed));
        let mut world = World::default();
        for _ in 0..60 {
            step(&mut world, &mut dice);
        }
        let pools = world.index.pools.values().cloned().map(Object::Pool);
        let services = world.index.services.values().cloned().map(Object::Service);
        let mut objects: Vec<_> = pools.chain(services).collect();
        for position in 0..objects.len() {
            let limit = u64::try_from(objects.len()).unwrap();
            objects.swap(position, usize::try_from(dice.below(limit)).unwrap());
        }
        let mut shuffled = World::default();
        shuffled.index.reset(objects);
        world.allocator = Allocator::default();
        assert_eq!(world.converge(), shuffled.converge(), "seed {seed}");
    }
}
