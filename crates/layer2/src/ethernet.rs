//! The header of an Ethernet frame (IEEE 802.3), and the bytes behind it.
//!
//! Frames come without a VLAN tag: the kernel takes it off. The filter drops those of other interfaces.
//! Used by [`crate::arp`] and [`crate::ndp`].

use fairway_ground::MacAddress;

/// `EtherType` of ARP.
pub const ARP: u16 = 0x0806;
/// `EtherType` of IPv6.
pub const IPV6: u16 = 0x86DD;

/// Destination, source, type.
pub const HEADER_LENGTH_BYTES: usize = 14;

/// The header of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Header {
    pub(crate) destination: MacAddress,
    pub(crate) source: MacAddress,
    pub(crate) ethertype: u16,
}

impl Header {
    /// The header of a frame, and what is behind it; `None` where the frame is too short.
    pub(crate) fn parse(frame: &[u8]) -> Option<(Self, Fields<'_>)> {
        let mut fields = Fields(frame);
        let destination = MacAddress(fields.take()?);
        let source = MacAddress(fields.take()?);
        let ethertype = u16::from_be_bytes(fields.take()?);
        Some((Self { destination, source, ethertype }, fields))
    }

    /// Begins a frame with it.
    pub(crate) fn begin(self, room: usize) -> Vec<u8> {
        let mut frame = Vec::with_capacity(HEADER_LENGTH_BYTES.saturating_add(room));
        frame.extend(self.destination.0);
        frame.extend(self.source.0);
        frame.extend(self.ethertype.to_be_bytes());
        frame
    }
}

/// Fields of fixed length, one after the other.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Fields<'a>(pub(crate) &'a [u8]);

impl<'a> Fields<'a> {
    /// The next `N` bytes; `None` where fewer are left.
    pub(crate) fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (field, rest) = self.0.split_first_chunk::<N>()?;
        self.0 = rest;
        Some(*field)
    }

    /// The next `length` bytes; `None` where fewer are left.
    pub(crate) fn bytes(&mut self, length: usize) -> Option<&'a [u8]> {
        let (field, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(field)
    }
}
