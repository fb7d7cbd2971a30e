//! `define`: names that stand for other words.
//!
//! Answers statements with the words in place of the names. Knows no meaning.

use std::collections::BTreeMap;

use super::text::{Kind, Statement, Word};

/// As many words are put in place of names: the list of a large network, for each of a hundred neighbors.
const WORDS_MAX: usize = 2_000_000;

/// The constants of a text.
#[derive(Debug, Default)]
pub(super) struct Constants {
    known: BTreeMap<String, Vec<Word>>,
    count: usize,
}

impl Constants {
    /// `define NAME = WORDS`.
    pub(super) fn define(&mut self, words: &[Word]) -> Result<(), &'static str> {
        let [_, name, equals, value @ ..] = words else {
            return Err("expected define NAME = VALUE");
        };
        if !equals.is("=") || value.is_empty() {
            return Err("expected define NAME = VALUE");
        }
        let value = self.replaced(value);
        self.known.insert(name.text.clone(), value);
        Ok(())
    }

    /// The statement, and those in it, with the words that its names stand for.
    pub(super) fn resolve(&mut self, statement: &mut Statement) {
        // The first word is a keyword, or the name of what is defined.
        if let Some((first, rest)) = statement.words.split_first() {
            let rest = self.replaced(rest);
            statement.words = std::iter::once(first.clone()).chain(rest).collect();
        }
        if let Some(code) = &statement.code {
            statement.code = Some(self.replaced(code));
        }
        for inner in statement.block.iter_mut().flatten() {
            self.resolve(inner);
        }
    }

    fn replaced(&mut self, words: &[Word]) -> Vec<Word> {
        let mut all = Vec::with_capacity(words.len());
        for word in words {
            let is_name = word.kind == Kind::Plain;
            match self.known.get(&word.text).filter(|_| is_name && self.count < WORDS_MAX) {
                Some(value) => {
                    self.count = self.count.saturating_add(value.len());
                    let here = |it: &Word| Word { line: word.line, ..it.clone() };
                    all.extend(value.iter().map(here));
                }
                None => all.push(word.clone()),
            }
        }
        all
    }
}
