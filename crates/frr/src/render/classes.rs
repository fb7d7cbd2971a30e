//! Which routes are treated alike, and how are they marked?
//!
//! All prefixes that are sent to the same neighbours with the same attributes form a class. Its tag is a hash
//! of exactly that: a route that changes gets another tag, so that FRR sends it again at once instead of
//! waiting for a changed route map. Called by `render`.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use fairway_ground::{AddressFamily, PeerKey, Prefix};
use fairway_seam::{DesiredRoute, RouteAttributes};
use serde::Serialize;

use super::attributes::{Dialect, SetLines};
use super::neighbour::Neighbour;
use crate::owner::Hash;

/// The tag of learned routes. It is also set on all outgoing routes, so that FRR recognises a route that
/// moved to another class but did not change for a neighbour, and does not send it again.
pub(super) const LEARNED_TAG: u32 = 18_007;

/// The last sequence number of an entry for a class; those for learned routes follow.
const SEQUENCE_LAST: u32 = 60_000;

/// Prefixes that are sent to the same neighbours in the same way.
pub(super) struct Class {
    /// The tag of its routes.
    pub(super) tag: u32,
    /// The sequence number of its entry in each route map.
    pub(super) sequence: u32,
    /// The prefixes.
    pub(super) prefixes: Vec<Prefix>,
    /// The settings for each neighbour.
    pub(super) told: BTreeMap<PeerKey, SetLines>,
}

/// A prefix and its tag, for a `network` line.
#[derive(Debug, Clone, Serialize)]
pub(super) struct Network {
    #[serde(skip)]
    pub(super) order: Prefix,
    prefix: String,
    tag: u32,
}

impl Class {
    /// The prefixes of the class that are announced in `family`.
    pub(super) fn networks(&self, family: AddressFamily) -> impl Iterator<Item = Network> {
        let of_family = self.prefixes.iter().filter(move |prefix| prefix.family() == family);
        of_family.map(|prefix| Network {
            order: *prefix,
            prefix: prefix.to_string(),
            tag: self.tag,
        })
    }
}

/// What two prefixes must have in common to be in one class.
type Alike<'a> = (AddressFamily, Vec<(&'a Arc<BTreeSet<PeerKey>>, &'a Arc<RouteAttributes>)>);

/// All classes by their tags, and the number of prefixes that are left out because all tags are in use.
pub(super) fn of_routes(
    routes: &[DesiredRoute],
    neighbours: &BTreeMap<PeerKey, (Neighbour, Dialect)>,
) -> (Vec<Class>, usize) {
    let mut of_prefix: BTreeMap<Prefix, Vec<_>> = BTreeMap::new();
    for route in routes {
        of_prefix.entry(route.prefix).or_default().push((&route.peers, &route.attributes));
    }
    let mut alike: BTreeMap<Alike<'_>, Vec<Prefix>> = BTreeMap::new();
    for (prefix, mut told) in of_prefix {
        told.sort_unstable();
        alike.entry((prefix.family(), told)).or_default().push(prefix);
    }
    // Prefixes that look different may turn out the same where some neighbours are left out.
    let mut classes: BTreeMap<String, Class> = BTreeMap::new();
    for ((family, told), prefixes) in alike {
        let mut lines = BTreeMap::new();
        for (peers, attributes) in told {
            for key in peers.iter() {
                let Some((neighbour, dialect)) = neighbours.get(key) else { continue };
                if neighbour.carries(family) {
                    lines.insert(*key, dialect.of_own(attributes));
                }
            }
        }
        if lines.is_empty() {
            continue;
        }
        let class = classes.entry(identity(&lines)).or_insert_with(|| Class {
            tag: 0,
            sequence: 0,
            prefixes: Vec::new(),
            told: lines,
        });
        class.prefixes.extend(prefixes);
    }
    numbered(classes)
}

/// A text that two classes share only if they are the same.
fn identity(told: &BTreeMap<PeerKey, SetLines>) -> String {
    let mut text = String::new();
    for (key, lines) in told {
        text.push_str(&key.to_string());
        lines.identify(&mut text);
        text.push('\n');
    }
    text
}

/// Gives each class its tag and sequence number: those of its hash or, if another class has them, the next
/// free ones.
fn numbered(classes: BTreeMap<String, Class>) -> (Vec<Class>, usize) {
    let (mut tags, mut sequences) = (BTreeSet::from([0, LEARNED_TAG]), BTreeSet::new());
    let mut numbered = Vec::with_capacity(classes.len());
    let mut left_out = 0_usize;
    for (identity, class) in classes {
        let hash = Hash::of(&identity, 0).short();
        // At least half of all numbers are free, so a few steps are enough.
        let first = hash % SEQUENCE_LAST;
        let places = (first..SEQUENCE_LAST).chain(0..first).map(|place| place.saturating_add(1));
        let Some(sequence) = places.into_iter().find(|place| !sequences.contains(place)) else {
            left_out = left_out.saturating_add(class.prefixes.len());
            continue;
        };
        let tag = (0..).map(|attempt| Hash::of(&identity, attempt).short());
        let Some(tag) = tag.into_iter().find(|tag| !tags.contains(tag)) else { continue };
        tags.insert(tag);
        sequences.insert(sequence);
        numbered.push(Class { tag, sequence, ..class });
    }
    numbered.sort_unstable_by_key(|class| class.sequence);
    (numbered, left_out)
}
