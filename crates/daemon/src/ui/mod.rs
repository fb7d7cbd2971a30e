//! The looking glass: one page for people, and birdwatcher's JSON, at `--ui-listen`.
//!
//! ```text
//!  backend changed, or 1 s ─► painter ─► Sight (watch: the latest alone) ─► each viewer: the parts that are new to it
//!                                             └─► the page
//!  search, JSON ─► one look at a time ─► backend
//! ```
//!
//! Read-only, and without a login: whoever reaches the port may read. What it costs is bounded by the state of the node, not by
//! the number of viewers: it is looked at and rendered once for all, and a viewer that does not read skips what it missed.
//! Content is from the crate `looking-glass`; knows no rule. Called by `node`.

mod body;
mod looks;
mod painter;
mod reply;
mod server;
mod sight;
mod writing;

use std::convert::Infallible;

use tracing::info;

use crate::admin::Observer;
use crate::http_server::HttpListen;

/// Serves until it is dropped.
pub(crate) async fn serve(listen: HttpListen, observer: Observer) {
    let Some(listener) = listen.bind_patiently("looking glass", "--ui-listen").await else {
        return;
    };
    info!(%listen, option = "--ui-listen", "serving the looking glass, without a login");
    let (publish, sights) = sight::channel();
    let painting = painter::paint(observer.clone(), publish);
    let serving = server::serve(&listener, sights, observer);
    let _: (Infallible, Infallible) = tokio::join!(painting, serving);
}
