//! Which fields of a kind MetalLB does not have: its definitions drop them from what is written again.
//!
//! Answers from the list that `docs/metallb-fields.md` is made from. Called by `fairway check --for metallb`.

use fairway_model::Kind;

/// MetalLB's fields, one per line.
pub(super) const METALLB_FIELDS: &str = include_str!("metallb.txt");

/// The fields of `kind` that only Fairway has, as in `spec.med`; without those inside another one of them, and
/// without those of a list's items.
pub fn fields_unknown_to_metallb(kind: Kind) -> Vec<&'static str> {
    let kind = kind.to_string();
    let mut fields: Vec<&str> = Vec::new();
    let mut heading = "";
    for line in METALLB_FIELDS.lines().filter(|line| !line.starts_with('#')) {
        if line.is_empty() {
            heading = "";
        } else if heading.is_empty() {
            heading = line;
        } else if heading.split(' ').next() == Some(kind.as_str())
            && let Some(field) = line.strip_prefix("+ spec.").and_then(|_| line.split(' ').nth(1))
            && !fields.iter().any(|outer| is_inside(field, outer))
        {
            fields.push(field);
        }
    }
    fields
}

fn is_inside(field: &str, outer: &str) -> bool {
    field.strip_prefix(outer).is_some_and(|rest| rest.starts_with(['.', '[']))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_of_our_own_are_named_once_and_without_their_parts() {
        let advertisement = fields_unknown_to_metallb(Kind::BgpAdvertisement);
        assert_eq!(
            advertisement,
            [
                "spec.prefixes",
                "spec.podCIDRs",
                "spec.podBlocks",
                "spec.podBlockPools",
                "spec.blackhole",
                "spec.med",
                "spec.linkBandwidth"
            ]
        );
        assert_eq!(fields_unknown_to_metallb(Kind::IpAddressPool), ["spec.reserved"]);
        assert_eq!(fields_unknown_to_metallb(Kind::Community), [""; 0]);
        let peer = fields_unknown_to_metallb(Kind::BgpPeer);
        assert!(peer.contains(&"spec.tcpAO") && !peer.contains(&"spec.tcpAO.keys"), "{peer:?}");
    }
}
