//! Calico's objects (`crd.projectcalico.org/v1`), as they are read and written: pools, blocks, affinities, handles and what decides about
//! them; Kubernetes' Nodes and Pods where they are beside.
//!
//! What cannot be read is a fault that names its object and field; the other objects are read all the same. Objects that are
//! marked as deleted are none. Knows no store and no file.

mod block;
mod definition;
mod name;
mod pool;
mod write;

pub use definition::definitions;
pub use name::{NameError, name};
pub use pool::{Refusal, refusal};
pub use write::write;

use std::collections::BTreeMap;
use std::fmt;
use std::net::IpAddr;

use fairway_ground::Prefix;
use serde_json::Value;

use crate::affinity::{Affinity, AffinityState};
use crate::block::{Attributes, Block, Owner, SIZE_BITS_MAX};
use crate::census::{PodName, PodState};
use crate::cni::ANNOTATIONS;
use crate::facts::{Config, Facts};
use crate::store::Handle;

/// Everything that was read.
#[derive(Debug, Clone, Default)]
pub struct Cluster {
    /// Pools, nodes, namespaces, reservations, the configuration.
    pub facts: Facts,
    /// The annotations of each namespace that decide about addresses.
    pub notes: BTreeMap<String, BTreeMap<String, String>>,
    /// The blocks.
    pub blocks: BTreeMap<Prefix, Block>,
    /// The affinities.
    pub affinities: Vec<Affinity>,
    /// The handles, by their ID.
    pub handles: BTreeMap<String, Handle>,
    /// The Pods; `None` if no object was one, so that nothing is known of them.
    pub pods: Option<BTreeMap<PodName, PodState>>,
    /// What is wrong with single objects.
    pub faults: Vec<ObjectFault>,
    /// How many objects were of these kinds.
    pub read: usize,
    /// How many were of others.
    pub skipped: usize,
}

/// What is wrong with an object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ObjectFault {
    /// Its kind and name.
    pub object: String,
    /// The field; empty if it is the whole object.
    pub field: String,
    /// What is there, and what is allowed.
    pub message: String,
}

impl fmt::Display for ObjectFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.field.is_empty() {
            true => write!(f, "{}: {}", self.object, self.message),
            false => write!(f, "{}: {}: {}", self.object, self.field, self.message),
        }
    }
}

/// How many faults of one object are told: a block of foreign making may have as many as it has addresses.
const FAULTS_MAX: usize = 16;

/// An object while it is read.
struct Reader<'a> {
    name: String,
    spec: &'a Value,
    faults: Vec<ObjectFault>,
}

impl<'a> Reader<'a> {
    fn fault(&mut self, field: &str, message: impl ToString) {
        if self.faults.len() >= FAULTS_MAX {
            return;
        }
        self.faults.push(ObjectFault {
            object: self.name.clone(),
            field: if field.is_empty() { String::new() } else { format!("spec.{field}") },
            message: message.to_string(),
        });
    }

    fn text(&self, field: &str) -> &'a str {
        self.spec.get(field).and_then(Value::as_str).unwrap_or_default()
    }

    /// A boolean, which some of Calico's objects have as text.
    fn is_set(&self, field: &str) -> bool {
        match self.spec.get(field) {
            Some(Value::Bool(it)) => *it,
            Some(Value::String(it)) => it == "true",
            _ => false,
        }
    }

    fn prefix(&mut self, field: &str) -> Option<Prefix> {
        let text = self.text(field);
        match text.parse() {
            Ok(prefix) => Some(prefix),
            Err(error) => {
                self.fault(field, error);
                None
            }
        }
    }
}

impl Cluster {
    /// The block that has the address: one that says that it is taken, if there are several.
    pub fn block_with(&self, address: IpAddr) -> Option<&Block> {
        // Blocks have at most 2^12 addresses: those that may have it are few, and near.
        let bits = fairway_ground::AddressFamily::of(address).address_bits();
        let lengths = bits.saturating_sub(SIZE_BITS_MAX)..=bits;
        let prefixes = lengths.filter_map(|length| Prefix::new(address, length).ok());
        let found = prefixes.filter_map(|it| self.blocks.get(&it));
        found.max_by_key(|it| it.inspect(address).is_some())
    }

    /// Whose an address is.
    pub fn assigned(&self, address: IpAddr) -> Option<&Attributes> {
        self.block_with(address)?.inspect(address).map(|(attributes, _)| attributes)
    }

