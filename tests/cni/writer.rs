//! Another writer of the same objects, as Calico's nodes are: written from a description of what those do, apart from the
//! daemon's code, which it shares nothing with.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;

use anyhow::{Context, Result, bail, ensure};
use ipnet::Ipv4Net;
use serde_json::{Map, Value, json};

use crate::cases::cluster::CALICO;
use lab::cluster::Cluster;

/// How often a write is tried that others forestall.
const ATTEMPTS: u32 = 100;

/// One process of a node.
pub(crate) struct Writer<'a> {
    pub(crate) cluster: &'a Cluster,
    pub(crate) node: String,
    pub(crate) pool: Ipv4Net,
    pub(crate) block_length: u8,
}

fn name_of(prefix: Ipv4Net) -> String {
    prefix.to_string().replace(['.', '/'], "-")
}

/// What came of a write.
enum Written {
    Done(Value),
    Conflict,
}

impl Writer<'_> {
    fn ask(&self, method: &str, path: &str, body: Option<&Value>) -> Result<(u16, Value)> {
        let reply = self.cluster.ask(method, &format!("{CALICO}/{path}"), body)?;
        Ok((reply.status, serde_json::from_str(&reply.text).unwrap_or_default()))
    }

    fn get(&self, path: &str) -> Result<Option<Value>> {
        match self.ask("GET", path, None)? {
            (200, object) if is_deleted(&object) => Ok(None),
            (200, object) => Ok(Some(object)),
            (404, _) => Ok(None),
            (status, object) => bail!("GET {path}: {status} {object}"),
        }
    }

    fn list(&self, plural: &str) -> Result<Vec<Value>> {
        let (status, list) = self.ask("GET", plural, None)?;
        ensure!(status == 200, "GET {plural}: {status} {list}");
        let items = list["items"].as_array().cloned().unwrap_or_default();
        Ok(items.into_iter().filter(|it| !is_deleted(it)).collect())
    }

    fn put(&self, plural: &str, object: &Value) -> Result<Written> {
        let name = object["metadata"]["name"].as_str().context("a name")?;
        match self.ask("PUT", &format!("{plural}/{name}"), Some(object))? {
            (200, object) => Ok(Written::Done(object)),
            (404 | 409, _) => Ok(Written::Conflict),
            (status, answer) => bail!("PUT {plural}/{name}: {status} {answer}"),
        }
    }

    fn create(&self, kind: &str, plural: &str, name: &str, spec: &Value) -> Result<Written> {
        let object = json!({
            "apiVersion": "crd.projectcalico.org/v1", "kind": kind,
            "metadata": {"name": name}, "spec": spec,
        });
        match self.ask("POST", plural, Some(&object))? {
            (201, object) => Ok(Written::Done(object)),
            (409, _) => Ok(Written::Conflict),
            (status, answer) => bail!("POST {plural}/{name}: {status} {answer}"),
        }
    }

    /// Deletes in two steps: the mark decides who was first.
    fn delete(&self, plural: &str, object: &Value, mark: Value) -> Result<Written> {
        let mut marked = object.clone();
        marked["spec"]["deleted"] = mark;
        let Written::Done(marked) = self.put(plural, &marked)? else {
            return Ok(Written::Conflict);
        };
        let metadata = &marked["metadata"];
        let options = json!({
            "apiVersion": "v1", "kind": "DeleteOptions",
            "preconditions": {"uid": metadata["uid"], "resourceVersion": metadata["resourceVersion"]},
        });
        let name = metadata["name"].as_str().context("a name")?;
        match self.ask("DELETE", &format!("{plural}/{name}"), Some(&options))? {
            (200, _) => Ok(Written::Done(marked)),
            (404 | 409, _) => Ok(Written::Conflict),
            (status, answer) => bail!("DELETE {plural}/{name}: {status} {answer}"),
        }
    }

    /// Gives a handle an address: of an own block, of a new one, of another node's.
    pub(crate) fn assign(&self, handle: &str) -> Result<Option<Ipv4Addr>> {
        for prefix in self.own_blocks()? {
            if let Some(address) = self.assign_in(prefix, handle, true)? {
                return Ok(Some(address));
            }
        }
        if let Some(prefix) = self.claim()?
            && let Some(address) = self.assign_in(prefix, handle, true)?
        {
            return Ok(Some(address));
        }
        for block in self.list("ipamblocks")? {
            let prefix: Option<Ipv4Net> = text(&block, "/spec/cidr").parse().ok();
            let Some(prefix) = prefix.filter(|it| self.pool.contains(it)) else { continue };
            if let Some(address) = self.assign_in(prefix, handle, false)? {
                return Ok(Some(address));
            }
        }
        Ok(None)
    }

    fn own_blocks(&self) -> Result<Vec<Ipv4Net>> {
        let affinities = self.list("blockaffinities")?;
        let own = affinities.iter().filter(|it| text(it, "/spec/node") == self.node);
        let prefixes = own.filter_map(|it| text(it, "/spec/cidr").parse().ok());
        Ok(prefixes.filter(|it: &Ipv4Net| self.pool.contains(it)).collect())
    }

    fn claim(&self) -> Result<Option<Ipv4Net>> {
        let taken: Vec<String> =
            self.list("ipamblocks")?.iter().map(|it| text(it, "/spec/cidr")).collect();
        for prefix in self.pool.subnets(self.block_length)? {
            if !taken.contains(&prefix.to_string()) && self.claim_block(prefix)? {
                return Ok(Some(prefix));
            }
        }
        Ok(None)
    }

    /// Pending, then the block, then confirmed. Returns whether it is this node's.
    fn claim_block(&self, prefix: Ipv4Net) -> Result<bool> {
        let name = format!("{}-{}", self.node, name_of(prefix));
        let spec = json!({
            "cidr": prefix, "node": self.node, "state": "pending", "type": "host", "deleted": "false",
        });
        let mut affinity = match self.create("BlockAffinity", "blockaffinities", &name, &spec)? {
            Written::Done(affinity) => affinity,
            Written::Conflict => match self.get(&format!("blockaffinities/{name}"))? {
                Some(affinity) => affinity,
                None => return Ok(false),
            },
        };
        let size = 1_usize << (32 - self.block_length);
        let block = json!({
            "cidr": prefix, "affinity": format!("host:{}", self.node),
            "allocations": vec![Value::Null; size], "unallocated": (0..size).collect::<Vec<_>>(),
            "attributes": [], "sequenceNumber": 1, "sequenceNumberForAllocation": {},
            "deleted": false, "strictAffinity": false,
        });
        if let Written::Conflict =
            self.create("IPAMBlock", "ipamblocks", &name_of(prefix), &block)?
        {
            let found = self.get(&format!("ipamblocks/{}", name_of(prefix)))?;
            let owner = found.map(|it| text(&it, "/spec/affinity")).unwrap_or_default();
            if owner != format!("host:{}", self.node) {
                // Somebody else has it. Another process of this node may have confirmed or removed the affinity.
                _ = self.delete("blockaffinities", &affinity, json!("true"))?;
                return Ok(false);
            }
        }
        affinity["spec"]["state"] = "confirmed".into();
        Ok(matches!(self.put("blockaffinities", &affinity)?, Written::Done(_))
            || self
                .get(&format!("blockaffinities/{name}"))?
                .is_some_and(|it| text(&it, "/spec/state") == "confirmed"))
    }

    /// The first free address of a block; the handle is counted before.
    fn assign_in(&self, prefix: Ipv4Net, handle: &str, is_own: bool) -> Result<Option<Ipv4Addr>> {
        for _ in 0..ATTEMPTS {
            let Some(mut block) = self.get(&format!("ipamblocks/{}", name_of(prefix)))? else {
                return Ok(None);
            };
            let spec = &mut block["spec"];
            let is_ours = spec["affinity"] == format!("host:{}", self.node);
            let queue = spec["unallocated"].as_array_mut().context("unallocated")?;
            if queue.is_empty() || (is_own && !is_ours) {
                return Ok(None);
            }
            let ordinal = queue.remove(0).as_u64().context("an ordinal")?;
            let attributes = spec["attributes"].as_array_mut().context("attributes")?;
            attributes.push(json!({
                "handle_id": handle,
                "secondary": {"node": self.node, "pod": handle, "namespace": "of-the-writer"},
            }));
            let index = attributes.len() - 1;
            spec["allocations"][usize::try_from(ordinal)?] = index.into();
            let sequence = spec["sequenceNumber"].as_u64().unwrap_or(0);
            spec["sequenceNumberForAllocation"][ordinal.to_string()] = sequence.into();
            spec["sequenceNumber"] = (sequence + 1).into();
            self.count(handle, prefix, 1)?;
            if let Written::Done(_) = self.put("ipamblocks", &block)? {
                let first = u32::from(prefix.network());
                return Ok(Some(Ipv4Addr::from(first + u32::try_from(ordinal)?)));
            }
            self.count(handle, prefix, -1)?;
        }
        bail!("{prefix} is written by others all the time")
    }

    /// A handle has so many more in a block; one without addresses goes.
    fn count(&self, handle: &str, prefix: Ipv4Net, change: i64) -> Result<()> {
        for _ in 0..ATTEMPTS {
            let Some(mut object) = self.get(&format!("ipamhandles/{handle}"))? else {
                if change < 0 {
                    return Ok(());
                }
                let mut counts = Map::new();
                counts.insert(prefix.to_string(), change.into());
                let spec = json!({"handleID": handle, "block": counts, "deleted": false});
                match self.create("IPAMHandle", "ipamhandles", handle, &spec)? {
                    Written::Done(_) => return Ok(()),
                    Written::Conflict => continue,
                }
            };
            let counts = object["spec"]["block"].as_object_mut().context("block")?;
            let before = counts.get(&prefix.to_string()).and_then(Value::as_i64).unwrap_or(0);
            counts.insert(prefix.to_string(), (before + change).into());
            counts.retain(|_, count| count.as_i64().is_some_and(|it| it > 0));
            let is_empty = counts.is_empty();
            let written = match is_empty {
                true => self.delete("ipamhandles", &object, json!(true))?,
                false => self.put("ipamhandles", &object)?,
            };
            if let Written::Done(_) = written {
                return Ok(());
            }
        }
        bail!("handle {handle} is written by others all the time")
    }

    /// Releases all addresses of a handle.
    pub(crate) fn release(&self, handle: &str) -> Result<()> {
        let Some(object) = self.get(&format!("ipamhandles/{handle}"))? else { return Ok(()) };
        let counts = object["spec"]["block"].as_object().cloned().unwrap_or_default();
        for prefix in counts.keys() {
            let prefix: Ipv4Net = prefix.parse()?;
            let released = self.release_in(prefix, handle)?;
            self.count(handle, prefix, -released)?;
        }
        Ok(())
    }

    fn release_in(&self, prefix: Ipv4Net, handle: &str) -> Result<i64> {
        for _ in 0..ATTEMPTS {
            let Some(mut block) = self.get(&format!("ipamblocks/{}", name_of(prefix)))? else {
                return Ok(0);
            };
            let spec = &mut block["spec"];
            let released = take_out(spec, handle)?;
            if released == 0 {
                return Ok(0);
            }
            let is_nobodys = spec["affinity"].as_str().is_none_or(str::is_empty);
            let is_empty =
                spec["allocations"].as_array().is_some_and(|it| it.iter().all(Value::is_null));
            let written = match is_nobodys && is_empty {
                true => self.delete("ipamblocks", &block, json!(true))?,
                false => self.put("ipamblocks", &block)?,
            };
            if let Written::Done(_) = written {
                return Ok(released);
            }
        }
        bail!("{prefix} is written by others all the time")
    }
}

