//! How is BIRD configured, run and queried? In the foreground, through its control socket, in
//! the numbered lines that birdc prints. Used by every case.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::IpAddr;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, bail};

use super::bfd::{self, BfdSession, BfdSpec};
use super::installation::Installation;
use super::{
    Dialling, FEEDER_AS, Family, Notification, Origination, Received, Release, Router, RouterRoute,
    RouterSpec, Session, address_of, as_path_of, link_bandwidth_of,
};
use crate::Site;
use crate::process::Process;

pub(super) const BIRD: &str = "/usr/sbin/bird";

const CONFIGURATION: &str = "bird.conf";
const SOCKET: &str = "bird.ctl";

/// What it originates and what a feeder announces. It drops a MED that no export filter has set.
const EXPORT: &str = "export filter { if source != RTS_STATIC && source != RTS_BGP then reject; \
                      if defined(bgp_med) then bgp_med = bgp_med; accept; };";

/// What was received from the neighbour, whatever name the protocol has.
const FROM_BGP: &str = "where proto ~ \"node*\"";

/// Protocols of the other neighbours; their routes count like those of the first.
const TWIN: &str = "node_twin";

/// Protocols of those whose paths are compared.
const OTHER: &str = "node_other";

const NETWORK_NOT_FOUND: &str = "8001";

pub(super) struct Bird {
    spec: RouterSpec,
    release: Release,
    installation: Installation,
    configuration: PathBuf,
    socket: PathBuf,
    log: PathBuf,
    daemons: Vec<Process>,
}

impl Bird {
    pub(super) fn prepare(release: Release, site: &Site, spec: &RouterSpec) -> Result<Self> {
        Ok(Self {
            spec: spec.clone(),
            release,
            installation: Installation::new(release, &site.directory, "/mnt"),
            configuration: site.directory.join(CONFIGURATION),
            socket: site.directory.join(SOCKET),
            log: crate::routers::log_in(&site.directory),
            daemons: Vec::new(),
        })
    }

    fn configuration(&self) -> String {
        let spec = &self.spec;
        // Learned kernel routes let a next hop behind another hop be resolved.
        let mut text = format!("router id {};\n", spec.router_id);
        text += "log stderr all;\n\
             protocol device { scan time 1; }\n\
             protocol direct { ipv4; ipv6; }\n\
             protocol kernel { ipv4 { export where source = RTS_BGP; }; learn; scan time 1; }\n\
             protocol kernel { ipv6 { export where source = RTS_BGP; }; learn; scan time 1; }\n";
        if let Some(interface) = spec.interface {
            // Router advertisements, by which the neighbour finds it.
            text += &format!(
                "protocol radv {{ interface \"{interface}\" \
                 {{ min ra interval 3; max ra interval 4; }}; }}\n"
            );
        }
        text += &spec.bfd.map(|bfd| bfd.bird_protocol("watch")).unwrap_or_default();
        for family in [Family::Ipv4, Family::Ipv6] {
            text += &format!("protocol static own_{0} {{\n  {0};\n", family.word());
            let of_family = spec.originated.iter().filter(|one| one.family() == family);
            text += &of_family.map(|one| origination(spec.local_as, one)).collect::<String>();
            text += "}\n";
        }
        text += &self.session_lines("node", spec.peer_address);
        for (number, twin) in spec.twins.iter().enumerate() {
            text += &self.session_lines(&format!("{TWIN}{number}"), *twin);
        }
        for (number, (address, asn)) in spec.others.iter().enumerate() {
            text += &format!(
                "protocol bgp {OTHER}{number} {{\n  local {} as {};\n  neighbor {address} as {asn};\n  \
                 passive;\n  deterministic med on;\n  ipv4 {{ import all; export none; }};\n}}\n",
                spec.local_address, spec.local_as
            );
        }
        if let Some(feeder) = spec.feeder {
            text += &format!(
                "protocol bgp feeder {{\n  \
                 local as {};\n  \
                 neighbor {feeder} as {FEEDER_AS};\n  \
                 connect delay time 1;\n",
                spec.local_as
            );
            for family in &spec.families {
                text += &format!("  {} {{ import all; export none; }};\n", family.word());
            }
            text += "}\n";
        }
        text
    }

