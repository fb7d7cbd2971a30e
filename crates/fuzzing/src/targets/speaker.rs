//! A real [`Peer`] with a simulated remote end: checks what it sends and does.

use std::fmt::Write;
use std::net::IpAddr;
use std::num::NonZeroU8;
use std::sync::Arc;
use std::time::Duration;

use bytes::BytesMut;
use fairway_bgp::rib::{ExportGroups, LocRib};
use fairway_bgp::session::{Action, Connected, ConnectionId, DownReason, Event, Peer};
use fairway_bgp::wire::{Framing, MessageType, Notification, Open, header};
use fairway_ground::Instant;
use fairway_ground::{
    AddPath, Asn, FamilySet, HoldTime, ImportPolicy, LocalNextHops, PeerKey, Prefix, PrefixFilter,
    RemoteAs, Role, RouterId,
};
use fairway_seam::capability::Capability;
use fairway_seam::{PathAttributes, PeerConfig};
use fairway_seam::{SessionState, ViewScope};

use crate::grammar::attribute::NEIGHBOUR_ASN;
use crate::outcome::assert_sendable;
use crate::{Answer, Outcome};

/// Room in a socket.
pub const ROOM_BYTES: usize = 65_536;

/// The identity of a speaker: a number, which is its address, and its AS.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Identity {
    /// The last octet of its addresses, and its BGP identifier.
    pub number: u8,
    /// Its AS.
    pub asn: u32,
    /// Its role towards its neighbours, if it advertises one (RFC 9234).
    pub role: Option<Role>,
    /// It exchanges several paths to a prefix with neighbours that support it.
    pub add_path: bool,
}

impl Identity {
    /// The tested node.
    pub const US: Self = Self { number: 1, asn: 65_001, role: None, add_path: true };
    /// A neighbour in another AS.
    pub const NEIGHBOUR: Self = Self { number: 2, asn: NEIGHBOUR_ASN, role: None, add_path: false };

    /// How many paths to a prefix it sends.
    pub const PATHS_SENT: u8 = 3;

    /// Its settings for `remote`: everything is accepted, and everything is passed on.
    pub fn config(self, remote: Self) -> PeerConfig {
        let asn = |number| Asn::new(number).expect("not AS 0");
        let key = PeerKey::from(IpAddr::from([192, 0, 2, remote.number]));
        let router_id = RouterId::new(u32::from(self.number)).expect("not zero");
        PeerConfig {
            name: format!("peer-{}", remote.number),
            families: FamilySet::BOTH,
            role: self.role,
            add_path: AddPath {
                send: NonZeroU8::new(Self::PATHS_SENT).filter(|_| self.add_path),
                receive: self.add_path,
            },
            import: ImportPolicy { allowed: PrefixFilter::Everything, ..ImportPolicy::default() },
            pass_on: PrefixFilter::Everything,
            ..PeerConfig::new(key, asn(self.asn), RemoteAs::Asn(asn(remote.asn)), router_id)
        }
    }

    /// The two ends of its connection to `remote`.
    pub fn ends(self, remote: Self) -> Connected {
        Connected {
            local: ([192, 0, 2, self.number], 179).into(),
            remote: ([192, 0, 2, remote.number], 179).into(),
            next_hops: LocalNextHops {
                ipv4: Some([192, 0, 2, self.number].into()),
                ipv6: Some([0x2001, 0xdb8, 0, 0, 0, 0, 0, u16::from(self.number)].into()),
                ipv6_link_local: Some([0xfe80, 0, 0, 0, 0, 0, 0, u16::from(self.number)].into()),
                ..LocalNextHops::default()
            },
            networks: Vec::new(),
        }
    }

    /// Its messages up to Established.
    pub fn opening(self, capabilities: Vec<Capability>) -> Vec<u8> {
        let open = Open {
            asn: self.asn,
            hold_time: HoldTime::DEFAULT,
            router_id: RouterId::new(u32::from(self.number)).expect("not zero"),
            capabilities,
        };
        [open.encode(), header::keepalive()].concat()
    }
}

/// Counts the bytes printed into it and discards them.
#[derive(Debug, Default)]
pub struct Nowhere(pub usize);

impl Write for Nowhere {
    fn write_str(&mut self, text: &str) -> std::fmt::Result {
        self.0 += text.len();
        Ok(())
    }
}

/// Longer inputs are printed as tables, and not in debug form: the hundredth route adds nothing to the first,
/// and printing would take all the time.
pub const PRINTED_WHOLE_BYTES_MAX: usize = 300;

impl Nowhere {
    /// Prints routes as tables do, with shared attributes only once.
    pub fn print_routes<'a>(
        &mut self,
        routes: impl Iterator<Item = (Prefix, &'a Arc<PathAttributes>)>,
    ) {
        let mut last: Option<&Arc<PathAttributes>> = None;
        for (prefix, attributes) in routes {
            write!(self, "{prefix:48}").expect("counting never fails");
            if !last.is_some_and(|last| Arc::ptr_eq(last, attributes)) {
                self.print_attributes(attributes);
            }
            last = Some(attributes);
        }
    }

    fn print_attributes(&mut self, attributes: &PathAttributes) {
        let PathAttributes {
            origin,
            as_path,
            next_hop,
            communities,
            extended_communities,
            large_communities,
            ..
        } = attributes;
        write!(self, "{origin} {} {as_path} {next_hop}", origin.code()).expect("as above");
        let mut print = |text: &dyn std::fmt::Display| write!(self, "{text} ").expect("as above");
        communities.iter().for_each(|community| print(community));
        extended_communities.iter().for_each(|community| print(community));
        large_communities.iter().for_each(|community| print(community));
    }
}

