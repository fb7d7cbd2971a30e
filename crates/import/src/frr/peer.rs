//! Neighbors as BGPPeers.
//!
//! Answers which fields a neighbor has, from its lines and those of its group. Knows no routes of ours; `originate` announces
//! them to the peers.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::bfd::Profiles;
use super::lists::{Lists, number};
use super::route_map::RouteMaps;
use super::router::{Router, asn_of};
use super::settings::{Scope, Setting, Settings};
use crate::object::{Fields, Names, Translated};
use crate::outcome::Outcome;

/// What a neighbor is.
#[derive(Debug, Clone)]
pub(super) enum Remote {
    Address(std::net::IpAddr),
    Interface(String),
    Range(ipnet::IpNet),
}

/// What is exchanged with a neighbor.
#[derive(Debug, Clone, Copy)]
pub(super) struct Families {
    pub(super) ipv4: bool,
    pub(super) ipv6: bool,
}

impl Families {
    pub(super) fn has(self, ipv6: bool) -> bool {
        if ipv6 { self.ipv6 } else { self.ipv4 }
    }
}

/// A neighbor with everything that it inherits.
#[derive(Debug)]
pub(super) struct Neighbor {
    pub(super) remote: Remote,
    /// The name of its BGPPeer.
    pub(super) name: String,
    pub(super) settings: Settings,
    pub(super) line: usize,
    pub(super) text: String,
    pub(super) is_external: bool,
    /// Where one AS is configured.
    pub(super) asn: Option<u32>,
    pub(super) requires_policy: bool,
    pub(super) families: Families,
}

impl Neighbor {
    /// Whether the session has an address family, exchanged or not.
    pub(super) fn carries(&self, ipv6: bool) -> bool {
        match &self.remote {
            Remote::Interface(_) => true,
            Remote::Address(address) => address.is_ipv6() == ipv6 || self.families.has(ipv6),
            Remote::Range(range) => range.addr().is_ipv6() == ipv6 || self.families.has(ipv6),
        }
    }
}

/// What peers are made of.
pub(super) struct Scene<'a> {
    pub(super) router: &'a Router,
    pub(super) lists: &'a Lists,
    pub(super) maps: &'a RouteMaps,
    /// Prefixes with a static route that drops packets.
    pub(super) blackholes: &'a BTreeSet<ipnet::IpNet>,
    /// Whether an external neighbor needs a policy where no line says so.
    pub(super) requires_policy: bool,
    /// Hold and keepalive time of the profile `datacenter`.
    pub(super) has_short_timers: bool,
}

