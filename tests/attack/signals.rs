//! What do signals do that log rotation, timers and operators send to a daemon by habit? None of them ends
//! Fairway, a session, or the reading of files.

use anyhow::{Context, Result};
use nix::sys::signal::Signal;

use crate::Cell;
use crate::scene::{SERVICES, Scene, expect_none_gone};

const SENT: [Signal; 5] =
    [Signal::SIGUSR1, Signal::SIGUSR2, Signal::SIGALRM, Signal::SIGIO, Signal::SIGHUP];

pub(crate) fn signals_that_log_rotation_sends_kill_nobody(cell: &Cell) -> Result<()> {
    let mut scene = Scene::open(cell)?;
    let (before, mut withdrawals) = (scene.session()?, scene.watch("signals")?);
    for (number, signal) in (SERVICES..).zip(SENT) {
        scene.signal(signal)?;
        // It has handled the signal, or has ended by it, when it has acted on what came after.
        scene.add_quickly(number).with_context(|| format!("after {signal}"))?;
        scene.fairway.check_running().with_context(|| format!("after {signal}"))?;
        scene.expect_same_session(before).with_context(|| format!("after {signal}"))?;
    }
    scene.all_is_in_force()?;
    expect_none_gone(&mut withdrawals)
}
