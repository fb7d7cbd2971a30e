//! A node with Fairway and a router with BIRD: on one cable, or with another router between them.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use lab::fairway::Fairway;
use lab::make_directory;
use lab::namespace::Namespace;
use lab::process::{Process, bounded, output_of};
use lab::suite::Cell;
use lab::wait::{PATIENCE, wait_until};

const BIRD: &str = "/usr/sbin/bird";

/// What the router has.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Router {
    pub(crate) asn: u32,
    pub(crate) id: &'static str,
    /// The address and the AS that it expects of the node.
    pub(crate) node: &'static str,
    pub(crate) node_asn: u32,
    /// More lines of the protocol.
    pub(crate) more: &'static str,
    /// What it exports, as a filter.
    pub(crate) export: &'static str,
}

impl Router {
    pub(crate) const HEALTHY: Self = Self {
        asn: 65010,
        id: "10.0.0.2",
        node: "10.0.0.1",
        node_asn: 65001,
        more: "",
        export: "all",
    };

    fn configuration(self, address: &str) -> String {
        let Self { asn, id, node, node_asn, more, export } = self;
        format!(
            "log stderr all;\nrouter id {id};\nprotocol device {{}}\n\
             protocol bfd {{ interface \"*\" {{ interval 100 ms; multiplier 3; }}; }}\n\
             protocol static {{ ipv4; route 198.51.100.0/24 blackhole; route 198.51.101.0/24 blackhole; }}\n\
             protocol bgp node {{\n  local {address} as {asn};\n  neighbor {node} as {node_asn};\n  \
             hold time 9;\n  connect retry time 1;\n  connect delay time 1;\n  error wait time 1,2;\n  {more}\n  \
             ipv4 {{ import all; export {export}; }};\n}}\n"
        )
    }
}

/// The spec of the BGPPeer, and objects beside it.
pub(crate) const PEER: &str = "myASN: 65001, peerASN: 65010, peerAddress: 10.0.0.2, routerID: 10.0.0.1, holdTime: 9s, \
                               keepaliveTime: 3s, connectTime: 1s, toReceive: {allowed: {mode: all}}";

/// A BGPPeer with this spec.
pub(crate) fn peer(spec: &str) -> String {
    format!(
        "apiVersion: metallb.io/v1beta2\nkind: BGPPeer\nmetadata: {{name: tor}}\nspec: {{{spec}}}\n"
    )
}

pub(crate) struct Scene {
    pub(crate) fairway: Fairway,
    pub(crate) node: Namespace,
    pub(crate) router: Namespace,
    /// Between the two, if anything is.
    pub(crate) between: Option<Namespace>,
    bird: Option<Process>,
    directory: PathBuf,
    address: &'static str,
}

impl Scene {
    /// On one cable.
    pub(crate) fn near(cell: &Cell) -> Result<Self> {
        let (node, router) =
            (Namespace::create(cell.number, "node")?, Namespace::create(cell.number, "router")?);
        node.connect("eth0", &router, "eth0")?;
        node.add_address("eth0", "10.0.0.1/24")?;
        router.add_address("eth0", "10.0.0.2/24")?;
        Self::prepare(cell, node, router, None, "10.0.0.2")
    }

    /// With another router on the way.
    pub(crate) fn far(cell: &Cell) -> Result<Self> {
        let [node, between, router] =
            ["node", "between", "router"].map(|role| Namespace::create(cell.number, role));
        let (node, between, router) = (node?, between?, router?);
        node.connect("eth0", &between, "eth0")?;
        between.connect("eth1", &router, "eth0")?;
        node.add_address("eth0", "10.0.0.1/24")?;
        between.add_address("eth0", "10.0.0.254/24")?;
        between.add_address("eth1", "10.9.0.254/24")?;
        router.add_address("eth0", "10.9.0.2/24")?;
        between.enable_forwarding()?;
        node.add_route("10.9.0.0/24", "10.0.0.254")?;
        router.add_route("10.0.0.0/24", "10.9.0.254")?;
        Self::prepare(cell, node, router, Some(between), "10.9.0.2")
    }

    fn prepare(
        cell: &Cell,
        node: Namespace,
        router: Namespace,
        between: Option<Namespace>,
        address: &'static str,
    ) -> Result<Self> {
        let fairway = Fairway::prepare_in(&cell.directory)?;
        let directory = cell.directory.join("router");
        make_directory(&directory)?;
        Ok(Self { fairway, node, router, between, bird: None, directory, address })
    }

