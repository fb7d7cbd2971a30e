//! What a case says of the cluster: pools, nodes, Pods, the configuration. Knows no block, and no code that is tested.

use std::collections::BTreeMap;
use std::net::IpAddr;

use fairway_ground::{AddressFamily, Prefix};
use serde_json::Value;

pub(super) type Labels = BTreeMap<String, String>;

/// The selectors that cases have: the model reads no others.
pub(super) const SELECTORS: [&str; 6] =
    ["all()", "zone == 'x'", "zone != 'x'", "zone in {'x', 'y'}", "has(gpu)", "!has(gpu)"];

/// The use of a request that does not say.
pub(super) const WORKLOAD: &str = "Workload";
/// The use for which no node owns blocks.
pub(super) const LOAD_BALANCER: &str = "LoadBalancer";

/// An IPPool.
pub(super) struct Pool {
    pub(super) cidr: Prefix,
    pub(super) length: u8,
    pub(super) is_disabled: bool,
    pub(super) is_hidden: bool,
    name: Option<String>,
    is_manual: bool,
    nodes: String,
    namespaces: String,
    uses: Vec<String>,
}

/// A Pod.
pub(super) struct Pod {
    pub(super) node: String,
    pub(super) addresses: Vec<IpAddr>,
    pub(super) is_finished: bool,
}

/// Who asks for addresses of a family.
pub(super) struct Asking<'a> {
    pub(super) host: &'a str,
    pub(super) family: AddressFamily,
    /// Prefixes or names of pools.
    pub(super) named: Vec<String>,
    pub(super) purpose: &'a str,
    pub(super) namespace: Option<&'a str>,
}

/// See the module.
#[derive(Default)]
pub(super) struct Cluster {
    pub(super) seconds: u64,
    pub(super) is_strict: bool,
    pub(super) cooldown: u64,
    pub(super) pools: Vec<Pool>,
    pub(super) nodes: BTreeMap<String, Labels>,
    namespaces: BTreeMap<String, Labels>,
    pub(super) pods: BTreeMap<(String, String), Pod>,
    reservations: Vec<Prefix>,
    /// It never was otherwise.
    pub(super) was_always_strict: bool,
    /// It never changed.
    pub(super) had_one_cooldown: bool,
    /// No pool ever had blocks of another size.
    pub(super) had_one_size: bool,
}

pub(super) fn text<'a>(value: &'a Value, key: &str) -> Option<&'a str> {
    value[key].as_str()
}

/// The texts of a list; none where there is no list.
pub(super) fn texts(value: &Value) -> Vec<String> {
    let items = value.as_array().into_iter().flatten();
    items.filter_map(|it| it.as_str().map(str::to_owned)).collect()
}

pub(super) fn prefixes(value: &Value) -> Vec<Prefix> {
    texts(value).iter().map(|it| it.parse().unwrap()).collect()
}

fn labels(value: &Value) -> Labels {
    let fields = value.as_object().into_iter().flatten();
    fields.filter_map(|(key, it)| Some((key.clone(), it.as_str()?.to_owned()))).collect()
}

fn selects(selector: &str, labels: &Labels) -> bool {
    let zone = labels.get("zone").map(String::as_str);
    match selector {
        "" | "all()" => true,
        "zone == 'x'" => zone == Some("x"),
        "zone != 'x'" => zone != Some("x"),
        "zone in {'x', 'y'}" => matches!(zone, Some("x" | "y")),
        "has(gpu)" => labels.contains_key("gpu"),
        "!has(gpu)" => !labels.contains_key("gpu"),
        other => panic!("the model does not know {other}"),
    }
}

impl Pool {
    fn new(spec: &Value) -> Self {
        let cidr: Prefix = text(spec, "cidr").unwrap().parse().unwrap();
        let default = if cidr.address().is_ipv4() { 26 } else { 122 };
        let mut uses = texts(&spec["allowedUses"]);
        if uses.is_empty() {
            uses = vec![WORKLOAD.to_owned(), "Tunnel".to_owned()];
        }
        Self {
            cidr,
            length: spec["blockSize"].as_u64().map_or(default, |it| u8::try_from(it).unwrap()),
            is_disabled: spec["disabled"] == true,
            is_hidden: spec["disableBGPExport"] == true,
            name: text(spec, "name").map(str::to_owned),
            is_manual: spec["assignmentMode"] == "Manual",
            nodes: text(spec, "nodeSelector").unwrap_or_default().to_owned(),
            namespaces: text(spec, "namespaceSelector").unwrap_or_default().to_owned(),
            uses,
        }
    }

    pub(super) fn is_for(&self, purpose: &str) -> bool {
        self.uses.iter().any(|it| it == purpose)
    }

    fn is_named(&self, named: &[String]) -> bool {
        let own = [Some(self.cidr.to_string()), self.name.clone()];
        named.iter().any(|it| own.iter().flatten().any(|own| own == it))
    }
}

impl Cluster {
    pub(super) fn new(state: &Value) -> Self {
        let of = |key: &str| state[key].as_array().into_iter().flatten();
        let mut cluster = Self {
            pools: of("pools").map(Pool::new).collect(),
            reservations: prefixes(&state["reservations"]),
            was_always_strict: true,
            had_one_cooldown: true,
            had_one_size: true,
            ..Self::default()
        };
        of("nodes").for_each(|it| cluster.set_node(it));
        for (name, it) in state["namespaces"].as_object().into_iter().flatten() {
            cluster.namespaces.insert(name.clone(), labels(&it["labels"]));
        }
        cluster.cooldown = state["config"]["ipCooldownSeconds"].as_u64().unwrap_or(0);
        cluster.configure(&state["config"]);
        cluster
    }

