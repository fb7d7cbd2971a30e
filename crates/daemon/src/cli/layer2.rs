//! Options about the local segment.

use std::time::Duration;

use anyhow::{Context, Result};
use clap::Args;
use fairway_layer2::{EXCLUDED_BY_DEFAULT, Excluded};

use super::duration;

/// What `fairway run` and `fairway speaker` do on the local segment.
#[derive(Debug, Args)]
pub(super) struct Layer2Arguments {
    /// Answer for no address on interfaces with a name that matches this regular expression; may be given more
    /// than once, and replaces the default: interfaces of containers and overlays, as MetalLB excludes them
    /// (^docker.*, ^cbr.*, ^dummy.*, ^virbr.*, ^lxcbr.*, ^veth.*, ^lo$, ^cali.*, ^tunl.*, ^flannel.*,
    /// ^kube-ipvs.*, ^cni.*, ^nodelocaldns.*, ^lxc.*)
    #[arg(
        long,
        value_name = "REGEX",
        env = "FAIRWAY_LAYER2_EXCLUDE",
        value_delimiter = ' ',
        value_parser = expression
    )]
    layer2_exclude: Vec<String>,

    /// Announce addresses on the local segment again each time this has passed, for switches that forget
    /// sooner than hosts; 0s announces only after a change
    #[arg(
        long,
        value_name = "TIME",
        default_value = "0s",
        value_parser = duration::parse,
        env = "FAIRWAY_LAYER2_REFRESH"
    )]
    layer2_refresh: Duration,
}

/// The text, if it is a regular expression.
fn expression(text: &str) -> Result<String, String> {
    Excluded::new(&[text]).map(|_| text.to_owned()).map_err(|error| error.to_string())
}

impl Layer2Arguments {
    /// The interfaces that are left out.
    pub(super) fn excluded(&self) -> Result<Excluded> {
        let given: Vec<&str> =
            self.layer2_exclude.iter().map(String::as_str).filter(|it| !it.is_empty()).collect();
        let used = if given.is_empty() { EXCLUDED_BY_DEFAULT.to_vec() } else { given };
        Excluded::new(&used).context("--layer2-exclude is not a regular expression")
    }

    /// Time between announcements when nothing changes.
    pub(super) fn refresh(&self) -> Option<Duration> {
        Some(self.layer2_refresh).filter(|it| !it.is_zero())
    }
}
