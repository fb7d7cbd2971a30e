//! NOTIFICATION: why a session ends (RFC 4271 §4.5), the names of codes, and the text of RFC 9003.

use std::fmt;

use bytes::Bytes;
pub use fairway_seam::notification::cease;
use fairway_seam::notification::reason;

use super::header::{MessageType, framed};
use super::{HEADER_LENGTH_BYTES, MESSAGE_LENGTH_BYTES_MAX, Reader};
use fairway_ground::{AddressFamily, ShutdownMessage, printable};

/// A NOTIFICATION.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Notification {
    /// The error code.
    pub code: u8,
    /// The error subcode.
    pub subcode: u8,
    /// Data that depends on the codes.
    pub data: Vec<u8>,
}

impl Notification {
    /// A Cease without data.
    pub fn cease(subcode: u8) -> Self {
        Self { code: 6, subcode, data: Vec::new() }
    }

    /// A Cease with the operator's message, for Administrative Shutdown and Administrative Reset (RFC 9003
    /// §2). Without a message it is that of RFC 4486.
    pub fn cease_with_message(subcode: u8, message: &ShutdownMessage) -> Self {
        let text = message.as_str().as_bytes();
        // A message has at most 255 bytes.
        let length = u8::try_from(text.len()).ok().filter(|length| *length > 0);
        let data = length.map(|length| [&[length], text].concat());
        Self { code: 6, subcode, data: data.unwrap_or_default() }
    }

    /// More prefixes of `family` than `limit` (RFC 4486 §4).
    pub fn maximum_prefixes(family: AddressFamily, limit: u32) -> Self {
        let [high, low] = family.afi().to_be_bytes();
        let data = [&[high, low, family.safi()][..], &limit.to_be_bytes()].concat();
        Self { code: 6, subcode: cease::MAXIMUM_PREFIXES, data }
    }

    /// The same as a Hard Reset, which encloses both codes and the data (RFC 8538 §3.1).
    pub fn as_hard_reset(&self) -> Self {
        let data = [&[self.code, self.subcode], self.data.as_slice()].concat();
        Self { code: 6, subcode: cease::HARD_RESET, data }
    }

    /// Whether BFD detected the loss of the path (RFC 9384).
    pub fn is_bfd_down(&self) -> bool {
        (self.code, self.subcode) == (6, cease::BFD_DOWN)
    }

    /// The NOTIFICATION that a Hard Reset encloses.
    pub fn enclosed(&self) -> Option<Self> {
        match (self.code, self.subcode, self.data.as_slice()) {
            (6, cease::HARD_RESET, [code, subcode, data @ ..]) => {
                Some(Self { code: *code, subcode: *subcode, data: data.to_vec() })
            }
            _ => None,
        }
    }

    /// Parses a body. The framing ensures that the two codes are there; a shorter body gives code 0, since a
    /// malformed NOTIFICATION is never answered.
    pub fn parse(body: &[u8]) -> Self {
        let mut reader = Reader::new(body);
        let code = reader.u8().unwrap_or(0);
        let subcode = reader.u8().unwrap_or(0);
        Self { code, subcode, data: reader.rest().to_vec() }
    }

    /// The message. Data that does not fit is truncated: it is informational.
    pub fn encode(&self) -> Bytes {
        let room = MESSAGE_LENGTH_BYTES_MAX.saturating_sub(HEADER_LENGTH_BYTES.saturating_add(2));
        let data = self.data.get(..room).unwrap_or(&self.data);
        let body = [&[self.code, self.subcode], data].concat();
        framed(MessageType::Notification, &body).unwrap_or_default()
    }

    /// The operator's message in a shutdown or reset (RFC 9003 §2). Text that is not UTF-8, or with a length
    /// that contradicts the data, is shown as far as possible; control characters are escaped. In a Hard Reset
    /// it is that of the enclosed NOTIFICATION (RFC 8538 §3.1).
    pub fn shutdown_text(&self) -> Option<String> {
        let data = match (self.code, self.subcode, self.data.as_slice()) {
            (6, 2 | 4, data) | (6, 9, [6, 2 | 4, data @ ..]) => data,
            _ => return None,
        };
        let mut reader = Reader::new(data);
        let length = usize::from(reader.u8()?);
        let text = reader.rest();
        let text = String::from_utf8_lossy(text.get(..length).unwrap_or(text));
        (!text.is_empty()).then(|| printable(&text).into_owned())
    }

    /// The name of the code and subcode, in FRR's words. A Hard Reset has the name of the enclosed
    /// NOTIFICATION.
    pub fn reason(&self) -> String {
        match self.enclosed() {
            Some(enclosed) => format!("{}/Hard Reset", reason(enclosed.code, enclosed.subcode)),
            None => reason(self.code, self.subcode),
        }
    }
}

