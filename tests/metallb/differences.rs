//! What does MetalLB do otherwise than Fairway, as users and routers see it? Each difference with the row of the migration page that says
//! so, and with what it makes of a line that was seen. Whatever is left after that is no known difference.

use std::fs;

use anyhow::{Context, Result, ensure};

use crate::seen::{Kind, Seen};
use lab::metallb::Mode;

/// A difference that is known.
pub(crate) struct Known {
    pub(crate) modes: &'static [Mode],
    pub(crate) kind: Kind,
    /// MetalLB's Events are dropped when there are many.
    pub(crate) may_be_absent: bool,
    /// A line of MetalLB's as Fairway would say it; `None` where that has none.
    pub(crate) rewrite: fn(&Seen, &str) -> Option<String>,
    /// What it is about, Fairway's and MetalLB's.
    row: [&'static str; 3],
}

const BOTH: &[Mode] = &[Mode::Native, Mode::Frr];

pub(crate) const KNOWN: &[Known] = &[
    Known {
        modes: &[Mode::Native],
        kind: Kind::Route,
        may_be_absent: false,
        rewrite: |_, line| {
            let is_internal = line.starts_with("internal ");
            Some(if is_internal {
                line.replace("local_pref: 0", "local_pref: 100")
            } else {
                line.to_owned()
            })
        },
        row: ["LOCAL_PREF at internal peers, without `localPref`", "100", "0"],
    },
    Known {
        modes: &[Mode::Frr],
        kind: Kind::Route,
        may_be_absent: false,
        rewrite: |_, line| Some(line.replace(" med: 0", "")),
        row: ["MED", "none", "0"],
    },
    Known {
        modes: &[Mode::Frr],
        kind: Kind::Route,
        may_be_absent: false,
        rewrite: |_, line| {
            let is_link_local = |word: &&str| word.starts_with("fe80:");
            Some(line.split(' ').filter(|it| !is_link_local(it)).collect::<Vec<_>>().join(" "))
        },
        row: [
            "next hop of IPv6 routes to a neighbor on the link",
            "the global address",
            "the global and the link-local address",
        ],
    },
    Known {
        modes: &[Mode::Frr],
        kind: Kind::Status,
        may_be_absent: false,
        rewrite: told_in_its_family,
        row: [
            "peers in a ServiceBGPStatus",
            "those that are told a route",
            "all, those whose session has no address family of the Service as well",
        ],
    },
    Known {
        modes: BOTH,
        kind: Kind::Event,
        may_be_absent: false,
        rewrite: |_, line| without(line, "Normal nodeAssigned"),
        row: [
            "Event `nodeAssigned`",
            "when a node begins to announce; not after a restart, while the ServiceBGPStatus says that it does",
            "again for each Service after each restart of a speaker",
        ],
    },
    Known {
        modes: BOTH,
        kind: Kind::Event,
        may_be_absent: true,
        rewrite: |_, line| without(line, "Warning AllocationFailed"),
        row: [
            "Event `AllocationFailed`",
            "when a Service has no address, and when the reason changes; the condition in its status keeps it",
            "again after each restart of the controller, and for some Services not at all",
        ],
    },
    Known {
        modes: BOTH,
        kind: Kind::Event,
        may_be_absent: true,
        rewrite: |_, line| without(line, "Normal AdditionalAssignFailed"),
        row: [
            "Event `AdditionalAssignFailed` of a PreferDualStack Service",
            "once; the condition in its status keeps it",
            "again after each restart of the controller",
        ],
    },
    // MetalLB leaves those that Fairway has written.
    Known {
        modes: BOTH,
        kind: Kind::Condition,
        may_be_absent: true,
        rewrite: |_, line| Some(line.to_owned()),
        row: [
            "condition `metallb.io/AddressAssigned` of a Service without all of its addresses",
            "in its status, with the reason of the Event",
            "none; one that is there stays",
        ],
    },
];

impl Known {
    pub(crate) fn about(&self) -> &'static str {
        let [about, ..] = self.row;
        about
    }
}

fn without(line: &str, end: &str) -> Option<String> {
    (!line.ends_with(end)).then(|| line.to_owned())
}

/// The names of the peers over IPv6 end with `-6`.
fn told_in_its_family(seen: &Seen, line: &str) -> Option<String> {
    let words: Vec<&str> = line.split(' ').collect();
    let [service, node, peers] = words.as_slice() else { return Some(line.to_owned()) };
    let addresses = seen.addresses_of(service);
    let has = |is_ipv6: bool| addresses.iter().any(|it| it.contains(':') == is_ipv6);
    let told: Vec<&str> = peers.split(',').filter(|peer| has(peer.ends_with("-6"))).collect();
    Some(format!("{service} {node} {}", told.join(",")))
}

/// The row of each.
fn table() -> String {
    let mut text = "| | Fairway | MetalLB 0.16.1 | mode |\n|---|---|---|---|\n".to_owned();
    for Known { modes, row: [about, ours, theirs], .. } in KNOWN {
        let modes: Vec<&str> = modes.iter().map(|it| it.word()).collect();
        text += &format!("| {about} | {ours} | {theirs} | {} |\n", modes.join(", "));
    }
    text
}

/// The page says what was seen. `FAIRWAY_WRITE=1` writes it.
pub(crate) fn are_on_the_page() -> Result<()> {
    const BEGIN: &str = "<!-- what tests/metallb has seen -->\n";
    const END: &str = "<!-- the end of that -->";
    let path = lab::checkout().join("docs/migrate-from-metallb.md");
    let page = fs::read_to_string(&path)?;
    let (before, rest) = page.split_once(BEGIN).context("the page has no place for the table")?;
    let (_, after) = rest.split_once(END).context("the table of the page has no end")?;
    let wanted = format!("{before}{BEGIN}\n{}\n{END}{after}", table());
    if std::env::var_os("FAIRWAY_WRITE").is_some() {
        return fs::write(&path, wanted).context("the page");
    }
    ensure!(
        page == wanted,
        "docs/migrate-from-metallb.md has another table: FAIRWAY_WRITE=1 writes it"
    );
    Ok(())
}
