//! Relays both directions unchanged: bytes, and the descriptors that come with them.
//!
//! FRR hands out its live log as a descriptor (`SCM_RIGHTS`), which a copy of bytes would lose.

use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, Shutdown, recvmsg, sendmsg, shutdown,
};
use tokio::io::Interest;
use tokio::net::UnixStream;

/// Bytes in transit in one direction.
const CHUNK_BYTES: usize = 16 * 1024;
/// Descriptors in one message. FRR sends one.
const DESCRIPTORS_MAX: usize = 4;

/// Relays until the daemon closes the connection, or the client is gone.
pub(super) async fn relay(client: &UnixStream, daemon: &UnixStream) -> io::Result<()> {
    tokio::select! {
        outcome = copy(daemon, client) => outcome,
        outcome = async {
            copy(client, daemon).await?;
            // The daemon answers what it has received, and then closes the connection.
            shutdown(daemon, Shutdown::Write)?;
            std::future::pending().await
        } => outcome,
    }
}

/// Relays what `from` sends until it closes its side.
async fn copy(from: &UnixStream, to: &UnixStream) -> io::Result<()> {
    let mut buffer = vec![0; CHUNK_BYTES];
    loop {
        let (length, descriptors) =
            from.async_io(Interest::READABLE, || receive(from, &mut buffer)).await?;
        let mut rest = buffer.get(..length).unwrap_or_default();
        if rest.is_empty() {
            return Ok(());
        }
        let mut descriptors = descriptors.as_slice();
        while !rest.is_empty() {
            let sent = to.async_io(Interest::WRITABLE, || send(to, rest, descriptors)).await?;
            rest = rest.get(sent..).unwrap_or_default();
            // They are sent with the first byte.
            descriptors = &[];
        }
    }
}

fn receive(from: &UnixStream, buffer: &mut [u8]) -> io::Result<(usize, Vec<OwnedFd>)> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(DESCRIPTORS_MAX))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let mut parts = [IoSliceMut::new(buffer)];
    let message = recvmsg(from.as_fd(), &mut parts, &mut control, RecvFlags::CMSG_CLOEXEC)?;
    let mut descriptors = Vec::new();
    for part in control.drain() {
        if let RecvAncillaryMessage::ScmRights(some) = part {
            descriptors.extend(some);
        }
    }
    if message.flags.contains(ReturnFlags::CTRUNC) {
        return Err(io::Error::other(format!(
            "more than {DESCRIPTORS_MAX} descriptors in one message"
        )));
    }
    Ok((message.bytes, descriptors))
}

fn send(to: &UnixStream, bytes: &[u8], descriptors: &[OwnedFd]) -> io::Result<usize> {
    let borrowed: Vec<BorrowedFd<'_>> = descriptors.iter().map(AsFd::as_fd).collect();
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(DESCRIPTORS_MAX))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    if !borrowed.is_empty() && !control.push(SendAncillaryMessage::ScmRights(&borrowed)) {
        return Err(io::Error::other("no room for descriptors"));
    }
    let parts = [IoSlice::new(bytes)];
    Ok(sendmsg(to.as_fd(), &parts, &mut control, SendFlags::NOSIGNAL)?)
}
