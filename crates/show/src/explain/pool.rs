//! `explain pool`: what it holds, how full it is, who has addresses of it, and which Services wait while it has none for
//! them.

use fairway_ground::AddressFamily;
use serde_json::Value;

use super::peer::shortened;
use super::section::sections;
use super::{faults_of, outdated};
use crate::object::Object;
use crate::pools::{self, Item, kept_for};
use crate::{ShowError, Snapshot};

/// Everything that is reported of it.
struct Explanation<'a> {
    item: Item<'a>,
    /// Services with addresses of it.
    holders: Vec<String>,
    /// Services without an address, each with the reason.
    waiting: Vec<String>,
    advertisements: Vec<String>,
    /// What has not been read, as the end of a sentence.
    outdated: String,
}

/// As text.
pub(super) fn text(snapshot: &Snapshot<'_>, wanted: &str) -> Result<String, ShowError> {
    let explanation = find(snapshot, wanted)?;
    let mut text = format!("{}\n", explanation.verdict());
    text.push_str(&sections([
        ("Addresses", explanation.item.ranges()),
        ("In use", explanation.usage()),
        ("Serves", vec![explanation.serves()]),
        ("Announced", explanation.advertisements.clone()),
        ("Services", shortened(explanation.holders.clone(), "Services")),
        ("Waiting", shortened(explanation.waiting.clone(), "Services")),
    ]));
    Ok(text)
}

/// As JSON.
pub(super) fn json(snapshot: &Snapshot<'_>, wanted: &str) -> Result<Object, ShowError> {
    let explanation = find(snapshot, wanted)?;
    let list = |lines: &[String]| lines.iter().map(|it| it.as_str().into()).collect::<Vec<Value>>();
    Ok(Object::new()
        .field("name", explanation.item.pool.name.name.as_str())
        .field("verdict", explanation.verdict())
        .field("addresses", explanation.item.ranges())
        .field("usage", explanation.usage())
        .field("serves", explanation.serves())
        .field("advertisements", list(&explanation.advertisements))
        .field("services", list(&explanation.holders))
        .field("waiting", list(&explanation.waiting)))
}

fn find<'a>(snapshot: &'a Snapshot<'a>, wanted: &str) -> Result<Explanation<'a>, ShowError> {
    let is_it = |item: &Item<'_>| {
        let name = &item.pool.name;
        name.name == wanted || name.to_string() == wanted
    };
    let Some(item) = pools::items(snapshot).into_iter().find(is_it) else {
        let names = snapshot.index.pools.values().map(|it| it.name.name.clone());
        let known = names.collect();
        let faults = faults_of(snapshot, |it| it.kind == "IPAddressPool" && it.name == wanted);
        return Err(ShowError::NoSuchPool { wanted: wanted.to_owned(), faults, known });
    };
    let pool = item.pool;
    let holders = snapshot.outcomes.iter().filter_map(|(name, outcome)| {
        let held = outcome.addresses.iter().filter(|address| pool.contains(**address));
        let held: Vec<_> = held.map(ToString::to_string).collect();
        (!held.is_empty()).then(|| format!("{name}: {}", held.join(" and ")))
    });
    let waiting = snapshot.outcomes.iter().filter(|(_, outcome)| outcome.is_pending());
    let waiting = waiting.filter_map(|(name, outcome)| {
        let reason = outcome.reason.as_ref()?;
        Some(format!("{name}: {reason}"))
    });
    let bgp = snapshot.index.bgp_advertisements.values();
    let bgp = bgp.filter(|it| it.selects_pool(&pool.name.name, &pool.labels));
    let bgp = bgp.map(|it| format!("on BGP by BGPAdvertisement {}", it.name));
    let layer2 = snapshot.index.layer2_advertisements.values();
    let layer2 = layer2.filter(|it| it.selects_pool(pool));
    let layer2 = layer2.map(|it| format!("on layer 2 by L2Advertisement {}", it.name));
    Ok(Explanation {
        holders: holders.collect(),
        waiting: waiting.collect(),
        advertisements: bgp.chain(layer2).collect(),
        outdated: outdated(snapshot),
        item,
    })
}

impl Explanation<'_> {
    /// The summary as one sentence.
    fn verdict(&self) -> String {
        self.state() + &self.outdated
    }

    fn state(&self) -> String {
        let name = &self.item.pool.name.name;
        let held =
            AddressFamily::ALL.into_iter().filter(|family| self.item.pool.has_family(*family));
        let is_full = held.clone().all(|family| *self.item.usage.free.of(family) == 0);
        let without = self.advertisements.is_empty();
        match (is_full, without) {
            (true, _) => {
                format!("Pool {name} is full: no address is free for automatic assignment")
            }
            (false, true) => {
                format!("Pool {name} has free addresses, and no advertisement announces them")
            }
            (false, false) => format!("Pool {name} has free addresses"),
        }
    }

    fn usage(&self) -> Vec<String> {
        let held =
            AddressFamily::ALL.into_iter().filter(|family| self.item.pool.has_family(*family));
        let line = |family: AddressFamily| {
            let usage = &self.item.usage;
            format!(
                "{} of {} {} addresses; {} are free for automatic assignment",
                usage.used.of(family),
                usage.total.of(family),
                family.ip_version(),
                usage.free.of(family)
            )
        };
        held.map(line).collect()
    }

    fn serves(&self) -> String {
        let pool = self.item.pool;
        let kept = pool.allocation.as_ref().map(kept_for);
        match (kept, pool.auto_assign) {
            (None, true) => "every Service".to_owned(),
            (None, false) => "Services that ask for it (autoAssign is false)".to_owned(),
            (Some(kept), true) => kept,
            (Some(kept), false) => format!("{kept}, if they ask for it (autoAssign is false)"),
        }
    }
}
