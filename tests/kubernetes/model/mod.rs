//! The model of an API server as the daemons' only API server: it does what the real one does where
//! clients depend on it, and fails on request. Used by the stage and the cases of faults.

mod faults;
mod request;
mod server;

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result, bail, ensure};
use serde_json::{Value, json};

pub(crate) use faults::{Counts, Faults};

use lab::cluster::http;
use lab::namespace::Place;
use lab::process::Process;
use lab::wait::{PATIENCE, wait_until};

/// First word of the command line of this binary in its other role.
const SERVE: &str = "@serve-model";

/// Plays the other role when the command line asks for it: `main` must call this first.
pub(crate) fn other_role() -> Option<ExitCode> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [role, socket, address] = words.as_slice() else { return None };
    if role != SERVE {
        return None;
    }
    let address = address.parse().context("an address with a port");
    let outcome = address.and_then(|address| server::serve(Path::new(socket), address));
    Some(match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{role}: {error:#}");
            ExitCode::FAILURE
        }
    })
}

/// A running model.
pub(crate) struct Model {
    _process: Process,
    folder: PathBuf,
    address: SocketAddr,
}

impl Model {
    /// Starts it and waits until it answers. `folder` is its own.
    pub(crate) fn start(place: &impl Place, address: SocketAddr, folder: &Path) -> Result<Self> {
        let folder = folder.to_owned();
        let socket = folder.join("model.sock");
        let words = [SERVE.to_owned(), socket.display().to_string(), address.to_string()];
        let program = std::env::current_exe().context("the path of this binary")?;
        let process = Process::spawn(place, &program, &words, &folder.join("model.log"))?;
        let model = Self { _process: process, folder, address };
        wait_until("the model answers", PATIENCE, || model.order("faults", None))?;
        Ok(model)
    }

    /// Where it answers the test.
    pub(crate) fn socket(&self) -> PathBuf {
        self.folder.join("model.sock")
    }

    /// Writes a kubeconfig for a daemon of this name.
    pub(crate) fn kubeconfig(&self, name: &str) -> Result<PathBuf> {
        let config = json!({
            "apiVersion": "v1", "kind": "Config", "current-context": "it",
            "clusters": [{ "name": "it", "cluster": { "server": format!("http://{}", self.address) } }],
            "users": [{ "name": "it", "user": { "token": name } }],
            "contexts": [{ "name": "it", "context": { "cluster": "it", "user": "it" } }],
        });
        let file = self.folder.join(format!("{name}.kubeconfig"));
        std::fs::write(&file, config.to_string()).context("writing a kubeconfig")?;
        Ok(file)
    }

    /// From now on these faults happen, and no others.
    pub(crate) fn set_faults(&self, faults: &Faults) -> Result<()> {
        self.order("faults", Some(&serde_json::to_value(faults)?)).map(drop)
    }

    /// The faults that are left.
    pub(crate) fn faults(&self) -> Result<Faults> {
        Ok(serde_json::from_value(self.order("faults", None)?["faults"].take())?)
    }

    pub(crate) fn counts(&self) -> Result<Counts> {
        Ok(serde_json::from_value(self.order("counts", None)?["counts"].take())?)
    }

    /// All watches end, as when connections are lost.
    pub(crate) fn cut(&self) -> Result<()> {
        self.order("cut", None).map(drop)
    }

    /// What happened until now is not remembered: a watch that asks for it gets 410.
    pub(crate) fn compact(&self) -> Result<()> {
        self.order("compact", None).map(drop)
    }

    fn order(&self, what: &str, body: Option<&Value>) -> Result<Value> {
        let reply = http::ask(&self.socket(), "POST", &format!("/-/{what}"), body)?;
        if reply.status != 200 {
            bail!("the model says {} {}", reply.status, reply.text);
        }
        let value = reply.json()?;
        ensure!(value.is_object(), "the model says {value}");
        Ok(value)
    }
}
