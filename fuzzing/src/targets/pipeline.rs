//! The whole way of a route: bytes from a neighbour into an Established session, through decoder,
//! import policy, RIB and route selection, out to a second neighbour, who must accept every byte.
//!
//! After each input everything there is to print is printed, the routes are asked for once more,
//! and the first session ends: what it said must be gone everywhere.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::Arc;

use fairway_sessions::backend::{SessionState, ViewScope};
use fairway_sessions::bgp::Action;
use fairway_sessions::rib::LocRib;
use fairway_sessions::types::{
    AddressFamily, AsPath, AsPathSegment, Community, PathAttributes, PathSource, PeerConfig,
    PeerKind, Prefix, Role, RouteChange,
};
use fairway_sessions::wire::attribute::{AttributeFault, flag};
use fairway_sessions::wire::{Capability, Framing, Update, UpdateContext};

use super::speaker::{Identity, Nowhere, PRINTED_WHOLE_BYTES_MAX, Speaker};
use super::update::{EXTERNAL, INTERNAL, TWO_OCTET, assert_well_formed};
use crate::Outcome;

/// From another AS.
pub fn external(input: &[u8]) -> Outcome {
    run(input, Identity::NEIGHBOUR, &both(Identity::NEIGHBOUR), EXTERNAL)
}

/// From another AS, and kept: the first half of the way, for what it costs alone.
pub fn receive(input: &[u8]) -> Outcome {
    let neighbour = Identity::NEIGHBOUR;
    let mut node = Node::new(role(input), neighbour, &both(neighbour), THIRD);
    let outcome = node.hear(input);
    let accepted = node.inbound.peer.view(node.inbound.now, ViewScope::SESSIONS).prefixes_accepted;
    let prefixes = node.rib.counts();
    for family in AddressFamily::ALL {
        assert_eq!(u32::try_from(*prefixes.of(family)).ok(), Some(*accepted.of(family)));
    }
    outcome
}

/// From our own AS.
pub fn internal(input: &[u8]) -> Outcome {
    let neighbour = Identity { asn: Identity::US.asn, ..Identity::NEIGHBOUR };
    run(input, neighbour, &both(neighbour), INTERNAL)
}

/// From a speaker that knows AS numbers of two octets only.
pub fn two_octet(input: &[u8]) -> Outcome {
    let mut capabilities = both(Identity::NEIGHBOUR);
    capabilities.retain(is_old);
    run(input, Identity::NEIGHBOUR, &capabilities, TWO_OCTET)
}

/// Over a session that carries one family only.
pub fn ipv6_only(input: &[u8]) -> Outcome {
    let ipv4 = Capability::Multiprotocol(AddressFamily::Ipv4Unicast.into());
    let mut capabilities = both(Identity::NEIGHBOUR);
    capabilities.retain(|capability| *capability != ipv4);
    run(input, Identity::NEIGHBOUR, &capabilities, EXTERNAL)
}

/// What a speaker of today can do.
fn both(speaker: Identity) -> Vec<Capability> {
    vec![
        Capability::Multiprotocol(AddressFamily::Ipv4Unicast.into()),
        Capability::Multiprotocol(AddressFamily::Ipv6Unicast.into()),
        Capability::RouteRefresh,
        Capability::ExtendedMessage,
        Capability::FourOctetAs(speaker.asn),
        Capability::EnhancedRouteRefresh,
    ]
}

/// Whether a speaker that knows AS numbers of two octets only knows it.
fn is_old(capability: &Capability) -> bool {
    matches!(capability, Capability::Multiprotocol(_) | Capability::RouteRefresh)
}

/// What we are to the neighbour, chosen by its bytes: mostly nothing.
fn role(input: &[u8]) -> Option<Role> {
    let sum: usize = input.iter().map(|byte| usize::from(*byte)).sum();
    Role::ALL.get(sum / 3 % 12).copied()
}

type Routes = BTreeMap<Prefix, Arc<PathAttributes>>;

