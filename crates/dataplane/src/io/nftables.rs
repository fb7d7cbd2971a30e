//! Our table in the packet filter of this machine.
//!
//! Blocks for as long as the kernel works, so it belongs on a thread of its own.

use std::collections::BTreeSet;
use std::io;

use nix::errno::Errno;
use nix::sys::socket::SockProtocol;

use super::socket::Socket;
use crate::message::{Content, answers};
use crate::nftables::elements::{self, Element};
use crate::nftables::foreign::{self, Chain, Rule};
use crate::nftables::{
    self, Family, PODS, TABLE, Transaction, get_chain, get_table, is_of_our_table, is_rule_of,
    list_rules, tag_of,
};

/// How often a list is read again that changed while it was read.
const READS_MAX: usize = 5;

/// See the module.
#[derive(Debug)]
pub struct Nftables {
    socket: Socket,
    sequence: u32,
    /// The generation of the packet filter if nobody else has changed it since [`Self::note_generation`].
    generation: Option<u32>,
}

impl Nftables {
    /// For the network namespace of this thread.
    ///
    /// # Errors
    /// There is no socket.
    pub fn open() -> io::Result<Self> {
        let socket = Socket::open(SockProtocol::NetlinkNetFilter)?;
        Ok(Self { socket, sequence: 0, generation: None })
    }

    /// Carries a transaction out.
    ///
    /// # Errors
    /// What the kernel answers to the first request that it refuses: nothing is done then.
    pub fn commit(&mut self, transaction: Transaction) -> io::Result<()> {
        if transaction.is_empty() {
            return Ok(());
        }
        let first = self.sequence.wrapping_add(1);
        let (bytes, last) = transaction.into_bytes(first);
        self.sequence = last.wrapping_add(1);
        self.socket.send(&bytes)?;
        let (mut is_complete, mut refused) = (false, None);
        while let Some(datagram) = self.socket.receive()? {
            for answer in answers(datagram).flatten() {
                let Content::Code(code) = answer.content else { continue };
                if code != 0 {
                    refused = refused.or(Some(code));
                }
                is_complete |= answer.sequence == last;
            }
        }
        match refused {
            Some(code) => Err(io::Error::from_raw_os_error(code)),
            None if is_complete => {
                self.generation = self.generation.map(|it| it.wrapping_add(1));
                Ok(())
            }
            None => Err(io::Error::other("the kernel did not answer a transaction")),
        }
    }

    /// What is read from now on is of this generation of the packet filter.
    ///
    /// # Errors
    /// The kernel does not answer.
    pub fn note_generation(&mut self) -> io::Result<()> {
        self.generation = self.read_generation()?;
        Ok(())
    }

    /// Whether only this process has changed the packet filter since [`Self::note_generation`].
    ///
    /// # Errors
    /// The kernel does not answer.
    pub fn is_undisturbed(&mut self) -> io::Result<bool> {
        let now = self.read_generation()?;
        Ok(now.is_some() && now == self.generation)
    }

    fn read_generation(&mut self) -> io::Result<Option<u32>> {
        let read = |payload: &[u8], found: &mut Vec<u32>| {
            found.extend(nftables::generation_of(payload));
        };
        Ok(self.list(nftables::get_generation, read)?.and_then(|it| it.into_iter().next()))
    }

    /// The tag of our table of this family; `None` if there is no such table.
    ///
    /// # Errors
    /// The kernel does not answer.
    pub fn tag(&mut self, family: Family) -> io::Result<Option<String>> {
        self.tag_of_table(family, TABLE)
    }

    /// The same of another table.
    ///
    /// # Errors
    /// The kernel does not answer.
    pub fn tag_of_table(&mut self, family: Family, name: &str) -> io::Result<Option<String>> {
        let request = |sequence| get_table(family, name, sequence);
        // One without a tag is of somebody's hand.
        let read = |payload: &[u8], found: &mut Vec<String>| {
            found.push(tag_of(payload).unwrap_or_default());
        };
        Ok(self.list(request, read)?.and_then(|it| it.into_iter().next()))
    }

