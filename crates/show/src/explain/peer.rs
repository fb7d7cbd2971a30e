//! `explain peer`: whether there is a session and why not, what the neighbour was sent and what is missing, what it
//! announces and what was refused.
//!
//! `absence` finds the causes; this module puts them beside what was configured and what was seen.

use fairway_ground::{AddressFamily, PeerKind, Prefix};
use fairway_seam::{PeerConfig, PeerView};
use serde_json::Value;

use super::absence::{Cause, causes};
use super::faults_of;
use super::section::sections;
use crate::neighbor::{self, is_established, remote_asn};
use crate::object::Object;
use crate::time::clock;
use crate::told::Told;
use crate::{ShowError, Snapshot};

/// Everything that is reported of one neighbour.
struct Explanation<'a> {
    peer: &'a PeerView,
    causes: Vec<Cause>,
    /// Planned routes that it was not sent, each with the reason.
    missing: Vec<(Prefix, String)>,
    planned: usize,
}

/// As text: the neighbours that `wanted` names, one after the other.
pub(super) fn text(snapshot: &Snapshot<'_>, wanted: &str) -> Result<String, ShowError> {
    let peers = find(snapshot, wanted)?;
    let texts: Vec<_> = peers.iter().map(Explanation::text).collect();
    Ok(texts.join("\n"))
}

/// As JSON.
pub(super) fn json(snapshot: &Snapshot<'_>, wanted: &str) -> Result<Object, ShowError> {
    let items: Vec<Value> = find(snapshot, wanted)?.iter().map(|it| it.json().into()).collect();
    Ok(Object::new().field("items", items))
}

fn find<'a>(snapshot: &'a Snapshot<'a>, wanted: &str) -> Result<Vec<Explanation<'a>>, ShowError> {
    let peers = neighbor::find(snapshot, Some(wanted));
    if peers.is_empty() {
        return Err(ShowError::NoSuchPeer {
            wanted: wanted.to_owned(),
            why: why_absent(snapshot, wanted),
        });
    }
    let told = Told::new(snapshot);
    Ok(peers.into_iter().map(|peer| Explanation::new(snapshot, &told, peer)).collect())
}

/// Why a BGPPeer has no neighbour here; or which neighbours there are.
fn why_absent(snapshot: &Snapshot<'_>, wanted: &str) -> String {
    let elsewhere = super::service::peers_elsewhere(snapshot);
    let own =
        elsewhere.into_iter().find(|(name, _)| name.name == wanted || name.to_string() == wanted);
    if let Some((_, why)) = own {
        return format!("this node has no session with it: {why}");
    }
    let faults = faults_of(snapshot, |it| it.kind == "BGPPeer" && it.name == wanted);
    if let Some(fault) = faults.first() {
        return format!("its BGPPeer is not in force: {fault}");
    }
    let ranges = &snapshot.bgp.listen_ranges;
    if let Some(range) = ranges.iter().find(|it| it.config.name == wanted) {
        let why =
            range.not_accepted.map(|why| format!("; none is accepted: {why}")).unwrap_or_default();
        return format!(
            "it is a range, {}, from which no neighbor has connected ({} of {}){why}",
            range.config.key, range.members, range.limit
        );
    }
    let known: Vec<_> = snapshot.bgp.peers.iter().map(|it| it.config.key.to_string()).collect();
    if known.is_empty() {
        "there are none".to_owned()
    } else {
        format!("known: {}", known.join(", "))
    }
}

impl<'a> Explanation<'a> {
    fn new(snapshot: &'a Snapshot<'a>, told: &Told<'a>, peer: &'a PeerView) -> Self {
        let key = peer.config.route_key();
        let planned = snapshot.plan.routes.iter().filter(|route| route.peers.contains(&key));
        let planned = planned.map(|route| route.prefix);
        // The others are not meant for its session.
        let carried = |prefix: &Prefix| peer.config.families.contains(prefix.family());
        let planned: Vec<Prefix> = planned.filter(carried).collect();
        let sent = |prefix: &Prefix| peer.advertised.iter().any(|route| route.prefix == *prefix);
        let missing = planned
            .iter()
            .filter(|prefix| !sent(prefix))
            .map(|prefix| (*prefix, told.silence(key, *prefix).join("; ")));
        let missing = missing.collect();
        let causes = causes(peer, snapshot.bgp.rejected_segments);
        Self { peer, causes, missing, planned: planned.len() }
    }

    /// The summary as one sentence.
    fn verdict(&self) -> String {
        let PeerConfig { name, key, .. } = &self.peer.config;
        let called = if name.is_empty() || *name == key.to_string() {
            format!("Peer {key}")
        } else {
            format!("Peer {name} ({key})")
        };
        if let Some(first) = self.causes.first() {
            return format!("{called} {}", first.what);
        }
        let sent = self.planned.saturating_sub(self.missing.len());
        match (self.planned, self.missing.is_empty()) {
            (0, _) => format!("{called} has a session; no route is planned for it"),
            (planned, true) => {
                format!("{called} has a session and all planned routes: {planned} of {planned}")
            }
            (planned, false) => {
                format!("{called} has a session and {sent} of {planned} planned routes")
            }
        }
    }

