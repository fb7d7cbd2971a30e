//! What do a router and its traffic see when a node is drained, and when it comes back? Rows of the
//! matrix.

use std::collections::BTreeSet;
use std::fs;
use std::net::IpAddr;
use std::process::{Child, Command, Stdio};

use anyhow::{Context, Result, ensure};
use serde_json::json;

use super::scene::{Cell, NODE_AS, ROUTER_AS, Scene, expect_equal};
use super::shown::expect_at;
use lab::fairway::Fairway;
use lab::frr_speaker::Speaker as Frr;
use lab::namespace::Namespace;
use lab::probe::{Answerer, Prober};
use lab::process::output_of;
use lab::resources::{Advertisement, Peer, pool, service};
use lab::routers::{RouterRoute, RouterSpec};
use lab::wait::{PATIENCE, wait_until};
use lab::{Family, NODE_IPV4, ROUTER_TO_TWIN, Site, TWIN, Wiring};

const SERVICE: &str = "203.0.113.10";
const PREFIX: &str = "203.0.113.10/32";
/// As the suite writes communities: as numbers.
const GRACEFUL_SHUTDOWN: &str = "65535:0";

/// Topology: node --- router, eBGP over IPv4.
/// Proves: `fairway drain` makes the router see GRACEFUL_SHUTDOWN on the route, and ends when the
/// route is gone, in the same session; a daemon that restarts is still drained, and logs it;
/// `--undo` brings the route back as it was.
//+ RFC 8326 §4.3: the operator can have neighbours told with GRACEFUL_SHUTDOWN what is about to come.
pub(super) fn a_drained_node_says_so_then_withdraws_and_comes_back(cell: &Cell) -> Result<()> {
    let mut scene = Scene::plain(cell, Family::Ipv4)?;
    let session = scene.bring_up(SERVICE)?;
    let before = scene.route_arrives(PREFIX)?;
    ensure!(!is_leaving(&before), "in service, the route says {:?}", before.communities);
    let leaving = in_background(scene.fairway.drain(&["--wait", "2s"]))?;
    scene.wait("the router sees that the node leaves", PATIENCE, |scene| {
        let route = scene.router.route(PREFIX)?.context("the route is gone")?;
        ensure!(is_leaving(&route), "it sees {:?}", route.communities);
        Ok(())
    })?;
    let summary = scene.fairway.show(&["bgp", "summary"])?;
    expect_at(&summary, "/ipv4Unicast/drain/state", &json!("draining"))?;
    expect_told(leaving)?;
    scene.route_leaves(PREFIX)?;
    scene.expect_same_session(&session)?;
    let neighbours = scene.fairway.show(&["bgp", "neighbors"])?;
    let reason = format!("/{}/unannounced/0/reason", scene.neighbour);
    expect_at(&neighbours, &reason, &json!("the node is drained"))?;

    scene.fairway.stop()?;
    scene.start_fairway()?;
    scene.established()?;
    let config = scene.fairway.show(&["config"])?;
    expect_at(&config, "/drain/state", &json!("drained"))?;
    let again = output_of(&mut scene.fairway.drain(&[]))?;
    ensure!(again.starts_with("nothing to do: this node is drained since"), "it says {again}");
    ensure!(scene.router.route(PREFIX)?.is_none(), "the restart has brought the route back");
    let log = fs::read_to_string(lab::fairway::log_in(&cell.directory))?;
    ensure!(
        log.contains("to end the drain, run `fairway drain --undo`"),
        "the start did not say so"
    );

    let undone = output_of(&mut scene.fairway.drain(&["--undo"]))?;
    ensure!(undone.contains("in service again"), "it says {undone}");
    let after = scene.route_arrives(PREFIX)?;
    expect_equal("communities", &after.communities, &before.communities)?;
    let again = output_of(&mut scene.fairway.drain(&["--undo"]))?;
    ensure!(again.contains("in service already"), "it says {again}");
    Ok(())
}

