//! `fairway proxy`: the service proxy of this node, from files or the API server to the kernel.
//!
//! ```text
//!  inputs ─► planner ─► reconciler ◄─► data path (IPVS, packet filter, our interface)
//!                └────► health (balancers), metrics
//! ```
//!
//! One loop, on the main thread of a process that does nothing else: a call to the kernel holds up nobody. Decides
//! nothing: what is wanted is for `fairway_proxy`. When it ends, the kernel keeps what it has.

mod assigned;
mod beginning;
mod earlier_proxy;
mod error;
mod events;
mod health;
mod inputs;
mod options;
mod rounds;
mod servers;
mod socket;
mod take_over;
mod telling;
mod traffic;
mod upkeep;
mod view;

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use fairway_dataplane::{DataPath, node_addresses, sysctls};
use fairway_ground::{Instant, printable};
use fairway_model::{Kind, Node, Object, ObjectChange, ObjectKey, ProxyConfiguration};
use fairway_proxy::{Place, Planner, Reconciler, ReconcilerOptions, Touched};
use tokio::signal::unix::{SignalKind, signal};
use tokio::time::{MissedTickBehavior, interval, sleep};
use tracing::{info, warn};

pub use error::ProxyError;
pub(crate) use socket::SOCKET;

pub use options::{Assigned, DetectionMode, Overrides, ProxyOptions, ServiceSource};

use crate::host::Clock;
use crate::metrics::{ProxyFacts, ProxyMetrics, ProxyQuestions, ServiceTraffic};
use events::FilterEvents;
use health::Health;
use inputs::{Inputs, Update};
use options::filter_options;
use rounds::RoundLog;
use servers::Servers;
use socket::{Asked, ProxySocket};
use telling::Telling;
use traffic::TrafficLog;

/// How often the kernel is read: what others removed is back after that.
const AUDIT_INTERVAL: Duration = Duration::from_secs(30);
/// How often the connections of leaving Pods are counted.
const IDLE_INTERVAL: Duration = Duration::from_secs(10);
/// The wait where nothing is to be done without a change.
const NEVER: Duration = Duration::from_secs(24 * 60 * 60);

/// Runs until a signal ends it.
///
/// # Errors
/// It cannot start.
pub async fn run(options: ProxyOptions) -> Result<(), ProxyError> {
    std::fs::create_dir_all(&options.run_dir).map_err(|error| ProxyError::RunDirectory {
        path: options.run_dir.display().to_string(),
        error,
    })?;
    let mut terminate = signal(SignalKind::terminate()).map_err(ProxyError::Signals)?;
    let mut interrupt = signal(SignalKind::interrupt()).map_err(ProxyError::Signals)?;
    let mut hangup = signal(SignalKind::hangup()).map_err(ProxyError::Signals)?;
    if DataPath::is_in_use(&options.run_dir) {
        return Err(ProxyError::InUse);
    }
    let mut socket = ProxySocket::open(&options.run_dir, options.socket_mode)?;
    let mut telling = Telling::default();
    tokio::select! {
        result = beginning::may_begin(&options, &mut socket, &mut telling) => result?,
        _ = terminate.recv() => return Ok(()),
        _ = interrupt.recv() => return Ok(()),
    }
    let mut proxy = Proxy::open(&options, telling)?;
    let mut events = FilterEvents::default();
    let mut inputs = Inputs::start(&options).await?;
    let (metrics, mut questions) = ProxyMetrics::new();
    let mut servers = Servers::new(metrics);
    let mut audits = interval(AUDIT_INTERVAL);
    let mut counts = interval(IDLE_INTERVAL);
    counts.set_missed_tick_behavior(MissedTickBehavior::Delay);
    info!(node = options.node, "the service proxy is running");
    proxy.is_eligible_without_node = !inputs.knows_nodes();
    let first = inputs.first();
    proxy.follow(first, &inputs);
    // Files, or the last known state of the cluster: they are enough to say what is delivered.
    proxy.is_begun = !proxy.planner.wanted().entries.is_empty();
    loop {
        proxy.health.turns();
        // Options that are not known yet may say that less is to be served.
        let is_ready = inputs.has_options();
        if is_ready {
            servers.start(&mut proxy, &inputs);
            proxy.work();
            // Not before: the kernel would write an event for each element of a cold start.
            if proxy.is_settled && !events.is_begun() {
                events.begin(&mut proxy.data_path);
            }
        }
        if std::mem::take(&mut proxy.has_read) {
            audits.reset();
        }
        let until = sleep(proxy.next_wait());
        tokio::select! {
            update = inputs.next() => match update {
                Some(update) => proxy.follow(update, &inputs),
                None => break,
            },
            () = until => {}
            _ = audits.tick(), if is_ready => proxy.audit(),
            () = events.removal(), if is_ready => proxy.audit(),
            _ = counts.tick() => proxy.count_connections(),
            () = answer(&mut questions, &mut proxy) => {}
            asked = socket.asked() => match asked {
                // The client may have disconnected.
                Asked::View(query, answer) => drop(answer.send(proxy.view(&query))),
                Asked::Deliveries(follower) => proxy.telling.add(follower),
            },
            _ = hangup.recv() => inputs.reread(),
            _ = terminate.recv() => break,
            _ = interrupt.recv() => break,
        }
    }
    info!("the service proxy ends; the kernel keeps its virtual servers, filter and addresses");
    inputs.finish().await;
    Ok(())
}

