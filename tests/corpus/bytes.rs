//! How are the bytes of an entry made? By small builders of our own, so that an entry reads as what
//! is wrong with it. They know nothing of fairway's codec: a fault there must not hide here. Used
//! by the entries and by the scripted peers.

/// Message types (RFC 4271 §4.1, RFC 2918 §3).
pub(crate) mod kind {
    pub(crate) const OPEN: u8 = 1;
    pub(crate) const UPDATE: u8 = 2;
    pub(crate) const NOTIFICATION: u8 = 3;
    pub(crate) const KEEPALIVE: u8 = 4;
    pub(crate) const ROUTE_REFRESH: u8 = 5;
}

/// Flags of an attribute (RFC 4271 §4.3): well-known, optional, optional transitive, and the two
/// bits that go with any of them.
pub(crate) const WELL_KNOWN: u8 = 0x40;
pub(crate) const OPTIONAL: u8 = 0x80;
pub(crate) const TRANSITIVE: u8 = 0xC0;
pub(crate) const PARTIAL: u8 = 0x20;
pub(crate) const EXTENDED: u8 = 0x10;

pub(crate) const SET: u8 = 1;
pub(crate) const SEQUENCE: u8 = 2;
pub(crate) const CONFED_SEQUENCE: u8 = 3;

/// The AS number that stands for one of four octets (RFC 6793 §9).
pub(crate) const AS_TRANS: u32 = 23456;

pub(crate) const HEADER_LENGTH_BYTES: usize = 19;

fn octet(length: usize) -> u8 {
    u8::try_from(length).expect("a length of one octet")
}

fn two_octets(length: usize) -> [u8; 2] {
    u16::try_from(length).expect("a length of two octets").to_be_bytes()
}

// --- Messages ------------------------------------------------------------------------------------

/// A header with these values, right or wrong.
pub(crate) fn header(length: u16, kind: u8) -> Vec<u8> {
    [&[0xFF; 16][..], &length.to_be_bytes(), &[kind]].concat()
}

/// A message with a correct header.
pub(crate) fn message(kind: u8, body: &[u8]) -> Vec<u8> {
    let [high, low] = two_octets(HEADER_LENGTH_BYTES + body.len());
    [&header(u16::from_be_bytes([high, low]), kind), body].concat()
}

pub(crate) fn keepalive() -> Vec<u8> {
    message(kind::KEEPALIVE, &[])
}

pub(crate) fn notification(code: u8, subcode: u8, data: &[u8]) -> Vec<u8> {
    message(kind::NOTIFICATION, &[&[code, subcode], data].concat())
}

/// A ROUTE-REFRESH; `rest` is what follows the four octets.
pub(crate) fn route_refresh(afi: u16, subtype: u8, safi: u8, rest: &[u8]) -> Vec<u8> {
    message(kind::ROUTE_REFRESH, &[&afi.to_be_bytes()[..], &[subtype, safi], rest].concat())
}

// --- OPEN ----------------------------------------------------------------------------------------

/// An OPEN under construction; a good one before it is changed.
#[derive(Debug, Clone)]
pub(crate) struct Open {
    pub(crate) version: u8,
    pub(crate) asn: u16,
    pub(crate) hold_time: u16,
    pub(crate) router_id: [u8; 4],
    /// From the length of the optional parameters on.
    parameters: Vec<u8>,
}

impl Open {
    pub(crate) fn new(asn: u16, router_id: [u8; 4], capabilities: &[Vec<u8>]) -> Self {
        let open = Self { version: 4, asn, hold_time: 90, router_id, parameters: Vec::new() };
        open.capabilities(capabilities)
    }

    /// All capabilities in one parameter.
    pub(crate) fn capabilities(self, capabilities: &[Vec<u8>]) -> Self {
        self.parameters(&[parameter(2, &capabilities.concat())])
    }

    /// Parameters behind a correct length.
    pub(crate) fn parameters(self, parameters: &[Vec<u8>]) -> Self {
        let parameters = parameters.concat();
        self.raw(&[&[octet(parameters.len())], parameters.as_slice()].concat())
    }

