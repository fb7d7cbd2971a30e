//! All sessions of a node: which packets do they accept, and when?

use std::net::{IpAddr, SocketAddr};
use std::num::NonZeroU8;

use super::*;
use crate::arrival::Port;
use crate::packet::{ControlPacket, PacketError};
use crate::{Diagnostic, State};

fn ms(milliseconds: u64) -> Duration {
    Duration::from_millis(milliseconds)
}

fn at(milliseconds: u64) -> Instant {
    Instant::ZERO + ms(milliseconds)
}

fn address(text: &str) -> IpAddr {
    text.parse().unwrap()
}

fn path(remote: &str) -> BfdPath {
    let remote = address(remote);
    BfdPath { remote, vrf: None, multihop: false, interface: None, local: None }
}

fn settings() -> BfdSettings {
    BfdSettings { transmit_interval: ms(50), receive_interval: ms(50), ..BfdSettings::default() }
}

fn with(paths: &[BfdPath]) -> Sessions {
    let mut sessions = Sessions::new(7);
    let wanted: BTreeMap<_, _> = paths.iter().map(|path| (*path, settings())).collect();
    assert_eq!(sessions.set(at(0), &wanted).len(), paths.len());
    sessions
}

/// The first packet of a neighbour.
fn hello() -> ControlPacket {
    ControlPacket {
        diagnostic: Diagnostic::NONE,
        state: State::Down,
        poll: false,
        is_final: false,
        control_plane_independent: false,
        authentication_present: false,
        demand: false,
        detect_multiplier: 3.try_into().unwrap(),
        my_discriminator: 99.try_into().unwrap(),
        your_discriminator: 0,
        desired_min_tx_interval: 50_000,
        required_min_rx_interval: 50_000,
        required_min_echo_rx_interval: 0,
    }
}

fn arrival<'a>(source: &str, bytes: &'a [u8]) -> Arrival<'a> {
    Arrival {
        at: at(0),
        source: SocketAddr::new(address(source), 49_152),
        destination: None,
        interface_index: 2,
        vrf: None,
        ttl: Some(255),
        port: Port::SingleHop,
        bytes,
    }
}

fn states(sessions: &Sessions) -> Vec<State> {
    sessions.view(at(0)).into_iter().map(|view| view.state).collect()
}

//= RFC 5881 §5 MUST: over one hop a packet with another TTL than 255 is discarded.
#[test]
fn who_is_not_a_neighbour_is_not_heard() {
    let mut sessions = with(&[path("192.0.2.1")]);
    let bytes = hello().encode(0);
    for ttl in [None, Some(0), Some(64), Some(254)] {
        let far = Arrival { ttl, ..arrival("192.0.2.1", &bytes) };
        assert_eq!(sessions.receive(at(0), far), Err(Dropped::Ttl { ttl, least: 255 }));
    }
    assert_eq!(states(&sessions), [State::Down]);
    // No session was looked up yet.
    assert_eq!(sessions.drops().iter().find(|(name, _)| *name == "ttl"), Some(("ttl", 4)));
    let near = arrival("192.0.2.1", &bytes);
    assert_eq!(sessions.receive(at(0), near), Ok(Received::Control));
    assert_eq!(states(&sessions), [State::Init]);
}

//= RFC 5883 §5 MUST: over several hops packets come to port 4784.
#[test]
fn over_several_hops_a_packet_may_come_as_far_as_was_said() {
    let several = BfdPath { multihop: true, ..path("192.0.2.1") };
    let mut sessions = Sessions::new(7);
    let far = BfdSettings { minimum_ttl: NonZeroU8::new(250).unwrap(), ..settings() };
    sessions.set(at(0), &BTreeMap::from([(several, far)]));
    let bytes = hello().encode(0);
    let hops = Arrival { port: Port::Multihop, ..arrival("192.0.2.1", &bytes) };
    for ttl in [None, Some(249)] {
        let result = sessions.receive(at(0), Arrival { ttl, ..hops });
        assert_eq!(result, Err(Dropped::Ttl { ttl, least: 250 }));
    }
    assert_eq!(sessions.view(at(0))[0].drops.total(), 2, "their session is known");
    let other_port = arrival("192.0.2.1", &bytes);
    let unknown = Err(Dropped::UnknownSender(address("192.0.2.1")));
    assert_eq!(sessions.receive(at(0), other_port), unknown);
    let result = sessions.receive(at(0), Arrival { ttl: Some(250), ..hops });
    assert_eq!(result, Ok(Received::Control));
}

