//! What happens in the sessions of a neighbour, told as it happens: for stations that monitor this node (RFC 7854).
//!
//! Another part of [`Peer`]. Keeps nothing and costs nothing where nobody monitors. Knows no station and no format: messages
//! are those of the wire.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::sync::Arc;

use bytes::{Bytes, BytesMut};

use super::connection::Step;
use super::peer::{Action, Peer};
use super::reason::DownReason;
use crate::wire::announce::{end_of_rib, withdrawal};
use crate::wire::attribute::{AttributeFault, Disposition};
use crate::wire::{MessageType, RawMessage, RouteRefresh, Update, WireError};
use fairway_ground::{AddressFamily, BmpTables, FamilySet, Nlri};
use fairway_seam::{PathAttributes, RouteAttributes, RouteChange};

/// Something that happened to a neighbour.
#[derive(Debug)]
pub enum Monitored {
    /// Its session is up.
    Up(Box<SessionUp>),
    /// Its session is down.
    Down(SessionDown),
    /// It sent this UPDATE, or one whose routes are treated as withdrawn: then one that withdraws them. Or it has sent all routes of
    /// a family again: then an End-of-RIB.
    Received(Bytes),
    /// It was sent this UPDATE.
    Sent(Bytes),
    /// Its routes were accepted, or those that were are gone.
    Accepted(Vec<RouteChange>),
    /// It has sent all routes of this family, and those before were accepted.
    AllAccepted(AddressFamily),
}

impl Monitored {
    /// What it takes in memory, in bytes, roughly.
    pub fn size_bytes(&self) -> usize {
        let content = match self {
            Self::Up(up) => up.opens[0].len().saturating_add(up.opens[1].len()),
            Self::Down(_) | Self::AllAccepted(_) => 0,
            Self::Received(message) | Self::Sent(message) => message.len(),
            Self::Accepted(changes) => size_of_val(&**changes),
        };
        content.saturating_add(64)
    }
}

/// A session that is up.
#[derive(Debug, Clone)]
pub struct SessionUp {
    /// Our end.
    pub local: SocketAddr,
    /// Its end.
    pub remote: SocketAddr,
    /// Its AS.
    pub asn: u32,
    /// Its BGP identifier.
    pub router_id: u32,
    /// Both use AS numbers of four octets.
    pub four_octet_as: bool,
    /// The families of the session.
    pub families: FamilySet,
    /// Those that it sends path identifiers for.
    pub add_path_received: FamilySet,
    /// Those that it is sent path identifiers for.
    pub add_path_sent: FamilySet,
    /// The OPEN that we sent, and its OPEN.
    pub opens: [Bytes; 2],
}

/// How a session ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SessionDown {
    /// We sent this NOTIFICATION.
    Sent(Bytes),
    /// It sent this NOTIFICATION.
    Received(Bytes),
    /// We ended the connection without one.
    Left,
    /// The connection ended.
    Closed,
}

/// The best route to a prefix.
#[derive(Debug, Clone)]
pub enum Best {
    /// One of our own.
    Originated(Arc<RouteAttributes>),
    /// A received one.
    Learned(Arc<PathAttributes>),
}

/// What a neighbour's peer notes for [`Peer::take_monitored`].
#[derive(Debug, Default)]
pub(super) struct Monitor {
    tables: BmpTables,
    events: Vec<Monitored>,
}

impl Monitor {
    pub(super) fn note(&mut self, event: Monitored) {
        self.events.push(event);
    }

    /// `path_ids` are the families that it sends path identifiers for.
    pub(super) fn received(&mut self, message: &RawMessage, update: &Update, path_ids: FamilySet) {
        if !self.tables.adj_rib_in_pre_policy {
            return;
        }
        let is_withdrawal = |it: &AttributeFault| it.disposition == Disposition::TreatAsWithdraw;
        if update.faults.iter().any(is_withdrawal) {
            // As it was it would be no withdrawal, and a station may not be able to read it.
            withdrawals(&update.withdrawn, path_ids)
                .for_each(|it| self.note(Monitored::Received(it)));
        } else {
            self.note(Monitored::Received(whole(message)));
        }
    }

    /// It has sent all routes of the family again (RFC 7313).
    pub(super) fn refreshed(&mut self, refresh: &RouteRefresh) {
        if let Some(family) = refresh.ended().filter(|_| self.tables.adj_rib_in_pre_policy) {
            self.note(Monitored::Received(end_of_rib_of(family)));
        }
    }

    pub(super) fn sent(&mut self, message: &[u8]) {
        let is_update = message.get(18) == Some(&MessageType::Update.code());
        if is_update && self.tables.adj_rib_out_post_policy {
            self.note(Monitored::Sent(Bytes::copy_from_slice(message)));
        }
    }
}

/// UPDATEs that withdraw these.
fn withdrawals(withdrawn: &[Nlri], path_ids: FamilySet) -> impl Iterator<Item = Bytes> {
    AddressFamily::ALL.into_iter().flat_map(move |family| {
        let of_family = withdrawn.iter().filter(|it| it.prefix.family() == family);
        let mut left: BTreeSet<Nlri> = of_family.copied().collect();
        std::iter::from_fn(move || {
            if left.is_empty() {
                return None;
            }
            let mut message = BytesMut::new();
            withdrawal(family, path_ids.contains(family), &mut left, &mut message);
            Some(message.freeze())
        })
    })
}

fn end_of_rib_of(family: AddressFamily) -> Bytes {
    let mut marker = BytesMut::new();
    end_of_rib(family, &mut marker);
    marker.freeze()
}

