//! What has been translated so far.
//!
//! Answers the names of the objects that were written, and that no BGPAdvertisement is for peers that it does not name. Knows
//! no project; all of them write with it.

use serde_json::json;

use super::field::Section;
use super::peers::{Peers, ToldRoutes};
use super::secrets::Secrets;
use crate::object::{Fields, Names, Translated};
use crate::outcome::Outcome;

const VERSION: &str = "metallb.io/v1beta1";

/// The objects of a text, by the order in which they are written.
pub(super) struct Work {
    secrets: Secrets,
    passwords: Vec<Translated>,
    pool_names: Names,
    pools: Vec<Translated>,
    profile_names: Names,
    profiles: Vec<Translated>,
    pub(super) peers: Peers,
    bgp_names: Names,
    layer2_names: Names,
    community_names: Names,
    advertisements: Vec<Advertisement>,
}

enum Advertisement {
    /// A BGPAdvertisement by its name in the source. Which nodes it is for is known when all peers are.
    Bgp(String, Fields, Vec<ToldRoutes>),
    Written(Translated),
}

impl Work {
    pub(super) fn new(secrets: Secrets) -> Self {
        let (pool_names, profile_names, bgp_names, layer2_names, community_names) =
            Default::default();
        let (passwords, pools, profiles, advertisements) = Default::default();
        let peers = Peers::default();
        Self {
            secrets,
            passwords,
            pool_names,
            pools,
            profile_names,
            profiles,
            peers,
            bgp_names,
            layer2_names,
            community_names,
            advertisements,
        }
    }

    /// The name of the Secret with the password that the source has in a Secret under a key; `field` of `section` refers to
    /// it.
    pub(super) fn password(
        &mut self,
        section: &Section<'_>,
        field: &str,
        secret_and_key: (&str, &str),
    ) -> String {
        self.secrets.password(section, field, secret_and_key, &mut self.passwords)
    }

    /// The name of a Secret for a password that is written in the source itself; `name` is the peer.
    pub(super) fn plain_password(&mut self, name: &str, password: &str) -> String {
        self.secrets.plain(name, password, &mut self.passwords)
    }

    /// An IPAddressPool; its name.
    pub(super) fn pool(&mut self, name: &str, spec: Fields) -> String {
        let name = self.pool_names.give(name);
        self.pools.push(Translated::new(VERSION, "IPAddressPool", &name, spec));
        name
    }

    /// A BFDProfile; its name.
    pub(super) fn profile(&mut self, name: &str, spec: Fields) -> String {
        let name = self.profile_names.give(name);
        self.profiles.push(Translated::new(VERSION, "BFDProfile", &name, spec));
        name
    }

    /// A BGPAdvertisement for these peers, or none where there are no peers: without `peers` it would be for all.
    pub(super) fn bgp_advertisement(&mut self, name: &str, spec: Fields, told: Vec<ToldRoutes>) {
        self.advertisements.push(Advertisement::Bgp(name.to_owned(), spec, told));
    }

    pub(super) fn layer2_advertisement(&mut self, name: &str, spec: Fields) {
        let name = self.layer2_names.give(name);
        let written = Translated::new(VERSION, "L2Advertisement", &name, spec);
        self.advertisements.push(Advertisement::Written(written));
    }

    pub(super) fn community(&mut self, name: &str, spec: Fields) {
        let name = self.community_names.give(name);
        let written = Translated::new(VERSION, "Community", &name, spec);
        self.advertisements.push(Advertisement::Written(written));
    }

    pub(super) fn finish(self, outcome: &mut Outcome) {
        let Self { passwords, pools, profiles, peers, advertisements, mut bgp_names, .. } = self;
        let mut announced = Vec::new();
        for it in advertisements {
            match it {
                Advertisement::Written(object) => announced.push(object),
                Advertisement::Bgp(name, spec, told) => {
                    for (nodes, peers) in peers.by_nodes(&told) {
                        let mut spec = spec.clone();
                        spec.set("nodeSelectors", nodes).set("peers", json!(peers));
                        let name = bgp_names.give(&name);
                        announced.push(Translated::new(VERSION, "BGPAdvertisement", &name, spec));
                    }
                }
            }
        }
        let objects = passwords.into_iter().chain(pools).chain(profiles).chain(peers.objects());
        outcome.objects.extend(objects.chain(announced));
    }
}