fn run(
    input: &[u8],
    neighbour: Identity,
    capabilities: &[Capability],
    context: UpdateContext,
) -> Outcome {
    let mut second = Second::new(input);
    let mut node = Node::new(role(input), neighbour, capabilities, second.identity());
    second.connect(&mut node);
    let outcome = node.hear(input);
    node.assert_learned(context);
    second.hear(&mut node);
    second.assert_heard(&node);
    node.assert_passed_on(second.identity());
    node.print(input.len() <= PRINTED_WHOLE_BYTES_MAX);
    second.refresh(&mut node);
    second.assert_heard(&node);
    node.end();
    second.hear(&mut node);
    assert!(node.out.view().advertised.is_empty(), "{:?}", node.out.view().advertised);
    assert!(second.heard.is_empty(), "still there: {:?}", second.heard);
    outcome
}

/// The node that is tested: two sessions and a RIB.
struct Node {
    rib: LocRib,
    /// Where the input comes in.
    inbound: Speaker,
    /// Where routes go out. [`Second`] is at its other end.
    out: Speaker,
    faults: Vec<AttributeFault>,
}

impl Node {
    /// The session with `neighbour` is up, the one with `second` is dialled.
    fn new(
        role: Option<Role>,
        neighbour: Identity,
        capabilities: &[Capability],
        second: Identity,
    ) -> Self {
        let mut inbound = Speaker::connected(Identity { role, ..Identity::US }, neighbour);
        let actions = inbound.receive(&neighbour.opening(capabilities.to_vec()));
        assert!(matches!(actions.as_slice(), [Action::Established]), "{actions:?}");
        let out = Speaker::connected(Identity::US, second);
        Self { rib: LocRib::default(), inbound, out, faults: Vec::new() }
    }

    /// Takes the input in, and says how it was answered.
    fn hear(&mut self, input: &[u8]) -> Outcome {
        let actions = self.inbound.receive(input);
        self.act(actions);
        let outcome = self.inbound.outcome();
        let _what_we_say = self.inbound.transmit();
        if outcome.is_accepted() && !self.faults.is_empty() {
            return Outcome::of_faults(&self.faults);
        }
        outcome
    }

    fn act(&mut self, actions: Vec<Action>) {
        for action in actions {
            match action {
                Action::Routes(source, changes) => {
                    assert_eq!(source.key, self.inbound.peer.config().key);
                    assert!(!changes.is_empty(), "a change of nothing");
                    let touched = self.rib.learn(&source, changes);
                    self.out.peer.announce(&self.rib, &touched);
                }
                Action::Malformed(malformed) => {
                    assert!(malformed.to_string().len() > 10);
                    self.faults.extend(malformed.faults);
                }
                other => panic!("unexpected: {other:?}"),
            }
        }
    }

    /// What was learned is what was received, and keeps the promises of its types.
    fn assert_learned(&self, context: UpdateContext) {
        let view = self.inbound.view();
        let learned: Vec<_> = self.rib.learned().collect();
        assert_eq!(learned.len(), view.received.len());
        for (route, received) in learned.iter().zip(&view.received) {
            assert_eq!(
                (route.prefix, &route.path.attributes),
                (received.prefix, &received.attributes)
            );
            assert_eq!(route.lost_at, None, "it is the only path");
            assert_well_formed(&route.path.attributes, context);
            assert_marked(&route.path.attributes, self.inbound.peer.config(), &route.path.source);
        }
        let families = view.session.map(|session| session.families);
        for family in AddressFamily::ALL {
            let count = learned.iter().filter(|route| route.prefix.family() == family).count();
            assert_eq!(u32::try_from(count).ok(), Some(*view.prefixes_accepted.of(family)));
            assert_eq!(count, *self.rib.counts().of(family));
            let carried = families.is_some_and(|families| families.contains(family));
            assert!(carried || count == 0, "{count} routes of {family}, which nobody negotiated");
        }
        assert!(self.inbound.peer.state() == SessionState::Established || learned.is_empty());
    }

