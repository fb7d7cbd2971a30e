//! Which session is a packet for, and was it received on the right path (RFC 5880 §6.3, §6.8.6; RFC 5881 §3,
//! §5; RFC 5883 §4)?

use std::net::IpAddr;

use super::{Sessions, Slot};
use crate::arrival::{Arrival, Dropped, Port, Received};
use crate::echo::EchoPacket;
use crate::packet::ControlPacket;
use fairway_ground::{BfdPath, Instant};

/// The TTL that only a neighbour can send (RFC 5881 §5).
const NEIGHBOUR_TTL: u8 = 255;
/// The TTL of one of our echo packets that the neighbour returned.
const RETURNED_TTL: u8 = 254;

impl Sessions {
    /// Processes a packet; sets `found` to its slot as soon as that is known.
    pub(super) fn hear(
        &mut self,
        now: Instant,
        arrival: &Arrival<'_>,
        found: &mut Option<usize>,
    ) -> Result<Received, Dropped> {
        let multihop = match arrival.port {
            Port::Echo => return self.hear_echo(now, arrival, found),
            Port::Multihop => true,
            Port::SingleHop => {
                expect_ttl(arrival.ttl, NEIGHBOUR_TTL)?;
                false
            }
        };
        let (packet, bytes) = ControlPacket::decode(arrival.bytes)?;
        let source = arrival.source.ip().to_canonical();
        let index = match packet.your_discriminator {
            0 => self.by_source(source, arrival, multihop),
            name => self.discriminators.slot(name),
        };
        let unknown = match packet.your_discriminator {
            0 => Dropped::UnknownSender(source),
            name => Dropped::UnknownDiscriminator(name),
        };
        let index = index.ok_or(unknown)?;
        *found = Some(index);
        let Some(Some(slot)) = self.slots.get_mut(index) else { return Err(unknown) };
        // A sender that knows our discriminator may use another source address (RFC 5880 §6.3), but nothing
        // else may differ.
        if slot.path.multihop != multihop || !slot.is_way_of(arrival) {
            return Err(Dropped::WrongWay);
        }
        if multihop {
            expect_ttl(arrival.ttl, slot.session.minimum_ttl())?;
        }
        slot.session.receive(now, arrival.at, &packet, bytes)?;
        slot.session.heard_on(arrival.destination.map(|it| it.to_canonical()));
        Ok(Received::Control)
    }

    /// The session of a sender's first packets, by its address and the receiving interface.
    fn by_source(&self, source: IpAddr, arrival: &Arrival<'_>, multihop: bool) -> Option<usize> {
        let first =
            BfdPath { remote: source, vrf: arrival.vrf, multihop, interface: None, local: None };
        let is_same = |path: &BfdPath| {
            (path.remote, path.vrf, path.multihop) == (source, arrival.vrf, multihop)
        };
        let candidates = self.by_path.range(first..).take_while(|(path, _)| is_same(path));
        let fits = |index: usize| {
            let slot = self.slots.get(index)?.as_ref()?;
            (slot.is_way_of(arrival) && slot.is_spoken_to(arrival)).then_some(index)
        };
        // The last one is the most specific.
        candidates.filter_map(|(_, index)| fits(*index)).last()
    }

    fn hear_echo(
        &mut self,
        now: Instant,
        arrival: &Arrival<'_>,
        found: &mut Option<usize>,
    ) -> Result<Received, Dropped> {
        expect_ttl(arrival.ttl, RETURNED_TTL)?;
        if arrival.ttl == Some(NEIGHBOUR_TTL) {
            let source = arrival.source.ip().to_canonical();
            let index = self.by_source(source, arrival, false);
            *found = index;
            let slot = index.and_then(|index| self.slots.get_mut(index)?.as_mut());
            slot.ok_or(Dropped::UnknownSender(source))?.session.loop_back()?;
            return Ok(Received::LoopBack);
        }
        let packet = EchoPacket::decode(arrival.bytes).ok_or(Dropped::Echo)?;
        let index = self.discriminators.slot(packet.discriminator).ok_or(Dropped::Echo)?;
        *found = Some(index);
        let Some(Some(slot)) = self.slots.get_mut(index) else { return Err(Dropped::Echo) };
        if !slot.is_way_of(arrival) {
            return Err(Dropped::WrongWay);
        }
        slot.session.receive_echo(now, arrival.at, &packet)?;
        Ok(Received::Echo)
    }
}

impl Slot {
    /// Whether the packet was received on this path.
    fn is_way_of(&self, arrival: &Arrival<'_>) -> bool {
        let is_interface = match self.path.interface {
            Some(_) => self.interface_index == Some(arrival.interface_index),
            None => true,
        };
        is_interface && self.path.vrf == arrival.vrf
    }

    /// Whether it was sent to our address of this path.
    fn is_spoken_to(&self, arrival: &Arrival<'_>) -> bool {
        let destination = arrival.destination.map(|it| it.to_canonical());
        self.path.local.is_none_or(|local| destination.is_none_or(|it| it == local))
    }
}

/// An unknown TTL is rejected: the edge always requests it from the kernel.
fn expect_ttl(ttl: Option<u8>, least: u8) -> Result<(), Dropped> {
    match ttl {
        Some(left) if left >= least => Ok(()),
        ttl => Err(Dropped::Ttl { ttl, least }),
    }
}
