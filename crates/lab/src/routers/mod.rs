//! What is a router to a case? Something that is configured from one `RouterSpec`, can be started,
//! stopped and frozen, and reports in its own words which session and which routes it sees.
//! FRR, BIRD, GoBGP and OpenBGPD each answer in a file of their own, FRR and BIRD for two of their
//! generations. Used by every case.

pub mod bfd;
mod bird;
mod frr;
mod gobgp;
pub mod installation;
mod openbgpd;

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::Value;

pub use crate::Family;
use crate::Site;
use crate::process::{Process, output_of};
use crate::wait::{PATIENCE, wait_until};
use bfd::{BfdSession, BfdSpec};
pub use installation::Release;

/// How long a router may take to leave after SIGTERM.
const STOP_LIMIT: Duration = Duration::from_secs(10);

/// Which side opens the TCP connection, as seen from the router.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialling {
    /// The router only accepts.
    Waits,
    /// The router dials port 179 of its neighbour, and accepts as well.
    Dials,
}

/// The settings of a router and of its one neighbour; each router writes them in its own configuration
/// language.
#[derive(Clone, Debug)]
pub struct RouterSpec {
    pub router_id: Ipv4Addr,
    pub local_as: u32,
    pub peer_as: u32,
    pub local_address: IpAddr,
    /// Its IPv6 address on the same cable.
    pub local_ipv6: Ipv6Addr,
    pub peer_address: IpAddr,
    pub families: Vec<Family>,
    pub password: Option<String>,
    /// The keys of TCP-AO, the preferred one first; only BIRD 3 has it.
    pub ao_keys: Vec<AoKey>,
    /// Where the router listens.
    pub port: u16,
    pub hold_time: u16,
    pub multihop: bool,
    pub dialling: Dialling,
    /// What it originates from its start on.
    pub originated: Vec<Origination>,
    /// Instead of an address: the neighbour that sends router advertisements on this interface.
    pub interface: Option<&'static str>,
    /// IPv4 routes may have IPv6 next hops, RFC 8950.
    pub extended_next_hop: bool,
    /// How many hops away the neighbour may be, RFC 5082.
    pub ttl_security_hops: Option<u8>,
    /// All paths of a prefix, in both directions, RFC 7911.
    pub add_path: bool,
    pub role: Option<Role>,
    /// No session with a neighbour that sends no role, RFC 9234 §4.2.
    pub role_strict: bool,
    /// Its neighbour is a route server: paths do not begin with the neighbour's AS.
    pub of_route_server: bool,
    /// More prefixes than this from the neighbour end the session.
    pub max_prefixes: Option<u32>,
    /// A neighbour at this address, in AS [`FEEDER_AS`], that announces other paths to it.
    pub feeder: Option<Ipv4Addr>,
    /// Neighbours that dial it, each with its AS, whose paths it compares. Only FRR and BIRD have them here.
    pub others: Vec<(Ipv4Addr, u32)>,
    /// More neighbours in the AS of the first, with which they share traffic: to prefixes that several
    /// announce it uses all ways, if it is FRR. Only FRR and BIRD have them here.
    pub twins: Vec<IpAddr>,
    /// Routes outlive a restart of either side.
    pub graceful_restart: Option<GracefulRestart>,
    /// Monitors its neighbour. Only FRR and BIRD can.
    pub bfd: Option<BfdSpec>,
}

/// How a router does graceful restart, RFC 4724.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GracefulRestart {
    /// How long it requests its neighbour to wait for it.
    pub restart_seconds: u16,
    /// After a NOTIFICATION, too: the N bit of RFC 8538. BIRD and OpenBGPD have none.
    pub notifications: bool,
    /// How long routes stay as long-lived stale after that, RFC 9494. OpenBGPD has none of it.
    pub long_lived_seconds: Option<u32>,
}

/// The AS of a router's other neighbour.
pub const FEEDER_AS: u32 = 65009;

/// The router's own role, RFC 9234 §3.1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    Provider,
    Customer,
    Peer,
    RsServer,
    RsClient,
}

impl Role {
    /// In FRR's words.
    pub fn word(self) -> &'static str {
        match self {
            Self::Provider => "provider",
            Self::Customer => "customer",
            Self::Peer => "peer",
            Self::RsServer => "rs-server",
            Self::RsClient => "rs-client",
        }
    }
}

/// A prefix that a router originates, with its attributes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Origination {
    pub prefix: String,
    /// How often its AS stands in the path beside the once that every external path has.
    pub prepends: usize,
    /// As `65001:100`.
    pub communities: Vec<String>,
    /// As `65001:1:2`.
    pub large_communities: Vec<String>,
    pub med: Option<u32>,
}