    fn text(&self) -> String {
        let peer = self.peer;
        let more = self.causes.iter().skip(1).map(|it| it.what.clone());
        let remedies = self.causes.iter().map(|it| it.remedy.clone()).filter(|it| !it.is_empty());
        let missing = self.missing.iter().map(|(prefix, why)| format!("{prefix}: {why}"));
        let missing: Vec<_> = shortened(missing.collect(), "routes");
        let mut text = format!("{}\n", self.verdict());
        text.push_str(&sections([
            ("To do", remedies.collect()),
            ("Or it", more.collect()),
            ("Settings", vec![settings(&peer.config)]),
            ("Session", self.session()),
            ("Sent", self.sent()),
            ("Received", self.received()),
            ("Missing", missing),
        ]));
        text
    }

    fn session(&self) -> Vec<String> {
        let peer = self.peer;
        let since = peer.since.map(|since| format!(" for {}", clock(since))).unwrap_or_default();
        let counts = format!(
            "; it came up {} and went down {}",
            times(peer.connections_established),
            times(peer.connections_dropped)
        );
        let mut lines = vec![format!("{}{since}{counts}", peer.state.name())];
        if let Some(reset) = &peer.last_reset {
            lines.push(format!("last end {} ago: {}", clock(reset.ago), reset.text));
        }
        if let Some(next) = peer.next_connect_in {
            lines.push(format!("next attempt in {} s", next.as_secs()));
        }
        if peer.bfd_path.is_some() || peer.config.bfd.is_some() {
            let since = peer.liveness_since.map(|since| format!(" for {}", clock(since)));
            lines.push(format!("BFD is {}{}", peer.bfd_status(), since.unwrap_or_default()));
        }
        lines
    }

    fn sent(&self) -> Vec<String> {
        if !is_established(self.peer) {
            return Vec::new();
        }
        let counts = self.peer.prefixes_advertised;
        let beside = counts.ipv4.saturating_add(counts.ipv6);
        vec![format!("{beside} prefixes, of {} planned for it", self.planned)]
    }

    fn received(&self) -> Vec<String> {
        let peer = self.peer;
        if !is_established(peer) {
            return Vec::new();
        }
        let accepted = AddressFamily::ALL.map(|family| u64::from(neighbor::accepted(peer, family)));
        let mut lines = vec![format!("{} prefixes accepted", accepted.iter().sum::<u64>())];
        lines.extend(peer.refusals.iter().map(|(rule, count)| format!("{count} refused: {rule}")));
        if !peer.refusals.is_empty() {
            lines.push(format!(
                "`show bgp neighbors {} filtered-routes` lists them",
                peer.config.key.remote
            ));
        }
        lines
    }

    fn json(&self) -> Object {
        let peer = self.peer;
        let causes: Vec<Value> = self
            .causes
            .iter()
            .map(|it| {
                let cause = Object::new().field("word", it.word).field("what", it.what.as_str());
                cause.field("remedy", it.remedy.as_str()).into()
            })
            .collect();
        let missing: Vec<Value> = self
            .missing
            .iter()
            .map(|(prefix, why)| {
                let route = Object::new().field("prefix", prefix.to_string());
                route.field("reason", why.as_str()).into()
            })
            .collect();
        Object::new()
            .field("peer", peer.config.name.as_str())
            .field("address", peer.config.key.remote.to_string())
            .optional("vrf", peer.config.key.vrf.map(|vrf| vrf.as_str().to_owned()))
            .field("verdict", self.verdict())
            .field("state", peer.state.name())
            .field("causes", causes)
            .field("settings", settings(&peer.config))
            .field("remoteAs", remote_asn(peer))
            .optional("lastReset", peer.last_reset.as_ref().map(|it| it.text.clone()))
            .field("planned", self.planned)
            .field("missing", missing)
    }
}

fn times(count: u64) -> String {
    match count {
        0 => "never".to_owned(),
        1 => "once".to_owned(),
        more => format!("{more} times"),
    }
}

/// What the BGPPeer says, in one line.
fn settings(config: &PeerConfig) -> String {
    let remote_as = match config.remote_as {
        fairway_ground::RemoteAs::Asn(asn) => format!("AS {asn}"),
        fairway_ground::RemoteAs::Internal => "internal".to_owned(),
        fairway_ground::RemoteAs::External => "external".to_owned(),
    };
    let kind = match config.kind() {
        PeerKind::Internal => "iBGP",
        PeerKind::External => "eBGP",
    };
    let mut parts = vec![
        format!("our AS {}, its {remote_as} ({kind})", config.local_asn),
        format!("port {}", config.port),
        format!("hold time {} s", config.hold_time.seconds()),
    ];
    parts.extend(config.password.as_ref().map(|_| "TCP-MD5".to_owned()));
    parts.extend((!config.tcp_ao.is_empty()).then(|| "TCP-AO".to_owned()));
    parts.extend(config.multihop.then(|| "multihop".to_owned()));
    parts.extend(config.ttl_security_hops.map(|hops| format!("GTSM {hops} hops")));
    parts.extend(config.passive.then(|| "passive".to_owned()));
    parts.extend(config.source_address.map(|address| format!("from {address}")));
    parts.extend(config.bfd.as_ref().map(|_| "BFD".to_owned()));
    parts.join(", ")
}

/// The first lines, and how many more there are.
pub(super) fn shortened(mut lines: Vec<String>, of: &str) -> Vec<String> {
    /// A screen.
    const LINES_MAX: usize = 20;
    if let Some(more) = lines.len().checked_sub(LINES_MAX).filter(|more| *more > 0) {
        lines.truncate(LINES_MAX);
        lines.push(format!("and {more} more {of}"));
    }
    lines
}
