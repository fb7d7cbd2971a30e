//! Both sides dial, and both connections come up: a hundred times with each router, and each time
//! one session remains, soon.
//!
//! A double connection is counted when the kernel of fairway's namespace lists two connections of
//! BGP as ESTABLISHED at the same time, one from and one to port 179.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, ensure};
use fastrand::Rng;
use serde_json::Value;

use crate::bench::Bench;
use crate::gate::Hold;
use crate::redial::redial;
use crate::tcp_table::{TcpConnection, TcpState, bgp_connections, in_state};
use lab::fairway::Fairway;
use lab::routers::{Dialling, Release, Router, RouterKind, RouterSpec};
use lab::wait::{PATIENCE, holds_for, now, wait_until};
use lab::{Family, Lab, NODE_IPV4, Wiring, make_directory};

/// Double connections that must have been seen with each router.
const DOUBLES: usize = 100;
/// How long that may take.
const TIME_LIMIT: Duration = Duration::from_secs(600);

/// Idle hold time at its longest, connect retry time, and something for the machine.
const RESOLUTION_MAX: Duration = Duration::from_secs(30 + 5 + 2);

/// How long both dials may take to be under way, and then to come up.
const DIALLING_LIMIT: Duration = Duration::from_secs(30);
const DOUBLE_LIMIT: Duration = Duration::from_millis(2500);
/// How long the session is watched afterwards.
const CALM: Duration = Duration::from_millis(300);

/// The router's identifier is 10.0.0.2: ours is now below and now above.
const ROUTER_IDS: [&str; 2] = ["10.0.0.1", "10.0.0.3"];

/// What was seen with one router.
#[derive(Default)]
struct Tally {
    attempts: usize,
    doubles: usize,
    /// Doubles of which the router's dial remained.
    router_won: usize,
    /// Why the first session after a double did not last, and how often.
    second_tries: BTreeMap<String, usize>,
    resolutions: Vec<Duration>,
}

/// One double connection, resolved.
struct Resolution {
    took: Duration,
    router_won: bool,
    /// Why an earlier session, which had come up after the same double, did not last.
    earlier_end: Option<String>,
}

/// Fairway and a router that both dial, with a gate between them.
struct Crossing {
    fairway: Fairway,
    router: Box<dyn Router>,
    kind: RouterKind,
    spec: RouterSpec,
    lab: Lab,
}

pub(super) fn run(bench: &Bench) -> Result<()> {
    // GoBGP dials after 5 s to 10 s whatever it is told: eight of it keep pace with the others.
    let workers = [
        (RouterKind::Bird(Release::Bookworm), 1),
        (RouterKind::Frr(Release::Bookworm), 1),
        (RouterKind::Openbgpd, 2),
        (RouterKind::Gobgp, 8),
    ];
    for (kind, _) in workers {
        kind.version()?;
    }
    let tallies: Vec<_> = workers.iter().map(|_| Mutex::new(Tally::default())).collect();
    let outcomes: Vec<Result<()>> = std::thread::scope(|scope| {
        let mut threads = Vec::new();
        for ((kind, count), tally) in workers.into_iter().zip(&tallies) {
            for _ in 0..count {
                let number = threads.len();
                let name = format!("{}-{number}", kind.name().to_lowercase());
                let directory = bench.directory.join(name);
                let seed = bench.seed.wrapping_add(number as u64);
                threads.push(scope.spawn(move || collide(kind, number, directory, seed, tally)));
            }
        }
        let join = |thread: std::thread::ScopedJoinHandle<'_, Result<()>>| {
            thread.join().unwrap_or_else(|_| Err(anyhow!("a worker panicked")))
        };
        threads.into_iter().map(join).collect()
    });
    for ((kind, _), tally) in workers.into_iter().zip(&tallies) {
        let mut tally = tally.lock().unwrap_or_else(PoisonError::into_inner);
        bench.say(summary(kind, &mut tally));
    }
    outcomes.into_iter().collect::<Result<()>>()?;
    for ((kind, _), tally) in workers.into_iter().zip(&tallies) {
        let doubles = tally.lock().unwrap_or_else(PoisonError::into_inner).doubles;
        ensure!(doubles >= DOUBLES, "only {doubles} double connections with {}", kind.name());
    }
    Ok(())
}

