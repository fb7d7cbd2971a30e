//! A network namespace of one's own, and addresses in it.

use std::net::IpAddr;
use std::process::Command;

use fairway_model::TransportProtocol;
use fairway_proxy::{RealServer, VirtualAddress};
use nix::sched::{CloneFlags, unshare};

/// On a thread in a network namespace of its own, which goes with it.
pub(crate) fn alone(story: fn()) {
    let thread = std::thread::spawn(move || {
        unshare(CloneFlags::CLONE_NEWNET).expect("a namespace needs root");
        // Without any address the kernel takes every one for a broadcast address, and no real server.
        let up = Command::new("ip").args(["link", "set", "lo", "up"]).status();
        assert!(up.is_ok_and(|it| it.success()), "loopback");
        story();
    });
    if let Err(panic) = thread.join() {
        std::panic::resume_unwind(panic);
    }
}

pub(crate) fn at(address: &str, port: u16, protocol: TransportProtocol) -> VirtualAddress {
    VirtualAddress { address: address.parse().unwrap(), port, protocol }
}

pub(crate) fn real(address: &str, port: u16) -> RealServer {
    RealServer { address: address.parse::<IpAddr>().unwrap(), port }
}
