//! Pools, and which of them a request may have addresses from.
//!
//! Knows no block. Names decide the order, so that all nodes fill the same pool first.

use std::collections::BTreeSet;

use fairway_ground::{AddressFamily, Prefix};
use fairway_model::Labels;
use serde::{Deserialize, Serialize};

use crate::block::SIZE_BITS_MAX;
use crate::selector::{Selector, SelectorError};

/// What an address is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Use {
    /// A Pod.
    Workload,
    /// A node's end of an overlay.
    Tunnel,
    /// A Service of type LoadBalancer.
    LoadBalancer,
}

impl Use {
    /// Of a pool that does not say.
    pub const DEFAULT: [Self; 2] = [Self::Workload, Self::Tunnel];
}

/// An IPPool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pool {
    /// Its name.
    pub name: String,
    /// All its addresses.
    pub prefix: Prefix,
    /// The length of the prefixes of its blocks.
    pub block_length: u8,
    /// Nothing new is given out of it.
    pub is_disabled: bool,
    /// Only requests that name it get addresses.
    pub is_manual: bool,
    /// No BGP peer hears of its addresses.
    pub is_hidden_from_bgp: bool,
    /// Its Pods leave with an address of their node, unless it is for a Pod.
    pub is_translated: bool,
    /// The nodes that it is for.
    pub nodes: Result<Selector, SelectorError>,
    /// The namespaces that it is for; `None` for all, and for addresses of no namespace.
    pub namespaces: Option<Result<Selector, SelectorError>>,
    /// What its addresses are for.
    pub uses: BTreeSet<Use>,
}

/// Who asks for addresses of one family.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Request<'a> {
    /// The family.
    pub family: AddressFamily,
    /// The pools that it names; empty for any.
    pub named: &'a [Prefix],
    /// What for.
    pub purpose: Option<Use>,
    /// The labels of the node.
    pub node: &'a Labels,
    /// Those of the namespace, if there is one.
    pub namespace: Option<&'a Labels>,
    /// How many addresses of each block are for no Pod: smaller blocks are useless.
    pub host_reserved: u32,
}

/// Why there is no pool for a request.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ChoiceError {
    /// It does not say what for.
    #[error("the request names no use; expected Workload, Tunnel or LoadBalancer")]
    UseRequired,
    /// It names a pool that is not there.
    #[error("there is no enabled IPPool {0}")]
    UnknownPool(Prefix),
    /// It names one of the other family.
    #[error("IPPool {0} has no addresses of the family that is asked for")]
    WrongFamily(Prefix),
    /// All are disabled, of the other family or for other uses, or their blocks are too small.
    #[error("no enabled IPPool has addresses of this family for this use")]
    NoQualifiedPool,
    /// Their selectors leave the node or the namespace out, or they have to be named.
    #[error(
        "no IPPool selects this node and namespace; those with assignmentMode Manual have to be named"
    )]
    NoPoolForNode,
    /// Who it is for cannot be read.
    #[error("a selector of IPPool {pool} cannot be read: {error}")]
    BadSelector {
        /// The name of the pool.
        pool: String,
        /// Why.
        error: SelectorError,
    },
}

/// The pools that may serve a request, in the order in which they are to be tried.
///
/// # Errors
/// There is none, and why.
pub fn choose<'p>(
    pools: impl IntoIterator<Item = &'p Pool>,
    request: Request<'_>,
) -> Result<Vec<&'p Pool>, ChoiceError> {
    let Request { family, named, purpose, node, namespace, host_reserved } = request;
    let purpose = purpose.ok_or(ChoiceError::UseRequired)?;
    let mut enabled: Vec<&Pool> = pools.into_iter().filter(|it| it.is_usable()).collect();
    enabled.sort_by(|a, b| a.name.cmp(&b.name));
    for name in named {
        if AddressFamily::of(name.address()) != family {
            return Err(ChoiceError::WrongFamily(*name));
        }
        if !enabled.iter().any(|it| it.prefix == *name) {
            return Err(ChoiceError::UnknownPool(*name));
        }
    }
    enabled.retain(|it| it.prefix.family() == family && it.has_room_for(host_reserved));
    if enabled.is_empty() {
        return Err(ChoiceError::NoQualifiedPool);
    }
    if named.is_empty() {
        let mut selected = Vec::with_capacity(enabled.len());
        for pool in enabled {
            if !pool.is_manual && pool.selects_node(node)? && pool.selects_namespace(namespace)? {
                selected.push(pool);
            }
        }
        enabled = selected;
        if enabled.is_empty() {
            return Err(ChoiceError::NoPoolForNode);
        }
    } else {
        enabled.retain(|it| named.contains(&it.prefix));
    }
    enabled.retain(|it| it.uses.contains(&purpose));
    if enabled.is_empty() { Err(ChoiceError::NoQualifiedPool) } else { Ok(enabled) }
}

impl Pool {
    /// Whether new addresses are given out of it: it is enabled, and its blocks are of a size that is served.
    pub(crate) fn is_usable(&self) -> bool {
        let bits = self.prefix.family().address_bits().checked_sub(self.block_length);
        let is_served = bits.is_some_and(|it| it <= SIZE_BITS_MAX);
        !self.is_disabled && is_served && self.prefix.length() <= self.block_length
    }

    /// Whether a block is one of its own.
    pub(crate) fn serves(&self, block: Prefix) -> bool {
        self.block_length == block.length() && self.prefix.contains(block.address())
    }

    /// Whether it is for nodes with these labels.
    ///
    /// # Errors
    /// Its selector cannot be read.
    pub fn selects_node(&self, labels: &Labels) -> Result<bool, ChoiceError> {
        match &self.nodes {
            Ok(selector) => Ok(selector.matches(labels)),
            Err(error) => Err(self.bad_selector(error)),
        }
    }

    fn selects_namespace(&self, labels: Option<&Labels>) -> Result<bool, ChoiceError> {
        match (&self.namespaces, labels) {
            (None, _) => Ok(true),
            (Some(Ok(selector)), Some(labels)) => Ok(selector.matches(labels)),
            (Some(Ok(_)), None) => Ok(false),
            (Some(Err(error)), _) => Err(self.bad_selector(error)),
        }
    }

    fn bad_selector(&self, error: &SelectorError) -> ChoiceError {
        ChoiceError::BadSelector { pool: self.name.clone(), error: error.clone() }
    }

    /// Whether something is left of a block without so many addresses.
    pub(crate) fn has_room_for(&self, host_reserved: u32) -> bool {
        let whole = self.prefix.family().address_bits();
        let bits = u32::BITS.saturating_sub(host_reserved.leading_zeros());
        u32::from(self.block_length).saturating_add(bits) <= whole.into()
    }
}
