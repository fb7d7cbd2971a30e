//! The loop of the thread: what the core tells goes to the machines of the stations, and their chunks to the connections.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use fairway_bgp::session::{Best, Monitored as Happening, SessionDown, SessionUp};
use fairway_bmp::message::{
    Down, Monitored, Stamp, Statistic, Table, Termination, initiation, peer_down, peer_up,
    route_monitoring, statistics, termination,
};
use fairway_bmp::{Action, Event, Report, Station};
use fairway_ground::{
    AddressFamily, Allowance, Allowances, BmpStation, BmpTables, Bound, Instant, PeerKey, Prefix,
    printable,
};
use fairway_seam::BgpView;
use tokio::sync::{mpsc, watch};
use tracing::{info, warn};

use super::connection::{Connection, Happened, Name, Place};
use super::numbers::numbers;
use super::tables::{self, Node, Peer};
use super::{Ask, Feed, Views, Wanted};
use crate::clock::Clock;

/// Events of connections that may wait.
const EVENTS_MAX: usize = 16;
/// Between two times that tables are asked for: each asks routers for all their routes. Stations that connect meanwhile wait
/// for the same answer.
const TABLES_GAP: Duration = Duration::from_secs(10);
/// The gap doubles up to this where stations come and go: one that accepts connections and closes them would else have all
/// routers send all their routes as often as it likes.
const TABLES_GAP_MAX: Duration = Duration::from_secs(600);
/// Lines of the log about one station.
const LINES: Allowance = Allowance { burst: 10, interval: Duration::from_secs(60) };

/// The thread's ends of what connects it with the core.
pub(super) struct Ends {
    pub(super) wanted: watch::Receiver<Wanted>,
    pub(super) feed: mpsc::UnboundedReceiver<(usize, Feed)>,
    pub(super) waiting_bytes: Arc<AtomicUsize>,
    pub(super) ask: mpsc::Sender<Ask>,
    pub(super) views: watch::Sender<Views>,
}