    /// What is advertised is what was learned, less what does not leave and with what we add
    /// (RFC 4271 §5.1.2 to §5.1.5).
    fn assert_passed_on(&self, to: Identity) {
        let external = to.asn != Identity::US.asn;
        let learned: Routes = self
            .rib
            .learned()
            .map(|route| (route.prefix, Arc::clone(&route.path.attributes)))
            .collect();
        for route in self.out.view().advertised {
            let (heard, said) = (&learned[&route.prefix], &route.attributes);
            let mut path: Vec<u32> = heard.as_path.asns().collect();
            if external {
                path.insert(0, Identity::US.asn);
                assert_eq!((said.med, said.local_pref), (None, None));
                let us = Identity::US.number.to_string();
                assert!(said.next_hop.to_string().ends_with(&us), "{}", said.next_hop);
            } else {
                assert_eq!(said.med, heard.med);
                assert_eq!(said.local_pref, Some(heard.local_pref.unwrap_or(100)));
                // One of another link is replaced by ours.
                let is_kept = said.next_hop.address() == heard.next_hop.address();
                assert!(is_kept || heard.next_hop.is_link_local(), "{}", said.next_hop);
            }
            assert!(said.as_path.asns().eq(path), "{}, {}", heard.as_path, said.as_path);
            assert_eq!(said.origin, heard.origin);
            assert_eq!(said.communities, heard.communities);
            assert_eq!(said.large_communities, heard.large_communities);
            assert_eq!(said.only_to_customer, heard.only_to_customer);
            let mut extended = heard.extended_communities.clone();
            extended.retain(|it| !external || it.is_transitive());
            assert_eq!(said.extended_communities, extended);
            // What nobody here knows leaves if it may, and with a mark (RFC 4271 §9).
            assert!(said.unknown.iter().all(|it| it.flags & flag::TRANSITIVE != 0));
            assert!(said.unknown.len() <= heard.unknown.len());
            assert!(said.communities.iter().all(|community| *community != Community::NO_ADVERTISE));
        }
    }

    fn print(&self, whole: bool) {
        self.inbound.print(whole);
        self.out.print(whole);
        let mut nowhere = Nowhere::default();
        let learned: Vec<_> = self.rib.learned().collect();
        nowhere.print_routes(learned.iter().map(|it| (it.prefix, &it.path.attributes)));
        if whole {
            write!(nowhere, "{learned:?} {:?}", self.rib).expect("counting never fails");
        }
        for fault in &self.faults {
            write!(nowhere, "{fault:?}").expect("as above");
        }
    }

    /// The first session ends, unless it has.
    fn end(&mut self) {
        if self.inbound.closed.is_none() {
            self.inbound.ended = None;
            let actions = self.inbound.break_connection();
            self.act(actions);
        }
        assert_eq!(self.rib.learned().count(), 0);
        assert_eq!(self.rib.prefixes().count(), 0);
    }
}

/// Who is told the routes.
struct Second {
    listener: Listener,
    heard: Routes,
}

enum Listener {
    /// A peer of ours, in an AS of its own or in that of the node.
    Peer(Box<Speaker>),
    /// A script that knows AS numbers of two octets only.
    Old(Framing),
}

impl Second {
    /// A listener that is chosen by the input, connected to nobody yet.
    fn new(input: &[u8]) -> Self {
        let sum: usize = input.iter().map(|byte| usize::from(*byte)).sum();
        let listener = match sum % 3 {
            0 => Listener::Peer(Box::new(Speaker::connected(THIRD, Identity::US))),
            1 => Listener::Peer(Box::new(Speaker::connected(INSIDE, Identity::US))),
            _ => Listener::Old(Framing::default()),
        };
        Self { listener, heard: Routes::new() }
    }

    fn identity(&self) -> Identity {
        match &self.listener {
            Listener::Peer(peer) if peer.peer.config().kind() == PeerKind::Internal => INSIDE,
            _ => THIRD,
        }
    }

    /// Hears all that the node has to say.
    fn hear(&mut self, node: &mut Node) {
        let said = node.out.transmit();
        self.receive(&said);
        assert_eq!(node.out.outcome(), Outcome::accepted("Established"));
    }

    fn connect(&mut self, node: &mut Node) {
        let opening = match &mut self.listener {
            Listener::Peer(peer) => {
                // OPEN crosses OPEN, then KEEPALIVE crosses KEEPALIVE.
                let ours = node.out.transmit();
                let theirs = peer.transmit();
                assert!(peer.receive(&ours).is_empty());
                assert!(node.out.receive(&theirs).is_empty());
                peer.transmit().to_vec()
            }
            Listener::Old(_) => {
                let mut capabilities = both(THIRD);
                capabilities.retain(is_old);
                THIRD.opening(capabilities)
            }
        };
        let actions = node.out.receive(&opening);
        assert!(matches!(actions.as_slice(), [Action::Established]), "{actions:?}");
        node.out.peer.announce_all(&node.rib);
        self.hear(node);
    }

