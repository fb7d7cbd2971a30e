//! `bird.conf`, of BIRD 2 and 3.
//!
//! Answers which peers and advertisements say the same as BGP protocols and static routes, and names each other statement that
//! concerns routing. Filters are code, and not translated: a channel with one lets nothing through.
//!
//! | question | file |
//! |---|---|
//! | which statements there are | `text` |
//! | what a protocol says | `peer`, `channel` |

mod channel;
mod peer;
mod text;

use std::collections::{BTreeMap, BTreeSet};

use ipnet::IpNet;
use serde_json::json;

use self::peer::{Neighbor, Scene};
use self::text::Statement;
use crate::object::{Fields, Names, Translated};
use crate::outcome::Outcome;

/// Translates `text`.
pub(crate) fn import(text: &str, outcome: &mut Outcome) {
    match text::statements(text) {
        Ok(statements) => {
            let mut reading = Reading::default();
            // A template may be below the protocol that uses it only by an error that BIRD reports.
            for statement in &statements {
                if let Err(why) = reading.read(statement, outcome) {
                    outcome.untranslated(statement.line, &statement.text(), why);
                }
            }
            reading.translate(outcome);
        }
        Err(fault) => outcome.untranslated(fault.line, "bird.conf", fault.why),
    }
}

/// What has been read.
#[derive(Default)]
struct Reading {
    router_id: Option<String>,
    installs: [bool; 2],
    /// Static routes go to the kernel, too: IPv4, IPv6.
    installs_static: [bool; 2],
    /// Static routes that drop packets.
    statics: BTreeSet<IpNet>,
    templates: BTreeMap<String, Vec<Statement>>,
    neighbors: Vec<Neighbor>,
    /// The line of `protocol direct`, which has the networks of interfaces.
    direct: Option<(usize, String)>,
    names: Names,
    bfd: Fields,
}

