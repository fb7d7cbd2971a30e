//! Random changes and restarts: whatever happened, the RIB holds what the peer reports that it holds,
//! nothing is lost before its time, nothing stays beyond it, and when the neighbour has sent everything
//! the table is the one that a first session would have made.

use super::helper::{Helper, Offer, helping, said};
use super::*;
use fairway_ground::{
    Community, ImportPolicy, MaximumPrefixes, Nlri, PerFamily, PrefixFilter, PrefixRange, Rng,
};
use fairway_seam::{PathAttributes, StalePhase};

/// More than a neighbour announces, so that only stale routes can bring it near.
const LIMIT: u32 = 12;

/// It never tires of a silent neighbour, and so needs no KEEPALIVEs.
fn patient() -> PeerConfig {
    PeerConfig { hold_time: HoldTime::OFF, ..helping() }
}

struct Story {
    helper: Helper,
    rng: Rng,
    offer: Offer,
    /// What the neighbour announces in every session, by the community that distinguishes versions of a
    /// route.
    said: BTreeMap<Nlri, Community>,
    /// When a prefix was last known to be announced by the neighbour.
    heard_at: BTreeMap<Nlri, Instant>,
    /// What was there when the session was lost, and until when it must stay.
    promised: Option<(BTreeSet<Nlri>, Instant)>,
}

impl Story {
    fn new(seed: u64) -> Self {
        let mut story = Self {
            helper: Helper::new(patient()),
            rng: Rng::seeded(seed),
            offer: Offer::new(),
            said: BTreeMap::new(),
            heard_at: BTreeMap::new(),
            promised: None,
        };
        story.reconsider_offer();
        story
    }

    fn draw(&mut self, below: u64) -> u64 {
        self.rng.next_u64() % below
    }

    fn one_of<T: Copy, const N: usize>(&mut self, values: [T; N]) -> T {
        values[usize::try_from(self.rng.next_u64() >> 32).unwrap() % N]
    }

    /// What its next OPEN advertises. Mostly it forwarded all the time.
    fn reconsider_offer(&mut self) {
        let restart_time_seconds = self.one_of([0, 5, 120, 4095]);
        let (notifications, cold) = (self.draw(2) == 0, self.draw(6) == 0);
        let stale_time = self.one_of([0, 0, 60, 10_000]);
        let router_id = 2 + u32::from(self.draw(4) == 0);
        let offer = Offer { router_id, ..Offer::new() }.with(|it| {
            it.restart_time_seconds = restart_time_seconds;
            it.notifications = notifications;
            it.families[0].forwarding = !cold;
        });
        self.offer = if stale_time > 0 { offer.long_lived(stale_time) } else { offer };
    }

    fn nlri(&mut self) -> Nlri {
        let number = self.draw(5);
        let text = match self.draw(2) {
            0 => format!("10.{number}.0.0/16"),
            _ => format!("2001:db8:{number}::/48"),
        };
        text.parse().unwrap()
    }

    fn say(&mut self, nlri: Nlri) {
        if let Some(community) = self.said.get(&nlri) {
            self.helper.hear(&said(nlri, &[*community], 65_002));
            self.heard_at.insert(nlri, self.helper.now);
        }
    }

    /// The routes that the neighbour announces change; it announces the change if it can.
    fn change(&mut self) {
        let nlri = self.nlri();
        if self.draw(3) == 0 {
            let known = self.said.remove(&nlri).is_some();
            if known && self.helper.up.is_some() {
                self.helper.withdraw(&nlri.prefix.to_string());
            }
        } else {
            let number = u32::try_from(self.draw(3)).unwrap();
            self.said.insert(nlri, Community(65_002 << 16 | number));
            if self.helper.up.is_some() {
                self.say(nlri);
            }
        }
    }

    fn come_back(&mut self) {
        self.reconsider_offer();
        let offer = self.offer.clone();
        self.helper.connect(&offer);
        self.promised = None;
        if self.draw(4) == 0 {
            return; // It will have no chance to announce it.
        }
        for nlri in self.said.keys().copied().collect::<Vec<_>>() {
            self.say(nlri);
        }
        if self.draw(4) > 0 {
            self.helper.end_of_rib(AddressFamily::Ipv4Unicast);
            self.helper.end_of_rib(AddressFamily::Ipv6Unicast);
            self.check_synchronized();
        }
    }

    fn lose(&mut self) {
        let overdue = self.helper.peer.inbound().map(|it| it.is_overdue).unwrap_or_default();
        let settled = self.helper.stale().is_none() && overdue == PerFamily::default();
        let before: BTreeSet<Nlri> = self.in_rib().into_keys().collect();
        let restart = self.offer.restart.clone().unwrap();
        let graceful = match self.draw(3) {
            0 => {
                let notification = Notification::cease(cease::ADMINISTRATIVE_RESET);
                self.helper.hear(&notification.encode());
                restart.notifications
            }
            1 => {
                self.helper.hear(&Notification::cease(cease::HARD_RESET).encode());
                false
            }
            _ => {
                self.helper.lose();
                true
            }
        };
        self.promised = match graceful {
            true if settled || restart.notifications => {
                let bound = seconds(restart.restart_time_seconds.into());
                settled.then_some((before, self.helper.now + bound))
            }
            true => None,
            false => {
                assert_eq!(self.in_rib().len(), 0, "nothing outlives such an end");
                None
            }
        };
    }

