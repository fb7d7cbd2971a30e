//! `show bgp summary [established|failed]`: a line for each neighbour of each family.
//!
//! `ribMemory` and `peerMemory` are computed as FRR does it, entries times the size of one, so
//! they are lower bounds. `tableVersion` of a peer is 0, as in FRR 8.4. Left out:
//! `peerGroupCount`, `peerGroupMemory` (there are no peer groups), `softwareVersion`. Ours:
//! `pfxRefused`, `listenRanges`, `drain`. `bestPath` is empty, as in FRR without options.

use std::fmt::Write;

use fairway_ground::{AddressFamily, Asn};
use fairway_seam::{DesiredRoute, ListenRangeView, PeerView};

use super::drain::DrainView;
use super::family_key::family_key;
use super::instance::Instance;
use super::neighbor::{
    accepted, carries, id_type, is_established, marked_key, peer_state, remote_asn, sent,
    state_name,
};
use super::object::Object;
use super::time::{clock_or_never, milliseconds};
use super::{Snapshot, SummaryFamilies, SummaryFilter, capabilities, reset};

/// The width of the first column, unless a name needs more.
const NEIGHBOR_WIDTH_MIN: usize = 16;
/// The most characters of a description.
const DESCRIPTION_LENGTH_MAX: usize = 20;

/// One family that some peer is configured for.
struct Family<'a> {
    family: AddressFamily,
    instance: Instance<'a>,
    peers: Vec<&'a PeerView>,
    ranges: Vec<&'a ListenRangeView>,
    filter: SummaryFilter,
    entries: usize,
    now_epoch_seconds: u64,
    drain: DrainView,
}

impl<'a> Family<'a> {
    /// The neighbours that are listed.
    fn listed(&self) -> Vec<&'a PeerView> {
        let is_listed = |peer: &&PeerView| match self.filter {
            SummaryFilter::Everybody => true,
            SummaryFilter::Established => is_established(peer),
            SummaryFilter::Failed => !is_established(peer),
        };
        self.peers.iter().copied().filter(is_listed).collect()
    }

    fn failed_count(&self) -> usize {
        self.peers.iter().filter(|peer| !is_established(peer)).count()
    }

    fn rib_memory_bytes(&self) -> usize {
        self.entries.saturating_mul(size_of::<DesiredRoute>())
    }

    fn dynamic_count(&self) -> usize {
        self.peers.iter().filter(|peer| peer.config.is_dynamic()).count()
    }

    fn peer_memory_bytes(&self) -> usize {
        self.peers.len().saturating_mul(size_of::<PeerView>())
    }
}

/// The families that have peers and are selected, IPv4 first.
fn families<'a>(
    snapshot: &Snapshot<'a>,
    wanted: SummaryFamilies,
    filter: SummaryFilter,
) -> Vec<Family<'a>> {
    let of = |family| {
        let peers = snapshot.bgp.peers.iter().filter(|it| it.config.families.contains(family));
        let ranges = snapshot.bgp.listen_ranges.iter();
        let ranges = ranges.filter(|it| it.config.families.contains(family));
        Family {
            family,
            instance: Instance::of(snapshot, Some(family)),
            peers: peers.collect(),
            ranges: ranges.collect(),
            filter,
            entries: *snapshot.bgp.prefixes.of(family),
            now_epoch_seconds: snapshot.now_epoch_seconds,
            drain: DrainView::of(snapshot),
        }
    };
    let is_wanted = |family: &AddressFamily| match wanted {
        SummaryFamilies::All => true,
        SummaryFamilies::OneByName(one) | SummaryFamilies::One(one) => *family == one,
    };
    let families = AddressFamily::ALL.into_iter().filter(is_wanted).map(of);
    families.filter(|it| !it.peers.is_empty() || !it.ranges.is_empty()).collect()
}

/// One block per family.
pub(super) fn text(
    snapshot: &Snapshot<'_>,
    wanted: SummaryFamilies,
    filter: SummaryFilter,
) -> String {
    let families = families(snapshot, wanted, filter);
    if families.is_empty() {
        return format!("% No BGP neighbors found in VRF {}\n", snapshot.vrf_name);
    }
    let has_title = !matches!(wanted, SummaryFamilies::One(_));
    families.iter().map(|family| block(family, has_title)).collect()
}