impl Reading {
    fn read(&mut self, statement: &Statement, outcome: &mut Outcome) -> Result<(), &'static str> {
        let words = statement.words();
        let block = statement.block.as_deref().unwrap_or_default();
        match words.as_slice() {
            ["router", "id", "from", ..] => {
                outcome.note(
                    statement.line,
                    &statement.text(),
                    "the default is the address of the node",
                );
            }
            ["router", "id", id] => self.router_id = Some((*id).to_owned()),
            [
                "log" | "debug" | "timeformat" | "watchdog" | "mrtdump" | "threads" | "hostname"
                | "cli",
                ..,
            ] => {}
            // They have an effect where they are used, which is named.
            ["filter" | "function" | "define", ..] => {}
            ["graceful", "restart", "wait", ..] => {}
            ["template", "bgp", name, ..] => {
                let statements = self.with_template(&words, block)?;
                self.templates.insert((*name).to_owned(), statements);
            }
            ["protocol", "bgp", rest @ ..] => {
                let name = rest.first().filter(|it| **it != "from").copied().unwrap_or("bgp");
                let statements = self.with_template(&words, block)?;
                let place = (statement.line, statement.text());
                let name = self.names.give(name);
                self.neighbors.push(Neighbor::read(&name, place, &statements, outcome));
            }
            ["protocol", "static", ..] => self.read_static(block, outcome),
            ["protocol", "kernel", ..] => self.read_kernel(block, outcome),
            ["protocol", "bfd", ..] => self.read_bfd(block, outcome),
            ["protocol", "direct", ..] => self.direct = Some((statement.line, statement.text())),
            ["protocol", "device" | "radv", ..] => {}
            ["protocol", ..] => {
                return Err("Fairway speaks BGP, and nothing is learned from other protocols");
            }
            ["include", ..] => return Err("included files are not read; import them, too"),
            _ => return Err("has no equal"),
        }
        Ok(())
    }

    /// The statements of the template behind `from`, and the own ones, which count where both say something.
    fn with_template(
        &self,
        words: &[&str],
        own: &[Statement],
    ) -> Result<Vec<Statement>, &'static str> {
        let from = words
            .iter()
            .position(|it| *it == "from")
            .and_then(|at| words.get(at.saturating_add(1)));
        let template = match from {
            Some(name) => {
                self.templates.get(*name).ok_or("the template is not defined above")?.as_slice()
            }
            None => &[],
        };
        Ok(template.iter().chain(own).cloned().collect())
    }

    fn read_static(&mut self, block: &[Statement], outcome: &mut Outcome) {
        for statement in block {
            let words = statement.words();
            let why = match words.as_slice() {
                ["ipv4" | "ipv6" | "description" | "check", ..] => continue,
                ["route", prefix, "blackhole" | "unreachable" | "prohibit"]
                    if statement.block.is_none() =>
                {
                    match prefix.parse::<IpNet>() {
                        Ok(prefix) => {
                            self.statics.insert(prefix.trunc());
                            continue;
                        }
                        Err(_) => "expected a prefix",
                    }
                }
                ["route", _, "blackhole" | "unreachable" | "prohibit"] => {
                    "attributes of a static route are set in a BGPAdvertisement with prefixes; it is not announced"
                }
                ["route", ..] => {
                    "routes to a next hop are the node's own; announce the prefix in a BGPAdvertisement"
                }
                _ => "has no equal",
            };
            outcome.untranslated(statement.line, &statement.text(), why);
        }
    }

    fn read_kernel(&mut self, block: &[Statement], outcome: &mut Outcome) {
        for statement in block {
            let words = statement.words();
            let family = match words.as_slice() {
                ["ipv4"] => 0,
                ["ipv6"] => 1,
                ["scan", ..]
                | ["persist", ..]
                | ["graceful", ..]
                | ["description", ..]
                | ["metric", ..] => continue,
                ["merge", "paths", ..] => {
                    outcome.note(
                        statement.line,
                        &statement.text(),
                        "up to 64 equal paths are installed",
                    );
                    continue;
                }
                _ => {
                    outcome.untranslated(statement.line, &statement.text(), "routes of the kernel are not announced, and go to the main table or that of a VRF");
                    continue;
                }
            };
            for inner in statement.block.as_deref().unwrap_or_default() {
                let all = inner.words().join(" ");
                let (learned, own) = match all.as_str() {
                    "export none" | "import all" | "import none" => continue,
                    "export all" => (true, true),
                    "export where source = RTS_BGP" => (true, false),
                    "export where source = RTS_STATIC" => (false, true),
                    _ => {
                        let why = "installRoutes is for all routes of a peer; it is left out";
                        outcome.untranslated(inner.line, &inner.text(), why);
                        continue;
                    }
                };
                if let (Some(installs), Some(statics)) =
                    (self.installs.get_mut(family), self.installs_static.get_mut(family))
                {
                    (*installs, *statics) = (learned, own);
                }
            }
        }
    }

    /// The intervals of the first interface pattern are those of all sessions.
    fn read_bfd(&mut self, block: &[Statement], outcome: &mut Outcome) {
        for statement in block {
            match statement.words().as_slice() {
                ["interface" | "multihop", ..] => {}
                ["accept" | "strict" | "description", ..] => continue,
                _ => {
                    outcome.untranslated(
                        statement.line,
                        &statement.text(),
                        "BFD runs for neighbors with a bfdProfile",
                    );
                    continue;
                }
            }
            for inner in statement.block.as_deref().unwrap_or_default() {
                if let Err(why) = self.bfd_setting(&inner.words()) {
                    outcome.untranslated(inner.line, &inner.text(), why);
                }
            }
        }
    }

    fn bfd_setting(&mut self, words: &[&str]) -> Result<(), &'static str> {
        let fields: &[&str] = match words {
            ["interval", ..] => &["receiveInterval", "transmitInterval"],
            ["min", "rx", "interval", ..] => &["receiveInterval"],
            ["min", "tx", "interval", ..] => &["transmitInterval"],
            ["multiplier", count] => {
                let count: u8 = count
                    .parse()
                    .ok()
                    .filter(|it| *it >= 2)
                    .ok_or("expected a number from 2 to 255")?;
                self.bfd.set("detectMultiplier", json!(count));
                return Ok(());
            }
            ["passive", ..] => {
                self.bfd.set("passiveMode", json!(true));
                return Ok(());
            }
            ["idle", "tx", "interval", ..] => return Ok(()),
            _ => return Err("has no equal in a BFDProfile"),
        };
        let milliseconds = match words {
            [.., number, "ms"] => number.parse::<u32>().ok(),
            [.., number, "s"] => number.parse::<u32>().ok().and_then(|it| it.checked_mul(1000)),
            [.., number, "us"] => number.parse::<u32>().ok().map(|it| it / 1000),
            _ => None,
        };
        let milliseconds = milliseconds.filter(|it| (10..=60_000).contains(it));
        let milliseconds = milliseconds.ok_or("expected an interval from 10 ms to 60 s")?;
        for field in fields {
            self.bfd.set(field, json!(milliseconds));
        }
        Ok(())
    }

    fn translate(self, outcome: &mut Outcome) {
        let Self { router_id, installs, installs_static, statics, neighbors, bfd, direct, .. } =
            self;
        let scene = Scene { router_id: router_id.as_deref(), installs };
        let mut has_bfd = false;
        let mut told: BTreeMap<BTreeSet<String>, Vec<IpNet>> = BTreeMap::new();
        let mut made = Vec::new();
        for neighbor in &neighbors {
            let Some(objects) = neighbor.objects(scene, outcome) else { continue };
            outcome.objects.extend(objects);
            has_bfd |= neighbor.has_bfd;
            made.push(neighbor);
        }
        for prefix in statics {
            let channel = |it: &&&Neighbor| {
                let channel = if prefix.addr().is_ipv6() { &it.ipv6 } else { &it.ipv4 };
                channel.as_ref().is_some_and(|it| it.exports_static)
            };
            let peers: BTreeSet<String> =
                made.iter().filter(channel).map(|it| it.name.clone()).collect();
            if !peers.is_empty() {
                told.entry(peers).or_default().push(prefix);
            }
        }
        if has_bfd {
            outcome.objects.push(Translated::new("metallb.io/v1beta1", "BFDProfile", "bird", bfd));
        }
        let exports =
            |it: &&Neighbor| [&it.ipv4, &it.ipv6].into_iter().flatten().any(|it| it.exports_others);
        if let Some((line, text)) = direct.filter(|_| made.iter().any(exports)) {
            let why = "networks of interfaces are not announced; list them in prefixes of a BGPAdvertisement";
            outcome.untranslated(line, &text, why);
        }
        let mut names = Names::default();
        for (peers, prefixes) in told {
            let of = |ipv6: bool| prefixes.iter().any(|it| it.addr().is_ipv6() == ipv6);
            let [ipv4, ipv6] = installs_static;
            let drops = (!of(false) || ipv4) && (!of(true) || ipv6);
            let mut spec = Fields::default();
            let prefixes: Vec<String> = prefixes.iter().map(ToString::to_string).collect();
            spec.set("prefixes", json!(prefixes))
                .set("peers", json!(peers))
                .set_if("blackhole", drops);
            let name = names.give("static");
            outcome.objects.push(Translated::new(
                "metallb.io/v1beta1",
                "BGPAdvertisement",
                &name,
                spec,
            ));
        }
    }
}
