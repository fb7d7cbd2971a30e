//! What is an entry of the corpus? A name, where it comes from, the bytes, when they are sent, and
//! exactly what has to become of them. Used by the tables in `entries` and by all that run them.

use crate::bytes::{
    Open, SEQUENCE, Update, WELL_KNOWN, as_path, attribute, attribute_in, four_octet_as, mp_reach,
    multiprotocol, old_segment, only, refreshes, segment, sends_paths,
};

/// The AS of the speaker under test.
pub(crate) const OUR_AS: u16 = 64500;
/// The AS of an external peer.
pub(crate) const PEER_AS: u16 = 64501;
/// The AS of the second peer, which receives what was learned.
pub(crate) const OBSERVER_AS: u16 = 64502;
/// Behind the peer: the origin of the good routes, and of the ones in the bytes.
pub(crate) const FIRST_ORIGIN: u16 = 64510;
pub(crate) const SECOND_ORIGIN: u16 = 64520;

/// Announced before the bytes, and by them: what becomes of it is the answer.
pub(crate) const SUBJECT: &str = "10.1.1.0/24";
pub(crate) const SUBJECT_NLRI: &[u8] = &[24, 10, 1, 1];
/// Announced before the bytes: stays, whatever they are, unless the session ends.
pub(crate) const KEPT: &str = "10.1.2.0/24";
pub(crate) const KEPT_NLRI: &[u8] = &[24, 10, 1, 2];
/// Announced after the bytes: the session has lived through them.
pub(crate) const SENTINEL: &str = "10.1.3.0/24";
pub(crate) const SENTINEL_NLRI: &[u8] = &[24, 10, 1, 3];
/// What the speaker under test originates.
pub(crate) const ORIGINATED: &str = "198.51.100.0/24";

/// The IPv6 counterpart of the subject; nothing announces it before the bytes do.
pub(crate) const SUBJECT6: &str = "2001:db8:1::/48";
pub(crate) const SUBJECT6_NLRI: &[u8] = &[48, 0x20, 0x01, 0x0D, 0xB8, 0, 1];
/// A global IPv6 address of the peer.
pub(crate) const GLOBAL: [u8; 16] = [0x20, 0x01, 0x0D, 0xB8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1];

/// Where `show` has the AS_PATH of a path.
pub(crate) const AS_PATH_POINTER: &str = "/aspath/string";

/// Whether the peer is in our AS.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    External,
    Internal,
}

impl Kind {
    pub(crate) const ALL: [Self; 2] = [Self::External, Self::Internal];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::External => "eBGP",
            Self::Internal => "iBGP",
        }
    }

    pub(crate) fn peer_asn(self) -> u16 {
        match self {
            Self::External => PEER_AS,
            Self::Internal => OUR_AS,
        }
    }
}

/// What the good OPEN of the peer offers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Offer {
    /// Both families and four-octet AS numbers.
    New,
    /// No four-octet AS numbers (RFC 6793: an OLD speaker).
    Old,
    /// IPv4 alone.
    Ipv4,
    /// IPv4 alone, and no four-octet AS numbers.
    OldIpv4,
    /// IPv4 alone, and several paths to a prefix (RFC 7911).
    Ipv4Paths,
}

impl Offer {
    pub(crate) fn has_ipv6(self) -> bool {
        matches!(self, Self::New | Self::Old)
    }

    fn has_four_octet_as(self) -> bool {
        matches!(self, Self::New | Self::Ipv4 | Self::Ipv4Paths)
    }

    pub(crate) fn has_paths(self) -> bool {
        self == Self::Ipv4Paths
    }
}

/// The ends of the sessions.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Scene {
    pub(crate) kind: Kind,
    pub(crate) offer: Offer,
    /// The peer that sends the bytes.
    pub(crate) peer: [u8; 4],
    /// The speaker under test: its end of the session, and its BGP identifier.
    pub(crate) speaker: [u8; 4],
}

