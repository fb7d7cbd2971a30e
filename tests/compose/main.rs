//! The compose lab, end to end: Fairway between an FRR and a BIRD router, each in its container.
//!
//! The lab is a project of its own with its own subnets, made from a copy of `examples/compose`, so that it runs
//! beside a lab that is already up. Engine, images and containers are the business of `scripts/compose.sh`.
#![allow(clippy::disallowed_methods, reason = "this test measures real time")]
#![allow(clippy::indexing_slicing, reason = "all of this program is a test")]

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, ExitCode, Stdio};
use std::time::{Duration, Instant, SystemTime};

use anyhow::{Context, Result, bail, ensure};
use clap::Parser;
use lab::suite::{self, Case, Suite};
use serde_json::Value;

/// What the two Services of `examples/compose` are given: one prefix of each family.
const WEB: [&str; 2] = ["198.51.100.1/32", "2001:db8:100::1/128"];
const DNS: [&str; 2] = ["198.51.100.53/32", "2001:db8:100::53/128"];
/// The subnets that the files of the lab are written for, up to the host part.
const WRITTEN_FOR: [&str; 2] = ["172.30.77.", "fd30:77::"];
/// How long a change of a file may take until the last router has it.
const LIMIT: Duration = Duration::from_secs(1);
const PROJECT: &str = "fairway-test-";

/// The compose lab, end to end.
#[derive(Parser)]
struct Options {
    #[command(flatten)]
    suite: suite::Options,
}

fn main() -> ExitCode {
    suite::main("compose", run_suite)
}

fn run_suite(options: Options) -> Result<bool> {
    let mut suite = Suite::new("compose", options.suite);
    suite.add(Case::new("the lab comes up, follows its files, and has FRR as a speaker", |_| {
        play()
    }));
    let Some(chosen) = suite.choose()? else { return Ok(true) };
    Ok(chosen.run()?.all_passed())
}

/// Up, checked, and down again, whatever the result.
fn play() -> Result<()> {
    Lab::new(Instant::now()).and_then(|lab| {
        let outcome = lab.up().and_then(|()| lab.check());
        if outcome.is_err() {
            lab.say("failed; the logs of the containers:");
            if let Err(error) = run(lab.script("compose.sh", &["logs"]), 30) {
                lab.say(&format!("no logs: {error:#}"));
            }
        }
        outcome.and(lab.down())
    })
}

/// A project of the lab's compose file, and the files that it mounts.
struct Lab {
    started: Instant,
    project: String,
    dir: PathBuf,
    /// As [`WRITTEN_FOR`], of this project.
    nets: [String; 2],
}

#[derive(Clone, Copy, Debug)]
enum Router {
    Frr,
    Bird,
}

impl Router {
    fn service(self) -> &'static str {
        match self {
            Self::Frr => "frr",
            Self::Bird => "bird",
        }
    }

    /// A shell command that lists the routes of both families.
    fn list(self) -> &'static str {
        match self {
            Self::Frr => "vtysh -c 'show bgp ipv4 unicast' -c 'show bgp ipv6 unicast'",
            Self::Bird => "birdc show route",
        }
    }
}

/// What happens to the routes of a Service.
#[derive(Clone, Copy, Debug)]
enum Change {
    Gone,
    Back,
}

impl Lab {
    fn new(started: Instant) -> Result<Self> {
        let project = format!("{PROJECT}{}", std::process::id());
        let dir = std::env::temp_dir().join(&project);
        output(script("docker.sh", &["engine"]), 90)?;
        remove_leftovers()?;
        let lab = Self { started, project, dir, nets: free_nets()? };
        lab.copy("examples/compose", "resources")?;
        lab.copy("docker/frr", "routers/frr")?;
        lab.copy("docker/bird", "routers/bird")?;
        Ok(lab)
    }

    fn up(&self) -> Result<()> {
        self.say(&format!("{} on {}0/24 and {}/64", self.project, self.nets[0], self.nets[1]));
        run(self.script("compose.sh", &["up"]), 1800)
    }

