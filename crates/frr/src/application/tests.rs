//! The wanted configuration meets an FRR that rejects lines, hangs, loses its configuration and is edited by
//! hand: stories, and schedules drawn from a seed.

mod extras;
mod loading;
mod mgmtd;

use super::*;
use crate::configuration::is_extra;
use crate::model::{Model, lines, without_origins};

const INTERVAL: Duration = Duration::from_millis(100);

fn wanted(generation: u64, text: &str) -> Wanted {
    Wanted {
        generation,
        configuration: Configuration::parse(text),
        is_partial: false,
        legacy: Configuration::default(),
    }
}

/// Models of FRR's daemons, and the state machine.
struct World {
    application: Application,
    bgpd: Model,
    bfdd: Model,
    /// With it, FRR has a zebra that knows no line, and shows the prefix lists that mgmtd gave it.
    mgmtd: Option<Model>,
    zebra: Configuration,
    /// Removals by mgmtd that do not reach zebra.
    zebra_misses: u8,
    mgmtd_loses: u8,
    /// Another client has locked mgmtd until then.
    mgmtd_is_locked_until: Now,
    now: Now,
    wanted: Option<(u64, String)>,
    /// The instance that it was rendered for.
    site: Option<Site>,
    is_away: bool,
    is_bfdd_away: bool,
    is_loading: bool,
    /// bgpd goes away after this number of lines.
    dies_after: Option<usize>,
    /// This process ends after this number of lines.
    ends_after: Option<usize>,
    /// When lines were sent.
    said_at: Vec<Now>,
    /// Removals that a daemon rejected.
    refused_removals: Vec<(Daemon, String)>,
}

impl World {
    fn new() -> Self {
        Self {
            application: Application::new(Owner::default(), INTERVAL),
            bgpd: Model::default(),
            bfdd: Model::default(),
            mgmtd: None,
            zebra: Configuration::default(),
            zebra_misses: 0,
            mgmtd_loses: 0,
            mgmtd_is_locked_until: Now::ZERO,
            now: Now::ZERO,
            wanted: None,
            site: None,
            is_away: false,
            is_bfdd_away: false,
            is_loading: false,
            dies_after: None,
            ends_after: None,
            said_at: Vec::new(),
            refused_removals: Vec::new(),
        }
    }

    fn running(&self) -> Running {
        let mut running = Running {
            bgpd_age: Some(Duration::from_secs(60)),
            is_loading: self.is_loading,
            ..Running::default()
        };
        match self.is_bfdd_away {
            true => drop(running.away.insert(Daemon::Bfdd, "no such file".to_owned())),
            false => drop(running.daemons.insert(Daemon::Bfdd, self.bfdd.running.clone())),
        }
        match self.is_away {
            true => drop(running.away.insert(Daemon::Bgpd, "no such file".to_owned())),
            false => drop(running.daemons.insert(Daemon::Bgpd, self.bgpd.running.clone())),
        }
        if let Some(mgmtd) = &self.mgmtd {
            running.daemons.insert(Daemon::Mgmtd, mgmtd.running.clone());
            running.daemons.insert(Daemon::Zebra, self.zebra.clone());
        }
        running
    }

