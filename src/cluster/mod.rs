//! Fairway in a Kubernetes cluster, without Kubernetes: machines that take what the API server says
//! and return what to ask.
//!
//! Pure: time and replies come in, actions go out. Whoever has the connection drives them.

mod reflector;
mod version;

pub use reflector::{Delta, PAGE_OBJECTS, Reflector, Reply, Request, name_of, version_of};
