//! What does a network namespace of the lab offer? A name of its own, interfaces and addresses,
//! commands run inside, and its end when it is dropped. Used by the lab, and through it by all.

use std::ffi::OsStr;
use std::fs::File;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, anyhow};
use nix::sched::{CloneFlags, setns};

use super::process::{bounded, output_of};
use super::wait::{PATIENCE, wait_until};

/// All our namespaces are called PREFIX-PID-CELL-ROLE, so that leftovers can be told apart.
const PREFIX: &str = "interop";

/// Where `ip netns` keeps the names.
const NAMES: &str = "/var/run/netns";

/// Where a program can be started.
pub trait Place {
    /// A command that will run there; its process id is the program's.
    fn command(&self, program: &OsStr) -> Command;
}

/// A network namespace that lives as long as this value.
pub struct Namespace {
    name: String,
}

impl Namespace {
    /// Adds a namespace for `role` in cell number `cell` of this run, with its loopback up.
    pub fn create(cell: usize, role: &str) -> Result<Self> {
        let name = format!("{PREFIX}-{}-{cell}-{role}", std::process::id());
        output_of(bounded("ip").args(["netns", "add", &name]))?;
        let namespace = Self { name };
        // Link-local addresses would be tentative for the first second or two.
        namespace.run("sysctl", &["-q", "-w", "net.ipv6.conf.default.accept_dad=0"])?;
        // FRR advertises itself where next hops are extended: the kernel would take an address from that, and dial from it.
        namespace.run("sysctl", &["-q", "-w", "net.ipv6.conf.default.autoconf=0"])?;
        namespace.ip(&["link", "set", "lo", "up"])?;
        Ok(namespace)
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    /// Runs a short command inside to its end.
    pub fn run(&self, program: &str, arguments: &[&str]) -> Result<String> {
        let mut command = bounded("ip");
        command.args(["netns", "exec", &self.name, program]).args(arguments);
        output_of(&mut command)
    }

    /// Runs this inside; sockets that it makes stay there.
    pub fn enter<T: Send>(&self, act: impl FnOnce() -> Result<T> + Send) -> Result<T> {
        let file = Path::new(NAMES).join(&self.name);
        // The thread that has entered a namespace ends.
        std::thread::scope(|scope| {
            let inside = scope.spawn(|| {
                let file =
                    File::open(&file).with_context(|| format!("opening {}", file.display()))?;
                setns(&file, CloneFlags::CLONE_NEWNET).context("entering the namespace")?;
                act()
            });
            inside.join().map_err(|_| anyhow!("the thread in {} panicked", self.name))?
        })
    }

    /// Runs `ip` on this namespace.
    pub fn ip(&self, arguments: &[&str]) -> Result<String> {
        output_of(bounded("ip").args(["-n", &self.name]).args(arguments))
    }

    /// Lays a cable: interface `here` in this namespace, `there` in the other one, both up.
    pub fn connect(&self, here: &str, other: &Namespace, there: &str) -> Result<()> {
        let peer = ["peer", "name", there, "netns", &other.name];
        let link = ["link", "add", here, "type", "veth"];
        self.ip(&[link.as_slice(), peer.as_slice()].concat())?;
        self.ip(&["link", "set", here, "up"])?;
        other.ip(&["link", "set", there, "up"])?;
        Ok(())
    }

    /// Gives `interface` an address. Duplicate detection would cost the first second of a test.
    pub fn add_address(&self, interface: &str, address: &str) -> Result<()> {
        let mut arguments = vec!["address", "add", address, "dev", interface];
        if address.contains(':') {
            arguments.push("nodad");
        }
        self.ip(&arguments).map(drop)
    }

    pub fn add_route(&self, prefix: &str, gateway: &str) -> Result<()> {
        self.ip(&["route", "add", prefix, "via", gateway]).map(drop)
    }

    pub fn enable_forwarding(&self) -> Result<()> {
        let settings = ["net.ipv4.ip_forward=1", "net.ipv6.conf.all.forwarding=1"];
        self.run("sysctl", &["-q", "-w", settings[0], settings[1]]).map(drop)
    }

    /// A counter of the kernel's TCP, such as `TCPMD5Failure`.
    pub fn tcp_counter(&self, name: &str) -> Result<u64> {
        let text = self.run("cat", &["/proc/net/netstat"])?;
        let mut lines = text.lines().filter(|line| line.starts_with("TcpExt:"));
        let names = lines.next().context("/proc/net/netstat has no names of TcpExt")?;
        let values = lines.next().context("/proc/net/netstat has no values of TcpExt")?;
        let (_, value) = names
            .split_whitespace()
            .zip(values.split_whitespace())
            .find(|(candidate, _)| *candidate == name)
            .with_context(|| format!("the kernel has no counter {name}"))?;
        value.parse().with_context(|| format!("counter {name} is {value}"))
    }
}

impl Place for Namespace {
    /// It replaces `ip`, so its process id is the child's.
    fn command(&self, program: &OsStr) -> Command {
        Network::Named(self.name.clone()).command(program)
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        if let Err(error) = output_of(bounded("ip").args(["netns", "delete", &self.name])) {
            eprintln!("warning: namespace {} stays behind: {error:#}", self.name);
        }
    }
}

/// A network namespace: for programs that need it after the namespace was borrowed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Network {
    /// That of this machine.
    Own,
    /// A namespace of this name, which lives longer.
    Named(String),
}

impl Place for Network {
    fn command(&self, program: &OsStr) -> Command {
        match self {
            Self::Own => Command::new(program),
            Self::Named(name) => {
                let mut command = Command::new("ip");
                command.args(["netns", "exec", name]).arg(program);
                command
            }
        }
    }
}

/// Removes what a run that was killed has left: namespaces of a process that no longer exists, and the
/// processes inside them.
pub fn remove_leftovers() -> Result<()> {
    let list = output_of(bounded("ip").args(["netns", "list"]))?;
    for name in list.lines().filter_map(|line| line.split_whitespace().next()) {
        let mut parts = name.split('-');
        let (Some(PREFIX), Some(maker)) = (parts.next(), parts.next()) else {
            continue;
        };
        if maker.parse::<u32>().is_err() || Path::new("/proc").join(maker).exists() {
            continue;
        }
        // Suites that start at once find the same leftovers: one that another removes is soon gone as well.
        wait_until(&format!("namespace {name} is removed"), PATIENCE, || match remove(name) {
            Err(error) if Path::new(NAMES).join(name).exists() => Err(error),
            _ => Ok(()),
        })?;
    }
    Ok(())
}

/// Ends the processes in the namespace `name`, and removes it.
fn remove(name: &str) -> Result<()> {
    let inside = output_of(bounded("ip").args(["netns", "pids", name]))?;
    for process in inside.split_whitespace() {
        // It may end between the list and the signal.
        let _ = output_of(bounded("kill").args(["-9", process]));
    }
    output_of(bounded("ip").args(["netns", "delete", name])).map(drop)
}

/// A place with variables, as a Pod has them for its container.
pub struct Container<'a> {
    pub place: &'a Namespace,
    pub variables: Vec<(String, String)>,
}

impl Place for Container<'_> {
    fn command(&self, program: &OsStr) -> Command {
        let mut command = self.place.command(program);
        command.envs(self.variables.iter().map(|(name, value)| (name, value)));
        command
    }
}
