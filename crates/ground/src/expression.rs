//! The regular expressions that operators type: for AS paths (`_65010$`, `^$`) and for lines (`| include Active`).
//!
//! POSIX's, as bgpd compiles them, by the crate `regex`, whose search takes linear time whatever the expression is.

use regex::{Regex, RegexBuilder};

use super::AsPath;

/// The most memory of a compiled expression, in bytes: a thousand times what people type.
const EXPRESSION_BYTES_MAX: usize = 1 << 20;

/// A border of an AS number, for which `_` stands in AS paths.
const BORDER: &str = "(?:^|[,{}() ]|$)";

/// The expression that `text` is, or what is wrong with it, in one line.
pub fn compile_expression(text: &str) -> Result<Regex, String> {
    let compiled = RegexBuilder::new(text).size_limit(EXPRESSION_BYTES_MAX).build();
    compiled.map_err(|error| match error {
        regex::Error::CompiledTooBig(_) => "it takes too much memory".to_owned(),
        // The reason is behind a drawing of the place.
        error => {
            let text = error.to_string();
            let line = text.lines().last().unwrap_or_default().trim();
            line.strip_prefix("error: ").unwrap_or(line).to_owned()
        }
    })
}

/// An expression for AS paths. Two are equal if they are written alike.
#[derive(Debug, Clone)]
pub struct AsPathPattern {
    text: String,
    regex: Regex,
}

impl AsPathPattern {
    /// The expression that `text` is, or what is wrong with it, in one line.
    pub fn new(text: &str) -> Result<Self, String> {
        let regex = compile_expression(&text.replace('_', BORDER))?;
        Ok(Self { text: text.to_owned(), regex })
    }

    /// Whether a path has this form.
    pub fn matches(&self, path: &AsPath) -> bool {
        self.is_in(&path.to_string())
    }

    /// Whether a path that is written as `text` has this form.
    pub fn is_in(&self, text: &str) -> bool {
        self.regex.is_match(text)
    }
}

impl PartialEq for AsPathPattern {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl Eq for AsPathPattern {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_underscore_is_a_border_of_a_number() {
        let matches = |text: &str, path: &str| AsPathPattern::new(text).unwrap().is_in(path);
        assert!(matches("_65010_", "65010"));
        assert!(matches("_65010_", "65001 65010 65020"));
        assert!(!matches("_6501_", "65010"));
        assert!(matches("^65001_", "65001 65010"));
        assert!(matches("_(65010|65020)$", "65001 {65020"));
        assert!(matches("^$", "") && !matches("^$", "65001"));
    }

    #[test]
    fn an_expression_that_is_none_is_named_in_one_line() {
        assert_eq!(compile_expression("(65010").unwrap_err(), "unclosed group");
        assert_eq!(compile_expression("10.*(").unwrap_err(), "unclosed group");
        assert_eq!(
            compile_expression("((6{999}){999}){999}").unwrap_err(),
            "it takes too much memory"
        );
    }
}
