//! Every order of the first events between two speakers.
//!
//! Breadth first: a state is met at its least depth, so a state that was met before has been
//! followed at least as far, and need not be followed again.

use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use super::super::explore::{Choice, Crossing};
use super::super::settings::speaker;
use super::{BOUND, number};
use fairway_seam::PeerConfig;

/// How many events in the ordinary test; `make sim` goes further.
const DEPTH_DEFAULT: usize = 6;

fn pair(left: u32, right: u32) -> [PeerConfig; 2] {
    [speaker(1, left), speaker(2, right)]
}

/// What to explore: two speakers, and what happens before every order is tried.
struct Start<'a> {
    configs: &'a [PeerConfig; 2],
    events: &'a [Choice],
}

/// Which of its choices each state takes: six million of these have to fit in memory.
type Path = Box<[u8]>;

impl Start<'_> {
    /// Follows `path` from here.
    fn walk(&self, path: &[u8]) -> (Crossing, Vec<Choice>) {
        let mut crossing = Crossing::new(self.configs.clone());
        self.events.iter().for_each(|choice| crossing.take(*choice));
        let taken = path.iter().map(|position| {
            let choice = crossing.choices()[usize::from(*position)];
            crossing.take(choice);
            choice
        });
        let taken = taken.collect();
        (crossing, taken)
    }

    /// All new states one step behind `path`, each healed once.
    fn expand(&self, path: &[u8], seen: &Mutex<BTreeSet<u128>>) -> Vec<Path> {
        let count = u8::try_from(self.walk(path).0.choices().len()).unwrap();
        let longer = (0..count).map(|position| [path, &[position]].concat());
        longer.filter(|path| self.is_new_and_heals(path, seen)).map(Vec::into_boxed_slice).collect()
    }

    fn is_new_and_heals(&self, path: &[u8], seen: &Mutex<BTreeSet<u128>>) -> bool {
        let outcome = catch_unwind(AssertUnwindSafe(|| {
            let mut crossing = self.walk(path).0;
            let is_new = seen.lock().unwrap().insert(crossing.fingerprint());
            if is_new {
                crossing.heal(BOUND);
            }
            is_new
        }));
        outcome.unwrap_or_else(|_| {
            println!("after {:#?}", self.events);
            let (last, before) = path.split_last().unwrap();
            let (crossing, taken) = self.walk(before);
            panic!("then {taken:#?}, then {:?}", crossing.choices()[usize::from(*last)]);
        })
    }

    /// Tries everything within `depth` events.
    fn explore(&self, what: &str, depth: usize) {
        let workers = if depth > DEPTH_DEFAULT { 2 } else { 1 };
        let seen = Mutex::new(BTreeSet::new());
        let mut level: Vec<Path> = vec![Path::default()];
        for _ in 0..depth {
            let next = AtomicUsize::new(0);
            let longer = Mutex::new(Vec::new());
            std::thread::scope(|scope| {
                for _ in 0..workers {
                    scope.spawn(|| {
                        while let Some(path) = level.get(next.fetch_add(1, Ordering::Relaxed)) {
                            let found = self.expand(path, &seen);
                            longer.lock().unwrap().extend(found);
                        }
                    });
                }
            });
            level = longer.into_inner().unwrap();
        }
        let states = seen.into_inner().unwrap().len();
        assert!(states > level.len() && !level.is_empty(), "{states} states");
        println!("{what}: {states} states within {depth} events, each healed");
    }
}

/// From the start, and from the middle of a collision: that one has four events more behind it.
fn explore(what: &str, configs: &[PeerConfig; 2]) {
    let depth = number("FAIRWAY_DEPTH").and_then(|depth| usize::try_from(depth).ok());
    let depth = depth.unwrap_or(DEPTH_DEFAULT).max(3);
    Start { configs, events: &[] }.explore(&format!("{what}, from the start"), depth);
    Start { configs, events: CROSSED }.explore(&format!("{what}, in a collision"), depth - 2);
}

/// Both have dialled, and both dials were accepted: a collision is under way.
const CROSSED: &[Choice] = &[
    Choice::Timer { side: 0 },
    Choice::Timer { side: 1 },
    Choice::Accept { dial: 0 },
    Choice::Accept { dial: 0 },
];

#[test]
fn every_order_of_events_ends_well_with_the_smaller_identifier_left() {
    explore("identifiers 1 and 2", &pair(1, 2));
}

#[test]
fn every_order_of_events_ends_well_with_the_larger_identifier_left() {
    explore("identifiers 2 and 1", &pair(2, 1));
}

#[test]
fn every_order_of_events_ends_well_with_equal_identifiers() {
    explore("identifiers 7 and 7", &pair(7, 7));
}

#[test]
fn every_order_of_events_ends_well_when_one_side_waits_for_the_others_open() {
    let [left, mut right] = pair(1, 2);
    right.delay_open_time = Some(Duration::from_secs(3));
    explore("identifiers 1 and 2, the right one delayed", &[left, right]);
}
