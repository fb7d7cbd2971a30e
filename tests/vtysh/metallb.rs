//! Do MetalLB's tools for FRR find what they look for? Its frr-tools and frr-k8s query vtysh and decode these
//! fields; its end-to-end tests query a little more.

use std::net::IpAddr;
use std::path::Path;

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use crate::asking::Vtysh;

const NUMBERS: [&str; 4] = ["remoteAs", "localAs", "bgpVersion", "portForeign"];
const TEXTS: [&str; 2] = ["bgpState", "remoteRouterId"];
const MESSAGES: [&str; 10] = [
    "opensSent",
    "opensRecv",
    "notificationsSent",
    "updatesSent",
    "updatesRecv",
    "keepalivesSent",
    "keepalivesRecv",
    "routeRefreshSent",
    "totalSent",
    "totalRecv",
];

pub(crate) fn check(vtysh: &Vtysh, sockets: &Path) -> Result<()> {
    let ask = |words: &str| vtysh.ask_json(sockets, words);
    // The keys are the VRFs.
    let vrfs = ask("show bgp vrf all json")?;
    let vrfs: Vec<&String> = vrfs.as_object().context("VRFs by name")?.keys().collect();
    ensure!(vrfs == ["default"], "VRFs: {vrfs:?}");
    let mut up = 0;
    for vrf in vrfs {
        let words = format!("show bgp vrf {vrf} neighbors json");
        for (key, neighbor) in ask(&words)?.as_object().context("neighbors")? {
            ensure!(key.parse::<IpAddr>().is_ok(), "{words}: {key} is no address");
            up += usize::from(check_neighbor(neighbor).with_context(|| key.clone())?);
        }
        for what in ["peers", "peers counters"] {
            let words = format!("show bfd vrf {vrf} {what} json");
            ensure!(ask(&words)?.is_array(), "{words}: no list");
        }
    }
    ensure!(up == 3, "expected 3 established neighbors, found {up}");
    let one = ask("show bgp neighbor 10.1.1.2 json")?;
    ensure!(one.pointer("/10.1.1.2/bgpState") == Some(&"Established".into()), "{one}");
    for (words, count) in [("show bgp ipv4 json", 9), ("show bgp ipv4 community 65010:100 json", 2)]
    {
        let table = ask(words)?;
        let routes = table.get("routes").and_then(Value::as_object).context("routes")?;
        ensure!(routes.len() == count, "{words}: {} of {count} routes", routes.len());
        for path in routes.values().filter_map(Value::as_array).flatten() {
            ensure!(path.get("valid") == Some(&true.into()), "{words}: {path}");
            ensure!(path.get("peerId").is_some_and(Value::is_string), "{words}: {path}");
            ensure!(path.get("origin").is_some_and(Value::is_string), "{words}: {path}");
            ensure!(
                path.pointer("/nexthops/0/ip").is_some_and(Value::is_string),
                "{words}: {path}"
            );
        }
    }
    Ok(())
}

/// Whether it is up.
fn check_neighbor(neighbor: &Value) -> Result<bool> {
    let field = |key: &str| neighbor.get(key).with_context(|| format!("no {key}: {neighbor}"));
    for key in NUMBERS {
        ensure!(field(key)?.is_i64(), "{key} is no number");
    }
    for key in TEXTS {
        ensure!(field(key)?.is_string(), "{key} is no text");
    }
    let messages = field("messageStats")?;
    for key in MESSAGES {
        ensure!(messages.get(key).is_some_and(Value::is_u64), "messageStats.{key}: {messages}");
    }
    let is_up = *field("bgpState")? == "Established";
    for (family, info) in field("addressFamilyInfo")?.as_object().context("families")? {
        let sent = info.get("sentPrefixCounter");
        ensure!(sent.is_some_and(Value::is_u64) == is_up, "{family}: sentPrefixCounter {sent:?}");
        ensure!(info.get("acceptedPrefixCounter").is_some_and(Value::is_u64), "{family}: {info}");
    }
    Ok(is_up)
}
