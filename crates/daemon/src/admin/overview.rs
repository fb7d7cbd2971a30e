//! The state of a node as one value, for those who watch it.

use fairway_seam::{AdvertisedScope, ViewScope};
use fairway_show::overview::Overview;

use super::{Answer, Observer};

/// What an overview reads. Which neighbour was sent what is part of it; tables of routes are not.
pub(crate) const SCOPE: ViewScope =
    ViewScope { advertised: AdvertisedScope::Own, ..ViewScope::SESSIONS };

/// With at most `rows_max` rows of each table that grows with the cluster.
pub(super) async fn overview(rows_max: usize, observer: &Observer) -> Answer {
    match observer.look(SCOPE, |snapshot| Overview::of(snapshot, rows_max)).await {
        Ok(overview) => Answer::Overview(Box::new(overview)),
        Err(error) => Answer::Error(error.to_string()),
    }
}
