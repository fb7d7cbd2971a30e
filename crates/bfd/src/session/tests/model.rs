//! A second implementation of the rules for intervals: from nothing but the packets that a system sent and
//! received.

use super::network::{World, any_settings, seeds};
use super::*;

/// One system as an observer of its packets sees it, by RFC 5880 §6.8.3. All times are in microseconds.
#[derive(Debug, Default)]
pub(super) struct Model {
    said: (u64, u64),
    /// In force: the transmit interval, and the interval of expected packets.
    transmit: u64,
    receive: u64,
    has_asked: bool,
    is_heard: bool,
    /// Of the remote system: transmit interval, receive interval, multiplier.
    theirs: Option<(u64, u64, u64)>,
    last: Option<(Instant, ControlPacket)>,
    /// The shortest and the longest negotiated interval since then; `None` if there was none.
    agreed: Option<(u64, u64)>,
}

impl Model {
    pub(super) fn sent(&mut self, now: Instant, packet: &ControlPacket) {
        let said = (packet.desired_min_tx_interval.into(), packet.required_min_rx_interval.into());
        match packet.state == State::Up && self.last.is_some() {
            true => self.transmit = self.transmit.min(said.0),
            false => self.transmit = said.0,
        }
        match self.is_heard {
            true => self.receive = self.receive.max(said.1),
            false => self.receive = said.1,
        }
        self.said = said;
        assert!(!(packet.poll && packet.is_final), "both bits");
        assert!(packet.is_final || packet.poll || !self.has_asked, "its poll was lost");
        self.has_asked |= packet.poll;
        self.note_agreed();
        if packet.is_final {
            return; // Answers are not periodic.
        }
        if let Some((at, before)) = self.last.replace((now, *packet)) {
            self.check_gap(now.since(at), &before, packet);
        }
        self.agreed = Some((u64::MAX, 0));
        self.note_agreed();
    }

    /// Two packets with the same content are 75 to 100 % of the negotiated interval apart; the remote system
    /// may have changed it in between.
    fn check_gap(&self, gap: Duration, before: &ControlPacket, packet: &ControlPacket) {
        let Some((least, most)) = self.agreed else { return };
        let gap = u64::try_from(gap.as_micros()).unwrap();
        assert!(gap <= most, "{gap} us, negotiated {most} at most");
        if (ControlPacket { poll: packet.poll, ..*before }) == *packet {
            assert!(gap >= least * 3 / 4, "{gap} us, negotiated {least} at least");
        }
    }

    fn note_agreed(&mut self) {
        let agreed = self.agreed_transmit();
        let range = self.agreed.zip(agreed);
        self.agreed = range.map(|((least, most), agreed)| (least.min(agreed), most.max(agreed)));
    }

    pub(super) fn received(&mut self, packet: &ControlPacket) {
        self.is_heard = true;
        self.theirs = Some((
            packet.desired_min_tx_interval.into(),
            packet.required_min_rx_interval.into(),
            packet.detect_multiplier.get().into(),
        ));
        if packet.is_final && self.has_asked {
            (self.transmit, self.receive) = self.said;
            self.has_asked = false;
        }
        self.note_agreed();
    }

    pub(super) fn fell_silent(&mut self) {
        self.theirs = self.theirs.map(|(transmit, _, multiplier)| (transmit, 1, multiplier));
        (self.has_asked, self.is_heard) = (false, false);
        self.receive = self.said.1;
        self.note_agreed();
    }

    fn agreed_transmit(&self) -> Option<u64> {
        let receive = self.theirs.map_or(1, |theirs| theirs.1);
        (receive > 0).then(|| self.transmit.max(receive))
    }

    fn detection_time(&self) -> Option<u64> {
        let (transmit, _, multiplier) = self.theirs?;
        Some(self.receive.max(transmit) * multiplier)
    }
}

fn assert_as_the_model_says(world: &World, seed: u64) {
    let micros = |it: Duration| u64::try_from(it.as_micros()).unwrap();
    for (end, model) in world.ends.iter().zip(&world.models) {
        let case = format!("seed {seed} at {:?}", world.now);
        assert_eq!(end.schedule.interval.map(micros), model.agreed_transmit(), "{case}");
        assert_eq!(end.detection_time().map(micros), model.detection_time(), "{case}");
    }
}

/// One negotiation: two systems with random settings come up, and get other settings meanwhile, some of them
/// before the last ones were negotiated.
fn negotiate(seed: u64) -> u64 {
    let mut rng = Rng::seeded(seed);
    let mut settings = [any_settings(&mut rng), any_settings(&mut rng)];
    let delay = Duration::from_micros(rng.next_u64() % 50_000);
    let mut world = World::new(seed, settings.clone(), delay);
    let run_until = |world: &mut World, end: Instant| {
        while world.step(end) {
            assert_as_the_model_says(world, seed);
        }
    };
    let mut now = at(500);
    run_until(&mut world, now);
    assert!(world.is_up(), "seed {seed}");
    for _ in 0..1 + rng.next_u64() % 2 {
        let end = usize::from(rng.next_u64().is_multiple_of(2));
        settings[end] = any_settings(&mut rng);
        world.ends[end].configure(now, &settings[end]);
        world.drain();
        assert_as_the_model_says(&world, seed);
        now = now + ms(rng.next_u64() % 150);
        run_until(&mut world, now);
    }
    // A poll may wait for a packet of each system, and for the answer to the previous one.
    while world.ends.iter().any(is_negotiating) {
        assert!(now < at(30_000), "seed {seed}: the negotiation does not end");
        now = now + ms(50);
        run_until(&mut world, now);
    }
    // Values without a poll, such as the multiplier, may be in flight.
    run_until(&mut world, now + ms(51));
    for (ours, theirs) in [(0, 1), (1, 0)] {
        let (end, ours, theirs) = (&world.ends[ours], &settings[ours], &settings[theirs]);
        let case = format!("seed {seed}");
        let agreed = |transmit: Duration, receive: Duration| transmit.max(receive);
        let sends = agreed(ours.transmit_interval, theirs.receive_interval);
        assert_eq!(end.schedule.interval, Some(sends), "{case}");
        let hears = agreed(theirs.transmit_interval, ours.receive_interval);
        let multiplier = u32::from(theirs.detect_multiplier.get());
        assert_eq!(end.detection_time(), Some(hears * multiplier), "{case}");
    }
    assert_eq!(world.downs(), 0, "seed {seed}: a change of intervals drops no session");
    world.events
}

/// Something was not announced, not answered, or not received by the remote system.
fn is_negotiating(end: &Session) -> bool {
    end.negotiation.announced() != end.negotiation.in_force()
        || end.negotiation.is_polling()
        || end.negotiation.next_deadline().is_some()
        || (end.schedule.is_urgent && end.schedule.interval.is_some())
}

//= RFC 5880 §6.8.2 MUST: intervals are negotiated at any time, in each direction by itself.
//= RFC 5880 §6.8.3 MUST: new intervals do not affect the state of a session.
#[test]
fn every_negotiation_ends_as_the_model_says_and_never_drops_a_session() {
    let mut events = 0;
    let seeds = seeds(5_000);
    let count = seeds.end - seeds.start;
    for seed in seeds {
        events += negotiate(seed);
    }
    println!("{count} negotiations, {events} events");
}
