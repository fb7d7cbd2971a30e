//! How is a router told to dial now? Each in its own way; what they do by themselves takes seconds
//! to a minute.

use std::net::IpAddr;

use anyhow::Result;

use lab::Lab;
use lab::process::{bounded, output_of};
use lab::routers::RouterKind;

/// Makes `router` of `lab` forget what it waits for and dial `neighbour`.
pub(crate) fn redial(router: RouterKind, lab: &Lab, neighbour: IpAddr) -> Result<()> {
    let neighbour = neighbour.to_string();
    match router {
        RouterKind::Bird(_) => {
            let mut command = bounded("birdc");
            command.arg("-s").arg(lab.directory.join("bird.ctl")).args(["restart", "node"]);
            output_of(&mut command).map(drop)
        }
        RouterKind::Frr(_) => {
            let mut command = bounded("vtysh");
            let directory = lab.directory.join("frr");
            command.arg("--vty_socket").arg(&directory).arg("--config_dir").arg(&directory);
            output_of(command.args(["-c", "clear bgp *"])).map(drop)
        }
        // Up, it goes on at once, after a down of its own choice it would wait.
        RouterKind::Openbgpd => ["down", "up"].into_iter().try_for_each(|word| {
            let mut command = bounded("bgpctl");
            command.arg("-s").arg(lab.directory.join("bgpd.sock"));
            output_of(command.args(["neighbor", &neighbour, word])).map(drop)
        }),
        // Its timer is random, between 5 s and 10 s; nothing makes it dial sooner.
        RouterKind::Gobgp => Ok(()),
    }
}
