//! Netlink messages as bytes: the frame, attributes, and what a datagram of the kernel holds.
//!
//! Knows no family. Requests are made of what Fairway decided, so their lengths are bounded by their makers; answers
//! come from the kernel and are read with care.

use netlink_packet_core::{
    DoneBuffer, ErrorBuffer, NLM_F_ACK, NLM_F_DUMP_INTR, NLM_F_REQUEST, NLMSG_DONE, NLMSG_ERROR,
    NetlinkBuffer, NlasIterator,
};

/// The octets of a message before its payload.
const HEADER_LENGTH: usize = 16;
/// The bit of an attribute that holds others.
const NESTED: u16 = 1 << 15;

/// A request that is being made.
#[derive(Debug)]
pub(crate) struct Message {
    bytes: Vec<u8>,
}

impl Message {
    /// Of this type, with the header of its family.
    pub(crate) fn new(message_type: u16, flags: u16, sequence: u32, family_header: &[u8]) -> Self {
        let mut bytes = Vec::with_capacity(128);
        bytes.extend(0_u32.to_ne_bytes());
        bytes.extend(message_type.to_ne_bytes());
        bytes.extend((NLM_F_REQUEST | flags).to_ne_bytes());
        bytes.extend(sequence.to_ne_bytes());
        // The kernel fills in the port.
        bytes.extend(0_u32.to_ne_bytes());
        bytes.extend(family_header);
        Self { bytes }
    }

    pub(crate) fn attribute(&mut self, kind: u16, value: &[u8]) -> &mut Self {
        let start = self.bytes.len();
        self.bytes.extend([0; 4]);
        self.bytes.extend(value);
        self.close(start, kind)
    }

    /// An attribute that holds those that `fill` adds.
    pub(crate) fn nested(&mut self, kind: u16, fill: impl FnOnce(&mut Self)) -> &mut Self {
        let start = self.bytes.len();
        self.bytes.extend([0; 4]);
        fill(self);
        self.close(start, kind | NESTED)
    }

    fn close(&mut self, start: usize, kind: u16) -> &mut Self {
        let length = self.bytes.len().saturating_sub(start);
        let length = u16::try_from(length).unwrap_or(u16::MAX).to_ne_bytes();
        if let Some(header) = self.bytes.get_mut(start..start.saturating_add(4)) {
            header.copy_from_slice(&[length, kind.to_ne_bytes()].concat());
        }
        self.bytes.resize(self.bytes.len().next_multiple_of(4), 0);
        self
    }

    /// The whole message.
    pub(crate) fn finish(mut self) -> Vec<u8> {
        let length = u32::try_from(self.bytes.len()).unwrap_or(u32::MAX);
        if let Some(header) = self.bytes.get_mut(..4) {
            header.copy_from_slice(&length.to_ne_bytes());
        }
        self.bytes
    }
}

/// The same message, whose success is to be answered, too.
pub(crate) fn acknowledged(mut message: Vec<u8>) -> Vec<u8> {
    if let Some(flags) = message.get_mut(6..8) {
        let both = u16::from_ne_bytes([
            flags.first().copied().unwrap_or(0),
            flags.get(1).copied().unwrap_or(0),
        ]);
        flags.copy_from_slice(&(both | NLM_F_ACK).to_ne_bytes());
    }
    message
}

/// One message of the kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Answer<'a> {
    /// The number of the request.
    pub(crate) sequence: u32,
    /// The table changed while it was read.
    pub(crate) is_interrupted: bool,
    pub(crate) content: Content<'a>,
}

/// What it says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Content<'a> {
    /// A request has failed for this reason, as an error number; 0 for success.
    Code(i32),
    /// A list is complete, or ended by an error.
    Done(i32),
    /// Something else, from the header of its family on.
    Payload(&'a [u8]),
}

/// A datagram is not a sequence of messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a datagram of the kernel is cut off or malformed")]
pub(crate) struct Malformed;

