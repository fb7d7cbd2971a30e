//! What a node keeps in mind and on disk beside its plan.
//!
//! - [`drain`]: whether the node is in service, and until when it waits.
//! - [`health`]: which Services this machine serves itself, by their health checks.
//! - [`history`]: what changed last of each Service.
//! - [`withdrawing`]: which released addresses are free once which plan has reached all neighbours.
//! - [`document`], [`assignments`], [`announced`]: the files of the state directory, as text.
//!
//! Pure: `now` is an argument. Knows no file, socket or timer; the daemon's loop calls it.

pub mod announced;
pub mod assignments;
pub mod document;
pub mod drain;
pub mod health;
pub mod history;
pub mod withdrawing;