    fn say(&mut self, orders: &Orders) -> Said {
        self.said_at.push(self.now);
        let mut said = Said::default();
        let additions = orders
            .batches
            .iter()
            .flat_map(|(it, batch)| batch.additions.iter().map(|step| (*it, step)));
        let removals = orders
            .batches
            .iter()
            .rev()
            .flat_map(|(it, batch)| batch.removals.iter().map(|step| (*it, step)));
        for (daemon, step) in additions.chain(removals) {
            if self.is_away && daemon == Daemon::Bgpd || self.dies_after == Some(0) {
                self.restart();
                said.broken = Some(Broken::Lost(Daemon::Bgpd, "end of file".to_owned()));
                return said;
            }
            if self.ends_after == Some(0) {
                said.broken = Some(Broken::Lost(daemon, "the end".to_owned()));
                return said;
            }
            if daemon == Daemon::Mgmtd && self.now < self.mgmtd_is_locked_until {
                said.locked.insert(daemon, "% could not lock running DS".to_owned());
                continue;
            }
            self.dies_after = self.dies_after.map(|it| it - 1);
            self.ends_after = self.ends_after.map(|it| it - 1);
            let reply = match (daemon, &mut self.mgmtd) {
                (Daemon::Bgpd, _) => self.bgpd.say(step),
                (Daemon::Mgmtd, Some(_)) if self.mgmtd_loses > 0 => {
                    self.mgmtd_loses -= 1;
                    Ok(())
                }
                (Daemon::Mgmtd, Some(mgmtd)) => {
                    let reply = mgmtd.say(step);
                    let is_missed = step.purpose == Purpose::Remove && self.zebra_misses > 0;
                    self.zebra_misses -= u8::from(is_missed);
                    if !is_missed {
                        self.zebra = mgmtd.running.clone();
                        self.zebra.statements.retain(|it| it.line.starts_with("ip prefix-list "));
                    }
                    reply
                }
                (Daemon::Zebra, Some(_)) => Err("% Unknown command".to_owned()),
                _ => self.bfdd.say(step),
            };
            match reply {
                Ok(()) => said.taken.push((daemon, step.clone())),
                Err(words)
                    if step.purpose == Purpose::Add
                        && daemon.takes_line(&step.context, &step.line) == Takes::May =>
                {
                    said.unknown.push((daemon, step.clone(), words));
                }
                Err(words) if is_extra(step.origin.as_ref()) => {
                    said.rejected.push((daemon, step.clone(), words));
                }
                Err(words) => {
                    if step.purpose == Purpose::Remove {
                        self.refused_removals.push((daemon, step.line.to_string()));
                    }
                    said.broken = Some(Broken::Refused(daemon, step.clone(), words));
                    return said;
                }
            }
        }
        said
    }

    fn restart(&mut self) {
        self.dies_after = None;
        self.bgpd = Model::default();
        self.application.connected(Daemon::Bgpd);
    }

    /// Performs one action. Returns whether there was one due now.
    fn step(&mut self) -> bool {
        match self.application.next(self.now) {
            Next::Read => {
                self.application.read(self.now, self.running());
                if self.application.site() != self.site {
                    self.render();
                }
            }
            Next::Say(orders) => {
                let said = self.say(&orders);
                self.application.said(self.now, said);
            }
            Next::EndLoad => {
                self.is_loading = false;
                self.application.ended_load(self.now);
            }
            Next::Wait(until) => {
                assert!(until > self.now, "it waits for a time in the past");
                return false;
            }
        }
        true
    }

    /// Performs every action that is due now.
    fn settle(&mut self) {
        for _ in 0..50 {
            if !self.step() {
                return;
            }
        }
        panic!("it never settles: {:?}", self.application);
    }

    fn pass(&mut self, time: Duration) {
        let end = self.now + time;
        self.settle();
        while let Next::Wait(until) = self.application.next(self.now) {
            if until > end {
                break;
            }
            self.now = until;
            self.settle();
        }
        self.now = end;
        self.settle();
    }

    fn want(&mut self, generation: u64, text: &str) {
        self.wanted = Some((generation, text.to_owned()));
        self.render();
    }

    /// For the instance that is free, as the backend renders it.
    fn render(&mut self) {
        let Some((generation, text)) = &self.wanted else { return };
        self.site = self.application.site();
        let text = match self.site {
            Some(Site::Beside) => text.replace("router bgp 1\n", "router bgp 1 view fairway\n"),
            _ => text.clone(),
        };
        self.application.want(wanted(*generation, &text));
    }

    /// Whether a line is in the instance that is ours.
    fn has_in_router(&self, line: &str) -> bool {
        let lines = self.bgpd.lines();
        let mut routers = ["router bgp 1", "router bgp 1 view fairway"].iter();
        routers.any(|router| lines.contains(&format!("{router} / {line}")))
    }

    fn has(&self, text: &str) -> bool {
        let both = [self.bgpd.lines(), self.bfdd.lines()].concat();
        let is_record = |it: &str| it.starts_with("route-map fairway-00000000-record ");
        let counts = |it: &String| it != "bfd" && !is_record(it);
        let mut both: Vec<String> = both.into_iter().filter(counts).collect();
        both.sort();
        let is = lines(&without_origins(&Configuration::parse(text)));
        both == is.into_iter().filter(|it| it != "bfd").collect::<Vec<_>>()
    }
}

