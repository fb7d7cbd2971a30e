//! What `fairway show proxy` prints: virtual servers as the kernel has them, and what waits for what.

use std::collections::BTreeMap;

use fairway_dataplane::ipvs::ListedRealServer;
use fairway_ground::columns::aligned;
use fairway_ground::printable;
use fairway_model::ObjectName;
use fairway_proxy::{Entry, KernelServer, VirtualAddress};
use serde_json::{Value, json};

use super::Proxy;
use crate::admin::ProxyQuery;

/// One virtual server.
struct Line<'a> {
    at: VirtualAddress,
    entry: &'a Entry,
    kernel: Option<&'a KernelServer>,
    connections: BTreeMap<fairway_proxy::RealServer, u64>,
    problem: Option<String>,
}

impl Proxy {
    /// The answer, to be printed unchanged.
    pub(super) fn view(&mut self, query: &ProxyQuery) -> String {
        let asked = |service: &ObjectName| {
            query.service.as_ref().is_none_or(|it| *it == service.to_string())
        };
        let wanted: Vec<VirtualAddress> = self
            .planner
            .wanted()
            .entries
            .iter()
            .filter(|(_, entry)| asked(&entry.service))
            .map(|(at, _)| *at)
            .collect();
        let listed: BTreeMap<VirtualAddress, Vec<ListedRealServer>> = wanted
            .iter()
            .map(|at| (*at, self.data_path.real_servers(*at).unwrap_or_default()))
            .collect();
        let faults: BTreeMap<String, String> =
            self.reconciler.faults().map(|(at, why)| (at, why.to_owned())).collect();
        let lines = wanted.iter().filter_map(|at| {
            let entry = self.planner.wanted().entries.get(at)?;
            let foreign = self.reconciler.foreign().contains(at);
            let foreign = foreign.then(|| "another program has this virtual server".to_owned());
            let of_address = || faults.get(&at.address.to_string()).cloned();
            let problem =
                foreign.or_else(|| faults.get(&at.to_string()).cloned()).or_else(of_address);
            let connections = listed.get(at).into_iter().flatten();
            let connections = connections.map(|it| (it.real_server, it.connections)).collect();
            let kernel = self.reconciler.kernel().servers.get(at);
            Some(Line { at: *at, entry, kernel, connections, problem })
        });
        let lines: Vec<Line<'_>> = lines.collect();
        let waiting = self.waiting(&asked);
        match query.json {
            true => format!("{:#}\n", json_of(&lines, &waiting)),
            false => text_of(&lines, &waiting),
        }
    }

    /// What does not go on, and why.
    fn waiting(&self, asked: &impl Fn(&ObjectName) -> bool) -> Vec<String> {
        let mut waiting = Vec::new();
        if !self.is_complete {
            waiting.push(
                "not all objects have been read yet, or there is no Service: nothing is removed from the kernel"
                    .to_owned(),
            );
        }
        if self.is_taking_over {
            waiting.push("what kube-proxy has left is removed once all else is done".to_owned());
        }
        let conflicts = self.planner.conflicts().filter(|it| asked(&it.waiting));
        waiting.extend(conflicts.map(|it| {
            let (waiting, holder) = (it.waiting, it.holder);
            format!(
                "Service {waiting} waits for {}, which Service {holder} has",
                it.virtual_address
            )
        }));
        waiting
    }
}

/// The state in a word or a sentence.
fn state(line: &Line<'_>) -> String {
    match (&line.problem, line.kernel) {
        (Some(problem), _) => problem.clone(),
        (None, None) => "not in the kernel yet".to_owned(),
        (None, Some(_)) => "in the kernel".to_owned(),
    }
}

fn text_of(lines: &[Line<'_>], waiting: &[String]) -> String {
    let heads = ["VIRTUAL SERVER", "SERVICE", "SCHEDULER", "REAL SERVERS", "CONNECTIONS", "STATE"];
    let rows = lines.iter().map(|line| -> [String; 6] {
        let real_servers = line.kernel.map_or_else(Vec::new, |it| {
            let name = |(real, weight): (&fairway_proxy::RealServer, &u32)| match weight {
                0 => format!("{real} (leaving)"),
                _ => real.to_string(),
            };
            it.real_servers.iter().map(name).collect()
        });
        let connections: u64 = line.connections.values().sum();
        [
            line.at.to_string(),
            line.entry.service.to_string(),
            line.entry.server.scheduler.name().to_owned(),
            if real_servers.is_empty() { "none".to_owned() } else { real_servers.join(",") },
            connections.to_string(),
            printable(&state(line)).into_owned(),
        ]
    });
    let rows: Vec<[String; 6]> = std::iter::once(heads.map(str::to_owned)).chain(rows).collect();
    let mut text = if lines.is_empty() { "no virtual server\n".to_owned() } else { aligned(&rows) };
    for line in waiting {
        text += &format!("! {}\n", printable(line));
    }
    text
}

fn json_of(lines: &[Line<'_>], waiting: &[String]) -> Value {
    let items: Vec<Value> = lines
        .iter()
        .map(|line| {
            let real_servers = line.kernel.into_iter().flat_map(|it| &it.real_servers);
            let real_servers: Vec<Value> = real_servers
                .map(|(real, weight)| {
                    json!({
                        "address": real.address, "port": real.port, "weight": weight,
                        "connections": line.connections.get(real).copied().unwrap_or(0),
                    })
                })
                .collect();
            json!({
                "service": line.entry.service.to_string(),
                "address": line.at.address,
                "port": line.at.port,
                "protocol": line.at.protocol.name(),
                "scheduler": line.entry.server.scheduler.name(),
                "realServers": real_servers,
                "isInKernel": line.kernel.is_some() && line.problem.is_none(),
                "problem": line.problem,
            })
        })
        .collect();
    json!({ "items": items, "waiting": waiting })
}
