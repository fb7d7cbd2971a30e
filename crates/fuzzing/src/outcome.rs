//! How bytes were answered. The driver counts these: a target whose inputs are all answered alike
//! never gets past its first check, and is a bad target.

use fairway_sessions::wire::attribute::{AttributeFault, Disposition};
use fairway_sessions::wire::{Notification, WireError};

/// What a speaker may do with what it was sent (RFC 7606 §2), and nothing else.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Answer {
    /// Taken as it is.
    Accepted,
    /// A malformed attribute was dropped, the routes stay.
    AttributeDiscard,
    /// Dropped without a word.
    Ignored,
    /// The routes count as withdrawn.
    TreatAsWithdraw,
    /// A NOTIFICATION with these codes ends the session.
    Notification(u8, u8),
}

/// An answer and what led to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Outcome {
    /// The answer.
    pub answer: Answer,
    /// Type code of the attribute that is to blame, 0 without one.
    pub code: u8,
    /// What was wrong with it, empty when nothing was.
    pub what: &'static str,
}

impl Outcome {
    /// Nothing was wrong.
    pub const ACCEPTED: Self = Self { answer: Answer::Accepted, code: 0, what: "" };

    /// Accepted, with a word on what kind of thing it was.
    pub const fn accepted(what: &'static str) -> Self {
        Self { answer: Answer::Accepted, code: 0, what }
    }

    /// The outcome of an UPDATE with these faults: the strongest decides.
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

    /// The outcome of a fault that ends the session. Asserts that its answer can be sent.
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

    /// Whether nothing was wrong.
    pub fn is_accepted(self) -> bool {
        self.answer == Answer::Accepted
    }
}

/// Whether RFC 4271 §4.5 or one of those that extend it knows the codes.
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

/// A NOTIFICATION of ours must have codes that exist, fit a message, and be read back as sent.
pub fn assert_sendable(notification: &Notification) {
    let Notification { code, subcode, data } = notification;
    assert!(exists(*code, *subcode), "no such codes: {notification:?}");
    let message = notification.encode();
    assert!((21..=4096).contains(&message.len()), "{} bytes", message.len());
    let read = Notification::parse(&message[19..]);
    assert_eq!((read.code, read.subcode), (*code, *subcode));
    assert!(data.starts_with(&read.data), "other data than was meant");
}
