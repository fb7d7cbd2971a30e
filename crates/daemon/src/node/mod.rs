//! The loop of a daemon on a node, wherever its resources come from.
//!
//! ```text
//!  Source: files or a cluster ──► Announcing ──► Backend
//!     ▲ event, tick                   │ drain state, history, disk
//!     └──── run ◄── admin socket, readers, signals, service manager
//! ```
//!
//! [`Source`] is all in which `fairway run` and `fairway speaker` differ. Woken by its events, by time, by
//! readers, by orders and by signals, the loop acts at once. The wire comes first, then the disk: a route does
//! not wait for a flush. Decides nothing.

mod announcing;
mod answering;
mod followed_proxy;
mod joined;
mod pod_blocks;
mod recordings;

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::net::IpAddr;
use std::sync::Arc;

use fairway_ground::{Abstention, Instant, Prefix};
use fairway_model::DeliveryUpdate;
use fairway_node::drain::Moment;
use fairway_seam::{Backend, Leave};
use tokio::net::UnixListener;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;
use tracing::info;

use crate::admin::{self, Observer, ReloadOrder, SocketFile, vty};
use crate::host::{self, Clock, Enquirer, LockError, Published};
use crate::members::KeyFileError;
use crate::metrics::{ClientCounters, NodeMetrics, PodAddressCounters, Secured, Server};
use crate::node_api::{self, NodeApiOptions};
use crate::options::{HostOptions, Unsaid};
use crate::service::{Reading, Service};
use crate::ui::LookingGlass;

pub(crate) use announcing::Announcing;
use followed_proxy::FollowedProxy;
use joined::Joined;
use pod_blocks::PodBlocks;

