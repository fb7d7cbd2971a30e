//! One destination, and where its packets shall go.

use std::fmt;

use fairway_ground::{InterfaceName, Prefix};
use fairway_seam::Forward;

use crate::interned::Number;

/// A destination of a VRF.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// The VRF; `None` for the main table.
    pub vrf: Option<InterfaceName>,
    /// The destination.
    pub prefix: Prefix,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.prefix.fmt(f)?;
        self.vrf.iter().try_for_each(|vrf| write!(f, " in VRF {vrf}"))
    }
}

/// What is wanted at a place, and what is there.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Entry {
    /// Where packets shall go; 0 for no route.
    pub(super) wanted: Number,
    /// The ways in the kernel; 0 for no route.
    pub(super) present: Number,
    /// The table that they are in.
    pub(super) table: u32,
    /// Of an earlier run, and not known to be wanted or not.
    pub(super) is_leftover: bool,
    /// A route of somebody else is in its place.
    pub(super) is_hidden: bool,
    /// The kernel has one that was not known of: it is replaced, unless it turns out to be somebody else's.
    pub(super) is_unknown: bool,
}

impl Entry {
    /// Nothing is wanted any more; returns the number of what was.
    pub(super) fn give_up(&mut self) -> Number {
        self.is_leftover = false;
        std::mem::take(&mut self.wanted)
    }
}

/// Where packets of a VRF shall go.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Group {
    pub(super) vrf: Option<InterfaceName>,
    pub(super) forward: Forward,
}
