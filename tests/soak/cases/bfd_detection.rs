//! A dead router is gone in 150 ms: sessions with an FRR at 50 ms x 3 are cut off in both directions, one
//! after the other, and again when all are back. The clock runs from the last packet of BFD that came
//! through to the NOTIFICATION and to the route that is gone: ours by our log, FRR's by its kernel.

use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use crate::bench::Bench;
use crate::bfd::Timers;
use crate::bfd::cable::{Cable, node_address, pair_of, router_address};
use crate::bfd::capture::{Capture, Packet, Saying, between, time_of_day};
use crate::bfd::frr::{BFDD, BGPD, Frr, ZEBRA};
use crate::bfd::spread::Spread;
use lab::fairway::{Fairway, log_in};
use lab::process::Process;
use lab::resources::{Advertisement, pool, service};
use lab::wait::{PATIENCE, wait_until};
use lab::{NODE_INTERFACE, ROUTER_INTERFACE};

const TIMERS: Timers = Timers::every(50, 3);
/// What is promised of the 99th percentile, from the last packet.
const PROMISE: Duration = Duration::from_millis(200);
/// The slowest of the few of a short run, which other virtual machines beside this one may hold up. Without BFD it takes
/// the hold time.
const SHORT_MAX: Duration = Duration::from_millis(500);

/// Sessions, and how often each is cut off.
const LONG: (u16, usize) = (10, 30);
const SHORT: (u16, usize) = (6, 1);

/// The longest time between two cuts, so that they fall anywhere between two packets.
const STAGGER: Duration = Duration::from_millis(90);

/// Each side dials again after a second, and takes some more if it broke before.
const BACK_AGAIN: Duration = Duration::from_secs(90);

/// How long each cut took, by what was watched.
#[derive(Default)]
struct Times {
    our_notification: Vec<Duration>,
    our_route: Vec<Duration>,
    their_notification: Vec<Duration>,
    their_route: Vec<Duration>,
}

struct Scene {
    fairway: Fairway,
    frr: Frr,
    at_node: Capture,
    at_router: Capture,
    /// The routes of the router's kernel, as they go.
    routes: Process,
    routes_log: PathBuf,
    fairway_log: PathBuf,
    cable: Cable,
}

pub(super) fn run(bench: &Bench) -> Result<()> {
    let (pairs, rounds) = if bench.short { SHORT } else { LONG };
    let mut scene = Scene::open(bench, pairs)?;
    let mut times = Times::default();
    for round in 0..rounds {
        scene.all_up()?;
        scene.cut_all(bench, round, &mut times).with_context(|| format!("round {round}"))?;
        scene.cable.heal()?;
    }
    let spread = |what: &str, durations: Vec<Duration>| -> Result<Spread> {
        let spread = Spread::of(durations).with_context(|| what.to_owned())?;
        bench.say(format!("{TIMERS}, from the last packet of BFD to {what}: {spread}"));
        Ok(spread)
    };
    let ours = [
        spread("our NOTIFICATION", times.our_notification)?,
        spread("the route gone from our table", times.our_route)?,
    ];
    spread("FRR's NOTIFICATION", times.their_notification)?;
    spread("the route gone from FRR's kernel", times.their_route)?;
    let longest = if bench.short { SHORT_MAX } else { PROMISE };
    for spread in ours {
        let found = spread.percentile(99);
        ensure!(found <= longest, "expected p99 of at most {longest:?}, it was {found:?}");
    }
    Ok(())
}

/// What the router announces over this pair, and what we announce.
fn router_prefix(pair: u16) -> String {
    format!("10.90.{pair}.0/24")
}

fn our_address(pair: u16) -> String {
    format!("203.0.113.{}", pair + 1)
}

impl Scene {
    fn open(bench: &Bench, pairs: u16) -> Result<Self> {
        let cable = Cable::lay(220, &bench.directory, pairs)?;
        let mut frr = Frr::prepare(&cable.router.directory);
        let namespace = &cable.router.namespace;
        frr.start(namespace, ZEBRA, "")?;
        frr.start(namespace, BFDD, &bfdd())?;
        frr.start(namespace, BGPD, &bgpd(pairs))?;
        let mut fairway = Fairway::prepare_in(&bench.directory)?;
        configure(&fairway, pairs)?;
        fairway.start(&cable.node)?;
        let at_node = Capture::start(&cable.node, NODE_INTERFACE)?;
        let at_router = Capture::start(namespace, ROUTER_INTERFACE)?;
        let routes_log = bench.directory.join("routes.log");
        let words = ["TZ=UTC", "ip", "-ts", "monitor", "route"].map(str::to_owned);
        let routes = Process::spawn(namespace, Path::new("env"), &words, &routes_log)?;
        let fairway_log = log_in(&bench.directory);
        Ok(Self { fairway, frr, at_node, at_router, routes, routes_log, fairway_log, cable })
    }

