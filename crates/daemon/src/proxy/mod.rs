//! `fairway proxy`: the service proxy of this node, from files to the kernel.
//!
//! ```text
//!  files ─► catalog ─► planner ─► reconciler ◄─► data path (IPVS, packet filter, our interface)
//! ```
//!
//! One loop, on the main thread of a process that does nothing else: a call to the kernel holds up nobody. Decides
//! nothing: what is wanted is for `fairway_proxy`. When it ends, the kernel keeps what it has.

mod earlier_proxy;

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::time::Duration;

use fairway_dataplane::nftables::PodDetection;
use fairway_dataplane::{DataPath, DataPathError, FilterOptions, sysctls};
use fairway_ground::{Prefix, printable};
use fairway_model::{LocalDetection, Node, Object};
use fairway_proxy::{Place, Planner, RealServerPlace, Reconciler, ReconcilerOptions};
use fairway_resources::{BackendKind, Catalog, Finding};
use tokio::signal::unix::{SignalKind, signal};
use tokio::time::{MissedTickBehavior, interval, sleep};
use tracing::{info, warn};

use crate::host::Clock;
use crate::source::{FileBatch, FileSource, FileSourceError, nothing_to_read};

/// How often the kernel is read: what others removed is back after that.
const AUDIT_INTERVAL: Duration = Duration::from_secs(30);
/// How often the connections of leaving Pods are counted.
const IDLE_INTERVAL: Duration = Duration::from_secs(10);
/// The name of the record in the run directory.
const RECORD: &str = "proxy-servers";
/// The wait where nothing is to be done without a change.
const NEVER: Duration = Duration::from_secs(24 * 60 * 60);

/// The options of `fairway proxy`.
#[derive(Debug, Clone)]
pub struct ProxyOptions {
    /// Files and folders with Services, EndpointSlices and Nodes.
    pub config: Vec<PathBuf>,
    /// The node.
    pub node: String,
    /// Where the record of virtual servers is; it must not outlive a reboot.
    pub run_dir: PathBuf,
    /// The bit of a packet's mark by which its source address is replaced.
    pub masquerade_bit: u8,
    /// How long connections to an endpoint that has left may go on.
    pub drain_limit: Duration,
    /// Whether ARP is answered only on the interface that has an address.
    pub strict_arp: bool,
}

