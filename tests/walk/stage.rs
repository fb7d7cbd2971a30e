//! How is a section brought to life? A node with fairway, a cable, a router with the configuration
//! as it is printed, and a shell at each prompt. Used by main.

use std::fmt;
use std::fs;
use std::iter;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, ensure};

use crate::document::{Configurations, Prompt, Section, Walk};
use lab::fairway::Fairway;
use lab::make_directory;
use lab::namespace::Namespace;
use lab::process::{Process, output_of};
use lab::routers::Release;
use lab::routers::installation::Installation;
use lab::wait::{PATIENCE, wait_until};

/// The router that a section shows a configuration of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RouterKind {
    Frr,
    Bird,
}

impl RouterKind {
    pub(crate) const ALL: [Self; 2] = [Self::Frr, Self::Bird];
}

impl fmt::Display for RouterKind {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(match self {
            Self::Frr => "frr",
            Self::Bird => "bird",
        })
    }
}

/// An emulated machine is slow.
const LIMIT: Duration = Duration::from_secs(4 * PATIENCE.as_secs());

/// The networks of the page: the one between node and router, and the two of a middle hop.
const NODE: [&str; 2] = ["192.0.2.1/24", "2001:db8::1/64"];
const ROUTER: [&str; 2] = ["192.0.2.2/24", "2001:db8::2/64"];
const MIDDLE: [&str; 2] = ["192.0.2.254/24", "2001:db8::fe/64"];
const FAR_MIDDLE: [&str; 2] = ["198.51.100.254/24", "2001:db8:1::fe/64"];
const FAR_ROUTER: [&str; 2] = ["198.51.100.2/24", "2001:db8:1::2/64"];

/// A section that runs.
pub(crate) struct Stage {
    node: Namespace,
    router: Namespace,
    _middle: Option<Namespace>,
    fairway: Fairway,
    _daemons: Vec<Process>,
    directory: PathBuf,
}

impl Stage {
    /// Namespaces and cables, then the router, then fairway.
    pub(crate) fn set_up(
        walk: &Walk,
        section: &Section,
        router_kind: RouterKind,
        number: usize,
        directory: &Path,
    ) -> Result<Self> {
        let node = Namespace::create(number, "node")?;
        let router = Namespace::create(number, "router")?;
        let middle = wire(&node, &router, section, number)?;
        if section.in_vrf {
            join_vrf(&node)?;
        }
        let release = if section.has_tcp_ao { Release::Trixie } else { Release::Bookworm };
        let bird = Installation::new(release, directory, "/mnt");
        write_shims(directory, &bird)?;
        let configuration = |of: fn(&Configurations) -> &str| {
            [of(&walk.shared), of(&section.configurations)].concat()
        };
        let daemons = match router_kind {
            RouterKind::Frr => start_frr(&router, directory, &configuration(|it| &it.frr))?,
            RouterKind::Bird => {
                start_bird(&router, directory, &bird, &configuration(|it| &it.bird))?
            }
        };
        let mut fairway = Fairway::prepare_in(directory)?;
        let files = walk.shared.fairway.iter().chain(&section.configurations.fairway);
        for (position, text) in files.enumerate() {
            fairway.apply(&position.to_string(), text)?;
        }
        fairway.start(&node)?;
        Ok(Self {
            node,
            router,
            _middle: middle,
            fairway,
            _daemons: daemons,
            directory: directory.to_owned(),
        })
    }

    /// Types a command until its output is as printed. What systemd would do to fairway is done here: there is
    /// none in a namespace.
    pub(crate) fn follow(&mut self, prompt: &Prompt) -> Result<()> {
        match prompt.command.as_str() {
            "systemctl kill --signal=KILL fairway" => return self.fairway.kill(),
            "systemctl stop fairway" => return self.fairway.stop(),
            "systemctl start fairway" => return self.fairway.start(&self.node),
            _ => {}
        }
        let place = if prompt.place == "node" { &self.node } else { &self.router };
        let script = format!(
            "PATH={0}/bin:$PATH FAIRWAY_SOCKET={0}/fairway.sock; export PATH FAIRWAY_SOCKET; {1}",
            self.directory.display(),
            prompt.command
        );
        wait_until(&format!("{}# {}", prompt.place, prompt.command), LIMIT, || {
            let text = place.run("sh", &["-c", &script])?;
            let lacking = lab::printed::lacking(&text, &prompt.answer);
            ensure!(lacking.is_none(), "expected the line {lacking:?} in\n{text}");
            Ok(())
        })
    }
}

/// Interfaces are called eth0 on both sides; a middle hop has `near` and `far`.
fn wire(
    node: &Namespace,
    router: &Namespace,
    section: &Section,
    number: usize,
) -> Result<Option<Namespace>> {
    let add = |namespace: &Namespace, interface: &str, addresses: [&str; 2]| {
        addresses.iter().try_for_each(|address| namespace.add_address(interface, address))
    };
    if !section.has_middle_hop {
        node.connect("eth0", router, "eth0")?;
        if !section.is_bare {
            add(node, "eth0", NODE)?;
            add(router, "eth0", ROUTER)?;
        }
        return Ok(None);
    }
    let middle = Namespace::create(number, "middle")?;
    middle.enable_forwarding()?;
    node.connect("eth0", &middle, "near")?;
    middle.connect("far", router, "eth0")?;
    add(node, "eth0", NODE)?;
    add(&middle, "near", MIDDLE)?;
    add(&middle, "far", FAR_MIDDLE)?;
    add(router, "eth0", FAR_ROUTER)?;
    for (namespace, gateways) in [(node, MIDDLE), (router, FAR_MIDDLE)] {
        for (network, gateway) in ["default", "default"].into_iter().zip(gateways) {
            let (gateway, _) = gateway.split_once('/').context("an address with its length")?;
            let family = if gateway.contains(':') { "-6" } else { "-4" };
            namespace.ip(&[family, "route", "add", network, "via", gateway])?;
        }
    }
    Ok(Some(middle))
}

