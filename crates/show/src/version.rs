//! `show version` and `show running-config`: who answers, in a form that FRR's tools read.

use crate::Snapshot;
use crate::object::Object;

/// The release of FRR that provides the text where releases differ.
const DIALECT: &str = "8.4";

/// Fairway's name and version follow the dialect in the same word, since programs read only that word.
pub(super) fn text(snapshot: &Snapshot<'_>) -> String {
    format!(
        "FRRouting {DIALECT}-fairway-{version} ({node}) on Linux.\n\
         This is Fairway {version} ({commit}). It answers in the format of FRRouting {DIALECT}.\n",
        version = env!("CARGO_PKG_VERSION"),
        node = snapshot.node.name,
        commit = snapshot.commit,
    )
}

/// Ours, for people.
pub(super) fn of(snapshot: &Snapshot<'_>) -> String {
    format!("{} ({})", env!("CARGO_PKG_VERSION"), snapshot.commit)
}

/// FRR has no JSON for it.
pub(super) fn json(snapshot: &Snapshot<'_>) -> Object {
    Object::new()
        .field("version", env!("CARGO_PKG_VERSION"))
        .field("commit", snapshot.commit)
        .field("node", snapshot.node.name.as_str())
}

/// The name of the node is the only setting in FRR's format. vtysh drops the comments.
pub(super) fn running_config(snapshot: &Snapshot<'_>) -> String {
    format!(
        "!\n! Fairway {}: configured by resources, see `fairway show config`\n!\nhostname {}\n!\n",
        env!("CARGO_PKG_VERSION"),
        snapshot.node.name,
    )
}
