//! The writes and the Events of a core.
//!
//! Plain values: the cores build them, the edge turns them into requests, and the answer comes back as a
//! [`WriteReply`](super::WriteReply). Knows no rate and no meaning.

use fairway_ground::Instant;
use fairway_model::{Kind, ObjectName};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

/// The longest value of a label.
const LABEL_BYTES_MAX: usize = 63;

/// The kinds that Fairway writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum WrittenKind {
    /// Its status and one annotation.
    Service,
    /// Its status.
    IpAddressPool,
    /// One for each process.
    ConfigurationState,
    /// One for each Service that a node announces by BGP.
    ServiceBgpStatus,
    /// One for each Service that a node answers for on layer 2.
    ServiceL2Status,
    /// One for each session of a node.
    BgpSessionState,
}

/// One request that changes an object.
#[derive(Debug, Clone, PartialEq)]
pub struct ObjectWrite {
    /// The kind of the object.
    pub kind: WrittenKind,
    /// Its name.
    pub name: ObjectName,
    /// The change.
    pub how: WriteHow,
    /// The request is cancelled then, and must not be sent later than that either.
    pub not_after: Instant,
}

/// The change of an object.
#[derive(Debug, Clone, PartialEq)]
pub enum WriteHow {
    /// JSON merge patch (RFC 7396) of the status subresource. With `metadata.resourceVersion` in it, a later
    /// writer wins, and the answer is a conflict.
    MergeStatus(Value),
    /// Server-side apply of an object without its status; creates it if it does not exist. Takes fields over
    /// from other managers.
    Apply(Value),
    /// Server-side apply of its status subresource.
    ApplyStatus(Value),
    /// Deletes the object.
    Delete,
}

/// The Pod that a process runs in: objects of this process alone are deleted with it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OwnPod {
    /// Its name.
    pub name: String,
    /// Its `metadata.uid`.
    pub uid: String,
}

/// The kinds that Events are about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum EventSubject {
    /// One that decides about Services.
    Read(Kind),
    /// A pool of addresses of Pods.
    IpPool,
}

impl From<Kind> for EventSubject {
    fn from(kind: Kind) -> Self {
        Self::Read(kind)
    }
}

/// An Event to be posted, without waiting for the result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EventRecord {
    /// The kind of the object that it is about.
    pub kind: EventSubject,
    /// Its name.
    pub name: ObjectName,
    /// Its `metadata.uid`.
    pub uid: String,
    /// Warning, or else Normal.
    pub is_warning: bool,
    /// One word, MetalLB's if it has one.
    pub reason: &'static str,
    /// A sentence.
    pub message: String,
}

/// `text`, or as much of it as fits, with a mark that it is shortened.
pub(super) fn shortened(mut text: String, bytes_max: usize) -> String {
    if text.len() > bytes_max {
        let end = (0..=bytes_max).rev().find(|it| text.is_char_boundary(*it));
        text.truncate(end.unwrap_or_default());
        text.push('…');
    }
    text
}

/// The Pod as an owner reference.
pub(super) fn own_reference(pod: &OwnPod) -> Value {
    json!({ "apiVersion": "v1", "kind": "Pod", "name": pod.name, "uid": pod.uid })
}

/// `text`, or a unique replacement that is valid as the value of a label: names of nodes and interfaces may
/// be invalid there.
pub(super) fn label_value(text: &str) -> String {
    let is_word = |it: char| it.is_ascii_alphanumeric();
    let is_inner = |it: char| is_word(it) || matches!(it, '-' | '_' | '.');
    let has_ends = text.starts_with(is_word) && text.ends_with(is_word);
    let is_value = text.len() <= LABEL_BYTES_MAX && has_ends && text.chars().all(is_inner);
    if is_value || text.is_empty() { text.to_owned() } else { digest(text) }
}

/// Sixteen digits derived from `text`.
pub(super) fn digest(text: &str) -> String {
    let bytes = Sha256::digest(text);
    let number = bytes.iter().take(8).fold(0_u64, |number, byte| number << 8 | u64::from(*byte));
    format!("{number:016x}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_no_label_can_say_is_said_by_a_number() {
        for text in ["", "node-a", "rack-1.example.org", &"a".repeat(63)] {
            assert_eq!(label_value(text), text);
        }
        let others = ["eth0:1", "-a", "a-", &"a".repeat(64), &"a".repeat(65)].map(label_value);
        assert!(others.iter().all(|it| it.len() == 16), "{others:?}");
        assert_eq!(others.iter().collect::<std::collections::BTreeSet<_>>().len(), 5);
    }

    #[test]
    fn what_is_too_long_ends_between_two_characters() {
        assert_eq!(shortened("nöt".to_owned(), 4), "nöt");
        assert_eq!(shortened("nöt".to_owned(), 3), "nö…");
        assert_eq!(shortened("nöt".to_owned(), 2), "n…");
    }
}
