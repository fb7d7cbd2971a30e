//! What is printed of results and of the state at the end.

use std::collections::BTreeMap;

use fairway_ground::{AddressFamily, Prefix};
use serde_json::{Map, Value, json};

use crate::affinity::AffinityState;
use crate::assign::Assigned;
use crate::block::{Block, Owner};
use crate::error::IpamError;
use crate::store::Object;
use crate::usage::Usage;

/// The fields of a result, and why there are no more.
pub(super) fn with_error(result: Value, error: Option<&IpamError>) -> Value {
    let mut fields = match result {
        Value::Object(fields) => fields,
        _ => Map::new(),
    };
    if let Some(error) = error {
        fields.insert("error".to_owned(), error.word().into());
        fields.insert("message".to_owned(), error.to_string().into());
    }
    Value::Object(fields)
}

/// Addresses of one family, with the length of their block.
pub(super) fn of_family(assigned: &[Assigned], family: AddressFamily) -> Vec<String> {
    assigned
        .iter()
        .filter(|it| AddressFamily::of(it.address) == family)
        .map(|it| format!("{}/{}", it.address, it.block.length()))
        .collect()
}

pub(super) fn usage(usage: &Usage) -> Map<String, Value> {
    let Usage { prefix, capacity, in_use, reserved, available } = *usage;
    let fields = [
        ("cidr", json!(prefix)),
        ("capacity", count(capacity)),
        ("inUse", count(in_use)),
        ("reserved", count(reserved)),
        ("available", count(available)),
    ];
    fields.into_iter().map(|(key, value)| (key.to_owned(), value)).collect()
}

/// A number; one that JSON's readers cannot hold exactly is rounded.
#[allow(clippy::cast_precision_loss)]
fn count(number: u128) -> Value {
    u64::try_from(number).map_or_else(|_| json!(number as f64), Value::from)
}

/// All objects.
pub(super) fn state(objects: &[Object]) -> Value {
    let (mut blocks, mut affinities, mut handles) = (Vec::new(), Vec::new(), Map::new());
    for object in objects {
        match object {
            Object::Block(it) => blocks.push(block(it)),
            Object::Affinity(it) => {
                let (kind, host) = words(&it.owner);
                let state = match it.state {
                    AffinityState::Pending => "pending",
                    AffinityState::Confirmed => "confirmed",
                    AffinityState::PendingDeletion => "pendingDeletion",
                };
                let affinity =
                    json!({"host": host, "cidr": it.prefix, "state": state, "type": kind});
                affinities.push(affinity);
            }
            Object::Handle(it) => {
                let counts: BTreeMap<String, u32> =
                    it.counts.iter().map(|(prefix, count)| (prefix.to_string(), *count)).collect();
                handles.insert(it.id.clone(), json!(counts));
            }
        }
    }
    json!({"blocks": blocks, "affinities": affinities, "handles": handles})
}

fn block(block: &Block) -> Value {
    let (mut allocations, mut cooling) = (Map::new(), Vec::new());
    for (address, attributes) in block.taken() {
        match attributes.released_at {
            Some(_) => cooling.push(address),
            None => _ = allocations.insert(address.to_string(), json!(attributes.handle)),
        }
    }
    let affinity = block.owner().map(|it| {
        let (kind, host) = words(it);
        format!("{kind}:{host}")
    });
    json!({
        "cidr": block.prefix(),
        "affinity": affinity,
        "free": block.free_count(),
        "allocations": allocations,
        "cooling": cooling,
    })
}

fn words(owner: &Owner) -> (&'static str, &str) {
    match owner {
        Owner::Host(name) => ("host", name),
        Owner::Virtual(name) => ("virtual", name),
    }
}

/// As text, in order.
pub(super) fn prefixes<'a>(prefixes: impl IntoIterator<Item = &'a Prefix>) -> Vec<String> {
    prefixes.into_iter().map(ToString::to_string).collect()
}