    /// Waits until BFD and BGP are up, and the routes are there, at both ends of every pair.
    fn all_up(&mut self) -> Result<()> {
        let pairs = usize::from(self.cable.pairs);
        wait_until("all sessions are up at both ends", BACK_AGAIN, || {
            self.fairway.check_running()?;
            self.frr.check_running()?;
            self.routes.check_running()?;
            let ours = up(&self.fairway.show(&["bfd", "peers"])?);
            let theirs = up(&self.frr.ask("show bfd peers json")?);
            ensure!(ours == pairs && theirs == pairs, "BFD: {ours} here, {theirs} there");
            let ours = learned(&self.fairway.show(&["bgp", "ipv4", "unicast"])?, "10.90.");
            let theirs = learned(&self.frr.ask("show bgp ipv4 unicast json")?, "203.0.113.");
            ensure!(ours == pairs && theirs == pairs, "routes: {ours} here, {theirs} there");
            let text = self.cable.router.namespace.ip(&["route"])?;
            let installed = text.lines().filter(|line| line.starts_with("203.0.113.")).count();
            ensure!(installed == pairs, "{installed} are in the kernel");
            Ok(())
        })
    }

    /// Cuts all pairs off, each at a moment of its own, and measures until both ends have reported it.
    fn cut_all(&mut self, bench: &Bench, round: usize, times: &mut Times) -> Result<()> {
        let (mut at_node, mut at_router) = (Vec::new(), Vec::new());
        // What was logged in the round before is of no use.
        drop((self.at_node.take(), self.at_router.take()));
        wait_until("both ends receive packets of every pair", PATIENCE, || {
            at_node.extend(self.at_node.take());
            at_router.extend(self.at_router.take());
            for pair in 0..self.cable.pairs {
                let from = |far, packets: &[Packet]| packets.iter().any(|it| it.source == far);
                let heard = from(router_address(pair), &at_node);
                ensure!(heard && from(node_address(pair), &at_router), "pair {pair} is silent");
            }
            Ok(())
        })?;
        let logged = |file: &Path| fs::metadata(file).map_or(0, |it| it.len());
        let (our_log, their_log) = (logged(&self.fairway_log), logged(&self.routes_log));
        for pair in 0..self.cable.pairs {
            self.cable.cut(pair)?;
            bench.pause(stagger(bench.seed, round, pair))?;
        }
        let mut taken = Vec::new();
        wait_until("both ends have reported that all are gone", PATIENCE, || {
            at_node.extend(self.at_node.take());
            at_router.extend(self.at_router.take());
            let ours = lines_since(&self.fairway_log, our_log)?;
            let theirs = lines_since(&self.routes_log, their_log)?;
            taken.clear();
            for pair in 0..self.cable.pairs {
                let (node, router) = (node_address(pair), router_address(pair));
                let (our_last, our_end) = end(&at_node, pair, router)?;
                let (their_last, their_end) = end(&at_router, pair, node)?;
                let prefix = format!("prefix={} ", router_prefix(pair));
                let our_route = moment(&ours, &["route gone", &prefix])?;
                let deleted = format!("Deleted {} ", our_address(pair));
                let their_route = moment(&theirs, &[&deleted])?;
                taken.push([(our_last, our_end), (our_last, our_route)]);
                taken.push([(their_last, their_end), (their_last, their_route)]);
            }
            Ok(())
        })?;
        for both in taken.chunks_exact(2) {
            let [[our_end, our_route], [their_end, their_route]] = both else { continue };
            for (moments, times) in [
                (our_end, &mut times.our_notification),
                (our_route, &mut times.our_route),
                (their_end, &mut times.their_notification),
                (their_route, &mut times.their_route),
            ] {
                times.push(between(moments.0, moments.1).context("the end before the cut")?);
            }
        }
        Ok(())
    }
}

