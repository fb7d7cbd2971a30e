//! BMP stations, as they are shown.

use std::time::Duration;

use fairway_ground::{BmpStation, BmpTables};
use fairway_seam::BmpStationView;
use serde_json::json;

use super::super::ShowCommand;
use super::{json as shown, text};

#[test]
fn stations_are_shown_with_their_state_and_problem() {
    let mut lab = super::learned::lab();
    let none = text(&lab, &ShowCommand::BmpStations).unwrap();
    assert!(none.starts_with("No BMP stations: "), "{none}");
    let station = |host: &str, tables| BmpStation {
        host: host.into(),
        port: 11_019,
        tables,
        statistics_interval_seconds: 60,
    };
    let both = BmpTables { loc_rib: true, ..BmpTables::DEFAULT };
    let works = BmpStationView {
        station: station("2001:db8::1", both),
        connected_for: Some(Duration::from_secs(61)),
        queued_bytes: 100,
        messages: 7,
        failure: None,
    };
    let down = BmpStationView {
        station: station("bmp.example", BmpTables::DEFAULT),
        connected_for: None,
        queued_bytes: 0,
        messages: 0,
        failure: Some("connection refused\u{1b}[31m".to_owned()),
    };
    lab.bgp.bmp_stations = vec![works, down];
    let table = text(&lab, &ShowCommand::BmpStations).unwrap();
    let rows: Vec<Vec<&str>> = table.lines().map(|it| it.split_whitespace().collect()).collect();
    assert_eq!(
        rows[1],
        [
            "[2001:db8::1]:11019",
            "connected",
            "00:01:01",
            "7",
            "100",
            "adjRIBInPrePolicy,locRIB",
            "<none>"
        ]
    );
    assert_eq!(rows[2][..4], ["bmp.example:11019", "down", "<none>", "0"]);
    assert!(!table.contains('\u{1b}'), "{table}");
    let object = shown(&lab, &ShowCommand::BmpStations);
    assert_eq!(object["items"][0]["monitor"], json!(["adjRIBInPrePolicy", "locRIB"]));
    assert_eq!(object["items"][1]["state"], "down");
}