    fn down(&self) -> Result<()> {
        self.say("tearing down");
        let down = output(self.script("compose.sh", &["down"]), 60);
        fs::remove_dir_all(&self.dir).context("the lab's files")?;
        down.map(drop)
    }

    fn check(&self) -> Result<()> {
        self.until("both sessions and all routes", || {
            self.sessions()?;
            self.routes_in_frr()?;
            self.routes_in_bird()?;
            self.summary_of_fairway()
        })?;

        let resources = self.dir.join("resources");
        let (web, aside) = (resources.join("web.yaml"), self.dir.join("web.yaml"));
        fs::copy(&web, &aside)?;
        self.timed(Change::Gone, || Ok(fs::remove_file(&web)?))?;
        // Editors write beside the file and rename over it.
        self.timed(Change::Back, || Ok(fs::rename(&aside, &web)?))?;
        self.sessions().context("after the changes")?;
        self.with_frr_as_speaker()
    }

    /// The second Fairway, with FRR as its speaker: beside the first one, the same ones.
    fn with_frr_as_speaker(&self) -> Result<()> {
        run(self.script("compose.sh", &["frr"]), 600)?;
        self.until("FRR as a speaker: all routes", || self.spoken_by_frr(&[WEB, DNS]))?;
        let config = self.json("fairway-frr", &["fairway", "show", "config", "--json"])?;
        ensure!(config["notInForce"].as_array().is_some_and(Vec::is_empty), "{config}");
        let status = self.exec("fairway-frr", &["cat", "/proc/1/status"])?;
        let has_none = ["CapPrm:\t0000000000000000", "CapEff:\t0000000000000000"];
        ensure!(has_none.iter().all(|line| status.contains(line)), "it has capabilities: {status}");

        let resources = self.dir.join("resources");
        let (web, aside) = (resources.join("web.yaml"), self.dir.join("web.yaml"));
        fs::rename(&web, &aside)?;
        self.until("FRR as a speaker: a withdrawal", || self.spoken_by_frr(&[DNS]))?;
        fs::rename(&aside, &web)?;
        self.until("FRR as a speaker: it is back", || self.spoken_by_frr(&[WEB, DNS]))?;

        // watchfrr restarts it, and Fairway configures it again.
        self.exec("frr-speaker", &["bash", "-c", "kill -9 $(cat /run/frr/bgpd.pid)"])?;
        self.until("bgpd of FRR is missed", || {
            let config = self.json("fairway-frr", &["fairway", "show", "config", "--json"])?;
            let faults = config["notInForce"].to_string();
            ensure!(faults.contains("bgpd"), "not in force: {faults}");
            Ok(())
        })?;
        self.until("bgpd of FRR is back", || self.spoken_by_frr(&[WEB, DNS]))
    }

    /// These Services are in the table of FRR, of both routers by it, and no others; the session of either
    /// router with it is Established.
    fn spoken_by_frr(&self, services: &[[&str; 2]]) -> Result<()> {
        let summary = self.json("fairway-frr", &["fairway", "show", "bgp", "summary", "--json"])?;
        for peer in [&self.hosts(3)[0], &self.hosts(4)[1]] {
            for family in ["ipv4Unicast", "ipv6Unicast"] {
                let row = &summary[family]["peers"][peer];
                ensure!(row["state"] == "Established", "fairway-frr: {family} {peer}: {row}");
                ensure!(row["pfxSnt"] == services.len(), "fairway-frr: {family} {peer}: {row}");
            }
        }
        let speaker = self.hosts(5);
        for (number, family) in ["ipv4", "ipv6"].into_iter().enumerate() {
            let show = format!("show bgp {family} unicast json");
            let own = self.json("frr-speaker", &["vtysh", "-c", &show])?;
            let routes = own["routes"].as_object().map_or(0, serde_json::Map::len);
            ensure!(routes == services.len(), "frr-speaker: {own}");
            let theirs = self.json("frr", &["vtysh", "-c", &show])?;
            for service in services {
                let paths = theirs["routes"][service[number]].as_array();
                let by_frr = |path: &&Value| path["peerId"] == speaker[0].as_str();
                let path = paths.and_then(|paths| paths.iter().find(by_frr));
                ensure!(path.is_some(), "frr: no {} by FRR: {theirs}", service[number]);
            }
        }
        Ok(())
    }

