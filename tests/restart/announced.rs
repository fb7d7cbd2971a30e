//! What does the node announce? A thousand prefixes of both families, some as the addresses of
//! Services, which come from an allocator, and some that an advertisement lists. Used by the stage.

use std::collections::BTreeSet;
use std::net::IpAddr;

use anyhow::{Context, Result};

use lab::Family;
use lab::fairway::Fairway;
use lab::resources::{Advertisement, pool, service};

const SERVICES: usize = 450;
/// The first of them have an IPv6 address, too.
const DUAL_STACK: usize = 50;
const LISTED: usize = 500;

const POOL_IPV4: &str = "198.18.0.0/16";
const POOL_IPV6: &str = "2001:db8:77::/120";

/// Of a service in each family, and of the list.
pub(crate) const PROBED: [&str; 3] = ["198.18.0.1", "2001:db8:77::1", "198.19.0.1"];

fn of_service(number: usize) -> String {
    format!("198.18.{}.{}", number / 250, number % 250 + 1)
}

fn ipv6_of_service(number: usize) -> Option<String> {
    (number < DUAL_STACK).then(|| format!("2001:db8:77::{:x}", number + 1))
}

fn listed() -> Vec<String> {
    (0..LISTED).map(|number| format!("198.19.{}.{}/32", number / 250, number % 250 + 1)).collect()
}

/// Every prefix of a family.
pub(crate) fn prefixes(family: Family) -> BTreeSet<String> {
    match family {
        Family::Ipv4 => {
            let services = (0..SERVICES).map(|number| of_service(number) + "/32");
            services.chain(listed()).collect()
        }
        Family::Ipv6 => {
            let addresses = (0..SERVICES).filter_map(ipv6_of_service);
            addresses.map(|address| address + "/128").collect()
        }
    }
}

/// The addresses that are probed.
pub(crate) fn probed() -> Result<Vec<IpAddr>> {
    PROBED.iter().map(|address| address.parse().context("a probed address")).collect()
}

/// The resource files of all of it.
pub(crate) fn apply(fairway: &Fairway) -> Result<()> {
    fairway.apply("pool", &pool("main", &[POOL_IPV4, POOL_IPV6]))?;
    let advertisement = Advertisement { name: "services", pools: &["main"], ..<_>::default() };
    fairway.apply("services-advertised", &advertisement.yaml())?;
    let listed = listed();
    let advertisement = Advertisement { name: "listed", prefixes: &listed, ..<_>::default() };
    fairway.apply("listed", &advertisement.yaml())?;
    let services = (0..SERVICES).map(|number| {
        let addresses = [Some(of_service(number)), ipv6_of_service(number)];
        let addresses: Vec<String> = addresses.into_iter().flatten().collect();
        service(&format!("service-{number:03}"), Some(&addresses.join(",")))
    });
    fairway.apply("services", &services.collect::<Vec<_>>().join("---\n"))
}
