//! Whole frames on `eth0` of this network namespace: a packet socket. Used by the clients of the benchmark, and for
//! frames that no tool sends.

use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::process::ExitCode;

use anyhow::{Context, Result};
use nix::errno::Errno;
use nix::ifaddrs::getifaddrs;
use nix::sys::socket::{
    AddressFamily, MsgFlags, SockFlag, SockProtocol, SockType, bind, recv, send, setsockopt,
    socket, sockopt,
};

use lab::namespace::Namespace;

/// First word of the command line of this binary in its other role.
const ROLE: &str = "@send";
const INTERFACE: &str = "eth0";
/// Of frames that wait.
const BUFFER_BYTES: usize = 1 << 22;

/// Sends a frame from a machine.
pub(crate) fn send_from(machine: &Namespace, frame: &[u8]) -> Result<()> {
    let binary = std::env::current_exe().context("the path of this binary")?;
    let binary = binary.to_str().context("a path")?;
    let bytes: String = frame.iter().map(|it| format!("{it:02x}")).collect();
    machine.run(binary, &[ROLE, &bytes]).map(drop)
}

/// Plays the other role when the command line asks for it.
pub(crate) fn other_role() -> Option<ExitCode> {
    let mut words = std::env::args().skip(1);
    if words.next()? != ROLE {
        return None;
    }
    let digits = words.next().unwrap_or_default();
    let byte = |it: usize| u8::from_str_radix(digits.get(it..it + 2)?, 16).ok();
    let frame: Vec<u8> = (0..digits.len()).step_by(2).map_while(byte).collect();
    Some(match Frames::open().and_then(|it| it.send(&frame)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{ROLE}: {error:#}");
            ExitCode::FAILURE
        }
    })
}

/// The hardware address of an interface.
pub(crate) type Mac = [u8; 6];

pub(crate) struct Frames {
    socket: OwnedFd,
    /// That of the interface.
    pub(crate) mac: Mac,
}

impl Frames {
    /// Receives frames of every type.
    pub(crate) fn open() -> Result<Self> {
        let mut links = getifaddrs().context("the interfaces")?;
        let link = links.find_map(|it| {
            let address = it.address?;
            address.as_link_addr().copied().filter(|_| it.interface_name == INTERFACE)
        });
        let link = link.context("there is no eth0")?;
        let flags = SockFlag::SOCK_NONBLOCK | SockFlag::SOCK_CLOEXEC;
        let every = SockProtocol::EthAll;
        let socket = socket(AddressFamily::Packet, SockType::Raw, flags, every)
            .context("a packet socket")?;
        setsockopt(&socket, sockopt::RcvBufForce, &BUFFER_BYTES).context("its buffer")?;
        // Without a type in the address that of the socket stays.
        bind(socket.as_raw_fd(), &link).context("binding a packet socket")?;
        Ok(Self { socket, mac: link.addr().context("a hardware address")? })
    }

    /// The next frame, if there is one.
    pub(crate) fn receive<'a>(&self, buffer: &'a mut [u8]) -> Result<Option<&'a [u8]>> {
        match recv(self.socket.as_raw_fd(), buffer, MsgFlags::empty()) {
            Ok(length) => Ok(buffer.get(..length)),
            Err(Errno::EAGAIN) => Ok(None),
            Err(error) => Err(error).context("receiving a frame"),
        }
    }

    pub(crate) fn send(&self, frame: &[u8]) -> Result<()> {
        send(self.socket.as_raw_fd(), frame, MsgFlags::empty()).context("sending a frame").map(drop)
    }
}

impl AsFd for Frames {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}
