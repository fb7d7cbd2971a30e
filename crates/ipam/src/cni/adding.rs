//! ADD: a container gets its addresses.

use std::collections::BTreeSet;
use std::net::IpAddr;

use fairway_ground::{AddressFamily, Prefix};
use serde_json::{Value, json};

use super::error::{CniError, Code};
use super::request::{Gateways, Request, address};
use super::serve::{ANNOTATIONS, Begun, Call};
use super::version::CniVersion;
use crate::assign::Assigned;
use crate::error::IpamError;
use crate::release::Places;
use crate::store::Store;
use crate::together::Answered;

/// An address as it is printed.
struct Line {
    address: IpAddr,
    length: u8,
    gateway: Option<IpAddr>,
}

impl<S: Store> Call<'_, S> {
    /// What it is to be given; or the answer, where it asks for certain addresses.
    pub(super) async fn begin_add(&self) -> Result<Begun, CniError> {
        if !self.addressing.facts.nodes.contains_key(self.node) {
            return Err(CniError::refused(&IpamError::NodeUnknown(self.node.to_owned())));
        }
        let wished = self.wished()?;
        if !wished.is_empty() {
            let had = self.had().await?;
            let got = self.assign_wished(&wished, &had).await?;
            let outcome = self.lines_of_wished(&got).await;
            if outcome.is_err() {
                let had: Vec<IpAddr> = had.iter().map(|it| it.address).collect();
                let new: Vec<IpAddr> = got.into_iter().filter(|it| !had.contains(it)).collect();
                self.take_back(&new).await?;
            }
            return Ok(Begun::Done(Some(self.result(&outcome?))));
        }
        // Most containers are new, which the write of the handle tells without a question.
        let mut request = self.address_request(&self.families()?)?;
        request.is_first = true;
        Ok(Begun::Asks(Box::new(request)))
    }

    /// What it prints. `answered` is what came of the addresses that it asked for.
    pub(super) async fn finish_add(&self, answered: Answered) -> Result<Value, CniError> {
        if !matches!(answered.error, Some(IpamError::HandleInUse(_))) {
            let families = self.families()?;
            return self.finish(Vec::new(), &families, answered).await;
        }
        // A runtime that had no answer asks again: the container has its addresses.
        let families = self.families()?;
        let mut had = self.had().await?;
        had.retain(|it| families.contains(&AddressFamily::of(it.address)));
        had.dedup_by_key(|it| AddressFamily::of(it.address));
        let has =
            |family: &AddressFamily| had.iter().any(|it| AddressFamily::of(it.address) == *family);
        let missing = families.into_iter().filter(|it| !has(it)).collect();
        let request = self.address_request(&missing)?;
        let answered = self.addressing.assign_together(std::slice::from_ref(&request)).await;
        self.finish(had, &missing, answered.into_iter().next().unwrap_or_default()).await
    }

    async fn finish(
        &self,
        mut had: Vec<Assigned>,
        missing: &BTreeSet<AddressFamily>,
        Answered { got, error }: Answered,
    ) -> Result<Value, CniError> {
        if error.is_some() || got.len() < missing.len() {
            let addresses: Vec<IpAddr> = got.iter().map(|it| it.address).collect();
            self.take_back(&addresses).await?;
            return Err(match error {
                Some(error) => CniError::refused(&error),
                None => CniError::new(
                    Code::TryAgain,
                    "no address is assigned",
                    "the IPPools have no free address for this node",
                ),
            });
        }
        let addresses: Vec<IpAddr> = got.iter().map(|it| it.address).collect();
        had.extend(got);
        had.sort_by_key(|it| AddressFamily::of(it.address));
        let mut lines = Vec::with_capacity(had.len());
        for Assigned { address, block } in had {
            match self.gateway(address, block).await {
                Ok(gateway) => lines.push(Line { address, length: block.length(), gateway }),
                Err(error) => {
                    self.take_back(&addresses).await?;
                    return Err(error);
                }
            }
        }
        Ok(self.result(&lines))
    }

    /// The lines of addresses that were asked for: they stand alone.
    async fn lines_of_wished(&self, addresses: &[IpAddr]) -> Result<Vec<Line>, CniError> {
        let mut lines = Vec::with_capacity(addresses.len());
        for address in addresses {
            let found = self.addressing.block_with(*address, &mut Places::default()).await;
            let host = Prefix::host(*address);
            let block = found.map_err(|it| CniError::refused(&it.into()))?.unwrap_or(host);
            let gateway = self.gateway(*address, block).await?;
            lines.push(Line { address: *address, length: host.length(), gateway });
        }
        Ok(lines)
    }

    /// The gateway of an address, where there is to be one.
    async fn gateway(&self, address: IpAddr, block: Prefix) -> Result<Option<IpAddr>, CniError> {
        match &self.request.configuration.gateways {
            Gateways::Named(gateways) => {
                Ok(gateways.iter().find(|it| it.is_ipv4() == address.is_ipv4()).copied())
            }
            Gateways::OfBlocks => match self.addressing.gateway_of(block).await {
                Ok(gateway) => Ok(Some(gateway)),
                Err(IpamError::AlreadyAssigned(gateway)) => Err(CniError::configuration(format!(
                    "ipam.gateway is \"block\", and {gateway}, which that is of block {block}, is in use"
                ))),
                Err(error) => Err(CniError::refused(&error)),
            },
        }
    }

    /// What the interface has.
    async fn had(&self) -> Result<Vec<Assigned>, CniError> {
        let held = self.held(&self.handle).await?;
        Ok(held.into_iter().filter(|it| self.is_of_interface(it)).map(|it| it.assigned).collect())
    }

    /// Gives the addresses that are asked for: all, or none.
    async fn assign_wished(
        &self,
        wished: &[IpAddr],
        had: &[Assigned],
    ) -> Result<Vec<IpAddr>, CniError> {
        let request = self.address_request(&BTreeSet::new())?;
        let mut got = Vec::new();
        for address in wished {
            if had.iter().any(|it| it.address == *address) {
                continue;
            }
            match self.addressing.assign_address_within(*address, &request).await {
                Ok(_) => got.push(*address),
                Err(error) => {
                    self.take_back(&got).await?;
                    return Err(CniError::refused(&error));
                }
            }
        }
        Ok(wished.to_vec())
    }

    /// The families of the container: those of the Pod's annotation, else the configuration's.
    fn families(&self) -> Result<BTreeSet<AddressFamily>, CniError> {
        let Some(names) = self.annotation(&self.notes.of_pod, "ipFamilies")? else {
            return Ok(self.request.configuration.families.clone());
        };
        let family = |name: &String| match name.to_ascii_lowercase().as_str() {
            "ipv4" => Ok(AddressFamily::Ipv4Unicast),
            "ipv6" => Ok(AddressFamily::Ipv6Unicast),
            _ => {
                let details =
                    format!("{ANNOTATIONS}ipFamilies has {name:?}; expected IPv4 or IPv6");
                Err(CniError::configuration(details))
            }
        };
        let families: BTreeSet<AddressFamily> =
            names.iter().map(family).collect::<Result<_, _>>()?;
        match families.is_empty() {
            true => Ok(self.request.configuration.families.clone()),
            false => Ok(families),
        }
    }

    /// The addresses that are asked for: by CNI_ARGS, else by the Pod's annotation.
    fn wished(&self) -> Result<Vec<IpAddr>, CniError> {
        if !self.request.wished.is_empty() {
            return Ok(self.request.wished.clone());
        }
        let texts = self.annotation(&self.notes.of_pod, "ipAddrs")?.unwrap_or_default();
        let read = |text: &String| {
            let details = || format!("{ANNOTATIONS}ipAddrs has {text:?}; expected an address");
            address(text).ok_or_else(|| CniError::configuration(details()))
        };
        let mut wished: Vec<IpAddr> = texts.iter().map(read).collect::<Result<_, _>>()?;
        wished.sort_unstable();
        wished.dedup();
        Ok(wished)
    }

    /// What ADD prints.
    fn result(&self, lines: &[Line]) -> Value {
        let Request { version, configuration, .. } = self.request;
        let ip = |Line { address, length, gateway }: &Line| {
            let mut ip = serde_json::Map::new();
            if *version < CniVersion::V1_0_0 {
                let number = if address.is_ipv4() { "4" } else { "6" };
                ip.insert("version".to_owned(), number.into());
            }
            ip.insert("address".to_owned(), format!("{address}/{length}").into());
            if let Some(gateway) = gateway {
                ip.insert("gateway".to_owned(), gateway.to_string().into());
            }
            Value::Object(ip)
        };
        let own_routes =
            || lines.iter().map(|it| json!({"dst": Prefix::host(it.address)})).collect();
        json!({
            "cniVersion": version.to_string(),
            "ips": lines.iter().map(ip).collect::<Vec<_>>(),
            "routes": configuration.routes.clone().unwrap_or_else(own_routes),
            "dns": {},
        })
    }
}