/// A peer that has dialled and waits for an OPEN; checks what it sends and does.
#[derive(Debug)]
pub struct Speaker {
    /// The state machine.
    pub peer: Peer,
    /// No routes.
    rib: LocRib,
    /// Its connection.
    pub id: ConnectionId,
    /// The current time.
    pub now: Instant,
    /// Why the attempt or the session ended.
    pub ended: Option<DownReason>,
    /// The connection was closed, with or without a NOTIFICATION.
    pub closed: Option<Option<Notification>>,
}

impl Speaker {
    /// TCP is connected, OPEN is sent.
    pub fn connected(local: Identity, remote: Identity) -> Self {
        let now = Instant::ZERO;
        let mut peer = Peer::new(now, local.config(remote), 1, 0);
        peer.handle(now, Event::Tick);
        let Some(Action::Connect(id)) = peer.poll_action() else {
            panic!("the peer does not dial")
        };
        peer.handle(now, Event::Connected(id, local.ends(remote)));
        Self { peer, rib: LocRib::default(), id, now, ended: None, closed: None }
    }

    /// Bytes arrive, split in two, a little later.
    pub fn receive(&mut self, bytes: &[u8]) -> Vec<Action> {
        let (front, back) = bytes.split_at(bytes.len() / 3);
        let mut actions = Vec::new();
        for part in [front, back] {
            self.now = self.now + Duration::from_millis(1);
            self.peer.handle(self.now, Event::Received(self.id, part));
            actions.append(&mut self.act());
        }
        actions
    }

    /// Runs the actions of the peer; returns those that concern routes.
    pub fn act(&mut self) -> Vec<Action> {
        let mut others = Vec::new();
        while let Some(action) = self.peer.poll_action() {
            match action {
                Action::Close(id, last_words) => {
                    assert_eq!(id, self.id, "another connection");
                    assert!(self.closed.is_none(), "closed twice");
                    self.closed = Some(last_words.map(|bytes| last_notification(&bytes)));
                }
                Action::Down(reason) | Action::AttemptFailed(reason) => {
                    assert!(self.ended.is_none(), "the session ended twice");
                    self.ended = Some(reason);
                }
                Action::Connect(_) => panic!("the peer dials while it is connected"),
                other => others.push(other),
            }
        }
        others
    }

    /// All messages that it sends now.
    pub fn transmit(&mut self) -> BytesMut {
        let mut bytes = BytesMut::new();
        loop {
            let before = bytes.len();
            self.peer.poll_transmit(
                self.now,
                self.id,
                &self.rib,
                &mut ExportGroups::default(),
                before + ROOM_BYTES,
                &mut bytes,
            );
            if bytes.len() == before {
                break;
            }
        }
        assert!(!self.peer.wants_to_transmit(self.id), "messages are pending but not sent");
        bytes
    }

    /// The final state, which is always a definite one.
    pub fn outcome(&self) -> Outcome {
        outcome(self.closed.as_ref(), self.ended.as_ref(), self.peer.state())
    }

    /// Prints everything there is. `whole` includes debug output.
    pub fn print(&self, whole: bool) {
        print_peer(&self.peer, self.now, self.ended.as_ref(), whole);
    }
}

/// What became of a connection that was `closed`, or not, and of its session, which `ended`, or not.
pub fn outcome(
    closed: Option<&Option<Notification>>,
    ended: Option<&DownReason>,
    state: SessionState,
) -> Outcome {
    match (closed, ended) {
        (None, None) => Outcome::accepted(state.name()),
        (Some(Some(sent)), Some(DownReason::Sent { notification, .. })) => {
            assert_eq!((sent.code, sent.subcode), (notification.code, notification.subcode));
            let answer = Answer::Notification(sent.code, sent.subcode);
            Outcome { answer, code: 0, what: state.name() }
        }
        // A NOTIFICATION is never answered (RFC 4271 §6.4).
        (Some(None), Some(DownReason::Received(_))) => Outcome::accepted("NOTIFICATION"),
        (closed, ended) => panic!("closed {closed:?}, ended {ended:?}"),
    }
}

/// Prints everything there is to print about a peer. `whole` prints what only a debugger would.
pub fn print_peer(peer: &Peer, now: Instant, ended: Option<&DownReason>, whole: bool) {
    let mut nowhere = Nowhere::default();
    let view = peer.view(now, ViewScope::EVERYTHING);
    if whole {
        write!(nowhere, "{view:?} {peer:?}").expect("counting never fails");
    }
    if let Some(reason) = ended {
        write!(nowhere, "{reason} {reason:?} {:?}", reason.cause()).expect("as above");
    }
    if let Some(session) = &view.session {
        for capability in &session.capabilities_received {
            write!(nowhere, "{capability}").expect("as above");
        }
    }
    nowhere.print_routes(view.received.iter().map(|it| (it.prefix, &it.attributes)));
}

/// The final message is exactly one NOTIFICATION.
pub fn last_notification(bytes: &[u8]) -> Notification {
    let mut framing = Framing::default();
    framing.push(bytes);
    let message = framing.next_message().expect("our own message").expect("a whole one");
    assert_eq!(message.kind, MessageType::Notification);
    assert_eq!(framing.next_message(), Ok(None));
    let notification = Notification::parse(&message.body);
    assert_sendable(&notification);
    notification
}
