//! OPEN: the identity and the capabilities of a speaker (RFC 4271 §4.2, RFC 5492, RFC 9072).

use std::net::Ipv4Addr;

use bytes::Bytes;

use super::header::{MessageType, framed};
use super::{Capability, Reader, WireError, capability};
use fairway_ground::{Asn, FamilySet, HoldTime, RouterId};

/// The only BGP version.
const VERSION: u8 = 4;
/// The optional parameter that carries capabilities.
const PARAMETER_CAPABILITIES: u8 = 2;
/// Marks the extended form of the parameters (RFC 9072 §2).
const PARAMETER_EXTENDED: u8 = 255;

/// An OPEN message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Open {
    /// The sender's AS: from the four-octet capability, else from the fixed field.
    pub asn: u32,
    /// The proposed hold time.
    pub hold_time: HoldTime,
    /// Its BGP identifier.
    pub router_id: RouterId,
    /// Its capabilities, in its order.
    pub capabilities: Vec<Capability>,
}

impl Open {
    /// Parses a body.
    pub fn parse(body: &[u8]) -> Result<Self, WireError> {
        let malformed = WireError::MalformedOpen;
        let mut reader = Reader::new(body);
        let version = reader.u8().ok_or(malformed("too short"))?;
        if version != VERSION {
            return Err(WireError::Version(version));
        }
        let short_asn = reader.u16().ok_or(malformed("too short"))?;
        let hold_time = reader.u16().ok_or(malformed("too short"))?;
        let identifier = reader.u32().ok_or(malformed("too short"))?;
        let capabilities = parse_parameters(reader.rest())?;

        let hold_time = HoldTime::from_seconds(u64::from(hold_time))
            .map_err(|_| WireError::HoldTime(hold_time))?;
        let router_id = RouterId::new(identifier)
            .ok_or(WireError::BgpIdentifier(Ipv4Addr::from(identifier), "zero"))?;
        let asn = capabilities
            .iter()
            .find_map(|capability| match capability {
                Capability::FourOctetAs(asn) => Some(*asn),
                _ => None,
            })
            .unwrap_or(u32::from(short_asn));
        Ok(Self { asn, hold_time, router_id, capabilities })
    }

    /// The message, in the extended form of RFC 9072 if the parameters need it.
    pub fn encode(&self) -> Bytes {
        let short_asn = Asn::new(self.asn).map_or(0, Asn::as_two_octets);
        let capabilities: Vec<u8> = self.capabilities.iter().flat_map(Capability::encode).collect();
        let mut body = vec![VERSION];
        body.extend_from_slice(&short_asn.to_be_bytes());
        body.extend_from_slice(&self.hold_time.seconds().to_be_bytes());
        body.extend_from_slice(&self.router_id.get().to_be_bytes());
        let length = capabilities.len();
        match (u8::try_from(length), u8::try_from(length.saturating_add(2))) {
            (Ok(0), _) => body.push(0),
            (Ok(length), Ok(whole)) => {
                body.extend_from_slice(&[whole, PARAMETER_CAPABILITIES, length]);
            }
            _ => {
                let length = u16::try_from(length).unwrap_or(u16::MAX);
                body.extend_from_slice(&[255, PARAMETER_EXTENDED]);
                body.extend_from_slice(&length.saturating_add(3).to_be_bytes());
                body.push(PARAMETER_CAPABILITIES);
                body.extend_from_slice(&length.to_be_bytes());
            }
        }
        body.extend_from_slice(&capabilities);
        framed(MessageType::Open, &body).unwrap_or_default()
    }

    /// The advertised families. Without a multiprotocol capability that is IPv4 unicast (RFC 4760 §8).
    pub fn families(&self) -> FamilySet {
        let mut offers_any = false;
        let mut families = FamilySet::EMPTY;
        for capability in &self.capabilities {
            if let Capability::Multiprotocol(pair) = capability {
                offers_any = true;
                if let Some(family) = pair.family() {
                    families.insert(family);
                }
            }
        }
        if offers_any {
            families
        } else {
            FamilySet::only(fairway_ground::AddressFamily::Ipv4Unicast)
        }
    }

    /// Whether it supports four-octet AS numbers.
    pub fn has_four_octet_as(&self) -> bool {
        self.capabilities.iter().any(|it| matches!(it, Capability::FourOctetAs(_)))
    }
}

