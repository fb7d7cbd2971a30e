//! What viewers see: of an overview with a router in each state, and of one that is hostile.

mod birdwatcher;
mod found;
mod parts;
mod peer;
mod strips;
mod view;
