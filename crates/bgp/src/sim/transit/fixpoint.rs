//! What all tables must be when nothing changes any more: RFC 4271 §9 a second time, as plainly as possible.
//!
//! Each speaker advertises its best routes to its neighbours and selects again from what it received,
//! until no selection changes. LOCAL_PREF and MULTI_EXIT_DISC are not used here, so the shortest path
//! wins and there is one such state.

use std::collections::BTreeMap;

use super::speech::{Said, Table};
use super::topology::{PREFIXES, Wishes, prefix};
use fairway_ground::{Community, Prefix};

/// The route that a speaker uses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Used {
    /// The neighbour that advertised it; `None` where the speaker originates it.
    pub(super) from: Option<usize>,
    pub(super) said: Said,
}

/// By neighbour, what a speaker received and accepted.
pub(super) type Accepted = BTreeMap<usize, Table>;

/// What `node` advertises to `to` for `prefix`, where it uses `used`.
pub(super) fn told(
    all: &[Wishes],
    (node, to): (usize, usize),
    prefix: Prefix,
    used: Option<&Used>,
) -> Option<Said> {
    let wishes = &all[node];
    if wishes.drained {
        return None;
    }
    let inside = |other: usize| all[other].asn == wishes.asn;
    if let Some(route) = wishes.originated.get(&prefix) {
        let times = usize::from(route.prepend) + 1;
        let path = if inside(to) { Vec::new() } else { vec![wishes.asn; times] };
        let said = Said { path, communities: route.communities.clone() };
        return Some(said).filter(|_| route.to.contains(&to));
    }
    let Used { from, said } = used?;
    let from = (*from)?;
    let Said { path, communities } = said.clone();
    let stays = communities.contains(&Community::NO_ADVERTISE)
        || communities.contains(&Community::NO_EXPORT) && !inside(to);
    if from == to || inside(from) && inside(to) || stays {
        return None;
    }
    if !wishes.neighbours[&to].pass_on.allows(prefix) {
        return None;
    }
    let path = if inside(to) { path } else { [vec![wishes.asn], path].concat() };
    Some(Said { path, communities })
}

/// Whether `node` accepts what `from` advertises for `prefix`.
pub(super) fn accepts(
    all: &[Wishes],
    (from, node): (usize, usize),
    prefix: Prefix,
    said: &Said,
) -> bool {
    let wishes = &all[node];
    wishes.neighbours[&from].import.allows(prefix) && !said.path.contains(&wishes.asn)
}

/// What `node` uses of what it accepted.
pub(super) fn best(
    all: &[Wishes],
    node: usize,
    prefix: Prefix,
    accepted: &Accepted,
) -> Option<Used> {
    let paths = accepted.iter().filter_map(|(from, table)| Some((*from, table.get(&prefix)?)));
    let is_inside = |from: usize| all[from].asn == all[node].asn;
    // Identifiers are in the order of the numbers.
    let best = paths.min_by_key(|(from, said)| (said.path.len(), is_inside(*from), *from));
    best.map(|(from, said)| Used { from: Some(from), said: said.clone() })
}

/// What all speakers have accepted in the end.
pub(super) fn settled(all: &[Wishes]) -> Vec<Accepted> {
    let mut accepted = vec![Accepted::new(); all.len()];
    let prefixes: Vec<Prefix> = (0..PREFIXES).map(prefix).collect();
    for _ in 0..100 {
        let mut next = vec![Accepted::new(); all.len()];
        for (node, wishes) in all.iter().enumerate() {
            for prefix in &prefixes {
                let used = best(all, node, *prefix, &accepted[node]);
                for to in wishes.neighbours.keys() {
                    let said = told(all, (node, *to), *prefix, used.as_ref());
                    let said = said.filter(|said| accepts(all, (node, *to), *prefix, said));
                    let table = next[*to].entry(node).or_default();
                    table.extend(said.map(|said| (*prefix, said)));
                }
            }
        }
        if next == accepted {
            return accepted;
        }
        accepted = next;
    }
    panic!("there is no fixpoint of {all:?}");
}
