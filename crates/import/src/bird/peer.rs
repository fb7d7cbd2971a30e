//! `protocol bgp` as a BGPPeer.
//!
//! Answers which fields the statements of a protocol come to. Knows no static routes; `bird` announces them to the peers.

use serde_json::{Value, json};

use super::bfd;
use super::channel::{Channel, Filter, is_on};
use super::code::Does;
use super::policies::{Policies, Way};
use super::text::Statement;
use super::translated_each;
use crate::object::{Fields, Translated};
use crate::outcome::Outcome;
use crate::policy::{Named, Passes, policy};

/// What surrounds the protocols.
#[derive(Debug, Clone, Copy)]
pub(super) struct Scene<'a> {
    pub(super) router_id: Option<&'a str>,
    pub(super) policies: &'a Policies,
    pub(super) bfd: &'a Fields,
    /// Whether learned routes go to the kernel: IPv4, IPv6.
    pub(super) installs: [bool; 2],
}

/// A protocol that has been read.
#[derive(Debug, Default)]
pub(super) struct Neighbor {
    pub(super) name: String,
    /// The name in the text.
    protocol: String,
    line: usize,
    text: String,
    pub(super) local_as: Option<u32>,
    local_address: Option<String>,
    remote: Option<(&'static str, String)>,
    remote_as: Option<Value>,
    interface: Option<String>,
    is_off: bool,
    password: Option<String>,
    spec: Fields,
    router_id: Option<String>,
    has_bfd: bool,
    /// What differs from the profile of all.
    bfd: Option<Fields>,
    pub(super) ipv4: Option<Channel>,
    pub(super) ipv6: Option<Channel>,
}

impl Neighbor {
    /// Reads the statements of a template and of the protocol itself.
    pub(super) fn read(
        name: &str,
        protocol: &str,
        (line, text): (usize, String),
        statements: &[Statement],
        outcome: &mut Outcome,
    ) -> Self {
        let mut neighbor = Self {
            name: name.to_owned(),
            protocol: protocol.to_owned(),
            line,
            text,
            ..Self::default()
        };
        translated_each(statements, outcome, |words, statement, outcome| {
            let block = statement.block.as_deref();
            let channel = match (words, block) {
                (["ipv4"], _) => neighbor.ipv4.get_or_insert_default(),
                (["ipv6"], _) => neighbor.ipv6.get_or_insert_default(),
                (words, None) => return neighbor.statement(words, statement, outcome),
                (["bfd"], Some(block)) => {
                    neighbor.has_bfd = true;
                    let profile = neighbor.bfd.get_or_insert_default();
                    translated_each(block, outcome, |words, _, _| bfd::setting(profile, words));
                    return Ok(());
                }
                (["keys"], Some(_)) => {
                    return Err("keys of TCP-AO have no Secrets here; set tcpAO");
                }
                (["debug" | "mrtdump", ..], Some(_)) => return Ok(()),
                (_, Some(_)) => return Err("only IPv4 and IPv6 unicast are exchanged"),
            };
            channel.read(block.unwrap_or_default(), outcome);
            Ok(())
        });
        neighbor
    }