    /// The operator wants other routes, or fewer.
    fn reconfigure(&mut self) {
        let range = PrefixRange::new("10.0.0.0/8".parse().unwrap(), None, Some(32)).unwrap();
        let allowed = match self.draw(3) {
            0 => PrefixFilter::Listed(vec![range]),
            _ => PrefixFilter::Everything,
        };
        let maximum =
            Some(MaximumPrefixes { limit: LIMIT, warn_percent: 100, attribute_bytes: None });
        let import = ImportPolicy { allowed, maximum, ..ImportPolicy::default() };
        let now = self.helper.now;
        self.helper.peer.reconfigure(now, PeerConfig { import, ..patient() });
        self.helper.settle();
        self.promised = None;
        if self.helper.up.is_some() {
            // It is asked to send everything again.
            self.said.keys().copied().collect::<Vec<_>>().into_iter().for_each(|it| self.say(it));
        }
    }

    fn step(&mut self) {
        let is_up = self.helper.up.is_some();
        match self.draw(12) {
            0..=4 => self.change(),
            5 | 6 if is_up => self.lose(),
            5..=8 if !is_up => self.come_back(),
            9 if self.draw(4) == 0 => self.reconfigure(),
            10 => {
                let duration = self.draw(3000);
                self.helper.pass(duration);
            }
            _ => {
                let duration = self.draw(40);
                self.helper.pass(duration);
            }
        }
        self.check();
    }

    fn in_rib(&self) -> BTreeMap<Nlri, Arc<PathAttributes>> {
        let routes = self.helper.rib.learned();
        let nlri = |prefix, path_id| Nlri { prefix, path_id };
        routes.map(|it| (nlri(it.prefix, it.path.path_id), it.path.attributes)).collect()
    }

    fn check(&mut self) {
        let view = self.helper.view();
        let in_rib = self.in_rib();
        let received: BTreeMap<Nlri, Arc<PathAttributes>> = view
            .received
            .iter()
            .map(|it| (Nlri { prefix: it.prefix, path_id: it.path_id }, Arc::clone(&it.attributes)))
            .collect();
        assert_eq!(received, in_rib, "the Loc-RIB holds what the Adj-RIB-In does");
        let stale = view.received.iter().filter(|it| it.stale).count();
        let counted = view.stale.as_ref().map_or(0, |it| it.routes.ipv4 + it.routes.ipv6);
        assert_eq!(u32::try_from(stale).unwrap(), counted);
        assert!(view.prefixes_accepted.ipv4.max(view.prefixes_accepted.ipv6) <= LIMIT);
        let session = view.session.as_ref().map(|it| it.remote_router_id);
        let mut sources = self.helper.rib.learned().map(|it| it.path.source.router_id);
        assert!(session.is_none_or(|id| sources.all(|source| source == id)), "of this session");
        // What was lost is still there within the restart time.
        if let Some((before, until)) = &self.promised
            && self.helper.now < *until
        {
            assert_eq!(in_rib.keys().copied().collect::<BTreeSet<_>>(), *before);
        }
        // Nothing that the neighbour no longer announces stays forever: the restart time, the time to
        // send everything and the long-lived time, and once more for the one it was lost again in.
        let bound = seconds(2 * (4095 + 360) + 10_000);
        for nlri in in_rib.keys().filter(|it| !self.said.contains_key(it)) {
            assert!(self.helper.now.since(self.heard_at[nlri]) <= bound, "{nlri}");
        }
        for (nlri, _) in self.said.iter().filter(|_| self.helper.up.is_some()) {
            self.heard_at.insert(*nlri, self.helper.now);
        }
        let away = view.stale.is_some_and(|it| it.phase == StalePhase::Away);
        assert!(!(away && self.helper.up.is_some()));
    }

    /// The table is what a first session would have made of what the neighbour announces.
    fn check_synchronized(&self) {
        let mut anew = Helper::new(self.helper.peer.config().clone());
        anew.connect(&self.offer);
        for (nlri, community) in &self.said {
            anew.hear(&said(*nlri, &[*community], 65_002));
        }
        let routes = |helper: &Helper| helper.rib.learned().collect::<Vec<_>>();
        assert_eq!(routes(&self.helper), routes(&anew));
        assert_eq!(self.helper.stale(), None);
    }
}

#[test]
fn after_any_restarts_the_table_is_that_of_a_first_session() {
    let (mut kept, mut synchronized) = (0, 0);
    for seed in 0..150 {
        let mut story = Story::new(seed);
        for _ in 0..120 {
            story.step();
            kept += usize::from(story.helper.peer.retained.is_some());
        }
        if story.helper.up.is_none() {
            story.helper.connect(&story.offer.clone());
        }
        for nlri in story.said.keys().copied().collect::<Vec<_>>() {
            story.say(nlri);
        }
        story.helper.end_of_rib(AddressFamily::Ipv4Unicast);
        story.helper.end_of_rib(AddressFamily::Ipv6Unicast);
        story.offer = Offer {
            router_id: story.helper.view().session.unwrap().remote_router_id.get(),
            ..story.offer
        };
        story.check_synchronized();
        synchronized += 1;
    }
    assert!(kept > 1000 && synchronized == 150, "{kept}");
}
