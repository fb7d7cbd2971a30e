//! Are addresses announced while packets to them are delivered, and no longer?

use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, ensure};

use super::probes::{expect, tcp};
use super::segment::{CLUSTER, PODS, Segment, service, services};
use crate::node::LIMIT;
use lab::fairway::Fairway;
use lab::namespace::Namespace;
use lab::resources::{Advertisement, pool};
use lab::routers::{Release, Router, RouterKind, RouterSpec};
use lab::wait::{holds_for, wait_until};
use lab::{Site, make_directory};

const PEER: &str = "\
apiVersion: metallb.io/v1beta2
kind: BGPPeer
metadata: {name: router}
spec: {myASN: 65001, peerASN: 65002, peerAddress: 203.0.113.1}
";
/// How long a story watches that a route stays.
const WHILE: Duration = Duration::from_secs(4);
/// The kernel is read each 30 s; an emulated machine is slow.
const AUDITED: Duration = Duration::from_secs(60);

/// Fairway on the node of a segment, and a router on another cable. Parts are dropped in this order.
struct Announced {
    fairway: Fairway,
    router: Box<dyn Router>,
    _site: Site,
    words: Vec<String>,
}

impl Announced {
    fn prepare(number: usize, directory: &Path, node: &Namespace, more: &[&str]) -> Result<Self> {
        let namespace = Namespace::create(number, "router")?;
        namespace.connect("eth0", node, "uplink")?;
        namespace.add_address("eth0", "203.0.113.1/24")?;
        node.add_address("uplink", "203.0.113.11/24")?;
        let of_router = directory.join("router");
        make_directory(&of_router)?;
        let site = Site { namespace, directory: of_router };
        let spec = RouterSpec::between(
            "203.0.113.1".parse()?,
            "2001:db8::1".parse()?,
            "203.0.113.11".parse()?,
        );
        let mut router = RouterKind::Bird(Release::Bookworm).prepare(&site, &spec)?;
        router.start(&site)?;
        let directory = directory.join("fairway");
        make_directory(&directory)?;
        let fairway = Fairway::prepare_in(&directory)?;
        fairway.apply("peer", PEER)?;
        fairway.apply("pool", &pool("main", &["198.51.100.16/28"]))?;
        let advertisement = Advertisement { name: "plain", pools: &["main"], ..<_>::default() };
        fairway.apply("advertisement", &advertisement.yaml())?;
        let config = fairway.directory_of("config");
        let words = ["run", "--config", &config, "--node", "node-1"];
        let words = words.iter().chain(more).map(|it| (*it).to_owned()).collect();
        Ok(Self { fairway, router, _site: site, words })
    }

    fn start(&mut self, segment: &Segment) -> Result<()> {
        let words: Vec<&str> = self.words.iter().map(String::as_str).collect();
        self.fairway.start_as(&segment.node, &words)
    }

    fn has(&self, address: &str) -> Result<bool> {
        Ok(self.router.route(&format!("{address}/32"))?.is_some_and(|it| it.usable))
    }

    fn wait(&self, address: &str, is_there: bool, limit: Duration) -> Result<()> {
        let what = if is_there { "has" } else { "does not have" };
        wait_until(&format!("the router {what} {address}"), limit, || {
            ensure!(self.has(address)? == is_there, "it is the other way round");
            Ok(())
        })
    }

    fn stays(&self, what: &str, address: &str, is_there: bool) -> Result<()> {
        holds_for(what, WHILE, || {
            ensure!(self.has(address)? == is_there, "{address}: it is the other way round");
            Ok(())
        })
    }

    fn says(&self, service: &str, words: &str) -> Result<()> {
        wait_until(&format!("it says {words:?} of {service}"), LIMIT, || {
            let text = self.fairway.explain("service", &format!("default/{service}"))?;
            let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
            ensure!(text.contains(words), "it says\n{text}");
            Ok(())
        })
    }
}

/// A Service with policy Local and this address, and an endpoint on a node.
fn local(name: &str, last: u8, endpoint: (&str, &str)) -> String {
    let address = format!("198.51.100.{last}");
    let spec = format!(
        "type: LoadBalancer, externalTrafficPolicy: Local, loadBalancerIP: {address}, \
         clusterIP: 10.96.0.{last}, ports: [{{name: t, port: 80}}]"
    );
    service(name, &spec, &address, &[endpoint])
}

