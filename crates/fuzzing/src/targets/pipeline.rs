//! The whole way of a route: bytes from a neighbour into an Established session, through decoder,
//! import policy, RIB and route selection of the real speaker, out to a second neighbour, which must
//! accept every byte.
//!
//! After each input everything that can be printed is printed, the routes are requested once more, and the
//! first session ends: its routes must be gone everywhere.

use std::collections::BTreeMap;
use std::sync::Arc;

use fairway_bgp::session::Action;
use fairway_bgp::wire::attribute::flag;
use fairway_bgp::wire::{Framing, Update, UpdateContext};
use fairway_ground::{
    AddressFamily, AsPath, AsPathSegment, Community, Nlri, PeerKind, PerFamily, Prefix, Role,
};
use fairway_seam::capability::{AddPathOffer, Capability};
use fairway_seam::{PathAttributes, PathSource, PeerConfig, RouteChange};
use fairway_seam::{SessionState, ViewScope};

use super::node::{INBOUND, Node, OUT};
use super::speaker::{Identity, PRINTED_WHOLE_BYTES_MAX, Speaker};
use super::update::{ADD_PATH, EXTERNAL, INTERNAL, TWO_OCTET, assert_well_formed};
use crate::Outcome;

/// From another AS.
pub fn external(input: &[u8]) -> Outcome {
    run(input, Identity::NEIGHBOUR, &both(Identity::NEIGHBOUR), EXTERNAL)
}

