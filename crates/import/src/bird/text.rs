//! The statements of `bird.conf`: words up to a semicolon, or up to a block in braces.
//!
//! Answers the tree of a text with the number of each line. Knows no meaning: the code of filters stays a row of words.

use std::iter::Peekable;
use std::str::CharIndices;

/// Blocks inside blocks; BIRD's grammar has four.
const DEPTH_MAX: usize = 16;
/// Operators of two characters.
const PAIRS: &[[char; 2]] =
    &[['!', '='], ['!', '~'], ['<', '='], ['>', '='], ['&', '&'], ['|', '|'], ['-', '>']];

/// What a word is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Plain,
    /// It was in quotes.
    Quoted,
    /// `{` and `}` around a block; those in a set of prefixes are plain.
    Open,
    Close,
    /// `;`.
    End,
}

/// A word, an operator or a bracket.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Word {
    pub(super) line: usize,
    pub(super) text: String,
    pub(super) kind: Kind,
    /// White space is before it.
    pub(super) is_apart: bool,
}

impl Word {
    /// Whether it is this, and not in quotes.
    pub(super) fn is(&self, text: &str) -> bool {
        self.kind != Kind::Quoted && self.text == text
    }
}

/// Words as they were written, on one line.
pub(super) fn written(words: &[Word]) -> String {
    let mut text = String::new();
    for word in words {
        if word.is_apart && !text.is_empty() {
            text.push(' ');
        }
        match word.kind {
            Kind::Quoted => text.extend(["\"", &word.text, "\""]),
            _ => text.push_str(&word.text),
        }
    }
    text
}

/// A statement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Statement {
    pub(super) line: usize,
    pub(super) words: Vec<Word>,
    /// As it was written; keys of sessions are left out.
    text: String,
    /// What is in braces behind the words.
    pub(super) block: Option<Vec<Self>>,
    /// The same where it is the code of a filter.
    pub(super) code: Option<Vec<Word>>,
}

impl Statement {
    fn new(line: usize, words: Vec<Word>) -> Self {
        let text = match words.first().map(|it| it.text.as_str()) {
            Some(secret @ ("password" | "secret")) => format!("{secret} ..."),
            _ => written(&words),
        };
        Self { line, words, text, block: None, code: None }
    }

    /// The words, for patterns.
    pub(super) fn words(&self) -> Vec<&str> {
        self.words.iter().map(|it| it.text.as_str()).collect()
    }

    /// The statement in a message.
    pub(super) fn text(&self) -> &str {
        &self.text
    }
}

/// What cannot be read, and in which line.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Unreadable {
    pub(super) line: usize,
    pub(super) why: &'static str,
}

/// The statements of a text.
pub(super) fn statements(text: &str) -> Result<Vec<Statement>, Unreadable> {
    let mut reader = Reader { letters: text.char_indices().peekable(), line: 1, brackets: 0 };
    let (statements, is_closed) = reader.block(0)?;
    match is_closed {
        false => Ok(statements),
        true => Err(reader.fault("a brace closes no block")),
    }
}

struct Reader<'a> {
    letters: Peekable<CharIndices<'a>>,
    line: usize,
    /// Open `[`: braces in them are lengths of prefixes.
    brackets: usize,
}

