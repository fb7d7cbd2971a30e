//! The operations of a case are run, one after the other.

use std::collections::BTreeMap;

use fairway_ground::{AddressFamily, Prefix};
use serde_json::{Value, json};

use super::answer::{of_family, prefixes, state, usage, with_error};
use super::case::{Case, HostReservedSpec, NamespaceSpec, PodSpec, owner};
use super::operation::{
    AssignAddress, AutoAssign, Cni, EnsureBlock, Operation, OwnerSpec, ReleaseSpec,
};
use super::reference::{Resolver, addresses};
use super::{CaseError, finished};
use crate::addressing::Addressing;
use crate::block::{Attributes, Owner, Release};
use crate::census::{Census, PodName, PodState};
use crate::cni::{self, PodNotes};
use crate::collector::Collector;
use crate::error::IpamError;
use crate::facts::Facts;
use crate::gateway::Edges;
use crate::memory::MemoryStore;
use crate::moment::{Moment, Seconds};
use crate::request::{AddressRequest, FamilyRequest};
use crate::store::{Object, StoreError};

/// Where virtual time begins: long after the ages that a case has, and above all sequence numbers that are real times.
const START_SECONDS: u64 = 4_000_000_000;
const NANOSECONDS_PER_SECOND: u64 = 1_000_000_000;
/// How long an operation takes: more nanoseconds than it can change one block.
const STEP_NANOSECONDS: u64 = 1_000_000;
/// For how long an address is without its Pod before it is taken back, where the operation does not say.
const GRACE_DEFAULT: Seconds = 15 * 60;

/// See the module.
struct Run {
    store: MemoryStore,
    facts: Facts,
    namespaces: BTreeMap<String, NamespaceSpec>,
    pods: BTreeMap<PodName, PodSpec>,
    collector: Collector,
    seconds: u64,
    steps: u64,
    results: Vec<Value>,
    /// The block of the first address of each result.
    blocks: Vec<Option<Prefix>>,
}

pub(super) fn run(case: Case) -> Result<Value, CaseError> {
    let Case { state: begin, ops } = case;
    let first = Moment::from_nanoseconds(START_SECONDS.saturating_mul(NANOSECONDS_PER_SECOND));
    let config = begin.config.over(crate::facts::Config::default());
    let mut run = Run {
        store: MemoryStore::new(begin.objects(first)?),
        facts: Facts {
            pools: begin.pools.iter().cloned().map(super::case::PoolSpec::pool).collect(),
            nodes: begin.nodes.iter().cloned().map(|it| (it.name, it.labels)).collect(),
            namespaces: BTreeMap::new(),
            reservations: begin.reservations.clone(),
            config,
        },
        namespaces: begin.namespaces.clone(),
        pods: begin.pods.iter().cloned().map(|it| (it.pod_name(), it)).collect(),
        collector: Collector::default(),
        seconds: 0,
        steps: begin.sequence_max().saturating_sub(first.nanoseconds()) / STEP_NANOSECONDS,
        results: Vec::new(),
        blocks: Vec::new(),
    };
    run.facts.namespaces =
        begin.namespaces.into_iter().map(|(name, it)| (name, it.labels)).collect();
    for (index, operation) in ops.into_iter().enumerate() {
        let result = run.operation(index, operation)?;
        run.remember(result);
    }
    let objects = run.store.objects();
    Ok(json!({"results": run.results, "state": state(&objects)}))
}

/// A future over a store in memory is finished at once.
fn now<T>(future: impl Future<Output = Result<T, IpamError>>) -> Result<T, IpamError> {
    let waits = || StoreError::Unavailable("a store in memory does not wait".to_owned());
    finished(future).unwrap_or_else(|| Err(waits().into()))
}

fn told<T>(outcome: Result<T, IpamError>, fields: impl FnOnce(T) -> Value) -> Value {
    match outcome {
        Ok(value) => fields(value),
        Err(error) => with_error(json!({}), Some(&error)),
    }
}

fn nothing(outcome: Result<(), IpamError>) -> Value {
    told(outcome, |()| json!({}))
}

impl Run {
    fn moment(&self) -> Moment {
        let seconds = START_SECONDS.saturating_add(self.seconds);
        let nanoseconds = seconds.saturating_mul(NANOSECONDS_PER_SECOND);
        Moment::from_nanoseconds(
            nanoseconds.saturating_add(self.steps.saturating_mul(STEP_NANOSECONDS)),
        )
    }