/// A message of its own memory: that of a read may be large.
pub(super) fn whole(message: &RawMessage) -> Bytes {
    [&message.header()[..], &message.body].concat().into()
}

impl From<&DownReason> for SessionDown {
    fn from(reason: &DownReason) -> Self {
        match reason {
            DownReason::Sent { notification, .. } => Self::Sent(notification.encode()),
            DownReason::Received(notification) => Self::Received(notification.encode()),
            DownReason::Left(_) => Self::Left,
            DownReason::Closed
            | DownReason::Broken(_)
            | DownReason::Replaced
            | DownReason::ConnectFailed(_) => Self::Closed,
        }
    }
}

impl Peer {
    /// What happens is noted from now on, for these tables; `None` ends that. A session that is up comes first.
    pub fn monitor(&mut self, tables: Option<BmpTables>) {
        let was_monitored = self.monitor.is_some();
        self.monitor = tables.map(|tables| {
            let before = self.monitor.take().unwrap_or_default();
            Box::new(Monitor { tables, ..*before })
        });
        if !was_monitored && self.established.is_some() {
            // Its routes are in the tables that are asked for next: here a table of any size would be one event.
            self.note_session();
        }
    }

    fn note_session(&mut self) {
        let up = self.session_up_now();
        if let (Some(monitor), Some(up)) = (&mut self.monitor, up) {
            monitor.note(Monitored::Up(Box::new(up)));
        }
    }

    pub(super) fn note_up(&mut self) {
        self.note_session();
        // Of a neighbour that restarted gracefully routes are there already.
        let wants = self.monitor.as_ref().is_some_and(|it| it.tables.adj_rib_in_post_policy);
        let inbound = self.established.as_ref().filter(|_| wants).map(|up| &up.inbound);
        let routes = inbound.into_iter().flat_map(|it| it.adj_rib_in.routes());
        let kept = routes.map(|(nlri, it)| RouteChange { nlri, attributes: Some(it.clone()) });
        let kept: Vec<RouteChange> = kept.collect();
        if !kept.is_empty() {
            self.note_accepted(&kept);
        }
    }

    fn session_up_now(&self) -> Option<SessionUp> {
        let connection = self.connection(self.established.as_ref()?.connection)?;
        let agreed = connection.negotiated.as_ref()?;
        Some(SessionUp {
            local: connection.local?,
            remote: connection.remote?,
            asn: agreed.remote_asn.get(),
            router_id: agreed.remote_router_id.get(),
            four_octet_as: agreed.four_octet_as,
            families: agreed.families,
            add_path_received: agreed.add_path_received,
            add_path_sent: agreed.add_path_sent,
            opens: [connection.sent_open.clone(), connection.received_open.clone()],
        })
    }

    /// What was noted since the last call.
    pub fn take_monitored(&mut self) -> Option<Vec<Monitored>> {
        let monitor = self.monitor.as_mut().filter(|it| !it.events.is_empty())?;
        Some(std::mem::take(&mut monitor.events))
    }

    /// Its routes were accepted, or those that were are gone. Without a session nobody knows of them any more.
    pub fn note_accepted(&mut self, changes: &[RouteChange]) {
        let monitor = self.monitor.as_mut().filter(|it| it.tables.adj_rib_in_post_policy);
        if let (Some(monitor), Some(_)) = (monitor, &self.established) {
            monitor.note(Monitored::Accepted(changes.to_vec()));
        }
    }

    /// A message was read. The family whose routes were all sent, if it says so.
    pub(super) fn note_step(
        &mut self,
        step: Result<&Step, &WireError>,
        message: &RawMessage,
    ) -> Option<AddressFamily> {
        self.monitor.as_ref()?;
        let up = self.established.as_ref().and_then(|it| self.connection(it.connection));
        let agreed = up.and_then(|it| it.negotiated.as_ref());
        let path_ids = agreed.map_or(FamilySet::EMPTY, |it| it.add_path_received);
        let monitor = self.monitor.as_mut()?;
        match step {
            Ok(Step::Update(update)) => {
                monitor.received(message, update, path_ids);
                update.end_of_rib
            }
            Ok(Step::Refresh(refresh)) => {
                monitor.refreshed(refresh);
                refresh.ended()
            }
            _ => None,
        }
    }

    /// Its session has ended.
    pub(super) fn note_down(&mut self, reason: &DownReason) {
        if let Some(monitor) = &mut self.monitor {
            monitor.note(Monitored::Down(reason.into()));
        }
    }

    /// Its routes of the family are all known when the actions so far were carried out.
    pub(super) fn note_all_routes(&mut self, ended: Option<AddressFamily>) {
        if let Some(family) = ended {
            self.actions.push_back(Action::AllRoutes(family));
        }
    }

    /// [`Action::AllRoutes`] was reached.
    pub fn note_all_accepted(&mut self, family: AddressFamily) {
        let monitor = self.monitor.as_mut().filter(|it| it.tables.adj_rib_in_post_policy);
        if let (Some(monitor), Some(_)) = (monitor, &self.established) {
            monitor.note(Monitored::AllAccepted(family));
        }
    }

    /// What was noted of it before this incarnation goes on; its session ended with this NOTIFICATION.
    pub fn inherit_monitor(&mut self, before: Self, farewell: &Bytes) {
        self.monitor = before.monitor;
        if let (Some(monitor), Some(_)) = (&mut self.monitor, &before.established) {
            monitor.note(Monitored::Down(SessionDown::Sent(farewell.clone())));
        }
    }
}
