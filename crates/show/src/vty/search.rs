//! `| include EXPRESSION` after a command: only matching lines are returned. vtysh leaves this to the
//! daemons.

use fairway_ground::compile_expression;
use regex::Regex;

/// Why there is no search.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum SearchError {
    /// An action other than `include`.
    #[error("% Unknown action '{0}'")]
    UnknownAction(String),
    /// The expression is missing.
    #[error("% Need a regexp to match")]
    NoExpression,
    /// It is not a regular expression.
    #[error("% Bad regexp '{text}': {cause}")]
    BadExpression {
        /// The text.
        text: String,
        /// What is wrong with it.
        cause: String,
    },
}

/// What a line must contain.
#[derive(Debug, Clone)]
pub(super) struct Search(Regex);

impl Search {
    /// Parses the text after the `|`.
    pub(super) fn new(text: &str) -> Result<Self, SearchError> {
        let text = text.trim();
        let (action, expression) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
        let expression = expression.trim();
        if action != "include" {
            return Err(SearchError::UnknownAction(action.to_owned()));
        }
        if expression.is_empty() {
            return Err(SearchError::NoExpression);
        }
        let bad = |cause| SearchError::BadExpression { text: expression.to_owned(), cause };
        compile_expression(expression).map(Self).map_err(bad)
    }

    /// The lines of `text` that match.
    pub(super) fn lines_of(&self, text: &str) -> String {
        let lines = text.split_inclusive('\n');
        lines.filter(|line| self.0.is_match(line.trim_end_matches('\n'))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(search: &str) -> String {
        let text = "Neighbor  V\n10.1.1.2  4 up\n10.1.1.97 4 down\n\nTotal 2\n";
        Search::new(search).unwrap().lines_of(text)
    }

    #[test]
    fn lines_are_searched_as_people_do_at_a_router() {
        assert_eq!(lines("include 10.1.1.2"), "10.1.1.2  4 up\n");
        assert_eq!(lines(" include  Total|up"), "10.1.1.2  4 up\nTotal 2\n");
        assert_eq!(lines("include ^10"), "10.1.1.2  4 up\n10.1.1.97 4 down\n");
        assert_eq!(lines("include 4 down$"), "10.1.1.97 4 down\n");
        assert_eq!(lines("include ^Total 2$"), "Total 2\n");
        assert_eq!(lines("include ^$"), "\n");
        assert_eq!(lines("include 10\\.1\\.1\\.9"), "10.1.1.97 4 down\n");
        assert_eq!(lines("include ^10.*(up|left)$"), "10.1.1.2  4 up\n");
        assert_eq!(lines("include [0-9]{2,} 4"), "10.1.1.97 4 down\n");
        assert_eq!(lines("include nothing like it"), "");
    }

    #[test]
    fn what_is_not_understood_is_refused() {
        for (search, why) in [
            ("exclude x", "% Unknown action 'exclude'"),
            ("", "% Unknown action ''"),
            ("include", "% Need a regexp to match"),
            ("include 10.*(", "% Bad regexp '10.*(': unclosed group"),
        ] {
            assert_eq!(Search::new(search).unwrap_err().to_string(), why);
        }
    }
}