/// An FRR with this configuration, which we made.
fn made(text: &str) -> Model {
    let configuration = Configuration::parse(text);
    let routers = configuration.statements.iter().filter(|it| it.line.starts_with("router "));
    let entry = |it: &Statement| ((Daemon::Bgpd, (it.context.clone(), it.line.clone())), None);
    let record = Record(routers.map(entry).collect());
    let mut model = Model::with(text);
    model.running.statements.extend(record.statements(&Owner::default().mark()));
    model
}

/// A configuration with one neighbour per setting.
fn text(routers: &[(u8, &str)]) -> String {
    let map = |number| {
        format!("! BGPPeer {number}\nroute-map fairway-00000000-in-10.0.0.{number} deny 65535\n")
    };
    let mut text: String = routers.iter().map(|(number, _)| map(number)).collect();
    text.push_str("! router\nrouter bgp 1\n");
    for (number, setting) in routers {
        text += &format!(
            "! BGPPeer {number}\n neighbor 10.0.0.{number} remote-as 2\n neighbor 10.0.0.{number} description {setting}\n neighbor 10.0.0.{number} route-map fairway-00000000-in-10.0.0.{number} in\n"
        );
    }
    text
}

#[test]
fn the_first_change_is_said_at_once_and_those_that_follow_are_one() {
    let mut world = World::new();
    world.want(1, &text(&[(1, "a")]));
    world.settle();
    assert!(world.has(&text(&[(1, "a")])));
    // The record of the router comes first.
    assert_eq!(
        (world.said_at.as_slice(), world.application.in_force()),
        (&[Now::ZERO; 2][..], Some(1))
    );
    for generation in 2..20 {
        world.want(generation, &text(&[(1, &generation.to_string())]));
        world.pass(Duration::from_millis(5));
    }
    world.pass(INTERVAL);
    assert!(world.has(&text(&[(1, "19")])));
    assert_eq!(world.said_at, [Now::ZERO, Now::ZERO, INTERVAL]);
    assert_eq!(world.application.in_force(), Some(19));
}

#[test]
fn what_is_so_already_is_not_said() {
    let mut world = World::new();
    world.bgpd = made(&text(&[(1, "a")]));
    world.want(7, &text(&[(1, "a")]));
    world.pass(LOOK_INTERVAL * 3);
    assert!(world.said_at.is_empty());
    assert_eq!(world.application.in_force(), Some(7));
}

#[test]
fn a_refused_line_leaves_its_resource_as_it_was_and_the_others_go_on() {
    let mut world = World::new();
    world.want(1, &text(&[(1, "a"), (2, "a")]));
    world.settle();
    world.want(2, &text(&[(1, "bad"), (2, "b")]));
    world.pass(LOOK_INTERVAL * 3);
    assert!(world.has(&text(&[(1, "a"), (2, "b")])), "{:?}", world.bgpd.lines());
    let faults = world.application.faults();
    assert_eq!(
        faults,
        [
            "BGPPeer 1 keeps its previous configuration: FRR's bgpd rejected `neighbor 10.0.0.1 description bad`: % Unknown command"
        ]
    );
    assert_eq!(world.application.in_force(), Some(1), "part of it is not in force");
    assert_eq!(world.application.withdrawn(), Some(2), "no earlier route is announced");
    let times = world.said_at.len();
    world.want(3, &text(&[(1, "bad"), (2, "c")]));
    world.pass(INTERVAL);
    assert_eq!(world.said_at.len(), times + 1, "a rejected line is not retried");
    world.want(4, &text(&[(1, "d"), (2, "c")]));
    world.pass(INTERVAL * 3);
    assert!(world.has(&text(&[(1, "d"), (2, "c")])) && world.application.faults().is_empty());
    assert_eq!(world.application.in_force(), Some(4));
}

