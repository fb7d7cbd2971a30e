//! Which side of a session offered which capability, in FRR's words.
//!
//! Capabilities without a name here are printed as bytes.

use std::fmt::Write;

use fairway_ground::AddressFamily;
use fairway_seam::SessionView;
use fairway_seam::capability::{Capability, NextHopEncoding, shown};
use serde_json::Value;

use super::family_key::family_key;
use super::object::Object;
use super::offer::Offer;
use super::{add_path, graceful_restart};

const FOUR_OCTET_AS: u8 = 65;
const ROLE: u8 = 9;
/// What FRR prints for a missing name.
const NO_NAME: &str = "n/a";
const ROUTE_REFRESH: u8 = 2;
/// The number that Cisco used for ROUTE-REFRESH before RFC 2918.
const ROUTE_REFRESH_OLD: u8 = 128;

/// Capabilities of which only the presence is shown, above and below route refresh in FRR's
/// order: code, key, text.
const BEFORE_REFRESH: [(u8, &str, &str); 2] = [
    (6, "extendedMessage", "Extended Message"),
    (71, "longLivedGracefulRestart", "Long-lived Graceful Restart"),
];
const EXTENDED_NEXT_HOP: (u8, &str, &str) = (5, "extendedNexthop", "Extended nexthop");
const ENHANCED_REFRESH: (u8, &str, &str) = (70, "enhancedRouteRefresh", "Enhanced Route Refresh");
const GRACEFUL_RESTART: (u8, &str, &str) = (64, "gracefulRestart", "Graceful Restart Capability");

/// The neighbour's host name (draft-walton-bgp-hostname-capability), fit for a terminal.
pub(super) fn hostname(session: &SessionView) -> Option<String> {
    session.capabilities_received.iter().find_map(hostname_of)
}

fn hostname_of(capability: &Capability) -> Option<String> {
    let Capability::HostName { host, .. } = capability else { return None };
    (!host.is_empty()).then(|| shown(host))
}

/// The neighbour's domain name, fit for a terminal.
fn domain(session: &SessionView) -> Option<String> {
    session.capabilities_received.iter().find_map(|capability| match capability {
        Capability::HostName { domain, .. } if !domain.is_empty() => Some(shown(domain)),
        _ => None,
    })
}

/// The neighbour's software version (draft-abraitis-bgp-version-capability), fit for a terminal.
pub(super) fn software_version(session: &SessionView) -> Option<String> {
    session.capabilities_received.iter().find_map(|capability| match capability {
        Capability::SoftwareVersion(version) => Some(shown(version)),
        _ => None,
    })
}

/// What the neighbour offered for next hops of another family (RFC 8950).
fn theirs_by_family(session: &SessionView) -> Option<&[NextHopEncoding]> {
    session.capabilities_received.iter().find_map(|capability| match capability {
        Capability::ExtendedNextHop(offers) => Some(offers.as_slice()),
        _ => None,
    })
}

/// The families for which it accepts IPv6 next hops.
fn families_over_ipv6(session: &SessionView) -> impl Iterator<Item = AddressFamily> + '_ {
    let offers = theirs_by_family(session).unwrap_or_default().iter();
    offers.filter(|offer| offer.next_hop_afi == 2).filter_map(|offer| offer.family.family())
}

/// The two kinds of route refresh that the neighbour may have offered, in FRR's suffixes.
fn refresh_kinds(session: &SessionView) -> Option<(&'static str, &'static str)> {
    let theirs = |code| Offer::with_code(session, code).theirs;
    let ours = Offer::with_code(session, ROUTE_REFRESH).ours;
    match (ours, theirs(ROUTE_REFRESH_OLD), theirs(ROUTE_REFRESH)) {
        (true, true, true) => Some(("OldNew", "(old & new)")),
        (true, true, false) => Some(("Old", "(old)")),
        (true, false, true) => Some(("New", "(new)")),
        _ => None,
    }
}

fn refresh_offer(session: &SessionView) -> Offer {
    Offer::of(session, |it| matches!(it.code(), ROUTE_REFRESH | ROUTE_REFRESH_OLD))
}

