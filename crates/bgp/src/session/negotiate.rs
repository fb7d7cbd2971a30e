//! OPEN × OPEN: what a session agrees on (RFC 4271 §4.2, RFC 4760, RFC 5492, RFC 6793).

use std::collections::BTreeSet;
use std::net::Ipv4Addr;
use std::time::Duration;

use super::graceful_restart::{self, OwnRestart, Restarts};
use crate::wire::{AddPathOffer, Capability, NextHopEncoding, Open, WireError};
use fairway_ground::{AddPath, AddressFamily, Asn, FamilySet, HoldTime, PeerKind, Role, RouterId};
use fairway_seam::PeerConfig;

/// What a session agreed on: the only source of options for the wire.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Negotiated {
    /// The neighbour's AS.
    pub remote_asn: Asn,
    /// The neighbour's BGP identifier.
    pub remote_router_id: RouterId,
    /// The smaller of the two.
    pub hold_time: HoldTime,
    /// Families that both offered.
    pub families: FamilySet,
    /// Families for which we send path identifiers.
    pub add_path_sent: FamilySet,
    /// Families for which path identifiers are received.
    pub add_path_received: FamilySet,
    /// Both use AS numbers of four octets.
    pub four_octet_as: bool,
    /// The neighbour supports ROUTE-REFRESH (RFC 2918).
    pub route_refresh: bool,
    /// Both mark the beginning and the end of a refresh (RFC 7313).
    pub enhanced_route_refresh: bool,
    /// Both read messages of up to 65,535 octets (RFC 8654).
    pub extended_message: bool,
    /// IPv4 routes may have IPv6 next hops, both ways (RFC 8950).
    pub extended_next_hop: bool,
    /// Which routes survive a restart of either side (RFC 4724).
    pub restarts: Restarts,
    /// What we offered.
    pub capabilities_sent: Vec<Capability>,
    /// What the neighbour offered, in its order.
    pub capabilities_received: Vec<Capability>,
}

/// The OPEN for `config` and the state of our own restart.
pub(super) fn our_open(config: &PeerConfig, own: OwnRestart) -> Open {
    let families = config.families.iter().map(|it| Capability::Multiprotocol(it.into()));
    let next_hops = offers_extended_next_hop(config)
        .then(|| Capability::ExtendedNextHop(vec![NextHopEncoding::IPV4_OVER_IPV6]));
    let role = config.external_role().map(|role| Capability::Role(role.code()));
    let others = [
        Capability::RouteRefresh,
        Capability::ExtendedMessage,
        Capability::FourOctetAs(config.local_asn.get()),
    ];
    let marks = config.enhanced_refresh.then_some(Capability::EnhancedRouteRefresh);
    Open {
        asn: config.local_asn.get(),
        hold_time: config.hold_time,
        router_id: config.router_id,
        capabilities: families
            .chain(next_hops)
            .chain(others)
            .chain(graceful_restart::offers(config, own))
            .chain(marks)
            .chain(role)
            .chain(our_add_path(config))
            .collect(),
    }
}

/// What we offer of RFC 7911, alike for all our families and all in one capability (§4).
fn our_add_path(config: &PeerConfig) -> Option<Capability> {
    let AddPath { send, receive } = config.add_path;
    let offer = |family: AddressFamily| AddPathOffer {
        family: family.into(),
        receive,
        send: send.is_some(),
    };
    (send.is_some() || receive)
        .then(|| Capability::AddPath(config.families.iter().map(offer).collect()))
}

/// The families for which `is_it` holds of the neighbour's offer. Of two offers for one family the
/// first counts.
fn their_add_path(theirs: &Open, is_it: impl Fn(&AddPathOffer) -> bool) -> FamilySet {
    let offers = theirs.capabilities.iter().filter_map(|capability| match capability {
        Capability::AddPath(offers) => Some(offers),
        _ => None,
    });
    let first_for = |family: &AddressFamily| {
        let mut offers = offers.clone().flatten();
        offers.find(|offer| offer.family.family() == Some(*family)).is_some_and(&is_it)
    };
    AddressFamily::ALL.into_iter().filter(first_for).collect()
}

/// IPv6 next hops are offered for IPv4 routes, and so for sessions that carry any.
fn offers_extended_next_hop(config: &PeerConfig) -> bool {
    config.extended_next_hop && config.families.contains(AddressFamily::Ipv4Unicast)
}

