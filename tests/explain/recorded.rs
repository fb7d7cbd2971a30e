//! What was said before a session ended, and the routes of a node, as the programs of others read them.

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result, ensure};
use bgpkit_parser::BgpkitParser;
use bgpkit_parser::models::{Bgp4MpEnum, BgpMessage, MrtMessage, TableDumpV2Message};
use lab::process::{bounded, output_of};
use lab::suite::{Case, Cell, Suite};
use lab::wait::{PATIENCE, wait_until};

use crate::scene::{PEER, Router, Scene, peer};

pub(crate) fn add_to(suite: &mut Suite) {
    let name = "a session that ends leaves a recording that bgpkit-parser and tcpdump read";
    suite.add(Case::new(name, recorded));
    suite
        .add(Case::new("bgpkit-parser reads all routes from a dump, as show bgp has them", routes));
}

/// A Service, so that the node has a route of its own.
const SERVICE: &str = "---
apiVersion: metallb.io/v1beta1
kind: IPAddressPool
metadata: {name: pool}
spec: {addresses: [203.0.113.0/24]}
---
apiVersion: metallb.io/v1beta1
kind: BGPAdvertisement
metadata: {name: all}
spec: {communities: [\"65001:77\"]}
---
apiVersion: v1
kind: Service
metadata: {name: web, namespace: shop}
spec: {type: LoadBalancer, externalTrafficPolicy: Cluster, ports: [{port: 80, protocol: TCP}]}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: web-1, namespace: shop, labels: {kubernetes.io/service-name: web}}
addressType: IPv4
endpoints: [{addresses: [10.244.1.5], conditions: {ready: true}}]
ports: [{port: 8080, protocol: TCP}]
";

fn routes(cell: &Cell) -> Result<()> {
    let mut scene = Scene::near(cell)?;
    scene.start(&format!("{}{SERVICE}", peer(PEER)))?;
    scene.route(Router::HEALTHY)?;
    scene.wait_for_session()?;
    let shown = wait_until("three routes", PATIENCE, || {
        let mut show = bounded(lab::fairway::program());
        show.args(["show", "bgp", "ipv4", "unicast", "json", "--socket"])
            .arg(scene.fairway.socket());
        let table: serde_json::Value = serde_json::from_str(&output_of(&mut show)?)?;
        let routes = table.get("routes").and_then(|it| it.as_object()).context("no routes")?;
        let mut shown = BTreeSet::new();
        for (prefix, paths) in routes {
            for path in paths.as_array().context("no paths")? {
                let text = |at: &str| {
                    path.pointer(at).and_then(|it| it.as_str()).unwrap_or_default().to_owned()
                };
                shown.insert((prefix.clone(), text("/path"), text("/nexthops/0/ip")));
            }
        }
        ensure!(shown.len() == 3, "{shown:?}");
        Ok(shown)
    })?;

    let file = cell.directory.join("rib.mrt").to_string_lossy().into_owned();
    let mut dump = bounded(lab::fairway::program());
    dump.args(["dump", "rib", "--format", "mrt", "-o", &file, "--socket"])
        .arg(scene.fairway.socket());
    output_of(&mut dump)?;
    let mut dumped = BTreeSet::new();
    let bytes = std::io::Cursor::new(fs::read(&file)?);
    for record in BgpkitParser::from_reader(bytes).into_record_iter() {
        match record.message {
            MrtMessage::TableDumpV2Message(TableDumpV2Message::PeerIndexTable(table)) => {
                let peers: Vec<_> = (0..2).filter_map(|it| table.id_peer_map.get(&it)).collect();
                let peers: Vec<_> = peers
                    .iter()
                    .map(|it| format!("{} AS {} {}", it.peer_ip, it.peer_asn, it.peer_bgp_id))
                    .collect();
                let expected = ["0.0.0.0 AS 0 0.0.0.0", "10.0.0.2 AS 65010 10.0.0.2"];
                ensure!(peers == expected, "{peers:?}");
                ensure!(table.collector_bgp_id.to_string() == "10.0.0.1", "{table:?}");
            }
            MrtMessage::TableDumpV2Message(TableDumpV2Message::RibAfi(it)) => {
                for entry in &it.rib_entries {
                    let attributes = &entry.attributes;
                    let path = attributes.as_path().map(ToString::to_string).unwrap_or_default();
                    let next_hop = attributes.next_hop().context("no next hop")?.to_string();
                    ensure!((entry.peer_index == 0) == path.is_empty(), "{entry:?}");
                    dumped.insert((it.prefix.to_string(), path, next_hop));
                }
            }
            other => anyhow::bail!("{other:?}"),
        }
    }
    ensure!(dumped == shown, "{dumped:?} is not {shown:?}");

    let mut dump = bounded(lab::fairway::program());
    let output =
        dump.args(["dump", "rib", "--format", "pcap", "--socket"]).arg(scene.fairway.socket());
    let output = output.output()?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.code() == Some(1) && said.contains("expected mrt or json"), "{said}");
    Ok(())
}