    /// The protocol of a neighbour.
    fn session_lines(&self, name: &str, neighbour: IpAddr) -> String {
        let spec = &self.spec;
        let kind = if spec.is_internal() { "internal" } else { "external" };
        let mut text = format!(
            "protocol bgp {name} {{\n  \
             debug {{ states, events, packets }};\n  \
             hold time {};\n  \
             connect retry time 1;\n  \
             connect delay time 1;\n  \
             error wait time 1, 2;\n",
            spec.hold_time,
        );
        text += &match spec.interface {
            // One protocol for each neighbour that dials from there: `node1`.
            Some(interface) => format!(
                "  local as {};\n  \
                 neighbor range fe80::/10 {kind};\n  \
                 interface \"{interface}\";\n  \
                 dynamic name \"node\";\n",
                spec.local_as
            ),
            None => format!(
                "  local {} port {} as {};\n  \
                 neighbor {} as {} {kind};\n",
                spec.local_address, spec.port, spec.local_as, neighbour, spec.peer_as,
            ),
        };
        if spec.dialling == Dialling::Waits && spec.interface.is_none() {
            text += "  passive;\n";
        }
        if let Some(password) = &spec.password {
            text += &format!("  password \"{password}\";\n");
        }
        text += &ao_lines(&spec.ao_keys);
        // Next hops of internal routes may be anywhere.
        let far = spec.multihop || spec.is_internal() && spec.interface.is_none();
        text += &match spec.ttl_security_hops {
            Some(hops) if hops > 1 => format!("  multihop {hops};\n  ttl security on;\n"),
            Some(_) => "  direct;\n  ttl security on;\n".to_owned(),
            None if far => "  multihop;\n".to_owned(),
            None => "  direct;\n".to_owned(),
        };
        if let Some(restart) = spec.graceful_restart {
            text += "  graceful restart on;\n";
            text += &format!("  graceful restart time {};\n", restart.restart_seconds);
            if let Some(seconds) = restart.long_lived_seconds {
                text += "  long lived graceful restart on;\n";
                text += &format!("  long lived stale time {seconds};\n");
            }
        }
        if let Some(bfd) = spec.bfd {
            text += if bfd.graceful { "  bfd graceful;\n" } else { "  bfd on;\n" };
        }
        if let Some(role) = spec.role {
            text += &format!("  local role {};\n", role.word().replace('-', "_"));
        }
        if spec.role_strict {
            text += "  require roles on;\n";
        }
        for family in &spec.families {
            text += &format!("  {} {{ import all; {EXPORT} ", family.word());
            if spec.extended_next_hop {
                text += "extended next hop on; ";
            }
            if spec.add_path {
                text += "add paths on; ";
            }
            if let Some(limit) = spec.max_prefixes {
                text += &format!("import limit {limit} action restart; ");
            }
            text += "};\n";
        }
        text + "}\n"
    }

    /// The last NOTIFICATION in its words. It forgets it when the session is back, its log does not.
    fn last_cease(&self) -> Result<Option<String>> {
        let log = fs::read_to_string(&self.log).context("reading BIRD's log")?;
        let received = log.lines().rev().find_map(|line| {
            let (before, received) = line.split_once(": Received: ")?;
            before.contains("> node").then(|| received.to_owned())
        });
        Ok(received)
    }

    fn start_with(&mut self, site: &Site, options: &[&str]) -> Result<()> {
        fs::write(&self.configuration, self.configuration()).context("writing bird.conf")?;
        let _ = fs::remove_file(&self.socket);
        let mut arguments: Vec<String> =
            options.iter().map(|option| (*option).to_owned()).collect();
        for (option, name) in [("-c", CONFIGURATION), ("-s", SOCKET), ("-P", "bird.pid")] {
            arguments.extend([option.to_owned(), self.installation.seen(name)]);
        }
        let place = self.installation.within(&site.namespace);
        let daemon = Process::spawn(&place, Path::new(BIRD), &arguments, &self.log)?;
        self.keep("BIRD", daemon)
    }

