//! What is queried? The topology that FRR was captured in: node-a with Fairway between two routers
//! with BIRD, and configured neighbours that do not exist.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use crate::asking::scrape_json;
use lab::fairway::Fairway;
use lab::make_directory;
use lab::namespace::Namespace;
use lab::process::{Process, bounded, output_of};
use lab::wait::{PATIENCE, wait_until};

const BIRD: &str = "/usr/sbin/bird";
pub(crate) const ROUTER_TWO: &str = "10.1.2.2";
const RESOURCES: &str = include_str!("lab/fairway.yaml");

pub(crate) struct Stage {
    pub(crate) fairway: Fairway,
    pub(crate) sockets: PathBuf,
    routers: Vec<Router>,
    node: Namespace,
}

/// How a session ended, in FRR's words and numbers.
pub(crate) struct End {
    pub(crate) due_to: &'static str,
    pub(crate) code: u64,
    /// Of the NOTIFICATION, in four digits.
    pub(crate) error: Option<&'static str>,
}

struct Router {
    directory: PathBuf,
    bird: Process,
    namespace: Namespace,
}

impl Router {
    fn start(node: &Namespace, number: usize, directory: &Path, text: &str) -> Result<Self> {
        let name = format!("router{number}");
        let namespace = Namespace::create(0, &name)?;
        let cable = format!("eth{number}");
        node.connect(&cable, &namespace, "eth1")?;
        let links = [("10.1", "/24"), ("2001:db8:1", "/64")];
        for (net, length) in links {
            let sign = if net.contains(':') { ":" } else { "." };
            let of = |host: usize| match sign {
                ":" => format!("{net}:{number}::{host}{length}"),
                _ => format!("{net}.{number}.{host}{length}"),
            };
            node.add_address(&cable, &of(1))?;
            namespace.add_address("eth1", &of(2))?;
        }
        let directory = directory.join(name);
        make_directory(&directory)?;
        fs::write(directory.join("bird.conf"), text).context("bird.conf")?;
        let bird = Self::spawn(&namespace, &directory, &[])?;
        Ok(Self { directory, bird, namespace })
    }

    fn spawn(namespace: &Namespace, directory: &Path, more: &[&str]) -> Result<Process> {
        let file = |name: &str| directory.join(name).to_string_lossy().into_owned();
        let words = ["-f", "-c", &file("bird.conf"), "-s", &file("bird.ctl"), "-P", &file("pid")];
        let words: Vec<_> = words.iter().chain(more).map(|it| (*it).to_owned()).collect();
        Process::spawn(namespace, Path::new(BIRD), &words, &directory.join("bird.log"))
    }

    fn birdc(&self, words: &[&str]) -> Result<String> {
        let socket = self.directory.join("bird.ctl");
        output_of(bounded("birdc").arg("-s").arg(socket).args(words))
    }
}

impl Stage {
    pub(crate) fn set(directory: &Path) -> Result<Self> {
        make_directory(directory)?;
        let node = Namespace::create(0, "node")?;
        let routers = vec![
            Router::start(&node, 1, directory, include_str!("lab/router-one.conf"))?,
            Router::start(&node, 2, directory, include_str!("lab/router-two.conf"))?,
        ];
        let mut fairway = Fairway::prepare_in(directory)?;
        let sockets = directory.join("vty");
        fairway.extra_arguments = vec!["--vty-dir".to_owned(), sockets.to_string_lossy().into()];
        fairway.apply("lab", RESOURCES)?;
        fairway.start(&node)?;
        let stage = Self { fairway, sockets, routers, node };
        stage.wait_for_routes()?;
        Ok(stage)
    }

    pub(crate) fn socket(&self, name: &str) -> PathBuf {
        self.sockets.join(name)
    }

    /// All sessions are up, and every route is here and there.
    pub(crate) fn wait_for_routes(&self) -> Result<()> {
        wait_until("all routes", PATIENCE, || {
            for (words, paths) in [("show ip bgp json", 11), ("show bgp json", 6)] {
                let table = self.bgpd(words)?;
                let found = table.get("totalPaths").and_then(Value::as_u64);
                ensure!(found == Some(paths), "{words}: {found:?} of {paths} paths");
            }
            let told = self.bgpd("show bgp vrf all neighbors json")?;
            let sent = told
                .pointer("/default/10.1.1.2/addressFamilyInfo/ipv4Unicast/sentPrefixCounter")
                .and_then(Value::as_u64);
            ensure!(sent == Some(2), "router one was sent {sent:?} of 2 prefixes");
            let watched = scrape_json(&self.socket("bfdd.vty"), "show bfd peers json")?;
            let up = watched.as_array().into_iter().flatten();
            let up = up.filter(|it| it.get("status").is_some_and(|status| status == "up")).count();
            ensure!(up == 2, "{up} of 2 paths are up: {watched}");
            Ok(())
        })
    }

