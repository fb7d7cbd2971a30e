//! How is GoBGP configured, run and queried? gobgpd with a TOML file, gobgp in the same namespace
//! with JSON answers, and gobgpd's JSON log for notifications. Used by every case.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use super::{
    Dialling, FEEDER_AS, Family, Notification, Origination, Received, Router, RouterRoute,
    RouterSpec, Session, address_of,
};
use crate::Site;
use crate::process::{Process, bounded, output_of};
use crate::wait::{PATIENCE, wait_until};

pub(super) const GOBGPD: &str = "/usr/bin/gobgpd";
pub(super) const GOBGP: &str = "/usr/bin/gobgp";

/// Path attribute types, RFC 4271, 1997, 4360, 4760 and 8092.
const AS_PATH: u64 = 2;
const NEXT_HOP: u64 = 3;
const MULTI_EXIT_DISC: u64 = 4;
const LOCAL_PREF: u64 = 5;
const COMMUNITIES: u64 = 8;
const ORIGINATOR_ID: u64 = 9;
const CLUSTER_LIST: u64 = 10;
const MP_REACH_NLRI: u64 = 14;
const EXTENDED_COMMUNITIES: u64 = 16;
const LARGE_COMMUNITY: u64 = 32;

const ESTABLISHED: u64 = 6;

pub(super) struct Gobgp {
    spec: RouterSpec,
    configuration: PathBuf,
    log: PathBuf,
    namespace: String,
    daemons: Vec<Process>,
    /// Its neighbour has to wait: an operator keeps the session down.
    is_held_back: bool,
}

impl Gobgp {
    pub(super) fn prepare(site: &Site, spec: &RouterSpec) -> Result<Self> {
        Ok(Self {
            spec: spec.clone(),
            configuration: site.directory.join("gobgpd.toml"),
            log: crate::routers::log_in(&site.directory),
            namespace: site.namespace.name().to_owned(),
            daemons: Vec::new(),
            is_held_back: false,
        })
    }

    fn configuration(&self) -> String {
        let spec = &self.spec;
        let password = spec.password.as_deref().unwrap_or_default();
        let local = spec.local_address;
        let mut text = format!(
            "[global.config]\nas = {}\nrouter-id = \"{}\"\nport = {}\n",
            spec.local_as, spec.router_id, spec.port
        );
        let neighbour = match spec.interface {
            Some(interface) => format!("neighbor-interface = \"{interface}\""),
            None => {
                if spec.feeder.is_none() {
                    text += &format!("local-address-list = [\"{local}\"]\n");
                }
                format!("neighbor-address = \"{}\"", spec.peer_address)
            }
        };
        text += &format!(
            "[[neighbors]]\n\
             [neighbors.config]\n\
             {neighbour}\n\
             peer-as = {}\n\
             admin-down = {}\n\
             auth-password = \"{password}\"\n\
             [neighbors.timers.config]\n\
             connect-retry = 1\n\
             idle-hold-time-after-reset = 1\n\
             hold-time = {}\n\
             keepalive-interval = {}\n\
             [neighbors.transport.config]\n\
             passive-mode = {}\n",
            spec.peer_as,
            self.is_held_back,
            spec.hold_time,
            spec.hold_time / 3,
            spec.dialling == Dialling::Waits,
        );
        if spec.interface.is_none() {
            text += &format!("local-address = \"{local}\"\n");
        }
        match spec.ttl_security_hops {
            Some(hops) => {
                let least = 256 - u16::from(hops);
                text += "[neighbors.ttl-security.config]\nenabled = true\n";
                text += &format!("ttl-min = {least}\n");
            }
            None if spec.multihop => {
                text += "[neighbors.ebgp-multihop.config]\nenabled = true\nmultihop-ttl = 64\n";
            }
            None => {}
        }
        text += &self.family_lines();
        if let Some(feeder) = spec.feeder {
            text += "[[neighbors]]\n[neighbors.config]\n";
            text += &format!("neighbor-address = \"{feeder}\"\npeer-as = {FEEDER_AS}\n");
            text += "[neighbors.transport.config]\npassive-mode = true\n";
        }
        text
    }

