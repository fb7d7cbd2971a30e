//! What is tried against a Fairway that runs, one trial after the other, all of a field in one scene? Behind each, the
//! session with the healthy router is the one that it was, nothing has gone there, and a change arrives soon.
//! Used by main and by the page.

mod bgp;
mod files;
mod lifecycles;
mod sockets;

use anyhow::{Context, Result, ensure};

use crate::Cell;
use crate::scene::{QUICK, SERVICES, Scene, prefix, service_text};

/// One attack, and what becomes of it.
pub(crate) struct Trial {
    /// What is tried.
    pub(crate) tried: &'static str,
    /// What happens.
    pub(crate) outcome: &'static str,
    /// Where an operator sees it.
    pub(crate) sign: &'static str,
    run: fn(&mut Scene) -> Result<()>,
    /// Whether its outcome allows that routes go for a moment.
    may_withdraw: bool,
}

impl Trial {
    pub(crate) const fn new(
        tried: &'static str,
        outcome: &'static str,
        sign: &'static str,
        run: fn(&mut Scene) -> Result<()>,
    ) -> Self {
        Self { tried, outcome, sign, run, may_withdraw: false }
    }

    const fn may_withdraw(self) -> Self {
        Self { may_withdraw: true, ..self }
    }
}

/// Trials that share a scene.
pub(crate) struct Field {
    pub(crate) name: &'static str,
    /// Of its chapter.
    pub(crate) title: &'static str,
    pub(crate) trials: &'static [Trial],
    /// What the scene needs beside what all have.
    prepare: fn(&mut Scene) -> Result<()>,
    /// Whether its trials may end the session: then only the routes must stay.
    ends_sessions: bool,
}

pub(crate) const FIELDS: &[Field] = &[
    Field {
        name: "files",
        title: "Files",
        trials: files::TRIALS,
        prepare: |_| Ok(()),
        ends_sessions: false,
    },
    Field {
        name: "sockets",
        title: "Sockets",
        trials: sockets::TRIALS,
        prepare: sockets::prepare,
        ends_sessions: false,
    },
    Field {
        name: "bgp",
        title: "BGP",
        trials: bgp::TRIALS,
        prepare: bgp::prepare,
        ends_sessions: false,
    },
    Field {
        name: "lifecycles",
        title: "Lifecycles",
        trials: lifecycles::TRIALS,
        prepare: |_| Ok(()),
        ends_sessions: true,
    },
];

impl Field {
    pub(crate) fn run(&self, cell: &Cell) -> Result<()> {
        let open = if self.ends_sessions { Scene::open_with_restart } else { Scene::open };
        let mut scene = open(cell)?;
        (self.prepare)(&mut scene)?;
        scene.router_has_all(QUICK)?;
        for (number, trial) in self.trials.iter().enumerate() {
            self.run_one(&mut scene, number, trial).with_context(|| trial.tried)?;
        }
        Ok(())
    }

    fn run_one(&self, scene: &mut Scene, number: usize, trial: &Trial) -> Result<()> {
        let (before, mut withdrawals) = (scene.session()?, scene.watch(&number.to_string())?);
        (trial.run)(scene)?;
        if !self.ends_sessions {
            scene.expect_same_session(before)?;
        }
        if !trial.may_withdraw {
            let gone = withdrawals.lines(|gone| (0..SERVICES).any(|it| prefix(it) == gone))?;
            ensure!(gone.is_empty(), "{} routes went, the first as {:?}", gone.len(), gone.first());
        }
        comes_and_goes(scene).context("behind it")?;
        scene.all_is_in_force()
    }
}

/// One more Service comes and goes at the router soon.
fn comes_and_goes(scene: &mut Scene) -> Result<()> {
    let extra = format!("service-{SERVICES}");
    scene.apply(&extra, &service_text(SERVICES))?;
    scene.router_gets(SERVICES, QUICK)?;
    scene.fairway.remove(&extra)?;
    scene.router_has_all(QUICK)
}