/// Topology: client === node === BIRD; the node has a service proxy and a speaker, each with files of its own, and two
/// Pods. Somebody else has a virtual server at one of two addresses.
/// Proves: no address is announced before its virtual server is in the kernel; one that somebody else has is not; what is
/// announced stays while the proxy is dead, over a restart of the speaker too; and it goes when the proxy has no endpoint
/// for it, whatever the speaker knows.
pub(in crate::cases) fn an_address_is_announced_while_it_is_delivered(
    number: usize,
    directory: &Path,
) -> Result<()> {
    const GOOD: &str = "198.51.100.21";
    const TAKEN: &str = "198.51.100.22";
    let mut segment = Segment::build(number, directory)?;
    let here = (PODS[0], "node-1");
    let both = [local("good", 21, here), local("taken", 22, here)].concat();
    segment.apply(&format!("{}{both}", services()))?;
    segment.node.run("ipvsadm", &["-A", "-t", &format!("{TAKEN}:80"), "-s", "wrr"])?;
    let socket = segment.directory.join("run/proxy.sock").display().to_string();
    let mut announced =
        Announced::prepare(number, directory, &segment.node, &["--proxy-socket", &socket])?;
    announced.fairway.apply("services", &both)?;
    announced.start(&segment)?;
    announced.says("good", "does not serve it, or not yet")?;
    announced.stays("nothing is announced before the proxy answers", GOOD, false)?;

    segment.start()?;
    announced.wait(GOOD, true, LIMIT)?;
    expect(
        "what is announced",
        || tcp(&segment.client, "198.51.100.21:80"),
        ["pod1 saw 192.0.2.1"; 2],
    )?;
    announced.says("taken", "another program has virtual server 198.51.100.22:80/TCP")?;
    ensure!(!announced.has(TAKEN)?, "{TAKEN} is announced");

    segment.kill()?;
    announced.stays("a dead proxy's last answer stands", GOOD, true)?;
    announced.fairway.stop()?;
    announced.start(&segment)?;
    announced.wait(GOOD, true, LIMIT)?;
    announced.stays("and over a restart", GOOD, true)?;

    segment.node.run("ipvsadm", &["-D", "-t", &format!("{TAKEN}:80")])?;
    segment.start()?;
    announced.wait(TAKEN, true, AUDITED)?;
    let moved = [local("good", 21, ("10.1.2.11", "node-2")), local("taken", 22, here)].concat();
    segment.apply(&format!("{}{moved}", services()))?;
    announced.wait(GOOD, false, LIMIT)?;
    announced.says("good", "has no endpoint on this node, and the traffic policy is Local")?;
    ensure!(announced.has(TAKEN)?, "{TAKEN} is not announced");
    Ok(())
}

/// Topology: the same, with one process in place of two.
/// Proves: `fairway run --proxy` assigns an address to a Service of its files, delivers packets to it and then announces it;
/// packets are delivered while it is dead; and what is withdrawn and what comes back follows the endpoints.
pub(in crate::cases) fn one_process_does_all(number: usize, directory: &Path) -> Result<()> {
    const ADDRESS: &str = "198.51.100.16";
    let segment = Segment::build(number, directory)?;
    let run_dir = segment.directory.join("run").display().to_string();
    let more = ["--proxy", "--run-dir", &run_dir];
    let mut announced = Announced::prepare(number, directory, &segment.node, &more)?;
    let spec = "type: LoadBalancer, externalTrafficPolicy: Local, ports: [{name: t, port: 80}]";
    let web = |endpoints: &[(&str, &str)]| service("web", spec, "", endpoints);
    let inside = service("inside", "clusterIP: 10.96.0.9, ports: [{name: t, port: 80}]", "", &[]);
    announced.fairway.apply("cluster", &format!("{CLUSTER}{inside}"))?;
    announced.fairway.apply("web", &web(&[(PODS[0], "node-1")]))?;
    announced.start(&segment)?;
    announced.wait(ADDRESS, true, LIMIT)?;
    let answers = || tcp(&segment.client, &format!("{ADDRESS}:80"));
    expect("what is announced", answers, ["pod1 saw 192.0.2.1"; 2])?;
    let show = lab::fairway::existing_program()?.display().to_string();
    let shown = segment
        .node
        .run(&show, &["show", "proxy", "--socket", &format!("{run_dir}/proxy.sock")])?;
    ensure!(shown.contains("198.51.100.16:80/TCP"), "it shows\n{shown}");

    announced.fairway.kill()?;
    expect("nobody runs", answers, ["pod1 saw 192.0.2.1"; 2])?;
    announced.start(&segment)?;
    announced.wait(ADDRESS, true, LIMIT)?;
    let log = std::fs::read_to_string(lab::fairway::log_in(&directory.join("fairway")))?;
    ensure!(!log.contains("service withdrawn"), "a restart withdraws:\n{log}");
    announced.fairway.apply("web", &web(&[]))?;
    announced.wait(ADDRESS, false, LIMIT)?;
    announced.fairway.apply("web", &web(&[(PODS[1], "node-1")]))?;
    announced.wait(ADDRESS, true, LIMIT)?;
    expect("the other Pod", answers, ["pod2 saw 192.0.2.1"; 2])?;
    announced.fairway.stop().context("in the end")
}