/// Compares the neighbour's OPEN with `config` and with what was `offered` in ours.
pub(super) fn negotiate(
    config: &PeerConfig,
    offered: Vec<Capability>,
    theirs: Open,
) -> Result<Negotiated, WireError> {
    let admitted = config.remote_as.admits(config.local_asn, theirs.asn);
    let remote_asn = Asn::new(theirs.asn)
        .filter(|_| admitted)
        .ok_or(WireError::PeerAs { received: theirs.asn, expected: config.remote_as })?;
    if config.kind() == PeerKind::Internal && theirs.router_id == config.router_id {
        let ours = Ipv4Addr::from(config.router_id.get());
        return Err(WireError::BgpIdentifier(ours, "ours too"));
    }
    check_role(config, &theirs)?;
    let families = config.families.intersection(theirs.families());
    if families.is_empty() {
        // RFC 5492 §5: the data lists all capabilities that we require and miss.
        let missed = config.families.iter().map(|it| Capability::Multiprotocol(it.into()));
        return Err(WireError::NoCommonFamily(missed.flat_map(|it| it.encode()).collect()));
    }
    // RFC 7911 §5: for each direction alone, if one can send and the other receive.
    let AddPath { send, receive } = config.add_path;
    let agreed = |ours: bool, theirs: FamilySet| match ours {
        true => families.intersection(theirs),
        false => FamilySet::EMPTY,
    };
    Ok(Negotiated {
        remote_asn,
        remote_router_id: theirs.router_id,
        hold_time: config.hold_time.negotiate(theirs.hold_time),
        families,
        add_path_sent: agreed(send.is_some(), their_add_path(&theirs, |it| it.receive)),
        add_path_received: agreed(receive, their_add_path(&theirs, |it| it.send)),
        four_octet_as: theirs.has_four_octet_as(),
        route_refresh: theirs.capabilities.contains(&Capability::RouteRefresh),
        enhanced_route_refresh: config.enhanced_refresh
            && theirs.capabilities.contains(&Capability::EnhancedRouteRefresh),
        extended_message: theirs.capabilities.contains(&Capability::ExtendedMessage),
        extended_next_hop: offers_extended_next_hop(config)
            && theirs.capabilities.iter().any(takes_ipv6_next_hops_for_ipv4),
        restarts: graceful_restart::agree(config, families, &theirs),
        capabilities_sent: offered,
        capabilities_received: theirs.capabilities,
    })
}

/// Whether the neighbour's role matches ours (RFC 9234 §4.2). A neighbour without a role is refused
/// only where roleStrict is set.
fn check_role(config: &PeerConfig, theirs: &Open) -> Result<(), WireError> {
    let Some(ours) = config.external_role() else { return Ok(()) };
    let expected = ours.counterpart();
    let said: BTreeSet<u8> = theirs.capabilities.iter().filter_map(Capability::role).collect();
    let name = |code: &u8| match Role::from_code(*code) {
        Some(role) => format!("it is {role}"),
        None => format!("it has role {code}"),
    };
    let received = match (said.len(), said.contains(&expected.code())) {
        (0, _) if !config.role_strict => return Ok(()),
        (1, true) => return Ok(()),
        (0, _) => "nothing about its role (roleStrict requires one)".to_owned(),
        _ => said.iter().map(name).collect::<Vec<_>>().join(" and "),
    };
    Err(WireError::Role { received, expected })
}

fn takes_ipv6_next_hops_for_ipv4(capability: &Capability) -> bool {
    match capability {
        Capability::ExtendedNextHop(offers) => offers.contains(&NextHopEncoding::IPV4_OVER_IPV6),
        _ => false,
    }
}

impl Negotiated {
    /// Time between our KEEPALIVEs: a third of the hold time, or what the operator chose if that
    /// is less (RFC 4271 §4.4). `None` when the hold timer is off.
    pub fn keepalive_interval(&self, config: &PeerConfig) -> Option<Duration> {
        let third = self.hold_time.duration()? / 3;
        // Zero would mean a flood; the operator means "none", which only a hold time of zero can be.
        let chosen = config.keepalive_interval.filter(|interval| !interval.is_zero());
        Some(chosen.map_or(third, |chosen| chosen.min(third)))
    }
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroU8;