#[test]
fn what_was_taken_is_good_before_it_is_read_back() {
    let mut world = World::new();
    world.want(1, &text(&[(1, "a")]));
    world.settle();
    world.now += INTERVAL;
    world.want(2, &text(&[(1, "b")]));
    while world.said_at.len() < 3 {
        assert!(world.step());
    }
    world.want(3, &text(&[(1, "bad")]));
    world.pass(INTERVAL * 5);
    assert!(world.has(&text(&[(1, "b")])), "{:?}", world.bgpd.lines());
    assert_eq!(world.application.faults().len(), 1);
}

#[test]
fn what_is_refused_is_tried_again_by_a_frr_that_is_another() {
    let mut world = World::new();
    world.want(1, &text(&[(1, "bad")]));
    world.pass(INTERVAL * 3);
    assert_eq!(world.application.faults().len(), 1);
    let times = world.said_at.len();
    world.restart();
    world.application.lost(world.now);
    // The default instance is gone, and may be about to be somebody else's.
    world.pass(Duration::from_secs(4));
    assert!(world.said_at.len() > times && world.application.faults().len() == 1);
}

#[test]
fn frr_that_is_away_is_a_fault_and_is_told_when_it_is_there() {
    let mut world = World::new();
    world.is_away = true;
    world.want(1, &text(&[(1, "a")]));
    world.pass(Duration::from_secs(60));
    assert_eq!(world.application.faults(), ["FRR's bgpd is unreachable: no such file"]);
    world.is_away = false;
    world.restart();
    world.pass(BACKOFF_MAX);
    assert!(world.has(&text(&[(1, "a")])) && world.application.faults().is_empty());
}

#[test]
fn a_restart_in_the_middle_is_put_right() {
    for lines in 0..8 {
        let mut world = World::new();
        world.dies_after = Some(lines);
        world.want(1, &text(&[(1, "a"), (2, "b")]));
        world.pass(Duration::from_secs(2));
        assert!(world.has(&text(&[(1, "a"), (2, "b")])), "after {lines} lines");
        assert_eq!(world.application.in_force(), Some(1));
    }
}

#[test]
fn a_peer_that_went_while_nobody_ran_leaves_nothing() {
    for lines in 0..20 {
        let mut world = World::new();
        world.ends_after = Some(lines);
        world.want(1, &text(&[(1, "a"), (2, "b")]));
        while world.ends_after != Some(0) && world.step() {}
        world.step();
        world.application = Application::new(Owner::default(), INTERVAL);
        world.ends_after = None;
        world.want(1, &text(&[(1, "a")]));
        world.pass(Duration::from_secs(5));
        assert!(world.has(&text(&[(1, "a")])), "after {lines}: {:?}", world.bgpd.lines());
    }
}

#[test]
fn what_hands_did_is_undone_at_the_next_look_or_at_a_hint() {
    let mut world = World::new();
    world.want(1, &text(&[(1, "a")]));
    world.pass(HINT_INTERVAL);
    for hint in [false, true] {
        world.bgpd = made(&text(&[(1, "edited")]));
        if hint {
            world.application.hint(world.now);
        }
        // The rest after removals by somebody else comes on top.
        world.pass(Duration::from_secs(1) + if hint { HINT_INTERVAL } else { LOOK_INTERVAL });
        assert!(world.has(&text(&[(1, "a")])));
    }
}

#[test]
fn a_line_that_nobody_knows_is_refused() {
    let mut world = World::new();
    let extras = format!("{}! ConfigMap x/bgpextras\nbad line\n", text(&[(1, "a")]));
    world.want(1, &extras);
    world.pass(INTERVAL * 3);
    assert!(world.has(&text(&[(1, "a")])));
    assert!(
        world.application.faults()[0].starts_with("ConfigMap x/bgpextras"),
        "{:?}",
        world.application.faults()
    );
}

