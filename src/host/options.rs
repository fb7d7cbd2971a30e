//! How a daemon on a node was asked to run, with the defaults of the machine filled in.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::PathBuf;
use std::str::FromStr;
use std::sync::Arc;

use fairway_sessions::backend::{Backend, EarlierRun};
use fairway_sessions::io::{BfdOptions, Listen, NativeBackend};

use super::machine::seed;
use crate::admin::{SocketError, SocketMode, vty};
use crate::metrics::HttpListen;

/// The port that BGP has (RFC 4271 §8.2.1), of both families.
const BGP_ADDRESSES: [SocketAddr; 2] = [
    SocketAddr::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), 179),
    SocketAddr::new(IpAddr::V6(Ipv6Addr::UNSPECIFIED), 179),
];

/// What `fairway run` and `fairway speaker` are told alike.
#[derive(Debug, Clone)]
pub struct HostOptions {
    /// The name of this node.
    pub node: String,
    /// Services of which class are ours; `None`: those without one.
    pub load_balancer_class: Option<String>,
    /// Where to accept BGP connections; empty means the default.
    pub bgp_listen: Vec<ListenOption>,
    /// BFD goes before all other work.
    pub bfd_realtime: bool,
    /// The admin socket.
    pub socket: PathBuf,
    /// Who may use it, and FRR's.
    pub socket_mode: SocketMode,
    /// Where the sockets of FRR's daemons are opened, if they are.
    pub vty_dir: Option<PathBuf>,
    /// Where metrics are served.
    pub metrics_listen: HttpListen,
    /// Where state is kept.
    pub state_dir: PathBuf,
}

impl HostOptions {
    /// Where to listen: port 179 of both families unless said otherwise.
    pub(crate) fn listen(&self) -> Listen {
        listen(&self.bgp_listen).unwrap_or_else(|| Listen::at(BGP_ADDRESSES))
    }

    /// The same in a cluster, where another daemon may own the port: without a word, port 179 is
    /// opened once somebody needs it.
    pub(crate) fn listen_in_cluster(&self) -> Listen {
        let needed = || Listen { only_when_needed: true, ..Listen::at(BGP_ADDRESSES) };
        listen(&self.bgp_listen).unwrap_or_else(needed)
    }

    /// Starts who speaks to the routers, after what an earlier run left behind.
    pub(crate) fn start_backend(
        &self,
        listen: Listen,
        earlier: Option<EarlierRun>,
    ) -> Arc<dyn Backend> {
        let bfd = BfdOptions { realtime: self.bfd_realtime };
        Arc::new(NativeBackend::start(listen, bfd, seed(), earlier))
    }

    /// FRR's sockets, where they are asked for.
    pub(crate) fn vty_sockets(&self) -> Result<Option<vty::Sockets>, SocketError> {
        let directory = self.vty_dir.as_deref();
        directory.map(|it| vty::Sockets::open(it, self.socket_mode)).transpose()
    }
}

/// What these values ask for; `None`: nothing was said.
fn listen(options: &[ListenOption]) -> Option<Listen> {
    let addresses = options.iter().filter_map(|option| match option {
        ListenOption::None => None,
        ListenOption::Address(address) => Some(*address),
    });
    (!options.is_empty()).then(|| Listen::at(addresses))
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