//= RFC 5880 §6.8.6 MUST: a Your Discriminator that no session has is discarded.
//= RFC 5880 §6.8.6 MUST: a nonzero Your Discriminator selects the session.
//= RFC 5880 §6.3 MUST: the source address may change once our discriminator is known.
#[test]
fn who_knows_our_name_needs_no_address() {
    let mut sessions = with(&[path("192.0.2.1"), path("192.0.2.2")]);
    let ours = sessions.view(at(0))[1].local_discriminator;
    let named = ControlPacket { your_discriminator: ours, ..hello() }.encode(0);
    assert_eq!(sessions.receive(at(0), arrival("198.51.100.1", &named)), Ok(Received::Control));
    assert_eq!(states(&sessions), [State::Down, State::Init]);
    let wrong = ControlPacket { your_discriminator: ours ^ 1, ..hello() }.encode(0);
    let unknown = Err(Dropped::UnknownDiscriminator(ours ^ 1));
    assert_eq!(sessions.receive(at(0), arrival("192.0.2.2", &wrong)), unknown);
    // Not over another kind of path, nor in another VRF.
    let several = Arrival { port: Port::Multihop, ..arrival("192.0.2.2", &named) };
    assert_eq!(sessions.receive(at(0), several), Err(Dropped::WrongWay));
    let vrf = "blue".parse().ok();
    let elsewhere = Arrival { vrf, ..arrival("192.0.2.2", &named) };
    assert_eq!(sessions.receive(at(0), elsewhere), Err(Dropped::WrongWay));
    assert_eq!(sessions.view(at(0))[1].drops.of(Dropped::WrongWay.reason()), 2);
}

//= RFC 5881 §3 MUST: a first packet belongs to the session with its source address.
#[test]
fn a_stranger_is_nobody() {
    let mut sessions = with(&[path("192.0.2.1")]);
    let bytes = hello().encode(0);
    let unknown = Err(Dropped::UnknownSender(address("192.0.2.9")));
    assert_eq!(sessions.receive(at(0), arrival("192.0.2.9", &bytes)), unknown);
    let vrf = "blue".parse().ok();
    let elsewhere = Arrival { vrf, ..arrival("192.0.2.1", &bytes) };
    assert!(sessions.receive(at(0), elsewhere).is_err());
    let malformed = sessions.receive(at(0), arrival("192.0.2.1", &bytes[..20]));
    assert_eq!(malformed, Err(Dropped::Packet(PacketError::Short(20))));
    assert_eq!((sessions.drops().total(), states(&sessions)), (3, vec![State::Down]));
    // Sockets for both families use this form of IPv4 addresses.
    let mapped = arrival("::ffff:192.0.2.1", &bytes);
    assert_eq!(sessions.receive(at(0), mapped), Ok(Received::Control));
}

//= RFC 5881 §3 MUST: a first packet belongs to the session of the interface that it came in on.
#[test]
fn one_address_on_two_links_is_two_neighbours() {
    let on = |name: &str| BfdPath { interface: name.parse().ok(), ..path("fe80::1") };
    let mut sessions = with(&[on("eth0"), on("eth1")]);
    let bytes = hello().encode(0);
    let packet = arrival("fe80::1", &bytes);
    assert!(sessions.receive(at(0), packet).is_err(), "the index of the interface is not set");
    sessions.set_interface_index(SlotId(0), Some(1));
    sessions.set_interface_index(SlotId(1), Some(2));
    assert_eq!(sessions.receive(at(0), packet), Ok(Received::Control));
    assert_eq!(states(&sessions), [State::Down, State::Init]);
    let named = sessions.view(at(0))[1].local_discriminator;
    let named = ControlPacket { your_discriminator: named, ..hello() }.encode(0);
    let other_link = Arrival { interface_index: 1, ..arrival("fe80::1", &named) };
    assert_eq!(sessions.receive(at(0), other_link), Err(Dropped::WrongWay));
}

