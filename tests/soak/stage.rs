//! A fairway on loopback with its peers: most cases begin with one. Each has an address of 127.0.0.0/8, so
//! root is not needed.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::PathBuf;
use std::process::Command;
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use crate::bench::Bench;
use crate::healthy::{HOLD_TIMES_SECONDS, Healthy};
use crate::message::Prefix;
use lab::fairway::Fairway;
use lab::make_directory;
use lab::namespace::Place;
use lab::resources::{Advertisement, pool, service};
use lab::usage::Usage;
use lab::wait::{PATIENCE, wait_until};

pub(crate) const NODE_AS: u16 = 65001;
pub(crate) const PEER_AS: u16 = 65002;

/// How soon a change must reach healthy peers, whatever the others do.
const LATENCY_MAX: Duration = Duration::from_millis(1000);

/// The machine itself.
struct Machine;

impl Place for Machine {
    fn command(&self, program: &OsStr) -> Command {
        Command::new(program)
    }
}

/// The daemon and its healthy peers.
pub(crate) struct Stage {
    pub(crate) fairway: Fairway,
    pub(crate) healthy: Vec<Healthy>,
    /// Where fairway accepts.
    pub(crate) listening: SocketAddr,
    /// Where peers accept.
    pub(crate) peer_port: u16,
    /// How many Services there are.
    services: u32,
    /// How many addresses were given to them.
    addresses: u32,
    /// The address of each Service now.
    assigned: BTreeMap<u32, Ipv4Addr>,
    pub(crate) directory: PathBuf,
}

impl Stage {
    /// A daemon that does not run yet, with `count` healthy peers that it will dial. `name` is the
    /// stage's part of the case's directory.
    pub(crate) fn prepare(bench: &Bench, name: &str, count: u8) -> Result<Self> {
        let directory = bench.directory.join(name);
        make_directory(&directory)?;
        let mut fairway = Fairway::prepare_in(&directory)?;
        fairway.log_level = "info";
        let listening = SocketAddr::from((Ipv4Addr::LOCALHOST, free_port()?));
        let peer_port = next_peer_port()?;
        fairway.extra_arguments = vec!["--bgp-listen".to_owned(), listening.to_string()];
        let mut healthy = Vec::new();
        for number in 1..=count {
            let address = Ipv4Addr::new(127, 1, 1, number);
            let hold_time = HOLD_TIMES_SECONDS.get(usize::from(number) % 3).copied().unwrap_or(3);
            healthy.push(Healthy::start(bench.runtime(), address, peer_port, hold_time)?);
            let name = format!("healthy-{number}");
            fairway.apply(&name, &peer(&name, address, peer_port, ""))?;
        }
        fairway.apply("pool", &pool("main", &["198.18.0.0/15"]))?;
        let advertisement = Advertisement { name: "main", pools: &["main"], ..<_>::default() };
        fairway.apply("advertisement", &advertisement.yaml())?;
        let (services, addresses, assigned) = (0, 0, BTreeMap::new());
        Ok(Self {
            fairway,
            healthy,
            listening,
            peer_port,
            services,
            addresses,
            assigned,
            directory,
        })
    }

    /// Starts the daemon and waits for the healthy sessions.
    pub(crate) fn start(&mut self) -> Result<()> {
        self.fairway.start(&Machine)?;
        wait_until("all healthy sessions are up", PATIENCE, || {
            self.fairway.check_running()?;
            self.healthy.iter().try_for_each(|peer| {
                ensure!(peer.sessions() == 1, "{} has no session", peer.address);
                Ok(())
            })
        })
    }

    pub(crate) fn apply_peer(&self, name: &str, address: Ipv4Addr, extra: &str) -> Result<()> {
        self.fairway.apply(name, &peer(name, address, self.peer_port, extra))
    }

    pub(crate) fn usage(&self) -> Result<Usage> {
        Usage::of(self.fairway.process_id()?)
    }

    /// What `show bgp neighbors` shows of one peer.
    pub(crate) fn neighbour(&self, address: Ipv4Addr) -> Result<Value> {
        let address = address.to_string();
        let mut answer = self.fairway.show(&["bgp", "neighbors", &address])?;
        let neighbour = answer.get_mut(&address).map(Value::take);
        neighbour.with_context(|| format!("expected {address} in {answer}"))
    }

    /// Adds a Service and returns how long its route took to the last of the healthy peers, from the rename of
    /// its file.
    pub(crate) fn change_latency(&mut self) -> Result<Duration> {
        self.services += 1;
        self.time_of_change(self.services)
    }

    /// The same, of a Service that has an address, and gets another one.
    pub(crate) fn move_service(&mut self) -> Result<Duration> {
        self.time_of_change(self.addresses % self.services.max(1) + 1)
    }

    /// Adds a Service before the daemon runs.
    pub(crate) fn add_service(&mut self) -> Result<()> {
        self.services += 1;
        let (name, text, _) = self.next_version(self.services);
        self.fairway.apply(&name, &text)
    }