    fn statement(
        &mut self,
        words: &[&str],
        statement: &Statement,
        outcome: &mut Outcome,
    ) -> Result<(), &'static str> {
        match words {
            ["local", "role", role] => {
                let role = role.replace('_', "-");
                self.spec.set("role", json!(role));
            }
            ["local", rest @ ..] => return self.local(rest),
            ["neighbor", rest @ ..] => return self.neighbor(rest),
            ["source", "address", address] => self.local_address = Some((*address).to_owned()),
            ["interface", name] => self.interface = Some((*name).to_owned()),
            ["password", password] => self.password = Some((*password).to_owned()),
            ["router", "id", id] => self.router_id = Some((*id).to_owned()),
            ["disabled", rest @ ..] => self.is_off = is_on(rest),
            ["bfd", "off" | "no"] => self.has_bfd = false,
            ["bfd", ..] => self.has_bfd = true,
            // What the template says is taken back.
            ["graceful", "restart", "off" | "no" | "aware"] => {
                self.spec.remove("enableGracefulRestart");
            }
            ["graceful", "restart", "time", time] => self.restart("restartTime", Some(time)),
            ["long", "lived", "graceful", "restart", "off" | "no" | "aware"] => {
                self.restart("longLivedStaleTime", None);
            }
            // BIRD's default.
            ["long", "lived", "graceful", "restart", ..] => {
                self.spec.set("enableGracefulRestart", json!(true));
                self.restart("longLivedStaleTime", Some("3600"));
            }
            ["long", "lived", "stale", "time", time] => {
                self.restart("longLivedStaleTime", Some(time))
            }
            ["graceful", "restart", ..] => {
                self.spec.set("enableGracefulRestart", json!(true));
            }
            ["multihop", rest @ ..] => {
                self.spec.set("ebgpMultiHop", json!(true));
                if !rest.is_empty() {
                    outcome.note(
                        statement.line,
                        statement.text(),
                        "packets are sent with a TTL of 64",
                    );
                }
            }
            ["require", "roles", rest @ ..] => {
                self.spec.switch("roleStrict", is_on(rest));
            }
            _ => return self.plain(words, statement, outcome),
        }
        Ok(())
    }

    /// A time of `gracefulRestart`, or none.
    fn restart(&mut self, field: &str, seconds: Option<&str>) {
        let mut fields = match self.spec.0.get("gracefulRestart") {
            Some(Value::Object(known)) => Fields(known.clone()),
            _ => Fields::default(),
        };
        fields.remove(field);
        fields.set(field, seconds.map(|it| json!(format!("{it}s"))));
        self.spec.remove("gracefulRestart");
        self.spec.set("gracefulRestart", fields.some());
    }

