//! What was sent over a connection in one direction, parsed from its bytes: the routes that stand.

use std::collections::BTreeMap;

use crate::wire::{Framing, MessageType, Update, UpdateContext};
use fairway_ground::{Community, PeerKind, Prefix};

/// A route as it is on the wire, without what is the same for all of them.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Said {
    pub(super) path: Vec<u32>,
    pub(super) communities: Vec<Community>,
}

pub(super) type Table = BTreeMap<Prefix, Said>;

/// One direction of a connection.
#[derive(Debug, Default)]
pub(super) struct Speech {
    framing: Framing,
    pub(super) table: Table,
}

impl Speech {
    /// More was sent. Withdrawals are of what was announced.
    pub(super) fn take(&mut self, bytes: &[u8], kind: PeerKind) {
        self.framing.push(bytes);
        while let Some(message) = self.framing.next_message().expect("what is sent can be framed") {
            if message.kind != MessageType::Update {
                continue;
            }
            let update = Update::parse(&message.body, UpdateContext::new(kind)).expect("an UPDATE");
            assert_eq!(update.faults, []);
            for nlri in update.withdrawn {
                let gone = self.table.remove(&nlri.prefix);
                assert!(gone.is_some(), "{nlri} is withdrawn for nothing");
            }
            for group in update.announced {
                let said = Said {
                    path: group.attributes.as_path.asns().collect(),
                    communities: group.attributes.communities.to_vec(),
                };
                let routes = group.prefixes.iter().map(|nlri| (nlri.prefix, said.clone()));
                self.table.extend(routes);
            }
        }
    }
}