    use super::*;
    use crate::example::Example as _;
    use crate::wire::AddressFamilyPair;
    use fairway_ground::{Asn, RemoteAs};

    fn our_open(config: &PeerConfig) -> Open {
        super::our_open(config, OwnRestart::default())
    }

    fn negotiate(config: &PeerConfig, theirs: Open) -> Result<Negotiated, WireError> {
        super::negotiate(config, our_open(config).capabilities, theirs)
    }

    /// Speaker 1 of the pair: AS 65001, identifier 1, hold time 9 s, both families.
    fn config() -> PeerConfig {
        PeerConfig::example(1)
    }

    /// What speaker 2 sends to it.
    fn theirs() -> Open {
        our_open(&PeerConfig::example(2))
    }

    fn answer(config: &PeerConfig, theirs: Open) -> (u8, u8, Vec<u8>) {
        let notification = negotiate(config, theirs).unwrap_err().notification();
        (notification.code, notification.subcode, notification.data)
    }

    //= RFC 4760 §8 MUST: every family that we want to exchange is offered.
    //= RFC 6793 §4.1 MUST: AS numbers of four octets are offered as a capability.
    //= RFC 6793 §4.1 MUST: the capability carries our AS number.
    //= RFC 2918 §4 SHOULD: route refresh is offered by who answers it.
    //= RFC 4760 §8 SHOULD: the reserved octet of the capability is sent as zero.
    //= RFC 8654 §4 SHOULD: extended messages are offered by who can read them.
    //= RFC 7313 §4 SHOULD: the capability is offered by who knows the marks.
    #[test]
    fn our_open_offers_what_we_can_do() {
        let local_asn = Asn::new(4_200_000_001).unwrap();
        let open = our_open(&PeerConfig { local_asn, ..config() });
        let bytes: Vec<u8> = open.capabilities.iter().flat_map(Capability::encode).collect();
        let ipv4 = [1, 4, 0, 1, 0, 1];
        let ipv6 = [1, 4, 0, 2, 0, 1];
        let four_octet_as = [65, 4, 0xFA, 0x56, 0xEA, 0x01];
        let end_of_rib = [64, 2, 0, 0];
        assert_eq!(
            bytes,
            [&ipv4[..], &ipv6, &[2, 0, 6, 0], &four_octet_as, &end_of_rib, &[70, 0]].concat()
        );
    }

    //= RFC 7313 §4 MUST NOT: a refresh is marked where one side did not offer it.
    #[test]
    fn marks_around_a_refresh_need_both_sides() {
        for (ours, other, agreed) in
            [(true, true, true), (true, false, false), (false, true, false), (false, false, false)]
        {
            let config = PeerConfig { enhanced_refresh: ours, ..config() };
            let offered =
                our_open(&config).capabilities.contains(&Capability::EnhancedRouteRefresh);
            assert_eq!(offered, ours);
            let theirs = PeerConfig { enhanced_refresh: other, ..PeerConfig::example(2) };
            let session = negotiate(&config, our_open(&theirs)).unwrap();
            assert_eq!(session.enhanced_route_refresh, agreed, "{ours} and {other}");
        }
    }

    //= RFC 5492 §4 SHOULD NOT: the same capability is offered twice.
    #[test]
    fn nothing_is_offered_twice() {
        let mut codes = our_open(&config()).capabilities;
        codes.sort_by_key(Capability::encode);
        let all = codes.len();
        codes.dedup();
        assert_eq!(codes.len(), all);
    }

    //= RFC 7607 §2 MUST: AS 0 in an OPEN is answered with Bad Peer AS, 2/2.
    //+ RFC 4271 §6.2: an AS that is not the one that was configured is answered with Bad Peer AS, 2/2.
    #[test]
    fn only_the_configured_as_is_taken() {
        for asn in [0, 1, 65001, 65003, 23456, u32::MAX] {
            assert_eq!(answer(&config(), Open { asn, ..theirs() }), (2, 2, Vec::new()));
        }
        assert!(negotiate(&config(), theirs()).is_ok());
    }

