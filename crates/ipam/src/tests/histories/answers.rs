//! The answers of operations, one after the other: whether they give an address that somebody has, or contradict others.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use fairway_ground::{AddressFamily, Prefix};
use serde_json::Value;

use super::book::{Book, Held};
use super::cluster::{Asking, Cluster, WORKLOAD, prefixes, text, texts};

/// How much happened.
#[derive(Debug, Default)]
pub(super) struct Counts {
    pub(super) given: u64,
    pub(super) refused: u64,
    pub(super) released: u64,
    pub(super) collected: u64,
    pub(super) borrowed: u64,
    pub(super) containers: u64,
}

impl Counts {
    pub(super) fn add(&mut self, other: &Self) {
        let Self { given, refused, released, collected, borrowed, containers } = other;
        self.given += given;
        self.refused += refused;
        self.released += released;
        self.collected += collected;
        self.borrowed += borrowed;
        self.containers += containers;
    }

    pub(super) fn are_lively(&self) -> bool {
        let Self { given, refused, released, collected, borrowed, containers } = *self;
        [given, refused, released, collected, borrowed, containers].iter().all(|it| *it > 100)
    }
}

/// See the module.
pub(super) struct Model {
    pub(super) cluster: Cluster,
    pub(super) book: Book,
    pub(super) counts: Counts,
    /// What hosts announced, and dropped, since the last operation of another kind.
    pub(super) routes: BTreeMap<String, (Vec<Prefix>, Vec<Prefix>)>,
    results: Vec<Value>,
    /// The addresses that were inspected, as of when they were given.
    inspected: BTreeMap<String, u64>,
}

/// An address, with or without a length.
fn parts(printed: &str) -> (IpAddr, Option<u8>) {
    match printed.split_once('/') {
        Some((address, length)) => (address.parse().unwrap(), Some(length.parse().unwrap())),
        None => (printed.parse().unwrap(), None),
    }
}

pub(super) fn addresses(value: &Value) -> Vec<IpAddr> {
    texts(value).iter().map(|it| parts(it).0).collect()
}

/// The addresses that a result tells, as references mean them.
fn told(result: &Value) -> Vec<IpAddr> {
    let mut told: Vec<IpAddr> =
        ["v4", "v6", "ips"].iter().flat_map(|it| addresses(&result[*it])).collect();
    told.extend(text(result, "ip").map(|it| parts(it).0));
    told.extend(told_to_container(result).into_iter().map(|(address, _)| address));
    told
}

/// What ADD answers.
pub(super) fn told_to_container(result: &Value) -> Vec<(IpAddr, Option<u8>)> {
    let items = result["stdout"]["ips"].as_array().into_iter().flatten();
    items.map(|it| parts(text(it, "address").unwrap())).collect()
}

impl Model {
    pub(super) fn new(case: &Value) -> Self {
        Self {
            cluster: Cluster::new(&case["state"]),
            book: Book::new(case),
            counts: Counts::default(),
            routes: BTreeMap::new(),
            results: Vec::new(),
            inspected: BTreeMap::new(),
        }
    }

    /// All answers of a case.
    pub(super) fn hear(&mut self, ops: &Value, results: &Value) -> Result<(), String> {
        let (ops, results) = (ops.as_array().unwrap(), results.as_array().unwrap());
        if ops.len() != results.len() {
            return Err(format!("answer: {} for {} operations", results.len(), ops.len()));
        }
        for (index, (op, result)) in ops.iter().zip(results).enumerate() {
            let outcome = self.hear_one(op, result);
            outcome.map_err(|it| format!("{it}\nops[{index}]: {op}\nanswer: {result}"))?;
            self.results.push(result.clone());
        }
        Ok(())
    }

