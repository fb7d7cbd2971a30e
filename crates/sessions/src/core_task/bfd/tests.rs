//! Paths of neighbours that BFD monitors: which paths these are, and what follows from their state, with
//! a real other end on loopback.

use std::net::{IpAddr, Ipv4Addr};
use std::num::NonZeroU8;
use std::time::Duration;

use tokio::time::timeout;

use super::super::*;
use super::Coupling;
use crate::Listen;
use crate::addresses::Addresses;
use crate::bfd::BfdThread;
use crate::example::Example as _;
use fairway_bfd::{BfdChange, BfdEvent, BfdView, Diagnostic, State};
use fairway_bgp::session;
use fairway_ground::{BfdPath, BfdSettings, RemoteAs, ShutdownMessage};
use fairway_seam::{DownCause, Liveness, PeerBfd, PeerConfig, SessionState};

/// Far from the ports of the RFCs, which a router of this machine may have.
const PORT_OFFSET: u16 = 21_000;
const DEADLINE: Duration = Duration::from_secs(20);

/// An address that no other run of this test has.
fn address(number: u8) -> Ipv4Addr {
    let [_, _, high, low] = std::process::id().to_be_bytes();
    Ipv4Addr::new(127, high, low, number)
}

fn core(address: Ipv4Addr) -> CoreTask {
    let (events, _network) = mpsc::channel(16);
    let listeners = Listeners::open(Listen::nowhere(), events.clone());
    let bfd = BfdOptions::default();
    let mut core = CoreTask::new(listeners, events, TaskTracker::new(), 7, None, bfd);
    core.bfd = Coupling::new_at(address, PORT_OFFSET);
    core
}

fn apply(core: &mut CoreTask, peers: &[PeerConfig]) {
    core.apply(Arc::new(Desired { peers: peers.to_vec(), ..Desired::default() }), None);
    core.turn();
}

fn every(interval: u64) -> BfdSettings {
    let interval = Duration::from_millis(interval);
    BfdSettings {
        transmit_interval: interval,
        receive_interval: interval,
        ..BfdSettings::default()
    }
}

fn watched(address: &str, change: impl FnOnce(&mut PeerConfig)) -> PeerConfig {
    let key = PeerKey::from(address.parse::<IpAddr>().unwrap());
    let bfd = Some(PeerBfd { profile: "fast".to_owned(), settings: every(300), strict: false });
    let mut config = PeerConfig { key, port: 1, bfd, ..PeerConfig::example(1) };
    change(&mut config);
    config
}

#[tokio::test]
async fn what_is_watched_follows_from_how_the_neighbour_is_reached() {
    let mut core = core(address(240));
    let internal = |it: &mut PeerConfig| it.remote_as = RemoteAs::Internal;
    let hops = |it: &mut PeerConfig, hops| it.ttl_security_hops = NonZeroU8::new(hops);
    let peers = [
        watched("127.0.0.11", |_| {}),
        watched("127.0.0.12", |it| it.multihop = true),
        watched("127.0.0.13", |it| hops(it, 1)),
        watched("127.0.0.14", |it| hops(it, 5)),
        watched("127.0.0.15", |it| it.source_address = Some([127, 0, 0, 1].into())),
        watched("127.0.0.16", |it| it.shutdown = ShutdownMessage::new("").ok()),
        watched("127.0.0.17", |it| it.bfd = None),
        // As FRR has it: without a network in common there are routers in between.
        watched("127.0.0.18", internal),
        watched("203.0.113.18", internal),
        watched("203.0.113.19", |it| it.key.vrf = "red".parse().ok()),
    ];
    apply(&mut core, &peers);
    let paths: Vec<String> = core.bfd.wanted.keys().map(BfdPath::to_string).collect();
    assert_eq!(
        paths,
        [
            "peer 127.0.0.11 vrf default",
            "peer 127.0.0.12 multihop vrf default",
            "peer 127.0.0.13 vrf default",
            "peer 127.0.0.14 multihop vrf default",
            "peer 127.0.0.15 local-address 127.0.0.1 vrf default",
            "peer 127.0.0.18 vrf default",
            "peer 203.0.113.18 multihop vrf default",
            "peer 203.0.113.19 vrf red",
        ]
    );
    apply(&mut core, &peers[..1]);
    assert_eq!(core.bfd.wanted.len(), 1);
    apply(&mut core, &[]);
    assert!(core.bfd.wanted.is_empty() && core.bfd.paths.is_empty());
}

