//! The hardware address of an Ethernet interface.

use std::fmt;

/// A MAC address (IEEE 802), six octets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MacAddress(pub [u8; 6]);

impl MacAddress {
    /// Every station on the segment.
    pub const BROADCAST: Self = Self([0xFF; 6]);
    /// No station: a field of ARP that says nothing.
    pub const ZERO: Self = Self([0; 6]);

    /// Whether one station can have it: not a group, not zero.
    pub const fn is_unicast(self) -> bool {
        let [first, ..] = self.0;
        first & 1 == 0 && u64::from_be_bytes(self.padded()) != 0
    }

    const fn padded(self) -> [u8; 8] {
        let [a, b, c, d, e, f] = self.0;
        [0, 0, a, b, c, d, e, f]
    }
}

impl fmt::Display for MacAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [a, b, c, d, e, g] = self.0;
        write!(f, "{a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{g:02x}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_station_has_a_unicast_address() {
        let mac = MacAddress([0x02, 0, 0x5E, 0x10, 0, 0xFF]);
        assert_eq!(mac.to_string(), "02:00:5e:10:00:ff");
        assert!(mac.is_unicast());
        assert!(!MacAddress::BROADCAST.is_unicast());
        assert!(!MacAddress::ZERO.is_unicast());
        assert!(!MacAddress([0x33, 0x33, 0, 0, 0, 1]).is_unicast());
    }
}