    fn hear_one(&mut self, op: &Value, result: &Value) -> Result<(), String> {
        let name = text(op, "op").unwrap();
        let error = text(result, "error");
        self.counts.refused += u64::from(error.is_some());
        if name == "routes" {
            let of = |key: &str| prefixes(&result[key]);
            let host = text(op, "host").unwrap().to_owned();
            self.routes.insert(host, (of("announce"), of("blackhole")));
            return Ok(());
        }
        self.routes.clear();
        match name {
            "autoAssign" => self.assigned(op, result, error),
            "assignIP" => self.assigned_address(op, result, error),
            "releaseIPs" => self.released(op, result, error),
            "releaseByHandle" => self.released_by_handle(op, result, error),
            "ipsByHandle" => self.is_of_handle(op, &result["ips"], error),
            "inspect" => self.inspected(op, result, error),
            "claimAffinity" => is_divided(op, result, error),
            "utilization" => self.is_used_as_told(result),
            "gc" => self.collected(op, result),
            "cni" => self.answered_runtime(op, result),
            "parallel" => {
                let inner = op["ops"].as_array().unwrap().iter();
                let inner = inner.zip(result["results"].as_array().unwrap());
                inner.into_iter().try_for_each(|(op, result)| self.hear_one(op, result))
            }
            "ensureBlock" | "getConfig" | "removeHost" => Ok(()),
            _ if name.starts_with("release") => Ok(()),
            _ if error.is_some() => Ok(()),
            _ => {
                let listed = self.resolved(&op["pod"]["ips"]);
                self.cluster.set(op, listed);
                Ok(())
            }
        }
    }

    /// The addresses that an item of a list stands for.
    fn resolved_item(&self, item: &str) -> Vec<IpAddr> {
        let Some(reference) = item.strip_prefix('$') else { return vec![parts(item).0] };
        let (number, index) = match reference.split_once('[') {
            Some((number, index)) => (number, index.strip_suffix(']')),
            None => (reference, None),
        };
        let told = self.results.get(number.parse::<usize>().unwrap()).map(told).unwrap_or_default();
        match index {
            None => told,
            Some(index) => told.get(index.parse::<usize>().unwrap()).copied().into_iter().collect(),
        }
    }

    pub(super) fn resolved(&self, items: &Value) -> Vec<IpAddr> {
        texts(items).iter().flat_map(|it| self.resolved_item(it)).collect()
    }

    fn assigned(&mut self, op: &Value, result: &Value, error: Option<&str>) -> Result<(), String> {
        let asked = Held::asked_by(op);
        let has_limit = op["maxPerHandle"].as_u64().is_some_and(|it| it > 0);
        for (family, key, count, pools) in [
            (AddressFamily::Ipv4Unicast, "v4", "n4", "pools4"),
            (AddressFamily::Ipv6Unicast, "v6", "n6", "pools6"),
        ] {
            let asking = Asking {
                host: text(op, "host").unwrap(),
                family,
                named: texts(&op[pools]),
                purpose: text(op, "use").unwrap_or(WORKLOAD),
                namespace: text(op, "namespace"),
            };
            let given = texts(&result[key]);
            let count = usize::try_from(op[count].as_u64().unwrap_or(0)).unwrap();
            let mut new = 0;
            for printed in &given {
                let (address, length) = parts(printed);
                let before = self.book.held.get(&address);
                if has_limit && before.is_some_and(|it| it.handle == asked.handle) {
                    continue;
                }
                new += 1;
                self.is_allowed(&asking, address)?;
                let block = length.map(|it| Prefix::new(address, it).unwrap());
                self.given(address, &asked, block)?;
            }
            if new > count {
                return Err(format!("rule: {new} for {count} of {family}"));
            }
            let is_short = given.len() < count && error.is_none() && !has_limit;
            if is_short && !self.cluster.is_strict {
                self.is_exhausted(&asking)?;
            }
        }
        Ok(())
    }

    pub(super) fn given(
        &mut self,
        address: IpAddr,
        asked: &Held,
        block: Option<Prefix>,
    ) -> Result<(), String> {
        let block = block.or_else(|| self.cluster.block_of(address));
        let mut others =
            self.book.held.iter().filter(|(it, _)| block.is_some_and(|b| b.contains(**it)));
        self.counts.borrowed += u64::from(others.any(|(_, it)| it.owner != asked.owner));
        self.counts.given += 1;
        self.book.give(&self.cluster, address, asked, block)
    }