/// Why the loop cannot start, or ends.
#[derive(Debug, thiserror::Error)]
pub enum NodeError {
    /// The admin socket, or one of FRR's.
    #[error(transparent)]
    Admin(#[from] admin::SocketError),
    /// The backend is gone because of an internal error: the service manager should restart the daemon.
    #[error("the BGP backend ended unexpectedly")]
    Backend,
    /// The key that members share.
    #[error(transparent)]
    Members(#[from] KeyFileError),
    /// The state directory.
    #[error(transparent)]
    State(#[from] LockError),
    /// Signals.
    #[error("cannot handle signals")]
    Signals(#[from] std::io::Error),
}

/// The members that own layer 2 addresses, each with what it is no candidate for.
pub(crate) type Owners = BTreeMap<String, BTreeSet<Abstention>>;

/// Where resources come from, and what they lead to.
pub(crate) trait Source {
    /// Something arrived.
    type Event;

    /// The next event; `None` when no more can arrive, which ends the daemon. Cancel-safe.
    fn event(&mut self) -> impl Future<Output = Option<Self::Event>>;

    /// Handles one. Returns how far reading has come.
    fn handle(&mut self, now: Moment, event: Self::Event, node: &mut Announcing) -> Reading;

    /// Carries out what is pending, before the loop waits.
    fn act(&mut self, now: Moment, node: &mut Announcing);

    /// When [`Self::tick`] is due, at the latest.
    fn next_deadline(&self, now: Instant) -> Option<Instant>;

    /// Acts on what is due.
    fn tick(&mut self, now: Moment, node: &mut Announcing);

    /// The members that own layer 2 addresses now. Called only where there are members.
    fn follow_members(&mut self, now: Moment, owners: &Owners, node: &mut Announcing);

    /// The names of the interfaces that layer 2 can answer on. Called only where there are members.
    fn follow_interfaces(&mut self, now: Moment, names: &BTreeSet<String>, node: &mut Announcing);

    /// What the service proxy of this machine says that it delivers: from the first call on, an address is announced only
    /// while it does. Called only where one is followed.
    fn follow_deliveries(&mut self, now: Moment, update: DeliveryUpdate, node: &mut Announcing);

    /// The prefixes of Pods that this node has: none, where it does not give them addresses.
    fn follow_pod_blocks(
        &mut self,
        now: Moment,
        blocks: &BTreeMap<Prefix, String>,
        node: &mut Announcing,
    );

    /// What this node is no candidate for on layer 2.
    fn abstentions(&self) -> &BTreeSet<Abstention>;

    /// Whether it is known what this node is to answer for.
    fn has_plan(&self, node: &Announcing) -> bool;

    /// The addresses of the other members, where the source knows them.
    fn member_addresses(&self) -> Option<&BTreeSet<IpAddr>>;

    /// Reads everything again (SIGHUP). Returns whether there is anything to read.
    fn reread(&mut self) -> bool;

    /// The same by order of a client. Returns what is done, or why nothing is.
    fn reload(&mut self, order: ReloadOrder) -> Result<String, String>;

    /// The state for `show`.
    fn describe(&self, node: &Announcing) -> Published;

    /// Saves what the next start continues from. Returns at once.
    fn save(&self, node: &Announcing);

    /// Whether the daemon leaves for a restart or for good, if the node is in service.
    fn how_to_leave(&self) -> impl Future<Output = Leave>;
}

/// What a daemon takes before it reads anything, so that a second one ends before it takes a port or touches a
/// file.
pub(crate) struct Claimed {
    terminate: Signal,
    interrupt: Signal,
    hangup: Signal,
    socket: UnixListener,
    socket_file: SocketFile,
    vty: Option<vty::Sockets>,
    lock: Option<File>,
}

impl Claimed {
    /// Takes the admin socket, FRR's sockets and the state directory.
    pub(crate) fn new(options: &HostOptions) -> Result<Self, NodeError> {
        let terminate = signal(SignalKind::terminate())?;
        let interrupt = signal(SignalKind::interrupt())?;
        let hangup = signal(SignalKind::hangup())?;
        host::outlive_signals()?;
        let (socket, socket_file) = admin::listen(&options.socket, options.socket_mode)?;
        let vty = options.vty_sockets()?;
        let lock = host::saver::lock(&options.state_dir)?;
        host::raise_descriptor_limit();
        Ok(Self { terminate, interrupt, hangup, socket, socket_file, vty, lock })
    }
}

/// How a daemon differs in what it counts and where it listens by default.
pub(crate) struct Kind {
    /// Where BGP connections are accepted if no option says.
    pub(crate) unsaid: Unsaid,
    /// Counts of what the source reads.
    pub(crate) counters: Arc<ClientCounters>,
    /// How metrics are served with TLS, if they are.
    pub(crate) secured: Option<Secured>,
    /// This daemon assigns addresses, and has metrics of the pools.
    pub(crate) assigns_addresses: bool,
    /// Where controllers are answered, in a cluster.
    pub(crate) node_api: Option<NodeApiOptions>,
    /// What is known of the addresses of Pods, where the node gives them.
    pub(crate) pod_addresses: Option<PodAddresses>,
}

/// See [`Kind::pod_addresses`].
pub(crate) struct PodAddresses {
    /// The prefixes that this node has.
    pub(crate) blocks: watch::Receiver<BTreeMap<Prefix, String>>,
    /// For the metrics.
    pub(crate) counters: Arc<PodAddressCounters>,
}

fn save(source: &impl Source, node: &mut Announcing) {
    source.save(node);
    node.save();
    node.saving.done();
}

fn reread(source: &mut impl Source, service: &mut Service) {
    if source.reread() {
        service.reloading();
    }
}

/// Runs until a signal ends it. `start` makes the source, and logs that the daemon runs.
pub(crate) async fn run<S: Source>(
    options: &HostOptions,
    claimed: Claimed,
    kind: Kind,
    start: impl FnOnce(&mut Announcing, &Arc<dyn Backend>, Clock) -> S,
) -> Result<(), NodeError> {
    let Claimed { mut terminate, mut interrupt, mut hangup, socket, socket_file, vty, lock } =
        claimed;
    let earlier = host::earlier_run(&options.state_dir);
    let (mut proxy, said) = FollowedProxy::start(options, earlier.as_ref()).await;
    let backend = options.start_backend(kind.unsaid, earlier.clone());
    let clock = Clock::start();
    let counters = Arc::clone(&kind.counters);
    let mut node = Announcing::new(options, Arc::clone(&backend), earlier, counters, clock.now());
    let mut source = start(&mut node, &backend, clock);
    for said in said {
        source.follow_deliveries(clock.now(), said, &mut node);
    }
    let mut pod_blocks = PodBlocks::new(kind.pod_addresses.as_ref().map(|it| it.blocks.clone()));
    source.follow_pod_blocks(clock.now(), &pod_blocks.first(), &mut node);
    let mut joined = Joined::start(options, &mut node)?;
    joined.tell(clock.now(), &mut source, &mut node);
    let (enquirer, mut enquiries) = Enquirer::new();
    let mut service = Service::start(enquirer.clone(), Arc::clone(&backend));
    let measured = measured(options, &kind, &enquirer, &backend);
    // Held to the end, as are FRR's sockets: dropping it closes the port.
    let _metrics = Server::start(options.metrics_listen, kind.secured, kind.counters, measured);
    let observer = Observer::new(enquirer, Arc::clone(&backend));
    let _vty = vty.map(|sockets| sockets.serve(&observer));
    let (give_orders, mut orders) = mpsc::channel(admin::ORDERS_MAX);
    let mut clients = serve_clients(socket, kind.node_api, observer.clone(), give_orders);
    // Held to the end as well.
    let _looking_glass = LookingGlass::start(options.ui_listen, observer);
    clients.spawn(recordings::keep(Arc::clone(&backend), options.state_dir.clone()));
    loop {
        source.act(clock.now(), &mut node);
        joined.follow(&source, &node, proxy.is_known());
        let deadlines = [node.next_deadline(), source.next_deadline(clock.now().monotonic)];
        let deadline = deadlines.into_iter().flatten().min();
        // Cancel-safe: what arrives is received whole or not at all.
        tokio::select! {
            event = source.event() => {
                let Some(event) = event else { break };
                service.read(source.handle(clock.now(), event, &mut node));
            }
            () = service.answer() => {}
            said = proxy.said() => source.follow_deliveries(clock.now(), said, &mut node),
            blocks = pod_blocks.changed() => source.follow_pod_blocks(clock.now(), &blocks, &mut node),
            () = joined.changed() => joined.tell(clock.now(), &mut source, &mut node),
            // The reader may have disconnected.
            Some(question) = enquiries.recv() => {
                drop(question.send(node.published(|node| source.describe(node))));
            }
            Some(order) = orders.recv() => {
                obey(order, clock.now(), &mut source, &mut node, &mut service);
            }
            () = clock.wait_until(deadline) => {
                source.tick(clock.now(), &mut node);
                node.tick(clock.now());
            }
            () = node.saving.due() => save(&source, &mut node),
            _ = hangup.recv() => reread(&mut source, &mut service),
            () = backend.stopped() => return Err(NodeError::Backend),
            _ = terminate.recv() => break,
            _ = interrupt.recv() => break,
        }
    }
    info!("leaving");
    drop(enquiries);
    let told = service.leaving();
    tokio::join!(leave(&source, node, &joined, &*backend), proxy.finish());
    told.await;
    // Those that ask meanwhile are told that the daemon stops.
    clients.abort_all();
    drop((socket_file, lock));
    Ok(())
}

fn measured(
    options: &HostOptions,
    kind: &Kind,
    enquirer: &Enquirer,
    backend: &Arc<dyn Backend>,
) -> NodeMetrics {
    let counters = Arc::clone(&kind.counters);
    let measured = NodeMetrics::new(enquirer.clone(), Arc::clone(backend), counters);
    let measured = measured.labelled(options.peer_label);
    let pod_addresses = kind.pod_addresses.as_ref().map(|it| Arc::clone(&it.counters));
    let measured = measured.with_pod_addresses(pod_addresses);
    if kind.assigns_addresses { measured.with_pools() } else { measured }
}

/// Answers those who ask this daemon: on its socket, and controllers.
fn serve_clients(
    socket: UnixListener,
    node_api: Option<NodeApiOptions>,
    observer: Observer,
    orders: mpsc::Sender<admin::Order>,
) -> JoinSet<()> {
    let mut clients = JoinSet::new();
    if let Some(options) = node_api {
        clients.spawn(node_api::serve(options, observer.clone(), orders.clone()));
    }
    clients.spawn(admin::serve(socket, observer, orders));
    clients
}

/// Carries out an order of a client.
fn obey<S: Source>(
    order: admin::Order,
    now: Moment,
    source: &mut S,
    node: &mut Announcing,
    service: &mut Service,
) {
    match order {
        admin::Order::Reload(order) => {
            let done = source.reload(order.what);
            if done.is_ok() {
                service.reloading();
            }
            order.done(done);
        }
        admin::Order::Drain(order) => {
            let step = node.obey(now, order.what);
            // An order that a crash would undo is not complete: the answer waits for the disk, the loop
            // does not.
            let is_kept = node.keeps_order();
            tokio::spawn(async move { order.done((step, is_kept.await)) });
        }
    }
}

/// The last state goes to disk, the sessions end, and other members take addresses over.
async fn leave(source: &impl Source, node: Announcing, joined: &Joined, backend: &dyn Backend) {
    let end_sessions = async {
        let leave = match node.how_to_leave() {
            Leave::ForGood => Leave::ForGood,
            Leave::ForRestart => source.how_to_leave().await,
        };
        source.save(&node);
        node.save();
        backend.shutdown(leave).await;
    };
    // Members do not wait for an API server that does not answer.
    tokio::join!(joined.leave(&node), end_sessions);
    node.finish().await;
}
