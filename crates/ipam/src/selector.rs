//! Which nodes or namespaces is a pool for?
//!
//! The language is Calico's: `has(rack) && !(zone in {'a', 'b'} || name starts with "db-")`. Knows no pool. An absent label
//! is unlike every value: `!=` and `not in` hold then.

use std::collections::BTreeSet;

use fairway_model::Labels;

/// The longest text of a selector, as the definition of IPPool has it.
const LENGTH_MAX: usize = 1024;
/// How deep parentheses and negations may be: a selector within bounds needs less, and each level is one of the stack.
const DEPTH_MAX: usize = 64;

/// A selector that was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Selector(Term);

/// Why a text is no selector.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SelectorError {
    /// More than a pool may have.
    #[error("it has {0} characters; at most {LENGTH_MAX} are allowed")]
    TooLong(usize),
    /// Nested too deeply.
    #[error("it is nested more than {DEPTH_MAX} times")]
    TooDeep,
    /// Something else stands there.
    #[error("at character {position}: expected {expected}, found {found:?}")]
    Unexpected {
        /// Counted from 1.
        position: usize,
        /// What may stand there.
        expected: &'static str,
        /// What does; empty at the end.
        found: String,
    },
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Term {
    All,
    Has(String),
    Is(String, Test),
    Not(Box<Term>),
    Both(Box<Term>, Box<Term>),
    Either(Box<Term>, Box<Term>),
}

/// What is asked of the value of a label.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Test {
    Equal(String),
    Unequal(String),
    In(BTreeSet<String>),
    NotIn(BTreeSet<String>),
    Contains(String),
    StartsWith(String),
    EndsWith(String),
}

impl Selector {
    /// Selects everything: `all()`, and the empty text.
    pub fn all() -> Self {
        Self(Term::All)
    }

    /// Reads a selector.
    ///
    /// # Errors
    /// What stands where, and what may stand there.
    pub fn parse(text: &str) -> Result<Self, SelectorError> {
        let length = text.chars().count();
        if length > LENGTH_MAX {
            return Err(SelectorError::TooLong(length));
        }
        let mut reader = Reader { rest: text, whole: text };
        reader.skip_spaces();
        if reader.rest.is_empty() {
            return Ok(Self::all());
        }
        let term = reader.either(0)?;
        match reader.rest.is_empty() {
            true => Ok(Self(term)),
            false => Err(reader.unexpected("`&&`, `||` or the end")),
        }
    }

    /// Whether an object with these labels is selected.
    pub fn matches(&self, labels: &Labels) -> bool {
        self.0.matches(labels)
    }
}

impl Term {
    fn matches(&self, labels: &Labels) -> bool {
        match self {
            Self::All => true,
            Self::Has(label) => labels.contains_key(label),
            Self::Is(label, test) => test.holds(labels.get(label)),
            Self::Not(term) => !term.matches(labels),
            Self::Both(one, other) => one.matches(labels) && other.matches(labels),
            Self::Either(one, other) => one.matches(labels) || other.matches(labels),
        }
    }
}

impl Test {
    fn holds(&self, value: Option<&String>) -> bool {
        match self {
            Self::Equal(text) => value.is_some_and(|it| it == text),
            Self::Unequal(text) => value.is_none_or(|it| it != text),
            Self::In(texts) => value.is_some_and(|it| texts.contains(it)),
            Self::NotIn(texts) => value.is_none_or(|it| !texts.contains(it)),
            Self::Contains(text) => value.is_some_and(|it| it.contains(text)),
            Self::StartsWith(text) => value.is_some_and(|it| it.starts_with(text)),
            Self::EndsWith(text) => value.is_some_and(|it| it.ends_with(text)),
        }
    }
}

/// The text that is left.
struct Reader<'a> {
    rest: &'a str,
    whole: &'a str,
}

impl<'a> Reader<'a> {
    fn skip_spaces(&mut self) {
        self.rest = self.rest.trim_start();
    }

    /// Takes this if it comes next.
    fn takes(&mut self, text: &str) -> bool {
        let Some(rest) = self.rest.strip_prefix(text) else { return false };
        self.rest = rest;
        self.skip_spaces();
        true
    }

    /// Takes these words if they come next, with any space between them and none of a label's characters behind.
    fn takes_words(&mut self, words: &[&str]) -> bool {
        let mut rest = self.rest;
        for word in words {
            let Some(behind) = rest.trim_start().strip_prefix(word) else { return false };
            if behind.starts_with(is_of_label) {
                return false;
            }
            rest = behind;
        }
        self.rest = rest.trim_start();
        true
    }

