//! An IPAMBlock.

use std::collections::{BTreeMap, BTreeSet};

use fairway_ground::Utc;
use serde_json::Value;

use super::Reader;
use crate::block::{Attributes, Block, Owner, Taken};
use crate::moment::Seconds;

pub(super) fn read(reader: &mut Reader<'_>) -> Option<Block> {
    let prefix = reader.prefix("cidr")?;
    let owner = owner(reader)?;
    let claimed_at = seconds(reader.spec.get("affinityClaimTime"));
    let sequence = reader.spec.get("sequenceNumber").and_then(Value::as_u64).unwrap_or(0);
    let attributes = attributes(reader);
    let taken = taken(reader, &attributes);
    let queue = queue(reader, &taken);
    match Block::restore(prefix, owner, claimed_at, sequence, taken, &queue) {
        Ok(block) => {
            let slots = slots(reader).len();
            let size = block.taken().count().saturating_add(block.free_count());
            if slots != size {
                reader.fault("allocations", format!("has {slots} items; expected {size}"));
            }
            Some(block)
        }
        Err(error) => {
            reader.fault("cidr", error);
            None
        }
    }
}

/// `None` if it cannot be read.
fn owner(reader: &mut Reader<'_>) -> Option<Option<Owner>> {
    let found = reader.spec.get("affinity").unwrap_or(&Value::Null);
    if !found.is_null() && !found.is_string() {
        reader.fault("affinity", format!("{found}; expected host:NAME or virtual:NAME"));
        return None;
    }
    let text = reader.text("affinity");
    match text.split_once(':') {
        _ if text.is_empty() => Some(None),
        Some(("host", name)) => Some(Some(Owner::Host(name.to_owned()))),
        Some(("virtual", name)) => Some(Some(Owner::Virtual(name.to_owned()))),
        _ => {
            reader.fault("affinity", format!("{text:?}; expected host:NAME or virtual:NAME"));
            None
        }
    }
}

fn seconds(time: Option<&Value>) -> Option<Seconds> {
    Utc::parse(time?.as_str()?).map(|Utc(seconds)| seconds)
}

fn attributes(reader: &Reader<'_>) -> Vec<Attributes> {
    let items = reader.spec.get("attributes").and_then(Value::as_array);
    let read = |item: &Value| {
        let texts = |key: &str| {
            let fields = item.get(key).and_then(Value::as_object).into_iter().flatten();
            let text =
                |(key, value): (&String, &Value)| Some((key.clone(), value.as_str()?.to_owned()));
            fields.filter_map(text).collect()
        };
        Attributes {
            handle: item.get("handle_id").and_then(Value::as_str).map(str::to_lowercase),
            secondary: texts("secondary"),
            alternate: texts("alternateOwnerAttrs"),
            released_at: seconds(item.get("releasedAt")),
        }
    };
    items.into_iter().flatten().map(read).collect()
}

fn slots<'a>(reader: &Reader<'a>) -> &'a [Value] {
    reader.spec.get("allocations").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
}

/// The addresses that are taken. Each has the number of an item of `attributes`.
fn taken(reader: &mut Reader<'_>, attributes: &[Attributes]) -> BTreeMap<u32, Taken> {
    let mut taken = BTreeMap::new();
    let mut used = BTreeSet::new();
    let numbers = reader.spec.get("sequenceNumberForAllocation");
    for (ordinal, slot) in (0_u32..).zip(slots(reader)).filter(|(_, it)| !it.is_null()) {
        let index = slot.as_u64().and_then(|it| usize::try_from(it).ok());
        let Some(found) = index.and_then(|it| attributes.get(it)) else {
            let count = attributes.len();
            let message =
                format!("{slot}; expected null or the number of one of {count} attributes");
            reader.fault(&format!("allocations[{ordinal}]"), message);
            // Somebody may have it: it is not free.
            taken.insert(ordinal, Taken { attributes: Attributes::default(), sequence: 0 });
            continue;
        };
        used.extend(index);
        let number = numbers.and_then(|it| it.get(ordinal.to_string())).and_then(Value::as_u64);
        let sequence = number.unwrap_or(0);
        taken.insert(ordinal, Taken { attributes: found.clone(), sequence });
    }
    for index in (0..attributes.len()).filter(|it| !used.contains(it)) {
        reader.fault(&format!("attributes[{index}]"), "is of no address");
    }
    taken
}

/// The addresses that are free, in the order in which they are to be given.
fn queue(reader: &mut Reader<'_>, taken: &BTreeMap<u32, Taken>) -> Vec<u32> {
    let items = reader.spec.get("unallocated").and_then(Value::as_array);
    let items = items.map(Vec::as_slice).unwrap_or_default();
    let count = u32::try_from(slots(reader).len()).unwrap_or(u32::MAX);
    let mut queue = Vec::with_capacity(items.len());
    let mut seen = BTreeSet::new();
    for (index, item) in items.iter().enumerate() {
        let field = format!("unallocated[{index}]");
        let ordinal = item.as_u64().and_then(|it| u32::try_from(it).ok());
        match ordinal.filter(|it| *it < count) {
            None => reader.fault(&field, format!("{item}; expected a number below {count}")),
            Some(it) if taken.contains_key(&it) => {
                reader.fault(&field, format!("{it} is allocated"))
            }
            Some(it) if !seen.insert(it) => reader.fault(&field, format!("{it} is there twice")),
            Some(it) => queue.push(it),
        }
    }
    for ordinal in (0..count).filter(|it| !taken.contains_key(it) && !seen.contains(it)) {
        reader.fault("unallocated", format!("lacks {ordinal}, which is not allocated"));
    }
    queue
}
