//! When are router advertisements sent, and which router is on the link?

use std::net::Ipv6Addr;
use std::time::Duration;

use super::message::Message;
use fairway_ground::{Instant, Rng};

/// Maximum interval between two advertisements (FRR's for an unnumbered neighbour). They are sent a little
/// earlier, so that routers do not synchronise.
pub const INTERVAL: Duration = Duration::from_secs(10);

/// Minimum interval between two advertisements (RFC 4861 §10, MIN_DELAY_BETWEEN_RAS): solicitations must not
/// determine how often all other hosts receive one.
pub const GAP_MIN: Duration = Duration::from_secs(3);

/// Maximum delay of an answer (RFC 4861 §10, MAX_RA_DELAY_TIME).
const ANSWER_DELAY_MAX_MICROS: u64 = 500_000;

/// Number of initial advertisements at the minimum interval (RFC 4861 §10, MAX_INITIAL_RTR_ADVERTISEMENTS):
/// the first may be lost.
const INITIAL_COUNT: u8 = 3;

/// How long a router is remembered that is not a default router, as we are: its lifetime is 0. The default
/// router lifetime (RFC 4861 §6.2.1).
const LIFETIME_DEFAULT: Duration = Duration::from_secs(1800);

/// Router discovery on one link.
#[derive(Debug)]
pub struct Discovery {
    rng: Rng,
    sent_at: Option<Instant>,
    due_at: Instant,
    initial_left: u8,
    router: Option<Router>,
}

/// The router that was last received from.
#[derive(Debug, Clone, Copy)]
struct Router {
    address: Ipv6Addr,
    since: Instant,
    until: Instant,
}

impl Discovery {
    /// For a new link: the first advertisement is due at once.
    pub fn new(now: Instant, seed: u64) -> Self {
        Self {
            rng: Rng::seeded(seed),
            sent_at: None,
            due_at: now,
            initial_left: INITIAL_COUNT,
            router: None,
        }
    }

    /// Processes a received message.
    pub fn hear(&mut self, now: Instant, message: Message) {
        match message {
            Message::Solicitation => self.answer(now),
            Message::Advertisement { source, lifetime_seconds } => {
                let lifetime = match lifetime_seconds {
                    0 => LIFETIME_DEFAULT,
                    seconds => Duration::from_secs(seconds.into()),
                };
                let known = self.router.filter(|router| now < router.until);
                let same = known.filter(|router| router.address == source);
                if known.is_some_and(|it| it.address != source && now.since(it.since) < GAP_MIN) {
                    return; // A genuine router does not change this often.
                }
                // The last sender is the current router: a router that was replaced is silent, even if its
                // lifetime has not expired.
                let since = same.map_or(now, |router| router.since);
                self.router = Some(Router { address: source, since, until: now + lifetime });
                if same.is_none() {
                    // It may have been down when we sent our last one, and dials no router that it has not
                    // received one from.
                    self.answer(now);
                }
            }
        }
    }

    /// The router at the other end of the link.
    pub fn neighbour(&self, now: Instant) -> Option<Ipv6Addr> {
        self.router.filter(|router| now < router.until).map(|router| router.address)
    }

    /// Whether an advertisement is due. Followed by [`Discovery::sent`] or [`Discovery::failed`].
    pub fn is_due(&self, now: Instant) -> bool {
        self.due_at <= now
    }

    /// The advertisement was sent.
    pub fn sent(&mut self, now: Instant) {
        self.sent_at = Some(now);
        self.initial_left = self.initial_left.saturating_sub(1);
        let wait = if self.initial_left > 0 { GAP_MIN } else { self.rng.jittered(INTERVAL) };
        self.due_at = now + wait;
    }

    /// The advertisement could not be sent, for example because the link was down.
    pub fn failed(&mut self, now: Instant) {
        self.due_at = now + GAP_MIN;
    }

    /// When to act next: an advertisement is due, or the neighbour expires.
    pub fn next_deadline(&self, now: Instant) -> Instant {
        let forgotten_at = self.router.map(|router| router.until).filter(|until| now < *until);
        forgotten_at.map_or(self.due_at, |until| until.min(self.due_at))
    }

