//! Extended communities (RFC 4360), and the one that weighs paths.

use std::fmt;

/// Eight octets: a type, mostly a subtype, and a value (RFC 4360 §2).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ExtendedCommunity(pub [u8; 8]);

/// The bit of the type that keeps a community inside its AS (RFC 4360 §2, RFC 7153 §3).
const NON_TRANSITIVE: u8 = 0x40;
/// Types of two-octet AS specific communities, transitive.
const TWO_OCTET_AS: u8 = 0x00;
/// Subtype of the link bandwidth.
const LINK_BANDWIDTH: u8 = 0x04;

impl ExtendedCommunity {
    /// Whether it leaves the AS that it was set in.
    pub fn is_transitive(self) -> bool {
        let [kind, ..] = self.0;
        kind & NON_TRANSITIVE == 0
    }

    /// The bandwidth that it says, if that is what it says.
    pub fn link_bandwidth(self) -> Option<LinkBandwidth> {
        let [kind, subtype, _, _, a, b, c, d] = self.0;
        let is_bandwidth = kind & !NON_TRANSITIVE == TWO_OCTET_AS && subtype == LINK_BANDWIDTH;
        is_bandwidth
            .then(|| LinkBandwidth::from_octets_per_second(f32::from_be_bytes([a, b, c, d])))
    }
}

/// What a path can carry, in bits per second (draft-ietf-idr-link-bandwidth): neighbours divide
/// traffic among several paths by it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LinkBandwidth {
    /// Bits per second.
    pub bits_per_second: u64,
}

impl LinkBandwidth {
    /// The community that says it, set by `asn`. A transitive one reaches an external neighbour.
    pub fn community(self, asn: u16, transitive: bool) -> ExtendedCommunity {
        let kind = if transitive { TWO_OCTET_AS } else { TWO_OCTET_AS | NON_TRANSITIVE };
        let [high, low] = asn.to_be_bytes();
        let [a, b, c, d] = self.octets_per_second().to_be_bytes();
        ExtendedCommunity([kind, LINK_BANDWIDTH, high, low, a, b, c, d])
    }

    /// As on the wire: octets, in IEEE 754 single precision.
    fn octets_per_second(self) -> f32 {
        self.bits_per_second as f32 / 8.0
    }

    /// Back from the wire; a negative number and none at all count as nothing.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a float becomes the nearest number that there is"
    )]
    fn from_octets_per_second(octets_per_second: f32) -> Self {
        Self { bits_per_second: (f64::from(octets_per_second) * 8.0) as u64 }
    }
}

impl fmt::Display for LinkBandwidth {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bit/s", self.bits_per_second)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bandwidth_survives_the_wire() {
        let gigabit = LinkBandwidth { bits_per_second: 1_000_000_000 };
        for transitive in [true, false] {
            let community = gigabit.community(65_001, transitive);
            assert_eq!(community.is_transitive(), transitive);
            assert_eq!(community.link_bandwidth(), Some(gigabit));
        }
        // 125,000,000 octets per second.
        let golden = [0x40, 4, 0xFD, 0xE9, 0x4C, 0xEE, 0x6B, 0x28];
        assert_eq!(gigabit.community(65_001, false), ExtendedCommunity(golden));
    }

    #[test]
    fn what_is_no_bandwidth_is_none() {
        let target = ExtendedCommunity([0, 2, 0xFD, 0xE9, 0, 0, 0, 1]);
        assert_eq!(target.link_bandwidth(), None);
        let negative = [&[0, 4, 0, 1][..], &(-1.0f32).to_be_bytes()].concat();
        let nothing = LinkBandwidth { bits_per_second: 0 };
        assert_eq!(ExtendedCommunity(negative.try_into().unwrap()).link_bandwidth(), Some(nothing));
        let not_a_number = [&[0, 4, 0, 1][..], &f32::NAN.to_be_bytes()].concat();
        assert_eq!(
            ExtendedCommunity(not_a_number.try_into().unwrap()).link_bandwidth(),
            Some(nothing)
        );
    }
}
