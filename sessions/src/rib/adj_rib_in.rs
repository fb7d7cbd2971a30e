//! What one peer announced and we accepted (RFC 4271 §3.2, Adj-RIB-In).
//!
//! What the import policy refuses is counted and not kept, so a neighbour that nobody asked for
//! routes costs no memory. It follows that a wider policy needs the neighbour to say everything
//! again, which is what ROUTE-REFRESH is for.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::types::{PathAttributes, PerFamily, Prefix};

/// The Adj-RIB-In of one session; it begins and ends with it.
#[derive(Debug, Default)]
pub struct AdjRibIn {
    routes: BTreeMap<Prefix, Arc<PathAttributes>>,
    counts: PerFamily<u32>,
}

impl AdjRibIn {
    /// The peer announced `prefix`. Says whether that changes anything.
    pub fn announce(&mut self, prefix: Prefix, attributes: &Arc<PathAttributes>) -> bool {
        match self.routes.insert(prefix, Arc::clone(attributes)) {
            Some(before) => before != *attributes,
            None => {
                let count = self.counts.of_mut(prefix.family());
                *count = count.saturating_add(1);
                true
            }
        }
    }

    /// The peer no longer announces `prefix`. Says whether it did.
    pub fn withdraw(&mut self, prefix: Prefix) -> bool {
        let announced = self.routes.remove(&prefix).is_some();
        if announced {
            let count = self.counts.of_mut(prefix.family());
            *count = count.saturating_sub(1);
        }
        announced
    }

    /// The prefixes of each family.
    pub fn counts(&self) -> PerFamily<u32> {
        self.counts
    }

    /// All routes, in the order of prefixes.
    pub fn routes(&self) -> &BTreeMap<Prefix, Arc<PathAttributes>> {
        &self.routes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::{AsPath, NextHop};

    //= RFC 4271 §9 MUST: a route takes the place of the earlier one of the same prefix.
    //= RFC 4271 §9 MUST: withdrawn prefixes leave the Adj-RIB-In.
    #[test]
    fn a_route_said_twice_is_one_route_and_no_change() {
        let attributes = |asn| {
            let next_hop = NextHop::Ipv4([192, 0, 2, 1].into());
            Arc::new(PathAttributes::originated(AsPath::sequence(vec![asn]), next_hop))
        };
        let (v4, v6) = ("10.0.0.0/8".parse().unwrap(), "2001:db8::/32".parse().unwrap());
        let mut table = AdjRibIn::default();
        assert!(table.announce(v4, &attributes(1)) && table.announce(v6, &attributes(1)));
        assert!(!table.announce(v4, &attributes(1)), "the same again");
        assert!(table.announce(v4, &attributes(2)), "another path in its place");
        assert_eq!(table.counts(), PerFamily { ipv4: 1, ipv6: 1 });
        assert!(table.withdraw(v4) && !table.withdraw(v4));
        assert_eq!(table.counts(), PerFamily { ipv4: 0, ipv6: 1 });
    }
}
