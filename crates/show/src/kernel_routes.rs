//! `show ip route`: the answer of an FRR that has no route at all. Fairway reads no kernel table.

use serde_json::{Value, json};

use crate::VRF_DEFAULT;
use crate::object::Object;

pub(super) fn text(is_summary: bool) -> String {
    match is_summary {
        false => String::new(),
        true => format!(
            "{:<20} {:<20} {}  (vrf default)\n------\n{:<20} {:<20} {:<20} \n\n",
            "Route Source", "Routes", "FIB", "Totals", 0, 0
        ),
    }
}

/// Summaries of all VRFs are keyed by VRF since FRR 10, and exporters expect it.
pub(super) fn json(is_summary: bool, is_keyed: bool) -> Object {
    let summary = || {
        let routes = Object::new().field("routes", json!([]));
        routes.field("routesTotal", 0).field("routesTotalFib", 0)
    };
    match (is_summary, is_keyed) {
        (false, _) => Object::new(),
        (true, true) => Object::new().field(VRF_DEFAULT, Value::from(summary())),
        (true, false) => summary(),
    }
}