    /// Sends one command; the texts of all lines of the answer.
    fn ask(&self, command: &str) -> Result<Vec<String>> {
        let mut stream = UnixStream::connect(&self.socket).context("BIRD's control socket")?;
        stream.set_read_timeout(Some(Duration::from_secs(5))).context("a limit for reading")?;
        let mut lines =
            BufReader::new(stream.try_clone().context("BIRD's control socket")?).lines();
        let mut next =
            || lines.next().context("BIRD closed the control socket")?.context("reading");
        next().context("BIRD's greeting")?;
        stream.write_all(format!("{command}\n").as_bytes()).context("asking BIRD")?;
        let mut texts = Vec::new();
        loop {
            let line = next().with_context(|| format!("BIRD's answer to {command}"))?;
            // "1007-text" goes on, "0000 text" is the last, " text" belongs to the code before.
            let coded = line
                .split_at_checked(4)
                .filter(|(code, _)| code.bytes().all(|digit| digit.is_ascii_digit()));
            let Some((code, rest)) = coded else {
                texts.push(line.get(1..).unwrap_or_default().to_owned());
                continue;
            };
            let text = rest.get(1..).unwrap_or_default();
            if code == NETWORK_NOT_FOUND {
                return Ok(Vec::new());
            }
            if code.starts_with(['8', '9']) {
                bail!("BIRD answers {command} with {code}: {text}");
            }
            texts.push(text.to_owned());
            if rest.starts_with(' ') {
                return Ok(texts);
            }
        }
    }
}

impl Bird {
    /// A path as `show route ... all` has it: a headline, then a line for each attribute.
    fn route_of(&self, lines: &[String]) -> Result<RouterRoute> {
        let headline = lines.first().map(String::as_str).unwrap_or_default();
        // `BGP.next_hop` in BIRD 2, `bgp_next_hop` in BIRD 3.
        let attribute = |name: &str| {
            let value = lines.iter().find_map(|line| {
                let line = line.trim();
                let line = line.strip_prefix("BGP.").or_else(|| line.strip_prefix("bgp_"))?;
                line.strip_prefix(name)?.strip_prefix(": ")
            });
            value.unwrap_or_default()
        };
        let words = |name: &str| attribute(name).split_whitespace();
        let as_path = match self.release {
            Release::Bookworm => attribute("as_path"),
            Release::Trixie => attribute("path"),
        };
        Ok(RouterRoute {
            next_hops: attribute("next_hop")
                .split_whitespace()
                .map(address_of)
                .collect::<Result<_>>()?,
            as_path: as_path_of(as_path)?,
            communities: tuples_of(attribute("community")),
            large_communities: tuples_of(attribute("large_community")),
            local_preference: attribute("local_pref").parse().ok(),
            med: attribute("med").parse().ok(),
            otc: attribute("otc").parse().ok(),
            originator: attribute("originator_id").parse().ok(),
            clusters: words("cluster_list").filter_map(|it| it.parse().ok()).collect(),
            link_bandwidth: link_bandwidth(attribute("ext_community")),
            usable: headline.contains("unicast") && headline.contains("] *"),
        })
    }
}

impl Router for Bird {
    fn start(&mut self, site: &Site) -> Result<()> {
        self.start_with(site, &["-f"])
    }

    fn recover(&mut self, site: &Site, originated: &[Origination]) -> Result<()> {
        self.spec.originated = originated.to_vec();
        self.start_with(site, &["-f", "-R"])
    }

    fn daemons(&mut self) -> &mut Vec<Process> {
        &mut self.daemons
    }

    fn originate(&mut self, originated: &[Origination]) -> Result<()> {
        self.spec.originated = originated.to_vec();
        fs::write(&self.configuration, self.configuration()).context("writing bird.conf")?;
        self.ask("configure").map(drop)
    }