    /// Whether there is a table of this name.
    ///
    /// # Errors
    /// The kernel does not answer.
    pub fn has_table(&mut self, family: Family, name: &str) -> io::Result<bool> {
        let found = self.list(|sequence| get_table(family, name, sequence), count)?;
        Ok(found.is_some_and(|it| !it.is_empty()))
    }

    /// Whether a chain of a table has rules.
    ///
    /// # Errors
    /// The kernel does not answer.
    pub fn has_rules(&mut self, family: Family, table: &str, chain: &str) -> io::Result<bool> {
        let request = |sequence| list_rules(family, table, sequence);
        let read = |payload: &[u8], found: &mut Vec<()>| {
            found.extend(is_rule_of(payload, table, chain).then_some(()));
        };
        Ok(self.list(request, read)?.is_some_and(|it| !it.is_empty()))
    }

    /// All chains of this family.
    ///
    /// # Errors
    /// The kernel does not answer.
    pub fn chains(&mut self, family: Family) -> io::Result<Vec<Chain>> {
        let request = |sequence| foreign::list_chains(family, sequence);
        let read = |payload: &[u8], found: &mut Vec<Chain>| {
            found.extend(foreign::listed_chain(payload));
        };
        Ok(self.list(request, read)?.unwrap_or_default())
    }

    /// The rules of a table.
    ///
    /// # Errors
    /// The kernel does not answer.
    pub fn rules(&mut self, family: Family, table: &str) -> io::Result<Vec<Rule<[u8; 8]>>> {
        let request = |sequence| list_rules(family, table, sequence);
        let read = |payload: &[u8], found: &mut Vec<_>| {
            found.extend(foreign::listed_rule(payload, table));
        };
        Ok(self.list(request, read)?.unwrap_or_default())
    }

    /// Whether a table has a chain of this name.
    ///
    /// # Errors
    /// The kernel does not answer.
    pub fn has_chain(&mut self, family: Family, table: &str, name: &str) -> io::Result<bool> {
        let found = self.list(|sequence| get_chain(family, table, name, sequence), count)?;
        Ok(found.is_some_and(|it| !it.is_empty()))
    }

    /// How many rules our table of this family has.
    ///
    /// # Errors
    /// The kernel does not answer, or the table has been changed each time it was read.
    pub fn rule_count(&mut self, family: Family) -> io::Result<usize> {
        let request = |sequence| list_rules(family, TABLE, sequence);
        let count = |payload: &[u8], found: &mut Vec<()>| {
            found.extend(is_of_our_table(payload).then_some(()));
        };
        Ok(self.list(request, count)?.map_or(0, |it| it.len()))
    }

    /// All elements of our table of this family; `None` if there is no such table, or a set of it is missing.
    ///
    /// # Errors
    /// The kernel does not answer, or the table has been changed each time it was read.
    pub fn elements(&mut self, family: Family) -> io::Result<Option<BTreeSet<Element>>> {
        let mut all = BTreeSet::new();
        for set in elements::READ {
            match self.elements_of(family, set)? {
                Some(elements) => all.extend(elements),
                None => return Ok(None),
            }
        }
        Ok(Some(all))
    }

    /// While the kernel makes a set larger, its list lacks some elements, and it does not say so: the set is read until
    /// nothing is added. One that is still overlooked is taken for missing, which does no harm: it is added once more.
    fn elements_of(&mut self, family: Family, set: &str) -> io::Result<Option<BTreeSet<Element>>> {
        let mut all = BTreeSet::new();
        for _ in 0..READS_MAX {
            let Some(found) = self.read_elements(family, set)? else { return Ok(None) };
            let count = all.len();
            all.extend(found);
            if all.len() == count {
                break;
            }
        }
        Ok(Some(all))
    }

