//! Policies in the words of a BGPPeer, which each source comes to.
//!
//! | question | file |
//! |---|---|
//! | which prefixes a range has | `range` |
//! | what a rule matches, sets and does | `rule` |
//! | what passes in one direction | `passes` |
//! | what is announced of our own | `own_route` |

mod own_route;
mod passes;
mod range;
mod rule;

pub(crate) use own_route::{Advertisements, OwnRoute};
pub(crate) use passes::{Named, Passes, policy};
pub(crate) use range::{Range, RangeIndex};
pub(crate) use rule::{Action, Matches, PREPEND_MAX, Rule, Settings};
