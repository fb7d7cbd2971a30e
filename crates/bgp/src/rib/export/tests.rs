use super::*;
use crate::example::Example as _;
use fairway_ground::{
    AsPath, AsPathSegment, Asn, ChosenNextHops, ClientKind, Community, ExtendedCommunity, PathId,
    PeerKind, RemoteAs, Role, RouterId,
};
use fairway_seam::{DesiredRoute, Origin, PathSource, UnknownAttribute};

use crate::wire::attribute::code;
use crate::wire::{EXTENDED_MESSAGE_LENGTH_BYTES_MAX, MESSAGE_LENGTH_BYTES_MAX};

use super::super::decision::LOCAL_PREF_DEFAULT;
use super::super::passed_on;

mod clients;
mod draining;
mod long_lived;
mod originating;
mod ruled;

/// The policy, whose results are attributes alone.
struct Plain(Exporter);

const ENCODING: Encoding =
    Encoding { four_octet_as: true, message_length_bytes_max: EXTENDED_MESSAGE_LENGTH_BYTES_MAX };

impl Plain {
    fn new(
        config: &PeerConfig,
        families: FamilySet,
        next_hops: LocalNextHops,
        drain: DrainState,
    ) -> Self {
        Self(Exporter::new(config, families, next_hops, drain, ENCODING))
    }

    fn pass_on(
        &mut self,
        prefix: Prefix,
        path: &Path,
    ) -> Result<Option<Arc<PathAttributes>>, Ineligible> {
        let sent = self.0.pass_on(prefix, path)?.cloned();
        Ok(sent.map(|it| self.decode(prefix, &it)))
    }

    fn originate(&mut self, route: &DesiredRoute) -> Result<Arc<PathAttributes>, Ineligible> {
        let made = self.0.originate(route.prefix, &route.attributes)?.cloned();
        Ok(self.decode(route.prefix, &made.expect("a route of our own is for all")))
    }

    fn decode(&self, prefix: Prefix, sent: &Outgoing) -> Arc<PathAttributes> {
        Arc::new(self.0.decode(prefix, sent).expect("what is sent can be read"))
    }
}

//= RFC 8654 §4 MUST NOT: a message of more than 4096 octets is sent to who did not offer to read it.
#[test]
fn attributes_too_long_for_some_are_told_to_who_reads_long_messages() {
    let path = with(heard(PeerKind::External), |it| {
        it.communities = (0..2000).map(Community).collect();
    });
    let config = PeerConfig { pass_on: PrefixFilter::Everything, ..PeerConfig::example(1) };
    let next_hops = LocalNextHops { ipv4: Some([192, 0, 2, 1].into()), ..Default::default() };
    for (message_length_bytes_max, fits) in
        [(MESSAGE_LENGTH_BYTES_MAX, false), (EXTENDED_MESSAGE_LENGTH_BYTES_MAX, true)]
    {
        let encoding = Encoding { message_length_bytes_max, ..ENCODING };
        let families = FamilySet::BOTH;
        let mut exporter =
            Exporter::new(&config, families, next_hops, DrainState::InService, encoding);
        let made = exporter.pass_on("203.0.113.0/24".parse().unwrap(), &path);
        match made {
            Ok(made) => assert!(fits && made.is_some()),
            Err(why) => {
                assert!(!fits);
                let expected = "the attributes do not fit a message of 4096 bytes";
                assert_eq!(why.to_string(), expected);
            }
        }
    }
}

/// A path received from an external (or internal) peer 192.0.2.9 in AS 65009.
fn heard(kind: PeerKind) -> Path {
    let next_hop = NextHop::Ipv4([192, 0, 2, 9].into());
    let mut attributes = PathAttributes::originated(AsPath::sequence(vec![65_009, 7]), next_hop);
    attributes.med = Some(50);
    attributes.local_pref = (kind == PeerKind::Internal).then_some(300);
    Path {
        source: Arc::new(PathSource {
            key: PeerKey::from(std::net::IpAddr::from([192, 0, 2, 9])),
            address: [192, 0, 2, 9].into(),
            kind,
            remote_asn: Asn::new(65_009).unwrap(),
            router_id: RouterId::new(9).unwrap(),
            is_client: false,
        }),
        path_id: PathId::NONE,
        attributes: Arc::new(attributes),
    }
}

fn with(mut path: Path, change: impl FnOnce(&mut PathAttributes)) -> Path {
    change(Arc::make_mut(&mut path.attributes));
    path
}

