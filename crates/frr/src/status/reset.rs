//! Why a session ended, from FRR's reason number.
//!
//! FRR numbers operator actions, configuration changes, and what a neighbour waits for in one list, and keeps
//! no NOTIFICATION of its own for the first two; here they become the Cease that FRR sends for them. Before
//! the first session, FRR counts what a neighbour waits for as a reset: that is the result of the last
//! attempt.

use fairway_seam::{LastReset, ResetCause, SessionState};

use super::answer::Fields;

/// FRR's numbers.
const ADMINISTRATIVE_SHUTDOWN: u8 = 11;
const USER_RESET: u8 = 12;
const NOTIFICATION_RECEIVED: u8 = 13;
const NOTIFICATION_SENT: u8 = 14;
const PEER_CLOSED: u8 = 15;
const NEIGHBOR_DELETED: u8 = 16;
const PEER_CLOSED_AND_RESTARTS: u8 = 22;
const BFD_DOWN: u8 = 24;
const INTERFACE_DOWN: u8 = 25;
/// What a neighbour waits for: an address, a next hop, a VRF, a family, an OPEN.
const WAITING: std::ops::RangeInclusive<u8> = 26..=32;
/// Too many prefixes.
const PREFIX_COUNT: u8 = 33;
const SOCKET_ERROR: u8 = 34;

/// What FRR says while next hop tracking finds no route to the neighbor, or only the default route.
const NO_ROUTE_8: &str = "Waiting for NHT";
const NO_ROUTE_10: &str = "No path to specified Neighbor";
const NO_ROUTE: &str = "FRR has no route to the neighbor";

/// Cease, with the subcode that FRR sends.
fn cease(subcode: u8) -> ResetCause {
    ResetCause::NotificationSent(6, subcode)
}

/// Code and subcode, as in `060A`.
fn code_and_subcode(neighbor: Fields<'_>) -> Option<(u8, u8)> {
    let both = u16::from_str_radix(neighbor.text("lastErrorCodeSubcode")?, 16).ok()?;
    let [code, subcode] = both.to_be_bytes();
    Some((code, subcode))
}

fn cause(neighbor: Fields<'_>, number: u8) -> ResetCause {
    let notification = code_and_subcode(neighbor);
    let text = || neighbor.text("lastShutdownDescription").map(str::to_owned);
    match (number, notification) {
        (NOTIFICATION_RECEIVED, Some((code, subcode))) => {
            ResetCause::NotificationReceived(code, subcode, text())
        }
        (NOTIFICATION_SENT, Some((code, subcode))) => ResetCause::NotificationSent(code, subcode),
        (ADMINISTRATIVE_SHUTDOWN, _) => cease(2),
        (USER_RESET, _) => cease(4),
        (NEIGHBOR_DELETED, _) => cease(3),
        (BFD_DOWN, _) => cease(10),
        (PREFIX_COUNT, _) => cease(1),
        (PEER_CLOSED | PEER_CLOSED_AND_RESTARTS | SOCKET_ERROR | INTERFACE_DOWN, _) => {
            ResetCause::PeerClosed
        }
        (number, _) if WAITING.contains(&number) => ResetCause::ConnectFailed,
        // All others are configuration changes.
        _ => cease(6),
    }
}

/// FRR's text, with that of the neighbour.
fn text(neighbor: Fields<'_>, number: u8) -> String {
    let due_to = match neighbor.text("lastResetDueTo").unwrap_or("unknown") {
        // Of 8.4, and of 10.3.
        NO_ROUTE_8 | NO_ROUTE_10 => NO_ROUTE,
        due_to => due_to,
    };
    let has_notification = matches!(number, NOTIFICATION_RECEIVED | NOTIFICATION_SENT);
    let reason = neighbor.text("lastNotificationReason").filter(|_| has_notification);
    let text = match reason {
        Some(reason) => format!("{due_to} ({reason})"),
        None => due_to.to_owned(),
    };
    match neighbor.text("lastShutdownDescription").filter(|_| has_notification) {
        Some(said) => format!("{text}: {said}"),
        None => text,
    }
}

/// Why the last session ended, or how the last attempt failed. An established session waits for nothing,
/// whatever it waited for before.
pub(super) fn last_reset(neighbor: Fields<'_>, state: SessionState) -> Option<LastReset> {
    let number = neighbor.number("lastResetCode")?;
    if state == SessionState::Established && WAITING.contains(&number) {
        return None;
    }
    Some(LastReset {
        ago: neighbor.milliseconds("lastResetTimerMsecs").unwrap_or_default(),
        cause: cause(neighbor, number),
        text: text(neighbor, number),
    })
}