/// The table of one family. One that the command names in full has no title, as in FRR.
fn block(family: &Family<'_>, has_title: bool) -> String {
    let listed = family.listed();
    let vrf_name = family.instance.vrf_name;
    let mut text = match has_title {
        true => format!("\n{} Summary (VRF {vrf_name}):\n", family.family),
        false => String::new(),
    };
    if listed.is_empty() && family.filter == SummaryFilter::Failed {
        return text + "% No failed BGP neighbors found\n";
    }
    let _ = writeln!(
        text,
        "{}RIB entries {}, using {} of memory\nPeers {}, using {} of memory\n",
        family.instance.summary_head(),
        family.entries,
        memory(family.rib_memory_bytes()),
        family.peers.len(),
        memory(family.peer_memory_bytes())
    );
    let longest = listed.iter().map(|peer| marked_key(peer).len()).max();
    let width = longest.unwrap_or(0).saturating_add(1).max(NEIGHBOR_WIDTH_MIN);
    let columns = match family.filter {
        SummaryFilter::Failed => "EstdCnt DropCnt ResetTime Reason",
        SummaryFilter::Everybody | SummaryFilter::Established => {
            "V         AS   MsgRcvd   MsgSent   TblVer  InQ OutQ  Up/Down State/PfxRcd   PfxSnt Desc"
        }
    };
    let _ = writeln!(text, "{:width$}{columns}", "Neighbor");
    for peer in &listed {
        text.push_str(&match family.filter {
            SummaryFilter::Failed => failed_row(peer, width),
            SummaryFilter::Everybody | SummaryFilter::Established => {
                row(peer, family.family, width)
            }
        });
    }
    text.push('\n');
    if family.filter != SummaryFilter::Everybody {
        let _ = writeln!(text, "Displayed neighbors {}", listed.len());
    }
    let _ = writeln!(text, "Total number of neighbors {}", family.peers.len());
    text.push_str(&ranges(family));
    text.push_str(&family.drain.line());
    text
}

/// FRR's two lines if there are dynamic neighbours; and a line per range, which is ours.
fn ranges(family: &Family<'_>) -> String {
    let mut text = String::new();
    let dynamic = family.dynamic_count();
    if dynamic > 0 {
        let limits = family.ranges.iter().map(|range| range.limit);
        let limit = limits.fold(0, u32::saturating_add);
        let _ =
            writeln!(text, "* - dynamic neighbor\n{dynamic} dynamic neighbor(s), limit {limit}");
    }
    for range in &family.ranges {
        let ListenRangeView { config, limit, members, not_accepted } = range;
        let _ = write!(
            text,
            "Listen range {} ({}): {members} of at most {limit} neighbors",
            config.key, config.name
        );
        if let Some(why) = not_accepted {
            let _ = write!(text, "; no neighbor is accepted: {why}");
        }
        text.push('\n');
    }
    text
}

/// How often the session was up, since when it is down, and why.
fn failed_row(peer: &PeerView, width: usize) -> String {
    let (reason, _) = reset::reason_of_absence(peer);
    format!(
        "{:width$}{:>7} {:>7} {:>9} {reason}\n",
        marked_key(peer),
        peer.connections_established,
        peer.connections_dropped,
        clock_or_never(peer.since)
    )
}

fn row(peer: &PeerView, family: AddressFamily, width: usize) -> String {
    let (state, sent) = if carries(peer, family) {
        (accepted(peer, family).to_string(), sent(peer, family).to_string())
    } else if is_established(peer) {
        // FRR's word for a session without this family.
        ("NoNeg".to_owned(), "NoNeg".to_owned())
    } else {
        (state_name(peer), "0".to_owned())
    };
    format!(
        "{:width$}4 {:>10} {:>9} {:>9} {:>8} {:>4} {:>4} {:>8} {state:>12} {sent:>8} {}\n",
        marked_key(peer),
        remote_asn(peer),
        peer.messages.received.total(),
        peer.messages.sent.total(),
        0,
        0,
        0,
        clock_or_never(peer.since),
        description(&peer.config.name)
    )
}

/// As much as fits: cut at the last blank, as FRR does it. (FRR prints nothing if there is no blank; the
/// first characters are more useful.)
fn description(name: &str) -> String {
    if name.is_empty() {
        return "N/A".to_owned();
    }
    if name.chars().count() < DESCRIPTION_LENGTH_MAX {
        return name.to_owned();
    }
    let cut: String = name.chars().take(DESCRIPTION_LENGTH_MAX).collect();
    match cut.rsplit_once(' ') {
        Some((words, _)) if !words.is_empty() => words.to_owned(),
        _ => cut,
    }
}

/// A size in the unit that FRR would choose, rounded to the nearest.
fn memory(bytes: usize) -> String {
    let rounded = |unit: usize| bytes.saturating_add(unit / 2) / unit;
    const KIBIBYTE: usize = 1 << 10;
    const MEBIBYTE: usize = 1 << 20;
    if bytes >= 11 * MEBIBYTE {
        format!("{} MiB", rounded(MEBIBYTE))
    } else if bytes >= 11 * KIBIBYTE {
        format!("{} KiB", rounded(KIBIBYTE))
    } else {
        format!("{bytes} bytes")
    }
}

/// An object keyed by family; that of the family alone when the command names one in full.
pub(super) fn json(
    snapshot: &Snapshot<'_>,
    wanted: SummaryFamilies,
    filter: SummaryFilter,
) -> Object {
    let families = families(snapshot, wanted, filter);
    match wanted {
        SummaryFamilies::One(_) => families.first().map(object).unwrap_or_default(),
        SummaryFamilies::All | SummaryFamilies::OneByName(_) => families
            .iter()
            .map(|it| (family_key(it.family).to_owned(), object(it).into()))
            .collect(),
    }
}

