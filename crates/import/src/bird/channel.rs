//! What a channel of a BGP protocol exchanges: one address family.
//!
//! Answers which routes pass in both directions, and the options beside that. Knows no session. A filter lets nothing
//! through: its code is not translated.

use super::text::Statement;
use crate::outcome::Outcome;

/// What a channel says.
#[derive(Debug, Clone, Default)]
pub(super) struct Channel {
    /// Learned routes are accepted.
    pub(super) imports: bool,
    /// Learned routes are passed on.
    pub(super) exports_learned: bool,
    /// Static routes are announced.
    pub(super) exports_static: bool,
    /// Routes of all other protocols, too.
    pub(super) exports_others: bool,
    pub(super) limit: Option<u32>,
    pub(super) keeps_filtered: bool,
    pub(super) extended_next_hop: bool,
    pub(super) sends_paths: bool,
    pub(super) receives_paths: bool,
    pub(super) next_hop_self: bool,
    pub(super) next_hop: Option<String>,
}

impl Channel {
    /// Reads the statements of a channel; a later one of a kind counts.
    pub(super) fn read(&mut self, statements: &[Statement], outcome: &mut Outcome) {
        for statement in statements {
            let words = statement.words();
            if let Err(why) = self.statement(&words, statement, outcome) {
                outcome.untranslated(statement.line, &statement.text(), why);
            }
        }
    }

    fn statement(
        &mut self,
        words: &[&str],
        statement: &Statement,
        outcome: &mut Outcome,
    ) -> Result<(), &'static str> {
        match words {
            ["import", "all"] => self.imports = true,
            ["import", "none"] => self.imports = false,
            ["import", "limit", rest @ ..] | ["receive", "limit", rest @ ..] => {
                return self.limit(rest, statement, outcome);
            }
            ["import", "keep", "filtered", rest @ ..] => self.keeps_filtered = is_on(rest),
            ["import", ..] => {
                self.imports = false;
                return Err(
                    "filters are not translated; nothing is accepted until toReceive says so",
                );
            }
            ["export", rest @ ..] => return self.export(rest),
            ["extended", "next", "hop", rest @ ..] => self.extended_next_hop = is_on(rest),
            ["add", "paths", "tx"] => self.sends_paths = true,
            ["add", "paths", "rx"] => self.receives_paths = true,
            ["add", "paths", rest @ ..] => {
                (self.sends_paths, self.receives_paths) = (is_on(rest), is_on(rest));
            }
            ["next", "hop", "self", ..] => self.next_hop_self = true,
            ["next", "hop", "address", address] => self.next_hop = Some((*address).to_owned()),
            // As Fairway does it.
            ["next", "hop", "keep", "off"] | ["mandatory", ..] | ["preference", "100"] => {}
            ["gateway" | "igp", ..] => {}
            _ => return Err("has no equal"),
        }
        Ok(())
    }

    fn export(&mut self, words: &[&str]) -> Result<(), &'static str> {
        let sources = words.join(" ");
        self.exports_others = sources == "all";
        let (learned, own) = match sources.as_str() {
            "all" => (true, true),
            "none" => (false, false),
            "where source = RTS_STATIC" => (false, true),
            "where source = RTS_BGP" => (true, false),
            "where source ~ [ RTS_STATIC, RTS_BGP ]"
            | "where source ~ [RTS_STATIC, RTS_BGP]"
            | "where source ~ [ RTS_BGP, RTS_STATIC ]"
            | "where source ~ [RTS_BGP, RTS_STATIC]" => (true, true),
            _ => {
                (self.exports_learned, self.exports_static) = (false, false);
                return Err(
                    "filters are not translated; nothing is announced until toAdvertise and a BGPAdvertisement say so",
                );
            }
        };
        (self.exports_learned, self.exports_static) = (learned, own);
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
                &statement.text(),
                "a session that exceeds it is tried again after 30 s",
            ),
            _ => return Err("a limit ends the session; it is left out"),
        }
        self.limit = Some(limit);
        Ok(())
    }
}

/// Whether a switch is on: it is without a word, too.
pub(super) fn is_on(words: &[&str]) -> bool {
    matches!(words, [] | ["on" | "yes"])
}
