//! `bird.conf`, of BIRD 2 and 3.
//!
//! Answers which peers and advertisements say the same as BGP protocols, static routes and filters, and names each other
//! statement that concerns routing. What of a filter has no equal lets nothing through.
//!
//! | question | file |
//! |---|---|
//! | which statements there are, and what `define` puts into them | `text`, `constants` |
//! | what a protocol says | `peer`, `channel`, `statics`, `kernel`, `bfd`, `rpki` |
//! | what the code of a filter says | `code`, `variables`, `condition`, `paths`, `filter` |
//! | the same in our words | `rules`, `policies` |

mod bfd;
mod channel;
mod code;
mod condition;
mod constants;
mod filter;
mod kernel;
mod paths;
mod peer;
mod policies;
mod rpki;
mod rules;
mod statics;
mod text;
mod variables;

use std::collections::BTreeMap;

use ipnet::IpNet;
use serde_json::json;

use self::channel::is_on;
use self::code::Function;
use self::constants::Constants;
use self::kernel::Kernel;
use self::peer::{Neighbor, Scene};
use self::policies::Policies;
use self::rpki::Caches;
use self::statics::Static;
use self::text::Statement;
use crate::object::{Fields, Names, Translated};
use crate::outcome::Outcome;
use crate::policy::{Advertisements, OwnRoute};

/// Translates `text`.
pub(crate) fn import(text: &str, outcome: &mut Outcome) {
    match text::statements(text) {
        Ok(statements) => {
            let mut reading = Reading::default();
            // What a statement names is above it: BIRD reports an error otherwise.
            translated_each(&statements, outcome, |_, statement, outcome| {
                let mut statement = statement.clone();
                reading.constants.resolve(&mut statement);
                reading.read(&statement, outcome)
            });
            reading.translate(outcome);
        }
        Err(fault) => outcome.untranslated(fault.line, "bird.conf", fault.why),
    }
}

/// Reads each of the statements by its words; one without an equal is named.
fn translated_each(
    statements: &[Statement],
    outcome: &mut Outcome,
    mut read: impl FnMut(&[&str], &Statement, &mut Outcome) -> Result<(), &'static str>,
) {
    for statement in statements {
        if let Err(why) = read(&statement.words(), statement, outcome) {
            outcome.untranslated(statement.line, statement.text(), why);
        }
    }
}

/// What has been read.
#[derive(Default)]
struct Reading {
    router_id: Option<String>,
    constants: Constants,
    policies: Policies,
    templates: BTreeMap<String, Vec<Statement>>,
    neighbors: Vec<Neighbor>,
    statics: Vec<Static>,
    kernels: Vec<Kernel>,
    caches: Caches,
    /// `protocol direct`, which has the networks of interfaces: its name, and where it is.
    directs: Vec<(String, usize, String)>,
    names: Names,
    /// How many protocols of a kind have no name.
    unnamed: BTreeMap<String, usize>,
    bfd: Fields,
}