/// From another AS, and kept: the first half of the way, for what it costs alone.
pub fn receive(input: &[u8]) -> Outcome {
    let neighbour = Identity::NEIGHBOUR;
    let mut node = introduced(role(input), neighbour, &both(neighbour), THIRD);
    let outcome = hear(&mut node, input);
    let accepted = node.view(INBOUND, ViewScope::SESSIONS).prefixes_accepted;
    let prefixes = node.rib().counts();
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

/// With several paths to a prefix.
pub fn add_path(input: &[u8]) -> Outcome {
    let neighbour = Identity { add_path: true, ..Identity::NEIGHBOUR };
    run(input, neighbour, &both(neighbour), ADD_PATH)
}

/// Over a session that carries one family only.
pub fn ipv6_only(input: &[u8]) -> Outcome {
    let ipv4 = Capability::Multiprotocol(AddressFamily::Ipv4Unicast.into());
    let mut capabilities = both(Identity::NEIGHBOUR);
    capabilities.retain(|capability| *capability != ipv4);
    run(input, Identity::NEIGHBOUR, &capabilities, EXTERNAL)
}

/// All capabilities of a speaker of today.
fn both(speaker: Identity) -> Vec<Capability> {
    let mut capabilities = vec![
        Capability::Multiprotocol(AddressFamily::Ipv4Unicast.into()),
        Capability::Multiprotocol(AddressFamily::Ipv6Unicast.into()),
        Capability::RouteRefresh,
        Capability::ExtendedMessage,
        Capability::FourOctetAs(speaker.asn),
        Capability::EnhancedRouteRefresh,
    ];
    if speaker.add_path {
        let both_ways = |family: AddressFamily| AddPathOffer {
            family: family.into(),
            receive: true,
            send: true,
        };
        let offers = AddressFamily::ALL.into_iter().map(both_ways).collect();
        capabilities.push(Capability::AddPath(offers));
    }
    capabilities
}

/// Whether a speaker that supports AS numbers of two octets only can be configured with it.
fn is_old(capability: &Capability) -> bool {
    matches!(capability, Capability::Multiprotocol(_) | Capability::RouteRefresh)
}

/// Our role towards the neighbour, chosen by its bytes: mostly none.
fn role(input: &[u8]) -> Option<Role> {
    let sum: usize = input.iter().map(|byte| usize::from(*byte)).sum();
    Role::ALL.get(sum / 3 % 12).copied()
}

type Routes = BTreeMap<Nlri, Arc<PathAttributes>>;

fn run(
    input: &[u8],
    neighbour: Identity,
    capabilities: &[Capability],
    context: UpdateContext,
) -> Outcome {
    let mut second = Second::new(input);
    let mut node = introduced(role(input), neighbour, capabilities, second.identity());
    second.connect(&mut node);
    let outcome = hear(&mut node, input);
    assert_learned(&node, local_config(role(input), neighbour), context);
    second.hear(&mut node);
    second.assert_heard(&node);
    assert_passed_on(&node, second.identity());
    node.print(input.len() <= PRINTED_WHOLE_BYTES_MAX);
    second.refresh(&mut node);
    second.assert_heard(&node);
    end(&mut node);
    second.hear(&mut node);
    let advertised = node.view(OUT, ViewScope::EVERYTHING).advertised;
    assert!(advertised.is_empty(), "{advertised:?}");
    assert!(second.heard.is_empty(), "still there: {:?}", second.heard);
    outcome
}

/// How the node presents itself to the first neighbour.
fn local(role: Option<Role>) -> Identity {
    Identity { role, ..Identity::US }
}

fn local_config(role: Option<Role>, neighbour: Identity) -> PeerConfig {
    local(role).config(neighbour)
}

/// The session with `neighbour` is up, the one with `second` is dialled.
fn introduced(
    role: Option<Role>,
    neighbour: Identity,
    capabilities: &[Capability],
    second: Identity,
) -> Node {
    let mut node = Node::connected(local(role), neighbour, second);
    node.receive(INBOUND, &neighbour.opening(capabilities.to_vec()));
    assert_eq!(node.outcome(INBOUND), Outcome::accepted("Established"));
    node
}

/// The node processes the input, and returns its answer.
fn hear(node: &mut Node, input: &[u8]) -> Outcome {
    node.expects(input);
    node.receive(INBOUND, input);
    let outcome = node.outcome(INBOUND);
    let _what_we_say = node.transmit(INBOUND);
    if outcome.is_accepted() && !node.faults.is_empty() {
        return Outcome::of_faults(&node.faults);
    }
    outcome
}

/// What was learned is what was received, and keeps the promises of its types.
fn assert_learned(node: &Node, config: PeerConfig, context: UpdateContext) {
    let view = node.view(INBOUND, ViewScope::EVERYTHING);
    let mut learned: Vec<_> = node.rib().learned().collect();
    learned.sort_by_key(|route| (route.prefix, route.path.path_id));
    assert_eq!(learned.len(), view.received.len());
    for (route, received) in learned.iter().zip(&view.received) {
        assert_eq!(
            (route.prefix, route.path.path_id, &route.path.attributes),
            (received.prefix, received.path_id, &received.attributes)
        );
        assert_eq!(route.path.source.key, config.key);
        assert_well_formed(&route.path.attributes, context);
        if context.kind == PeerKind::External {
            assert_eq!(route.path.attributes.local_pref, last_choice(&route.path.attributes));
        }
        assert_marked(&route.path.attributes, &config, &route.path.source);
    }
    for paths in learned.chunk_by(|one, next| one.prefix == next.prefix) {
        let best = paths.iter().filter(|route| route.lost_at.is_none()).count();
        assert_eq!(best, 1, "{paths:?}");
        let several = context.add_path.contains(paths[0].prefix.family());
        assert!(several || paths.len() == 1, "{paths:?}");
    }
    let families = view.session.map(|session| session.families);
    for family in AddressFamily::ALL {
        let of_family = learned.iter().filter(|route| route.prefix.family() == family);
        let count = of_family.clone().count();
        assert_eq!(u32::try_from(count).ok(), Some(*view.prefixes_accepted.of(family)));
        let mut prefixes: Vec<_> = of_family.map(|route| route.prefix).collect();
        prefixes.dedup();
        assert_eq!(prefixes.len(), *node.rib().counts().of(family));
        let carried = families.is_some_and(|families| families.contains(family));
        assert!(carried || count == 0, "{count} routes of {family}, which was not negotiated");
    }
    assert!(node.state(INBOUND) == SessionState::Established || learned.is_empty());
}

/// What is advertised is what was learned, less what does not leave and with what we add
/// (RFC 4271 §5.1.2 to §5.1.5).
fn assert_passed_on(node: &Node, to: Identity) {
    let external = to.asn != Identity::US.asn;
    let mut learned: BTreeMap<Prefix, Vec<_>> = BTreeMap::new();
    for route in node.rib().learned() {
        learned.entry(route.prefix).or_default().push(route.path.attributes);
    }
    let advertised = node.view(OUT, ViewScope::EVERYTHING).advertised;
    for paths in advertised.chunk_by(|one, next| one.prefix == next.prefix) {
        let limit = if to.add_path { usize::from(Identity::PATHS_SENT) } else { 1 };
        assert!((1..=limit).contains(&paths.len()), "{paths:?}");
        let heard = &learned[&paths[0].prefix];
        for route in paths {
            let said = &route.attributes;
            assert!(
                heard.iter().any(|heard| leaves_as(heard, said, external)),
                "{said:?} of {heard:?}"
            );
            let kept = said.communities.contains(&Community::NO_ADVERTISE);
            assert!(!kept, "{said:?}");
        }
    }
}

/// The first session ends, unless it has.
fn end(node: &mut Node) {
    if !node.is_closed(INBOUND) {
        node.break_connection(INBOUND);
    }
    assert_eq!(node.rib().learned().count(), 0);
    assert_eq!(node.rib().counts(), PerFamily::default());
}

/// Whether what was `said` is what was `heard`.
fn leaves_as(heard: &PathAttributes, said: &PathAttributes, external: bool) -> bool {
    let mut path: Vec<u32> = heard.as_path.asns().collect();
    let changed = if external {
        path.insert(0, Identity::US.asn);
        let us = Identity::US.number.to_string();
        (said.med, said.local_pref) == (None, None) && said.next_hop.to_string().ends_with(&us)
    } else {
        // A next hop of another link is replaced by ours.
        said.med == heard.med
            && said.local_pref == Some(heard.local_pref.unwrap_or(100))
            && (said.next_hop.address() == heard.next_hop.address()
                || heard.next_hop.is_link_local())
    };
    let mut extended = heard.extended_communities.clone();
    extended.retain(|it| !external || it.is_transitive());
    changed
        && said.as_path.asns().eq(path)
        && said.origin == heard.origin
        && said.communities == heard.communities
        && said.large_communities == heard.large_communities
        && said.only_to_customer == heard.only_to_customer
        && said.extended_communities == extended
        // An unknown attribute is passed on if it is transitive, with the Partial bit (RFC 4271 §9).
        && said.unknown.iter().all(|it| it.flags & flag::TRANSITIVE != 0)
        && said.unknown.len() <= heard.unknown.len()
}

/// The second neighbour, which receives the routes.
struct Second {
    listener: Listener,
    heard: Routes,
}

enum Listener {
    /// A peer of ours, in an AS of its own or in that of the node, with one path to a prefix or
    /// several.
    Peer(Box<Speaker>),
    /// A script that knows AS numbers of two octets only.
    Old(Framing),
}

impl Second {
    /// A listener that is chosen by the input, not connected yet.
    fn new(input: &[u8]) -> Self {
        let sum: usize = input.iter().map(|byte| usize::from(*byte)).sum();
        let peer = |it| Listener::Peer(Box::new(Speaker::connected(it, Identity::US)));
        let several = |it| Identity { add_path: true, ..it };
        let listener = match sum % 5 {
            0 => peer(THIRD),
            1 => peer(INSIDE),
            2 => peer(several(THIRD)),
            3 => peer(several(INSIDE)),
            _ => Listener::Old(Framing::default()),
        };
        Self { listener, heard: Routes::new() }
    }

    fn identity(&self) -> Identity {
        let Listener::Peer(peer) = &self.listener else { return THIRD };
        let config = peer.peer.config();
        let identity = if config.kind() == PeerKind::Internal { INSIDE } else { THIRD };
        Identity { add_path: config.add_path.receive, ..identity }
    }

    /// Reads everything that the node sends.
    fn hear(&mut self, node: &mut Node) {
        let said = node.transmit(OUT);
        self.receive(&said);
        assert_eq!(node.outcome(OUT), Outcome::accepted("Established"));
    }

    fn connect(&mut self, node: &mut Node) {
        let opening = match &mut self.listener {
            Listener::Peer(peer) => {
                // OPEN crosses OPEN, then KEEPALIVE crosses KEEPALIVE.
                let ours = node.transmit(OUT);
                let theirs = peer.transmit();
                assert!(peer.receive(&ours).is_empty());
                node.receive(OUT, &theirs);
                assert!(!node.was_up(OUT) && !node.is_closed(OUT));
                peer.transmit().to_vec()
            }
            Listener::Old(_) => {
                let mut capabilities = both(THIRD);
                capabilities.retain(is_old);
                THIRD.opening(capabilities)
            }
        };
        node.receive(OUT, &opening);
        assert!(node.was_up(OUT) && !node.is_closed(OUT));
        self.hear(node);
    }

    /// Parses what the node sends, and finds no fault in it.
    fn receive(&mut self, said: &[u8]) {
        match &mut self.listener {
            Listener::Peer(peer) => {
                for action in peer.receive(said) {
                    match action {
                        Action::Routes(_, changes) => apply(&mut self.heard, changes),
                        Action::Established => {}
                        other => panic!("the second neighbor refuses a message: {other:?}"),
                    }
                }
                assert_eq!(peer.outcome(), Outcome::accepted("Established"));
            }
            Listener::Old(framing) => {
                framing.push(said);
                while let Some(message) = framing.next_message().expect("our own stream") {
                    if message.kind != fairway_bgp::wire::MessageType::Update {
                        continue;
                    }
                    let update = Update::parse(&message.body, TWO_OCTET).expect("our own UPDATE");
                    assert_eq!(update.faults, []);
                    let gone = update.withdrawn.into_iter();
                    apply(&mut self.heard, gone.map(|nlri| change(nlri, None)).collect());
                    for group in update.announced {
                        let attributes = Arc::new(group.attributes);
                        let there = group.prefixes.into_iter();
                        let there = there.map(|nlri| change(nlri, Some(&attributes)));
                        apply(&mut self.heard, there.collect());
                    }
                }
            }
        }
    }

    /// What was received is what was sent, but for what every speaker refuses.
    fn assert_heard(&self, node: &Node) {
        let advertised = node.view(OUT, ViewScope::EVERYTHING).advertised;
        let mut refused = 0;
        for route in &advertised {
            let nlri = Nlri { prefix: route.prefix, path_id: route.path_id };
            let Some(heard) = self.heard.get(&nlri) else {
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
            let expected = self.as_kept(comparable(&route.attributes));
            assert_eq!(comparable(heard), expected, "{nlri}");
        }
        assert_eq!(self.heard.len() + refused, advertised.len());
    }

    /// What a listener makes of it.
    fn as_kept(&self, said: PathAttributes) -> PathAttributes {
        match &self.listener {
            Listener::Peer(peer) if peer.peer.config().kind() == PeerKind::External => {
                PathAttributes { local_pref: last_choice(&said), ..said }
            }
            Listener::Peer(_) | Listener::Old(_) => said,
        }
    }

    /// Requests everything again, and receives the same.
    fn refresh(&mut self, node: &mut Node) {
        let Listener::Peer(peer) = &mut self.listener else { return };
        peer.peer.refresh_in().expect("ours can be asked");
        let asked = peer.transmit();
        node.receive(OUT, &asked);
        let before = self.heard.clone();
        self.hear(node);
        assert_eq!(self.heard, before);
    }
}

/// No leak was learned, and routes of providers and peers are marked (RFC 9234 §5).
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
const THIRD: Identity = Identity { number: 3, asn: 65_003, role: None, add_path: false };
/// A neighbour in the AS of the node.
const INSIDE: Identity = Identity { number: 4, asn: Identity::US.asn, role: None, add_path: false };

fn change(nlri: Nlri, attributes: Option<&Arc<PathAttributes>>) -> RouteChange {
    RouteChange { nlri, attributes: attributes.map(Arc::clone) }
}

fn apply(routes: &mut Routes, changes: Vec<RouteChange>) {
    for RouteChange { nlri, attributes } in changes {
        match attributes {
            Some(attributes) => routes.insert(nlri, attributes),
            None => routes.remove(&nlri),
        };
    }
}

/// The LOCAL_PREF that a route from another AS gets: the lowest one if it is about to be withdrawn
/// (RFC 8326 §4).
fn last_choice(attributes: &PathAttributes) -> Option<u32> {
    attributes.communities.contains(&Community::GRACEFUL_SHUTDOWN).then_some(0)
}

/// What must be preserved: all but where a long path is cut into segments, and whether a length was
/// written in one octet or two.
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