async fn answer(questions: &mut ProxyQuestions, proxy: &mut Proxy) {
    match questions.recv().await {
        Some(question) => question.answer(proxy.facts()),
        None => std::future::pending().await,
    }
}

struct Proxy {
    options: ProxyOptions,
    clock: Clock,
    planner: Planner,
    reconciler: Reconciler,
    data_path: DataPath,
    health: Health,
    rounds: RoundLog,
    /// As its Node object describes it.
    node: Node,
    has_node: bool,
    /// The planner knows where the node is.
    is_placed: bool,
    is_eligible_without_node: bool,
    /// Findings and faults that were reported.
    reported: BTreeSet<String>,
    /// An earlier run has left virtual servers.
    has_earlier: bool,
    /// All objects have been read.
    is_complete: bool,
    /// What kube-proxy has left is taken over, and was not removed yet.
    is_taking_over: bool,
    /// The kernel was read, or that was tried: the next audit is one interval later.
    has_read: bool,
    /// The last reading of the kernel has succeeded.
    is_observed: bool,
    /// Some Service has an IPv6 address.
    has_ipv6: bool,
    /// What was wrong in the last round.
    faulty: BTreeSet<String>,
    traffic: TrafficLog,
    telling: Telling,
    /// What is wanted is known, be it by an earlier state.
    is_begun: bool,
    /// The kernel was as wanted since then.
    is_settled: bool,
    /// When the work of the current round began.
    begun: Option<Instant>,
}

impl Proxy {
    fn open(options: &ProxyOptions, telling: Telling) -> Result<Self, ProxyError> {
        let configuration = options.overrides.over(ProxyConfiguration::default());
        let node = Node::assumed(&options.node, Vec::new());
        let mut planner = Planner::new(Place::of(&node));
        planner.follow([configured(configuration)]);
        let filter = filter_options(&planner);
        let (data_path, earlier) = DataPath::open(filter, &options.run_dir)?;
        let reconciler_options =
            ReconcilerOptions { drain_limit: options.drain_limit, ..ReconcilerOptions::default() };
        let clock = Clock::start();
        Ok(Self {
            options: options.clone(),
            clock,
            planner,
            has_earlier: earlier.as_ref().is_some_and(|it| !it.is_empty()),
            reconciler: Reconciler::new(reconciler_options, earlier),
            data_path,
            health: Health::new(clock),
            rounds: RoundLog::new(),
            node,
            has_node: false,
            is_placed: false,
            is_eligible_without_node: true,
            reported: BTreeSet::new(),
            is_complete: false,
            is_taking_over: options.takes_over,
            has_read: false,
            is_observed: false,
            has_ipv6: false,
            faulty: BTreeSet::new(),
            traffic: TrafficLog::default(),
            telling,
            is_begun: false,
            is_settled: false,
            begun: None,
        })
    }

