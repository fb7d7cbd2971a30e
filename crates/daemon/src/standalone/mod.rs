//! `fairway run`: all roles in one process, resources from files.
//!
//! One loop owns the catalog, the index, the allocator and the plan. It is woken by file changes and signals,
//! acts at once, and publishes its state for the admin socket. The wire comes first, then the disk: a route
//! does not wait for a flush.

mod daemon;

use std::path::PathBuf;
use std::sync::Arc;

use daemon::Daemon;
use fairway_seam::Backend;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc;
use tracing::{error, info};

use crate::admin::{self, Observer};
use crate::build_info;
use crate::host::{self, Clock, Enquirer, LockError, Saving};
use crate::options::{HostOptions, Unsaid};
use crate::service::Service;
use crate::source::{FileSource, FileSourceError};

/// The options of `fairway run`.
#[derive(Debug, Clone)]
pub struct Options {
    /// The options of every daemon on a node.
    pub host: HostOptions,
    /// Files and folders with resources.
    pub config: Vec<PathBuf>,
}

/// Why the daemon cannot start, or ends.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// A path that cannot be read or watched.
    #[error(transparent)]
    Source(#[from] FileSourceError),
    /// The admin socket, or one of FRR's.
    #[error(transparent)]
    Admin(#[from] admin::SocketError),
    /// The backend is gone because of an internal error: the service manager should restart the daemon.
    #[error("the BGP backend ended unexpectedly")]
    Backend,
    /// The state directory.
    #[error(transparent)]
    State(#[from] LockError),
    /// Signals.
    #[error("cannot handle signals")]
    Signals(#[from] std::io::Error),
}

fn log_start(options: &HostOptions) {
    info!(
        node = options.node,
        version = build_info::RELEASE,
        commit = build_info::commit(),
        socket = %options.socket.display(),
        "fairway is running"
    );
}

/// Waits until everything that is gone in `generation` is withdrawn; forever if there is no generation.
/// Cancel-safe.
async fn withdrawn(backend: &dyn Backend, generation: Option<u64>) {
    match generation {
        Some(generation) => backend.withdrawn(generation).await,
        None => std::future::pending().await,
    }
}

/// Runs until a signal ends it.
pub async fn run(Options { host: options, config }: Options) -> Result<(), StartError> {
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut hangup = signal(SignalKind::hangup())?;
    // First, so that a second daemon ends before it takes a port or touches a file.
    let (socket, _socket_file) = admin::listen(&options.socket, options.socket_mode)?;
    let vty = options.vty_sockets()?;
    let _lock = host::saver::lock(&options.state_dir)?;
    host::raise_descriptor_limit();
    let (source, mut changes) = FileSource::start(&config)?;
    let earlier = host::earlier_run(&options.state_dir);
    let backend = options.start_backend(Unsaid::Listen, earlier.clone());
    let clock = Clock::start();
    let mut daemon = Daemon::new(&options, &config, Arc::clone(&backend), earlier, clock.now());
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
            // The reader may have disconnected.
            Some(question) = enquiries.recv() => drop(question.send(daemon.published())),
            Some(order) = orders.recv() => {
                let step = daemon.obey(clock.now(), order.what);
                // An order that a crash would undo is not complete: the answer waits for the disk, the loop
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
