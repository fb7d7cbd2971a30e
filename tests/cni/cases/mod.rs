//! What is tested? Each case is a story with a name. Used by main.

mod batch;
pub(crate) mod cluster;
pub(crate) mod cnitool;
mod disk;
mod exhausted;
mod fabric;
mod killed;
mod second_writer;
mod store;
mod taking_over;
mod unconfirmed;

use std::path::PathBuf;

use anyhow::{Context, Result};
use serde_json::Value;

use crate::runtime::Plugins;

/// What addresses are kept in; `Bridge` stands for a disk and plugins of each age, `Cnitool` for a disk and another runtime.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Disk,
    Bridge,
    Cnitool,
    Cluster,
}

impl Kind {
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Disk | Self::Bridge => "disk",
            Self::Cnitool => "cnitool",
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
        Bridge disk::containers_on_a_bridge_reach_each_other_with_each_set_of_plugins,
        Disk disk::a_deletion_without_a_daemon_waits_for_the_next,
        Disk disk::a_plugin_that_was_ended_is_given_no_address,
        Disk disk::a_block_that_cannot_be_read_stops_addresses_and_nothing_else,
        Disk killed::a_plugin_that_is_killed_at_each_step_leaves_no_address,
        Disk killed::a_plugin_that_is_killed_at_any_moment_leaves_no_address,
        Disk batch::a_daemon_that_is_killed_in_a_batch_gives_no_address_twice,
        Cnitool cnitool::cnitool_adds_checks_and_deletes_and_collects_what_is_left,
        Cluster cluster::containers_get_addresses_of_the_cluster,
        Cluster cluster::an_api_server_that_is_away_costs_no_address,
        Cluster cluster::what_no_pod_has_any_more_is_taken_back,
        Cluster second_writer::another_writer_and_the_daemon_give_no_address_twice,
        Cluster taking_over::the_plugin_is_not_installed_where_network_policies_would_end,
        Cluster killed::a_plugin_that_is_killed_at_each_step_leaves_nothing_in_a_cluster,
        Cluster killed::a_plugin_that_is_killed_at_any_moment_leaves_nothing_in_a_cluster,
        Cluster batch::a_daemon_of_a_cluster_that_is_killed_in_a_batch_gives_no_address_twice,
        Cluster unconfirmed::no_block_is_announced_before_its_affinity_is_confirmed,
        Cluster exhausted::a_pool_that_has_run_out_is_told_in_an_event,
        Cluster fabric::pods_of_three_nodes_reach_each_other_by_the_routes_of_their_blocks,
    ]
}

/// `bridge` with ours: the gateway is an address of each block.
pub(crate) fn bridge() -> Result<Value> {
    example("10-fairway-bridge.conflist")
}

/// `ptp` with ours, for Pods whose gateway is the host.
pub(crate) fn ptp() -> Result<Value> {
    example("10-fairway.conflist")
}

/// The first plugin of an example.
fn example(name: &str) -> Result<Value> {
    let list = example_list(name)?;
    list["plugins"].as_array().and_then(|it| it.first().cloned()).context("a plugin")
}

/// All of an example.
fn example_list(name: &str) -> Result<Value> {
    let path = lab::checkout().join("examples/pods").join(name);
    Ok(serde_json::from_str(&std::fs::read_to_string(path)?)?)
}
