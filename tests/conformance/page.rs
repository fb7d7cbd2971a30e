//! The page as Markdown, from rows and exceptions. Knows no file.

use std::fmt::Write as _;

use crate::annotation::{Level, Proof, Row};
use crate::exceptions::Exception;

/// The documents, in the order in which one reads them.
const DOCUMENTS: &[(u32, &str)] = &[
    (4271, "A Border Gateway Protocol 4 (BGP-4)"),
    (4760, "Multiprotocol Extensions for BGP-4"),
    (2545, "BGP-4 Multiprotocol Extensions for IPv6"),
    (8950, "IPv4 Routes with an IPv6 Next Hop"),
    (4861, "Neighbor Discovery for IPv6 (router advertisements)"),
    (5492, "Capabilities Advertisement with BGP-4"),
    (9072, "Extended Optional Parameters Length for BGP OPEN"),
    (6286, "AS-Wide Unique BGP Identifier"),
    (6608, "Subcodes for BGP Finite State Machine Error"),
    (6793, "Four-Octet AS Number Space"),
    (7606, "Revised Error Handling for BGP UPDATE Messages"),
    (7607, "Codification of AS 0 Processing"),
    (9774, "Deprecation of AS_SET and AS_CONFED_SET"),
    (2918, "Route Refresh Capability"),
    (7313, "Enhanced Route Refresh"),
    (4724, "Graceful Restart Mechanism for BGP"),
    (8538, "NOTIFICATION Support for BGP Graceful Restart"),
    (9494, "Long-Lived Graceful Restart"),
    (7911, "Advertisement of Multiple Paths"),
    (8654, "Extended Message Support"),
    (4486, "Subcodes for BGP Cease"),
    (9003, "Extended BGP Administrative Shutdown Communication"),
    (8326, "Graceful BGP Session Shutdown"),
    (9384, "A Cease Subcode for BFD"),
    (5882, "Generic Application of BFD"),
    (5880, "Bidirectional Forwarding Detection (BFD)"),
    (5881, "BFD for IPv4 and IPv6 (Single Hop)"),
    (5883, "BFD for Multihop Paths"),
    (7419, "Common Interval Support in BFD"),
    (9687, "Send Hold Timer"),
    (8212, "Default EBGP Route Propagation without Policies"),
    (9234, "Roles and the Only to Customer Attribute"),
    (1997, "BGP Communities Attribute"),
    (4360, "BGP Extended Communities Attribute"),
    (8092, "BGP Large Communities Attribute"),
    (2385, "TCP MD5 Signature Option"),
    (5925, "TCP Authentication Option"),
    (5082, "The Generalized TTL Security Mechanism"),
    (4456, "BGP Route Reflection"),
    (7947, "Internet Exchange BGP Route Server"),
    (5065, "AS Confederations (what others must do)"),
    (6811, "BGP Prefix Origin Validation"),
    (8210, "The RPKI to Router Protocol, Version 1"),
    (7854, "BGP Monitoring Protocol (BMP)"),
    (8671, "Adj-RIB-Out in BMP"),
    (9069, "Loc-RIB in BMP"),
];

const INTRODUCTION: &str = "\
# What the RFCs ask, and which test shows it

