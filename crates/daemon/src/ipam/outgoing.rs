//! `natOutgoing`: Pods of such pools leave with an address of the node, by a table of ours in the packet filter.
//!
//! It is made where a pool asks for it, and only then is the packet filter touched. It stays when the daemon ends, as the
//! Pods do.

use std::collections::BTreeSet;

use fairway_dataplane::Nftables;
use fairway_dataplane::nftables::{
    Family, OUTGOING_TABLE, OUTGOING_TAG, Transaction, outgoing, remove_table,
};
use fairway_ground::{AddressFamily, Prefix};
use fairway_ipam::Facts;
use tokio::task::spawn_blocking;
use tracing::{info, warn};

/// What the packet filter is to have of a family.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
struct Wanted {
    translated: BTreeSet<Prefix>,
    pools: BTreeSet<Prefix>,
}

/// See the module.
#[derive(Debug, Default)]
pub(super) struct OutgoingNat {
    /// What it has, of each family: `None` while that is not known.
    in_force: Option<[Wanted; 2]>,
    is_troubled: bool,
}

fn wanted(facts: &Facts, family: AddressFamily) -> Wanted {
    let of_family = |it: &&fairway_ipam::Pool| it.prefix.family() == family;
    let pools: BTreeSet<Prefix> =
        facts.pools.iter().filter(of_family).map(|it| it.prefix).collect();
    let translated = facts.pools.iter().filter(of_family).filter(|it| it.is_translated);
    let translated: BTreeSet<Prefix> = translated.map(|it| it.prefix).collect();
    match translated.is_empty() {
        true => Wanted::default(),
        false => Wanted { translated, pools },
    }
}

impl OutgoingNat {
    /// Makes the tables as pools ask for them, if they are otherwise.
    pub(super) async fn follow(&mut self, facts: &Facts) {
        let families = [AddressFamily::Ipv4Unicast, AddressFamily::Ipv6Unicast];
        let wanted = families.map(|it| wanted(facts, it));
        if self.in_force.as_ref() == Some(&wanted) {
            return;
        }
        let applied = wanted.clone();
        let outcome = spawn_blocking(move || apply(&applied)).await;
        match outcome.map_err(|it| it.to_string()).and_then(|it| it) {
            Ok(changed) => {
                self.in_force = Some(wanted);
                self.is_troubled = false;
                if changed {
                    info!(
                        "natOutgoing: the table {OUTGOING_TABLE} of the packet filter is written"
                    );
                }
            }
            Err(reason) if !self.is_troubled => {
                self.is_troubled = true;
                warn!("natOutgoing: {reason}; Pods leave with their own addresses, trying again");
            }
            Err(_) => {}
        }
    }

    /// Others may have removed it: it is looked at again.
    pub(super) fn doubt(&mut self) {
        let has_some = |it: &[Wanted; 2]| it.iter().any(|it| !it.translated.is_empty());
        if self.in_force.as_ref().is_some_and(has_some) {
            self.in_force = None;
        }
    }
}

/// Returns whether anything has changed.
fn apply(wanted: &[Wanted; 2]) -> Result<bool, String> {
    let refused = |error: std::io::Error| match error.raw_os_error() {
        Some(1) => "the packet filter cannot be changed without the capability NET_ADMIN \
                    (speaker.installRoutes of the chart)"
            .to_owned(),
        _ => format!("the packet filter cannot be changed: {error}"),
    };
    let mut changed = false;
    let mut filter: Option<Nftables> = None;
    for (family, Wanted { translated, pools }) in Family::ALL.into_iter().zip(wanted) {
        // Without the need for one, a machine without nftables is as good.
        let nftables = match (&mut filter, Nftables::open()) {
            (Some(filter), _) => filter,
            (None, Ok(opened)) => filter.insert(opened),
            (None, Err(_)) if translated.is_empty() => continue,
            (None, Err(error)) => return Err(refused(error)),
        };
        let tag = match nftables.tag_of_table(family, OUTGOING_TABLE) {
            Ok(tag) => tag,
            Err(_) if translated.is_empty() => continue,
            Err(error) => return Err(refused(error)),
        };
        if tag.as_ref().is_some_and(|it| it != OUTGOING_TAG) {
            let family = family.name();
            return Err(format!(
                "the table {family} {OUTGOING_TABLE} is not Fairway's; remove it: nft delete table {family} {OUTGOING_TABLE}"
            ));
        }
        let transaction = match (translated.is_empty(), tag.is_some()) {
            (true, false) => Transaction::default(),
            (true, true) => remove_table(family, OUTGOING_TABLE),
            (false, _) => {
                let all = |it: &BTreeSet<Prefix>| it.iter().copied().collect::<Vec<_>>();
                outgoing(family, &all(translated), &all(pools))
            }
        };
        changed |= !transaction.is_empty();
        nftables.commit(transaction).map_err(refused)?;
    }
    Ok(changed)
}
