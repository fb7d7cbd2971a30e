//! Metrics of a real daemon beside a real router (a second daemon), on loopback, no root.

#![allow(clippy::panic, clippy::unwrap_used)] // What fails here fails the test.
#![allow(clippy::indexing_slicing, clippy::string_slice, reason = "what fails here fails the test")]
#![allow(clippy::disallowed_methods, reason = "a real daemon lives in real time")]

mod page;

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::process::{Child, Command};
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::{Duration, Instant};

use fairway_daemon::metrics::{FAMILIES, Shown};
use page::Page;
use tempfile::TempDir;

const PROGRAM: &str = env!("CARGO_BIN_EXE_fairway");
/// Far more than anything here takes.
const PATIENCE: Duration = Duration::from_secs(60);
const PAUSE: Duration = Duration::from_millis(20);

const ANNOUNCER: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 1);
const ROUTER: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 2);

/// Where the search for a free port begins.
static NEXT_PORT: AtomicU16 = AtomicU16::new(12_790);

const PROFILE: &str =
    "apiVersion: metallb.io/v1beta1\nkind: BFDProfile\nmetadata: {name: fast}\nspec: {}\n";
const POOL: &str = "apiVersion: metallb.io/v1beta1\nkind: IPAddressPool\nmetadata: {name: main}\n\
                    spec: {addresses: [192.0.2.0/28, '2001:db8::/124']}\n";
const OTHER_POOL: &str = "apiVersion: metallb.io/v1beta1\nkind: IPAddressPool\n\
                          metadata: {name: other}\nspec: {addresses: [198.51.100.0/28]}\n";
const ADVERTISEMENT: &str = "apiVersion: metallb.io/v1beta1\nkind: BGPAdvertisement\n\
                             metadata: {name: all}\n";

const SEGMENT: &str = "apiVersion: metallb.io/v1beta1\nkind: L2Advertisement\n\
                       metadata: {name: segment}\n";

/// Two daemons that know each other, and their files.
struct Stage {
    place: TempDir,
    router_port: u16,
    metrics: SocketAddr,
    router_metrics: SocketAddr,
    daemons: Vec<Child>,
}

impl Drop for Stage {
    fn drop(&mut self) {
        for daemon in &mut self.daemons {
            let _ = daemon.kill();
            let _ = daemon.wait();
        }
    }
}

impl Stage {
    /// Both are there, and the session is up.
    fn set() -> Self {
        let place = TempDir::new().unwrap();
        // Below the largest that a BGPPeer may have, 16384; each stage of this process has its own.
        let is_free = |it: &u16| TcpListener::bind((ROUTER, *it)).is_ok();
        let free =
            std::iter::repeat_with(|| NEXT_PORT.fetch_add(1, Ordering::Relaxed)).find(is_free);
        let [metrics, router_metrics] =
            [ANNOUNCER, ROUTER].map(|it| TcpListener::bind((it, 0)).unwrap().local_addr().unwrap());
        let (router_port, daemons) = (free.unwrap(), Vec::new());
        let mut stage = Self { place, router_port, metrics, router_metrics, daemons };
        stage.write("router/peer.yaml", &stage.peer(ROUTER, ANNOUNCER, "  passive: true\n"));
        stage.write("announcer/peer.yaml", &stage.peer(ANNOUNCER, ROUTER, "  bfdProfile: fast\n"));
        stage.write("announcer/profile.yaml", PROFILE);
        stage.write("announcer/pool.yaml", POOL);
        stage.write("announcer/all.yaml", ADVERTISEMENT);
        stage.write("announcer/web.yaml", &service("web", "RequireDualStack"));
        let listen = format!("{ROUTER}:{}", stage.router_port);
        stage.start("router", &listen, &router_metrics.to_string());
        // A router that does not know its neighbour yet ends the first connection.
        stage.wait_for_of(router_metrics, "the neighbor of the router", |page| {
            page.0.contains_key("metallb_bgp_session_up")
        });
        stage.start("announcer", "none", &metrics.to_string());
        stage.wait_for("the routes", |page| {
            page.find("metallb_bgp_announced_prefixes_total", &[]) == Some(2.0)
        });
        stage
    }