impl Scene<'_> {
    /// The neighbors that become peers. What is wrong with the others is told.
    pub(super) fn neighbors(&self, names: &mut Names, outcome: &mut Outcome) -> Vec<Neighbor> {
        let mut all = Vec::new();
        for (name, own) in &self.router.neighbors {
            let group = own.on(Scope::Session, "peer-group").and_then(|it| it.words.first());
            let settings = own.over(group.and_then(|it| self.router.groups.get(it)));
            let Some(first) = own.iter().map(|(_, _, it)| it).min_by_key(|it| it.line) else {
                continue;
            };
            let interface = settings.on(Scope::Session, "interface");
            let on_link = interface.and_then(|it| it.words.first()).filter(|it| *it != "v6only");
            let remote = match (name.parse::<std::net::IpAddr>(), on_link) {
                // The router on the link is found without its address.
                (Ok(std::net::IpAddr::V6(address)), Some(link))
                    if address.is_unicast_link_local() =>
                {
                    Remote::Interface(link.clone())
                }
                (Ok(address), _) => Remote::Address(address),
                (Err(_), _) if interface.is_some() => Remote::Interface(name.clone()),
                (Err(_), _) => {
                    let why = "is neither an address nor an interface, nor a peer group that is defined above";
                    outcome.untranslated(first.line, &first.text, why);
                    continue;
                }
            };
            let place = (first.line, first.text.as_str());
            all.extend(self.neighbor(remote, name, settings, place, names, outcome));
        }
        for range in &self.router.ranges {
            let place = (range.line, range.text.as_str());
            let Some(group) = self.router.groups.get(&range.group) else {
                outcome.untranslated(
                    place.0,
                    place.1,
                    format!("peer group {} is not defined", range.group),
                );
                continue;
            };
            let remote = Remote::Range(range.range);
            all.extend(self.neighbor(remote, &range.group, group.clone(), place, names, outcome));
        }
        all
    }

    fn neighbor(
        &self,
        remote: Remote,
        name: &str,
        settings: Settings,
        (line, text): (usize, &str),
        names: &mut Names,
        outcome: &mut Outcome,
    ) -> Option<Neighbor> {
        let Some(remote_as) = settings.on(Scope::Session, "remote-as") else {
            outcome.untranslated(
                line,
                text,
                "the neighbor has no remote-as, so that FRR has no session with it",
            );
            return None;
        };
        let own = self.own_asn(&settings);
        let (asn, is_external) = match remote_as.words().as_slice() {
            ["internal"] => (Some(own), false),
            ["external"] => (None, true),
            [asn] => match asn_of(asn) {
                Ok(asn) => (Some(asn), asn != own),
                Err(why) => {
                    outcome.untranslated(remote_as.line, &remote_as.text, why);
                    return None;
                }
            },
            _ => {
                outcome.untranslated(
                    remote_as.line,
                    &remote_as.text,
                    "expected an AS number, internal or external",
                );
                return None;
            }
        };
        let families = self.families(&settings);
        let requires = self.router.defaults.requires_policy.unwrap_or(self.requires_policy);
        let (name, text) = (names.give(name), text.to_owned());
        let requires_policy = requires && is_external;
        Some(Neighbor {
            remote,
            name,
            settings,
            line,
            text,
            is_external,
            asn,
            requires_policy,
            families,
        })
    }

    /// The AS that the neighbor sees.
    pub(super) fn own_asn(&self, settings: &Settings) -> u32 {
        let local =
            settings.on(Scope::Session, "local-as").and_then(|it| asn_of(it.words.first()?).ok());
        local.unwrap_or(self.router.asn)
    }

    fn families(&self, settings: &Settings) -> Families {
        let defaults = &self.router.defaults;
        let is_on = |scope: Scope, by_default: bool| {
            settings.any(scope, "activate").map_or(by_default, |it| it.is_on)
        };
        Families {
            ipv4: is_on(Scope::Ipv4, defaults.ipv4_unicast.unwrap_or(true)),
            ipv6: is_on(Scope::Ipv6, defaults.ipv6_unicast),
        }
    }

    /// The peer, and the Secret with its password.
    pub(super) fn peer(
        &self,
        neighbor: &Neighbor,
        profiles: &mut Profiles,
        outcome: &mut Outcome,
    ) -> Vec<Translated> {
        let mut spec = Fields::default();
        self.identity(neighbor, &mut spec, outcome);
        let mut objects = Vec::new();
        self.session(neighbor, &mut spec, &mut objects, profiles, outcome);
        self.of_families(neighbor, &mut spec, outcome);
        self.policies(neighbor, &mut spec, outcome);
        let mut peer = Translated::new("metallb.io/v1beta2", "BGPPeer", &neighbor.name, spec);
        if let Some(description) = neighbor.settings.on(Scope::Session, "description") {
            peer = peer.comment(description.words.join(" "));
        }
        objects.insert(0, peer);
        objects
    }

    fn identity(&self, neighbor: &Neighbor, spec: &mut Fields, outcome: &mut Outcome) {
        spec.set("myASN", json!(self.router.asn));
        match (neighbor.asn, neighbor.is_external) {
            (Some(asn), _) => spec.set("peerASN", json!(asn)),
            (None, true) => spec.set("dynamicASN", json!("external")),
            (None, false) => spec.set("dynamicASN", json!("internal")),
        };
        if let Some(local) = neighbor.settings.on(Scope::Session, "local-as") {
            match local.words().as_slice() {
                [asn, "no-prepend", "replace-as"] if neighbor.is_external => {
                    spec.set("localASN", asn_of(asn).ok().map(|it| json!(it)));
                }
                _ => {
                    let why = "only local-as N no-prepend replace-as has an equal (localASN); the neighbor would not see \
                               our other AS";
                    outcome.untranslated(local.line, &local.text, why);
                }
            }
        }
        match &neighbor.remote {
            Remote::Address(address) => spec.set("peerAddress", json!(address.to_string())),
            Remote::Interface(interface) => spec.set("interface", json!(interface)),
            Remote::Range(range) => spec.set("listenRange", json!(range.to_string())),
        };
        if let Remote::Range(_) = neighbor.remote {
            spec.set("listenLimit", self.router.defaults.listen_limit.map(|it| json!(it)));
        }
        spec.set("vrf", self.router.vrf.as_ref().map(|it| json!(it)));
        spec.set("routerID", self.router.defaults.router_id.as_ref().map(|it| json!(it)));
    }

    fn session(
        &self,
        neighbor: &Neighbor,
        spec: &mut Fields,
        objects: &mut Vec<Translated>,
        profiles: &mut Profiles,
        outcome: &mut Outcome,
    ) {
        let defaults = &self.router.defaults;
        let short = self.has_short_timers.then_some((3, 9));
        let timers = neighbor.settings.on(Scope::Session, "timers");
        let own = timers.and_then(|it| match it.words().as_slice() {
            [keepalive, hold] => Some((number(keepalive).ok()?, number(hold).ok()?)),
            _ => None,
        });
        if let Some((keepalive, hold)) = own.or(defaults.timers).or(short) {
            let (keepalive, hold): (u32, u32) = (keepalive, hold);
            spec.set("holdTime", json!(format!("{hold}s")));
            // FRR takes a third of the hold time if that is shorter, too.
            spec.set("keepaliveTime", json!(format!("{}s", keepalive.min(hold / 3))));
        }
        if let Some(message) = &defaults.shutdown {
            spec.set("shutdown", shutdown(message));
        }
        let restarts = neighbor.settings.any(Scope::Session, "graceful-restart");
        let disabled = neighbor.settings.on(Scope::Session, "graceful-restart-disable");
        let helps = neighbor.settings.on(Scope::Session, "graceful-restart-helper");
        if disabled.is_none()
            && (defaults.graceful_restart || restarts.is_some_and(|it| it.is_on) || helps.is_some())
        {
            spec.set("enableGracefulRestart", json!(true));
            let mut times = Fields::default();
            times.set("restartTime", defaults.restart_time.map(|it| json!(format!("{it}s"))));
            times.set(
                "longLivedStaleTime",
                defaults.long_lived_stale_time.map(|it| json!(format!("{it}s"))),
            );
            spec.set("gracefulRestart", times.some());
        }
        let of_session =
            neighbor.settings.iter().filter(|(scope, _, it)| *scope == Scope::Session && it.is_on);
        for (_, key, setting) in of_session {
            if let Err(why) = self.setting(key, setting, neighbor, spec, objects, profiles, outcome)
            {
                outcome.untranslated(setting.line, &setting.text, why);
            }
        }
        let off =
            neighbor.settings.iter().filter(|(scope, _, it)| *scope == Scope::Session && !it.is_on);
        for (_, key, setting) in off {
            if key == "enforce-first-as" {
                let why = "the path of an external neighbor begins with its AS in any case";
                outcome.untranslated(setting.line, &setting.text, why);
            }
        }
    }

    #[expect(
        clippy::too_many_arguments,
        reason = "what a line is read with, and what it may add to"
    )]
    fn setting(
        &self,
        key: &str,
        setting: &Setting,
        neighbor: &Neighbor,
        spec: &mut Fields,
        objects: &mut Vec<Translated>,
        profiles: &mut Profiles,
        outcome: &mut Outcome,
    ) -> Result<(), String> {
        let words = setting.words();
        if transport(setting, key, neighbor, spec, objects, outcome)? {
            return Ok(());
        }
        match (key, words.as_slice()) {
            ("shutdown", ["rtt", ..]) => {
                return Err("the round-trip time of a session is not watched".to_owned());
            }
            ("shutdown", message) => {
                let message = message.strip_prefix(&["message"]).unwrap_or(message);
                spec.set("shutdown", shutdown(&message.join(" ")));
            }
            ("bfd", words) => {
                let profile = neighbor.settings.on(Scope::Session, "bfd profile");
                if profile.is_none() {
                    spec.set("bfdProfile", json!(profiles.of_neighbor(None, words)?));
                }
            }
            ("bfd profile", [name]) => {
                spec.set("bfdProfile", json!(profiles.of_neighbor(Some(name), &[])?));
            }
            ("local-role", [role, rest @ ..]) => {
                spec.set("role", json!(role));
                spec.set_if("roleStrict", rest == ["strict-mode"]);
            }
            ("capability extended-nexthop", []) => {
                spec.set("extendedNexthop", json!(true));
            }
            ("advertisement-interval", [interval]) if *interval != "0" => {
                outcome.note(setting.line, &setting.text, "changes are sent at once");
            }
            // Read elsewhere, or nothing to do: what they ask for is always so.
            (
                "remote-as"
                | "peer-group"
                | "interface"
                | "local-as"
                | "description"
                | "timers"
                | "advertisement-interval",
                _,
            )
            | ("ebgp-multihop" | "disable-connected-check", _)
            | ("graceful-restart" | "graceful-restart-helper" | "graceful-restart-disable", _)
            | ("capability dynamic" | "capability link-local" | "capability software-version", _)
            | (
                "enforce-first-as"
                | "extended-optional-parameters"
                | "bfd check-control-plane-failure",
                _,
            ) => {}
            _ => return Err("has no equal in a BGPPeer".to_owned()),
        }
        Ok(())
    }
}

