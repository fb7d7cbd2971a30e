//! Why the last session ended, in FRR's words.
//!
//! FRR counts the wait for the first connection as a reset; here there is none before an attempt has failed.
//! An attempt that TCP refused corresponds to FRR's wait for an OPEN that never comes.

use fairway_seam::notification::{self, cease};
use fairway_seam::{LastReset, PeerView, ResetCause};

use super::object::Object;
use super::time::{clock, milliseconds};

/// Cease / Hard Reset (RFC 8538 §3): nothing may be kept.
const HARD_RESET: (u8, u8) = (6, 9);

/// Actions of the operator: FRR names the action instead of the Cease that it sends.
const BY_THE_OPERATOR: [(ResetCause, &str, u8); 2] = [
    (ResetCause::NotificationSent(6, cease::ADMINISTRATIVE_SHUTDOWN), "Admin. shutdown", 11),
    (ResetCause::NotificationSent(6, cease::ADMINISTRATIVE_RESET), "User reset", 12),
];

fn by_the_operator(cause: &ResetCause) -> Option<(&'static str, u8)> {
    let found = BY_THE_OPERATOR.iter().find(|(it, ..)| it == cause);
    found.map(|(_, name, number)| (*name, *number))
}

/// The name and number that FRR gives to a cause.
fn due_to(cause: &ResetCause) -> (&'static str, u8) {
    by_the_operator(cause).unwrap_or(match cause {
        ResetCause::NotificationReceived(..) => ("BGP Notification received", 13),
        ResetCause::NotificationSent(..) => ("BGP Notification send", 14),
        ResetCause::PeerClosed => ("Peer closed the session", 15),
        // FRR has a number for each setting; this is the one for settings carried in the OPEN.
        ResetCause::Left => ("Capability changed", 19),
        ResetCause::ConnectFailed => ("Waiting for peer OPEN", 32),
    })
}

/// The same for the end of the last session of `peer`: FRR has a separate name for one with its routes kept.
fn due_to_of(peer: &PeerView, cause: &ResetCause) -> (&'static str, u8) {
    match cause {
        ResetCause::PeerClosed if peer.stale.is_some() => ("NSF peer closed the session", 22),
        _ => due_to(cause),
    }
}

/// FRR's name and number for why there is no session. Before a first attempt has failed, that is the wait for
/// the other side, unless there is no side to wait for.
pub(super) fn reason_of_absence(peer: &PeerView) -> (&'static str, u8) {
    if peer.config.shutdown.is_some() {
        return due_to(&ResetCause::NotificationSent(6, cease::ADMINISTRATIVE_SHUTDOWN));
    }
    let cause = peer.last_reset.as_ref().map(|reset| &reset.cause);
    due_to_of(peer, cause.unwrap_or(&ResetCause::ConnectFailed))
}

/// A NOTIFICATION that ended the session.
struct Ending<'a> {
    direction: &'static str,
    code: u8,
    subcode: u8,
    text: Option<&'a str>,
}

impl Ending<'_> {
    /// FRR's words. FRR states explicitly that a Cease has no subcode.
    fn reason(&self) -> String {
        let (code, subcode) = (self.code, self.subcode);
        let reason = notification::reason(code, subcode);
        if (code, subcode) == (6, 0) { format!("{reason}/Unspecific") } else { reason }
    }

    fn is_hard_reset(&self) -> bool {
        (self.code, self.subcode) == HARD_RESET
    }
}

fn ending(reset: &LastReset) -> Option<Ending<'_>> {
    match &reset.cause {
        cause if by_the_operator(cause).is_some() => None,
        ResetCause::NotificationSent(code, subcode) => {
            Some(Ending { direction: "sent", code: *code, subcode: *subcode, text: None })
        }
        ResetCause::NotificationReceived(code, subcode, text) => Some(Ending {
            direction: "received",
            code: *code,
            subcode: *subcode,
            text: text.as_deref(),
        }),
        ResetCause::PeerClosed | ResetCause::Left | ResetCause::ConnectFailed => None,
    }
}

/// The `last...` fields; `lastNotification` and `lastErrorText` are ours.
pub(super) fn json(peer: &PeerView) -> Object {
    let Some(reset) = &peer.last_reset else {
        return Object::new().field("lastReset", "never");
    };
    let (name, number) = due_to_of(peer, &reset.cause);
    let ending = ending(reset);
    let mut object = Object::new().field("lastResetTimerMsecs", milliseconds(reset.ago));
    if let Some(ending) = &ending {
        object = object
            .field("lastErrorCodeSubcode", format!("{:02X}{:02X}", ending.code, ending.subcode))
            .field("lastNotificationReason", ending.reason())
            .field("lastNotificationHardReset", ending.is_hard_reset())
            .optional("lastShutdownDescription", ending.text);
    }
    let notification = ending.map(|it| {
        Object::new()
            .field("direction", it.direction)
            .field("code", it.code)
            .field("subcode", it.subcode)
            .field("reason", it.reason())
            .optional("text", it.text)
    });
    object
        .field("lastResetDueTo", name)
        .field("lastResetCode", number)
        .optional("lastNotification", notification)
        .field("lastErrorText", reset.text.as_str())
}

/// The line, or lines, on the last reset.
pub(super) fn text(peer: &PeerView) -> String {
    let Some(reset) = &peer.last_reset else {
        return "  Last reset never\n".to_owned();
    };
    let cause = match ending(reset) {
        Some(it) => format!("Notification {} ({})", it.direction, it.reason()),
        None => due_to_of(peer, &reset.cause).0.to_owned(),
    };
    // Two blanks after the comma, as in FRR.
    format!("  Last reset {},  {cause}\n  Last error: {}\n", clock(reset.ago), reset.text)
}
