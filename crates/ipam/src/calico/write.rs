//! Objects as Calico's nodes read them.
//!
//! What an object has that is unknown here stays in it.

use std::collections::BTreeMap;

use data_encoding::BASE32_NOPAD;
use fairway_ground::{AddressFamily, Utc};
use serde_json::{Map, Value, json};
use sha3::{Digest, Sha3_256};

use super::name::{NameError, name};
use crate::affinity::{Affinity, AffinityState};
use crate::block::{Attributes, Block, Owner};
use crate::moment::Seconds;
use crate::store::{Handle, Object};

/// An object for the API server; over `before`, if it was there.
///
/// # Errors
/// Its name would be too long.
pub fn write(object: &Object, before: Option<&Value>) -> Result<Value, NameError> {
    let (kind, spec, labels) = match object {
        Object::Block(it) => ("IPAMBlock", block(it), Map::new()),
        Object::Affinity(it) => ("BlockAffinity", affinity(it), labels(it)),
        Object::Handle(it) => ("IPAMHandle", handle(it), Map::new()),
    };
    let name = name(&object.key())?;
    let mut written = before.cloned().unwrap_or_else(|| json!({"metadata": {"name": name}}));
    let changes = json!({
        "apiVersion": "crd.projectcalico.org/v1",
        "kind": kind,
        "metadata": {"labels": labels},
        "spec": spec,
    });
    put(&mut written, changes);
    if let Some(metadata) = written.get_mut("metadata").and_then(Value::as_object_mut)
        && metadata.get("labels").is_some_and(|it| *it == json!({}))
    {
        metadata.remove("labels");
    }
    Ok(written)
}

/// Puts the fields of an object over those of another, but for what is within `spec`, whose fields replace whole ones; one that
/// is null is removed.
fn put(target: &mut Value, changes: Value) {
    let Value::Object(changes) = changes else {
        *target = changes;
        return;
    };
    if !target.is_object() {
        *target = json!({});
    }
    let Value::Object(fields) = target else { return };
    for (key, value) in changes {
        match key.as_str() {
            "metadata" | "labels" => put(fields.entry(key).or_insert(Value::Null), value),
            "spec" => put_spec(fields.entry(key).or_insert(Value::Null), value),
            _ => _ = fields.insert(key, value),
        }
    }
}

fn put_spec(target: &mut Value, changes: Value) {
    if !target.is_object() {
        *target = json!({});
    }
    let (Value::Object(fields), Value::Object(changes)) = (target, changes) else { return };
    for (key, value) in changes {
        match value.is_null() {
            true => _ = fields.remove(&key),
            false => _ = fields.insert(key, value),
        }
    }
}

fn block(block: &Block) -> Value {
    let size = block.taken().count().saturating_add(block.free_count());
    let mut slots = vec![Value::Null; size];
    let mut attributes: Vec<&Attributes> = Vec::new();
    let mut index_of: BTreeMap<&Attributes, usize> = BTreeMap::new();
    let mut numbers = Map::new();
    for (address, it) in block.taken() {
        let Some(ordinal) = block.ordinal(address) else { continue };
        let index = *index_of.entry(it).or_insert_with(|| {
            attributes.push(it);
            attributes.len().saturating_sub(1)
        });
        let place = usize::try_from(ordinal).ok().and_then(|it| slots.get_mut(it));
        if let Some(slot) = place {
            *slot = index.into();
        }
        let sequence = block.inspect(address).map_or(0, |(_, sequence)| sequence);
        if it.released_at.is_none() {
            numbers.insert(ordinal.to_string(), sequence.into());
        }
    }
    let queue: Vec<u32> = block.free().filter_map(|it| block.ordinal(it)).collect();
    json!({
        "cidr": block.prefix(),
        "affinity": block.owner().map(ToString::to_string),
        "affinityClaimTime": block.claimed_at().map(time),
        "allocations": slots,
        "unallocated": queue,
        "attributes": attributes.into_iter().map(attribute).collect::<Vec<_>>(),
        "sequenceNumber": block.sequence(),
        "sequenceNumberForAllocation": numbers,
        "deleted": false,
        "strictAffinity": false,
    })
}

fn attribute(attributes: &Attributes) -> Value {
    let Attributes { handle, secondary, alternate, released_at } = attributes;
    let mut written = Map::new();
    if let Some(handle) = handle {
        written.insert("handle_id".to_owned(), handle.clone().into());
    }
    for (key, texts) in [("secondary", secondary), ("alternateOwnerAttrs", alternate)] {
        if !texts.is_empty() {
            written.insert(key.to_owned(), json!(texts));
        }
    }
    if let Some(released_at) = released_at {
        written.insert("releasedAt".to_owned(), time(*released_at).into());
    }
    Value::Object(written)
}

fn time(seconds: Seconds) -> String {
    Utc(seconds).rfc3339()
}

fn affinity(affinity: &Affinity) -> Value {
    let (kind, node) = owner(&affinity.owner);
    let state = match affinity.state {
        AffinityState::Pending => "pending",
        AffinityState::Confirmed => "confirmed",
        AffinityState::PendingDeletion => "pendingDeletion",
    };
    json!({
        "cidr": affinity.prefix,
        "node": node,
        "type": kind,
        "state": state,
        // Text, in this kind alone.
        "deleted": "false",
    })
}

fn owner(owner: &Owner) -> (&'static str, &str) {
    match owner {
        Owner::Host(name) => ("host", name),
        Owner::Virtual(name) => ("virtual", name),
    }
}

/// By which a node lists its own affinities.
fn labels(affinity: &Affinity) -> Map<String, Value> {
    let (kind, node) = owner(&affinity.owner);
    let version = match affinity.prefix.family() {
        AddressFamily::Ipv4Unicast => "4",
        AddressFamily::Ipv6Unicast => "6",
    };
    let hash = BASE32_NOPAD.encode(&Sha3_256::digest(node.as_bytes()));
    let labels =
        [("hostname-hash", hash.as_str()), ("affinity-type", kind), ("ip-version", version)];
    let label = |(key, value): (&str, &str)| (format!("projectcalico.org/{key}"), value.into());
    labels.into_iter().map(label).collect()
}

fn handle(handle: &Handle) -> Value {
    let counts: BTreeMap<String, u32> =
        handle.counts.iter().map(|(prefix, count)| (prefix.to_string(), *count)).collect();
    json!({"handleID": handle.id, "block": counts, "deleted": false})
}
