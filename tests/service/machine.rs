//! A machine with a real systemd, in namespaces: booted in a second, and gone without a trace.

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use tempfile::TempDir;

/// Far more than any step here takes.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);
const PAUSE: Duration = Duration::from_millis(20);

/// Dropping it ends everything in it.
pub(crate) struct Machine {
    unshare: Child,
    init: u32,
    cgroup: PathBuf,
    _place: TempDir,
}

impl Machine {
    /// Boots Debian 13 with the folder `packages` in it, and waits until that is done.
    pub(crate) fn boot(packages: &Path) -> Result<Self> {
        let checkout = lab::checkout();
        let root = Command::new(checkout.join("scripts/trixie.sh")).arg("--path").output()?;
        let root = String::from_utf8(root.stdout)?;
        ensure!(Path::new(root.trim()).exists(), "no {root}: run scripts/setup.sh trixie");
        let place = TempDir::new()?;
        let (layer, log) = (place.path().join("layer"), place.path().join("log"));
        fs::create_dir(&layer)?;
        let cgroup = own_cgroup()?;
        // systemd takes the cgroup that it is in for the root of all.
        let unshare = Command::new("sh")
            .args([
                "-c",
                "echo $$ >\"$0/cgroup.procs\" && exec unshare -m -p -f -n -i -u -C \"$@\"",
            ])
            .arg(&cgroup)
            .arg(checkout.join("tests/service/boot.sh"))
            .arg(root.trim())
            .arg(&layer)
            .arg(packages)
            .stdin(Stdio::null())
            .stderr(File::create(&log)?)
            .spawn()?;
        let mut machine = Self { init: 0, unshare, cgroup, _place: place };
        machine.init = wait_until("process 1", || {
            let id = machine.unshare.id();
            let children = fs::read_to_string(format!("/proc/{id}/task/{id}/children"))?;
            Ok(children.trim().parse()?)
        })?;
        wait_until("a booted machine", || {
            let state = machine.ask("systemctl is-system-running || true")?;
            // Degraded: something that Debian has and namespaces cannot have.
            let is_up = ["running", "degraded"].contains(&state.trim());
            ensure!(is_up, "it is {state}{}", fs::read_to_string(&log)?);
            Ok(())
        })?;
        Ok(machine)
    }

    /// Runs a shell command in it.
    pub(crate) fn run(&self, script: &str) -> Result<Output> {
        let mut command = Command::new("nsenter");
        command.args(["-t", &self.init.to_string(), "-a", "-r", "-w"]);
        command.args(["env", "-i", "PATH=/usr/sbin:/usr/bin:/sbin:/bin", "LANG=C.UTF-8"]);
        command.args(["DEBIAN_FRONTEND=noninteractive", "sh", "-euc", script]);
        command.stdin(Stdio::null()).output().context("nsenter")
    }

    /// The output of a command that has to succeed.
    pub(crate) fn ask(&self, script: &str) -> Result<String> {
        let output = self.run(script)?;
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        if !output.status.success() {
            let why = String::from_utf8_lossy(&output.stderr);
            bail!("{script}\nended with {}:\n{text}{why}", output.status);
        }
        Ok(text)
    }

    /// Writes a file, which is there whole or not at all.
    pub(crate) fn write(&self, path: &str, text: &str) -> Result<()> {
        let mut command = Command::new("nsenter");
        command.args(["-t", &self.init.to_string(), "-a", "-r", "-w", "sh", "-euc"]);
        command
            .arg(format!("mkdir -p \"$(dirname {path})\"; cat >{path}.new; mv {path}.new {path}"));
        let mut child = command.stdin(Stdio::piped()).spawn()?;
        child.stdin.take().context("no stdin")?.write_all(text.as_bytes())?;
        ensure!(child.wait()?.success(), "cannot write {path}");
        Ok(())
    }

    /// A property of the unit.
    pub(crate) fn property(&self, name: &str) -> Result<String> {
        let value = self.ask(&format!("systemctl show --value -p {name} fairway"))?;
        Ok(value.trim().to_owned())
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        // Process 1 takes all others along, and unshare ends with it.
        if let Ok(init) = i32::try_from(self.init)
            && init > 1
        {
            let init = nix::unistd::Pid::from_raw(init);
            let _ = nix::sys::signal::kill(init, nix::sys::signal::Signal::SIGKILL);
        } else {
            let _ = self.unshare.kill();
        }
        let _ = self.unshare.wait();
        let start = Instant::now();
        while remove_cgroups(&self.cgroup).is_err() && start.elapsed() < Duration::from_secs(2) {
            std::thread::sleep(PAUSE);
        }
    }
}

/// A new cgroup below ours, in the hierarchy of version 2.
fn own_cgroup() -> Result<PathBuf> {
    let mounts = fs::read_to_string("/proc/self/mounts")?;
    let mut mounts = mounts.lines().map(|line| line.split(' ').collect::<Vec<_>>());
    let mounted = mounts
        .find_map(|words| (words.get(2) == Some(&"cgroup2")).then(|| words.get(1).copied())?)
        .context("no cgroup2 is mounted here")?;
    let own = fs::read_to_string("/proc/self/cgroup")?;
    let own = own.lines().find_map(|line| line.strip_prefix("0::/")).context("no cgroup2 here")?;
    let path = Path::new(mounted).join(own).join(format!("fairway-test-{}", std::process::id()));
    fs::create_dir(&path).with_context(|| path.display().to_string())?;
    Ok(path)
}

/// From the leaves up: that is how cgroups are removed.
fn remove_cgroups(path: &Path) -> std::io::Result<()> {
    for entry in fs::read_dir(path)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            remove_cgroups(&entry.path())?;
        }
    }
    fs::remove_dir(path)
}

/// Polls until `look` succeeds. Its last error becomes part of ours when the time is up.
pub(crate) fn wait_until<T>(expected: &str, mut look: impl FnMut() -> Result<T>) -> Result<T> {
    let start = Instant::now();
    loop {
        match look() {
            Ok(found) => return Ok(found),
            Err(error) if start.elapsed() > PATIENCE => {
                return Err(error.context(format!("expected {expected} within {PATIENCE:?}")));
            }
            Err(_) => std::thread::sleep(PAUSE),
        }
    }
}
