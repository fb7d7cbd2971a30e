//! The state machine of RFC 5880 §6.2 and §6.8.6: every state with every event.

use super::*;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Happens {
    Hears(State),
    DetectionTimeExpires,
    EchoFails,
    IsDisabled,
    IsEnabled,
}

use Happens::{DetectionTimeExpires, EchoFails, Hears, IsDisabled, IsEnabled};
use State::{AdminDown, Down, Init, Up};

const TIMEOUT: Diagnostic = Diagnostic::CONTROL_DETECTION_TIME_EXPIRED;
const SIGNALED: Diagnostic = Diagnostic::NEIGHBOR_SIGNALED_SESSION_DOWN;
const ADMIN: Diagnostic = Diagnostic::ADMINISTRATIVELY_DOWN;
const ECHO: Diagnostic = Diagnostic::ECHO_FUNCTION_FAILED;

/// State and event, the next state, and the diagnostic if it changes.
const TABLE: [(State, Happens, State, Option<Diagnostic>); 31] = [
    (Down, Hears(AdminDown), Down, None),
    (Down, Hears(Down), Init, None),
    (Down, Hears(Init), Up, Some(Diagnostic::NONE)),
    (Down, Hears(Up), Down, None),
    (Down, DetectionTimeExpires, Down, None),
    (Down, IsDisabled, AdminDown, Some(ADMIN)),
    (Down, IsEnabled, Down, None),
    (Init, Hears(AdminDown), Down, Some(SIGNALED)),
    (Init, Hears(Down), Init, None),
    (Init, Hears(Init), Up, Some(Diagnostic::NONE)),
    (Init, Hears(Up), Up, Some(Diagnostic::NONE)),
    (Init, DetectionTimeExpires, Down, Some(TIMEOUT)),
    (Init, IsDisabled, AdminDown, Some(ADMIN)),
    (Init, IsEnabled, Init, None),
    (Up, Hears(AdminDown), Down, Some(SIGNALED)),
    (Up, Hears(Down), Down, Some(SIGNALED)),
    (Up, Hears(Init), Up, None),
    (Up, Hears(Up), Up, None),
    (Up, DetectionTimeExpires, Down, Some(TIMEOUT)),
    (Up, EchoFails, Down, Some(ECHO)),
    (Up, IsDisabled, AdminDown, Some(ADMIN)),
    (Up, IsEnabled, Up, None),
    (AdminDown, Hears(AdminDown), AdminDown, None),
    (AdminDown, Hears(Down), AdminDown, None),
    (AdminDown, Hears(Init), AdminDown, None),
    (AdminDown, Hears(Up), AdminDown, None),
    (AdminDown, DetectionTimeExpires, AdminDown, None),
    (AdminDown, IsDisabled, AdminDown, None),
    (AdminDown, IsEnabled, Down, Some(Diagnostic::NONE)),
    // Echo packets are sent only while up, so that they cannot fail in other states.
    (Down, EchoFails, Down, None),
    (Init, EchoFails, Init, None),
];

/// A session that reached this state in a regular way, and its diagnostic.
fn in_state(state: State) -> Session {
    let echo_interval = Some(ms(50));
    let mut session = session(BfdSettings { echo_interval, ..settings(100, 100, 3) });
    match state {
        Down => hear(&mut session, at(0), &says(AdminDown)),
        Init => hear(&mut session, at(0), &says(Down)),
        Up => hear_up(&mut session),
        AdminDown => {
            hear_up(&mut session);
            session.disable(at(0));
        }
    }
    sent(&mut session, at(0));
    while session.poll_event().is_some() {}
    assert_eq!(session.state(), state);
    session
}