This page is made from the tests by `make docs`; a test fails when it is stale. Each row is one
requirement that applies to what Fairway speaks today, in our own words, with the test that would
fail if it were broken. The names of tests lead to their files; the names behind one are the rows of
the table that it runs. What we do differently, or not yet, stands under
[Exceptions](#exceptions), each with its reason.

How to read the levels: SHALL counts as MUST. Documents older than those words say the same in
small letters, and the state machine of RFC 4271 §8.2.2 is written as a list of actions; both count
as MUST where an implementation that did otherwise would be wrong.

A row is a comment in a test, `//= RFC 4271 §6.5 MUST: ...`; `tests/conformance` says more.
";

/// The whole page.
pub(crate) fn render(rows: &[Row], exceptions: &[Exception]) -> String {
    let mut page = INTRODUCTION.to_owned();
    page += &summary(rows, exceptions);
    for (rfc, title) in DOCUMENTS {
        let of_it: Vec<&Row> = rows.iter().filter(|row| row.requirement.rfc == *rfc).collect();
        if !of_it.is_empty() {
            page += &section(*rfc, title, &of_it);
        }
    }
    page + &section_of_exceptions(exceptions)
}

/// Whether the page has a place for this document.
pub(crate) fn is_known(rfc: u32) -> bool {
    DOCUMENTS.iter().any(|(known, _)| *known == rfc)
}

fn summary(rows: &[Row], exceptions: &[Exception]) -> String {
    let mut table = String::from("\n| RFC | |");
    for level in Level::ALL {
        let _ = write!(table, " {} |", level.name());
    }
    table += " rows | exceptions |\n|---|---|";
    table += &"---:|".repeat(Level::ALL.len() + 2);
    table += "\n";
    let mut line = |name: &str, title: &str, is_in: &dyn Fn(u32) -> bool| {
        let of_it = || rows.iter().filter(|row| is_in(row.requirement.rfc));
        let excepted = exceptions.iter().filter(|it| is_in(it.rfc)).count();
        if of_it().count() + excepted == 0 {
            return;
        }
        let _ = write!(table, "| {name} | {title} |");
        for level in Level::ALL {
            let count = of_it().filter(|row| row.level == level).count();
            let count = if count == 0 { String::new() } else { count.to_string() };
            let _ = write!(table, " {count} |");
        }
        let _ = writeln!(table, " {} | {excepted} |", of_it().count());
    };
    for (rfc, title) in DOCUMENTS {
        let name = format!("[{rfc}](https://www.rfc-editor.org/rfc/rfc{rfc})");
        line(&name, title, &|it| it == *rfc);
    }
    line("all", "", &|_| true);
    table
}

fn section(rfc: u32, title: &str, rows: &[&Row]) -> String {
    let mut text = format!("\n## RFC {rfc}: {title}\n\n| § | level | requirement | shown by |\n");
    text += "|---|---|---|---|\n";
    for row in rows {
        let proofs: Vec<String> = shown_by(&row.proofs);
        let _ = writeln!(
            text,
            "| {} | {} | {} | {} |",
            row.requirement.section,
            row.level.name(),
            cell(&row.requirement.text),
            proofs.join("<br>")
        );
    }
    text
}

/// A link for each test, with the rows of its table that count.
fn shown_by(proofs: &[Proof]) -> Vec<String> {
    let mut shown: Vec<(String, Vec<String>)> = Vec::new();
    for Proof { path, test, case } in proofs {
        let link = format!("[{}](../{path})", test.replace('_', " "));
        let case = case.as_deref().map(cell);
        match shown.iter_mut().find(|(known, _)| *known == link) {
            Some((_, cases)) => cases.extend(case),
            None => shown.push((link, case.into_iter().collect())),
        }
    }
    let with_cases = |(link, cases): (String, Vec<String>)| {
        if cases.is_empty() { link } else { format!("{link}: {}", cases.join("; ")) }
    };
    shown.into_iter().map(with_cases).collect()
}

fn section_of_exceptions(exceptions: &[Exception]) -> String {
    let mut text = String::from(
        "\n## Exceptions\n\nRequirements that apply, and what we do instead.\n\n\
         | RFC | § | level | requirement | what we do, and why |\n|---|---|---|---|---|\n",
    );
    let of = |rfc: u32| exceptions.iter().filter(move |it| it.rfc == rfc);
    for Exception { rfc, section, level, requirement, reason } in
        DOCUMENTS.iter().flat_map(|(rfc, _)| of(*rfc))
    {
        let (requirement, reason) = (cell(requirement), cell(reason));
        let _ =
            writeln!(text, "| {rfc} | {section} | {} | {requirement} | {reason} |", level.name());
    }
    text
}

/// Text that does not end its cell.
fn cell(text: &str) -> String {
    text.replace('|', "\\|").replace('<', "&lt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rows_of_one_table_stand_behind_one_link() {
        let proof = |test: &str, case: Option<&str>| Proof {
            path: "tests/x.rs".to_owned(),
            test: test.to_owned(),
            case: case.map(str::to_owned),
        };
        let proofs = [proof("a_b", Some("one")), proof("c", None), proof("a_b", Some("t|wo"))];
        let shown = ["[a b](../tests/x.rs): one; t\\|wo", "[c](../tests/x.rs)"];
        assert_eq!(shown_by(&proofs), shown);
    }
}