    fn unexpected(&self, expected: &'static str) -> SelectorError {
        let before = self.whole.chars().count().saturating_sub(self.rest.chars().count());
        let found: String = self.rest.chars().take(16).collect();
        SelectorError::Unexpected { position: before.saturating_add(1), expected, found }
    }

    fn either(&mut self, depth: usize) -> Result<Term, SelectorError> {
        let mut term = self.both(depth)?;
        while self.takes("||") {
            term = Term::Either(Box::new(term), Box::new(self.both(depth)?));
        }
        Ok(term)
    }

    fn both(&mut self, depth: usize) -> Result<Term, SelectorError> {
        let mut term = self.one(depth)?;
        while self.takes("&&") {
            term = Term::Both(Box::new(term), Box::new(self.one(depth)?));
        }
        Ok(term)
    }

    fn one(&mut self, depth: usize) -> Result<Term, SelectorError> {
        if depth >= DEPTH_MAX {
            return Err(SelectorError::TooDeep);
        }
        let within = depth.saturating_add(1);
        if self.rest.starts_with('!') && !self.rest.starts_with("!=") {
            self.takes("!");
            return Ok(Term::Not(Box::new(self.one(within)?)));
        }
        if self.takes("(") {
            let term = self.either(within)?;
            return match self.takes(")") {
                true => Ok(term),
                false => Err(self.unexpected("`)`")),
            };
        }
        let label = self.label()?;
        if self.takes("(") {
            return self.call(label);
        }
        Ok(Term::Is(label.to_owned(), self.test()?))
    }

    /// `all()` or `has(LABEL)`, behind the parenthesis.
    fn call(&mut self, name: &str) -> Result<Term, SelectorError> {
        let term = match name {
            "all" => Term::All,
            "has" => Term::Has(self.label()?.to_owned()),
            _ => return Err(self.unexpected("`all()` or `has(LABEL)`")),
        };
        match self.takes(")") {
            true => Ok(term),
            false => Err(self.unexpected("`)`")),
        }
    }

    fn test(&mut self) -> Result<Test, SelectorError> {
        if self.takes("==") || self.takes("=") {
            return Ok(Test::Equal(self.value()?));
        }
        if self.takes("!=") {
            return Ok(Test::Unequal(self.value()?));
        }
        if self.takes_words(&["not", "in"]) {
            return Ok(Test::NotIn(self.values()?));
        }
        if self.takes_words(&["in"]) {
            return Ok(Test::In(self.values()?));
        }
        if self.takes_words(&["contains"]) {
            return Ok(Test::Contains(self.value()?));
        }
        if self.takes_words(&["starts", "with"]) {
            return Ok(Test::StartsWith(self.value()?));
        }
        if self.takes_words(&["ends", "with"]) {
            return Ok(Test::EndsWith(self.value()?));
        }
        Err(self.unexpected(
            "`==`, `!=`, `in`, `not in`, `contains`, `starts with`, `ends with` or `(`",
        ))
    }

    fn label(&mut self) -> Result<&'a str, SelectorError> {
        let end = self.rest.find(|it| !is_of_label(it)).unwrap_or(self.rest.len());
        let (label, rest) = self.rest.split_at(end);
        if label.is_empty() {
            return Err(self.unexpected("a label"));
        }
        self.rest = rest;
        self.skip_spaces();
        Ok(label)
    }

    /// A text in quotes of either kind.
    fn value(&mut self) -> Result<String, SelectorError> {
        const EXPECTED: &str = "a value in quotes";
        let mut characters = self.rest.chars();
        let Some(quote) = characters.next().filter(|it| matches!(it, '\'' | '"')) else {
            return Err(self.unexpected(EXPECTED));
        };
        let Some((value, rest)) = characters.as_str().split_once(quote) else {
            return Err(self.unexpected("a value with a quote at its end"));
        };
        self.rest = rest;
        self.skip_spaces();
        Ok(value.to_owned())
    }

    fn values(&mut self) -> Result<BTreeSet<String>, SelectorError> {
        if !self.takes("{") {
            return Err(self.unexpected("`{`"));
        }
        let mut values = BTreeSet::new();
        if self.takes("}") {
            return Ok(values);
        }
        loop {
            values.insert(self.value()?);
            if self.takes("}") {
                return Ok(values);
            }
            if !self.takes(",") {
                return Err(self.unexpected("`,` or `}`"));
            }
        }
    }
}

/// Whether it may be in the name of a label.
fn is_of_label(character: char) -> bool {
    character.is_ascii_alphanumeric() || matches!(character, '.' | '_' | '-' | '/')
}
