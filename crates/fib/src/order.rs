//! What is asked of the kernel, and what it answers.
//!
//! Knows no reason. Made by [`super::Fib`], carried out by the edge.

use std::sync::Arc;

use fairway_ground::Prefix;
use fairway_netlink::{NextHop, Route, RouteKind, RouteOrder};

use super::surroundings::MARK;

/// The only way of a route that drops: no interface and no router.
pub(crate) const DROP: NextHop = NextHop { index: None, gateway: None, weight: 1 };

/// The ways of a route of the kernel.
pub(crate) fn ways_of(route: Route) -> Arc<[NextHop]> {
    if route.kind == RouteKind::Blackhole { Arc::from([DROP]) } else { route.next_hops.into() }
}

/// A change of a route of ours.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Order {
    /// The table that it is in.
    pub table: u32,
    /// Its destination.
    pub prefix: Prefix,
    /// Its ways from now on; none where it goes.
    pub ways: Option<Arc<[NextHop]>>,
    /// There is one already.
    pub replaces: bool,
}

/// Why the kernel did not carry out an order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refused {
    /// There is a route with its table, destination and metric, which is not ours.
    Exists,
    /// There is no such route to remove.
    NotThere,
    /// This process may not change routes.
    NotPermitted,
    /// Another error of this number.
    Other(i32),
}

/// What became of an order.
pub type Outcome = Result<(), Refused>;

impl Order {
    /// In the words of the kernel.
    pub fn in_kernel(&self) -> RouteOrder {
        let ways = self.ways.as_deref().unwrap_or_default();
        let drops = ways == [DROP];
        let route = Route {
            table: self.table,
            destination: self.prefix.into(),
            metric: MARK.metric,
            type_of_service: 0,
            kind: if drops { RouteKind::Blackhole } else { RouteKind::Unicast },
            protocol: MARK.protocol,
            source: None,
            next_hops: if drops { Vec::new() } else { ways.to_vec() },
        };
        match (&self.ways, self.replaces) {
            (None, _) => RouteOrder::Remove(route),
            (Some(_), false) => RouteOrder::Add(route),
            (Some(_), true) => RouteOrder::Replace(route),
        }
    }
}
