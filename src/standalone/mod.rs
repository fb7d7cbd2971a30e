//! `fairway run`: all roles in one process, resources from files.
//!
//! One loop owns the catalog, the index, the allocator and the plan. It is woken by file changes
//! and signals, acts at once, and publishes what it decided for the admin socket to show. The
//! wire comes first, then the disk: a route does not wait for a flush.

pub(crate) mod clock;
pub(crate) mod daemon;
pub(crate) mod machine;
mod options;
mod published;
pub(crate) mod saver;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use fairway_sessions::backend::Backend;
use fairway_sessions::io::NativeBackend;
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep_until};
use tracing::{debug, error, info};

use crate::admin::{self, Observer};
use crate::service::Service;
use crate::source::{FileSource, FileSourceError};

use clock::Clock;
use daemon::Daemon;

pub(crate) use clock::epoch_seconds;
pub(crate) use machine::host_name;
pub(crate) use options::listen_in_cluster;
pub use options::{ListenOption, Options};
pub use published::{Enquirer, Published};
pub use saver::LockError;

/// What keeps the daemon from starting.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// A path that cannot be read or watched.
    #[error(transparent)]
    Source(#[from] FileSourceError),
    /// The admin socket, or one of FRR's.
    #[error(transparent)]
    Admin(#[from] admin::SocketError),
    /// The backend is gone, through a fault of ours: whoever watches us should start us again.
    #[error("the BGP backend ended unexpectedly")]
    Backend,
    /// The state directory.
    #[error(transparent)]
    State(#[from] LockError),
    /// Signals.
    #[error("cannot handle signals")]
    Signals(#[from] std::io::Error),
}

/// What the files say is kept for a restart with broken files; it may be large, and is not written
/// for every change of many.
const SAVE_INTERVAL: Duration = Duration::from_secs(1);

/// When it is to be written.
#[derive(Debug, Default)]
pub(crate) struct Saving {
    at: Option<Instant>,
    last: Option<Instant>,
}

impl Saving {
    /// Something changed.
    pub(crate) fn wanted(&mut self) {
        let earliest = self.last.map(|last| last + SAVE_INTERVAL);
        self.at = self.at.or(earliest.or_else(|| Some(Instant::now())));
    }

    /// Waits until it is time; for ever when nothing is wanted. Cancel-safe.
    pub(crate) async fn due(&self) {
        match self.at {
            Some(at) => sleep_until(at).await,
            None => std::future::pending().await,
        }
    }

    pub(crate) fn done(&mut self) {
        self.at = None;
        self.last = Some(Instant::now());
    }
}

/// A socket for each neighbour and some to spare: what the system allows, not what it gives at
/// first.
pub(crate) fn raise_descriptor_limit() {
    if let Ok((soft, hard)) = getrlimit(Resource::RLIMIT_NOFILE)
        && soft < hard
        && let Err(error) = setrlimit(Resource::RLIMIT_NOFILE, hard, hard)
    {
        debug!(%error, soft, "the number of open files stays as it is");
    }
}

fn log_start(options: &Options) {
    info!(
        node = options.node,
        version = env!("CARGO_PKG_VERSION"),
        commit = env!("FAIRWAY_COMMIT"),
        socket = %options.socket.display(),
        "fairway is running"
    );
}

/// Waits until everything that is gone in `generation` is withdrawn; for ever when nobody asks.
/// Cancel-safe.
async fn withdrawn(backend: &dyn Backend, generation: Option<u64>) {
    match generation {
        Some(generation) => backend.withdrawn(generation).await,
        None => std::future::pending().await,
    }
}

/// FRR's sockets, where they are asked for.
pub(crate) fn vty_sockets(
    directory: Option<&Path>,
    mode: admin::SocketMode,
) -> Result<Option<admin::vty::Sockets>, admin::SocketError> {
    directory.map(|it| admin::vty::Sockets::open(it, mode)).transpose()
}

/// Runs until a signal ends it.
pub async fn run(options: Options) -> Result<(), StartError> {
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut hangup = signal(SignalKind::hangup())?;
    // First, so that a second daemon ends before it takes a port or touches a file.
    let (socket, _socket_file) = admin::listen(&options.socket, options.socket_mode)?;
    let vty = vty_sockets(options.vty_dir.as_deref(), options.socket_mode)?;
    let _lock = saver::lock(&options.state_dir)?;
    raise_descriptor_limit();
    let (source, mut changes) = FileSource::start(&options.config)?;
    let earlier = daemon::earlier_run(&options.state_dir);
    let (listen, seed) = (options.listen(), machine::seed());
    let backend: Arc<dyn Backend> = Arc::new(NativeBackend::start(listen, seed, earlier.clone()));
    let clock = Clock::start();
    let mut daemon = Daemon::new(&options, Arc::clone(&backend), earlier, clock.now());
    let (enquirer, mut enquiries) = Enquirer::new();
    let mut service = Service::start(enquirer.clone(), Arc::clone(&backend));
    // Held to the end, as are FRR's sockets: dropping it closes the port.
    let _metrics = daemon.serve_metrics(options.metrics_listen, enquirer.clone());
    let observer = Observer::new(enquirer, Arc::clone(&backend));
    let _vty = vty.map(|sockets| sockets.serve(&observer));
    let (give_orders, mut orders) = mpsc::channel(admin::ORDERS_MAX);
    let admin = tokio::spawn(admin::serve(socket, observer, give_orders));
    log_start(&options);
    let mut saving = Saving::default();
    loop {
        // Cancel-safe: a batch of changes is received whole or not at all.
        tokio::select! {
            batch = changes.recv() => {
                let Some(batch) = batch else {
                    break error!("the file watcher ended");
                };
                daemon.files_changed(clock.now(), &batch);
                saving.wanted();
                service.files_changed(&batch.changes);
            }
            () = service.answer() => {}
            // Who asked may have gone.
            Some(question) = enquiries.recv() => drop(question.send(daemon.published())),
            Some(order) = orders.recv() => {
                let step = daemon.obey(clock.now(), order.what);
                // A success that a crash undoes is none: the answer waits for the disk, the loop
                // does not.
                let is_kept = daemon.keeps_order();
                tokio::spawn(async move { order.done(step, is_kept.await) });
            }
            () = clock.wait_until(daemon.next_deadline()) => {
                daemon.tick(clock.now());
            }
            () = withdrawn(&*backend, daemon.awaits_withdrawals()) => {
                daemon.withdrawn(clock.now());
                saving.wanted();
            }
            () = saving.due() => {
                daemon.save();
                saving.done();
            }
            _ = hangup.recv() => {
                info!("reading all files again");
                service.reloading();
                source.reread();
            }
            () = backend.stopped() => return Err(StartError::Backend),
            _ = terminate.recv() => break,
            _ = interrupt.recv() => break,
        }
    }
    info!("leaving");
    drop(enquiries);
    service.leaving();
    admin.abort();
    daemon.save();
    backend.shutdown(daemon.how_to_leave()).await;
    daemon.finish().await;
    Ok(())
}