    /// Statements with one field, or with none since Fairway does the same.
    fn plain(
        &mut self,
        words: &[&str],
        statement: &Statement,
        outcome: &mut Outcome,
    ) -> Result<(), &'static str> {
        let seconds = |time: &str| Some(json!(format!("{time}s")));
        match words {
            ["hold", "time", time] => {
                self.spec.set("holdTime", seconds(time));
            }
            ["keepalive", "time", time] => {
                self.spec.set("keepaliveTime", seconds(time));
            }
            ["connect", "retry", "time", time] => {
                self.spec.set("connectTime", seconds(time));
            }
            ["passive", rest @ ..] => {
                self.spec.switch("passive", is_on(rest));
            }
            ["ttl", "security", rest @ ..] => {
                self.spec.remove("ttlSecurityHops");
                self.spec.set("ttlSecurityHops", is_on(rest).then(|| json!(1)));
            }
            ["rr", "client", rest @ ..] => {
                self.spec.switch("routeReflectorClient", is_on(rest));
            }
            ["rr", "cluster", "id", id] => {
                self.spec.set("clusterID", json!(id));
            }
            ["rs", "client", rest @ ..] => {
                self.spec.switch("routeServerClient", is_on(rest));
            }
            ["allow", "local", "as"] => {
                self.spec.set("allowASIn", json!(10));
            }
            ["allow", "local", "as", count] => {
                let count: Option<u8> = count.parse().ok().filter(|it| (1..=10).contains(it));
                let count = count.ok_or("expected a count from 1 to 10")?;
                self.spec.set("allowASIn", json!(count));
            }
            ["vrf", "default"] => self.spec.remove("vrf"),
            ["vrf", name] => {
                self.spec.set("vrf", json!(name));
            }
            ["authentication", "ao"] => {
                return Err("keys of TCP-AO have no Secrets here; set tcpAO");
            }
            ["description", ..] | ["authentication", ..] | ["dynamic", "name", ..] => {}
            ["connect" | "startup", "delay", "time", ..]
            | ["error", "wait" | "forget", "time", ..] => {}
            ["direct"] => self.spec.remove("ebgpMultiHop"),
            ["strict", "bind", ..] | ["check", "link", ..] | ["deterministic", "med", ..] => {}
            ["enforce", "first", "as", ..] | ["advertise", "hostname", ..] | ["debug", ..] => {}
            ["enable", "route" | "as4" | "enhanced" | "extended", ..]
            | ["interpret", "communities", ..] => {}
            ["capabilities", ..] | ["path" | "med", "metric", ..] | ["prefer", "older", "off"] => {}
            ["default", "bgp_local_pref", value] if *value != "100" => {
                return Err(
                    "routes without LOCAL_PREF count as 100; set localPref in toReceive.rules",
                );
            }
            ["default", ..] => {
                outcome.note(statement.line, statement.text(), "the default of RFC 4271 holds");
            }
            _ => return Err("has no equal in a BGPPeer"),
        }
        Ok(())
    }

    /// `local [ADDRESS] [port NUMBER] [as NUMBER]`.
    fn local(&mut self, mut words: &[&str]) -> Result<(), &'static str> {
        while let [first, rest @ ..] = words {
            words = match (*first, rest) {
                ("as", [asn, rest @ ..]) => {
                    self.local_as = Some(asn.parse().map_err(|_| "the AS is not a number")?);
                    rest
                }
                ("port", [port, rest @ ..]) if *port == "179" => rest,
                ("port", _) => {
                    return Err("the port of this side is an option of the daemon: --bgp-listen");
                }
                (address, rest) => {
                    let address: std::net::IpAddr = address
                        .parse()
                        .map_err(|_| "expected an address, as NUMBER or port NUMBER")?;
                    self.local_address = Some(address.to_string());
                    rest
                }
            };
        }
        Ok(())
    }

    /// `neighbor [ADDRESS] [port NUMBER] [as NUMBER|internal|external]`, or `neighbor range PREFIX ...`.
    fn neighbor(&mut self, mut words: &[&str]) -> Result<(), &'static str> {
        while let [first, rest @ ..] = words {
            words = match (*first, rest) {
                ("as", [asn, rest @ ..]) => {
                    let asn: u32 = asn.parse().map_err(|_| "the AS is not a number")?;
                    self.remote_as = Some(json!(asn));
                    rest
                }
                (kind @ ("internal" | "external"), rest) => {
                    self.remote_as = Some(json!(kind));
                    rest
                }
                ("port", [port, rest @ ..]) => {
                    let port: u16 = port.parse().map_err(|_| "the port is not a number")?;
                    self.spec.set("peerPort", json!(port));
                    rest
                }
                ("range", [range, rest @ ..]) => {
                    self.remote = Some(("listenRange", (*range).to_owned()));
                    rest
                }
                (address, rest) => {
                    let (address, link) =
                        address.split_once('%').map_or((address, None), |(address, link)| {
                            (address, Some(link.to_owned()))
                        });
                    let address: std::net::IpAddr = address.parse().map_err(
                        |_| "expected an address, range PREFIX, as NUMBER or port NUMBER",
                    )?;
                    self.interface = link.or(self.interface.take());
                    self.remote = Some(("peerAddress", address.to_string()));
                    rest
                }
            };
        }
        Ok(())
    }

    /// Whether it has the profile of all.
    pub(super) fn has_common_bfd(&self) -> bool {
        self.has_bfd && self.bfd.is_none()
    }

    /// The peer and the Secret with its password; `None`, and why, if it has no neighbor or AS.
    pub(super) fn objects(
        &self,
        scene: Scene<'_>,
        outcome: &mut Outcome,
    ) -> Option<Vec<Translated>> {
        let mut spec = Fields::default();
        let missing = match (self.local_as, &self.remote, &self.remote_as) {
            (None, ..) => "the protocol has no local as",
            (_, None, _) => "the protocol has no neighbor",
            (.., None) => "the AS of the neighbor is missing",
            _ => "",
        };
        let (Some(own), Some((field, remote)), Some(asn)) =
            (self.local_as, &self.remote, &self.remote_as)
        else {
            outcome.untranslated(self.line, &self.text, missing);
            return None;
        };
        spec.set("myASN", json!(own));
        let dynamic = asn.is_string();
        spec.set(if dynamic { "dynamicASN" } else { "peerASN" }, asn.clone());
        let on_link = remote.starts_with("fe80:");
        match (&self.interface, on_link) {
            (Some(interface), true) => spec.set("interface", json!(interface)),
            _ => spec.set(field, json!(remote)),
        };
        spec.set("routerID", self.router_id.as_deref().or(scene.router_id).map(|it| json!(it)));
        let is_external = self.is_external();
        for (name, value) in &self.spec.0 {
            let is_internal_only = ["ebgpMultiHop", "role", "roleStrict", "routeServerClient"]
                .contains(&name.as_str());
            // Its times are those of a router that restarts gracefully itself.
            let is_idle =
                name == "gracefulRestart" && !self.spec.0.contains_key("enableGracefulRestart");
            if !is_idle && (is_external || !is_internal_only) {
                spec.set(name, value.clone());
            }
        }
        if self.is_off {
            spec.set("shutdown", json!({}));
        }
        let mut objects = Vec::new();
        match self.bfd.as_ref().filter(|_| self.has_bfd) {
            Some(own) => {
                let mut profile = scene.bfd.clone();
                for (name, value) in &own.0 {
                    profile.set(name, value.clone());
                }
                spec.set("bfdProfile", json!(self.name));
                let kind = "BFDProfile";
                objects.push(Translated::new("metallb.io/v1beta1", kind, &self.name, profile));
            }
            None => drop(spec.set("bfdProfile", self.has_bfd.then(|| json!("bird")))),
        }
        if let Some(password) = &self.password {
            let name = format!("{}-password", self.name);
            spec.set("passwordSecret", json!({"name": name}));
            objects.push(Translated::password(&name, password));
        }
        self.exchange(&mut spec, on_link, scene, outcome);
        objects.insert(0, Translated::new("metallb.io/v1beta2", "BGPPeer", &self.name, spec));
        Some(objects)
    }

    /// Whether it is in another AS.
    pub(super) fn is_external(&self) -> bool {
        match &self.remote_as {
            Some(Value::String(kind)) => kind == "external",
            Some(asn) => self.local_as.is_none_or(|own| *asn != json!(own)),
            None => true,
        }
    }

    /// The channel of a family with the filter of one direction: without a line all is accepted from internal neighbors, and
    /// nothing is announced.
    pub(super) fn filter(&self, ipv6: bool, outbound: bool) -> Option<Filter> {
        let channel = if ipv6 { self.ipv6.as_ref()? } else { self.ipv4.as_ref()? };
        if channel.is_elsewhere {
            return None;
        }
        let filter = if outbound { &channel.export } else { &channel.import };
        let accepts = !outbound && !self.is_external();
        let without = if accepts { Does::Accept } else { Does::Reject };
        Some(filter.clone().unwrap_or_else(|| Filter::of(self.line, &self.text, without)))
    }

    /// The AS that filters of a direction may prepend.
    pub(super) fn way(&self, ipv6: bool, outbound: bool) -> Way {
        let remote = self.remote_as.as_ref().and_then(Value::as_u64);
        let remote = remote.and_then(|it| u32::try_from(it).ok());
        Way { ipv6, outbound, asn: if outbound { self.local_as } else { remote } }
    }

    fn exchange(&self, spec: &mut Fields, on_link: bool, scene: Scene<'_>, outcome: &mut Outcome) {
        let is_ipv6 = self.remote.as_ref().is_some_and(|(_, it)| it.contains(':'));
        let other = if is_ipv6 { &self.ipv4 } else { &self.ipv6 };
        spec.set_if("dualStackAddressFamily", other.is_some() && !on_link);
        let channels = [&self.ipv4, &self.ipv6];
        let any =
            |has: fn(&Channel) -> bool| channels.iter().any(|it| it.as_ref().is_some_and(has));
        spec.set_if("extendedNexthop", !on_link && any(|it| it.extended_next_hop));
        let mut paths = Fields::default();
        paths.set("send", any(|it| it.sends_paths).then(|| json!(16)));
        paths.set_if("receive", any(|it| it.receives_paths));
        spec.set("addPath", paths.some());
        let carries = |ipv6: bool| is_ipv6 == ipv6 || other.is_some() || on_link;
        let mut passing = |outbound: bool| {
            [false, true].map(|ipv6| {
                let from = (!outbound).then_some(self.protocol.as_str());
                let passes = self.filter(ipv6, outbound).map(|it| {
                    let way = self.way(ipv6, outbound);
                    scene.policies.learned(&it, way, from, outcome)
                });
                carries(ipv6).then(|| passes.unwrap_or(Passes::Nothing))
            })
        };
        let (inbound, outbound) = (passing(false), passing(true));
        let accepts =
            |passes: &Option<Passes>| passes.as_ref().is_some_and(|it| *it != Passes::Nothing);
        let installs =
            inbound.iter().zip(scene.installs).any(|(it, installs)| accepts(it) && installs);
        let named = Named { line: self.line, text: &self.text };
        let [ipv4, ipv6] = inbound;
        let mut receive = policy(ipv4, ipv6, &named, outcome);
        let [ipv4, ipv6] = outbound;
        let mut advertise = policy(ipv4, ipv6, &named, outcome);
        if !receive.is_empty() {
            let limit = self.limit(outcome);
            receive.set("maxPrefixes", limit.map(|it| json!({"limit": it})));
            receive.set_if("keepFiltered", any(|it| it.keeps_filtered));
            spec.set_if("installRoutes", installs);
        }
        if self.remote.as_ref().is_some_and(|it| it.0 == "peerAddress") && !on_link {
            let source = self.local_address.as_ref().filter(|it| it.contains(':') == is_ipv6);
            spec.set("sourceAddress", source.map(|it| json!(it)));
        }
        self.next_hop(&mut advertise, outcome);
        spec.set("toReceive", receive.some());
        spec.set("toAdvertise", advertise.some());
    }

    /// The limit of learned routes: a BGPPeer has one.
    fn limit(&self, outcome: &mut Outcome) -> Option<u32> {
        let channels = [&self.ipv4, &self.ipv6];
        let channels = channels.into_iter().flatten().filter(|it| !it.is_elsewhere);
        let limits: Vec<Option<u32>> = channels.map(|it| it.limit).collect();
        let limit = limits.iter().flatten().copied().min();
        if limits.iter().any(|it| *it != limit) {
            let why = match limits.contains(&None) {
                true => "one limit holds for each family; it is that of the one without, too",
                false => "one limit holds for each family; the smaller one is taken",
            };
            outcome.untranslated(self.line, &self.text, why);
        }
        limit
    }

    /// To external neighbors it is ours in any case.
    fn next_hop(&self, advertise: &mut Fields, outcome: &mut Outcome) {
        let mut next_hop = Fields::default();
        for (channel, field, ipv6) in [(&self.ipv4, "ipv4", false), (&self.ipv6, "ipv6", true)] {
            let Some(channel) = channel else { continue };
            let own = self.local_address.as_ref().filter(|it| it.contains(':') == ipv6);
            let address = match (&channel.next_hop, &channel.next_hop_self) {
                (Some(address), _) => Some(address),
                (None, Some(_)) if self.is_external() || advertise.is_empty() => None,
                (None, Some((line, text))) => {
                    if own.is_none() {
                        let why = format!(
                            "our address is not known here; set toAdvertise.nextHop.{field} to it"
                        );
                        outcome.untranslated(*line, text, why);
                    }
                    own
                }
                (None, None) => None,
            };
            next_hop.set(field, address.map(|it| json!(it)));
        }
        advertise.set("nextHop", next_hop.some());
    }
}
