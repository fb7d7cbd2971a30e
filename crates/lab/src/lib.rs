//! What do the system tests and benchmarks share? Network namespaces, real routers, the daemon as a
//! program, an API server, ways to wait, and one command line for all suites.
//!
//! The crate does not depend on the library of Fairway: a change in the daemon recompiles neither this
//! crate nor the suites. It starts the binary and nothing else. Used by the packages `fairway-tests` and
//! `fairway`, in their tests and benchmarks.
//!
//! This module builds the lab of a cell: a directory and two namespaces, `node` (fairway) and `router`,
//! joined by a cable, or by way of a third one that forwards; a second router has one of its own, on a
//! cable of its own.

#![allow(
    missing_docs,
    unreachable_pub,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "all of this crate is test code: what fails here fails a test"
)]

pub mod bird;
pub mod cluster;
pub mod cut;
pub mod fairway;
pub mod frr_speaker;
pub mod keepalived;
pub mod latencies;
pub mod metallb;
pub mod monitor;
pub mod namespace;
pub mod outsider;
pub mod printed;
pub mod probe;
pub mod process;
pub mod resources;
pub mod routers;
pub mod rpki;
pub mod suite;
pub mod terminal;
pub mod tiers;
pub mod usage;
pub mod wait;
pub mod withdrawals;

use std::fs::{self, Permissions};
use std::net::IpAddr;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};

use namespace::Namespace;

pub const NODE_IPV4: &str = "10.77.0.1";
pub const NODE_IPV6: &str = "fd77::1";
/// The node's other address, for `sourceAddress`.
pub const NODE_SECOND_IPV4: &str = "10.77.0.11";

/// The ends of the cable between node and router.
pub const NODE_INTERFACE: &str = "to-router";
pub const ROUTER_INTERFACE: &str = "to-node";

/// The node's addresses on the cable to the second router.
pub const NODE_TO_SECOND: [&str; 2] = ["10.79.0.1", "fd79::1"];
/// The second router's addresses.
pub const SECOND: [&str; 2] = ["10.79.0.2", "fd79::2"];

/// The other node that announces the same, and the router's address on the cable to it.
pub const TWIN: &str = "10.81.0.1";
pub const ROUTER_TO_TWIN: &str = "10.81.0.2";

/// The router's other neighbour, and the router's address on the cable to it.
pub const FEEDER: &str = "10.80.0.9";
pub const ROUTER_TO_FEEDER: &str = "10.80.0.2";

const MIDDLE_TO_NODE: [&str; 2] = ["10.77.0.254", "fd77::fe"];
const MIDDLE_TO_ROUTER: [&str; 2] = ["10.78.0.254", "fd78::fe"];

/// The family of an address, a prefix or a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Family {
    Ipv4,
    Ipv6,
}

impl Family {
    /// The family of a prefix or an address as text.
    pub fn of(text: &str) -> Self {
        if text.contains(':') { Self::Ipv6 } else { Self::Ipv4 }
    }

    pub fn word(self) -> &'static str {
        match self {
            Self::Ipv4 => "ipv4",
            Self::Ipv6 => "ipv6",
        }
    }
}

/// How node and router are joined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wiring {
    /// node --- router
    Direct,
    /// node --- middle --- router
    MiddleHop,
}

impl Wiring {
    pub fn router_address(self, family: Family) -> Result<IpAddr> {
        let text = match (self, family) {
            (Self::Direct, Family::Ipv4) => "10.77.0.2",
            (Self::Direct, Family::Ipv6) => "fd77::2",
            (Self::MiddleHop, Family::Ipv4) => "10.78.0.2",
            (Self::MiddleHop, Family::Ipv6) => "fd78::2",
        };
        text.parse().context("an address of the lab")
    }
}

/// Where a router lives, and where its files are.
pub struct Site {
    pub namespace: Namespace,
    pub directory: PathBuf,
}

/// The namespaces of one cell and the directory that holds its files.
pub struct Lab {
    pub node: Namespace,
    pub router: Site,
    _middle: Option<Namespace>,
    pub directory: PathBuf,
}

impl Lab {
    /// Builds the namespaces of cell number `cell` and gives them their addresses.
    pub fn build(cell: usize, directory: &Path, wiring: Wiring) -> Result<Self> {
        let node = Namespace::create(cell, "node")?;
        let router = Namespace::create(cell, "router")?;
        let middle = match wiring {
            Wiring::Direct => {
                node.connect("to-router", &router, "to-node")?;
                None
            }
            Wiring::MiddleHop => Some(join_by_a_third(cell, &node, &router)?),
        };
        for address in [NODE_IPV4, NODE_SECOND_IPV4, NODE_IPV6] {
            node.add_address("to-router", &with_length(address))?;
        }
        for family in [Family::Ipv4, Family::Ipv6] {
            let address = wiring.router_address(family)?.to_string();
            router.add_address("to-node", &with_length(&address))?;
        }
        if middle.is_some() {
            for (near, far) in MIDDLE_TO_NODE.into_iter().zip(["10.78.0.0/24", "fd78::/64"]) {
                node.add_route(far, near)?;
            }
            for (near, far) in MIDDLE_TO_ROUTER.into_iter().zip(["10.77.0.0/24", "fd77::/64"]) {
                router.add_route(far, near)?;
            }
        }
        let router = Site { namespace: router, directory: directory.to_owned() };
        Ok(Self { node, router, _middle: middle, directory: directory.to_owned() })
    }

