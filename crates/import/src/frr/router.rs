//! `router bgp`: what its lines say of the router as a whole.
//!
//! Answers the settings, neighbors and networks of one router. Knows no peer of ours; `peer` and `originate` make those.

use std::collections::BTreeMap;

use ipnet::IpNet;

use super::lists::number;
use super::settings::{Scope, Settings};

/// A `network` line.
#[derive(Debug)]
pub(super) struct Network {
    pub(super) prefix: IpNet,
    pub(super) route_map: Option<String>,
    pub(super) line: usize,
    pub(super) text: String,
}

/// A `bgp listen range` line.
#[derive(Debug)]
pub(super) struct ListenRange {
    pub(super) range: IpNet,
    pub(super) group: String,
    pub(super) line: usize,
    pub(super) text: String,
}

/// A setting with its line, for those that concern every neighbor.
#[derive(Debug, Clone, Default)]
pub(super) struct Defaults {
    pub(super) router_id: Option<String>,
    pub(super) cluster_id: Option<String>,
    /// `timers bgp`: keepalive and hold time in seconds.
    pub(super) timers: Option<(u32, u32)>,
    /// `bgp ebgp-requires-policy`, where a line says so.
    pub(super) requires_policy: Option<bool>,
    pub(super) ipv4_unicast: Option<bool>,
    pub(super) ipv6_unicast: bool,
    pub(super) graceful_restart: bool,
    pub(super) restart_time: Option<u32>,
    pub(super) long_lived_stale_time: Option<u32>,
    pub(super) listen_limit: Option<u32>,
    pub(super) local_preference: Option<u32>,
    /// Stops all sessions.
    pub(super) shutdown: Option<String>,
}

/// One router.
#[derive(Debug)]
pub(super) struct Router {
    pub(super) asn: u32,
    pub(super) vrf: Option<String>,
    pub(super) defaults: Defaults,
    pub(super) always_compare_med: bool,
    /// Whether what is learned goes to the kernel.
    pub(super) installs: bool,
    pub(super) groups: BTreeMap<String, Settings>,
    /// In the order of the text.
    pub(super) neighbors: Vec<(String, Settings)>,
    pub(super) ranges: Vec<ListenRange>,
    pub(super) networks: Vec<Network>,
}

/// What a line comes to.
pub(super) type Read = Result<(), String>;

impl Router {
    /// `router bgp 65001 [vrf NAME]`.
    pub(super) fn open(words: &[&str]) -> Result<Self, String> {
        let (asn, rest) = match words {
            ["router", "bgp", asn, rest @ ..] => (asn_of(asn)?, rest),
            _ => return Err("the AS number is missing".to_owned()),
        };
        let vrf = match rest {
            [] | ["as-notation", _] => None,
            ["vrf", name, ..] => Some((*name).to_owned()),
            _ => return Err("only the default instance and VRFs are translated".to_owned()),
        };
        Ok(Self {
            asn,
            vrf,
            defaults: Defaults::default(),
            always_compare_med: false,
            installs: true,
            groups: BTreeMap::new(),
            neighbors: Vec::new(),
            ranges: Vec::new(),
            networks: Vec::new(),
        })
    }

