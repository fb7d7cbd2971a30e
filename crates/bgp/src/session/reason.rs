//! Why a session, or an attempt at one, ended: for the log, for `show`, for events.

use std::fmt;

use crate::wire::{Notification, WireError};
use fairway_seam::ResetCause;

/// The end of a session or an attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DownReason {
    /// We sent a NOTIFICATION.
    Sent {
        /// What was sent.
        notification: Notification,
        /// What caused it.
        why: String,
    },
    /// The neighbour sent one.
    Received(Notification),
    /// TCP ended without one.
    Closed,
    /// We closed TCP without one: the neighbour keeps our routes until we are back. The cause.
    Left(String),
    /// TCP broke, as the system says it.
    Broken(String),
    /// The neighbour dialled again, and has restarted without a NOTIFICATION (RFC 4724 §4.2).
    Replaced,
    /// TCP never came up.
    ConnectFailed(String),
}

impl DownReason {
    /// Whether one of the two sides gave a reason.
    pub(super) fn has_notification(&self) -> bool {
        matches!(self, Self::Sent { .. } | Self::Received(_))
    }

    /// For what `show` prints in FRR's words.
    pub fn cause(&self) -> ResetCause {
        match self {
            Self::Sent { notification, .. } => {
                // A Hard Reset only means that nothing is kept; it carries the cause.
                let enclosed = notification.enclosed();
                let cause = enclosed.as_ref().unwrap_or(notification);
                ResetCause::NotificationSent(cause.code, cause.subcode)
            }
            Self::Received(notification) => ResetCause::NotificationReceived(
                notification.code,
                notification.subcode,
                notification.shutdown_text(),
            ),
            Self::Closed | Self::Broken(_) | Self::Replaced => ResetCause::PeerClosed,
            Self::Left(_) => ResetCause::Left,
            Self::ConnectFailed(_) => ResetCause::ConnectFailed,
        }
    }
}

impl From<WireError> for DownReason {
    fn from(error: WireError) -> Self {
        Self::Sent { notification: error.notification(), why: error.to_string() }
    }
}

impl fmt::Display for DownReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Sent { notification, why } => {
                write!(f, "notification sent: {notification}: {why}")
            }
            Self::Received(notification) => write!(f, "notification received: {notification}"),
            Self::Closed => f.write_str("the neighbor closed the connection"),
            Self::Left(why) => write!(
                f,
                "closed without a notification, so that the neighbor keeps our routes: {why}"
            ),
            Self::Broken(why) => write!(f, "connection lost: {why}"),
            Self::Replaced => f.write_str("the neighbor restarted and opened a new connection"),
            Self::ConnectFailed(why) => write!(f, "cannot connect: {why}"),
        }
    }
}
