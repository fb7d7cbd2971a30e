//! The regular expressions that operators type: for AS paths (`_65010$`, `^$`) and for lines (`| include Active`).
//!
//! POSIX's, as bgpd compiles them, by the crate `regex`, whose search takes linear time whatever the expression is.

use std::sync::OnceLock;

use regex::{Regex, RegexBuilder};

use super::{AsPath, AsPathSegment};

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
    plain: Option<PlainForm>,
    /// Some 20 KiB. Of a plain form it is compiled where a path is there as text only.
    regex: OnceLock<Option<Regex>>,
}

/// What most expressions say, so that a path need not be written down for them: a route server tries each route with the
/// rules of each client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PlainForm {
    /// `^$`.
    Empty,
    /// `_65010_`.
    Through(u32),
    /// `^65010_`.
    From(u32),
    /// `_65010$`.
    Origin(u32),
}

impl PlainForm {
    fn of(text: &str) -> Option<Self> {
        let number = |text: &str| {
            let number: u32 = text.parse().ok()?;
            (number.to_string() == text).then_some(number)
        };
        if text == "^$" {
            return Some(Self::Empty);
        }
        match (text.strip_prefix('^'), text.strip_prefix('_')) {
            (Some(rest), _) => number(rest.strip_suffix('_')?).map(Self::From),
            (None, Some(rest)) => match rest.strip_suffix('_') {
                Some(inner) => number(inner).map(Self::Through),
                None => number(rest.strip_suffix('$')?).map(Self::Origin),
            },
            (None, None) => None,
        }
    }

    fn matches(self, path: &AsPath) -> bool {
        match self {
            Self::Empty => path.0.is_empty(),
            Self::Through(asn) => path.asns().any(|it| it == asn),
            Self::From(asn) => path.first() == Some(asn),
            Self::Origin(asn) => match path.0.last() {
                Some(AsPathSegment::Sequence(asns)) => asns.last() == Some(&asn),
                Some(AsPathSegment::Set(_)) | None => false,
            },
        }
    }
}

impl AsPathPattern {
    /// The expression that `text` is, or what is wrong with it, in one line.
    pub fn new(text: &str) -> Result<Self, String> {
        let plain = PlainForm::of(text);
        let regex = match plain {
            Some(_) => OnceLock::new(),
            None => OnceLock::from(Some(Self::compile(text)?)),
        };
        Ok(Self { text: text.to_owned(), plain, regex })
    }

    fn compile(text: &str) -> Result<Regex, String> {
        compile_expression(&text.replace('_', BORDER))
    }

    /// As it was written.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The first character that FRR does not take in such an expression.
    pub fn unknown_to_frr(&self) -> Option<char> {
        let is_known = |it: &char| it.is_ascii_digit() || " _^|[],{}()$*+.?-\\".contains(*it);
        self.text.chars().find(|it| !is_known(it))
    }

    /// Whether a path has this form.
    pub fn matches(&self, path: &AsPath) -> bool {
        // A segment without a number is written as nothing, or as `{}`.
        let is_empty = |segment: &AsPathSegment| match segment {
            AsPathSegment::Set(asns) | AsPathSegment::Sequence(asns) => asns.is_empty(),
        };
        match self.plain {
            Some(plain) if !path.0.iter().any(is_empty) => plain.matches(path),
            _ => self.is_in(&path.to_string()),
        }
    }

    /// Whether a path that is written as `text` has this form.
    pub fn is_in(&self, text: &str) -> bool {
        let regex = self.regex.get_or_init(|| Self::compile(&self.text).ok());
        regex.as_ref().is_some_and(|it| it.is_match(text))
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
    fn what_is_matched_without_text_is_what_the_text_would_match() {
        let texts = ["^$", "_7_", "^7_", "_7$", "_77_", "^77_", "_77$", "_07_", "^7$", "_7", "7"];
        let patterns = texts.map(|text| AsPathPattern::new(text).unwrap());
        assert_eq!(patterns.iter().filter(|it| it.plain.is_some()).count(), 7);
        let mut rng = crate::Rng::seeded(1);
        let mut below = |bound: u64| rng.next_u64() % bound;
        let mut matched = 0;
        for _ in 0..20_000 {
            let mut segments = Vec::new();
            for _ in 0..below(3) {
                let count = below(4);
                let asns = (0..count).map(|_| [7, 77, 707][usize::try_from(below(3)).unwrap()]);
                let asns: Vec<u32> = asns.collect();
                segments.push(match below(4) {
                    0 => AsPathSegment::Set(asns),
                    _ => AsPathSegment::Sequence(asns),
                });
            }
            let path = AsPath(segments);
            for pattern in &patterns {
                let matches = pattern.matches(&path);
                matched += u32::from(matches);
                assert_eq!(matches, pattern.is_in(&path.to_string()), "{} {path:?}", pattern.text);
            }
        }
        assert!(matched > 20_000, "{matched}");
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
