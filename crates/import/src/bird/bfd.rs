//! `protocol bfd`: how fast the sessions of neighbors are watched.
//!
//! Answers the fields of a BFDProfile. Knows no neighbor.

use serde_json::json;

use super::text::Statement;
use super::translated_each;
use crate::object::Fields;
use crate::outcome::Outcome;

/// Reads a protocol; the intervals of the last pattern of interfaces are those of all sessions.
pub(super) fn read(profile: &mut Fields, statements: &[Statement], outcome: &mut Outcome) {
    translated_each(statements, outcome, |words, statement, outcome| match words {
        ["multihop", ..] if !profile.is_empty() => {
            Err("one BFDProfile is for all neighbors: that of interfaces")
        }
        ["interface" | "multihop", ..] => {
            let inside = statement.block.as_deref().unwrap_or_default();
            translated_each(inside, outcome, |words, _, _| setting(profile, words));
            Ok(())
        }
        ["accept" | "strict" | "description" | "debug", ..] => Ok(()),
        _ => Err("BFD runs for neighbors with a bfdProfile"),
    });
}

/// One line of a pattern, or of `bfd { }` of a neighbor.
pub(super) fn setting(profile: &mut Fields, words: &[&str]) -> Result<(), &'static str> {
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
            profile.set("detectMultiplier", json!(count));
            return Ok(());
        }
        ["passive", ..] => {
            profile.set("passiveMode", json!(true));
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
        profile.set(field, json!(milliseconds));
    }
    Ok(())
}
