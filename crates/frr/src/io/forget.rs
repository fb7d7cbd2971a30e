//! Takes the configuration of an owner out of FRR, without a backend.
//!
//! Called by `fairway frr-forget`.

use std::path::Path;
use std::time::Duration;

use tokio::time::{Instant, sleep_until, timeout};

use super::daemons::{Daemons, Look};
use super::lock::{Lock, Locked};
use crate::application::{Application, Next};
use crate::configuration::without_secrets;
use crate::owner::Owner;

/// How long FRR may take to remove it all.
const FORGET_TIMEOUT: Duration = Duration::from_secs(60);

/// What was removed.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Forgotten {
    /// The commands, in order.
    pub commands: Vec<String>,
}

/// Why something is left.
#[derive(Debug, thiserror::Error)]
pub enum ForgetError {
    /// A daemon configures FRR, and would put everything back.
    #[error(transparent)]
    Running(#[from] Locked),
    /// FRR is down, refuses lines, or takes too long.
    #[error("FRR still has configuration of Fairway: {}", .0.join("; "))]
    Left(Vec<String>),
}

/// Removes all configuration of `owner` from the FRR whose sockets are in `socket_dir`, and puts back what it replaced.
pub async fn forget(socket_dir: &Path, owner: Owner) -> Result<Forgotten, ForgetError> {
    let _lock = Lock::take(socket_dir)?;
    let begun = Instant::now();
    let mut application = Application::new(owner, Duration::ZERO);
    application.forget();
    let mut daemons = Daemons::new(socket_dir);
    let mut forgotten = Forgotten::default();
    let work = async {
        while application.in_force() != Some(1) {
            match application.next(begun.elapsed()) {
                Next::Read => {
                    let Look { running, new } = daemons.look().await;
                    let is_away = running.daemons.is_empty();
                    new.into_iter().for_each(|daemon| application.connected(daemon));
                    application.read(begun.elapsed(), running);
                    if is_away {
                        return;
                    }
                }
                Next::Say(orders) => {
                    let said = daemons.say(&orders).await;
                    let lines = said.taken.iter().map(|(_, step)| without_secrets(&step.line));
                    forgotten.commands.extend(lines);
                    application.said(begun.elapsed(), said);
                }
                Next::EndLoad => {
                    daemons.end_load().await;
                    application.ended_load(begun.elapsed());
                }
                Next::Wait(until) => {
                    if application.in_force() != Some(1) {
                        sleep_until(begun + until).await;
                    }
                }
            }
        }
    };
    let is_late = timeout(FORGET_TIMEOUT, work).await.is_err();
    match application.in_force() {
        Some(_) => Ok(forgotten),
        None if is_late => Err(ForgetError::Left(vec![format!(
            "it took longer than {} s",
            FORGET_TIMEOUT.as_secs()
        )])),
        None => Err(ForgetError::Left(application.faults())),
    }
}
