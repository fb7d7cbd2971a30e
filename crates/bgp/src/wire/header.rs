//! From a byte stream to whole messages: the marker, the length, the type (RFC 4271 §4.1).

use bytes::{Buf, Bytes, BytesMut};

use super::{
    EXTENDED_MESSAGE_LENGTH_BYTES_MAX, HEADER_LENGTH_BYTES, MESSAGE_LENGTH_BYTES_MAX, Reader,
    WireError,
};

/// The types of message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MessageType {
    /// 1
    Open,
    /// 2
    Update,
    /// 3
    Notification,
    /// 4
    Keepalive,
    /// 5 (RFC 2918)
    RouteRefresh,
}

impl MessageType {
    fn from_code(code: u8) -> Option<Self> {
        match code {
            1 => Some(Self::Open),
            2 => Some(Self::Update),
            3 => Some(Self::Notification),
            4 => Some(Self::Keepalive),
            5 => Some(Self::RouteRefresh),
            _ => None,
        }
    }

    /// The code on the wire.
    pub fn code(self) -> u8 {
        match self {
            Self::Open => 1,
            Self::Update => 2,
            Self::Notification => 3,
            Self::Keepalive => 4,
            Self::RouteRefresh => 5,
        }
    }

    /// The name in the RFCs.
    pub fn name(self) -> &'static str {
        match self {
            Self::Open => "OPEN",
            Self::Update => "UPDATE",
            Self::Notification => "NOTIFICATION",
            Self::Keepalive => "KEEPALIVE",
            Self::RouteRefresh => "ROUTE-REFRESH",
        }
    }

    /// The lengths that RFC 4271 §4 allows, header included. A wrong length of ROUTE-REFRESH has its own
    /// error code (RFC 7313 §5), so only the header is required here.
    fn allows(self, length: usize) -> bool {
        match self {
            // Never longer, even with extended messages (RFC 8654 §4).
            Self::Open => (29..=MESSAGE_LENGTH_BYTES_MAX).contains(&length),
            Self::Update => length >= 23,
            Self::Notification => length >= 21,
            Self::Keepalive => length == HEADER_LENGTH_BYTES,
            Self::RouteRefresh => true,
        }
    }
}

/// One message without its header.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RawMessage {
    /// Its type.
    pub kind: MessageType,
    /// The bytes after the header.
    pub body: Bytes,
}

impl RawMessage {
    /// Its header, as on the wire.
    pub fn header(&self) -> [u8; HEADER_LENGTH_BYTES] {
        let length = HEADER_LENGTH_BYTES.saturating_add(self.body.len());
        let [high, low] = u16::try_from(length).unwrap_or(u16::MAX).to_be_bytes();
        let mut header = [0xFF; HEADER_LENGTH_BYTES];
        let [.., first, second, kind] = &mut header;
        (*first, *second, *kind) = (high, low, self.kind.code());
        header
    }
}

/// The messages in bytes that are well formed, each with its header.
pub fn whole_messages(mut bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    std::iter::from_fn(move || {
        let [high, low] = bytes.get(16..18)?.try_into().ok()?;
        let length = usize::from(u16::from_be_bytes([high, low])).max(HEADER_LENGTH_BYTES);
        let (message, rest) = bytes.split_at_checked(length)?;
        bytes = rest;
        Some(message)
    })
}

/// Splits the byte stream of one connection into messages. Holds at most the bytes of one read and one
/// incomplete message.
#[derive(Debug, Default)]
pub struct Framing {
    buffer: BytesMut,
    /// Extended messages were negotiated (RFC 8654).
    extended: bool,
}

impl Framing {
    /// Both sides offered messages of up to 65,535 octets (RFC 8654).
    ///
    /// `Ours:` a neighbour that does not advertise the capability might still send extended messages, but
    /// none does: from such a neighbour a long message has a wrong length, as in FRR and BIRD.
    pub fn allow_extended_messages(&mut self) {
        self.extended = true;
    }

    /// Adds the bytes of a read.
    pub fn push(&mut self, bytes: &[u8]) {
        self.buffer.extend_from_slice(bytes);
    }

    /// The next complete message, if there is one. After an error the rest of the stream is meaningless.
    pub fn next_message(&mut self) -> Result<Option<RawMessage>, WireError> {
        let mut header = Reader::new(&self.buffer);
        let (Some(marker), Some(length), Some(code)) =
            (header.array::<16>(), header.u16(), header.u8())
        else {
            return Ok(None);
        };
        if marker != [0xFF; 16] {
            return Err(WireError::NotSynchronised);
        }
        let whole = usize::from(length);
        let (longest, what) = match self.extended {
            false => (MESSAGE_LENGTH_BYTES_MAX, "a message (19 to 4096)"),
            true => (EXTENDED_MESSAGE_LENGTH_BYTES_MAX, "a message (19 to 65535)"),
        };
        if !(HEADER_LENGTH_BYTES..=longest).contains(&whole) {
            return Err(WireError::BadLength { length, what });
        }
        let kind = MessageType::from_code(code).ok_or(WireError::BadType(code))?;
        if !kind.allows(whole) {
            return Err(WireError::BadLength { length, what: kind.name() });
        }
        if self.buffer.len() < whole {
            return Ok(None);
        }
        let mut message = self.buffer.split_to(whole);
        message.advance(HEADER_LENGTH_BYTES);
        Ok(Some(RawMessage { kind, body: message.freeze() }))
    }
}

