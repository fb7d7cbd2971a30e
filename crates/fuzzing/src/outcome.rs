//! How bytes were treated. The driver counts outcomes: a target with only one outcome never gets past its
//! first check, and is a bad target.

use fairway_bgp::wire::attribute::{AttributeFault, Disposition};
use fairway_bgp::wire::{Notification, WireError};

/// The possible treatments of received bytes (RFC 7606 §2).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Answer {
    /// Accepted as is.
    Accepted,
    /// A malformed attribute was discarded, the routes stay.
    AttributeDiscard,
    /// Dropped silently.
    Ignored,
    /// The routes were treated as withdrawn.
    TreatAsWithdraw,
    /// A NOTIFICATION with these codes ends the session.
    Notification(u8, u8),
}

/// A treatment and its cause.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Outcome {
    /// The answer.
    pub answer: Answer,
    /// Type code of the malformed attribute, 0 without one.
    pub code: u8,
    /// The fault, empty if there was none.
    pub what: &'static str,
}

impl Outcome {
    /// No fault.
    pub const ACCEPTED: Self = Self { answer: Answer::Accepted, code: 0, what: "" };

    /// Accepted, with a word for the kind of input.
    pub const fn accepted(what: &'static str) -> Self {
        Self { answer: Answer::Accepted, code: 0, what }
    }

    /// The outcome of an UPDATE with these faults: the most severe decides.
    pub fn of_faults(faults: &[AttributeFault]) -> Self {
        let Some(worst) = faults.iter().max_by_key(|fault| fault.disposition) else {
            return Self::ACCEPTED;
        };
        let answer = match worst.disposition {
            Disposition::Discard => Answer::AttributeDiscard,
            Disposition::TreatAsWithdraw => Answer::TreatAsWithdraw,
        };
        Self { answer, code: worst.code, what: worst.what }
    }

    /// The outcome of an error that ends the session. Asserts that its NOTIFICATION can be sent.
    pub fn of_error(error: &WireError) -> Self {
        let notification = error.notification();
        assert_sendable(&notification);
        assert!(!error.to_string().is_empty());
        let (code, what) = match error {
            WireError::OptionalAttribute { code, what, .. } => (*code, *what),
            WireError::UnknownWellKnown { .. } => (0, "an unknown well-known attribute"),
            WireError::BadLength { what, .. } => (0, *what),
            WireError::BgpIdentifier(_, what)
            | WireError::MalformedOpen(what)
            | WireError::MalformedAttributeList(what)
            | WireError::InvalidNetworkField(what) => (0, *what),
            _ => (0, ""),
        };
        let answer = Answer::Notification(notification.code, notification.subcode);
        Self { answer, code, what }
    }

    /// Whether there was no fault.
    pub fn is_accepted(self) -> bool {
        self.answer == Answer::Accepted
    }
}

/// Whether RFC 4271 §4.5 or an extension of it defines the codes.
pub fn exists(code: u8, subcode: u8) -> bool {
    match code {
        1 => matches!(subcode, 1..=3),
        2 => matches!(subcode, 0..=4 | 6 | 7 | 11),
        3 => matches!(subcode, 1..=6 | 8..=11),
        4 | 8 => subcode == 0,
        5 => matches!(subcode, 1..=3),
        6 => matches!(subcode, 1..=10),
        7 => subcode == 1,
        _ => false,
    }
}

/// Our NOTIFICATION must have defined codes, fit into a message, and be decoded as sent.
pub fn assert_sendable(notification: &Notification) {
    let Notification { code, subcode, data } = notification;
    assert!(exists(*code, *subcode), "no such codes: {notification:?}");
    let message = notification.encode();
    assert!((21..=4096).contains(&message.len()), "{} bytes", message.len());
    let read = Notification::parse(&message[19..]);
    assert_eq!((read.code, read.subcode), (*code, *subcode));
    assert!(data.starts_with(&read.data), "the data differs");
}