fn shutdown(message: &str) -> Value {
    match message {
        "" => json!({}),
        message => json!({"message": message}),
    }
}

/// A setting of the connection; false if it is none.
fn transport(
    setting: &Setting,
    key: &str,
    neighbor: &Neighbor,
    spec: &mut Fields,
    objects: &mut Vec<Translated>,
    outcome: &mut Outcome,
) -> Result<bool, String> {
    match (key, setting.words().as_slice()) {
        ("timers connect", ["0"]) => {
            outcome.note(setting.line, &setting.text, "attempts are made every 5 s at most");
        }
        ("timers connect", [time]) => {
            spec.set("connectTime", json!(format!("{}s", number::<u16>(time)?)));
        }
        ("password", words) => {
            let name = format!("{}-password", neighbor.name);
            spec.set("passwordSecret", json!({"name": name}));
            objects.push(Translated::password(&name, &words.join(" ")));
        }
        ("update-source", [source]) => {
            let address: std::net::IpAddr = source.parse().map_err(|_| {
                "an interface is no source address; set sourceAddress to its address".to_owned()
            })?;
            if !matches!(neighbor.remote, Remote::Address(_)) {
                return Err("sessions over a link or from a range have the address that is dialed"
                    .to_owned());
            }
            spec.set("sourceAddress", json!(address.to_string()));
        }
        ("ebgp-multihop", hops) if neighbor.is_external => {
            spec.set("ebgpMultiHop", json!(true));
            if let [hops] = hops {
                outcome.note(
                    setting.line,
                    &setting.text,
                    format!("packets are sent with a TTL of 64, not {hops}"),
                );
            }
        }
        ("disable-connected-check", []) if neighbor.is_external => {
            spec.set("ebgpMultiHop", json!(true));
            outcome.note(setting.line, &setting.text, "packets are sent with a TTL of 64, not 1");
        }
        ("ttl-security", ["hops", hops]) => {
            spec.set("ttlSecurityHops", json!(number::<u8>(hops)?));
        }
        ("port", [port]) => {
            let port = number::<u16>(port)?;
            if !(1..=16384).contains(&port) {
                return Err("a BGPPeer has a port from 1 to 16384".to_owned());
            }
            spec.set("peerPort", json!(port));
        }
        ("passive", []) => {
            spec.set("passive", json!(true));
        }
        _ => return Ok(false),
    }
    Ok(true)
}