    /// Takes away all addresses between node and router but the link-local ones.
    pub fn forget_addresses(&self) -> Result<()> {
        for (namespace, interface) in
            [(&self.node, NODE_INTERFACE), (&self.router.namespace, ROUTER_INTERFACE)]
        {
            namespace.ip(&["address", "flush", "dev", interface, "scope", "global"])?;
        }
        Ok(())
    }

    /// Lays a cable from the router to a second node. Packets to one of them with the router's address on the
    /// cable to the other are answered, too.
    pub fn add_twin(&self, cell: usize) -> Result<Site> {
        let namespace = Namespace::create(cell, "twin")?;
        let router = &self.router.namespace;
        router.connect("to-twin", &namespace, NODE_INTERFACE)?;
        router.add_address("to-twin", &with_length(ROUTER_TO_TWIN))?;
        namespace.add_address(NODE_INTERFACE, &with_length(TWIN))?;
        namespace.add_route("10.77.0.0/24", ROUTER_TO_TWIN)?;
        self.node.add_route("10.81.0.0/24", "10.77.0.2")?;
        let directory = self.directory.join("twin");
        make_directory(&directory)?;
        Ok(Site { namespace, directory })
    }

    /// Lays a cable from the router to a site that feeds it with routes.
    pub fn add_feeder(&self, cell: usize) -> Result<Site> {
        let namespace = Namespace::create(cell, "feeder")?;
        let router = &self.router.namespace;
        router.connect("to-feeder", &namespace, "to-router")?;
        router.add_address("to-feeder", &with_length(ROUTER_TO_FEEDER))?;
        namespace.add_address("to-router", &with_length(FEEDER))?;
        let directory = self.directory.join("feeder");
        make_directory(&directory)?;
        Ok(Site { namespace, directory })
    }

    /// Lays a cable from the node to a second router, which reaches the first by way of the node.
    pub fn add_second_router(&self, cell: usize) -> Result<Site> {
        let namespace = Namespace::create(cell, "second")?;
        self.node.connect("to-second", &namespace, "to-node")?;
        for address in NODE_TO_SECOND {
            self.node.add_address("to-second", &with_length(address))?;
        }
        for address in SECOND {
            namespace.add_address("to-node", &with_length(address))?;
        }
        for (near, far) in NODE_TO_SECOND.into_iter().zip(["10.77.0.0/24", "fd77::/64"]) {
            namespace.add_route(far, near)?;
        }
        let directory = self.directory.join("second");
        make_directory(&directory)?;
        Ok(Site { namespace, directory })
    }
}

/// The folder of this checkout.
pub fn checkout() -> PathBuf {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    folder.ancestors().nth(2).unwrap_or(folder).to_owned()
}

/// Fails when a program that every cell needs is not installed, and names its package.
pub fn check_tools() -> Result<()> {
    for (program, package) in
        [("ip", "iproute2"), ("nft", "nftables"), ("sysctl", "procps"), ("timeout", "coreutils")]
    {
        let found = std::env::var_os("PATH").is_some_and(|path| {
            std::env::split_paths(&path).any(|part| part.join(program).exists())
        });
        ensure!(found, "{program} is missing; install the Debian package {package}");
    }
    Ok(())
}

fn join_by_a_third(cell: usize, node: &Namespace, router: &Namespace) -> Result<Namespace> {
    let middle = Namespace::create(cell, "middle")?;
    middle.enable_forwarding()?;
    node.connect("to-router", &middle, "to-node")?;
    middle.connect("to-router", router, "to-node")?;
    for (interface, addresses) in [("to-node", MIDDLE_TO_NODE), ("to-router", MIDDLE_TO_ROUTER)] {
        for address in addresses {
            middle.add_address(interface, &with_length(address))?;
        }
    }
    Ok(middle)
}

/// All links of the lab are /24 and /64.
fn with_length(address: &str) -> String {
    match Family::of(address) {
        Family::Ipv4 => format!("{address}/24"),
        Family::Ipv6 => format!("{address}/64"),
    }
}

/// Makes a directory that other users can enter: routers drop root.
pub fn make_directory(path: &Path) -> Result<()> {
    fs::create_dir_all(path).with_context(|| format!("making {}", path.display()))?;
    fs::set_permissions(path, Permissions::from_mode(0o755))
        .with_context(|| format!("opening {} to other users", path.display()))
}
