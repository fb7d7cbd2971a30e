//! The looking glass: one page for people, and birdwatcher's JSON, at `--ui-listen`.
//!
//! ```text
//!  backend changed, or 1 s ─► painter ─► Sight (watch: the latest alone) ─► each viewer: the parts that are new to it
//!                                             └─► the page
//!  search, JSON ─► one look at a time ─► backend
//! ```
//!
//! Read-only, and without a login: any client that reaches the port may read. What it costs is bounded by the state of the node, not by
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
use std::io;
use std::thread;

use tokio::sync::oneshot;
use tracing::{debug, error, info};

use crate::admin::Observer;
use crate::http_server::HttpListen;
use crate::spare_memory;

/// Of the thread, as in nice(1): what changes routes comes first.
const NICENESS: i32 = 10;

/// Serves until it is dropped.
pub(crate) struct LookingGlass {
    /// Dropping it ends the thread.
    _alive: oneshot::Sender<Infallible>,
}

impl LookingGlass {
    /// Starts serving, in a thread of its own, so that rendering and viewers delay no route. `None` for `none`.
    pub(crate) fn start(listen: HttpListen, observer: Observer) -> Option<Self> {
        if listen == HttpListen::Nowhere {
            return None;
        }
        let (alive, ended) = oneshot::channel();
        let thread = thread::Builder::new().name("looking-glass".to_owned());
        let started = thread.spawn(move || {
            if let Err(error) = run(listen, observer, ended) {
                error!(%error, "no looking glass: cannot start it");
            }
        });
        if let Err(error) = started {
            error!(%error, "no looking glass: cannot start a thread");
        }
        Some(Self { _alive: alive })
    }
}

fn run(
    listen: HttpListen,
    observer: Observer,
    ended: oneshot::Receiver<Infallible>,
) -> io::Result<()> {
    // Of this thread alone.
    if let Err(error) = rustix::process::setpriority_process(None, NICENESS) {
        debug!(%error, "the looking glass runs with the priority of the daemon");
    }
    let runtime = tokio::runtime::Builder::new_current_thread()
        .on_thread_park(spare_memory::thread_is_idle)
        .enable_all()
        .build()?;
    runtime.block_on(async {
        tokio::select! {
            () = serve(listen, observer) => {}
            _ = ended => {}
        }
    });
    Ok(())
}

async fn serve(listen: HttpListen, observer: Observer) {
    let Some(listener) = listen.bind_patiently("looking glass", "--ui-listen").await else {
        return;
    };
    info!(%listen, option = "--ui-listen", "serving the looking glass, without a login");
    let (publish, sights) = sight::channel();
    let painting = painter::paint(observer.clone(), publish);
    let serving = server::serve(&listener, sights, observer);
    let _: (Infallible, Infallible) = tokio::join!(painting, serving);
}