    fn follow(&mut self, update: Update, inputs: &Inputs) {
        let Update { changes, findings } = update;
        for finding in findings {
            self.say(finding.to_string());
        }
        let is_complete_now = !self.is_complete && inputs.is_complete();
        if changes.is_empty() && !is_complete_now {
            return;
        }
        self.begun = Some(self.clock.now().monotonic);
        self.health.queued();
        self.rounds.changed(&changes);
        let before = self.planner.configuration().clone();
        let changes: Vec<ObjectChange> =
            changes.into_iter().filter_map(|it| self.own_change(it)).collect();
        // The addresses of the machine are many, ours among them: not for each change of a Service. And before Services are
        // planned, which all depend on where the node is.
        if !std::mem::replace(&mut self.is_placed, true) {
            self.follow_place();
        }
        let touched = self.planner.follow(changes);
        self.touch(&touched);
        let is_configured = *self.planner.configuration() != before;
        if is_configured && inputs.has_options() {
            self.follow_configuration();
        }
        if is_configured {
            self.follow_place();
        }
        // IPv6 addresses are behind all others.
        let has_ipv6 = self.planner.wanted().bound_addresses.last().is_some_and(IpAddr::is_ipv6);
        if has_ipv6 && !std::mem::replace(&mut self.has_ipv6, true) && inputs.has_options() {
            self.follow_configuration();
        }
        if !self.is_complete && inputs.has_options() {
            self.observe();
            self.complete(is_complete_now, inputs);
        }
    }

    /// The change as the planner takes it: options of the command line go over those of a file, and a Node is for us.
    fn own_change(&mut self, (key, object): ObjectChange) -> Option<ObjectChange> {
        match key.kind {
            Kind::Node if key.name.name != self.options.node => None,
            Kind::Node => {
                self.has_node = object.is_some();
                self.is_placed = false;
                self.node = match object.as_deref() {
                    Some(Object::Node(node)) => node.clone(),
                    _ => Node::assumed(&self.options.node, Vec::new()),
                };
                None
            }
            Kind::ConfigMap => {
                let configuration = match object.as_deref() {
                    Some(Object::ProxyConfiguration(it)) => (**it).clone(),
                    _ => ProxyConfiguration::default(),
                };
                Some(configured(self.options.overrides.over(configuration)))
            }
            _ => Some((key, object)),
        }
    }

    /// From now on what is not wanted may go, unless that would be everything.
    fn complete(&mut self, is_complete: bool, inputs: &Inputs) {
        if !is_complete {
            return;
        }
        let is_empty = self.planner.wanted().entries.is_empty();
        if is_empty && inputs.are_options_alone() {
            self.say(
                "the files of --config have a KubeProxyConfiguration and no Service: give it with --config-file, and \
                 Services come from the API server"
                    .to_owned(),
            );
        }
        // A lost volume looks like this, and so does a folder that is filled later.
        if is_empty && (self.has_earlier || self.is_taking_over) {
            self.say(
                "there is no Service, and an earlier proxy has served some: what the kernel has stays until there is one"
                    .to_owned(),
            );
            return;
        }
        if inputs.knows_nodes() && !self.has_node {
            self.say(format!(
                "the API server has no Node {}: no endpoint is local here, and /healthz answers 503; set --node",
                self.options.node
            ));
        }
        self.is_complete = true;
        self.is_begun = true;
        self.reconciler.complete(self.planner.wanted());
    }

    /// What follows from options apart from the plan.
    fn follow_configuration(&mut self) {
        let configuration = self.planner.configuration().clone();
        let is_strict = configuration.strict_arp.unwrap_or(true);
        if !is_strict {
            self.say(
                "strict ARP is off: every node answers ARP for the addresses of load balancers, and layer 2 announcing \
                 does not work; set ipvs.strictARP, or --ipvs-strict-arp true"
                    .to_owned(),
            );
        }
        self.apply_sysctls(is_strict);
        match self.data_path.set_timeouts(configuration.timeouts) {
            Ok(None) => {}
            Ok(Some((before, after))) => {
                info!(
                    "timeouts of IPVS (TCP, TCP after FIN, UDP; seconds) were {before} and are {after} now"
                );
            }
            Err(error) => self.say(format!("the timeouts of IPVS cannot be set: {error}")),
        }
        self.reconciler.exclude(configuration.excluded_networks);
    }

