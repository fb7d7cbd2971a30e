//! Which routes of a neighbour are accepted, and which learned ones are passed on to it?
//!
//! A policy as entries of a route map and prefix lists. Knows no attributes. Called by `neighbour` and
//! `render`.

use std::collections::{BTreeMap, BTreeSet};

use fairway_ground::{AddressFamily, FamilySet, PrefixFilter, PrefixRange};
use serde::Serialize;

use crate::owner::Hash;

/// Routes that are accepted from a neighbour.
pub(super) type In = Filter;
/// Learned routes that are passed on to it.
pub(super) type PassOn = Filter;

/// Entries that permit; everything else is denied.
#[derive(Debug, Clone, Serialize)]
pub(super) struct Filter {
    /// The prefix lists.
    lists: Vec<List>,
    pub(super) entries: Vec<Permit>,
}

/// One entry of a route map.
#[derive(Debug, Clone, Serialize)]
pub(super) struct Permit {
    /// Its sequence number, from 1.
    pub(super) place: u32,
    /// The family word of the prefix list that must match; `None` matches everything.
    pub(super) list: Option<&'static str>,
}

/// A prefix list of one family.
#[derive(Debug, Clone, Serialize)]
struct List {
    word: &'static str,
    ranges: Vec<Sequenced>,
}

/// An entry of a list.
#[derive(Debug, Clone, Serialize)]
pub(super) struct Sequenced {
    pub(super) sequence: u32,
    pub(super) text: String,
}

impl Filter {
    pub(super) fn new(filter: &PrefixFilter, families: FamilySet) -> Self {
        let ranges = match filter {
            PrefixFilter::Nothing => return Self { lists: Vec::new(), entries: Vec::new() },
            PrefixFilter::Everything => {
                let entries = vec![Permit { place: 1, list: None }];
                return Self { lists: Vec::new(), entries };
            }
            PrefixFilter::Listed(ranges) => ranges,
        };
        let (mut lists, mut entries) = (Vec::new(), Vec::new());
        for (place, family) in (1..).zip(families.iter()) {
            let of_family = ranges.iter().filter(|it| it.prefix().family() == family);
            let texts: BTreeSet<String> = of_family.map(range).collect();
            if !texts.is_empty() {
                let word = word(family);
                lists.push(List { word, ranges: numbered(texts) });
                entries.push(Permit { place, list: Some(word) });
            }
        }
        Self { lists, entries }
    }
}

/// FRR's word for the family of an address.
pub(super) fn word(family: AddressFamily) -> &'static str {
    match family {
        AddressFamily::Ipv4Unicast => "ip",
        AddressFamily::Ipv6Unicast => "ipv6",
    }
}

/// The range as FRR shows it.
pub(super) fn range(range: &PrefixRange) -> String {
    let (prefix, lengths) = (range.prefix(), range.lengths());
    let (first, last) = (*lengths.start(), *lengths.end());
    if first > prefix.length() {
        format!("{prefix} ge {first} le {last}")
    } else if last > first {
        format!("{prefix} le {last}")
    } else {
        prefix.to_string()
    }
}

/// The order of permit entries has no meaning: each gets a sequence number from its text, so that a new one
/// leaves the others in place.
pub(super) fn numbered(texts: BTreeSet<String>) -> Vec<Sequenced> {
    let mut places: BTreeMap<u32, String> = BTreeMap::new();
    for text in texts {
        let hashes = (0..).map(|attempt| Hash::of(&text, attempt).short());
        let free = |place: &u32| *place != 0 && !places.contains_key(place);
        if let Some(place) = hashes.into_iter().find(free) {
            places.insert(place, text);
        }
    }
    places.into_iter().map(|(sequence, text)| Sequenced { sequence, text }).collect()
}