    /// Waits until router two is in `state`, as the summary writes it.
    pub(crate) fn wait_for_router_two(&self, state: &str) -> Result<()> {
        wait_until(&format!("router two is {state}"), PATIENCE, || {
            let summary = self.bgpd("show bgp ipv4 unicast summary json")?;
            let found = summary.pointer(&format!("/peers/{ROUTER_TWO}/state"));
            ensure!(found.and_then(Value::as_str) == Some(state), "it is {found:?}");
            Ok(())
        })
    }

    /// Waits until the last session with router two, or the last attempt, ended in this way.
    pub(crate) fn wait_for_end(&self, end: &End) -> Result<()> {
        wait_until(&format!("a session ends: {}", end.due_to), PATIENCE, || {
            let neighbors = self.bgpd("show bgp neighbors json")?;
            let found = |key: &str| neighbors.pointer(&format!("/{ROUTER_TWO}/{key}"));
            let due_to = found("lastResetDueTo").and_then(Value::as_str);
            let code = found("lastResetCode").and_then(Value::as_u64);
            let error = found("lastErrorCodeSubcode").and_then(Value::as_str);
            let is_it = (due_to, code, error) == (Some(end.due_to), Some(end.code), end.error);
            ensure!(is_it, "it is {due_to:?} {code:?} {error:?}");
            Ok(())
        })
    }

    /// Router two shuts its session down with a text, or lets it come back.
    pub(crate) fn router_two(&self, words: &[&str]) -> Result<()> {
        let router = self.routers.get(1).context("router two")?;
        router.birdc(words).map(drop)
    }

    /// Writes `wanted` for `present` in the resources; that must be a part of router two's alone.
    pub(crate) fn change_router_two(&self, present: &str, wanted: &str) -> Result<()> {
        ensure!(RESOURCES.matches(present).count() == 1, "{present} is not there once");
        self.fairway.apply("lab", &RESOURCES.replace(present, wanted))
    }

    /// The resources as they were.
    pub(crate) fn restore_router_two(&self) -> Result<()> {
        self.fairway.apply("lab", RESOURCES)?;
        self.wait_for_routes()
    }

    /// Nothing is received from router two any more.
    pub(crate) fn silence_router_two(&self) -> Result<()> {
        let rules = format!(
            "add table ip silence; \
             add chain ip silence input {{ type filter hook input priority 0; }}; \
             add rule ip silence input ip saddr {ROUTER_TWO} drop"
        );
        self.node.run("nft", &[&rules]).map(drop)
    }

    /// It is received again.
    pub(crate) fn hear_router_two(&self) -> Result<()> {
        self.node.run("nft", &["delete table ip silence"])?;
        self.wait_for_routes()
    }

    /// Router two dies without a NOTIFICATION.
    pub(crate) fn kill_router_two(&mut self) -> Result<()> {
        self.routers.get_mut(1).context("router two")?.bird.kill();
        Ok(())
    }

    /// It starts again, and advertises that it was away (`-R`).
    pub(crate) fn start_router_two_again(&mut self) -> Result<()> {
        let router = self.routers.get_mut(1).context("router two")?;
        router.bird = Router::spawn(&router.namespace, &router.directory, &["-R"])?;
        Ok(())
    }

    /// Router two is back, and nothing that it announced before is waited for.
    pub(crate) fn wait_for_end_of_restart(&self) -> Result<()> {
        self.wait_for_router_two("Established")?;
        wait_until("router two has sent all its routes", PATIENCE, || {
            let neighbors = self.bgpd("show bgp neighbors json")?;
            let stale =
                neighbors.pointer(&format!("/{ROUTER_TWO}/gracefulRestartInfo/staleRoutes"));
            ensure!(stale.is_none(), "{stale:?}");
            Ok(())
        })
    }

    fn bgpd(&self, words: &str) -> Result<Value> {
        scrape_json(&self.socket("bgpd.vty"), words)
    }
}
