//! A neighbor of a router: the session.
//!
//! Answers the fields of a BGPPeer, with frr-k8s' defaults where they are other than Fairway's, and BFDProfiles. Knows
//! neither prefixes nor nodes.

use std::net::IpAddr;

use serde_json::json;

use super::advertise::next_hop;
use crate::kubernetes::field::Section;
use crate::kubernetes::work::Work;
use crate::object::Fields;

/// Timers without a setting.
const HOLD_TIME: &str = "180s";
const KEEPALIVE_TIME: &str = "60s";
const PORT: u64 = 179;

/// The router of a neighbor.
pub(super) struct Router {
    pub(super) my_asn: u64,
    pub(super) vrf: Option<String>,
    pub(super) id: Option<String>,
}

/// The BFD profiles of all configurations.
#[derive(Default)]
pub(super) struct Profiles(Vec<Profile>);

struct Profile {
    /// The configurations that have it.
    configurations: Vec<String>,
    /// Its name in the source.
    source: String,
    spec: Fields,
    name: String,
}

impl Profiles {
    pub(super) fn add(&mut self, configuration: &str, section: &Section<'_>, work: &mut Work) {
        let source = section.text("name").unwrap_or_default();
        let mut spec = Fields::default();
        for field in [
            "receiveInterval",
            "transmitInterval",
            "detectMultiplier",
            "echoInterval",
            "minimumTtl",
        ] {
            spec.set(field, section.number(field).filter(|it| *it > 0).map(|it| json!(it)));
        }
        for field in ["echoMode", "passiveMode"] {
            spec.set(field, section.flag(field).map(|it| json!(it)));
        }
        let same = |it: &&mut Profile| it.source == source && it.spec == spec;
        if let Some(known) = self.0.iter_mut().find(same) {
            known.configurations.push(configuration.to_owned());
            return;
        }
        let name = work.profile(&source, spec.clone());
        let configurations = vec![configuration.to_owned()];
        self.0.push(Profile { configurations, source, spec, name });
    }

    fn name(&self, configuration: &str, source: &str) -> Option<&str> {
        let has = |it: &&Profile| {
            it.source == source && it.configurations.iter().any(|it| it == configuration)
        };
        self.0.iter().find(has).map(|it| it.name.as_str())
    }
}

/// The session, unless it must be left out.
pub(super) fn session(
    section: &Section<'_>,
    router: &Router,
    configuration: &str,
    profiles: &Profiles,
    work: &mut Work,
) -> Option<Fields> {
    let mut spec = Fields::default();
    spec.set("myASN", json!(router.my_asn));
    let is_internal = asn(section, router, &mut spec)?;
    let at = address(section, &mut spec)?;
    spec.set("vrf", router.vrf.as_ref().map(|it| json!(it)));
    spec.set("routerID", router.id.as_ref().map(|it| json!(it)));
    match section.number("port") {
        None | Some(PORT) => {}
        Some(0) => section.untranslated("port", "0 is no port that can be dialled: it is 179"),
        Some(port) => {
            spec.set("peerPort", json!(port));
        }
    }
    if let Some(source) = section.text("sourceaddress") {
        if source.parse::<IpAddr>().is_ok() {
            spec.set("sourceAddress", json!(source));
        } else {
            let why = "is an interface, and a BGPPeer has an address: set sourceAddress, with nodeSelectors for each node";
            section.untranslated("sourceaddress", why);
        }
    }
    let (hold, keepalive) = (section.text("holdTime"), section.text("keepaliveTime"));
    if hold.is_none() && keepalive.is_none() {
        spec.set("holdTime", json!(HOLD_TIME)).set("keepaliveTime", json!(KEEPALIVE_TIME));
    } else {
        spec.set("holdTime", hold.map(|it| json!(it)));
        spec.set("keepaliveTime", keepalive.map(|it| json!(it)));
    }
    spec.set("connectTime", section.text("connectTime").map(|it| json!(it)));
    password(section, &at, &mut spec, work);
    if section.is_set("ebgpMultiHop") {
        spec.set_if("ebgpMultiHop", !is_internal);
        if is_internal {
            section.note("ebgpMultiHop", "has no effect within an AS, and is left out");
        }
    }
    spec.set_if("dualStackAddressFamily", section.is_set("dualStackAddressFamily"));
    if section.is_set("disableMP") {
        section.note("disableMP", "has no effect in frr-k8s either");
    }
    spec.set_if("enableGracefulRestart", section.is_set("enableGracefulRestart"));
    if let Some(source) = section.text("bfdProfile") {
        match profiles.name(configuration, &source) {
            Some(name) => {
                spec.set("bfdProfile", json!(name));
            }
            None => {
                let why = format!(
                    "this FRRConfiguration has no BFD profile {source}: the session is without BFD"
                );
                section.untranslated("bfdProfile", why);
            }
        }
    }
    families(section)?;
    next_hop(section, &mut spec);
    Some(spec)
}