    /// What is given without being asked for by its address is of a pool that is for the request, and not reserved.
    pub(super) fn is_allowed(&self, asking: &Asking<'_>, address: IpAddr) -> Result<(), String> {
        let pool = self.cluster.pool_of(address);
        if !pool.is_some_and(|it| self.cluster.may_serve(it, asking)) {
            let pool = pool.map(|it| it.cidr);
            return Err(format!("rule: {address} is of {pool:?}, which is not for this"));
        }
        match self.cluster.is_reserved(address) {
            true => Err(format!("rule: {address} is reserved")),
            false => Ok(()),
        }
    }

    /// Fewer than were asked for: where nodes borrow, there are no more.
    fn is_exhausted(&self, asking: &Asking<'_>) -> Result<(), String> {
        let Self { cluster, book, .. } = self;
        if book.spares_any()
            || book.lacks_releases
            || !cluster.had_one_size
            || !cluster.had_one_cooldown
        {
            return Ok(());
        }
        let mut all = cluster.addresses_for(asking).into_iter();
        let is_used = |it: &IpAddr| {
            book.held.contains_key(it) || book.rests(cluster, *it) || cluster.is_reserved(*it)
        };
        match all.find(|it| !is_used(it)) {
            Some(address) => Err(format!("rule: fewer than asked for, and {address} is free")),
            None => Ok(()),
        }
    }

    fn assigned_address(
        &mut self,
        op: &Value,
        result: &Value,
        error: Option<&str>,
    ) -> Result<(), String> {
        // A reference to nothing.
        let Some(wished) = self.resolved_item(text(op, "ip").unwrap()).first().copied() else {
            return Ok(());
        };
        let asked = Held::asked_by(op);
        let Some(printed) = text(result, "ip") else {
            let is_free = !self.book.held.contains_key(&wished)
                && !self.book.released.contains_key(&wished)
                && !self.book.lacks_releases
                && !self.book.spares_any();
            return match error {
                Some("already-assigned") if is_free => {
                    Err(format!("answer: {wished} is refused, and nobody has it"))
                }
                Some(_) => Ok(()),
                None => Err("answer: neither an address nor an error".to_owned()),
            };
        };
        let (address, _) = parts(printed);
        if address != wished {
            return Err(format!("answer: {address} for {wished}"));
        }
        let before = self.book.held.get(&address);
        let has_limit = op["maxPerHandle"].as_u64().is_some_and(|it| it > 0);
        if has_limit && before.is_some_and(|it| it.handle == asked.handle) {
            return Ok(());
        }
        let purpose = text(op, "use");
        let pool = self.cluster.pool_of(address).filter(|it| !it.is_disabled);
        if !pool.is_some_and(|it| purpose.is_none_or(|purpose| it.is_for(purpose))) {
            return Err(format!("rule: no pool gives {address}"));
        }
        self.given(address, &asked, None)
    }

    fn released(&mut self, op: &Value, result: &Value, error: Option<&str>) -> Result<(), String> {
        let mut wished: BTreeMap<IpAddr, &Value> = BTreeMap::new();
        for item in op["ips"].as_array().into_iter().flatten() {
            let reference = item.as_str().or_else(|| text(item, "ip")).unwrap();
            wished.extend(self.resolved_item(reference).into_iter().map(|it| (it, item)));
        }
        let unknown = addresses(&result["unallocated"]);
        for address in &unknown {
            if self.book.held.contains_key(address) {
                return Err(format!("answer: {address} is nobody's, which was given"));
            }
        }
        let released = addresses(&result["released"]);
        for address in &released {
            let Some(item) = wished.get(address) else {
                return Err(format!("answer: {address} is released, and was not named"));
            };
            let held = self.book.held.get(address);
            let handle = text(item, "handle").map(str::to_lowercase);
            if handle.is_some() && held.is_some_and(|it| it.handle != handle) {
                return Err(format!("answer: {address} is released of another handle"));
            }
            let inspected = text(item, "seq").and_then(|it| self.inspected.get(it));
            if inspected.is_some_and(|seq| held.is_some_and(|it| it.generation != *seq)) {
                return Err(format!("twice: {address} is released by its earlier number"));
            }
            self.book.release(&self.cluster, *address)?;
        }
        self.counts.released += released.len() as u64;
        let answered: BTreeSet<&IpAddr> = released.iter().chain(&unknown).collect();
        match wished.keys().find(|it| !answered.contains(it)) {
            Some(address) if error.is_none() => Err(format!("answer: nothing about {address}")),
            _ => Ok(()),
        }
    }

