//! How do the daemons run that a cluster would run? Each in its namespace, with a kubeconfig of its
//! service account and the variables that its Pod has. Used by the stage.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, ensure};

use crate::lab::fairway::{self, Fairway};
use crate::lab::make_directory;
use crate::lab::namespace::{Namespace, Place};
use crate::lab::process::Process;
use crate::objects::SYSTEM;

const STOP_LIMIT: Duration = Duration::from_secs(10);

/// What a Pod gives its container.
#[derive(Clone, Debug)]
pub(crate) struct Pod {
    pub(crate) name: String,
    pub(crate) uid: String,
}

/// A place with variables.
struct Container<'a> {
    place: &'a Namespace,
    variables: Vec<(&'static str, String)>,
}

impl Place for Container<'_> {
    fn command(&self, program: &OsStr) -> Command {
        let mut command = self.place.command(program);
        command.envs(self.variables.iter().map(|(name, value)| (*name, value)));
        command
    }
}

fn variables(pod: &Pod) -> Vec<(&'static str, String)> {
    vec![
        ("FAIRWAY_NAMESPACE", SYSTEM.to_owned()),
        ("FAIRWAY_POD", pod.name.clone()),
        ("FAIRWAY_POD_UID", pod.uid.clone()),
    ]
}

/// `fairway speaker` of one node.
pub(crate) struct Speaker {
    pub(crate) daemon: Fairway,
    pub(crate) node: &'static str,
    directory: PathBuf,
    kubeconfig: PathBuf,
    pod: Pod,
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
        let daemon = Fairway::prepare_in(directory)?;
        Ok(Self { daemon, node, directory: directory.to_owned(), kubeconfig, pod })
    }

    /// Starts it and waits until it answers on its socket, which it does without an API server.
    pub(crate) fn start(&mut self, place: &Namespace) -> Result<()> {
        let mut variables = variables(&self.pod);
        variables.push(("FAIRWAY_NODE", self.node.to_owned()));
        variables.push(("FAIRWAY_DAEMONSET", "speaker".to_owned()));
        let kubeconfig = self.kubeconfig.to_string_lossy().into_owned();
        let words = ["speaker", "--kubeconfig", &kubeconfig, "--metrics-listen", "127.0.0.1:7472"];
        self.daemon.start_as(&Container { place, variables }, &words)
    }

    pub(crate) fn log(&self) -> PathBuf {
        fairway::log_in(&self.directory)
    }
}

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
        let container = Container { place, variables: variables(&self.pod) };
        let arguments = [
            "controller".to_owned(),
            format!("--kubeconfig={}", self.kubeconfig.display()),
            format!("--metrics-listen=127.0.0.1:{}", 7472 + self.number),
            "--log-level=debug".to_owned(),
        ];
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
