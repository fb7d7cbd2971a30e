//! The capabilities of both sides, as far as `show bgp neighbors json` shows them.
//!
//! FRR shows the capabilities that it knows, without their order, and no unknown ones of a neighbour.

use fairway_ground::{AddressFamily, FamilySet, PerFamily, Role};
use fairway_seam::capability::{
    AddPathOffer, Capability, KeptFamily, LongLivedOffer, NextHopEncoding, RestartOffer,
};

use super::answer::Fields;
use super::words::family_word;

/// Cisco's code for ROUTE-REFRESH before it was standardised.
const ROUTE_REFRESH_OLD: u8 = 128;
/// FRR's placeholder for a missing name.
const NO_NAME: &str = "n/a";

/// One side of the session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    Ours,
    Theirs,
}

impl End {
    /// Whether a word of FRR, as in `advertisedAndReceived`, includes this side.
    fn is_in(self, word: &str) -> bool {
        match self {
            Self::Ours => word.starts_with("advertised"),
            Self::Theirs => word.starts_with("received") || word.contains("AndReceived"),
        }
    }
}

/// The families that both sides advertised.
pub(super) fn families(neighbor: Fields<'_>) -> FamilySet {
    let extensions = neighbor.below("neighborCapabilities").below("multiprotocolExtensions");
    let agreed =
        |family: &AddressFamily| extensions.below(family_word(*family)).is("advertisedAndReceived");
    AddressFamily::ALL.into_iter().filter(agreed).collect()
}

/// The capabilities that `end` of a session advertised, in the order of their codes.
pub(super) fn offered(neighbor: Fields<'_>, end: End) -> Vec<Capability> {
    let said = neighbor.below("neighborCapabilities");
    let has = |name: &str| said.text(name).is_some_and(|word| end.is_in(word));
    let mut all = Vec::new();
    let extensions = said.below("multiprotocolExtensions");
    for family in AddressFamily::ALL {
        let words = extensions.below(family_word(family));
        if words.entries().any(|(word, value)| value.as_bool() == Some(true) && end.is_in(word)) {
            all.push(Capability::Multiprotocol(family.into()));
        }
    }
    let refresh = said.text("routeRefresh").filter(|word| end.is_in(word));
    // `OldNew` and `New` of releases before 9; a plain word is the new one.
    let is_old_only = refresh.is_some_and(|word| word.ends_with("Old"));
    if refresh.is_some() && (end == End::Ours || !is_old_only) {
        all.push(Capability::RouteRefresh);
    }
    if has("extendedNexthop") {
        all.push(Capability::ExtendedNextHop(next_hops(said, end)));
    }
    if has("extendedMessage") {
        all.push(Capability::ExtendedMessage);
    }
    if let Some(role) = role(neighbor, end).filter(|_| has("role")) {
        all.push(Capability::Role(role.code()));
    }
    if has("gracefulRestart") {
        all.push(Capability::GracefulRestart(restart(neighbor, end)));
    }
    let asn = neighbor.number(if end == End::Ours { "localAs" } else { "remoteAs" });
    if let Some(asn) = asn.filter(|_| has("4byteAs")) {
        all.push(Capability::FourOctetAs(asn));
    }
    let paths = add_path(said, end);
    if !paths.is_empty() {
        all.push(Capability::AddPath(paths));
    }
    if has("enhancedRouteRefresh") {
        all.push(Capability::EnhancedRouteRefresh);
    }
    if has("longLivedGracefulRestart") {
        all.push(Capability::LongLivedGracefulRestart(long_lived(neighbor, end)));
    }
    all.extend(host_name(said, end));
    all.extend(software_version(said, end));
    if end == End::Theirs && refresh.is_some_and(|word| word.contains("Old")) {
        all.push(Capability::Other { code: ROUTE_REFRESH_OLD, value: Vec::new() });
    }
    all
}

/// Ours covers the one possible family; for theirs FRR shows the families.
fn next_hops(said: Fields<'_>, end: End) -> Vec<NextHopEncoding> {
    // FRR's spelling.
    let theirs = said.below("extendedNexthopFamililesByPeer");
    match end {
        End::Ours => vec![NextHopEncoding::IPV4_OVER_IPV6],
        End::Theirs => AddressFamily::ALL
            .into_iter()
            .filter(|family| theirs.value(family_word(*family)).is_some())
            .map(|family| NextHopEncoding { family: family.into(), next_hop_afi: 2 })
            .collect(),
    }
}

fn role(neighbor: Fields<'_>, end: End) -> Option<Role> {
    let name = neighbor.text(if end == End::Ours { "localRole" } else { "remoteRole" })?;
    Role::ALL.into_iter().find(|role| role.name() == name)
}