impl Origination {
    /// Without attributes beyond those that every route has.
    pub fn plain(prefix: &str) -> Self {
        Self { prefix: prefix.to_owned(), ..Self::default() }
    }

    pub fn family(&self) -> Family {
        Family::of(&self.prefix)
    }
}

impl RouterSpec {
    /// An external session of one family over one hop, for which only the neighbour dials.
    pub fn between(local: IpAddr, local_ipv6: Ipv6Addr, peer: IpAddr) -> Self {
        Self {
            router_id: Ipv4Addr::new(10, 0, 0, 2),
            local_as: 65002,
            peer_as: 65001,
            local_address: local,
            local_ipv6,
            peer_address: peer,
            families: vec![if local.is_ipv4() { Family::Ipv4 } else { Family::Ipv6 }],
            password: None,
            ao_keys: Vec::new(),
            port: 179,
            hold_time: 90,
            multihop: false,
            dialling: Dialling::Waits,
            originated: Vec::new(),
            interface: None,
            extended_next_hop: false,
            ttl_security_hops: None,
            add_path: false,
            role: None,
            role_strict: false,
            of_route_server: false,
            max_prefixes: None,
            feeder: None,
            others: Vec::new(),
            twins: Vec::new(),
            graceful_restart: None,
            bfd: None,
        }
    }

    pub fn is_internal(&self) -> bool {
        self.local_as == self.peer_as
    }

    /// The name of the neighbour: its address, or the interface that leads to it.
    fn neighbour(&self) -> String {
        self.interface.map_or_else(|| self.peer_address.to_string(), str::to_owned)
    }
}

/// A key of TCP-AO, RFC 5925 §3.1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AoKey {
    pub send_id: u8,
    pub recv_id: u8,
    /// In fairway's words.
    pub algorithm: &'static str,
    pub secret: &'static str,
}

/// The session with the neighbour, as the router sees it.
#[derive(Clone, Debug)]
pub struct Session {
    pub established: bool,
    /// In the router's own word.
    pub state: String,
    /// Changes whenever the session is established again, and never otherwise.
    pub incarnation: String,
}

/// A route in the router's table that came from the neighbour.
#[derive(Clone, Debug, PartialEq)]
pub struct RouterRoute {
    pub next_hops: Vec<IpAddr>,
    pub as_path: Vec<u32>,
    /// As `65001:100`; well-known ones as numbers too.
    pub communities: BTreeSet<String>,
    /// As `65001:1:2`.
    pub large_communities: BTreeSet<String>,
    pub local_preference: Option<u32>,
    pub med: Option<u32>,
    /// Only-to-Customer, RFC 9234 §5.
    pub otc: Option<u32>,
    /// ORIGINATOR_ID, RFC 4456 §8.
    pub originator: Option<Ipv4Addr>,
    /// CLUSTER_LIST, RFC 4456 §8.
    pub clusters: Vec<Ipv4Addr>,
    /// Of the link bandwidth community, in bytes per second.
    pub link_bandwidth: Option<f64>,
    /// The router can reach the next hop and would use the route.
    pub usable: bool,
}

/// A NOTIFICATION that the router received.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Notification {
    pub code: u8,
    pub subcode: u8,
}

/// What the neighbour has sent so far, over all sessions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Received {
    pub updates: u64,
    pub route_refreshes: u64,
}

/// A router under its own control, at a site of a lab.
pub trait Router: Send {
    /// Writes the configuration, starts the daemons and waits until they answer.
    fn start(&mut self, site: &Site) -> Result<()>;

    /// Its programs, in the order in which they are ended; empty when it does not run.
    fn daemons(&mut self) -> &mut Vec<Process>;

    /// Takes over a daemon that was just started, and waits until it answers.
    fn keep(&mut self, name: &str, daemon: Process) -> Result<()> {
        self.daemons().push(daemon);
        wait_until(&format!("{name} answers about its neighbor"), PATIENCE, || {
            self.check_running()?;
            self.session()
        })
        .map(drop)
    }

    /// Ends the daemons as an operator does.
    fn stop(&mut self) -> Result<()> {
        for mut daemon in self.daemons().drain(..) {
            daemon.stop(STOP_LIMIT)?;
        }
        Ok(())
    }

    /// SIGKILL to the daemons of BGP. Forwarding goes on: FRR's zebra, a kernel.
    fn crash(&mut self) -> Result<()> {
        ensure!(!self.daemons().is_empty(), "the router does not run");
        self.daemons().remove(0).kill();
        Ok(())
    }

