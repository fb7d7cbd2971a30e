//! Sessions over loopback, with a neighbour that is a script.

use std::collections::BTreeSet;
use std::io;
use std::net::IpAddr;
use std::num::NonZeroU8;
use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::time::timeout;

use super::*;
use crate::example::Example as _;
use crate::sockopt;
use fairway_bgp::wire::announce::{AttributeBlock, announcement};
use fairway_bgp::wire::header::keepalive;
use fairway_bgp::wire::notification::cease;
use fairway_bgp::wire::{Capability, KeptFamily, Notification, Open, RestartOffer};
use fairway_ground::{
    AddressFamily, AsPath, GracefulRestart, HoldTime, ListenRange, NextHop, Password, PeerKey,
    Prefix, Remote, ShutdownMessage,
};
use fairway_seam::{
    BgpView, DesiredRoute, Leave, PathAttributes, PeerConfig, PeerView, ResetCause,
    RouteAttributes, SessionState,
};

const PATIENCE: Duration = Duration::from_secs(10);

fn backend() -> NativeBackend {
    NativeBackend::start(Listen::at([([127, 0, 0, 1], 0).into()]), BfdOptions::default(), 7, None)
}

fn address(number: u8) -> IpAddr {
    [127, 0, 0, number].into()
}

/// A neighbour at 127.0.0.`number`, where nothing answers.
fn peer(number: u8) -> PeerConfig {
    PeerConfig { key: PeerKey::from(address(number)), port: 1, ..PeerConfig::example(1) }
}

fn range(limit: u32) -> PeerConfig {
    let prefix: Prefix = "127.0.0.0/24".parse().unwrap();
    PeerConfig {
        key: PeerKey { remote: Remote::Range(prefix), vrf: None },
        listen_range: Some(ListenRange { prefix, limit }),
        name: "rack".to_owned(),
        ..PeerConfig::example(1)
    }
}

fn apply(backend: &NativeBackend, peers: &[PeerConfig]) {
    backend.apply(Desired { peers: peers.to_vec(), ..Desired::default() });
}

/// Polls until `is_so` holds.
async fn wait_until(backend: &NativeBackend, is_so: impl Fn(&BgpView) -> bool) {
    let mut last = None;
    let look = async {
        loop {
            let view = backend.view(ViewScope::SESSIONS).await.unwrap();
            if is_so(&view) {
                return;
            }
            last = Some(view);
            tokio::task::yield_now().await;
        }
    };
    if timeout(PATIENCE, look).await.is_err() {
        panic!("not in time: {last:?}");
    }
}

fn find(view: &BgpView, number: u8) -> Option<&PeerView> {
    view.peers.iter().find(|it| it.config.key.address() == Some(address(number)))
}

fn is_up(view: &BgpView, number: u8) -> bool {
    find(view, number).is_some_and(|peer| peer.state == SessionState::Established)
}

fn socket_from(number: u8) -> TcpSocket {
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind((address(number), 0).into()).unwrap();
    socket
}

/// Speaker 2 sends OPEN and KEEPALIVE.
async fn introduce(stream: TcpStream) -> TcpStream {
    introduce_with(stream, Vec::new()).await
}

/// The same with more capabilities than it needs.
async fn introduce_with(mut stream: TcpStream, mut capabilities: Vec<Capability>) -> TcpStream {
    let PeerConfig { local_asn, hold_time, router_id, .. } = PeerConfig::example(2);
    capabilities.push(Capability::FourOctetAs(local_asn.get()));
    let open = Open { asn: local_asn.get(), hold_time, router_id, capabilities };
    stream.write_all(&[open.encode(), keepalive()].concat()).await.unwrap();
    stream
}

/// A connection from 127.0.0.`number`, over which speaker 2 has introduced itself.
async fn speak(backend: &NativeBackend, number: u8) -> TcpStream {
    introduce(socket_from(number).connect(backend.listening()[0]).await.unwrap()).await
}

/// What is received until the other side closes.
async fn listen_to_the_end(mut stream: TcpStream) -> io::Result<Vec<u8>> {
    let mut heard = Vec::new();
    timeout(PATIENCE, stream.read_to_end(&mut heard)).await.expect("in time")?;
    Ok(heard)
}