    fn change_keys(&mut self, keys: Vec<super::AoKey>) -> Result<()> {
        self.spec.ao_keys = keys;
        fs::write(&self.configuration, self.configuration()).context("writing bird.conf")?;
        self.ask("configure").map(drop)
    }

    fn change_bfd(&mut self, bfd: BfdSpec) -> Result<()> {
        self.spec.bfd = Some(bfd);
        fs::write(&self.configuration, self.configuration()).context("writing bird.conf")?;
        self.ask("configure").map(drop)
    }

    fn bfd(&self) -> Result<BfdSession> {
        let log = fs::read_to_string(&self.log).context("reading BIRD's log")?;
        bfd::bird_session(&self.ask("show bfd sessions")?, &log)
    }

    fn session(&self) -> Result<Session> {
        let lines = self.ask("show protocols \"node*\"")?;
        // Name, Proto, Table, State, Since, Info.
        let mut words = lines.iter().map(|line| line.split_whitespace().collect::<Vec<_>>());
        let is_first = |words: &[&str]| !words.first().is_some_and(|name| name.starts_with(TWIN));
        let words = words.rfind(|words| words.get(1) == Some(&"BGP") && is_first(words));
        let words = words.with_context(|| format!("expected protocol node in {lines:?}"))?;
        let state = words.get(5).copied().unwrap_or("(none)");
        Ok(Session {
            established: state == "Established",
            state: state.to_owned(),
            incarnation: format!("since {}", words.get(4).copied().unwrap_or_default()),
        })
    }

    fn prefixes(&self, family: Family) -> Result<BTreeSet<String>> {
        let lines = self.ask(&format!("show route table {} {FROM_BGP}", table_of(family)))?;
        let first_words = lines.iter().filter_map(|line| line.split_whitespace().next());
        Ok(first_words.filter(|word| word.contains('/')).map(str::to_owned).collect())
    }

    fn paths(&self, prefix: &str) -> Result<Vec<RouterRoute>> {
        let table = table_of(Family::of(prefix));
        let lines = self.ask(&format!("show route {prefix} table {table} {FROM_BGP} all"))?;
        let is_headline = |line: &String| !line.starts_with('\t') && line.contains(" [");
        let starts = lines.iter().enumerate().filter(|(_, line)| is_headline(line));
        let starts: Vec<usize> = starts.map(|(start, _)| start).collect();
        let ends = starts.iter().skip(1).copied().chain([lines.len()]);
        let blocks = starts.iter().zip(ends).filter_map(|(start, end)| lines.get(*start..end));
        blocks.map(|block| self.route_of(block)).collect()
    }

    /// It marks the session, not its routes.
    fn kept(&self, family: Family) -> Result<BTreeMap<String, bool>> {
        let lines = self.ask("show protocols all \"node*\"")?;
        let stale = lines.iter().any(|line| line.trim() == "Neighbor graceful restart active");
        Ok(self.prefixes(family)?.into_iter().map(|prefix| (prefix, stale)).collect())
    }

    /// It logs it, for the last family, of which there is one marker for each.
    fn has_end_of_rib(&self, family: Family) -> Result<bool> {
        let log = fs::read_to_string(&self.log).context("reading BIRD's log")?;
        let session = log.rsplit_once(": BGP session established").map_or("", |(_, after)| after);
        let markers = session.matches(": Got END-OF-RIB").count();
        let place = self.spec.families.iter().position(|one| *one == family);
        Ok(place.is_some() && markers >= self.spec.families.len())
    }

    fn screen(&self, command: &str) -> Result<String> {
        Ok(self.ask(command)?.join("\n"))
    }

    /// birdc does not count messages, the log names each.
    fn received(&self) -> Result<Received> {
        let log = fs::read_to_string(&self.log).context("reading BIRD's log")?;
        let of_node = |line: &&str| line.contains("> node");
        let count = |words: &str| {
            log.lines().filter(of_node).filter(|line| line.ends_with(words)).count() as u64
        };
        Ok(Received {
            updates: count(": Got UPDATE"),
            route_refreshes: count(": Got ROUTE-REFRESH"),
        })
    }

