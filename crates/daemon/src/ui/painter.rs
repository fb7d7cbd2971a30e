//! Looks at the node when something changes, and makes the parts of the page, once for all viewers.

use std::convert::Infallible;
use std::time::Duration;

use fairway_looking_glass::Picture;
use fairway_show::overview::Overview;
use tokio::sync::watch;
use tokio::time::{Instant, sleep, timeout};
use tracing::{debug, error};

use super::sight::Sight;
use crate::admin::{self, Observer};

/// Pools, the segment and Services without a session change without the backend.
const LOOK_INTERVAL_MAX: Duration = Duration::from_secs(1);
/// From one look to the next, at least: faster than anybody reads.
const LOOK_INTERVAL_MIN: Duration = Duration::from_millis(200);
/// And so many times as long as it took: it costs no more than a twentieth of the time of a core, whatever the size of the node.
const LOOK_SHARE: u32 = 20;

/// Publishes what changes, until it is dropped.
pub(super) async fn paint(observer: Observer, publish: watch::Sender<Sight>) -> Infallible {
    let mut picture = Picture::default();
    let mut seen = 0;
    loop {
        let began = Instant::now();
        let look = observer.look(admin::OVERVIEW_SCOPE, |it| Overview::of(it, Picture::ROWS_MAX));
        match look.await {
            Ok(overview) => show(&mut picture, overview, &publish),
            Err(error) => debug!(%error, "the looking glass cannot look"),
        }
        sleep(LOOK_INTERVAL_MIN.max(began.elapsed().saturating_mul(LOOK_SHARE))).await;
        if let Ok(changed) = timeout(LOOK_INTERVAL_MAX, observer.changed(seen)).await {
            seen = changed;
        }
    }
}

fn show(picture: &mut Picture, overview: Overview, publish: &watch::Sender<Sight>) {
    let fragments = match picture.follow(&overview) {
        Ok(fragments) => fragments,
        Err(error) => {
            error!(%error, "this is a fault of Fairway");
            return;
        }
    };
    publish.send_if_modified(|sight| {
        sight.at_epoch_seconds = overview.now_epoch_seconds;
        sight.node = overview.node;
        sight.follow(fragments)
    });
}
