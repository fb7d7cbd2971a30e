//! Flows of this machine's connection tracking, removed where their real server is gone.
//!
//! Blocks for as long as the kernel works, so it belongs on a thread of its own.

use std::collections::BTreeSet;
use std::io;

use fairway_proxy::RealServerPlace;
use nix::errno::Errno;
use nix::sys::socket::SockProtocol;

use super::socket::Socket;
use crate::conntrack::{Flow, list};
use crate::message::{Content, acknowledged, answers};

/// See the module.
#[derive(Debug)]
pub(super) struct Conntrack {
    socket: Socket,
    sequence: u32,
}

impl Conntrack {
    pub(super) fn open() -> io::Result<Self> {
        Ok(Self { socket: Socket::open(SockProtocol::NetlinkNetFilter)?, sequence: 0 })
    }

    /// Removes the flows through these virtual addresses to these real servers.
    pub(super) fn end(&mut self, places: &BTreeSet<RealServerPlace>) -> io::Result<()> {
        for is_ipv4 in [true, false] {
            if places.iter().all(|(at, _)| at.address.is_ipv4() != is_ipv4) {
                continue;
            }
            for flow in self.flows(is_ipv4, places)? {
                self.sequence = self.sequence.wrapping_add(1);
                let request = acknowledged(flow.delete(self.sequence));
                match self.ask(&request)? {
                    // It has ended by itself.
                    0 => {}
                    code if code == Errno::ENOENT as i32 => {}
                    code => return Err(io::Error::from_raw_os_error(code)),
                }
            }
        }
        Ok(())
    }

    /// A list that changes while it is read is used as it is: flows come and go all the time.
    fn flows(&mut self, is_ipv4: bool, of: &BTreeSet<RealServerPlace>) -> io::Result<Vec<Flow>> {
        self.sequence = self.sequence.wrapping_add(1);
        self.socket.send(&list(is_ipv4, self.sequence))?;
        let mut flows = Vec::new();
        while let Some(datagram) = self.socket.receive()? {
            for answer in answers(datagram).flatten() {
                match answer.content {
                    Content::Payload(payload) => {
                        let flow = Flow::listed(payload);
                        flows.extend(flow.filter(|it| of.contains(&(it.at, it.real_server))));
                    }
                    Content::Done(0) | Content::Code(0) => {}
                    Content::Done(code) | Content::Code(code) => {
                        return Err(io::Error::from_raw_os_error(code));
                    }
                }
            }
        }
        Ok(flows)
    }

    fn ask(&mut self, request: &[u8]) -> io::Result<i32> {
        self.socket.send(request)?;
        let mut outcome = None;
        while let Some(datagram) = self.socket.receive()? {
            for answer in answers(datagram).flatten().filter(|it| it.sequence == self.sequence) {
                if let Content::Code(code) = answer.content {
                    outcome = Some(code);
                }
            }
        }
        outcome.ok_or_else(|| io::Error::other("the kernel did not answer a request"))
    }
}
