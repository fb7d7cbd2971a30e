//! The package under a real systemd, from `dpkg -i` to `dpkg --purge`, with BIRD as the router. Run by
//! `make test-service`, as root; needs the Debian 13 of scripts/trixie.sh and a package in FAIRWAY_DEBS.
#![allow(clippy::disallowed_methods, reason = "a real systemd lives in real time")]

mod machine;

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, ensure};
use clap::Parser;

use lab::suite::{self, Case, Suite};

use machine::{Machine, wait_until};

/// The exposure of the unit by systemd's measure, at most: 0 is best, 10 is worst.
/// One call of `@resources`, which BFD needs for short turns, counts as all of them: 0.2.
const EXPOSURE_MAX: f64 = 1.7;

/// systemd asks for a sign of life so often in one of the steps.
const WATCHDOG: Duration = Duration::from_secs(2);

const ROUTER_UNIT: &str = "\
[Service]
ExecStartPre=sh -c 'ip netns add router && ip link add uplink type veth peer name port netns router && \
ip address add 10.79.0.1/24 dev uplink && ip link set uplink up && \
ip -n router address add 10.79.0.2/24 dev port && ip -n router link set port up'
ExecStart=ip netns exec router bird -f -c /etc/router.conf -s /run/router.ctl
";

const ROUTER: &str = "\
router id 10.79.0.2;
protocol device {}
protocol bgp node {
  local 10.79.0.2 as 64501;
  neighbor 10.79.0.1 as 64500;
  passive;
  password \"secret\";
  error wait time 1, 2;
  ipv4 { import all; export none; };
}
";

const CONFIGURATION: &str = "\
apiVersion: metallb.io/v1beta2
kind: BGPPeer
metadata: {name: tor-1}
spec: {myASN: 64500, peerASN: 64501, peerAddress: 10.79.0.2, password: secret}
---
apiVersion: metallb.io/v1beta1
kind: IPAddressPool
metadata: {name: public}
spec: {addresses: [198.51.100.0/24]}
---
apiVersion: metallb.io/v1beta1
kind: BGPAdvertisement
metadata: {name: public}
";

fn service(name: &str) -> String {
    format!(
        "apiVersion: v1\nkind: Service\nmetadata: {{name: {name}}}\n\
         spec: {{type: LoadBalancer, ports: [{{port: 80}}]}}\n"
    )
}

