//! `explain address` and `explain prefix`: whose it is, which pool has it, which routes lead to it, who was sent it, and
//! who announces it in vain.
//!
//! For an address that Services have, the chain of each Service follows.

use std::net::IpAddr;

use fairway_allocator::PoolLookup;
use fairway_ground::{PeerKey, Prefix};
use fairway_model::ObjectName;
use fairway_seam::{DecisionStep, Passage, RefusedRoute};
use serde_json::Value;

use super::peer::shortened;
use super::section::sections;
use super::{outdated, service};
use crate::object::Object;
use crate::told::Told;
use crate::{ShowError, Snapshot};

/// What was asked about.
#[derive(Debug, Clone, Copy)]
enum Wanted {
    Address(IpAddr),
    Prefix(Prefix),
}

/// Everything that is reported of it.
struct Explanation<'a> {
    snapshot: &'a Snapshot<'a>,
    wanted: Wanted,
    /// The Services that have the address, or that the prefix is announced for.
    services: Vec<&'a ObjectName>,
    /// Which pool holds the address, and whether it gives it.
    pools: Vec<String>,
    /// For each peer, whether it was sent the route: the line, and how many were.
    sent: Vec<String>,
    sent_count: usize,
    /// Received routes that cover it, the best ones first.
    received: Vec<String>,
    /// For each peer that is sent received routes: what becomes of the best one.
    passed_on: Vec<String>,
    /// Routes to it that were refused: the neighbor, and why.
    refused: Vec<(PeerKey, &'a RefusedRoute)>,
}

/// As text.
pub(super) fn text(snapshot: &Snapshot<'_>, wanted: &str) -> Result<String, ShowError> {
    let explanation = Explanation::new(snapshot, parse(wanted)?);
    let mut text = format!("{}\n", explanation.verdict());
    text.push_str(&sections([
        ("Pools", explanation.pools.clone()),
        ("Announced", shortened(explanation.sent.clone(), "peers")),
        ("Received", shortened(explanation.received.clone(), "routes")),
        ("Passed on", shortened(explanation.passed_on.clone(), "peers")),
        ("Refused", shortened(explanation.refused_lines(), "routes")),
    ]));
    if let Wanted::Address(_) = explanation.wanted {
        for name in &explanation.services {
            text.push('\n');
            text.push_str(&service::text(snapshot, &name.to_string())?);
        }
    }
    Ok(text)
}

/// As JSON.
pub(super) fn json(snapshot: &Snapshot<'_>, wanted: &str) -> Result<Object, ShowError> {
    let explanation = Explanation::new(snapshot, parse(wanted)?);
    let names: Vec<Value> = explanation.services.iter().map(|it| it.to_string().into()).collect();
    Ok(Object::new()
        .field("verdict", explanation.verdict())
        .field("services", names)
        .field("pools", explanation.pools.clone())
        .field("announced", explanation.sent.clone())
        .field("received", explanation.received.clone())
        .field("passedOn", explanation.passed_on.clone())
        .field("refused", explanation.refused_lines()))
}

fn parse(text: &str) -> Result<Wanted, ShowError> {
    let address = text.parse().ok().map(Wanted::Address);
    let net = || text.parse::<ipnet::IpNet>().ok();
    let prefix = || Prefix::new(net()?.addr(), net()?.prefix_len()).ok().map(Wanted::Prefix);
    address.or_else(prefix).ok_or_else(|| ShowError::NeitherAddressNorPrefix(text.to_owned()))
}

impl<'a> Explanation<'a> {
    fn new(snapshot: &'a Snapshot<'a>, wanted: Wanted) -> Self {
        let told = Told::new(snapshot);
        let sent = sent(&told, wanted);
        Self {
            snapshot,
            wanted,
            sent_count: sent.iter().filter(|(_, is_sent)| *is_sent).count(),
            services: services(snapshot, wanted),
            pools: pools(snapshot, wanted),
            sent: sent.into_iter().map(|(line, _)| line).collect(),
            received: received(snapshot, wanted),
            passed_on: passed_on(&told),
            refused: refused(snapshot, wanted),
        }
    }

