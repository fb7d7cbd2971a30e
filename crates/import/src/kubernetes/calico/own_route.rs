//! What Calico's nodes announce of their own.
//!
//! Answers the BGPAdvertisements, each for the peers whose filters let its routes through, and with the communities of
//! `prefixAdvertisements`. Refuses to announce what the filters of a peer may reject.

use ipnet::IpNet;
use serde_json::{Value, json};

use super::configuration::Configuration;
use super::filter::{Verdict, verdict};
use super::peer::Neighbour;
use super::range::Range;
use crate::kubernetes::field::Section;
use crate::kubernetes::work::Work;
use crate::object::Fields;

/// Routes of ours.
pub(super) struct OwnRoute {
    pub(super) name: String,
    pub(super) spec: Fields,
    /// The pool of Pods whose blocks they are.
    pub(super) pod_pool: Option<String>,
    pub(super) range: Range,
}

#[derive(Default)]
pub(super) struct OwnRoutes(Vec<OwnRoute>);

/// Communities of the routes to a network.
pub(super) struct Marking<'a> {
    pub(super) section: Section<'a>,
    pub(super) network: IpNet,
    /// Nothing where they cannot be translated.
    pub(super) communities: Option<Vec<String>>,
}

impl OwnRoutes {
    pub(super) fn add(&mut self, it: OwnRoute) {
        self.0.push(it);
    }

    /// Writes the BGPAdvertisements. Where not `all` peers are translated, those that are written by hand later are told
    /// nothing by them.
    pub(super) fn write(
        self,
        configuration: &Configuration<'_>,
        told: &[Neighbour<'_>],
        all: bool,
        work: &mut Work,
    ) {
        for marking in &configuration.markings {
            let marked = Range::inside(marking.network);
            if self.0.iter().all(|it| marked.intersection(it.range).is_none()) {
                marking.section.note_here("marks no route of the result");
            }
        }
        let mut written: Vec<(String, Fields, Vec<String>)> = Vec::new();
        for mut it in self.0 {
            let Some(communities) = communities(&configuration.markings, it.range) else {
                continue;
            };
            let listed = (!communities.is_empty()).then(|| json!(communities));
            it.spec.set("communities", listed);
            let names: Vec<&str> = told
                .iter()
                .filter(|peer| lets_through(peer, &it))
                .map(|peer| peer.name.as_str())
                .collect();
            if !told.is_empty() && names.is_empty() {
                continue;
            }
            if names.len() < told.len() || !all && !names.is_empty() {
                it.spec.set("peers", json!(names));
            }
            // Pools of Pods that are announced alike are in one object.
            let other = written.iter_mut().find(|(name, spec, pools)| {
                !pools.is_empty() && it.pod_pool.is_some() && *name == it.name && *spec == it.spec
            });
            match other {
                Some((_, _, pools)) => pools.extend(it.pod_pool),
                None => written.push((it.name, it.spec, it.pod_pool.into_iter().collect())),
            }
        }
        for (name, mut spec, pools) in written {
            if !pools.is_empty() {
                spec.set("podBlockPools", json!(pools)).set_if("blackhole", true);
            }
            work.bgp_advertisement(&name, spec);
        }
    }
}

fn lets_through(peer: &Neighbour<'_>, it: &OwnRoute) -> bool {
    // A session has routes of one family.
    if peer.is_ipv4 != it.range.network.addr().is_ipv4() {
        return true;
    }
    peer.exports.as_ref().is_some_and(|rules| {
        verdict(rules, peer.is_external, it.range, it.pod_pool.is_some()) == Verdict::Accept
    })
}

/// The communities of routes; nothing where only some of the routes have them, or one is unknown.
fn communities(markings: &[Marking<'_>], range: Range) -> Option<Vec<Value>> {
    let mut all = Vec::new();
    let mut is_known = true;
    for marking in markings {
        let marked = Range::inside(marking.network);
        if marked.intersection(range).is_none() {
            continue;
        }
        if !marked.covers(range) {
            let why = format!(
                "is about a part of the routes to {}, which are not announced: write a BGPAdvertisement for each \
                               part",
                range.network
            );
            marking.section.untranslated("cidr", why);
            is_known = false;
        }
        match &marking.communities {
            Some(communities) => {
                for it in communities {
                    if !all.contains(&json!(it)) {
                        all.push(json!(it));
                    }
                }
            }
            None => is_known = false,
        }
    }
    is_known.then_some(all)
}