    /// Sets what packets need, and says what was changed.
    fn apply_sysctls(&mut self, strict_arp: bool) {
        for sysctl in sysctls(strict_arp, self.has_ipv6) {
            let (name, value, reason) = (sysctl.name, sysctl.value(), sysctl.reason);
            match self.data_path.set(sysctl) {
                Ok(None) => {}
                Ok(Some(before)) => info!("{name} was {before} and is {value} now: {reason}"),
                Err(error) => {
                    self.say(format!("{name} cannot be set to {value}: {error}; {reason}"))
                }
            }
        }
    }

    /// The node as it is now: its addresses are those of its kernel, the InternalIPs of its object first.
    fn follow_place(&mut self) {
        let is_eligible = match self.has_node {
            true => !self.node.is_to_be_deleted,
            false => self.is_eligible_without_node,
        };
        self.health.set_eligible(is_eligible);
        let mut place = Place::of(&self.node);
        match node_addresses() {
            Ok(addresses) => {
                place.addresses.retain(|it| addresses.contains(it));
                for address in addresses {
                    if !place.addresses.contains(&address) {
                        place.addresses.push(address);
                    }
                }
            }
            // They are taken for what they were.
            Err(error) => {
                place.addresses.clone_from(&self.planner.place().addresses);
                self.say(format!("the addresses of the node cannot be read: {error}"));
            }
        }
        let touched = self.planner.move_to(place);
        self.touch(&touched);
        if self.data_path.follow_pods(filter_options(&self.planner)) && self.is_complete {
            self.observe();
        }
    }

    fn touch(&mut self, touched: &Touched) {
        self.reconciler.touch(touched);
        self.telling.touch(touched);
        self.health.follow(&self.planner.wanted().health_checks);
    }

    /// Until nothing is left to do now, or for so long that signals and files have waited enough.
    fn work(&mut self) {
        /// More than a cold start of a hundred thousand Services takes.
        const BATCHES_MAX: usize = 10_000;
        let begun = self.begun.take().unwrap_or_else(|| self.clock.now().monotonic);
        for _ in 0..BATCHES_MAX {
            let now = self.clock.now().monotonic;
            let operations = self.reconciler.next_batch(self.planner.wanted(), now);
            if operations.is_empty() {
                // A kernel that cannot be read is not as wanted.
                if self.reconciler.has_seen() && self.is_observed {
                    self.health.updated();
                    self.is_settled |= self.is_begun;
                    if self.is_begun {
                        self.telling.tell(&self.planner, &self.reconciler, self.is_complete);
                    }
                    self.rounds.end(self.clock.now().monotonic.since(begun));
                    self.finish_take_over();
                }
                break;
            }
            self.rounds.performs(operations);
            let outcomes = self.data_path.perform(operations);
            self.telling.tried(operations);
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
        let now = faults.into_iter().chain(foreign).chain(conflicts);
        let now: BTreeSet<String> = now.map(|it| printable(&it).into_owned()).collect();
        for text in now.difference(&self.faulty) {
            warn!("{text}");
        }
        self.faulty = now;
    }

    fn next_wait(&self) -> Duration {
        let now = self.clock.now().monotonic;
        self.reconciler.next_deadline(now).map_or(NEVER, |at| at.since(now))
    }

    /// For metrics.
    fn facts(&mut self) -> ProxyFacts {
        let faults = self.reconciler.faults().count();
        ProxyFacts {
            without_local_endpoints: self.planner.without_local_endpoints(),
            filter_failures: self.data_path.filter_failures(),
            answers: [self.health.healthz().counts(), self.health.livez().counts()],
            servers: self.planner.wanted().entries.len(),
            draining: self.reconciler.draining().count(),
            faults: faults.saturating_add(self.reconciler.foreign().len()),
            traffic: self.carried(),
            ..self.rounds.facts()
        }
    }

    /// What each Service has carried.
    fn carried(&mut self) -> BTreeMap<String, ServiceTraffic> {
        match self.data_path.traffic() {
            Ok(now) => self.traffic.read(now, &self.planner.wanted().entries),
            Err(error) => self.say(error.to_string()),
        }
        self.traffic.by_service()
    }

    /// Says a thing once until the kernel has been read again, however often it is found.
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

/// The options as a changed object.
fn configured(configuration: ProxyConfiguration) -> ObjectChange {
    let key = ObjectKey { kind: Kind::ConfigMap, name: ProxyConfiguration::object_name() };
    (Arc::new(key), Some(Arc::new(Object::from(configuration))))
}