    fn addressing(&self) -> Addressing<'_, MemoryStore> {
        Addressing { store: &self.store, facts: &self.facts, now: self.moment() }
    }

    fn remember(&mut self, result: Value) {
        let first = addresses(&result).into_iter().next();
        let address = first.and_then(|it| it.split('/').next()?.parse().ok());
        let of_store = address.and_then(|address| {
            self.store.objects().iter().find_map(|object| match object {
                Object::Block(it) if it.prefix().contains(address) => Some(it.prefix()),
                _ => None,
            })
        });
        self.results.push(result);
        self.blocks.push(of_store);
    }

    fn operation(&mut self, index: usize, value: Value) -> Result<Value, CaseError> {
        let bad = |reason: String| CaseError::Operation { index, reason };
        self.steps = self.steps.saturating_add(1);
        let resolver = Resolver { results: &self.results, blocks: &self.blocks };
        // Each of those in it refers to results by itself.
        let is_compound = value.get("op").is_some_and(|it| it == "parallel");
        let lacks_reference = !is_compound && resolver.lacks(&value);
        let value = if is_compound { value } else { resolver.resolve(value) };
        let operation = serde_json::from_value(without_nulls(value));
        if operation.is_err() && lacks_reference {
            let message = "a reference leads to no address of an earlier result";
            return Ok(json!({"error": "bad-reference", "message": message}));
        }
        match operation.map_err(|error| bad(error.to_string()))? {
            Operation::Parallel { ops } => {
                // One order of those that are allowed.
                let results: Result<Vec<Value>, CaseError> =
                    ops.into_iter().map(|it| self.operation(index, it)).collect();
                Ok(json!({"results": results?}))
            }
            operation => self.run(operation).map_err(bad),
        }
    }

    fn run(&mut self, operation: Operation) -> Result<Value, String> {
        let addressing = self.addressing();
        Ok(match operation {
            Operation::AutoAssign(it) => self.auto_assign(*it),
            Operation::AssignAddress(it) => self.assign_address(*it),
            Operation::Release { ips } => self.release(ips),
            Operation::ReleaseByHandle { handle } => {
                let released = now(addressing.release_handle(&handle.to_lowercase()));
                told(released, |released| json!({"released": released}))
            }
            Operation::IpsByHandle { handle } => {
                let found = now(addressing.addresses_of_handle(&handle.to_lowercase()));
                told(found, |it| {
                    let addresses = it.iter().map(|it| it.address.to_string());
                    json!({"ips": addresses.collect::<Vec<_>>()})
                })
            }
            Operation::Inspect { ip } => told(now(addressing.inspect(ip.0)), |it| {
                let Attributes { handle, secondary, .. } = it.attributes;
                json!({
                    "ip": ip.0,
                    "handle": handle,
                    "attrs": secondary,
                    "seq": it.sequence,
                    "block": it.block,
                })
            }),
            Operation::EnsureBlock(it) => self.ensure_block(*it),
            Operation::Utilization { pools } => self.utilization(&pools),
            Operation::Routes { host } => told(now(addressing.routes(&host)), |it| {
                json!({
                    "announce": prefixes(&it.announced),
                    "blackhole": prefixes(&it.blackholes),
                })
            }),
            Operation::Gc { grace } => self.collect(grace.unwrap_or(GRACE_DEFAULT)),
            Operation::Cni(it) => self.cni(*it),
            Operation::ClaimAffinity { .. }
            | Operation::ReleaseAffinity { .. }
            | Operation::ReleaseHostAffinities { .. }
            | Operation::ReleaseBlockAffinity { .. }
            | Operation::ReleasePoolAffinities { .. }
            | Operation::RemoveHost { .. } => self.own(operation)?,
            operation => self.set(operation),
        })
    }

    /// The operations on affinities.
    fn own(&self, operation: Operation) -> Result<Value, String> {
        let addressing = self.addressing();
        Ok(match operation {
            Operation::ClaimAffinity { cidr, owner } => told(
                now(addressing.claim_affinity(cidr, &named(&owner)?)),
                |it| json!({"claimed": prefixes(&it.claimed), "failed": prefixes(&it.failed)}),
            ),
            Operation::ReleaseAffinity { cidr, owner, must_be_empty } => {
                let owner = named(&owner)?;
                nothing(now(addressing.release_affinity(cidr, &owner, must_be_empty)))
            }
            Operation::ReleaseHostAffinities { owner, must_be_empty } => {
                let owner = named(&owner)?;
                nothing(now(addressing.release_host_affinities(&owner, must_be_empty)))
            }
            Operation::ReleaseBlockAffinity { cidr, must_be_empty }
            | Operation::ReleasePoolAffinities { cidr, must_be_empty } => {
                nothing(now(addressing.release_affinities_within(cidr, must_be_empty)))
            }
            Operation::RemoveHost { host } => {
                nothing(now(addressing.release_host_affinities(&Owner::Host(host), false)))
            }
            _ => json!({}),
        })
    }

    /// What changes the cluster, and not the store.
    fn set(&mut self, operation: Operation) -> Value {
        match operation {
            Operation::SetConfig(fields) => match fields.spec().over(self.facts.config).check() {
                Ok(config) => self.facts.config = config,
                Err(error) => return with_error(json!({}), Some(&error.into())),
            },
            Operation::GetConfig => {
                let config = self.facts.config;
                return json!({"config": {
                    "strictAffinity": config.is_strict,
                    "autoAllocateBlocks": config.allocates_blocks,
                    "maxBlocksPerHost": config.blocks_per_host_max,
                    "ipCooldownSeconds": config.cooldown,
                }});
            }
            Operation::SetPool { pool } => {
                let pool = pool.pool();
                self.facts.pools.retain(|it| it.prefix != pool.prefix && it.name != pool.name);
                self.facts.pools.push(pool);
            }
            Operation::DeletePool { cidr } => self.facts.pools.retain(|it| it.prefix != cidr),
            Operation::SetNode(node) => _ = self.facts.nodes.insert(node.name, node.labels),
            Operation::DeleteNode { name } => _ = self.facts.nodes.remove(&name),
            Operation::SetReservations { cidrs } => self.facts.reservations = cidrs,
            Operation::SetPod { pod } => _ = self.pods.insert(pod.pod_name(), pod),
            Operation::DeletePod { namespace, name } => {
                self.pods.remove(&PodName { namespace, name });
            }
            Operation::Advance { seconds } => self.seconds = self.seconds.saturating_add(seconds),
            _ => {}
        }
        json!({})
    }

    fn auto_assign(&self, it: AutoAssign) -> Value {
        let family = |count, named, reserved: Option<HostReservedSpec>| FamilyRequest {
            count,
            named,
            host_reserved: reserved.map(HostReservedSpec::reserved),
        };
        let host = it.host;
        let request = AddressRequest {
            attributes: attributes(it.handle, it.attrs, &host),
            host,
            ipv4: family(it.n4, it.pools4, it.host_reserved4),
            ipv6: family(it.n6, it.pools6, it.host_reserved6),
            purpose: it.purpose,
            namespace: it.namespace,
            blocks_max: it.max_blocks,
            per_handle_max: it.max_per_handle.filter(|it| *it > 0),
            is_windows: it.os.eq_ignore_ascii_case("windows"),
            is_first: false,
            edges: Edges::Given,
        };
        let mut got = Vec::new();
        let outcome = now(self.addressing().assign_families(&request, &mut got));
        let of = |family| of_family(&got, family);
        let result = json!({
            "v4": of(AddressFamily::Ipv4Unicast),
            "v6": of(AddressFamily::Ipv6Unicast),
        });
        with_error(result, outcome.err().as_ref())
    }

    fn assign_address(&self, it: AssignAddress) -> Value {
        let host_reserved = it.host_reserved.map(HostReservedSpec::reserved);
        let family = FamilyRequest { count: 1, named: Vec::new(), host_reserved };
        let request = AddressRequest {
            attributes: attributes(it.handle, it.attrs, &it.host),
            host: it.host,
            ipv4: family.clone(),
            ipv6: family,
            purpose: it.purpose,
            namespace: None,
            blocks_max: None,
            per_handle_max: it.max_per_handle.filter(|it| *it > 0),
            is_windows: it.os.eq_ignore_ascii_case("windows"),
            is_first: false,
            edges: Edges::Given,
        };
        let outcome = now(self.addressing().assign_address_within(it.ip.0, &request));
        told(outcome, |it| json!({"ip": it.address}))
    }

    fn ensure_block(&self, it: EnsureBlock) -> Value {
        let family = |named, reserved: Option<HostReservedSpec>| FamilyRequest {
            count: 0,
            named,
            host_reserved: reserved.map(HostReservedSpec::reserved),
        };
        let asks = (it.host_reserved4.is_some(), it.host_reserved6.is_some());
        let request = AddressRequest {
            attributes: Attributes::default(),
            host: it.host,
            ipv4: family(it.pools4, it.host_reserved4),
            ipv6: family(it.pools6, it.host_reserved6),
            purpose: it.purpose,
            namespace: it.namespace,
            blocks_max: it.max_blocks,
            per_handle_max: None,
            is_windows: it.os.eq_ignore_ascii_case("windows"),
            is_first: false,
            edges: Edges::Given,
        };
        if request.is_windows && !self.facts.config.is_strict {
            return with_error(json!({}), Some(&IpamError::StrictRequired));
        }
        let mut result = serde_json::Map::new();
        let families = [
            (asks.0, AddressFamily::Ipv4Unicast, "block4"),
            (asks.1, AddressFamily::Ipv6Unicast, "block6"),
        ];
        for (_, family, field) in families.into_iter().filter(|(is_asked, ..)| *is_asked) {
            match now(self.addressing().ensure_block(&request.scope(family))) {
                Ok(block) => _ = result.insert(field.to_owned(), json!(block)),
                Err(error) => return with_error(Value::Object(result), Some(&error)),
            }
        }
        Value::Object(result)
    }

    fn release(&self, ips: Vec<ReleaseSpec>) -> Value {
        let releases: Vec<Release> = ips
            .into_iter()
            .map(|it| match it {
                ReleaseSpec::Address(ip) => Release { address: ip.0, handle: None, sequence: None },
                ReleaseSpec::Whole { ip, handle, seq } => Release {
                    address: ip.0,
                    handle: handle.map(|it| it.to_lowercase()),
                    sequence: seq,
                },
            })
            .collect();
        told(now(self.addressing().release(&releases)), |it| {
            let result = json!({"released": it.released, "unallocated": it.unallocated});
            with_error(result, it.errors.first())
        })
    }

    fn utilization(&self, wanted: &[String]) -> Value {
        let is_wanted = |name: &str, prefix: Prefix| {
            wanted.is_empty() || wanted.iter().any(|it| it == name || *it == prefix.to_string())
        };
        let pools: Vec<Prefix> = self
            .facts
            .pools
            .iter()
            .filter(|it| is_wanted(&it.name, it.prefix))
            .map(|it| it.prefix)
            .collect();
        told(now(self.addressing().usage(&pools)), |usages| {
            let pool = |(of_pool, of_blocks): &(_, Vec<_>)| {
                let mut fields = usage(of_pool);
                fields.insert(
                    "blocks".to_owned(),
                    of_blocks.iter().map(|it| Value::Object(usage(it))).collect(),
                );
                Value::Object(fields)
            };
            json!({"pools": usages.iter().map(pool).collect::<Vec<_>>()})
        })
    }

    fn collect(&mut self, grace: Seconds) -> Value {
        let mut collector = std::mem::take(&mut self.collector);
        let census = CaseCensus { facts: &self.facts, pods: &self.pods };
        let outcome = now(collector.pass(&self.addressing(), &census, grace));
        self.collector = collector;
        told(outcome, |it| {
            let result = json!({
                "released": it.released,
                "candidates": it.candidates,
                "blocks": prefixes(&it.blocks),
                "hosts": it.hosts,
            });
            with_error(result, it.errors.first())
        })
    }

    fn cni(&self, it: Cni) -> Value {
        let stdin = match it.stdin {
            Value::String(text) => text,
            value => value.to_string(),
        };
        let invocation = cni::Invocation {
            command: it.command,
            container_id: it.container_id,
            netns: it.netns,
            interface: it.ifname,
            args: it.args,
            stdin: stdin.as_bytes(),
        };
        let notes = |name: &PodName| PodNotes {
            of_pod: self.pods.get(name).map(|it| it.annotations.clone()).unwrap_or_default(),
            of_namespace: self
                .namespaces
                .get(&name.namespace)
                .map(|it| it.annotations.clone())
                .unwrap_or_default(),
        };
        let answer = finished(cni::answer(&self.addressing(), &invocation, &it.node, notes));
        match answer {
            Some(answer) => {
                json!({"exit": answer.exit, "stdout": answer.stdout.unwrap_or_else(|| json!({}))})
            }
            None => json!({}),
        }
    }
}