struct MonitoringStation {
    station: BmpStation,
    machine: Station,
    connection: Option<Connection>,
    /// It is connected, and its tables were not asked for yet, or were not answered.
    awaits: Awaits,
    statistics_at: Option<Instant>,
    /// They were asked for.
    awaits_statistics: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Awaits {
    /// Not connected, or all is on its way.
    Nothing,
    Asking,
    Answer,
}

/// See the module.
struct Monitor {
    clock: Clock,
    stations: BTreeMap<Place, MonitoringStation>,
    peers: BTreeMap<PeerKey, Peer>,
    node: Option<Node>,
    asked_at: Option<Instant>,
    /// See [`TABLES_GAP`].
    tables_gap: Duration,
    events: mpsc::Sender<(Name, Happened)>,
    /// How many connections there were.
    connections: u64,
    lines: Allowances<Place>,
}

/// Runs until the core is gone.
pub(super) async fn run(clock: Clock, ends: Ends) {
    let Ends { mut wanted, mut feed, waiting_bytes, ask, views } = ends;
    let (events, mut happened) = mpsc::channel(EVENTS_MAX);
    let mut monitor = Monitor {
        clock,
        stations: BTreeMap::new(),
        peers: BTreeMap::new(),
        node: None,
        asked_at: None,
        tables_gap: TABLES_GAP,
        events,
        connections: 0,
        lines: Allowances::new(LINES, Bound::LogLine),
    };
    loop {
        let deadline = monitor.next_deadline();
        let wake = async {
            match deadline {
                Some(deadline) => tokio::time::sleep_until(clock.at(deadline)).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            changed = wanted.changed() => {
                if changed.is_err() {
                    break;
                }
                let stations = Arc::clone(&wanted.borrow_and_update());
                monitor.want(&stations);
            }
            told = feed.recv() => match told {
                Some((bytes, told)) => {
                    monitor.told(told);
                    waiting_bytes.fetch_sub(bytes, Ordering::Relaxed);
                }
                None => break,
            },
            Some((name, happened)) = happened.recv() => monitor.happened(&name, happened),
            room = ask.reserve(), if monitor.to_ask().is_some() => {
                let Ok(room) = room else { break };
                if let Some(asked) = monitor.take_ask() {
                    room.send(asked);
                }
            }
            () = wake => {}
        }
        monitor.tick();
        views.send_replace(monitor.view());
    }
    // What the core told last: how the sessions ended.
    while let Ok((_, told)) = feed.try_recv() {
        monitor.told(told);
    }
    for farewell in monitor.leave() {
        // It ends by itself.
        let _ = farewell.await;
    }
}

impl Monitor {
    fn now(&self) -> Instant {
        self.clock.now()
    }

    fn next_deadline(&self) -> Option<Instant> {
        let machines = self.stations.values().filter_map(|it| it.machine.next_deadline());
        let statistics = self.stations.values().filter_map(|it| it.statistics_at);
        let asking = self.stations.values().any(|it| it.awaits == Awaits::Asking);
        let tables = self.asked_at.filter(|_| asking).map(|at| at + self.tables_gap);
        // What is due waits for nothing but room for the question.
        let now = self.now();
        machines.chain(statistics.chain(tables).filter(|it| *it > now)).min()
    }

    /// Tells these, and no others. `Ours:` a station that is told something else loses its connection, where RFC 8671 §7.2 and
    /// RFC 9069 §6.1.3 have Peer Down and Peer Up: the next one begins with all there is.
    fn want(&mut self, wanted: &BTreeSet<BmpStation>) {
        let now = self.now();
        let gone: Vec<Place> = self
            .stations
            .iter()
            .filter(|(_, it)| !wanted.contains(&it.station))
            .map(|(place, _)| place.clone())
            .collect();
        for place in gone {
            let Some(told) = self.stations.remove(&place) else { continue };
            info!(station = %told.station, "BMP station removed");
            drop(farewell(told, now));
        }
        for station in wanted {
            let place = (Arc::clone(&station.host), station.port);
            let seed = now.since(Instant::ZERO).as_micros();
            let seed =
                u64::try_from(seed).unwrap_or_default().wrapping_add(u64::from(station.port));
            self.stations.entry(place).or_insert_with(|| MonitoringStation {
                station: station.clone(),
                machine: Station::new(now, seed),
                connection: None,
                awaits: Awaits::Nothing,
                statistics_at: None,
                awaits_statistics: false,
            });
        }
    }

    /// What is to be asked of the core.
    fn to_ask(&self) -> Option<Ask> {
        let now = self.now();
        let asking = self.stations.values().filter(|it| it.awaits == Awaits::Asking);
        let tables = asking.map(|it| it.station.tables).reduce(BmpTables::and);
        let is_time = self.asked_at.is_none_or(|at| at + self.tables_gap <= now);
        if let Some(tables) = tables.filter(|_| is_time) {
            return Some(Ask::Tables(tables));
        }
        let is_due = |it: &MonitoringStation| it.statistics_at.is_some_and(|at| at <= now);
        self.stations.values().any(is_due).then_some(Ask::Statistics)
    }

    fn take_ask(&mut self) -> Option<Ask> {
        let (now, ask) = (self.now(), self.to_ask()?);
        match ask {
            Ask::Tables(_) => {
                let doubled = self.tables_gap.saturating_mul(2);
                let is_quiet = self.asked_at.is_none_or(|at| now.since(at) >= doubled);
                self.tables_gap = if is_quiet { TABLES_GAP } else { doubled.min(TABLES_GAP_MAX) };
                self.asked_at = Some(now);
                let asking = self.stations.values_mut().filter(|it| it.awaits == Awaits::Asking);
                asking.for_each(|it| it.awaits = Awaits::Answer);
            }
            Ask::Statistics => {
                for it in self.stations.values_mut() {
                    let interval = it.station.statistics_interval_seconds;
                    if it.statistics_at.is_some_and(|at| at <= now) {
                        it.statistics_at = Some(now + Duration::from_secs(interval.into()));
                        it.awaits_statistics = true;
                    }
                }
            }
        }
        Some(ask)
    }

    fn told(&mut self, told: Feed) {
        match told {
            Feed::Peer(key, events) => events.into_iter().for_each(|it| self.peer(key, it)),
            Feed::LocRib(changes) => self.loc_rib(&changes),
            Feed::Tables(view) => self.tables(*view),
            Feed::Statistics(view) => self.statistics(&view),
            Feed::Lost => {
                let now = self.now();
                self.peers.clear();
                for it in self.stations.values_mut() {
                    it.machine.start_over(now, "messages for it were lost on this machine");
                }
            }
        }
    }

    fn peer(&mut self, key: PeerKey, happening: Happening) {
        let (now, at) = (self.now(), stamp());
        match happening {
            Happening::Up(up) => {
                let peer = Peer { monitored: monitored(key, &up), up: *up };
                let message = up_message(&peer, at);
                self.peers.insert(key, peer);
                self.push(now, |_| true, &message);
                if self.node.is_none() {
                    // The first neighbour: now it is known as what this node is in BGP.
                    let told =
                        self.stations.values_mut().filter(|it| it.has_tables(|it| it.loc_rib));
                    told.for_each(|it| it.awaits = Awaits::Asking);
                }
            }
            Happening::Down(down) => {
                let Some(peer) = self.peers.remove(&key) else { return };
                let why = match down {
                    SessionDown::Sent(notification) => Down::LocalNotification(notification),
                    SessionDown::Received(notification) => Down::RemoteNotification(notification),
                    SessionDown::Left => Down::Local(MANUAL_STOP),
                    SessionDown::Closed => Down::Remote,
                };
                self.push(now, |_| true, &peer_down(&peer.monitored, at, &why));
            }
            Happening::Received(update) => {
                let Some(peer) = self.peers.get(&key) else { return };
                let table = Table::AdjRibInPrePolicy;
                let message = route_monitoring(&peer.monitored, table, at, &update);
                self.push(now, |it| it.station.tables.adj_rib_in_pre_policy, &message);
            }
            Happening::Sent(update) => {
                let Some(peer) = self.peers.get(&key) else { return };
                let table = Table::AdjRibOutPostPolicy;
                let message = route_monitoring(&peer.monitored, table, at, &update);
                self.push(now, |it| it.has_tables(|it| it.adj_rib_out_post_policy), &message);
            }
            Happening::AllAccepted(family) => {
                let Some(peer) = self.peers.get(&key) else { return };
                let (table, marker) = (Table::AdjRibInPostPolicy, tables::marker(family));
                let message = route_monitoring(&peer.monitored, table, at, &marker);
                self.push(now, |it| it.has_tables(|it| it.adj_rib_in_post_policy), &message);
            }
            Happening::Accepted(changes) => {
                let Some(peer) = self.peers.get(&key) else { return };
                for message in tables::accepted(peer, at, &changes) {
                    let told = self.stations.values_mut();
                    let told = told.filter(|it| it.has_tables(|it| it.adj_rib_in_post_policy));
                    told.for_each(|it| it.machine.push(now, message.clone()));
                }
            }
        }
    }

    fn loc_rib(&mut self, changes: &[(Prefix, Option<Best>)]) {
        let (now, at) = (self.now(), stamp());
        let Some(node) = &self.node else { return };
        for (prefix, best) in changes {
            let Some(message) = tables::best(node, at, *prefix, best.as_ref()) else { continue };
            let told = self.stations.values_mut().filter(|it| it.has_tables(|it| it.loc_rib));
            told.for_each(|it| it.machine.push(now, message.clone()));
        }
    }

    /// The answer to a question for tables.
    fn tables(&mut self, view: BgpView) {
        let (at, view) = (stamp(), Arc::new(view));
        self.become_node(Node::of(&view, at));
        for it in self.stations.values_mut().filter(|it| it.awaits == Awaits::Answer) {
            it.awaits = Awaits::Nothing;
            let tables = tables::all(Arc::clone(&view), &self.peers, it.station.tables, at);
            it.machine.begin_tables(tables);
        }
    }

    /// Best routes are told as those of this node. Stations that know it as another one begin again.
    fn become_node(&mut self, node: Option<Node>) {
        let now = self.now();
        let is_other = match (&self.node, &node) {
            (Some(before), Some(now)) => before.monitored != now.monitored,
            _ => false,
        };
        if is_other {
            let told = self.stations.values_mut().filter(|it| it.has_tables(|it| it.loc_rib));
            told.for_each(|it| {
                it.machine.start_over(now, "the AS or the BGP identifier of this node changed")
            });
        }
        self.node = node.or(self.node.take());
    }

    fn statistics(&mut self, view: &BgpView) {
        let (now, at) = (self.now(), stamp());
        let reports = |it: &MonitoringStation| it.awaits_statistics;
        for peer in &view.peers {
            let Some(known) = self.peers.get(&peer.config.key) else { continue };
            let message = statistics(&known.monitored, None, at, &numbers(peer));
            self.push(now, reports, &message);
        }
        self.become_node(Node::of(view, at));
        let count = |family| u64::try_from(*view.prefixes.of(family)).unwrap_or(u64::MAX);
        let sum = AddressFamily::ALL.into_iter().map(count).fold(0, u64::saturating_add);
        let mut numbers = vec![Statistic::LocRib(sum)];
        for family in AddressFamily::ALL {
            numbers.push(Statistic::LocRibOf(family.afi(), family.safi(), count(family)));
        }
        if let Some(node) = &self.node {
            let message = statistics(&node.monitored, Some(Table::LocRib), at, &numbers);
            self.push(now, |it| reports(it) && it.has_tables(|it| it.loc_rib), &message);
        }
        self.stations.values_mut().for_each(|it| it.awaits_statistics = false);
    }

    /// Hands a message to the stations that are told such.
    fn push(
        &mut self,
        now: Instant,
        is_told: impl Fn(&MonitoringStation) -> bool,
        message: &Bytes,
    ) {
        for it in self.stations.values_mut().filter(|it| is_told(it)) {
            it.machine.push(now, message.clone());
        }
    }

    fn happened(&mut self, (place, number): &Name, happened: Happened) {
        let now = self.now();
        let Some(it) = self.stations.get_mut(place) else { return };
        if it.connection.as_ref().is_none_or(|it| it.number != *number) {
            return;
        }
        match happened {
            Happened::Connected => it.machine.handle(now, Event::Connected),
            Happened::Written => it.machine.handle(now, Event::Written),
            Happened::Closed(why) => {
                it.connection = None;
                it.machine.handle(now, Event::Closed(&why));
            }
        }
    }

    /// Lets each station act on what is due, and fills the connections that have room.
    fn tick(&mut self) {
        let (now, at) = (self.now(), stamp());
        for (place, it) in &mut self.stations {
            it.machine.handle(now, Event::Tick);
            while let Some(action) = it.machine.poll_action() {
                match action {
                    Action::Connect => {
                        self.connections = self.connections.saturating_add(1);
                        let name = (place.clone(), self.connections);
                        it.connection = Some(Connection::open(name, self.events.clone()));
                    }
                    Action::Begin => begin(it, now, at, &self.peers),
                    Action::Close => it.connection = None,
                    Action::Report(report) => {
                        if self.lines.take(now, place.clone()).is_some() {
                            log(&it.station, &report);
                        }
                    }
                }
            }
            if !it.machine.is_up() {
                (it.awaits, it.statistics_at) = (Awaits::Nothing, None);
            } else if let Some(chunk) = it.machine.poll_transmit(now)
                && let Some(connection) = &it.connection
            {
                connection.write(chunk);
            }
        }
    }

    fn view(&self) -> Views {
        self.stations.values().map(|it| (it.station.clone(), it.machine.view())).collect()
    }

    fn leave(&mut self) -> Vec<tokio::task::JoinHandle<()>> {
        let now = self.now();
        let stations = std::mem::take(&mut self.stations);
        stations.into_values().filter_map(|it| farewell(it, now)).collect()
    }
}

impl MonitoringStation {
    /// It is told the routes of a table, and the whole of it is on its way.
    fn has_tables(&self, of: impl Fn(&BmpTables) -> bool) -> bool {
        of(&self.station.tables) && self.machine.is_up() && self.awaits == Awaits::Nothing
    }
}

/// ManualStop (RFC 4271 §8.1.2): we closed the connection without a NOTIFICATION, so that routes stay.
const MANUAL_STOP: u16 = 2;

/// The connection is new. `Ours:` nothing here speaks SNMP, which RFC 7854 §4.4 takes both texts from.
fn begin(it: &mut MonitoringStation, now: Instant, at: Stamp, peers: &BTreeMap<PeerKey, Peer>) {
    let description = concat!("Fairway ", env!("CARGO_PKG_VERSION"));
    it.machine.push(now, initiation(description, &host_name()));
    for peer in peers.values() {
        it.machine.push(now, up_message(peer, at));
    }
    it.awaits = Awaits::Asking;
    let interval = it.station.statistics_interval_seconds;
    it.statistics_at = (interval > 0).then(|| now + Duration::from_secs(interval.into()));
}

fn farewell(mut told: MonitoringStation, now: Instant) -> Option<tokio::task::JoinHandle<()>> {
    told.machine.push(now, termination(Termination::AdministrativelyClosed));
    let last = told.machine.take_rest()?;
    told.connection.map(|it| it.farewell(last))
}

fn up_message(peer: &Peer, at: Stamp) -> Bytes {
    let SessionUp { local, remote, opens: [sent, received], .. } = &peer.up;
    peer_up(&peer.monitored, at, *local, remote.port(), (sent, received))
}

fn monitored(key: PeerKey, up: &SessionUp) -> Monitored {
    let is_link_local =
        matches!(up.remote.ip(), IpAddr::V6(address) if address.is_unicast_link_local());
    Monitored {
        address: up.remote.ip(),
        interface: key.interface().filter(|_| is_link_local).map(|it| it.to_string()),
        asn: up.asn,
        router_id: up.router_id.into(),
        vrf: key.vrf.map(|it| it.to_string()),
        two_octet_as: !up.four_octet_as,
    }
}

// An edge reads the clock.
#[allow(clippy::disallowed_methods)]
fn stamp() -> Stamp {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    Stamp(u64::try_from(since.as_micros()).unwrap_or(u64::MAX))
}

/// As `hostname` prints it.
fn host_name() -> String {
    let name = nix::unistd::gethostname().unwrap_or_default();
    name.to_string_lossy().into_owned()
}

fn log(station: &BmpStation, report: &Report) {
    match report {
        Report::Connected => info!(%station, "BMP station connected"),
        Report::Failed(why) => {
            let why = printable(why);
            warn!(%station, %why, "BMP station fails: it is told everything when it is back; trying again");
        }
    }
}
