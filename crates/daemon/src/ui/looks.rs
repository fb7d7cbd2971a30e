//! Looks at routes for one client: a search, or JSON. One at a time, and together no more than a fifth of the time of a core.
//!
//! A table may be large, and copying it delays the sessions.

use std::sync::Arc;
use std::time::Duration;

use fairway_seam::ViewScope;
use fairway_show::Snapshot;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, sleep, timeout};

use crate::admin::Observer;

/// After a look all others wait so many times as long as it took.
const REST_SHARE: u32 = 4;
/// How long a client waits for its turn, and then for the answer.
const WAIT_MAX: Duration = Duration::from_secs(10);

/// Why nothing was seen.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum LookError {
    /// Others are first.
    #[error("others ask for routes as well; try again in a moment")]
    Busy,
    /// The backend.
    #[error("the daemon does not answer: {0}")]
    Silent(String),
}

/// Held until the answer has been sent: answers may be large, and there is one at a time.
#[derive(Debug)]
pub(super) struct Turn {
    _permit: Arc<OwnedSemaphorePermit>,
}

#[derive(Debug, Clone)]
pub(super) struct Looks(Arc<Semaphore>);

impl Looks {
    pub(super) fn new() -> Self {
        Self(Arc::new(Semaphore::new(1)))
    }

    pub(super) async fn turn(&self) -> Result<Turn, LookError> {
        let turn = timeout(WAIT_MAX, Arc::clone(&self.0).acquire_owned()).await;
        let permit = turn.ok().and_then(Result::ok).ok_or(LookError::Busy)?;
        Ok(Turn { _permit: Arc::new(permit) })
    }
}

impl Turn {
    /// What `see` makes of the state with `scope`.
    pub(super) async fn look<T>(
        &self,
        observer: &Observer,
        scope: ViewScope,
        see: impl FnOnce(&Snapshot<'_>) -> T,
    ) -> Result<T, LookError> {
        let began = Instant::now();
        let outcome = timeout(WAIT_MAX, observer.look(scope, see)).await;
        let rest = began.elapsed().saturating_mul(REST_SHARE);
        let permit = Arc::clone(&self._permit);
        tokio::spawn(async move {
            sleep(rest).await;
            drop(permit);
        });
        match outcome {
            Ok(Ok(seen)) => Ok(seen),
            Ok(Err(error)) => Err(LookError::Silent(error.to_string())),
            Err(_) => Err(LookError::Silent("no answer in time".to_owned())),
        }
    }
}
