//! `vrrp_instance`: addresses that hosts share.
//!
//! Answers a pool, an L2Advertisement and a Service for each address. Knows no other host: what differs between the files of
//! two hosts is named.

use std::collections::BTreeSet;
use std::net::IpAddr;

use ipnet::IpNet;
use serde_json::json;

use super::refresh;
use super::script::Script;
use super::text::Statement;
use crate::object::{Fields, Names, Translated};
use crate::outcome::Outcome;

pub(super) const NOTIFY: &str =
    "is not there: the log has each change of owners, and fairway show l2 the owner";

/// Lines about VRRP's own packets, or with nothing to do here.
const WITHOUT_EFFECT: &[&str] = &[
    "accept",
    "check_unicast_src",
    "debug",
    "higher_prio_send_advert",
    "linkbeat_use_polling",
    "lower_prio_no_advert",
    "mcast_dst_ip",
    "mcast_src_ip",
    "native_ipv6",
    "old_unicast_checksum",
    "promote_secondaries",
    "rogue_interval",
    "skip_check_adv_addr",
    "strict_mode",
    "track_src_ip",
    "unicast_fault_no_peer",
    "unicast_src_ip",
    "unicast_ttl",
    "version",
    "virtual_router_id",
    "vrrp_version",
];
const TRACKED: &str = "has no equal: have a script run fairway drain when it fails, and fairway drain --undo when it passes again";

/// The instances of a text.
#[derive(Default)]
pub(super) struct Instances {
    pool_names: Names,
    service_names: Names,
    addresses: BTreeSet<IpAddr>,
    pools: Vec<Translated>,
    advertisements: Vec<Translated>,
    services: Vec<Translated>,
    /// The scripts that are tracked, and where.
    scripts: Vec<(String, usize)>,
}

/// An address of an instance.
struct Shared {
    address: IpAddr,
    interface: String,
}

/// The names of the scripts that a block tracks.
pub(super) fn tracked_scripts(statement: &Statement) -> Vec<String> {
    let blocks = statement.inner().iter().filter(|it| it.keyword() == "track_script");
    blocks.flat_map(Statement::inner).map(|it| it.keyword().to_owned()).collect()
}

impl Instances {
    /// Reads one. Answers the names of the scripts that it tracks.
    pub(super) fn instance(&mut self, statement: &Statement, outcome: &mut Outcome) -> Vec<String> {
        let heading = statement.heading();
        let interface = statement.inner().iter().find(|it| it.keyword() == "interface");
        let Some(interface) = interface.and_then(|it| it.argument(0)) else {
            let why = "has no interface: its addresses are left out";
            outcome.untranslated(statement.line, &heading, why);
            return Vec::new();
        };
        let mut shared = Vec::new();
        let mut binds = true;
        for line in statement.inner() {
            let subject = format!("{heading}: {}", line.keyword());
            match line.keyword() {
                "virtual_ipaddress" | "virtual_ipaddress_excluded" => {
                    for it in line.inner() {
                        shared.extend(self.address(it, &heading, interface, outcome));
                    }
                }
                "no_accept" => {
                    binds = false;
                    let why = "is the L2Advertisement without bind: true: the host answers for the addresses, and does not have them";
                    outcome.note(line.line, &subject, why);
                }
                "track_interface" => track_interface(line, &subject, interface, outcome),
                "track_script" => {
                    let scripts = line.inner().iter().map(|it| (it.keyword().to_owned(), it.line));
                    self.scripts.extend(scripts);
                }
                _ => other(line, &subject, outcome),
            }
        }
        let name = statement.argument(0).unwrap_or_default();
        if shared.is_empty() {
            let why = "has no address that is translated";
            outcome.untranslated(statement.line, &heading, why);
        }
        if shared.len() > 1 {
            let why = "has several addresses: each has an owner of its own, and they may be on several hosts";
            outcome.note(statement.line, &heading, why);
        }
        self.write(name, &shared, binds);
        tracked_scripts(statement)
    }