fn object(family: &Family<'_>) -> Object {
    let (count, failed) = (family.peers.len(), family.failed_count());
    if family.filter == SummaryFilter::Failed && failed == 0 {
        return Object::new()
            .field("failedPeersCount", 0)
            .field("dynamicPeers", family.dynamic_count())
            .field("totalPeers", count);
    }
    let peers: Object = family
        .listed()
        .into_iter()
        .map(|peer| {
            let object = match family.filter {
                SummaryFilter::Failed => failed_object(peer, family),
                SummaryFilter::Everybody | SummaryFilter::Established => peer_object(peer, family),
            };
            (peer.config.key.to_string(), object.into())
        })
        .collect();
    Object::new()
        .field("routerId", family.instance.router_id.to_string())
        .optional("as", family.instance.asn.map(Asn::get))
        .extend(family.instance.vrf_fields())
        .field("tableVersion", family.instance.table_version)
        .field("ribCount", family.entries)
        .field("ribMemory", family.rib_memory_bytes())
        .field("peerCount", count)
        .field("peerMemory", family.peer_memory_bytes())
        .field("peers", peers)
        .field("failedPeers", failed)
        .field("displayedPeers", count)
        .field("totalPeers", count)
        .field("dynamicPeers", family.dynamic_count())
        .optional("listenRanges", (!family.ranges.is_empty()).then(|| listen_ranges(family)))
        .optional("drain", family.drain.json())
        .optional("bestPath", (family.filter != SummaryFilter::Failed).then(Object::new))
}

/// When the session last came up, in Unix time.
fn established_epoch(peer: &PeerView, family: &Family<'_>) -> Option<u64> {
    peer.since.map(|since| family.now_epoch_seconds.saturating_sub(since.as_secs()))
}

fn failed_object(peer: &PeerView, family: &Family<'_>) -> Object {
    let (reason, code) = reset::reason_of_absence(peer);
    Object::new()
        .field("connectionsEstablished", peer.connections_established)
        .field("connectionsDropped", peer.connections_dropped)
        .field("peerUptime", clock_or_never(peer.since))
        .field("peerUptimeMsec", peer.since.map_or(0, milliseconds))
        .optional("peerUptimeEstablishedEpoch", established_epoch(peer, family))
        .field("lastResetDueTo", reason)
        .field("lastResetCode", code)
        .field("idType", id_type(peer.config.key))
}

fn listen_ranges(family: &Family<'_>) -> Object {
    let range = |range: &&ListenRangeView| {
        let object = Object::new()
            .field("desc", range.config.name.as_str())
            .field("dynamicPeers", range.members)
            .field("limit", range.limit)
            .optional("notAccepted", range.not_accepted);
        (range.config.key.to_string(), object.into())
    };
    family.ranges.iter().map(range).collect()
}

fn peer_object(peer: &PeerView, family: &Family<'_>) -> Object {
    let config = &peer.config;
    let hostname = peer.session.as_ref().and_then(capabilities::hostname);
    Object::new()
        .flag("dynamicPeer", config.is_dynamic())
        .optional("hostname", hostname)
        .field("remoteAs", remote_asn(peer))
        .field("localAs", config.local_asn.get())
        .field("version", 4)
        .field("msgRcvd", peer.messages.received.total())
        .field("msgSent", peer.messages.sent.total())
        .field("tableVersion", 0)
        .field("outq", 0)
        .field("inq", 0)
        .field("peerUptime", clock_or_never(peer.since))
        .field("peerUptimeMsec", peer.since.map_or(0, milliseconds))
        .optional("peerUptimeEstablishedEpoch", established_epoch(peer, family))
        .field("pfxRcd", accepted(peer, family.family))
        .field("pfxSnt", sent(peer, family.family))
        .field("pfxRefused", *peer.prefixes_refused.of(family.family))
        .field("state", state_name(peer))
        .field("peerState", peer_state(peer))
        .field("connectionsEstablished", peer.connections_established)
        .field("connectionsDropped", peer.connections_dropped)
        .optional("desc", (!config.name.is_empty()).then_some(config.name.as_str()))
        .field("idType", id_type(config.key))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_description_is_cut_at_its_last_blank() {
        assert_eq!(description("router one over IPv4"), "router one over");
        assert_eq!(description("nobody answers here"), "nobody answers here");
        assert_eq!(description("nobody answers here either"), "nobody answers here");
        assert_eq!(description("no route to this one"), "no route to this");
        assert_eq!(description("top-of-rack-17-in-row-4"), "top-of-rack-17-in-ro");
        assert_eq!(description(""), "N/A");
    }

    #[test]
    fn sizes_have_the_unit_that_frr_gives_them() {
        assert_eq!(memory(3_072), "3072 bytes");
        assert_eq!(memory(4_448_784), "4345 KiB");
        assert_eq!(memory(741_464), "724 KiB");
        assert_eq!(memory(64 << 20), "64 MiB");
    }
}
