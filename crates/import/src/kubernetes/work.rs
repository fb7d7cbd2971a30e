//! What has been translated so far.
//!
//! Answers the names of the objects that were written. Knows no project; all of them write with it.

use super::field::Section;
use super::peers::Peers;
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
    advertisements: Vec<Translated>,
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

    pub(super) fn bgp_advertisement(&mut self, name: &str, spec: Fields) {
        let name = self.bgp_names.give(name);
        self.advertisements.push(Translated::new(VERSION, "BGPAdvertisement", &name, spec));
    }

    pub(super) fn layer2_advertisement(&mut self, name: &str, spec: Fields) {
        let name = self.layer2_names.give(name);
        self.advertisements.push(Translated::new(VERSION, "L2Advertisement", &name, spec));
    }

    pub(super) fn community(&mut self, name: &str, spec: Fields) {
        let name = self.community_names.give(name);
        self.advertisements.push(Translated::new(VERSION, "Community", &name, spec));
    }

    pub(super) fn finish(self, outcome: &mut Outcome) {
        let Self { passwords, pools, profiles, peers, advertisements, .. } = self;
        let objects = passwords.into_iter().chain(pools).chain(profiles).chain(peers.objects());
        outcome.objects.extend(objects.chain(advertisements));
    }
}