    /// The extended form (RFC 9072 §2): lengths of two octets.
    pub(crate) fn extended(self, parameters: &[Vec<u8>]) -> Self {
        let parameters = parameters.concat();
        self.raw(&[&[255, 255][..], &two_octets(parameters.len()), &parameters].concat())
    }

    /// What follows the BGP identifier, as it is.
    pub(crate) fn raw(mut self, bytes: &[u8]) -> Self {
        self.parameters = bytes.to_vec();
        self
    }

    pub(crate) fn bytes(&self) -> Vec<u8> {
        let fixed = [
            &[self.version][..],
            &self.asn.to_be_bytes(),
            &self.hold_time.to_be_bytes(),
            &self.router_id,
        ];
        message(kind::OPEN, &[&fixed.concat(), self.parameters.as_slice()].concat())
    }
}

pub(crate) fn parameter(kind: u8, value: &[u8]) -> Vec<u8> {
    [&[kind, octet(value.len())], value].concat()
}

/// A parameter of the extended form.
pub(crate) fn long_parameter(kind: u8, value: &[u8]) -> Vec<u8> {
    [&[kind][..], &two_octets(value.len()), value].concat()
}

pub(crate) fn capability(code: u8, value: &[u8]) -> Vec<u8> {
    [&[code, octet(value.len())], value].concat()
}

/// Routes of a family (RFC 4760 §8).
pub(crate) fn multiprotocol(afi: u16, safi: u8) -> Vec<u8> {
    let [high, low] = afi.to_be_bytes();
    capability(1, &[high, low, 0, safi])
}

/// Four-octet AS numbers (RFC 6793 §3).
pub(crate) fn four_octet_as(asn: u32) -> Vec<u8> {
    capability(65, &asn.to_be_bytes())
}

/// Several paths of a family are sent (RFC 7911 §4).
pub(crate) fn sends_paths(afi: u16, safi: u8) -> Vec<u8> {
    let [high, low] = afi.to_be_bytes();
    capability(69, &[high, low, safi, 2])
}

/// ROUTE-REFRESH (RFC 2918 §2).
pub(crate) fn refreshes() -> Vec<u8> {
    capability(2, &[])
}

// --- Path attributes -----------------------------------------------------------------------------

/// An attribute with a correct header.
pub(crate) fn attribute(flags: u8, code: u8, value: &[u8]) -> Vec<u8> {
    let length = two_octets(value.len());
    let extended = flags & EXTENDED != 0;
    let length = if extended { length.to_vec() } else { vec![octet(value.len())] };
    [&[flags, code], length.as_slice(), value].concat()
}

/// One AS_PATH segment of four-octet numbers.
pub(crate) fn segment(kind: u8, asns: &[u32]) -> Vec<u8> {
    let mut bytes = vec![kind, octet(asns.len())];
    bytes.extend(asns.iter().flat_map(|asn| asn.to_be_bytes()));
    bytes
}

/// One AS_PATH segment of two-octet numbers.
pub(crate) fn old_segment(kind: u8, asns: &[u16]) -> Vec<u8> {
    let mut bytes = vec![kind, octet(asns.len())];
    bytes.extend(asns.iter().flat_map(|asn| asn.to_be_bytes()));
    bytes
}

/// AS_PATH of these segments.
pub(crate) fn as_path(segments: &[Vec<u8>]) -> Vec<u8> {
    attribute(WELL_KNOWN | EXTENDED, 2, &segments.concat())
}

/// The value of MP_REACH_NLRI (RFC 4760 §3).
pub(crate) fn reach(afi: u16, safi: u8, next_hop: &[u8], nlri: &[u8]) -> Vec<u8> {
    let front = [&afi.to_be_bytes()[..], &[safi, octet(next_hop.len())], next_hop, &[0]];
    [&front.concat(), nlri].concat()
}

/// MP_REACH_NLRI.
pub(crate) fn mp_reach(afi: u16, safi: u8, next_hop: &[u8], nlri: &[u8]) -> Vec<u8> {
    attribute(OPTIONAL | EXTENDED, 14, &reach(afi, safi, next_hop, nlri))
}