#[test]
fn a_line_of_a_daemon_that_is_away_for_a_while_is_not_given_up() {
    let mut world = World::new();
    world.bgpd.refuses = Some("ip route");
    let extras = "! ConfigMap x/bgpextras\nip route 203.0.113.0/24 blackhole\n";
    world.want(1, &format!("{}{extras}", text(&[(1, "a")])));
    world.pass(INTERVAL * 3);
    assert_eq!(world.application.in_force(), Some(1), "{:?}", world.application.faults());
    (world.is_bfdd_away, world.bfdd) = (true, Model::default());
    world.application.lost(world.now);
    world.want(2, &format!("{}{extras}", text(&[(1, "b")])));
    world.pass(Duration::from_secs(20));
    assert_eq!(world.application.faults(), ["FRR's bfdd is unreachable: no such file"]);
    assert_eq!(world.application.in_force(), Some(1));
    world.is_bfdd_away = false;
    world.application.connected(Daemon::Bfdd);
    world.pass(Duration::from_secs(3));
    assert_eq!(world.application.faults(), Vec::<String>::new());
    assert_eq!(world.application.in_force(), Some(2));
    assert!(world.bfdd.lines().contains(&"ip route 203.0.113.0/24 blackhole".to_owned()));
}

#[test]
fn a_rejected_value_and_an_earlier_one_that_nobody_knows_end_somewhere() {
    let mut world = World::new();
    let extras =
        |value: &str| format!("{}! ConfigMap x/bgpextras\nlog syslog {value}\n", text(&[(1, "a")]));
    world.want(1, &extras("debugging"));
    world.pass(INTERVAL * 3);
    world.bgpd.refuses = Some("log syslog");
    world.bfdd.refuses = Some("log syslog");
    world.want(2, &extras("informational"));
    world.pass(Duration::from_secs(5));
    (world.bgpd, world.bfdd) = (Model::default(), Model::default());
    world.bgpd.refuses = Some("log syslog");
    world.bfdd.refuses = Some("log syslog");
    world.application.connected(Daemon::Bfdd);
    world.application.connected(Daemon::Bgpd);
    world.application.lost(world.now);
    world.pass(Duration::from_secs(10));
    let faults = world.application.faults();
    assert!(faults.iter().any(|it| it.contains("log syslog informational")), "{faults:?}");
    assert!(world.has(&text(&[(1, "a")])));
}

#[test]
fn a_daemon_that_is_away_does_not_make_it_unready() {
    let mut world = World::new();
    assert!(world.application.unready().is_some());
    world.is_bfdd_away = true;
    world.want(1, &format!("! BFDProfile x\nbfd\n profile x\nexit\n{}", text(&[(1, "a")])));
    world.pass(Duration::from_secs(3));
    assert!(world.application.faults()[0].contains("bfdd"), "{:?}", world.application.faults());
    assert_eq!(world.application.unready(), None);
    let mut world = World::new();
    world.want(1, &text(&[(1, "bad")]));
    world.pass(Duration::from_secs(3));
    let unready = world.application.unready();
    assert!(unready.as_ref().is_some_and(|it| it.contains("no neighbor")), "{unready:?}");
}