#[test]
fn who_speaks_to_another_address_of_ours_is_not_meant() {
    let to = |local: &str| BfdPath { local: Some(address(local)), ..path("192.0.2.1") };
    let mut sessions = with(&[path("192.0.2.1"), to("192.0.2.8")]);
    let bytes = hello().encode(0);
    let meant = |destination: &str| Arrival {
        destination: Some(address(destination)),
        ..arrival("192.0.2.1", &bytes)
    };
    sessions.receive(at(0), meant("192.0.2.8")).unwrap();
    assert_eq!(states(&sessions), [State::Down, State::Init]);
    sessions.receive(at(0), meant("192.0.2.7")).unwrap();
    assert_eq!(states(&sessions), [State::Init, State::Init]);
    let locals = sessions.view(at(0)).into_iter().map(|view| view.local);
    let expected = ["192.0.2.7", "192.0.2.8"].map(|text| Some(address(text)));
    assert_eq!(locals.collect::<Vec<_>>(), expected);
}

#[test]
fn echo_packets_are_ours_or_go_back() {
    let wanted = BfdSettings { echo_interval: Some(ms(50)), ..settings() };
    let mut sessions = Sessions::new(7);
    sessions.set(at(0), &BTreeMap::from([(path("192.0.2.1"), wanted)]));
    let echo = |bytes, ttl| Arrival { port: Port::Echo, ttl, ..arrival("192.0.2.1", bytes) };
    assert_eq!(sessions.receive(at(0), echo(b"theirs", Some(255))), Err(Dropped::Echo));
    let willing = ControlPacket { required_min_echo_rx_interval: 10_000, ..hello() };
    sessions.receive(at(0), arrival("192.0.2.1", &willing.encode(0))).unwrap();
    let named = ControlPacket {
        state: State::Init,
        your_discriminator: sessions.view(at(0))[0].local_discriminator,
        ..willing
    };
    sessions.receive(at(0), arrival("192.0.2.1", &named.encode(0))).unwrap();
    assert_eq!(sessions.receive(at(0), echo(b"theirs", Some(255))), Ok(Received::LoopBack));
    let mut bytes = [0; PACKET_LENGTH_BYTES_MAX];
    let mut ours = None;
    while let Some(transmit) = sessions.poll_transmit(at(0), &mut bytes) {
        ours = transmit.echo.then_some((bytes, transmit.length)).or(ours);
    }
    let (bytes, length) = ours.unwrap();
    let forwarded = Err(Dropped::Ttl { ttl: Some(253), least: 254 });
    assert_eq!(sessions.receive(at(0), echo(&bytes[..length], Some(253))), forwarded);
    let returned = echo(&bytes[..length], Some(254));
    assert_eq!(sessions.receive(at(0), returned), Ok(Received::Echo));
    assert_eq!(sessions.receive(at(0), returned), Err(Dropped::Echo), "twice");
    let view = &sessions.view(at(0))[0];
    assert_eq!((view.counters.echo_out, view.counters.echo_in), (1, 1));
    assert!(view.round_trip.is_some() && view.agreed_echo_interval == Some(ms(50)));
}

