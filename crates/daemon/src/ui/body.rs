//! What a reply is made of: a text in pieces, or events without an end.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use hyper::body::{Body, Bytes, Frame};
use tokio::sync::mpsc;

use super::looks::Turn;

/// Large answers are handed over in such pieces, so that it is known when the last one is on its way.
const PIECE_BYTES: usize = 64 * 1024;

#[derive(Debug)]
pub(super) enum Reply {
    /// A text; the turn ends with it.
    Text { rest: Bytes, _turn: Option<Turn> },
    /// What arrives.
    Events(mpsc::Receiver<Bytes>),
}

impl Reply {
    pub(super) fn text(text: impl Into<Bytes>) -> Self {
        Self::Text { rest: text.into(), _turn: None }
    }

    pub(super) fn in_turn(text: String, turn: Turn) -> Self {
        Self::Text { rest: text.into(), _turn: Some(turn) }
    }
}

impl Body for Reply {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let piece = match self.get_mut() {
            Self::Text { rest, .. } => {
                let length = rest.len().min(PIECE_BYTES);
                Poll::Ready(Some(rest.split_to(length)).filter(|it| !it.is_empty()))
            }
            Self::Events(events) => events.poll_recv(context),
        };
        piece.map(|it| it.map(|bytes| Ok(Frame::data(bytes))))
    }

    fn is_end_stream(&self) -> bool {
        matches!(self, Self::Text { rest, .. } if rest.is_empty())
    }

    fn size_hint(&self) -> hyper::body::SizeHint {
        match self {
            Self::Text { rest, .. } => {
                hyper::body::SizeHint::with_exact(u64::try_from(rest.len()).unwrap_or(u64::MAX))
            }
            Self::Events(_) => hyper::body::SizeHint::default(),
        }
    }
}