    fn refused_lines(&self) -> Vec<String> {
        let line = |(from, it): &(PeerKey, &RefusedRoute)| {
            format!("{} from {from}: {}", it.route.prefix, it.refusal)
        };
        self.refused.iter().map(line).collect()
    }

    /// The longest prefix that is announced and contains this one.
    fn aggregate(&self, prefix: Prefix) -> Option<Prefix> {
        let announced = self.snapshot.plan.routes.iter().map(|route| route.prefix);
        let around =
            announced.filter(|it| it.length() < prefix.length() && it.contains(prefix.address()));
        around.max_by_key(|it| it.length())
    }

    /// The summary as one sentence.
    fn verdict(&self) -> String {
        self.state() + &outdated(self.snapshot)
    }

    fn state(&self) -> String {
        let node = &self.snapshot.node.name;
        let names: Vec<String> = self.services.iter().map(ToString::to_string).collect();
        match (self.wanted, names.is_empty()) {
            (Wanted::Address(address), false) => {
                format!("Address {address} belongs to Service {}", names.join(" and "))
            }
            (Wanted::Address(address), true)
                if self.pools.is_empty() && self.received.is_empty() =>
            {
                format!("Address {address} is in no pool, and no route leads to it")
            }
            (Wanted::Address(address), true) => format!("Address {address} belongs to no Service"),
            (Wanted::Prefix(prefix), _) if !self.sent.is_empty() => {
                let (sent, planned) = (self.sent_count, self.sent.len());
                let whose = match names.is_empty() {
                    true => "no Service: a BGPAdvertisement names it".to_owned(),
                    false => format!("Service {}", names.join(" and ")),
                };
                format!(
                    "Prefix {prefix} is announced by {node} to {sent} of {planned} peers, for {whose}"
                )
            }
            (Wanted::Prefix(prefix), _) => match (self.received.first(), self.refused.first()) {
                (Some(_), _) => {
                    format!("Prefix {prefix} is not announced by {node}; it was received")
                }
                (None, Some((from, it))) => {
                    format!("Prefix {prefix} was received from {from} and refused: {}", it.refusal)
                }
                (None, None) => match self.aggregate(prefix) {
                    Some(aggregate) => {
                        format!(
                            "Prefix {prefix} is announced by {node} as a part of {aggregate} only"
                        )
                    }
                    None => format!("Prefix {prefix} is neither announced by {node} nor received"),
                },
            },
        }
    }
}

fn covers(prefix: Prefix, wanted: Wanted) -> bool {
    match wanted {
        Wanted::Address(address) => prefix.contains(address),
        Wanted::Prefix(wanted) => prefix == wanted,
    }
}

fn services<'a>(snapshot: &'a Snapshot<'a>, wanted: Wanted) -> Vec<&'a ObjectName> {
    match wanted {
        Wanted::Address(address) => {
            let having = snapshot.outcomes.iter().filter(|(_, it)| it.addresses.contains(&address));
            having.map(|(name, _)| name).collect()
        }
        Wanted::Prefix(prefix) => {
            let announced = snapshot.plan.services.iter();
            let announced = announced.filter(|(_, it)| it.told().any(|(it, _)| it == prefix));
            announced.map(|(name, _)| name).collect()
        }
    }
}