    /// The families of its neighbour, and how their routes outlive a restart.
    fn family_lines(&self) -> String {
        let spec = &self.spec;
        let mut text = String::new();
        if let Some(restart) = spec.graceful_restart {
            text += &format!(
                "[neighbors.graceful-restart.config]\n\
                 enabled = true\n\
                 restart-time = {}\n\
                 notification-enabled = {}\n\
                 long-lived-enabled = {}\n",
                restart.restart_seconds,
                restart.notifications,
                restart.long_lived_seconds.is_some()
            );
        }
        for family in &spec.families {
            text += "[[neighbors.afi-safis]]\n[neighbors.afi-safis.config]\n";
            text += &format!("afi-safi-name = \"{}-unicast\"\n", family.word());
            if let Some(restart) = spec.graceful_restart {
                text += "[neighbors.afi-safis.mp-graceful-restart.config]\nenabled = true\n";
                if let Some(seconds) = restart.long_lived_seconds {
                    text += "[neighbors.afi-safis.long-lived-graceful-restart.config]\n";
                    text += &format!("enabled = true\nrestart-time = {seconds}\n");
                }
            }
            if spec.add_path {
                text += "[neighbors.afi-safis.add-paths.config]\nreceive = true\nsend-max = 8\n";
            }
            if let Some(limit) = spec.max_prefixes {
                text += "[neighbors.afi-safis.prefix-limit.config]\n";
                text += &format!("max-prefixes = {limit}\n");
            }
        }
        text
    }

    /// Router advertisements, by which the neighbour finds it: GoBGP sends none itself.
    fn advertise(&self, site: &Site, interface: &str) -> Result<Process> {
        let file = |name: &str| site.directory.join(name);
        let text = format!(
            "router id 10.0.0.9;\nprotocol device {{ }}\nprotocol radv {{ interface \"{interface}\" \
             {{ min ra interval 3; max ra interval 4; }}; }}\n"
        );
        fs::write(file("radv.conf"), text).context("writing radv.conf")?;
        let mut arguments = vec!["-f".to_owned()];
        for (option, name) in [("-c", "radv.conf"), ("-s", "radv.ctl"), ("-P", "radv.pid")] {
            arguments.extend([option.to_owned(), file(name).to_string_lossy().into_owned()]);
        }
        Process::spawn(&site.namespace, Path::new(super::bird::BIRD), &arguments, &self.log)
    }

    fn start_with(&mut self, site: &Site, options: &[&str]) -> Result<()> {
        fs::write(&self.configuration, self.configuration()).context("writing gobgpd.toml")?;
        let file = self.configuration.to_string_lossy().into_owned();
        let mut arguments = vec!["--config-file".to_owned(), file];
        arguments.extend(["--api-hosts", "127.0.0.1:50051", "--pprof-disable"].map(str::to_owned));
        arguments.extend(options.iter().map(|option| (*option).to_owned()));
        let daemon = Process::spawn(&site.namespace, Path::new(GOBGPD), &arguments, &self.log)?;
        self.keep("gobgpd", daemon)?;
        self.spec.originated.iter().try_for_each(|origination| self.add(origination))
    }

    fn run(&self, words: &[&str]) -> Result<String> {
        let mut command = bounded("ip");
        command.args(["netns", "exec", &self.namespace, GOBGP]).args(words);
        output_of(&mut command)
    }

    fn add(&self, origination: &Origination) -> Result<()> {
        let Origination { prefix, prepends, communities, large_communities, med } = origination;
        let family = origination.family().word();
        let asn = self.spec.local_as.to_string();
        let mut words = ["global", "rib", "add", "-a", family, prefix, "origin", "igp"]
            .map(str::to_owned)
            .to_vec();
        let mut say = |attribute: &str, value: String| words.extend([attribute.to_owned(), value]);
        if *prepends > 0 {
            say("aspath", vec![asn.as_str(); *prepends].join(" "));
        }
        if !communities.is_empty() {
            say("community", communities.join(","));
        }
        if !large_communities.is_empty() {
            say("large-community", large_communities.join(","));
        }
        if let Some(med) = med {
            say("med", med.to_string());
        }
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        self.run(&words).map(drop)
    }

    /// The last NOTIFICATION. gobgp does not show it, the daemon's log does.
    fn last_received(&self) -> Result<Option<Value>> {
        let log = fs::read_to_string(&self.log).context("reading gobgpd's log")?;
        let entries = log.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        let mut received = entries.filter(|entry| {
            entry.get("msg").and_then(Value::as_str) == Some("received notification")
        });
        Ok(received.next_back())
    }

