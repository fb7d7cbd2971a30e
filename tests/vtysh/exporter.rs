//! Does the Prometheus frr_exporter find what it looks for? Its queries in its way, and the fields that it
//! decodes.

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use crate::asking::{scrape, scrape_json};
use crate::stage::Stage;

/// The fields of each neighbour that become metrics.
const PEER_NUMBERS: [&str; 6] =
    ["remoteAs", "msgRcvd", "msgSent", "peerUptimeMsec", "pfxRcd", "pfxSnt"];
/// Those of each table.
const TABLE_NUMBERS: [&str; 4] = ["ribCount", "ribMemory", "peerCount", "peerMemory"];

pub(crate) fn check(stage: &Stage) -> Result<()> {
    let bgpd = stage.socket("bgpd.vty");
    let mut peers = 0;
    for family in ["ipv4", "ipv6"] {
        // With two blanks, as it writes it.
        let words = format!("show bgp vrf all {family}  summary json");
        let answer = scrape_json(&bgpd, &words)?;
        for (vrf, families) in object(&answer, &words)? {
            for (name, table) in object(families, vrf)? {
                // It cuts the name there.
                ensure!(name.get(4..) == Some("Unicast"), "{words}: family {name}");
                numbers(table, &TABLE_NUMBERS).with_context(|| words.clone())?;
                for (address, peer) in object(table.get("peers").context("peers")?, "peers")? {
                    numbers(peer, &PEER_NUMBERS).with_context(|| address.clone())?;
                    ensure!(peer.get("state").is_some_and(Value::is_string), "{address}: {peer}");
                    peers += 1;
                }
            }
        }
    }
    ensure!(peers == 6, "expected 6 neighbors, found {peers}");
    let words = "show bgp vrf all neighbors json";
    for (vrf, neighbors) in object(&scrape_json(&bgpd, words)?, words)? {
        for (key, neighbor) in object(neighbors, vrf)? {
            let is_head = ["vrfId", "vrfName"].contains(&key.as_str());
            ensure!(is_head || neighbor.get("nbrDesc").is_some(), "{words}: {key}: {neighbor}");
        }
    }
    let words = "show bgp ipv4 unicast neighbors 10.1.1.2 advertised-routes json";
    let told = scrape_json(&bgpd, words)?;
    numbers(&told, &["totalPrefixCounter"]).context(words)?;
    let count = object(told.get("advertisedRoutes").context("advertisedRoutes")?, words)?.count();
    ensure!(count == 2, "{words}: {count} routes");
    let words = "show bgp ipv4 unicast neighbors 10.1.1.2 routes json";
    let routes = scrape_json(&bgpd, words)?;
    let count = object(routes.get("routes").context("routes")?, words)?.count();
    ensure!(count == 6, "{words}: {count} routes");
    let words = "show ip bgp vrf all nexthop json";
    let families = scrape_json(&bgpd, words)?;
    let count = object(families.get("default").context("default")?, words)?.count();
    ensure!(count == 2, "{words}: {families}");
    let peers = scrape_json(&stage.socket("bfdd.vty"), "show bfd peers json")?;
    ensure!(peers.is_array(), "show bfd peers json: {peers}");
    let zebra = stage.socket("zebra.vty");
    for family in ["ip", "ipv6"] {
        let words = format!("show {family} route vrf all summary json");
        for (_, summary) in object(&scrape_json(&zebra, &words)?, &words)? {
            numbers(summary, &["routesTotal", "routesTotalFib"]).with_context(|| words.clone())?;
            ensure!(summary.get("routes").is_some_and(Value::is_array), "{words}: {summary}");
        }
    }
    version(&scrape(&zebra, "show version")?)
}

/// `FRRouting VERSION (HOST) on OS.`: it reads the version and the system out of that.
fn version(text: &str) -> Result<()> {
    let line = text.lines().next().unwrap_or_default();
    let version = line.strip_prefix("FRRouting ").and_then(|rest| rest.split(' ').next());
    ensure!(version.is_some_and(|version| version.contains("fairway")), "version in {line}");
    let system = line.rsplit_once(" on ").and_then(|(_, rest)| rest.strip_suffix('.'));
    ensure!(system == Some("Linux"), "system in {line}");
    Ok(())
}

fn object<'a>(
    value: &'a Value,
    what: &str,
) -> Result<impl Iterator<Item = (&'a String, &'a Value)>> {
    let object = value.as_object().with_context(|| format!("{what}: no object but {value}"))?;
    Ok(object.iter())
}

fn numbers(value: &Value, keys: &[&str]) -> Result<()> {
    for key in keys {
        let found = value.get(key);
        ensure!(found.is_some_and(Value::is_u64), "{key}: no number but {found:?}");
    }
    Ok(())
}
