//! How does MetalLB run? Its own programs, each with the variables that its manifests give it. In FRR mode each node has an FRR, and a
//! program that loads what the speaker wrote when the speaker asks for it, as the container `reloader` does. Used by the suites
//! `metallb` and `migration`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

use crate::frr_speaker::Speaker as Frr;
use crate::namespace::{Container, Namespace};
use crate::process::Process;
use crate::routers::Release;
use crate::wait::{PATIENCE, wait_until};

/// Where its objects and its Pods are.
pub const SYSTEM: &str = "metallb-system";

/// How its speakers speak BGP.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    Native,
    Frr,
}

impl Mode {
    pub const ALL: [Self; 2] = [Self::Native, Self::Frr];

    pub fn word(self) -> &'static str {
        match self {
            Self::Native => "native",
            Self::Frr => "frr",
        }
    }
}

/// Where its programs are.
#[derive(Debug, Clone)]
pub struct Programs {
    folder: PathBuf,
}

impl Programs {
    /// Those that `scripts/metallb.sh` has built; `None` where there are none.
    pub fn find() -> Result<Option<Self>> {
        let script = crate::checkout().join("scripts/metallb.sh");
        let output = Command::new(script).arg("--find").stderr(Stdio::inherit()).output()?;
        match output.status.code() {
            Some(0) => {
                let folder = PathBuf::from(String::from_utf8(output.stdout)?.trim_end());
                Ok(Some(Self { folder }))
            }
            Some(3) => Ok(None),
            _ => bail!("scripts/metallb.sh ended with {}", output.status),
        }
    }

    /// Its CustomResourceDefinitions.
    pub fn definitions(&self) -> PathBuf {
        self.folder.join("crds")
    }

    /// `controller`, which has a Pod of that name.
    pub fn controller(
        &self,
        place: &Namespace,
        mode: Mode,
        at: &Path,
        kubeconfig: &Path,
    ) -> Result<Process> {
        let arguments = [
            format!("--kubeconfig={}", kubeconfig.display()),
            "--webhook-mode=disabled".to_owned(),
            "--disable-cert-rotation=true".to_owned(),
        ];
        let container = Container { place, variables: variables("controller", mode) };
        Process::spawn(
            &container,
            &self.folder.join("controller"),
            &arguments,
            &at.join("controller.log"),
        )
    }

    /// `speaker` of a node, which has a Pod of its name.
    pub fn speaker(
        &self,
        place: &Namespace,
        node: &str,
        at: &Path,
        kubeconfig: &Path,
        frr: Option<&Reloaded>,
    ) -> Result<Process> {
        let mode = if frr.is_some() { Mode::Frr } else { Mode::Native };
        let mut variables = variables(&format!("speaker-{node}"), mode);
        let mut set = |name: &str, value: String| variables.push((name.to_owned(), value));
        set("METALLB_NODE_NAME", node.to_owned());
        set("METALLB_HOST", "127.0.0.1".to_owned());
        if let Some(frr) = frr {
            set("FRR_CONFIG_FILE", frr.configuration.display().to_string());
            set("FRR_RELOADER_PID_FILE", frr.process_id.display().to_string());
        }
        let arguments =
            [format!("--kubeconfig={}", kubeconfig.display()), "--log-level=debug".to_owned()];
        let container = Container { place, variables };
        Process::spawn(
            &container,
            &self.folder.join("speaker"),
            &arguments,
            &at.join("speaker.log"),
        )
    }
}

fn variables(pod: &str, mode: Mode) -> Vec<(String, String)> {
    let own = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    vec![
        own("METALLB_NAMESPACE", SYSTEM),
        own("METALLB_POD_NAME", pod),
        own("METALLB_BGP_TYPE", mode.word()),
    ]
}

/// FRR of a node that loads what a speaker writes.
pub struct Reloaded {
    configuration: PathBuf,
    process_id: PathBuf,
    _reloader: Process,
    _frr: Frr,
}

impl Reloaded {
    pub fn start(place: &Namespace, at: &Path) -> Result<Self> {
        let mut frr = Frr::prepare(Release::Trixie, at)?;
        frr.start(place)?;
        let [configuration, process_id, script] =
            ["frr.conf", "reloader.pid", "reloader.sh"].map(|name| frr.directory().join(name));
        // A request that comes while FRR loads is answered after it.
        let text = format!(
            "asked=\necho -n $$ >{pid}\ntrap 'asked=yes' HUP\nwhile :; do\n  if [ -n \"$asked\" ]; then\n    asked=\n    \
             python3 /usr/lib/frr/frr-reload.py --reload --stdout --bindir /usr/bin --confdir {folder} --rundir {folder} \
             --vty_socket {folder} {file}\n  else\n    sleep 0.2 & wait $!\n  fi\ndone\n",
            pid = frr.seen("reloader.pid"),
            folder = frr.seen(""),
            file = frr.seen("frr.conf"),
        );
        fs::write(&script, text).context("the reloader")?;
        let words = [frr.seen("reloader.sh")];
        let log = at.join("reloader.log");
        let reloader = Process::spawn(&frr.within(place), Path::new("/bin/bash"), &words, &log)?;
        wait_until("the reloader has written its process ID", PATIENCE, || {
            fs::read_to_string(&process_id)?.parse::<u32>().map(drop).context("no number yet")
        })?;
        Ok(Self { configuration, process_id, _reloader: reloader, _frr: frr })
    }
}