#[test]
fn any_bytes_on_any_port_do_no_harm() {
    let wanted = BfdSettings { echo_interval: Some(ms(50)), ..settings() };
    let several = BfdPath { multihop: true, ..path("192.0.2.1") };
    let mut sessions = Sessions::new(7);
    let both = [path("192.0.2.1"), several].map(|path| (path, wanted.clone()));
    sessions.set(at(0), &BTreeMap::from(both));
    let names = sessions.view(at(0)).into_iter().map(|view| view.local_discriminator);
    let names: Vec<u32> = names.chain([0]).collect();
    let (mut rng, mut heard) = (Rng::seeded(9), 0);
    let mut bytes = [0; PACKET_LENGTH_BYTES_MAX];
    for round in 0..50_000 {
        let now = at(round);
        let mut payload = [0_u8; 64];
        for chunk in payload.chunks_mut(8) {
            chunk.copy_from_slice(&rng.next_u64().to_be_bytes());
        }
        let draw = usize::try_from(rng.next_u64() % 60).unwrap();
        payload[0] = payload[0] & 0x1F | 0x20;
        payload[1] &= 0xFA;
        payload[3] = 24;
        payload[8..12].copy_from_slice(&names[draw % 3].to_be_bytes());
        let port = [Port::SingleHop, Port::Multihop, Port::Echo][draw / 3 % 3];
        let length = if draw < 50 { 24 } else { draw };
        let packet = Arrival { at: now, port, ..arrival("192.0.2.1", &payload[..length]) };
        heard += u64::from(sessions.receive(now, packet).is_ok());
        sessions.expire(now, None);
        while sessions.poll_transmit(now, &mut bytes).is_some() {}
        while sessions.poll_event().is_some() {}
        assert!(sessions.next_deadline().is_some_and(|next| next > now));
    }
    assert!(heard > 5_000, "only {heard} were accepted");
}

/// All sessions of two nodes, and a link without losses.
struct Link {
    now: Instant,
    nodes: [Sessions; 2],
    is_cut: bool,
    wake_ups: u64,
}

impl Link {
    const SESSIONS: u8 = 100;

    /// The address of a session at one of the nodes.
    fn remote(session: u8, node: usize) -> IpAddr {
        IpAddr::from([192, 0, u8::try_from(node).unwrap(), session])
    }

    fn new() -> Self {
        let nodes = [0, 1].map(|node| {
            let remotes = (0..Self::SESSIONS).map(|session| Self::remote(session, 1 - node));
            let paths = remotes.map(|remote| BfdPath { remote, ..path("192.0.2.1") });
            with(&paths.collect::<Vec<_>>())
        });
        Self { now: at(0), nodes, is_cut: false, wake_ups: 0 }
    }

    fn run_until(&mut self, end: Instant) {
        let mut bytes = [0; PACKET_LENGTH_BYTES_MAX];
        while self.now < end {
            // Packets arrive before anything else happens.
            let mut is_quiet = false;
            while !is_quiet {
                is_quiet = true;
                for node in 0..2 {
                    while let Some(sent) = self.nodes[node].poll_transmit(self.now, &mut bytes) {
                        is_quiet = false;
                        let to = *self.nodes[node].path(sent.slot).unwrap();
                        let IpAddr::V4(to) = to.remote else { panic!("{to}") };
                        let source = Self::remote(to.octets()[3], node).to_string();
                        let packet =
                            Arrival { at: self.now, ..arrival(&source, &bytes[..sent.length]) };
                        if !self.is_cut {
                            self.nodes[1 - node].receive(self.now, packet).unwrap();
                        }
                    }
                }
            }
            let next = self.nodes.iter().filter_map(Sessions::next_deadline).min().unwrap();
            assert!(next > self.now && next.as_micros().is_multiple_of(1_000));
            self.now = next;
            self.wake_ups += 1;
            for node in &mut self.nodes {
                node.expire(self.now, None);
            }
        }
    }

    /// The number of sessions that are up, and how often any went down.
    fn count(&self) -> (usize, u64) {
        let views: Vec<_> = self.nodes.iter().flat_map(|node| node.view(self.now)).collect();
        let up = views.iter().filter(|view| view.state == State::Up).count();
        (up, views.iter().map(|view| view.counters.downs).sum())
    }
}