    /// Starts it again after a crash, as a program that has restarted and forwards as before, and
    /// originates these.
    fn recover(&mut self, site: &Site, originated: &[Origination]) -> Result<()>;

    /// Stops the router's clocks, sockets stay open.
    fn freeze(&mut self) -> Result<()> {
        self.daemons().iter().try_for_each(Process::freeze)
    }

    /// Lets them go on.
    fn thaw(&mut self) -> Result<()> {
        self.daemons().iter().try_for_each(Process::thaw)
    }

    /// Fails, for good, when a daemon has ended.
    fn check_running(&mut self) -> Result<()> {
        self.daemons().iter_mut().try_for_each(Process::check_running)
    }

    /// Makes these, and no others, the prefixes that it originates, while it runs. The session
    /// with the neighbour stays.
    fn originate(&mut self, originated: &[Origination]) -> Result<()>;

    /// Makes these the keys of TCP-AO, while it runs. The session with the neighbour stays.
    fn change_keys(&mut self, keys: Vec<AoKey>) -> Result<()> {
        anyhow::bail!("this router has no TCP-AO for {} keys", keys.len())
    }

    /// Monitors its neighbour in this way from now on, while it runs. It did before, in another way.
    fn change_bfd(&mut self, bfd: BfdSpec) -> Result<()> {
        anyhow::bail!("this router has no BFD for {bfd:?}")
    }

    /// The one BFD session that it has.
    fn bfd(&self) -> Result<BfdSession> {
        anyhow::bail!("this router has no BFD")
    }

    fn session(&self) -> Result<Session>;

    /// All prefixes of a family that the neighbour has announced.
    fn prefixes(&self, family: Family) -> Result<BTreeSet<String>>;

    /// All paths to a prefix, those of the neighbour and any others, in the order of the router.
    fn paths(&self, prefix: &str) -> Result<Vec<RouterRoute>>;

    /// The path that the router uses, or another one.
    fn route(&self, prefix: &str) -> Result<Option<RouterRoute>> {
        let mut paths = self.paths(prefix)?;
        let used = paths.iter().position(|path| path.usable).unwrap_or(0);
        Ok((!paths.is_empty()).then(|| paths.swap_remove(used)))
    }

    /// All prefixes of a family that the neighbour has announced, and whether each is stale: only
    /// kept since the session ended.
    fn kept(&self, family: Family) -> Result<BTreeMap<String, bool>>;

    /// Whether the neighbour has sent all that it has of a family, in this session.
    fn has_end_of_rib(&self, family: Family) -> Result<bool>;

    /// What its operator reads on the screen after this command.
    fn screen(&self, command: &str) -> Result<String> {
        anyhow::bail!("this router has no command {command} yet")
    }

    fn received(&self) -> Result<Received>;

    /// The last NOTIFICATION from the neighbour, if there was one.
    fn last_notification(&self) -> Result<Option<Notification>>;

    /// The text that came with the last administrative shutdown or reset, RFC 9003.
    fn last_shutdown_text(&self) -> Result<Option<String>>;

    /// Takes the session down, as its operator does, with a text for the neighbour.
    fn shut_down(&mut self, text: &str) -> Result<()>;
}

/// The routers of the matrix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RouterKind {
    Frr(Release),
    Bird(Release),
    Gobgp,
    Openbgpd,
}