    /// The neighbour with its sessions. One on an interface is listed by its address alone.
    fn neighbour(&self) -> Result<Value> {
        if self.spec.interface.is_none() {
            return self.ask(&["neighbor", &self.spec.neighbour()]);
        }
        let mut all = self.ask(&["neighbor"])?;
        let first = all.get_mut(0).map(Value::take);
        first.with_context(|| format!("expected a neighbor from gobgp: {all}"))
    }

    fn ask(&self, words: &[&str]) -> Result<Value> {
        let text = self.run(&[&["--json"], words].concat())?;
        serde_json::from_str(&text)
            .with_context(|| format!("expected JSON from gobgp {}: {text}", words.join(" ")))
    }
}

impl Router for Gobgp {
    fn start(&mut self, site: &Site) -> Result<()> {
        if let Some(interface) = self.spec.interface {
            self.daemons.push(self.advertise(site, interface)?);
            // It looks for its neighbour once, and ends when there is none.
            wait_until("the kernel knows GoBGP's neighbor", PATIENCE, || {
                let known = site.namespace.ip(&["-6", "neighbor", "show", "dev", interface])?;
                ensure!(known.contains("fe80:"), "it knows {known:?}");
                Ok(())
            })?;
        }
        self.start_with(site, &[])
    }

    fn recover(&mut self, site: &Site, originated: &[Origination]) -> Result<()> {
        self.spec.originated = originated.to_vec();
        // Its file has no routes: without them it would send End-of-RIB too early.
        self.is_held_back = true;
        self.start_with(site, &["--graceful-restart"])?;
        self.is_held_back = false;
        self.run(&["neighbor", &self.spec.neighbour(), "enable"]).map(drop)
    }

    fn daemons(&mut self) -> &mut Vec<Process> {
        &mut self.daemons
    }

    fn originate(&mut self, originated: &[Origination]) -> Result<()> {
        let before = std::mem::replace(&mut self.spec.originated, originated.to_vec());
        for gone in before.iter().filter(|one| !originated.contains(one)) {
            self.run(&["global", "rib", "del", "-a", gone.family().word(), &gone.prefix])?;
        }
        originated.iter().filter(|one| !before.contains(one)).try_for_each(|one| self.add(one))
    }

    fn session(&self) -> Result<Session> {
        let answer = self.neighbour()?;
        let number = |pointer| answer.pointer(pointer).and_then(Value::as_u64);
        let state = number("/state/session_state")
            .with_context(|| format!("expected a session state from gobgp: {answer}"))?;
        // It counts messages over all sessions of a neighbour.
        let opens = number("/state/messages/received/open").unwrap_or(0);
        let since = number("/timers/state/uptime/seconds").unwrap_or(0);
        let words = ["Unknown", "Idle", "Connect", "Active", "OpenSent", "OpenConfirm"];
        let word = usize::try_from(state).ok().and_then(|state| words.get(state));
        Ok(Session {
            established: state == ESTABLISHED,
            state: word.copied().unwrap_or("Established").to_owned(),
            incarnation: format!("{opens} OPENs, up since {since}"),
        })
    }

    fn prefixes(&self, family: Family) -> Result<BTreeSet<String>> {
        let answer = self.ask(&["global", "rib", "-a", family.word()])?;
        Ok(answer.as_object().into_iter().flat_map(|routes| routes.keys().cloned()).collect())
    }

    fn paths(&self, prefix: &str) -> Result<Vec<RouterRoute>> {
        let answer = self.ask(&["global", "rib", "-a", Family::of(prefix).word(), prefix])?;
        let paths = answer.get(prefix).and_then(Value::as_array).into_iter().flatten();
        paths.map(route_of).collect()
    }

    fn kept(&self, family: Family) -> Result<BTreeMap<String, bool>> {
        let table = self.ask(&["global", "rib", "-a", family.word()])?;
        let is_stale = |path: &Value| path.get("stale").and_then(Value::as_bool).unwrap_or(false);
        let stale = |paths: &Value| paths.as_array().into_iter().flatten().any(is_stale);
        let routes = table.as_object().into_iter().flatten();
        Ok(routes.map(|(prefix, paths)| (prefix.clone(), stale(paths))).collect())
    }

