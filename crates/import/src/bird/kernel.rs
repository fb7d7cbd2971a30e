//! `protocol kernel`: which routes go to the kernel.
//!
//! Answers whether learned routes do, and whether a route of ours does. Knows no neighbor.

use super::channel::{Channel, Code, Filter};
use super::code::{Does, Step};
use super::policies::{Policies, Way};
use super::text::Statement;
use super::translated_each;
use crate::outcome::Outcome;
use crate::policy::Passes;

/// A protocol.
#[derive(Debug, Default)]
pub(super) struct Kernel {
    ipv4: Channel,
    ipv6: Channel,
    /// Routes go to a table of the kernel that is not the main one.
    is_elsewhere: bool,
}

impl Kernel {
    /// Reads the statements of a protocol.
    pub(super) fn read(statements: &[Statement], outcome: &mut Outcome) -> Self {
        let mut kernel = Self::default();
        translated_each(statements, outcome, |words, statement, outcome| {
            let channel = match words {
                ["ipv4"] => &mut kernel.ipv4,
                ["ipv6"] => &mut kernel.ipv6,
                ["scan" | "persist" | "graceful" | "description" | "metric" | "debug", ..]
                | ["disabled", ..]
                | ["learn", "off" | "no"]
                | ["kernel", "table", "254"] => return Ok(()),
                ["merge", "paths", ..] => {
                    let why = "up to 64 equal paths are installed";
                    outcome.note(statement.line, statement.text(), why);
                    return Ok(());
                }
                ["kernel", "table", ..] => {
                    kernel.is_elsewhere = true;
                    return Err(
                        "routes go to the main table or that of a VRF; these are not installed",
                    );
                }
                _ => return Err("routes of the kernel are not announced"),
            };
            // They are what `learn` is about.
            let is_export = |it: &&Statement| !matches!(it.words().as_slice(), ["import", ..]);
            let inside = statement.block.iter().flatten().filter(is_export).cloned();
            channel.read(&inside.collect::<Vec<_>>(), outcome);
            Ok(())
        });
        kernel
    }

    /// What decides which routes go to the kernel.
    pub(super) fn filter(&self, ipv6: bool) -> Option<Filter> {
        let channel = if ipv6 { &self.ipv6 } else { &self.ipv4 };
        let is_elsewhere = self.is_elsewhere || channel.is_elsewhere;
        channel.export.clone().filter(|_| !is_elsewhere)
    }

    /// Whether learned routes go to the kernel; where only some do it is named.
    pub(super) fn installs(&self, ipv6: bool, policies: &Policies, outcome: &mut Outcome) -> bool {
        let Some(filter) = self.filter(ipv6) else { return false };
        let named = match &filter.code {
            Code::Named(name) => policies.filters.get(name).cloned(),
            Code::Steps(steps) => Some(steps.clone()),
        };
        let mut unset = Vec::new();
        let steps = named.map(|it| without_kernel_settings(&it, &mut unset));
        let code = steps.map_or_else(|| filter.code.clone(), Code::Steps);
        let plain = Filter { code, ..filter.clone() };
        let mut unsaid = Outcome::new("");
        match policies.learned(&plain, way(ipv6), None, &mut unsaid) {
            Passes::Nothing if unsaid.untranslated_lines().is_empty() => false,
            passes if passes == Passes::EVERYTHING => {
                for it in unset {
                    let why = "installed routes have no attributes of the kernel";
                    outcome.untranslated(it.line, &it.text, why);
                }
                true
            }
            _ => {
                let why = "installRoutes is for all routes of a peer; it is left out";
                outcome.untranslated(filter.line, &filter.text, why);
                false
            }
        }
    }
}

/// The way of routes into the kernel.
pub(super) fn way(ipv6: bool) -> Way {
    Way { ipv6, outbound: true, asn: None }
}

/// The steps without those that set `krt_prefsrc` and the like, which are told.
fn without_kernel_settings(steps: &[Step], unset: &mut Vec<Step>) -> Vec<Step> {
    let mut all = Vec::new();
    for step in steps {
        let does = match &step.does {
            Does::Assign(name, _) if name.starts_with("krt_") => {
                unset.push(step.clone());
                continue;
            }
            Does::If { condition, then, otherwise } => Does::If {
                condition: condition.clone(),
                then: without_kernel_settings(then, unset),
                otherwise: without_kernel_settings(otherwise, unset),
            },
            other => other.clone(),
        };
        all.push(Step { does, ..step.clone() });
    }
    all
}
