//! The authentication keys of one connection, and their exchange during its lifetime.
//!
//! Called by the neighbour of the connection. The kind of key never changes during the lifetime of a
//! connection (`PeerConfig::needs_reset`).

use std::net::IpAddr;
use std::os::fd::{AsFd, OwnedFd};

use tokio::net::TcpStream;

use super::{sockopt, tcp_ao};
use fairway_bgp::session::{KeyChange, KeyRing};
use fairway_ground::Prefix;
use fairway_seam::PeerConfig;

/// The keys of a connection with authentication.
#[derive(Debug)]
pub(super) struct ConnectionKeys {
    /// A duplicate of the socket: its halves belong to the two tasks of the connection.
    socket: OwnedFd,
    peer: IpAddr,
    /// The peers of the TCP-AO keys: those inherited from a listener are for the whole range.
    peers: Prefix,
    /// The TCP-AO keys; TCP-MD5 has one key, which is in the configuration.
    ring: Option<KeyRing>,
}

/// Why a connection does not have the right keys. The text names the failed step.
#[derive(Debug, thiserror::Error)]
pub(super) enum KeyError {
    #[error("socket: {0}")]
    Socket(#[from] std::io::Error),
    #[error("TCP-MD5 key: {0}")]
    Md5(#[source] nix::Error),
    #[error("TCP-AO keys: {0}")]
    Ao(#[source] nix::Error),
    #[error("the TCP-AO keys changed while the connection was being established")]
    OtherKeys,
}

impl ConnectionKeys {
    /// The keys of a new connection, `None` for one without; updates them.
    pub(super) fn of(stream: &TcpStream, config: &PeerConfig) -> Result<Option<Self>, KeyError> {
        if config.password.is_none() && config.tcp_ao.is_empty() {
            return Ok(None);
        }
        let peer = stream.peer_addr()?.ip().to_canonical();
        let socket = stream.as_fd().try_clone_to_owned()?;
        let mut ring = None;
        if !config.tcp_ao.is_empty() {
            // The keys changed while it was being established: the next connection starts with the new ones.
            let held = tcp_ao::held(&socket).map_err(KeyError::Ao)?;
            let wanted = config.tcp_ao.iter().map(|key| (key.send_id(), key.recv_id()));
            let mut held: Vec<_> = held.iter().map(|it| (it.send_id, it.recv_id)).collect();
            let mut wanted: Vec<_> = wanted.collect();
            held.sort_unstable();
            wanted.sort_unstable();
            if held != wanted {
                return Err(KeyError::OtherKeys);
            }
            ring = Some(KeyRing::new(&config.tcp_ao));
        }
        let peers = config.listen_range.map_or(Prefix::host(peer), |range| range.prefix);
        let mut keys = Self { socket, peer, peers, ring };
        keys.follow(config)?;
        Ok(Some(keys))
    }

    /// Whether a key is waiting to be removed.
    pub(super) fn is_rolling(&self, config: &PeerConfig) -> bool {
        self.ring.as_ref().is_some_and(|ring| ring.is_rolling(&config.tcp_ao))
    }

    /// Updates the keys. Returns the changes of TCP-AO keys.
    pub(super) fn follow(&mut self, config: &PeerConfig) -> Result<Vec<KeyChange>, KeyError> {
        if let Some(password) = &config.password {
            sockopt::set_md5(&self.socket, self.peer, Some(password)).map_err(KeyError::Md5)?;
        }
        let Some(ring) = &mut self.ring else { return Ok(Vec::new()) };
        tcp_ao::follow(&self.socket, self.peers, ring, &config.tcp_ao).map_err(KeyError::Ao)
    }
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;
    use std::time::Duration;

    use tokio::time::{sleep, timeout};

    use super::*;
    use crate::example::Example as _;
    use crate::tcp_ao::tests::kernel_has_it;
    use crate::{BfdOptions, Listen, NativeBackend};
    use fairway_ground::{AoAlgorithm, AoKey, AoKeys, HoldTime, Password, PeerKey};
    use fairway_seam::{Backend, Desired, PeerView, SessionState, ViewScope};

    const PATIENCE: Duration = Duration::from_secs(60);

    /// Two daemons on loopback, neighbours of each other.
    struct Pair {
        daemons: [NativeBackend; 2],
        configs: [PeerConfig; 2],
    }

    impl Pair {
        /// Only the first one listens, so that there is only one possible connection.
        fn new(octet: u8, settings: impl Fn(&mut PeerConfig)) -> Self {
            let address = |number| IpAddr::from([127, 0, octet, number]);
            let listen = Listen::at([SocketAddr::new(address(1), 0)]);
            let daemons = [
                NativeBackend::start(listen, BfdOptions::default(), 7, None),
                NativeBackend::start(Listen::nowhere(), BfdOptions::default(), 8, None),
            ];
            let port = daemons[0].listening()[0].port();
            let configs = [(1, 1), (2, port)].map(|(number, port)| {
                let mut config = PeerConfig {
                    key: PeerKey::from(address(3 - number)),
                    port,
                    source_address: Some(address(number)),
                    hold_time: HoldTime::from_seconds(30).unwrap(),
                    keepalive_interval: Some(Duration::from_secs(1)),
                    ..PeerConfig::example(number)
                };
                settings(&mut config);
                config
            });
            let pair = Self { daemons, configs };
            pair.apply(0);
            pair.apply(1);
            pair
        }

        fn apply(&self, which: usize) {
            let peers = vec![self.configs[which].clone()];
            self.daemons[which].apply(Desired { peers, ..Desired::default() });
        }

        fn change(&mut self, which: usize, change: impl FnOnce(&mut PeerConfig)) {
            change(&mut self.configs[which]);
            self.apply(which);
        }

        async fn views(&self) -> Option<[PeerView; 2]> {
            let mut views = Vec::new();
            for daemon in &self.daemons {
                views.push(daemon.view(ViewScope::SESSIONS).await.unwrap().peers.pop()?);
            }
            views.try_into().ok()
        }

        /// Waits until `is_so` holds for both.
        async fn wait_until(&self, is_so: impl Fn(&[PeerView; 2]) -> bool) -> [PeerView; 2] {
            let look = async {
                loop {
                    match self.views().await {
                        Some(views) if is_so(&views) => return views,
                        _ => sleep(Duration::from_millis(20)).await,
                    }
                }
            };
            timeout(PATIENCE, look).await.expect("in time")
        }

        async fn wait_until_up(&self) {
            self.wait_until(|views| {
                views.iter().all(|view| view.state == SessionState::Established)
            })
            .await;
        }

        /// Waits until one of them has sent something more.
        async fn has_spoken(&self, which: usize) {
            let said = |views: &[PeerView; 2]| views[which].messages.sent.keepalives;
            let before = said(&self.wait_until(|_| true).await);
            self.wait_until(|views| said(views) >= before + 2).await;
        }

        /// Waits until each has received something more from the other, in the same session.
        async fn still_talks(&self) {
            let before = self.wait_until(|_| true).await;
            let heard = |view: &PeerView| view.messages.received.keepalives;
            let after = self.wait_until(|views| {
                views.iter().zip(&before).all(|(now, before)| heard(now) >= heard(before) + 2)
            });
            for view in after.await {
                assert_eq!(view.connections_established, 1, "{:?}", view.last_reset);
            }
        }
    }

    fn password(text: &str) -> Option<Password> {
        Some(Password::new(text).unwrap())
    }

    fn keys(ids: &[u8]) -> AoKeys {
        let key = |id: &u8| AoKey::new(*id, *id, AoAlgorithm::HmacSha1, vec![*id; 16]).unwrap();
        AoKeys::new(ids.iter().map(key).collect()).unwrap()
    }

    #[tokio::test]
    async fn a_password_changes_while_the_session_lives() {
        for first in [0, 1] {
            let octet = 10 + u8::try_from(first).unwrap();
            let mut pair = Pair::new(octet, |config| config.password = password("old"));
            pair.wait_until_up().await;
            for which in [first, 1 - first] {
                pair.change(which, |config| config.password = password("new"));
                // The other end changes later, and receives nothing meanwhile.
                pair.has_spoken(which).await;
            }
            pair.still_talks().await;
        }
    }

    #[tokio::test]
    async fn a_password_that_comes_or_goes_begins_another_session() {
        let mut pair = Pair::new(12, |config| config.password = password("old"));
        pair.wait_until_up().await;
        pair.change(0, |config| config.password = None);
        pair.change(1, |config| config.password = None);
        let again = |views: &[PeerView; 2]| {
            views.iter().all(|view| {
                view.state == SessionState::Established && view.connections_established == 2
            })
        };
        pair.wait_until(again).await;
    }

    #[tokio::test]
    async fn keys_of_tcp_ao_roll_over_while_the_session_lives() {
        if !kernel_has_it() {
            return;
        }
        for first in [0, 1] {
            let octet = 20 + u8::try_from(first).unwrap();
            let mut pair = Pair::new(octet, |config| config.tcp_ao = keys(&[1]));
            pair.wait_until_up().await;
            for step in [&[1, 2][..], &[2, 1], &[2], &[3]] {
                for which in [first, 1 - first] {
                    pair.change(which, |config| config.tcp_ao = keys(step));
                    pair.still_talks().await;
                }
            }
            // A new connection uses the new key, and only that.
            pair.change(1, |config| config.tcp_ao = keys(&[1]));
            pair.daemons[1].clear(pair.configs[1].key, fairway_seam::Clear::Hard).await.unwrap();
            let no_answer = |view: &PeerView| {
                view.last_reset.as_ref().is_some_and(|reset| reset.text.contains("TCP-AO keys"))
            };
            pair.wait_until(|views| no_answer(&views[1])).await;
            pair.change(1, |config| config.tcp_ao = keys(&[1, 3]));
            pair.wait_until_up().await;
        }
    }

    #[tokio::test]
    async fn without_tcp_ao_in_the_kernel_the_peer_is_set_aside_with_the_reason() {
        if kernel_has_it() {
            return;
        }
        let mut pair = Pair::new(30, |config| config.tcp_ao = keys(&[1]));
        let is_set_aside = |view: &PeerView| {
            let said = view.set_aside.as_ref().is_some_and(|why| why.contains("has no TCP-AO"));
            said && view.state == SessionState::Idle && view.next_connect_in.is_none()
        };
        pair.wait_until(|views| views.iter().all(is_set_aside)).await;
        // Settings that the kernel supports are accepted.
        pair.change(0, |config| config.tcp_ao = AoKeys::default());
        pair.change(1, |config| config.tcp_ao = AoKeys::default());
        pair.wait_until_up().await;
        pair.change(1, |config| config.tcp_ao = keys(&[1]));
        pair.wait_until(|views| is_set_aside(&views[1])).await;
    }
}
