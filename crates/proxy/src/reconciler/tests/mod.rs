//! Stories of one Service, and simulated schedules of many.

mod simulation;
mod stories;
