//! How is FRR configured, run and queried? zebra and bgpd (bfdd for BFD, mgmtd in FRR 10) in the
//! foreground with private sockets, the configuration loaded through vtysh, answers as vtysh's JSON.
//! Used by every case.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use super::bfd::{self, BfdSession, BfdSpec};
use super::installation::Installation;
use super::{
    Dialling, FEEDER_AS, Family, Notification, Origination, Received, Release, Router, RouterRoute,
    RouterSpec, Session, address_of, as_path_of, community_number, strings_of,
};
use crate::process::Process;
use crate::wait::{PATIENCE, wait_until};
use crate::{Site, make_directory};

pub(super) const ZEBRA: &str = "/usr/lib/frr/zebra";
pub(super) const BGPD: &str = "/usr/lib/frr/bgpd";
const BFDD: &str = "/usr/lib/frr/bfdd";
const MGMTD: &str = "/usr/lib/frr/mgmtd";
pub(super) const VTYSH: &str = "/usr/bin/vtysh";

/// The profile of its BFD sessions.
const PROFILE: &str = "neighbor";

pub(super) struct Frr {
    spec: RouterSpec,
    release: Release,
    installation: Installation,
    directory: PathBuf,
    log: PathBuf,
    /// In the order in which they end: bgpd closes its sessions before zebra goes.
    daemons: Vec<Process>,
}

impl Frr {
    pub(super) fn prepare(release: Release, site: &Site, spec: &RouterSpec) -> Result<Self> {
        let directory = site.directory.join("frr");
        make_directory(&directory)?;
        // mgmtd has its sockets here, whatever option it gets.
        let installation = Installation::new(release, &directory, "/run/frr");
        let log = crate::routers::log_in(&site.directory);
        let (spec, daemons) = (spec.clone(), Vec::new());
        Ok(Self { spec, release, installation, directory, log, daemons })
    }

    fn configuration(&self) -> String {
        let spec = &self.spec;
        let neighbour = spec.neighbour();
        let mut text = spec.bfd.map(|bfd| bfd.frr_profile(PROFILE)).unwrap_or_default();
        text += &format!(
            "debug bgp neighbor-events\n\
             router bgp {}\n \
             bgp router-id {}\n \
             no bgp ebgp-requires-policy\n \
             no bgp network import-check\n \
             no bgp default ipv4-unicast\n",
            spec.local_as, spec.router_id,
        );
        text += &self.restart_lines();
        let mut say = |words: &str| text += &format!(" neighbor {neighbour} {words}\n");
        match spec.interface {
            Some(_) if spec.is_internal() => say("interface remote-as internal"),
            Some(_) => say("interface remote-as external"),
            None => {
                say(&format!("remote-as {}", spec.peer_as));
                say(&format!("update-source {}", spec.local_address));
            }
        }
        say("shutdown");
        say(&format!("timers {} {}", spec.hold_time / 3, spec.hold_time));
        say("timers connect 1");
        if spec.dialling == Dialling::Waits && spec.interface.is_none() {
            say("passive");
        }
        if let Some(password) = &spec.password {
            say(&format!("password {password}"));
        }
        match spec.ttl_security_hops {
            Some(hops) => say(&format!("ttl-security hops {hops}")),
            None if spec.multihop => say("ebgp-multihop 64"),
            None => {}
        }
        if spec.extended_next_hop {
            say("capability extended-nexthop");
        }
        text += &self.role_lines();
        if let Some(feeder) = spec.feeder {
            text += &format!(" neighbor {feeder} remote-as {FEEDER_AS}\n");
        }
        text += &self.other_lines();
        if !spec.twins.is_empty() {
            text += " bgp bestpath as-path multipath-relax\n";
        }
        for twin in &spec.twins {
            text += &format!(
                " neighbor {twin} remote-as {}\n \
                 neighbor {twin} timers connect 1\n neighbor {twin} passive\n",
                spec.peer_as
            );
        }
        text += &self.family_lines();
        text += "exit\n";
        if let Some(interface) = spec.interface {
            // It dials the neighbour that it discovered, and is discovered by its own advertisements.
            text += &format!(
                "interface {interface}\n ipv6 nd ra-interval 3\n no ipv6 nd suppress-ra\nexit\n"
            );
        }
        let originated =
            spec.originated.iter().flat_map(|origination| self.origination(origination));
        text = originated.fold(text, |text, line| text + &line + "\n");
        // Whole, before the first connection.
        text += &format!("router bgp {}\n no neighbor {neighbour} shutdown\n", spec.local_as);
        // Before that FRR 10.3 would leave the neighbour Idle for good, now and then.
        text += &self.bfd_lines();
        text + "exit\n"
    }

