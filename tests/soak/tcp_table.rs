//! Which TCP connections does a network namespace have? As its kernel lists them, read through any
//! process that lives in it.

use std::fs;

use anyhow::{Context, Result};

const BGP_PORT: u16 = 179;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TcpState {
    Established,
    SynSent,
    Other,
}

/// A connection to or from port 179.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TcpConnection {
    pub(crate) local_port: u16,
    pub(crate) remote_port: u16,
    pub(crate) state: TcpState,
}

impl TcpConnection {
    /// The other end dialled.
    pub(crate) fn is_incoming(&self) -> bool {
        self.local_port == BGP_PORT
    }
}

/// All IPv4 connections of BGP in the namespace of `process`.
pub(crate) fn bgp_connections(process: u32) -> Result<Vec<TcpConnection>> {
    let path = format!("/proc/{process}/net/tcp");
    let text = fs::read_to_string(&path).with_context(|| format!("reading {path}"))?;
    let lines = text.lines().skip(1).filter(|line| !line.trim().is_empty());
    let all: Result<Vec<TcpConnection>> = lines
        .map(|line| connection(line).with_context(|| format!("{path} has the line {line}")))
        .collect();
    let is_bgp = |it: &TcpConnection| {
        // A listener's other end is port 0.
        it.remote_port != 0 && [it.local_port, it.remote_port].contains(&BGP_PORT)
    };
    Ok(all?.into_iter().filter(is_bgp).collect())
}

/// Those of them in `state`.
pub(crate) fn in_state(process: u32, state: TcpState) -> Result<Vec<TcpConnection>> {
    let mut connections = bgp_connections(process)?;
    connections.retain(|connection| connection.state == state);
    Ok(connections)
}

/// A line such as `0: 0100007F:1F90 00000000:0000 0A ...`.
fn connection(line: &str) -> Option<TcpConnection> {
    let mut words = line.split_whitespace().skip(1);
    let mut port = || u16::from_str_radix(words.next()?.split_once(':')?.1, 16).ok();
    let (local_port, remote_port) = (port()?, port()?);
    let state = match words.next()? {
        "01" => TcpState::Established,
        "02" => TcpState::SynSent,
        _ => TcpState::Other,
    };
    Some(TcpConnection { local_port, remote_port, state })
}
