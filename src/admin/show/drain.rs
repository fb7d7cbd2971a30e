//! What is said of a node that is out of service. FRR has no words for it: this is ours, and only
//! there when there is something to say.

use serde_json::Value;

use crate::drain::DrainStatus;

/// A line for people; nothing of a node in service.
pub(super) fn line(status: DrainStatus) -> String {
    match status {
        DrainStatus::InService => String::new(),
        status => format!("Drain: {status}\n"),
    }
}

/// `state`, `sinceEpochSeconds` and, while draining, `untilEpochSeconds`.
pub(super) fn json(status: DrainStatus) -> Option<Value> {
    let is_news = status != DrainStatus::InService;
    is_news.then(|| serde_json::to_value(status).ok()).flatten()
}