/// The attributes that a neighbour (AS 65002, or in our AS 65001) is sent for `path`.
fn told(to: PeerKind, path: &Path) -> Option<Arc<PathAttributes>> {
    let mut config = PeerConfig { pass_on: PrefixFilter::Everything, ..PeerConfig::example(1) };
    if to == PeerKind::Internal {
        config.remote_as = RemoteAs::Asn(config.local_asn);
    }
    let next_hops = LocalNextHops { ipv4: Some([192, 0, 2, 1].into()), ..Default::default() };
    let mut exporter = Plain::new(&config, FamilySet::BOTH, next_hops, DrainState::InService);
    exporter.pass_on("203.0.113.0/24".parse().unwrap(), path).unwrap()
}

//= RFC 4271 §5.1.2 MUST: our AS is put in front of the path towards an external peer.
//= RFC 4271 §5.1.3 SHOULD: a route that is passed on to an external peer has our address as next hop.
//= RFC 4271 §5.1.4 MUST NOT: MULTI_EXIT_DISC of one neighbouring AS is passed on to another.
//+ RFC 4271 §5.1.5: LOCAL_PREF is sent to external peers.
#[test]
fn other_systems_are_told_the_way_through_us() {
    let told = told(PeerKind::External, &heard(PeerKind::Internal)).unwrap();
    assert_eq!(told.as_path.to_string(), "65001 65009 7");
    assert_eq!(told.next_hop, NextHop::Ipv4([192, 0, 2, 1].into()));
    assert_eq!((told.med, told.local_pref), (None, None));
}

//= RFC 4271 §5.1.2 MUST NOT: AS_PATH is changed towards an internal peer.
//= RFC 4271 §5.1.3 SHOULD NOT: NEXT_HOP is changed towards an internal peer.
//= RFC 4271 §5.1.4 MAY: MULTI_EXIT_DISC of an external peer is passed on inside the AS.
//= RFC 4271 §9.1.1 MUST: the preference of an external route is passed on as LOCAL_PREF inside the AS.
#[test]
fn our_own_system_is_told_what_was_heard() {
    let told = told(PeerKind::Internal, &heard(PeerKind::External)).unwrap();
    assert_eq!(told.as_path.to_string(), "65009 7");
    assert_eq!(told.next_hop, NextHop::Ipv4([192, 0, 2, 9].into()));
    assert_eq!((told.med, told.local_pref), (Some(50), Some(100)));
}

//= RFC 4271 §9.2 MUST NOT: a route of an internal peer is told to other internal peers.
#[test]
fn routes_of_internal_peers_are_not_for_internal_peers() {
    assert_eq!(told(PeerKind::Internal, &heard(PeerKind::Internal)), None);
}

#[test]
fn a_route_never_goes_back_to_where_it_came_from() {
    let mut path = heard(PeerKind::External);
    Arc::make_mut(&mut path.source).key = PeerConfig::example(1).key;
    assert_eq!(told(PeerKind::External, &path), None);
}

//= RFC 1997 §Well-known Communities MUST: the well-known communities are obeyed by who knows the attribute.
//= RFC 1997 §Well-known Communities MUST NOT: a received route with NO_EXPORT is told outside the AS.
//= RFC 1997 §Well-known Communities MUST NOT: a received route with NO_ADVERTISE is told to anybody.
//= RFC 1997 §Well-known Communities MUST NOT: a received route with NO_EXPORT_SUBCONFED is told to external peers.
#[test]
fn well_known_communities_are_obeyed() {
    let carrying =
        |community| with(heard(PeerKind::External), |it| it.communities = vec![community].into());
    let cases = [
        (Community::NO_EXPORT, false, true),
        (Community::NO_EXPORT_SUBCONFED, false, true),
        (Community::NO_ADVERTISE, false, false),
        (Community(1), true, true),
    ];
    for (community, external, internal) in cases {
        let path = carrying(community);
        assert_eq!(told(PeerKind::External, &path).is_some(), external, "{community}");
        assert_eq!(told(PeerKind::Internal, &path).is_some(), internal, "{community}");
    }
}