fn pools(snapshot: &Snapshot<'_>, wanted: Wanted) -> Vec<String> {
    let Wanted::Address(address) = wanted else { return Vec::new() };
    let lookup = PoolLookup::new(snapshot.index);
    let holding = snapshot.index.pools.values().filter(|pool| pool.contains(address));
    let line = |pool: &fairway_model::Pool| {
        let name = &pool.name.name;
        if lookup.offering(address).is_none() {
            return format!("{name} holds it and never gives it: avoidBuggyIPs");
        }
        if pool.reserved.iter().any(|range| range.contains(address)) {
            return format!("{name} holds it and gives it only to a Service that asks for it");
        }
        let how = if pool.auto_assign {
            ""
        } else {
            ", to Services that ask for the pool (autoAssign is false)"
        };
        let users = snapshot.outcomes.values().filter(|it| it.addresses.contains(&address)).count();
        match users {
            0 => format!("{name} holds it; it is free{how}"),
            1 => format!("{name} holds it; one Service has it"),
            many => format!("{name} holds it; {many} Services share it"),
        }
    };
    holding.map(line).collect()
}

/// For each route and each peer whose session carries its family: the line, and whether it was advertised.
fn sent(told: &Told<'_>, wanted: Wanted) -> Vec<(String, bool)> {
    let snapshot = told.snapshot();
    let routes = snapshot.plan.routes.iter().filter(|route| covers(route.prefix, wanted));
    let carries = |key: &PeerKey, prefix: Prefix| {
        let config = snapshot.plan.peers.iter().find(|config| config.key == *key);
        config.is_none_or(|config| config.families.contains(prefix.family()))
    };
    let lines = routes.flat_map(|route| {
        let peers = route.peers.iter().filter(move |key| carries(key, route.prefix));
        peers.map(move |key| {
            let name = told.name(*key);
            if told.is_told(*key, route.prefix) {
                return (format!("{}: advertised to {name}", route.prefix), true);
            }
            let why = told.silence(*key, route.prefix).join("; ");
            (format!("{}: not advertised: {why}", route.prefix), false)
        })
    });
    lines.collect()
}

fn received(snapshot: &Snapshot<'_>, wanted: Wanted) -> Vec<String> {
    let mut routes: Vec<_> =
        snapshot.bgp.learned.iter().filter(|route| covers(route.prefix, wanted)).collect();
    routes.sort_by_key(|route| (std::cmp::Reverse(route.prefix.length()), route.lost_at.is_some()));
    let line = |route: &&fairway_seam::LearnedRoute| {
        let path = &route.path;
        let rank = match route.lost_at {
            None => "best".to_owned(),
            Some(DecisionStep::NextHop) => {
                format!("not used: the next hop {} cannot be reached", path.attributes.next_hop)
            }
            Some(step) => format!("lost at {step}"),
        };
        let as_path = path.attributes.as_path.to_string();
        let as_path = if as_path.is_empty() {
            "an empty AS path".to_owned()
        } else {
            format!("AS path {as_path}")
        };
        format!("{} from {}: {as_path}, {rank}", route.prefix, path.source.key)
    };
    routes.iter().map(line).collect()
}

fn passed_on(told: &Told<'_>) -> Vec<String> {
    let peers = told.snapshot().bgp.peers.iter();
    let lines = peers.flat_map(|peer| {
        let name = told.name(peer.config.key);
        peer.passages.iter().map(move |(prefix, passage)| match passage {
            Passage::Passed(None) => format!("{prefix} to {name}"),
            Passage::Passed(Some(rule)) => {
                format!("{prefix} to {name}: {rule} of toAdvertise accepts it")
            }
            Passage::Withheld(why) => format!("{prefix} not to {name}: {why}"),
        })
    });
    lines.collect()
}

fn refused<'a>(snapshot: &'a Snapshot<'a>, wanted: Wanted) -> Vec<(PeerKey, &'a RefusedRoute)> {
    let peers = snapshot.bgp.peers.iter();
    let refused = peers.flat_map(|peer| {
        let routes = peer.refused.iter().flat_map(|it| &it.routes);
        let routes = routes.filter(|it| covers(it.route.prefix, wanted));
        routes.map(|it| (peer.config.key, it))
    });
    refused.collect()
}