fn hear_up(session: &mut Session) {
    hear(session, at(0), &says(Down));
    let willing = ControlPacket { required_min_echo_rx_interval: 50_000, ..says(Init) };
    hear(session, at(0), &willing);
    // Its first echo packet comes back.
    let mut bytes = [0; PACKET_LENGTH_BYTES_MAX];
    while let Some(written) = session.poll_transmit(at(0), &mut bytes) {
        if written.echo {
            let packet = crate::echo::EchoPacket::decode(&bytes[..written.length]).unwrap();
            session.receive_echo(at(1), at(1), &packet).unwrap();
        }
    }
}

fn make_happen(session: &mut Session, happens: Happens) {
    match happens {
        Hears(state) => {
            let packet = says(state);
            let result = session.receive(at(2), at(2), &packet, &packet.encode(0));
            let is_off = session.state() == AdminDown;
            assert_eq!(result, if is_off { Err(Dropped::AdminDown) } else { Ok(()) });
        }
        DetectionTimeExpires => {
            session.echo = Echo::default();
            session.expire(at(60_000), None);
        }
        EchoFails => session.expire(at(152), None), // The control packets have a longer timeout.
        IsDisabled => session.disable(at(2)),
        IsEnabled => session.enable(at(2)),
    }
}

//= RFC 5880 §6.2 MUST: the state follows from the states that both ends signal.
//= RFC 5880 §6.8.6 MUST: a received state moves the session as the table of the text says.
//= RFC 5880 §6.8.4 MUST: a detection time without a packet moves Init and Up to Down, diagnostic 1.
//= RFC 5880 §6.8.5 MUST: missing echo packets move Up to Down, diagnostic 2.
//= RFC 5880 §6.8.16 MUST: an operator moves a session to AdminDown, and back to Down.
#[test]
fn every_state_and_everything_that_can_happen() {
    for (from, happens, to, diagnostic) in TABLE {
        let mut session = in_state(from);
        let before = session.diagnostic;
        make_happen(&mut session, happens);
        let expected = (to, diagnostic.unwrap_or(before));
        let case = format!("{from} {happens:?}");
        assert_eq!((session.state, session.diagnostic), expected, "{case}");
        // Users are notified if it concerns them.
        let event = session.poll_event();
        match (from, to) {
            (Down | Init, Up) => assert_eq!(event, Some(BfdChange::Up), "{case}"),
            (Up, Down) => {
                assert!(matches!(event, Some(BfdChange::Down { was_up: true, .. })), "{case}");
            }
            (Init, Down) => {
                assert!(matches!(event, Some(BfdChange::Down { was_up: false, .. })), "{case}");
            }
            (Down, Down) if happens == DetectionTimeExpires => {
                let gone = Some(BfdChange::Down {
                    cause: DownCause::Failed,
                    diagnostic: before,
                    remote_control_plane_independent: false,
                    was_up: false,
                });
                assert_eq!(event, gone, "it is not shut down any more: {case}");
            }
            _ => assert_eq!(event, None, "{case}"),
        }
        // A change is sent at once.
        let packets = sent(&mut session, at(60_000).min(at(153)));
        if from != to {
            assert_eq!(packets.first().map(|packet| packet.state), Some(to), "{case}");
        }
    }
}

#[test]
fn the_table_is_whole() {
    let hears = State::ALL.map(Hears);
    let others = [DetectionTimeExpires, IsDisabled, IsEnabled];
    for from in State::ALL {
        for happens in hears.into_iter().chain(others) {
            let rows = TABLE.iter().filter(|row| (row.0, row.1) == (from, happens));
            assert_eq!(rows.count(), 1, "{from} {happens:?}");
        }
    }
}

//= RFC 5880 §6.8.1 MUST: bfd.SessionState is Down, bfd.RemoteDiscr and bfd.LocalDiag zero at first.
#[test]
fn a_session_begins_down_and_knows_nobody() {
    let mut session = session(settings(100, 100, 3));
    let packets = sent(&mut session, at(0));
    let [packet] = packets.as_slice() else { panic!("{packets:?}") };
    assert_eq!((packet.state, packet.diagnostic), (Down, Diagnostic::NONE));
    assert_eq!((packet.my_discriminator.get(), packet.your_discriminator), (US, 0));
    assert!(!packet.poll && !packet.is_final && !packet.demand);
    assert!(!packet.control_plane_independent && !packet.authentication_present);
    assert_eq!(packet.desired_min_tx_interval, 1_000_000);
    assert_eq!(packet.required_min_rx_interval, 100_000);
    assert_eq!(packet.required_min_echo_rx_interval, 0);
}

