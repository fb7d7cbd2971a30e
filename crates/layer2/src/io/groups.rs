//! The solicited-node groups that this machine is in, so that solicitations for its addresses arrive.
//!
//! The kernel allows a socket only so many groups (`net.core.optmem_max`), so they are spread over sockets.
//! Owned by the task.

use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv6Addr;

use nix::errno::Errno;

use super::socket::GroupSocket;

/// Groups of one socket: below the limit of Linux before 6.7 with its default.
const GROUPS_OF_SOCKET_MAX: usize = 128;

/// A group on an interface.
pub(super) type Group = (u32, Ipv6Addr);

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Groups {
    sockets: Vec<(GroupSocket, usize)>,
    /// The place of the socket that is in a group.
    joined: BTreeMap<Group, usize>,
}

impl Groups {
    /// Joins and leaves, until exactly `wanted` are joined. Returns those that could not be, which are tried
    /// again the next time.
    pub(super) fn become_members(&mut self, wanted: &BTreeSet<Group>) -> Vec<(Group, Errno)> {
        let gone: Vec<Group> =
            self.joined.keys().filter(|it| !wanted.contains(it)).copied().collect();
        for group in gone {
            let Some(place) = self.joined.remove(&group) else { continue };
            let Some((socket, count)) = self.sockets.get_mut(place) else { continue };
            // An interface that is gone has taken its memberships along.
            let _ = socket.leave(group.0, group.1);
            *count = count.saturating_sub(1);
        }
        let mut failed = Vec::new();
        for group in wanted {
            if self.joined.contains_key(group) {
                continue;
            }
            match self.join(*group) {
                Ok(place) => {
                    self.joined.insert(*group, place);
                }
                Err(error) => failed.push((*group, error)),
            }
        }
        failed
    }

    /// Returns the place of the socket that joined.
    fn join(&mut self, (index, group): Group) -> Result<usize, Errno> {
        let has_room = |(_, count): &(GroupSocket, usize)| *count < GROUPS_OF_SOCKET_MAX;
        let place = match self.sockets.iter().position(has_room) {
            Some(place) => place,
            None => {
                self.sockets.push((GroupSocket::open()?, 0));
                self.sockets.len().saturating_sub(1)
            }
        };
        let (socket, count) = self.sockets.get_mut(place).ok_or(Errno::EINVAL)?;
        match socket.join(index, group) {
            Ok(()) => *count = count.saturating_add(1),
            // The kernel counts more than we do: the next one gets a socket of its own.
            Err(Errno::ENOMEM | Errno::ENOBUFS) if *count > 0 => {
                *count = GROUPS_OF_SOCKET_MAX;
                return self.join((index, group));
            }
            Err(error) => return Err(error),
        }
        Ok(place)
    }
}