    fn peer(&self, own: Ipv4Addr, other: Ipv4Addr, rest: &str) -> String {
        let (my_asn, peer_asn) = if own == ANNOUNCER { (65001, 65002) } else { (65002, 65001) };
        format!(
            "apiVersion: metallb.io/v1beta2\nkind: BGPPeer\nmetadata: {{name: neighbor}}\nspec:\n  \
             myASN: {my_asn}\n  peerASN: {peer_asn}\n  peerAddress: {other}\n  peerPort: {}\n  \
             sourceAddress: {own}\n  routerID: {own}\n  dualStackAddressFamily: true\n  \
             toAdvertise: {{nextHop: {{ipv6: '2001:db8:ffff::1'}}}}\n  \
             toReceive: {{allowed: {{mode: all}}}}\n{rest}",
            self.router_port
        )
    }

    /// Puts a file in place in one step.
    fn write(&self, file: &str, text: &str) {
        let path = self.place.path().join(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        let staged = self.place.path().join("staged");
        fs::write(&staged, text).unwrap();
        fs::rename(staged, path).unwrap();
    }

    fn start(&mut self, name: &str, listen: &str, metrics: &str) {
        let below = |what: &str| self.place.path().join(format!("{name}{what}"));
        let mut command = Command::new(PROGRAM);
        command.args(["run", "--node", name, "--bgp-listen", listen, "--config"]);
        // The interfaces of this machine are not the test's.
        command.env("FAIRWAY_LAYER2_EXCLUDE", ".");
        if name == "router" {
            // The announcer has addresses to answer for, and no interface: as a member it would own none.
            let key = below(".key");
            fs::write(&key, "a key of sixteen bytes").unwrap();
            command.env("FAIRWAY_MEMBERS", "127.0.0.99").env("FAIRWAY_MEMBER_KEY_FILE", key);
            command.env("FAIRWAY_MEMBER_LISTEN", "127.0.0.1:0");
        }
        command.arg(below("")).arg("--state-dir").arg(below(".state"));
        command.arg("--socket").arg(below(".sock")).args(["--metrics-listen", metrics]);
        command.stderr(File::create(below(".log")).unwrap());
        self.daemons.push(command.spawn().unwrap());
    }

    /// The page, once it is served.
    fn page(&self) -> Page {
        self.page_of(self.metrics)
    }

    fn page_of(&self, daemon: SocketAddr) -> Page {
        let start = Instant::now();
        loop {
            assert!(start.elapsed() < PATIENCE, "no page");
            let Some(answer) = get(daemon, "/metrics") else {
                std::thread::sleep(PAUSE);
                continue;
            };
            let (head, body) = answer.split_once("\r\n\r\n").unwrap();
            assert!(head.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
            return Page::read(body);
        }
    }

    /// The first page of which that is true.
    fn wait_for(&self, what: &str, is_so: impl Fn(&Page) -> bool) -> Page {
        self.wait_for_of(self.metrics, what, is_so)
    }

    fn wait_for_of(&self, daemon: SocketAddr, what: &str, is_so: impl Fn(&Page) -> bool) -> Page {
        let start = Instant::now();
        loop {
            let page = self.page_of(daemon);
            if is_so(&page) {
                return page;
            }
            assert!(start.elapsed() < PATIENCE, "expected {what} within {PATIENCE:?}: {page:#?}");
            std::thread::sleep(PAUSE);
        }
    }

    fn drain(&self, words: &[&str]) {
        let socket = self.place.path().join("announcer.sock");
        let mut command = Command::new(PROGRAM);
        let output = command.arg("drain").args(words).arg("--socket").arg(socket).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
}

fn service(name: &str, policy: &str) -> String {
    format!(
        "apiVersion: v1\nkind: Service\nmetadata: {{name: {name}}}\nspec: {{type: LoadBalancer, \
         ipFamilyPolicy: {policy}, ports: [{{port: 80, protocol: TCP}}]}}\n"
    )
}

/// The answer; `None` while nobody is there.
fn get(address: SocketAddr, path: &str) -> Option<String> {
    let mut stream = TcpStream::connect(address).ok()?;
    stream.write_all(format!("GET {path} HTTP/1.1\r\nHost: {address}\r\n\r\n").as_bytes()).ok()?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).ok()?;
    Some(answer)
}

/// How many changes were measured.
fn measured(page: &Page) -> f64 {
    page.number("fairway_event_to_update_seconds_count", &[])
}

#[test]
fn a_daemon_shows_what_the_page_of_the_documentation_lists() {
    let stage = Stage::set();
    stage.write("announcer/segment.yaml", SEGMENT);
    let check = format!(
        "metadata: {{name: checked, annotations: {{fairway.dev/health-check: 'tcp://{}'}}}}",
        stage.metrics
    );
    let checked = service("checked", "SingleStack").replace("metadata: {name: checked}", &check);
    stage.write("announcer/checked.yaml", &checked);
    stage.wait_for("a health check that succeeds", |page| {
        let labels = [("service", "default/checked")];
        page.0.contains_key("fairway_health_check_success")
            && page.number("fairway_health_check_success", &labels) == 1.0
    });
    let mut page = stage.wait_for("addresses on layer 2", |page| {
        page.0.contains_key("metallb_layer2_requests_received")
    });
    // The other daemon is a member.
    let of_member = stage.page_of(stage.router_metrics).0.remove_entry("fairway_layer2_members");
    page.0.extend(of_member);
    let of_run = [Shown::Everywhere, Shown::Node, Shown::Allocator, Shown::Services];
    let listed = FAMILIES.iter().filter(|it| of_run.contains(&it.shown));
    let names: BTreeSet<&str> = listed.clone().map(|it| it.name).collect();
    let shown: BTreeSet<&str> = page.0.keys().map(String::as_str).collect();
    assert_eq!(shown, names);
    for family in listed {
        let of_page = &page.0[family.name];
        assert_eq!(
            (of_page.kind.as_str(), of_page.help.as_str()),
            (family.kind.name(), family.help)
        );
        let labels: BTreeSet<&str> = family.labels.iter().copied().collect();
        for (name, its_labels, _) in &of_page.samples {
            let its_labels = its_labels.keys().map(String::as_str).filter(|it| *it != "le");
            assert_eq!(its_labels.collect::<BTreeSet<_>>(), labels, "{name}");
        }
    }
}

#[test]
fn the_numbers_are_those_of_the_session_and_of_the_pool() {
    let stage = Stage::set();
    let page = stage.page();
    let peer_label = format!("{ROUTER}:{}", stage.router_port);
    let peer = [("peer", peer_label.as_str()), ("vrf", "")];
    for (name, number) in [
        ("metallb_bgp_session_up", 1.0),
        ("metallb_bgp_announced_prefixes_total", 2.0),
        ("metallb_bgp_pending_prefixes_total", 2.0),
        ("metallb_bgp_opens_sent", 1.0),
        ("metallb_bgp_opens_received", 1.0),
        ("metallb_bgp_notifications_sent", 0.0),
        ("fairway_bgp_connections_established_total", 1.0),
        ("fairway_bgp_unannounced_prefixes", 0.0),
    ] {
        assert_eq!(page.number(name, &peer), number, "{name}");
    }
    // The router is another Fairway that nobody asked for BFD.
    let watched = [("peer", "127.0.0.2"), ("vrf", "")];
    for name in ["session_up", "session_up_events", "session_down_events", "echo_packet_output"] {
        assert_eq!(page.number(&format!("metallb_bfd_{name}"), &watched), 0.0, "{name}");
    }
    assert_eq!(page.number("fairway_bfd_realtime", &[]), 0.0);
    // Two routes, and an End-of-RIB for each family.
    assert!(page.number("metallb_bgp_updates_total", &peer) >= 4.0);
    let parts = ["updates_total", "opens_sent", "notifications_sent", "keepalives_sent"];
    let sum: f64 = parts.iter().map(|it| page.number(&format!("metallb_bgp_{it}"), &peer)).sum();
    assert_eq!(page.number("metallb_bgp_total_sent", &peer), sum);
    let info = [("desc", "neighbor"), ("state", "Established")];
    assert_eq!(page.number("fairway_bgp_peer_info", &info), 1.0);
    for ip in ["192.0.2.0", "2001:db8::"] {
        let labels =
            [("service", "default/web"), ("protocol", "bgp"), ("node", "announcer"), ("ip", ip)];
        assert_eq!(page.number("metallb_speaker_announced", &labels), 1.0);
    }
    let pool = [("pool", "main")];
    for (name, number) in [
        ("addresses_total", 32.0),
        ("addresses_in_use_total", 2.0),
        ("ipv4_addresses_total", 16.0),
        ("ipv4_addresses_in_use_total", 1.0),
        ("ipv6_addresses_total", 16.0),
        ("ipv6_addresses_in_use_total", 1.0),
        ("services_allocated_total", 1.0),
    ] {
        assert_eq!(page.number(&format!("metallb_allocator_{name}"), &pool), number, "{name}");
    }
    assert_eq!(page.number("metallb_k8s_client_config_loaded_bool", &[]), 1.0);
    assert_eq!(page.number("metallb_k8s_client_updates_total", &[]), 5.0);
    assert!(page.number("process_resident_memory_bytes", &[]) > 1e6);
    for probe in ["/healthz", "/readyz"] {
        let answer = get(stage.metrics, probe).unwrap();
        assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{probe}: {answer}");
    }
}

#[test]
fn a_change_is_measured_from_its_file_to_its_update() {
    let stage = Stage::set();
    // The session came up after the files were read: nobody was late.
    let before = stage.page();
    assert_eq!(measured(&before), 0.0);
    let written = Instant::now();
    stage.write("announcer/dns.yaml", &service("dns", "SingleStack"));
    let after = stage.wait_for("a measured change", |page| measured(page) > 0.0);
    let elapsed = written.elapsed().as_secs_f64();
    assert_eq!(measured(&after), 1.0, "one neighbor, one change");
    let took = after.number("fairway_event_to_update_seconds_sum", &[]);
    assert!(took > 0.0 && took < elapsed, "{took} of {elapsed}");
    // What routers need not know is no change, and a withdrawal is one.
    stage.write("announcer/other.yaml", OTHER_POOL);
    stage.wait_for("the pool", |page| {
        page.find("metallb_allocator_addresses_total", &[("pool", "other")]).is_some()
    });
    fs::remove_file(stage.place.path().join("announcer/dns.yaml")).unwrap();
    let last = stage.wait_for("the withdrawal", |page| {
        page.number("metallb_bgp_announced_prefixes_total", &[]) == 2.0 && measured(page) >= 2.0
    });
    assert_eq!(measured(&last), 2.0);
}

#[test]
fn a_fault_makes_the_configuration_stale_until_it_is_mended() {
    let stage = Stage::set();
    let state = |page: &Page| {
        let faults = page.number("fairway_config_findings", &[("severity", "fault")]);
        (page.number("metallb_k8s_client_config_stale_bool", &[]), faults)
    };
    assert_eq!(state(&stage.page()), (0.0, 0.0));
    stage.write("announcer/pool.yaml", &POOL.replace("192.0.2.0/28", "192.0.2.0/33"));
    let stale = stage.wait_for("the fault", |page| state(page) == (1.0, 1.0));
    assert_eq!(stale.number("metallb_k8s_client_update_errors_total", &[]), 1.0);
    assert_eq!(stale.number("fairway_config_stale_objects", &[]), 1.0);
    assert_eq!(stale.number("metallb_bgp_announced_prefixes_total", &[]), 2.0);
    stage.write("announcer/pool.yaml", POOL);
    let mended = stage.wait_for("no fault", |page| state(page) == (0.0, 0.0));
    assert_eq!(mended.number("metallb_k8s_client_update_errors_total", &[]), 1.0);
}

#[test]
fn a_drained_node_announces_nothing_and_says_so() {
    let stage = Stage::set();
    let state = |page: &Page, name| page.number("fairway_drain_state", &[("state", name)]);
    assert_eq!(state(&stage.page(), "in-service"), 1.0);
    stage.drain(&["--wait", "0s"]);
    let drained = stage.wait_for("no route", |page| {
        page.number("metallb_bgp_announced_prefixes_total", &[]) == 0.0
    });
    assert_eq!((state(&drained, "drained"), state(&drained, "in-service")), (1.0, 0.0));
    assert_eq!(drained.number("metallb_bgp_pending_prefixes_total", &[]), 0.0);
    assert_eq!(drained.number("metallb_bgp_session_up", &[]), 1.0, "the session stays");
    assert_eq!(drained.number("fairway_services_announced", &[]), 0.0);
    assert!(!drained.0.contains_key("metallb_speaker_announced"));
    assert_eq!(measured(&drained), 0.0, "no object changed");
    stage.drain(&["--undo"]);
    stage.wait_for("the routes", |page| {
        page.number("metallb_bgp_announced_prefixes_total", &[]) == 2.0
    });
}
