//! What is asked of the kernel, and what it answers.
//!
//! Knows no reason. Made by [`super::Fib`], carried out by the edge.

use std::sync::Arc;

use fairway_ground::Prefix;
use fairway_netlink::{NextHop, Route, RouteKind, RouteOrder};

use super::surroundings::MARK;

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
        let route = Route {
            table: self.table,
            destination: self.prefix.into(),
            metric: MARK.metric,
            type_of_service: 0,
            kind: RouteKind::Unicast,
            protocol: MARK.protocol,
            source: None,
            next_hops: self.ways.iter().flat_map(|ways| ways.iter().cloned()).collect(),
        };
        match (&self.ways, self.replaces) {
            (None, _) => RouteOrder::Remove(route),
            (Some(_), false) => RouteOrder::Add(route),
            (Some(_), true) => RouteOrder::Replace(route),
        }
    }
}
