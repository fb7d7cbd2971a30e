//! The attributes of routes whose BGPAdvertisement does not set them: options of every command that makes
//! a plan.

use clap::Args;
use fairway_plan::{AttributeDefaults, PlanOptions};

#[derive(Debug, Args)]
pub(super) struct AttributeArguments {
    /// LOCAL_PREF of routes to iBGP peers if their BGPAdvertisement has no localPref (or 0), 0 to 4294967295;
    /// set the same on all nodes at once, or routers send all traffic to the nodes with the higher value
    /// [default: 100]
    #[arg(long, value_name = "NUMBER", env = "FAIRWAY_DEFAULT_LOCAL_PREFERENCE")]
    default_local_preference: Option<u32>,

    /// MED of routes if their BGPAdvertisement has no med, 0 to 4294967295; set the same on all nodes at once
    /// [default: none is sent]
    #[arg(long, value_name = "NUMBER", env = "FAIRWAY_DEFAULT_MED")]
    default_med: Option<u32>,
}

impl AttributeArguments {
    pub(super) fn defaults(&self) -> AttributeDefaults {
        AttributeDefaults { local_pref: self.default_local_preference, med: self.default_med }
    }

    /// Of a plan for files.
    pub(super) fn plan_options(&self) -> PlanOptions {
        PlanOptions { attribute_defaults: self.defaults(), ..PlanOptions::default() }
    }
}
