//! Streams of whole messages, as in a session.

use fairway_bgp::wire::UpdateContext;
use fairway_ground::PeerKind;

use crate::Dice;
use crate::grammar::update::UpdateDraft;
use crate::grammar::{Draft, open};
use crate::mutation::{self, Mutation};

/// Message types (RFC 4271 §4.1, RFC 2918 §3).
mod kind {
    pub(super) const OPEN: u8 = 1;
    pub(super) const UPDATE: u8 = 2;
    pub(super) const NOTIFICATION: u8 = 3;
    pub(super) const KEEPALIVE: u8 = 4;
    pub(super) const ROUTE_REFRESH: u8 = 5;
}

/// Appends a message: marker, length, type, body.
pub fn put_message(kind: u8, body: &Draft, to: &mut Draft) {
    to.put(&[0xFF; 16]);
    to.put_length_u16(body.bytes.len() + 19);
    to.put(&[kind]);
    to.put_draft(body);
}

/// A few messages of any type, all valid.
pub fn messages(dice: &mut Dice) -> Draft {
    let mut stream = Draft::default();
    for _ in 0..=dice.below(4) {
        match dice.below(8) {
            0 => put_message(kind::OPEN, &open::body(dice), &mut stream),
            1 | 2 => put_message(kind::KEEPALIVE, &Draft::default(), &mut stream),
            3 => put_message(kind::NOTIFICATION, &open::notification(dice), &mut stream),
            4 => put_message(kind::ROUTE_REFRESH, &open::route_refresh(dice), &mut stream),
            _ => {
                let body = UpdateDraft::draw(dice, UpdateContext::new(PeerKind::External)).body();
                put_message(kind::UPDATE, &body, &mut stream);
            }
        }
    }
    stream
}

/// The messages of a neighbour up to Established: OPEN, KEEPALIVE, and then anything.
pub fn handshake(dice: &mut Dice) -> Draft {
    let mut stream = Draft::default();
    let mut body = open::body(dice);
    if dice.chance(70) {
        body = mutation::bent(dice, &body, &body.clone(), Mutation::Sometimes);
    }
    put_message(kind::OPEN, &body, &mut stream);
    put_message(kind::KEEPALIVE, &Draft::default(), &mut stream);
    if dice.chance(50) {
        stream.put_draft(&messages(dice));
    }
    stream
}

/// The messages of an Established neighbour: UPDATEs, each corrupted within a whole message, and sometimes
/// others. A fault in a body must not hide the messages after it.
pub fn session(dice: &mut Dice, context: UpdateContext) -> Draft {
    let mut stream = Draft::default();
    for _ in 0..=dice.below(3) {
        match dice.below(20) {
            0 => put_message(kind::KEEPALIVE, &Draft::default(), &mut stream),
            1 | 2 => put_message(kind::ROUTE_REFRESH, &open::route_refresh(dice), &mut stream),
            4 => {
                // A refresh of all or some of the routes (RFC 7313).
                let [begin, end] = open::marks(dice);
                put_message(kind::ROUTE_REFRESH, &begin, &mut stream);
                put_message(kind::UPDATE, &mutation::update(dice, context), &mut stream);
                put_message(kind::ROUTE_REFRESH, &end, &mut stream);
            }
            3 if dice.chance(20) => {
                put_message(kind::NOTIFICATION, &open::notification(dice), &mut stream);
            }
            _ => {
                let body = mutation::update(dice, context);
                put_message(kind::UPDATE, &body, &mut stream);
            }
        }
    }
    stream
}
