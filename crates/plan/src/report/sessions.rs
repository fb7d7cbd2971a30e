//! The effect of an edit on sessions: which start, end or are reset, by which fields, and what happens
//! to the routes in between.
//!
//! The effect of a field is in the table of `PeerSetting`; here it gets the name and the values that
//! operators write. Keys are never among them.

use fairway_ground::{BfdSettings, FamilySet, PeerKind, Remote, RemoteAs};
use fairway_seam::{ChangeEffect, PeerBfd, PeerConfig, PeerSetting};

use super::super::{NodePlan, SessionDiff};
use fairway_ground::columns::or_none;

/// The effect on a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Fate {
    /// It is new.
    Added,
    /// It ends.
    Removed,
    /// It ends, and starts again.
    Reset,
    /// It stays up with other settings.
    Kept,
}

/// A changed field. Values of keys and lists are not shown.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct FieldEdit {
    pub(super) name: String,
    pub(super) values: Option<(String, String)>,
}

/// A changed session.
pub(super) struct SessionEdit<'a> {
    pub(super) node: &'a str,
    pub(super) peer: String,
    /// Its address, interface or range.
    pub(super) remote: String,
    pub(super) fate: Fate,
    pub(super) fields: Vec<FieldEdit>,
    /// Whether the router drops our routes for a time, or for good.
    pub(super) loses_routes: bool,
    /// The effect, for people.
    pub(super) effect: &'static str,
}

/// The sessions of `node` that differ from those in `old`.
pub(super) fn of_node<'a>(
    node: &'a str,
    diff: &SessionDiff,
    old: &NodePlan,
) -> Vec<SessionEdit<'a>> {
    let plain = |peer: &PeerConfig, fate, loses_routes, effect| SessionEdit {
        node,
        peer: peer.name.clone(),
        remote: peer.key.to_string(),
        fate,
        fields: Vec::new(),
        loses_routes,
        effect,
    };
    let mut edits = Vec::new();
    edits.extend(diff.added.iter().map(|peer| {
        let effect =
            if peer.is_dialled() { "the router is dialled" } else { "the router must connect" };
        plain(peer, Fate::Added, false, effect)
    }));
    edits.extend(diff.removed.iter().map(|peer| {
        plain(peer, Fate::Removed, true, "Peer De-configured (6/3); its routes are withdrawn")
    }));
    let was = |peer: &PeerConfig| old.peers.iter().find(|it| it.key == peer.key);
    for (peers, fate) in [(&diff.reset, Fate::Reset), (&diff.changed, Fate::Kept)] {
        for peer in peers {
            let Some(before) = was(peer) else { continue };
            let (loses_routes, effect) = match fate {
                Fate::Reset => meanwhile(before, peer),
                _ => (false, going_on(before, peer)),
            };
            let fields = fields(before, peer);
            edits.push(SessionEdit { fields, ..plain(peer, fate, loses_routes, effect) });
        }
    }
    // A neighbour of the same name with another address is the same for people.
    for removed in &diff.removed {
        for edit in edits.iter_mut().filter(|it| it.peer == removed.name) {
            let added = diff.added.iter().find(|it| it.name == removed.name);
            edit.fields.extend(added.map(|added| remote(removed, added)));
        }
    }
    edits
}

/// What happens to the routes during a session reset.
fn meanwhile(before: &PeerConfig, after: &PeerConfig) -> (bool, &'static str) {
    let is_other = |fields: &[&str]| {
        before.differences(after).iter().any(|setting| fields.contains(&setting.field))
    };
    let both_restart = before.graceful_restart.is_some() && after.graceful_restart.is_some();
    if after.shutdown.is_some() {
        (true, "shut down; its routes are withdrawn until `shutdown` is removed")
    } else if is_other(&["local_asn", "router_asn", "remote_as"]) {
        (true, "routes are lost until the router is configured with the new AS")
    } else if is_other(&["password", "tcp_ao"]) {
        (true, "routes are lost until the router is configured with the same keys")
    } else if before.shutdown.is_some() {
        (false, "the router is dialled again")
    } else if both_restart {
        (false, "routes are kept, if the router has graceful restart enabled, too")
    } else {
        (true, "routes are lost until the session is back (enableGracefulRestart is not set)")
    }
}

/// What the neighbour notices of a session that stays up.
fn going_on(before: &PeerConfig, after: &PeerConfig) -> &'static str {
    let differences = before.differences(after);
    let has = |effect| differences.iter().any(|setting| setting.effect == effect);
    let bfd = before.bfd.as_ref().zip(after.bfd.as_ref());
    let has_other_bfd = |is_other: fn(&BfdSettings, &BfdSettings) -> bool| {
        bfd.is_some_and(|(before, after)| is_other(&before.settings, &after.settings))
    };
    if has_other_bfd(|before, after| before.authentication != after.authentication) {
        "stays up, if the router gets the BFD key within the detection time"
    } else if (after.kind() == PeerKind::Internal || !after.is_next_door())
        && has_other_bfd(|before, after| before.minimum_ttl < after.minimum_ttl)
    {
        "stays up, if the router's multihop BFD packets arrive with the new TTL"
    } else if has(ChangeEffect::ExchangesKeys) {
        "stays up, if the router gets the keys within the hold time"
    } else if has(ChangeEffect::AsksAgain) {
        "stays up; the router is asked for its routes again"
    } else {
        "stays up"
    }
}

