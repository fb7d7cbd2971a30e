//! What would be lost if MetalLB took over: addresses that it takes away, objects that it reads otherwise.
//!
//! A fault is what changes an address or a route; a setting that MetalLB does not have is a warning. Called by
//! `fairway check --for metallb`.

mod modes;

use std::net::IpAddr;

use fairway_allocator::{Outcome, Outcomes, PoolLookup};
use fairway_model::{ClusterIndex, Kind, ObjectKey, ObjectName};
use fairway_resources::{
    Catalog, Finding, FindingObject, Severity, fields_unknown_to_metallb as own_fields,
};

pub(super) use modes::Mode;

/// MetalLB's bound of `asPathPrepend`.
const PREPEND_MAX: u8 = 10;

/// All of it. `outcomes` has the addresses of the Services; without a mode, what holds in each of them.
pub(super) fn findings(
    catalog: &Catalog,
    index: &ClusterIndex,
    outcomes: &Outcomes,
    mode: Option<Mode>,
) -> Vec<Finding> {
    let report = Report { catalog };
    let mut findings = report.addresses(index, outcomes);
    findings.extend(report.objects(index));
    findings.extend(mode.into_iter().flat_map(|mode| report.refused(mode, index)));
    let mut settings = report.settings();
    // What is a fault already is not a warning as well.
    settings
        .retain(|it| !findings.iter().any(|one| one.object == it.object && one.field == it.field));
    findings.extend(settings);
    findings
}

struct Report<'a> {
    catalog: &'a Catalog,
}

impl Report<'_> {
    /// Addresses that MetalLB takes away.
    fn addresses(&self, index: &ClusterIndex, outcomes: &Outcomes) -> Vec<Finding> {
        let pools = PoolLookup::new(index);
        let lost = outcomes.iter().filter_map(|(name, outcome)| {
            let why = why_taken_away(outcome, &pools)?;
            let addresses: Vec<_> = outcome.addresses.iter().map(IpAddr::to_string).collect();
            let message = format!("MetalLB would take {} away: {why}", addresses.join(" and "));
            Some(self.finding(Severity::Fault, Kind::Service, name, None, message))
        });
        lost.collect()
    }

    /// Objects that MetalLB reads otherwise, or not at all.
    fn objects(&self, index: &ClusterIndex) -> Vec<Finding> {
        let mut findings = Vec::new();
        let mut fault = |kind, name: &ObjectName, field: &str, message: &str| {
            findings.push(self.finding(
                Severity::Fault,
                kind,
                name,
                Some(field),
                message.to_owned(),
            ));
        };
        for advertisement in index.bgp_advertisements.values() {
            if advertisement.is_about_prefixes_alone() {
                let message = "MetalLB has no such field: without it the advertisement selects every \
                               pool, and all of their routes get its attributes; delete it before";
                fault(Kind::BgpAdvertisement, &advertisement.name, "spec.prefixes", message);
            }
            let is_written =
                self.is_written(Kind::BgpAdvertisement, &advertisement.name, "spec.asPathPrepend");
            let prepend = advertisement.as_path_prepend;
            if is_written && !(1..=PREPEND_MAX).contains(&prepend) {
                let message = format!(
                    "{prepend} is refused by MetalLB's definition; it allows 1 to {PREPEND_MAX}"
                );
                fault(Kind::BgpAdvertisement, &advertisement.name, "spec.asPathPrepend", &message);
            }
        }
        for peer in index.peers.values() {
            let field = "spec.listenRange";
            if self.is_written(Kind::BgpPeer, &peer.name, field) {
                let message = "MetalLB has no such field: the peer has no address then, and MetalLB's \
                               speakers apply no configuration as long as it exists; delete it before";
                fault(Kind::BgpPeer, &peer.name, field, message);
            }
        }
        findings
    }

    /// Settings that MetalLB's definitions drop.
    fn settings(&self) -> Vec<Finding> {
        let mut findings = Vec::new();
        for key in self.catalog.keys() {
            if key.kind == Kind::BgpConfiguration {
                let message = "MetalLB has no such kind: it has no effect".to_owned();
                let finding = self.finding(Severity::Warning, key.kind, &key.name, None, message);
                findings.push(finding);
            }
            for field in own_fields(key.kind) {
                if self.catalog.is_written(key, field) {
                    let message = "MetalLB has no such field: its definition drops it when the object \
                                   is written again, and until then it has no effect";
                    let severity = Severity::Warning;
                    let message = message.to_owned();
                    findings.push(self.finding(
                        severity,
                        key.kind,
                        &key.name,
                        Some(field),
                        message,
                    ));
                }
            }
        }
        findings
    }

    fn is_written(&self, kind: Kind, name: &ObjectName, field: &str) -> bool {
        self.catalog.is_written(&ObjectKey { kind, name: name.clone() }, field)
    }

    fn is_set(&self, kind: Kind, name: &ObjectName, field: &str) -> bool {
        self.catalog.written(&ObjectKey { kind, name: name.clone() }, field) == Some("true")
    }

    fn finding(
        &self,
        severity: Severity,
        kind: Kind,
        name: &ObjectName,
        field: Option<&str>,
        message: String,
    ) -> Finding {
        let key = ObjectKey { kind, name: name.clone() };
        let place = self.catalog.place_of(&key);
        let line = field.and_then(|field| self.catalog.line_of(&key, field));
        Finding {
            severity,
            file: place.map(|(file, _)| file.to_owned()).unwrap_or_default(),
            line: line.or(place.map(|(_, line)| line)),
            object: Some(FindingObject { kind: kind.to_string(), name: name.name.clone() }),
            field: field.map(str::to_owned),
            message,
        }
    }
}

fn why_taken_away(outcome: &Outcome, pools: &PoolLookup<'_>) -> Option<String> {
    let homes = outcome.addresses.iter().map(|address| pools.holding(*address));
    let names: Option<Vec<&str>> = homes.map(|pool| Some(pool?.name.name.as_str())).collect();
    match names.as_deref() {
        None => Some("no valid IPAddressPool holds it".to_owned()),
        Some([one, other]) if one != other => Some(format!(
            "they are in the pools {one} and {other}, and it takes both families from one pool \
             (it has no annotation fairway.dev/address-pools)"
        )),
        Some(_) => None,
    }
}
