//! BGPPeer of metallb.io/v1beta1: fewer fields, and timers that are 0 if they are not set.
//!
//! Answers what it is in v1beta2, as MetalLB converts it. Knows no rule of a session; `parse` calls
//! it.

use std::time::Duration;

use fairway_ground::RouterId;
use schemars::JsonSchema;
use serde::Deserialize;

use super::RawSpec;
use crate::field_path::FieldPath;
use crate::fields::{AsNumber, Given, GoDuration, HostAddress, PeerAsNumber, PeerPort, Text};
use crate::hidden::KeyText;
use crate::label_selector::RawLabelSelector;
use crate::report::{List, Report};

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct RawSpecOld {
    /// Our AS number.
    #[schemars(required, extend("minimum" = 0))]
    #[serde(rename = "myASN")]
    my_asn: Option<AsNumber>,
    /// The AS number of the peer.
    #[schemars(required)]
    #[serde(rename = "peerASN")]
    peer_asn: Option<PeerAsNumber>,
    /// The address of the peer.
    #[schemars(required)]
    peer_address: Option<Text<Given<HostAddress>>>,
    /// The address that we connect from.
    source_address: Option<Text<Given<HostAddress>>>,
    /// The port of the peer. 0 or none: 179.
    #[schemars(extend("minimum" = 0))]
    peer_port: Option<PeerPort>,
    // The default is what MetalLB's conversion writes if the field is not set.
    /// How long the peer may be silent, as 90s. None: 0s, which is for ever.
    #[schemars(extend("default" = "0s"))]
    hold_time: Option<GoDuration>,
    /// The interval of our KEEPALIVE messages. None or 0s: a third of holdTime.
    #[schemars(extend("default" = "0s"))]
    keepalive_time: Option<GoDuration>,
    /// Our router ID towards this peer, as an IPv4 address.
    #[serde(rename = "routerID")]
    router_id: Option<Text<Given<RouterId>>>,
    /// Selects the nodes that have this peer. None: all.
    node_selectors: Option<List<RawLabelSelector>>,
    /// The key of TCP-MD5.
    password: Option<KeyText>,
    /// The BFDProfile of the session; not set: no BFD.
    bfd_profile: Option<String>,
    /// Whether the peer may be several hops away. eBGP only.
    ebgp_multi_hop: Option<bool>,
}

/// Reads `spec` in its v1beta2 form.
pub(super) fn read(report: &mut Report<'_>) -> Option<RawSpec> {
    let spec = FieldPath::of("spec");
    report.warning(
        &FieldPath::of("apiVersion"),
        "metallb.io/v1beta1 is deprecated for BGPPeer; use metallb.io/v1beta2",
    );
    let raw: RawSpecOld = report.read(&spec)?;
    report.required(raw.peer_asn, &spec.key("peerASN"), "an AS number from 1 to 4294967295");
    let address = raw.peer_address.as_ref().and_then(|Text(Given(given))| *given);
    report.required(address, &spec.key("peerAddress"), "the router's IP address");
    let (hold_time, keepalive_time) = timers(raw.hold_time, raw.keepalive_time, report);
    Some(RawSpec {
        my_asn: raw.my_asn,
        peer_asn: raw.peer_asn,
        peer_address: raw.peer_address,
        source_address: raw.source_address,
        peer_port: raw.peer_port,
        hold_time,
        keepalive_time,
        router_id: raw.router_id,
        node_selectors: raw.node_selectors,
        password: raw.password,
        bfd_profile: raw.bfd_profile,
        ebgp_multi_hop: raw.ebgp_multi_hop,
        ..RawSpec::default()
    })
}

/// The timers of v1beta1 have no "not set": an absent one is 0. `Ours:` with a hold time, an absent
/// keepalive time is a third of it, as in v1beta2, for 0 would let the session expire.
fn timers(
    hold: Option<GoDuration>,
    keepalive: Option<GoDuration>,
    report: &mut Report<'_>,
) -> (Option<GoDuration>, Option<GoDuration>) {
    let path = FieldPath::of("spec.holdTime");
    if report.is_faulty(&path) || report.is_faulty(&FieldPath::of("spec.keepaliveTime")) {
        return (hold, keepalive);
    }
    let Some(hold) = hold else {
        report.warning(
            &path,
            "is left out, which in metallb.io/v1beta1 means 0s; in metallb.io/v1beta2 it means 90s",
        );
        return (Some(GoDuration(Duration::ZERO)), keepalive);
    };
    (Some(hold), keepalive)
}