/// Topology: node and twin, each --- router, eBGP over IPv4; the router shares the traffic to a service
/// that both announce, and a prober at the router sends to it every 10 ms.
/// Proves: when node is drained the router sees GRACEFUL_SHUTDOWN and sends everything to twin before
/// the route is withdrawn, and the session stays; node can stop serving as soon as the command has
/// ended; `--undo` brings node its share back; no probe is lost.
//+ RFC 8326 §4.3: the operator can have neighbours told with GRACEFUL_SHUTDOWN what is about to come.
pub(super) fn a_node_that_is_drained_leaves_its_traffic_to_another(cell: &Cell) -> Result<()> {
    drained_beside_a_twin(cell, ROUTER_AS)
}

/// Topology: as above, with all three in one AS.
/// Proves: the same, and the router sees a LOCAL_PREF of 0 from node itself.
//+ RFC 8326 §4: the LOCAL_PREF of paths that are about to go is below that of all others: 0.
pub(super) fn a_node_that_is_drained_leaves_its_traffic_to_another_inside_the_as(
    cell: &Cell,
) -> Result<()> {
    drained_beside_a_twin(cell, NODE_AS)
}

fn drained_beside_a_twin(cell: &Cell, router_as: u32) -> Result<()> {
    let mut shared = Shared::open(cell, router_as)?;
    let [node, twin] = [NODE_IPV4, TWIN].map(|text| text.parse::<IpAddr>());
    let (node, twin) = (node?, twin?);
    shared.ways_become(&[node, twin])?;
    let session = shared.scene.router.session()?.incarnation;
    let mut prober = shared.probe()?;
    answers_come_from(&mut prober, &["node", "twin"])?;

    let leaving = in_background(shared.scene.fairway.drain(&["--wait", "2s"]))?;
    let path = shared.scene.wait("the router sees that node leaves", PATIENCE, |scene| {
        let path = path_by(scene, node)?.context("node's path is gone")?;
        ensure!(is_leaving(&path), "it sees {:?}", path.communities);
        Ok(path)
    })?;
    expect_equal("LOCAL_PREF of node's path", &path.local_preference, &Some(0))?;
    shared.ways_become(&[twin])?;
    ensure!(path_by(&shared.scene, node)?.is_some(), "the path went before its time");
    expect_told(leaving)?;
    shared.scene.wait("node's path is gone", PATIENCE, |scene| {
        ensure!(path_by(scene, node)?.is_none(), "it is there");
        Ok(())
    })?;
    shared.scene.expect_same_session(&session)?;
    // Now node can be worked on.
    shared.node_answers = None;
    answers_come_from(&mut prober, &["twin"])?;
    shared.node_answers = Some(answerer(cell, "node", &shared.scene.lab.node)?);

    output_of(&mut shared.scene.fairway.drain(&["--undo"]))?;
    shared.ways_become(&[node, twin])?;
    answers_come_from(&mut prober, &["node", "twin"])?;
    shared.scene.expect_same_session(&session)?;
    for tally in prober.tallies()? {
        ensure!(tally.sent > 0 && tally.lost == 0, "probes were lost: {tally:?}");
    }
    Ok(())
}

/// A router between two nodes. Parts are dropped in this order: the daemons before the namespaces
/// that they live in.
struct Shared {
    twin: Fairway,
    _twin_speaker: Option<Frr>,
    node_answers: Option<Answerer>,
    _twin_answers: Answerer,
    scene: Scene,
    site: Site,
}

impl Shared {
    /// Everything runs, and both nodes answer at the address of the service.
    fn open(cell: &Cell, router_as: u32) -> Result<Self> {
        let mut scene = Scene::open(cell, Wiring::Direct, Family::Ipv4, |router| {
            router.local_as = router_as;
            router.twins = vec![TWIN.parse()?];
            Ok(())
        })?;
        let site = scene.lab.add_twin(cell.number)?;
        // By ports, so that each flow of the prober has a way of its own.
        let policy = "net.ipv4.fib_multipath_hash_policy=1";
        scene.lab.router.namespace.run("sysctl", &["-q", "-w", policy])?;
        for place in [&scene.lab.node, &site.namespace] {
            place.add_address("lo", PREFIX)?;
        }
        let mut twin = Fairway::prepare_in(&site.directory)?;
        let twin_speaker = cell.speaker.join(&mut twin, &site.namespace, &site.directory)?;
        let towards_twin = RouterSpec {
            local_address: ROUTER_TO_TWIN.parse()?,
            peer_address: TWIN.parse()?,
            ..scene.spec.clone()
        };
        twin.apply("peer", &Peer::towards(&towards_twin).yaml())?;
        twin.apply("pool", &pool("main", &["203.0.113.0/24"]))?;
        let advertisement = Advertisement { name: "plain", pools: &["main"], ..<_>::default() };
        twin.apply("advertisement", &advertisement.yaml())?;
        twin.apply("web", &service("web", Some(SERVICE)))?;
        scene.bring_up(SERVICE)?;
        twin.start(&site.namespace)?;
        let node_answers = answerer(cell, "node", &scene.lab.node)?;
        let twin_answers = answerer(cell, "twin", &site.namespace)?;
        Ok(Self {
            twin,
            _twin_speaker: twin_speaker,
            node_answers: Some(node_answers),
            _twin_answers: twin_answers,
            scene,
            site,
        })
    }