//= RFC 4271 §5 MUST: an unknown optional transitive attribute is passed on with the partial bit set.
//= RFC 4271 §5 MUST NOT: a partial bit that is set is cleared.
//= RFC 4271 §5 MUST NOT: an unknown attribute that is not transitive is passed on.
#[test]
fn unknown_attributes_go_on_when_they_are_transitive_and_marked_partial() {
    let unknown = |flags, code| UnknownAttribute { flags, code, value: vec![1, 2, 3] };
    let path = with(heard(PeerKind::External), |it| {
        it.unknown = vec![unknown(0x80, 10), unknown(0xC0, 99), unknown(0xE0, 100)].into();
    });
    for kind in [PeerKind::External, PeerKind::Internal] {
        let told = told(kind, &path).unwrap();
        assert_eq!(told.unknown, [unknown(0xE0, 99), unknown(0xE0, 100)]);
    }
}

#[test]
fn flag_bits_that_mean_nothing_are_not_sent() {
    let path = with(heard(PeerKind::External), |it| {
        it.unknown = vec![UnknownAttribute { flags: 0xCF, code: 99, value: vec![1] }].into();
    });
    assert_eq!(told(PeerKind::External, &path).unwrap().unknown[0].flags, 0xE0);
}

//+ RFC 9234 §5: a route with OTC goes to a provider, a peer or a route server.
//+ RFC 9234 §5: a route without OTC is marked with our AS towards a customer, a peer and a client of our route server.
//= RFC 9234 §5 MUST NOT: OTC is changed once it is set.
#[test]
fn a_route_that_is_only_for_customers_goes_to_no_one_else() {
    let next_hops = LocalNextHops { ipv4: Some([192, 0, 2, 1].into()), ..Default::default() };
    let tell = |role, path: &Path| {
        let pass_on = PrefixFilter::Everything;
        let config = PeerConfig { role, pass_on, ..PeerConfig::example(1) };
        let mut exporter = Plain::new(&config, FamilySet::BOTH, next_hops, DrainState::InService);
        let told = exporter.pass_on("203.0.113.0/24".parse().unwrap(), path).unwrap();
        told.map(|told| told.only_to_customer)
    };
    let plain = heard(PeerKind::External);
    let marked = with(plain.clone(), |it| it.only_to_customer = Some(7));
    assert_eq!(tell(Some(Role::Customer), &marked), None);
    assert_eq!(tell(Some(Role::Customer), &plain), Some(None));
    assert_eq!(tell(Some(Role::Provider), &marked), Some(Some(7)));
    assert_eq!(tell(Some(Role::Provider), &plain), Some(Some(65_001)));
    assert_eq!(tell(None, &marked), Some(Some(7)));
}

#[test]
fn a_next_hop_of_one_link_is_not_told_on_another() {
    let global = "fe80::9".parse().unwrap();
    let path = with(heard(PeerKind::External), |it| {
        it.next_hop = NextHop::Ipv6 { global, link_local: Some(global) };
    });
    let mut config = PeerConfig { pass_on: PrefixFilter::Everything, ..PeerConfig::example(1) };
    config.remote_as = RemoteAs::Asn(config.local_asn);
    let prefix = "2001:db8::/32".parse().unwrap();
    let pass_on = |next_hops| {
        Plain::new(&config, FamilySet::BOTH, next_hops, DrainState::InService)
            .pass_on(prefix, &path)
    };
    let own: std::net::Ipv6Addr = "2001:db8::1".parse().unwrap();
    let made = pass_on(LocalNextHops { ipv6: Some(own), ..Default::default() }).unwrap().unwrap();
    assert_eq!(made.next_hop, NextHop::Ipv6 { global: own, link_local: None });
    let without = pass_on(LocalNextHops::default());
    assert_eq!(without, Err(Ineligible::NextHop(AddressFamily::Ipv6Unicast)));
}

//= RFC 4360 §6 MUST: an extended community that is not transitive is not told outside the AS.
//= RFC 4360 §6 SHOULD: an extended community that is transitive goes on to other systems.
#[test]
fn extended_communities_that_are_for_one_system_stay_in_it() {
    let target = ExtendedCommunity([0x00, 2, 0, 1, 0, 0, 0, 1]);
    let validation = ExtendedCommunity([0x43, 0, 0, 0, 0, 0, 0, 0]);
    let path = with(heard(PeerKind::External), |it| {
        it.extended_communities = vec![target, validation].into()
    });
    let of = |kind| told(kind, &path).unwrap().extended_communities.clone();
    assert_eq!(of(PeerKind::External), [target]);
    assert_eq!(of(PeerKind::Internal), [target, validation]);
    // If no community is left, the attribute is left out.
    let path = with(heard(PeerKind::External), |it| {
        it.communities = vec![Community(7)].into();
        it.extended_communities = vec![validation].into();
        it.partial = vec![code::COMMUNITIES, code::EXTENDED_COMMUNITIES].into();
    });
    assert_eq!(told(PeerKind::External, &path).unwrap().partial, [code::COMMUNITIES]);
    assert_eq!(told(PeerKind::Internal, &path).unwrap().partial, path.attributes.partial);
}

