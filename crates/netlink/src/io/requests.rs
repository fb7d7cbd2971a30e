//! Requests that change the kernel's tables, each with its answer.
//!
//! On a socket of its own, so that an answer never waits behind events. Knows no reason for a change. Used by the
//! edges of layer 2, of forwarding and of the service proxy.

use std::io;
use std::net::IpAddr;

use super::socket::{DATAGRAM_LENGTH_BYTES_MAX, Received, RouteSocket};
use crate::decode::{Fact, messages};
use crate::request::{self, Presence};
use crate::route::RouteOrder;
use crate::scope::Scope;

/// Changes of one call: as many refusals fit into the socket.
const CHANGES_MAX: usize = 256;
/// And ways of all of them, of up to 36 octets each: the kernel takes no more than some 200 KiB at once.
const WAYS_MAX: usize = 1024;

const UNANSWERED: &str = "the kernel did not answer a request";

/// See the module.
#[derive(Debug)]
pub struct Requests {
    socket: RouteSocket,
    buffer: Vec<u8>,
    sequence: u32,
}

impl Requests {
    /// For the network namespace of this thread.
    ///
    /// # Errors
    /// There is no socket.
    pub fn open() -> io::Result<Self> {
        let socket = RouteSocket::open(&Scope::default(), false)?;
        Ok(Self { socket, buffer: vec![0; DATAGRAM_LENGTH_BYTES_MAX], sequence: 0 })
    }

    /// See [`request::add_address`].
    ///
    /// # Errors
    /// What the kernel answers: `EEXIST` for a new address that is there, `EPERM` without the capability `NET_ADMIN`.
    pub fn add_address(
        &mut self,
        index: u32,
        address: IpAddr,
        lifetime_seconds: u32,
        presence: Presence,
    ) -> io::Result<()> {
        let sequence = self.next();
        let request =
            request::add_address(index, address, lifetime_seconds, presence, true, sequence);
        self.ask(&request, sequence)
    }

    /// The same for many new addresses, and returns what the kernel answers to each.
    ///
    /// # Errors
    /// The kernel takes no requests.
    pub fn add_addresses(
        &mut self,
        index: u32,
        addresses: &[IpAddr],
        lifetime_seconds: u32,
    ) -> io::Result<Vec<io::Result<()>>> {
        let mut outcomes = Vec::with_capacity(addresses.len());
        for part in addresses.chunks(CHANGES_MAX) {
            outcomes.extend(self.ask_all(part, |address, is_last, sequence| {
                let presence = Presence::New;
                request::add_address(index, *address, lifetime_seconds, presence, is_last, sequence)
            })?);
        }
        Ok(outcomes)
    }

    /// See [`request::remove_address`].
    ///
    /// # Errors
    /// What the kernel answers: `EADDRNOTAVAIL` where there is no such address.
    pub fn remove_address(&mut self, index: u32, address: IpAddr) -> io::Result<()> {
        let sequence = self.next();
        self.ask(&request::remove_address(index, address, sequence), sequence)
    }

    /// See [`request::add_dummy`].
    ///
    /// # Errors
    /// What the kernel answers: `EEXIST` if there is an interface of this name, `EPERM` without the capability
    /// `NET_ADMIN`.
    pub fn add_dummy(&mut self, name: &str) -> io::Result<()> {
        let sequence = self.next();
        self.ask(&request::add_dummy(name, sequence), sequence)
    }

    /// See [`request::remove_link`].
    ///
    /// # Errors
    /// What the kernel answers: `ENODEV` where there is no such interface.
    pub fn remove_link(&mut self, index: u32) -> io::Result<()> {
        let sequence = self.next();
        self.ask(&request::remove_link(index, sequence), sequence)
    }

    /// Changes routes, in their order, and returns what the kernel answers to each: `EEXIST` for a new one that is
    /// there, `ESRCH` for a removed one that is not, `EPERM` without the capability `NET_ADMIN`.
    ///
    /// # Errors
    /// The kernel takes no requests.
    pub fn change_routes(&mut self, orders: &[RouteOrder]) -> io::Result<Vec<io::Result<()>>> {
        let mut outcomes = Vec::with_capacity(orders.len());
        let mut rest = orders;
        while !rest.is_empty() {
            // A route with many ways has some kilobytes.
            let mut ways = 0_usize;
            let fits = rest.iter().take(CHANGES_MAX).take_while(|order| {
                ways = ways.saturating_add(order.route().next_hops.len());
                ways <= WAYS_MAX
            });
            let (part, others) = rest.split_at_checked(fits.count().max(1)).unwrap_or((rest, &[]));
            outcomes.extend(self.ask_all(part, request::change_route)?);
            rest = others;
        }
        Ok(outcomes)
    }

    /// Sends a request for each change. Only the last one is acknowledged: errors are answered anyway, and
    /// acknowledgements would fill the socket.
    fn ask_all<Change>(
        &mut self,
        changes: &[Change],
        request: impl Fn(&Change, bool, u32) -> Vec<u8>,
    ) -> io::Result<Vec<io::Result<()>>> {
        let first = self.sequence.wrapping_add(1);
        let mut bytes = Vec::with_capacity(changes.len().saturating_mul(96));
        for (change, position) in changes.iter().zip(1..) {
            let sequence = self.next();
            bytes.extend(request(change, position == changes.len(), sequence));
        }
        let mut outcomes: Vec<io::Result<()>> = changes.iter().map(|_| Ok(())).collect();
        self.socket.send(&bytes)?;
        let mut is_complete = false;
        while let Received::Datagram(length) = self.socket.receive(&mut self.buffer)? {
            let datagram = self.buffer.get(..length).unwrap_or_default();
            for (envelope, fact) in messages(datagram).flatten() {
                let place = usize::try_from(envelope.sequence.wrapping_sub(first));
                let Some(Fact::Refused { code }) = fact else { continue };
                let Some(outcome) = place.ok().and_then(|it| outcomes.get_mut(it)) else {
                    continue;
                };
                is_complete |= envelope.sequence == self.sequence;
                if code != 0 {
                    *outcome = Err(io::Error::from_raw_os_error(code.saturating_neg()));
                }
            }
        }
        if is_complete { Ok(outcomes) } else { Err(io::Error::other(UNANSWERED)) }
    }

    fn next(&mut self) -> u32 {
        self.sequence = self.sequence.wrapping_add(1);
        self.sequence
    }

    /// The kernel handles a request within the call that sends it, so its answer is there.
    fn ask(&mut self, request: &[u8], sequence: u32) -> io::Result<()> {
        self.socket.send(request)?;
        while let Received::Datagram(length) = self.socket.receive(&mut self.buffer)? {
            let datagram = self.buffer.get(..length).unwrap_or_default();
            for (envelope, fact) in messages(datagram).flatten() {
                if envelope.sequence == sequence
                    && let Some(Fact::Refused { code }) = fact
                {
                    return match code {
                        0 => Ok(()),
                        code => Err(io::Error::from_raw_os_error(code.saturating_neg())),
                    };
                }
            }
        }
        Err(io::Error::other(UNANSWERED))
    }
}