#[test]
fn a_neighbour_that_began_anew_is_noticed_at_once() {
    let mut session = up(settings(100, 100, 3));
    let restarted = ControlPacket {
        my_discriminator: NonZeroU32::new(7).unwrap(),
        your_discriminator: 0,
        ..says(Down)
    };
    hear(&mut session, at(10), &restarted);
    assert_eq!(session.state(), Down);
    assert_eq!(sent(&mut session, at(10))[0].your_discriminator, 7);
    hear(&mut session, at(20), &restarted);
    assert_eq!(session.state(), Init);
}

#[test]
fn no_going_down_is_lost_and_no_short_coming_up_is_told() {
    let mut session = up(settings(100, 100, 3));
    let down = ControlPacket { control_plane_independent: true, ..says(Down) };
    for state in [Down, Down, Init, Down, Down, Init] {
        hear(&mut session, at(10), &ControlPacket { state, ..down });
    }
    let lost = BfdChange::Down {
        cause: DownCause::BeganAnew,
        diagnostic: SIGNALED,
        remote_control_plane_independent: true,
        was_up: true,
    };
    assert_eq!(session.poll_event(), Some(lost));
    assert_eq!(session.poll_event(), Some(BfdChange::Up));
    assert_eq!(session.poll_event(), None);
}

fn cause(change: BfdChange) -> Option<DownCause> {
    match change {
        BfdChange::Down { cause, .. } => Some(cause),
        BfdChange::Up => None,
    }
}

#[test]
fn what_failed_stays_so_whatever_is_said_before_it_is_told() {
    let lost = Diagnostic::CONTROL_DETECTION_TIME_EXPIRED;
    // First what ends an established session, and then what is read directly after it.
    let stories = [
        (vec![says(AdminDown)], DownCause::SwitchedOff),
        (vec![says(Down)], DownCause::BeganAnew),
        (vec![ControlPacket { diagnostic: lost, ..says(Down) }], DownCause::Failed),
        (
            vec![ControlPacket { diagnostic: lost, ..says(Down) }, says(AdminDown)],
            DownCause::Failed,
        ),
        (
            vec![ControlPacket { diagnostic: lost, ..says(Down) }, says(Init), says(AdminDown)],
            DownCause::Failed,
        ),
        (
            vec![says(Down), says(Init), ControlPacket { diagnostic: lost, ..says(Down) }],
            DownCause::Failed,
        ),
    ];
    for (number, (packets, expected)) in stories.into_iter().enumerate() {
        let mut session = up(settings(100, 100, 3));
        for packet in &packets {
            hear(&mut session, at(10), packet);
        }
        // And then it is silent for longer than any timeout.
        session.expire(at(60_000), None);
        let event = session.poll_event();
        assert_eq!(event.and_then(cause), Some(expected), "{number}: {event:?}");
    }
}

#[test]
fn an_operator_at_the_other_end_is_told_as_one() {
    let mut session = up(settings(100, 100, 3));
    hear(&mut session, at(10), &says(AdminDown));
    let event = session.poll_event();
    let is_wished = |change| cause(change) == Some(DownCause::SwitchedOff);
    assert!(event.is_some_and(is_wished));
    hear(&mut session, at(20), &says(AdminDown));
    assert_eq!(session.poll_event(), None, "once");
    // Also for a session that was not up.
    let mut other = super::session(settings(100, 100, 3));
    hear(&mut other, at(10), &says(AdminDown));
    assert!(other.poll_event().is_some_and(is_wished));
}