/// Reads until `wanted` was received.
async fn hear(stream: &mut TcpStream, wanted: &[u8]) {
    let mut heard = Vec::new();
    let read = async {
        while !heard.windows(wanted.len()).any(|window| window == wanted) {
            assert_ne!(stream.read_buf(&mut heard).await.unwrap(), 0, "{heard:?}");
        }
    };
    timeout(PATIENCE, read).await.expect("in time");
}

async fn is_reset(stream: TcpStream) -> bool {
    let end = listen_to_the_end(stream).await;
    end.is_err_and(|error| error.kind() == io::ErrorKind::ConnectionReset)
}

fn farewell(subcode: u8) -> Bytes {
    Notification::cease(subcode).encode()
}

//= RFC 4486 §4 SHOULD: sessions that end because the daemon stops end with 6/2.
//= RFC 4271 §6.7 MAY: a session without a fault is ended with Cease.
#[tokio::test]
async fn a_daemon_that_stops_takes_its_leave() {
    let backend = backend();
    apply(&backend, &[peer(2)]);
    wait_until(&backend, |view| !view.peers.is_empty()).await;
    let stream = speak(&backend, 2).await;
    wait_until(&backend, |view| is_up(view, 2)).await;
    let (heard, ()) = tokio::join!(listen_to_the_end(stream), backend.shutdown(Leave::ForGood));
    let heard = heard.unwrap();
    assert!(heard.ends_with(&farewell(cease::ADMINISTRATIVE_SHUTDOWN)), "{heard:?}");
}

#[tokio::test]
async fn who_is_no_peer_is_reset_before_a_word() {
    let backend = backend();
    apply(&backend, &[peer(2)]);
    wait_until(&backend, |view| !view.peers.is_empty()).await;
    assert!(is_reset(speak(&backend, 3).await).await);
}

#[tokio::test]
async fn neighbours_of_a_range_come_and_go() {
    let backend = backend();
    apply(&backend, &[range(2), peer(9)]);
    wait_until(&backend, |view| view.listen_ranges.len() == 1).await;
    let two = speak(&backend, 2).await;
    let three = speak(&backend, 3).await;
    wait_until(&backend, |view| is_up(view, 2) && is_up(view, 3)).await;
    let view = backend.view(ViewScope::SESSIONS).await.unwrap();
    let two_is = find(&view, 2).unwrap();
    assert!(two_is.config.is_dynamic() && two_is.config.name == "rack");
    assert_eq!((view.listen_ranges[0].members, view.listen_ranges[0].limit), (2, 2));
    // The range is full, but a neighbour that is configured by address needs no room in it.
    assert!(is_reset(speak(&backend, 4).await).await);
    let _nine = speak(&backend, 9).await;
    wait_until(&backend, |view| is_up(view, 9) && view.listen_ranges[0].members == 2).await;
    // A neighbour that leaves makes room and is forgotten.
    drop(two);
    wait_until(&backend, |view| find(view, 2).is_none()).await;
    let four = speak(&backend, 4).await;
    wait_until(&backend, |view| is_up(view, 4)).await;
    // Without the range its neighbours have no peer.
    apply(&backend, &[peer(9)]);
    for stream in [three, four] {
        let heard = listen_to_the_end(stream).await.unwrap();
        assert!(heard.ends_with(&farewell(cease::PEER_DECONFIGURED)), "{heard:?}");
    }
    wait_until(&backend, |view| view.peers.len() == 1 && is_up(view, 9)).await;
}

#[tokio::test]
async fn routes_for_a_range_reach_each_of_its_neighbours() {
    let backend = backend();
    let route = DesiredRoute {
        prefix: "203.0.113.7/32".parse().unwrap(),
        peers: Arc::new([range(9).key].into()),
        attributes: Arc::new(RouteAttributes::default()),
    };
    let desired = |routes| Desired { peers: vec![range(9)], routes, ..Desired::default() };
    backend.apply(desired(Arc::default()));
    wait_until(&backend, |view| view.listen_ranges.len() == 1).await;
    let mut early = speak(&backend, 2).await;
    wait_until(&backend, |view| is_up(view, 2)).await;
    backend.apply(desired([route].into()));
    let mut late = speak(&backend, 3).await;
    for stream in [&mut early, &mut late] {
        hear(stream, &[32, 203, 0, 113, 7]).await;
    }
}

