//! Stories of one Service, and simulated schedules of many.

mod delivered;
mod simulation;
mod stories;
