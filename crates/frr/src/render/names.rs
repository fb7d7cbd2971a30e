//! How are the objects named that Fairway creates in FRR?
//!
//! A name is stable, unique, and made of characters that FRR accepts. Knows no configuration. Called by the
//! rest of `render`.

use fairway_ground::{InterfaceName, PeerKey, Remote};

use crate::owner::Hash;

/// Maximum length of the name of a BFD profile.
const PROFILE_LENGTH_BYTES_MAX: usize = 63;

/// The part of route map and prefix list names that identifies a neighbour.
pub(super) fn of_neighbour(key: PeerKey) -> String {
    let remote = match key.remote {
        Remote::Address(address) => address.to_string(),
        Remote::Interface(name) => format!("if-{}", plain(name.as_str())),
        Remote::Range(prefix) => format!("range-{}_{}", prefix.address(), prefix.length()),
        Remote::DefaultGateway(family) => format!("gateway-{}", family.ip_version()),
    };
    match key.vrf {
        Some(vrf) => format!("{remote}@{}", plain(vrf.as_str())),
        None => remote,
    }
}

/// The end of the name of the route map for routes to the kernel. That for nobody's routes is the same in all VRFs.
pub(super) fn of_kernel_map(vrf: Option<InterfaceName>, installs: bool) -> String {
    match vrf {
        _ if !installs => "kernel".to_owned(),
        None => "kernel-main".to_owned(),
        Some(vrf) => format!("kernel@{}", plain(vrf.as_str())),
    }
}

/// The name of the peer group for neighbours of a range, unique in its VRF.
pub(super) fn of_group(mark: &str, key: PeerKey) -> String {
    format!("{mark}{}", of_neighbour(PeerKey { vrf: None, ..key }))
}

/// The name of the BFD profile for a BFDProfile.
pub(super) fn of_profile(mark: &str, name: &str) -> String {
    let whole = format!("{mark}{}", plain(name));
    if whole.len() <= PROFILE_LENGTH_BYTES_MAX {
        return whole;
    }
    let begin: String = whole.chars().take(PROFILE_LENGTH_BYTES_MAX.saturating_sub(9)).collect();
    format!("{begin}-{:08x}", Hash::of(name, 0).short())
}

/// `name` with every character other than a letter, a digit, a dot or a dash replaced by its number: two
/// different names never become one.
fn plain(name: &str) -> String {
    let mut plain = String::with_capacity(name.len());
    for byte in name.bytes() {
        match char::from(byte) {
            it if it.is_ascii_alphanumeric() || matches!(it, '.' | '-') => plain.push(it),
            _ => plain.push_str(&format!("_{byte:02x}")),
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(remote: Remote, vrf: Option<&str>) -> PeerKey {
        PeerKey { remote, vrf: vrf.map(|it| it.parse().unwrap()) }
    }

    #[test]
    fn neighbours_have_names_of_their_own() {
        let address = Remote::Address("192.0.2.1".parse().unwrap());
        let interface = |name: &str| Remote::Interface(name.parse().unwrap());
        assert_eq!(of_neighbour(key(address, None)), "192.0.2.1");
        assert_eq!(of_neighbour(key(address, Some("blue"))), "192.0.2.1@blue");
        assert_eq!(of_neighbour(key(interface("eth0.5"), None)), "if-eth0.5");
        assert_eq!(of_neighbour(key(interface("e@blue"), None)), "if-e_40blue");
        assert_eq!(of_neighbour(key(interface("e_40blue"), None)), "if-e_5f40blue");
        assert_eq!(
            of_neighbour(key(interface("a'b"), Some("c d".trim_end_matches(" d")))),
            "if-a_27b@c"
        );
        let range = Remote::Range("2001:db8::/64".parse().unwrap());
        assert_eq!(of_neighbour(key(range, None)), "range-2001:db8::_64");
        assert_eq!(of_group("M-", key(range, Some("blue"))), "M-range-2001:db8::_64");
    }

    #[test]
    fn a_profile_has_a_name_that_frr_has_room_for() {
        assert_eq!(of_profile("M-", "fast"), "M-fast");
        assert_eq!(of_profile("M-", "a b\n!"), "M-a_20b_0a_21");
        let (one, other) = ("x".repeat(253), "x".repeat(252) + "y");
        assert_eq!(of_profile("M-", &one).len(), 63);
        assert_ne!(of_profile("M-", &one), of_profile("M-", &other));
    }
}
