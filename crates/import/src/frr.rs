//! `frr.conf`, or FRR's running configuration.
//!
//! Answers which peers, advertisements and BFD profiles say the same as the lines about BGP, and names each other line
//! that concerns routing. Knows no running FRR.
//!
//! | question | file |
//! |---|---|
//! | what a router, a neighbor and a group say | `router`, `settings` |
//! | what lists and route maps say | `lists`, `map_entry`, `route_map`, `bfd` |
//! | the same in our words | `peer`, `exchange`, `policy`, `originate` |

mod bfd;
mod exchange;
mod lists;
mod map_entry;
mod originate;
mod peer;
mod policy;
mod route_map;
mod router;
mod settings;

use std::collections::BTreeSet;

use fairway_frr::configuration::{Statement, numbered, without_secrets};
use ipnet::IpNet;
use serde_json::json;

use self::bfd::Profiles;
use self::lists::{Lists, TAKEN_BACK, number};
use self::peer::Scene;
use self::route_map::RouteMaps;
use self::router::Router;
use crate::object::{Fields, Names, Translated};
use crate::outcome::Outcome;
use crate::policy::Advertisements;

/// Translates `text`.
pub(crate) fn import(text: &str, outcome: &mut Outcome) {
    let mut reading = Reading::default();
    for (line, statement) in numbered(text) {
        match reading.read(line, &statement) {
            Ok(None) => {}
            Ok(Some(note)) => outcome.note(line, &without_secrets(&statement.line), note),
            Err(why) => outcome.untranslated(line, &without_secrets(&statement.line), why),
        }
    }
    reading.translate(outcome);
}

/// What has been read.
#[derive(Default)]
struct Reading {
    /// `frr defaults datacenter`.
    is_datacenter: bool,
    /// `frr version`, before 7.4.
    is_old: bool,
    lists: Lists,
    maps: RouteMaps,
    profiles: Profiles,
    /// With the line that opens each.
    routers: Vec<(String, Router)>,
    caches: Vec<(String, u16)>,
    /// Static routes that drop packets, with their lines.
    blackholes: Vec<(IpNet, usize, String)>,
}

