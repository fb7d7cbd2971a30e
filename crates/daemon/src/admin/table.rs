//! The answer to `show`, piece by piece: a table of a million routes is never in memory as a whole.
//!
//! A thread of its own writes it, and waits while the client has not read what is written. An answer that fits into one
//! piece is one line, as all others are.

use std::fmt;

use fairway_show::Query;
use tokio::sync::mpsc;
use tokio::task::{JoinHandle, spawn_blocking};

use super::Answer;
use super::observer::State;

/// Octets of a piece at most: it ends between two characters.
pub(super) const PIECE_BYTES: usize = 64 << 10;
/// Pieces that wait for the client.
const PIECES_MAX: usize = 4;

/// An answer that is being written.
pub(super) struct Table {
    pieces: mpsc::Receiver<String>,
    writing: JoinHandle<Answer>,
}

impl Table {
    /// Begins.
    pub(super) fn write(query: Query, state: State) -> Self {
        let (tell, pieces) = mpsc::channel(PIECES_MAX);
        let writing = spawn_blocking(move || {
            let mut out = Pieces { text: String::new(), tell };
            match query.write(&state.snapshot(), &mut out) {
                // Whether there is still a reader or not.
                Ok(_) => Answer::Output(out.text),
                Err(error) => Answer::Error(error.to_string()),
            }
        });
        Self { pieces, writing }
    }

    /// The next piece; `None` when [`Self::end`] has the rest.
    pub(super) async fn next(&mut self) -> Option<Answer> {
        self.pieces.recv().await.map(Answer::Piece)
    }

    /// What follows the last piece, or why there is no answer.
    pub(super) async fn end(self) -> Answer {
        let ended = self.writing.await;
        ended.unwrap_or_else(|error| Answer::Error(format!("the answer ended early: {error}")))
    }
}

/// Text on its way to a client.
struct Pieces {
    text: String,
    tell: mpsc::Sender<String>,
}

impl fmt::Write for Pieces {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let mut rest = text;
        loop {
            let room = PIECE_BYTES.saturating_sub(self.text.len());
            if rest.len() <= room {
                self.text.push_str(rest);
                return Ok(());
            }
            let end = (0..=room).rev().find(|it| rest.is_char_boundary(*it)).unwrap_or(0);
            let (part, later) = rest.split_at(end);
            self.text.push_str(part);
            self.tell.blocking_send(std::mem::take(&mut self.text)).map_err(|_| fmt::Error)?;
            rest = later;
        }
    }
}

/// Text of at most so many octets.
pub(super) struct Bounded {
    pub(super) text: String,
    pub(super) bytes_max: usize,
}

impl fmt::Write for Bounded {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        if self.text.len().saturating_add(text.len()) > self.bytes_max {
            return Err(fmt::Error);
        }
        self.text.push_str(text);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::fmt::Write;

    use super::*;

    #[tokio::test]
    async fn an_answer_comes_in_pieces_and_is_not_made_for_a_client_who_has_left() {
        let (tell, mut pieces) = mpsc::channel(PIECES_MAX);
        let writing = spawn_blocking(move || {
            let mut out = Pieces { text: String::new(), tell };
            let lines = (0..).take_while(|number| writeln!(out, "{number}").is_ok());
            lines.count()
        });
        let mut read = String::new();
        for _ in 0..10 {
            let piece = pieces.recv().await.unwrap();
            assert_eq!(piece.len(), PIECE_BYTES);
            read.push_str(&piece);
        }
        drop(pieces);
        assert!(writing.await.unwrap() < 20 * PIECE_BYTES);
        let numbers = read.lines().map(str::parse::<usize>).take(read.lines().count() - 1);
        assert!(numbers.zip(0..).all(|(read, number)| read == Ok(number)));
    }

    #[tokio::test]
    async fn a_text_that_comes_at_once_is_divided_between_characters() {
        let text = format!("a{}", "é".repeat(PIECE_BYTES));
        let (tell, mut pieces) = mpsc::channel(PIECES_MAX);
        let written = text.clone();
        let writing = spawn_blocking(move || {
            let mut out = Pieces { text: String::new(), tell };
            out.write_str(&written).map(|()| out.text)
        });
        let mut read = String::new();
        while let Some(piece) = pieces.recv().await {
            assert!((PIECE_BYTES - 3..=PIECE_BYTES).contains(&piece.len()));
            read.push_str(&piece);
        }
        read.push_str(&writing.await.unwrap().unwrap());
        assert_eq!(read, text);
    }

    #[test]
    fn a_bounded_answer_ends_before_it_is_too_large() {
        let mut out = Bounded { text: String::new(), bytes_max: 10 };
        assert!(out.write_str("0123456789").is_ok());
        assert!(out.write_str("0").is_err());
        assert_eq!(out.text.len(), 10);
    }
}
