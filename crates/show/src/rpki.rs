//! `show rpki`: the caches that are asked, and what they say of the origins of routes.
//!
//! `cache-connection`, `prefix-table` and `prefix` have FRR's lines and keys. `Ours:` FRR uses one group of caches at a time;
//! here what any cache says counts, so all are in group 1 with preference 1.

use std::fmt::Write as _;
use std::time::Duration;

use fairway_ground::{AddressFamily, OriginValidation, Prefix, RoaPayload, printable};
use fairway_seam::RpkiServerView;
use serde_json::Value;

use super::columns::{aligned, or_none};
use super::object::Object;
use super::time::{clock, milliseconds};
use super::{ShowError, Snapshot};

const NO_SERVER: &str =
    "No RPKI servers: no BGPConfiguration for this node names any (spec.rpki.servers).\n";

/// FRR's words for a state.
pub(super) fn words(state: OriginValidation) -> &'static str {
    match state {
        OriginValidation::Valid => "valid",
        OriginValidation::Invalid => "invalid",
        OriginValidation::NotFound => "not found",
    }
}

fn state(server: &RpkiServerView) -> &'static str {
    match (server.is_connected, server.serial.is_some()) {
        (true, true) => "connected",
        (true, false) => "synchronizing",
        (false, true) => "away",
        (false, false) => "down",
    }
}

/// A row for each cache.
pub(super) fn text(snapshot: &Snapshot<'_>) -> String {
    let servers = &snapshot.bgp.rpki_servers;
    if servers.is_empty() {
        return NO_SERVER.to_owned();
    }
    let heads =
        ["SERVER", "STATE", "VERSION", "PAYLOADS", "SERIAL", "UPDATED", "EXPIRES", "PROBLEM"];
    let mut rows = vec![heads.map(str::to_owned)];
    let time = |it: Option<Duration>| or_none(it.map(clock).unwrap_or_default());
    rows.extend(servers.iter().map(|it| {
        [
            it.server.to_string(),
            state(it).to_owned(),
            it.version.to_string(),
            it.payloads.to_string(),
            or_none(it.serial.map(|serial| serial.to_string()).unwrap_or_default()),
            time(it.synchronized_ago),
            time(it.expires_in),
            or_none(it.failure.as_deref().map(printable).unwrap_or_default().into_owned()),
        ]
    }));
    aligned(&rows)
}

/// An object for each cache.
pub(super) fn json(snapshot: &Snapshot<'_>) -> Object {
    let object = |it: &RpkiServerView| -> Value {
        Object::new()
            .field("address", &*it.server.host)
            .field("port", it.server.port)
            .field("state", state(it))
            .field("version", it.version)
            .field("payloads", it.payloads)
            .optional("serial", it.serial)
            .optional("updatedMsec", it.synchronized_ago.map(milliseconds))
            .optional("expiresInMsec", it.expires_in.map(milliseconds))
            .optional("problem", it.failure.as_deref())
            .into()
    };
    let servers = snapshot.bgp.rpki_servers.iter();
    Object::new().field("items", servers.map(object).collect::<Vec<Value>>())
}

/// `show rpki cache-connection`.
pub(super) fn connections_text(snapshot: &Snapshot<'_>) -> String {
    let servers = &snapshot.bgp.rpki_servers;
    if !servers.iter().any(|it| it.is_connected) {
        return "No connection to RPKI cache server.\n".to_owned();
    }
    let mut text = "Connected to group 1\n".to_owned();
    for RpkiServerView { server, is_connected, .. } in servers {
        let state = if *is_connected { " (connected)" } else { "" };
        let _ = writeln!(text, "rpki tcp cache {} {} pref 1{state}", server.host, server.port);
    }
    text
}

/// The same as an object.
pub(super) fn connections_json(snapshot: &Snapshot<'_>) -> Object {
    let servers = &snapshot.bgp.rpki_servers;
    if !servers.iter().any(|it| it.is_connected) {
        return Object::new().field("error", "No connection to RPKI cache server.");
    }
    let connection = |it: &RpkiServerView| -> Value {
        Object::new()
            .field("mode", "tcp")
            .field("host", &*it.server.host)
            .field("port", it.server.port.to_string())
            .field("preference", 1)
            .field("state", if it.is_connected { "connected" } else { "disconnected" })
            .into()
    };
    let connections: Vec<Value> = servers.iter().map(connection).collect();
    Object::new().field("connectedGroup", 1).field("connections", connections)
}

/// The payloads of the table, or those that cover a prefix.
fn chosen<'a>(
    snapshot: &'a Snapshot<'_>,
    covers: Option<&str>,
) -> Result<Vec<&'a RoaPayload>, ShowError> {
    let parsed = |text: &str| {
        let is_ipv6 = text.contains(':');
        let family = if is_ipv6 { AddressFamily::Ipv6Unicast } else { AddressFamily::Ipv4Unicast };
        text.parse::<Prefix>()
            .map_err(|_| ShowError::MalformedPrefix { text: text.to_owned(), family })
    };
    let wanted = covers.map(parsed).transpose()?;
    let covers = |it: &&RoaPayload| {
        wanted.is_none_or(|prefix| {
            it.prefix.contains(prefix.address()) && it.prefix.length() <= prefix.length()
        })
    };
    Ok(snapshot.bgp.roa_payloads.iter().filter(covers).collect())
}

fn count(payloads: &[&RoaPayload], family: AddressFamily) -> usize {
    payloads.iter().filter(|it| it.prefix.family() == family).count()
}

/// `show rpki prefix-table`, and `show rpki prefix PREFIX`.
pub(super) fn payloads_text(
    snapshot: &Snapshot<'_>,
    covers: Option<&str>,
) -> Result<String, ShowError> {
    let payloads = chosen(snapshot, covers)?;
    let mut text = if covers.is_none() { "RPKI/RTR prefix table\n" } else { "" }.to_owned();
    let _ = writeln!(text, "{:<40} Prefix Length  Origin-AS", "Prefix");
    for RoaPayload { prefix, length_max, asn } in &payloads {
        let (address, length) = (prefix.address().to_string(), prefix.length());
        let _ = writeln!(text, "{address:<40}   {length:>3} - {length_max:>3}   {asn:>10}");
    }
    if covers.is_none() {
        for (name, family) in
            [("IPv4", AddressFamily::Ipv4Unicast), ("IPv6", AddressFamily::Ipv6Unicast)]
        {
            let _ = writeln!(text, "Number of {name} Prefixes: {}", count(&payloads, family));
        }
    }
    Ok(text)
}

/// The same as an object.
pub(super) fn payloads_json(
    snapshot: &Snapshot<'_>,
    covers: Option<&str>,
) -> Result<Object, ShowError> {
    let payloads = chosen(snapshot, covers)?;
    let object = |it: &&RoaPayload| -> Value {
        Object::new()
            .field("prefix", it.prefix.address().to_string())
            .field("prefixLenMin", it.prefix.length())
            .field("prefixLenMax", it.length_max)
            .field("asn", it.asn)
            .into()
    };
    Ok(Object::new()
        .field("prefixes", payloads.iter().map(object).collect::<Vec<Value>>())
        .field("ipv4PrefixCount", count(&payloads, AddressFamily::Ipv4Unicast))
        .field("ipv6PrefixCount", count(&payloads, AddressFamily::Ipv6Unicast)))
}
