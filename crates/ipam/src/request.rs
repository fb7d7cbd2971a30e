//! One Pod's addresses: of one family or two, IPv4 first.
//!
//! Knows no CNI: [`crate::cni`] and a replayed case ask.

use fairway_ground::{AddressFamily, Prefix};

use crate::addressing::Addressing;
use crate::assign::{Assigned, Order};
use crate::block::{Attributes, HostReserved};
use crate::error::IpamError;
use crate::gateway::Edges;
use crate::pool::Use;
use crate::search::Scope;
use crate::store::Store;

/// What is asked for of one family.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct FamilyRequest {
    /// How many addresses.
    pub count: usize,
    /// The pools that are named; empty for any.
    pub named: Vec<Prefix>,
    /// What is for no Pod of each new block.
    pub host_reserved: Option<HostReserved>,
}

/// See the module.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AddressRequest {
    /// The node.
    pub host: String,
    /// Whose they are to be.
    pub attributes: Attributes,
    /// Of IPv4.
    pub ipv4: FamilyRequest,
    /// Of IPv6.
    pub ipv6: FamilyRequest,
    /// What for.
    pub purpose: Option<Use>,
    /// The namespace of the Pod.
    pub namespace: Option<String>,
    /// How many blocks of a family the node may own.
    pub blocks_max: Option<u32>,
    /// How many addresses of a family the handle may have: what it has counts for what is asked for.
    pub per_handle_max: Option<usize>,
    /// The node runs Windows.
    pub is_windows: bool,
    /// The handle is believed to have nothing yet: nothing is given if it does, which is found out by the write that makes it.
    pub is_first: bool,
    /// The Pods are on links with the prefix of their block: addresses that mean something there are given to none.
    pub edges: Edges,
}

impl AddressRequest {
    /// What is asked for of a family.
    pub fn of(&self, family: AddressFamily) -> &FamilyRequest {
        match family {
            AddressFamily::Ipv4Unicast => &self.ipv4,
            AddressFamily::Ipv6Unicast => &self.ipv6,
        }
    }

    /// The same for the search of one family.
    pub fn scope(&self, family: AddressFamily) -> Scope {
        let FamilyRequest { named, host_reserved, .. } = self.of(family).clone();
        Scope {
            host: self.host.clone(),
            family,
            named,
            purpose: self.purpose,
            namespace: self.namespace.clone(),
            blocks_max: self.blocks_max,
            host_reserved,
            edges: self.edges,
        }
    }
}

impl<S: Store> Addressing<'_, S> {
    /// Gives addresses; `got` has them even where an error ends it, and what it has at the beginning counts.
    /// Fewer than asked for is no error where no more are to be had.
    ///
    /// # Errors
    /// Why no more are given. IPv6 is not tried then if it is IPv4's.
    pub async fn assign_families(
        &self,
        request: &AddressRequest,
        got: &mut Vec<Assigned>,
    ) -> Result<(), IpamError> {
        if request.is_windows && !self.facts.config.is_strict {
            return Err(IpamError::StrictRequired);
        }
        for family in [AddressFamily::Ipv4Unicast, AddressFamily::Ipv6Unicast] {
            let count = request.of(family).count;
            if count == 0 {
                continue;
            }
            let mut had = self.had(request, family).await?;
            had.retain(|it| !got.contains(it));
            let before = got.iter().filter(|it| AddressFamily::of(it.address) == family).count();
            let allowed = request.per_handle_max.map_or(count, |it| it.min(count));
            let order = Order {
                attributes: request.attributes.clone(),
                count: allowed.saturating_sub(had.len()).saturating_sub(before),
                got: Vec::new(),
            };
            got.extend(had);
            if order.count > 0 {
                let mut orders = [order];
                let outcome = self.assign(&request.scope(family), &mut orders).await;
                got.extend(orders.into_iter().flat_map(|it| it.got));
                outcome?;
            }
        }
        Ok(())
    }

    /// What the handle has of a family, where there is a limit to that.
    async fn had(
        &self,
        request: &AddressRequest,
        family: AddressFamily,
    ) -> Result<Vec<Assigned>, IpamError> {
        let handle =
            request.attributes.handle.as_ref().filter(|_| request.per_handle_max.is_some());
        let Some(handle) = handle else { return Ok(Vec::new()) };
        self.addresses_of_handle_in(handle, family).await
    }

    /// The addresses of a handle of one family; none where there is no such handle.
    pub(crate) async fn addresses_of_handle_in(
        &self,
        handle: &str,
        family: AddressFamily,
    ) -> Result<Vec<Assigned>, IpamError> {
        let mut had = match self.addresses_of_handle(handle).await {
            Err(IpamError::NoSuchHandle(_)) => Vec::new(),
            outcome => outcome?,
        };
        had.retain(|it| AddressFamily::of(it.address) == family);
        Ok(had)
    }

    /// Gives the address that is asked for, unless the handle has as many of its family as it may. One that the handle has
    /// is given again.
    ///
    /// # Errors
    /// Why not.
    pub async fn assign_address_within(
        &self,
        address: std::net::IpAddr,
        request: &AddressRequest,
    ) -> Result<Assigned, IpamError> {
        let family = AddressFamily::of(address);
        if request.is_windows && !self.facts.config.is_strict {
            return Err(IpamError::StrictRequired);
        }
        if let Some(maximum) = request.per_handle_max {
            let had = self.had(request, family).await?;
            if let Some(same) = had.iter().find(|it| it.address == address) {
                return Ok(*same);
            }
            if had.len() >= maximum {
                let handle = request.attributes.handle.clone().unwrap_or_default();
                return Err(IpamError::HandleLimit { handle, count: had.len() });
            }
        }
        let FamilyRequest { host_reserved, .. } = request.of(family);
        let AddressRequest { host, attributes, purpose, .. } = request;
        self.assign_address(address, host, attributes, *purpose, host_reserved.as_ref()).await
    }
}
