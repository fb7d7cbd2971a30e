//! What happens in one round? The node's daemon ends, in one of three ways, and starts again, while
//! four routers hold its routes. Counts what each router lost. Used by main.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use crate::announced;
use crate::helper::{Help, Helper, KINDS, Sample};
use lab::Family;
use lab::fairway::Fairway;
use lab::namespace::Namespace;
use lab::probe::Answerer;
use lab::routers::{RouterKind, RouterRoute};
use lab::wait::{now, wait_until};
use lab::withdrawals::with_length;

/// GoBGP is slow to take a new session.
const PATIENCE: Duration = Duration::from_secs(60);

/// How the daemon ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    Kill,
    Term,
    Upgrade,
}

impl Way {
    pub(crate) const ALL: [Self; 3] = [Self::Kill, Self::Term, Self::Upgrade];

    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Kill => "kill -9",
            Self::Term => "SIGTERM",
            Self::Upgrade => "upgrade",
        }
    }
}

/// The node and its routers. The daemons are dropped before the namespace of the node.
pub(crate) struct Stage {
    fairway: Fairway,
    pub(crate) witnesses: Vec<Witness>,
    _answerer: Answerer,
    node: Namespace,
    announced: BTreeSet<String>,
    /// The program that runs, and the one that comes with the next upgrade.
    builds: [PathBuf; 2],
}

/// A router, what it had before the first restart, and what it has lost since.
pub(crate) struct Witness {
    pub(crate) helper: Helper,
    before: Sample,
    routes: Vec<Option<RouterRoute>>,
    count: Count,
    withdrawn_before: usize,
    progress: Progress,
}

/// How soon after the end of the daemon, in this round.
#[derive(Clone, Copy, Debug, Default)]
struct Progress {
    established: Option<Duration>,
    settled: Option<Duration>,
}

/// What a router has seen over some rounds.
#[derive(Clone, Debug, Default)]
pub(crate) struct Count {
    pub(crate) rounds: usize,
    /// Checks of its tables.
    pub(crate) samples: usize,
    /// Of those, without some route in a table or in the kernel.
    pub(crate) incomplete: usize,
    /// Routes that were taken away.
    pub(crate) withdrawn: usize,
    /// From the end of the daemon to the session, and to the last stale mark, at most.
    pub(crate) established_max: Duration,
    pub(crate) settled_max: Duration,
    /// The first faults.
    pub(crate) faults: Vec<String>,
}

impl Count {
    fn fault(&mut self, text: String) {
        const TOLD_MAX: usize = 5;
        if self.faults.len() < TOLD_MAX {
            self.faults.push(text);
        }
    }
}

impl Stage {
    /// Everything up, every route everywhere, and all witnesses watching.
    pub(crate) fn set_up(
        help: fn(RouterKind) -> Help,
        builds: [PathBuf; 2],
        directory: &Path,
    ) -> Result<Self> {
        let node = Namespace::create(0, "node")?;
        let probed = announced::probed()?;
        for address in &probed {
            node.add_address("lo", &with_length(&address.to_string()))?;
        }
        let answerer = Answerer::start(&node, "node", &probed, &directory.join("answers.log"))?;
        let mut fairway = Fairway::prepare_in(directory)?;
        fairway.log_level = "info";
        let [build, _] = &builds;
        fairway.install(build)?;
        announced::apply(&fairway)?;
        let mut helpers = Vec::new();
        for (number, kind) in (1..).zip(KINDS) {
            let helper = Helper::start(&node, number, kind, help(kind), directory)?;
            fairway.apply(kind.word(), &helper.peer())?;
            helpers.push(helper);
        }
        fairway.start(&node)?;
        let announced: BTreeSet<String> =
            [Family::Ipv4, Family::Ipv6].into_iter().flat_map(announced::prefixes).collect();
        let mut witnesses = Vec::new();
        for mut helper in helpers {
            let name = helper.kind.word();
            let before = wait_until(&format!("{name} has every route"), PATIENCE, || {
                let sample = helper.sample()?;
                let missing = missing_from(&sample, &announced, helper.forwards());
                ensure!(missing.is_none(), "it has no {missing:?}");
                ensure!(helper.has_end_of_rib()?, "there was no End-of-RIB");
                Ok(sample)
            })?;
            helper.watch(&probed)?;
            let routes = helper.routes()?;
            witnesses.push(Witness {
                helper,
                before,
                routes,
                count: Count::default(),
                withdrawn_before: 0,
                progress: Progress::default(),
            });
        }
        Ok(Self { fairway, witnesses, _answerer: answerer, node, announced, builds })
    }