/// An operation without the fields that are null: they are not given.
fn without_nulls(value: Value) -> Value {
    match value {
        Value::Object(mut fields) => {
            fields.retain(|key, it| !it.is_null() || key == "use");
            Value::Object(fields)
        }
        value => value,
    }
}

fn named(spec: &OwnerSpec) -> Result<Owner, String> {
    let unknown = || format!("type: expected host or virtual, found {:?}", spec.kind);
    owner(&spec.kind, &spec.host).ok_or_else(unknown)
}

fn attributes(
    handle: Option<String>,
    mut secondary: BTreeMap<String, String>,
    host: &str,
) -> Attributes {
    secondary.entry("node".to_owned()).or_insert_with(|| host.to_owned());
    Attributes { handle: handle.map(|it| it.to_lowercase()), secondary, ..Attributes::default() }
}

/// What a case says of Pods and nodes.
struct CaseCensus<'a> {
    facts: &'a Facts,
    pods: &'a BTreeMap<PodName, PodSpec>,
}

impl Census for CaseCensus<'_> {
    fn pod(&self, name: &PodName) -> Option<PodState> {
        self.pods.get(name).map(PodSpec::state)
    }

    fn has_node(&self, name: &str) -> bool {
        self.facts.nodes.contains_key(name)
    }

    async fn pod_now(&self, name: &PodName) -> Result<Option<PodState>, StoreError> {
        Ok(self.pod(name))
    }

    async fn has_node_now(&self, name: &str) -> Result<bool, StoreError> {
        Ok(self.has_node(name))
    }
}