    /// Waits until the kernel of the router uses exactly these ways to the service.
    fn ways_become(&mut self, expected: &[IpAddr]) -> Result<()> {
        let expected: BTreeSet<IpAddr> = expected.iter().copied().collect();
        self.twin.check_running()?;
        self.scene.wait(&format!("the router's ways are {expected:?}"), PATIENCE, |scene| {
            let ways = scene.kernel_next_hops(PREFIX)?.context("the kernel has no route")?;
            expect_equal("ways", &ways.into_iter().collect(), &expected)
        })
    }

    fn probe(&self) -> Result<Prober> {
        let directory = &self.site.directory;
        let (report, log) = (directory.join("probes.json"), directory.join("probes.log"));
        Prober::start(&self.scene.lab.router.namespace, &[SERVICE.parse()?], &report, &log)
    }
}

/// Answers at the address of the service, with its own name. Returns once it does.
fn answerer(cell: &Cell, name: &str, place: &Namespace) -> Result<Answerer> {
    let log = cell.directory.join(format!("{name}-answers.log"));
    let answerer = Answerer::start(place, name, &[SERVICE.parse()?], &log)?;
    wait_until(&format!("{name} answers"), PATIENCE, || {
        let sockets = place.run("ss", &["-Hlun"])?;
        ensure!(sockets.contains(SERVICE), "its sockets are {sockets:?}");
        Ok(())
    })?;
    Ok(answerer)
}

/// Waits until each of these answers again, and no others do.
fn answers_come_from(prober: &mut Prober, names: &[&str]) -> Result<()> {
    // Probes that are on their way may be answered by any of them.
    let start = prober.tallies()?;
    wait_until(&format!("answers come from {names:?}"), PATIENCE, || {
        let mut now = prober.tallies()?;
        let (before, now) = start.first().zip(now.first_mut()).context("no target")?;
        let is_new = |name: &String, count: &u64| before.answered_by.get(name) != Some(count);
        now.answered_by.retain(|name, count| is_new(name, count));
        let names_now: Vec<&str> = now.answered_by.keys().map(String::as_str).collect();
        expect_equal("names of the answers", &names_now.as_slice(), &names)
    })
}

fn is_leaving(route: &RouterRoute) -> bool {
    route.communities.contains(GRACEFUL_SHUTDOWN)
}

/// The router's path with the next hop `next_hop`.
fn path_by(scene: &Scene, next_hop: IpAddr) -> Result<Option<RouterRoute>> {
    let paths = scene.router.paths(PREFIX)?;
    Ok(paths.into_iter().find(|path| path.next_hops.contains(&next_hop)))
}

fn in_background(mut command: Command) -> Result<Child> {
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command.spawn().context("starting fairway drain")
}

/// The command ends well, and reports that its one neighbour knows.
fn expect_told(leaving: Child) -> Result<()> {
    let output = leaving.wait_with_output().context("waiting for fairway drain")?;
    let [said, progress] = [&output.stdout, &output.stderr].map(|it| String::from_utf8_lossy(it));
    ensure!(output.status.success(), "fairway drain: {}: {progress}", output.status);
    let expected = "the withdrawal of all routes was sent to 1 neighbor; its session stays up";
    ensure!(said.lines().count() == 1 && said.contains(expected), "it says {said}");
    ensure!(progress.contains("s until all routes are withdrawn"), "meanwhile it says {progress}");
    Ok(())
}