/// MP_UNREACH_NLRI (RFC 4760 §4).
pub(crate) fn mp_unreach(afi: u16, safi: u8, nlri: &[u8]) -> Vec<u8> {
    attribute(OPTIONAL, 15, &[&afi.to_be_bytes(), &[safi][..], nlri].concat())
}

// --- UPDATE --------------------------------------------------------------------------------------

/// An UPDATE under construction.
#[derive(Debug, Clone, Default)]
pub(crate) struct Update {
    withdrawn: Vec<u8>,
    attributes: Vec<Vec<u8>>,
    nlri: Vec<u8>,
    /// What is added to the two true lengths.
    lies: (i32, i32),
}

/// An UPDATE of these attributes alone.
pub(crate) fn only(attributes: &[Vec<u8>]) -> Update {
    Update { attributes: attributes.to_vec(), ..Update::default() }
}

impl Update {
    /// Adds an attribute behind the others.
    pub(crate) fn with(mut self, attribute: Vec<u8>) -> Self {
        self.attributes.push(attribute);
        self
    }

    /// Adds an attribute before the others.
    pub(crate) fn first(mut self, attribute: Vec<u8>) -> Self {
        self.attributes.insert(0, attribute);
        self
    }

    /// `attribute` takes the place of the one with its type code.
    pub(crate) fn swap(mut self, attribute: Vec<u8>) -> Self {
        let place = self.attributes.iter().position(|it| it[1] == attribute[1]);
        self.attributes[place.expect("an attribute to take the place of")] = attribute;
        self
    }

    pub(crate) fn without(mut self, code: u8) -> Self {
        self.attributes.retain(|it| it[1] != code);
        self
    }

    /// The prefixes of the body.
    pub(crate) fn nlri(mut self, bytes: &[u8]) -> Self {
        self.nlri = bytes.to_vec();
        self
    }

    /// The withdrawn prefixes of the body.
    pub(crate) fn withdrawn(mut self, bytes: &[u8]) -> Self {
        self.withdrawn = bytes.to_vec();
        self
    }

    /// What is added to the true lengths of the withdrawn routes and of the attributes.
    pub(crate) fn lies(mut self, withdrawn: i32, attributes: i32) -> Self {
        self.lies = (withdrawn, attributes);
        self
    }

    /// Fills the message to `length` octets with an unknown attribute.
    pub(crate) fn filled_to(self, length: usize, code: u8) -> Self {
        let room = length - self.bytes().len() - 4;
        self.with(attribute(TRANSITIVE | EXTENDED, code, &vec![0xA5; room]))
    }

    pub(crate) fn bytes(&self) -> Vec<u8> {
        let attributes = self.attributes.concat();
        let length = |bytes: &[u8], lie: i32| {
            let length = i32::try_from(bytes.len()).expect("a length") + lie;
            u16::try_from(length).expect("a length of two octets").to_be_bytes()
        };
        let withdrawn = length(&self.withdrawn, self.lies.0);
        let total = length(&attributes, self.lies.1);
        let body = [&withdrawn[..], &self.withdrawn, &total, &attributes, &self.nlri].concat();
        message(kind::UPDATE, &body)
    }
}

/// The last attribute of type `code` in the UPDATE at the end of `messages`, as it was sent: what
/// NOTIFICATIONs give back.
pub(crate) fn attribute_in(update: &[u8], code: u8) -> Option<Vec<u8>> {
    let body = update.get(HEADER_LENGTH_BYTES..)?;
    let length = |at: usize| {
        let bytes = body.get(at..at + 2)?;
        Some(usize::from(u16::from_be_bytes([bytes[0], bytes[1]])))
    };
    let start = 2 + length(0)?;
    let mut list = body.get(start + 2..)?.get(..length(start)?)?;
    let mut found = None;
    while let [flags, this, rest @ ..] = list {
        let (width, length) = match (flags & EXTENDED != 0, rest) {
            (false, [length, ..]) => (1, usize::from(*length)),
            (true, [high, low, ..]) => (2, usize::from(u16::from_be_bytes([*high, *low]))),
            _ => break,
        };
        let Some((whole, behind)) = list.split_at_checked(2 + width + length) else { break };
        if *this == code {
            found = Some(whole.to_vec());
        }
        list = behind;
    }
    found
}