/// Parses the optional parameters, from their length octet to the end of the message.
fn parse_parameters(bytes: &[u8]) -> Result<Vec<Capability>, WireError> {
    let malformed = WireError::MalformedOpen;
    let mut reader = Reader::new(bytes);
    let length = reader.u8().ok_or(malformed("too short"))?;
    let mut ahead = reader;
    // RFC 9072 §2: the marker decides, the octet before it need only be non-zero.
    let extended = length != 0 && ahead.u8() == Some(PARAMETER_EXTENDED);
    let parameters = if extended {
        let parameters = ahead.counted_u16().ok_or(malformed("parameters overrun the message"))?;
        reader = ahead;
        parameters
    } else {
        reader.take(usize::from(length)).ok_or(malformed("parameters overrun the message"))?
    };
    if !reader.is_empty() {
        return Err(malformed("bytes after the parameters"));
    }
    let mut reader = Reader::new(parameters);
    let mut capabilities = Vec::new();
    while !reader.is_empty() {
        let kind = reader.u8().ok_or(malformed("too short"))?;
        let value = if extended { reader.counted_u16() } else { reader.counted_u8() };
        let value = value.ok_or(malformed("a parameter overruns the list"))?;
        if kind != PARAMETER_CAPABILITIES {
            return Err(WireError::OptionalParameter(kind));
        }
        let parsed = capability::parse_all(value);
        capabilities.extend(parsed.ok_or(malformed("a capability overruns its parameter"))?);
    }
    if capabilities.iter().any(capability::is_broken_four_octet_as) {
        // If it were ignored, the two sides would use AS numbers of different widths.
        return Err(malformed("the four-octet AS capability has a wrong length"));
    }
    Ok(capabilities)
}

#[cfg(test)]
mod tests {
    use super::*;
    use fairway_ground::AddressFamily;

    fn example(capabilities: Vec<Capability>) -> Open {
        Open {
            asn: 4_200_000_000,
            hold_time: HoldTime::DEFAULT,
            router_id: RouterId::new(0xC000_0201).unwrap(),
            capabilities,
        }
    }

    fn body(parameters: &[u8]) -> Vec<u8> {
        [&[4, 0xFD, 0xE9, 0, 90, 192, 0, 2, 1], parameters].concat()
    }

    fn answer(body: &[u8]) -> (u8, u8) {
        let notification = Open::parse(body).unwrap_err().notification();
        (notification.code, notification.subcode)
    }

    //= RFC 6793 §4.1 MUST: the AS number of the capability counts, not the field of two octets.
    //= RFC 6793 §4.2.1 MUST: a number that does not fit two octets is AS_TRANS in the field of the OPEN.
    //= RFC 9072 §2 MUST: parameters of more than 255 octets take the extended form.
    //= RFC 9072 §2 SHOULD: the length octet in front of the extended form is 255.
    #[test]
    fn an_open_survives_the_round_trip() {
        let mut capabilities = vec![
            Capability::Multiprotocol(AddressFamily::Ipv6Unicast.into()),
            Capability::RouteRefresh,
            Capability::FourOctetAs(4_200_000_000),
            Capability::HostName { host: b"node".to_vec(), domain: b"lab".to_vec() },
        ];
        let open = example(capabilities.clone());
        assert_eq!(open.encode()[20..22], Asn::TRANS.to_be_bytes());
        assert_eq!(Open::parse(&open.encode()[19..]), Ok(open));
        // More than 255 bytes of capabilities take the form of RFC 9072.
        capabilities.push(Capability::Other { code: 200, value: vec![7; 250] });
        let open = example(capabilities);
        assert_eq!(open.encode()[28..30], [255, 255]);
        assert_eq!(Open::parse(&open.encode()[19..]), Ok(open));
    }

    //= RFC 4271 §4.1 MUST: the marker is all ones.
    //= RFC 4271 §4.1 MUST: the length is that of the message and its header, without padding.
    //= RFC 5492 §4 SHOULD: all capabilities travel in one optional parameter.
    //= RFC 9072 §2 SHOULD: parameters that fit the plain form take it.
    #[test]
    fn golden_bytes_of_a_plain_open() {
        let open = Open {
            asn: 65001,
            hold_time: HoldTime::DEFAULT,
            router_id: RouterId::new(0xC000_0201).unwrap(),
            capabilities: vec![Capability::RouteRefresh, Capability::FourOctetAs(65001)],
        };
        let expected = [
            &[0xFF; 16][..],
            &[0, 39, 1],                           // length, OPEN
            &[4, 0xFD, 0xE9, 0, 90, 192, 0, 2, 1], // version, AS, hold time, identifier
            &[10, 2, 8],                           // one parameter
            &[2, 0, 65, 4, 0, 0, 0xFD, 0xE9],      // two capabilities
        ]
        .concat();
        assert_eq!(open.encode(), expected);
    }