fn recorded(cell: &Cell) -> Result<()> {
    let mut scene = Scene::near(cell)?;
    scene.start(&peer(PEER))?;
    scene.route(Router::HEALTHY)?;
    scene.wait_for_session()?;
    scene.birdc(&["disable", "node"])?;
    let folder = PathBuf::from(scene.fairway.directory_of("state")).join("recordings");
    let file = wait_until("the recording", PATIENCE, || {
        let entry = fs::read_dir(&folder)?.next().context("no file yet")??;
        ensure!(entry.file_name().to_string_lossy().ends_with("-10.0.0.2.mrt"), "{entry:?}");
        Ok(entry.path())
    })?;
    let kept = messages(&file.to_string_lossy())?;
    for expected in [
        "OPEN",
        "UPDATE 198.51.100.0/24",
        "OpenConfirm to Established",
        "NOTIFICATION",
        "Established to Idle",
    ] {
        ensure!(kept.iter().any(|it| it == expected), "{expected} is not in {kept:#?}");
    }

    let dumped = cell.directory.join("dumped.pcap").to_string_lossy().into_owned();
    let mut dump = bounded(lab::fairway::program());
    dump.args(["dump", "tor", "--format", "pcap", "-o", &dumped, "--socket"])
        .arg(scene.fairway.socket());
    output_of(&mut dump)?;
    let read = output_of(bounded("tcpdump").args(["-nvr", &dumped]))?;
    for expected in [
        "Open Message",
        "Update Message",
        "198.51.100.0/24",
        "Notification Message",
        "Administrative",
    ] {
        ensure!(read.contains(expected), "{expected} is not in {read}");
    }
    ensure!(!read.contains("incorrect") && !read.contains("bad cksum"), "{read}");

    let mut dump = bounded(lab::fairway::program());
    let output = dump.args(["dump", "nobody", "--socket"]).arg(scene.fairway.socket()).output()?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.code() == Some(1) && said.contains("known: 10.0.0.2"), "{said}");
    Ok(())
}

/// The messages and changes of state of a file, in words.
fn messages(path: &str) -> Result<Vec<String>> {
    let mut all = Vec::new();
    let bytes = std::io::Cursor::new(fs::read(path)?);
    for record in BgpkitParser::from_reader(bytes).into_record_iter() {
        let MrtMessage::Bgp4Mp(message) = record.message else { continue };
        all.push(match message {
            Bgp4MpEnum::StateChange(it) => format!("{:?} to {:?}", it.old_state, it.new_state),
            Bgp4MpEnum::Message(it) => match it.bgp_message {
                BgpMessage::Open(_) => "OPEN".to_owned(),
                BgpMessage::Update(it) => match it.announced_prefixes.first() {
                    Some(prefix) => format!("UPDATE {prefix}"),
                    None => "UPDATE".to_owned(),
                },
                BgpMessage::Notification(_) => "NOTIFICATION".to_owned(),
                BgpMessage::KeepAlive => "KEEPALIVE".to_owned(),
                other => format!("{other:?}"),
            },
        });
    }
    Ok(all)
}