    //= RFC 6286 §2.2 MUST: our own identifier from an internal peer is answered with 2/3.
    //= RFC 6286 §2.2 MUST: our own identifier from an external peer is accepted.
    #[test]
    fn our_own_identifier_is_refused_inside_the_as_only() {
        let router_id = config().router_id;
        assert!(negotiate(&config(), Open { router_id, ..theirs() }).is_ok());
        let remote_as = RemoteAs::Asn(config().local_asn);
        let internal = PeerConfig { remote_as, ..config() };
        let open = Open { asn: internal.local_asn.get(), ..theirs() };
        assert_eq!(answer(&internal, Open { router_id, ..open.clone() }), (2, 3, Vec::new()));
        assert!(negotiate(&internal, open).is_ok());
    }

    //+ RFC 4760 §8: routes of a family are exchanged when both sides offered it.
    #[test]
    fn a_session_carries_the_families_that_both_offer() {
        let only = |family| PeerConfig { families: FamilySet::only(family), ..config() };
        for family in AddressFamily::ALL {
            let session = negotiate(&only(family), theirs()).unwrap();
            assert_eq!(session.families, FamilySet::only(family));
            let session = negotiate(
                &config(),
                our_open(&PeerConfig {
                    families: FamilySet::only(family),
                    ..PeerConfig::example(2)
                }),
            );
            assert_eq!(session.unwrap().families, FamilySet::only(family));
        }
    }

    //= RFC 5492 §3 MAY: a session without a capability that we need is ended with 2/7.
    //= RFC 5492 §5 MUST: the data of 2/7 lists the capabilities that were missed, as an OPEN would.
    #[test]
    fn without_a_common_family_the_answer_lists_what_we_miss() {
        let neither = Open {
            capabilities: vec![Capability::Multiprotocol(crate::wire::AddressFamilyPair {
                afi: 25,
                safi: 70,
            })],
            ..theirs()
        };
        let missed = vec![1, 4, 0, 1, 0, 1, 1, 4, 0, 2, 0, 1];
        assert_eq!(answer(&config(), neither), (2, 7, missed));
    }

    //= RFC 5492 §3 MUST NOT: a session is ended for a capability that we do not support.
    //= RFC 5492 §5 MUST NOT: 2/7 answers a capability that we do not understand.
    #[test]
    fn capabilities_that_nobody_knows_change_nothing() {
        let mut open = theirs();
        let plain = negotiate(&config(), open.clone()).unwrap();
        open.capabilities.extend(
            (0..=u8::MAX)
                .filter(|code| ![1, 2, 6, 65, 70].contains(code))
                .map(|code| Capability::Other { code, value: vec![code; usize::from(code % 5)] }),
        );
        let capabilities_received = open.capabilities.clone();
        let session = negotiate(&config(), open).unwrap();
        assert_eq!(session, Negotiated { capabilities_received, ..plain });
    }

    //= RFC 9234 §4.1 SHOULD: a role that is configured is offered to an external neighbour.
    //= RFC 9234 §4 MUST NOT: a role is offered to an internal neighbour.
    #[test]
    fn a_role_is_said_to_external_neighbours_only() {
        let role_of =
            |config: &PeerConfig| our_open(config).capabilities.iter().find_map(Capability::role);
        for role in Role::ALL {
            let external = PeerConfig { role: Some(role), ..config() };
            assert_eq!(role_of(&external), Some(role.code()));
            let remote_as = RemoteAs::Internal;
            assert_eq!(role_of(&PeerConfig { remote_as, ..external }), None);
        }
        assert_eq!(role_of(&config()), None);
    }

