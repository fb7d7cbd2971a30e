//! What is tested? Each case is a story with a name. Used by main.

mod cluster;
mod disk;
mod fabric;

use std::path::PathBuf;

use anyhow::{Context, Result};
use serde_json::{Value, json};

use crate::runtime::Plugins;

/// What addresses are kept in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Disk,
    Cluster,
}

impl Kind {
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Disk => "disk",
            Self::Cluster => "cluster",
        }
    }
}

/// A story.
#[derive(Clone, Copy)]
pub(crate) struct Case {
    pub(crate) name: &'static str,
    pub(crate) on: Kind,
    pub(crate) run: fn(&Scene) -> Result<()>,
}

/// Where it takes place.
pub(crate) struct Scene {
    pub(crate) cell: usize,
    pub(crate) directory: PathBuf,
    pub(crate) assets: Option<PathBuf>,
    pub(crate) plugins: Vec<Plugins>,
    pub(crate) is_short: bool,
}

impl Scene {
    pub(crate) fn plugins(&self) -> Result<&Plugins> {
        self.plugins.first().context("there are no CNI plugins here")
    }
}

macro_rules! cases {
    ($($on:ident $module:ident::$name:ident,)*) => {
        vec![$(Case { name: stringify!($name), on: Kind::$on, run: $module::$name },)*]
    };
}

pub(crate) fn all() -> Vec<Case> {
    cases![
        Disk disk::containers_of_two_families_reach_each_other,
        Disk disk::containers_on_a_bridge_reach_each_other_with_each_set_of_plugins,
        Disk disk::a_deletion_without_a_daemon_waits_for_the_next,
        Disk disk::a_plugin_that_was_ended_is_given_no_address,
        Disk disk::a_block_that_cannot_be_read_stops_addresses_and_nothing_else,
        Cluster cluster::containers_get_addresses_of_the_cluster,
        Cluster cluster::an_api_server_that_is_away_costs_no_address,
        Cluster cluster::what_no_pod_has_any_more_is_taken_back,
        Cluster fabric::pods_of_three_nodes_reach_each_other_by_the_routes_of_their_blocks,
    ]
}

/// `bridge` with ours: the gateway is an address of each block.
pub(crate) fn bridge() -> Value {
    json!({
        "type": "bridge", "bridge": "pods0", "isGateway": true, "hairpinMode": true,
        "ipam": {
            "type": "fairway-cni", "assign_ipv4": "true", "assign_ipv6": "true", "gateway": "block",
            "routes": [{"dst": "0.0.0.0/0"}, {"dst": "::/0"}],
        },
    })
}

/// `ptp` with ours, for Pods whose gateway is the host.
pub(crate) fn ptp() -> Value {
    json!({
        "type": "ptp",
        "ipam": {
            "type": "fairway-cni", "assign_ipv4": "true", "assign_ipv6": "true",
            "gateway": ["169.254.1.1", "fe80::1"],
            "routes": [
                {"dst": "169.254.0.0/16", "gw": "0.0.0.0", "scope": 253},
                {"dst": "0.0.0.0/0"}, {"dst": "::/0"},
            ],
        },
    })
}