/// The messages of a datagram.
pub(crate) fn answers(datagram: &[u8]) -> impl Iterator<Item = Result<Answer<'_>, Malformed>> {
    let mut rest = datagram;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let whole = rest;
        let Ok(message) = NetlinkBuffer::new_checked(whole) else {
            rest = &[];
            return Some(Err(Malformed));
        };
        let length = usize::try_from(message.length()).unwrap_or(usize::MAX);
        rest = whole.get(length.next_multiple_of(4)..).unwrap_or_default();
        let payload = whole.get(HEADER_LENGTH..length).unwrap_or_default();
        let content = match message.message_type() {
            NLMSG_ERROR => {
                let code = ErrorBuffer::new_checked(payload).ok().and_then(|it| it.code());
                Content::Code(code.map_or(0, |it| i32::from(it).saturating_neg()))
            }
            NLMSG_DONE => {
                let code = DoneBuffer::new_checked(payload).map_or(0, |it| it.code());
                Content::Done(code.saturating_neg())
            }
            _ => Content::Payload(payload),
        };
        Some(Ok(Answer {
            sequence: message.sequence_number(),
            is_interrupted: message.flags() & NLM_F_DUMP_INTR != 0,
            content,
        }))
    })
}

/// A message that nobody asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Event<'a> {
    pub(crate) message_type: u16,
    /// The number of the socket whose request it follows from.
    pub(crate) port: u32,
    /// From the header of its family on.
    pub(crate) payload: &'a [u8],
}

/// The events of a datagram, up to the first message that is malformed.
pub(crate) fn events(datagram: &[u8]) -> impl Iterator<Item = Event<'_>> {
    let mut rest = datagram;
    std::iter::from_fn(move || {
        let whole = rest;
        let message = NetlinkBuffer::new_checked(whole).ok()?;
        let length = usize::try_from(message.length()).ok()?;
        rest = whole.get(length.next_multiple_of(4)..).unwrap_or_default();
        let payload = whole.get(HEADER_LENGTH..length)?;
        Some(Event { message_type: message.message_type(), port: message.port_number(), payload })
    })
}

/// The attributes of a payload, each with its kind. Reading ends at the first that is malformed.
pub(crate) fn attributes(payload: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    let mut offset = 0_usize;
    let all = NlasIterator::new(payload);
    all.map_while(Result::ok).map_while(move |it| {
        // The value, from the payload itself: the iterator's own borrow is shorter.
        let length = usize::from(it.length());
        let value = payload.get(offset.checked_add(4)?..offset.checked_add(length)?)?;
        offset = offset.checked_add(length.next_multiple_of(4))?;
        Some((it.kind(), value))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attributes_are_padded_and_nested_ones_have_the_length_of_all() {
        let mut message = Message::new(0x21, 0x400, 7, &[1, 2, 3, 4]);
        message.nested(1, |inner| {
            inner.attribute(2, b"abc").attribute(3, &[9]);
        });
        let bytes = message.finish();
        let expected: &[u8] = &[
            40, 0, 0, 0, 0x21, 0, 1, 4, 7, 0, 0, 0, 0, 0, 0, 0, 1, 2, 3, 4, // the headers
            20, 0, 1, 0x80, 7, 0, 2, 0, b'a', b'b', b'c', 0, 5, 0, 3, 0, 9, 0, 0, 0,
        ];
        assert_eq!(bytes, expected);
        let payload = &bytes[20..];
        let outer: Vec<_> = attributes(payload).collect();
        assert_eq!(outer.len(), 1);
        let inner: Vec<_> = attributes(outer[0].1).collect();
        assert_eq!(inner, [(2, &b"abc"[..]), (3, &[9][..])]);
    }

    #[test]
    fn a_datagram_that_is_cut_off_is_malformed() {
        let bytes = Message::new(0x21, 0, 7, &[]).finish();
        assert_eq!(answers(&bytes).filter(Result::is_ok).count(), 1);
        assert_eq!(answers(&bytes[..12]).collect::<Vec<_>>(), [Err(Malformed)]);
        for end in 0..bytes.len() {
            answers(&bytes[..end]).for_each(drop);
        }
    }
}
