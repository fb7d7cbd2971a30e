//! ROUTE-REFRESH: a request to send all routes again (RFC 2918), and the markers around the answer (RFC
//! 7313).

use bytes::Bytes;

use super::header::{MessageType, framed};
use super::{AddressFamilyPair, HEADER_LENGTH_BYTES, Reader, WireError};
use fairway_ground::AddressFamily;

/// A ROUTE-REFRESH message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RouteRefresh {
    /// The family.
    pub family: AddressFamilyPair,
    /// [`Self::REQUEST`], [`Self::BEGIN`] or [`Self::END`]; others are undefined.
    pub subtype: u8,
}

impl RouteRefresh {
    /// Subtype: request for all routes.
    pub const REQUEST: u8 = 0;
    /// Subtype: start of the answer (RFC 7313 §3.2, BoRR).
    pub const BEGIN: u8 = 1;
    /// Subtype: end of the answer (EoRR).
    pub const END: u8 = 2;

    /// A request to send all routes of `family` again.
    pub fn request(family: AddressFamily) -> Self {
        Self { family: family.into(), subtype: Self::REQUEST }
    }

    /// The marker before all routes of `family`.
    pub fn begin(family: AddressFamily) -> Self {
        Self { family: family.into(), subtype: Self::BEGIN }
    }

    /// The marker after them.
    pub fn end(family: AddressFamily) -> Self {
        Self { family: family.into(), subtype: Self::END }
    }

    /// The family whose routes were all sent, if it marks that.
    pub fn ended(&self) -> Option<AddressFamily> {
        self.family.family().filter(|_| self.subtype == Self::END)
    }

    /// The message.
    pub fn encode(&self) -> Bytes {
        let [high, low] = self.family.afi.to_be_bytes();
        let body = [high, low, self.subtype, self.family.safi];
        framed(MessageType::RouteRefresh, &body).unwrap_or_default()
    }

    /// Parses a body. Bytes after the first four are an ORF (RFC 5291), which we never advertise, so they are
    /// a wrong length (RFC 7313 §5).
    pub fn parse(body: &[u8]) -> Result<Self, WireError> {
        let mut reader = Reader::new(body);
        match (reader.u16(), reader.u8(), reader.u8(), reader.is_empty()) {
            (Some(afi), Some(subtype), Some(safi), true) => {
                Ok(Self { family: AddressFamilyPair { afi, safi }, subtype })
            }
            _ => {
                let length = body.len().saturating_add(HEADER_LENGTH_BYTES);
                let length = u16::try_from(length).unwrap_or(u16::MAX).to_be_bytes();
                let message = [&[0xFF; 16][..], &length, &[5], body].concat();
                Err(WireError::RouteRefreshLength(body.len(), message))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    //= RFC 2918 §3 MUST: a ROUTE-REFRESH is four octets: the family, a reserved octet, the subsequent family.
    //= RFC 7313 §5 MUST: a ROUTE-REFRESH of another length is answered with 7/1.
    //= RFC 7313 §5 MUST: the data of 7/1 is the whole ROUTE-REFRESH message.
    //= RFC 2918 §3 SHOULD: the reserved octet of ROUTE-REFRESH is sent as zero.
    #[test]
    fn a_request_is_four_bytes_and_nothing_else() {
        let refresh = RouteRefresh::parse(&[0, 1, 0, 1]).unwrap();
        assert_eq!(refresh.family, AddressFamilyPair { afi: 1, safi: 1 });
        let asked = RouteRefresh::request(AddressFamily::Ipv6Unicast);
        let message = asked.encode();
        assert_eq!(message[HEADER_LENGTH_BYTES..], [0, 2, 0, 1]);
        assert_eq!(RouteRefresh::parse(&message[HEADER_LENGTH_BYTES..]), Ok(asked));
        for (mark, subtype) in [
            (RouteRefresh::begin(AddressFamily::Ipv4Unicast), 1),
            (RouteRefresh::end(AddressFamily::Ipv4Unicast), 2),
        ] {
            assert_eq!(mark.encode()[HEADER_LENGTH_BYTES..], [0, 1, subtype, 1]);
            assert_eq!(RouteRefresh::parse(&[0, 1, subtype, 1]), Ok(mark));
        }
        for body in [&[][..], &[0, 1, 0], &[0, 1, 0, 1, 1]] {
            let notification = RouteRefresh::parse(body).unwrap_err().notification();
            assert_eq!((notification.code, notification.subcode), (7, 1));
            let length = u8::try_from(19 + body.len()).unwrap();
            let whole = [&[0xFF; 16][..], &[0, length, 5], body].concat();
            assert_eq!(notification.data, whole);
        }
    }
}
