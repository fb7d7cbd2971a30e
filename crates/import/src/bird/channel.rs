//! What a channel exchanges with the table of routes: one address family of a protocol.
//!
//! Answers the filters in both directions, and the options beside them. Knows no session, and not what the filters do.

use super::code::{Does, Step, expression, filter};
use super::text::{Statement, Word};
use super::translated_each;
use crate::outcome::Outcome;

/// Which routes pass in one direction.
#[derive(Debug, Clone)]
pub(super) struct Filter {
    pub(super) line: usize,
    pub(super) text: String,
    pub(super) code: Code,
}

#[derive(Debug, Clone)]
pub(super) enum Code {
    Steps(Vec<Step>),
    /// A filter by its name.
    Named(String),
}

impl Filter {
    /// All routes pass, or none.
    pub(super) fn of(line: usize, text: &str, does: Does) -> Self {
        let text = text.to_owned();
        let step = Step { line, text: text.clone(), does };
        Self { line, text, code: Code::Steps(vec![step]) }
    }

    /// `all`, `none`, `where CONDITION`, `filter NAME` or `filter { CODE }`; words behind `import` or `export`.
    fn read(words: &[Word], statement: &Statement) -> Result<Self, &'static str> {
        let (line, text) = (statement.line, statement.text());
        let first = words.first().map(|it| it.text.as_str());
        let code = match (first, words, &statement.code) {
            (Some("all"), [_], None) => return Ok(Self::of(line, text, Does::Accept)),
            (Some("none"), [_], None) => return Ok(Self::of(line, text, Does::Reject)),
            (Some("where"), [_, condition @ ..], None) => {
                let accept = Self::of(line, text, Does::Accept);
                let Code::Steps(then) = accept.code else { return Ok(accept) };
                let condition = expression(condition);
                let does = Does::If { condition, then, otherwise: Vec::new() };
                return Ok(Self::of(line, text, does));
            }
            (Some("filter"), [_, name], None) => Code::Named(name.text.clone()),
            (Some("filter"), [_], Some(code)) => Code::Steps(filter(code)),
            _ => return Err("expected all, none, where CONDITION or filter"),
        };
        Ok(Self { line, text: text.to_owned(), code })
    }
}

/// What a channel says.
#[derive(Debug, Clone, Default)]
pub(super) struct Channel {
    pub(super) import: Option<Filter>,
    pub(super) export: Option<Filter>,
    /// Another table than the one with all routes.
    pub(super) is_elsewhere: bool,
    pub(super) limit: Option<u32>,
    pub(super) keeps_filtered: bool,
    pub(super) extended_next_hop: bool,
    pub(super) sends_paths: bool,
    pub(super) receives_paths: bool,
    /// The line of `next hop self`.
    pub(super) next_hop_self: Option<(usize, String)>,
    pub(super) next_hop: Option<String>,
}

impl Channel {
    /// Reads the statements of a channel; a later one of a kind counts.
    pub(super) fn read(&mut self, statements: &[Statement], outcome: &mut Outcome) {
        translated_each(statements, outcome, |words, statement, outcome| {
            self.statement(words, statement, outcome)
        });
    }

    fn statement(
        &mut self,
        words: &[&str],
        statement: &Statement,
        outcome: &mut Outcome,
    ) -> Result<(), &'static str> {
        let behind = statement.words.get(1..).unwrap_or_default();
        match words {
            ["import", "limit", rest @ ..] | ["receive", "limit", rest @ ..] => {
                return self.limit(rest, statement, outcome);
            }
            ["import", "keep", "filtered", rest @ ..] => self.keeps_filtered = is_on(rest),
            // Routes are kept as they were received where that is needed.
            ["import" | "export", "table", ..] => {}
            ["import", ..] => {
                let nothing = || Filter::of(statement.line, statement.text(), Does::Reject);
                self.import = Some(nothing());
                self.import = Some(Filter::read(behind, statement)?);
            }
            ["export", "limit", "off"] => {}
            ["export", "limit", ..] => return Err("has no equal"),
            ["export", ..] => {
                let nothing = || Filter::of(statement.line, statement.text(), Does::Reject);
                self.export = Some(nothing());
                self.export = Some(Filter::read(behind, statement)?);
            }
            ["table", "master4" | "master6"] => self.is_elsewhere = false,
            ["table", ..] => {
                self.is_elsewhere = true;
                return Err("there is one table of routes; what is in another one is left out");
            }
            ["extended", "next", "hop", rest @ ..] => self.extended_next_hop = is_on(rest),
            ["add", "paths", "tx"] => self.sends_paths = true,
            ["add", "paths", "rx"] => self.receives_paths = true,
            ["add", "paths", rest @ ..] => {
                (self.sends_paths, self.receives_paths) = (is_on(rest), is_on(rest));
            }
            ["next", "hop", "self", "off" | "no"] => self.next_hop_self = None,
            ["next", "hop", "self", ..] => {
                self.next_hop_self = Some((statement.line, statement.text().to_owned()));
            }
            ["next", "hop", "address", address] => self.next_hop = Some((*address).to_owned()),
            // As Fairway does it.
            ["next", "hop", "keep", "off"] | ["mandatory", ..] | ["preference", "100"] => {}
            ["gateway" | "igp" | "debug" | "validate", ..] | ["rpki", "reload", ..] => {}
            _ => return Err("has no equal"),
        }
        Ok(())
    }

    fn limit(
        &mut self,
        words: &[&str],
        statement: &Statement,
        outcome: &mut Outcome,
    ) -> Result<(), &'static str> {
        let (limit, action) = match words {
            ["off"] => {
                self.limit = None;
                return Ok(());
            }
            [limit] => (limit, "disable"),
            [limit, "action", action] => (limit, *action),
            _ => return Err("expected import limit NUMBER [action restart]"),
        };
        let Ok(limit) = limit.parse() else { return Err("the limit is not a number") };
        match action {
            "restart" => {}
            "disable" => outcome.note(
                statement.line,
                statement.text(),
                "a session that exceeds it is tried again after 30 s",
            ),
            _ => return Err("a limit ends the session; it is left out"),
        }
        self.limit = Some(limit);
        Ok(())
    }
}

/// Whether a switch is on: it is without a word, too, and with a number.
pub(super) fn is_on(words: &[&str]) -> bool {
    !matches!(words, ["off" | "no" | "0" | "false"])
}
