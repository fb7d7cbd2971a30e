//! The options of a daemon on a node, with the defaults of the machine filled in.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::PathBuf;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use fairway_frr::io::{FrrBackend, FrrOptions};
use fairway_frr::owner::Owner;
use fairway_layer2::Excluded;
use fairway_plan::AttributeDefaults;
use fairway_resources::BackendKind;
use fairway_seam::{Backend, EarlierRun};
use fairway_sessions::{BfdOptions, Listen, NativeBackend};

use crate::admin::{SocketError, SocketMode, vty};
use crate::host::seed;
use crate::http_server::HttpListen;
use crate::members::MemberOptions;
use crate::metrics::PeerLabel;

/// The port of BGP (RFC 4271 §8.2.1), of both families.
const BGP_ADDRESSES: [SocketAddr; 2] = [
    SocketAddr::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), 179),
    SocketAddr::new(IpAddr::V6(Ipv6Addr::UNSPECIFIED), 179),
];

/// The common options of `fairway run` and `fairway speaker`.
#[derive(Debug, Clone)]
pub struct HostOptions {
    /// The name of this node.
    pub node: String,
    /// The loadBalancerClass of the Services to serve; `None`: those without one.
    pub load_balancer_class: Option<String>,
    /// Which backend speaks BGP.
    pub backend: BackendOptions,
    /// Attributes of routes whose advertisements do not set them.
    pub attribute_defaults: AttributeDefaults,
    /// Interfaces that no address is answered for on.
    pub layer2_excluded: Excluded,
    /// How long after an announcement on the local segment the next one comes; `None`: only after changes.
    pub layer2_refresh: Option<Duration>,
    /// The machines that share layer 2 addresses with this one; `None`: it is alone, or all nodes count as alive.
    pub members: Option<MemberOptions>,
    /// The admin socket.
    pub socket: PathBuf,
    /// Which users may connect to it, and to FRR's sockets.
    pub socket_mode: SocketMode,
    /// The socket of the service proxy of this machine, if addresses are announced only while it delivers packets to
    /// them.
    pub proxy_socket: Option<PathBuf>,
    /// Where FRR's vty sockets are opened, if at all.
    pub vty_dir: Option<PathBuf>,
    /// Where metrics are served.
    pub metrics_listen: HttpListen,
    /// The label of a neighbour in them.
    pub peer_label: PeerLabel,
    /// Where the looking glass is served.
    pub ui_listen: HttpListen,
    /// Where state is kept.
    pub state_dir: PathBuf,
}

/// Which backend speaks BGP, and its options.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BackendOptions {
    /// Fairway's own sessions.
    Native {
        /// Where to accept connections; empty means the default.
        bgp_listen: Vec<ListenOption>,
        /// BFD runs with real-time priority.
        bfd_realtime: bool,
        /// Above this, the neighbor with the most routes loses its session; `None`: never.
        memory_limit_bytes: Option<u64>,
    },
    /// FRR.
    Frr {
        /// Where the sockets of its daemons are.
        socket_dir: PathBuf,
        /// The shortest time between two changes of its configuration.
        min_interval: Duration,
    },
}

impl BackendOptions {
    /// The backend to judge resources by. The version of FRR is known only once it answers; what that version
    /// does not support is a fault then (`BgpView::faults`).
    pub(crate) fn kind(&self) -> BackendKind {
        match self {
            Self::Native { .. } => BackendKind::Native,
            Self::Frr { .. } => BackendKind::Frr { version: None },
        }
    }
}

/// Where connections are accepted without `--bgp-listen`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unsaid {
    /// Port 179 of both families.
    Listen,
    /// Port 179 once a peer needs it: in a cluster another daemon may own the port.
    ListenWhenNeeded,
}

impl HostOptions {
    /// Starts the backend, which continues from what an earlier run left behind.
    pub(crate) fn start_backend(
        &self,
        unsaid: Unsaid,
        earlier: Option<EarlierRun>,
    ) -> Arc<dyn Backend> {
        match &self.backend {
            BackendOptions::Native { bgp_listen, bfd_realtime, memory_limit_bytes } => {
                let bfd = BfdOptions { realtime: *bfd_realtime };
                let listen = listen(bgp_listen, unsaid);
                let limit = *memory_limit_bytes;
                Arc::new(NativeBackend::start_within(limit, listen, bfd, seed(), earlier))
            }
            BackendOptions::Frr { socket_dir, min_interval } => {
                Arc::new(FrrBackend::start(FrrOptions {
                    socket_dir: socket_dir.clone(),
                    min_interval: *min_interval,
                    owner: Owner::of_node(&self.node),
                }))
            }
        }
    }

    /// FRR's sockets, if configured.
    pub(crate) fn vty_sockets(&self) -> Result<Option<vty::Sockets>, SocketError> {
        let directory = self.vty_dir.as_deref();
        directory.map(|it| vty::Sockets::open(it, self.socket_mode)).transpose()
    }
}

/// The listening addresses that the options ask for.
fn listen(options: &[ListenOption], unsaid: Unsaid) -> Listen {
    if options.is_empty() {
        let only_when_needed = unsaid == Unsaid::ListenWhenNeeded;
        return Listen { only_when_needed, ..Listen::at(BGP_ADDRESSES) };
    }
    Listen::at(options.iter().filter_map(|option| match option {
        ListenOption::None => None,
        ListenOption::Address(address) => Some(*address),
    }))
}

/// A value of `--bgp-listen`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ListenOption {
    /// `none`: only dial.
    None,
    /// An address and a port.
    Address(SocketAddr),
}

/// A value of `--bgp-listen` that is neither.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("expected ADDRESS:PORT, as in 192.0.2.1:179 or [::]:179, or none")]
pub struct ListenOptionError;

impl FromStr for ListenOption {
    type Err = ListenOptionError;

    fn from_str(text: &str) -> Result<Self, ListenOptionError> {
        match text {
            "none" => Ok(Self::None),
            _ => text.parse().map(Self::Address).map_err(|_| ListenOptionError),
        }
    }
}