    /// What was agreed with each router, as fairway shows it; an error when that is not what each was
    /// configured to offer, or when the session has no TCP-MD5 key.
    pub(crate) fn agreed(&self) -> Result<String> {
        let sockets = self.node.run("ss", &["-Htni"])?;
        let mut texts = Vec::new();
        for helper in self.witnesses.iter().map(|witness| &witness.helper) {
            let address = helper.spec.local_address.to_string();
            let neighbour = self.fairway.show(&["bgp", "neighbors", &address])?;
            let info = neighbour.get(&address).and_then(|it| it.get("gracefulRestartInfo"));
            let info = info.with_context(|| format!("no gracefulRestartInfo in {neighbour}"))?;
            let has_key = sockets.contains(&format!("md5keys:{address}/32="));
            ensure!(has_key, "the session with {address} has no TCP-MD5 key: {sockets}");
            if helper.help == Help::None {
                // Some offer the bit all the same.
                texts.push(format!("{} keeps nothing", helper.kind.word()));
                continue;
            }
            let has_n_bit = info.get("nBit").and_then(Value::as_bool).unwrap_or(false);
            let kind = helper.kind;
            let expected = helper.help == Help::Always && !matches!(kind, RouterKind::Bird(_));
            ensure!(has_n_bit == expected, "the N bit of {}: {has_n_bit}", kind.word());
            texts.push(match (helper.help, has_n_bit) {
                (_, true) => format!("{} has the N bit", kind.word()),
                (Help::Always, false) => format!("{} knows no N bit", kind.word()),
                (_, false) => format!("{} has no N bit", kind.word()),
            });
        }
        Ok(texts.join(", "))
    }

    /// The daemon ends and stays away: every route must go.
    pub(crate) fn control(&mut self) -> Result<()> {
        self.fairway.kill()?;
        for witness in &mut self.witnesses {
            witness.wait_for_the_end(&self.announced)?;
            let name = witness.helper.kind.word();
            wait_until(&format!("{name} says that all is withdrawn"), PATIENCE, || {
                witness.gather(&self.announced)?;
                let withdrawn = witness.count.withdrawn;
                ensure!(withdrawn >= self.announced.len(), "only {withdrawn} routes are");
                Ok(())
            })?;
        }
        Ok(())
    }

    /// What went since the last round.
    pub(crate) fn gather(&mut self) -> Result<()> {
        self.witnesses.iter_mut().try_for_each(|witness| witness.gather(&self.announced))
    }

    /// One restart. `is_noticed`: the daemon stays away until every router has noticed.
    pub(crate) fn round(&mut self, way: Way, is_noticed: bool) -> Result<Duration> {
        let sessions = self.witnesses.iter_mut().map(|witness| witness.helper.session());
        let sessions: Vec<String> =
            sessions.map(|session| Ok(session?.incarnation)).collect::<Result<_>>()?;
        if way == Way::Upgrade {
            self.builds.reverse();
            let [next, _] = &self.builds;
            self.fairway.install(next)?;
        }
        let start = now();
        match way {
            Way::Kill => self.fairway.kill()?,
            Way::Term | Way::Upgrade => self.fairway.stop()?,
        }
        if is_noticed {
            for witness in &mut self.witnesses {
                witness.wait_for_the_end(&self.announced)?;
            }
        }
        self.fairway.start(&self.node)?;
        if way == Way::Upgrade {
            let [build, _] = &self.builds;
            let running = format!("/proc/{}/exe", self.fairway.process_id()?);
            let is_it = fs::read(&running).context(running)? == fs::read(build)?;
            ensure!(is_it, "after the upgrade, another program than {} runs", build.display());
        }
        wait_until("every router is as it was before", PATIENCE, || {
            self.fairway.check_running()?;
            let mut open = Vec::new();
            // Those that are as before are looked at until all are.
            for (witness, session) in self.witnesses.iter_mut().zip(&sessions) {
                if let Some(reason) = witness.look(session, start, &self.announced)? {
                    open.push(format!("{}: {reason}", witness.helper.kind.word()));
                }
            }
            ensure!(open.is_empty(), "{}", open.join("; "));
            Ok(())
        })?;
        for witness in &mut self.witnesses {
            witness.gather(&self.announced)?;
            witness.conclude();
        }
        Ok(start.elapsed())
    }