/// When the bytes are sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Moment {
    /// In place of the peer's OPEN; when that is accepted, all goes on as it would.
    InsteadOfOpen,
    /// In the segment of the peer's good OPEN; then its KEEPALIVE.
    BehindOpen,
    /// In place of its KEEPALIVE, when OPENs were exchanged.
    InsteadOfKeepalive,
    /// When the session is up, and the good routes are known.
    Established,
}

impl Moment {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::InsteadOfOpen => "instead of OPEN",
            Self::BehindOpen => "behind OPEN",
            Self::InsteadOfKeepalive => "instead of KEEPALIVE",
            Self::Established => "in Established",
        }
    }
}

/// How the bytes are sent, and what is done after them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Manner {
    /// In one piece.
    Whole,
    /// One at a time.
    ByteByByte,
    /// Then the peer closes its side.
    ThenFin,
    /// Then the peer resets the connection.
    ThenReset,
}

/// The data of a NOTIFICATION.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Data {
    Bytes(&'static [u8]),
    /// The last attribute of this type code, as it was sent.
    Attribute(u8),
    /// The message, as it was sent.
    Message,
}

/// What must become of the bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Action {
    /// The session ends with this NOTIFICATION.
    Notification(u8, u8, Data),
    /// The connection ends without a NOTIFICATION.
    Silence,
    /// Treat-as-withdraw (RFC 7606 §2): what the bytes announce is gone, the session stays.
    Withdraw,
    /// It was parsed, and cannot be used: as above for all observers.
    Exclude,
    /// Attribute discard: the routes are as in the bytes, without these attributes.
    Discard(&'static [u8]),
    /// The routes are as in the bytes.
    Accept,
    /// Nothing changes.
    Ignore,
}

impl Action {
    /// Whether the session lives.
    pub(crate) fn is_mild(self) -> bool {
        !matches!(self, Self::Notification(..) | Self::Silence)
    }

    /// As text.
    pub(crate) fn words(self) -> String {
        match self {
            Self::Notification(code, subcode, Data::Bytes([])) => {
                format!("NOTIFICATION {code}/{subcode}")
            }
            Self::Notification(code, subcode, data) => {
                let data = match data {
                    Data::Bytes(bytes) => hex(bytes),
                    Data::Attribute(code) => format!("attribute {code}"),
                    Data::Message => "the message".to_owned(),
                };
                format!("NOTIFICATION {code}/{subcode}, data: {data}")
            }
            Self::Silence => "closed in silence".to_owned(),
            Self::Withdraw => "treat-as-withdraw".to_owned(),
            Self::Exclude => "not used".to_owned(),
            Self::Discard(codes) => {
                let codes: Vec<_> = codes.iter().map(ToString::to_string).collect();
                format!("attribute discard: {}", codes.join(", "))
            }
            Self::Accept => "accepted".to_owned(),
            Self::Ignore => "ignored".to_owned(),
        }
    }
}

/// What BIRD 2.0.12 makes of the bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// The session is up; whether the prefixes of the bytes are there.
    Up { present: bool },
    /// The session ended with a NOTIFICATION of this code and subcode.
    Notified(u8, u8),
    /// The connection ended without one.
    Closed,
}

impl Verdict {
    pub(crate) fn words(self) -> String {
        match self {
            Self::Up { present: true } => "up, prefix present".to_owned(),
            Self::Up { present: false } => "up, prefix absent".to_owned(),
            Self::Notified(code, subcode) => format!("NOTIFICATION {code}/{subcode}"),
            Self::Closed => "closed in silence".to_owned(),
        }
    }
}

/// Why BIRD answers otherwise, where that is so in more than one chapter.
pub(crate) const NEXT_HOPS: &str = "takes the route; the next hop is judged where it is used";
pub(crate) const WELL_KNOWN_WITHDRAWS: &str = "withdraws for a well-known attribute of no name";

/// Where BIRD answers otherwise, and why both may.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Difference {
    pub(crate) kind: Option<Kind>,
    pub(crate) verdict: Verdict,
    pub(crate) reason: &'static str,
}

