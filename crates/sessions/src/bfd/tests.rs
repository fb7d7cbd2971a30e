//! Real threads and sockets on loopback. Each end has its own address, in a part of 127/8 that no other run
//! of these tests uses.

use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr, UdpSocket};
use std::num::NonZeroU8;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::Duration;

use tokio::time::{Instant, timeout};

use super::datagram::{self, Notes};
use super::*;
use crate::sockopt::{self, Datagram};
use fairway_bfd::{BfdChange, BfdSessionView, Diagnostic, DownCause, Port, State};

/// Far from the ports of the RFCs, which a router on this machine may use.
const PORT_OFFSET: u16 = 20_000;

/// Timeout for everything, on a busy machine.
const DEADLINE: Duration = Duration::from_secs(20);

pub(super) struct End {
    pub(super) address: Ipv4Addr,
    pub(super) thread: BfdThread,
    events: mpsc::Receiver<BfdEvent>,
}

/// An address that is not in use.
pub(super) fn address() -> Ipv4Addr {
    static NEXT: AtomicU8 = AtomicU8::new(2);
    let [_, _, high, low] = std::process::id().to_be_bytes();
    Ipv4Addr::new(127, high, low, NEXT.fetch_add(1, Ordering::Relaxed))
}

pub(super) fn path(local: Ipv4Addr, remote: Ipv4Addr) -> BfdPath {
    let (remote, local) = (remote.into(), Some(local.into()));
    BfdPath { remote, vrf: None, multihop: false, interface: None, local }
}

pub(super) fn every(transmit_ms: u64, receive_ms: u64) -> BfdSettings {
    BfdSettings {
        transmit_interval: Duration::from_millis(transmit_ms),
        receive_interval: Duration::from_millis(receive_ms),
        // Many, since the remote thread, too, may have to wait for the CPU on a busy machine.
        detect_multiplier: NonZeroU8::new(10).unwrap(),
        ..BfdSettings::default()
    }
}

impl End {
    pub(super) fn new() -> Self {
        Self::at(address())
    }

    fn at(address: Ipv4Addr) -> Self {
        let (sender, events) = mpsc::channel(256);
        let seed = u64::from(u32::from(address));
        let thread = BfdThread::start(BfdOptions::default(), seed, sender);
        Self { address, thread: thread.at(address, PORT_OFFSET), events }
    }

    fn watch(&mut self, others: &[Ipv4Addr], settings: &BfdSettings) {
        let wanted = others.iter().map(|other| (path(self.address, *other), settings.clone()));
        self.thread.set(wanted.collect());
    }

    async fn hear(&mut self) -> BfdEvent {
        timeout(DEADLINE, self.events.recv()).await.expect("an event in time").unwrap()
    }

    pub(super) async fn view(&self) -> BfdView {
        timeout(DEADLINE, self.thread.view()).await.expect("an answer in time").unwrap()
    }

    async fn session(&self) -> BfdSessionView {
        self.view().await.sessions.pop().expect("there is a session")
    }

    /// Polls until `is_it` holds.
    async fn until(&self, what: &str, is_it: impl Fn(&BfdView) -> bool) -> BfdView {
        let start = Instant::now();
        loop {
            let view = self.view().await;
            if is_it(&view) {
                return view;
            }
            assert!(start.elapsed() < DEADLINE, "not in time: {what}: {view:#?}");
            tokio::task::yield_now().await;
        }
    }

    /// Has the thread run this, and nothing else meanwhile.
    pub(super) fn run(&self, what: impl FnOnce() + Send + 'static) {
        self.thread.running.as_ref().unwrap().ask(Command::Run(Box::new(what)));
    }
}

/// Two ends with an established session.
async fn pair(near: &BfdSettings, far: &BfdSettings) -> (End, End) {
    let (mut one, mut other) = (End::new(), End::new());
    one.watch(&[other.address], near);
    other.watch(&[one.address], far);
    assert_eq!(one.hear().await.change, BfdChange::Up);
    assert_eq!(other.hear().await.change, BfdChange::Up);
    (one, other)
}

#[tokio::test]
async fn a_session_comes_up_and_goes_down_when_the_other_end_falls_silent() {
    let (mut near, far) = pair(&every(20, 20), &every(20, 20)).await;
    let up = near
        .until("fast", |view| view.sessions[0].detection_time == Some(Duration::from_millis(200)));
    assert_eq!(up.await.sessions[0].state, State::Up);
    let silent_at = Instant::now();
    drop(far);
    let BfdChange::Down { diagnostic, was_up, cause, .. } = near.hear().await.change else {
        panic!("it cannot have come up again");
    };
    assert_eq!(diagnostic, Diagnostic::CONTROL_DETECTION_TIME_EXPIRED);
    assert!(was_up && cause == DownCause::Failed);
    // 200 ms, and a margin for a busy machine.
    assert!(silent_at.elapsed() < Duration::from_secs(2), "{:?}", silent_at.elapsed());
}

