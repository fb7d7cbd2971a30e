//! The BGP instance that FRR would have: the heads of its tables.
//!
//! FRR has one AS and one router ID; here each peer may have its own, as in MetalLB. The heads
//! show those of the first peer, and each peer's own are beside it.

use fairway_ground::{AddressFamily, Asn, RouterId};

use super::Snapshot;
use super::object::Object;

/// LOCAL_PREF of a route that carries none.
pub(super) const LOCAL_PREF_DEFAULT: u32 = 100;

/// FRR's name of the main table.
pub const VRF_DEFAULT: &str = "default";

/// The contents of a head.
#[derive(Debug, Clone, Copy)]
pub(super) struct Instance<'a> {
    /// The VRF it runs in.
    pub(super) vrf_name: &'a str,
    /// Our AS; `None` without peers.
    pub(super) asn: Option<Asn>,
    /// Our BGP identifier.
    pub(super) router_id: RouterId,
    /// Counts changes of what is announced. One counter serves both tables and every entry.
    pub(super) table_version: u64,
}

impl<'a> Instance<'a> {
    /// The instance as the first peer of `family` sees it, or else the first of all.
    pub(super) fn of(snapshot: &Snapshot<'a>, family: Option<AddressFamily>) -> Self {
        let configs = || snapshot.bgp.peers.iter().map(|peer| &peer.config);
        let of_family = family.and_then(|family| configs().find(|it| it.families.contains(family)));
        let first = of_family.or_else(|| configs().next());
        Self {
            vrf_name: snapshot.vrf_name,
            asn: first.map(|config| config.router_asn),
            router_id: first.map_or(snapshot.router_id, |config| config.router_id),
            table_version: snapshot.bgp.generation,
        }
    }

    fn asn_text(&self) -> String {
        self.asn.map(|asn| asn.to_string()).unwrap_or_default()
    }

    /// The first lines of a summary.
    pub(super) fn summary_head(&self) -> String {
        format!(
            "BGP router identifier {}, local AS number {} vrf-id 0\nBGP table version {}\n",
            self.router_id,
            self.asn_text(),
            self.table_version
        )
    }

    /// The lines above the rows of a table, with the column heads.
    pub(super) fn table_head(&self) -> String {
        format!(
            "BGP table version is {}, local router ID is {}, vrf id 0\n\
             Default local pref {LOCAL_PREF_DEFAULT}, local AS {}\n\
             Status codes:  s suppressed, d damped, h history, * valid, > best, = multipath,\n\
             {:15}i internal, r RIB-failure, S Stale, R Removed\n\
             Nexthop codes: @NNN nexthop's vrf id, < announce-nh-self\n\
             Origin codes:  i - IGP, e - EGP, ? - incomplete\n\
             RPKI validation codes: V valid, I invalid, N Not found\n\n   \
             Network          Next Hop            Metric LocPrf Weight Path\n",
            self.table_version,
            self.router_id,
            self.asn_text(),
            ""
        )
    }

    /// Which VRF. The number of a VRF other than the main table is not known here.
    pub(super) fn vrf_fields(&self) -> Object {
        let id = (self.vrf_name == VRF_DEFAULT).then_some(0);
        Object::new().optional("vrfId", id).field("vrfName", self.vrf_name)
    }

    /// The fields beside the routes of a table.
    pub(super) fn table_fields(&self) -> Object {
        self.vrf_fields()
            .field("tableVersion", self.table_version)
            .field("routerId", self.router_id.to_string())
            .field("defaultLocPrf", LOCAL_PREF_DEFAULT)
            .optional("localAS", self.asn.map(Asn::get))
    }
}
