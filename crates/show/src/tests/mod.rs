//! The outputs of a small lab: the router that FRR was captured on, with our peers and routes.

mod add_path;
mod bfd;
mod bmp;
mod drain;
mod explain;
mod explain_others;
mod frr_words;
pub(crate) mod lab;
mod learned;
mod overview;
mod restarts;
mod rpki;
mod services;
mod shapes;
mod texts;
mod unnumbered;

use fairway_ground::AddressFamily;
use lab::Lab;
use serde_json::Value;

use super::{
    BfdDetail, Format, PeerRoutes, Query, ShowCommand, ShowError, Snapshot, SummaryFamilies,
    SummaryFilter, TableFilter, VrfSelection,
};

/// The answer of all VRFs.
fn render(
    command: &ShowCommand,
    format: Format,
    snapshot: &Snapshot<'_>,
) -> Result<String, ShowError> {
    Query { what: command.clone(), format, vrf: VrfSelection::Undivided }.render(snapshot)
}

/// The answer as text.
fn text(lab: &Lab, command: &ShowCommand) -> Result<String, ShowError> {
    render(command, Format::Text, &lab.snapshot())
}

/// The answer as JSON.
fn json(lab: &Lab, command: &ShowCommand) -> Value {
    serde_json::from_str(&render(command, Format::Json, &lab.snapshot()).unwrap()).unwrap()
}

fn neighbors(peer: &str) -> ShowCommand {
    ShowCommand::BgpNeighbors { peer: Some(peer.to_owned()), family: None }
}

fn advertised(peer: &str) -> ShowCommand {
    ShowCommand::BgpPeerRoutes {
        peer: peer.to_owned(),
        family: None,
        routes: PeerRoutes::Advertised,
    }
}

fn summary() -> ShowCommand {
    summary_of(SummaryFamilies::All, SummaryFilter::Everybody)
}

fn summary_of(families: SummaryFamilies, filter: SummaryFilter) -> ShowCommand {
    ShowCommand::BgpSummary { families, filter }
}

/// Every command, for all neighbours and for those in a special state.
fn all_commands() -> Vec<ShowCommand> {
    use ShowCommand::*;
    let table = |family| BgpUnicast { family, prefix: None };
    let families = AddressFamily::ALL;
    let mut commands =
        vec![summary(), BgpNeighbors { peer: None, family: None }, Services, Pools, Config];
    commands.push(BgpGracefulRestart { peer: None, family: None });
    commands.extend(families.map(table));
    commands.extend(["10.1.1.2", "router-two"].map(neighbors));
    commands.extend(["10.1.1.2", "10.1.1.97", "2001:db8:1:1::2"].map(advertised));
    commands.extend(["10.1.1.2", "10.1.1.97"].map(|it| BgpPeerRoutes {
        peer: it.to_owned(),
        family: None,
        routes: PeerRoutes::Received,
    }));
    for family in families {
        commands.extend([
            summary_of(SummaryFamilies::One(family), SummaryFilter::Established),
            summary_of(SummaryFamilies::OneByName(family), SummaryFilter::Failed),
            BgpUnicastDetail { family },
            BgpStatistics { family },
            BgpPrefixCounts { peer: "10.1.1.2".to_owned(), family: AddressFamily::Ipv4Unicast },
        ]);
        commands.extend([("65001:100", false), ("65001:1:10", true)].map(|(text, is_large)| {
            let text = text.to_owned();
            let filter = TableFilter::Community { text, is_large, is_exact: false };
            BgpFiltered { family, filter }
        }));
    }
    commands.extend(["65010", "(65010|65020)_"].map(|text| BgpFiltered {
        family: AddressFamily::Ipv4Unicast,
        filter: TableFilter::AsPath(text.to_owned()),
    }));
    commands.extend([KernelRoutes { is_summary: false, is_keyed: false }, Version, RunningConfig]);
    commands.extend([BgpNextHops { address: None }, BgpRouter, BgpPeerGroups { group: None }]);
    let details = [BfdDetail::Full, BfdDetail::Brief, BfdDetail::Counters];
    commands.extend(details.map(|detail| BfdPeers { detail }));
    commands
}

