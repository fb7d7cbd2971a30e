//! Random histories: what follows from changes is what follows from the result.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;

use fairway_ground::{AddressFamily, Rng};
use fairway_model::{
    IpvsScheduler, NodePortAddresses, ObjectKey, ObjectName, ProxiedEndpoint, ProxiedPort,
    ProxiedService, ProxiedSlice, ProxyConfiguration, SlicePort, TrafficPolicy, TransportProtocol,
};

use super::*;
use crate::{Delivered, Reconciler};
use crate::{Touched, Wanted};

/// A small world, so that Services meet.
struct Dice(Rng);

impl Dice {
    fn below(&mut self, end: u64) -> u64 {
        self.0.next_u64() % end
    }

    fn one_in(&mut self, count: u64) -> bool {
        self.below(count) == 0
    }

    fn octet(&mut self, end: u64) -> u8 {
        u8::try_from(self.below(end)).unwrap()
    }

    fn addresses(&mut self, third: u8) -> Vec<IpAddr> {
        let count = self.below(3);
        (0..count).map(|_| IpAddr::V4(Ipv4Addr::new(10, 0, third, self.octet(3)))).collect()
    }

    fn policy(&mut self) -> TrafficPolicy {
        if self.one_in(2) { TrafficPolicy::Local } else { TrafficPolicy::Cluster }
    }

    fn port(&mut self, name: String) -> ProxiedPort {
        let port = u16::from(self.octet(2)) + 80;
        ProxiedPort {
            name,
            protocol: TransportProtocol::Tcp,
            port,
            node_port: self.one_in(2).then(|| 30_000 + u16::from(self.octet(2))),
        }
    }

    fn service(&mut self) -> Object {
        let number = self.octet(5);
        let count = 1 + self.below(2);
        let mut ports: Vec<_> = (0..count).map(|it| self.port(format!("p{it}"))).collect();
        ports.dedup_by_key(|it| it.port);
        Object::ProxiedService(Box::new(ProxiedService {
            name: ObjectName::new("default", format!("s{number}")),
            cluster_addresses: vec![IpAddr::V4(Ipv4Addr::new(10, 96, 0, self.octet(4)))],
            external_addresses: self.addresses(0),
            balancer_addresses: self.addresses(0),
            source_ranges: Vec::new(),
            ports,
            affinity: self.one_in(3).then(|| Duration::from_secs(7)),
            external_policy: self.policy(),
            internal_policy: self.policy(),
            health_check_port: self.one_in(2).then(|| 31_000 + u16::from(self.octet(2))),
            scheduler: self.one_in(3).then_some(IpvsScheduler::MaglevHash),
        }))
    }

    fn endpoint(&mut self) -> ProxiedEndpoint {
        ProxiedEndpoint {
            address: IpAddr::V4(Ipv4Addr::new(10, 1, 0, self.octet(6))),
            node: Some(format!("n{}", 1 + self.below(2))),
            is_ready: !self.one_in(3),
            is_serving: !self.one_in(3),
            is_terminating: self.one_in(3),
            node_hints: Vec::new(),
            zone_hints: (0..self.below(2)).map(|_| "a".to_owned()).collect(),
        }
    }

    fn slice(&mut self) -> Object {
        let count = self.below(4);
        Object::ProxiedSlice(ProxiedSlice {
            name: ObjectName::new("default", format!("e{}", self.below(6))),
            service: ObjectName::new("default", format!("s{}", self.below(5))),
            family: AddressFamily::Ipv4Unicast,
            triggered_at: None,
            ports: (0..2)
                .map(|it| SlicePort {
                    name: format!("p{it}"),
                    protocol: TransportProtocol::Tcp,
                    port: 8080 + it,
                })
                .collect(),
            endpoints: (0..count).map(|_| self.endpoint()).collect(),
        })
    }

    fn configuration(&mut self) -> Object {
        let primary = self.one_in(2);
        Object::from(ProxyConfiguration {
            masquerade_all: self.one_in(2),
            node_port_addresses: if primary {
                NodePortAddresses::Primary
            } else {
                NodePortAddresses::All
            },
            ..ProxyConfiguration::default()
        })
    }

    fn place(&mut self) -> Place {
        Place {
            node: format!("n{}", 1 + self.below(2)),
            zone: self.one_in(2).then(|| "a".to_owned()),
            addresses: self.addresses(0).into_iter().collect::<BTreeSet<_>>().into_iter().collect(),
            pod_networks: Vec::new(),
        }
    }
}

/// Which parts of what was wanted differ.
fn differences(before: &Wanted, after: &Wanted) -> Touched {
    let at = before.entries.keys().chain(after.entries.keys());
    let ports = before.health_checks.keys().chain(after.health_checks.keys());
    Touched {
        virtual_addresses: at
            .filter(|it| before.entries.get(it) != after.entries.get(it))
            .copied()
            .collect(),
        bound_addresses: before
            .bound_addresses
            .symmetric_difference(&after.bound_addresses)
            .copied()
            .collect(),
        hairpins: before.hairpins.symmetric_difference(&after.hairpins).copied().collect(),
        health_checks: ports
            .filter(|it| before.health_checks.get(it) != after.health_checks.get(it))
            .copied()
            .collect(),
        claimed_addresses: BTreeSet::new(),
    }
}

#[test]
fn changes_lead_to_what_the_result_leads_to_and_name_exactly_what_differs() {
    for seed in 0..300 {
        let mut dice = Dice(Rng::seeded(seed));
        let mut place = dice.place();
        let mut planner = Planner::new(place.clone());
        let mut known: BTreeMap<ObjectKey, Arc<Object>> = BTreeMap::new();
        let (mut delivered, reconciler) = (Delivered::default(), Reconciler::default());
        for step in 0..60 {
            let before = planner.wanted().clone();
            let touched = if dice.one_in(12) {
                place = dice.place();
                planner.move_to(place.clone())
            } else {
                let mut changes: Vec<ObjectChange> = Vec::new();
                for _ in 0..=dice.below(2) {
                    let object = match dice.below(12) {
                        0..5 => dice.service(),
                        5..11 => dice.slice(),
                        _ => dice.configuration(),
                    };
                    let (key, object) = present(object);
                    let object = object.filter(|_| !dice.one_in(4));
                    match &object {
                        Some(object) => known.insert((*key).clone(), Arc::clone(object)),
                        None => known.remove(&key),
                    };
                    changes.push((key, object));
                }
                planner.follow(changes)
            };
            let mut other = Planner::new(place.clone());
            let all = known.iter().map(|(key, it)| (Arc::new(key.clone()), Some(Arc::clone(it))));
            other.follow(all);
            let case = format!("seed {seed}, step {step}");
            assert_eq!(planner.wanted(), other.wanted(), "{case}");
            delivered.touch(&touched);
            delivered.judge(&planner, &reconciler);
            let mut whole = Delivered::default();
            let claimed = planner.conflicts().map(|it| it.virtual_address);
            let claimed_addresses = claimed.map(|it| it.address).collect();
            whole.touch(&Touched { claimed_addresses, ..Touched::default() });
            whole.doubt_all(planner.wanted());
            whole.judge(&planner, &reconciler);
            assert_eq!(delivered.deliveries(), whole.deliveries(), "{case}");
            let touched = Touched { claimed_addresses: BTreeSet::new(), ..touched };
            assert_eq!(touched, differences(&before, planner.wanted()), "{case}");
            let conflicts = |it: &Planner| it.conflicts().collect::<Vec<_>>();
            assert_eq!(conflicts(&planner), conflicts(&other), "{case}");
        }
    }
}
