//! What a speaker must have of its neighbour's routes: RFC 4724 §4.2 and RFC 8538 §4 implemented a
//! second time, from the bytes that arrived. The router's table is compared with this one.
//!
//! Shares with the speaker what reads bytes, and nothing that decides.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use crate::rib::LocRib;
use crate::session::{ConnectionId, DownReason, Peer};
use crate::wire::notification::cease;
use crate::wire::{
    Capability, Framing, MessageType, Notification, Open, RestartOffer, Update, UpdateContext,
};
use fairway_ground::{AddressFamily, Community, Instant, PerFamily, Prefix};
use fairway_seam::PeerConfig;

/// When routes that a neighbour does not send again after it is back are removed.
const BACK_TIME_MAX: Duration = Duration::from_secs(360);

/// One route.
#[derive(Debug, Clone)]
struct Had {
    communities: Vec<Community>,
    /// How many sessions have ended since it was announced.
    losses: u32,
}

/// Why a prefix was removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Gone {
    /// The neighbour withdrew it.
    Withdrawn,
    /// The neighbour sent End-of-RIB.
    NotSaidAgain,
    /// The session ended in a way that keeps nothing.
    ForGood,
    /// A second session ended, and had not announced it.
    LostTwice,
    /// The neighbour is back, and forwarded nothing meanwhile.
    NotForwarded,
    /// The operator cleared the session while there was none.
    Cleared,
    /// The neighbour is not back, and the restart time is over.
    TimeIsOver,
}

/// How a prefix came to stay.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Kept {
    /// It was stale, and announced again.
    SaidAgain,
    /// The same, and it was not announced between two losses.
    SaidAgainAfterTwoLosses,
}

/// What arrived over one connection.
#[derive(Debug, Default)]
struct Heard {
    framing: Framing,
    offer: Option<RestartOffer>,
    updates: Vec<Update>,
}

/// The expected table.
#[derive(Debug)]
pub(super) struct Helper {
    config: PeerConfig,
    table: BTreeMap<Prefix, Had>,
    heard: BTreeMap<ConnectionId, Heard>,
    /// The session, and what the neighbour advertised in it about its restarts, if that counts.
    session: Option<(ConnectionId, Option<RestartOffer>)>,
    /// When stale routes are removed.
    stale_until: PerFamily<Option<Instant>>,
    /// When routes are removed that had not been announced between two losses (RFC 8538 §4.1).
    oldest_until: PerFamily<Option<Instant>>,
    /// What was removed, and why.
    pub(super) gone: Vec<(Prefix, Gone)>,
    /// How others came to stay.
    pub(super) is_kept: BTreeSet<Kept>,
    /// Something changed since the last comparison.
    is_new: bool,
}

impl Helper {
    pub(super) fn new(config: &PeerConfig) -> Self {
        Self {
            config: config.clone(),
            table: BTreeMap::new(),
            heard: BTreeMap::new(),
            session: None,
            stale_until: PerFamily::default(),
            oldest_until: PerFamily::default(),
            gone: Vec::new(),
            is_kept: BTreeSet::new(),
            is_new: false,
        }
    }

    /// Bytes arrived over a connection that is open.
    pub(super) fn hear(&mut self, id: ConnectionId, bytes: &[u8]) {
        let heard = self.heard.entry(id).or_default();
        heard.framing.push(bytes);
        while let Ok(Some(message)) = heard.framing.next_message() {
            match message.kind {
                MessageType::Open => {
                    let open = Open::parse(&message.body).ok();
                    let capabilities = open.map(|open| open.capabilities).unwrap_or_default();
                    heard.offer =
                        capabilities.into_iter().find_map(|capability| match capability {
                            Capability::GracefulRestart(offer) => Some(offer),
                            _ => None,
                        });
                }
                MessageType::Update => {
                    let context = UpdateContext::new(self.config.kind());
                    heard.updates.extend(Update::parse(&message.body, context));
                }
                _ => {}
            }
        }
    }

    /// The session is up over `id`: what it does not advertise to have kept is removed.
    pub(super) fn is_up(&mut self, now: Instant, id: ConnectionId) {
        let heard = self.heard.entry(id).or_default();
        let offer = heard.offer.clone().filter(|_| self.config.graceful_restart.is_some());
        for family in AddressFamily::ALL {
            if self.stale_until.of(family).is_none() {
                continue;
            }
            let kept = offer.as_ref().and_then(|offer| offer.of(family));
            if kept.is_some_and(|kept| kept.forwarding) {
                *self.stale_until.of_mut(family) = Some(now + BACK_TIME_MAX);
            } else {
                self.sweep(family, Gone::NotForwarded);
            }
        }
        self.session = Some((id, offer));
        self.is_new = true;
    }

    /// A connection is closed. What came over it before counts.
    pub(super) fn closes(&mut self, id: ConnectionId) {
        self.catch_up();
        self.heard.remove(&id);
    }

