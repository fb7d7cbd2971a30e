//! `announced.json`: the routes that were announced last, for the next run.
//!
//! Pure: values to text and back. Routes of equal attributes to equal peers are grouped, so that a thousand
//! prefixes cost little more than their text. Holds no key and no password. The saver of `host` writes it,
//! and the daemon reads it once, when it starts.

use std::collections::{BTreeMap, BTreeSet};
use std::str::FromStr;
use std::sync::Arc;

use fairway_ground::{InterfaceName, LinkBandwidth, PeerKey, Prefix, Remote};
use fairway_seam::{DesiredRoute, EarlierRun, RouteAttributes};
use serde::{Deserialize, Serialize};

use crate::document::{FormatError, decode_document, text};

/// Its name in the state directory.
pub const ANNOUNCED_FILE: &str = "announced.json";
/// The format that this build reads and writes.
const ANNOUNCED_VERSION: u64 = 1;

/// The routes that one run announced last.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LastAnnounced {
    /// The kernel's boot ID; `None` if the kernel does not provide one.
    pub boot_id: Option<String>,
    /// The routes.
    pub routes: Vec<DesiredRoute>,
}

impl LastAnnounced {
    /// What it means to a run on a machine with this `boot_id`: if it is the same boot, the kernel has
    /// forwarded all the time.
    pub fn into_earlier_run(self, boot_id: Option<&str>) -> EarlierRun {
        let forwarding = boot_id.is_some() && self.boot_id.as_deref() == boot_id;
        EarlierRun { routes: self.routes, forwarding }
    }
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Document {
    version: u64,
    boot_id: Option<String>,
    groups: Vec<Group>,
}

/// Routes that differ only in the prefix.
#[derive(Serialize, Deserialize)]
struct Group {
    peers: Vec<PeerRecord>,
    attributes: AttributesRecord,
    prefixes: Vec<String>,
}

/// A neighbour: exactly one of the first three is set.
#[derive(Serialize, Deserialize, Default)]
#[serde(deny_unknown_fields)]
struct PeerRecord {
    #[serde(skip_serializing_if = "Option::is_none")]
    address: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    interface: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    range: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    vrf: Option<String>,
}

/// An absent field is not set.
#[derive(Serialize, Deserialize, Default)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
struct AttributesRecord {
    #[serde(skip_serializing_if = "Option::is_none")]
    local_pref: Option<u32>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    communities: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    large_communities: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    med: Option<u32>,
    #[serde(skip_serializing_if = "is_zero")]
    as_path_prepend: u8,
    #[serde(skip_serializing_if = "Option::is_none")]
    link_bandwidth_bits_per_second: Option<u64>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it so")]
fn is_zero(number: &u8) -> bool {
    *number == 0
}

/// The text of the file.
pub fn encode(announced: &LastAnnounced) -> String {
    let mut groups: BTreeMap<(&BTreeSet<PeerKey>, &RouteAttributes), Vec<String>> = BTreeMap::new();
    for route in &announced.routes {
        let group = groups.entry((route.peers.as_ref(), route.attributes.as_ref())).or_default();
        group.push(route.prefix.to_string());
    }
    let groups = groups.into_iter().map(|((peers, attributes), prefixes)| Group {
        peers: peers.iter().map(PeerRecord::of).collect(),
        attributes: AttributesRecord::of(attributes),
        prefixes,
    });
    text(&Document {
        version: ANNOUNCED_VERSION,
        boot_id: announced.boot_id.clone(),
        groups: groups.collect(),
    })
}

/// Parses the text of [`encode`]. The routes come in the order of the groups.
pub fn decode(text: &str) -> Result<LastAnnounced, FormatError> {
    let document = decode_document(text, ANNOUNCED_VERSION)?;
    let Document { boot_id, groups, .. } = serde_json::from_value(document)?;
    let mut routes = Vec::new();
    for Group { peers, attributes, prefixes } in groups {
        let peers = peers.iter().map(PeerRecord::key).collect::<Result<BTreeSet<_>, _>>()?;
        let (peers, attributes) = (Arc::new(peers), Arc::new(attributes.attributes()?));
        for prefix in prefixes {
            let (peers, attributes) = (Arc::clone(&peers), Arc::clone(&attributes));
            routes.push(DesiredRoute { prefix: parse(&prefix)?, peers, attributes });
        }
    }
    Ok(LastAnnounced { boot_id, routes })
}

fn parse<T: FromStr>(text: &str) -> Result<T, FormatError>
where
    T::Err: std::fmt::Display,
{
    text.parse().map_err(|error: T::Err| FormatError::Content(format!("damaged: {error}")))
}

fn parse_all<T: FromStr>(texts: &[String]) -> Result<Vec<T>, FormatError>
where
    T::Err: std::fmt::Display,
{
    texts.iter().map(|text| parse(text)).collect()
}

fn texts<T: ToString>(values: &[T]) -> Vec<String> {
    values.iter().map(ToString::to_string).collect()
}

impl PeerRecord {
    fn of(key: &PeerKey) -> Self {
        let vrf = key.vrf.map(|vrf| vrf.to_string());
        let remote = key.remote.to_string();
        match key.remote {
            Remote::Address(_) => Self { address: Some(remote), vrf, ..Self::default() },
            Remote::Interface(_) => Self { interface: Some(remote), vrf, ..Self::default() },
            Remote::Range(_) => Self { range: Some(remote), vrf, ..Self::default() },
            // Does not happen: what is announced is announced to an address.
            Remote::DefaultGateway(_) => Self { vrf, ..Self::default() },
        }
    }

    fn key(&self) -> Result<PeerKey, FormatError> {
        let remote = match (&self.address, &self.interface, &self.range) {
            (Some(address), None, None) => Remote::Address(parse(address)?),
            (None, Some(interface), None) => Remote::Interface(parse(interface)?),
            (None, None, Some(range)) => Remote::Range(parse::<Prefix>(range)?),
            _ => {
                let expected = "damaged: a peer has one of address, interface and range";
                return Err(FormatError::Content(expected.to_owned()));
            }
        };
        let vrf = self.vrf.as_deref().map(parse::<InterfaceName>).transpose()?;
        Ok(PeerKey { remote, vrf })
    }
}

impl AttributesRecord {
    fn of(attributes: &RouteAttributes) -> Self {
        let RouteAttributes {
            local_pref,
            communities,
            large_communities,
            med,
            as_path_prepend,
            link_bandwidth,
        } = attributes;
        Self {
            local_pref: *local_pref,
            communities: texts(communities),
            large_communities: texts(large_communities),
            med: *med,
            as_path_prepend: *as_path_prepend,
            link_bandwidth_bits_per_second: link_bandwidth.map(|it| it.bits_per_second),
        }
    }

    fn attributes(&self) -> Result<RouteAttributes, FormatError> {
        let bandwidth = self.link_bandwidth_bits_per_second;
        Ok(RouteAttributes {
            local_pref: self.local_pref,
            communities: parse_all(&self.communities)?,
            large_communities: parse_all(&self.large_communities)?,
            med: self.med,
            as_path_prepend: self.as_path_prepend,
            link_bandwidth: bandwidth.map(|bits_per_second| LinkBandwidth { bits_per_second }),
        })
    }
}

#[cfg(test)]
mod tests;