fn summary(kind: RouterKind, tally: &mut Tally) -> String {
    tally.resolutions.sort_unstable();
    let seconds = |index: usize| tally.resolutions.get(index).map_or(0.0, Duration::as_secs_f64);
    let count = tally.resolutions.len();
    format!(
        "{}: {} attempts, {} double connections, {} kept the router's dial and {} ours, resolved \
         in {:.2} s (median), {:.2} s (worst); first sessions that did not last: {:?}",
        kind.name(),
        tally.attempts,
        tally.doubles,
        tally.router_won,
        tally.doubles - tally.router_won,
        seconds(count / 2),
        seconds(count.saturating_sub(1)),
        tally.second_tries,
    )
}

/// One pair of speakers, until there were enough doubles with this router.
fn collide(
    kind: RouterKind,
    number: usize,
    directory: PathBuf,
    seed: u64,
    tally: &Mutex<Tally>,
) -> Result<()> {
    make_directory(&directory)?;
    let mut rng = Rng::with_seed(seed);
    let mut crossing = Crossing::open(kind, number, &directory)?;
    let start = now();
    for round in 0.. {
        if tally.lock().unwrap_or_else(PoisonError::into_inner).doubles >= DOUBLES {
            break;
        }
        if start.elapsed() > TIME_LIMIT {
            break;
        }
        let resolution = crossing
            .round(&mut rng)
            .with_context(|| format!("{}, round {round}, seed {seed}", kind.name()))?;
        let mut tally = tally.lock().unwrap_or_else(PoisonError::into_inner);
        tally.attempts += 1;
        if let Some(Resolution { took, router_won, earlier_end }) = resolution {
            tally.doubles += 1;
            tally.router_won += usize::from(router_won);
            if let Some(reason) = earlier_end {
                *tally.second_tries.entry(reason).or_default() += 1;
            }
            tally.resolutions.push(took);
        }
    }
    crossing.fairway.stop()?;
    crossing.router.stop()
}

impl Crossing {
    /// Both sides run; fairway has no peer yet.
    fn open(kind: RouterKind, number: usize, directory: &std::path::Path) -> Result<Self> {
        let lab = Lab::build(number, directory, Wiring::Direct)?;
        let local = Wiring::Direct.router_address(Family::Ipv4)?;
        let peer = NODE_IPV4.parse().context("the node's address")?;
        let spec = RouterSpec {
            dialling: Dialling::Dials,
            ..RouterSpec::between(local, "fd77::2".parse()?, peer)
        };
        let mut router = kind.prepare(&lab.router, &spec)?;
        let mut fairway = Fairway::prepare(&lab)?;
        fairway.start(&lab.node)?;
        router.start(&lab.router)?;
        Ok(Self { fairway, router, kind, spec, lab })
    }

    /// Lets both sides dial; how it was resolved, if both connections came up.
    fn round(&mut self, rng: &mut Rng) -> Result<Option<Resolution>> {
        let [choice, order, words, ..] = rng.u64(..).to_be_bytes();
        let router_id = if choice.is_multiple_of(2) { ROUTER_IDS[0] } else { ROUTER_IDS[1] };
        // Now and then nothing is held: then both SYNs may cross, or one comes first.
        let words = !words.is_multiple_of(8);
        let first = match order % 4 {
            0 if self.keeps_its_dial() => Hold { dials_of_router: true, words, ..Hold::NOTHING },
            1 => Hold { words, ..Hold::NOTHING },
            _ => Hold { dials_of_node: true, words, ..Hold::NOTHING },
        };
        self.both_dial(router_id)?;
        first.apply(&self.lab)?;
        // It does not come up where the other side is not there to take it yet.
        let _ = self.established_are(1);
        Hold { words, ..Hold::NOTHING }.apply(&self.lab)?;
        let double = self.established_are(2).is_ok();
        let start = now();
        Hold::NOTHING.apply(&self.lab)?;
        let (remaining, seen) = self.one_session()?;
        let took = seen.duration_since(start);
        ensure!(took <= RESOLUTION_MAX, "it took {took:?}, at most {RESOLUTION_MAX:?}");
        let router_won = remaining.is_incoming();
        let earlier_end = self.earlier_end()?;
        Ok(double.then_some(Resolution { took, router_won, earlier_end }))
    }

