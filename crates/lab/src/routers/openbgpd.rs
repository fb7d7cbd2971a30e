//! How is OpenBGPD configured, run and queried? bgpd in the foreground with a private socket, bgpctl
//! with JSON answers. Used by every case.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use serde_json::Value;

use super::{
    Dialling, FEEDER_AS, Family, Notification, Origination, Received, Role, Router, RouterRoute,
    RouterSpec, Session, address_of, as_path_of, community_number, link_bandwidth_of, strings_of,
};
use crate::process::{Process, bounded, output_of};
use crate::{Site, make_directory};

/// Not FRR's program of the same name.
pub(super) const BGPD: &str = "/usr/sbin/bgpd";
pub(super) const BGPCTL: &str = "/usr/sbin/bgpctl";

/// Home of its unprivileged user; the package leaves it to systemd to make it.
const HOME: &str = "/run/openbgpd";

pub(super) struct Openbgpd {
    spec: RouterSpec,
    configuration: PathBuf,
    socket: PathBuf,
    log: PathBuf,
    daemons: Vec<Process>,
}

impl Openbgpd {
    pub(super) fn prepare(site: &Site, spec: &RouterSpec) -> Result<Self> {
        Ok(Self {
            spec: spec.clone(),
            configuration: site.directory.join("bgpd.conf"),
            socket: site.directory.join("bgpd.sock"),
            log: crate::routers::log_in(&site.directory),
            daemons: Vec::new(),
        })
    }

    /// Without `local-address`: with it, 7.7 sets no MD5 key on its listening socket.
    fn configuration(&self) -> String {
        let spec = &self.spec;
        let mut text = format!(
            "AS {}\n\
             router-id {}\n\
             fib-update no\n\
             connect-retry 1\n\
             socket \"{}\"\n\
             listen on {} port {}\n\
             neighbor {} {{\n  \
             remote-as {}\n  \
             holdtime {}\n",
            spec.local_as,
            spec.router_id,
            self.socket.display(),
            spec.local_address,
            spec.port,
            spec.peer_address,
            spec.peer_as,
            spec.hold_time,
        );
        if spec.dialling == Dialling::Waits {
            text += "  passive\n";
        }
        if let Some(password) = &spec.password {
            text += &format!("  tcp md5sig password \"{password}\"\n");
        }
        match spec.ttl_security_hops {
            Some(1) => text += "  ttl-security yes\n",
            Some(hops) => text += &format!("  multihop {hops}\n  ttl-security yes\n"),
            None if spec.multihop => text += "  multihop 64\n",
            None => {}
        }
        if spec.add_path {
            text += "  announce add-path recv yes\n  announce add-path send all\n";
        }
        if spec.of_route_server {
            text += "  enforce neighbor-as no\n";
        }
        if let Some(role) = spec.role {
            // Its word for the server's side is its own.
            let word = if role == Role::RsServer { "rs" } else { role.word() };
            let enforce = if spec.role_strict { " enforce" } else { "" };
            text += &format!("  announce policy {word}{enforce}\n");
        }
        if let Some(limit) = spec.max_prefixes {
            text += &format!("  max-prefix {limit} restart 1\n");
        }
        for (family, word) in [(Family::Ipv4, "IPv4"), (Family::Ipv6, "IPv6")] {
            let value = if spec.families.contains(&family) { "unicast" } else { "none" };
            text += &format!("  announce {word} {value}\n");
        }
        text += "}\n";
        if let Some(feeder) = spec.feeder {
            text += &format!("neighbor {feeder} {{\n  remote-as {FEEDER_AS}\n}}\n");
        }
        text += "allow from any\nallow to any\n";
        text + &spec.originated.iter().map(origination).collect::<String>()
    }

    fn write_configuration(&self) -> Result<()> {
        fs::write(&self.configuration, self.configuration()).context("writing bgpd.conf")?;
        // It refuses a file that others can read.
        fs::set_permissions(&self.configuration, Permissions::from_mode(0o600))
            .context("closing bgpd.conf to others")
    }

    fn ask(&self, words: &[&str]) -> Result<Value> {
        let mut command = bounded(BGPCTL);
        command.arg("-s").arg(&self.socket).arg("-j").args(words);
        let text = output_of(&mut command)?;
        serde_json::from_str(&text)
            .with_context(|| format!("expected JSON from bgpctl {}: {text}", words.join(" ")))
    }

