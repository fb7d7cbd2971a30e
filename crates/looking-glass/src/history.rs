//! A session over the last hour, as a strip: where it was up, down or unknown.

use serde::Serialize;

use crate::transitions::{Transition, Transitions};

/// The right end of a strip moves on by so much at a time: meanwhile a page stays as it is.
pub(crate) const STEP_SECONDS: u64 = 30;
/// A strip has so many steps.
const STEPS: u64 = Transitions::KEPT_SECONDS / STEP_SECONDS;

/// A part of a strip with one state, in steps from its left end.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Span {
    pub(crate) x: u64,
    pub(crate) width: u64,
    pub(crate) is_up: bool,
}

/// The strip, and the same in words.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Strip {
    pub(crate) steps: u64,
    pub(crate) spans: Vec<Span>,
    /// As in `up, 2 times down in the last hour`.
    pub(crate) words: String,
}

impl Strip {
    /// Of these transitions, the earliest first.
    pub(crate) fn of(transitions: impl Iterator<Item = Transition>, now: u64) -> Self {
        let end = now.div_ceil(STEP_SECONDS);
        let begin = end.saturating_sub(STEPS);
        let step = |at: u64| (at / STEP_SECONDS).clamp(begin, end).saturating_sub(begin);
        let mut spans: Vec<Span> = Vec::new();
        let mut downs: u64 = 0;
        let mut is_up = None;
        for transition in transitions {
            let x = step(transition.at_epoch_seconds);
            let is_recent = transition.at_epoch_seconds >= begin.saturating_mul(STEP_SECONDS);
            let goes_down = is_up == Some(true) && !transition.is_up;
            downs = downs.saturating_add(u64::from(is_recent && goes_down));
            if let Some(last) = spans.last_mut() {
                last.width = x.saturating_sub(last.x);
            }
            // What lasted less than a step is drawn as one step if it was down: it must be seen.
            if let Some(last) = spans.last_mut()
                && last.width == 0
            {
                if last.is_up {
                    spans.pop();
                } else {
                    last.width = 1;
                }
            }
            let drawn = spans.last().map_or(0, |it| it.x.saturating_add(it.width));
            spans.push(Span { x: x.max(drawn), width: 0, is_up: transition.is_up });
            is_up = Some(transition.is_up);
        }
        if let Some(last) = spans.last_mut() {
            last.width = STEPS.saturating_sub(last.x).max(u64::from(!last.is_up));
        }
        spans.retain(|it| it.width > 0 && it.x < STEPS);
        Self { steps: STEPS, spans, words: words(is_up, downs) }
    }
}

fn words(is_up: Option<bool>, downs: u64) -> String {
    let now = match is_up {
        Some(true) => "up",
        Some(false) => "down",
        None => return "unknown".to_owned(),
    };
    match downs {
        0 => format!("{now} for the last hour, as far as it is known"),
        1 => format!("{now}; it went down once in the last hour"),
        times => format!("{now}; it went down {times} times in the last hour"),
    }
}