#[tokio::test]
async fn the_thread_ends_with_its_handle() {
    for _ in 0..100 {
        let mut end = End::new();
        end.watch(&[address()], &every(20, 20));
        // The thread has the sender; it is dropped when the thread ends.
        drop(end.thread);
        let closed = timeout(DEADLINE, async { while end.events.recv().await.is_some() {} });
        closed.await.expect("the thread ends");
    }
}

#[tokio::test]
async fn who_leaves_says_that_it_is_on_purpose() {
    let (mut near, far) = pair(&every(20, 20), &every(20, 20)).await;
    timeout(DEADLINE, far.thread.leave()).await.expect("in time").expect("said");
    drop(far);
    let change = near.hear().await.change;
    assert!(matches!(change, BfdChange::Down { cause: DownCause::SwitchedOff, was_up: true, .. }));
}

#[tokio::test]
async fn a_session_that_is_not_wanted_any_more_says_so() {
    let (mut near, mut far) = pair(&every(20, 20), &every(20, 20)).await;
    far.watch(&[], &every(20, 20));
    let change = near.hear().await.change;
    assert!(matches!(change, BfdChange::Down { cause: DownCause::SwitchedOff, .. }), "{change:?}");
    far.until("gone", |view| view.sessions.is_empty()).await;
}

/// The purpose of time stamps: the remote system was never silent, this one did not read.
#[tokio::test]
async fn a_thread_that_did_not_run_hears_what_waited_before_it_judges() {
    // The remote system has a timeout of ten seconds for us, we have 200 ms for it.
    let (mut near, far) = pair(&every(1_000, 20), &every(20, 1_000)).await;
    let detection = Duration::from_millis(200);
    near.until("fast", |view| view.sessions[0].detection_time == Some(detection)).await;
    for _ in 0..3 {
        let heard = near.session().await.counters.control_in;
        let (go_on, waits) = std::sync::mpsc::channel::<()>();
        near.run(move || waits.recv().unwrap());
        // Four times our detection time.
        let said = far.session().await.counters.control_out;
        far.until("45 packets", |view| view.sessions[0].counters.control_out >= said + 45).await;
        go_on.send(()).unwrap();
        let all_heard = |view: &BfdView| view.sessions[0].counters.control_in >= heard + 45;
        let session = near.until("all are heard", all_heard).await.sessions.remove(0);
        let counters = session.counters;
        assert_eq!((session.state, counters.downs), (State::Up, 0), "{session:#?}");
        assert_eq!(counters.detections_put_off, 0, "it had received enough not to need that");
    }
    assert!(near.events.try_recv().is_err(), "nothing happened");
    // And it would have noticed.
    drop(far);
    assert!(matches!(near.hear().await.change, BfdChange::Down { was_up: true, .. }));
}

#[tokio::test]
async fn who_forgot_a_session_for_a_moment_is_told_again_that_it_is_up() {
    let (mut near, far) = pair(&every(20, 20), &every(20, 20)).await;
    let (go_on, waits) = std::sync::mpsc::channel::<()>();
    near.run(move || waits.recv().unwrap());
    near.watch(&[], &every(20, 20));
    near.watch(&[far.address], &every(20, 20));
    go_on.send(()).unwrap();
    assert_eq!(near.hear().await.change, BfdChange::Up);
    let session = near.session().await;
    assert_eq!((session.state, session.counters.downs), (State::Up, 0), "it never was down");
    // Changed settings are not reported as an event.
    near.watch(&[far.address], &every(20, 30));
    near.until("other settings", |view| view.sessions[0].state == State::Up).await;
    assert!(near.events.try_recv().is_err());
}

#[tokio::test]
async fn a_fault_of_ours_is_said_and_bfd_begins_anew() {
    let (mut near, _far) = pair(&every(20, 20), &every(20, 20)).await;
    near.run(|| panic!("a mistake"));
    let view = near.until("ended", |view| view.ended).await;
    assert!(view.trouble[0].contains("a mistake"), "{view:?}");
    assert_eq!((view.sessions.len(), view.sessions[0].state), (1, State::Down));
    let change = near.hear().await.change;
    assert!(matches!(change, BfdChange::Down { cause: DownCause::Unwatched, .. }), "{change:?}");
    assert_eq!(near.hear().await.change, BfdChange::Up);
    assert!(!near.view().await.ended);
}

#[tokio::test]
async fn a_port_that_is_taken_is_said_and_tried_again() {
    let (mut near, mut far) = (End::new(), End::new());
    let port = Port::SingleHop.number() + PORT_OFFSET;
    let other_daemon = UdpSocket::bind((near.address, port)).unwrap();
    near.watch(&[far.address], &every(20, 20));
    far.watch(&[near.address], &every(20, 20));
    let view = near.until("trouble", |view| !view.trouble.is_empty()).await;
    assert!(view.trouble[0].contains("another BFD daemon"), "{view:?}");
    drop(other_daemon);
    assert_eq!(near.hear().await.change, BfdChange::Up);
    assert_eq!(near.view().await.trouble, Vec::<String>::new());
}

