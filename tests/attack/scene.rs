//! What do all stories have in common? Fairway with its own sessions on a node, whose resource files are on
//! a volume of their own, BIRD beside it that installs what it receives in its kernel, some Services, and waits
//! for what either side reports. Used by every story.

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::Cell;
use crate::volume::{Resource, Volume};
use lab::fairway::{Fairway, log_in};
use lab::process::{bounded, output_of};
use lab::resources::{Advertisement, Peer, pool, service};
use lab::routers::{Dialling, GracefulRestart, Release, Router, RouterKind, RouterSpec};
use lab::wait::{PATIENCE, wait_until};
use lab::withdrawals::Withdrawals;
use lab::{Family, Lab, NODE_IPV4, Wiring, make_directory};

/// The router, as Fairway knows it.
const ROUTER: &str = "10.77.0.2";

/// How many Services each story begins with.
pub(crate) const SERVICES: usize = 10;

/// How long a change may take to reach the router, whatever somebody does to another file.
pub(crate) const QUICK: Duration = Duration::from_secs(2);

const POOL: &str = "198.18.0.0/16";

/// The node and its router. Parts are dropped in this order: daemons before mounts and namespaces.
pub(crate) struct Scene {
    pub(crate) fairway: Fairway,
    pub(crate) router: Box<dyn Router>,
    pub(crate) volume: Volume,
    spec: RouterSpec,
    /// Of Fairway: its volume, state, socket and log are in it.
    directory: PathBuf,
    pub(crate) lab: Lab,
}

impl Scene {
    /// Everything runs, and the router has all Services.
    pub(crate) fn open(cell: &Cell) -> Result<Self> {
        Self::open_with(cell, spec()?)
    }

    /// The same, and the router keeps routes while Fairway restarts.
    pub(crate) fn open_with_restart(cell: &Cell) -> Result<Self> {
        let restart = GracefulRestart {
            restart_seconds: 120,
            notifications: false,
            long_lived_seconds: None,
        };
        Self::open_with(cell, RouterSpec { graceful_restart: Some(restart), ..spec()? })
    }

    fn open_with(cell: &Cell, spec: RouterSpec) -> Result<Self> {
        let lab = Lab::build(cell.number, &cell.directory, Wiring::Direct)?;
        let directory = cell.directory.join("fairway");
        make_directory(&directory)?;
        let fairway = Fairway::prepare_in(&directory)?;
        let mut volume = Volume::prepare(&directory, &directory.join("config"))?;
        volume.mount(&resources(&spec))?;
        let mut router = RouterKind::Bird(Release::Bookworm).prepare(&lab.router, &spec)?;
        router.start(&lab.router)?;
        let mut scene = Self { fairway, router, volume, spec, directory, lab };
        scene.start()?;
        scene.router_has_all(2 * PATIENCE)?;
        scene.all_is_in_force()?;
        Ok(scene)
    }

    pub(crate) fn start(&mut self) -> Result<()> {
        self.fairway.start(&self.lab.node)
    }

    /// Starts Fairway again, with more options.
    pub(crate) fn restart_with(&mut self, options: &[&str]) -> Result<()> {
        self.fairway.stop()?;
        self.fairway.extra_arguments = options.iter().map(|it| (*it).to_owned()).collect();
        self.start()?;
        self.router_has_all(2 * PATIENCE)?;
        self.all_is_in_force()
    }

    /// Mounts the volume again, with the files that it had in the beginning.
    pub(crate) fn mount_volume(&mut self) -> Result<()> {
        self.volume.mount(&resources(&self.spec))
    }

    /// A name in the folder of resources; one that begins with a dot is no resource file.
    pub(crate) fn in_folder(&self, name: &str) -> PathBuf {
        self.directory.join("config").join(name)
    }