    /// Established on both routers, and the segments signed.
    fn sessions(&self) -> Result<()> {
        let [fairway4, fairway6] = self.hosts(2);
        let neighbors = self.json("frr", &["vtysh", "-c", "show bgp neighbors json"])?;
        let state = &neighbors[&fairway4]["bgpState"];
        ensure!(state == "Established", "frr: the session is {state}");
        let protocol = self.exec("bird", &["birdc", "show", "protocols", "all", "fairway"])?;
        ensure!(protocol.contains("Established"), "bird: {protocol}");
        for (service, peer) in [("frr", &fairway4), ("bird", &fairway6)] {
            let sockets = self.exec(service, &["ss", "-Htni", "state", "established"])?;
            let signed = format!("md5keys:{peer}");
            ensure!(sockets.contains(&signed), "{service}: no TCP-MD5 with {peer}: {sockets}");
        }
        Ok(())
    }

    fn routes_in_frr(&self) -> Result<()> {
        let hops = self.hosts(2);
        for (number, family) in ["ipv4", "ipv6"].into_iter().enumerate() {
            let table =
                self.json("frr", &["vtysh", "-c", &format!("show bgp {family} unicast json")])?;
            for service in [WEB, DNS] {
                let paths = &table["routes"][service[number]];
                let path = paths.get(0).with_context(|| format!("frr: no {}", service[number]))?;
                let next = path["nexthops"].as_array().map_or(&[][..], Vec::as_slice);
                ensure!(next.iter().any(|hop| hop["ip"] == hops[number].as_str()), "frr: {path}");
            }
        }
        Ok(())
    }

    fn routes_in_bird(&self) -> Result<()> {
        let hops = self.hosts(2);
        for service in [WEB, DNS] {
            for (prefix, hop) in service.iter().zip(&hops) {
                let route = self.exec("bird", &["birdc", "show", "route", prefix])?;
                ensure!(route.contains(&format!("via {hop} on ")), "bird: {route}");
            }
        }
        Ok(())
    }

    fn summary_of_fairway(&self) -> Result<()> {
        let text = self.exec("fairway", &["fairway", "show", "bgp", "summary"])?;
        let json = self.json("fairway", &["fairway", "show", "bgp", "summary", "--json"])?;
        for peer in [&self.hosts(3)[0], &self.hosts(4)[1]] {
            ensure!(text.contains(peer), "fairway: {peer} is missing in {text}");
            for family in ["ipv4Unicast", "ipv6Unicast"] {
                let row = &json[family]["peers"][peer];
                ensure!(row["state"] == "Established", "fairway: {family} {peer}: {row}");
                ensure!(row["pfxSnt"] == 2, "fairway: {family} {peer}: {row}");
            }
        }
        Ok(())
    }

    /// Makes a change to the files and checks when the last router has it.
    fn timed(&self, change: Change, make: impl FnOnce() -> Result<()>) -> Result<()> {
        let mut watches = Vec::new();
        for router in [Router::Frr, Router::Bird] {
            watches.push((router, self.watch(router, change)?));
        }
        let made = SystemTime::now();
        make()?;
        for (router, watch) in watches {
            let took = watch.seen()?.duration_since(made).unwrap_or_default();
            self.say(&format!("routes of web are {change:?} from {router:?} after {took:.0?}"));
            ensure!(took < LIMIT, "{router:?}: {change:?} took {took:?}, more than {LIMIT:?}");
        }
        Ok(())
    }