    fn released_by_handle(
        &mut self,
        op: &Value,
        result: &Value,
        error: Option<&str>,
    ) -> Result<(), String> {
        self.is_of_handle(op, &result["released"], error)?;
        let released = addresses(&result["released"]);
        self.counts.released += released.len() as u64;
        released.iter().try_for_each(|it| self.book.release(&self.cluster, *it))
    }

    /// Whether an answer names all addresses of a handle.
    fn is_of_handle(&self, op: &Value, named: &Value, error: Option<&str>) -> Result<(), String> {
        let held = self.book.of_handle(&text(op, "handle").unwrap().to_lowercase());
        let named = addresses(named);
        let is_told_so = error.is_some() == held.is_empty();
        match named.len() == held.len() && named.iter().all(|it| held.contains(it)) && is_told_so {
            true => Ok(()),
            false => Err(format!("counts: {named:?} are named, and the handle has {held:?}")),
        }
    }

    fn inspected(&mut self, op: &Value, result: &Value, error: Option<&str>) -> Result<(), String> {
        let wished = self.resolved_item(text(op, "ip").unwrap());
        let Some(address) = wished.first() else { return Ok(()) };
        let held = self.book.held.get(address);
        if let Some(error) = error {
            return match held {
                Some(_) => Err(format!("answer: {address} is {error}, and was given")),
                None => Ok(()),
            };
        }
        let handle = text(result, "handle");
        match held {
            Some(held) if held.handle.as_deref() == handle => {
                let number = format!("${}.seq", self.results.len());
                self.inspected.insert(number, held.generation);
                Ok(())
            }
            None if self.book.spares_any() => Ok(()),
            _ => Err(format!("answer: {address} is {handle:?}'s, and was given as {held:?}")),
        }
    }

    /// Nobody counts otherwise than addresses were given.
    fn is_used_as_told(&self, result: &Value) -> Result<(), String> {
        for usage in result["pools"].as_array().into_iter().flatten() {
            let of = |key: &str| usage[key].as_u64().unwrap();
            let cidr: Prefix = text(usage, "cidr").unwrap().parse().unwrap();
            let held = self.book.held.keys().filter(|it| cidr.contains(**it)).count() as u64;
            let released = self.book.released.keys().filter(|it| cidr.contains(**it)).count();
            let is_unclear = self.book.spares_any() || self.book.lacks_releases;
            let is_exact = is_unclear || of("inUse") <= held + released as u64;
            let is_whole = of("inUse") + of("reserved") + of("available") == of("capacity");
            if of("inUse") < held || !is_exact || !is_whole {
                return Err(format!("counts: {cidr} has {held} addresses in use"));
            }
        }
        Ok(())
    }
}

/// A claim names each block once.
fn is_divided(op: &Value, result: &Value, error: Option<&str>) -> Result<(), String> {
    if error.is_some() {
        return Ok(());
    }
    let within: Prefix = text(op, "cidr").unwrap().parse().unwrap();
    let mut blocks = prefixes(&result["claimed"]);
    blocks.extend(prefixes(&result["failed"]));
    let distinct: BTreeSet<&Prefix> = blocks.iter().collect();
    let are_within = blocks.iter().all(|it| within.contains(it.address()));
    match distinct.len() == blocks.len() && are_within && !blocks.is_empty() {
        true => Ok(()),
        false => Err(format!("owners: the claim of {within} names {blocks:?}")),
    }
}