    /// Schedules an advertisement after a short random delay, and never too soon after the last.
    fn answer(&mut self, now: Instant) {
        let soon = now + Duration::from_micros(self.rng.next_u64() % ANSWER_DELAY_MAX_MICROS);
        let at = self.sent_at.map_or(soon, |sent_at| soon.max(sent_at + GAP_MIN));
        self.due_at = self.due_at.min(at);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROUTER: Ipv6Addr = Ipv6Addr::new(0xFE80, 0, 0, 0, 0, 0, 0, 1);
    const OTHER: Ipv6Addr = Ipv6Addr::new(0xFE80, 0, 0, 0, 0, 0, 0, 2);

    fn seconds(seconds: u64) -> Instant {
        Instant::ZERO + Duration::from_secs(seconds)
    }

    fn advertisement(source: Ipv6Addr, lifetime_seconds: u16) -> Message {
        Message::Advertisement { source, lifetime_seconds }
    }

    /// The times of advertisements until `end`, while `hear` is received every hundredth of a second.
    fn sent_until(discovery: &mut Discovery, end: Instant, hear: Option<Message>) -> Vec<Instant> {
        let mut sent = Vec::new();
        let mut now = Instant::ZERO;
        while now < end {
            if let Some(message) = hear {
                discovery.hear(now, message);
            }
            if discovery.is_due(now) {
                discovery.sent(now);
                sent.push(now);
            }
            now = now + Duration::from_millis(10);
        }
        sent
    }

    //= RFC 4861 §6.2.4 SHOULD: the first advertisements of an interface follow each other sooner than the others.
    //= RFC 4861 §6.2.4 MUST: advertisements go out at random times, so that routers do not march in step.
    #[test]
    fn a_few_advertisements_at_the_start_then_one_every_ten_seconds() {
        let sent = sent_until(&mut Discovery::new(Instant::ZERO, 7), seconds(100), None);
        assert_eq!(sent[..3], [seconds(0), seconds(3), seconds(6)]);
        let gaps: Vec<Duration> = sent[2..].windows(2).map(|it| it[1].since(it[0])).collect();
        assert!(gaps.len() >= 9);
        let (least, most) = (Duration::from_millis(7_500), Duration::from_millis(10_010));
        assert!(gaps.iter().all(|gap| (least..=most).contains(gap)), "{gaps:?}");
        assert!(gaps.windows(2).any(|it| it[0] != it[1]));
    }

    //= RFC 4861 §6.2.6 MUST: advertisements to all nodes are never closer to each other than MIN_DELAY_BETWEEN_RAS.
    #[test]
    fn a_flood_of_solicitations_is_answered_every_three_seconds() {
        let mut discovery = Discovery::new(Instant::ZERO, 7);
        let sent = sent_until(&mut discovery, seconds(60), Some(Message::Solicitation));
        assert!(sent.windows(2).all(|it| it[1].since(it[0]) >= GAP_MIN), "{sent:?}");
        assert!(sent.len() >= 15, "{sent:?}");
    }

    //= RFC 4861 §6.2.6 MUST: the answer to a solicitation waits for a random time of at most half a second.
    #[test]
    fn whoever_asks_and_whoever_is_new_hears_us_soon() {
        for message in [Message::Solicitation, advertisement(ROUTER, 30)] {
            let mut waits = Vec::new();
            for seed in 0..50 {
                let mut discovery = Discovery::new(Instant::ZERO, seed);
                let last = *sent_until(&mut discovery, seconds(20), None).last().unwrap();
                let now = last + GAP_MIN;
                discovery.hear(now, message);
                waits.push(discovery.next_deadline(now).since(now));
            }
            let most = Duration::from_micros(ANSWER_DELAY_MAX_MICROS);
            assert!(waits.iter().all(|wait| *wait <= most), "{waits:?}");
            assert!(waits.windows(2).any(|it| it[0] != it[1]));
        }
    }

    #[test]
    fn a_router_that_is_known_is_not_answered_again_and_again() {
        let mut discovery = Discovery::new(Instant::ZERO, 7);
        let heard = Some(advertisement(ROUTER, 30));
        let sent = sent_until(&mut discovery, seconds(100), heard);
        assert!(sent.len() < 16, "{sent:?}");
    }

    #[test]
    fn the_neighbour_is_who_spoke_last_and_for_as_long_as_it_said() {
        let mut discovery = Discovery::new(Instant::ZERO, 7);
        assert_eq!(discovery.neighbour(Instant::ZERO), None);
        discovery.hear(seconds(1), advertisement(ROUTER, 30));
        assert_eq!(discovery.neighbour(seconds(30)), Some(ROUTER));
        assert_eq!(discovery.neighbour(seconds(31)), None);
        discovery.hear(seconds(32), advertisement(ROUTER, 30));
        discovery.hear(seconds(34), advertisement(OTHER, 0));
        assert_eq!(discovery.neighbour(seconds(34)), Some(ROUTER), "too soon");
        discovery.hear(seconds(35), advertisement(OTHER, 0));
        assert_eq!(discovery.neighbour(seconds(1_800)), Some(OTHER));
        assert_eq!(discovery.neighbour(seconds(1_835)), None);
        discovery.sent(seconds(1_835));
        let deadline = discovery.next_deadline(seconds(1_835));
        assert!(deadline > seconds(1_835) && deadline <= seconds(1_845));
    }

    #[test]
    fn what_could_not_leave_is_tried_again() {
        let mut discovery = Discovery::new(Instant::ZERO, 7);
        discovery.failed(Instant::ZERO);
        assert!(!discovery.is_due(seconds(2)) && discovery.is_due(seconds(3)));
    }
}
