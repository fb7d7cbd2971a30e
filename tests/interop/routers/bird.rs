//! How is BIRD configured, run and asked? In the foreground, through its control socket, whose
//! numbered lines are what birdc prints for people. Used by every case.

use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, bail};

use super::installation::Installation;
use super::{
    Dialling, Family, Notification, Origination, Received, Release, Router, RouterRoute,
    RouterSpec, Session, address_of, as_path_of,
};
use crate::lab::Site;
use crate::lab::process::Process;

pub(super) const BIRD: &str = "/usr/sbin/bird";

const CONFIGURATION: &str = "bird.conf";
const SOCKET: &str = "bird.ctl";

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
             protocol kernel { ipv4 { export none; }; learn; scan time 1; }\n\
             protocol kernel { ipv6 { export none; }; learn; scan time 1; }\n";
        for family in [Family::Ipv4, Family::Ipv6] {
            text += &format!("protocol static own_{0} {{\n  {0};\n", family.word());
            let of_family = spec.originated.iter().filter(|one| one.family() == family);
            text += &of_family.map(|one| origination(spec.local_as, one)).collect::<String>();
            text += "}\n";
        }
        let kind = if spec.is_internal() { "internal" } else { "external" };
        text += &format!(
            "protocol bgp node {{\n  \
             debug {{ states, events, packets }};\n  \
             local {} port {} as {};\n  \
             neighbor {} as {} {kind};\n  \
             hold time {};\n  \
             connect retry time 1;\n  \
             connect delay time 1;\n  \
             error wait time 1, 2;\n",
            spec.local_address,
            spec.port,
            spec.local_as,
            spec.peer_address,
            spec.peer_as,
            spec.hold_time,
        );
        if spec.dialling == Dialling::Waits {
            text += "  passive;\n";
        }
        if let Some(password) = &spec.password {
            text += &format!("  password \"{password}\";\n");
        }
        text += &ao_lines(&spec.ao_keys);
        // Next hops of internal routes may be anywhere.
        let far = spec.multihop || spec.is_internal();
        text += if far { "  multihop;\n" } else { "  direct;\n" };
        for family in &spec.families {
            // It drops a MED that no export filter has set.
            let export = "export filter { if source != RTS_STATIC then reject; \
                          if defined(bgp_med) then bgp_med = bgp_med; accept; }";
            text += &format!("  {} {{ import all; {export}; }};\n", family.word());
        }
        text + "}\n"
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

impl Router for Bird {
    fn start(&mut self, site: &Site) -> Result<()> {
        fs::write(&self.configuration, self.configuration()).context("writing bird.conf")?;
        let _ = fs::remove_file(&self.socket);
        let mut arguments = vec!["-f".to_owned()];
        for (option, name) in [("-c", CONFIGURATION), ("-s", SOCKET), ("-P", "bird.pid")] {
            arguments.extend([option.to_owned(), self.installation.seen(name)]);
        }
        let place = self.installation.within(&site.namespace);
        let daemon = Process::spawn(&place, Path::new(BIRD), &arguments, &self.log)?;
        self.keep("BIRD", daemon)
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

    fn session(&self) -> Result<Session> {
        let lines = self.ask("show protocols node")?;
        // Name, Proto, Table, State, Since, Info.
        let words = lines.iter().map(|line| line.split_whitespace().collect::<Vec<_>>());
        let words = words.into_iter().find(|words| words.first() == Some(&"node"));
        let words = words.with_context(|| format!("expected protocol node in {lines:?}"))?;
        let state = words.get(5).copied().unwrap_or("(none)");
        Ok(Session {
            established: state == "Established",
            state: state.to_owned(),
            incarnation: format!("since {}", words.get(4).copied().unwrap_or_default()),
        })
    }

    fn prefixes(&self, family: Family) -> Result<BTreeSet<String>> {
        let table = table_of(family);
        let lines = self.ask(&format!("show route table {table} protocol node"))?;
        let first_words = lines.iter().filter_map(|line| line.split_whitespace().next());
        Ok(first_words.filter(|word| word.contains('/')).map(str::to_owned).collect())
    }

    fn route(&self, prefix: &str) -> Result<Option<RouterRoute>> {
        let table = table_of(Family::of(prefix));
        let lines = self.ask(&format!("show route {prefix} table {table} protocol node all"))?;
        let Some(headline) = lines.iter().find(|line| line.starts_with(prefix)) else {
            return Ok(None);
        };
        // `BGP.next_hop` in BIRD 2, `bgp_next_hop` in BIRD 3.
        let attribute = |name: &str| {
            let value = lines.iter().find_map(|line| {
                let line = line.trim();
                let line = line.strip_prefix("BGP.").or_else(|| line.strip_prefix("bgp_"))?;
                line.strip_prefix(name)?.strip_prefix(": ")
            });
            value.unwrap_or_default()
        };
        let as_path = match self.release {
            Release::Bookworm => attribute("as_path"),
            Release::Trixie => attribute("path"),
        };
        Ok(Some(RouterRoute {
            next_hops: attribute("next_hop")
                .split_whitespace()
                .map(address_of)
                .collect::<Result<_>>()?,
            as_path: as_path_of(as_path)?,
            communities: tuples_of(attribute("community")),
            large_communities: tuples_of(attribute("large_community")),
            local_preference: attribute("local_pref").parse().ok(),
            usable: headline.contains("unicast") && headline.contains("] *"),
        }))
    }

    /// birdc does not count messages, the log names each.
    fn received(&self) -> Result<Received> {
        let log = fs::read_to_string(&self.log).context("reading BIRD's log")?;
        let count = |words: &str| log.lines().filter(|line| line.ends_with(words)).count() as u64;
        Ok(Received {
            updates: count("node: Got UPDATE"),
            route_refreshes: count("node: Got ROUTE-REFRESH"),
        })
    }

    /// It forgets the error when the session is back, its log does not.
    fn last_notification(&self) -> Result<Option<Notification>> {
        let lines = self.ask("show protocols all node")?;
        let error = lines.iter().find_map(|line| line.trim().strip_prefix("Last error:"));
        let shown = error.and_then(|error| error.trim().strip_prefix("Received: "));
        let log = fs::read_to_string(&self.log).context("reading BIRD's log")?;
        let logged = log.lines().rev().find_map(|line| line.split_once("node: Received: "));
        let Some(received) = shown.or(logged.map(|(_, received)| received)) else {
            return Ok(None);
        };
        let (code, subcode) = match received {
            "Hold timer expired" => (4, 0),
            "Maximum number of prefixes reached" => (6, 1),
            "Administrative shutdown" => (6, 2),
            "Peer de-configured" => (6, 3),
            "Administrative reset" => (6, 4),
            other => bail!("BIRD received a notification that the suite does not know: {other}"),
        };
        Ok(Some(Notification { code, subcode }))
    }
}

/// A static route that leads nowhere, with the attributes that BGP shall say.
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

/// The keys of TCP-AO, of which the first is the one that it asks for.
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