    /// What an operation sets that changes no block. `addresses` are those of a Pod.
    pub(super) fn set(&mut self, op: &Value, addresses: Vec<IpAddr>) {
        let name = |it: &Value| {
            let of = |key: &str| text(it, key).unwrap_or_default().to_owned();
            (of("namespace"), of("name"))
        };
        match text(op, "op").unwrap() {
            "setConfig" => self.configure(op),
            "setPool" => {
                let pool = Pool::new(&op["pool"]);
                let before = self.pools.iter().find(|it| it.cidr == pool.cidr);
                self.had_one_size &= before.is_none_or(|it| it.length == pool.length);
                self.pools.retain(|it| it.cidr != pool.cidr);
                self.pools.push(pool);
            }
            "deletePool" => {
                let cidr: Prefix = text(op, "cidr").unwrap().parse().unwrap();
                self.pools.retain(|it| it.cidr != cidr);
                // It may come back with another size.
                self.had_one_size = false;
            }
            "setNode" => self.set_node(op),
            "deleteNode" => _ = self.nodes.remove(text(op, "name").unwrap()),
            "setReservations" => self.reservations = prefixes(&op["cidrs"]),
            "setPod" => {
                let spec = &op["pod"];
                let has_ended = matches!(text(spec, "phase"), Some("Succeeded" | "Failed"));
                let pod = Pod {
                    node: text(spec, "node").unwrap_or_default().to_owned(),
                    addresses,
                    is_finished: has_ended || spec["reason"] == "Evicted",
                };
                self.pods.insert(name(spec), pod);
            }
            "deletePod" => _ = self.pods.remove(&name(op)),
            "advance" => self.seconds += op["seconds"].as_u64().unwrap(),
            other => panic!("the model does not know {other}"),
        }
    }

    fn set_node(&mut self, spec: &Value) {
        self.nodes.insert(text(spec, "name").unwrap().to_owned(), labels(&spec["labels"]));
    }

    fn configure(&mut self, fields: &Value) {
        self.is_strict = fields["strictAffinity"].as_bool().unwrap_or(self.is_strict);
        self.was_always_strict &= self.is_strict;
        let cooldown = fields["ipCooldownSeconds"].as_u64().unwrap_or(self.cooldown);
        self.had_one_cooldown &= cooldown == self.cooldown;
        self.cooldown = cooldown;
    }

    pub(super) fn pool_of(&self, address: IpAddr) -> Option<&Pool> {
        self.pools.iter().find(|it| it.cidr.contains(address))
    }

    pub(super) fn is_reserved(&self, address: IpAddr) -> bool {
        self.reservations.iter().any(|it| it.contains(address))
    }

    /// The block of an address, if it is certain.
    pub(super) fn block_of(&self, address: IpAddr) -> Option<Prefix> {
        let pool = self.pool_of(address).filter(|_| self.had_one_size)?;
        Prefix::new(address, pool.length).ok()
    }

    /// Whether a request may have addresses out of a pool that it need not name, or names.
    pub(super) fn may_serve(&self, pool: &Pool, asking: &Asking<'_>) -> bool {
        let none = Labels::new();
        let node = match asking.purpose {
            LOAD_BALANCER => Some(&none),
            _ => self.nodes.get(asking.host),
        };
        let Some(node) = node else { return false };
        let is_of_family = pool.cidr.family() == asking.family;
        if pool.is_disabled || !is_of_family || !pool.is_for(asking.purpose) {
            return false;
        }
        if !asking.named.is_empty() {
            return pool.is_named(&asking.named);
        }
        let namespace = asking.namespace.map(|it| self.namespaces.get(it).unwrap_or(&none));
        let is_for_namespace = match pool.namespaces.as_str() {
            "" => true,
            selector => namespace.is_some_and(|it| selects(selector, it)),
        };
        !pool.is_manual && selects(&pool.nodes, node) && is_for_namespace
    }

    /// All addresses of the pools that may serve a request.
    pub(super) fn addresses_for(&self, asking: &Asking<'_>) -> Vec<IpAddr> {
        let pools = self.pools.iter().filter(|it| self.may_serve(it, asking));
        pools.flat_map(|it| addresses(it.cidr)).collect()
    }
}

/// All addresses of a prefix, which has few.
pub(super) fn addresses(prefix: Prefix) -> Vec<IpAddr> {
    (0..size(prefix)).map(|it| address(prefix, it)).collect()
}

/// How many addresses it has.
pub(super) fn size(prefix: Prefix) -> usize {
    1 << (prefix.family().address_bits() - prefix.length())
}

/// One address of a prefix.
pub(super) fn address(prefix: Prefix, ordinal: usize) -> IpAddr {
    match prefix.address() {
        IpAddr::V4(it) => IpAddr::V4((it.to_bits() + u32::try_from(ordinal).unwrap()).into()),
        IpAddr::V6(it) => IpAddr::V6((it.to_bits() + ordinal as u128).into()),
    }
}
