//! The speaker in the middle: Fairway, BIRD, FRR or GoBGP, with the same configuration in its own syntax.

use std::fmt;
use std::fmt::Write as _;
use std::fs;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, ensure};

use crate::message::OWN;
use crate::scenario::{SPEAKER, SPEAKER_IPV6, Scenario};
use lab::fairway::Fairway;
use lab::make_directory;
use lab::namespace::Namespace;
use lab::process::{Process, output_of};
use lab::resources::{Advertisement, pool, service};
use lab::usage::Usage;
use lab::wait::wait_until;

const ASN: u32 = 65_001;

/// How long it may take to read its configuration.
const READY_LIMIT: Duration = Duration::from_secs(120);
/// Services in one file.
const SERVICES_PER_FILE: usize = 20_000;

/// Of neighbour `number`.
pub(crate) fn asn(number: usize) -> u32 {
    65_100 + u32::try_from(number).unwrap_or_default()
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SpeakerKind {
    Fairway,
    Bird,
    Frr,
    Gobgp,
}

impl SpeakerKind {
    pub(crate) const ALL: [Self; 4] = [Self::Fairway, Self::Bird, Self::Frr, Self::Gobgp];

    /// Whether its configuration has what the scenario needs. GoBGP's has no routes of its own, and installs none.
    pub(crate) fn takes_part(self, scenario: &Scenario) -> bool {
        let has_all = || scenario.own == 0 && !scenario.has_ipv6 && !scenario.installs;
        self != Self::Gobgp || has_all()
    }
}

impl fmt::Display for SpeakerKind {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Fairway => "Fairway",
            Self::Bird => "BIRD",
            Self::Frr => "FRR",
            Self::Gobgp => "GoBGP",
        })
    }
}

/// One that runs; it ends with this value.
pub(crate) struct Speaker {
    process: u32,
    pub(crate) fairway: Option<Fairway>,
    _daemon: Option<Process>,
    /// zebra, where FRR installs routes.
    installer: Option<Process>,
}

impl Speaker {
    /// Starts it, and waits until it has nothing to do any more.
    pub(crate) fn start(
        kind: SpeakerKind,
        place: &Path,
        middle: &Namespace,
        scenario: &Scenario,
    ) -> Result<Self> {
        let speaker = match kind {
            SpeakerKind::Fairway => fairway(place, middle, scenario)?,
            SpeakerKind::Bird => {
                let file = |name: &str| place.join(name).to_string_lossy().into_owned();
                fs::write(file("bird.conf"), bird_text(scenario)).context("BIRD's file")?;
                let words = ["-f", "-c", &file("bird.conf"), "-s", &file("bird.ctl"), "-P"];
                let mut words: Vec<String> = words.iter().map(|it| (*it).to_owned()).collect();
                words.push(file("bird.pid"));
                daemon(place, middle, "/usr/sbin/bird", &words)?
            }
            SpeakerKind::Frr => {
                let folder = place.join("frr");
                make_directory(&folder)?;
                let file = folder.join("bgpd.conf").to_string_lossy().into_owned();
                fs::write(&file, frr_text(scenario)).context("FRR's file")?;
                output_of(lab::process::bounded("chown").args(["-R", "frr:frr"]).arg(&folder))?;
                let folder = folder.to_string_lossy().into_owned();
                let pid = format!("{folder}/bgpd.pid");
                let words = ["-f", &file, "-i", &pid, "--vty_socket", &folder, "-P", "0"];
                let mut words: Vec<String> = words.iter().map(|it| (*it).to_owned()).collect();
                let installer = if scenario.installs {
                    let socket = format!("{folder}/zserv.api");
                    words.extend(["-z".to_owned(), socket.clone()]);
                    Some(zebra(place, middle, &folder, &socket)?)
                } else {
                    // Nobody's kernel is filled.
                    words.push("-Z".to_owned());
                    None
                };
                Self { installer, ..daemon(place, middle, "/usr/lib/frr/bgpd", &words)? }
            }
            SpeakerKind::Gobgp => {
                let file = place.join("gobgpd.toml").to_string_lossy().into_owned();
                fs::write(&file, gobgp_text(scenario)).context("GoBGP's file")?;
                let words = ["-f", &file, "-t", "toml", "-l", "error", "--pprof-disable"];
                let words: Vec<String> = words.iter().map(|it| (*it).to_owned()).collect();
                daemon(place, middle, "/usr/bin/gobgpd", &words)?
            }
        };
        speaker.wait_until_idle()?;
        Ok(speaker)
    }