/// The fields in which two settings of one neighbour differ.
fn fields(before: &PeerConfig, after: &PeerConfig) -> Vec<FieldEdit> {
    let mut fields: Vec<FieldEdit> = Vec::new();
    for setting in before.differences(after) {
        let name = written(setting, after);
        let values = value(setting.field, before).zip(value(setting.field, after));
        // The change may be one of a key.
        let values = values.filter(|(before, after)| before != after);
        // `myASN` is two settings.
        if !name.is_empty() && !fields.iter().any(|it| it.name == name) {
            fields.push(FieldEdit { name, values });
        }
    }
    fields
}

/// The field of the BGPPeer that sets it.
fn written(setting: &PeerSetting, after: &PeerConfig) -> String {
    let name = match setting.field {
        "local_asn" if after.local_asn != after.router_asn => "localASN",
        "remote_as" if !matches!(after.remote_as, RemoteAs::Asn(_)) => "dynamicASN",
        "client" if after.kind() == PeerKind::External => "routeServerClient",
        // The first of several possible ones.
        _ => setting.written.split('`').nth(1).unwrap_or_default(),
    };
    name.to_owned()
}

/// The value in short; `None` if it is a key, or a list.
fn value(field: &str, peer: &PeerConfig) -> Option<String> {
    fn seconds(time: std::time::Duration) -> String {
        format!("{}s", time.as_secs())
    }
    fn optional<T: ToString>(value: Option<T>) -> String {
        or_none(value.map(|it| it.to_string()).unwrap_or_default())
    }
    Some(match field {
        "name" => peer.name.clone(),
        "local_asn" => peer.local_asn.to_string(),
        "router_asn" => peer.router_asn.to_string(),
        "remote_as" => match peer.remote_as {
            RemoteAs::Asn(asn) => asn.to_string(),
            RemoteAs::Internal => "internal".to_owned(),
            RemoteAs::External => "external".to_owned(),
        },
        "router_id" => peer.router_id.to_string(),
        "passive" => peer.passive.to_string(),
        "port" => peer.port.to_string(),
        "source_address" => optional(peer.source_address),
        "hold_time" => format!("{}s", peer.hold_time.seconds()),
        "keepalive_interval" => optional(peer.keepalive_interval.map(seconds)),
        "connect_retry_interval" => seconds(peer.connect_retry_interval),
        "multihop" => peer.multihop.to_string(),
        "ttl_security_hops" => optional(peer.ttl_security_hops),
        "families" => (peer.families == FamilySet::BOTH).to_string(),
        "extended_next_hop" => peer.extended_next_hop.to_string(),
        "graceful_restart" => match peer.graceful_restart {
            None => "false".to_owned(),
            Some(it) => format!("true ({}s)", it.restart_time_seconds()),
        },
        "client" => peer.client.is_some().to_string(),
        "cluster_id" => optional(peer.cluster_id),
        "role" => optional(peer.role),
        "role_strict" => peer.role_strict.to_string(),
        "bfd" => peer.bfd.as_ref().map_or_else(|| or_none(String::new()), bfd),
        _ => return None,
    })
}

/// The BFD settings in short. The key is never shown.
fn bfd(bfd: &PeerBfd) -> String {
    let BfdSettings {
        transmit_interval,
        receive_interval,
        detect_multiplier,
        echo_interval,
        passive,
        minimum_ttl,
        authentication,
    } = &bfd.settings;
    let (transmit, receive) = (transmit_interval.as_millis(), receive_interval.as_millis());
    let mut words = format!("{transmit}/{receive} ms x {detect_multiplier}");
    let others = [
        echo_interval.map(|it| format!("echo {} ms", it.as_millis())),
        passive.then(|| "passive".to_owned()),
        (*minimum_ttl != BfdSettings::MINIMUM_TTL_DEFAULT).then(|| format!("TTL {minimum_ttl}")),
        authentication.as_ref().map(|it| format!("{} {}", it.kind(), it.key_id())),
        bfd.strict.then(|| "strict".to_owned()),
    ];
    for other in others.into_iter().flatten() {
        words.push_str(", ");
        words.push_str(&other);
    }
    words
}

/// The field with the address of a neighbour.
fn remote(before: &PeerConfig, after: &PeerConfig) -> FieldEdit {
    let name = match after.key.remote {
        _ if before.key.remote == after.key.remote => "vrf",
        Remote::Address(_) => "peerAddress",
        Remote::Interface(_) => "interface",
        Remote::Range(_) => "listenRange",
        Remote::DefaultGateway(_) => "autoDiscovery",
    };
    let values = Some((before.key.to_string(), after.key.to_string()));
    FieldEdit { name: name.to_owned(), values }
}