impl Reading {
    fn read(&mut self, line: usize, statement: &Statement) -> Result<Option<&'static str>, String> {
        let text = &*statement.line;
        let words: Vec<&str> = text.split(' ').collect();
        let words = words.as_slice();
        let context: Vec<&str> = statement.context.iter().map(|it| &**it).collect();
        match context.as_slice() {
            [] => self.at_top(line, text, words),
            [router] if router.starts_with("router bgp ") => match (self.router(router), words) {
                (None, _) => Ok(None),
                (
                    Some(_),
                    ["address-family", "ipv4" | "ipv6"]
                    | ["address-family", "ipv4" | "ipv6", "unicast"],
                ) => Ok(None),
                (Some(_), ["address-family", ..]) => {
                    Err("only IPv4 and IPv6 unicast are exchanged".to_owned())
                }
                (Some(router), _) => router.read(line, text),
            },
            [router, family] if router.starts_with("router bgp ") => {
                let ipv6 = match *family {
                    "address-family ipv4 unicast" | "address-family ipv4" => false,
                    "address-family ipv6 unicast" | "address-family ipv6" => true,
                    // The family is named where it opens.
                    _ => return Ok(None),
                };
                self.router(router).map_or(Ok(None), |it| it.read_family(ipv6, line, text))
            }
            [map] if map.starts_with("route-map ") => {
                self.maps.read(line, map, text);
                Ok(None)
            }
            ["bfd"] => match words {
                ["profile", name] => {
                    self.profiles.open(name);
                    Ok(None)
                }
                ["peer", ..] => Err("BFD runs for neighbors with a bfdProfile".to_owned()),
                _ => Err("has no equal".to_owned()),
            },
            ["bfd", profile] => match profile.strip_prefix("profile ") {
                Some(name) => self.profiles.read(name, text).map(|()| None),
                None => Ok(None),
            },
            ["rpki"] => self.rpki(words),
            ["line vty"] => Ok(None),
            [interface] if interface.starts_with("interface ") => in_interface(words),
            // The line that opens it is named.
            _ => Ok(None),
        }
    }

    fn at_top(
        &mut self,
        line: usize,
        text: &str,
        words: &[&str],
    ) -> Result<Option<&'static str>, String> {
        if let Some(outcome) = self.lists.read(words) {
            return outcome.map(|()| None);
        }
        match words {
            ["frr", "defaults", profile] => self.is_datacenter = *profile == "datacenter",
            ["frr", "version", version] => self.is_old = is_before_7_4(version),
            ["router", "bgp", ..] => {
                if self.router(text).is_none() {
                    self.routers.push((text.to_owned(), Router::open(words)?));
                }
            }
            ["no", "route-map", name, ..] => {
                self.maps.take_back(name);
                return Err(TAKEN_BACK.to_owned());
            }
            ["no", "router", "bgp", ..] => {
                let opening = text.strip_prefix("no ").unwrap_or(text);
                self.routers.retain(|(it, _)| it != opening);
            }
            ["route-map", _, "permit" | "deny", _] => self.maps.open(line, text, words)?,
            // What vtysh prints above a running configuration.
            ["Building", "configuration..."] | ["Current", "configuration:"] => {}
            // Nothing about routing.
            [
                "hostname" | "domainname" | "log" | "service" | "debug" | "agentx" | "line"
                | "banner" | "enable",
                ..,
            ]
            | ["no", "log" | "service" | "debug" | "banner", ..]
            | ["password" | "zebra" | "allow-reserved-ranges", ..]
            | ["bfd" | "rpki" | "interface", ..]
            | ["ip" | "ipv6", "forwarding"]
            | ["ip" | "ipv6", "nht", ..] => {}
            ["no", "ip" | "ipv6", "forwarding"] => {
                return Ok(Some("forwarding of packets is a setting of the node (sysctl)"));
            }
            ["ip" | "ipv6", "route", prefix, "blackhole" | "Null0" | "null0"]
                if prefix.parse::<IpNet>().is_ok() =>
            {
                let prefix = prefix.parse::<IpNet>().unwrap_or_default().trunc();
                self.blackholes.push((prefix, line, text.to_owned()));
            }
            ["ip" | "ipv6", "route", ..] => {
                return Err(
                    "static routes are the node's own; Fairway installs only what it learns"
                        .to_owned(),
                );
            }
            ["router", protocol, ..] => return Err(format!("Fairway speaks BGP, not {protocol}")),
            ["access-list" | "ip" | "ipv6", ..] => {
                return Err("has no equal; of lists only prefix lists are translated".to_owned());
            }
            ["vrf", ..] => {
                return Err(
                    "what is in a VRF is not translated; name it in vrf of a BGPPeer".to_owned()
                );
            }
            _ => return Err("has no equal".to_owned()),
        }
        Ok(None)
    }

    fn router(&mut self, opening: &str) -> Option<&mut Router> {
        // Without a number it is the one that is there.
        let is_it = |it: &(String, Router)| {
            it.0 == opening || opening == "router bgp" && it.1.vrf.is_none()
        };
        self.routers.iter_mut().find(|it| is_it(it)).map(|(_, router)| router)
    }

    fn rpki(&mut self, words: &[&str]) -> Result<Option<&'static str>, String> {
        let (host, port) = match words {
            ["rpki", "cache", "tcp", host, port, ..] | ["rpki", "cache", host, port, ..]
                if *host != "ssh" && number::<u16>(port).is_ok() =>
            {
                (host, port)
            }
            ["rpki", "polling_period" | "expire_interval" | "retry_interval", _] => {
                return Ok(Some("the cache says how often it is asked"));
            }
            ["rpki", "cache", ..] => return Err("only caches over TCP are asked".to_owned()),
            _ => return Err("has no equal".to_owned()),
        };
        let cache = ((*host).to_owned(), number(port)?);
        if !self.caches.contains(&cache) {
            self.caches.push(cache);
        }
        Ok(None)
    }

    fn translate(self, outcome: &mut Outcome) {
        let Self { is_datacenter, is_old, lists, maps, mut profiles, routers, caches, blackholes } =
            self;
        let default = routers.iter().filter(|(_, it)| it.vrf.is_none());
        let networks: BTreeSet<IpNet> =
            default.flat_map(|(_, it)| &it.networks).map(|it| it.prefix).collect();
        for (_, line, text) in blackholes.iter().filter(|(prefix, ..)| !networks.contains(prefix)) {
            outcome.untranslated(
                *line,
                text,
                "static routes are the node's own; only those of a network line are kept",
            );
        }
        let blackholes: BTreeSet<IpNet> =
            blackholes.into_iter().map(|(prefix, ..)| prefix).collect();
        let mut names = Names::default();
        let mut advertisements = Advertisements::default();
        for (_, router) in &routers {
            let (requires_policy, has_short_timers) = (!is_datacenter && !is_old, is_datacenter);
            let (lists, maps, blackholes) = (&lists, &maps, &blackholes);
            let scene =
                Scene { router, lists, maps, blackholes, requires_policy, has_short_timers };
            let neighbors = scene.neighbors(&mut names, outcome);
            for neighbor in &neighbors {
                let objects = scene.peer(neighbor, &mut profiles, outcome);
                outcome.objects.extend(objects);
            }
            advertisements.add(&scene, &neighbors, outcome);
        }
        outcome.objects.extend(profiles.objects());
        outcome.objects.extend(advertisements.objects("networks"));
        outcome.objects.extend(configuration(&routers, &caches));
    }
}

/// What concerns the speaker and no single peer.
fn configuration(routers: &[(String, Router)], caches: &[(String, u16)]) -> Option<Translated> {
    let mut spec = Fields::default();
    spec.set_if("alwaysCompareMED", routers.iter().any(|(_, it)| it.always_compare_med));
    if !caches.is_empty() {
        let server = |(address, port): &(String, u16)| json!({"address": address, "port": port});
        let servers: Vec<_> = caches.iter().map(server).collect();
        spec.set("rpki", json!({"servers": servers}));
    }
    let object =
        || Translated::new("fairway.dev/v1beta1", "BGPConfiguration", "speaker", spec.clone());
    (!spec.is_empty()).then(object)
}

/// Fairway does not configure interfaces; what makes a link ready for sessions without addresses it does itself.
fn in_interface(words: &[&str]) -> Result<Option<&'static str>, String> {
    match words {
        ["description", ..]
        | ["ipv6", "nd", "ra-interval", ..]
        | ["no", "ipv6", "nd", "suppress-ra"]
        | ["no", "shutdown"]
        | ["exit"] => Ok(None),
        _ => Err("interfaces and their addresses are the node's own configuration".to_owned()),
    }
}

/// FRR 7.4 is the first that needs a policy for external neighbors.
fn is_before_7_4(version: &str) -> bool {
    let mut parts = version.split('.').map(|it| it.parse::<u32>().unwrap_or(u32::MAX));
    let version = (parts.next().unwrap_or(u32::MAX), parts.next().unwrap_or(0));
    version < (7, 4)
}