    fn role_lines(&self) -> String {
        let (spec, neighbour) = (&self.spec, self.spec.neighbour());
        let mut text = String::new();
        if let Some(role) = spec.role {
            let strict = if spec.role_strict { " strict-mode" } else { "" };
            text += &format!(" neighbor {neighbour} local-role {}{strict}\n", role.word());
        }
        if spec.of_route_server {
            text += &format!(" no neighbor {neighbour} enforce-first-as\n");
        }
        text
    }

    fn other_lines(&self) -> String {
        let mut text = String::new();
        if !self.spec.others.is_empty() {
            // As the RFC has it: not by age, and MED in groups.
            text += " bgp bestpath compare-routerid\n bgp deterministic-med\n";
        }
        for (other, asn) in &self.spec.others {
            text += &format!(" neighbor {other} remote-as {asn}\n neighbor {other} passive\n");
        }
        text
    }

    fn bfd_lines(&self) -> String {
        let Some(bfd) = self.spec.bfd else { return String::new() };
        let neighbour = self.spec.neighbour();
        let mut text =
            format!(" neighbor {neighbour} bfd\n neighbor {neighbour} bfd profile {PROFILE}\n");
        if bfd.graceful {
            text += &format!(" neighbor {neighbour} bfd check-control-plane-failure\n");
        }
        text
    }

    fn restart_lines(&self) -> String {
        let Some(restart) = self.spec.graceful_restart else {
            return String::new();
        };
        let notifications = if restart.notifications { "" } else { "no " };
        let mut text = format!(
            " bgp graceful-restart\n \
             bgp graceful-restart preserve-fw-state\n \
             bgp graceful-restart restart-time {}\n \
             {notifications}bgp graceful-restart notification\n",
            restart.restart_seconds
        );
        if let Some(seconds) = restart.long_lived_seconds {
            text += &format!(" bgp long-lived-graceful-restart stale-time {seconds}\n");
        }
        text
    }

    fn family_lines(&self) -> String {
        let (spec, neighbour) = (&self.spec, self.spec.neighbour());
        let mut text = String::new();
        for family in &spec.families {
            text += &format!(" address-family {} unicast\n", family.word());
            let mut say = |words: &str| text += &format!("  neighbor {neighbour} {words}\n");
            say("activate");
            if spec.add_path {
                say("addpath-tx-all-paths");
            }
            if let Some(limit) = spec.max_prefixes {
                say(&format!("maximum-prefix {limit}"));
            }
            if let Some(feeder) = spec.feeder {
                text += &format!("  neighbor {feeder} activate\n");
            }
            for (other, _) in &spec.others {
                text += &format!("  neighbor {other} activate\n");
            }
            if !spec.others.is_empty() {
                text += "  maximum-paths 1\n  maximum-paths ibgp 1\n";
            }
            for twin in &spec.twins {
                text += &format!("  neighbor {twin} activate\n");
            }
            if !spec.twins.is_empty() {
                let ways = spec.twins.len() + 1;
                text += &format!("  maximum-paths {ways}\n  maximum-paths ibgp {ways}\n");
            }
            text += " exit-address-family\n";
        }
        text
    }

    /// The lines that originate a prefix. Its attributes are in a route map of its own.
    fn origination(&self, origination: &Origination) -> Vec<String> {
        let Origination { prefix, prepends, communities, large_communities, med } = origination;
        let asn = self.spec.local_as.to_string();
        let mut lines = vec![format!("route-map {} permit 10", route_map(origination))];
        if *prepends > 0 {
            lines.push(format!("set as-path prepend {}", vec![asn.as_str(); *prepends].join(" ")));
        }
        if !communities.is_empty() {
            lines.push(format!("set community {}", communities.join(" ")));
        }
        if !large_communities.is_empty() {
            lines.push(format!("set large-community {}", large_communities.join(" ")));
        }
        lines.extend(med.map(|med| format!("set metric {med}")));
        lines.extend(["exit".to_owned(), format!("router bgp {asn}")]);
        lines.push(format!("address-family {} unicast", origination.family().word()));
        lines.push(format!("network {prefix} route-map {}", route_map(origination)));
        lines.extend(["exit-address-family", "exit"].map(str::to_owned));
        lines
    }

