//! Every rule for what users may write: the rule, manifests that show it, and the messages.
//!
//! docs/rules.md is generated from this table, with each message verbatim; the test fails when it is
//! stale, and `make docs` writes it again. The verdicts are in the source, so that a regenerated page
//! cannot hide that one changed.

#![allow(clippy::panic, clippy::unwrap_used)] // What fails here fails the test.

mod advertisements;
mod frr;
mod objects;
mod peers;
mod pools;
mod proxied;
mod random;
mod row;

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::PathBuf;

use row::{Row, Verdict};

const PAGE: &str = "docs/rules.md";

const HEAD: &str = "\
# What is accepted, and what is refused

Each line is a rule with what `fairway check`, the daemon's log and `fairway show config` say when it
is broken. The page is made from the tests by `make docs`: each message is what came out.

- **accepted**: no message.
- **warned**: it is in force, but probably not what was intended.
- **refused**: the object is rejected, and everything else works. Its last good version
  stays in force, across restarts too. Of an edit that would break another object, the edit is refused.
- **silent**: everything is in force, but a Service is not announced, for this reason.

The source of a rule is MetalLB's own validation, `ours` where MetalLB lets a mistake pass or
has no such field, the name of an RFC, or Kubernetes. Rules of FRR hold with `--bgp frr`.
";

fn sections() -> Vec<(&'static str, Vec<Row>)> {
    vec![
        ("Every object", objects::every()),
        ("BGPPeer", peers::rows()),
        ("BGPPeer, received and advertised routes", peers::routes()),
        ("BGPPeer, more than one object", peers::together()),
        ("With FRR", frr::rows()),
        ("BFDProfile", objects::profiles()),
        ("IPAddressPool", pools::rows()),
        ("BGPAdvertisement", advertisements::rows()),
        ("BGPAdvertisement, more than one object", advertisements::together()),
        ("L2Advertisement", objects::layer2_advertisements()),
        ("Community", objects::communities()),
        ("BGPConfiguration", objects::configurations()),
        ("Service", objects::services()),
        ("Secret", objects::secrets()),
        ("ConfigMap", objects::config_maps()),
        ("What the service proxy reads", proxied::rows()),
    ]
}

#[test]
fn every_rule_does_as_the_page_says() {
    let mut page = HEAD.to_owned();
    let mut wrong = Vec::new();
    let mut ids = BTreeSet::new();
    for (title, rows) in sections() {
        let _ = write!(
            page,
            "\n## {title}\n\n| rule | | source | verdict | message |\n|---|---|---|---|---|\n"
        );
        let mut rules = BTreeSet::new();
        for row in rows {
            assert!(ids.insert(row.id), "{} is a duplicate", row.id);
            assert!(rules.insert(row.rule), "{}: {} is a duplicate", row.id, row.rule);
            match row.message() {
                Ok(message) => line(&mut page, &row, &message),
                Err(problem) => wrong.push(problem),
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(ids.len() >= 120, "only {} rules", ids.len());
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(PAGE);
    if std::env::var_os("FAIRWAY_WRITE").is_some() {
        std::fs::write(&path, &page).unwrap();
    }
    let present = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(present == page, "{PAGE} is stale: run make docs");
}

fn line(page: &mut String, row: &Row, message: &str) {
    let verdict = match row.verdict {
        Verdict::Accepted => "accepted",
        Verdict::Warned(_) => "warned",
        Verdict::Refused(_) => "refused",
        Verdict::Silent(_) => "silent",
    };
    let backend = row.backend();
    let backend = if backend.is_empty() { backend } else { format!(" ({backend})") };
    let message = if message.is_empty() {
        String::new()
    } else {
        format!("`{}`", message.replace('|', "\\|").replace('`', "'"))
    };
    let Row { id, source, rule, .. } = row;
    let _ = writeln!(page, "| `{id}` | {rule} | {source} | {verdict}{backend} | {message} |");
}