/// When the last packet of BFD came from `far`, and when the NOTIFICATION about that was sent to it.
fn end(packets: &[Packet], pair: u16, far: Ipv4Addr) -> Result<(Duration, Duration)> {
    let of_pair = packets.iter().filter(|packet| pair_of(packet.source) == Some(pair));
    let mut last = None;
    for packet in of_pair {
        match packet.saying {
            Saying::Bfd if packet.source == far => last = Some(packet.at),
            Saying::Notification(6, 10) if packet.destination == far => {
                let last = last.context("no packet of BFD before the NOTIFICATION")?;
                return Ok((last, packet.at));
            }
            _ => {}
        }
    }
    anyhow::bail!("no NOTIFICATION to {far}")
}

/// When the first of these lines with all these words was written.
fn moment(lines: &str, words: &[&str]) -> Result<Duration> {
    let line = lines.lines().find(|line| words.iter().all(|word| line.contains(word)));
    let line = line.with_context(|| format!("no line with {words:?}"))?;
    time_of_day(line).with_context(|| format!("no time in {line}"))
}

fn lines_since(file: &Path, length: u64) -> Result<String> {
    let text = fs::read_to_string(file).with_context(|| file.display().to_string())?;
    Ok(text.get(usize::try_from(length)?..).unwrap_or_default().to_owned())
}

/// Anything up to the longest, by the seed of the run.
fn stagger(seed: u64, round: usize, pair: u16) -> Duration {
    let mut hasher = DefaultHasher::new();
    (seed, round, pair).hash(&mut hasher);
    STAGGER * u32::from(hasher.finish().to_le_bytes()[0]) / u32::from(u8::MAX)
}

fn up(list: &Value) -> usize {
    let sessions = list.as_array().into_iter().flatten();
    sessions.filter(|session| session.get("status") == Some(&"up".into())).count()
}

fn learned(table: &Value, beginning: &str) -> usize {
    let routes = table.get("routes").and_then(Value::as_object);
    routes.map_or(0, |routes| routes.keys().filter(|key| key.starts_with(beginning)).count())
}

fn configure(fairway: &Fairway, pairs: u16) -> Result<()> {
    let mut peers = TIMERS.profile();
    for pair in 0..pairs {
        peers += &format!(
            "---\napiVersion: metallb.io/v1beta2\nkind: BGPPeer\nmetadata:\n  name: peer-{pair}\n\
             spec:\n  myASN: 65001\n  peerASN: 65002\n  bfdProfile: watch\n  \
             peerAddress: {}\n  sourceAddress: {}\n  toReceive: {{allowed: {{mode: all}}}}\n",
            router_address(pair),
            node_address(pair)
        );
        let (name, peer) = (format!("web-{pair}"), format!("peer-{pair}"));
        fairway.apply(&name, &service(&name, Some(&our_address(pair))))?;
        let advertisement = Advertisement {
            name: &name,
            pools: &["main"],
            peers: &[&peer],
            only_service: Some(&name),
            ..Advertisement::default()
        };
        fairway.apply(&format!("advertisement-{pair}"), &advertisement.yaml())?;
    }
    fairway.apply("pool", &pool("main", &["203.0.113.0/24"]))?;
    fairway.apply("peers", &peers)
}

fn bfdd() -> String {
    format!(
        "bfd\n profile watch\n  detect-multiplier {}\n  transmit-interval {interval}\n  \
         receive-interval {interval}\n exit\nexit\n",
        TIMERS.multiplier,
        interval = TIMERS.milliseconds(),
    )
}

fn bgpd(pairs: u16) -> String {
    let mut text = "router bgp 65002\n bgp router-id 10.0.0.2\n no bgp ebgp-requires-policy\n \
         no bgp network import-check\n"
        .to_owned();
    let mut lists = String::new();
    let mut family = " address-family ipv4 unicast\n".to_owned();
    for pair in 0..pairs {
        let (node, router) = (node_address(pair), router_address(pair));
        for words in [
            "remote-as 65001",
            &format!("update-source {router}"),
            "timers 30 90",
            "timers connect 1",
            "bfd",
            "bfd profile watch",
        ] {
            text += &format!(" neighbor {node} {words}\n");
        }
        family += &format!("  network {}\n", router_prefix(pair));
        family += &format!("  neighbor {node} prefix-list out-{pair} out\n");
        lists += &format!("ip prefix-list out-{pair} seq 5 permit {}\n", router_prefix(pair));
    }
    text + &family + " exit-address-family\nexit\n" + &lists
}