    /// Reads one more object; a list is read as its items.
    pub fn read(&mut self, object: &Value) {
        if let Some(items) = object.get("items").and_then(Value::as_array) {
            for item in items {
                self.read(item);
            }
            return;
        }
        let text =
            |pointer: &str| object.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
        let (kind, name) = (text("/kind"), text("/metadata/name"));
        let version = text("/apiVersion");
        let is_calicos = version.contains("projectcalico.org/");
        let is_core = version == "v1";
        let spec = object.get("spec").unwrap_or(&Value::Null);
        let mut reader = Reader { name: format!("{kind}/{name}"), spec, faults: Vec::new() };
        self.read = self.read.saturating_add(1);
        match (is_calicos, kind) {
            (true, _) if reader.is_set("deleted") => {}
            (true, "IPPool") => {
                // The same pool may be there in both of Calico's groups.
                self.facts.pools.retain(|it| it.name != name);
                self.facts.pools.extend(pool::read(&mut reader, name));
            }
            (true, "IPAMBlock") => {
                if let Some(block) = block::read(&mut reader) {
                    self.blocks.insert(block.prefix(), block);
                }
            }
            (true, "BlockAffinity") => {
                let affinity = affinity(&mut reader);
                self.affinities.extend(affinity.filter(|it| !self.affinities.contains(it)));
            }
            (true, "IPAMHandle") => {
                if let Some(handle) = handle(&mut reader) {
                    self.handles.insert(handle.id.clone(), handle);
                }
            }
            (true, "IPAMConfig" | "IPAMConfiguration") => self.facts.config = config(&mut reader),
            (true, "IPReservation") => self.facts.reservations.extend(reserved(&mut reader)),
            (false, "Node") if is_core => {
                _ = self.facts.nodes.insert(name.to_owned(), labels(object))
            }
            (false, "Namespace") if is_core => {
                self.facts.namespaces.insert(name.to_owned(), labels(object));
                self.notes.insert(name.to_owned(), notes(object));
            }
            (false, "Pod") if is_core => {
                let namespace = text("/metadata/namespace").to_owned();
                let pod = PodName { namespace, name: name.to_owned() };
                self.pods.get_or_insert_default().insert(pod, pod_state(object));
            }
            _ => {
                self.read = self.read.saturating_sub(1);
                self.skipped = self.skipped.saturating_add(1);
            }
        }
        self.faults.extend(reader.faults);
    }
}

fn labels(object: &Value) -> BTreeMap<String, String> {
    texts(object.pointer("/metadata/labels"))
}

/// The annotations of an object that decide about addresses.
pub fn notes(object: &Value) -> BTreeMap<String, String> {
    let mut notes = texts(object.pointer("/metadata/annotations"));
    notes.retain(|key, _| key.starts_with(ANNOTATIONS));
    notes
}

fn texts(fields: Option<&Value>) -> BTreeMap<String, String> {
    let text = |(key, value): (&String, &Value)| Some((key.clone(), value.as_str()?.to_owned()));
    fields.and_then(Value::as_object).into_iter().flatten().filter_map(text).collect()
}

fn pod_state(object: &Value) -> PodState {
    let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
    let ips = object.pointer("/status/podIPs").and_then(Value::as_array);
    let ips = ips.into_iter().flatten().filter_map(|it| it.get("ip")?.as_str()?.parse().ok());
    let has_ended = matches!(text("/status/phase"), "Succeeded" | "Failed");
    let is_host_network =
        object.pointer("/spec/hostNetwork").and_then(Value::as_bool).unwrap_or(false);
    PodState {
        node: text("/spec/nodeName").to_owned(),
        // Those are the node's.
        addresses: if is_host_network { Vec::new() } else { ips.collect() },
        is_finished: has_ended || text("/status/reason") == "Evicted",
    }
}

fn affinity(reader: &mut Reader<'_>) -> Option<Affinity> {
    let prefix = reader.prefix("cidr")?;
    let node = reader.text("node").to_owned();
    let owner = match reader.text("type") {
        "" | "host" => Owner::Host(node),
        "virtual" => Owner::Virtual(node),
        other => {
            reader.fault("type", format!("{other:?}; expected host or virtual"));
            return None;
        }
    };
    let state = match reader.text("state") {
        "" | "confirmed" => AffinityState::Confirmed,
        "pending" => AffinityState::Pending,
        "pendingDeletion" => AffinityState::PendingDeletion,
        other => {
            let expected = "expected pending, confirmed or pendingDeletion";
            reader.fault("state", format!("{other:?}; {expected}"));
            return None;
        }
    };
    Some(Affinity { owner, prefix, state })
}

fn handle(reader: &mut Reader<'_>) -> Option<Handle> {
    let id = reader.text("handleID").to_lowercase();
    if id.is_empty() {
        reader.fault("handleID", "is missing");
        return None;
    }
    let mut counts = BTreeMap::new();
    let spec = reader.spec;
    for (cidr, count) in spec.get("block").and_then(Value::as_object).into_iter().flatten() {
        let field = format!("block[{cidr}]");
        match (cidr.parse(), count.as_u64().and_then(|it| u32::try_from(it).ok())) {
            (Ok(prefix), Some(count)) => _ = counts.insert(prefix, count),
            (Err(error), _) => reader.fault(&field, error),
            (_, None) => reader.fault(&field, format!("{count}; expected a count of addresses")),
        }
    }
    Some(Handle { id, counts })
}

fn config(reader: &mut Reader<'_>) -> Config {
    let number = |field: &str| reader.spec.get(field).and_then(Value::as_u64).unwrap_or(0);
    let has = |field: &str| reader.spec.get(field).is_some();
    let config = Config {
        is_strict: reader.is_set("strictAffinity"),
        allocates_blocks: !has("autoAllocateBlocks") || reader.is_set("autoAllocateBlocks"),
        blocks_per_host_max: u32::try_from(number("maxBlocksPerHost")).unwrap_or(u32::MAX),
        cooldown: number("ipCooldownSeconds"),
    };
    if let Err(error) = config.check() {
        reader.fault("", error);
    }
    config
}

fn reserved(reader: &mut Reader<'_>) -> Vec<Prefix> {
    let items = reader.spec.get("reservedCIDRs").and_then(Value::as_array);
    let mut prefixes = Vec::new();
    for (index, item) in items.into_iter().flatten().enumerate() {
        let text = item.as_str().unwrap_or_default();
        match text.parse() {
            Ok(prefix) => prefixes.push(prefix),
            Err(error) => reader.fault(&format!("reservedCIDRs[{index}]"), error),
        }
    }
    prefixes
}
