//! `| include EXPRESSION` after a command: only matching lines are returned. vtysh leaves this to the
//! daemons.
//!
//! FRR takes POSIX regular expressions. Supported here are those that people type at a router: text, `.` for
//! any character, `^` and `$` for the ends, `a|b` for either, `\` before a literal sign. Others are refused,
//! as FRR refuses an invalid expression.

/// Why there is no search.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum SearchError {
    /// An action other than `include`.
    #[error("% Unknown action '{0}'")]
    UnknownAction(String),
    /// The expression is missing.
    #[error("% Need a regexp to match")]
    NoExpression,
    /// Signs that are not supported here.
    #[error("% Bad regexp '{0}': only . ^ $ | and \\ have a meaning")]
    BadExpression(String),
}

/// What a line must contain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Search(Vec<Alternative>);

#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Alternative {
    at_start: bool,
    at_end: bool,
    /// `None` is any character.
    characters: Vec<Option<char>>,
}

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
        let bad = || SearchError::BadExpression(expression.to_owned());
        let (mut alternatives, mut current) = (Vec::new(), Alternative::default());
        let mut rest = expression.chars();
        while let Some(character) = rest.next() {
            if current.at_end && character != '|' {
                return Err(bad());
            }
            match character {
                '|' => alternatives.push(std::mem::take(&mut current)),
                '^' if !current.at_start && current.characters.is_empty() => {
                    current.at_start = true;
                }
                '$' => current.at_end = true,
                '.' => current.characters.push(None),
                '\\' => current.characters.push(Some(rest.next().ok_or_else(bad)?)),
                '^' | '*' | '+' | '?' | '(' | ')' | '[' | '{' => return Err(bad()),
                other => current.characters.push(Some(other)),
            }
        }
        alternatives.push(current);
        Ok(Self(alternatives))
    }

    /// The lines of `text` that match.
    pub(super) fn lines_of(&self, text: &str) -> String {
        let lines = text.split_inclusive('\n');
        lines.filter(|line| self.matches(line.trim_end_matches('\n'))).collect()
    }

    fn matches(&self, line: &str) -> bool {
        let line: Vec<char> = line.chars().collect();
        self.0.iter().any(|alternative| alternative.matches(&line))
    }
}

impl Alternative {
    fn matches(&self, line: &[char]) -> bool {
        let length = self.characters.len();
        let fits = |part: &[char]| {
            let mut pairs = part.iter().zip(&self.characters);
            pairs.all(|(given, wanted)| wanted.is_none_or(|wanted| wanted == *given))
        };
        let Some(last) = line.len().checked_sub(length) else { return false };
        let starts = match (self.at_start, self.at_end) {
            (true, true) if last > 0 => return false,
            (true, _) => 0..=0,
            (false, true) => last..=last,
            (false, false) => 0..=last,
        };
        starts
            .into_iter()
            .any(|start| line.get(start..start.saturating_add(length)).is_some_and(fits))
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
        assert_eq!(lines("include nothing like it"), "");
    }

    #[test]
    fn what_is_not_understood_is_refused() {
        for (search, why) in [
            ("exclude x", "% Unknown action 'exclude'"),
            ("", "% Unknown action ''"),
            ("include", "% Need a regexp to match"),
            ("include 10.*", "% Bad regexp '10.*': only . ^ $ | and \\ have a meaning"),
            ("include a$b", "% Bad regexp 'a$b': only . ^ $ | and \\ have a meaning"),
            ("include x\\", "% Bad regexp 'x\\': only . ^ $ | and \\ have a meaning"),
        ] {
            assert_eq!(Search::new(search).unwrap_err().to_string(), why);
        }
    }
}
