//! A peer that helps: its neighbour is a script that restarts, and its table can be inspected.

use super::scripted::words_of;
use super::*;
use crate::session::negotiate::our_open;
use crate::wire::announce::{AttributeBlock, announcement, end_of_rib, withdrawal};
use crate::wire::{Capability, Framing, KeptFamily, LongLivedOffer, RestartOffer};
use fairway_ground::{AsPath, Community, GracefulRestart, NextHop, Nlri, PerFamily};
use fairway_seam::{PathAttributes, PeerView, StalePhase};

pub(super) const IPV4: AddressFamily = AddressFamily::Ipv4Unicast;
pub(super) const IPV6: AddressFamily = AddressFamily::Ipv6Unicast;

/// The restart capability of the neighbour; both families, forwarding, 120 s, with N.
#[derive(Clone)]
pub(super) struct Offer {
    pub(super) restart: Option<RestartOffer>,
    pub(super) long_lived: Vec<LongLivedOffer>,
    pub(super) router_id: u32,
    pub(super) asn: u32,
}

impl Offer {
    pub(super) fn new() -> Self {
        let kept = |family: AddressFamily| KeptFamily { family: family.into(), forwarding: true };
        let restart = Some(RestartOffer {
            restarted: true,
            notifications: true,
            restart_time_seconds: 120,
            families: AddressFamily::ALL.map(kept).to_vec(),
        });
        Self { restart, long_lived: Vec::new(), router_id: 2, asn: 65_002 }
    }

    pub(super) fn with(mut self, change: impl FnOnce(&mut RestartOffer)) -> Self {
        change(self.restart.as_mut().unwrap());
        self
    }

    /// Without N.
    pub(super) fn plain(self) -> Self {
        self.with(|it| it.notifications = false)
    }

    pub(super) fn long_lived(mut self, stale_time_seconds: u32) -> Self {
        let offer = |family: AddressFamily| LongLivedOffer {
            family: family.into(),
            forwarding: true,
            stale_time_seconds,
        };
        self.long_lived = AddressFamily::ALL.map(offer).to_vec();
        self
    }

    pub(super) fn open(&self) -> Vec<u8> {
        let mut open =
            our_open(&config(self.asn, 65_001, 2), crate::session::OwnRestart::default());
        open.router_id = RouterId::new(self.router_id).unwrap();
        open.capabilities.retain(|it| !matches!(it, Capability::GracefulRestart(_)));
        open.capabilities.extend(self.restart.clone().map(Capability::GracefulRestart));
        if !self.long_lived.is_empty() {
            let offers = self.long_lived.clone();
            open.capabilities.push(Capability::LongLivedGracefulRestart(offers));
        }
        open.encode().to_vec()
    }
}

/// The peer that helps, and what its RIB holds.
pub(super) struct Helper {
    pub(super) peer: Peer,
    pub(super) rib: LocRib,
    pub(super) now: Instant,
    pub(super) up: Option<ConnectionId>,
    /// Connections that ended, with the codes of the last words.
    pub(super) closed: Vec<(ConnectionId, String)>,
    /// Changes of the RIB since the last call.
    pub(super) changes: usize,
}

/// One that is only dialled, and keeps routes for as long as the neighbour wants.
pub(super) fn helping() -> PeerConfig {
    let graceful_restart = GracefulRestart::new(120, (1 << 24) - 1);
    PeerConfig { passive: true, graceful_restart, ..config(65_001, 65_002, 1) }
}

impl Helper {
    pub(super) fn new(config: PeerConfig) -> Self {
        let peer = Peer::new(Instant::ZERO, config, 7, 0);
        let rib = LocRib::default();
        Self { peer, rib, now: Instant::ZERO, up: None, closed: Vec::new(), changes: 0 }
    }

    /// With a session that `offer` began, and the routes of both families that [`Self::said`] names.
    pub(super) fn with_routes(offer: &Offer) -> Self {
        let mut helper = Self::new(helping());
        helper.connect(offer);
        helper.say(&["10.0.0.0/8", "11.0.0.0/8", "2001:db8::/32"]);
        helper.end_of_rib(IPV4);
        helper.end_of_rib(IPV6);
        assert_eq!(helper.table(), "10.0.0.0/8 11.0.0.0/8 2001:db8::/32");
        helper
    }

    pub(super) fn handle(&mut self, event: Event<'_>) {
        self.peer.handle(self.now, event);
        self.settle();
    }

