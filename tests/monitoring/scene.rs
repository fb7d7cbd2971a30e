//! A node with Fairway and a router with FRR, on one cable.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use lab::fairway::Fairway;
use lab::make_directory;
use lab::namespace::Namespace;
use lab::process::{Process, bounded, output_of};
use lab::suite::Cell;
use lab::wait::{PATIENCE, wait_until};

const ZEBRA: &str = "/usr/lib/frr/zebra";
const BGPD: &str = "/usr/lib/frr/bgpd";

/// The BGPPeer, a Service with an address, and what announces it.
const RESOURCES: &str = "\
apiVersion: metallb.io/v1beta2
kind: BGPPeer
metadata: {name: tor}
spec: {myASN: 65001, peerASN: 65010, peerAddress: 10.0.0.2, routerID: 10.0.0.1, holdTime: 9s, keepaliveTime: 3s,
       connectTime: 1s, toReceive: {allowed: {mode: all}}}
---
apiVersion: metallb.io/v1beta1
kind: IPAddressPool
metadata: {name: pool}
spec: {addresses: [203.0.113.7/32]}
---
apiVersion: metallb.io/v1beta1
kind: BGPAdvertisement
metadata: {name: all}
---
apiVersion: v1
kind: Service
metadata: {name: web, namespace: shop}
spec: {type: LoadBalancer, externalTrafficPolicy: Cluster, ports: [{port: 80, protocol: TCP}]}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: web-1, namespace: shop, labels: {kubernetes.io/service-name: web}}
addressType: IPv4
endpoints: [{addresses: [10.244.1.5], conditions: {ready: true}}]
ports: [{port: 8080, protocol: TCP}]
";

pub(crate) struct Scene {
    pub(crate) fairway: Fairway,
    pub(crate) node: Namespace,
    router: Namespace,
    directory: PathBuf,
    daemons: Vec<Process>,
}

impl Scene {
    pub(crate) fn build(cell: &Cell) -> Result<Self> {
        let (node, router) =
            (Namespace::create(cell.number, "node")?, Namespace::create(cell.number, "router")?);
        node.connect("eth0", &router, "eth0")?;
        node.add_address("eth0", "10.0.0.1/24")?;
        router.add_address("eth0", "10.0.0.2/24")?;
        let fairway = Fairway::prepare_in(&cell.directory)?;
        let directory = cell.directory.join("frr");
        make_directory(&directory)?;
        Ok(Self { fairway, node, router, directory, daemons: Vec::new() })
    }

    /// Fairway starts, with these stations.
    pub(crate) fn start(&mut self, stations: &str) -> Result<()> {
        self.fairway.apply("lab", RESOURCES)?;
        self.monitor(stations)?;
        self.fairway.start(&self.node)
    }

    /// The stations from now on.
    pub(crate) fn monitor(&self, stations: &str) -> Result<()> {
        self.fairway.apply(
            "stations",
            &format!(
                "apiVersion: fairway.dev/v1beta1\nkind: BGPConfiguration\nmetadata: {{name: it}}\n\
             spec: {{bmp: {{stations: [{stations}]}}}}\n"
            ),
        )
    }

    /// FRR starts, and announces these.
    pub(crate) fn route(&mut self, prefixes: &[String]) -> Result<()> {
        let mut text = "router bgp 65010\n bgp router-id 10.0.0.2\n no bgp ebgp-requires-policy\n \
                        no bgp network import-check\n neighbor 10.0.0.1 remote-as 65001\n \
                        neighbor 10.0.0.1 timers 3 9\n neighbor 10.0.0.1 timers connect 1\n \
                        address-family ipv4 unicast\n"
            .to_owned();
        for prefix in prefixes {
            writeln!(text, "  network {prefix}")?;
        }
        text += " exit-address-family\n";
        fs::write(self.file("bgpd.conf"), text).context("bgpd.conf")?;
        fs::write(self.file("zebra.conf"), "").context("zebra.conf")?;
        output_of(bounded("chown").args(["-R", "frr:frr", &self.file("")]))?;
        for program in [ZEBRA, BGPD] {
            let name = Path::new(program).file_name().unwrap_or_default().to_string_lossy();
            let words = [
                "-i",
                &self.file(&format!("{name}.pid")),
                "-z",
                &self.file("zserv.api"),
                "--vty_socket",
                &self.file(""),
                "-A",
                "127.0.0.1",
                "-P",
                "0",
                "--log",
                "stdout",
                "-f",
                &self.file(&format!("{name}.conf")),
            ]
            .map(str::to_owned);
            let log = self.directory.join(format!("{name}.log"));
            self.daemons.push(Process::spawn(&self.router, Path::new(program), &words, &log)?);
            let socket = self.directory.join(format!("{name}.vty"));
            wait_until(&format!("{name} opens its socket"), PATIENCE, || {
                ensure!(socket.exists(), "no socket yet");
                Ok(())
            })?;
        }
        Ok(())
    }

    fn file(&self, name: &str) -> String {
        self.directory.join(name).to_string_lossy().into_owned()
    }

    pub(crate) fn vtysh(&self, lines: &[&str]) -> Result<String> {
        let mut command = bounded("vtysh");
        command.args(["--vty_socket", &self.file("")]);
        for line in lines {
            command.args(["-c", line]);
        }
        output_of(&mut command)
    }

    pub(crate) fn wait_for_session(&self) -> Result<()> {
        wait_until("the session with FRR is up", 2 * PATIENCE, || {
            let neighbour = self.fairway.neighbour("10.0.0.2")?;
            ensure!(neighbour.is_established(), "it is not");
            Ok(())
        })
    }

    /// Of the daemon, in KiB.
    pub(crate) fn resident_kibibytes(&self) -> Result<u64> {
        let path = format!("/proc/{}/status", self.fairway.process_id()?);
        let status = fs::read_to_string(path)?;
        let line = status.lines().find_map(|it| it.strip_prefix("VmRSS:")).context("no VmRSS")?;
        Ok(line.split_whitespace().next().context("no number")?.parse()?)
    }
}
