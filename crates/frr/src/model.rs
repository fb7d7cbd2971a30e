//! A model of a daemon: accepts lines as FRR does, shows its configuration, and rejects what FRR rejects.
//! `crates/frr/tests/daemons` checks that FRR behaves like it.

use std::sync::Arc;

use crate::configuration::{Configuration, Context, Statement};
use crate::difference::{Batch, Step, holds_anyway, setting};

/// The daemon.
#[derive(Debug, Clone, Default)]
pub(crate) struct Model {
    pub(crate) running: Configuration,
    /// Neighbours that lost their session, in order.
    pub(crate) reset: Vec<String>,
    /// Routes that were withdrawn at some time.
    pub(crate) withdrawn: Vec<String>,
    /// It takes no line that begins with this text.
    pub(crate) refuses: Option<&'static str>,
}

impl Model {
    pub(crate) fn with(text: &str) -> Self {
        let running = without_origins(&Configuration::parse(text));
        Self { running, ..Self::default() }
    }

    /// Accepts all lines of a batch; panics if one is rejected.
    pub(crate) fn take(&mut self, batch: &Batch) {
        for step in batch.additions.iter().chain(&batch.removals) {
            self.say(step).unwrap_or_else(|words| panic!("{:?}: {words}", step.line));
        }
    }

    pub(crate) fn say(&mut self, step: &Step) -> Result<(), String> {
        let Step { context, line, .. } = step;
        if self.refuses.is_some_and(|text| line.starts_with(text)) {
            return Err("% Configuration failed".to_owned());
        }
        // A description is any text.
        if line.contains("bad") && !line.starts_with("description ") {
            return Err("% Unknown command".to_owned());
        }
        for depth in 0..context.len() {
            self.set(&context[..depth].into(), &context[depth])?;
        }
        match line.strip_prefix("no ") {
            Some(what) if self.unset(context, what) => Ok(()),
            Some(what) if what.starts_with("neighbor ") || what.starts_with("route-map ") => {
                Err(format!("% nothing to undo: {what}"))
            }
            _ => self.set(context, line),
        }
    }

    fn set(&mut self, context: &Context, line: &Arc<str>) -> Result<(), String> {
        let words: Vec<&str> = line.split(' ').collect();
        if let ["router", "bgp", _, vrf @ ..] = words.as_slice() {
            let other = |it: &&Statement| it.line.starts_with("router bgp ") && it.line != *line;
            let mut others = self.running.statements.iter().filter(other);
            if others.any(|it| it.line.split(' ').skip(3).eq(vrf.iter().copied())) {
                return Err("BGP is already running".to_owned());
            }
        }
        if let ["neighbor", name, what, ..] = words.as_slice() {
            let begin = format!("neighbor {name} ");
            let has = |it: &&Statement| {
                it.context.first() == context.first() && it.line.starts_with(&begin)
            };
            let is_there = self.running.statements.iter().any(|it| has(&it));
            if !is_there && !matches!(*what, "remote-as" | "interface" | "peer-group") {
                return Err("% Specify remote-as or peer-group commands first".to_owned());
            }
        }
        let same = |it: &&mut Statement| {
            it.context == *context && setting(context, &it.line) == setting(context, line)
        };
        let opposite = format!("no {line}");
        let is_opposite = |it: &Statement| it.context == *context && *it.line == *opposite;
        let before = self.running.statements.len();
        self.running.statements.retain(|it| !is_opposite(it));
        if self.running.statements.len() != before {
            return Ok(());
        }
        if holds_anyway(context, line) {
            self.running.statements.retain(|it| {
                it.context != *context || setting(context, &it.line) != setting(context, line)
            });
            return Ok(());
        }
        let statement = Statement { context: context.clone(), line: line.clone(), origin: None };
        match self.running.statements.iter_mut().find(same) {
            Some(there) => *there = statement,
            None => self.running.statements.push(statement),
        }
        Ok(())
    }

    /// Unsets a setting. Returns whether there was one.
    fn unset(&mut self, context: &Context, what: &str) -> bool {
        let before = self.running.statements.len();
        // FRR 10.3 takes the word `view` for nothing.
        let what = match what.split_once(" view ") {
            Some((default, _)) => default.to_owned(),
            None => what.replace(" vrf fairway", " view fairway"),
        };
        let what = what.as_str();
        let words: Vec<&str> = what.split(' ').collect();
        let begin = format!("{what} ");
        match words.as_slice() {
            ["neighbor", name] => {
                self.reset.push((*name).to_owned());
                self.running.statements.retain(|it| {
                    it.context.first() != context.first() || !it.line.starts_with(&begin)
                });
            }
            ["router", "bgp", ..] => {
                let inside = |it: &Statement| it.context.first().is_some_and(|it| **it == *what);
                let mut lines = self.running.statements.iter().filter(|it| inside(it));
                assert!(!lines.any(|it| it.line.starts_with("neighbor ")), "FRR 8.4 crashes");
                self.running.statements.retain(|it| !inside(it) && *it.line != *what);
            }
            ["route-map", _] | ["ip" | "ipv6", "prefix-list", _] => {
                self.running.statements.retain(|it| {
                    !it.line.starts_with(&begin)
                        && !it.context.first().is_some_and(|it| it.starts_with(&begin))
                });
            }
            ["route-map", ..] | ["profile", _] => {
                self.running.statements.retain(|it| {
                    (it.context != *context || *it.line != *what)
                        && it.context.last().is_none_or(|it| **it != *what)
                });
            }
            _ => {
                if let ["network", prefix, ..] = words.as_slice() {
                    self.withdrawn.push((*prefix).to_owned());
                }
                let unset = setting(context, what);
                self.running.statements.retain(|it| {
                    it.context != *context
                        || setting(context, &it.line) != unset
                        || it.line.starts_with("no ")
                });
            }
        }
        self.running.statements.len() != before
    }

    /// The configuration, in arbitrary order.
    pub(crate) fn lines(&self) -> Vec<String> {
        lines(&self.running)
    }
}

pub(crate) fn lines(configuration: &Configuration) -> Vec<String> {
    let mut lines: Vec<String> =
        configuration.statements.iter().map(|it| format!("{it:?}")).collect();
    lines.sort();
    lines.dedup();
    lines
}

pub(crate) fn without_origins(configuration: &Configuration) -> Configuration {
    let statements = configuration.statements.iter().cloned();
    let statements = statements.map(|it| Statement { origin: None, ..it }).collect();
    Configuration { statements }
}