#[tokio::test]
async fn what_is_gone_is_withdrawn_when_every_session_has_been_told() {
    let backend = backend();
    let desired = |generation, prefixes: &[&str]| {
        let route = |prefix: &&str| DesiredRoute {
            prefix: prefix.parse().unwrap(),
            peers: Arc::new([peer(2).key].into()),
            attributes: Arc::default(),
        };
        let routes = prefixes.iter().map(route).collect();
        Desired { generation, peers: vec![peer(2), peer(3)], routes, ..Desired::default() }
    };
    let told = |generation| timeout(PATIENCE, backend.withdrawn(generation));
    backend.apply(desired(1, &["203.0.113.7/32", "203.0.113.8/32"]));
    told(1).await.expect("without a session there is no peer to withdraw from");
    let mut stream = speak(&backend, 2).await;
    hear(&mut stream, &[32, 203, 0, 113, 7]).await;
    backend.apply(desired(2, &["203.0.113.8/32"]));
    told(2).await.expect("the withdrawal is written");
    let view = backend.view(ViewScope::SESSIONS).await.unwrap();
    assert_eq!(find(&view, 2).unwrap().prefixes_advertised.ipv4, 1);
    hear(&mut stream, &[0, 5, 32, 203, 0, 113, 7]).await;
    let third = timeout(Duration::ZERO, backend.withdrawn(3)).await;
    assert!(third.is_err(), "there is no third generation yet");
}

/// It keeps its place until then, and its routes are stale.
#[tokio::test]
async fn a_neighbour_of_a_range_that_restarts_is_waited_for() {
    let backend = backend();
    let graceful_restart = GracefulRestart::new(120, 0);
    apply(&backend, &[PeerConfig { graceful_restart, ..range(1) }]);
    wait_until(&backend, |view| !view.listen_ranges.is_empty()).await;
    let ipv4 = AddressFamily::Ipv4Unicast;
    let restart = RestartOffer {
        restart_time_seconds: 1,
        families: vec![KeptFamily { family: ipv4.into(), forwarding: true }],
        ..RestartOffer::default()
    };
    let stream = socket_from(2).connect(backend.listening()[0]).await.unwrap();
    let mut stream = introduce_with(stream, vec![Capability::GracefulRestart(restart)]).await;
    wait_until(&backend, |view| is_up(view, 2)).await;
    let as_path = AsPath::sequence(vec![PeerConfig::example(2).local_asn.get()]);
    let next_hop = NextHop::Ipv4([127, 0, 0, 2].into());
    let attributes = PathAttributes::originated(as_path, next_hop);
    let block = AttributeBlock::encode(&attributes, true).unwrap();
    let mut prefixes = BTreeSet::from(["203.0.113.0/24".parse().unwrap()]);
    let mut update = BytesMut::new();
    announcement(ipv4, false, &block, &mut prefixes, &mut update);
    stream.write_all(&update).await.unwrap();
    let stale = async || {
        let view = backend.view(ViewScope::EVERYTHING).await.unwrap();
        view.learned.iter().map(|it| it.stale).collect::<Vec<_>>()
    };
    let heard = |view: &BgpView| find(view, 2).is_some_and(|it| it.prefixes_accepted.ipv4 == 1);
    wait_until(&backend, heard).await;
    assert_eq!(stale().await, [false]);
    drop(stream);
    wait_until(&backend, |view| find(view, 2).is_some_and(|it| it.stale.is_some())).await;
    assert_eq!(stale().await, [true]);
    // It does not come back, and is forgotten like every neighbour of a range.
    wait_until(&backend, |view| find(view, 2).is_none()).await;
    assert_eq!(stale().await, [false; 0]);
}