/// Adds a header to `body`. `None` if the message would be too long for a peer without RFC 8654: only UPDATEs
/// are ever longer.
pub fn framed(kind: MessageType, body: &[u8]) -> Option<Bytes> {
    let whole = body.len().checked_add(HEADER_LENGTH_BYTES)?;
    let length = u16::try_from(whole).ok().filter(|_| whole <= MESSAGE_LENGTH_BYTES_MAX)?;
    let mut message = BytesMut::with_capacity(whole);
    message.extend_from_slice(&[0xFF; 16]);
    message.extend_from_slice(&length.to_be_bytes());
    message.extend_from_slice(&[kind.code()]);
    message.extend_from_slice(body);
    Some(message.freeze())
}

/// A KEEPALIVE: a header without a body.
pub fn keepalive() -> Bytes {
    Bytes::from_static(&[
        0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF,
        0xFF, 0, 19, 4,
    ])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header(length: u16, code: u8) -> Vec<u8> {
        [&[0xFF_u8; 16][..], &length.to_be_bytes(), &[code]].concat()
    }

    fn first(bytes: &[u8]) -> Result<Option<RawMessage>, WireError> {
        let mut framing = Framing::default();
        framing.push(bytes);
        framing.next_message()
    }

    //= RFC 4271 §4 MUST: a message is processed only when all of it has been received.
    #[test]
    fn messages_come_out_whole_however_the_stream_is_cut() {
        let stream = [keepalive(), framed(MessageType::Update, &[0; 4]).unwrap()].concat();
        for cut in 0..=stream.len() {
            let mut framing = Framing::default();
            let mut kinds = Vec::new();
            for part in [&stream[..cut], &stream[cut..]] {
                framing.push(part);
                while let Some(message) = framing.next_message().unwrap() {
                    kinds.push(message.kind);
                }
            }
            assert_eq!(kinds, [MessageType::Keepalive, MessageType::Update], "cut at {cut}");
        }
    }

    //= RFC 4271 §6.1 MUST: a length below 19 or above 4096 is answered with 1/2.
    //= RFC 4271 §6.1 MUST: an OPEN shorter than 29 octets is answered with 1/2.
    //= RFC 4271 §6.1 MUST: an UPDATE shorter than 23 octets is answered with 1/2.
    //= RFC 4271 §6.1 MUST: a NOTIFICATION shorter than 21 octets is answered with 1/2.
    //= RFC 4271 §6.1 MUST: a KEEPALIVE of any length but 19 octets is answered with 1/2.
    //= RFC 4271 §6.1 MUST: the data of 1/2 is the length that was received.
    #[test]
    fn every_impossible_length_is_answered_with_itself() {
        for (code, allowed) in [(1, 29..=4096), (2, 23..=4096), (3, 21..=4096), (4, 19..=19)] {
            for length in 0..=u16::MAX {
                let outcome = first(&header(length, code));
                if allowed.contains(&length) {
                    assert!(outcome.is_ok(), "type {code} length {length}");
                } else {
                    let notification = outcome.unwrap_err().notification();
                    assert_eq!((notification.code, notification.subcode), (1, 2));
                    assert_eq!(notification.data, length.to_be_bytes());
                }
            }
        }
    }

    //= RFC 8654 §4 MUST: a message of up to 65,535 octets is read once it was agreed on.
    //= RFC 8654 §4 MUST NOT: an OPEN or a KEEPALIVE is longer than before.
    #[test]
    fn long_messages_come_whole_when_they_were_agreed_on() {
        for (code, allowed) in [(1, 29..=4096), (2, 23..=65_535), (3, 21..=65_535), (4, 19..=19)] {
            for length in 0..=u16::MAX {
                let mut framing = Framing::default();
                framing.allow_extended_messages();
                framing.push(&header(length, code));
                let expected = allowed.contains(&length);
                let outcome = framing.next_message();
                assert_eq!(outcome.is_ok(), expected, "type {code} length {length}");
                let data = outcome.map_err(|error| error.notification().data);
                assert!(expected || data == Err(length.to_be_bytes().to_vec()));
            }
        }
        let mut framing = Framing::default();
        framing.allow_extended_messages();
        let body = vec![7; 65_535 - HEADER_LENGTH_BYTES];
        framing.push(&[header(65_535, 2), body.clone(), keepalive().to_vec()].concat());
        assert_eq!(framing.next_message().unwrap().unwrap().body, body);
        assert_eq!(framing.next_message().unwrap().unwrap().kind, MessageType::Keepalive);
    }

    //= RFC 4271 §6.1 MUST: a marker that is not all ones is answered with 1/1.
    //= RFC 4271 §6.1 MUST: an unknown type is answered with 1/3 and the type as data.
    #[test]
    fn a_broken_marker_and_an_unknown_type_have_their_own_answers() {
        let mut bytes = header(19, 4);
        bytes[3] = 0;
        assert_eq!(first(&bytes), Err(WireError::NotSynchronised));
        let notification = WireError::NotSynchronised.notification();
        assert_eq!(notification, Notification { code: 1, subcode: 1, data: Vec::new() });
        let notification = first(&header(19, 77)).unwrap_err().notification();
        assert_eq!(notification, Notification { code: 1, subcode: 3, data: vec![77] });
    }

    use super::super::Notification;
}
