//! The addresses that a Service may have in its status, or had a moment ago, as one line of text.
//!
//! The leader keeps the line in the Lease, ahead of its writes; so a new leader knows at once which unclaimed
//! addresses a router may still send to their former Services, and all others it may assign. Knows no time.
//! The controller and the Lease's edge use it.

use std::collections::BTreeMap;
use std::net::IpAddr;

use fairway_model::ObjectName;

/// Addresses, and the only Service that may have one at once: it was about to get it, or has lost it.
pub(super) type Addresses = BTreeMap<IpAddr, Option<ObjectName>>;

/// The bound on ranges, about 20 KiB of text (40 with long IPv6 addresses): it is written with each renewal of
/// the Lease. Addresses are assigned from the lowest, so many thousands of them are a few ranges.
const RANGES_MAX: usize = 512;
/// The bound on Services in the line, each of up to 320 bytes. Others wait for their address, or get another.
const SERVICES_MAX: usize = 64;
/// The bound on addresses in a line that is read: the size of a /16.
const ADDRESSES_MAX: u128 = 65_536;

/// A line for these addresses; `None` if they are too many ranges. Then there is no record.
pub(super) fn text(addresses: &Addresses) -> Option<String> {
    let mut named: Vec<String> = Vec::new();
    let mut ranges: Vec<(IpAddr, IpAddr)> = Vec::new();
    for (address, service) in addresses {
        if let Some(service) = service
            && named.len() < SERVICES_MAX
        {
            named.push(format!("{address}={service}"));
        } else if let Some((_, last)) = ranges.last_mut()
            && follows(*last, *address)
        {
            *last = *address;
        } else if ranges.len() < RANGES_MAX {
            ranges.push((*address, *address));
        } else {
            return None;
        }
    }
    let text = |(first, last): &(IpAddr, IpAddr)| match first == last {
        true => first.to_string(),
        false => format!("{first}-{last}"),
    };
    let ranges = ranges.iter().map(text);
    Some(ranges.chain(named).collect::<Vec<_>>().join(","))
}

/// The addresses of a line; `None` if it is not one.
pub(super) fn parse(text: &str) -> Option<Addresses> {
    let mut addresses = Addresses::new();
    let mut left = ADDRESSES_MAX;
    for part in text.split(',').filter(|it| !it.is_empty()) {
        if let Some((address, service)) = part.split_once('=') {
            let (namespace, name) = service.split_once('/')?;
            left = left.checked_sub(1)?;
            addresses.insert(address.parse().ok()?, Some(ObjectName::new(namespace, name)));
            continue;
        }
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last): (IpAddr, IpAddr) = (first.parse().ok()?, last.parse().ok()?);
        if first.is_ipv4() != last.is_ipv4() {
            return None;
        }
        let (from, to) = (number(first), number(last));
        left = left.checked_sub(to.checked_sub(from)?.checked_add(1)?)?;
        for number in from..=to {
            addresses.insert(address(first, number)?, None);
        }
    }
    Some(addresses)
}

fn follows(last: IpAddr, next: IpAddr) -> bool {
    last.is_ipv4() == next.is_ipv4() && number(last).checked_add(1) == Some(number(next))
}

fn number(address: IpAddr) -> u128 {
    match address {
        IpAddr::V4(address) => u32::from(address).into(),
        IpAddr::V6(address) => address.into(),
    }
}

/// The address with this number, of the family of `like`.
fn address(like: IpAddr, number: u128) -> Option<IpAddr> {
    Some(match like {
        IpAddr::V4(_) => IpAddr::V4(u32::try_from(number).ok()?.into()),
        IpAddr::V6(_) => IpAddr::V6(number.into()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(texts: &[&str]) -> Addresses {
        texts.iter().map(|it| (it.parse().unwrap(), None)).collect()
    }

    #[test]
    fn neighbouring_addresses_are_one_range() {
        let mut addresses = set(&[
            "192.0.2.1",
            "192.0.2.2",
            "192.0.2.4",
            "255.255.255.255",
            "::",
            "::1",
            "ff02::1",
        ]);
        let line = text(&addresses).unwrap();
        assert_eq!(line, "192.0.2.1-192.0.2.2,192.0.2.4,255.255.255.255,::-::1,ff02::1");
        assert_eq!(parse(&line), Some(addresses.clone()));
        let web = ObjectName::new("default", "web-1");
        addresses.insert("192.0.2.2".parse().unwrap(), Some(web));
        let line = text(&addresses).unwrap();
        assert!(line.starts_with("192.0.2.1,192.0.2.4,"), "{line}");
        assert!(line.ends_with(",192.0.2.2=default/web-1"), "{line}");
        assert_eq!(parse(&line), Some(addresses));
        assert_eq!(text(&Addresses::new()).as_deref(), Some(""));
        assert_eq!(parse(""), Some(Addresses::new()));
    }

    #[test]
    fn what_is_too_long_is_no_record() {
        let apart = |count: u32| (0..count).map(|it| (IpAddr::V4((2 * it).into()), None)).collect();
        assert!(text(&apart(512)).is_some());
        assert_eq!(text(&apart(513)), None);
        let service = Some(ObjectName::new("default", "web"));
        let named = (0..100).map(|it| (IpAddr::V4(it.into()), service.clone())).collect();
        let line = text(&named).unwrap();
        assert_eq!(line.matches('=').count(), 64);
        assert_eq!(parse(&line).map(|it| it.len()), Some(100));
        assert_eq!(parse("10.0.0.0-10.0.255.255").map(|it| it.len()), Some(65_536));
        for bad in [
            "10.0.0.0-10.1.0.0",
            "::-ffff::",
            "10.0.0.0-10.0.255.255,10.1.0.0",
            "10.0.0.2-10.0.0.1",
            "10.0.0.0-::",
            "10.0.0.0=web",
            "x",
        ] {
            assert_eq!(parse(bad), None, "{bad}");
        }
    }
}