    /// Starts a poll inside the router's container, which ends with the time at which it saw the change.
    ///
    /// Containers share the machine's clock, so what it costs to enter one does not count: only the poll's own
    /// period does. The other Service's routes must stay throughout; that they are listed also tells an empty
    /// table from a router that does not answer.
    fn watch(&self, router: Router, change: Change) -> Result<Watch> {
        let (from, to) = match change {
            Change::Gone => (2, 0),
            Change::Back => (0, 2),
        };
        let look = format!(
            r#"
            look() {{
                out=$({list}) || {{ echo "no answer: $out"; exit 1; }}
                for p in {stay}; do case $out in *"$p"*) ;; *) echo "lost $p"; exit 1 ;; esac; done
                n=0
                for p in {moving}; do case $out in *"$p"*) n=$((n + 1)) ;; esac; done
            }}
            look
            [ $n = {from} ] || {{ echo "$n routes, not {from}, before the change"; exit 1; }}
            echo ready
            while [ $n != {to} ]; do sleep 0.005; look; done
            date +%s%N
            "#,
            list = router.list(),
            stay = DNS.join(" "),
            moving = WEB.join(" "),
        );
        let service = router.service();
        let args = ["compose", "exec", "-T", service, "timeout", "20", "sh", "-c", look.as_str()];
        let mut child = within(self.script("docker.sh", &args), 30)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .context("a poll in a container")?;
        let stdout = child.stdout.take().context("stdout of the poll")?;
        let mut watch = Watch { child, stdout: BufReader::new(stdout) };
        let first = watch.line()?;
        ensure!(first == "ready", "{router:?}, {change:?}: {first}");
        Ok(watch)
    }

    /// Repeats a check until it passes, saying what it waits for.
    fn until(&self, what: &str, check: impl Fn() -> Result<()>) -> Result<()> {
        let deadline = Instant::now() + Duration::from_secs(30);
        let mut said = String::new();
        loop {
            let Err(error) = check() else {
                self.say(&format!("{what}: yes"));
                return Ok(());
            };
            let now = format!("{error:#}");
            if Instant::now() > deadline {
                return Err(error.context(format!("{what}: not in time")));
            }
            if now != said {
                self.say(&format!("waiting: {now}"));
                said = now;
            }
            std::thread::sleep(Duration::from_millis(200));
        }
    }

    /// Copies a folder of the checkout, with this lab's subnets in place of the written ones.
    fn copy(&self, from: &str, to: &str) -> Result<()> {
        let to = self.dir.join(to);
        fs::create_dir_all(&to)?;
        for entry in fs::read_dir(root().join(from)).context(from.to_owned())? {
            let entry = entry?;
            let mut text = fs::read_to_string(entry.path())?;
            for (written, ours) in WRITTEN_FOR.iter().zip(&self.nets) {
                text = text.replace(written, ours);
            }
            fs::write(to.join(entry.file_name()), text)?;
        }
        Ok(())
    }

    /// The two addresses of a host.
    fn hosts(&self, number: u8) -> [String; 2] {
        self.nets.each_ref().map(|net| format!("{net}{number}"))
    }

    fn exec(&self, service: &str, command: &[&str]) -> Result<String> {
        let args = [&["compose", "exec", "-T", service], command].concat();
        output(self.script("docker.sh", &args), 20)
    }

    fn json(&self, service: &str, command: &[&str]) -> Result<Value> {
        let text = self.exec(service, command)?;
        serde_json::from_str(&text).with_context(|| format!("{service}: {command:?}: {text}"))
    }

    fn script(&self, name: &str, args: &[&str]) -> Command {
        let mut command = script(name, args);
        command
            .env("COMPOSE_PROJECT_NAME", &self.project)
            .env("FAIRWAY_LAB_RESOURCES", self.dir.join("resources"))
            .env("FAIRWAY_LAB_ROUTERS", self.dir.join("routers"))
            .env("FAIRWAY_LAB_NET4", self.nets[0].trim_end_matches('.'))
            .env("FAIRWAY_LAB_NET6", &self.nets[1]);
        command
    }

    fn say(&self, text: &str) {
        eprintln!("compose: {:6.2} s  {text}", self.started.elapsed().as_secs_f32());
    }
}

/// A running poll: its first line says that it began, its second when it saw the change.
struct Watch {
    child: Child,
    stdout: BufReader<ChildStdout>,
}

impl Watch {
    fn line(&mut self) -> Result<String> {
        let mut line = String::new();
        self.stdout.read_line(&mut line)?;
        Ok(line.trim().to_owned())
    }

