//! `show bmp`: the stations that are told of sessions and routes.

use std::time::Duration;

use fairway_ground::{BmpTables, printable};
use fairway_seam::BmpStationView;
use serde_json::Value;

use super::Snapshot;
use super::columns::{aligned, or_none};
use super::object::Object;
use super::time::{clock, milliseconds};

const NO_STATION: &str =
    "No BMP stations: no BGPConfiguration for this node names any (spec.bmp.stations).\n";

fn state(station: &BmpStationView) -> &'static str {
    if station.connected_for.is_some() { "connected" } else { "down" }
}

/// As `monitor` of the resource has them.
fn tables(tables: BmpTables) -> Vec<&'static str> {
    let all = [
        (tables.adj_rib_in_pre_policy, "adjRIBInPrePolicy"),
        (tables.adj_rib_in_post_policy, "adjRIBInPostPolicy"),
        (tables.adj_rib_out_post_policy, "adjRIBOutPostPolicy"),
        (tables.loc_rib, "locRIB"),
    ];
    all.into_iter().filter_map(|(is_told, name)| is_told.then_some(name)).collect()
}

/// A row for each station.
pub(super) fn text(snapshot: &Snapshot<'_>) -> String {
    let stations = &snapshot.bgp.bmp_stations;
    if stations.is_empty() {
        return NO_STATION.to_owned();
    }
    let heads = ["STATION", "STATE", "SINCE", "MESSAGES", "QUEUED BYTES", "MONITOR", "PROBLEM"];
    let mut rows = vec![heads.map(str::to_owned)];
    let time = |it: Option<Duration>| or_none(it.map(clock).unwrap_or_default());
    rows.extend(stations.iter().map(|it| {
        [
            it.station.to_string(),
            state(it).to_owned(),
            time(it.connected_for),
            it.messages.to_string(),
            it.queued_bytes.to_string(),
            tables(it.station.tables).join(","),
            or_none(it.failure.as_deref().map(printable).unwrap_or_default().into_owned()),
        ]
    }));
    aligned(&rows)
}

/// An object for each station.
pub(super) fn json(snapshot: &Snapshot<'_>) -> Object {
    let object = |it: &BmpStationView| -> Value {
        Object::new()
            .field("address", &*it.station.host)
            .field("port", it.station.port)
            .field("state", state(it))
            .optional("connectedMsec", it.connected_for.map(milliseconds))
            .field("messages", it.messages)
            .field("queuedBytes", it.queued_bytes)
            .field("monitor", tables(it.station.tables))
            .field("statsIntervalSeconds", it.station.statistics_interval_seconds)
            .optional("problem", it.failure.as_deref())
            .into()
    };
    let stations = snapshot.bgp.bmp_stations.iter();
    Object::new().field("items", stations.map(object).collect::<Vec<Value>>())
}
