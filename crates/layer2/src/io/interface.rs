//! The sockets of one interface: one for ARP, one for IPv6, each with a filter for what is answered there.
//!
//! Owned by the task.

use std::collections::BTreeMap;
use std::future::poll_fn;
use std::io;
use std::task::{Context, Poll};

use nix::errno::Errno;
use tokio::io::unix::AsyncFd;
use tracing::debug;

use super::socket::FrameSocket;
use crate::ethernet::{ARP, IPV6};
use crate::filter::{self, Instruction, RANGES_MAX};
use crate::responder::Wanted;

/// Frames that are read from a socket before others have their turn.
const BURST_MAX: usize = 64;

/// The sockets of an interface, which have filters for `wanted`.
#[derive(Debug)]
pub(super) struct Interface {
    index: u32,
    wanted: Wanted,
    arp: Option<AsyncFd<FrameSocket>>,
    ipv6: Option<AsyncFd<FrameSocket>>,
}

impl Interface {
    /// Without sockets as yet.
    pub(super) fn new(index: u32) -> Self {
        Self { index, wanted: Wanted::default(), arp: None, ipv6: None }
    }

    /// Has the kernel hand over what concerns `wanted`, and nothing where that is empty.
    ///
    /// # Errors
    /// There is no socket (the capability `NET_RAW` is missing), or no filter.
    pub(super) fn receive_only(&mut self, wanted: Wanted) -> io::Result<()> {
        let before = &self.wanted;
        let is_same = before.ipv4 == wanted.ipv4 && before.ipv4_checked == wanted.ipv4_checked;
        if !is_same || self.arp.is_none() {
            let Wanted { ipv4, ipv4_checked, .. } = &wanted;
            let arp = |ranges_max| filter::arp(ipv4, ipv4_checked, ranges_max);
            let program = |ranges_max| filter::on_interface(self.index, arp(ranges_max));
            let is_empty = ipv4.is_empty() && ipv4_checked.is_empty();
            update(&mut self.arp, self.index, ARP, is_empty, program)?;
        }
        let is_same = before.ipv6 == wanted.ipv6 && before.ipv6_checked == wanted.ipv6_checked;
        if !is_same || self.ipv6.is_none() {
            let mut targets = [&*wanted.ipv6, &*wanted.ipv6_checked].concat();
            targets.sort_unstable();
            let ndp = |ranges_max| filter::ndp(&targets, ranges_max);
            let program = |ranges_max| filter::on_interface(self.index, ndp(ranges_max));
            update(&mut self.ipv6, self.index, IPV6, targets.is_empty(), program)?;
        }
        self.wanted = wanted;
        Ok(())
    }

    /// Ready when one of its sockets has frames.
    pub(super) fn poll_readable(&self, context: &mut Context<'_>) -> Poll<()> {
        let is_ready = |socket: &AsyncFd<FrameSocket>, context: &mut Context<'_>| {
            // An error is found by reading.
            socket.poll_read_ready(context).is_ready()
        };
        // Each has to note who waits, so none is left out.
        let ready = [&self.arp, &self.ipv6].into_iter().flatten();
        let ready = ready.fold(false, |any, socket| is_ready(socket, context) | any);
        if ready { Poll::Ready(()) } else { Poll::Pending }
    }

    /// Reads what has arrived, and sends what `answer` makes of each frame.
    pub(super) fn serve(
        &mut self,
        buffer: &mut [u8],
        mut answer: impl FnMut(&[u8]) -> Vec<Vec<u8>>,
    ) {
        for watched in [&self.arp, &self.ipv6].into_iter().flatten() {
            for _ in 0..BURST_MAX {
                let received = watched.try_io(tokio::io::Interest::READABLE, |socket| match socket
                    .receive(buffer)
                {
                    Ok(Some(frame)) => Ok(answer(frame)),
                    Ok(None) => Err(io::ErrorKind::WouldBlock.into()),
                    Err(error) => Err(error.into()),
                });
                match received {
                    Ok(frames) => frames.iter().for_each(|it| send(watched.get_ref(), it)),
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                    // The interface went down; netlink tells of it.
                    Err(error) => debug!(interface = self.index, %error, "reading frames"),
                }
            }
        }
    }

    /// Sends frames of this machine's own accord. An interface that has just gone loses them.
    pub(super) fn send(&self, frames: &[Vec<u8>]) {
        for frame in frames {
            let is_arp = frame.get(12..14) == Some(&ARP.to_be_bytes());
            let socket = if is_arp { &self.arp } else { &self.ipv6 };
            if let Some(socket) = socket {
                send(socket.get_ref(), frame);
            }
        }
    }
}

/// Waits until an interface has frames.
pub(super) async fn readable(interfaces: &BTreeMap<u32, Interface>) {
    poll_fn(|context| {
        let ready =
            interfaces.values().fold(false, |any, it| it.poll_readable(context).is_ready() | any);
        if ready { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
}

fn send(socket: &FrameSocket, frame: &[u8]) {
    if let Err(error) = socket.send(frame) {
        debug!(%error, "a frame was not sent");
    }
}

/// Gives a socket the filter that `program` makes for as many ranges as the kernel takes; opens one that is
/// missing, closes one that is not needed.
fn update(
    place: &mut Option<AsyncFd<FrameSocket>>,
    index: u32,
    ethertype: u16,
    is_empty: bool,
    program: impl Fn(usize) -> Vec<Instruction>,
) -> io::Result<()> {
    if is_empty {
        *place = None;
        return Ok(());
    }
    if let Some(socket) = place {
        return attach(socket.get_ref(), program);
    }
    let socket = FrameSocket::open()?;
    attach(&socket, program)?;
    socket.bind(index, ethertype)?;
    *place = Some(socket.watched()?);
    Ok(())
}

/// The kernel limits the memory of a filter (`net.core.optmem_max`): half as many ranges cover more addresses
/// than are ours, and the responder looks them up.
fn attach(socket: &FrameSocket, program: impl Fn(usize) -> Vec<Instruction>) -> io::Result<()> {
    let mut ranges_max = RANGES_MAX;
    loop {
        match socket.filter(&program(ranges_max)) {
            Err(Errno::ENOMEM | Errno::EINVAL) if ranges_max > 1 => ranges_max /= 2,
            outcome => return Ok(outcome?),
        }
    }
}