    /// The lines that undo [`Frr::origination`].
    fn withdrawal(&self, origination: &Origination) -> Vec<String> {
        vec![
            format!("router bgp {}", self.spec.local_as),
            format!("address-family {} unicast", origination.family().word()),
            format!("no network {}", origination.prefix),
            "exit-address-family".to_owned(),
            "exit".to_owned(),
            format!("no route-map {}", route_map(origination)),
        ]
    }

    fn vtysh(&self, words: &[&str]) -> Result<String> {
        let directory = self.installation.seen("");
        let files = ["--vty_socket", directory.as_str(), "--config_dir", directory.as_str()];
        self.installation.run(VTYSH, &[files.as_slice(), words].concat())
    }

    fn configure<'a>(&self, lines: impl Iterator<Item = &'a str>) -> Result<()> {
        let lines = ["configure terminal"].into_iter().chain(lines);
        let words: Vec<&str> = lines.flat_map(|line| ["-c", line]).collect();
        self.vtysh(&words).map(drop)
    }

    fn ask(&self, command: &str) -> Result<Value> {
        let text = self.vtysh(&["-c", command])?;
        serde_json::from_str(&text)
            .with_context(|| format!("expected JSON from FRR's {command}: {text}"))
    }

    /// `show bgp neighbors` of our one neighbour.
    fn neighbour(&self) -> Result<Value> {
        let name = self.spec.neighbour();
        let mut answer = self.ask(&format!("show bgp neighbors {name} json"))?;
        let neighbour = answer.get_mut(&name).map(Value::take);
        neighbour.with_context(|| format!("expected neighbor {name} in FRR: {answer}"))
    }

    fn start_daemon(&self, site: &Site, program: &str, extra: &[String]) -> Result<Process> {
        let name = Path::new(program).file_name().unwrap_or_default().to_string_lossy();
        let file = |name: &str| self.installation.seen(name);
        // A socket of an earlier start would be taken for a sign of life.
        let socket = self.directory.join(format!("{name}.vty"));
        let _ = fs::remove_file(&socket);
        let mut arguments = vec!["-i".to_owned(), file(&format!("{name}.pid"))];
        arguments.extend(["-z".to_owned(), file("zserv.api")]);
        arguments.extend(["--vty_socket".to_owned(), file("")]);
        arguments.extend(["-A", "127.0.0.1", "-P", "0", "--log", "stdout"].map(str::to_owned));
        arguments.extend_from_slice(extra);
        let place = self.installation.within(&site.namespace);
        let mut process = Process::spawn(&place, Path::new(program), &arguments, &self.log)?;
        wait_until(&format!("FRR's {name} opens its socket"), PATIENCE, || {
            process.check_running()?;
            socket.exists().then_some(()).context("no socket yet")
        })?;
        Ok(process)
    }
}

impl Frr {
    fn start_bgpd(&mut self, site: &Site) -> Result<()> {
        let [option, file] = ["-f".to_owned(), self.installation.seen("empty.conf")];
        let port = self.spec.port.to_string();
        let bgpd = self.start_daemon(site, BGPD, &[option, file, "-p".to_owned(), port])?;
        self.daemons.insert(0, bgpd);
        // With `-b`, bgpd would hold its sessions back for seconds, in case more came.
        self.configure(self.configuration().lines())?;
        wait_until("FRR is ready for its neighbor", PATIENCE, || {
            self.check_running()?;
            // While it is Idle it refuses connections; without an address it has no neighbour to wait for.
            let session = self.session()?;
            ensure!(session.state != "Idle" || self.spec.interface.is_some(), "it is Idle");
            Ok(())
        })
    }
}