/// Why the proxy cannot start, or ends.
#[derive(Debug, thiserror::Error)]
pub enum ProxyError {
    /// A path that cannot be read or watched.
    #[error(transparent)]
    Source(#[from] FileSourceError),
    /// The kernel.
    #[error(transparent)]
    DataPath(#[from] DataPathError),
    /// Another proxy.
    #[error("{0}")]
    AnotherProxy(String),
    /// The run directory.
    #[error("run directory {path}: {error}")]
    RunDirectory {
        /// Where it is.
        path: String,
        /// What is wrong.
        error: std::io::Error,
    },
    /// Signals.
    #[error("cannot handle signals: {0}")]
    Signals(std::io::Error),
}

/// Runs until a signal ends it.
///
/// # Errors
/// It cannot start.
pub async fn run(options: ProxyOptions) -> Result<(), ProxyError> {
    if let Some(other) = earlier_proxy::running() {
        return Err(ProxyError::AnotherProxy(other));
    }
    std::fs::create_dir_all(&options.run_dir).map_err(|error| ProxyError::RunDirectory {
        path: options.run_dir.display().to_string(),
        error,
    })?;
    let (source, mut changes) = FileSource::start(&options.config, BTreeSet::new())?;
    for (folder, why) in nothing_to_read(&options.config) {
        warn!("{}: {}", printable(&folder), printable(&why));
    }
    let mut terminate = signal(SignalKind::terminate()).map_err(ProxyError::Signals)?;
    let mut interrupt = signal(SignalKind::interrupt()).map_err(ProxyError::Signals)?;
    let mut hangup = signal(SignalKind::hangup()).map_err(ProxyError::Signals)?;
    let mut proxy = Proxy::open(&options)?;
    let mut audits = interval(AUDIT_INTERVAL);
    let mut counts = interval(IDLE_INTERVAL);
    audits.set_missed_tick_behavior(MissedTickBehavior::Delay);
    counts.set_missed_tick_behavior(MissedTickBehavior::Delay);
    info!(node = options.node, "the service proxy is running");
    loop {
        let until = sleep(proxy.next_wait());
        tokio::select! {
            batch = changes.recv() => match batch {
                Some(batch) => proxy.files_changed(&batch),
                None => return Ok(()),
            },
            () = until => {}
            _ = audits.tick(), if proxy.is_complete => proxy.audit(),
            _ = counts.tick() => proxy.count_connections(),
            _ = hangup.recv() => source.reread(),
            _ = terminate.recv() => break,
            _ = interrupt.recv() => break,
        }
        proxy.work();
    }
    info!("the service proxy ends; the kernel keeps its virtual servers, filter and addresses");
    Ok(())
}

struct Proxy {
    options: ProxyOptions,
    clock: Clock,
    catalog: Catalog,
    planner: Planner,
    reconciler: Reconciler,
    data_path: DataPath,
    /// As its Node object describes it.
    node: Node,
    /// Findings and faults that were reported.
    reported: BTreeSet<String>,
    /// An earlier run has left virtual servers.
    has_earlier: bool,
    /// All files have been read.
    is_complete: bool,
}

impl Proxy {
    fn open(options: &ProxyOptions) -> Result<Self, ProxyError> {
        let filter = filter_options(&LocalDetection::Unknown, &Place::default(), options);
        let record = options.run_dir.join(RECORD);
        let (data_path, earlier) = DataPath::open(filter, &record)?;
        apply_sysctls(options.strict_arp);
        let reconciler_options =
            ReconcilerOptions { drain_limit: options.drain_limit, ..ReconcilerOptions::default() };
        let node = Node::assumed(&options.node, Vec::new());
        Ok(Self {
            options: options.clone(),
            clock: Clock::start(),
            catalog: Catalog::for_backend(BackendKind::Proxy),
            planner: Planner::new(Place::of(&node)),
            has_earlier: earlier.as_ref().is_some_and(|it| !it.is_empty()),
            reconciler: Reconciler::new(reconciler_options, earlier),
            data_path,
            node,
            reported: BTreeSet::new(),
            is_complete: false,
        })
    }

    fn files_changed(&mut self, batch: &FileBatch) {
        for change in &batch.changes {
            change.apply_to(&mut self.catalog);
        }
        let resolution = self.catalog.resolve_changes();
        self.report(&resolution.findings);
        for (key, object) in &resolution.objects {
            if key.kind == fairway_model::Kind::Node && key.name.name == self.options.node {
                self.node = match object.as_deref() {
                    Some(Object::Node(node)) => node.clone(),
                    _ => Node::assumed(&self.options.node, Vec::new()),
                };
            }
        }
        let touched = self.planner.follow(resolution.objects);
        self.reconciler.touch(&touched);
        self.follow_place();
        if !self.is_complete {
            let mut paths = self.options.config.iter().map(|path| path.display().to_string());
            self.is_complete = !paths.any(|path| self.catalog.is_unreadable(&path));
            // A lost volume looks like this, and so does a folder that is filled later.
            if self.is_complete && self.has_earlier && self.planner.wanted().entries.is_empty() {
                self.is_complete = false;
                self.say("the files have no Service, and an earlier run has served some: what the kernel has stays \
                          until there is one".to_owned());
            }
            self.audit();
            if self.is_complete {
                self.reconciler.complete(self.planner.wanted());
            }
        }
    }

    /// The node as it is now: its addresses are those of its kernel, the InternalIPs of its object first.
    fn follow_place(&mut self) {
        let mut place = Place::of(&self.node);
        match self.data_path.node_addresses() {
            Ok(addresses) => {
                place.addresses.retain(|it| addresses.contains(it));
                for address in addresses {
                    if !place.addresses.contains(&address) {
                        place.addresses.push(address);
                    }
                }
            }
            Err(error) => self.say(format!("the addresses of the node cannot be read: {error}")),
        }
        let touched = self.planner.move_to(place);
        self.reconciler.touch(&touched);
        let detection = &self.planner.configuration().local_detection;
        let filter = filter_options(detection, self.planner.place(), &self.options);
        if self.data_path.follow_pods(filter) && self.is_complete {
            self.observe();
        }
    }

    /// Reads the kernel: what others changed is mended.
    fn audit(&mut self) {
        self.follow_place();
        self.observe();
    }

    fn observe(&mut self) {
        match self.data_path.observe() {
            Ok(kernel) => self.reconciler.observe(kernel, self.planner.wanted()),
            Err(error) => self.say(error.to_string()),
        }
    }

    fn count_connections(&mut self) {
        let leaving: BTreeSet<RealServerPlace> = self.reconciler.draining().collect();
        if leaving.is_empty() {
            return;
        }
        match self.data_path.idle(&leaving) {
            Ok(idle) => self.reconciler.observe_idle(idle),
            Err(error) => self.say(error.to_string()),
        }
    }

    /// Until nothing is left to do now, or for so long that signals and files have waited enough.
    fn work(&mut self) {
        /// More than a cold start of a hundred thousand Services takes.
        const BATCHES_MAX: usize = 10_000;
        for _ in 0..BATCHES_MAX {
            let now = self.clock.now().monotonic;
            let operations = self.reconciler.next_batch(self.planner.wanted(), now).to_vec();
            if operations.is_empty() {
                break;
            }
            let outcomes = self.data_path.perform(&operations);
            self.reconciler.finish(outcomes, self.planner.wanted(), self.clock.now().monotonic);
        }
        let faults: Vec<String> =
            self.reconciler.faults().map(|(at, why)| format!("{at}: {why}")).collect();
        let foreign = self.reconciler.foreign().iter().map(|at| {
            format!("virtual server {at} is not Fairway's; remove it, and Fairway makes its own")
        });
        let conflicts = self.planner.conflicts().map(|it| {
            let (waiting, holder) = (it.waiting, it.holder);
            format!(
                "Service {waiting} does not have {}, which Service {holder} has",
                it.virtual_address
            )
        });
        let all: Vec<String> = faults.into_iter().chain(foreign).chain(conflicts).collect();
        all.into_iter().for_each(|text| self.say(text));
    }

    fn next_wait(&self) -> Duration {
        let now = self.clock.now().monotonic;
        self.reconciler.next_deadline(now).map_or(NEVER, |at| at.since(now))
    }

    fn report(&mut self, findings: &[Finding]) {
        for finding in findings {
            self.say(finding.to_string());
        }
    }

    /// Says a thing once in a while, however often it is found.
    fn say(&mut self, text: String) {
        /// A cluster with more faults has one cause.
        const REPORTED_MAX: usize = 1_000;
        if self.reported.len() >= REPORTED_MAX {
            self.reported.clear();
        }
        let text = printable(&text).into_owned();
        if self.reported.insert(text.clone()) {
            warn!("{text}");
        }
    }
}

fn filter_options(
    detection: &LocalDetection,
    place: &Place,
    options: &ProxyOptions,
) -> FilterOptions {
    let (pods, pod_networks): (_, Vec<Prefix>) = match detection {
        LocalDetection::Unknown => (PodDetection::Unknown, Vec::new()),
        LocalDetection::ClusterNetworks(networks) => (PodDetection::Networks, networks.clone()),
        LocalDetection::NodeNetworks => (PodDetection::Networks, place.pod_networks.clone()),
        LocalDetection::Bridge(name) => (PodDetection::Interface(name.clone()), Vec::new()),
        LocalDetection::InterfacePrefix(prefix) => {
            (PodDetection::InterfacePrefix(prefix.clone()), Vec::new())
        }
    };
    let mark = 1_u32.checked_shl(options.masquerade_bit.into()).unwrap_or(1 << 14);
    FilterOptions { pods, pod_networks, mark }
}

/// Sets what packets need, and says what was changed.
fn apply_sysctls(strict_arp: bool) {
    for sysctl in sysctls(strict_arp) {
        match sysctl.apply() {
            Ok(None) => {}
            Ok(Some(change)) => {
                let (name, before, after) = (sysctl.name, change.before, sysctl.value());
                info!("{name} was {before} and is {after} now: {}", sysctl.reason);
            }
            Err(error) => {
                let (name, value) = (sysctl.name, sysctl.value());
                warn!("{name} cannot be set to {value}: {error}; {}", sysctl.reason);
            }
        }
    }
}