    pub(super) fn settle(&mut self) {
        while let Some(action) = self.peer.poll_action() {
            match action {
                Action::Close(id, last_words) => {
                    let mut framing = Framing::default();
                    framing.push(&last_words.unwrap_or_default());
                    let words = framing.next_message().unwrap();
                    let words = words.map(|it| words_of(&Notification::parse(&it.body)));
                    self.closed.push((id, words.unwrap_or_default()));
                    self.up.take_if(|up| *up == id);
                }
                Action::Routes(source, changes) => {
                    self.changes += changes.len();
                    self.rib.learn(&source, changes);
                }
                _ => {}
            }
        }
        for id in self.peer.connection_ids() {
            self.peer.poll_transmit(
                self.now,
                id,
                &self.rib,
                &mut ExportGroups::default(),
                ROOM,
                &mut BytesMut::new(),
            );
        }
    }

    /// The neighbour dials, and says OPEN.
    pub(super) fn knock(&mut self, offer: &Offer) -> ConnectionId {
        let id = self.peer.accept(self.now, ends(1));
        self.settle();
        self.handle(Event::Received(id, &offer.open()));
        id
    }

    /// The neighbour comes up with a new session.
    pub(super) fn connect(&mut self, offer: &Offer) -> ConnectionId {
        let id = self.knock(offer);
        self.handle(Event::Received(id, &keepalive()));
        assert_eq!(self.peer.state(), SessionState::Established);
        self.up = Some(id);
        id
    }

    pub(super) fn hear(&mut self, bytes: &[u8]) {
        let id = self.up.expect("there is a session");
        self.handle(Event::Received(id, bytes));
    }

    /// TCP breaks.
    pub(super) fn lose(&mut self) {
        let id = self.up.take().expect("there is a session");
        self.handle(Event::Closed(id, Some("reset".to_owned())));
    }

    pub(super) fn say(&mut self, prefixes: &[&str]) {
        self.say_with(prefixes, &[]);
    }

    pub(super) fn say_with(&mut self, prefixes: &[&str], communities: &[Community]) {
        for prefix in prefixes {
            self.hear(&said(prefix.parse().unwrap(), communities, 65_002));
        }
    }

    pub(super) fn withdraw(&mut self, prefix: &str) {
        let nlri: Nlri = prefix.parse().unwrap();
        let mut bytes = BytesMut::new();
        let mut gone = BTreeSet::from([nlri]);
        withdrawal(nlri.prefix.family(), false, &mut gone, &mut bytes);
        self.hear(&bytes);
    }

    pub(super) fn end_of_rib(&mut self, family: AddressFamily) {
        let mut bytes = BytesMut::new();
        end_of_rib(family, &mut bytes);
        self.hear(&bytes);
    }

    /// Lets `seconds` pass. A neighbour that is up keeps sending KEEPALIVEs.
    pub(super) fn pass(&mut self, duration: u64) {
        let end = self.now + seconds(duration);
        while let Some(next) = self.peer.next_deadline().filter(|next| *next <= end) {
            assert!(next >= self.now, "time goes forward");
            self.now = next;
            if self.up.is_some() {
                self.hear(&keepalive());
            }
            self.handle(Event::Tick);
            let deadline = self.peer.next_deadline();
            assert!(deadline.is_none_or(|it| it > next), "a tick settles what was due");
        }
        self.now = end;
    }

    /// The prefixes in the RIB.
    pub(super) fn table(&self) -> String {
        let prefixes: Vec<String> = self.rib.learned().map(|it| it.prefix.to_string()).collect();
        prefixes.join(" ")
    }

    pub(super) fn view(&self) -> PeerView {
        self.peer.view(self.now, ViewScope::EVERYTHING)
    }

    /// Stale routes of each family, what is waited for, and for how many seconds.
    pub(super) fn stale(&self) -> Option<(u32, u32, StalePhase, u64)> {
        let stale = self.view().stale?;
        let PerFamily { ipv4, ipv6 } = stale.routes;
        Some((ipv4, ipv6, stale.phase, stale.removed_in.as_secs()))
    }

    /// Prefixes with a path that carries `community`.
    pub(super) fn carrying(&self, community: Community) -> usize {
        let routes = self.rib.learned();
        routes.filter(|it| it.path.attributes.communities.contains(&community)).count()
    }
}

/// An UPDATE of a neighbour in `asn` that announces `nlri`.
pub(super) fn said(nlri: Nlri, communities: &[Community], asn: u32) -> BytesMut {
    let family = nlri.prefix.family();
    let next_hop = match family {
        AddressFamily::Ipv4Unicast => NextHop::Ipv4([192, 0, 2, 2].into()),
        AddressFamily::Ipv6Unicast => NextHop::ipv6("2001:db8:1::2".parse().unwrap(), None),
    };
    let attributes = PathAttributes {
        communities: communities.into(),
        ..PathAttributes::originated(AsPath::sequence(vec![asn]), next_hop)
    };
    let block = AttributeBlock::encode(&attributes, true).unwrap();
    let mut bytes = BytesMut::new();
    announcement(family, false, &block, &mut BTreeSet::from([nlri]), &mut bytes);
    bytes
}
