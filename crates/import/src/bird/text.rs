//! The statements of `bird.conf`: words up to a semicolon, or up to a block in braces.
//!
//! Answers the tree of a text with the number of each line. Knows no meaning; what filters contain is read over.

use std::iter::Peekable;
use std::str::CharIndices;

/// Blocks inside blocks; BIRD's grammar has four.
const DEPTH_MAX: usize = 16;

/// A statement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Statement {
    pub(super) line: usize,
    pub(super) words: Vec<String>,
    /// What is in braces behind the words.
    pub(super) block: Option<Vec<Self>>,
}

impl Statement {
    /// The words, for patterns.
    pub(super) fn words(&self) -> Vec<&str> {
        self.words.iter().map(String::as_str).collect()
    }

    /// The statement in a message; keys of sessions are left out.
    pub(super) fn text(&self) -> String {
        match self.words.first().map(String::as_str) {
            Some(secret @ ("password" | "secret")) => format!("{secret} ..."),
            _ => self.words.join(" "),
        }
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
    let mut reader = Reader { letters: text.char_indices().peekable(), line: 1 };
    let (statements, is_closed) = reader.block(0)?;
    match is_closed {
        false => Ok(statements),
        true => Err(reader.fault("a brace closes no block")),
    }
}

enum Token {
    Word(String),
    Open,
    Close,
    End,
}

struct Reader<'a> {
    letters: Peekable<CharIndices<'a>>,
    line: usize,
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
        let mut words: Vec<String> = Vec::new();
        let mut line = self.line;
        loop {
            let token = self.token()?;
            if words.is_empty() {
                line = self.line;
            }
            match token {
                None | Some(Token::Close) => {
                    let is_closed = token.is_some();
                    if !words.is_empty() {
                        return Err(Unreadable { line, why: "a semicolon is missing" });
                    }
                    return Ok((all, is_closed));
                }
                Some(Token::Word(word)) => words.push(word),
                Some(Token::End) => {
                    if !words.is_empty() {
                        let words = std::mem::take(&mut words);
                        all.push(Statement { line, words, block: None });
                    }
                }
                Some(Token::Open) => {
                    let words = std::mem::take(&mut words);
                    let is_code =
                        matches!(words.first().map(String::as_str), Some("filter" | "function"))
                            || words.iter().any(|it| it == "filter");
                    let block = if is_code { self.code()? } else { self.inner(depth)? };
                    all.push(Statement { line, words, block: Some(block) });
                }
            }
        }
    }

    fn inner(&mut self, depth: usize) -> Result<Vec<Statement>, Unreadable> {
        match self.block(depth.saturating_add(1))? {
            (block, true) => Ok(block),
            (_, false) => Err(self.fault("a block does not end")),
        }
    }

    /// Reads over the code of a filter.
    fn code(&mut self) -> Result<Vec<Statement>, Unreadable> {
        let mut depth = 1_usize;
        while depth > 0 {
            match self.token()? {
                Some(Token::Open) => depth = depth.saturating_add(1),
                Some(Token::Close) => depth = depth.saturating_sub(1),
                Some(_) => {}
                None => return Err(self.fault("a filter does not end")),
            }
        }
        Ok(Vec::new())
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

    fn token(&mut self) -> Result<Option<Token>, Unreadable> {
        loop {
            let Some(letter) = self.next() else { return Ok(None) };
            match letter {
                '#' => {
                    while self.peek().is_some_and(|it| it != '\n') {
                        self.next();
                    }
                }
                '/' if self.peek() == Some('*') => self.comment()?,
                '{' => return Ok(Some(Token::Open)),
                '}' => return Ok(Some(Token::Close)),
                ';' => return Ok(Some(Token::End)),
                '"' => return self.quoted().map(|it| Some(Token::Word(it))),
                letter if letter.is_whitespace() => {}
                letter => return Ok(Some(Token::Word(self.word(letter)))),
            }
        }
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

    fn quoted(&mut self) -> Result<String, Unreadable> {
        let mut text = String::new();
        loop {
            match self.next() {
                Some('"') => return Ok(text),
                Some('\n') | None => return Err(self.fault("a text in quotes does not end")),
                Some(letter) => text.push(letter),
            }
        }
    }

    fn word(&mut self, first: char) -> String {
        let mut word = String::from(first);
        while let Some(letter) = self.peek() {
            if letter.is_whitespace() || "{};\"#".contains(letter) {
                break;
            }
            word.push(letter);
            self.next();
        }
        word
    }
}