#[test]
fn a_hundred_sessions_come_up_share_their_wake_ups_and_all_notice_a_cut() {
    let mut link = Link::new();
    link.run_until(at(2_000));
    assert_eq!(link.count(), (200, 0));
    let before = link.wake_ups;
    let room =
        |link: &Link| link.nodes.each_ref().map(|it| (it.ready.capacity(), it.telling.capacity()));
    let room_before = room(&link);
    link.run_until(at(5_000));
    assert!(link.wake_ups - before <= 3_001, "one each millisecond at most");
    link.is_cut = true;
    link.run_until(at(5_154));
    assert_eq!(link.count(), (0, 200));
    link.is_cut = false;
    link.run_until(at(8_000));
    assert_eq!(link.count(), (200, 200));
    assert_eq!(room(&link), room_before, "queues have room for all from the start");
    // Every event is reported once and in order.
    let told = std::iter::from_fn(|| link.nodes[0].poll_event());
    let ups = told.filter(|event| event.change == BfdChange::Up).count();
    assert_eq!((ups, link.nodes[0].poll_event()), (100, None));
}

/// A session that is up at 0 ms, with a detection time of 50 ms * 3.
fn up() -> Sessions {
    let mut sessions = with(&[path("192.0.2.1")]);
    for state in [State::Down, State::Init, State::Up] {
        hear(&mut sessions, at(0), at(0), state);
    }
    let mut bytes = [0; PACKET_LENGTH_BYTES_MAX];
    while sessions.poll_transmit(at(0), &mut bytes).is_some() {}
    assert_eq!(sessions.poll_event().map(|event| event.change), Some(BfdChange::Up));
    sessions
}

fn hear(sessions: &mut Sessions, now: Instant, at: Instant, state: State) {
    let your_discriminator = sessions.view(now)[0].local_discriminator;
    let bytes = ControlPacket { state, your_discriminator, ..hello() }.encode(0);
    sessions.receive(now, Arrival { at, ..arrival("192.0.2.1", &bytes) }).unwrap();
}

#[test]
fn who_was_frozen_hears_what_waited_before_it_judges() {
    let mut sessions = up();
    // Twice the detection time, while packets were received all the time.
    let now = at(300);
    for waited in [50, 100, 150, 200, 250, 290] {
        hear(&mut sessions, now, at(waited), State::Up);
    }
    sessions.expire(now, Some(ms(150)));
    assert_eq!((states(&sessions), sessions.poll_event()), (vec![State::Up], None));
    let view = &sessions.view(now)[0];
    assert_eq!((view.counters.stalls, view.counters.detections_put_off), (1, 0));
    // A delayed read is not a delayed arrival: the time since the last packet counts, not since now.
    sessions.expire(at(439), None);
    assert_eq!(states(&sessions), [State::Up]);
    sessions.expire(at(440), None);
    assert_eq!(states(&sessions), [State::Down]);
}

#[test]
fn packets_of_two_sockets_may_be_read_in_any_order() {
    let mut sessions = up();
    hear(&mut sessions, at(100), at(100), State::Up);
    hear(&mut sessions, at(100), at(60), State::Up);
    sessions.expire(at(249), None);
    assert_eq!(states(&sessions), [State::Up]);
    sessions.expire(at(250), None);
    assert_eq!(states(&sessions), [State::Down]);
}

#[test]
fn who_was_late_itself_gives_the_other_end_one_more_interval() {
    let mut sessions = up();
    sessions.expire(at(300), Some(ms(150)));
    assert_eq!(states(&sessions), [State::Up]);
    assert_eq!(sessions.view(at(300))[0].counters.detections_put_off, 1);
    sessions.expire(at(349), Some(ms(150)));
    assert_eq!(states(&sessions), [State::Up]);
    sessions.expire(at(350), Some(ms(150)));
    assert_eq!(states(&sessions), [State::Down], "once, not for ever");
    // If a packet was received in between, the next detection may be postponed again.
    let mut sessions = up();
    sessions.expire(at(300), Some(ms(150)));
    hear(&mut sessions, at(320), at(320), State::Up);
    sessions.expire(at(600), Some(ms(130)));
    assert_eq!(states(&sessions), [State::Up]);
    // A delay of less than half an interval does not count.
    let mut sessions = up();
    sessions.expire(at(170), Some(ms(20)));
    assert_eq!(states(&sessions), [State::Down]);
}

