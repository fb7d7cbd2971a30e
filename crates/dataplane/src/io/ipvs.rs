//! IPVS in the kernel of this machine: lists it, and changes it in batches.
//!
//! Knows no Service. Blocks for as long as the kernel works, so it belongs on a thread of its own.

use std::collections::BTreeMap;
use std::io;

use fairway_proxy::{KernelServer, VirtualAddress};
use nix::errno::Errno;
use nix::sys::socket::SockProtocol;

use super::socket::{REQUEST_BYTES_MAX, Socket};
use crate::ipvs::{self, Change, ListedRealServer, ListedServer, Timeouts, Traffic};
use crate::message::{Content, acknowledged, answers};

/// How often a list is read again that changed while it was read.
const READS_MAX: usize = 5;

/// Why IPVS cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum IpvsError {
    /// The module is not loaded and cannot be.
    #[error("this kernel has no IPVS; load its module: modprobe ip_vs")]
    NoModule,
    /// The process may not.
    #[error("IPVS needs the capability NET_ADMIN")]
    NotPermitted,
    /// A list changed each time it was read.
    #[error("the list of virtual servers changed each time it was read")]
    Unsteady,
    /// Anything else.
    #[error("IPVS: {0}")]
    Io(#[from] io::Error),
}

/// See the module.
#[derive(Debug)]
pub struct Ipvs {
    socket: Socket,
    family: u16,
    sequence: u32,
}

impl Ipvs {
    /// For the network namespace of this thread.
    ///
    /// # Errors
    /// The kernel has no IPVS.
    pub fn open() -> Result<Self, IpvsError> {
        let mut socket = Socket::open(SockProtocol::NetlinkGeneric)?;
        socket.send(&acknowledged(ipvs::family_request(1)))?;
        let mut family = None;
        let mut code = 0;
        while let Some(datagram) = socket.receive()? {
            for answer in answers(datagram).flatten() {
                match answer.content {
                    Content::Payload(payload) => family = family.or(ipvs::family_of(payload)),
                    Content::Code(it) | Content::Done(it) => code = it,
                }
            }
        }
        match family {
            Some(family) => Ok(Self { socket, family, sequence: 1 }),
            None if code == Errno::ENOENT as i32 => Err(IpvsError::NoModule),
            None => Err(refused(code)),
        }
    }

    fn next(&mut self) -> u32 {
        self.sequence = self.sequence.wrapping_add(1);
        self.sequence
    }

    /// All virtual servers with their real servers.
    ///
    /// # Errors
    /// The kernel does not answer, or has been changed each time it was read.
    pub fn servers(&mut self) -> Result<BTreeMap<VirtualAddress, KernelServer>, IpvsError> {
        let sequence = self.next();
        let request = ipvs::list(self.family, sequence);
        let listed = self.list(&request, sequence, ipvs::listed_server)?;
        let mut servers = BTreeMap::new();
        for ListedServer { at, settings, .. } in listed {
            let real_servers = self.real_servers(at)?;
            let real_servers = real_servers.iter().map(|it| (it.real_server, it.weight)).collect();
            servers.insert(at, KernelServer { settings, real_servers });
        }
        Ok(servers)
    }

    /// What each virtual server has carried.
    ///
    /// # Errors
    /// As [`Self::servers`].
    pub fn traffic(&mut self) -> Result<BTreeMap<VirtualAddress, Traffic>, IpvsError> {
        let sequence = self.next();
        let request = ipvs::list(self.family, sequence);
        let listed = self.list(&request, sequence, ipvs::listed_server)?;
        Ok(listed.into_iter().map(|it| (it.at, it.traffic)).collect())
    }

    /// One virtual server; `None` if there is none.
    ///
    /// # Errors
    /// As [`Self::servers`].
    pub fn server(&mut self, at: VirtualAddress) -> Result<Option<KernelServer>, IpvsError> {
        let sequence = self.next();
        let request = acknowledged(ipvs::get(self.family, at, sequence));
        let listed = match self.list(&request, sequence, ipvs::listed_server) {
            Err(IpvsError::Io(error)) if is_missing(&error) => return Ok(None),
            listed => listed?,
        };
        let Some(ListedServer { settings, .. }) = listed.into_iter().find(|it| it.at == at) else {
            return Ok(None);
        };
        let real_servers = self.real_servers(at)?;
        let real_servers = real_servers.iter().map(|it| (it.real_server, it.weight)).collect();
        Ok(Some(KernelServer { settings, real_servers }))
    }

    /// The real servers of a virtual one, with their connections; none if there is no such virtual server.
    ///
    /// # Errors
    /// As [`Self::servers`].
    pub fn real_servers(&mut self, at: VirtualAddress) -> Result<Vec<ListedRealServer>, IpvsError> {
        let sequence = self.next();
        let request = ipvs::list_real_servers(self.family, at, sequence);
        self.list(&request, sequence, |payload| ipvs::listed_real_server(payload, at.address))
    }

