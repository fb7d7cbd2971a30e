//! A node with four routers, each a machine with BIRD, on a cable of its own.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};

use lab::make_directory;
use lab::namespace::Namespace;
use lab::process::{Process, bounded, output_of};
use lab::suite::Cell;
use lab::wait::{PATIENCE, wait_until};

const BIRD: &str = "/usr/sbin/bird";

/// The number in each router's address, 10.0.N.2, and its AS. The node is 10.0.N.1 to it, and in AS 65001.
pub(crate) const ROUTERS: [(u8, u32); 4] = [(2, 65002), (3, 65003), (4, 65001), (5, 65001)];

pub(crate) struct Scene {
    pub(crate) node: Namespace,
    routers: Vec<Namespace>,
    directory: PathBuf,
    birds: Vec<Process>,
}

impl Scene {
    pub(crate) fn build(cell: &Cell) -> Result<Self> {
        let node = Namespace::create(cell.number, "node")?;
        let mut routers = Vec::new();
        for (number, _) in ROUTERS {
            let router = Namespace::create(cell.number, &format!("router{number}"))?;
            let port = format!("port{number}");
            node.connect(&port, &router, "eth0")?;
            node.add_address(&port, &format!("10.0.{number}.1/24"))?;
            // The other routers are neighbors to it, whose address a route server leaves as the next hop.
            router.add_address("eth0", &format!("10.0.{number}.2/16"))?;
            routers.push(router);
        }
        let directory = cell.directory.join("routers");
        make_directory(&directory)?;
        Ok(Self { node, routers, directory, birds: Vec::new() })
    }

    /// The routers start, without anything that they heard before.
    pub(crate) fn start_routers(&mut self) -> Result<()> {
        self.birds.clear();
        for (router, (number, asn)) in self.routers.iter().zip(ROUTERS) {
            let file = |name: &str| self.file(number, name);
            fs::write(file("conf"), configuration(number, asn)).context("bird.conf")?;
            let words = ["-f", "-c", &file("conf"), "-s", &file("ctl"), "-P", &file("pid")];
            let words: Vec<_> = words.iter().map(|it| (*it).to_owned()).collect();
            let log = self.directory.join(format!("{number}.log"));
            self.birds.push(Process::spawn(router, Path::new(BIRD), &words, &log)?);
            wait_until("BIRD answers", PATIENCE, || {
                self.birdc(number, &["show", "status"]).map(drop)
            })?;
        }
        Ok(())
    }

    fn file(&self, number: u8, name: &str) -> String {
        self.directory.join(format!("{number}.{name}")).to_string_lossy().into_owned()
    }

    fn birdc(&self, number: u8, words: &[&str]) -> Result<String> {
        output_of(bounded("birdc").arg("-s").arg(self.file(number, "ctl")).args(words))
    }

    /// What the node has told router `number`: each route with its attributes, without times.
    pub(crate) fn told(&self, number: u8) -> Result<Vec<String>> {
        let text = self.birdc(number, &["show", "route", "protocol", "node", "all"])?;
        let mut routes: Vec<String> = Vec::new();
        for line in text.lines().filter(|it| !it.starts_with("BIRD ") && !it.starts_with("Table "))
        {
            if line.starts_with(|first: char| first.is_ascii_hexdigit()) {
                routes.push(line.split_whitespace().next().unwrap_or_default().to_owned());
            } else if let (Some(route), true) = (routes.last_mut(), line.contains("BGP.")) {
                write!(route, " {}", line.trim())?;
            }
        }
        // FRR adds a MED of 0 to some reflected routes; none is the same (RFC 4271 §9.1.2.2).
        routes.iter_mut().for_each(|it| *it = it.replace(" BGP.med: 0 ", " "));
        routes.sort();
        Ok(routes)
    }

    /// Waits until each router has so many routes of the node, and returns them.
    pub(crate) fn wait_for(&self, counts: [usize; 4]) -> Result<Vec<Vec<String>>> {
        let mut told = Vec::new();
        wait_until("each router has its routes", 3 * PATIENCE, || {
            told = ROUTERS.iter().map(|(number, _)| self.told(*number)).collect::<Result<_>>()?;
            let has = told.iter().map(Vec::len).collect::<Vec<_>>();
            ensure!(has == counts, "{has:?} routes in place of {counts:?}: {told:#?}");
            Ok(())
        })?;
        Ok(told)
    }

    /// Waits until each router has been told this.
    pub(crate) fn wait_for_same(&self, expected: &[Vec<String>]) -> Result<()> {
        wait_until("each router is told the same", 3 * PATIENCE, || {
            for ((number, _), expected) in ROUTERS.iter().zip(expected) {
                let told = self.told(*number)?;
                let missing: Vec<_> = expected.iter().filter(|it| !told.contains(it)).collect();
                let more: Vec<_> = told.iter().filter(|it| !expected.contains(it)).collect();
                ensure!(
                    missing.is_empty() && more.is_empty(),
                    "10.0.{number}.2: not told {missing:#?}, told {more:#?}"
                );
            }
            Ok(())
        })
    }
}

/// A router announces three prefixes: one with communities of two kinds, one with a MED.
fn configuration(number: u8, asn: u32) -> String {
    format!(
        "log stderr all;\nrouter id 10.0.{number}.2;\nprotocol device {{}}\nprotocol static {{\n  ipv4;\n  \
         route 100.64.{number}.0/24 blackhole {{ bgp_community.add((65000, {number})); \
         bgp_large_community.add((65000, 7, {number})); }};\n  \
         route 100.65.{number}.0/24 blackhole {{ bgp_med = 30; }};\n  route 10.{number}.0.0/16 blackhole;\n}}\n\
         protocol bgp node {{\n  local 10.0.{number}.2 as {asn};\n  neighbor 10.0.{number}.1 as 65001;\n  \
         connect retry time 1;\n  connect delay time 1;\n  error wait time 1,2;\n  \
         ipv4 {{ import all; export where source = RTS_STATIC; }};\n}}\n"
    )
}