    /// The scripts that are tracked and do not exist.
    pub(super) fn unknown_scripts<'a>(
        &'a self,
        known: &'a [Script<'_>],
    ) -> impl Iterator<Item = (&'a str, usize)> {
        let is_unknown = |name: &str| known.iter().all(|it| it.name != name);
        let scripts = self.scripts.iter().map(|(name, line)| (name.as_str(), *line));
        scripts.filter(move |(name, _)| is_unknown(name))
    }

    fn address(
        &mut self,
        line: &Statement,
        heading: &str,
        interface: &str,
        outcome: &mut Outcome,
    ) -> Option<Shared> {
        let text = line.keyword();
        let subject = format!("{heading}: {text}");
        let address = text.parse::<IpNet>().map(|it| it.addr()).or_else(|_| text.parse());
        let Ok(address) = address else {
            outcome.untranslated(line.line, &subject, "is no address as in 192.0.2.100/24");
            return None;
        };
        let is_link_local = match address {
            IpAddr::V4(it) => it.is_link_local(),
            IpAddr::V6(it) => it.is_unicast_link_local(),
        };
        if is_link_local {
            let why = "is a link-local address, which no Service has: it is left out";
            outcome.untranslated(line.line, &subject, why);
            return None;
        }
        if !self.addresses.insert(address) {
            outcome.untranslated(line.line, &subject, "is shared by another instance already");
            return None;
        }
        let mut own = interface.to_owned();
        let mut arguments = line.arguments();
        while let Some(word) = arguments.next() {
            match word {
                "dev" => own = arguments.next().unwrap_or(interface).to_owned(),
                "brd" | "broadcast" | "label" | "scope" | "peer" | "metric" | "preferred_lft" => {
                    let value = arguments.next().unwrap_or_default();
                    let why = format!(
                        "has no {word} {value}: the address is a /32 or /128 of the interface without it"
                    );
                    outcome.note(line.line, &subject, why);
                }
                "home" | "-nodad" | "mngtmpaddr" | "noprefixroute" | "autojoin" | "no_track"
                | "nodad" => {}
                _ => outcome.untranslated(line.line, &subject, format!("{word} is not known here")),
            }
        }
        Some(Shared { address, interface: own })
    }

    /// The objects of one instance: a pool and an L2Advertisement for each interface, a Service for each address.
    fn write(&mut self, name: &str, shared: &[Shared], binds: bool) {
        let mut interfaces: Vec<&str> = Vec::new();
        for it in shared {
            if !interfaces.contains(&it.interface.as_str()) {
                interfaces.push(&it.interface);
            }
        }
        for (position, interface) in interfaces.into_iter().enumerate() {
            let own: Vec<&Shared> = shared.iter().filter(|it| it.interface == interface).collect();
            let hosts = own.iter().map(|it| IpNet::from(it.address).to_string());
            let hosts: Vec<String> = hosts.collect();
            let suffixed = format!("{name}-{interface}");
            let name = self.pool_names.give(if position == 0 { name } else { &suffixed });
            let mut pool = Fields::default();
            // Other Services get addresses of other pools.
            pool.set("addresses", json!(hosts)).set("autoAssign", json!(false));
            self.pools.push(Translated::new("metallb.io/v1beta1", "IPAddressPool", &name, pool));
            let mut advertisement = Fields::default();
            advertisement.set("ipAddressPools", json!([name]));
            advertisement.set("interfaces", json!([interface])).set_if("bind", binds);
            let kind = "L2Advertisement";
            self.advertisements.push(Translated::new(
                "metallb.io/v1beta1",
                kind,
                &name,
                advertisement,
            ));
            for it in own {
                let mut service = Fields::default();
                service.set("type", json!("LoadBalancer"));
                let service =
                    Translated::new("v1", "Service", &self.service_names.give(&name), service)
                        .annotation("metallb.io/loadBalancerIPs", &it.address.to_string())
                        .comment("It has no ports: packets reach what listens on the host.");
                self.services.push(service);
            }
        }
    }

    pub(super) fn objects(self) -> impl Iterator<Item = Translated> {
        self.pools.into_iter().chain(self.advertisements).chain(self.services)
    }
}

/// The interface of the instance is watched in any case.
fn track_interface(statement: &Statement, subject: &str, interface: &str, outcome: &mut Outcome) {
    for line in statement.inner() {
        let is_own = line.keyword() == interface && line.words().count() == 1;
        if !is_own {
            let why = format!(
                "{} has no equal: a host owns no address while the interfaces of its L2Advertisement are without carrier, \
                 and others do not count",
                line.heading()
            );
            outcome.untranslated(line.line, subject, why);
        }
    }
}

fn other(line: &Statement, subject: &str, outcome: &mut Outcome) {
    let at = line.line;
    match line.keyword() {
        "interface" => {}
        "state" | "priority" => outcome.note(
            at,
            subject,
            "is for this host alone: to prefer a host, give the hosts labels (Node objects) and the L2Advertisement \
             preferredNodeSelectors",
        ),
        "advert_int" => {
            let why = "is fixed: another host takes over 350 ms after the last heartbeat";
            outcome.note(at, subject, why);
        }
        "authentication" => {
            let why = "is an option of the daemon: --member-key-file, with which heartbeats are encrypted";
            outcome.note(at, subject, why);
        }
        "unicast_peer" => {
            let hosts: Vec<&str> = line.inner().iter().map(Statement::keyword).collect();
            let why = format!("is an option of the daemon: --members {} --member-key-file PATH", hosts.join(","));
            outcome.note(at, subject, why);
        }
        "nopreempt" | "preempt_delay" => outcome.untranslated(
            at,
            subject,
            "has no equal: a host that returns owns its addresses again once it has heard the others for 3 s; to keep it out, \
             drain it before (fairway drain)",
        ),
        "garp_master_refresh" => refresh(line, subject, outcome),
        keyword if keyword.starts_with("garp_") => {
            let why = "is fixed: an address is announced when its owner changes, and again with --layer2-refresh";
            outcome.note(at, subject, why);
        }
        "use_vmac" | "vmac_xmit_base" | "use_ipvlan" | "use_vmac_addr" => {
            let why = "has no equal: addresses have the hardware address of the interface";
            outcome.untranslated(at, subject, why);
        }
        "virtual_routes" | "virtual_rules" => {
            let why = "has no equal: the owner of an address has no routes of its own; add them on all hosts";
            outcome.untranslated(at, subject, why);
        }
        "track_file" | "track_process" | "track_bfd" => outcome.untranslated(at, subject, TRACKED),
        "dont_track_primary" => {
            let why = "has no equal: a host without carrier on the interface owns no address";
            outcome.untranslated(at, subject, why);
        }
        keyword if keyword.starts_with("notify") => outcome.untranslated(at, subject, NOTIFY),
        "smtp_alert" => {
            let why = "is not there: Fairway sends no mail; the log and metrics have each change";
            outcome.untranslated(at, subject, why);
        }
        keyword if WITHOUT_EFFECT.contains(&keyword) => {}
        _ => outcome.untranslated(at, subject, "is no line that is known here: check its name"),
    }
}