    //= RFC 9234 §4.2 MUST: roles that do not fit each other are answered with Role Mismatch, 2/11.
    //= RFC 9234 §4.2 MUST: several roles that differ are answered with 2/11.
    //= RFC 9234 §4.2 SHOULD: the same role several times counts as one.
    //= RFC 9234 §4.2 SHOULD: a neighbour that says no role is accepted.
    //= RFC 9234 §4.2 MAY: in strict mode a neighbour that says no role is answered with 2/11.
    #[test]
    fn the_neighbour_must_be_the_other_side_of_what_we_are() {
        let ours = |role, role_strict| PeerConfig { role: Some(role), role_strict, ..config() };
        let saying = |codes: &[u8]| {
            let mut open = theirs();
            open.capabilities.extend(codes.iter().map(|code| Capability::Role(*code)));
            open
        };
        for role in Role::ALL {
            for code in 0..=u8::MAX {
                let config = ours(role, false);
                if code == role.counterpart().code() {
                    assert!(negotiate(&config, saying(&[code, code])).is_ok(), "{role}, {code}");
                    let both = saying(&[code, (code + 1) % 5]);
                    assert_eq!(answer(&config, both), (2, 11, Vec::new()), "{role}, {code}");
                } else {
                    let said = saying(&[code]);
                    assert_eq!(answer(&config, said), (2, 11, Vec::new()), "{role}, {code}");
                }
            }
            let mut malformed = theirs();
            malformed.capabilities.push(Capability::Other { code: 9, value: vec![1, 2] });
            for silent in [theirs(), malformed] {
                assert!(negotiate(&ours(role, false), silent.clone()).is_ok());
                assert_eq!(answer(&ours(role, true), silent), (2, 11, Vec::new()));
            }
        }
        assert!(negotiate(&config(), saying(&[0, 1, 9])).is_ok(), "we have no role");
    }

    #[test]
    fn a_wrong_role_is_named_with_the_one_that_would_fit() {
        let config = PeerConfig { role: Some(Role::Customer), role_strict: true, ..config() };
        let text = |codes: &[u8]| {
            let mut open = theirs();
            open.capabilities.extend(codes.iter().map(|code| Capability::Role(*code)));
            negotiate(&config, open).unwrap_err().to_string()
        };
        let expected = "; expected provider";
        assert_eq!(text(&[3]), format!("OPEN: the neighbor says it is customer{expected}"));
        let both = format!("OPEN: the neighbor says it is provider and it has role 7{expected}");
        assert_eq!(text(&[0, 7]), both);
        let nothing = "OPEN: the neighbor says nothing about its role (roleStrict requires one)";
        assert_eq!(text(&[]), format!("{nothing}{expected}"));
    }

    fn with_add_path(config: PeerConfig, send: bool, receive: bool) -> PeerConfig {
        let send = NonZeroU8::new(4).filter(|_| send);
        PeerConfig { add_path: AddPath { send, receive }, ..config }
    }

    //= RFC 7911 §4 MUST: all families are offered in one capability.
    //= RFC 7911 §4 MUST: the capability says for each family what we can do: 1 receive, 2 send, 3 both.
    #[test]
    fn golden_bytes_of_our_offer_of_several_paths() {
        let offered = |send, receive| {
            let open = our_open(&with_add_path(config(), send, receive));
            open.capabilities.iter().find(|it| it.code() == 69).map(Capability::encode)
        };
        assert_eq!(offered(false, false), None);
        assert_eq!(offered(false, true), Some(vec![69, 8, 0, 1, 1, 1, 0, 2, 1, 1]));
        assert_eq!(offered(true, false), Some(vec![69, 8, 0, 1, 1, 2, 0, 2, 1, 2]));
        assert_eq!(offered(true, true), Some(vec![69, 8, 0, 1, 1, 3, 0, 2, 1, 3]));
    }

    //= RFC 7911 §5 MUST: several paths are sent only if we offered to send and the peer to receive them.
    //= RFC 7911 §5 MUST: without both offers UPDATEs are those of RFC 4271.
    #[test]
    fn path_identifiers_need_a_sender_and_a_receiver_for_each_direction() {
        for bits in 0..16 {
            let bit = |number: u8| bits >> number & 1 != 0;
            let ours = with_add_path(config(), bit(0), bit(1));
            let other = our_open(&with_add_path(PeerConfig::example(2), bit(2), bit(3)));
            let session = negotiate(&ours, other).unwrap();
            let agreed = |it| if it { FamilySet::BOTH } else { FamilySet::EMPTY };
            assert_eq!(session.add_path_sent, agreed(bit(0) && bit(3)), "{bits:04b}");
            assert_eq!(session.add_path_received, agreed(bit(1) && bit(2)), "{bits:04b}");
        }
    }