    fn last_notification(&self) -> Result<Option<Notification>> {
        let Some(received) = self.last_cease()? else {
            return Ok(None);
        };
        let kind = received.split_once(": ").map_or(received.as_str(), |(kind, _)| kind);
        let (code, subcode) = match kind {
            "Hold timer expired" => (4, 0),
            "Maximum number of prefixes reached" => (6, 1),
            "Administrative shutdown" => (6, 2),
            "Peer de-configured" => (6, 3),
            "Administrative reset" => (6, 4),
            // Neither release has a name for it.
            "Unknown error 6.10" => (6, 10),
            other => bail!("BIRD received a notification that the suite does not know: {other}"),
        };
        Ok(Some(Notification { code, subcode }))
    }

    fn last_shutdown_text(&self) -> Result<Option<String>> {
        let received = self.last_cease()?.unwrap_or_default();
        Ok(received.split_once(": ").map(|(_, text)| text.trim_matches('"').to_owned()))
    }

    fn shut_down(&mut self, text: &str) -> Result<()> {
        self.ask(&format!("disable \"node*\" \"{text}\"")).map(drop)
    }
}

/// A static route that leads nowhere, with the attributes for BGP.
fn origination(local_as: u32, origination: &Origination) -> String {
    let Origination { prefix, prepends, communities, large_communities, med } = origination;
    let tuple = |text: &String| text.replace(':', ",");
    let mut text = format!("  route {prefix} blackhole {{ ");
    text += &format!("bgp_path.prepend({local_as}); ").repeat(*prepends);
    for community in communities {
        text += &format!("bgp_community.add(({})); ", tuple(community));
    }
    for community in large_communities {
        text += &format!("bgp_large_community.add(({})); ", tuple(community));
    }
    if let Some(med) = med {
        text += &format!("bgp_med = {med}; ");
    }
    text + "};\n"
}

/// The keys of TCP-AO, of which the first is the one that it requests.
fn ao_lines(keys: &[super::AoKey]) -> String {
    if keys.is_empty() {
        return String::new();
    }
    let lines = keys.iter().enumerate().map(|(position, key)| {
        let super::AoKey { send_id, recv_id, algorithm, secret } = key;
        let algorithm = match *algorithm {
            "hmac-sha-1-96" => "hmac sha1",
            "aes-128-cmac-96" => "cmac aes128",
            "hmac-sha-256-96" => "hmac sha256",
            other => other,
        };
        let preferred = if position == 0 { " preferred;" } else { "" };
        format!(
            "    key {{ send id {send_id}; recv id {recv_id}; secret \"{secret}\"; \
             algorithm {algorithm};{preferred} }};\n"
        )
    });
    format!("  authentication ao;\n  keys {{\n{}  }};\n", lines.collect::<String>())
}

/// `(unknown 0x4004, 65001, 1290693416)` among others.
fn link_bandwidth(communities: &str) -> Option<f64> {
    let mut tuples = communities.split('(').map(|tuple| tuple.trim().trim_end_matches(')'));
    let number = tuples.find_map(|tuple| {
        let mut parts = tuple.split(", ");
        let kind = parts.next()?;
        matches!(kind, "unknown 0x4004" | "unknown 0x4").then(|| parts.nth(1)?.parse().ok())?
    });
    number.map(link_bandwidth_of)
}

fn table_of(family: Family) -> &'static str {
    match family {
        Family::Ipv4 => "master4",
        Family::Ipv6 => "master6",
    }
}

/// `(65001,100) (65535,65281)` as `65001:100` and `65535:65281`.
fn tuples_of(text: &str) -> BTreeSet<String> {
    text.split(')')
        .map(|tuple| tuple.trim().trim_start_matches('(').replace(", ", ":").replace(',', ":"))
        .filter(|tuple| !tuple.is_empty())
        .collect()
}