/// The VRF that the page makes; addresses of IPv6 go when an interface joins one.
fn join_vrf(node: &Namespace) -> Result<()> {
    node.ip(&["link", "add", "blue", "type", "vrf", "table", "10"])?;
    node.ip(&["link", "set", "blue", "up"])?;
    node.ip(&["link", "set", "eth0", "master", "blue"])?;
    let [_, ipv6] = NODE;
    node.ip(&["address", "replace", ipv6, "dev", "eth0", "nodad"]).map(drop)
}

/// `vtysh`, `birdc` and `fairway` as the page types them, with the sockets of this stage.
fn write_shims(directory: &Path, bird: &Installation) -> Result<()> {
    let folder = directory.join("bin");
    make_directory(&folder)?;
    let place = directory.display();
    let fairway = lab::fairway::program();
    for (name, line) in [
        ("vtysh", format!("/usr/bin/vtysh --vty_socket {place}/frr --config_dir {place}/frr")),
        ("birdc", typed(bird.command("/usr/sbin/birdc").args(["-s", &bird.seen("bird.ctl")]))),
        ("fairway", fairway.display().to_string()),
    ] {
        let file = folder.join(name);
        fs::write(&file, format!("#!/bin/sh\nexec {line} \"$@\"\n"))
            .with_context(|| format!("writing {}", file.display()))?;
        fs::set_permissions(&file, fs::Permissions::from_mode(0o755))
            .with_context(|| format!("{}", file.display()))?;
    }
    Ok(())
}

/// A command as a shell reads it.
fn typed(command: &Command) -> String {
    let words = iter::once(command.get_program()).chain(command.get_args());
    let quoted = words.map(|word| format!("'{}'", word.to_string_lossy().replace('\'', r"'\''")));
    quoted.collect::<Vec<_>>().join(" ")
}

/// zebra, staticd, bfdd and bgpd, loaded the way an operator's own start script does it.
fn start_frr(router: &Namespace, directory: &Path, text: &str) -> Result<Vec<Process>> {
    let folder = directory.join("frr");
    make_directory(&folder)?;
    let file = |name: &str| folder.join(name).to_string_lossy().into_owned();
    fs::write(file("empty.conf"), "").context("an empty configuration")?;
    fs::write(file("vtysh.conf"), "service integrated-vtysh-config\n").context("vtysh.conf")?;
    fs::write(file("frr.conf"), text).context("frr.conf")?;
    output_of(Command::new("chown").args(["-R", "frr:frr"]).arg(&folder))?;
    let mut daemons = Vec::new();
    for name in ["zebra", "staticd", "bfdd", "bgpd"] {
        let mut arguments = vec!["-f".to_owned(), file("empty.conf")];
        for (option, value) in [
            ("-i", file(&format!("{name}.pid"))),
            ("-z", file("zserv.api")),
            ("--vty_socket", folder.to_string_lossy().into_owned()),
            ("-P", "0".to_owned()),
            ("--log", "stdout".to_owned()),
        ] {
            arguments.extend([option.to_owned(), value]);
        }
        if name == "bfdd" {
            arguments.extend(["--bfdctl".to_owned(), file("bfdd.sock")]);
        }
        let program = Path::new("/usr/lib/frr").join(name);
        daemons.push(Process::spawn(router, &program, &arguments, &directory.join("router.log"))?);
        wait_until(&format!("{name} answers"), LIMIT, || {
            let socket = file(&format!("{name}.vty"));
            std::os::unix::net::UnixStream::connect(&socket).context(socket).map(drop)
        })?;
    }
    let vtysh = directory.join("bin/vtysh").to_string_lossy().into_owned();
    let said = router.run(&vtysh, &["-b"])?;
    ensure!(!said.contains('%'), "FRR refuses the configuration: {said}");
    Ok(daemons)
}

fn start_bird(
    router: &Namespace,
    directory: &Path,
    bird: &Installation,
    text: &str,
) -> Result<Vec<Process>> {
    fs::write(directory.join("bird.conf"), text).context("bird.conf")?;
    let mut words = vec!["-f".to_owned()];
    for (option, name) in [("-c", "bird.conf"), ("-s", "bird.ctl"), ("-P", "bird.pid")] {
        words.extend([option.to_owned(), bird.seen(name)]);
    }
    let log = directory.join("router.log");
    let program = Path::new("/usr/sbin/bird");
    let mut daemon = Process::spawn(&bird.within(router), program, &words, &log)?;
    let birdc = directory.join("bin/birdc").to_string_lossy().into_owned();
    wait_until("BIRD answers", LIMIT, || {
        daemon.check_running()?;
        router.run(&birdc, &["show", "status"]).map(drop)
    })?;
    Ok(vec![daemon])
}