    pub(crate) fn start(&mut self, resources: &str) -> Result<()> {
        self.fairway.apply("lab", resources)?;
        self.fairway.start(&self.node)
    }

    /// The router runs with this configuration, in place of the one before.
    pub(crate) fn route(&mut self, router: Router) -> Result<()> {
        self.bird = None;
        let file = |name: &str| self.directory.join(name).to_string_lossy().into_owned();
        fs::write(file("bird.conf"), router.configuration(self.address)).context("bird.conf")?;
        let words = ["-f", "-c", &file("bird.conf"), "-s", &file("bird.ctl"), "-P", &file("pid")];
        let words: Vec<_> = words.iter().map(|it| (*it).to_owned()).collect();
        let log = self.directory.join("bird.log");
        self.bird = Some(Process::spawn(&self.router, Path::new(BIRD), &words, &log)?);
        wait_until("BIRD answers", PATIENCE, || self.birdc(&["show", "status"]).map(drop))
    }

    pub(crate) fn birdc(&self, words: &[&str]) -> Result<String> {
        output_of(bounded("birdc").arg("-s").arg(self.directory.join("bird.ctl")).args(words))
    }

    /// `fairway explain WORDS json`.
    pub(crate) fn explained(&self, words: &[&str]) -> Result<Value> {
        let mut command = bounded(lab::fairway::program());
        command.arg("explain").args(words).arg("json").arg("--socket").arg(self.fairway.socket());
        let text = output_of(&mut command)?;
        serde_json::from_str(&text).with_context(|| text.clone())
    }

    /// The first line of `fairway explain WORDS`, or of why there is none.
    pub(crate) fn first_line(&self, words: &[&str]) -> Result<String> {
        let mut command = bounded(lab::fairway::program());
        command.arg("explain").args(words).arg("--socket").arg(self.fairway.socket());
        let output = command.output()?;
        let text = [output.stdout, output.stderr].concat();
        let text = String::from_utf8_lossy(&text);
        Ok(text.lines().next().unwrap_or_default().to_owned())
    }

    /// Waits until the first line about the peer has `phrase`, with `word` among the causes.
    pub(crate) fn wait_for_cause(&self, word: &str, phrase: &str) -> Result<()> {
        wait_until(&format!("the cause {word}, {phrase:?}"), PATIENCE, || {
            let explained = self.explained(&["peer", "tor"])?;
            let verdict =
                explained.pointer("/items/0/verdict").and_then(Value::as_str).unwrap_or_default();
            let causes = explained.pointer("/items/0/causes").and_then(Value::as_array);
            let words: Vec<_> =
                causes.into_iter().flatten().filter_map(|it| it.get("word")?.as_str()).collect();
            ensure!(
                verdict.contains(phrase),
                "the first line is {verdict:?}, the causes are {words:?}"
            );
            ensure!(words.contains(&word), "{verdict:?}: the causes are {words:?}");
            Ok(())
        })
    }

    /// Waits until there is a session, and no cause.
    pub(crate) fn wait_for_session(&self) -> Result<()> {
        wait_until("a session, and no cause", 3 * PATIENCE, || {
            let explained = self.explained(&["peer", "tor"])?;
            let item = explained.pointer("/items/0").context("no peer")?;
            ensure!(item["state"] == "Established", "{}", item["verdict"]);
            ensure!(item["causes"].as_array().is_some_and(Vec::is_empty), "{}", item["causes"]);
            Ok(())
        })
    }

    /// Nothing is received from port 179 and for it any more, in this place.
    pub(crate) fn filter(place: &Namespace) -> Result<()> {
        let rules = "add table ip silence; \
                     add chain ip silence input { type filter hook input priority 0; }; \
                     add rule ip silence input tcp dport 179 drop; \
                     add rule ip silence input tcp sport 179 drop";
        place.run("nft", &[rules]).map(drop)
    }

    /// The same of BFD.
    pub(crate) fn filter_bfd(place: &Namespace) -> Result<()> {
        let rules = "add table ip silence; \
                     add chain ip silence input { type filter hook input priority 0; }; \
                     add rule ip silence input udp dport 3784 drop";
        place.run("nft", &[rules]).map(drop)
    }

    /// It is received again.
    pub(crate) fn hear(place: &Namespace) -> Result<()> {
        place.run("nft", &["delete table ip silence"]).map(drop)
    }
}