/// The next hop that a neighbour in our AS is sent for an IPv4 route received with `heard` as its next hop.
fn next_hop_told(
    heard_hop: NextHop,
    extended: bool,
    chosen: ChosenNextHops,
) -> Result<NextHop, Ineligible> {
    let path = with(heard(PeerKind::External), |it| it.next_hop = heard_hop);
    let mut config = PeerConfig { pass_on: PrefixFilter::Everything, ..PeerConfig::example(1) };
    config.remote_as = RemoteAs::Asn(config.local_asn);
    config.next_hops = chosen;
    let next_hops =
        LocalNextHops { ipv4: Some([192, 0, 2, 1].into()), extended, ..Default::default() };
    let mut exporter = Plain::new(&config, FamilySet::BOTH, next_hops, DrainState::InService);
    let told = exporter.pass_on("203.0.113.0/24".parse().unwrap(), &path)?;
    Ok(told.unwrap().next_hop)
}

//= RFC 8950 §4 MUST NOT: an IPv4 route is told with an IPv6 next hop to who did not offer to take it.
#[test]
fn an_ipv6_next_hop_of_an_ipv4_route_goes_on_only_where_it_is_understood() {
    let far = NextHop::ipv6("2001:db8::9".parse().unwrap(), None);
    let told = |extended| next_hop_told(far, extended, ChosenNextHops::default());
    assert_eq!(told(true), Ok(far));
    assert_eq!(told(false), Ok(NextHop::Ipv4([192, 0, 2, 1].into())));
}

#[test]
fn the_operators_next_hop_goes_before_all_others() {
    let heard = NextHop::Ipv4([192, 0, 2, 9].into());
    let chosen = ChosenNextHops { ipv4: Some([192, 0, 2, 77].into()), ipv6: None };
    let told = next_hop_told(heard, false, chosen);
    assert_eq!(told, Ok(NextHop::Ipv4([192, 0, 2, 77].into())));
}

//= RFC 4271 §5.1.2 MUST: in front of an AS_SET our AS goes into a sequence of its own.
#[test]
fn a_path_that_begins_with_a_set_gets_a_sequence_in_front() {
    let path = with(heard(PeerKind::External), |it| {
        it.as_path = AsPath(vec![AsPathSegment::Set(vec![1, 2])]);
    });
    // Such a path is not accepted (RFC 9774 §3), so that no peer could read what is sent.
    let attributes = &path.attributes;
    let made = passed_on::to_external(attributes, 65_001, attributes.next_hop);
    assert_eq!(made.as_path.to_string(), "65001 {1,2}");
}

//+ RFC 8212 §3: routes are told to a peer for which no export policy asks for them.
//= RFC 4271 §9.1.3 MAY: policy keeps a route from a peer.
#[test]
fn nothing_learned_is_told_to_who_is_not_meant_to_hear_it() {
    let config = PeerConfig::example(1);
    let next_hops = LocalNextHops { ipv4: Some([192, 0, 2, 1].into()), ..Default::default() };
    let mut exporter = Plain::new(&config, FamilySet::BOTH, next_hops, DrainState::InService);
    let path = heard(PeerKind::External);
    assert_eq!(exporter.pass_on("203.0.113.0/24".parse().unwrap(), &path), Ok(None));
}

//= RFC 4271 §5 MUST: well-known attributes are passed on.
//= RFC 4271 §5.1.1 SHOULD NOT: ORIGIN is changed when a route is passed on.
//= RFC 4271 §5.1.6 SHOULD NOT: ATOMIC_AGGREGATE is removed when a route is passed on.
#[test]
fn what_belongs_to_the_route_goes_on_as_it_was() {
    for origin in [Origin::Igp, Origin::Egp, Origin::Incomplete] {
        let path = with(heard(PeerKind::External), |it| {
            it.origin = origin;
            it.atomic_aggregate = true;
            it.communities = vec![Community(1)].into();
        });
        for kind in [PeerKind::External, PeerKind::Internal] {
            let told = told(kind, &path).unwrap();
            assert_eq!((told.origin, told.atomic_aggregate), (origin, true));
            assert_eq!(told.communities, [Community(1)]);
        }
    }
}
