//! What does `docs/corpus.md` say? The corpus as a table, made from the entries alone, so that the
//! page and the test never differ. Used by `main`.

use std::fmt::Write;
use std::path::PathBuf;

use anyhow::{Context, Result, ensure};

use crate::entries;
use crate::entry::{Entry, Kind};

const HEAD: &str = "\
# The bad-input corpus

What Fairway makes of every malformed and malicious input that is known to us: old incidents,
advisories of other speakers, and what the RFCs forbid. Made by `make docs` from
`tests/corpus`; `make test-corpus` runs every entry against a daemon of its own, from an external
and from an internal peer, and then shows everything, asks for and sends all routes again, listens
to what another peer was told, and shuts down. `make corpus-bird` sends the same bytes to BIRD
2.0.12; where it answers otherwise, the last column says how, and why.

Not here, since no bytes of a BGP session lead there: readers of MRT files and of RPKI caches
(CVE-2025-43970, CVE-2025-43973, CVE-2026-7736), management ports without authentication
(GHSA-v5mh), passwords in logs (GHSA-fcmh), and addresses that Kubernetes users give themselves
(CVE-2020-8554, CVE-2026-32254).

- *treat-as-withdraw*: the routes of the bytes are gone, the session stays (RFC 7606 §2)
- *attribute discard*: the routes stay, without these attributes
- *not used*: the routes were read, and are not taken into the table
- *ignored*: nothing changes
- *closed in silence*: the session ends without a NOTIFICATION from us
";

fn path() -> PathBuf {
    lab::checkout().join("docs/corpus.md")
}

/// Writes the page.
pub(crate) fn write() -> Result<()> {
    std::fs::write(path(), page()).context("writing docs/corpus.md")
}

/// The page must be current.
pub(crate) fn check() -> Result<()> {
    let text = std::fs::read_to_string(path()).unwrap_or_default();
    ensure!(text == page(), "docs/corpus.md is not current; run `make docs`");
    Ok(())
}

fn page() -> String {
    let mut text = HEAD.to_owned();
    let chapters = entries::chapters();
    let count: usize = chapters.iter().map(|(_, entries)| entries.len()).sum();
    let _ = writeln!(text, "\n{count} entries.");
    for (title, entries) in chapters {
        let _ = writeln!(text, "\n## {title}\n");
        text += "| entry | source | sent | eBGP | iBGP | BIRD |\n|---|---|---|---|---|---|\n";
        for entry in entries {
            let row = [
                format!("`{}`", entry.name),
                entry.source.to_owned(),
                entry.moment.name().to_owned(),
                entry.external.words(),
                entry.internal.words(),
                bird(&entry),
            ];
            let _ = writeln!(text, "| {} |", row.join(" | "));
        }
    }
    text
}

fn bird(entry: &Entry) -> String {
    let says = |kind: Kind| match entry.difference(kind) {
        Some(it) => format!("{}: {}", it.verdict.words(), it.reason),
        None => "same".to_owned(),
    };
    let [external, internal] = Kind::ALL.map(says);
    if external == internal { external } else { format!("eBGP {external}; iBGP {internal}") }
}