/// One entry.
#[derive(Debug, Clone)]
pub(crate) struct Entry {
    pub(crate) name: &'static str,
    pub(crate) source: &'static str,
    pub(crate) moment: Moment,
    pub(crate) offer: Offer,
    pub(crate) manner: Manner,
    pub(crate) bytes: fn(&Scene) -> Vec<u8>,
    /// The prefixes that the bytes are about.
    pub(crate) about: &'static [&'static str],
    pub(crate) external: Action,
    pub(crate) internal: Action,
    /// What `show` says of the path to the first prefix, by JSON pointer.
    pub(crate) shows: Vec<(&'static str, &'static str)>,
    /// Its AS_PATH is too long, or too odd, to be compared with what is shown.
    pub(crate) has_long_path: bool,
    /// The OPEN in its bytes does not offer ROUTE-REFRESH.
    pub(crate) offers_no_refresh: bool,
    /// The peer must be next door: ebgpMultiHop is off.
    pub(crate) adjacent: bool,
    /// It is used, but has no room in a message once our AS is in front.
    pub(crate) too_long_to_tell: bool,
    pub(crate) bird: Vec<Difference>,
}

/// An entry that is treated alike from both kinds of peer.
pub(crate) fn entry(
    moment: Moment,
    name: &'static str,
    source: &'static str,
    bytes: fn(&Scene) -> Vec<u8>,
    action: Action,
) -> Entry {
    Entry {
        name,
        source,
        moment,
        offer: Offer::New,
        manner: Manner::Whole,
        bytes,
        about: &[SUBJECT],
        external: action,
        internal: action,
        shows: Vec::new(),
        has_long_path: false,
        offers_no_refresh: false,
        adjacent: false,
        too_long_to_tell: false,
        bird: Vec::new(),
    }
}

/// An entry with bytes that are sent when the session is up.
pub(crate) fn established(
    name: &'static str,
    source: &'static str,
    bytes: fn(&Scene) -> Vec<u8>,
    action: Action,
) -> Entry {
    entry(Moment::Established, name, source, bytes, action)
}

impl Entry {
    pub(crate) fn internal(self, action: Action) -> Self {
        Self { internal: action, ..self }
    }

    pub(crate) fn offering(self, offer: Offer) -> Self {
        Self { offer, ..self }
    }

    pub(crate) fn sent(self, manner: Manner) -> Self {
        Self { manner, ..self }
    }

    pub(crate) fn about(self, prefixes: &'static [&'static str]) -> Self {
        Self { about: prefixes, ..self }
    }

    /// `show` has `value` at `pointer` of the path to the first prefix.
    pub(crate) fn shows(mut self, pointer: &'static str, value: &'static str) -> Self {
        self.shows.push((pointer, value));
        self
    }

    /// The AS_PATH that is shown, where it is another than that of [`Scene::update`].
    pub(crate) fn shows_path(self, path: &'static str) -> Self {
        self.shows(AS_PATH_POINTER, path)
    }

    pub(crate) fn of_a_long_path(self) -> Self {
        Self { has_long_path: true, ..self }
    }

    pub(crate) fn offering_no_refresh(self) -> Self {
        Self { offers_no_refresh: true, ..self }
    }

    /// The peer must be next door.
    pub(crate) fn adjacent(self) -> Self {
        Self { adjacent: true, ..self }
    }

    pub(crate) fn too_long_to_tell(self) -> Self {
        Self { too_long_to_tell: true, ..self }
    }

    /// BIRD answers otherwise, from both kinds of peer.
    pub(crate) fn bird(self, verdict: Verdict, reason: &'static str) -> Self {
        self.differs(None, verdict, reason)
    }

    /// BIRD answers otherwise, from one kind of peer.
    pub(crate) fn bird_on(self, kind: Kind, verdict: Verdict, reason: &'static str) -> Self {
        self.differs(Some(kind), verdict, reason)
    }

    fn differs(mut self, kind: Option<Kind>, verdict: Verdict, reason: &'static str) -> Self {
        self.bird.push(Difference { kind, verdict, reason });
        self
    }

    pub(crate) fn action(&self, kind: Kind) -> Action {
        match kind {
            Kind::External => self.external,
            Kind::Internal => self.internal,
        }
    }

    pub(crate) fn difference(&self, kind: Kind) -> Option<&Difference> {
        self.bird.iter().find(|it| it.kind.is_none_or(|only| only == kind))
    }

    /// The bytes, and the data of the NOTIFICATION that must answer them.
    pub(crate) fn expected_data(&self, scene: &Scene, data: Data) -> Vec<u8> {
        let bytes = (self.bytes)(scene);
        match data {
            Data::Bytes(data) => data.to_vec(),
            Data::Attribute(code) => attribute_in(&bytes, code).expect("the attribute was sent"),
            Data::Message => bytes,
        }
    }
}