    #[test]
    fn several_paths_are_agreed_on_for_each_family_by_itself() {
        let ipv4 = FamilySet::only(AddressFamily::Ipv4Unicast);
        let ours = with_add_path(config(), true, true);
        let offer = |afi, receive, send| {
            let family = crate::wire::AddressFamilyPair { afi, safi: 1 };
            AddPathOffer { family, receive, send }
        };
        let agreed = |offers: Vec<AddPathOffer>, families| {
            let mut open = our_open(&PeerConfig { families, ..PeerConfig::example(2) });
            open.capabilities.extend(offers.into_iter().map(|it| Capability::AddPath(vec![it])));
            let session = negotiate(&ours, open).unwrap();
            (session.add_path_sent, session.add_path_received)
        };
        let both = FamilySet::BOTH;
        assert_eq!(agreed(vec![offer(1, true, false)], both), (ipv4, FamilySet::EMPTY));
        // A family that the session does not carry.
        let offers = vec![offer(1, true, true), offer(2, true, true)];
        assert_eq!(agreed(offers, ipv4), (ipv4, ipv4));
        // Another offer for the same family, and one for a family that is not supported.
        let offers = vec![offer(25, true, true), offer(1, false, true), offer(1, true, true)];
        assert_eq!(agreed(offers, both), (FamilySet::EMPTY, ipv4));
    }

    //= RFC 6793 §4.1 MUST: AS numbers have four octets when both sides offer them, and else two.
    #[test]
    fn four_octets_need_both_sides() {
        let mut open = theirs();
        assert!(negotiate(&config(), open.clone()).unwrap().four_octet_as);
        open.capabilities.retain(|it| !matches!(it, Capability::FourOctetAs(_)));
        assert!(!negotiate(&config(), open).unwrap().four_octet_as);
    }

    //= RFC 8950 §4 MUST: who wants IPv6 next hops for IPv4 routes offers it as a capability.
    //= RFC 8950 §4 MUST: the next hop of an IPv4 route is sent as IPv6 only to who offered to take it.
    #[test]
    fn ipv6_next_hops_for_ipv4_need_both_sides() {
        let wants = |wants| PeerConfig { extended_next_hop: wants, ..config() };
        let offer = |offers| {
            let mut open = theirs();
            open.capabilities.push(Capability::ExtendedNextHop(offers));
            open
        };
        let agreed = |config: &PeerConfig, open| negotiate(config, open).unwrap().extended_next_hop;
        let ours = NextHopEncoding::IPV4_OVER_IPV6;
        let golden = [5, 6, 0, 1, 0, 1, 0, 2];
        let sent = |config: &PeerConfig| {
            our_open(config).capabilities.iter().any(|it| it.encode() == golden)
        };
        assert!(sent(&wants(true)) && !sent(&wants(false)));
        assert!(agreed(&wants(true), offer(vec![ours])));
        assert!(!agreed(&wants(false), offer(vec![ours])));
        assert!(!agreed(&wants(true), theirs()));
        let labelled = AddressFamilyPair { afi: 1, safi: 4 };
        let other = NextHopEncoding { family: labelled, ..ours };
        assert!(!agreed(&wants(true), offer(vec![other])));
        assert!(agreed(&wants(true), offer(vec![other, ours])));
        let only_ipv6 = FamilySet::only(AddressFamily::Ipv6Unicast);
        let only_ipv6 = PeerConfig { families: only_ipv6, ..wants(true) };
        assert!(!sent(&only_ipv6) && !agreed(&only_ipv6, offer(vec![ours])));
    }

    //= RFC 4271 §6.2 MUST: a hold time that was accepted is used as it was negotiated.
    //= RFC 4271 §10 SHOULD: KEEPALIVEs come at a third of the hold time.
    //= RFC 4271 §4.4 MAY: the rate of KEEPALIVEs follows the hold time.
    #[test]
    fn keepalives_follow_the_hold_time_that_was_agreed_on() {
        let seconds = |seconds| HoldTime::from_seconds(seconds).unwrap();
        for (ours, other, agreed) in [(9, 90, 9), (90, 9, 9), (90, 0, 0), (0, 3, 0), (3, 3, 3)] {
            let config = PeerConfig { hold_time: seconds(ours), ..config() };
            let open = Open { hold_time: seconds(other), ..theirs() };
            let session = negotiate(&config, open).unwrap();
            assert_eq!(session.hold_time, seconds(agreed), "{ours} and {other}");
            let third = (agreed > 0).then(|| Duration::from_secs(agreed) / 3);
            assert_eq!(session.keepalive_interval(&config), third, "{ours} and {other}");
        }
    }
}