/// Only the fact that it had a session is remembered: the second one follows no restart of ours.
#[tokio::test]
async fn a_neighbour_of_a_range_hears_of_our_restart_once() {
    let earlier = EarlierRun { routes: Vec::new(), forwarding: false };
    let backend = NativeBackend::start(
        Listen::at([([127, 0, 0, 1], 0).into()]),
        BfdOptions::default(),
        7,
        Some(earlier),
    );
    let graceful_restart = GracefulRestart::new(120, 0);
    apply(&backend, &[PeerConfig { graceful_restart, ..range(1) }]);
    wait_until(&backend, |view| !view.listen_ranges.is_empty()).await;
    // R and F beside N (RFC 4724 §3, RFC 8538 §2).
    for (restarted, forwarding) in [(0x80, 0), (0, 0x80)] {
        let mut stream = speak(&backend, 2).await;
        let flags = 0x40 | restarted;
        hear(&mut stream, &[64, 10, flags, 120, 0, 1, 1, forwarding, 0, 2, 1, forwarding]).await;
        wait_until(&backend, |view| is_up(view, 2)).await;
        drop(stream);
        wait_until(&backend, |view| find(view, 2).is_none()).await;
    }
}

#[tokio::test]
async fn settings_of_a_range_are_those_of_its_neighbours() {
    let backend = backend();
    apply(&backend, &[range(9)]);
    wait_until(&backend, |view| view.listen_ranges.len() == 1).await;
    let stream = speak(&backend, 2).await;
    wait_until(&backend, |view| is_up(view, 2)).await;
    // A name needs no new session.
    apply(&backend, &[PeerConfig { name: "shelf".to_owned(), ..range(9) }]);
    let is_renamed = |peer: &PeerView| peer.config.name == "shelf";
    wait_until(&backend, |view| find(view, 2).is_some_and(is_renamed) && is_up(view, 2)).await;
    // Configured by its address, it has those settings.
    apply(&backend, &[range(9), PeerConfig { name: "two".to_owned(), ..peer(2) }]);
    let is_named = |peer: &PeerView| peer.config.name == "two" && !peer.config.is_dynamic();
    wait_until(&backend, |view| find(view, 2).is_some_and(is_named)).await;
    let heard = listen_to_the_end(stream).await.unwrap();
    // The port is another one: that needs a new session.
    assert!(heard.ends_with(&farewell(cease::CONFIGURATION_CHANGE)), "{heard:?}");
    wait_until(&backend, |view| view.listen_ranges[0].members == 0).await;
}

#[tokio::test]
async fn a_range_that_is_shut_down_tells_its_neighbours_why() {
    let backend = backend();
    apply(&backend, &[range(9)]);
    wait_until(&backend, |view| view.listen_ranges.len() == 1).await;
    let stream = speak(&backend, 2).await;
    wait_until(&backend, |view| is_up(view, 2)).await;
    let message = ShutdownMessage::new("rack 7 moves").unwrap();
    apply(&backend, &[PeerConfig { shutdown: Some(message.clone()), ..range(9) }]);
    let heard = listen_to_the_end(stream).await.unwrap();
    let last = Notification::cease_with_message(cease::ADMINISTRATIVE_SHUTDOWN, &message);
    assert!(heard.ends_with(&last.encode()), "{heard:?}");
    wait_until(&backend, |view| view.peers.is_empty()).await;
    assert!(is_reset(speak(&backend, 2).await).await);
}

#[tokio::test]
async fn a_passive_peer_is_accepted_and_never_dialled() {
    let backend = backend();
    let neighbour = TcpListener::bind((address(2), 0)).await.unwrap();
    let port = neighbour.local_addr().unwrap().port();
    let passive = PeerConfig { port, passive: true, ..peer(2) };
    apply(&backend, std::slice::from_ref(&passive));
    wait_until(&backend, |view| {
        find(view, 2)
            .is_some_and(|it| it.state == SessionState::Active && it.next_connect_in.is_none())
    })
    .await;
    let stream = speak(&backend, 2).await;
    wait_until(&backend, |view| is_up(view, 2)).await;
    drop(stream);
    wait_until(&backend, |view| find(view, 2).is_some_and(|it| it.state == SessionState::Active))
        .await;
    apply(&backend, &[PeerConfig { passive: false, ..passive }]);
    timeout(PATIENCE, neighbour.accept()).await.expect("it is dialled now").unwrap();
}