impl Scene {
    pub(crate) fn capabilities(&self) -> Vec<Vec<u8>> {
        let mut capabilities = vec![refreshes(), multiprotocol(1, 1)];
        if self.offer.has_ipv6() {
            capabilities.push(multiprotocol(2, 1));
        }
        if self.offer.has_four_octet_as() {
            capabilities.push(four_octet_as(self.kind.peer_asn().into()));
        }
        if self.offer.has_paths() {
            capabilities.push(sends_paths(1, 1));
        }
        capabilities
    }

    /// The peer's good OPEN.
    pub(crate) fn open(&self) -> Open {
        Open::new(self.kind.peer_asn(), self.peer, &self.capabilities())
    }

    /// AS_PATH from `origin` through the peer.
    pub(crate) fn path(&self, origin: u16) -> Vec<u8> {
        let hops = match self.kind {
            Kind::External => vec![PEER_AS, origin],
            Kind::Internal => vec![origin],
        };
        self.path_of(&hops)
    }

    fn path_of(&self, hops: &[u16]) -> Vec<u8> {
        let wide: Vec<u32> = hops.iter().copied().map(u32::from).collect();
        let four_octets = self.offer.has_four_octet_as();
        as_path(&[if four_octets { segment(SEQUENCE, &wide) } else { old_segment(SEQUENCE, hops) }])
    }

    /// A good UPDATE of `nlri`, before the bytes: path 1 to it, where there are several.
    pub(crate) fn announcement(&self, nlri: &[u8]) -> Update {
        let path_id: &[u8] = if self.offer.has_paths() { &[0, 0, 0, 1] } else { &[] };
        self.attributes(FIRST_ORIGIN).nlri(&[path_id, nlri].concat())
    }

    /// The same for IPv6.
    pub(crate) fn announcement6(&self) -> Update {
        self.reachable6(FIRST_ORIGIN)
    }

    /// The UPDATE that entries change: the subject again, by another way.
    pub(crate) fn update(&self) -> Update {
        self.attributes(SECOND_ORIGIN).nlri(SUBJECT_NLRI)
    }

    /// The same for IPv6.
    pub(crate) fn update6(&self) -> Update {
        self.reachable6(SECOND_ORIGIN)
    }

    fn reachable6(&self, origin: u16) -> Update {
        let reach = mp_reach(2, 1, &GLOBAL, SUBJECT6_NLRI);
        self.attributes(origin).without(3).first(reach)
    }

    fn attributes(&self, origin: u16) -> Update {
        let update = only(&[
            attribute(WELL_KNOWN, 1, &[0]),
            self.path(origin),
            attribute(WELL_KNOWN, 3, &self.peer),
        ]);
        match self.kind {
            Kind::External => update,
            Kind::Internal => update.with(attribute(WELL_KNOWN, 5, &[0, 0, 0, 100])),
        }
    }

    /// The AS_PATH of the subject after [`Scene::update`], as it is shown.
    pub(crate) fn shown_path(&self, origin: u16) -> String {
        match self.kind {
            Kind::External => format!("{PEER_AS} {origin}"),
            Kind::Internal => origin.to_string(),
        }
    }
}

pub(crate) fn hex(bytes: &[u8]) -> String {
    let bytes: Vec<_> = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    bytes.join(" ")
}