#[test]
fn no_output_holds_a_password() {
    let lab = Lab::new();
    for command in all_commands() {
        for format in [Format::Text, Format::Json] {
            let output = render(&command, format, &lab.snapshot()).unwrap();
            assert!(!output.contains(lab::PASSWORD), "{command:?}: {output}");
        }
    }
}

#[test]
fn every_output_ends_with_exactly_one_newline() {
    let lab = Lab::new();
    for command in all_commands() {
        for format in [Format::Text, Format::Json] {
            let output = render(&command, format, &lab.snapshot()).unwrap();
            let ends = output.ends_with('\n') && !output.ends_with("\n\n");
            assert!(output.is_empty() || ends, "{command:?}: {output:?}");
        }
    }
}

#[test]
fn a_command_survives_the_admin_socket() {
    for command in all_commands() {
        let line = serde_json::to_string(&command).unwrap();
        assert_eq!(serde_json::from_str::<ShowCommand>(&line).unwrap(), command);
    }
}

#[test]
fn without_peers_the_answers_are_those_of_frr() {
    let lab = Lab::without_peers();
    let everybody = ShowCommand::BgpNeighbors { peer: None, family: None };
    let empty = Value::Object(serde_json::Map::new());
    assert_eq!(json(&lab, &summary()), empty);
    assert_eq!(json(&lab, &everybody), empty);
    let summary = text(&lab, &summary()).unwrap();
    assert_eq!(summary, "% No BGP neighbors found in VRF default\n");
    assert_eq!(text(&lab, &everybody).unwrap(), "% No BGP neighbors found\n");
    let table = lab::table_ipv4(None);
    assert_eq!(text(&lab, &table).unwrap(), "No BGP prefixes displayed, 0 exist\n");
    assert_eq!(json(&lab, &table)["routes"], empty);
}

#[test]
fn an_unknown_neighbor_is_an_error_for_people_and_an_object_for_programs() {
    let lab = Lab::new();
    for peer in ["10.1.1.77", "nobody"] {
        assert_eq!(text(&lab, &neighbors(peer)), Err(ShowError::NoSuchNeighbor));
        assert_eq!(text(&lab, &advertised(peer)), Err(ShowError::NoSuchNeighbor));
        assert_eq!(json(&lab, &neighbors(peer)).to_string(), r#"{"bgpNoSuchNeighbor":true}"#);
        let answer = r#"{"warning":"No such neighbor in this view/vrf"}"#;
        assert_eq!(json(&lab, &advertised(peer)).to_string(), answer);
    }
    assert_eq!(ShowError::NoSuchNeighbor.to_string(), "% No such neighbor in this view/vrf");
}

#[test]
fn a_neighbor_is_found_by_address_in_any_spelling_and_by_name() {
    let lab = Lab::new();
    for (wanted, address) in [
        ("10.1.1.2", "10.1.1.2"),
        ("router one over IPv4", "10.1.1.2"),
        ("2001:DB8:1:1:0::2", "2001:db8:1:1::2"),
    ] {
        let found = json(&lab, &neighbors(wanted));
        let keys: Vec<_> = found.as_object().unwrap().keys().collect();
        assert_eq!(keys, [address], "{wanted}");
    }
}

#[test]
fn a_prefix_is_found_by_itself_and_by_an_address_inside() {
    let lab = Lab::new();
    for wanted in ["203.0.113.10/32", "203.0.113.10"] {
        let entry = json(&lab, &lab::table_ipv4(Some(wanted)));
        assert_eq!(entry["prefix"], "203.0.113.10/32", "{wanted}");
    }
    let missing = lab::table_ipv4(Some("10.99.0.0/24"));
    assert_eq!(text(&lab, &missing), Err(ShowError::NetworkNotInTable));
    assert_eq!(ShowError::NetworkNotInTable.to_string(), "% Network not in table");
    assert_eq!(json(&lab, &missing).to_string(), "{}");
    for malformed in ["10.99.0.0/33", "nonsense", "2001:db8::/32"] {
        let answer = text(&lab, &lab::table_ipv4(Some(malformed)));
        assert!(matches!(answer, Err(ShowError::MalformedPrefix { .. })), "{malformed}");
    }
}