    /// A line of the router itself. `Ok(Some(note))` is translated, with something to say.
    pub(super) fn read(&mut self, line: usize, text: &str) -> Result<Option<&'static str>, String> {
        let (is_on, words) = switched(text);
        let words = words.as_slice();
        match words {
            ["neighbor", name, rest @ ..] => {
                return self
                    .neighbor(Scope::Session, is_on, (name, rest), line, text)
                    .map(|()| None);
            }
            ["bgp", "listen", "range", range, "peer-group", group] => {
                let range = range.parse().map_err(|_| format!("{range:?} is not a prefix"))?;
                self.ranges.retain(|it| it.range != range);
                if !is_on {
                    return Ok(None);
                }
                let (group, text) = ((*group).to_owned(), text.to_owned());
                self.ranges.push(ListenRange { range, group, line, text });
                return Ok(None);
            }
            _ => {}
        }
        self.read_default(is_on, words)
    }

    /// A line about all neighbors.
    fn read_default(
        &mut self,
        is_on: bool,
        words: &[&str],
    ) -> Result<Option<&'static str>, String> {
        let defaults = &mut self.defaults;
        match words {
            ["bgp", "router-id", id] => defaults.router_id = is_on.then(|| (*id).to_owned()),
            ["bgp", "cluster-id", id] => defaults.cluster_id = is_on.then(|| four_octets(id)),
            ["bgp", "ebgp-requires-policy"] => defaults.requires_policy = Some(is_on),
            ["bgp", "default", "ipv4-unicast"] => defaults.ipv4_unicast = Some(is_on),
            ["bgp", "default", "ipv6-unicast"] => defaults.ipv6_unicast = is_on,
            ["bgp", "default", "local-preference", value] => {
                defaults.local_preference = Some(number(value)?).filter(|it| is_on && *it != 100);
            }
            ["bgp", "listen", "limit", limit @ ..] => {
                let limit = limit.first().map(|it| number(it)).transpose()?;
                defaults.listen_limit = limit.filter(|_| is_on);
            }
            ["bgp", "graceful-restart"] => defaults.graceful_restart = is_on,
            ["bgp", "graceful-restart", "restart-time", time] => {
                defaults.restart_time = Some(number(time)?);
            }
            ["bgp", "long-lived-graceful-restart", "stale-time", time] => {
                defaults.long_lived_stale_time = Some(number(time)?);
            }
            [
                "bgp",
                "graceful-restart",
                "stalepath-time" | "select-defer-time" | "rib-stale-time",
                _,
            ] => {
                return Ok(Some("the time is fixed: 6 minutes after the session is back"));
            }
            ["bgp", "graceful-restart", "preserve-fw-state" | "notification" | "disable-eor"] => {}
            ["bgp", "always-compare-med"] => self.always_compare_med = is_on,
            ["bgp", "no-rib"] => self.installs = !is_on,
            ["bgp", "shutdown", ..] if !is_on => defaults.shutdown = None,
            ["bgp", "shutdown", rest @ ..] => {
                let message =
                    rest.iter().filter(|it| **it != "message").copied().collect::<Vec<_>>();
                defaults.shutdown = Some(message.join(" "));
            }
            ["timers", "bgp", keepalive, hold, ..] if is_on => {
                defaults.timers = Some((number(keepalive)?, number(hold)?));
            }
            ["bgp", "enforce-first-as"] if is_on => {}
            // FRR 10 writes it for a configuration of an older one.
            ["bgp", "enforce-first-as"] => {
                return Ok(Some(
                    "routes whose path begins with another AS than the neighbor's, as those of a route server, are refused",
                ));
            }
            words if is_so_anyway(words) => {}
            ["bgp", "bestpath", ..] => {
                return Err(
                    "the selection of the best path has fixed steps (RFC 4271 §9.1)".to_owned()
                );
            }
            ["bgp", "confederation", ..] => {
                return Err("confederations are not supported".to_owned());
            }
            ["bgp", "listen", ..] => {
                return Err("expected bgp listen range PREFIX peer-group NAME".to_owned());
            }
            _ => return Err("has no equal".to_owned()),
        }
        Ok(None)
    }

    /// A line of an address family.
    pub(super) fn read_family(
        &mut self,
        ipv6: bool,
        line: usize,
        text: &str,
    ) -> Result<Option<&'static str>, String> {
        let (is_on, words) = switched(text);
        match words.as_slice() {
            ["neighbor", name, rest @ ..] => {
                self.neighbor(Scope::of_family(ipv6), is_on, (name, rest), line, text)?;
            }
            ["network", prefix, rest @ ..] => self.network(is_on, prefix, rest, line, text)?,
            ["maximum-paths", ..] => {
                return Ok(Some("up to 64 equal paths are installed"));
            }
            ["table-map", ..] => {
                self.installs = false;
                return Err("installRoutes is for all routes of a peer; it is left out".to_owned());
            }
            ["redistribute", ..] => {
                return Err("routes of other protocols are not announced; list the prefixes under network, or in \
                            prefixes of a BGPAdvertisement"
                    .to_owned());
            }
            ["aggregate-address", ..] => {
                return Err("there are no aggregates of learned routes; announce the prefix itself: prefixes of a \
                            BGPAdvertisement"
                    .to_owned());
            }
            _ => return Err("has no equal".to_owned()),
        }
        Ok(None)
    }

    /// The last line about a prefix counts.
    fn network(
        &mut self,
        is_on: bool,
        prefix: &str,
        rest: &[&str],
        line: usize,
        text: &str,
    ) -> Read {
        let route_map = match rest {
            [] => None,
            ["route-map", name] => Some((*name).to_owned()),
            _ => return Err("has options without an equal".to_owned()),
        };
        let prefix: IpNet = prefix.parse().map_err(|_| format!("{prefix:?} is not a prefix"))?;
        let (prefix, text) = (prefix.trunc(), text.to_owned());
        self.networks.retain(|it| it.prefix != prefix);
        if !is_on {
            return Ok(());
        }
        self.networks.push(Network { prefix, route_map, line, text });
        Ok(())
    }

    fn neighbor(
        &mut self,
        scope: Scope,
        is_on: bool,
        (name, words): (&str, &[&str]),
        line: usize,
        text: &str,
    ) -> Read {
        if let ([] | ["peer-group"], false) = (words, is_on) {
            self.groups.remove(name);
            self.neighbors.retain(|(it, _)| it != name);
            return Ok(());
        }
        if let (["peer-group"], true) = (words, is_on) {
            self.groups.entry(name.to_owned()).or_default();
            return Ok(());
        }
        let settings = match self.groups.get_mut(name) {
            Some(group) => group,
            None => {
                let known = self.neighbors.iter().position(|(known, _)| known == name);
                if known.is_none() {
                    self.neighbors.push((name.to_owned(), Settings::default()));
                }
                let place = known.unwrap_or(self.neighbors.len().saturating_sub(1));
                let Some((_, settings)) = self.neighbors.get_mut(place) else { return Ok(()) };
                settings
            }
        };
        if !settings.read(scope, is_on, words, line, text) {
            return Err("has no equal".to_owned());
        }
        if let ["interface", rest @ ..] = words {
            let rest = rest.strip_prefix(&["v6only"]).unwrap_or(rest);
            match rest {
                [] => {}
                [key @ ("remote-as" | "peer-group"), value] => {
                    settings.imply(key, &[value], line, text)
                }
                _ => {
                    return Err(
                        "expected interface [v6only] [remote-as ...|peer-group NAME]".to_owned()
                    );
                }
            }
        }
        Ok(())
    }
}

