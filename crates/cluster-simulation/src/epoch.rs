//! The wall clock of the simulated world.

/// The virtual clock begins here: 2026-01-01, for timestamps of objects.
pub(crate) const EPOCH_SECONDS: u64 = 1_767_225_600;
