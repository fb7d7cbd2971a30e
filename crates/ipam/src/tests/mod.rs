//! Stories and random histories of blocks, pools and selectors.

mod block;
mod calico;
mod histories;
mod pool;
mod races;
mod remembering;
mod schedules;
mod selector;
mod stories;
mod traffic;