    fn has_end_of_rib(&self, family: Family) -> Result<bool> {
        let neighbour = self.neighbour()?;
        let number: u64 = match family {
            Family::Ipv4 => 1,
            Family::Ipv6 => 2,
        };
        let families = neighbour.get("afi_safis").and_then(Value::as_array).into_iter().flatten();
        let mut of_family = families.filter(|one| {
            one.pointer("/config/family/afi").and_then(Value::as_u64) == Some(number)
        });
        let received = "/mp_graceful_restart/state/end_of_rib_received";
        Ok(of_family.any(|one| one.pointer(received).and_then(Value::as_bool) == Some(true)))
    }

    fn received(&self) -> Result<Received> {
        let answer = self.neighbour()?;
        // What is zero is left out.
        let count = |key: &str| {
            answer.pointer(&format!("/state/messages/received/{key}")).and_then(Value::as_u64)
        };
        Ok(Received {
            updates: count("update").unwrap_or(0),
            route_refreshes: count("refresh").unwrap_or(0),
        })
    }

    fn last_notification(&self) -> Result<Option<Notification>> {
        let number = |entry: &Value, key| u8::try_from(entry.get(key)?.as_u64()?).ok();
        Ok(self.last_received()?.and_then(|entry| {
            let (code, subcode) = (number(&entry, "Code")?, number(&entry, "Subcode")?);
            Some(Notification { code, subcode })
        }))
    }

    fn last_shutdown_text(&self) -> Result<Option<String>> {
        let entry = self.last_received()?.unwrap_or_default();
        Ok(entry.get("Communicated-Reason").and_then(Value::as_str).map(str::to_owned))
    }

    fn shut_down(&mut self, text: &str) -> Result<()> {
        let neighbour = self.spec.neighbour();
        self.run(&["neighbor", &neighbour, "shutdown", "--reason", text]).map(drop)
    }
}

/// A path as `global rib` has it.
fn route_of(path: &Value) -> Result<RouterRoute> {
    let attributes = path.get("attrs").and_then(Value::as_array).context("no attributes")?;
    let attribute = |kind: u64| {
        attributes.iter().find(|one| one.get("type").and_then(Value::as_u64) == Some(kind))
    };
    let number =
        |kind, key| attribute(kind).and_then(|one| one.get(key)?.as_u64()?.try_into().ok());
    let list = |kind, key| {
        let list = attribute(kind).and_then(|one| one.get(key)?.as_array());
        list.into_iter().flatten()
    };
    let next_hop = attribute(NEXT_HOP).or_else(|| attribute(MP_REACH_NLRI));
    let next_hop = next_hop.and_then(|attribute| attribute.get("nexthop")?.as_str());
    let mut extended = list(EXTENDED_COMMUNITIES, "value");
    Ok(RouterRoute {
        next_hops: vec![address_of(next_hop.context("no next hop")?)?],
        as_path: list(AS_PATH, "as_paths")
            .flat_map(|segment| numbers_of(segment.get("asns")))
            .collect(),
        communities: attribute(COMMUNITIES)
            .into_iter()
            .flat_map(|attribute| numbers_of(attribute.get("communities")))
            .map(|number| format!("{}:{}", number >> 16, number & 0xffff))
            .collect(),
        large_communities: list(LARGE_COMMUNITY, "value")
            .map(large_community)
            .collect::<Result<_>>()?,
        local_preference: number(LOCAL_PREF, "value"),
        med: number(MULTI_EXIT_DISC, "metric"),
        // It knows no roles.
        otc: None,
        originator: attribute(ORIGINATOR_ID).and_then(|it| it.get("value")?.as_str()?.parse().ok()),
        clusters: list(CLUSTER_LIST, "value").filter_map(|it| it.as_str()?.parse().ok()).collect(),
        link_bandwidth: extended.find_map(|one| one.get("bandwidth")?.as_f64()),
        usable: path.get("best").and_then(Value::as_bool).unwrap_or(false),
    })
}

fn numbers_of(list: Option<&Value>) -> impl Iterator<Item = u32> {
    let numbers = list.and_then(Value::as_array).into_iter().flatten();
    numbers.filter_map(|number| number.as_u64()?.try_into().ok())
}

fn large_community(value: &Value) -> Result<String> {
    // A part that is zero is left out.
    let part = |key| value.get(key).map_or(Some(0), Value::as_u64);
    let parts = (part("ASN"), part("LocalData1"), part("LocalData2"));
    let (Some(global), Some(first), Some(second)) = parts else {
        anyhow::bail!("expected a large community from gobgp, got {value}");
    };
    Ok(format!("{global}:{first}:{second}"))
}
