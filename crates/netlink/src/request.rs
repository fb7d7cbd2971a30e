//! Requests to the kernel, as bytes.
//!
//! Today those that read a table. A request knows nothing of its answer, which is [`crate::decode`]'s. The
//! follower is the caller.

use netlink_packet_core::{
    NLM_F_DUMP, NLM_F_REQUEST, NetlinkHeader, NetlinkMessage, NetlinkPayload,
};
use netlink_packet_route::RouteNetlinkMessage;
use netlink_packet_route::address::AddressMessage;
use netlink_packet_route::link::{LinkAttribute, LinkExtentMask, LinkMessage};
use netlink_packet_route::neighbour::NeighbourMessage;
use netlink_packet_route::route::RouteMessage;

use crate::kind::Kind;

/// Requests all of a table. The answer carries `sequence`.
pub fn dump(kind: Kind, sequence: u32) -> Vec<u8> {
    let message = match kind {
        Kind::Link => {
            let mut link = LinkMessage::default();
            // Counters are half of the answer, and are not used.
            link.attributes.push(LinkAttribute::ExtMask(vec![LinkExtentMask::SkipStats]));
            RouteNetlinkMessage::GetLink(link)
        }
        Kind::Address => RouteNetlinkMessage::GetAddress(AddressMessage::default()),
        Kind::Route => RouteNetlinkMessage::GetRoute(RouteMessage::default()),
        Kind::Neighbour => RouteNetlinkMessage::GetNeighbour(NeighbourMessage::default()),
    };
    let mut header = NetlinkHeader::default();
    header.flags = NLM_F_REQUEST | NLM_F_DUMP;
    header.sequence_number = sequence;
    let mut message = NetlinkMessage::new(header, NetlinkPayload::InnerMessage(message));
    message.finalize();
    let mut bytes = vec![0; message.buffer_len()];
    message.serialize(&mut bytes);
    bytes
}