/// Whatever happens: once things are quiet, FRR has the wanted configuration, or the last good one of a
/// resource with a fault.
#[test]
fn any_schedule_ends_with_what_is_wanted_or_with_a_fault() {
    let seeds = std::env::var("FAIRWAY_SEEDS").ok().and_then(|it| it.parse().ok()).unwrap_or(100);
    for seed in 0..seeds {
        let mut state: u64 = seed;
        let mut draw = |below: u64| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % below
        };
        let mut world = World::new();
        let mut last = String::new();
        let mut now_wanted: Vec<(u8, &str)> = Vec::new();
        for generation in 1..30 {
            match draw(10) {
                0..5 => {
                    let settings = ["a", "b", "c", "bad"];
                    now_wanted = (1..4_u8)
                        .filter_map(|it| {
                            let setting = settings.get(usize::try_from(draw(6)).unwrap())?;
                            Some((it, *setting))
                        })
                        .collect();
                    last = text(&now_wanted);
                    world.want(generation, &last);
                }
                5 => world.dies_after = Some(usize::try_from(draw(6)).unwrap()),
                6 => {
                    world.is_away = !world.is_away;
                    world.restart();
                    world.application.lost(world.now);
                }
                7 => {
                    let edited = [
                        "router bgp 1\n neighbor 10.0.0.1 remote-as 9\n neighbor 10.0.0.1 route-map fairway-00000000-in-1 in\n",
                        "",
                    ];
                    world.bgpd = made(edited[usize::try_from(draw(2)).unwrap()]);
                }
                8 => world.application.hint(world.now),
                _ => {}
            }
            world.pass(Duration::from_millis(draw(400)));
        }
        if world.is_away {
            world.is_away = false;
            world.restart();
        }
        world.dies_after = None;
        world.pass(Duration::from_secs(40));
        let sane: Vec<_> = now_wanted.iter().copied().filter(|it| it.1 != "bad").collect();
        let faulty: Vec<_> = now_wanted.iter().filter(|it| it.1 == "bad").map(|it| it.0).collect();
        for (number, setting) in &sane {
            let line = format!("neighbor 10.0.0.{number} description {setting}");
            assert!(world.has_in_router(&line), "seed {seed}: {line} of {last}");
        }
        let unexpected = world.bgpd.lines().into_iter().filter(|line| {
            let of = |number: &u8| line.contains(&format!(" 10.0.0.{number} "));
            line.contains("bad")
                || line.contains(" neighbor ") && !now_wanted.iter().any(|it| of(&it.0))
        });
        let unexpected: Vec<String> = unexpected.collect();
        assert!(unexpected.is_empty(), "seed {seed}: {unexpected:?} beside {last}");
        let faults = world.application.faults();
        assert_eq!(faults.len(), faulty.len(), "seed {seed}: {faults:?}");
        for number in faulty {
            let name = format!("BGPPeer {number} ");
            assert!(faults.iter().any(|it| it.starts_with(&name)), "seed {seed}: {faults:?}");
        }
    }
}

#[test]
fn a_record_that_frr_does_not_take_is_a_fault() {
    let mut world = World::new();
    world.bgpd.refuses = Some("route-map fairway-00000000-record");
    world.want(1, &text(&[(1, "a")]));
    world.pass(Duration::from_secs(5));
    let faults = world.application.faults();
    assert!(faults.iter().any(|it| it.contains("refused the record")), "{faults:?}");
    assert!(!world.bgpd.lines().iter().any(|it| it.contains("router")), "{:?}", world.bgpd.lines());
    assert_eq!(world.application.in_force(), None);
    assert!(world.said_at.len() < 20, "{} attempts", world.said_at.len());
}

/// With its names: of an earlier version, or of today.
fn of_version(mark: &str) -> String {
    format!(
        "route-map {mark}kernel deny 10\nroute-map {mark}set-77 permit 10\n set tag 77\n! BGPPeer 1\n\
         route-map {mark}in-10.0.0.1 deny 65535\nroute-map {mark}out-10.0.0.1 permit 5\n match tag 77\n \
         set community 65000:1\n set tag 18007\nroute-map {mark}out-10.0.0.1 deny 65535\n! router\n\
         router bgp 1\n bgp router-id 1.1.1.1\n ! BGPPeer 1\n neighbor 10.0.0.1 remote-as 2\n \
         address-family ipv4 unicast\n  network 192.0.2.1/32 route-map {mark}set-77\n  \
         ! BGPPeer 1\n  neighbor 10.0.0.1 activate\n  neighbor 10.0.0.1 route-map {mark}in-10.0.0.1 in\n  \
         neighbor 10.0.0.1 route-map {mark}out-10.0.0.1 out\n  table-map {mark}kernel\n"
    )
}

#[test]
fn names_of_an_earlier_version_are_taken_over_without_a_reset() {
    let mut world = World::new();
    let theirs = "route-map FW-edge permit 10\n";
    world.bgpd = Model::with(&format!("{theirs}{}", of_version("FW-")));
    let legacy = Configuration::parse(&of_version("FW-"));
    world.application.want(Wanted { legacy, ..wanted(1, &of_version("fairway-00000000-")) });
    world.pass(LOOK_INTERVAL);
    let expected = format!("{theirs}{}", of_version("fairway-00000000-"));
    assert!(world.has(&expected), "{:#?}", world.bgpd.lines());
    assert_eq!(world.application.in_force(), Some(1));
    assert!(world.bgpd.reset.is_empty() && world.bgpd.withdrawn.is_empty());
}
