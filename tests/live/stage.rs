//! The environment of the trials: a node under test and a router, both `fairway run` with files in a
//! folder of their own, and three sessions between them over loopback: `inside` (iBGP), `outside`
//! (eBGP), and `trial`, which the trials change.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use fairway_daemon::admin::{Request, client};
use fairway_ground::AddressFamily;
use fairway_show::{Format, Query, ShowCommand, VrfSelection};
use serde_json::{Value, json};

use crate::cache;

/// The maximum duration of any step.
const PATIENCE: Duration = Duration::from_secs(8);
/// The interval between two queries of the router.
const PAUSE: Duration = Duration::from_millis(2);

/// The sessions, as both sides call them.
pub(crate) const SESSIONS: [&str; 3] = ["inside", "outside", "trial"];
/// The one route that only the barrier changes.
const MARKER: &str = "203.0.113.255/32";

/// The objects of one side, by the names of their files.
pub(crate) type Scene = BTreeMap<String, Value>;

/// A daemon and its files.
struct Daemon {
    child: Child,
    folder: PathBuf,
    written: Scene,
}

/// All processes. Dropping it ends the daemons and removes the files.
pub(crate) struct Stage {
    node: Daemon,
    router: Daemon,
    pub(crate) node_port: u16,
    pub(crate) router_port: u16,
    pub(crate) cache_port: u16,
    marks: u32,
    _folder: tempfile::TempDir,
}

/// A session as the router sees it.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Session {
    pub(crate) is_up: bool,
    pub(crate) established: u64,
    pub(crate) dropped: u64,
    pub(crate) updates: u64,
    pub(crate) refreshes: u64,
    /// The routes that it received, with all attributes of FRR's JSON.
    pub(crate) routes: BTreeMap<String, Value>,
}

/// All sessions by name.
pub(crate) type View = BTreeMap<&'static str, Session>;

fn free_port(addresses: &[&str]) -> u16 {
    let is_free = |port: &u16| addresses.iter().all(|it| TcpListener::bind((*it, *port)).is_ok());
    (12_790..16_384).find(is_free).unwrap()
}

/// A block of this node without Pods.
fn block(node: &str) -> Value {
    json!({
        "apiVersion": "crd.projectcalico.org/v1",
        "kind": "IPAMBlock",
        "metadata": {"name": "10-245-0-0-26"},
        "spec": {
            "cidr": "10.245.0.0/26",
            "affinity": format!("host:{node}"),
            "allocations": vec![Value::Null; 64],
            "unallocated": (0..64).collect::<Vec<_>>(),
            "attributes": [],
            "strictAffinity": false,
        },
    })
}

impl Daemon {
    fn start(folder: PathBuf, node: &str, listen: &[String]) -> Self {
        fs::create_dir_all(folder.join("files")).unwrap();
        let mut command = Command::new(lab::fairway::existing_program().unwrap());
        command.args(["--log-level", "debug", "run", "--node", node]);
        // It has a block of addresses of Pods.
        command.args(["--ipam".as_ref(), "--cni-spool".as_ref(), folder.join("spool").as_os_str()]);
        command.args([Path::new("--cni-socket"), &folder.join("cni.sock")]);
        let blocks = folder.join("state/ipam-blocks");
        fs::create_dir_all(&blocks).unwrap();
        fs::write(blocks.join("10-245-0-0-26.json"), block(node).to_string()).unwrap();
        let pool = json!({
            "apiVersion": "crd.projectcalico.org/v1", "kind": "IPPool",
            "metadata": {"name": "v4"},
            "spec": {"cidr": "10.245.0.0/24", "blockSize": 26},
        });
        fs::write(folder.join("files/ip-pool.json"), pool.to_string()).unwrap();
        // The interfaces of this machine are not the test's.
        command.env("FAIRWAY_LAYER2_EXCLUDE", ".");
        command.args([Path::new("--config"), &folder.join("files")]);
        command.args([Path::new("--socket"), &folder.join("socket")]);
        command.args([Path::new("--state-dir"), &folder.join("state")]);
        for address in listen {
            command.args(["--bgp-listen", address]);
        }
        let log = File::create(folder.join("log")).unwrap();
        let child = command.env("NO_COLOR", "1").stdin(Stdio::null()).stderr(log).spawn().unwrap();
        Self { child, folder, written: Scene::new() }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.join("files").join(format!("{name}.json"))
    }

    /// Writes one whole file atomically.
    fn put(&mut self, name: &str, object: &Value) {
        if self.written.get(name) == Some(object) {
            return;
        }
        let beside = self.path(name).with_extension("new");
        fs::write(&beside, serde_json::to_string_pretty(object).unwrap()).unwrap();
        fs::rename(&beside, self.path(name)).unwrap();
        self.written.insert(name.to_owned(), object.clone());
    }

    /// Makes the files those of `scene`. Removed files go last, so that nothing lacks what it needs
    /// meanwhile.
    fn put_all(&mut self, scene: &Scene) {
        for (name, object) in scene {
            self.put(name, object);
        }
        let is_gone = |name: &&String| !scene.contains_key(*name) && *name != "marker";
        let gone: Vec<_> = self.written.keys().filter(is_gone).cloned().collect();
        for name in &gone {
            fs::remove_file(self.path(name)).unwrap();
            self.written.remove(name);
        }
        if !gone.is_empty() {
            self.wait_for_absence();
        }
    }

