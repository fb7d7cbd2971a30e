//! Does an operator of any kind keep their FRR? Six configurations that are theirs, before, beside and after
//! Fairway.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};

use crate::Cell;
use crate::operator::{forget, same_lines, without_ours};
use crate::scene::{ROUTER, Scene};
use lab::process::output_of;
use lab::routers::Release;
use lab::wait::{PATIENCE, holds_for};

const SOME: usize = 10;

/// What somebody configured, and the lines that take it away.
struct Operator {
    name: &'static str,
    lines: &'static [&'static str],
    taken_away: &'static [&'static str],
    /// Whether they have a `router bgp` of the default VRF.
    has_bgp: bool,
    /// Whether they also change how zebra tracks next hops.
    has_tracking: bool,
}

const OPERATORS: [Operator; 6] = [
    Operator {
        name: "static routes",
        lines: &[
            "ip route 192.0.2.0/24 Null0",
            "ip route 203.0.113.0/24 Null0 200",
            "ip prefix-list OWN seq 5 permit 192.0.2.0/24",
            "ip prefix-list OWN seq 10 deny any",
            "route-map OWN permit 10",
            "match ip address prefix-list OWN",
        ],
        taken_away: &[
            "no route-map OWN",
            "no ip prefix-list OWN",
            "no ip route 203.0.113.0/24 Null0 200",
            "no ip route 192.0.2.0/24 Null0",
        ],
        has_bgp: false,
        has_tracking: false,
    },
    Operator {
        name: "a transit and a customer",
        lines: &[
            "ip prefix-list OWN seq 5 permit 203.0.113.0/24",
            "route-map FROM-TRANSIT permit 10",
            "set local-preference 80",
            "route-map FROM-CUSTOMER permit 10",
            "set local-preference 120",
            "route-map TO-ALL permit 10",
            "match ip address prefix-list OWN",
            "router bgp 65001",
            "bgp router-id 192.0.2.250",
            "bgp bestpath as-path multipath-relax",
            "timers bgp 10 30",
            "neighbor 10.77.0.66 remote-as 65066",
            "neighbor 10.77.0.67 remote-as 65067",
            "address-family ipv4 unicast",
            "network 192.0.2.0/24",
            "network 203.0.113.0/24",
            "aggregate-address 198.51.100.0/24 summary-only",
            "neighbor 10.77.0.66 route-map FROM-TRANSIT in",
            "neighbor 10.77.0.66 route-map TO-ALL out",
            "neighbor 10.77.0.67 route-map FROM-CUSTOMER in",
            "neighbor 10.77.0.67 route-map TO-ALL out",
        ],
        taken_away: &[
            "no router bgp 65001",
            "no route-map FROM-TRANSIT",
            "no route-map FROM-CUSTOMER",
            "no route-map TO-ALL",
            "no ip prefix-list OWN",
        ],
        has_bgp: true,
        has_tracking: false,
    },
    Operator {
        name: "another AS",
        lines: &[
            "router bgp 65099",
            "bgp router-id 192.0.2.250",
            "neighbor CORE peer-group",
            "neighbor CORE remote-as 65099",
            "neighbor 10.77.0.68 peer-group CORE",
            "address-family ipv4 unicast",
            "network 192.0.2.0/24",
            "neighbor CORE next-hop-self",
            "neighbor CORE soft-reconfiguration inbound",
        ],
        taken_away: &["no router bgp 65099"],
        has_bgp: true,
        has_tracking: false,
    },
    Operator {
        name: "zebra and BFD",
        lines: &[
            "interface dummy7",
            "description theirs",
            "exit",
            "ipv6 route 2001:db8:7::/48 Null0",
            "bfd",
            "profile theirs",
            "detect-multiplier 5",
            "exit",
            "peer 10.77.0.67",
            "detect-multiplier 4",
            "exit",
            "exit",
        ],
        taken_away: &["no bfd", "no ipv6 route 2001:db8:7::/48 Null0", "no interface dummy7"],
        has_bgp: false,
        has_tracking: true,
    },
    Operator {
        name: "a VRF",
        lines: &[
            "vrf red",
            "exit-vrf",
            "router bgp 65001",
            "bgp router-id 192.0.2.250",
            "neighbor 10.77.0.66 remote-as 65066",
            "exit",
            "router bgp 65001 vrf red",
            "bgp router-id 192.0.2.251",
            "neighbor 10.99.0.2 remote-as 65033",
            "neighbor 10.99.0.2 description theirs",
        ],
        taken_away: &["no router bgp 65001 vrf red", "no router bgp 65001", "no vrf red"],
        has_bgp: true,
        has_tracking: false,
    },
    Operator {
        name: "names like ours",
        lines: &[
            "access-list FW-edge seq 5 permit 192.0.2.0/24",
            "ip prefix-list fairway-00000000x seq 5 permit 192.0.2.0/24",
            "bgp as-path access-list FW seq 5 permit ^65066",
            "bgp community-list standard fairway seq 5 permit 65001:9",
            "route-map FW-kernel permit 10",
            "match community fairway",
            "route-map FW-out-10.77.0.2 permit 10",
            "match ip address FW-edge",
            "route-map fairway-transit permit 10",
            "match as-path FW",
            "route-map fairway-zzzzzzzz-in permit 10",
            "match ip address prefix-list fairway-00000000x",
            "router bgp 65001",
            "bgp router-id 192.0.2.250",
            "neighbor 10.77.0.66 remote-as 65066",
            "neighbor 10.77.0.67 remote-as 65067",
            "address-family ipv4 unicast",
            "neighbor 10.77.0.66 route-map fairway-zzzzzzzz-in in",
            "neighbor 10.77.0.66 route-map FW-out-10.77.0.2 out",
            "neighbor 10.77.0.67 route-map fairway-transit in",
            "neighbor 10.77.0.67 route-map FW-kernel out",
        ],
        taken_away: &[
            "no router bgp 65001",
            "no route-map FW-kernel",
            "no route-map FW-out-10.77.0.2",
            "no route-map fairway-transit",
            "no route-map fairway-zzzzzzzz-in",
            "no bgp community-list standard fairway",
            "no bgp as-path access-list FW",
            "no ip prefix-list fairway-00000000x",
            "no access-list FW-edge",
        ],
        has_bgp: true,
        has_tracking: false,
    },
];

