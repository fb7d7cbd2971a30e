//! BGPConfiguration (fairway.dev/v1beta1): what concerns the BGP speaker of a node and no single peer.
//!
//! Answers which RPKI caches are asked, which BMP stations are told what, whose MEDs are compared, and on which nodes. Knows no other object, and not whether a cache is reached.

use std::collections::BTreeSet;
use std::net::IpAddr;
use std::str::FromStr;
use std::sync::Arc;

use fairway_ground::{BmpStation, BmpTables, RpkiServer};
use fairway_model::{BgpConfiguration, Object};
use schemars::JsonSchema;
use serde::Deserialize;

use super::dns_name::is_subdomain;
use super::field_path::FieldPath;
use super::fields::{PortNumber, Text};
use super::label_selector::{self, RawLabelSelector};
use super::metadata::Metadata;
use super::report::{List, Report, elements};

/// The `apiVersion` of the kind.
pub(crate) const VERSION: &str = "fairway.dev/v1beta1";

#[derive(Deserialize, JsonSchema, Default)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct RawSpec {
    /// Selects the nodes that it is for. None: all.
    node_selectors: Option<List<RawLabelSelector>>,
    /// Compares the MED of paths through different neighbouring ASes too, as FRR's bgp always-compare-med. Default: only of
    /// those through the same one.
    #[serde(rename = "alwaysCompareMED")]
    always_compare_med: Option<bool>,
    /// Monitoring by stations of BMP (RFC 7854).
    bmp: Option<RawBmp>,
    /// Validation of the origin of received routes (RFC 6811).
    rpki: Option<RawRpki>,
}

#[derive(Deserialize, JsonSchema, Default)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct RawRpki {
    /// The caches that are asked, 16 at most. What any of them says counts.
    servers: Option<List<RawServer>>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct RawServer {
    /// An IP address or a DNS name.
    #[schemars(required)]
    address: Option<Text<Host>>,
    /// The TCP port. Default: 323.
    port: Option<PortNumber>,
}

#[derive(Deserialize, JsonSchema, Default)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct RawBmp {
    /// The stations that each node connects to, 8 at most.
    stations: Option<List<RawStation>>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct RawStation {
    /// An IP address or a DNS name.
    #[schemars(required)]
    address: Option<Text<Host>>,
    /// The TCP port. Default: 11019.
    port: Option<PortNumber>,
    /// The tables that it is told the routes of: adjRIBInPrePolicy, adjRIBInPostPolicy, adjRIBOutPostPolicy, locRIB. Default:
    /// adjRIBInPrePolicy; an empty list is none, and only sessions and statistics are told.
    monitor: Option<List<Text<Table>>>,
    /// Seconds between two reports of statistics, 5 to 65535; 0: none. Default: 0.
    stats_interval_seconds: Option<u16>,
}

/// Of one name.
struct Table(BmpTables);

impl FromStr for Table {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut tables = BmpTables::NONE;
        match text {
            "adjRIBInPrePolicy" => tables.adj_rib_in_pre_policy = true,
            "adjRIBInPostPolicy" => tables.adj_rib_in_post_policy = true,
            "adjRIBOutPostPolicy" => tables.adj_rib_out_post_policy = true,
            "locRIB" => tables.loc_rib = true,
            _ => {
                return Err(format!(
                    "{text:?} is not allowed; expected adjRIBInPrePolicy, adjRIBInPostPolicy, adjRIBOutPostPolicy or \
                     locRIB"
                ));
            }
        }
        Ok(Self(tables))
    }
}

struct Host(Arc<str>);

impl FromStr for Host {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let address = text.parse::<IpAddr>().map(|address| address.to_string());
        // What looks like an IPv4 address with a wrong number is no name.
        let is_name = is_subdomain(text) && text.contains(|it: char| it.is_ascii_lowercase());
        match address {
            Ok(address) => Ok(Self(address.into())),
            Err(_) if is_name => Ok(Self(text.into())),
            Err(_) => Err(format!("{text:?} is not allowed; expected an IP address or a DNS name")),
        }
    }
}