/// The other end of a path.
struct FarEnd(BfdThread);

impl FarEnd {
    fn of(here: Ipv4Addr, there: Ipv4Addr, settings: BfdSettings) -> Self {
        let (events, _) = mpsc::channel(16);
        let thread = BfdThread::start(BfdOptions::default(), 8, events).at(there, PORT_OFFSET);
        let mut far = Self(thread);
        far.watch(here, there, settings);
        far
    }

    fn watch(&mut self, here: Ipv4Addr, there: Ipv4Addr, settings: BfdSettings) {
        let (remote, local) = (here.into(), Some(there.into()));
        let path = BfdPath { remote, vrf: None, multihop: false, interface: None, local };
        self.0.set(BTreeMap::from([(path, settings)]));
    }
}

/// The next event of a path, and what the neighbours make of it.
async fn hear(core: &mut CoreTask) -> BfdEvent {
    let event = timeout(DEADLINE, core.bfd.event()).await.expect("an event in time");
    core.bfd_event(event);
    core.turn();
    event
}

async fn shown(core: &CoreTask) -> BgpView {
    let (answer, view) = oneshot::channel();
    core.bfd.complete(core.view(ViewScope::SESSIONS), answer);
    view.await.unwrap()
}

fn state(core: &CoreTask) -> SessionState {
    core.speaker.peers().next().unwrap().1.state()
}

#[tokio::test]
async fn a_neighbour_is_dialled_when_bfd_is_up_and_hears_when_it_is_not() {
    let (here, there) = (address(241), address(242));
    let mut core = core(here);
    let config = |interval: u64| {
        watched(&there.to_string(), |it| {
            it.source_address = Some(here.into());
            it.bfd = Some(PeerBfd {
                profile: "fast".to_owned(),
                settings: every(interval),
                strict: true,
            });
        })
    };
    apply(&mut core, &[config(60)]);
    assert_eq!(state(&core), SessionState::Idle);
    let view = shown(&core).await;
    assert!(view.peers[0].waits_for_bfd);
    assert_eq!(view.peers[0].bfd_path, core.bfd.wanted.keys().next().copied());
    let far = FarEnd::of(here, there, every(60));
    hear(&mut core).await;
    assert_eq!(state(&core), SessionState::Connect);
    let view = shown(&core).await;
    assert_eq!(view.peers[0].liveness, Liveness::Up);
    let sessions = view.bfd.unwrap().sessions;
    assert_eq!((sessions.len(), sessions[0].state), (1, State::Up));
    // Another profile is another interval of the same session.
    apply(&mut core, &[config(90)]);
    let discriminator = sessions[0].local_discriminator;
    let is_agreed = |bfd: &BfdView| {
        let session = &bfd.sessions[0];
        assert_eq!((session.local_discriminator, session.state), (discriminator, State::Up));
        session.detection_time == Some(Duration::from_millis(270))
    };
    while !is_agreed(&shown(&core).await.bfd.unwrap()) {}
    drop(far);
    hear(&mut core).await;
    let expected = Liveness::Down {
        cause: DownCause::Failed,
        independent: false,
        diagnostic: Diagnostic::CONTROL_DETECTION_TIME_EXPIRED,
    };
    assert_eq!(shown(&core).await.peers[0].liveness, expected);
    // Down again: a strict neighbour waits.
    assert_eq!(state(&core), SessionState::Idle);
    assert!(core.neighbours.values().all(|it| it.dials.is_empty()));
}