    /// Writes or replaces the resource file `name` by one rename inside the volume.
    pub(crate) fn apply(&self, name: &str, text: &str) -> Result<()> {
        let staged = self.in_folder(&format!(".{name}"));
        fs::write(&staged, text).with_context(|| format!("writing {}", staged.display()))?;
        fs::rename(&staged, self.fairway.resource(name))
            .with_context(|| format!("moving {name} in place"))
    }

    /// Adds one more Service, which the router must have soon.
    pub(crate) fn add_quickly(&mut self, number: usize) -> Result<()> {
        self.apply(&format!("service-{number}"), &service_text(number))?;
        self.router_gets(number, QUICK)
    }

    /// Runs `fairway reload WORDS`.
    pub(crate) fn reload(&self, words: &[&str]) -> Result<String> {
        let mut command = bounded(lab::fairway::program());
        output_of(command.arg("reload").args(words).arg("--socket").arg(self.socket()))
    }

    pub(crate) fn socket(&self) -> PathBuf {
        self.directory.join("fairway.sock")
    }

    pub(crate) fn state_directory(&self) -> PathBuf {
        self.directory.join("state")
    }

    /// Sends a signal to Fairway alone.
    pub(crate) fn signal(&self, signal: Signal) -> Result<()> {
        let process = i32::try_from(self.fairway.process_id()?).context("a process id")?;
        kill(Pid::from_raw(process), signal).with_context(|| format!("sending {signal}"))
    }

    /// Everything that Fairway has logged so far.
    pub(crate) fn log(&self) -> Result<String> {
        let log = log_in(&self.directory);
        fs::read_to_string(&log).with_context(|| log.display().to_string())
    }

    /// What Fairway answers at this path; an error when its status is one.
    pub(crate) fn http(&self, path: &str) -> Result<String> {
        self.lab.node.run("curl", &["-sSf", &format!("http://127.0.0.1:7472/{path}")])
    }

    /// Waits until this bound has held something back.
    pub(crate) fn bound_was_reached(&mut self, bound: &str) -> Result<()> {
        let label = format!("fairway_bound_reached_total{{bound=\"{bound}\"}} ");
        self.wait(&format!("{label}grows"), QUICK, |scene| {
            let page = scene.http("metrics")?;
            let count =
                page.lines().find_map(|line| line.strip_prefix(&label)).context("no such")?;
            ensure!(count != "0", "it is 0");
            Ok(())
        })
    }

    /// Polls until it is so; fails at once when a program has ended.
    pub(crate) fn wait<T>(
        &mut self,
        expected: &str,
        limit: Duration,
        mut look: impl FnMut(&mut Self) -> Result<T>,
    ) -> Result<T> {
        wait_until(expected, limit, || {
            self.fairway.check_running()?;
            self.router.check_running()?;
            look(self)
        })
    }

    /// Waits until the router has the routes to the Services of the beginning, and no others.
    pub(crate) fn router_has_all(&mut self, limit: Duration) -> Result<()> {
        self.wait("the router has all routes", limit, |scene| scene.expect_all_routes())
    }

    pub(crate) fn expect_all_routes(&self) -> Result<()> {
        let expected: BTreeSet<String> = (0..SERVICES).map(prefix).collect();
        let routes = self.router.prefixes(Family::Ipv4)?;
        ensure!(routes == expected, "the router has {routes:?}");
        Ok(())
    }

    pub(crate) fn router_has_none(&mut self, limit: Duration) -> Result<()> {
        self.wait("the router has no routes", limit, |scene| {
            let routes = scene.router.prefixes(Family::Ipv4)?;
            ensure!(routes.is_empty(), "it has {} routes", routes.len());
            Ok(())
        })
    }

    /// Waits until the router has this one, beside any others.
    pub(crate) fn router_gets(&mut self, number: usize, limit: Duration) -> Result<()> {
        let expected = prefix(number);
        self.wait(&format!("the router has {expected}"), limit, |scene| {
            ensure!(scene.router.prefixes(Family::Ipv4)?.contains(&expected), "not yet");
            Ok(())
        })
    }