    /// Waits until the daemon has noticed removed files: it checks twice, since editors remove a file
    /// and create it again.
    fn wait_for_absence(&mut self) {
        const NAME: &str = "gone-after-all-others";
        let is_there = |daemon: &Self| {
            let config = daemon.show(ShowCommand::Config).unwrap_or_default();
            config["items"]
                .as_array()
                .is_some_and(|items| items.iter().any(|it| it["name"] == NAME))
        };
        let object = json!({
            "apiVersion": "metallb.io/v1beta1", "kind": "Community", "metadata": {"name": NAME},
        });
        self.put(NAME, &object);
        let is_read = poll(|| is_there(self).then_some(())).is_some();
        assert!(is_read, "a file was not read\n{}", self.log());
        fs::remove_file(self.path(NAME)).unwrap();
        self.written.remove(NAME);
        let is_gone = poll(|| (!is_there(self)).then_some(())).is_some();
        assert!(is_gone, "a removed file is still known\n{}", self.log());
    }

    fn show(&self, what: ShowCommand) -> Option<Value> {
        let request =
            Request::Show(Query { what, format: Format::Json, vrf: VrfSelection::Undivided });
        let text = client::ask(&self.folder.join("socket"), &request).ok()?;
        serde_json::from_str(&text).ok()
    }

