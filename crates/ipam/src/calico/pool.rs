//! An IPPool.

use std::collections::BTreeSet;

use fairway_ground::AddressFamily;
use serde_json::Value;

use super::Reader;
use crate::pool::{Pool, Use};
use crate::selector::Selector;

pub(super) fn read(reader: &mut Reader<'_>, name: &str) -> Option<Pool> {
    let prefix = reader.prefix("cidr")?;
    let bits = prefix.family().address_bits();
    let default = match prefix.family() {
        AddressFamily::Ipv4Unicast => 26,
        AddressFamily::Ipv6Unicast => 122,
    };
    let block_length = match reader.spec.get("blockSize") {
        None | Some(Value::Null) => default,
        Some(it) if *it == 0 => default,
        Some(it) => it.as_u64().and_then(|it| u8::try_from(it).ok()).unwrap_or(u8::MAX),
    };
    let is_disabled = reader.is_set("disabled");
    let shortest = bits.saturating_sub(12);
    if !is_disabled && !(shortest.max(prefix.length())..=bits).contains(&block_length) {
        let expected = format!("expected {shortest} to {bits}, and at least {}", prefix.length());
        let found = reader.spec.get("blockSize").unwrap_or(&Value::Null);
        reader.fault("blockSize", format!("{found}; {expected}"));
    }
    let nodes = Selector::parse(reader.text("nodeSelector"));
    if let Err(error) = &nodes {
        reader.fault("nodeSelector", error);
    }
    let text = reader.text("namespaceSelector");
    let namespaces = (!text.trim().is_empty()).then(|| Selector::parse(text));
    if let Some(Err(error)) = &namespaces {
        reader.fault("namespaceSelector", error);
    }
    let uses = uses(reader);
    Some(Pool {
        name: name.to_owned(),
        prefix,
        block_length,
        is_disabled,
        is_manual: reader.text("assignmentMode") == "Manual",
        is_hidden_from_bgp: reader.is_set("disableBGPExport"),
        is_translated: reader.is_set("natOutgoing"),
        nodes,
        namespaces,
        uses: if uses.is_empty() { Use::DEFAULT.into() } else { uses },
    })
}

fn uses(reader: &mut Reader<'_>) -> BTreeSet<Use> {
    let mut uses = BTreeSet::new();
    let items = reader.spec.get("allowedUses").and_then(Value::as_array);
    for (index, item) in items.into_iter().flatten().enumerate() {
        match serde_json::from_value(item.clone()) {
            Ok(it) => _ = uses.insert(it),
            Err(_) => {
                let expected = "expected Workload, Tunnel or LoadBalancer";
                reader.fault(&format!("allowedUses[{index}]"), format!("{item}; {expected}"));
            }
        }
    }
    uses
}

/// Why a pool is not served here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// The pool.
    pub pool: String,
    /// What it asks for.
    pub mode: String,
}

/// Whether an object is a pool whose packets would have to be encapsulated: nobody here does that.
pub fn refusal(object: &Value) -> Option<Refusal> {
    let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
    if text("/kind") != "IPPool" || !text("/apiVersion").contains("projectcalico.org/") {
        return None;
    }
    let mode = ["ipipMode", "vxlanMode"].into_iter().find_map(|field| {
        let mode = text(&format!("/spec/{field}"));
        let is_never = matches!(mode, "" | "Never");
        (!is_never).then(|| {
            format!(
                "{field} is {mode:?}; Fairway does not encapsulate, and takes pools with Never only"
            )
        })
    });
    mode.map(|mode| Refusal { pool: text("/metadata/name").to_owned(), mode })
}