    fn earlier_end(&self) -> Result<Option<String>> {
        let address = self.spec.local_address.to_string();
        let answer = self.fairway.show(&["bgp", "neighbors", &address])?;
        let neighbour = answer.get(&address).with_context(|| format!("no {address}: {answer}"))?;
        let sessions = neighbour.get("connectionsEstablished").and_then(Value::as_u64);
        let reason = neighbour.get("lastErrorText").and_then(Value::as_str).unwrap_or("(none)");
        Ok((sessions != Some(1)).then(|| reason.to_owned()))
    }

    /// Whether connections meet when ours is up first, too. With OpenBGPD and GoBGP that hardly ever
    /// happens: they seem to let go of their own dial then.
    fn keeps_its_dial(&self) -> bool {
        matches!(self.kind, RouterKind::Bird(_) | RouterKind::Frr(_))
    }

    /// Ends what there is, and waits until both sides have a dial under way that is held.
    fn both_dial(&mut self, router_id: &str) -> Result<()> {
        let node = self.fairway.process_id()?;
        Hold { dials_of_node: true, dials_of_router: true, words: false }.apply(&self.lab)?;
        if self.fairway.resource("peer").exists() {
            self.fairway.remove("peer")?;
        }
        self.wait("no connection is left", PATIENCE, |_| {
            let left = in_state(node, TcpState::Established)?;
            ensure!(left.is_empty(), "there are {left:?}");
            Ok(())
        })?;
        redial(self.kind, &self.lab, self.spec.peer_address)?;
        let router = self.router.daemons().first().context("the router does not run")?.id();
        self.wait("the router dials", DIALLING_LIMIT, |_| {
            let dials = in_state(router, TcpState::SynSent)?;
            ensure!(!dials.is_empty(), "it has {:?}", bgp_connections(router)?);
            Ok(())
        })?;
        self.fairway.apply("peer", &self.peer(router_id))?;
        self.wait("fairway dials", PATIENCE, |_| {
            let dials = in_state(node, TcpState::SynSent)?;
            ensure!(!dials.is_empty(), "it has {:?}", bgp_connections(node)?);
            Ok(())
        })
    }

    /// Waits until so many connections are up in fairway's namespace.
    fn established_are(&mut self, count: usize) -> Result<()> {
        let node = self.fairway.process_id()?;
        self.wait(&format!("{count} connections are up"), DOUBLE_LIMIT, |_| {
            let up = in_state(node, TcpState::Established)?;
            ensure!(up.len() >= count, "there are {up:?}");
            Ok(())
        })
    }

    /// Waits until both sides have one session over one connection that stays for a while; says
    /// which connection, and when it was seen first.
    fn one_session(&mut self) -> Result<(TcpConnection, Instant)> {
        let node = self.fairway.process_id()?;
        let address = self.spec.local_address.to_string();
        let look = |crossing: &Self| {
            let up = in_state(node, TcpState::Established)?;
            let [connection] = up.as_slice() else { return Err(anyhow!("connections: {up:?}")) };
            let neighbour = crossing.fairway.neighbour(&address)?;
            ensure!(neighbour.is_established(), "fairway says {}", neighbour.state);
            let session = crossing.router.session()?;
            ensure!(session.established, "the router says {}", session.state);
            Ok(*connection)
        };
        self.wait("one session remains", RESOLUTION_MAX, |crossing| {
            let (connection, seen) = (look(crossing)?, now());
            holds_for("the session stays", CALM, || {
                let remaining = look(crossing)?;
                ensure!(remaining == connection, "it was {connection:?}, it is {remaining:?}");
                Ok(())
            })?;
            Ok((connection, seen))
        })
    }

    fn peer(&self, router_id: &str) -> String {
        format!(
            "apiVersion: metallb.io/v1beta2\nkind: BGPPeer\nmetadata:\n  name: router\nspec:\n  \
             myASN: {}\n  peerASN: {}\n  peerAddress: {}\n  routerID: {router_id}\n",
            self.spec.peer_as, self.spec.local_as, self.spec.local_address
        )
    }

    fn wait<T>(
        &mut self,
        expected: &str,
        limit: Duration,
        mut look: impl FnMut(&Self) -> Result<T>,
    ) -> Result<T> {
        wait_until(expected, limit, || {
            self.router.check_running()?;
            self.fairway.check_running()?;
            look(self)
        })
    }
}
