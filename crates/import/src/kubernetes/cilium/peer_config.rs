//! CiliumBGPPeerConfig: what several peers have in common.
//!
//! Answers the fields of a BGPPeer, and which advertisements are for the families of a session. Knows no neighbour.

use std::collections::BTreeSet;
use std::net::IpAddr;

use serde_json::json;

use super::advertisement::Advertised;
use crate::kubernetes::field::{Section, SourceObject};
use crate::kubernetes::peers::seconds;
use crate::kubernetes::selector::{Selection, Selector, selection};
use crate::kubernetes::work::Work;
use crate::object::Fields;

/// The largest port that Fairway dials.
pub(super) const PORT_MAX: u64 = 16_384;
/// The port without one.
const PORT_DEFAULT: u64 = 179;
const RESTART_TIME_DEFAULT: u64 = 120;
const HOLD_TIME_DEFAULT: u64 = 90;
const KEEPALIVE_TIME_DEFAULT: u64 = 30;
/// The largest ConnectRetryTime of Fairway.
const CONNECT_TIME_MAX: u64 = 65_535;

/// An address family of unicast routes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Afi {
    Ipv4,
    Ipv6,
}

impl Afi {
    pub(super) fn of(address: IpAddr) -> Self {
        if address.is_ipv4() { Self::Ipv4 } else { Self::Ipv6 }
    }

    pub(super) fn named(name: &str) -> Option<Self> {
        match name {
            "ipv4" => Some(Self::Ipv4),
            "ipv6" => Some(Self::Ipv6),
            _ => None,
        }
    }
}

/// Which families a session carries, and what it is told in each.
#[derive(Default)]
pub(super) struct PeerConfig<'a> {
    /// As written; none stands for both.
    families: Vec<Family<'a>>,
}

struct Family<'a> {
    section: Section<'a>,
    afi: Afi,
    advertisements: Option<Selector>,
}

impl PeerConfig<'_> {
    /// The families of the session in Fairway, which always has that of its own address.
    pub(super) fn carried(&self, own: Option<Afi>) -> BTreeSet<Afi> {
        let both = BTreeSet::from([Afi::Ipv4, Afi::Ipv6]);
        let Some(own) = own else { return both };
        let written: BTreeSet<Afi> = self.families.iter().map(|it| it.afi).collect();
        match written.is_empty() {
            true => both,
            false => written.into_iter().chain([own]).collect(),
        }
    }

    /// Whether it selects the advertisement in all families that the session carries. In some of them only, it is named.
    pub(super) fn selects(&self, it: &Advertised<'_>, carried: &BTreeSet<Afi>) -> bool {
        let matches = |family: &&Family<'_>| {
            family.advertisements.as_ref().is_some_and(|selector| selector.matches(&it.labels))
        };
        let selecting: Vec<&Family<'_>> = self.families.iter().filter(matches).collect();
        let selected: BTreeSet<Afi> = selecting.iter().map(|it| it.afi).collect();
        if selected == *carried {
            return true;
        }
        for family in selecting {
            family.section.untranslated(
                "advertisements",
                format!(
                    "selects {} for one address family of a session that carries both, and a BGPAdvertisement is for all \
                     families of its peers: it is not announced there; write it with ipAddressPools of that family",
                    it.object.name()
                ),
            );
        }
        false
    }
}

/// Sets the fields of a BGPPeer; nothing where the peer must be left out.
pub(super) fn read<'a>(
    object: &'a SourceObject,
    is_external: bool,
    spec: &mut Fields,
    work: &mut Work,
) -> Option<PeerConfig<'a>> {
    let config = object.spec();
    if let Some(transport) = config.section("transport") {
        // It had an effect in one release only.
        transport.ignore(&["localPort"]);
        port(&transport, spec)?;
    }
    if let Some(section) = config.section("timers") {
        timers(&section, spec);
    }
    multihop(&config, "ebgpMultihop", is_external, spec);
    if let Some(secret) = config.text("authSecretRef") {
        let name = work.password(&config, "authSecretRef", (&secret, "password"));
        spec.set("passwordSecret", json!({"name": name}));
    }
    if let Some(section) = config.section("gracefulRestart") {
        graceful_restart(&section, spec);
    }
    let families = config.sections("families").into_iter().filter_map(|section| {
        let afi = section.text("afi").unwrap_or_default();
        let safi = section.text("safi").unwrap_or_default();
        let Some(afi) = Afi::named(&afi).filter(|_| safi == "unicast") else {
            section.untranslated_here(format!("{afi}/{safi} is no address family of Fairway"));
            return None;
        };
        let advertisements = match selection(&section, "advertisements") {
            Selection::Selector(selector) => Some(selector),
            Selection::Missing | Selection::Untranslated => None,
        };
        Some(Family { section, afi, advertisements })
    });
    Some(PeerConfig { families: families.collect() })
}

/// Sets `peerPort`; nothing where Fairway cannot dial it.
pub(super) fn port(section: &Section<'_>, spec: &mut Fields) -> Option<()> {
    let Some(port) = section.number("peerPort").filter(|it| *it != 0) else { return Some(()) };
    if port > PORT_MAX {
        let why = format!(
            "is above {PORT_MAX}, which is the last port of MetalLB's resources: the peer is left out"
        );
        section.untranslated("peerPort", why);
        return None;
    }
    spec.set("peerPort", (port != PORT_DEFAULT).then(|| json!(port)));
    Some(())
}

/// Sets the times.
pub(super) fn timers(section: &Section<'_>, spec: &mut Fields) {
    let hold = section.number("holdTimeSeconds");
    let keepalive = section.number("keepAliveTimeSeconds");
    if hold.is_some() || keepalive.is_some() {
        let hold = hold.unwrap_or(HOLD_TIME_DEFAULT);
        let keepalive = keepalive.unwrap_or(KEEPALIVE_TIME_DEFAULT).min(hold);
        spec.set("holdTime", seconds(hold)).set("keepaliveTime", seconds(keepalive));
    }
    if let Some(connect) = section.number("connectRetryTimeSeconds") {
        if (1..=CONNECT_TIME_MAX).contains(&connect) {
            spec.set("connectTime", seconds(connect));
        } else {
            let why = format!("is not from 1 to {CONNECT_TIME_MAX}: Fairway tries again after 5s");
            section.untranslated("connectRetryTimeSeconds", why);
        }
    }
}

/// Sets `ebgpMultiHop` where the TTL leads further than the next hop.
pub(super) fn multihop(section: &Section<'_>, field: &str, is_external: bool, spec: &mut Fields) {
    let Some(ttl) = section.number(field).filter(|it| *it > 1) else { return };
    if !is_external {
        return;
    }
    spec.set_if("ebgpMultiHop", true);
    if ttl != 64 {
        section.note(field, format!("packets are sent with a TTL of 64, not {ttl}"));
    }
}

/// Sets the fields of graceful restart.
pub(super) fn graceful_restart(section: &Section<'_>, spec: &mut Fields) {
    let time = section.number("restartTimeSeconds").filter(|it| *it != 0);
    if !section.is_set("enabled") {
        return;
    }
    spec.set_if("enableGracefulRestart", true);
    let time = time.filter(|it| *it != RESTART_TIME_DEFAULT);
    spec.set("gracefulRestart", time.map(|it| json!({"restartTime": seconds(it)})));
}
