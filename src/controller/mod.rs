//! The loop that gives Services their addresses, and what it keeps on disk.

pub mod state;