fn restart(neighbor: Fields<'_>, end: End) -> RestartOffer {
    let info = neighbor.below("gracefulRestartInfo");
    let theirs = neighbor.below("neighborCapabilities").below("addressFamiliesByPeer");
    let time = match end {
        End::Ours => "configuredRestartTimer",
        End::Theirs => "receivedRestartTimer",
    };
    let families = AddressFamily::ALL.into_iter().filter_map(|family| {
        let word = family_word(family);
        let kept = match end {
            // For our own side, this is shown where the session has the family.
            End::Ours => info.below(word).exists().then_some(true)?,
            End::Theirs => theirs.value(word).map(|it| Fields::from(it).is("preserved"))?,
        };
        Some(KeptFamily { family: family.into(), forwarding: kept })
    });
    RestartOffer {
        restarted: end == End::Theirs && info.is("rBit"),
        notifications: end == End::Theirs && info.is("nBit"),
        restart_time_seconds: info.below("timers").number(time).unwrap_or(0),
        families: families.collect(),
    }
}

fn long_lived(neighbor: Fields<'_>, end: End) -> Vec<LongLivedOffer> {
    let info = neighbor.below("gracefulRestartInfo");
    let theirs = neighbor.below("neighborCapabilities").below("longLivedGracefulRestartByPeer");
    let of = |family: AddressFamily| {
        let word = family_word(family);
        let is_said = end == End::Ours || theirs.value(word).is_some();
        let time = match end {
            End::Ours => info.below("timers").number("configuredLlgrStaleTime"),
            End::Theirs => info.below(word).below("timers").number("llgrStaleTime"),
        };
        is_said.then(|| LongLivedOffer {
            family: family.into(),
            forwarding: false,
            stale_time_seconds: time.unwrap_or(0),
        })
    };
    let offers = families(neighbor).iter().filter_map(of);
    offers.filter(|it| end == End::Theirs || it.stale_time_seconds > 0).collect()
}

fn add_path(said: Fields<'_>, end: End) -> Vec<AddPathOffer> {
    let of = |family: AddressFamily| {
        let words = said.below("addPath").below(family_word(family));
        let (alone, both) = match end {
            End::Ours => ("Advertised", "AdvertisedAndReceived"),
            End::Theirs => ("Received", "AdvertisedAndReceived"),
        };
        let is = |way: &str| [alone, both].iter().any(|it| words.is(&format!("{way}{it}")));
        let (receive, send) = (is("rx"), is("tx"));
        (receive || send).then(|| AddPathOffer { family: family.into(), receive, send })
    };
    AddressFamily::ALL.into_iter().filter_map(of).collect()
}

fn host_name(said: Fields<'_>, end: End) -> Option<Capability> {
    let names = said.below("hostName");
    let (host, domain) = match end {
        End::Ours => ("advHostName", "advDomainName"),
        End::Theirs => ("rcvHostName", "rcvDomainName"),
    };
    let bytes = |name| {
        let text = names.text(name).filter(|text| *text != NO_NAME).unwrap_or_default();
        text.as_bytes().to_vec()
    };
    let host = bytes(host);
    (!host.is_empty()).then(|| Capability::HostName { host, domain: bytes(domain) })
}

fn software_version(said: Fields<'_>, end: End) -> Option<Capability> {
    let name = match end {
        End::Ours => "advertisedSoftwareVersion",
        End::Theirs => "receivedSoftwareVersion",
    };
    let version = said.below("softwareVersion").text(name).filter(|text| *text != NO_NAME)?;
    Some(Capability::SoftwareVersion(version.as_bytes().to_vec()))
}

/// The families for which an End-of-RIB marker was received.
pub(super) fn end_of_rib_received(neighbor: Fields<'_>) -> PerFamily<bool> {
    end_of_rib(neighbor, "endOfRibRecv")
}

/// The families for which an End-of-RIB marker was sent. FRR sends and counts them only if both sides
/// advertised graceful restart; otherwise, the initial routes are sent when nothing is queued.
pub(super) fn end_of_rib_sent(neighbor: Fields<'_>, is_being_told: bool) -> PerFamily<bool> {
    let agreed = neighbor.below("neighborCapabilities").text("gracefulRestart");
    if agreed == Some("advertisedAndReceived") {
        return end_of_rib(neighbor, "endOfRibSend");
    }
    let mut markers = PerFamily::default();
    for family in families(neighbor).iter().filter(|_| !is_being_told) {
        *markers.of_mut(family) = true;
    }
    markers
}

fn end_of_rib(neighbor: Fields<'_>, name: &str) -> PerFamily<bool> {
    let said = neighbor.below("gracefulRestartInfo").below(name);
    let mut markers = PerFamily::default();
    for family in AddressFamily::ALL {
        *markers.of_mut(family) = said.is(family_word(family));
    }
    markers
}
