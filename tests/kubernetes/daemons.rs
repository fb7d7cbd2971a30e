//! How do the daemons run that a cluster would run? Each in its namespace, with a kubeconfig of its
//! service account and the variables that its Pod has. Used by the stage.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, ensure};

use crate::install::Pod;
use lab::fairway::{self, Fairway};
use lab::make_directory;
use lab::namespace::{Container, Namespace};
use lab::process::Process;

/// Of the first controller.
const FIRST_METRICS_PORT: u16 = 7472;

const STOP_LIMIT: Duration = Duration::from_secs(10);

/// Variables of a Pod, but for those that hold its place in this lab.
fn variables(pod: &Pod, of_lab: &[(&str, String)]) -> Vec<(String, String)> {
    let is_of_lab = |name: &String| of_lab.iter().any(|(it, _)| it == name);
    let own = pod.variables.iter().filter(|(name, _)| !is_of_lab(name)).cloned();
    own.chain(of_lab.iter().map(|(name, value)| ((*name).to_owned(), value.clone()))).collect()
}

/// `fairway speaker` of one node.
pub(crate) struct Speaker {
    pub(crate) daemon: Fairway,
    pub(crate) node: &'static str,
    directory: PathBuf,
    kubeconfig: PathBuf,
    pub(crate) pod: Pod,
}

impl Speaker {
    /// Prepares its directories; nothing runs yet.
    pub(crate) fn prepare(
        node: &'static str,
        directory: &Path,
        kubeconfig: PathBuf,
        pod: Pod,
    ) -> Result<Self> {
        make_directory(directory)?;
        let mut daemon = Fairway::prepare_in(directory)?;
        daemon.log_level = "info";
        Ok(Self { daemon, node, directory: directory.to_owned(), kubeconfig, pod })
    }

    /// Starts it and waits until it answers on its socket, which it does without an API server.
    pub(crate) fn start(&mut self, place: &Namespace) -> Result<()> {
        let variables = variables(
            &self.pod,
            &[
                ("FAIRWAY_KUBECONFIG", self.kubeconfig.display().to_string()),
                ("FAIRWAY_STATE_DIR", self.directory.join("state").display().to_string()),
                ("FAIRWAY_SOCKET", self.directory.join("fairway.sock").display().to_string()),
                ("FAIRWAY_EMPTY_LIST_HOLD", EMPTY_LIST_HOLD.to_owned()),
            ],
        );
        let words: Vec<&str> = self.pod.arguments.iter().map(String::as_str).collect();
        self.daemon.start_as(&Container { place, variables }, &words)
    }

    pub(crate) fn log(&self) -> PathBuf {
        fairway::log_in(&self.directory)
    }
}

/// Shorter than by default: between two cases, everything is deleted, while a daemon may wait for an API server that was
/// away.
const EMPTY_LIST_HOLD: &str = "45s";

/// `fairway controller`, one of several.
pub(crate) struct Controller {
    process: Option<Process>,
    pub(crate) pod: Pod,
    kubeconfig: PathBuf,
    number: u16,
    pub(crate) log: PathBuf,
}

impl Controller {
    pub(crate) fn prepare(number: u16, directory: &Path, kubeconfig: PathBuf, pod: Pod) -> Self {
        let log = directory.join(format!("controller-{number}.log"));
        Self { process: None, pod, kubeconfig, number, log }
    }

    pub(crate) fn start(&mut self, place: &Namespace) -> Result<()> {
        ensure!(self.process.is_none(), "{} runs", self.pod.name);
        // All of them are in one namespace here.
        let metrics = format!(":{}", FIRST_METRICS_PORT + self.number);
        let variables = variables(
            &self.pod,
            &[
                ("FAIRWAY_KUBECONFIG", self.kubeconfig.display().to_string()),
                ("FAIRWAY_METRICS_LISTEN", metrics),
                ("FAIRWAY_EMPTY_LIST_HOLD", EMPTY_LIST_HOLD.to_owned()),
            ],
        );
        let container = Container { place, variables };
        let arguments = self.pod.arguments.clone();
        let program = fairway::program();
        self.process = Some(Process::spawn(&container, &program, &arguments, &self.log)?);
        Ok(())
    }

    pub(crate) fn is_running(&self) -> bool {
        self.process.is_some()
    }

    pub(crate) fn check_running(&mut self) -> Result<()> {
        self.process.as_mut().map_or(Ok(()), Process::check_running)
    }

    /// SIGKILL.
    pub(crate) fn kill(&mut self) -> Result<()> {
        self.process.take().context("the controller was not started")?.kill();
        Ok(())
    }

    /// SIGTERM; an exit code other than 0 is a fault.
    pub(crate) fn stop(&mut self) -> Result<()> {
        let mut process = self.process.take().context("the controller was not started")?;
        let status = process.stop(STOP_LIMIT)?;
        ensure!(status.success(), "after SIGTERM, {} ended with {status}", self.pod.name);
        Ok(())
    }

    pub(crate) fn process_id(&self) -> Result<u32> {
        Ok(self.process.as_ref().context("the controller was not started")?.id())
    }
}