    /// How long connections without packets are known.
    ///
    /// # Errors
    /// As [`Self::servers`].
    pub fn timeouts(&mut self) -> Result<Timeouts, IpvsError> {
        let sequence = self.next();
        let request = acknowledged(ipvs::get_timeouts(self.family, sequence));
        let found = self.list(&request, sequence, ipvs::timeouts)?;
        found.into_iter().next().ok_or_else(|| unanswered().into())
    }

    /// Changes that.
    ///
    /// # Errors
    /// As [`Self::servers`].
    pub fn set_timeouts(&mut self, timeouts: Timeouts) -> Result<(), IpvsError> {
        let sequence = self.next();
        let request = acknowledged(ipvs::set_timeouts(self.family, timeouts, sequence));
        self.list(&request, sequence, |_| None::<()>).map(drop)
    }

    /// What `read` makes of each element of a list, which is read again if it changed meanwhile.
    fn list<T>(
        &mut self,
        request: &[u8],
        sequence: u32,
        read: impl Fn(&[u8]) -> Option<T>,
    ) -> Result<Vec<T>, IpvsError> {
        for _ in 0..READS_MAX {
            self.socket.send(request)?;
            let mut listed = Vec::new();
            let (mut is_interrupted, mut code) = (false, None);
            while let Some(datagram) = self.socket.receive()? {
                for answer in answers(datagram).flatten().filter(|it| it.sequence == sequence) {
                    is_interrupted |= answer.is_interrupted;
                    match answer.content {
                        Content::Payload(payload) => listed.extend(read(payload)),
                        Content::Done(it) | Content::Code(it) => code = Some(it),
                    }
                }
            }
            match code {
                Some(0) if !is_interrupted => return Ok(listed),
                Some(0) => {}
                Some(code) => return Err(refused(code)),
                None => return Err(unanswered().into()),
            }
        }
        Err(IpvsError::Unsteady)
    }

    /// Makes these changes in their order, and returns what the kernel answers to each: `EEXIST` for one that is there,
    /// `ESRCH` where there is no such virtual server, `ENOENT` where it has no such real server, or the kernel no such
    /// scheduler.
    ///
    /// # Errors
    /// The kernel takes no requests. Which of the changes are made is unknown.
    pub fn change(&mut self, changes: &[Change]) -> Result<Vec<io::Result<()>>, IpvsError> {
        let mut outcomes = Vec::with_capacity(changes.len());
        let mut rest = changes.iter().peekable();
        while rest.peek().is_some() {
            let first = self.sequence.wrapping_add(1);
            let mut part: Vec<Vec<u8>> = Vec::new();
            let mut length = 0_usize;
            while let Some(change) = rest.next_if(|_| length < REQUEST_BYTES_MAX) {
                let sequence = self.next();
                let request = change.request(self.family, sequence);
                length = length.saturating_add(request.len());
                part.push(request);
            }
            outcomes.extend(self.change_part(part, first)?);
        }
        Ok(outcomes)
    }

    /// Only the last one is acknowledged: errors are answered anyway, and acknowledgements would fill the socket.
    fn change_part(
        &mut self,
        mut part: Vec<Vec<u8>>,
        first: u32,
    ) -> Result<Vec<io::Result<()>>, IpvsError> {
        if let Some(last) = part.pop() {
            part.push(acknowledged(last));
        }
        let mut outcomes: Vec<io::Result<()>> = part.iter().map(|_| Ok(())).collect();
        self.socket.send(&part.concat())?;
        let mut is_complete = false;
        while let Some(datagram) = self.socket.receive()? {
            for answer in answers(datagram).flatten() {
                let (Content::Code(code) | Content::Done(code)) = answer.content else { continue };
                let place = usize::try_from(answer.sequence.wrapping_sub(first)).ok();
                let Some(outcome) = place.and_then(|it| outcomes.get_mut(it)) else { continue };
                is_complete |= answer.sequence == self.sequence;
                if code != 0 {
                    *outcome = Err(io::Error::from_raw_os_error(code));
                }
            }
        }
        if is_complete { Ok(outcomes) } else { Err(unanswered().into()) }
    }
}

fn is_missing(error: &io::Error) -> bool {
    error.raw_os_error() == Some(Errno::ESRCH as i32)
}

fn unanswered() -> io::Error {
    io::Error::other("the kernel did not answer a request")
}

fn refused(code: i32) -> IpvsError {
    match Errno::from_raw(code) {
        Errno::EPERM | Errno::EACCES => IpvsError::NotPermitted,
        _ => IpvsError::Io(io::Error::from_raw_os_error(code)),
    }
}