/// The words of a line, and whether it turns its setting on.
fn switched(text: &str) -> (bool, Vec<&str>) {
    let words: Vec<&str> = text.split(' ').collect();
    match words.split_first() {
        Some((&"no", rest)) => (false, rest.to_vec()),
        _ => (true, words),
    }
}

/// Whether the line asks for what Fairway does in any case, or concerns only what FRR shows.
fn is_so_anyway(words: &[&str]) -> bool {
    match words {
        ["bgp", "default", shown] => {
            ["show-hostname", "show-nexthop-hostname", "software-version-capability"]
                .contains(shown)
        }
        ["bgp", "bestpath", "as-path", "multipath-relax"]
        | ["bgp", "bestpath", "compare-routerid"]
        | ["bgp", "network", "import-check"]
        | ["synchronization" | "auto-summary"] => true,
        ["bgp", setting] => [
            "log-neighbor-changes",
            "deterministic-med",
            "fast-external-failover",
            "fast-convergence",
            "suppress-fib-pending",
            "hard-administrative-reset",
        ]
        .contains(setting),
        _ => false,
    }
}

/// An AS number, also as `1.10`.
pub(super) fn asn_of(word: &str) -> Result<u32, String> {
    let wrong = || format!("{word:?} is not an AS number");
    match word.split_once('.') {
        Some((high, low)) => {
            let high: u16 = high.parse().map_err(|_| wrong())?;
            let low: u16 = low.parse().map_err(|_| wrong())?;
            Ok(u32::from(high) << 16 | u32::from(low))
        }
        None => word.parse().map_err(|_| wrong()),
    }
}

/// FRR also takes a cluster as a number.
fn four_octets(word: &str) -> String {
    let number = word.parse::<u32>().map(|it| std::net::Ipv4Addr::from(it).to_string());
    number.unwrap_or_else(|_| word.to_owned())
}
