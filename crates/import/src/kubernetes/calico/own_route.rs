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
use crate::kubernetes::peers::ToldRoutes;
use crate::kubernetes::work::Work;
use crate::object::Fields;

/// Routes of ours.
pub(super) struct OwnRoute<'a> {
    /// Where the source announces them.
    pub(super) section: Section<'a>,
    pub(super) name: String,
    pub(super) spec: Fields,
    /// The pool of Pods whose blocks they are.
    pub(super) pod_pool: Option<String>,
    pub(super) range: Range,
}

impl OwnRoute<'_> {
    fn say_told_to_none(&self, has_peers: bool) {
        let network = self.range.network;
        if has_peers {
            self.section.note_here(format!(
                "{network} is left out: no peer of the result may be told of it"
            ));
        } else {
            self.section.untranslated_here(format!(
                "{network} is left out, since the text has no BGPPeer, and without peers a BGPAdvertisement is for all: add the \
                 BGPPeers to the text, or write a BGPAdvertisement with peers"
            ));
        }
    }
}

#[derive(Default)]
pub(super) struct OwnRoutes<'a>(Vec<OwnRoute<'a>>);

/// A BGPAdvertisement, and the pools of Pods in it.
struct Written {
    name: String,
    spec: Fields,
    told: Vec<ToldRoutes>,
    pools: Vec<String>,
}

/// Communities of the routes to a network.
pub(super) struct Marking<'a> {
    pub(super) section: Section<'a>,
    pub(super) network: IpNet,
    /// Nothing where they cannot be translated.
    pub(super) communities: Option<Vec<String>>,
}

impl<'a> OwnRoutes<'a> {
    pub(super) fn add(&mut self, it: OwnRoute<'a>) {
        self.0.push(it);
    }

    /// Writes the BGPAdvertisements, each with the peers that it is for. Where the source `has_peers`, those that could not be
    /// translated are named already.
    pub(super) fn write(
        self,
        configuration: &Configuration<'_>,
        neighbours: &[Neighbour<'_>],
        has_peers: bool,
        work: &mut Work,
    ) {
        for marking in &configuration.markings {
            let marked = Range::inside(marking.network);
            if self.0.iter().all(|it| marked.intersection(it.range).is_none()) {
                marking.section.note_here("marks no route of the result");
            }
        }
        let mut written: Vec<Written> = Vec::new();
        for mut it in self.0 {
            let Some(communities) = communities(&configuration.markings, it.range) else {
                continue;
            };
            let listed = (!communities.is_empty()).then(|| json!(communities));
            it.spec.set("communities", listed);
            let peers = neighbours.iter().filter(|peer| lets_through(peer, &it));
            let told: Vec<ToldRoutes> = peers.map(|peer| peer.told.clone()).collect();
            if told.is_empty() {
                it.say_told_to_none(has_peers);
                continue;
            }
            // Pools of Pods that are announced alike are in one object.
            let other = written.iter_mut().find(|other| {
                let are_pools = !other.pools.is_empty() && it.pod_pool.is_some();
                are_pools && other.name == it.name && other.spec == it.spec && other.told == told
            });
            match other {
                Some(other) => other.pools.extend(it.pod_pool),
                None => {
                    let pools = it.pod_pool.into_iter().collect();
                    written.push(Written { name: it.name, spec: it.spec, told, pools });
                }
            }
        }
        for Written { name, mut spec, told, pools } in written {
            if !pools.is_empty() {
                spec.set("podBlockPools", json!(pools)).set_if("blackhole", true);
            }
            work.bgp_advertisement(&name, spec, told);
        }
    }
}

fn lets_through(peer: &Neighbour<'_>, it: &OwnRoute<'_>) -> bool {
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