    /// The session is down.
    pub(super) fn is_down(&mut self, now: Instant, reason: &DownReason) {
        self.catch_up();
        let offer = self.session.take().and_then(|(_, offer)| offer);
        let offer = offer.filter(|offer| match reason {
            DownReason::Sent { notification, .. } | DownReason::Received(notification) => {
                offer.notifications && !is_hard_reset(notification)
            }
            _ => true,
        });
        for family in AddressFamily::ALL {
            let Some(offer) = offer.as_ref().filter(|offer| offer.of(family).is_some()) else {
                self.remove(family, Gone::ForGood, |_| true);
                self.is_fresh(family);
                continue;
            };
            let oldest_until = *self.oldest_until.of(family);
            if !offer.notifications || oldest_until.is_none_or(|until| until <= now) {
                self.sweep(family, Gone::LostTwice);
            }
            let of_family = |(prefix, _): &(&Prefix, &mut Had)| prefix.family() == family;
            let lost = self.table.iter_mut().filter(of_family).map(|(_, had)| had.losses += 1);
            if lost.count() > 0 {
                let until = now + Duration::from_secs(offer.restart_time_seconds.into());
                *self.stale_until.of_mut(family) = Some(until);
                self.oldest_until.of_mut(family).get_or_insert(until + BACK_TIME_MAX);
            }
        }
        self.is_new = true;
    }

    /// The operator clears the session: clearing it while there is none removes what is kept.
    pub(super) fn is_cleared(&mut self) {
        if self.session.is_none() {
            for family in AddressFamily::ALL {
                self.sweep(family, Gone::Cleared);
            }
        }
    }

    /// It is `now`, and the speaker acts on what is due.
    pub(super) fn expire(&mut self, now: Instant) {
        self.catch_up();
        for family in AddressFamily::ALL {
            let is_back = self.session.is_some();
            if !is_back && self.oldest_until.of(family).is_some_and(|until| until <= now) {
                self.remove(family, Gone::LostTwice, |had| had.losses > 1);
            }
            if self.stale_until.of(family).is_some_and(|until| until <= now) {
                self.sweep(family, if is_back { Gone::NotSaidAgain } else { Gone::TimeIsOver });
            }
        }
    }

    /// When something is due.
    pub(super) fn next_deadline(&self) -> Option<Instant> {
        AddressFamily::ALL.into_iter().filter_map(|family| *self.stale_until.of(family)).min()
    }

    /// Whether anything is stale.
    pub(super) fn has_stale(&self) -> bool {
        self.next_deadline().is_some()
    }

    /// Processes what came over the session.
    fn catch_up(&mut self) {
        let Some(heard) = self.session.as_ref().and_then(|(id, _)| self.heard.get_mut(id)) else {
            return;
        };
        for update in std::mem::take(&mut heard.updates) {
            self.is_new = true;
            for nlri in update.withdrawn {
                if self.table.remove(&nlri.prefix).is_some() {
                    self.gone.push((nlri.prefix, Gone::Withdrawn));
                }
            }
            for group in update.announced {
                let communities = group.attributes.communities.to_vec();
                for nlri in group.prefixes {
                    let had = Had { communities: communities.clone(), losses: 0 };
                    let before = self.table.insert(nlri.prefix, had);
                    self.is_kept.extend(before.and_then(|before| match before.losses {
                        0 => None,
                        1 => Some(Kept::SaidAgain),
                        _ => Some(Kept::SaidAgainAfterTwoLosses),
                    }));
                }
            }
            if let Some(family) = update.end_of_rib {
                self.sweep(family, Gone::NotSaidAgain);
            }
        }
    }

    /// Stale routes are removed.
    fn sweep(&mut self, family: AddressFamily, why: Gone) {
        self.remove(family, why, |had| had.losses > 0);
        self.is_fresh(family);
    }

    /// Nothing of `family` is stale any more.
    fn is_fresh(&mut self, family: AddressFamily) {
        *self.stale_until.of_mut(family) = None;
        *self.oldest_until.of_mut(family) = None;
    }

    fn remove(&mut self, family: AddressFamily, why: Gone, goes: impl Fn(&Had) -> bool) {
        let (table, gone) = (&mut self.table, &mut self.gone);
        table.retain(|prefix, had| {
            let goes = prefix.family() == family && goes(had);
            gone.extend(goes.then_some((*prefix, why)));
            !goes
        });
        self.is_new = true;
    }

    /// The speaker has processed everything that it received: its table is this one.
    pub(super) fn check(&mut self, now: Instant, peer: &Peer, rib: &LocRib) {
        self.catch_up();
        if !std::mem::take(&mut self.is_new) {
            return;
        }
        let learned = rib.learned().map(|route| {
            let stale = peer.is_stale(route.prefix.into());
            (route.prefix, route.path.attributes.communities.to_vec(), stale)
        });
        let learned: Vec<_> = learned.collect();
        let had =
            |(prefix, had): (&Prefix, &Had)| (*prefix, had.communities.clone(), had.losses > 0);
        let expected: Vec<_> = self.table.iter().map(had).collect();
        assert_eq!(learned, expected, "the table, and what it should be, at {now:?}");
    }
}

fn is_hard_reset(notification: &Notification) -> bool {
    (notification.code, notification.subcode) == (6, cease::HARD_RESET)
}