#[tokio::test]
async fn a_peer_that_is_shut_down_is_left_alone() {
    let backend = backend();
    let neighbour = TcpListener::bind((address(2), 0)).await.unwrap();
    let port = neighbour.local_addr().unwrap().port();
    let passive = PeerConfig { port, passive: true, ..peer(2) };
    apply(&backend, std::slice::from_ref(&passive));
    wait_until(&backend, |view| !view.peers.is_empty()).await;
    let stream = speak(&backend, 2).await;
    wait_until(&backend, |view| is_up(view, 2)).await;
    let down = |text: &str| {
        let shutdown = ShutdownMessage::new(text).ok();
        PeerConfig { shutdown, passive: false, ..passive.clone() }
    };
    apply(&backend, &[down("rack 7 moves")]);
    let heard = listen_to_the_end(stream).await.unwrap();
    assert!(heard.ends_with(b"\x0crack 7 moves"), "{heard:?}");
    let is_idle = |view: &BgpView| {
        find(view, 2)
            .is_some_and(|it| it.state == SessionState::Idle && it.next_connect_in.is_none())
    };
    wait_until(&backend, is_idle).await;
    assert!(is_reset(speak(&backend, 2).await).await);
    apply(&backend, &[down("rack 8 moves")]);
    wait_until(&backend, |view| {
        let shutdown = find(view, 2).and_then(|it| it.config.shutdown.clone());
        is_idle(view) && shutdown.is_some_and(|it| it.as_str() == "rack 8 moves")
    })
    .await;
    apply(&backend, &[PeerConfig { shutdown: None, ..down("") }]);
    timeout(PATIENCE, neighbour.accept()).await.expect("it is dialled now").unwrap();
}

/// A dial from 127.0.0.`number` whose packets leave with `ttl`, and that receives none of less than
/// 255.
async fn dial_from_next_door(backend: &NativeBackend, number: u8, ttl: u8) -> TcpStream {
    let socket = socket_from(number);
    sockopt::set_network(&socket, address(number), ttl).unwrap();
    sockopt::set_ttl_min(&socket, address(number), u8::MAX).unwrap();
    introduce(socket.connect(backend.listening()[0]).await.unwrap()).await
}

//= RFC 5082 §3 MAY: packets of a protected session that come from too far away are dropped.
//= RFC 5082 §3 MUST NOT: packets that are near enough, or of whose sender nothing was said, are dropped.
//= RFC 5082 §3 SHOULD NOT: the check is made without being asked for.
//= RFC 5082 §3 MUST: packets of a protected session leave with a TTL of 255.
#[tokio::test]
async fn who_must_be_next_door_is_not_heard_from_afar() {
    let backend = backend();
    let ttl_security_hops = NonZeroU8::new(2);
    let hold_time = HoldTime::from_seconds(3).unwrap();
    // A second peer without the check: their listener cannot make it for both.
    apply(&backend, &[PeerConfig { ttl_security_hops, hold_time, ..peer(2) }, peer(3)]);
    wait_until(&backend, |view| view.peers.len() == 2).await;
    let _three = speak(&backend, 3).await;
    wait_until(&backend, |view| is_up(view, 3)).await;
    assert!(is_reset(dial_from_next_door(&backend, 2, 253).await).await);
    let stream = dial_from_next_door(&backend, 2, 254).await;
    wait_until(&backend, |view| is_up(view, 2)).await;
    // Later packets are checked, too: those with a lower TTL are dropped.
    sockopt::set_network(&stream, address(2), 253).unwrap();
    wait_until(&backend, |view| {
        let reset = find(view, 2).and_then(|it| it.last_reset.as_ref());
        reset.is_some_and(|reset| reset.cause == ResetCause::NotificationSent(4, 0))
    })
    .await;
}

//+ RFC 5082 §3: packets of a protected session leave with a TTL of 255.
#[tokio::test]
async fn who_hears_only_neighbours_hears_that_it_is_refused() {
    let backend = backend();
    apply(&backend, &[peer(3)]);
    wait_until(&backend, |view| !view.peers.is_empty()).await;
    assert!(is_reset(dial_from_next_door(&backend, 2, 255).await).await);
}