    /// Reads what the node says, and finds nothing wrong with it.
    fn receive(&mut self, said: &[u8]) {
        match &mut self.listener {
            Listener::Peer(peer) => {
                for action in peer.receive(said) {
                    match action {
                        Action::Routes(_, changes) => apply(&mut self.heard, changes),
                        Action::Established => {}
                        other => panic!("the second neighbour objects: {other:?}"),
                    }
                }
                assert_eq!(peer.outcome(), Outcome::accepted("Established"));
            }
            Listener::Old(framing) => {
                framing.push(said);
                while let Some(message) = framing.next_message().expect("our own stream") {
                    if message.kind != fairway_sessions::wire::MessageType::Update {
                        continue;
                    }
                    let update = Update::parse(&message.body, TWO_OCTET).expect("our own UPDATE");
                    assert_eq!(update.faults, []);
                    let gone = update.withdrawn.into_iter();
                    apply(&mut self.heard, gone.map(|prefix| change(prefix, None)).collect());
                    for group in update.announced {
                        let attributes = Arc::new(group.attributes);
                        let there = group.prefixes.into_iter();
                        let there = there.map(|prefix| change(prefix, Some(&attributes)));
                        apply(&mut self.heard, there.collect());
                    }
                }
            }
        }
    }

    /// What was heard is what was said, but for what every speaker refuses.
    fn assert_heard(&self, node: &Node) {
        let advertised = node.out.view().advertised;
        let mut refused = 0;
        for route in &advertised {
            let Some(heard) = self.heard.get(&route.prefix) else {
                let Identity { number, asn, .. } = self.identity();
                let next_hop = route.attributes.next_hop.address();
                let is_loop = route.attributes.as_path.asns().any(|hop| hop == asn);
                assert!(
                    is_loop || next_hop == std::net::IpAddr::from([192, 0, 2, number]),
                    "{route:?}"
                );
                refused += 1;
                continue;
            };
            assert_eq!(comparable(heard), comparable(&route.attributes), "{}", route.prefix);
        }
        assert_eq!(self.heard.len() + refused, advertised.len());
    }

    /// Asks for everything again, and hears the same.
    fn refresh(&mut self, node: &mut Node) {
        let Listener::Peer(peer) = &mut self.listener else { return };
        peer.peer.refresh_in().expect("ours can be asked");
        let asked = peer.transmit();
        assert!(node.out.receive(&asked).is_empty());
        let before = self.heard.clone();
        self.hear(node);
        assert_eq!(self.heard, before);
    }
}

/// No leak was learned, and what came from above or from the side is marked (RFC 9234 §5).
fn assert_marked(attributes: &PathAttributes, config: &PeerConfig, source: &PathSource) {
    let mark = attributes.only_to_customer;
    match config.external_role() {
        None => {}
        Some(Role::Provider | Role::RouteServer) => assert_eq!(mark, None),
        Some(Role::Peer) => assert_eq!(mark, Some(source.remote_asn.get())),
        Some(Role::Customer | Role::RouteServerClient) => assert!(mark.is_some()),
    }
}

/// A neighbour in a third AS.
const THIRD: Identity = Identity { number: 3, asn: 65_003, role: None };
/// A neighbour in the AS of the node.
const INSIDE: Identity = Identity { number: 4, asn: Identity::US.asn, role: None };

fn change(prefix: Prefix, attributes: Option<&Arc<PathAttributes>>) -> RouteChange {
    RouteChange { prefix, attributes: attributes.map(Arc::clone) }
}

fn apply(routes: &mut Routes, changes: Vec<RouteChange>) {
    for RouteChange { prefix, attributes } in changes {
        match attributes {
            Some(attributes) => routes.insert(prefix, attributes),
            None => routes.remove(&prefix),
        };
    }
}

/// What must survive the way: all but where a long path is cut into segments, and whether a length
/// was written in one octet or two.
pub(super) fn comparable(attributes: &PathAttributes) -> PathAttributes {
    let mut attributes = attributes.clone();
    for unknown in &mut attributes.unknown {
        unknown.flags &= !flag::EXTENDED_LENGTH;
    }
    let mut joined = AsPath::default();
    for segment in attributes.as_path.0 {
        match (joined.0.last_mut(), segment) {
            (Some(AsPathSegment::Sequence(last)), AsPathSegment::Sequence(asns)) => {
                last.extend(asns);
            }
            (_, segment) => joined.0.push(segment),
        }
    }
    attributes.as_path = joined;
    attributes
}
