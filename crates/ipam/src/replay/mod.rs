//! A case is read, its operations are run on a store in memory, and what came of them is told as JSON.
//!
//! For tests by hand and by other programs, and for reports of what went wrong. Time is virtual: nothing waits.

mod answer;
mod case;
mod operation;
mod reference;
mod run;

use std::future::Future;
use std::pin::pin;
use std::task::{Context, Poll, Waker};

/// Why a case is not run.
#[derive(Debug, thiserror::Error)]
pub enum CaseError {
    /// It is no JSON, or `state` is not as it should be.
    #[error("the case cannot be read: {0}")]
    Syntax(#[from] serde_json::Error),
    /// A value of the state cannot be.
    #[error("state.{field}: {reason}")]
    State {
        /// Which.
        field: String,
        /// Why not.
        reason: String,
    },
    /// An operation is not as it should be.
    #[error("ops[{index}]: {reason}")]
    Operation {
        /// Which, counted from 0.
        index: usize,
        /// Why not.
        reason: String,
    },
}

/// Runs a case. Returns the results and the state at the end, as JSON.
///
/// # Errors
/// It cannot be read. What an operation answers is no error.
pub fn replay(case: &str) -> Result<String, CaseError> {
    let outcome = run::run(serde_json::from_str(case)?)?;
    Ok(serde_json::to_string_pretty(&outcome)?)
}

/// What a future that never waits comes to: all of them are, over a store in memory.
fn finished<T>(future: impl Future<Output = T>) -> Option<T> {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(value) => Some(value),
        Poll::Pending => None,
    }
}