/// Sets the AS numbers. Answers whether the neighbor is in our own AS.
fn asn(section: &Section<'_>, router: &Router, spec: &mut Fields) -> Option<bool> {
    let local = section.number("localASN").filter(|it| *it > 0);
    spec.set("localASN", local.map(|it| json!(it)));
    let asn = section.number("asn").filter(|it| *it > 0);
    let dynamic = section.text("dynamicASN");
    match (asn, dynamic) {
        (Some(asn), _) => {
            spec.set("peerASN", json!(asn));
            Some(asn == router.my_asn)
        }
        (None, Some(mode)) if ["internal", "external"].contains(&mode.as_str()) => {
            spec.set("dynamicASN", json!(mode));
            Some(mode == "internal")
        }
        _ => {
            section.untranslated_here("has neither asn nor dynamicASN: it is left out");
            None
        }
    }
}

/// Sets the address, or the interface; which it is.
fn address(section: &Section<'_>, spec: &mut Fields) -> Option<String> {
    if let Some(interface) = section.text("interface") {
        spec.set("interface", json!(interface));
        return Some(interface);
    }
    let text = section.text("address").unwrap_or_default();
    match text.parse::<IpAddr>() {
        Ok(address) => {
            spec.set("peerAddress", json!(address.to_string()));
            Some(address.to_string())
        }
        Err(_) => {
            section.untranslated_here("has neither an address nor an interface: it is left out");
            None
        }
    }
}

fn password(section: &Section<'_>, at: &str, spec: &mut Fields, work: &mut Work) {
    let secret = section.section("passwordSecret");
    let named = secret.as_ref().and_then(|it| it.text("name"));
    let name = match (secret, named, section.text("password")) {
        (Some(secret), Some(name), _) => {
            // Fairway reads it in the namespace of the BGPPeers.
            secret.ignore(&["namespace"]);
            work.password(&secret, "name", (&name, "password"))
        }
        (_, _, Some(password)) => work.plain_password(at, &password),
        _ => return,
    };
    spec.set("passwordSecret", json!({"name": name}));
}

/// Nothing where the session carries no unicast routes.
fn families(section: &Section<'_>) -> Option<()> {
    let families = section.texts("addressFamilies");
    let mut has_unicast = families.is_empty();
    for (position, family) in families {
        if family == "unicast" {
            has_unicast = true;
        } else {
            let why = format!("{family} is no address family of Fairway");
            section.untranslated_at("addressFamilies", position, why);
        }
    }
    has_unicast.then_some(())
}

/// The session of two configurations. The error is the field in which they differ.
pub(super) fn merged(one: &Fields, other: &Fields) -> Result<Fields, String> {
    let mut merged = one.clone();
    for (field, value) in &other.0 {
        match merged.0.get(field) {
            Some(known) if known == value => {}
            // One of the two may be without these.
            None if ["bfdProfile", "routerID"].contains(&field.as_str()) => {
                merged.0.insert(field.clone(), value.clone());
            }
            None if field == "toAdvertise" => {
                merged.0.insert(field.clone(), value.clone());
            }
            Some(_) | None => return Err(field.clone()),
        }
    }
    let is_optional = |it: &str| ["bfdProfile", "routerID", "toAdvertise"].contains(&it);
    let missing = one.0.keys().find(|it| !is_optional(it) && !other.0.contains_key(*it));
    match missing {
        Some(field) => Err(field.clone()),
        None => Ok(merged),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    fn fields(value: Value) -> Fields {
        Fields(value.as_object().unwrap().clone())
    }

    #[test]
    fn a_bfd_profile_of_one_configuration_holds_for_both() {
        let one = fields(json!({"myASN": 1, "bfdProfile": "fast"}));
        let other = fields(json!({"myASN": 1}));
        assert_eq!(merged(&one, &other), Ok(one.clone()));
        assert_eq!(merged(&other, &one), Ok(one));
    }

    #[test]
    fn two_ports_are_no_session() {
        let one = fields(json!({"myASN": 1}));
        let other = fields(json!({"myASN": 1, "peerPort": 180}));
        assert_eq!(merged(&one, &other), Err("peerPort".to_owned()));
        assert_eq!(merged(&other, &one), Err("peerPort".to_owned()));
    }
}
