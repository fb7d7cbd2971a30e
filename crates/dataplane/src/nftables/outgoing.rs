//! The table for Pods that leave with an address of the node (`natOutgoing` of pools): source in such a pool, destination in no
//! pool. One of each family, which nobody else has anything in.
//!
//! Pools are few, so that each has a rule; the table is replaced as a whole where they change.

use std::net::IpAddr;

use fairway_ground::Prefix;
use netlink_packet_core::NLM_F_APPEND;

use super::expressions::{Expression, FIRST_REGISTER, Verdict};
use super::layout::{COMMENT, HOOK_POSTROUTING, TABLE_DATA};
use super::{CREATES, DEL_TABLE, Family, NEW_CHAIN, NEW_RULE, NEW_TABLE, Transaction, be32, text};

/// The name of the table.
pub const OUTGOING_TABLE: &str = "fairway-pods";
/// What `nft` shows as its comment: a table without it is somebody else's.
pub const OUTGOING_TAG: &str = "Fairway addresses for Pods";

const CHAIN: &str = "postrouting";
/// That of source NAT.
const PRIORITY: i32 = 100;

/// The transaction that makes the table of this family, in place of the one before. `translated` and `pools` are of the family.
pub fn outgoing(family: Family, translated: &[Prefix], pools: &[Prefix]) -> Transaction {
    let mut transaction = Transaction::default();
    let comment = text(OUTGOING_TAG);
    let length = u8::try_from(comment.len()).unwrap_or(u8::MAX);
    let data = [vec![COMMENT, length], comment].concat();
    let named = |data: Vec<u8>| {
        move |it: &mut crate::message::Message| {
            it.attribute(1, &text(OUTGOING_TABLE)).attribute(TABLE_DATA, &data);
        }
    };
    // What is there cannot be removed unless it is there.
    transaction.add(NEW_TABLE, CREATES, family, named(data.clone()));
    transaction.add(DEL_TABLE, 0, family, |it| {
        it.attribute(1, &text(OUTGOING_TABLE));
    });
    transaction.add(NEW_TABLE, CREATES, family, named(data));
    transaction.add(NEW_CHAIN, CREATES, family, |it| {
        it.attribute(1, &text(OUTGOING_TABLE)).attribute(3, &text(CHAIN));
        it.nested(4, |it| {
            it.attribute(1, &be32(HOOK_POSTROUTING)).attribute(2, &PRIORITY.to_be_bytes());
        });
        it.attribute(7, &text("nat"));
    });
    for pool in pools {
        let stays = vec![Expression::Verdict(Verdict::Return)];
        rule(&mut transaction, family, [within(family, false, *pool), stays].concat());
    }
    for pool in translated {
        let leaves = vec![Expression::Masquerade];
        rule(&mut transaction, family, [within(family, true, *pool), leaves].concat());
    }
    transaction
}

fn rule(transaction: &mut Transaction, family: Family, expressions: Vec<Expression>) {
    transaction.add(NEW_RULE, CREATES | NLM_F_APPEND, family, move |it| {
        it.attribute(1, &text(OUTGOING_TABLE)).attribute(2, &text(CHAIN));
        it.nested(4, |it| expressions.iter().for_each(|expression| expression.write(it)));
    });
}

/// Goes on if the source, or the destination, is in the prefix.
fn within(family: Family, is_source: bool, prefix: Prefix) -> Vec<Expression> {
    let register = FIRST_REGISTER;
    let value = match prefix.address() {
        IpAddr::V4(it) => it.octets().to_vec(),
        IpAddr::V6(it) => it.octets().to_vec(),
    };
    let mask = (0_u8..).take(value.len()).map(|octet| {
        let bits = prefix.length().saturating_sub(octet.saturating_mul(8)).min(8);
        0xFF_u8.checked_shl(u32::from(8 - bits)).unwrap_or(0)
    });
    let address = match is_source {
        true => Expression::source(family, register),
        false => Expression::destination(family, register),
    };
    vec![
        address,
        Expression::Mask { register, mask: mask.collect() },
        Expression::Compare { register, is_equal: true, value },
    ]
}