/// Takes a handle's addresses out of a block: they go to the end of the queue, and attributes that nobody has go.
fn take_out(spec: &mut Value, handle: &str) -> Result<i64> {
    let attributes = spec["attributes"].as_array().cloned().context("attributes")?;
    let is_of_handle = |index: u64| {
        let found = usize::try_from(index).ok().and_then(|it| attributes.get(it));
        found.is_some_and(|it| it["handle_id"] == handle)
    };
    let mut released = 0;
    let slots = spec["allocations"].as_array().cloned().context("allocations")?;
    let (mut kept, mut places, mut allocations) = (Vec::new(), BTreeMap::new(), Vec::new());
    for (ordinal, slot) in slots.iter().enumerate() {
        let Some(index) = slot.as_u64() else {
            allocations.push(Value::Null);
            continue;
        };
        if is_of_handle(index) {
            released += 1;
            allocations.push(Value::Null);
            spec["unallocated"].as_array_mut().context("unallocated")?.push(ordinal.into());
            if let Some(numbers) = spec["sequenceNumberForAllocation"].as_object_mut() {
                numbers.remove(&ordinal.to_string());
            }
            continue;
        }
        let place = *places.entry(index).or_insert_with(|| {
            kept.push(
                usize::try_from(index)
                    .ok()
                    .and_then(|it| attributes.get(it).cloned())
                    .unwrap_or_default(),
            );
            kept.len() - 1
        });
        allocations.push(place.into());
    }
    spec["allocations"] = allocations.into();
    spec["attributes"] = kept.into();
    spec["sequenceNumber"] = (spec["sequenceNumber"].as_u64().unwrap_or(0) + 1).into();
    Ok(released)
}

fn text(object: &Value, pointer: &str) -> String {
    object.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned()
}

fn is_deleted(object: &Value) -> bool {
    object.pointer("/spec/deleted").is_some_and(|it| *it == true || *it == "true")
}
