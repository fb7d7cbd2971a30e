//! With which attributes a route leaves towards one peer, or why it does not (RFC 4271 §9.1.3).

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::backend::{DesiredRoute, RouteAttributes};
use crate::types::{
    AddressFamily, AsPath, FamilySet, LocalNextHops, PathAttributes, PeerConfig, PeerKind,
};

/// LOCAL_PREF of a route that does not say (FRR's and BIRD's default).
const LOCAL_PREF_DEFAULT: u32 = 100;

/// Why a route is not announced to a peer that it is meant for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Ineligible {
    /// The session does not carry the family.
    #[error("the session does not carry {0}")]
    Family(AddressFamily),
    /// This end has no address that the peer could send to.
    #[error("the interface of the session has no global address to be the next hop for {0}")]
    NextHop(AddressFamily),
    /// The attributes do not fit a message.
    #[error(transparent)]
    TooLong(#[from] crate::wire::announce::TooLong),
}

/// The export policy of one session. Remembers what it made of each set of attributes, so that
/// thousands of routes share one value.
#[derive(Debug)]
pub struct Exporter {
    kind: PeerKind,
    as_path: AsPath,
    families: FamilySet,
    next_hops: LocalNextHops,
    made: BTreeMap<(AddressFamily, Arc<RouteAttributes>), Arc<PathAttributes>>,
}

impl Exporter {
    /// The policy towards `config`'s neighbour, on a session that carries `families` and leaves
    /// this machine at `next_hops`.
    pub fn new(config: &PeerConfig, families: FamilySet, next_hops: LocalNextHops) -> Self {
        let kind = config.kind();
        let as_path = match kind {
            PeerKind::External => AsPath::sequence(vec![config.local_asn.get()]),
            PeerKind::Internal => AsPath::default(),
        };
        Self { kind, as_path, families, next_hops, made: BTreeMap::new() }
    }

    /// The attributes that `route` leaves with.
    pub fn export(&mut self, route: &DesiredRoute) -> Result<Arc<PathAttributes>, Ineligible> {
        let family = route.prefix.family();
        if !self.families.contains(family) {
            return Err(Ineligible::Family(family));
        }
        let key = (family, Arc::clone(&route.attributes));
        if let Some(made) = self.made.get(&key) {
            return Ok(Arc::clone(made));
        }
        let next_hop = self.next_hops.of(family).ok_or(Ineligible::NextHop(family))?;
        let RouteAttributes { local_pref, communities, large_communities } = &*route.attributes;
        let mut attributes = PathAttributes::originated(self.as_path.clone(), next_hop);
        attributes.communities = communities.clone();
        attributes.large_communities = large_communities.clone();
        // External peers must not be sent it (RFC 4271 §5.1.5).
        attributes.local_pref =
            (self.kind == PeerKind::Internal).then(|| local_pref.unwrap_or(LOCAL_PREF_DEFAULT));
        let attributes = Arc::new(attributes);
        self.made.insert(key, Arc::clone(&attributes));
        Ok(attributes)
    }

    /// Forgets what it made: attributes that no route has any more would pile up.
    pub fn forget(&mut self) {
        self.made.clear();
    }
}