impl Reading {
    fn read(&mut self, statement: &Statement, outcome: &mut Outcome) -> Result<(), &'static str> {
        let words = statement.words();
        let block = statement.block.as_deref().unwrap_or_default();
        match words.as_slice() {
            ["router", "id", "from", ..] => outcome.note(
                statement.line,
                statement.text(),
                "the default is the address of the node",
            ),
            ["router", "id", id] => self.router_id = Some((*id).to_owned()),
            [
                "log" | "debug" | "timeformat" | "watchdog" | "mrtdump" | "threads" | "hostname"
                | "cli",
                ..,
            ]
            | ["graceful", "restart", "wait", ..]
            | ["ipv4", "table", "master4", ..]
            | ["ipv6", "table", "master6", ..]
            | ["roa4" | "roa6", "table", _] => {}
            ["define", ..] => return self.constants.define(&statement.words),
            ["filter", name, ..] => {
                let steps = code::filter(statement.code.as_deref().unwrap_or_default());
                self.policies.filters.insert((*name).to_owned(), steps);
            }
            ["function", name, ..] => {
                let body = statement.code.as_deref().unwrap_or_default();
                let function = Function::read(&statement.words, body);
                self.policies.functions.insert((*name).to_owned(), function);
            }
            ["template", "bgp", name, ..] => {
                let statements = self.with_template(&words, block)?;
                self.templates.insert((*name).to_owned(), statements);
            }
            ["protocol", kind, rest @ ..] => {
                let name = self.name(kind, rest);
                return self.protocol(kind, &name, statement, outcome);
            }
            ["include", ..] => {
                return Err("included files are not read; put their text in its place");
            }
            _ => return Err("has no equal"),
        }
        Ok(())
    }

    /// The name of a protocol: without one, that of its kind and a number.
    fn name(&mut self, kind: &str, rest: &[&str]) -> String {
        let versions = ["v2", "v3", "ng"];
        let given = rest.iter().find(|it| !versions.contains(*it)).filter(|it| **it != "from");
        given.map_or_else(
            || {
                let count = self.unnamed.entry(kind.to_owned()).or_default();
                *count = count.saturating_add(1);
                format!("{kind}{count}")
            },
            |it| (*it).to_owned(),
        )
    }

    fn protocol(
        &mut self,
        kind: &str,
        name: &str,
        statement: &Statement,
        outcome: &mut Outcome,
    ) -> Result<(), &'static str> {
        let block = statement.block.as_deref().unwrap_or_default();
        let is_off = |block: &[Statement]| {
            block
                .iter()
                .any(|it| matches!(it.words().as_slice(), ["disabled", rest @ ..] if is_on(rest)))
        };
        match kind {
            "bgp" => {
                let statements = self.with_template(&statement.words(), block)?;
                let place = (statement.line, statement.text().to_owned());
                self.policies.neighbors.insert(name.to_owned());
                let object = self.names.give(name);
                self.neighbors.push(Neighbor::read(&object, name, place, &statements, outcome));
            }
            "static" => self.statics.push(Static::read(name, block, outcome)),
            "kernel" if !is_off(block) => self.kernels.push(Kernel::read(block, outcome)),
            "bfd" if !is_off(block) => bfd::read(&mut self.bfd, block, outcome),
            "rpki" if !is_off(block) => self.caches.read(block, outcome),
            "direct" if !is_off(block) => {
                let text = statement.text().to_owned();
                self.directs.push((name.to_owned(), statement.line, text));
            }
            "device" | "radv" | "kernel" | "bfd" | "rpki" | "direct" => {}
            _ => return Err("Fairway speaks BGP, and nothing is learned from other protocols"),
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

    fn translate(mut self, outcome: &mut Outcome) {
        let has_own_roas = self.statics.iter().any(|it| it.has_roas);
        self.policies.roa_tables =
            if has_own_roas { Default::default() } else { self.caches.known_tables() };
        let exports =
            self.neighbors.iter().flat_map(|it| [false, true].map(|ipv6| it.filter(ipv6, true)));
        self.policies.exports_by_other_kinds =
            exports.flatten().any(|it| self.policies.looks_at_other_kinds(&it));
        let (policies, kernels) = (&self.policies, &self.kernels);
        let installs = [false, true].map(|ipv6| {
            let installs = |it: &Kernel| it.installs(ipv6, policies, outcome);
            // Each is asked, so that each is named.
            kernels.iter().map(installs).filter(|it| *it).count() > 0
        });
        let scene =
            Scene { router_id: self.router_id.as_deref(), policies, bfd: &self.bfd, installs };
        let mut has_bfd = false;
        let mut made = Vec::new();
        for neighbor in &self.neighbors {
            let Some(objects) = neighbor.objects(scene, outcome) else { continue };
            outcome.objects.extend(objects);
            has_bfd |= neighbor.has_common_bfd();
            made.push(neighbor);
        }
        let advertisements = self.advertisements(&made, outcome);
        self.name_directs(&made, outcome);
        if has_bfd {
            let profile = Translated::new("metallb.io/v1beta1", "BFDProfile", "bird", self.bfd);
            outcome.objects.push(profile);
        }
        outcome.objects.extend(advertisements.objects("static"));
        if let Some(servers) = self.caches.servers() {
            let mut spec = Fields::default();
            spec.set("rpki", json!({"servers": servers}));
            let kind = "BGPConfiguration";
            outcome.objects.push(Translated::new("fairway.dev/v1beta1", kind, "speaker", spec));
        }
    }

    /// Static routes, as each neighbor is told of them.
    fn advertisements(&self, made: &[&Neighbor], outcome: &mut Outcome) -> Advertisements {
        let mut advertisements = Advertisements::default();
        for protocol in &self.statics {
            let routes = protocol.routes(&self.policies, outcome);
            for ipv6 in [false, true] {
                let of_family = |it: &&(IpNet, OwnRoute)| it.0.addr().is_ipv6() == ipv6;
                let mut routes: Vec<_> = routes.iter().filter(of_family).cloned().collect();
                self.mark_blackholes(protocol, ipv6, &mut routes);
                for neighbor in made {
                    self.announce(protocol, ipv6, &routes, neighbor, &mut advertisements, outcome);
                }
            }
        }
        advertisements
    }

    /// Those that the kernel has drop packets there.
    fn mark_blackholes(&self, protocol: &Static, ipv6: bool, routes: &mut [(IpNet, OwnRoute)]) {
        let mut unsaid = Outcome::new("");
        for filter in self.kernels.iter().filter_map(|it| it.filter(ipv6)) {
            let own = self.policies.own(&filter, kernel::way(ipv6), protocol);
            for (prefix, route) in routes.iter_mut() {
                let passes = own.as_ref().and_then(|it| it.passed(*prefix, route, &mut unsaid));
                route.is_blackhole |= passes.is_some();
            }
        }
    }

    fn announce(
        &self,
        protocol: &Static,
        ipv6: bool,
        routes: &[(IpNet, OwnRoute)],
        neighbor: &Neighbor,
        advertisements: &mut Advertisements,
        outcome: &mut Outcome,
    ) {
        let Some(filter) = neighbor.filter(ipv6, true) else { return };
        let Some(own) = self.policies.own(&filter, neighbor.way(ipv6, true), protocol) else {
            return;
        };
        for (prefix, route) in routes {
            let Some(told) = own.passed(*prefix, route, outcome) else { continue };
            if told.prepend > 0 && !neighbor.is_external() {
                let why = "AS numbers are prepended for external neighbors only; own routes are announced without";
                outcome.untranslated(filter.line, &filter.text, why);
            }
            advertisements.announce(told, *prefix, &neighbor.name);
        }
    }

    /// Networks of interfaces are named where a neighbor would be told of them.
    fn name_directs(&self, made: &[&Neighbor], outcome: &mut Outcome) {
        for (name, line, text) in &self.directs {
            let is_told = |it: &&&Neighbor| {
                [false, true].into_iter().any(|ipv6| {
                    let filter = it.filter(ipv6, true);
                    let way = it.way(ipv6, true);
                    filter.is_some_and(|it| self.policies.may_pass_direct(&it, way, name))
                })
            };
            if made.iter().any(|it| is_told(&it)) {
                let why = "networks of interfaces are not announced; list them in prefixes of a BGPAdvertisement";
                outcome.untranslated(*line, text, why);
            }
        }
    }
}
