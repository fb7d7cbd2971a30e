//! Whether a speaker that is terminated will be back.
//!
//! The signal is the same for an update of the DaemonSet and for the removal of the node, and routers should
//! keep our routes in the first case and not in the second. So the two objects that make the difference are
//! read, by name. Without an answer in time nothing counts as deleted: then this is a restart.

use std::time::Duration;

use fairway_model::Kind;
use fairway_seam::Leave;
use serde_json::Value;
use tracing::info;

use super::api::{Api, Problem};
use super::resource::{DAEMON_SET, Resource};

/// Pods are killed after their grace period, and the sessions have to be closed before that.
const LOOK_TIMEOUT: Duration = Duration::from_secs(2);

/// Reads the Node and, if its name is known, the DaemonSet.
pub(super) async fn how_to_leave(api: &Api, node: &str, daemon_set: Option<&str>) -> Leave {
    let node_path = format!("{}/{node}", Resource::read(Kind::Node).in_namespace(""));
    let set_path =
        daemon_set.map(|name| format!("{}/{name}", DAEMON_SET.in_namespace(&api.namespace)));
    let look_at_set = async {
        match &set_path {
            Some(path) => is_going(&api.get(path, LOOK_TIMEOUT).await),
            None => false,
        }
    };
    let look_at_node = async { is_going(&api.get(&node_path, LOOK_TIMEOUT).await) };
    let (node_goes, set_goes) = tokio::join!(look_at_node, look_at_set);
    match (node_goes, set_goes) {
        (false, false) => {
            info!("leaving for a restart: routers with graceful restart keep our routes");
            Leave::ForRestart
        }
        (true, _) => {
            info!("leaving for good: the node is gone, or being deleted");
            Leave::ForGood
        }
        (_, true) => {
            info!("leaving for good: the DaemonSet is gone, or being deleted");
            Leave::ForGood
        }
    }
}

fn is_going(answer: &Result<Value, Problem>) -> bool {
    match answer {
        Ok(object) => object.pointer("/metadata/deletionTimestamp").is_some(),
        Err(problem) => problem.code == Some(404),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_what_is_said_to_be_gone_is_gone() {
        let problem = |code| Err(Problem { code, message: String::new() });
        assert!(is_going(&problem(Some(404))));
        for code in [None, Some(401), Some(403), Some(500), Some(503)] {
            assert!(!is_going(&problem(code)), "{code:?}");
        }
        assert!(!is_going(&Ok(json!({"metadata": {"name": "n"}}))));
        let deleted = json!({"metadata": {"deletionTimestamp": "2026-11-20T16:38:03Z"}});
        assert!(is_going(&Ok(deleted)));
    }
}
