//! What every daemon on a node has, regardless of the source of its resources: its options, its clock, its
//! state on disk, the drain state, what it shows.
//!
//! Knows no file of resources and no API server. `standalone` and `kubernetes` build on it.

mod assigner;
mod clients;
mod clock;
mod draining;
mod earlier;
mod findings;
mod gateways;
mod machine;
mod published;
pub(crate) mod saver;
pub mod state_file;

pub(crate) use assigner::Assigner;
pub(crate) use clients::{ClientLimits, Clients, Work};
pub(crate) use clock::{Clock, epoch_milliseconds, epoch_seconds};
pub(crate) use draining::Draining;
pub(crate) use earlier::{announced, earlier_run};
pub(crate) use findings::FindingLog;
pub(crate) use gateways::GatewayWatch;
pub(crate) use machine::{
    addresses, boot_id, host_name, open_at_once, outlive_signals, raise_descriptor_limit, seed,
};
pub use published::{Enquirer, Published};
pub use saver::LockError;
pub(crate) use saver::{Saver, Saving};