    pub(crate) fn usage(&self) -> Result<Usage> {
        let usage = Usage::of(self.process)?;
        match &self.installer {
            Some(installer) => Ok(usage.and(Usage::of(installer.id())?)),
            None => Ok(usage),
        }
    }

    /// It has read its configuration when it used no time for half a second.
    fn wait_until_idle(&self) -> Result<()> {
        let mut before = None;
        wait_until("the speaker has read its configuration", READY_LIMIT, || {
            std::thread::sleep(Duration::from_millis(500));
            let used = self.usage()?.processor_time;
            let grown = before.replace(used).map(|before| used.saturating_sub(before));
            ensure!(grown.is_some_and(|it| it <= Duration::from_millis(10)), "it is busy");
            Ok(())
        })
    }
}

fn daemon(place: &Path, middle: &Namespace, program: &str, words: &[String]) -> Result<Speaker> {
    let log = place.join("speaker.log");
    let daemon = Process::spawn(middle, Path::new(program), words, &log)?;
    let process = daemon.id();
    Ok(Speaker { process, fairway: None, _daemon: Some(daemon), installer: None })
}

fn zebra(place: &Path, middle: &Namespace, folder: &str, socket: &str) -> Result<Process> {
    let file = format!("{folder}/zebra.conf");
    fs::write(&file, "").context("zebra's file")?;
    let pid = format!("{folder}/zebra.pid");
    let words = ["-f", &file, "-i", &pid, "--vty_socket", folder, "-z", socket, "-P", "0"];
    let words: Vec<String> = words.iter().map(|it| (*it).to_owned()).collect();
    let zebra =
        Process::spawn(middle, Path::new("/usr/lib/frr/zebra"), &words, &place.join("zebra.log"))?;
    wait_until("zebra listens", READY_LIMIT, || {
        ensure!(Path::new(socket).exists(), "it does not");
        Ok(())
    })?;
    Ok(zebra)
}

fn fairway(place: &Path, middle: &Namespace, scenario: &Scenario) -> Result<Speaker> {
    let mut fairway = Fairway::prepare_in(place)?;
    fairway.log_level = "warn";
    let mut peers = String::new();
    for number in 0..scenario.peers() {
        let _ = write!(
            peers,
            "---\napiVersion: metallb.io/v1beta2\nkind: BGPPeer\nmetadata: {{name: n{number}}}\n\
             spec:\n  myASN: {ASN}\n  peerASN: {}\n  peerAddress: {}\n  passive: true\n  \
             toReceive: {{allowed: {{mode: all}}}}\n  \
             dualStackAddressFamily: {}\n  installRoutes: {}\n  routeServerClient: {}\n  \
             toAdvertise: {{allowed: {{mode: all}}{}}}\n",
            asn(number),
            scenario.neighbour_address(number),
            scenario.has_ipv6,
            scenario.installs,
            scenario.serves,
            if scenario.serves { client_rules(number) } else { String::new() }
        );
    }
    fairway.apply("peers", &peers)?;
    if scenario.own > 0 {
        fairway.apply("pool", &pool("main", &[&format!("{OWN}/15")]))?;
        fairway.apply("advertisement", &Advertisement { name: "main", ..<_>::default() }.yaml())?;
        let numbers: Vec<usize> = (0..scenario.own).collect();
        for (file, numbers) in numbers.chunks(SERVICES_PER_FILE).enumerate() {
            let texts = numbers.iter().map(|number| {
                let own = own(*number).to_string();
                format!("---\n{}", service(&format!("s{number}"), Some(&own)))
            });
            fairway.apply(&format!("services-{file}"), &texts.collect::<String>())?;
        }
    }
    fairway.start(middle)?;
    let process = fairway.process_id()?;
    Ok(Speaker { process, fairway: Some(fairway), _daemon: None, installer: None })
}