impl Router for Frr {
    fn start(&mut self, site: &Site) -> Result<()> {
        fs::write(self.directory.join("empty.conf"), "").context("writing empty.conf")?;
        fs::write(self.directory.join("vtysh.conf"), "service integrated-vtysh-config\n")
            .context("writing vtysh.conf")?;
        fs::write(self.directory.join("frr.conf"), self.configuration())
            .context("writing frr.conf")?;
        self.installation.run("chown", &["-R", "frr:frr", &self.installation.seen("")])?;
        let _ = fs::remove_file(self.directory.join("zserv.api"));
        self.daemons.clear();
        if self.release == Release::Trixie {
            let mgmtd = self.start_daemon(site, MGMTD, &[])?;
            self.daemons.push(mgmtd);
        }
        let empty = ["-f".to_owned(), self.installation.seen("empty.conf")];
        let zebra = self.start_daemon(site, ZEBRA, &empty)?;
        self.daemons.insert(0, zebra);
        if self.spec.bfd.is_some() {
            let mut arguments = empty.to_vec();
            if self.release == Release::Bookworm {
                arguments.extend(["--bfdctl".to_owned(), self.installation.seen("bfdd.sock")]);
            }
            let bfdd = self.start_daemon(site, BFDD, &arguments)?;
            self.daemons.insert(0, bfdd);
        }
        self.start_bgpd(site)
    }

    /// zebra has stayed.
    fn recover(&mut self, site: &Site, originated: &[Origination]) -> Result<()> {
        self.spec.originated = originated.to_vec();
        self.start_bgpd(site)
    }

    fn daemons(&mut self) -> &mut Vec<Process> {
        &mut self.daemons
    }

    fn originate(&mut self, originated: &[Origination]) -> Result<()> {
        let before = std::mem::replace(&mut self.spec.originated, originated.to_vec());
        let gone = before.iter().filter(|one| !originated.contains(one));
        let new = originated.iter().filter(|one| !before.contains(one));
        let mut lines: Vec<_> = gone.flat_map(|one| self.withdrawal(one)).collect();
        lines.extend(new.flat_map(|one| self.origination(one)));
        self.configure(lines.iter().map(String::as_str))
    }

    fn change_bfd(&mut self, bfd: BfdSpec) -> Result<()> {
        self.spec.bfd = Some(bfd);
        self.configure(bfd.frr_profile(PROFILE).lines())
    }

    fn bfd(&self) -> Result<BfdSession> {
        let peers = self.ask("show bfd peers json")?;
        bfd::frr_session(&peers, &self.ask("show bfd peers counters json")?)
    }

    fn session(&self) -> Result<Session> {
        let neighbour = self.neighbour()?;
        let state = neighbour.get("bgpState").and_then(Value::as_str).unwrap_or("(none)");
        let count = neighbour.get("connectionsEstablished").context("no connectionsEstablished")?;
        Ok(Session {
            established: state == "Established",
            state: state.to_owned(),
            incarnation: format!("established {count} times"),
        })
    }

    fn prefixes(&self, family: Family) -> Result<BTreeSet<String>> {
        let answer = self.ask(&format!("show bgp {} unicast json", family.word()))?;
        let routes = answer.get("routes").and_then(Value::as_object);
        Ok(routes.into_iter().flat_map(|routes| routes.keys().cloned()).collect())
    }

    fn paths(&self, prefix: &str) -> Result<Vec<RouterRoute>> {
        let family = Family::of(prefix).word();
        let answer = self.ask(&format!("show bgp {family} unicast {prefix} json"))?;
        let paths = answer.get("paths").and_then(Value::as_array).into_iter().flatten();
        let mut paths: Vec<&Value> = paths.collect();
        // The best one first, as BIRD has them.
        let is_best = |path: &&Value| path.pointer("/bestpath/overall") == Some(&Value::Bool(true));
        paths.sort_by_key(|path| !is_best(path));
        paths.into_iter().map(route_of).collect()
    }

    fn kept(&self, family: Family) -> Result<BTreeMap<String, bool>> {
        let answer = self.ask(&format!("show bgp {} unicast json", family.word()))?;
        let routes = answer.get("routes").and_then(Value::as_object).into_iter().flatten();
        let is_stale = |path: &Value| path.get("stale").and_then(Value::as_bool).unwrap_or(false);
        let stale = |paths: &Value| paths.as_array().into_iter().flatten().any(is_stale);
        Ok(routes.map(|(prefix, paths)| (prefix.clone(), stale(paths))).collect())
    }

    fn has_end_of_rib(&self, family: Family) -> Result<bool> {
        let neighbour = self.neighbour()?;
        let families = neighbour.pointer("/gracefulRestartInfo/endOfRibRecv");
        let name = match family {
            Family::Ipv4 => "ipv4Unicast",
            Family::Ipv6 => "ipv6Unicast",
        };
        Ok(families.and_then(|all| all.get(name)?.as_bool()).unwrap_or(false))
    }

    fn screen(&self, command: &str) -> Result<String> {
        self.vtysh(&["-c", command])
    }