    fn neighbour(&self) -> Result<Value> {
        let answer = self.ask(&["show", "neighbor", &self.spec.neighbour()])?;
        let neighbour = answer.pointer("/neighbors/0");
        neighbour.cloned().with_context(|| format!("expected a neighbor from bgpctl: {answer}"))
    }

    /// The last log line with these words; returns what follows them.
    fn last_logged(&self, words: &str) -> Result<Option<String>> {
        let log = fs::read_to_string(&self.log).context("reading bgpd's log")?;
        let mut found = log.lines().rev().filter_map(|line| line.split_once(words));
        Ok(found.next().map(|(_, rest)| rest.to_owned()))
    }

    fn routes(&self, words: &[&str]) -> Result<Vec<Value>> {
        let mut answer = self.ask(&[&["show", "rib"], words].concat())?;
        let routes = answer.get_mut("rib").map(Value::take);
        Ok(routes.and_then(|routes| routes.as_array().cloned()).unwrap_or_default())
    }
}

impl Router for Openbgpd {
    fn start(&mut self, site: &Site) -> Result<()> {
        make_directory(Path::new(HOME))?;
        // On an IPv4 session 7.7 takes the next hop of IPv6 routes from the loopback interface.
        let next_hop = format!("{}/128", self.spec.local_ipv6);
        site.namespace.ip(&["address", "replace", &next_hop, "dev", "lo"])?;
        self.write_configuration()?;
        let _ = fs::remove_file(&self.socket);
        let file = self.configuration.to_string_lossy().into_owned();
        let arguments = ["-d".to_owned(), "-v".to_owned(), "-f".to_owned(), file];
        let daemon = Process::spawn(&site.namespace, Path::new(BGPD), &arguments, &self.log)?;
        self.keep("OpenBGPD", daemon)
    }

    /// It has no word for that; a start is a start.
    fn recover(&mut self, site: &Site, originated: &[Origination]) -> Result<()> {
        self.spec.originated = originated.to_vec();
        self.start(site)
    }

    fn daemons(&mut self) -> &mut Vec<Process> {
        &mut self.daemons
    }

    fn originate(&mut self, originated: &[Origination]) -> Result<()> {
        self.spec.originated = originated.to_vec();
        self.write_configuration()?;
        output_of(bounded(BGPCTL).arg("-s").arg(&self.socket).arg("reload")).map(drop)
    }

    fn session(&self) -> Result<Session> {
        let neighbour = self.neighbour()?;
        let state = neighbour.get("state").and_then(Value::as_str).context("no session state")?;
        // It counts messages over all sessions of a neighbour.
        let opens = neighbour.pointer("/stats/message/received/open").and_then(Value::as_u64);
        Ok(Session {
            established: state == "Established",
            state: state.to_owned(),
            incarnation: format!("{} OPENs", opens.unwrap_or(0)),
        })
    }

    fn prefixes(&self, family: Family) -> Result<BTreeSet<String>> {
        let word = match family {
            Family::Ipv4 => "inet",
            Family::Ipv6 => "inet6",
        };
        let routes = self.routes(&[word])?;
        let prefixes = routes.iter().filter_map(|route| route.get("prefix")?.as_str());
        Ok(prefixes.map(str::to_owned).collect())
    }

    fn paths(&self, prefix: &str) -> Result<Vec<RouterRoute>> {
        let routes = self.routes(&["detail"])?;
        let is_it = |route: &&Value| route.get("prefix").and_then(Value::as_str) == Some(prefix);
        routes.iter().filter(is_it).map(route_of).collect()
    }

    fn kept(&self, family: Family) -> Result<BTreeMap<String, bool>> {
        let prefixes = self.prefixes(family)?;
        let routes = self.routes(&["detail"])?;
        let stale = routes
            .iter()
            .filter(|route| route.get("stale").and_then(Value::as_bool).unwrap_or(false));
        let stale: BTreeSet<_> = stale.filter_map(|route| route.get("prefix")?.as_str()).collect();
        let mark = |prefix: String| (prefix.clone(), stale.contains(prefix.as_str()));
        Ok(prefixes.into_iter().map(mark).collect())
    }

    fn has_end_of_rib(&self, _: Family) -> Result<bool> {
        let neighbour = self.neighbour()?;
        let eors = neighbour.pointer("/stats/update/received/eor").and_then(Value::as_u64);
        Ok(eors.is_some_and(|eors| eors > 0))
    }