impl RouterKind {
    pub const ALL: [Self; 6] = [
        Self::Frr(Release::Bookworm),
        Self::Frr(Release::Trixie),
        Self::Bird(Release::Bookworm),
        Self::Bird(Release::Trixie),
        Self::Gobgp,
        Self::Openbgpd,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Self::Frr(_) => "FRR",
            Self::Bird(_) => "BIRD",
            Self::Gobgp => "GoBGP",
            Self::Openbgpd => "OpenBGPD",
        }
    }

    /// What it is called on the command line and in the names of files.
    pub fn word(self) -> &'static str {
        match self {
            Self::Frr(Release::Bookworm) => "frr8",
            Self::Frr(Release::Trixie) => "frr10",
            Self::Bird(Release::Bookworm) => "bird2",
            Self::Bird(Release::Trixie) => "bird3",
            Self::Gobgp => "gobgp",
            Self::Openbgpd => "openbgpd",
        }
    }

    /// Whether a word of the command line means this router: `frr` means both.
    pub fn is_called(self, word: &str) -> bool {
        self.word() == word || self.name().eq_ignore_ascii_case(word)
    }

    /// Prepares a router at `site`; nothing runs yet.
    pub fn prepare(self, site: &Site, spec: &RouterSpec) -> Result<Box<dyn Router>> {
        Ok(match self {
            Self::Frr(release) => Box::new(frr::Frr::prepare(release, site, spec)?),
            Self::Bird(release) => Box::new(bird::Bird::prepare(release, site, spec)?),
            Self::Gobgp => Box::new(gobgp::Gobgp::prepare(site, spec)?),
            Self::Openbgpd => Box::new(openbgpd::Openbgpd::prepare(site, spec)?),
        })
    }

    /// The next hop of its IPv6 routes on an IPv4 session. GoBGP
    /// writes its IPv4 address in IPv6 form.
    pub fn ipv6_next_hop(self, spec: &RouterSpec) -> String {
        match self {
            Self::Frr(_) | Self::Bird(_) | Self::Openbgpd => spec.local_ipv6.to_string(),
            Self::Gobgp => format!("::ffff:{}", spec.local_address),
        }
    }

    /// How long a session may take to come up. GoBGP's own connect and idle timers are slow and
    /// random, whatever they are set to.
    pub fn patience(self) -> Duration {
        match self {
            Self::Frr(_) | Self::Bird(_) | Self::Openbgpd => PATIENCE,
            Self::Gobgp => 3 * PATIENCE,
        }
    }

    fn release(self) -> Release {
        match self {
            Self::Frr(release) | Self::Bird(release) => release,
            Self::Gobgp | Self::Openbgpd => Release::Bookworm,
        }
    }

    /// The version, from the program itself; an error says how to get it when it is missing.
    pub fn version(self) -> Result<String> {
        let (programs, option, package) = match self {
            Self::Frr(_) => ([frr::BGPD, frr::ZEBRA, frr::VTYSH].as_slice(), "--version", "frr"),
            Self::Bird(_) => ([bird::BIRD].as_slice(), "--version", "bird2"),
            Self::Gobgp => ([gobgp::GOBGPD, gobgp::GOBGP].as_slice(), "--version", "gobgpd"),
            Self::Openbgpd => ([openbgpd::BGPCTL, openbgpd::BGPD].as_slice(), "-V", "openbgpd"),
        };
        for program in programs {
            let file = self.release().file(program);
            let cure = match self.release() {
                Release::Bookworm => format!("install the Debian package {package}"),
                Release::Trixie => "run scripts/setup.sh trixie".to_owned(),
            };
            let (name, file_name) = (self.word(), file.display());
            ensure!(file.exists(), "{name} cannot be tested: {file_name} is missing; {cure}");
        }
        let program = programs.first().context("a router without a program")?;
        // BIRD and OpenBGPD print it to stderr.
        let script = ["-c", "exec \"$0\" \"$1\" 2>&1", program, option];
        let text = output_of(self.release().command("sh").args(script))?;
        text.split_whitespace()
            .find(|word| word.starts_with(|first: char| first.is_ascii_digit()))
            .map(str::to_owned)
            .with_context(|| format!("expected a version number from {program}: {text}"))
    }
}

/// Where the router's log of the cell in `directory` is.
pub fn log_in(directory: &Path) -> PathBuf {
    directory.join("router.log")
}

/// A community as two numbers; routers print the well-known ones by name, each in its own spelling.
fn community_number(text: &str) -> String {
    let letters = text.to_ascii_lowercase().replace(['-', '_'], "");
    let number = match letters.as_str() {
        "gracefulshutdown" => "65535:0",
        "llgrstale" => "65535:6",
        "noexport" => "65535:65281",
        "noadvertise" => "65535:65282",
        "localas" | "noexportsubconfed" => "65535:65283",
        _ => text,
    };
    number.to_owned()
}

/// The strings of a JSON list; an absent list is empty.
fn strings_of(list: Option<&Value>) -> Vec<&str> {
    list.and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str).collect()
}

/// The link bandwidth of a community as 0x4004 or 0x0004 and its number of 32 bits, which is an IEEE
/// 754 value.
fn link_bandwidth_of(bits: u32) -> f64 {
    f32::from_bits(bits).into()
}

/// AS numbers of a path that is written with blanks between them.
fn as_path_of(text: &str) -> Result<Vec<u32>> {
    let number = |word: &str| word.parse().with_context(|| format!("AS path {text:?}"));
    text.split_whitespace().map(number).collect()
}

fn address_of(text: &str) -> Result<IpAddr> {
    text.parse().with_context(|| format!("expected an address, got {text:?}"))
}
