//! Takes the configuration of an owner out of FRR and its files, without a backend.
//!
//! Called by `fairway frr-forget`.

use std::path::{Path, PathBuf};
use std::time::Duration;

use tokio::time::{Instant, sleep_until, timeout};

use super::daemons::{Daemons, Look};
use super::files;
use super::lock::Lock;
pub use super::lock::Locked;
use crate::application::{Application, Next};
use crate::configuration::without_secrets;
use crate::owner::Owner;

/// How long FRR may take to remove it all.
const FORGET_TIMEOUT: Duration = Duration::from_secs(60);

/// What was removed.
#[derive(Debug, Default)]
pub struct Forgotten {
    /// The commands, in order.
    pub commands: Vec<String>,
    /// The files that were changed; each is kept as it was beside itself.
    pub files: Vec<PathBuf>,
    /// What may be left, and why.
    pub left: Vec<String>,
}

/// Removes all configuration of `owner` from the FRR whose sockets are in `socket_dir`, and from its files in
/// `config_dir`, and puts back what it replaced. Refuses while another process configures this FRR: that one would put
/// everything back.
pub async fn forget(
    socket_dir: &Path,
    config_dir: Option<&Path>,
    owner: Owner,
) -> Result<Forgotten, Locked> {
    let _lock = Lock::take(socket_dir)?;
    let mut forgotten = Forgotten::default();
    if let Some(config_dir) = config_dir {
        // First: an FRR that starts meanwhile does not load them.
        files::forget(config_dir, owner, &mut forgotten);
    }
    forget_running(socket_dir, owner, &mut forgotten).await;
    Ok(forgotten)
}

async fn forget_running(socket_dir: &Path, owner: Owner, forgotten: &mut Forgotten) {
    let begun = Instant::now();
    let mut application = Application::new(owner, Duration::ZERO);
    application.forget();
    let mut daemons = Daemons::new(socket_dir);
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
    if application.in_force().is_none() {
        if is_late {
            let seconds = FORGET_TIMEOUT.as_secs();
            forgotten.left.push(format!("FRR takes longer than {seconds} s"));
        }
        forgotten.left.extend(application.faults());
    }
}
