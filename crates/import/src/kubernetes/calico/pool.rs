//! IPPool: addresses for Services and for Pods.
//!
//! Answers the IPAddressPool of one for Services, and what is announced of one for Pods. Knows no peer.

use ipnet::IpNet;
use serde_json::json;

use super::own_route::{OwnRoute, OwnRoutes};
use super::range::Range;
use super::selector::selectors;
use crate::kubernetes::field::{Section, SourceObject};
use crate::kubernetes::selector::any_of;
use crate::kubernetes::work::Work;
use crate::object::Fields;

/// A pool for Services that was written.
pub(super) struct Pool {
    pub(super) name: String,
    pub(super) network: IpNet,
    /// Whether its addresses may be announced.
    pub(super) is_exported: bool,
}

pub(super) fn pool<'a>(
    object: &'a SourceObject,
    work: &mut Work,
    own_routes: &mut OwnRoutes<'a>,
) -> Option<Pool> {
    let source = object.spec();
    let Some(network) = source.text("cidr").and_then(|it| it.parse::<IpNet>().ok()) else {
        source.missing("cidr", "is not a prefix as in 192.0.2.0/24: the pool is left out");
        source.settle();
        return None;
    };
    let uses: Vec<String> = source.texts("allowedUses").into_iter().map(|(_, it)| it).collect();
    if uses.iter().any(|it| it == "LoadBalancer") {
        return for_services(object, network.trunc(), work);
    }
    if uses.is_empty() || uses.iter().any(|it| it == "Workload") {
        for_pods(object, network.trunc(), own_routes);
    } else {
        source.note_here("is left out: its addresses are for tunnels, which Fairway has not");
        source.settle();
    }
    None
}

fn for_services(object: &SourceObject, network: IpNet, work: &mut Work) -> Option<Pool> {
    let source = object.spec();
    source.ignore(&["blockSize", "natOutgoing"]);
    let mut spec = Fields::default();
    spec.set("addresses", json!([network.to_string()]));
    if source.is_set("disabled") {
        spec.set("autoAssign", json!(false));
        source.note(
            "disabled",
            "is autoAssign: false: a Service still gets an address that it requests",
        );
    }
    if source.text("assignmentMode").as_deref() == Some("Manual") {
        spec.set("autoAssign", json!(false));
    }
    without_tunnels(&source, "a pool for Services has none");
    if let Some(text) = source.text("nodeSelector").filter(|it| it != "all()") {
        source
            .untranslated("nodeSelector", format!("{text} has no meaning for a pool of Services"));
    }
    if let Some(text) = source.text("namespaceSelector") {
        match selectors(&text) {
            Ok(selectors) => {
                let namespaces = any_of(&selectors);
                let allocation = namespaces.map(|it| json!({"namespaceSelectors": it}));
                spec.set("serviceAllocation", allocation);
            }
            Err(why) => {
                let why = format!("is no list of label selectors: {why}; the pool is left out");
                source.untranslated("namespaceSelector", why);
                source.settle();
                return None;
            }
        }
    }
    let is_exported = !source.is_set("disableBGPExport");
    let name = work.pool(object.name(), spec);
    Some(Pool { name, network, is_exported })
}

fn for_pods<'a>(object: &'a SourceObject, network: IpNet, own_routes: &mut OwnRoutes<'a>) {
    let source = object.spec();
    source.ignore(&[
        "assignmentMode",
        "disabled",
        "natOutgoing",
        "nodeSelector",
        "namespaceSelector",
    ]);
    let default = if network.addr().is_ipv4() { 26 } else { 122 };
    let block = source.number("blockSize").and_then(|it| u8::try_from(it).ok());
    let block = block.unwrap_or(default);
    let why = "Fairway makes no tunnels, its nodes reach Pods by routes: the blocks are not announced; set it to Never first \
               (docs/ipam.md)";
    if !without_tunnels(&source, why) || source.is_set("disableBGPExport") {
        return;
    }
    let Some(range) = Range::new(network, block, network.max_prefix_len()) else { return };
    source.note_here(
        "stays as it is: Fairway reads it where it gives Pods their addresses (--ipam, docs/ipam.md), and announces the \
         blocks of nodes only there",
    );
    let mut spec = Fields::default();
    spec.set_if("podBlocks", true);
    own_routes.add(OwnRoute {
        section: source,
        name: "pods".to_owned(),
        spec,
        pod_pool: Some(object.name().to_owned()),
        range,
    });
}

/// Whether the pool needs no tunnel.
fn without_tunnels(source: &Section<'_>, why: &str) -> bool {
    let mut is_without = true;
    for field in ["ipipMode", "vxlanMode"] {
        if source.text(field).is_some_and(|it| it != "Never") {
            source.untranslated(field, why);
            is_without = false;
        }
    }
    is_without
}
