//! Has bgpd written all pending updates to its neighbours?

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use serde::Deserialize;
use tokio::time::{sleep, timeout};

use crate::io::vty::{Connection, VtyError};

/// Maximum wait: a neighbour that does not read must not delay us.
const TOLD_TIMEOUT: Duration = Duration::from_secs(2);
/// Interval between two queries.
const LOOK_INTERVAL: Duration = Duration::from_millis(20);
const SUMMARY: &str = "show bgp vrf all summary json";

/// A VRF's families, with their neighbours.
type Summary = BTreeMap<String, BTreeMap<String, serde_json::Value>>;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Family {
    #[serde(default)]
    peers: BTreeMap<String, Peer>,
}

#[derive(Deserialize)]
struct Peer {
    #[serde(default)]
    state: String,
    #[serde(default)]
    outq: u64,
}

/// Resolves when nothing is left to be written to an established neighbour, or after 2 seconds.
pub(super) async fn everything_is_told(socket_dir: &Path) {
    // A bgpd that is down sends nothing.
    let _ = timeout(TOLD_TIMEOUT, wait(socket_dir)).await;
}

async fn wait(socket_dir: &Path) -> Result<(), VtyError> {
    let mut bgpd = Connection::connect(socket_dir.join("bgpd.vty")).await?;
    bgpd.command("enable").await?;
    // A pending update is written in the next turn of bgpd, so one quiet answer is not enough.
    let mut quiet = 0;
    while quiet < 2 {
        let text = bgpd.command(SUMMARY).await?.text;
        quiet = if is_quiet(&text) { quiet + 1 } else { 0 };
        sleep(LOOK_INTERVAL).await;
    }
    Ok(())
}

fn is_quiet(text: &str) -> bool {
    let summary: Summary = serde_json::from_str(text).unwrap_or_default();
    let families = summary.into_values().flat_map(BTreeMap::into_values);
    let families = families.filter_map(|it| serde_json::from_value::<Family>(it).ok());
    let mut peers = families.flat_map(|it| it.peers.into_values());
    !peers.any(|it| it.state == "Established" && it.outq > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_is_not_established_is_not_waited_for() {
        let summary = |state: &str, outq: u32| {
            format!(
                r#"{{"default":{{"ipv4Unicast":{{"as":1,"peers":{{"10.0.0.1":{{"state":"{state}","outq":{outq}}}}}}}}}}}"#
            )
        };
        assert!(!is_quiet(&summary("Established", 3)));
        assert!(is_quiet(&summary("Established", 0)));
        assert!(is_quiet(&summary("Active", 3)));
        assert!(is_quiet("% BGP instance not found"));
    }
}
