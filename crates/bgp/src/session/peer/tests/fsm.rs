//! Plays every cell of [`super::fsm_table`] on a real peer.

use super::fsm_table::TABLE;
use super::scripted::Scripted;
use super::*;
use fairway_seam::SessionState as S;

/// The events of RFC 4271 §8.1, in its order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Event {
    ManualStart = 1,
    ManualStop,
    AutomaticStart,
    ManualStartPassive,
    AutomaticStartPassive,
    AutomaticStartDamped,
    AutomaticStartDampedPassive,
    AutomaticStop,
    ConnectRetryTimerExpires,
    HoldTimerExpires,
    KeepaliveTimerExpires,
    DelayOpenTimerExpires,
    IdleHoldTimerExpires,
    TcpConnectionValid,
    TcpCrInvalid,
    TcpCrAcked,
    TcpConnectionConfirmed,
    TcpConnectionFails,
    BgpOpen,
    BgpOpenWhileDelayed,
    BgpHeaderErr,
    BgpOpenMsgErr,
    OpenCollisionDump,
    NotifMsgVerErr,
    NotifMsg,
    KeepAliveMsg,
    UpdateMsg,
    UpdateMsgErr,
}

/// What a cell says.
#[derive(Debug, Clone, Copy)]
pub(super) enum Outcome {
    /// The next state, what is sent, which timers run then.
    Goes(SessionState, &'static str, &'static str),
    /// The event is the end of a timer, and none of these runs in this state.
    Stopped(&'static str),
    /// The event does not exist here, and why.
    Never(&'static str),
}

/// Of us and of the neighbour: below and above ours.
const ROUTER_ID: u32 = 5;
const SMALLER: u32 = 2;
const LARGER: u32 = 9;

fn settings(delay_open_time: Option<Duration>) -> PeerConfig {
    PeerConfig {
        router_id: RouterId::new(ROUTER_ID).unwrap(),
        families: FamilySet::only(AddressFamily::Ipv4Unicast),
        delay_open_time,
        ..config(65001, 65002, 1)
    }
}

/// The neighbour's OPEN.
fn open_from(asn: u32, router_id: u32) -> Bytes {
    let open = Open {
        asn,
        hold_time: HoldTime::from_seconds(9).unwrap(),
        router_id: RouterId::new(router_id).unwrap(),
        capabilities: vec![crate::wire::Capability::FourOctetAs(asn)],
    };
    open.encode()
}

fn open() -> Bytes {
    open_from(65002, LARGER)
}

fn passive() -> PeerConfig {
    PeerConfig { passive: true, ..settings(None) }
}

/// A peer that is not dialled, in `state`.
fn arrange_passive(state: S) -> (Scripted, ConnectionId) {
    let mut scripted = Scripted::new(passive());
    scripted.handle(super::Event::Tick);
    if state == S::Active {
        return (scripted, ConnectionId::default());
    }
    let id = scripted.accept();
    let messages = [open(), keepalive()];
    let count = usize::from(state > S::OpenSent) + usize::from(state > S::OpenConfirm);
    messages.iter().take(count).for_each(|message| scripted.receive(id, message));
    (scripted, id)
}

/// Brings a peer into `state` by the shortest way that lets `event` happen; the connection is the
/// one that the event is about.
fn arrange(state: S, event: Event) -> (Scripted, ConnectionId) {
    let is_message = event >= Event::BgpOpen && event != Event::OpenCollisionDump;
    let waits_for_open = matches!(state, S::Connect | S::Active)
        && (is_message
            || event == Event::DelayOpenTimerExpires
            || (state, event) == (S::Active, Event::TcpConnectionFails));
    // Shorter than any wait between two dials, so that it ends first.
    let delay = waits_for_open.then_some(Duration::from_millis(500));
    let mut scripted = Scripted::new(settings(delay));
    let id = match (state, event) {
        (S::OpenSent | S::OpenConfirm | S::Established, Event::TcpCrAcked) => {
            return arrange_late_dial(state);
        }
        (state, Event::ManualStartPassive | Event::AutomaticStartPassive) if state > S::Connect => {
            return arrange_passive(state);
        }
        (S::Active, Event::OpenCollisionDump) => {
            scripted.peer.config.delay_open_time = Some(seconds(3));
            scripted.peer.postpone(Instant::ZERO + seconds(1));
            scripted.peer.idle_hold = false;
            scripted.accept()
        }
        (S::Unknown | S::Idle, _) => {
            let id = scripted.dial_and_connect();
            scripted.handle(super::Event::Closed(id, None));
            id
        }
        (S::Connect, _) if !waits_for_open => scripted.dial(),
        (S::Connect, _) => scripted.dial_and_connect(),
        (S::Active, _) => {
            let id = scripted.dial();
            scripted.handle(super::Event::ConnectFailed(id, "refused".to_owned()));
            if waits_for_open { scripted.accept() } else { id }
        }
        (S::OpenSent | S::OpenConfirm | S::Established, _) => {
            let id = scripted.dial_and_connect();
            let messages = [open(), keepalive()];
            let count = usize::from(state > S::OpenSent) + usize::from(state > S::OpenConfirm);
            messages.iter().take(count).for_each(|message| scripted.receive(id, message));
            id
        }
    };
    (scripted, id)
}

/// The neighbour's connection is in `state` while a dial of ours is on its way.
fn arrange_late_dial(state: S) -> (Scripted, ConnectionId) {
    let mut scripted = Scripted::new(settings(None));
    let accepted = scripted.accept();
    if state == S::Established {
        // This dial is given up when the other connection gets its OPEN.
        let dialled = scripted.dial();
        [open(), keepalive()].iter().for_each(|message| scripted.receive(accepted, message));
        return (scripted, dialled);
    }
    if state == S::OpenConfirm {
        scripted.receive(accepted, &open());
    }
    let dialled = scripted.dial();
    (scripted, dialled)
}

/// Lets `event` happen to connection `id`.
fn play(scripted: &mut Scripted, state: S, event: Event, id: ConnectionId) {
    use super::Event as E;
    let now = scripted.now;
    let message = |kind, body: &[u8]| framed(kind, body).unwrap();
    match event {
        Event::ManualStart if state == S::Idle => {
            *scripted = Scripted::new(settings(None));
            scripted.dial();
        }
        Event::AutomaticStart if state == S::Idle => {
            let changed = PeerConfig { port: 1179, ..settings(None) };
            scripted.peer.reconfigure(now, changed);
            scripted.dial();
        }
        Event::ManualStartPassive if state == S::Idle => *scripted = Scripted::new(passive()),
        Event::AutomaticStartPassive if state == S::Idle => {
            scripted.peer.reconfigure(now, PeerConfig { port: 1179, ..passive() });
        }
        Event::AutomaticStartDampedPassive => {
            *scripted = Scripted::new(passive());
            scripted.peer.postpone(scripted.now + seconds(30));
        }
        Event::ManualStartPassive | Event::AutomaticStartPassive => {
            scripted.peer.reconfigure(now, passive());
        }
        // Starting a peer that runs already changes nothing.
        Event::ManualStart | Event::AutomaticStart => {
            scripted.peer.reconfigure(now, settings(None));
            scripted.handle(E::Tick);
        }
        Event::AutomaticStartDamped => scripted.peer.postpone(now + seconds(30)),
        Event::ManualStop => {
            scripted.peer.stop(now, cease::ADMINISTRATIVE_SHUTDOWN, "shut down by the operator");
        }
        Event::AutomaticStop => scripted.peer.stop(now, cease::OUT_OF_RESOURCES, "no memory"),
        Event::ConnectRetryTimerExpires if state == S::Connect => scripted.expire("connect"),
        Event::ConnectRetryTimerExpires => scripted.expire("retry"),
        Event::HoldTimerExpires => scripted.expire("hold"),
        Event::KeepaliveTimerExpires => scripted.expire("keepalive"),
        Event::DelayOpenTimerExpires => scripted.expire("delay"),
        Event::IdleHoldTimerExpires => scripted.expire("idle"),
        Event::TcpCrAcked => scripted.handle(E::Connected(id, ends(1))),
        Event::TcpConnectionConfirmed => drop(scripted.accept()),
        Event::TcpConnectionFails if state == S::Connect => {
            scripted.handle(E::ConnectFailed(id, "no route".to_owned()));
        }
        Event::TcpConnectionFails => scripted.handle(E::Closed(id, Some("reset".to_owned()))),
        Event::BgpOpen | Event::BgpOpenWhileDelayed => scripted.receive(id, &open()),
        Event::BgpHeaderErr => scripted.receive(id, &[0; 19]),
        Event::BgpOpenMsgErr => scripted.receive(id, &open_from(65099, LARGER)),
        Event::OpenCollisionDump => collide(scripted, state, id),
        Event::NotifMsgVerErr => scripted.receive(id, &message(MessageType::Notification, &[2, 1])),
        Event::NotifMsg => scripted.receive(id, &message(MessageType::Notification, &[6, 4])),
        Event::KeepAliveMsg => scripted.receive(id, &keepalive()),
        Event::UpdateMsg => scripted.receive(id, &message(MessageType::Update, &[0; 4])),
        Event::UpdateMsgErr => {
            scripted.receive(id, &message(MessageType::Update, &[0, 9, 0, 0]));
        }
        Event::TcpConnectionValid | Event::TcpCrInvalid => panic!("{event:?} does not exist here"),
    }
    scripted.handle(E::Tick);
}

/// The other connection gets its OPEN, and `loser` is the one to go.
fn collide(scripted: &mut Scripted, state: S, loser: ConnectionId) {
    let (winner, router_id) = if state == S::Active {
        scripted.now = scripted.now + seconds(1);
        (scripted.dial_and_connect(), SMALLER)
    } else {
        (scripted.accept(), LARGER)
    };
    scripted.said();
    scripted.receive(winner, &open_from(65002, router_id));
    assert!(scripted.has_closed(loser) && !scripted.has_closed(winner));
}

#[test]
fn the_table_has_every_cell_once() {
    let mut cells: Vec<_> = TABLE.iter().map(|(state, event, _)| (*state, *event)).collect();
    assert!(cells.is_sorted(), "in the order of the RFC");
    cells.dedup();
    assert_eq!((cells.len(), TABLE.len()), (6 * 28, 6 * 28));
}

#[test]
fn every_state_answers_every_event_as_the_table_says() {
    for (state, event, outcome) in TABLE {
        let cell = format!("{state:?} × {} {event:?}", *event as u8);
        let (mut scripted, id) = arrange(*state, *event);
        assert_eq!(scripted.peer.state(), *state, "{cell}: arranged");
        scripted.said();
        match outcome {
            Outcome::Goes(next, sent, timers) => {
                play(&mut scripted, *state, *event, id);
                let seen = (scripted.peer.state(), scripted.said(), scripted.timers());
                assert_eq!(seen, (*next, (*sent).to_owned(), (*timers).to_owned()), "{cell}");
                let next = scripted.peer.next_deadline();
                assert!(next.is_none_or(|next| next > scripted.now), "{cell}: nothing is overdue");
            }
            Outcome::Stopped(stopped) => {
                let running = scripted.timers();
                let runs = |timer| running.split(' ').any(|name| name == timer);
                assert!(!stopped.split(' ').any(runs), "{cell}: {running:?} run");
            }
            Outcome::Never(why) => assert!(why.len() > 20, "{cell}: a reason is a sentence"),
        }
    }
}
