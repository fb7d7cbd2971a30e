//! A node that is out of service is shown as such in every output that an operator reads.

use std::time::Duration;

use fairway_node::drain::DrainStatus;

use super::lab::NOW_EPOCH_SECONDS;
use super::*;

const DRAINING: DrainStatus = DrainStatus::Draining {
    since_epoch_seconds: NOW_EPOCH_SECONDS - 12,
    until_epoch_seconds: NOW_EPOCH_SECONDS + 18,
};
const DRAINED: DrainStatus =
    DrainStatus::Drained { since_epoch_seconds: NOW_EPOCH_SECONDS - 3_600 };

fn lab_that_is(drain: DrainStatus) -> Lab {
    Lab { drain, ..Lab::new() }
}

#[test]
fn people_see_since_when_and_until_when() {
    let draining = "\nDrain: this node is draining since 2026-11-20 16:37:51 UTC, until 2026-11-20 \
                    16:38:21 UTC\n";
    let drained = "\nDrain: this node is drained since 2026-11-20 15:38:03 UTC\n";
    for (status, line) in [(DRAINING, draining), (DRAINED, drained)] {
        let lab = lab_that_is(status);
        for command in [summary(), neighbors("10.1.1.2"), ShowCommand::Config] {
            let text = text(&lab, &command).unwrap();
            assert!(text.ends_with(line), "{command:?}: {text}");
        }
        // One for each family.
        assert_eq!(text(&lab, &summary()).unwrap().matches(line).count(), 2);
    }
}

#[test]
fn programs_find_it_beside_what_frr_says() {
    let lab = lab_that_is(DRAINING);
    let drain = serde_json::json!({
        "state": "draining",
        "sinceEpochSeconds": NOW_EPOCH_SECONDS - 12,
        "untilEpochSeconds": NOW_EPOCH_SECONDS + 18,
    });
    let summary = json(&lab, &summary());
    assert_eq!(summary["ipv4Unicast"]["drain"], drain);
    assert_eq!(summary["ipv6Unicast"]["drain"], drain);
    assert_eq!(summary.as_object().unwrap().len(), 2, "families, and nothing beside them");
    assert_eq!(json(&lab, &neighbors("10.1.1.2"))["10.1.1.2"]["drain"], drain);
    assert_eq!(json(&lab, &ShowCommand::Config)["drain"], drain);
    let drained = json(&lab_that_is(DRAINED), &ShowCommand::Config);
    let expected =
        serde_json::json!({"state": "drained", "sinceEpochSeconds": NOW_EPOCH_SECONDS - 3_600});
    assert_eq!(drained["drain"], expected);
}

#[test]
fn a_mark_of_the_node_is_named() {
    let mut lab = lab_that_is(DRAINED);
    lab.node.drain = Some(Duration::from_secs(30));
    let text = text(&lab, &ShowCommand::Config).unwrap();
    assert!(text.ends_with(" UTC; its Node is marked metallb.io/drain\n"), "{text}");
    assert_eq!(json(&lab, &summary())["ipv4Unicast"]["drain"]["isMarked"], true);
}

#[test]
fn nothing_is_said_of_a_node_in_service() {
    let lab = Lab::new();
    for command in all_commands() {
        assert!(!text(&lab, &command).unwrap_or_default().contains("Drain:"), "{command:?}");
        if let Ok(json) = render(&command, Format::Json, &lab.snapshot()) {
            assert!(!json.contains("\"drain\""), "{command:?}");
        }
    }
}
