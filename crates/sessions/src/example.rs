//! Settings of a neighbour that the tests of this crate start from.

use std::net::IpAddr;

use fairway_ground::{
    Asn, FamilySet, HoldTime, ImportPolicy, PeerKey, PrefixFilter, RemoteAs, RouterId,
};
use fairway_seam::PeerConfig;

/// What tests start from.
pub(crate) trait Example {
    /// The settings of speaker `number` (1 or 2) towards the other of a pair: AS 65001 and 65002,
    /// hold time 9 s, both families.
    fn example(number: u8) -> Self;
}

impl Example for PeerConfig {
    fn example(number: u8) -> Self {
        let asn = |number: u8| Asn::new(65_000 + u32::from(number)).unwrap();
        let key = PeerKey::from(IpAddr::from([192, 0, 2, 3 - number]));
        let router_id = RouterId::new(u32::from(number)).unwrap();
        Self {
            name: format!("peer-{number}"),
            hold_time: HoldTime::from_seconds(9).unwrap(),
            families: FamilySet::BOTH,
            import: ImportPolicy { allowed: PrefixFilter::Everything, ..ImportPolicy::default() },
            ..Self::new(key, asn(number), RemoteAs::Asn(asn(3 - number)), router_id)
        }
    }
}
