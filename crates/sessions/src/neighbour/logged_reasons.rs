//! Which reasons for a failed attempt are in the log already? A neighbour that alternates between two of them would write a
//! line for each attempt.

use std::collections::VecDeque;

/// The most reasons that are remembered: a neighbour that has more in turn is worth a line.
const REASONS_MAX: usize = 4;

/// The last ones since there was a session.
#[derive(Debug, Default)]
pub(super) struct LoggedReasons(VecDeque<String>);

impl LoggedReasons {
    /// Whether `reason` is not in the log yet.
    pub(super) fn is_news(&self, reason: &str) -> bool {
        !self.0.iter().any(|logged| logged == reason)
    }

    /// `reason` was logged.
    pub(super) fn note(&mut self, reason: String) {
        if self.0.len() >= REASONS_MAX {
            self.0.pop_front();
        }
        self.0.push_back(reason);
    }

    /// There was a session, or there are other settings.
    pub(super) fn clear(&mut self) {
        self.0.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasons_that_alternate_are_logged_once_each() {
        let mut logged = LoggedReasons::default();
        let mut lines = 0;
        for attempt in 0..100 {
            let reason = if attempt % 2 == 0 { "refused" } else { "no answer" };
            if logged.is_news(reason) {
                logged.note(reason.to_owned());
                lines += 1;
            }
        }
        assert_eq!(lines, 2);
        logged.clear();
        assert!(logged.is_news("refused"));
    }

    #[test]
    fn what_is_remembered_has_a_bound() {
        let mut logged = LoggedReasons::default();
        for number in 0..1000 {
            logged.note(number.to_string());
        }
        assert_eq!(logged.0.len(), REASONS_MAX);
        assert!(!logged.is_news("999") && logged.is_news("1"));
    }
}