/// Whether a default route resolves next hops: not as this release has it by default, and as it has.
fn tracking(release: Release) -> [[&'static str; 2]; 2] {
    let on = ["ip nht resolve-via-default", "ipv6 nht resolve-via-default"];
    let off = ["no ip nht resolve-via-default", "no ipv6 nht resolve-via-default"];
    match release {
        Release::Bookworm => [on, off],
        Release::Trixie => [off, on],
    }
}

impl Operator {
    fn come(&self, scene: &Scene, release: Release) -> Result<()> {
        let [theirs, _] = tracking(release);
        let tracking = if self.has_tracking { theirs.as_slice() } else { &[] };
        scene.speaker.configure(&[tracking, self.lines].concat())
    }

    fn go(&self, scene: &Scene, release: Release) -> Result<()> {
        let [_, usual] = tracking(release);
        let tracking = if self.has_tracking { usual.as_slice() } else { &[] };
        scene.speaker.configure(&[self.taken_away, tracking].concat())
    }

    /// What is theirs of a running configuration. The default instance is ours where nobody else has one.
    fn theirs(&self, text: &str) -> String {
        let text = without_router(&without_ours(text), "router bgp 65001 vrf blue");
        if self.has_bgp { text } else { without_router(&text, "router bgp 65001") }
    }
}

fn without_router(text: &str, router: &str) -> String {
    let (mut kept, mut is_inside) = (String::new(), false);
    for line in text.lines() {
        is_inside |= line == router;
        if !is_inside {
            kept.push_str(line);
            kept.push('\n');
        }
        is_inside &= line != "exit";
    }
    kept
}

const OSPF: &[&str] = &["router ospf", "ospf router-id 192.0.2.250", "network 192.0.2.0/24 area 0"];

/// A peer in a VRF of ours, where nobody answers.
const BLUE: &str = "apiVersion: metallb.io/v1beta2\nkind: BGPPeer\nmetadata: {name: blue}\n\
                    spec: {myASN: 65001, peerASN: 65009, peerAddress: 10.99.0.9, vrf: blue}\n";

/// How Fairway leaves for good.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    Drained,
    /// It only stops, and is forgotten later.
    Forgotten,
    /// The same, after kill -9.
    Killed,
}

pub(crate) fn six_operators_get_back_what_they_had(cell: &Cell) -> Result<()> {
    let mut scene = Scene::open(cell)?;
    scene.apply_services("web", 0, SOME)?;
    scene.start_speaker()?;
    // All of them have OSPF.
    scene.restart_daemon("ospfd")?;
    scene.speaker.configure(OSPF)?;
    // One of our routers is that of a VRF.
    scene.fairway.apply("blue", BLUE)?;
    let empty = scene.speaker.running_configuration()?;
    let mut earlier = None;
    for (operator, way) in
        OPERATORS.iter().zip([Way::Drained, Way::Forgotten, Way::Killed].iter().cycle())
    {
        let story = || {
            operator.come(&scene, cell.release)?;
            let before = scene.speaker.running_configuration()?;
            is_beside(&mut scene, operator, &before, earlier)?;
            leaves(&mut scene, *way)?;
            becomes(&mut scene, &before)?;
            operator.go(&scene, cell.release)?;
            becomes(&mut scene, &empty)
        };
        run(story).with_context(|| format!("the operator with {}", operator.name))?;
        earlier = Some(*way);
    }
    Ok(())
}

