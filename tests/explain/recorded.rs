//! What was said before a session ended, as the programs of others read it.

use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result, ensure};
use bgpkit_parser::BgpkitParser;
use bgpkit_parser::models::{Bgp4MpEnum, BgpMessage, MrtMessage};
use lab::process::{bounded, output_of};
use lab::suite::{Case, Cell, Suite};
use lab::wait::{PATIENCE, wait_until};

use crate::scene::{PEER, Router, Scene, peer};

pub(crate) fn add_to(suite: &mut Suite) {
    let name = "a session that ends leaves a recording that bgpkit-parser and tcpdump read";
    suite.add(Case::new(name, recorded));
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