#[test]
fn what_was_not_heard_puts_a_detection_off_and_is_no_stall() {
    let mut sessions = up();
    sessions.note_unheard();
    sessions.expire(at(300), None);
    assert_eq!(states(&sessions), [State::Up]);
    let counters = sessions.view(at(300))[0].counters;
    assert_eq!((counters.stalls, counters.detections_put_off), (0, 1));
    hear(&mut sessions, at(320), at(320), State::Up);
    sessions.expire(at(600), None);
    assert_eq!(states(&sessions), [State::Down], "that was once");
}

#[test]
fn what_a_session_did_not_hear_is_counted_when_it_is_gone() {
    let mut sessions = up();
    let bytes = hello().encode(0);
    let far = Arrival { ttl: Some(64), ..arrival("192.0.2.1", &bytes) };
    let your_discriminator = sessions.view(at(0))[0].local_discriminator;
    assert!(sessions.receive(at(0), far).is_err());
    let signed = ControlPacket { your_discriminator, authentication_present: true, ..hello() };
    let bytes = [&signed.encode(28)[..], &[0; 28]].concat();
    assert!(sessions.receive(at(0), arrival("192.0.2.1", &bytes)).is_err());
    let total = |sessions: &Sessions| {
        let of_sessions: u64 = sessions.view(at(0)).iter().map(|it| it.drops.total()).sum();
        (of_sessions, sessions.drops().total() + of_sessions)
    };
    assert_eq!(total(&sessions), (1, 2));
    sessions.leave(at(10));
    let mut bytes = [0; PACKET_LENGTH_BYTES_MAX];
    for now in (10..20_000).step_by(10).map(at) {
        sessions.expire(now, None);
        while sessions.poll_transmit(now, &mut bytes).is_some() {}
    }
    assert_eq!(sessions.poll_closed(), Some(SlotId(0)));
    assert_eq!(total(&sessions), (0, 2));
}

#[test]
fn what_nobody_wants_says_so_and_is_gone() {
    let mut sessions = up();
    let mut bytes = [0; PACKET_LENGTH_BYTES_MAX];
    sessions.leave(at(10));
    let sent = sessions.poll_transmit(at(10), &mut bytes).unwrap();
    let (packet, _) = ControlPacket::decode(&bytes[..sent.length]).unwrap();
    assert_eq!((packet.state, sessions.poll_closed()), (State::AdminDown, None));
    let mut repeated = 0;
    while let Some(now) = sessions.next_deadline().filter(|now| *now < at(3_000)) {
        sessions.expire(now, None);
        repeated += usize::from(sessions.poll_transmit(now, &mut bytes).is_some());
    }
    assert!((2..=5).contains(&repeated), "{repeated}");
    assert!(sessions.view(at(200)).is_empty());
    // The slot is not reused until the edge knows.
    let other = BTreeMap::from([(path("192.0.2.2"), settings())]);
    assert_eq!(sessions.set(at(200), &other), [SlotId(1)]);
    assert_eq!((sessions.poll_closed(), sessions.poll_closed()), (Some(SlotId(0)), None));
    let third = BTreeMap::from([(path("192.0.2.2"), settings()), (path("192.0.2.3"), settings())]);
    assert_eq!(sessions.set(at(201), &third), [SlotId(0)]);
    assert_eq!(sessions.path(SlotId(0)), Some(&path("192.0.2.3")));
}

#[test]
fn who_is_wanted_again_in_time_keeps_its_slot() {
    let mut sessions = up();
    sessions.set(at(10), &BTreeMap::new());
    let again = BTreeMap::from([(path("192.0.2.1"), settings())]);
    assert_eq!(sessions.set(at(20), &again), []);
    assert_eq!((states(&sessions), sessions.poll_closed()), (vec![State::Down], None));
    for state in [State::Down, State::Init] {
        hear(&mut sessions, at(30), at(30), state);
    }
    assert_eq!(states(&sessions), [State::Up]);
}