/// Parses the object; `None` if it has a fault.
pub(crate) fn parse(metadata: Metadata, report: &mut Report<'_>) -> Option<Object> {
    let spec = FieldPath::of("spec");
    let raw: RawSpec =
        report.read(&spec).or_else(|| (!report.has_faults()).then(RawSpec::default))?;
    Some(Object::BgpConfiguration(BgpConfiguration {
        name: metadata.name,
        node_selectors: label_selector::parse_list(
            raw.node_selectors,
            &spec.key("nodeSelectors"),
            report,
        ),
        always_compare_med: raw.always_compare_med.unwrap_or(false),
        rpki_servers: servers(raw.rpki.unwrap_or_default().servers, report),
        bmp_stations: stations(raw.bmp.unwrap_or_default().stations, report),
    }))
}

fn servers(raw: Option<List<RawServer>>, report: &mut Report<'_>) -> BTreeSet<RpkiServer> {
    let list = FieldPath::of("spec.rpki.servers");
    let mut servers = BTreeSet::new();
    for (position, RawServer { address, port }) in elements(raw) {
        let path = list.index(position);
        let address = report.required(address, &path.key("address"), "an IP address or a DNS name");
        let Some(Text(Host(host))) = address else { continue };
        let port = port.map_or(RpkiServer::PORT_DEFAULT, |PortNumber(port)| port);
        if !servers.insert(RpkiServer { host, port }) {
            report.fault(&path, "is given twice; remove one");
        }
    }
    if servers.len() > RpkiServer::COUNT_MAX {
        let most = RpkiServer::COUNT_MAX;
        report.fault(&list, format_args!("has too many servers; expected at most {most}"));
    }
    servers
}

fn stations(raw: Option<List<RawStation>>, report: &mut Report<'_>) -> BTreeSet<BmpStation> {
    let list = FieldPath::of("spec.bmp.stations");
    let mut stations = BTreeSet::<BmpStation>::new();
    for (position, raw) in elements(raw) {
        let path = list.index(position);
        let RawStation { address, port, monitor, stats_interval_seconds } = raw;
        let address = report.required(address, &path.key("address"), "an IP address or a DNS name");
        let least = BmpStation::STATISTICS_INTERVAL_SECONDS_MIN;
        let statistics_interval_seconds = stats_interval_seconds.unwrap_or(0);
        if (1..least).contains(&statistics_interval_seconds) {
            let path = path.key("statsIntervalSeconds");
            report.fault(&path, format_args!("is too short; expected 0 or at least {least}"));
        }
        // An empty list names none: then only sessions and statistics are told.
        let tables = match monitor {
            Some(named) => elements(Some(named))
                .fold(BmpTables::NONE, |all, (_, Text(Table(table)))| all.and(table)),
            None => BmpTables::DEFAULT,
        };
        let Some(Text(Host(host))) = address else { continue };
        let port = port.map_or(BmpStation::PORT_DEFAULT, |PortNumber(port)| port);
        let station = BmpStation { host, port, tables, statistics_interval_seconds };
        if stations.iter().any(|it| it.is_at(&station)) {
            report.fault(&path, "is given twice; remove one");
            continue;
        }
        stations.insert(station);
    }
    if stations.len() > BmpStation::COUNT_MAX {
        let most = BmpStation::COUNT_MAX;
        report.fault(&list, format_args!("has too many stations; expected at most {most}"));
    }
    stations
}

#[cfg(test)]
mod tests {
    use fairway_model::Kind;

    use super::super::backend::BackendKind;
    use super::super::{object, yaml};
    use super::*;

    fn tables_with(monitor: &str) -> Vec<BmpTables> {
        let text = format!(
            "metadata: {{name: a}}\nspec: {{bmp: {{stations: [{{address: bmp.example{monitor}}}]}}}}\n"
        );
        let root = yaml::documents(&text).next().unwrap().root.unwrap();
        let mut report = Report::new(&root);
        let parsed = object::parse(Kind::BgpConfiguration, BackendKind::Native, &mut report);
        let Some(Object::BgpConfiguration(it)) = parsed else { panic!("{report:?}") };
        it.bmp_stations.iter().map(|it| it.tables).collect()
    }

    #[test]
    fn an_empty_list_of_tables_is_none_and_a_missing_one_the_default() {
        let loc_rib = BmpTables { loc_rib: true, ..BmpTables::NONE };
        assert_eq!(tables_with(""), [BmpTables::DEFAULT]);
        assert_eq!(tables_with(", monitor: []"), [BmpTables::NONE]);
        assert_eq!(tables_with(", monitor: [locRIB]"), [loc_rib]);
    }
}
