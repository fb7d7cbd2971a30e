//! The state machine of RFC 4271 §8 as it is here: 6 states, 28 events, one line for each cell.
//!
//! Timers by their names here: `connect` and `retry` are the ConnectRetryTimer (while a dial is on
//! its way, and between two dials), `idle` the IdleHoldTimer, `delay` the DelayOpenTimer, `send`
//! the SendHoldTimer of RFC 9687.

use super::fsm::Event::{self, *};
use super::fsm::Outcome::{self, *};
use fairway_seam::SessionState::{self, *};

const PASSIVE: &str = "with PassiveTcpEstablishment nothing is dialled: there is no Connect";
const DAMPED: &str =
    "a start is put off only when the peer has just been made, and then it is Idle";
const KERNEL: &str = "the kernel completes the handshake: what is heard of is event 17";
const LISTENER: &str = "the listener refuses other addresses before any peer gets the event";
const SPOKEN: &str = "with TCP up and no DelayOpenTimer the state is OpenSent";

pub(super) const TABLE: &[(SessionState, Event, Outcome)] = &[
    //= RFC 4271 §8.2.2 MUST: a start in Idle dials and leads to Connect.
    (Idle, ManualStart, Goes(Connect, "", "connect")),
    //= RFC 4271 §8.2.2 MUST: stop events change nothing in Idle.
    (Idle, ManualStop, Goes(Idle, "", "")),
    //+ RFC 4271 §8.2.2: a start in Idle dials and leads to Connect.
    (Idle, AutomaticStart, Goes(Connect, "", "connect")),
    //= RFC 4271 §8.2.2 MUST: a start with PassiveTcpEstablishment in Idle listens and leads to Active.
    (Idle, ManualStartPassive, Goes(Active, "", "")), // Ours: no ConnectRetryTimer, it would dial
    //+ RFC 4271 §8.2.2: a start with PassiveTcpEstablishment in Idle listens and leads to Active.
    (Idle, AutomaticStartPassive, Goes(Active, "", "")),
    (Idle, AutomaticStartDamped, Goes(Idle, "", "idle")),
    (Idle, AutomaticStartDampedPassive, Goes(Idle, "", "idle")),
    //+ RFC 4271 §8.2.2: stop events change nothing in Idle.
    (Idle, AutomaticStop, Goes(Idle, "", "")),
    (Idle, ConnectRetryTimerExpires, Stopped("connect retry")),
    (Idle, HoldTimerExpires, Stopped("hold")),
    (Idle, KeepaliveTimerExpires, Stopped("keepalive")),
    (Idle, DelayOpenTimerExpires, Stopped("delay")),
    (Idle, IdleHoldTimerExpires, Goes(Connect, "", "connect")),
    (Idle, TcpConnectionValid, Never(KERNEL)),
    (Idle, TcpCrInvalid, Never(LISTENER)),
    (Idle, TcpCrAcked, Goes(Idle, "", "idle")), // late news of a dial that was given up
    (Idle, TcpConnectionConfirmed, Goes(OpenSent, "OPEN", "hold idle")), // Ours: see Peer::accept
    (Idle, TcpConnectionFails, Goes(Idle, "", "idle")),
    (Idle, BgpOpen, Goes(Idle, "", "idle")), // late bytes of a connection that is over
    (Idle, BgpOpenWhileDelayed, Stopped("delay")),
    (Idle, BgpHeaderErr, Goes(Idle, "", "idle")),
    (Idle, BgpOpenMsgErr, Goes(Idle, "", "idle")),
    (Idle, OpenCollisionDump, Never("there is no connection that could lose")),
    (Idle, NotifMsgVerErr, Goes(Idle, "", "idle")),
    (Idle, NotifMsg, Goes(Idle, "", "idle")),
    (Idle, KeepAliveMsg, Goes(Idle, "", "idle")),
    (Idle, UpdateMsg, Goes(Idle, "", "idle")),
    (Idle, UpdateMsgErr, Goes(Idle, "", "idle")),
    //
    //= RFC 4271 §8.2.2 MUST: start events change nothing in Connect, Active, OpenSent, OpenConfirm and Established.
    (Connect, ManualStart, Goes(Connect, "", "connect")),
    (Connect, ManualStop, Goes(Idle, "", "")),
    (Connect, AutomaticStart, Goes(Connect, "", "connect")),
    (Connect, ManualStartPassive, Never(PASSIVE)),
    (Connect, AutomaticStartPassive, Never(PASSIVE)),
    (Connect, AutomaticStartDamped, Never(DAMPED)),
    (Connect, AutomaticStartDampedPassive, Never(PASSIVE)),
    (Connect, AutomaticStop, Goes(Idle, "", "")),
    (Connect, ConnectRetryTimerExpires, Goes(Active, "", "retry")), // Ours: a wait before the next
    (Connect, HoldTimerExpires, Stopped("hold")),
    (Connect, KeepaliveTimerExpires, Stopped("keepalive")),
    //= RFC 4271 §8.2.2 MUST: with DelayOpen, TCP that comes up waits for DelayOpenTimer before OPEN is sent.
    //= RFC 4271 §8.2.2 MUST: DelayOpenTimer that expires sends OPEN and leads to OpenSent.
    (Connect, DelayOpenTimerExpires, Goes(OpenSent, "OPEN", "hold")),
    (Connect, IdleHoldTimerExpires, Stopped("idle")),
    (Connect, TcpConnectionValid, Never(KERNEL)),
    (Connect, TcpCrInvalid, Never(LISTENER)),
    //= RFC 4271 §8.2.2 MUST: TCP that comes up is followed by OPEN and OpenSent.
    (Connect, TcpCrAcked, Goes(OpenSent, "OPEN", "hold")),
    //+ RFC 4271 §8.2.2: TCP that comes up is followed by OPEN and OpenSent.
    //+ RFC 4271 §8.2.2: while we dial, a connection that the neighbour opens is accepted.
    (Connect, TcpConnectionConfirmed, Goes(OpenSent, "OPEN", "connect hold")),
    (Connect, TcpConnectionFails, Goes(Active, "", "retry")),
    (Connect, BgpOpen, Never(SPOKEN)),
    //= RFC 4271 §8.2.2 MUST: an OPEN while DelayOpenTimer runs is answered with OPEN and KEEPALIVE and leads to OpenConfirm.
    (Connect, BgpOpenWhileDelayed, Goes(OpenConfirm, "OPEN KEEPALIVE", "hold keepalive")),
    (Connect, BgpHeaderErr, Goes(Idle, "", "idle")), // no NOTIFICATION without an OPEN before it
    (Connect, BgpOpenMsgErr, Goes(Idle, "", "idle")),
    (Connect, OpenCollisionDump, Goes(OpenConfirm, "KEEPALIVE", "hold keepalive")),
    (Connect, NotifMsgVerErr, Goes(Idle, "", "idle")),
    (Connect, NotifMsg, Goes(Idle, "", "idle")),
    (Connect, KeepAliveMsg, Goes(Idle, "", "idle")),
    (Connect, UpdateMsg, Goes(Idle, "", "idle")),
    (Connect, UpdateMsgErr, Goes(Idle, "", "idle")),
    // Ours: a neighbour that dials us and leaves does not put off our own dials, so Active stays Active.
    //+ RFC 4271 §8.2.2: start events change nothing in Connect, Active, OpenSent, OpenConfirm and Established.
    (Active, ManualStart, Goes(Active, "", "retry")),
    (Active, ManualStop, Goes(Idle, "", "")),
    (Active, AutomaticStart, Goes(Active, "", "retry")),
    //+ RFC 4271 §8.2.2: start events change nothing in Connect, Active, OpenSent, OpenConfirm and Established.
    (Active, ManualStartPassive, Goes(Active, "", "")),
    //+ RFC 4271 §8.2.2: start events change nothing in Connect, Active, OpenSent, OpenConfirm and Established.
    (Active, AutomaticStartPassive, Goes(Active, "", "")),
    (Active, AutomaticStartDamped, Never(DAMPED)),
    (Active, AutomaticStartDampedPassive, Never(DAMPED)),
    (Active, AutomaticStop, Goes(Idle, "", "")),
    //= RFC 4271 §8.2.2 MUST: ConnectRetryTimer that expires in Active leads to a new dial and to Connect.
    (Active, ConnectRetryTimerExpires, Goes(Connect, "", "connect")),
    (Active, HoldTimerExpires, Stopped("hold")),
    (Active, KeepaliveTimerExpires, Stopped("keepalive")),
    //+ RFC 4271 §8.2.2: with DelayOpen, TCP that comes up waits for DelayOpenTimer before OPEN is sent.
    //+ RFC 4271 §8.2.2: DelayOpenTimer that expires sends OPEN and leads to OpenSent.
    (Active, DelayOpenTimerExpires, Goes(OpenSent, "OPEN", "hold retry")),
    (Active, IdleHoldTimerExpires, Stopped("idle")),
    (Active, TcpConnectionValid, Never(KERNEL)),
    (Active, TcpCrInvalid, Never(LISTENER)),
    (Active, TcpCrAcked, Goes(Active, "", "retry")), // late news of a dial that was given up
    //+ RFC 4271 §8.2.2: TCP that comes up is followed by OPEN and OpenSent.
    (Active, TcpConnectionConfirmed, Goes(OpenSent, "OPEN", "hold retry")),
    (Active, TcpConnectionFails, Goes(Active, "", "retry")),
    (Active, BgpOpen, Never(SPOKEN)),
    //+ RFC 4271 §8.2.2: an OPEN while DelayOpenTimer runs is answered with OPEN and KEEPALIVE and leads to OpenConfirm.
    (Active, BgpOpenWhileDelayed, Goes(OpenConfirm, "OPEN KEEPALIVE", "hold keepalive retry")),
    (Active, BgpHeaderErr, Goes(Active, "", "retry")),
    (Active, BgpOpenMsgErr, Goes(Active, "", "retry")),
    (Active, OpenCollisionDump, Goes(OpenConfirm, "OPEN KEEPALIVE", "hold keepalive")),
    (Active, NotifMsgVerErr, Goes(Active, "", "retry")),
    (Active, NotifMsg, Goes(Active, "", "retry")),
    (Active, KeepAliveMsg, Goes(Active, "", "retry")),
    (Active, UpdateMsg, Goes(Active, "", "retry")),
    (Active, UpdateMsgErr, Goes(Active, "", "retry")),
    //
    //+ RFC 4271 §8.2.2: start events change nothing in Connect, Active, OpenSent, OpenConfirm and Established.
    (OpenSent, ManualStart, Goes(OpenSent, "", "hold")),
    //= RFC 4271 §8.2.2 MUST: a stop in OpenSent sends Cease and leads to Idle.
    (OpenSent, ManualStop, Goes(Idle, "6/2", "")),
    (OpenSent, AutomaticStart, Goes(OpenSent, "", "hold")),
    //+ RFC 4271 §8.2.2: start events change nothing in Connect, Active, OpenSent, OpenConfirm and Established.
    (OpenSent, ManualStartPassive, Goes(OpenSent, "", "hold")),
    //+ RFC 4271 §8.2.2: start events change nothing in Connect, Active, OpenSent, OpenConfirm and Established.
    (OpenSent, AutomaticStartPassive, Goes(OpenSent, "", "hold")),
    (OpenSent, AutomaticStartDamped, Never(DAMPED)),
    (OpenSent, AutomaticStartDampedPassive, Never(DAMPED)),
    //+ RFC 4271 §8.2.2: a stop in OpenSent sends Cease and leads to Idle.
    (OpenSent, AutomaticStop, Goes(Idle, "6/8", "")),
    (OpenSent, ConnectRetryTimerExpires, Stopped("connect retry")),
    //= RFC 4271 §8.2.2 MUST: the hold timer that expires in OpenSent sends 4/0 and leads to Idle.
    (OpenSent, HoldTimerExpires, Goes(Idle, "4/0", "idle")),
    (OpenSent, KeepaliveTimerExpires, Stopped("keepalive")),
    (OpenSent, DelayOpenTimerExpires, Stopped("delay")),
    (OpenSent, IdleHoldTimerExpires, Stopped("idle")),
    (OpenSent, TcpConnectionValid, Never(KERNEL)),
    (OpenSent, TcpCrInvalid, Never(LISTENER)),
    (OpenSent, TcpCrAcked, Goes(OpenSent, "OPEN", "hold")), // the second of two
    //= RFC 4271 §8.2.2 MUST: a second connection is followed until it has said OPEN.
    (OpenSent, TcpConnectionConfirmed, Goes(OpenSent, "OPEN", "hold")), // the second of two
    (OpenSent, TcpConnectionFails, Goes(Idle, "", "idle")), // Ours: Idle listens as Active does
    //= RFC 4271 §8.2.2 MUST: a good OPEN in OpenSent is answered with KEEPALIVE and leads to OpenConfirm.
    (OpenSent, BgpOpen, Goes(OpenConfirm, "KEEPALIVE", "hold keepalive")),
    (OpenSent, BgpOpenWhileDelayed, Stopped("delay")),
    //= RFC 4271 §8.2.2 MUST: a bad header or OPEN in OpenSent is answered with its NOTIFICATION and leads to Idle.
    (OpenSent, BgpHeaderErr, Goes(Idle, "1/1", "idle")),
    //+ RFC 4271 §8.2.2: a bad header or OPEN in OpenSent is answered with its NOTIFICATION and leads to Idle.
    (OpenSent, BgpOpenMsgErr, Goes(Idle, "2/2", "idle")),
    (OpenSent, OpenCollisionDump, Goes(OpenConfirm, "6/7 KEEPALIVE", "hold keepalive")),
    //= RFC 4271 §8.2.2 MUST: a NOTIFICATION about the version in OpenSent leads to Idle.
    (OpenSent, NotifMsgVerErr, Goes(Idle, "", "idle")),
    (OpenSent, NotifMsg, Goes(Idle, "", "idle")),
    (OpenSent, KeepAliveMsg, Goes(Idle, "5/1:04", "idle")),
    (OpenSent, UpdateMsg, Goes(Idle, "5/1:02", "idle")),
    (OpenSent, UpdateMsgErr, Goes(Idle, "5/1:02", "idle")),
    //
    //+ RFC 4271 §8.2.2: start events change nothing in Connect, Active, OpenSent, OpenConfirm and Established.
    (OpenConfirm, ManualStart, Goes(OpenConfirm, "", "hold keepalive")),
    //= RFC 4271 §8.2.2 MUST: a stop in OpenConfirm sends Cease and leads to Idle.
    (OpenConfirm, ManualStop, Goes(Idle, "6/2", "")),
    (OpenConfirm, AutomaticStart, Goes(OpenConfirm, "", "hold keepalive")),
    //+ RFC 4271 §8.2.2: start events change nothing in Connect, Active, OpenSent, OpenConfirm and Established.
    (OpenConfirm, ManualStartPassive, Goes(OpenConfirm, "", "hold keepalive")),
    //+ RFC 4271 §8.2.2: start events change nothing in Connect, Active, OpenSent, OpenConfirm and Established.
    (OpenConfirm, AutomaticStartPassive, Goes(OpenConfirm, "", "hold keepalive")),
    (OpenConfirm, AutomaticStartDamped, Never(DAMPED)),
    (OpenConfirm, AutomaticStartDampedPassive, Never(DAMPED)),
    //+ RFC 4271 §8.2.2: a stop in OpenConfirm sends Cease and leads to Idle.
    (OpenConfirm, AutomaticStop, Goes(Idle, "6/8", "")),
    (OpenConfirm, ConnectRetryTimerExpires, Stopped("connect retry")),
    //= RFC 4271 §8.2.2 MUST: the hold timer that expires in OpenConfirm sends 4/0 and leads to Idle.
    (OpenConfirm, HoldTimerExpires, Goes(Idle, "4/0", "idle")),
    //= RFC 4271 §8.2.2 MUST: KeepaliveTimer that expires in OpenConfirm sends KEEPALIVE and starts again.
    (OpenConfirm, KeepaliveTimerExpires, Goes(OpenConfirm, "KEEPALIVE", "hold keepalive")),
    (OpenConfirm, DelayOpenTimerExpires, Stopped("delay")),
    (OpenConfirm, IdleHoldTimerExpires, Stopped("idle")),
    (OpenConfirm, TcpConnectionValid, Never(KERNEL)),
    (OpenConfirm, TcpCrInvalid, Never(LISTENER)),
    (OpenConfirm, TcpCrAcked, Goes(OpenConfirm, "OPEN", "hold keepalive")),
    //+ RFC 4271 §8.2.2: a second connection is followed until it has said OPEN.
    (OpenConfirm, TcpConnectionConfirmed, Goes(OpenConfirm, "OPEN", "hold keepalive")),
    //= RFC 4271 §8.2.2 MUST: TCP that fails or a NOTIFICATION in OpenConfirm leads to Idle.
    (OpenConfirm, TcpConnectionFails, Goes(Idle, "", "idle")),
    (OpenConfirm, BgpOpen, Goes(Idle, "5/2:01", "idle")), // a second OPEN on one connection
    (OpenConfirm, BgpOpenWhileDelayed, Stopped("delay")),
    //= RFC 4271 §8.2.2 MUST: a bad header in OpenConfirm is answered with its NOTIFICATION and leads to Idle.
    (OpenConfirm, BgpHeaderErr, Goes(Idle, "1/1", "idle")),
    (OpenConfirm, BgpOpenMsgErr, Goes(Idle, "5/2:01", "idle")), // unexpected, whatever it says
    (OpenConfirm, OpenCollisionDump, Goes(OpenConfirm, "6/7 KEEPALIVE", "hold keepalive")),
    //+ RFC 4271 §8.2.2: TCP that fails or a NOTIFICATION in OpenConfirm leads to Idle.
    (OpenConfirm, NotifMsgVerErr, Goes(Idle, "", "idle")),
    //+ RFC 4271 §8.2.2: TCP that fails or a NOTIFICATION in OpenConfirm leads to Idle.
    (OpenConfirm, NotifMsg, Goes(Idle, "", "idle")),
    //+ RFC 4271 §8.2.2: KEEPALIVE in OpenConfirm restarts the hold timer and leads to Established.
    //= RFC 9687 §4.3 MUST: KEEPALIVE in OpenConfirm starts the send hold timer.
    (OpenConfirm, KeepAliveMsg, Goes(Established, "UPDATE", "hold keepalive send")),
    (OpenConfirm, UpdateMsg, Goes(Idle, "5/2:02", "idle")),
    (OpenConfirm, UpdateMsgErr, Goes(Idle, "5/2:02", "idle")),
    //
    //+ RFC 4271 §8.2.2: start events change nothing in Connect, Active, OpenSent, OpenConfirm and Established.
    (Established, ManualStart, Goes(Established, "", "hold keepalive send")),
    //= RFC 4271 §8.2.2 MUST: a stop in Established sends Cease and leads to Idle.
    //= RFC 9687 §4.3 MUST: the send hold timer ends with Established.
    (Established, ManualStop, Goes(Idle, "6/2", "")),
    (Established, AutomaticStart, Goes(Established, "", "hold keepalive send")),
    //+ RFC 4271 §8.2.2: start events change nothing in Connect, Active, OpenSent, OpenConfirm and Established.
    (Established, ManualStartPassive, Goes(Established, "", "hold keepalive send")),
    //+ RFC 4271 §8.2.2: start events change nothing in Connect, Active, OpenSent, OpenConfirm and Established.
    (Established, AutomaticStartPassive, Goes(Established, "", "hold keepalive send")),
    (Established, AutomaticStartDamped, Never(DAMPED)),
    (Established, AutomaticStartDampedPassive, Never(DAMPED)),
    //+ RFC 4271 §8.2.2: a stop in Established sends Cease and leads to Idle.
    (Established, AutomaticStop, Goes(Idle, "6/8", "")),
    (Established, ConnectRetryTimerExpires, Stopped("connect retry")),
    //+ RFC 4271 §6.5: silence for the hold time is answered with Hold Timer Expired, 4/0, and the end.
    //+ RFC 9687 §4.3: the send hold timer ends with Established.
    (Established, HoldTimerExpires, Goes(Idle, "4/0", "idle")),
    //= RFC 4271 §8.2.2 MUST: KeepaliveTimer that expires in Established sends KEEPALIVE and starts again.
    (Established, KeepaliveTimerExpires, Goes(Established, "KEEPALIVE", "hold keepalive send")),
    (Established, DelayOpenTimerExpires, Stopped("delay")),
    (Established, IdleHoldTimerExpires, Stopped("idle")),
    (Established, TcpConnectionValid, Never(KERNEL)),
    (Established, TcpCrInvalid, Never(LISTENER)),
    (Established, TcpCrAcked, Goes(Established, "", "hold keepalive send")),
    //+ RFC 4271 §6.8: a new connection is closed when the session is Established.
    (Established, TcpConnectionConfirmed, Goes(Established, "6/7", "hold keepalive send")),
    //= RFC 4271 §8.2.2 MUST: TCP that fails or a NOTIFICATION in Established leads to Idle.
    //+ RFC 9687 §4.3: the send hold timer ends with Established.
    (Established, TcpConnectionFails, Goes(Idle, "", "idle")),
    (Established, BgpOpen, Goes(Idle, "5/3:01", "idle")),
    (Established, BgpOpenWhileDelayed, Stopped("delay")),
    (Established, BgpHeaderErr, Goes(Idle, "1/1", "idle")),
    (Established, BgpOpenMsgErr, Goes(Idle, "5/3:01", "idle")), // unexpected, whatever it says
    (Established, OpenCollisionDump, Never("CollisionDetectEstablishedState is not offered")),
    //+ RFC 4271 §8.2.2: TCP that fails or a NOTIFICATION in Established leads to Idle.
    (Established, NotifMsgVerErr, Goes(Idle, "", "idle")),
    //+ RFC 4271 §8.2.2: TCP that fails or a NOTIFICATION in Established leads to Idle.
    //+ RFC 9687 §4.3: the send hold timer ends with Established.
    (Established, NotifMsg, Goes(Idle, "", "idle")),
    (Established, KeepAliveMsg, Goes(Established, "", "hold keepalive send")),
    (Established, UpdateMsg, Goes(Established, "", "hold keepalive send")),
    //= RFC 4271 §8.2.2 MUST: a bad UPDATE in Established is answered with its NOTIFICATION and leads to Idle.
    //+ RFC 9687 §4.3: the send hold timer ends with Established.
    (Established, UpdateMsgErr, Goes(Idle, "3/1", "idle")),
];