    //= RFC 4271 §6.2 MUST: another version is answered with 2/1, and the data says 4.
    //= RFC 4271 §6.2 MUST: a hold time of one or two seconds is answered with 2/6.
    //= RFC 4271 §6.2 MUST: an unknown optional parameter is answered with 2/4.
    //= RFC 4271 §6.2 MUST: an optional parameter that is known and malformed is answered with 2/0.
    //= RFC 6286 §2.2 MUST: an identifier of zero is answered with Bad BGP Identifier, 2/3.
    #[test]
    fn each_fault_has_its_own_subcode() {
        let version = Open::parse(&[5, 0, 1, 0, 90, 1, 1, 1, 1, 0]).unwrap_err().notification();
        assert_eq!((version.code, version.subcode, version.data), (2, 1, vec![0, 4]));
        for seconds in [1, 2] {
            assert_eq!(answer(&[4, 0, 1, 0, seconds, 1, 1, 1, 1, 0]), (2, 6));
        }
        assert_eq!(answer(&[4, 0, 1, 0, 90, 0, 0, 0, 0, 0]), (2, 3));
        assert_eq!(answer(&body(&[2, 1, 0])), (2, 4));
        for contradiction in [
            &[][..],                       // no length at all
            &[9, 2, 0],                    // parameters overrun the message
            &[3, 2, 2, 1],                 // a parameter overruns the list
            &[4, 2, 2, 1, 9],              // a capability overruns its parameter
            &[0, 2],                       // bytes after the parameters
            &[255, 255],                   // extended form, cut short
            &[255, 255, 0, 9, 2, 0, 1, 1], // extended length overruns
            &[255, 255, 0, 4, 2, 0, 9, 1], // extended parameter overruns
        ] {
            assert_eq!(answer(&body(contradiction)), (2, 0), "{contradiction:?}");
        }
    }

    //= RFC 9072 §2 MUST: the extended form is read where the plain one would do, too.
    //= RFC 9072 §2 MUST: the length octet in front of the extended form is ignored.
    #[test]
    fn the_extended_form_is_known_by_its_marker_alone() {
        for length in [1, 9, 254, 255] {
            let parameters = [length, 255, 0, 5, 2, 0, 2, 2, 0];
            let open = Open::parse(&body(&parameters)).unwrap();
            assert_eq!(open.capabilities, [Capability::RouteRefresh], "{length}");
        }
        // The longest plain form, and one octet more.
        for (count, marker) in [(253, 2), (254, 255)] {
            let value = vec![7; count - 2];
            let open = example(vec![Capability::Other { code: 200, value }]);
            assert_eq!(open.encode()[29], marker, "{count} octets of capabilities");
            assert_eq!(Open::parse(&open.encode()[19..]), Ok(Open { asn: 23456, ..open }));
        }
    }

    #[test]
    fn every_truncation_is_a_fault_and_never_a_panic() {
        let whole = example(vec![Capability::FourOctetAs(1), Capability::RouteRefresh]).encode();
        for end in 19..whole.len() {
            assert!(Open::parse(&whole[19..end]).is_err(), "cut at {end}");
        }
    }

    //= RFC 5492 §3 MUST: a capability that we do not know is ignored.
    #[test]
    fn a_hostname_with_a_domain_does_not_refuse_the_session() {
        let open = Open::parse(&body(&[
            15, 2, 13, 73, 11, 4, b'n', b'o', b'd', b'e', 5, b'l', b'a', b'b', b'.', b'x',
        ]));
        assert!(matches!(open.unwrap().capabilities[0], Capability::HostName { .. }));
    }

    //= RFC 5492 §4 MUST: capabilities in several optional parameters are accepted.
    //= RFC 5492 §4 MUST: a capability that comes twice, word for word, is accepted.
    //= RFC 4760 §8 SHOULD: the reserved octet of the capability is ignored when it is received.
    #[test]
    fn capabilities_count_wherever_and_however_often_they_stand() {
        let ipv6 = [2, 6, 1, 4, 0, 2, 9, 1]; // its reserved octet is 9
        let parameters = [&[20][..], &ipv6, &[2, 2, 2, 0], &ipv6].concat();
        let open = Open::parse(&body(&parameters)).unwrap();
        assert_eq!(open.families(), FamilySet::only(AddressFamily::Ipv6Unicast));
        assert_eq!(open.capabilities.len(), 3);
        assert_eq!(open.capabilities[1], Capability::RouteRefresh);
    }

    #[test]
    fn a_capability_of_the_wrong_size_is_ignored_unless_it_says_how_wide_as_numbers_are() {
        let open = Open::parse(&body(&[7, 2, 5, 1, 3, 0, 2, 1])).unwrap();
        assert_eq!(open.families(), FamilySet::only(AddressFamily::Ipv4Unicast));
        assert_eq!(answer(&body(&[6, 2, 4, 65, 2, 1, 1])), (2, 0));
    }

    #[test]
    fn without_a_multiprotocol_capability_ipv4_unicast_is_meant() {
        assert_eq!(
            Open::parse(&body(&[0])).unwrap().families(),
            FamilySet::only(AddressFamily::Ipv4Unicast)
        );
    }
}