/// Whether a capability is shown by name.
fn is_named(capability: &Capability) -> bool {
    let known = BEFORE_REFRESH.iter().chain([&ENHANCED_REFRESH, &GRACEFUL_RESTART]);
    match capability {
        Capability::Multiprotocol(pair) => pair.family().is_some(),
        Capability::RouteRefresh
        | Capability::Role(_)
        | Capability::FourOctetAs(_)
        | Capability::ExtendedNextHop(_)
        | Capability::SoftwareVersion(_) => true,
        Capability::HostName { .. } => hostname_of(capability).is_some(),
        Capability::AddPath(offers) => add_path::is_shown(offers),
        _ => {
            let code = capability.code();
            code == ROUTE_REFRESH_OLD || known.into_iter().any(|(it, ..)| *it == code)
        }
    }
}

/// Code and value of the capabilities that the neighbour offered and that have no name here.
fn unnamed(session: &SessionView) -> impl Iterator<Item = (u8, String)> + '_ {
    session.capabilities_received.iter().filter(|it| !is_named(it)).map(|capability| {
        let encoded = capability.encode();
        // Code and length come first.
        let hex = encoded.iter().skip(2).fold(String::new(), |mut hex, byte| {
            let _ = write!(hex, "{byte:02x}");
            hex
        });
        (capability.code(), hex)
    })
}

/// `neighborCapabilities`; `unknownCapabilities` in it is ours.
pub(super) fn json(session: &SessionView) -> Object {
    let by_code = |object: Object, (code, key, _): (u8, &str, &str)| {
        object.optional(key, Offer::with_code(session, code).key())
    };
    let mut object =
        Object::new().optional("4byteAs", Offer::with_code(session, FOUR_OCTET_AS).key());
    object = object.optional("role", Offer::with_code(session, ROLE).key());
    let [extended_message, long_lived] = BEFORE_REFRESH;
    object = by_code(object, extended_message).optional("addPath", add_path::json(session));
    object = by_code(object, long_lived)
        .optional("longLivedGracefulRestartByPeer", long_lived_by_peer(session));
    let over_ipv6: Object = families_over_ipv6(session)
        .map(|family| (family_key(family).to_owned(), "recieved".into()))
        .collect();
    object = by_code(object, EXTENDED_NEXT_HOP)
        // Both spellings are FRR's.
        .optional("extendedNexthopFamililesByPeer", (!over_ipv6.is_empty()).then_some(over_ipv6));
    let refresh = refresh_offer(session).key().map(|key| match refresh_kinds(session) {
        Some((suffix, _)) => format!("{key}{suffix}"),
        None => key.to_owned(),
    });
    object = by_code(object.optional("routeRefresh", refresh), ENHANCED_REFRESH);
    let families: Object = AddressFamily::ALL
        .into_iter()
        .filter_map(|family| {
            let key = Offer::of_family(session, family).key()?;
            let value = Object::new().field(key, true);
            Some((family_key(family).to_owned(), value.into()))
        })
        .collect();
    let families = (!families.is_empty()).then_some(families);
    object = object.optional("multiprotocolExtensions", families);
    let name = hostname(session).map(|name| {
        let domain = domain(session).unwrap_or_else(|| NO_NAME.to_owned());
        Object::new().field("rcvHostName", name).field("rcvDomainName", domain)
    });
    let version = software_version(session)
        .map(|version| Object::new().field("receivedSoftwareVersion", version));
    object = object.optional("hostName", name).optional("softwareVersion", version);
    object = by_code(object, GRACEFUL_RESTART);
    if let Some(offer) = graceful_restart::offered(session) {
        let milliseconds = u32::from(offer.restart_time_seconds).saturating_mul(1_000);
        let families: Object = graceful_restart::families(offer)
            .map(|(family, forwarding)| {
                let value = Object::new().flag("preserved", forwarding);
                (family_key(family).to_owned(), value.into())
            })
            .collect();
        let families = if families.is_empty() { "none".into() } else { Value::from(families) };
        object = object
            .field("gracefulRestartRemoteTimerMsecs", milliseconds)
            .field("addressFamiliesByPeer", families);
    }
    let unknown: Vec<Value> = unnamed(session)
        .map(|(code, hex)| Object::new().field("code", code).field("valueHex", hex).into())
        .collect();
    object.optional("unknownCapabilities", (!unknown.is_empty()).then_some(unknown))
}

