//! The form of `keepalived.conf`: words, blocks, comments, parameters.
//!
//! Answers the statements of a text, and names what makes it depend on the host or on another file. Knows no keyword but
//! those.

use std::collections::BTreeMap;

use crate::outcome::Outcome;

/// Blocks in blocks: keepalived has four.
const DEPTH_MAX: usize = 16;
/// How often a parameter may stand for another one.
const REPLACEMENTS_MAX: usize = 64;

/// A line, and the block that follows it.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Statement {
    /// From 1.
    pub(super) line: usize,
    words: Vec<String>,
    block: Vec<Statement>,
}

impl Statement {
    pub(super) fn keyword(&self) -> &str {
        self.words.first().map_or("", String::as_str)
    }

    /// A word after the keyword.
    pub(super) fn argument(&self, position: usize) -> Option<&str> {
        self.words.get(position + 1).map(String::as_str)
    }

    /// The words after the keyword.
    pub(super) fn arguments(&self) -> impl Iterator<Item = &str> {
        self.words.iter().skip(1).map(String::as_str)
    }

    /// All words.
    pub(super) fn words(&self) -> impl Iterator<Item = &str> {
        self.words.iter().map(String::as_str)
    }

    /// The statements of its block.
    pub(super) fn inner(&self) -> &[Statement] {
        &self.block
    }

    /// The line as messages name it.
    pub(super) fn heading(&self) -> String {
        self.words.join(" ")
    }
}

/// The statements of the text. What is for one host, or in another file, is named and left out.
pub(super) fn statements(text: &str, outcome: &mut Outcome) -> Vec<Statement> {
    let mut reader = Reader::default();
    for (position, line) in text.lines().enumerate() {
        let line_number = position + 1;
        match reader.parameters.line(line) {
            Ok(Some(line)) => {
                for word in words(&line) {
                    reader.word(word, line_number, outcome);
                }
                reader.end_line();
            }
            Ok(None) => {}
            Err(why) => outcome.untranslated(line_number, "parameter", why),
        }
    }
    let mut statements = reader.finish(outcome);
    leave_out(&mut statements, outcome);
    statements
}

/// Statements that are not read here.
fn leave_out(statements: &mut Vec<Statement>, outcome: &mut Outcome) {
    statements.retain_mut(|statement| {
        let subject = statement.heading();
        let keyword = statement.keyword();
        let why = if keyword.starts_with('@') {
            "is for some hosts: translate the configuration of each host, without such lines"
        } else if keyword.starts_with("include") {
            "is another file: translate it, too"
        } else {
            leave_out(&mut statement.block, outcome);
            return true;
        };
        outcome.untranslated(statement.line, &subject, why);
        false
    });
}

enum Word {
    Text(String),
    Open,
    Close,
}

/// The words of a line without its comment.
fn words(line: &str) -> Vec<Word> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut letters = line.chars();
    while let Some(letter) = letters.next() {
        match letter {
            '#' | '!' => break,
            '"' | '\'' => {
                let word = word.get_or_insert_default();
                word.extend(letters.by_ref().take_while(|it| *it != letter));
            }
            '{' | '}' => {
                words.extend(word.take().map(Word::Text));
                words.push(if letter == '{' { Word::Open } else { Word::Close });
            }
            _ if letter.is_whitespace() => words.extend(word.take().map(Word::Text)),
            _ => word.get_or_insert_default().push(letter),
        }
    }
    words.extend(word.map(Word::Text));
    words
}

#[derive(Default)]
struct Reader {
    parameters: Parameters,
    /// The statements of the blocks that are open, the outermost first, each without its last.
    open: Vec<Vec<Statement>>,
    statements: Vec<Statement>,
    current: Option<Statement>,
    /// Blocks that are too deep to be read.
    ignored: usize,
}

impl Reader {
    fn word(&mut self, word: Word, line: usize, outcome: &mut Outcome) {
        match word {
            Word::Text(text) => match &mut self.current {
                Some(statement) => statement.words.push(text),
                None => {
                    self.current = Some(Statement { line, words: vec![text], block: Vec::new() });
                }
            },
            Word::Open => {
                self.end_line();
                if self.open.len() >= DEPTH_MAX || self.statements.is_empty() {
                    outcome.untranslated(line, "{", "opens a block that belongs to no line");
                    self.ignored += 1;
                } else {
                    self.open.push(std::mem::take(&mut self.statements));
                }
            }
            Word::Close => {
                self.end_line();
                if self.ignored > 0 {
                    self.ignored -= 1;
                } else if !self.close() {
                    outcome.untranslated(line, "}", "closes no block");
                }
            }
        }
    }

    fn end_line(&mut self) {
        self.statements.extend(self.current.take());
    }

    fn close(&mut self) -> bool {
        let Some(outer) = self.open.pop() else { return false };
        let block = std::mem::replace(&mut self.statements, outer);
        if let Some(statement) = self.statements.last_mut() {
            statement.block.extend(block);
        }
        true
    }

    fn finish(mut self, outcome: &mut Outcome) -> Vec<Statement> {
        while let Some(statement) = self.open.last().and_then(|it| it.last()) {
            outcome.untranslated(statement.line, &statement.heading(), "its block is not closed");
            self.close();
        }
        self.statements
    }
}

/// `$NAME=VALUE`, as far as it is in one line.
#[derive(Default)]
struct Parameters {
    values: BTreeMap<String, String>,
}

impl Parameters {
    /// The line with its parameters replaced; nothing where it defines one.
    fn line(&mut self, line: &str) -> Result<Option<String>, &'static str> {
        let definition = line.trim_start().strip_prefix('$').and_then(|it| it.split_once('='));
        if let Some((name, value)) = definition.filter(|(name, _)| is_name(name)) {
            if value.trim_end().ends_with('\\') {
                return Err("has several lines: write out what it stands for");
            }
            self.values.insert(name.to_owned(), value.trim().to_owned());
            return Ok(None);
        }
        let mut line = line.to_owned();
        for _ in 0..REPLACEMENTS_MAX {
            match self.replaced(&line) {
                Some(replaced) => line = replaced,
                None => return Ok(Some(line)),
            }
        }
        Err("stands for itself")
    }

    /// The line with the first known parameter replaced.
    fn replaced(&self, line: &str) -> Option<String> {
        self.values.iter().find_map(|(name, value)| {
            let braced = format!("${{{name}}}");
            if let Some((before, after)) = line.split_once(&braced) {
                return Some(format!("{before}{value}{after}"));
            }
            let (before, after) = line.split_once(&format!("${name}"))?;
            let is_whole = after.is_empty() || after.starts_with(char::is_whitespace);
            is_whole.then(|| format!("{before}{value}{after}"))
        })
    }
}

fn is_name(text: &str) -> bool {
    let is_part = |it: char| it.is_ascii_alphanumeric() || it == '_';
    !text.is_empty() && text.chars().all(is_part)
}
