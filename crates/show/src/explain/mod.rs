//! `explain`: why is something as it is? A sentence with the most likely cause first, then the chain that leads there.
//!
//! ```text
//!  service ─► one Service, from its wish to the wire      peer ─► absence: why there is no session
//!  address ─► an address or a prefix: its owner and its routes    pool, node
//! ```
//!
//! Reports what the plan, the allocator and the backend have decided and seen; decides nothing. Covers this node only.

mod absence;
mod address;
mod node;
mod peer;
mod pool;
mod section;
mod service;

use std::time::Duration;

use fairway_resources::FindingObject;
use serde::{Deserialize, Serialize};

use crate::object::Object;
use crate::time::clock;
use crate::{ShowError, Snapshot};

/// What to explain.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Explained {
    /// A Service: `NAMESPACE/NAME`, or a name that only one has, or one in `default`.
    Service(String),
    /// A neighbour: its address, or the name of its BGPPeer.
    Peer(String),
    /// An address or a prefix.
    Address(String),
    /// An IPAddressPool.
    Pool(String),
    /// This node.
    Node(String),
}

/// The faults of these objects.
fn faults_of(snapshot: &Snapshot<'_>, is_wanted: impl Fn(&FindingObject) -> bool) -> Vec<String> {
    let findings = snapshot.findings.iter().filter(|finding| finding.is_fault());
    let of_these = findings.filter(|it| it.object.as_ref().is_some_and(&is_wanted));
    of_these.map(ToString::to_string).collect()
}

/// What has not been read, as the end of a sentence.
fn outdated(snapshot: &Snapshot<'_>) -> String {
    let outage = snapshot.outage.map(|it| {
        let seconds = snapshot.now_epoch_seconds.saturating_sub(it.since_epoch_seconds);
        let lasting = clock(Duration::from_secs(seconds));
        format!("; {} for {lasting}, so this is what was known before", it.what)
    });
    outage.unwrap_or_default()
}

/// As text.
pub(super) fn text(snapshot: &Snapshot<'_>, what: &Explained) -> Result<String, ShowError> {
    match what {
        Explained::Service(name) => service::text(snapshot, name),
        Explained::Peer(name) => peer::text(snapshot, name),
        Explained::Address(text) => address::text(snapshot, text),
        Explained::Pool(name) => pool::text(snapshot, name),
        Explained::Node(name) => node::text(snapshot, name),
    }
}

/// As JSON.
pub(super) fn json(snapshot: &Snapshot<'_>, what: &Explained) -> Result<Object, ShowError> {
    match what {
        Explained::Service(name) => service::json(snapshot, name),
        Explained::Peer(name) => peer::json(snapshot, name),
        Explained::Address(text) => address::json(snapshot, text),
        Explained::Pool(name) => pool::json(snapshot, name),
        Explained::Node(name) => node::json(snapshot, name),
    }
}
