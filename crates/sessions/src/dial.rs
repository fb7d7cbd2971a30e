//! Opening a connection to a neighbour.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use tokio::net::{TcpSocket, TcpStream};

use super::link_state::LinkTrouble;
use super::{sockopt, tcp_ao};
use fairway_ground::{AoKeys, InterfaceName};
use fairway_seam::PeerConfig;

/// Timeout of a SYN without an answer: long enough for three of them (at 0, 1 and 3 s).
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// Why a connection could not be established. The text names the failed step.
#[derive(Debug, thiserror::Error)]
pub(super) enum DialError {
    #[error("no router discovered on {0} yet (no router advertisement received)")]
    NoRouter(InterfaceName),
    #[error(transparent)]
    Link(#[from] LinkTrouble),
    #[error("a range has no address to dial")]
    NoAddress,
    #[error("socket: {0}")]
    Socket(#[source] io::Error),
    #[error("TCP-MD5 key: {0}")]
    Password(#[source] nix::Error),
    #[error("TCP-AO keys: {0}")]
    AoKeys(#[source] nix::Error),
    #[error("TTL: {0}")]
    Ttl(#[source] nix::Error),
    #[error("VRF {0}: {1} (does a device with this name exist?)")]
    Vrf(InterfaceName, #[source] nix::Error),
    #[error("source address {0}: {1}")]
    SourceAddress(IpAddr, #[source] io::Error),
    #[error("{0}: {1}")]
    Connect(SocketAddr, #[source] io::Error),
    #[error("{remote}: no answer within {} s{hint}", CONNECT_TIMEOUT.as_secs())]
    Timeout { remote: SocketAddr, hint: &'static str },
}

/// Dials the neighbour of `config` at `remote`. Each `attempt` signs its SYN with another TCP-AO key, the
/// preferred one first: the neighbour may not have it yet, or not any more.
pub(super) async fn dial(
    config: &PeerConfig,
    remote: SocketAddr,
    attempt: usize,
) -> Result<TcpStream, DialError> {
    let peer = remote.ip();
    let socket = match peer {
        IpAddr::V4(_) => TcpSocket::new_v4(),
        IpAddr::V6(_) => TcpSocket::new_v6(),
    }
    .map_err(DialError::Socket)?;
    if let Some(vrf) = config.key.vrf {
        sockopt::set_device(&socket, vrf).map_err(|error| DialError::Vrf(vrf, error))?;
    }
    if let Some(password) = &config.password {
        sockopt::set_md5(&socket, peer, Some(password)).map_err(DialError::Password)?;
    }
    if let Some(first) = config.tcp_ao.iter().cycle().nth(attempt % AoKeys::COUNT_MAX) {
        tcp_ao::prepare_dial(&socket, peer, &config.tcp_ao, first).map_err(DialError::AoKeys)?;
    }
    sockopt::set_network(&socket, peer, config.ttl()).map_err(DialError::Ttl)?;
    if let Some(least) = config.ttl_min() {
        sockopt::set_ttl_min(&socket, peer, least).map_err(DialError::Ttl)?;
    }
    socket.set_nodelay(true).map_err(DialError::Socket)?;
    if let Some(source) = config.source_address {
        let local = SocketAddr::new(source, 0);
        socket.bind(local).map_err(|error| DialError::SourceAddress(source, error))?;
    }
    match tokio::time::timeout(CONNECT_TIMEOUT, socket.connect(remote)).await {
        Ok(Ok(stream)) => Ok(stream),
        Ok(Err(error)) => Err(DialError::Connect(remote, error)),
        Err(_) => {
            let hint = match &config.password {
                Some(_) => " (is the TCP-MD5 password the same on both sides?)",
                None if config.tcp_ao.is_empty() => "",
                None => " (are the TCP-AO keys the same on both sides?)",
            };
            Err(DialError::Timeout { remote, hint })
        }
    }
}