    fn seen(mut self) -> Result<SystemTime> {
        let line = self.line()?;
        let status = self.child.wait()?;
        ensure!(status.success(), "the poll ended with {status}: {line}");
        let nanos = line.parse().with_context(|| format!("not a time: {line}"))?;
        Ok(SystemTime::UNIX_EPOCH + Duration::from_nanos(nanos))
    }
}

/// Labs of a test that was killed before it could tear them down.
fn remove_leftovers() -> Result<()> {
    let networks = output(docker(&["network", "ls", "--format", "{{.Name}}"]), 20)?;
    for network in networks.lines() {
        let Some(project) = network.strip_suffix("_fabric") else {
            continue;
        };
        let Some(pid) = project.strip_prefix(PROJECT) else {
            continue;
        };
        if !Path::new("/proc").join(pid).exists() {
            eprintln!("compose: removing {project}, left by an earlier run");
            let mut down = script("compose.sh", &["down"]);
            down.env("COMPOSE_PROJECT_NAME", project);
            output(down, 60)?;
            let _ = fs::remove_dir_all(std::env::temp_dir().join(project));
        }
    }
    Ok(())
}

/// Subnets that no network of the engine has; the search begins at another place in each process.
fn free_nets() -> Result<[String; 2]> {
    let ids = output(docker(&["network", "ls", "-q"]), 20)?;
    let format = "{{range .IPAM.Config}}{{.Subnet}} {{end}}";
    let mut inspect = docker(&["network", "inspect", "-f", format]);
    inspect.args(ids.lines());
    let taken = output(inspect, 20)?;
    let first = std::process::id();
    (0..256)
        .map(|step| first.wrapping_add(step) % 256)
        .map(|number| [format!("10.30.{number}."), format!("fd30:{:x}::", 0x1000 + number)])
        .find(|nets| !nets.iter().any(|net| taken.contains(net.as_str())))
        .context("no free subnet in 10.30.0.0/16")
}

fn root() -> PathBuf {
    lab::checkout()
}

fn script(name: &str, args: &[&str]) -> Command {
    let mut command = Command::new(root().join("scripts").join(name));
    command.args(args).current_dir(root());
    // Cargo passes variables about its package to tests. A build in there must not see them: it would
    // compile half of the dependencies again.
    for (name, _) in std::env::vars_os() {
        let text = name.to_string_lossy();
        let is_of_package = ["CARGO_PKG_", "CARGO_MANIFEST_"].iter().any(|it| text.starts_with(it));
        if is_of_package || text == "OUT_DIR" || text == "FAIRWAY_COMMIT" {
            command.env_remove(name);
        }
    }
    command
}

fn docker(args: &[&str]) -> Command {
    let mut command = Command::new("docker");
    command.args(args);
    command
}

/// The same command, ended after so many seconds.
fn within(command: Command, seconds: u64) -> Command {
    let mut timed = Command::new("timeout");
    timed.arg("--kill-after=5").arg(seconds.to_string());
    timed.arg(command.get_program()).args(command.get_args());
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => timed.env(name, value),
            None => timed.env_remove(name),
        };
    }
    if let Some(dir) = command.get_current_dir() {
        timed.current_dir(dir);
    }
    timed
}

/// Runs a command that prints its own output.
fn run(command: Command, seconds: u64) -> Result<()> {
    let name = format!("{:?}", command.get_program());
    let status = within(command, seconds).stdin(Stdio::null()).status().context(name.clone())?;
    ensure!(status.success(), "{name}: {status}");
    Ok(())
}

/// The output of a command; an error holds all that it printed.
fn output(command: Command, seconds: u64) -> Result<String> {
    let name = format!("{:?}", command.get_args().collect::<Vec<_>>());
    let out = within(command, seconds).stdin(Stdio::null()).output().context(name.clone())?;
    let text = String::from_utf8_lossy(&out.stdout).into_owned();
    if !out.status.success() {
        bail!("{name}: {}: {text}{}", out.status, String::from_utf8_lossy(&out.stderr));
    }
    Ok(text)
}