/// Where all peers are directly connected, packets from further away are not even answered.
#[tokio::test]
async fn a_listener_for_direct_neighbours_is_silent_to_others() {
    let backend = backend();
    apply(&backend, &[PeerConfig { ttl_security_hops: NonZeroU8::new(1), ..peer(2) }]);
    wait_until(&backend, |view| !view.peers.is_empty()).await;
    let from_afar = dial_from_next_door(&backend, 2, 254);
    assert!(timeout(Duration::from_millis(300), from_afar).await.is_err());
    let _stream = dial_from_next_door(&backend, 2, 255).await;
    wait_until(&backend, |view| is_up(view, 2)).await;
}

#[tokio::test]
async fn a_range_can_have_a_key() {
    let backend = backend();
    let password = Password::new("rack key").unwrap();
    apply(&backend, &[PeerConfig { password: Some(password.clone()), ..range(9) }]);
    wait_until(&backend, |view| view.listen_ranges.len() == 1).await;
    let listener = backend.listening()[0];
    let without = timeout(Duration::from_millis(300), socket_from(2).connect(listener)).await;
    assert!(without.is_err(), "a SYN without the key is not answered");
    let socket = socket_from(3);
    sockopt::set_md5(&socket, listener.ip(), Some(&password)).unwrap();
    let _stream = introduce(socket.connect(listener).await.unwrap()).await;
    wait_until(&backend, |view| is_up(view, 3)).await;
}

/// Any device can be bound to; the loopback one is on every machine.
#[tokio::test]
async fn a_vrf_is_dialled_through_its_device_once_that_is_there() {
    let backend = backend();
    let neighbour = TcpListener::bind((address(2), 0)).await.unwrap();
    let port = neighbour.local_addr().unwrap().port();
    let in_vrf = |number: u8, vrf: &str| {
        let key = PeerKey { remote: Remote::Address(address(number)), vrf: vrf.parse().ok() };
        PeerConfig { key, port, ..peer(number) }
    };
    apply(&backend, &[in_vrf(2, "lo"), in_vrf(3, "no-such-vrf")]);
    timeout(PATIENCE, neighbour.accept()).await.expect("dialled").unwrap();
    wait_until(&backend, |view| {
        find(view, 3).is_some_and(|peer| {
            let reset = peer.last_reset.as_ref().map_or("", |reset| &reset.text);
            reset.contains("VRF no-such-vrf") && peer.not_accepted.is_some()
        })
    })
    .await;
}

/// Waits for changes until `is_so` holds; returns the number to wait for next.
async fn follow(backend: &NativeBackend, mut seen: u64, is_so: impl Fn(&PeerView) -> bool) -> u64 {
    let follow = async {
        loop {
            seen = backend.changed(seen).await;
            let view = backend.view(ViewScope::EVERYTHING).await.unwrap();
            if find(&view, 2).is_some_and(&is_so) {
                return seen;
            }
        }
    };
    timeout(PATIENCE, follow).await.expect("in time")
}

#[tokio::test]
async fn whoever_waits_hears_of_sessions_and_routes_and_not_of_keepalives() {
    let backend = backend();
    let config = PeerConfig { passive: true, ..peer(2) };
    let route = DesiredRoute {
        prefix: "203.0.113.7/32".parse().unwrap(),
        peers: Arc::new([config.key].into()),
        attributes: Arc::default(),
    };
    let desired = |routes| Desired { peers: vec![config.clone()], routes, ..Desired::default() };
    backend.apply(desired(Arc::default()));
    let seen = follow(&backend, 0, |peer| peer.state == SessionState::Active).await;
    let mut stream = speak(&backend, 2).await;
    let seen = follow(&backend, seen, |peer| peer.state == SessionState::Established).await;
    backend.apply(desired([route].into()));
    let told = |peer: &PeerView| peer.advertised.len() == 1 && !peer.is_being_told;
    let seen = follow(&backend, seen, told).await;

    stream.write_all(&keepalive()).await.unwrap();
    wait_until(&backend, |view| view.peers[0].messages.received.keepalives == 2).await;
    let unheard = timeout(Duration::ZERO, backend.changed(seen)).await;
    assert!(unheard.is_err(), "a keepalive is no change: {seen} and {unheard:?}");

    drop(stream);
    let seen = follow(&backend, seen, |peer| peer.state != SessionState::Established).await;
    apply(&backend, &[]);
    timeout(PATIENCE, backend.changed(seen)).await.expect("a neighbor that goes is a change");
}