    /// Whether the set of the networks of Pods has any.
    ///
    /// # Errors
    /// The kernel does not answer.
    pub fn has_pods(&mut self, family: Family) -> io::Result<bool> {
        let request = |sequence| elements::list(family, PODS, sequence);
        let read = |payload: &[u8], found: &mut Vec<()>| {
            found.extend(elements::has_elements(payload).then_some(()));
        };
        Ok(self.list(request, read)?.is_some_and(|it| !it.is_empty()))
    }

    fn read_elements(&mut self, family: Family, set: &str) -> io::Result<Option<Vec<Element>>> {
        let request = |sequence| elements::list(family, set, sequence);
        self.list(request, |payload, found| found.extend(elements::listed(payload, family, set)))
    }

    /// What `read` adds for each message of a list, which is read again if it changed meanwhile; `None` if what has it is
    /// missing.
    fn list<T>(
        &mut self,
        request: impl Fn(u32) -> Vec<u8>,
        read: impl Fn(&[u8], &mut Vec<T>),
    ) -> io::Result<Option<Vec<T>>> {
        for _ in 0..READS_MAX {
            self.sequence = self.sequence.wrapping_add(1);
            let sequence = self.sequence;
            self.socket.send(&request(sequence))?;
            let (mut found, mut code, mut is_interrupted) = (Vec::new(), None, false);
            while let Some(datagram) = self.socket.receive()? {
                for answer in answers(datagram).flatten().filter(|it| it.sequence == sequence) {
                    is_interrupted |= answer.is_interrupted;
                    match answer.content {
                        Content::Payload(payload) => read(payload, &mut found),
                        Content::Done(it) | Content::Code(it) => code = Some(it),
                    }
                }
            }
            match code {
                Some(0) if !is_interrupted => return Ok(Some(found)),
                Some(0) => {}
                Some(code) if code == Errno::EINTR as i32 => {}
                Some(code) if code == Errno::ENOENT as i32 => return Ok(None),
                Some(code) => return Err(io::Error::from_raw_os_error(code)),
                None => return Err(io::Error::other("the kernel did not answer a request")),
            }
        }
        Err(io::Error::other("the packet filter changed each time it was read"))
    }

    /// Watches for what others remove from our tables.
    ///
    /// # Errors
    /// There is no socket.
    pub fn watch(&self) -> io::Result<FilterWatch> {
        /// The group of the packet filter's events.
        const GROUP: u32 = 7;
        let socket = Socket::open_for_group(SockProtocol::NetlinkNetFilter, GROUP)?;
        Ok(FilterWatch { socket, own_port: self.socket.port()? })
    }
}

fn count(_: &[u8], found: &mut Vec<()>) {
    found.push(());
}

/// Tells when others remove something from our tables.
#[derive(Debug)]
pub struct FilterWatch {
    socket: Socket,
    own_port: u32,
}

impl FilterWatch {
    /// Waits until something was removed.
    ///
    /// # Errors
    /// The socket cannot be waited for.
    pub fn wait(&mut self) -> io::Result<()> {
        while !self.take_removal()? {
            self.socket.wait()?;
        }
        Ok(())
    }

    /// Whether something was removed since the last call. Does not wait.
    fn take_removal(&mut self) -> io::Result<bool> {
        /// So that others who change their tables without end do not keep the caller.
        const DATAGRAMS_MAX: usize = 1_000;
        let mut is_removal = false;
        for _ in 0..DATAGRAMS_MAX {
            match self.socket.receive() {
                Ok(Some(datagram)) => is_removal |= nftables::is_removal(datagram, self.own_port),
                Ok(None) => break,
                // Events were lost, so anything may be gone.
                Err(error) if error.raw_os_error() == Some(Errno::ENOBUFS as i32) => {
                    is_removal = true;
                }
                Err(error) => return Err(error),
            }
        }
        Ok(is_removal)
    }
}