    fn received(&self) -> Result<Received> {
        let neighbour = self.neighbour()?;
        let count = |key: &str| {
            let count = neighbour.pointer(&format!("/stats/message/received/{key}"));
            let count = count.and_then(Value::as_u64);
            count.with_context(|| format!("no {key} in OpenBGPD's counters: {neighbour}"))
        };
        Ok(Received { updates: count("updates")?, route_refreshes: count("route_refresh")? })
    }

    /// It forgets the error when the session is back, its log does not.
    fn last_notification(&self) -> Result<Option<Notification>> {
        let neighbour = self.neighbour()?;
        let shown = neighbour.get("last_error_received").and_then(Value::as_str);
        let logged = self.last_logged(": received notification: ")?;
        let Some(received) = shown.map(str::to_owned).or(logged) else {
            return Ok(None);
        };
        let (code, subcode) = match received.as_str() {
            "Cease, received max-prefix exceeded" => (6, 1),
            "Cease, administratively down" => (6, 2),
            "Cease, peer unconfigured" => (6, 3),
            "Cease, administrative reset" => (6, 4),
            other if other.starts_with("HoldTimer expired") => (4, 0),
            other => {
                bail!("OpenBGPD received a notification that the suite does not know: {other}")
            }
        };
        Ok(Some(Notification { code, subcode }))
    }

    fn last_shutdown_text(&self) -> Result<Option<String>> {
        let text = self.last_logged(": received shutdown reason: ")?;
        Ok(text.map(|text| text.trim_matches('"').to_owned()))
    }

    fn shut_down(&mut self, text: &str) -> Result<()> {
        let mut command = bounded(BGPCTL);
        command.arg("-s").arg(&self.socket).args(["neighbor", &self.spec.neighbour(), "down"]);
        output_of(command.arg(text)).map(drop)
    }
}

/// A path as `show rib detail` has it.
fn route_of(route: &Value) -> Result<RouterRoute> {
    let text = |key| route.get(key).and_then(Value::as_str);
    let number = |key| route.get(key).and_then(Value::as_u64)?.try_into().ok();
    let communities = |key| strings_of(route.get(key)).into_iter().map(community_number);
    let flag = |key| route.get(key).and_then(Value::as_bool).unwrap_or(false);
    // As `[4] 65001:1290693416`: a type that it has no name for, and the value.
    let mut extended = strings_of(route.get("extended_communities")).into_iter();
    let bandwidth = extended.find_map(|community| {
        let value = community.strip_prefix("[4] ").or(community.strip_prefix("[16388] "))?;
        value.split_once(':')?.1.parse().ok()
    });
    let mut attributes = route.get("attributes").and_then(Value::as_array).into_iter().flatten();
    let otc = attributes.find(|one| one.get("type").and_then(Value::as_str) == Some("OTC"));
    let of_type = |wanted: &'static str| {
        let all = route.get("attributes").and_then(Value::as_array).into_iter().flatten();
        all.filter(move |one| one.get("type").and_then(Value::as_str) == Some(wanted))
    };
    Ok(RouterRoute {
        next_hops: vec![address_of(text("exit_nexthop").context("no exit_nexthop")?)?],
        as_path: as_path_of(text("aspath").unwrap_or_default())?,
        communities: communities("communities").collect(),
        large_communities: communities("large_communities").collect(),
        local_preference: number("localpref"),
        med: number("metric"),
        originator: of_type("Originator Id")
            .find_map(|it| it.get("originator")?.as_str()?.parse().ok()),
        clusters: of_type("Cluster Id List")
            .flat_map(|it| strings_of(it.get("cluster_list")))
            .filter_map(|it| it.parse().ok())
            .collect(),
        otc: otc.and_then(|otc| otc.get("as")?.as_u64()?.try_into().ok()),
        link_bandwidth: bandwidth.map(link_bandwidth_of),
        usable: flag("valid") && flag("best"),
    })
}

fn origination(origination: &Origination) -> String {
    let Origination { prefix, prepends, communities, large_communities, med } = origination;
    let mut said: Vec<String> = Vec::new();
    said.extend((*prepends > 0).then(|| format!("prepend-self {prepends}")));
    said.extend(communities.iter().map(|community| format!("community {community}")));
    said.extend(large_communities.iter().map(|community| format!("large-community {community}")));
    said.extend(med.map(|med| format!("med {med}")));
    let said =
        if said.is_empty() { String::new() } else { format!(" set {{ {} }}", said.join(" ")) };
    format!("network {prefix}{said}\n")
}