impl Reader<'_> {
    fn fault(&self, why: &'static str) -> Unreadable {
        Unreadable { line: self.line, why }
    }

    /// The statements up to the end of the block, and whether a brace has ended it.
    fn block(&mut self, depth: usize) -> Result<(Vec<Statement>, bool), Unreadable> {
        if depth > DEPTH_MAX {
            return Err(self.fault("blocks are nested too deeply"));
        }
        let mut all: Vec<Statement> = Vec::new();
        let mut words: Vec<Word> = Vec::new();
        let mut line = self.line;
        loop {
            let word = self.word()?;
            if words.is_empty() {
                line = self.line;
            }
            let kind = word.as_ref().map(|it| it.kind);
            match (word, kind) {
                (None, _) | (_, Some(Kind::Close)) => {
                    if !words.is_empty() {
                        return Err(Unreadable { line, why: "a semicolon is missing" });
                    }
                    return Ok((all, kind.is_some()));
                }
                // Variables of a filter were once declared before its braces.
                (Some(word), Some(Kind::End)) if is_code(&words) && defines(&words) => {
                    words.push(word);
                }
                (_, Some(Kind::End)) => {
                    if !words.is_empty() {
                        all.push(Statement::new(line, std::mem::take(&mut words)));
                    }
                }
                (_, Some(Kind::Open)) => {
                    let mut statement = Statement::new(line, std::mem::take(&mut words));
                    if is_code(&statement.words) {
                        statement.code = Some(self.code()?);
                    } else if is_list(&statement.words) {
                        self.code()?;
                        statement.block = Some(Vec::new());
                    } else {
                        statement.block = Some(self.inner(depth)?);
                    }
                    all.push(statement);
                }
                (Some(word), _) => words.push(word),
            }
        }
    }

    fn inner(&mut self, depth: usize) -> Result<Vec<Statement>, Unreadable> {
        match self.block(depth.saturating_add(1))? {
            (block, true) => Ok(block),
            (_, false) => Err(self.fault("a block does not end")),
        }
    }

    /// The words up to the brace that ends the block, without it.
    fn code(&mut self) -> Result<Vec<Word>, Unreadable> {
        let mut words = Vec::new();
        let mut depth = 1_usize;
        loop {
            let Some(word) = self.word()? else {
                return Err(self.fault("a filter does not end"));
            };
            match word.kind {
                Kind::Open => depth = depth.saturating_add(1),
                Kind::Close => depth = depth.saturating_sub(1),
                Kind::Plain | Kind::Quoted | Kind::End => {}
            }
            if depth == 0 {
                return Ok(words);
            }
            words.push(word);
        }
    }

    fn next(&mut self) -> Option<char> {
        let (_, letter) = self.letters.next()?;
        if letter == '\n' {
            self.line = self.line.saturating_add(1);
        }
        Some(letter)
    }

    fn peek(&mut self) -> Option<char> {
        self.letters.peek().map(|(_, letter)| *letter)
    }

    fn word(&mut self) -> Result<Option<Word>, Unreadable> {
        let mut is_apart = false;
        loop {
            let Some(letter) = self.next() else { return Ok(None) };
            let line = self.line;
            let word = |text: String, kind: Kind| Ok(Some(Word { line, text, kind, is_apart }));
            match letter {
                '#' => {
                    while self.peek().is_some_and(|it| it != '\n') {
                        self.next();
                    }
                    is_apart = true;
                }
                '/' if self.peek() == Some('*') => {
                    self.comment()?;
                    is_apart = true;
                }
                letter if letter.is_whitespace() => is_apart = true,
                '{' if self.brackets == 0 => return word("{".to_owned(), Kind::Open),
                '}' if self.brackets == 0 => return word("}".to_owned(), Kind::Close),
                ';' => {
                    self.brackets = 0;
                    return word(";".to_owned(), Kind::End);
                }
                '"' => return word(self.quoted('"')?, Kind::Quoted),
                // A name with other characters than letters.
                '\'' => return word(self.quoted('\'')?, Kind::Plain),
                letter if is_of_word(letter) => return word(self.rest(letter)?, Kind::Plain),
                letter => return word(self.sign(letter), Kind::Plain),
            }
        }
    }

    /// A bracket or an operator.
    fn sign(&mut self, first: char) -> String {
        match first {
            '[' => self.brackets = self.brackets.saturating_add(1),
            ']' => self.brackets = self.brackets.saturating_sub(1),
            _ => {}
        }
        let mut sign = String::from(first);
        if let Some(second) = self.peek().filter(|it| PAIRS.contains(&[first, *it])) {
            sign.push(second);
            self.next();
        }
        sign
    }

    fn comment(&mut self) -> Result<(), Unreadable> {
        let begin = self.line;
        let mut last = ' ';
        self.next();
        loop {
            match self.next() {
                Some('/') if last == '*' => return Ok(()),
                Some(letter) => last = letter,
                None => return Err(Unreadable { line: begin, why: "a comment does not end" }),
            }
        }
    }

    fn quoted(&mut self, quote: char) -> Result<String, Unreadable> {
        let mut text = String::new();
        loop {
            match self.next() {
                Some(letter) if letter == quote => return Ok(text),
                Some('\n') | None => return Err(self.fault("a text in quotes does not end")),
                Some(letter) => text.push(letter),
            }
        }
    }

    fn rest(&mut self, first: char) -> Result<String, Unreadable> {
        let mut word = String::from(first);
        while let Some(letter) = self.peek() {
            if letter == '\'' && word.ends_with('%') {
                self.next();
                word += &self.quoted('\'')?;
            } else if is_of_word(letter) {
                word.push(letter);
                self.next();
            } else {
                break;
            }
        }
        Ok(word)
    }
}

fn is_of_word(letter: char) -> bool {
    letter.is_alphanumeric() || "_.:/%@".contains(letter)
}

/// Whether a block behind these words is the code of a filter, or what a static route sets.
fn is_code(words: &[Word]) -> bool {
    let is_route = words.first().is_some_and(|it| it.is("route"));
    is_route || defines(words) || words.iter().any(|it| it.is("filter"))
}

fn defines(words: &[Word]) -> bool {
    words.first().is_some_and(|it| it.is("filter") || it.is("function"))
}

/// Whether a block behind these words is a list of names.
fn is_list(words: &[Word]) -> bool {
    words.first().is_some_and(|it| it.is("log") || it.is("debug") || it.is("mrtdump"))
}