    fn log(&self) -> String {
        let log = fs::read_to_string(self.folder.join("log")).unwrap_or_default();
        let lines: Vec<_> = log.lines().collect();
        lines[lines.len().saturating_sub(40)..].join("\n")
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Stage {
    /// Starts both daemons, with no files yet.
    pub(crate) fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let node_port = free_port(&["127.0.0.14"]);
        let router_port = free_port(&["127.0.0.2", "127.0.0.3", "127.0.0.4"]);
        let at = |address: &str, port: u16| format!("{address}:{port}");
        let listen = ["127.0.0.2", "127.0.0.3", "127.0.0.4"].map(|it| at(it, router_port));
        Self {
            router: Daemon::start(folder.path().join("router"), "router", &listen),
            node: Daemon::start(
                folder.path().join("node"),
                "node-a",
                &[at("127.0.0.14", node_port)],
            ),
            node_port,
            router_port,
            cache_port: cache::start(),
            marks: 0,
            _folder: folder,
        }
    }

    /// Makes the files of the node those of `scene`; those that begin with `their-` are the router's.
    pub(crate) fn put_all(&mut self, scene: &Scene) {
        let (theirs, ours): (Scene, Scene) =
            scene.clone().into_iter().partition(|(name, _)| name.starts_with("their-"));
        self.router.put_all(&theirs);
        self.node.put_all(&ours);
    }

    /// The output of a command on the node.
    pub(crate) fn fairway(&self, arguments: &[&str]) -> Output {
        let mut command = Command::new(lab::fairway::program());
        command.args(arguments).arg("--socket").arg(self.node.folder.join("socket"));
        command.output().unwrap()
    }

    /// Renames a file of the node.
    pub(crate) fn rename(&mut self, name: &str, new_name: &str) {
        fs::rename(self.node.path(name), self.node.path(new_name)).unwrap();
        let object = self.node.written.remove(name).unwrap();
        self.node.written.insert(new_name.to_owned(), object);
        self.node.wait_for_absence();
    }

    /// The sessions of the router; `None` while it does not answer yet.
    fn look(&self) -> Option<View> {
        let neighbors = ShowCommand::BgpNeighbors { peer: None, family: None };
        let neighbors = self.router.show(neighbors)?;
        let mut view: View = SESSIONS.map(|name| (name, Session::default())).into();
        for name in SESSIONS {
            let neighbor = &neighbors[address(name)];
            let counter = |field: &str| neighbor[field].as_u64().unwrap_or_default();
            let messages =
                |field: &str| neighbor["messageStats"][field].as_u64().unwrap_or_default();
            view.insert(
                name,
                Session {
                    is_up: neighbor["bgpState"] == "Established",
                    established: counter("connectionsEstablished"),
                    dropped: counter("connectionsDropped"),
                    updates: messages("updatesRecv"),
                    refreshes: messages("routeRefreshRecv"),
                    routes: BTreeMap::new(),
                },
            );
        }
        for family in AddressFamily::ALL {
            let table = self.router.show(ShowCommand::BgpUnicastDetail { family })?;
            for (prefix, paths) in table["routes"].as_object()? {
                for path in paths.as_array().into_iter().flatten() {
                    let peer = path["peer"]["peerId"].as_str();
                    if let Some(name) = SESSIONS.iter().find(|it| Some(address(it)) == peer) {
                        view.get_mut(name)?.routes.insert(prefix.clone(), attributes(path));
                    }
                }
            }
        }
        Some(view)
    }

    /// Waits until the router sees what is `wanted`.
    pub(crate) fn wait(&self, what: &str, mut wanted: impl FnMut(&View) -> bool) -> View {
        let found = poll(|| self.look().filter(&mut wanted));
        found.unwrap_or_else(|| {
            let view = self.look();
            panic!("{what}: not within {PATIENCE:?}\nsees {view:#?}\n{}", self.logs())
        })
    }

    /// Waits until everything that was written before has reached those of `sessions` that are up,
    /// and returns how many UPDATEs each got for that. One marker can overtake a change that is sent
    /// together with it, but a second one cannot.
    pub(crate) fn barrier(&mut self, what: &str, sessions: &[&str]) -> (View, u64) {
        const ROUNDS: u64 = 2;
        let mut view = View::new();
        for _ in 0..ROUNDS {
            self.marks += 1;
            let med = self.marks;
            let marker = json!({
                "apiVersion": "metallb.io/v1beta1", "kind": "BGPAdvertisement",
                "metadata": {"name": "marker"},
                "spec": {"prefixes": [MARKER], "med": med, "ipAddressPools": ["no-such"]},
            });
            self.node.put("marker", &marker);
            let told = poll(|| self.has_marker(med, sessions).then_some(()));
            // Counters must be read after the routes that they count.
            view = self.wait(&format!("{what}: the marker"), |view| {
                sessions
                    .iter()
                    .all(|name| view[name].is_up && view[name].routes.contains_key(MARKER))
            });
            assert!(told.is_some(), "{what}: no marker {med}\n{view:#?}\n{}", self.logs());
        }
        for session in view.values_mut() {
            session.routes.remove(MARKER);
        }
        (view, ROUNDS)
    }

    /// Whether all of `sessions` have received the last marker.
    fn has_marker(&self, med: u32, sessions: &[&str]) -> bool {
        let prefix = Some(MARKER.to_owned());
        let what = ShowCommand::BgpUnicast { family: AddressFamily::Ipv4Unicast, prefix };
        let answer = self.router.show(what).unwrap_or_default();
        let paths = answer["paths"].as_array().cloned().unwrap_or_default();
        let current = paths.iter().filter(|path| path["metric"].as_u64() == Some(u64::from(med)));
        let told: Vec<_> = current.filter_map(|it| it["peer"]["peerId"].as_str()).collect();
        sessions.iter().all(|name| told.contains(&address(name)))
    }

    /// Why the router lost a session, each time from the loss `from` up to the loss `to`. `show` has
    /// only the last attempt, which may be a later one.
    pub(crate) fn farewells(&self, session: &str, from: u64, to: u64) -> Vec<String> {
        let name = format!("name={session} reason=");
        let look = || {
            let log = fs::read_to_string(self.router.folder.join("log")).unwrap();
            let lines = log.lines().filter(|line| line.contains("session down"));
            let reasons = lines
                .filter_map(|line| Some(line.split_once(&name)?.1.trim_matches('"').to_owned()));
            reasons.collect::<Vec<_>>()
        };
        poll(|| Some(look()).filter(|reasons| reasons.len() as u64 >= to))
            .unwrap_or_else(look)
            .into_iter()
            .zip(0..to)
            .filter(|(_, position)| *position >= from)
            .map(|(reason, _)| reason)
            .collect()
    }

    /// The faults that the node found in its files, and what it left out.
    pub(crate) fn faults(&self) -> Vec<String> {
        let config = self.node.show(ShowCommand::Config).unwrap();
        let list = |field: &str| config[field].as_array().cloned().unwrap_or_default();
        let findings = list("findings").into_iter();
        let faults = findings.filter(|it| it["severity"].as_str() != Some("warning"));
        faults.chain(list("leftOut")).map(|it| it.to_string()).collect()
    }

    /// The logs of both daemons, for debugging.
    pub(crate) fn logs(&self) -> String {
        format!("node:\n{}\nrouter:\n{}", self.node.log(), self.router.log())
    }
}

/// The first result of `look`; `None` after the timeout.
#[expect(clippy::disallowed_methods, reason = "daemons that run for real take real time")]
fn poll<T>(mut look: impl FnMut() -> Option<T>) -> Option<T> {
    let deadline = Instant::now() + PATIENCE;
    loop {
        match look() {
            Some(found) => return Some(found),
            None if Instant::now() > deadline => return None,
            None => sleep(PAUSE),
        }
    }
}

/// The parts of a path that come from the neighbour, without the router's decisions.
fn attributes(path: &Value) -> Value {
    const SAID: [&str; 8] = [
        "aspath",
        "origin",
        "metric",
        "locPrf",
        "community",
        "extendedCommunity",
        "largeCommunity",
        "otc",
    ];
    let said = SAID.iter().map(|field| ((*field).to_owned(), path[*field].clone()));
    let next_hop = ("nexthop".to_owned(), path["nexthops"][0]["ip"].clone());
    Value::Object(said.chain([next_hop]).collect())
}

/// The local address of the node on a session.
pub(crate) fn address(session: &str) -> &'static str {
    match session {
        "inside" => "127.0.0.12",
        "outside" => "127.0.0.13",
        _ => "127.0.0.14",
    }
}
