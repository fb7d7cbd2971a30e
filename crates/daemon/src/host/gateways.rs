//! Which are the default gateways of this machine? Peers may be one of them (`autoDiscovery`).
//!
//! Reads the kernel's default routes once somebody asks, and follows them from then on. Knows no peer. Owned by the sources
//! of a node.

use std::time::Duration;

use fairway_ground::{AddressFamily, InterfaceName};
use fairway_netlink::{Machine, RouteScope, Scope, Watch};
use fairway_plan::Gateways;
use tracing::{info, warn};

/// Until the kernel is asked again that could not be.
const RETRY_WAIT: Duration = Duration::from_secs(1);

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct GatewayWatch {
    /// `None` before the first call, and as long as it fails.
    watch: Option<Watch>,
    is_wanted: bool,
    told: Gateways,
}

impl GatewayWatch {
    /// The default gateways now. The first call takes as long as the kernel needs to list its routes.
    pub(crate) fn read(&mut self) -> Gateways {
        let is_first = !std::mem::replace(&mut self.is_wanted, true);
        if self.watch.is_none() {
            let scope = Scope { routes: Some(RouteScope::Default), ..Scope::default() };
            match Watch::open(scope) {
                Ok(watch) => self.watch = Some(watch),
                Err(error) if is_first => {
                    warn!(%error, "cannot read the default routes; trying again every second");
                }
                Err(_) => {}
            }
        }
        let machine = self.watch.as_ref().map(Watch::snapshot);
        let gateways = machine.as_ref().map(gateways).unwrap_or_default();
        if gateways != self.told {
            for ((vrf, family), address) in &gateways {
                let vrf = vrf.map(tracing::field::display);
                info!(%address, vrf, "{} default gateway", family.ip_version());
            }
            self.told.clone_from(&gateways);
        }
        gateways
    }

    /// Waits until they are others than [`GatewayWatch::read`] said; for ever before its first call. Cancel-safe.
    pub(crate) async fn changed(&mut self) {
        match &mut self.watch {
            // Interfaces and addresses of Pods come and go all the time.
            Some(watch) => {
                while gateways(&watch.snapshot()) == self.told {
                    watch.changed().await;
                }
            }
            None if self.is_wanted => tokio::time::sleep(RETRY_WAIT).await,
            None => std::future::pending().await,
        }
    }
}

fn gateways(machine: &Machine) -> Gateways {
    let vrfs = machine.links().filter(|link| link.is_vrf());
    let named =
        vrfs.filter_map(|link| Some((link.index, link.name.parse::<InterfaceName>().ok()?)));
    let all = named.map(|(index, name)| (Some(index), Some(name))).chain([(None, None)]);
    let of = |(index, name): (Option<u32>, Option<InterfaceName>)| {
        AddressFamily::ALL.into_iter().filter_map(move |family| {
            let is_ipv6 = family == AddressFamily::Ipv6Unicast;
            Some(((name, family), machine.default_gateway(index, is_ipv6)?))
        })
    };
    all.flat_map(of).collect()
}