    /// What each router has seen since the last call.
    pub(crate) fn take_counts(&mut self) -> Vec<(RouterKind, Count)> {
        let take =
            |witness: &mut Witness| (witness.helper.kind, std::mem::take(&mut witness.count));
        self.witnesses.iter_mut().map(take).collect()
    }
}

impl Witness {
    fn sample(&mut self, announced: &BTreeSet<String>) -> Result<Sample> {
        let sample = self.helper.sample()?;
        self.count.samples += 1;
        let missing = missing_from(&sample, announced, self.helper.forwards())
            .or_else(|| self.before.kernel.difference(&sample.kernel).next().cloned());
        if let Some(missing) = missing {
            self.count.incomplete += 1;
            self.count.fault(format!("it had no {missing}"));
        }
        Ok(sample)
    }

    /// Until the session is over and every route stale; or gone, where no router helps.
    fn wait_for_the_end(&mut self, announced: &BTreeSet<String>) -> Result<()> {
        let name = self.helper.kind.word();
        wait_until(&format!("{name} notices that the node is gone"), PATIENCE, || {
            let sample = self.sample(announced)?;
            ensure!(!sample.session.established, "its session is established");
            let (kept, stale) = (sample.kept.len(), sample.stale());
            if self.helper.help == Help::None {
                ensure!(kept == 0, "it still has {kept} routes");
                let left = announced_in(&sample.kernel, announced).next();
                ensure!(left.is_none(), "its kernel still has {left:?}");
            } else {
                ensure!(stale == kept, "{stale} of {kept} routes are stale");
            }
            Ok(())
        })
    }

    /// None when all is as it was, in a session that is not `before`; else what is still open.
    fn look(
        &mut self,
        before: &str,
        start: Instant,
        announced: &BTreeSet<String>,
    ) -> Result<Option<String>> {
        let sample = self.sample(announced)?;
        let session = &sample.session;
        if !session.established || session.incarnation == before {
            return Ok(Some(format!("the session is {}", session.state)));
        }
        self.progress.established.get_or_insert(start.elapsed());
        if self.progress.settled.is_some() {
            return Ok(None);
        }
        if !self.helper.has_end_of_rib()? {
            return Ok(Some("there was no End-of-RIB".to_owned()));
        }
        let (stale, kept) = (sample.stale(), sample.kept.len());
        if stale > 0 || kept != self.before.kept.len() {
            return Ok(Some(format!("{stale} of {kept} routes are stale")));
        }
        if sample.kernel != self.before.kernel {
            return Ok(Some("its kernel has other routes than before".to_owned()));
        }
        if self.helper.routes()? != self.routes {
            return Ok(Some("its routes say something else than before".to_owned()));
        }
        self.progress.settled = Some(start.elapsed());
        Ok(None)
    }

    fn conclude(&mut self) {
        let Progress { established, settled } = std::mem::take(&mut self.progress);
        let count = &mut self.count;
        count.rounds += 1;
        count.established_max = count.established_max.max(established.unwrap_or_default());
        count.settled_max = count.settled_max.max(settled.unwrap_or_default());
    }

    /// What was withdrawn since the last call.
    fn gather(&mut self, announced: &BTreeSet<String>) -> Result<()> {
        let withdrawals = self.helper.withdrawals(announced)?;
        let new = withdrawals.get(self.withdrawn_before..).unwrap_or_default();
        self.count.withdrawn += new.len();
        new.iter().take(1).for_each(|line| self.count.fault(format!("withdrawn: {line}")));
        self.withdrawn_before = withdrawals.len();
        Ok(())
    }
}

/// A route that is in no table, or in no kernel.
fn missing_from(sample: &Sample, announced: &BTreeSet<String>, forwards: bool) -> Option<String> {
    let missing = announced.iter().find(|prefix| !sample.kept.contains_key(*prefix));
    let in_kernel = || {
        let kernel: BTreeSet<&String> = announced_in(&sample.kernel, announced).collect();
        announced.iter().find(|prefix| !kernel.contains(prefix))
    };
    missing.or_else(|| if forwards { in_kernel() } else { None }).cloned()
}

/// Which of our prefixes the kernel has.
fn announced_in<'a>(
    kernel: &BTreeSet<String>,
    announced: &'a BTreeSet<String>,
) -> impl Iterator<Item = &'a String> {
    let first_words = kernel.iter().filter_map(|line| line.split_whitespace().next());
    let prefixes: BTreeSet<String> = first_words.map(with_length).collect();
    announced.iter().filter(move |prefix| prefixes.contains(*prefix))
}