/// Names the type of a closure's result.
fn run(story: impl FnOnce() -> Result<()>) -> Result<()> {
    story()
}

/// Fairway starts, does its work, and changes nothing of theirs.
fn is_beside(
    scene: &mut Scene,
    operator: &Operator,
    before: &str,
    earlier: Option<Way>,
) -> Result<()> {
    scene.start_fairway()?;
    if earlier == Some(Way::Drained) {
        output_of(&mut scene.fairway.drain(&["--undo"]))?;
    }
    scene.router_has(SOME)?;
    scene.all_is_in_force()?;
    let (expected, text) = (operator.theirs(before), scene.speaker.running_configuration()?);
    let theirs = operator.theirs(&text);
    ensure!(theirs == expected, "expected\n{expected}\nthey have\n{theirs}\nof\n{text}");
    Ok(())
}

fn leaves(scene: &mut Scene, way: Way) -> Result<()> {
    if way == Way::Drained {
        return scene.leave_for_good();
    }
    let beside = scene.speaker.running_configuration()?;
    match way {
        Way::Killed => scene.fairway.kill()?,
        _ => scene.fairway.stop()?,
    }
    holds_for("FRR goes on without Fairway", Duration::from_secs(1), || {
        let session = scene.router.session()?;
        ensure!(session.established, "there is no session: {session:?}");
        let text = scene.speaker.running_configuration()?;
        ensure!(text == beside, "expected\n{beside}\nFRR has\n{text}");
        Ok(())
    })?;
    forget(scene, &["--node", "node-a"]).map(drop)
}

/// An operator whose daemons have a file each saves what runs while Fairway is there, and restarts FRR without it:
/// FRR announces as before, and once Fairway is forgotten the files are what they were.
pub(crate) fn files_of_single_daemons_are_given_back(cell: &Cell) -> Result<()> {
    let mut scene = Scene::open(cell)?;
    scene.apply_services("web", 0, SOME)?;
    scene.speaker.keep_own_files()?;
    scene.start_speaker()?;
    let tracking = match cell.release {
        Release::Bookworm => "no zebra nexthop kernel enable",
        Release::Trixie => "zebra nexthop-group keep 77",
    };
    let [transit, ..] = OPERATORS.iter().filter(|it| it.has_bgp).collect::<Vec<_>>()[..] else {
        bail!("no operator has BGP");
    };
    for lines in [&[][..], transit.lines] {
        scene.speaker.configure(&[&[tracking], lines].concat())?;
        scene.speaker.vtysh(&["write memory"])?;
        let (files, running) = (scene.speaker.own_files()?, scene.speaker.running_configuration()?);
        ensure!(files.values().any(|text| text.contains(tracking)), "{files:?}");
        ensure!(lines.is_empty() || file(&files, "bgpd.conf")?.contains("65066"), "{files:?}");
        scene.start_fairway()?;
        scene.router_has(SOME)?;
        scene.all_is_in_force()?;
        scene.speaker.vtysh(&["write memory"])?;
        let saved = scene.speaker.own_files()?;
        ensure!(file(&saved, "bgpd.conf")?.contains(ROUTER), "{saved:?}");
        scene.fairway.stop()?;
        scene.restart_speaker()?;
        scene.router_has(SOME)?;
        forget(&scene, &["--node", "node-a"])?;
        let left = scene.speaker.own_files()?;
        for (name, text) in &left {
            let (left, expected) = (without_comments(text), without_comments(file(&files, name)?));
            ensure!(left == expected, "{name}: expected\n{expected}\nit has\n{left}");
        }
        becomes(&mut scene, &running)?;
        scene.restart_speaker()?;
        becomes(&mut scene, &running).context("after one more restart")?;
    }
    Ok(())
}

fn file<'a>(files: &'a BTreeMap<String, String>, name: &str) -> Result<&'a str> {
    files.get(name).map(String::as_str).with_context(|| format!("no {name}"))
}

/// FRR writes the time of day into a file.
fn without_comments(text: &str) -> String {
    text.lines().filter(|it| !it.starts_with('!')).map(|it| it.to_owned() + "\n").collect()
}

/// Waits until the running configuration is exactly this.
pub(crate) fn becomes(scene: &mut Scene, expected: &str) -> Result<()> {
    scene.wait("FRR is as it was", PATIENCE, |scene| {
        let text = scene.speaker.running_configuration()?;
        same_lines(expected, &text)
    })
}
