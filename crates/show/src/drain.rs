//! The drain state. FRR has no output for it: this is ours, and present only for a node that is out of
//! service.

use fairway_model::Node;
use fairway_node::drain::DrainStatus;
use serde_json::Value;

use super::Snapshot;

/// Whether a node is in service, and whether its Node has the drain mark.
#[derive(Debug, Clone, Copy)]
pub(super) struct DrainView {
    status: DrainStatus,
    is_marked: bool,
}

impl DrainView {
    pub(super) fn of(snapshot: &Snapshot<'_>) -> Self {
        Self { status: snapshot.drain, is_marked: snapshot.node.drain.is_some() }
    }

    /// A line of text; empty for a node in service.
    pub(super) fn line(self) -> String {
        let mark = match self.is_marked {
            true => format!("; its Node is marked {}", Node::DRAIN_MARK),
            false => String::new(),
        };
        match self.status {
            DrainStatus::InService => String::new(),
            status => format!("Drain: {status}{mark}\n"),
        }
    }

    /// `state`, `sinceEpochSeconds`, while draining `untilEpochSeconds`, and `isMarked` if set.
    pub(super) fn json(self) -> Option<Value> {
        if self.status == DrainStatus::InService {
            return None;
        }
        let mut value = serde_json::to_value(self.status).ok()?;
        if self.is_marked {
            value.as_object_mut()?.insert("isMarked".to_owned(), true.into());
        }
        Some(value)
    }
}