/// The families in the neighbour's long-lived graceful restart capability.
fn families_long_lived(session: &SessionView) -> Option<Vec<AddressFamily>> {
    let offers = graceful_restart::offered_long_lived(session)?.iter();
    Some(offers.filter_map(|offer| offer.family.family()).collect())
}

fn long_lived_by_peer(session: &SessionView) -> Option<Object> {
    let families = families_long_lived(session)?.into_iter();
    Some(families.map(|family| (family_key(family).to_owned(), "received".into())).collect())
}

/// What FRR prints below the graceful restart capability.
fn graceful_restart_lines(session: &SessionView) -> Option<String> {
    let offer = graceful_restart::offered(session)?;
    let families: Vec<_> = graceful_restart::families(offer)
        .map(|(family, forwarding)| {
            format!("{family}({})", if forwarding { "preserved" } else { "not preserved" })
        })
        .collect();
    let families = if families.is_empty() { "none".to_owned() } else { families.join(", ") };
    let seconds = offer.restart_time_seconds;
    Some(format!(
        "      Remote Restart timer is {seconds} seconds\n      Address families by peer:\n        \
         {families}\n"
    ))
}

/// The lines under `Neighbor capabilities:`.
pub(super) fn text(session: &SessionView) -> String {
    let mut lines = Vec::new();
    let line =
        |title: &str, value: Option<String>| value.map(|value| format!("    {title}: {value}\n"));
    let by_code = |code| Offer::with_code(session, code).text().map(str::to_owned);
    lines.extend(line("4 Byte AS", by_code(FOUR_OCTET_AS)));
    lines.extend(line("Role", by_code(ROLE)));
    let [extended_message, long_lived] = BEFORE_REFRESH;
    lines.extend(line(extended_message.2, by_code(extended_message.0)));
    lines.push(add_path::text(session));
    lines.extend(line(long_lived.2, by_code(long_lived.0)));
    if let Some(families) = families_long_lived(session) {
        lines.push("      Address families by peer:\n".to_owned());
        lines.extend(families.iter().map(|family| format!("           {family}\n")));
    }
    let mut over_ipv6 = by_code(EXTENDED_NEXT_HOP.0);
    if let Some(text) = over_ipv6.as_mut().filter(|_| theirs_by_family(session).is_some()) {
        text.push_str("\n      Address families by peer:");
        for family in families_over_ipv6(session) {
            let _ = write!(text, "\n                   {family}");
        }
    }
    lines.extend(line(EXTENDED_NEXT_HOP.2, over_ipv6));
    let kind = refresh_kinds(session).map_or("", |(_, text)| text);
    lines.extend(line(
        "Route refresh",
        refresh_offer(session).text().map(|text| format!("{text}{kind}")),
    ));
    lines.extend(line(ENHANCED_REFRESH.2, by_code(ENHANCED_REFRESH.0)));
    for family in AddressFamily::ALL {
        let offer = Offer::of_family(session, family).text().map(str::to_owned);
        lines.extend(line(&format!("Address Family {family}"), offer));
    }
    let name = hostname(session).map(|name| {
        let domain = domain(session).unwrap_or_else(|| NO_NAME.to_owned());
        format!("not advertised received (name: {name},domain name: {domain})")
    });
    lines.extend(line("Hostname Capability", name));
    let version = software_version(session)
        .map(|version| format!("not advertised received software version ({version})"));
    lines.extend(line("Version Capability", version));
    lines.extend(line(GRACEFUL_RESTART.2, by_code(GRACEFUL_RESTART.0)));
    lines.extend(graceful_restart_lines(session));
    for (code, hex) in unnamed(session) {
        lines
            .extend(line(&format!("Unknown capability {code}"), Some(format!("received ({hex})"))));
    }
    lines.concat()
}