/// What client `number` of a route server does not want: what names it in a community, and paths through its AS.
fn client_rules(number: usize) -> String {
    let asn = asn(number);
    format!(
        ", rules: [{{match: {{communities: ['0:{}']}}, action: reject}}, \
         {{match: {{asPath: '_{asn}_'}}, action: reject}}]",
        number + 1
    )
}

/// The same in BIRD's words.
fn bird_filter(number: usize) -> String {
    let asn = asn(number);
    format!(
        "filter {{ if (0,{}) ~ bgp_community then reject; if bgp_path ~ [= * {asn} * =] then reject; accept; }}",
        number + 1
    )
}

fn own(number: usize) -> Ipv4Addr {
    Ipv4Addr::from(u32::from(OWN) + u32::try_from(number).unwrap_or_default())
}

fn bird_text(scenario: &Scenario) -> String {
    let mut text = format!("router id {SPEAKER};\nprotocol device {{}}\n");
    if scenario.installs {
        text += "protocol kernel { ipv4 { import none; export all; }; }\n";
    }
    if scenario.own > 0 {
        text += "protocol static { ipv4;\n";
        for number in 0..scenario.own {
            let _ = writeln!(text, "route {}/32 blackhole;", own(number));
        }
        text += "}\n";
    }
    for number in 0..scenario.peers() {
        let filter = bird_filter(number);
        let [export, client, next_hop, next_hop_ipv6] = match scenario.serves {
            true => [filter.as_str(), "rs client;", "", ""].map(str::to_owned),
            false => [
                "all".to_owned(),
                String::new(),
                "next hop self;".to_owned(),
                format!("next hop address {SPEAKER_IPV6};"),
            ],
        };
        let ipv6 = match scenario.has_ipv6 {
            true => format!("ipv6 {{ import all; export {export}; {next_hop_ipv6} }};"),
            false => String::new(),
        };
        let _ = writeln!(
            text,
            "protocol bgp n{number} {{ local {} as {ASN}; neighbor {} as {}; passive on; {client} \
             ipv4 {{ import all; export {export}; {next_hop} }}; {ipv6} }}",
            scenario.speaker_address(number),
            scenario.neighbour_address(number),
            asn(number)
        );
    }
    text
}

fn frr_text(scenario: &Scenario) -> String {
    let mut text = format!(
        "router bgp {ASN}\n bgp router-id {SPEAKER}\n no bgp ebgp-requires-policy\n \
         no bgp network import-check\n bgp fast-external-failover\n"
    );
    for number in 0..scenario.peers() {
        let address = scenario.neighbour_address(number);
        let _ = write!(
            text,
            " neighbor {address} remote-as {}\n neighbor {address} passive\n \
             neighbor {address} advertisement-interval 0\n neighbor {address} disable-connected-check\n",
            asn(number)
        );
    }
    text += " address-family ipv4 unicast\n";
    for number in 0..scenario.own {
        let _ = writeln!(text, "  network {}/32", own(number));
    }
    text + " exit-address-family\n"
}

fn gobgp_text(scenario: &Scenario) -> String {
    let mut text = format!("[global.config]\nas = {ASN}\nrouter-id = \"{SPEAKER}\"\n");
    for number in 0..scenario.peers() {
        let _ = write!(
            text,
            "[[neighbors]]\n[neighbors.config]\nneighbor-address = \"{}\"\npeer-as = {}\n\
             [neighbors.transport.config]\npassive-mode = true\nlocal-address = \"{}\"\n",
            scenario.neighbour_address(number),
            asn(number),
            scenario.speaker_address(number)
        );
    }
    text
}

/// The folder of a run.
pub(crate) fn place(folder: &Path, cell: usize) -> PathBuf {
    folder.join(cell.to_string())
}