    fn received(&self) -> Result<Received> {
        let neighbour = self.neighbour()?;
        let count = |key: &str| {
            let count = neighbour.pointer(&format!("/messageStats/{key}")).and_then(Value::as_u64);
            count.with_context(|| format!("no {key} in FRR's messageStats"))
        };
        Ok(Received { updates: count("updatesRecv")?, route_refreshes: count("routeRefreshRecv")? })
    }

    fn last_notification(&self) -> Result<Option<Notification>> {
        let neighbour = self.neighbour()?;
        let text = |key| neighbour.get(key).and_then(Value::as_str);
        if text("lastResetDueTo") != Some("BGP Notification received") {
            // Where the next connection was there before FRR had read the NOTIFICATION of this one, it forgets why.
            let log = fs::read_to_string(&self.log).context("FRR's log")?;
            return Ok(logged_notification(&log, &self.spec.neighbour()));
        }
        // Four hexadecimal digits: code, then subcode.
        let digits = text("lastErrorCodeSubcode").context("no lastErrorCodeSubcode")?;
        let number = u16::from_str_radix(digits, 16)
            .with_context(|| format!("expected lastErrorCodeSubcode as 0603, got {digits}"))?;
        let [code, subcode] = number.to_be_bytes();
        Ok(Some(Notification { code, subcode }))
    }

    fn last_shutdown_text(&self) -> Result<Option<String>> {
        let neighbour = self.neighbour()?;
        Ok(neighbour.get("lastShutdownDescription").and_then(Value::as_str).map(str::to_owned))
    }

    fn shut_down(&mut self, text: &str) -> Result<()> {
        let router = format!("router bgp {}", self.spec.local_as);
        let neighbour = format!("neighbor {} shutdown message {text}", self.spec.neighbour());
        self.configure([router.as_str(), neighbour.as_str()].into_iter())
    }
}

/// The last NOTIFICATION of this neighbour in the log.
fn logged_notification(log: &str, neighbour: &str) -> Option<Notification> {
    let mark = format!("%NOTIFICATION: received from neighbor {neighbour} ");
    let (_, rest) = log.rsplit_once(&mark)?;
    let (code, rest) = rest.split_once('/')?;
    let subcode = rest.split(' ').next()?;
    Some(Notification { code: code.parse().ok()?, subcode: subcode.parse().ok()? })
}

/// A path as `show bgp ... json` has it.
fn route_of(path: &Value) -> Result<RouterRoute> {
    let list_of = |attribute: &str| {
        strings_of(path.get(attribute).and_then(|value| value.get("list")))
            .into_iter()
            .map(community_number)
            .collect()
    };
    let number = |key: &str| path.get(key).and_then(Value::as_u64)?.try_into().ok();
    let as_path = path.pointer("/aspath/string").and_then(Value::as_str).context("no AS path")?;
    let next_hops = path.get("nexthops").and_then(Value::as_array).into_iter().flatten();
    // As `RT:65001:5 LB:65001:125000000 (1.000 Gbps)`.
    let extended = path.pointer("/extendedCommunity/string").and_then(Value::as_str);
    let mut extended = extended.unwrap_or_default().split_whitespace();
    let bandwidth = extended.find_map(|word| word.strip_prefix("LB:")?.split_once(':'));
    let clusters =
        path.pointer("/clusterList/list").and_then(Value::as_array).into_iter().flatten();
    Ok(RouterRoute {
        next_hops: next_hops
            .filter_map(|hop| hop.get("ip").and_then(Value::as_str))
            .map(address_of)
            .collect::<Result<_>>()?,
        // FRR's word for an empty path.
        as_path: if as_path == "Local" { Vec::new() } else { as_path_of(as_path)? },
        communities: list_of("community"),
        large_communities: list_of("largeCommunity"),
        local_preference: number("locPrf"),
        med: number("metric"),
        otc: number("otc"),
        originator: path.get("originatorId").and_then(Value::as_str).and_then(|it| it.parse().ok()),
        clusters: clusters.filter_map(|it| it.as_str()?.parse().ok()).collect(),
        link_bandwidth: bandwidth.and_then(|(_, bytes)| bytes.parse().ok()),
        usable: path.get("valid").and_then(Value::as_bool).unwrap_or(false)
            && path.get("bestpath").is_some(),
    })
}

fn route_map(origination: &Origination) -> String {
    format!("own-{}", origination.prefix)
}
