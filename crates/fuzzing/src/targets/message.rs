//! Framing, OPEN, capabilities, NOTIFICATION, ROUTE-REFRESH.

use fairway_bgp::wire::{
    EXTENDED_MESSAGE_LENGTH_BYTES_MAX, Framing, HEADER_LENGTH_BYTES, MESSAGE_LENGTH_BYTES_MAX,
    MessageType, Notification, Open, RouteRefresh, WireError, header,
};

use crate::{Dice, Outcome};

/// The longest body that framing accepts.
const BODY_LENGTH_BYTES_MAX: usize = MESSAGE_LENGTH_BYTES_MAX - HEADER_LENGTH_BYTES;

/// The part of `input` that framing accepts.
pub(super) fn as_body(input: &[u8]) -> &[u8] {
    &input[..input.len().min(BODY_LENGTH_BYTES_MAX)]
}

/// The part of `input` that framing accepts with extended messages (RFC 8654).
pub(super) fn as_extended_body(input: &[u8]) -> &[u8] {
    &input[..input.len().min(EXTENDED_MESSAGE_LENGTH_BYTES_MAX - HEADER_LENGTH_BYTES)]
}

/// A byte stream, split anywhere: the splits change nothing, and no byte is lost or added.
pub fn framing(input: &[u8]) -> Outcome {
    let whole = frames(input, &[]);
    let sum: u64 = input.iter().map(|byte| u64::from(*byte)).sum();
    let mut dice = Dice::seeded(sum ^ (input.len() as u64));
    let mut cuts: Vec<usize> = (0..dice.below(6)).map(|_| dice.below(input.len() + 1)).collect();
    cuts.sort_unstable();
    assert_eq!(frames(input, &cuts), whole, "cut at {cuts:?}");
    if input.len() < 64 {
        let everywhere: Vec<usize> = (0..input.len()).collect();
        assert_eq!(frames(input, &everywhere), whole);
    }

    let (messages, error) = &whole;
    let stream: Vec<u8> = messages.concat();
    assert!(input.starts_with(&stream), "the messages are not those of the stream");
    match error {
        Some(error) => Outcome::of_error(error),
        None => {
            let left = input.len() - stream.len();
            assert!(left < MESSAGE_LENGTH_BYTES_MAX, "still waiting for {left} bytes");
            Outcome::accepted(if left == 0 { "whole" } else { "more to come" })
        }
    }
}

/// The messages in `input`, framed again, and the error that ended them.
fn frames(input: &[u8], cuts: &[usize]) -> (Vec<Vec<u8>>, Option<WireError>) {
    let mut framing = Framing::default();
    let mut messages = Vec::new();
    let mut from = 0;
    for to in cuts.iter().copied().chain([input.len()]) {
        framing.push(&input[from..to]);
        from = to;
        loop {
            match framing.next_message() {
                Ok(Some(message)) => {
                    let again = header::framed(message.kind, &message.body);
                    messages.push(again.expect("what came in a message fits one").to_vec());
                }
                Ok(None) => break,
                Err(error) => return (messages, Some(error)),
            }
        }
    }
    (messages, None)
}

/// The body of an OPEN.
pub fn open(input: &[u8]) -> Outcome {
    let body = as_body(input);
    let open = match Open::parse(body) {
        Ok(open) => open,
        Err(error) => return Outcome::of_error(&error),
    };
    assert!(open.router_id.get() != 0);
    assert!(!matches!(open.hold_time.seconds(), 1 | 2));
    assert!(open.capabilities.len() <= body.len() / 2);
    let four_octet_as = open.has_four_octet_as();
    assert!(four_octet_as || open.asn <= 0xFFFF);
    let _families = open.families();
    for capability in &open.capabilities {
        assert!(!capability.to_string().is_empty());
        let encoded = capability.encode();
        assert_eq!(usize::from(encoded[1]), encoded.len() - 2);
        assert_eq!(encoded[0], capability.code());
    }
    let message = open.encode();
    assert!((29..=MESSAGE_LENGTH_BYTES_MAX).contains(&message.len()), "{} bytes", message.len());
    assert_eq!(Open::parse(&message[HEADER_LENGTH_BYTES..]).as_ref(), Ok(&open));
    Outcome::accepted(match (four_octet_as, open.families().is_empty()) {
        (true, false) => "four octets",
        (false, false) => "two octets",
        (true, true) => "four octets, no family of ours",
        (false, true) => "two octets, no family of ours",
    })
}

/// Capabilities in the only parameter of an OPEN, in the form that their length requires.
pub fn capabilities(input: &[u8]) -> Outcome {
    let value = &input[..input.len().min(BODY_LENGTH_BYTES_MAX - 32)];
    let mut body = vec![4, 0xFD, 0xE9, 0, 90, 192, 0, 2, 1];
    match u8::try_from(value.len() + 2) {
        Ok(length) => body.extend_from_slice(&[length, 2, length - 2]),
        Err(_) => {
            let length = u16::try_from(value.len()).expect("shorter than a message");
            body.extend_from_slice(&[255, 255]);
            body.extend_from_slice(&(length + 3).to_be_bytes());
            body.push(2);
            body.extend_from_slice(&length.to_be_bytes());
        }
    }
    body.extend_from_slice(value);
    // Well-formedness can be checked without decoding the values.
    let mut rest = value;
    let well_formed = loop {
        rest = match rest {
            [] => break true,
            // The AS number of the speaker must have four octets (RFC 6793 §3).
            [65, length, ..] if *length != 4 => break false,
            [_, length, after @ ..] if usize::from(*length) <= after.len() => {
                &after[usize::from(*length)..]
            }
            _ => break false,
        };
    };
    assert_eq!(Open::parse(&body).is_ok(), well_formed, "{:?}", Open::parse(&body));
    open(&body)
}

/// The body of a NOTIFICATION: never an error, and its text is always escaped for a terminal.
pub fn notification(input: &[u8]) -> Outcome {
    let body = as_body(input);
    let notification = Notification::parse(body);
    if body.len() >= 2 {
        let again = notification.encode();
        assert_eq!(&again[HEADER_LENGTH_BYTES..], body);
    }
    assert!(!notification.reason().is_empty());
    let shown = notification.to_string();
    assert!(!shown.contains(char::is_control), "{shown:?}");
    // The longest escape of one byte that is not UTF-8 or must be escaped.
    assert!(shown.len() < 128 + 10 * 255, "{} bytes", shown.len());
    match notification.shutdown_text() {
        Some(text) => {
            assert!(!text.is_empty() && shown.contains(&text));
            Outcome::accepted("with a text")
        }
        None => Outcome::accepted("without a text"),
    }
}

/// The body of a ROUTE-REFRESH.
pub fn route_refresh(input: &[u8]) -> Outcome {
    let body = as_body(input);
    match RouteRefresh::parse(body) {
        Ok(RouteRefresh { family, subtype }) => {
            let [high, low] = family.afi.to_be_bytes();
            assert_eq!(body, [high, low, subtype, family.safi]);
            Outcome::accepted(if family.family().is_some() { "ours" } else { "another family" })
        }
        Err(error) => {
            assert!(body.len() != 4);
            let message = header::framed(MessageType::RouteRefresh, body).expect("it fits");
            // RFC 7313 §5: the NOTIFICATION contains the whole message.
            assert_eq!(error.notification().data, message);
            Outcome::of_error(&error)
        }
    }
}