type Step = (&'static str, fn(&Machine) -> Result<()>);

/// Each begins where the one before it ended.
const STEPS: [Step; 11] = [
    ("dpkg -i starts the daemon, which announces nothing", installs),
    ("the group may ask, others may not", asks),
    ("systemctl start returns when the route is at the router", starts),
    ("systemctl reload reads the files again", reloads),
    ("a daemon that hangs is started again", restarts_what_hangs),
    ("systemctl restart keeps the state", keeps_state),
    ("another version takes over", upgrades),
    ("the unit lets the daemon do little", confines),
    ("the sandbox gives BFD real time by what docs/bfd.md says", grants_real_time),
    ("removal gives an operator's FRR back, an upgrade does not", gives_frr_back),
    ("purge removes everything", purges),
];

/// The package under a real systemd, from installation to purge.
///
/// Each step begins where the one before it ended: a word runs the steps up to those that have it.
#[derive(Parser)]
struct Options {
    #[command(flatten)]
    suite: suite::Options,
}

fn main() -> ExitCode {
    suite::main("service", run)
}

/// Whether every step went well.
fn run(options: Options) -> Result<bool> {
    let machine: Arc<OnceLock<Machine>> = Arc::default();
    let mut suite = Suite::new("service", options.suite).as_root().as_chain();
    for (name, step) in STEPS {
        let machine = Arc::clone(&machine);
        suite.add(Case::new(name, move |_: &suite::Cell| {
            let machine = machine.get().context("no machine")?;
            step(machine).map_err(|error| {
                let log = machine.ask(
                    "systemctl status --no-pager fairway router || true; \
                     journalctl -b -n 80 --no-pager",
                );
                anyhow!("{error:#}\n{}", log.unwrap_or_default())
            })
        }));
    }
    let Some(chosen) = suite.choose()? else { return Ok(true) };
    let packages = std::env::var_os("FAIRWAY_DEBS")
        .context("FAIRWAY_DEBS: the folder with the package, which `make deb` makes")?;
    let start = Instant::now();
    let booted = Machine::boot(&PathBuf::from(packages))?;
    println!("systemd is up after {:.1} s", start.elapsed().as_secs_f64());
    let _ = machine.set(booted);
    Ok(chosen.run()?.all_passed())
}

/// What BIRD has in its table.
fn routes(machine: &Machine) -> Result<String> {
    machine.ask("birdc -s /run/router.ctl show route protocol node")
}

fn has_route(machine: &Machine, prefix: &str) -> Result<()> {
    let routes = routes(machine)?;
    ensure!(routes.contains(prefix), "{prefix} is not at the router: {routes}");
    Ok(())
}

fn installs(machine: &Machine) -> Result<()> {
    machine.ask("dpkg -i /packages/fairway_*.deb")?;
    ensure!(machine.property("ActiveState")? == "active");
    ensure!(
        machine.property("StatusText")? == "no neighbors",
        "{}",
        machine.property("StatusText")?
    );
    machine.ask("systemctl is-enabled fairway")?;
    let modes = machine.ask(
        "stat -c '%a %U:%G' /etc/fairway /etc/fairway/fairway.yaml /var/lib/fairway \
         /run/fairway/fairway.sock",
    )?;
    let expected =
        "2750 root:fairway\n640 root:fairway\n700 fairway:fairway\n660 fairway:fairway\n";
    ensure!(modes == expected, "{modes}");
    let log = machine.ask("journalctl -b -u fairway --no-pager -o cat")?;
    ensure!(!log.contains("ERROR") && !log.contains("WARN"), "{log}");
    // Everything that an operator looks for first.
    machine.ask("test -s /usr/share/man/man1/fairway-run.1.gz")?;
    machine.ask("test -s /usr/share/bash-completion/completions/fairway")?;
    Ok(())
}

fn asks(machine: &Machine) -> Result<()> {
    let summary = "fairway show config";
    machine.ask(summary)?;
    let nobody = "setpriv --reuid nobody --regid nogroup --clear-groups";
    let member = "setpriv --reuid nobody --regid nogroup --groups fairway";
    machine.ask(&format!("{member} {summary}"))?;
    let refused = machine.run(&format!("{nobody} {summary}"))?;
    let why = String::from_utf8_lossy(&refused.stderr).into_owned();
    ensure!(
        !refused.status.success() && why.contains("a member of its group can connect"),
        "{why}"
    );
    Ok(())
}

fn starts(machine: &Machine) -> Result<()> {
    machine.write("/etc/systemd/system/router.service", ROUTER_UNIT)?;
    machine.write("/etc/router.conf", ROUTER)?;
    machine.ask("systemctl daemon-reload; systemctl stop fairway")?;
    machine.write("/etc/fairway/fairway.yaml", CONFIGURATION)?;
    machine.write("/etc/fairway/web.yaml", &service("web"))?;
    machine.ask("chgrp fairway /etc/fairway/*; chmod 640 /etc/fairway/*")?;
    // The router comes while the start waits for it.
    let start = Instant::now();
    machine.ask("systemctl start --no-block fairway")?;
    wait_until("a start that waits", || {
        let text = machine.property("StatusText")?;
        ensure!(text.contains("waiting for tor-1"), "it says {text:?}");
        Ok(())
    })?;
    ensure!(machine.property("ActiveState")? == "activating");
    machine.ask("systemctl start router; systemctl start fairway")?;
    // It was sent before; BIRD may need a moment to read it.
    let ready = Instant::now();
    while let Err(error) = has_route(machine, "198.51.100.0/32") {
        ensure!(ready.elapsed() < Duration::from_millis(500), "{error:#}");
    }
    ensure!(start.elapsed() < Duration::from_secs(10), "it gave the router up");
    let status = machine.ask("systemctl status --no-pager fairway")?;
    let expected = "Status: \"1 of 1 neighbor Established, 1 route announced\"";
    ensure!(status.contains(expected), "{status}");
    Ok(())
}

fn reloads(machine: &Machine) -> Result<()> {
    let before = machine.property("MainPID")?;
    machine.write("/etc/fairway/dns.yaml", &service("dns"))?;
    machine.ask("systemctl reload fairway")?;
    wait_until("the second route", || has_route(machine, "198.51.100.1/32"))?;
    wait_until("an end of the reload", || {
        ensure!(machine.property("ActiveState")? == "active");
        let text = machine.property("StatusText")?;
        ensure!(text.contains("2 routes announced"), "it says {text:?}");
        Ok(())
    })?;
    let log = machine.ask("journalctl -b -u fairway --no-pager -o cat")?;
    ensure!(log.contains("reading all files again"), "{log}");
    ensure!(machine.property("MainPID")? == before, "it was restarted");
    Ok(())
}

fn restarts_what_hangs(machine: &Machine) -> Result<()> {
    let drop_in = "/run/systemd/system/fairway.service.d/test.conf";
    machine.write(drop_in, &format!("[Service]\nWatchdogSec={}\n", WATCHDOG.as_secs()))?;
    machine.ask("systemctl daemon-reload; systemctl restart fairway")?;
    let before = machine.property("MainPID")?;
    // It lives as long as it answers.
    let start = Instant::now();
    while start.elapsed() < WATCHDOG + WATCHDOG / 2 {
        ensure!(machine.property("MainPID")? == before, "it was ended although it answered");
    }
    machine.ask(&format!("kill -STOP {before}"))?;
    wait_until("another process", || {
        let now = machine.property("MainPID")?;
        ensure!(now != before && now != "0", "it is {now}");
        ensure!(machine.property("ActiveState")? == "active");
        Ok(())
    })?;
    ensure!(machine.property("NRestarts")? == "1");
    let log = machine.ask("journalctl -b -u fairway --no-pager -o cat")?;
    ensure!(log.contains("Watchdog timeout"), "{log}");
    wait_until("the routes", || has_route(machine, "198.51.100.1/32"))?;
    machine.ask(&format!("rm {drop_in}; systemctl daemon-reload"))?;
    Ok(())
}

/// By name, `dns` comes before `web`: without state, they would change places.
fn keeps_state(machine: &Machine) -> Result<()> {
    let addresses = || machine.ask("fairway show services");
    let before = addresses()?;
    machine.ask("systemctl restart fairway")?;
    let after = addresses()?;
    ensure!(before == after, "before:\n{before}after:\n{after}");
    let web = after.lines().find(|line| line.contains("web")).context("no web")?;
    ensure!(web.contains("198.51.100.0"), "{web}");
    Ok(())
}

fn upgrades(machine: &Machine) -> Result<()> {
    machine.ask(
        "mkdir /root/next; dpkg-deb -R /packages/fairway_*.deb /root/next
         sed -i 's/^Version: .*/Version: 99/' /root/next/DEBIAN/control
         dpkg-deb -Zgzip -z1 -b /root/next /root/next.deb",
    )?;
    let (before, services) = (machine.property("MainPID")?, machine.ask("fairway show services")?);
    machine.ask("dpkg -i /root/next.deb")?;
    ensure!(machine.property("MainPID")? != before, "the old one still runs");
    ensure!(machine.property("ActiveState")? == "active");
    ensure!(machine.ask("dpkg-query -W -f '${Version}' fairway")? == "99");
    // dpkg has waited for the start, and the start for the routes.
    wait_until("the routes", || has_route(machine, "198.51.100.1/32"))?;
    ensure!(machine.ask("fairway show services")? == services);
    let mode = machine
        .ask("stat -c '%a %U:%G' /etc/fairway/fairway.yaml; cat /etc/fairway/fairway.yaml")?;
    ensure!(mode == format!("640 root:fairway\n{CONFIGURATION}"), "{mode}");
    Ok(())
}

fn confines(machine: &Machine) -> Result<()> {
    let verdict = machine.ask("systemd-analyze security --no-pager fairway | tail -n 1")?;
    let score = verdict.split_whitespace().find_map(|word| word.parse::<f64>().ok());
    ensure!(score.is_some_and(|score| score <= EXPOSURE_MAX), "{verdict}");
    let problems = machine
        .ask("systemd-analyze verify --man=no fairway.service 2>&1 | grep -i fairway || true")?;
    ensure!(problems.is_empty(), "{problems}");
    Ok(())
}

const PROFILE: &str = "\
apiVersion: metallb.io/v1beta1
kind: BFDProfile
metadata: {name: fast}
";

fn grants_real_time(machine: &Machine) -> Result<()> {
    let page = include_str!("../../docs/bfd.md");
    let printed = page.split_once("```ini\n").and_then(|(_, rest)| rest.split_once("```"));
    let (drop_in, _) = printed.context("docs/bfd.md prints no drop-in")?;
    let realtime = |what: &str| {
        wait_until(what, || {
            let peers = machine.ask("fairway show bfd peers --json")?;
            ensure!(peers.contains(&format!("\"realtime\": \"{what}")), "{peers}");
            Ok(())
        })
    };
    let folder = "/etc/systemd/system/fairway.service.d";
    machine.ask(&format!(
        "cat > /etc/fairway/bfd.yaml <<'END'\n{PROFILE}END
         sed -i 's/password: secret/&, bfdProfile: fast/' /etc/fairway/fairway.yaml
         mkdir -p {folder}
         printf '[Service]\nEnvironment=FAIRWAY_BFD_REALTIME=true\n' > {folder}/bfd.conf
         systemctl daemon-reload; systemctl restart fairway"
    ))?;
    realtime("refused")?;
    // Without the right to raise limits, as here perhaps, the capabilities take its place.
    let capabilities = "CAP_SYS_NICE CAP_IPC_LOCK";
    machine.ask(&format!(
        "cat > {folder}/bfd.conf <<'END'\n{drop_in}END
         for set in CapabilityBoundingSet AmbientCapabilities; do
           echo $set={capabilities} >> {folder}/bfd.conf
         done
         systemctl daemon-reload; systemctl restart fairway"
    ))?;
    realtime("granted")?;
    machine.ask(&format!(
        "sed -i 's/, bfdProfile: fast//' /etc/fairway/fairway.yaml
         rm -r {folder} /etc/fairway/bfd.yaml; systemctl daemon-reload; systemctl restart fairway"
    ))?;
    Ok(())
}

/// FRR of an operator, with BGP of their own.
const FRR: &str = "\
frr defaults traditional
ip prefix-list OWN seq 5 permit 192.0.2.0/24
router bgp 64999
 bgp router-id 192.0.2.250
 neighbor 192.0.2.66 remote-as 64666
exit
";

fn gives_frr_back(machine: &Machine) -> Result<()> {
    machine.ask(&format!(
        "rm /etc/systemd/system/frr.service; systemctl daemon-reload
         sed -i 's/^\\(bgpd\\|bfdd\\)=no/\\1=yes/' /etc/frr/daemons
         printf '{FRR}' > /etc/frr/frr.conf
         systemctl stop fairway; systemctl start frr
         usermod -aG frrvty fairway; echo FAIRWAY_BGP=frr > /etc/default/fairway"
    ))?;
    let running = || machine.ask("vtysh -c 'show running-config'");
    let file = || machine.ask("cat /etc/frr/frr.conf");
    machine.ask("vtysh -c 'write memory'")?;
    let before = (running()?, file()?);
    ensure!(before.0.contains("neighbor 192.0.2.66"), "FRR has\n{}", before.0);
    machine.ask("systemctl start fairway")?;
    wait_until("the routes of FRR", || has_route(machine, "198.51.100.1/32"))?;
    machine.ask("vtysh -c 'write memory'")?;
    ensure!(file()?.contains("router bgp 64500 view fairway"), "the file is\n{}", file()?);

    let sessions = || {
        let text = machine.ask("vtysh -c 'show bgp view fairway neighbors 10.79.0.2 json'")?;
        let count = text.lines().find(|line| line.contains("connectionsEstablished"));
        count.map(str::to_owned).with_context(|| format!("FRR says {text}"))
    };
    let first = sessions()?;
    machine.ask("dpkg -i /root/next.deb")?;
    ensure!(sessions()? == first, "the upgrade ended the session");
    has_route(machine, "198.51.100.1/32")?;

    machine.ask("dpkg --remove fairway")?;
    ensure!(running()? == before.0, "before\n{}\nnow\n{}", before.0, running()?);
    let left = file()?;
    ensure!(left == before.1, "the file was\n{}\nnow it is\n{left}", before.1);
    machine.ask("systemctl stop frr; rm /etc/default/fairway; dpkg -i /packages/fairway_*.deb")?;
    wait_until("the routes again", || has_route(machine, "198.51.100.1/32"))
}

fn purges(machine: &Machine) -> Result<()> {
    machine.ask("rm /etc/fairway/web.yaml /etc/fairway/dns.yaml; dpkg --purge fairway")?;
    let left = machine.ask(
        "ls -d /etc/fairway /var/lib/fairway /run/fairway /usr/bin/fairway \
         /lib/systemd/system/fairway.service /etc/systemd/system/*/fairway.service 2>/dev/null || true
         pgrep -x fairway || true
         systemctl list-units --all --no-legend 'fairway*'",
    )?;
    ensure!(left.is_empty(), "still there: {left}");
    wait_until("a router without routes", || {
        let routes = routes(machine)?;
        ensure!(!routes.contains("198.51.100."), "{routes}");
        Ok(())
    })
}