impl fmt::Display for Notification {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({}/{})", self.reason(), self.code, self.subcode)?;
        match self.shutdown_text() {
            Some(text) => write!(f, ": \"{text}\""),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    //= RFC 9003 §2 MUST: only Administrative Shutdown and Administrative Reset carry a text.
    //= RFC 9003 §2 MUST NOT: octets that are not UTF-8 are interpreted.
    #[test]
    fn a_shutdown_text_is_shown_and_a_lying_length_survived() {
        let say =
            |data: &[u8]| Notification { code: 6, subcode: 2, data: data.to_vec() }.shutdown_text();
        assert_eq!(say(b"\x05racks"), Some("racks".to_owned()));
        assert_eq!(say(b"\xFFracks"), Some("racks".to_owned()));
        assert_eq!(say(b"\x02\x1b["), Some("\\u{1b}[".to_owned()));
        assert_eq!(say(b""), None);
        assert_eq!(say(b"\x00"), None);
        // Invalid UTF-8 leaves a replacement character.
        assert_eq!(say(b"\x04a\xC0\xAFb"), Some("a\u{FFFD}\u{FFFD}b".to_owned()));
        for subcode in 0..=u8::MAX {
            let notification = Notification { code: 6, subcode, data: b"\x01x".to_vec() };
            assert_eq!(notification.shutdown_text().is_some(), matches!(subcode, 2 | 4));
        }
    }

    //= RFC 9003 §2 MUST: the text is UTF-8, behind an octet with its length in octets.
    #[test]
    fn the_text_of_the_operator_goes_along_with_a_shutdown() {
        let encode = |text: &str| {
            let message = ShutdownMessage::new(text).unwrap();
            Notification::cease_with_message(cease::ADMINISTRATIVE_SHUTDOWN, &message)
        };
        let notification = encode("Tür 3");
        let golden = [&[0xFF; 16][..], &[0, 28, 3, 6, 2, 6], "Tür 3".as_bytes()].concat();
        assert_eq!(notification.encode(), golden);
        assert_eq!(notification.shutdown_text().as_deref(), Some("Tür 3"));
        let longest = encode(&"x".repeat(255));
        assert_eq!((longest.data.len(), longest.data[0]), (256, 255));
        assert_eq!(longest.shutdown_text().map(|text| text.len()), Some(255));
        assert_eq!(encode(""), Notification::cease(cease::ADMINISTRATIVE_SHUTDOWN));
    }

    #[test]
    fn names_are_those_of_the_routers() {
        assert_eq!(
            Notification::cease(cease::PEER_DECONFIGURED).reason(),
            "Cease/Peer Unconfigured"
        );
        let notification = Notification { code: 4, subcode: 0, data: Vec::new() };
        assert_eq!(notification.to_string(), "Hold Timer Expired (4/0)");
        assert_eq!(Notification { code: 99, subcode: 9, data: vec![] }.reason(), "Unknown Error");
    }

    //= RFC 8538 §3.1 MUST: the data of a Hard Reset is code, subcode and data of the NOTIFICATION that it stands for.
    #[test]
    fn a_hard_reset_carries_what_it_stands_for() {
        let message = ShutdownMessage::new("bye").unwrap();
        let shutdown = Notification::cease_with_message(cease::ADMINISTRATIVE_SHUTDOWN, &message);
        let hard = shutdown.as_hard_reset();
        let golden = [&[0xFF; 16][..], &[0, 27, 3, 6, 9, 6, 2, 3], b"bye"].concat();
        assert_eq!(hard.encode(), golden);
        assert_eq!(hard.enclosed(), Some(shutdown));
        let text = "Cease/Administrative Shutdown/Hard Reset (6/9): \"bye\"";
        assert_eq!(hard.to_string(), text);
        // A Hard Reset without data, or of another Hard Reset, has a name as well.
        assert_eq!(Notification::cease(9).to_string(), "Cease/Hard Reset (6/9)");
        let twice = hard.as_hard_reset();
        assert_eq!(twice.reason(), "Cease/Hard Reset/Hard Reset");
        assert_eq!(Notification { data: vec![6], ..twice }.enclosed(), None);
    }

    //+ RFC 4271 §4.1: no message is longer than 4096 octets.
    #[test]
    fn data_that_does_not_fit_is_cut() {
        let notification = Notification { code: 3, subcode: 9, data: vec![0; 9000] };
        assert_eq!(notification.encode().len(), MESSAGE_LENGTH_BYTES_MAX);
        assert_eq!(Notification::parse(&[]).code, 0);
    }
}
