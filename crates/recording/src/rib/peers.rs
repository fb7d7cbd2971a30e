//! The neighbors of a dump by number, and ourselves.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr};

use fairway_ground::{PeerKey, RemoteAs};
use fairway_seam::{BgpView, PathSource, PeerView};

/// Who announced a route.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Peer {
    pub(super) router_id: Ipv4Addr,
    pub(super) address: IpAddr,
    pub(super) asn: u32,
}

/// All of them.
#[derive(Debug)]
pub(super) struct Peers {
    /// Our BGP identifier.
    pub(super) collector: Ipv4Addr,
    /// By number.
    pub(super) list: Vec<Peer>,
    numbers: BTreeMap<PeerKey, u16>,
}

impl Peers {
    /// The number of this node: its entry is all zeros, as in the dumps of FRR and BIRD.
    pub(super) const OURSELVES: u16 = 0;

    pub(super) fn of(view: &BgpView) -> Self {
        let mut known: BTreeMap<PeerKey, Peer> = BTreeMap::new();
        let shown = view.peers.iter().filter(|it| !it.config.key.is_range());
        known.extend(shown.map(|it| (it.config.key, seen(it))));
        // A neighbor that restarts has routes and no session.
        let mut last: Option<PeerKey> = None;
        for route in &view.learned {
            let source = &route.path.source;
            if last != Some(source.key) {
                last = Some(source.key);
                known.insert(source.key, announced(source));
            }
        }
        let zero = Ipv4Addr::UNSPECIFIED;
        let mut list = vec![Peer { router_id: zero, address: zero.into(), asn: 0 }];
        let mut numbers = BTreeMap::new();
        for (key, peer) in known {
            let Ok(number) = u16::try_from(list.len()) else { break };
            if number == u16::MAX {
                break;
            }
            numbers.insert(key, number);
            list.push(peer);
        }
        let collector = view.peers.first().map_or(zero, |it| it.config.router_id.get().into());
        Self { collector, list, numbers }
    }

    pub(super) fn number(&self, source: &PathSource) -> Option<u16> {
        self.numbers.get(&source.key).copied()
    }
}

fn announced(source: &PathSource) -> Peer {
    Peer {
        router_id: source.router_id.get().into(),
        address: source.address,
        asn: source.remote_asn.get(),
    }
}

/// A neighbor that announces nothing. What is not known of it is zero.
fn seen(peer: &PeerView) -> Peer {
    let zero = Ipv4Addr::UNSPECIFIED;
    let address = peer.config.key.address().unwrap_or(zero.into());
    match &peer.session {
        Some(session) => Peer {
            router_id: session.remote_router_id.get().into(),
            address: session.remote.ip(),
            asn: session.remote_asn.get(),
        },
        None => {
            let asn = match peer.config.remote_as {
                RemoteAs::Asn(asn) => asn.get(),
                RemoteAs::Internal => peer.config.local_asn.get(),
                RemoteAs::External => 0,
            };
            Peer { router_id: zero, address, asn }
        }
    }
}