//= RFC 5881 §4 MUST: control packets go to port 3784, from one source port of 49152 to 65535 for each session, which SHOULD be its own among the sessions of the system.
//= RFC 5881 §5 MUST: packets leave with a TTL of 255.
#[tokio::test]
async fn packets_leave_with_the_ttl_and_the_source_port_of_their_session() {
    let mut near = End::new();
    let sockets = [(); 3].map(|()| {
        let port = Port::SingleHop.number() + PORT_OFFSET;
        let socket = UdpSocket::bind((address(), port)).unwrap();
        nix::sys::socket::setsockopt(&socket, nix::sys::socket::sockopt::Ipv4RecvTtl, &true)
            .unwrap();
        socket
    });
    let others = sockets.each_ref().map(|socket| match socket.local_addr().unwrap().ip() {
        IpAddr::V4(address) => address,
        IpAddr::V6(_) => panic!("IPv4 was asked for"),
    });
    near.watch(&others, &every(20, 20));
    let mut ports = BTreeSet::new();
    let mut batch = vec![Datagram::empty()];
    for socket in &sockets {
        let mut from = Vec::new();
        while from.len() < 2 {
            if sockopt::receive_datagrams(socket, &mut batch) != Ok(1) {
                tokio::task::yield_now().await;
                continue;
            }
            assert_eq!(Notes::of(&batch[0]).ttl, Some(255));
            assert_eq!(batch[0].payload().unwrap().len(), 24);
            let source = datagram::source(&batch[0]).unwrap();
            assert_eq!(source.ip(), near.address);
            from.push(source.port());
        }
        assert_eq!(from[0], from[1], "a session keeps its port");
        assert!(from[0] >= 49_152);
        ports.insert(from[0]);
    }
    assert_eq!(ports.len(), 3, "no two sessions share one");
}

#[test]
fn the_kernel_says_of_both_families_what_bfd_needs_to_know() {
    for (address, ttl_option) in [("127.0.0.1", 64), ("::1", 64)] {
        let address: IpAddr = address.parse().unwrap();
        let far = UdpSocket::bind((address, 0)).unwrap();
        sockopt::set_network(&far, address, ttl_option).unwrap();
        let near = receive::hearing(std::net::SocketAddr::new(address, 0), None).unwrap();
        let near = UdpSocket::from(near);
        let before = wall_clock();
        far.send_to(&[7; 52], near.local_addr().unwrap()).unwrap();
        far.send_to(&[7; 300], near.local_addr().unwrap()).unwrap();
        let mut batch = vec![Datagram::empty(); 3];
        assert_eq!(sockopt::receive_datagrams(&near, &mut batch), Ok(2));
        assert_eq!(batch[0].payload(), Some(&[7; 52][..]));
        assert_eq!(batch[1].payload(), None, "it is longer than any BFD packet");
        assert_eq!(datagram::source(&batch[0]), far.local_addr().ok());
        let notes = Notes::of(&batch[0]);
        assert_eq!((notes.ttl, notes.destination), (Some(64), Some(address)));
        assert!(notes.interface_index.is_some() && notes.lost.is_none());
        assert!(notes.stamp.unwrap() >= before, "{notes:?}");
    }
}

#[test]
fn an_echo_packet_goes_back_as_if_it_had_been_forwarded() {
    let mut mirror = echo::Mirror::new();
    for address in ["127.0.0.1", "::1", "127.0.0.2"] {
        let address: IpAddr = address.parse().unwrap();
        let hearing = || receive::hearing(std::net::SocketAddr::new(address, 0), None).unwrap();
        let (far, near) = (UdpSocket::from(hearing()), hearing());
        let here = UdpSocket::from(near.try_clone().unwrap()).local_addr().unwrap();
        for said in [&[7; 24][..], &[8; 52]] {
            far.send_to(said, here).unwrap();
            let mut batch = vec![Datagram::empty()];
            assert_eq!(sockopt::receive_datagrams(&near, &mut batch), Ok(1));
            let notes = Notes::of(&batch[0]);
            let arrival = fairway_bfd::Arrival {
                at: fairway_ground::Instant::ZERO,
                source: datagram::source(&batch[0]).unwrap(),
                destination: notes.destination,
                interface_index: notes.interface_index.unwrap(),
                vrf: None,
                ttl: notes.ttl,
                port: Port::Echo,
                bytes: said,
            };
            mirror.send_back(&near, notes, arrival);
            assert_eq!(sockopt::receive_datagrams(&far, &mut batch), Ok(1));
            assert_eq!(batch[0].payload(), Some(said));
            assert_eq!(Notes::of(&batch[0]).ttl, Some(254));
            assert_eq!(datagram::source(&batch[0]), Some(here));
        }
    }
}

#[allow(clippy::disallowed_methods, reason = "it is compared with the kernel's stamps")]
fn wall_clock() -> Duration {
    std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap()
}