#[tokio::test]
async fn who_leaves_says_that_this_is_no_failure() {
    let (here, there) = (address(243), address(244));
    let mut core = core(here);
    apply(&mut core, &[watched(&there.to_string(), |it| it.source_address = Some(here.into()))]);
    let far = FarEnd::of(here, there, every(60));
    hear(&mut core).await;
    core.bfd.leave(&core.surroundings.tasks).await;
    loop {
        let view = timeout(DEADLINE, far.0.view()).await.unwrap().unwrap();
        if view.sessions[0].state != State::Up {
            assert_eq!(view.sessions[0].remote_state, State::AdminDown);
            break;
        }
        tokio::task::yield_now().await;
    }
}

/// What the first neighbour knows of its path.
fn liveness(core: &CoreTask) -> Liveness {
    core.speaker.peers().next().unwrap().1.liveness()
}

fn down(cause: DownCause) -> BfdChange {
    BfdChange::Down {
        cause,
        diagnostic: Diagnostic::CONTROL_DETECTION_TIME_EXPIRED,
        remote_control_plane_independent: false,
        was_up: true,
    }
}

#[tokio::test]
async fn neighbours_hear_what_becomes_of_their_path_and_of_no_other() {
    let mut core = core(address(245));
    apply(&mut core, &[watched("127.0.0.21", |_| {})]);
    let path = core.bfd.wanted.keys().next().copied().unwrap();
    for cause in [DownCause::Failed, DownCause::BeganAnew, DownCause::Unwatched] {
        core.bfd_event(BfdEvent { path, change: BfdChange::Up });
        assert_eq!(liveness(&core), Liveness::Up);
        core.bfd_event(BfdEvent { path, change: down(cause) });
        assert!(matches!(liveness(&core), Liveness::Down { cause: told, .. } if told == cause));
    }
    // Events of a path that is not monitored are ignored.
    let gone = BfdPath { remote: [127, 0, 0, 22].into(), ..path };
    core.bfd_event(BfdEvent { path: gone, change: BfdChange::Up });
    assert!(!core.bfd.liveness.contains_key(&gone));
}

#[tokio::test]
async fn who_goes_and_comes_back_at_once_knows_of_its_path_what_was_known() {
    let mut core = core(address(246));
    let peer = watched("127.0.0.23", |_| {});
    apply(&mut core, std::slice::from_ref(&peer));
    let path = core.bfd.wanted.keys().next().copied().unwrap();
    core.bfd_event(BfdEvent { path, change: BfdChange::Up });
    // As a neighbour of a range that dials again: the paths have not been checked in between.
    core.apply(Arc::default(), None);
    assert!(core.bfd.deadline().is_some(), "nothing waits for a path without a neighbor");
    apply(&mut core, &[peer]);
    assert_eq!((liveness(&core), core.bfd.deadline()), (Liveness::Up, None));
}

#[tokio::test]
async fn a_far_neighbour_is_near_when_its_network_is_there() {
    let mut core = core(address(247));
    let key = PeerKey::from(IpAddr::from([127, 0, 0, 24]));
    core.bfd.addresses = Some(Addresses::default());
    core.addresses_due = core.clock.now() + Duration::from_secs(3_600);
    apply(&mut core, &[watched("127.0.0.24", |it| it.remote_as = RemoteAs::Internal)]);
    assert!(core.bfd_path(key).unwrap().multihop);
    // It has dialled meanwhile.
    let unknown = session::Event::Bfd(Liveness::Unknown);
    core.handle(core.clock.now(), Event::Peer(key, unknown));
    core.bfd.follow_addresses(Addresses::now().unwrap());
    core.turn();
    assert!(!core.bfd_path(key).unwrap().multihop);
    // Where the path works, it stays.
    let path = core.bfd_path(key).unwrap();
    core.bfd_event(BfdEvent { path, change: BfdChange::Up });
    core.bfd.follow_addresses(Addresses::default());
    core.turn();
    assert_eq!(core.bfd_path(key), Some(path));
}
