//! Connections of a client, each from a port of its own. It is this test's own binary, run again inside the namespace.

use std::ffi::OsStr;
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::process::ExitCode;

use anyhow::{Context, Result};

use lab::namespace::{Namespace, Place};
use lab::process::output_of;

const ROLE: &str = "@flows";
/// Enough that a fair share of six differs from twice of it by far more than chance does.
pub(crate) const FLOWS: u16 = 1_200;
const FIRST_PORT: u16 = 20_000;

/// Sends one packet of each flow to `address`.
pub(crate) fn send(client: &Namespace, address: &str) -> Result<()> {
    let binary = std::env::current_exe().context("the path of this binary")?;
    let mut command = client.command(OsStr::new(&binary));
    output_of(command.args([ROLE, address])).map(drop)
}

/// Plays the role when the command line asks for it.
pub(crate) fn other_role() -> Option<ExitCode> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [role, address] = words.as_slice() else { return None };
    if role != ROLE {
        return None;
    }
    Some(match send_all(address) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error:#}");
            ExitCode::FAILURE
        }
    })
}

fn send_all(address: &str) -> Result<()> {
    let address: Ipv4Addr = address.parse().context("an address")?;
    let to = SocketAddr::new(address.into(), 80);
    for number in 0..FLOWS {
        let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, FIRST_PORT + number))?;
        socket.send_to(b"x", to).context("a packet")?;
    }
    Ok(())
}