    /// Which session with the router this is: the first, the second.
    pub(crate) fn session(&self) -> Result<u64> {
        let neighbour = self.fairway.neighbour(ROUTER)?;
        ensure!(neighbour.is_established(), "the session is {}", neighbour.state);
        Ok(neighbour.connections_established)
    }

    /// The session is the same as it was.
    pub(crate) fn expect_same_session(&self, before: u64) -> Result<()> {
        let after = self.session()?;
        ensure!(after == before, "expected session number {before}, it is number {after}");
        Ok(())
    }

    /// Waits until `show config` has all of these words, in one line.
    pub(crate) fn fault_is_shown(&mut self, words: &[&str], limit: Duration) -> Result<()> {
        self.wait(&format!("show config has a line with {words:?}"), limit, |scene| {
            let text = scene.fairway.show_text(&["config"])?;
            let has_all = |line: &str| words.iter().all(|word| line.contains(word));
            ensure!(text.lines().any(has_all), "it says:\n{text}");
            Ok(())
        })
    }

    /// Waits until everything is in force, and nothing has a fault.
    pub(crate) fn all_is_in_force(&mut self) -> Result<()> {
        self.wait("show config says that all is in force", PATIENCE, |scene| {
            let text = scene.fairway.show_text(&["config"])?;
            for section in ["Findings: none", "Not in force: none"] {
                ensure!(text.contains(section), "it does not say {section}:\n{text}");
            }
            Ok(())
        })?;
        self.is_stale(false)
    }

    /// Waits until the metric for faults is so.
    pub(crate) fn is_stale(&mut self, is_stale: bool) -> Result<()> {
        let expected = format!("metallb_k8s_client_config_stale_bool {}", u8::from(is_stale));
        self.wait(&format!("the metrics have {expected}"), PATIENCE, |scene| {
            let page = scene.http("metrics")?;
            ensure!(page.lines().any(|line| line == expected), "they have not");
            Ok(())
        })
    }

    /// Reports each route that goes at the router, if only for an instant, in a log with this name.
    pub(crate) fn watch(&self, name: &str) -> Result<Withdrawals> {
        let log = self.lab.directory.join(format!("withdrawals-{name}.log"));
        Withdrawals::of_kernel(&self.lab.router.namespace, &log)
    }
}

/// Nothing went of what Services have.
pub(crate) fn expect_none_gone(withdrawals: &mut Withdrawals) -> Result<()> {
    let gone = withdrawals.lines(|prefix| prefix.starts_with("198.18."))?;
    ensure!(gone.is_empty(), "{} routes went, the first as {:?}", gone.len(), gone.first());
    Ok(())
}

/// The Service with this number, and its address from the pool.
pub(crate) fn service_text(number: usize) -> String {
    service(&format!("service-{number}"), Some(&address(number)))
}

fn address(number: usize) -> String {
    format!("198.18.{}.{}", number / 250, number % 250 + 1)
}

pub(crate) fn prefix(number: usize) -> String {
    address(number) + "/32"
}

/// Either side dials.
fn spec() -> Result<RouterSpec> {
    let ipv6 = Wiring::Direct.router_address(Family::Ipv6)?.to_string();
    Ok(RouterSpec {
        dialling: Dialling::Dials,
        ..RouterSpec::between(
            Wiring::Direct.router_address(Family::Ipv4)?,
            ipv6.parse().context("the router's IPv6 address")?,
            NODE_IPV4.parse().context("the node's address")?,
        )
    })
}

/// The files of the beginning.
fn resources(spec: &RouterSpec) -> Vec<Resource> {
    let advertisement = Advertisement { name: "main", ..<_>::default() };
    let shared = [
        ("peer".to_owned(), Peer::towards(spec).yaml()),
        ("pool".to_owned(), pool("main", &[POOL])),
        ("advertisement".to_owned(), advertisement.yaml()),
    ];
    let services = (0..SERVICES).map(|number| (format!("service-{number}"), service_text(number)));
    shared.into_iter().chain(services).collect()
}
