//! `fairway drain`: orders for the loop, and their progress.
//!
//! An order is given once; the client then polls until it is complete, so that a client that disconnects
//! leaves nothing behind.

use std::time::Duration;

use fairway_node::drain::{DrainOrder, DrainStep};
use fairway_seam::ViewScope;
use fairway_show::DrainReport;
use serde::{Deserialize, Serialize};
use tokio::sync::{mpsc, oneshot};

use super::Answer;
use super::observer::Observer;
use super::order::{Order, Ordered};

/// The request of a client.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum DrainRequest {
    /// Take the node out of service, after a wait.
    Begin {
        /// The length of the wait.
        wait_milliseconds: u64,
    },
    /// Bring the node back into service.
    Undo,
    /// Only report the progress.
    Look,
}

/// Passes the request on to the loop, and reports the progress.
pub(super) async fn drain(
    request: DrainRequest,
    orders: &mpsc::Sender<Order>,
    observer: &Observer,
) -> Answer {
    let done = match request {
        DrainRequest::Begin { wait_milliseconds } => {
            let wait = Duration::from_millis(wait_milliseconds);
            order(DrainOrder::Begin { wait }, orders).await
        }
        DrainRequest::Undo => order(DrainOrder::Undo, orders).await,
        DrainRequest::Look => Some((DrainStep::None, true)),
    };
    let Some((step, is_kept)) = done else {
        return Answer::Error("the daemon is stopping".to_owned());
    };
    let seen =
        observer.look(ViewScope::SESSIONS, |snapshot| DrainReport::of(snapshot, step, is_kept));
    seen.await.map_or_else(|error| Answer::Error(error.to_string()), Answer::Drain)
}

async fn order(what: DrainOrder, orders: &mpsc::Sender<Order>) -> Option<(DrainStep, bool)> {
    let (answer, done) = oneshot::channel();
    orders.send(Order::Drain(Ordered { what, answer })).await.ok()?;
    done.await.ok()
}

#[cfg(test)]
mod tests {
    use fairway_node::drain::DrainStatus;

    use super::*;

    const DRAINED: DrainStatus = DrainStatus::Drained { since_epoch_seconds: 7 };

    #[test]
    fn requests_and_reports_cross_the_socket() {
        for request in [
            DrainRequest::Begin { wait_milliseconds: 30_000 },
            DrainRequest::Undo,
            DrainRequest::Look,
        ] {
            let line = serde_json::to_string(&request).unwrap();
            assert_eq!(serde_json::from_str::<DrainRequest>(&line).unwrap(), request, "{line}");
        }
        let report = DrainReport {
            step: DrainStep::Began,
            is_kept: true,
            status: DRAINED,
            is_marked: false,
            now_epoch_seconds: 7,
            told: 1,
            untold: vec!["192.0.2.1 (tor-1)".to_owned()],
            away: vec!["192.0.2.2 (tor-2)".to_owned()],
        };
        let answer = Answer::Drain(report);
        let line = serde_json::to_string(&answer).unwrap();
        assert_eq!(serde_json::from_str::<Answer>(&line).unwrap(), answer, "{line}");
    }
}
