//! Events of connections, dials, listeners and links: this part updates the sockets, and passes each
//! event to the speaker.
//!
//! Another part of [`CoreTask`].

use std::net::{IpAddr, SocketAddr};

use tokio::net::TcpStream;
use tracing::{debug, warn};

use super::CoreTask;
use crate::addresses::LocalEnd;
use crate::link_state::LinkState;
use crate::listen::reset;
use crate::neighbour::Line;
use crate::news::{NetworkEvent, News};
use fairway_bgp::session::{self, ConnectionId};
use fairway_bgp::speaker::{Event, Joined, Refused};
use fairway_ground::{Bound, Instant, PeerKey, Remote, nonzero};

impl CoreTask {
    pub(super) fn network_event(&mut self, event: NetworkEvent) {
        let now = self.clock.now();
        let NetworkEvent { key, news } = event;
        match news {
            News::Link(link) => self.link_changed(now, key, link),
            News::Accepted { stream, remote, end } => {
                // One that connects and leaves as fast as it can keeps nobody busy.
                if self.accepts.take(now, (key, remote.ip())).is_none() {
                    debug!(peer = %key, %remote, "too many connections in a row: reset");
                    reset(&stream);
                    return;
                }
                let joined =
                    if key.is_range() { self.join(now, key, remote.ip()) } else { Some(key) };
                match joined {
                    Some(key) => self.accepted(now, key, stream, remote, end),
                    None => reset(&stream),
                }
            }
            News::Connected { id, stream, end } => self.connected(now, key, id, stream, end),
            News::ConnectFailed { id, why } => {
                self.guarded(now, key, |neighbour, _| neighbour.dial_failed(id));
                self.handle(now, Event::Peer(key, session::Event::ConnectFailed(id, why)));
            }
            News::Received { id, bytes, permit } => {
                self.handle(now, Event::Peer(key, session::Event::Received(id, &bytes)));
                drop(permit);
            }
            News::Written { id } => self.handle(now, Event::Written(key, id)),
            News::Closed { id, why } => {
                self.handle(now, Event::Peer(key, session::Event::Closed(id, why)));
            }
        }
    }

    fn link_changed(&mut self, now: Instant, key: PeerKey, link: LinkState) {
        if !self.neighbours.contains_key(&key) {
            return;
        }
        self.listeners.set_router(key, link.router.map(|(address, _)| address));
        self.bfd.look_again();
        if let Some(why) = link.trouble.as_ref().filter(|it| it.is_gone()) {
            self.handle(now, Event::LinkLost(key, why.to_string()));
        }
        if self.guarded(now, key, |neighbour, _| neighbour.set_link(link)) == Some(true) {
            self.handle(now, Event::DialSoon(key));
        }
    }

    /// The neighbour that dials from `address` in `range`, which may be a new one; `None` when the
    /// range is full.
    fn join(&mut self, now: Instant, range: PeerKey, address: IpAddr) -> Option<PeerKey> {
        let dialler = PeerKey { remote: Remote::Address(address), ..range };
        let is_new = !self.neighbours.contains_key(&dialler);
        let joined = self.speaker.join(now, range, address);
        self.carry_out(now);
        match joined {
            Ok(Joined { key, in_place_of }) => {
                if in_place_of.is_some() {
                    Bound::ListenRange.count();
                }
                if let Some(Refused::Full { limit, turned_away: Some(turned_away) }) = in_place_of {
                    warn!(
                        peer = %key, %range, limit, turned_away,
                        "the listen range is full (listenLimit): connections that sent no OPEN make room for new ones"
                    );
                }
                if let Some(neighbour) = self.neighbours.get(&key).filter(|_| is_new) {
                    let name = &neighbour.config().name;
                    debug!(peer = %key, name, %range, "neighbor accepted from a listen range");
                }
                Some(key)
            }
            Err(Refused::Gone) => None,
            Err(Refused::Full { limit, turned_away }) => {
                if let Some(turned_away) = turned_away {
                    warn!(
                        peer = %dialler, %range, limit, turned_away,
                        "the listen range is full (listenLimit): connections from other addresses are reset"
                    );
                }
                None
            }
        }
    }

    fn accepted(
        &mut self,
        now: Instant,
        key: PeerKey,
        stream: TcpStream,
        remote: SocketAddr,
        end: LocalEnd,
    ) {
        let prepared = self.guarded(now, key, |it, _| it.prepare_accepted(&stream, remote, end));
        match prepared {
            Some(Ok((connected, keys))) => {
                debug!(peer = %key, %remote, "connection accepted");
                if let Some(id) = self.speaker.accept(now, key, connected) {
                    self.guarded(now, key, |neighbour, surroundings| {
                        neighbour.start_link(id, stream, keys, surroundings);
                    });
                }
            }
            Some(Err(why)) => {
                if let Some(left_out) = self.surroundings.lines.take(now, (key, Line::Accept)) {
                    let lines_left_out = nonzero(left_out);
                    warn!(peer = %key, %remote, why, lines_left_out, "cannot use an accepted connection");
                }
            }
            None => {}
        }
        self.carry_out(now);
    }

    fn connected(
        &mut self,
        now: Instant,
        key: PeerKey,
        id: ConnectionId,
        stream: TcpStream,
        end: LocalEnd,
    ) {
        let started = self.guarded(now, key, |neighbour, surroundings| {
            neighbour.dial_succeeded(id, stream, end, surroundings)
        });
        match started.flatten() {
            Some(Ok(connected)) => {
                self.handle(now, Event::Peer(key, session::Event::Connected(id, connected)));
            }
            Some(Err(why)) => {
                self.handle(now, Event::Peer(key, session::Event::ConnectFailed(id, why)));
            }
            // Given up meanwhile.
            None => self.carry_out(now),
        }
    }
}