    /// Waits until all healthy peers have as many routes as there are Services.
    pub(crate) fn all_services_arrived(&self) -> Result<()> {
        let services = usize::try_from(self.services)?;
        wait_until("all healthy peers have all routes", PATIENCE, || {
            let is_there = self.healthy.iter().all(|peer| peer.heard_prefixes() >= services);
            ensure!(is_there, "not yet");
            Ok(())
        })
    }

    /// The routes to all Services.
    pub(crate) fn routes(&self) -> BTreeSet<String> {
        self.assigned.values().map(|address| format!("{address}/32")).collect()
    }

    fn time_of_change(&mut self, number: u32) -> Result<Duration> {
        let (name, text, address) = self.next_version(number);
        let renamed = self.fairway.apply_timed(&name, &text)?;
        let last = self.last_arrival((address, 32))?;
        Ok(last.saturating_duration_since(renamed))
    }

    /// The file of a Service with an address that none had before.
    fn next_version(&mut self, number: u32) -> (String, String, Ipv4Addr) {
        self.addresses += 1;
        let address = Ipv4Addr::from(u32::from(Ipv4Addr::new(198, 18, 0, 0)) + self.addresses);
        self.assigned.insert(number, address);
        let name = format!("service-{number}");
        let text = service(&name, Some(&address.to_string()));
        (name, text, address)
    }

    fn last_arrival(&self, prefix: Prefix) -> Result<Instant> {
        let expected = format!("{}/{} reaches all healthy peers", prefix.0, prefix.1);
        wait_until(&expected, PATIENCE, || {
            let arrivals = self.healthy.iter().map(|peer| peer.arrival(prefix));
            let all: Option<Vec<Instant>> = arrivals.collect();
            all.and_then(|all| all.into_iter().max()).context("some have not received it")
        })
    }

    /// Fails unless fairway had one session with this peer and still has it.
    pub(crate) fn expect_one_session(&self, address: Ipv4Addr) -> Result<()> {
        let neighbour = self.neighbour(address)?;
        let count = |key| neighbour.get(key).and_then(Value::as_u64);
        ensure!(
            (count("connectionsEstablished"), count("connectionsDropped")) == (Some(1), Some(0)),
            "expected one undisturbed session with {address}: {neighbour}"
        );
        Ok(())
    }

    /// Fails when a healthy session was disturbed; else prints how they fared.
    pub(crate) fn healthy_report(&mut self, bench: &Bench) -> Result<String> {
        let late = bench.own_lateness();
        self.fairway.check_running()?;
        let mut silence = Duration::ZERO;
        for peer in &self.healthy {
            peer.expect_undisturbed(late)?;
            silence = silence.max(peer.longest_silence());
            self.expect_one_session(peer.address)?;
        }
        let count = self.healthy.len();
        Ok(format!(
            "{count} healthy sessions, no flap, longest silence {:.2} s (we ourselves were held up \
             for {:.2} s)",
            silence.as_secs_f64(),
            late.as_secs_f64()
        ))
    }
}

/// Prints the spread of latencies and fails when the worst is too long.
pub(crate) fn expect_quick(bench: &Bench, what: &str, latencies: &mut [Duration]) -> Result<()> {
    latencies.sort_unstable();
    let median = latencies.get(latencies.len() / 2).context("no latency was measured")?;
    let worst = latencies.last().context("no latency was measured")?;
    bench.say(format!(
        "{what}: {} changes reached all healthy peers in {:.1} ms (median), {:.1} ms (worst)",
        latencies.len(),
        median.as_secs_f64() * 1e3,
        worst.as_secs_f64() * 1e3,
    ));
    ensure!(*worst < LATENCY_MAX, "{what}: a change took {worst:?}, at most {LATENCY_MAX:?}");
    Ok(())
}

/// A BGPPeer; `extra` are further lines of its spec.
pub(crate) fn peer(name: &str, address: Ipv4Addr, port: u16, extra: &str) -> String {
    format!(
        "apiVersion: metallb.io/v1beta2\nkind: BGPPeer\nmetadata:\n  name: {name}\nspec:\n  \
         myASN: {NODE_AS}\n  peerASN: {PEER_AS}\n  peerAddress: {address}\n  peerPort: {port}\n{extra}"
    )
}

/// A port that no stage of this run has had: the peers of the one before may still be leaving.
fn next_peer_port() -> Result<u16> {
    static STAGES: AtomicU16 = AtomicU16::new(0);
    // A peer's port may be 16384 at most.
    let first = 12_000 + u16::try_from(std::process::id() % 400)? * 10;
    Ok(first + STAGES.fetch_add(1, Ordering::Relaxed) % 10)
}

pub(crate) fn free_port() -> Result<u16> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).context("a free port")?;
    Ok(listener.local_addr().context("a free port")?.port())
}
