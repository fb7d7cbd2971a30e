//! One session: the state machine of RFC 5880 §6.2 and §6.8, and its timers.
//!
//! Receives its packets and the time; returns the packets to send, the next deadline, and changes.
//! [`super::Sessions`] finds the session of a packet.

mod change;
mod receive;
mod transmit;
mod view;

use std::net::IpAddr;
use std::num::{NonZeroU8, NonZeroU32};
use std::time::Duration;

use super::authentication::Sequences;
use super::echo::{self, Detection, Echo};
use super::packet::ControlPacket;
use super::timing::{self, Intervals, Negotiation};
use super::{BfdCounters, Diagnostic, DownCause, State};
use fairway_ground::{BfdSettings, Instant, Rng};

pub use change::BfdChange;
pub use change::Untold;
pub use transmit::Written;

/// Ours: how long a removed session is kept at most. The remote system could choose intervals that make its
/// detection time a fortnight.
const CLOSING_TIME_MAX: Duration = Duration::from_secs(300);

/// One session.
#[derive(Debug)]
pub struct Session {
    settings: BfdSettings,
    multihop: bool,
    state: State,
    diagnostic: Diagnostic,
    /// When it was last opened, came up, or went down.
    changed_at: Instant,
    local_discriminator: NonZeroU32,
    remote: Remote,
    negotiation: Negotiation,
    sequences: Sequences,
    echo: Echo,
    rng: Rng,
    schedule: Schedule,
    detection: ControlDetection,
    farewell: Option<Farewell>,
    /// The destination address of packets of the remote system.
    local: Option<IpAddr>,
    untold: Untold,
    counters: BfdCounters,
}

/// The last packet of the remote system.
#[derive(Debug)]
struct Remote {
    /// 0 while unknown (bfd.RemoteDiscr).
    discriminator: u32,
    state: State,
    diagnostic: Diagnostic,
    demand: bool,
    control_plane_independent: bool,
    /// 1 µs until a packet is received (RFC 5880 §6.8.1).
    min_rx_interval: Duration,
    timers: Option<Timers>,
}

#[derive(Debug, Clone, Copy)]
struct Timers {
    desired_min_tx: u32,
    required_min_rx: u32,
    required_min_echo_rx: u32,
    detect_multiplier: NonZeroU8,
}

impl Remote {
    const MIN_RX_INTERVAL_INITIAL: Duration = Duration::from_micros(1);

    const UNHEARD: Self = Self {
        discriminator: 0,
        state: State::Down,
        diagnostic: Diagnostic::NONE,
        demand: false,
        control_plane_independent: false,
        min_rx_interval: Self::MIN_RX_INTERVAL_INITIAL,
        timers: None,
    };

    fn is_there(&self) -> bool {
        self.discriminator != 0
    }
}

/// When to send control packets.
#[derive(Debug, Default)]
struct Schedule {
    /// The negotiated interval; `None` while no periodic packets are sent.
    interval: Option<Duration>,
    sent_at: Option<Instant>,
    due_at: Option<Instant>,
    /// A change has not been sent yet.
    is_urgent: bool,
    /// A Final is due. Several Polls are answered once.
    is_final_due: bool,
}

/// When the remote system has been silent for too long.
#[derive(Debug, Default)]
struct ControlDetection {
    heard_at: Option<Instant>,
    /// A packet was received since the last timeout.
    is_running: bool,
    /// It timed out while this process was late, and is postponed.
    put_off_until: Option<Instant>,
}

/// The session is being removed.
#[derive(Debug)]
struct Farewell {
    /// When it may be deleted.
    until: Instant,
    /// The interval of the final AdminDown packets.
    interval: Duration,
}

impl Session {
    /// A new session: down, and without a remote system. `discriminator` is unique on this node, `seed`
    /// determines its sequence numbers and its jitter.
    pub fn new(
        now: Instant,
        settings: BfdSettings,
        multihop: bool,
        local_discriminator: NonZeroU32,
        seed: u64,
    ) -> Self {
        let mut rng = Rng::seeded(seed);
        let (first_sequence, _) = echo::random_words(&mut rng);
        let mut session = Self {
            negotiation: Negotiation::new(intervals(&settings, false, false)),
            settings,
            multihop,
            state: State::Down,
            diagnostic: Diagnostic::NONE,
            changed_at: now,
            local_discriminator,
            remote: Remote::UNHEARD,
            sequences: Sequences::new(first_sequence),
            echo: Echo::default(),
            rng,
            schedule: Schedule::default(),
            detection: ControlDetection::default(),
            farewell: None,
            local: None,
            untold: Untold::default(),
            counters: BfdCounters::default(),
        };
        session.reschedule(now);
        session
    }

    /// Its state.
    pub fn state(&self) -> State {
        self.state
    }

    /// Its local discriminator.
    pub fn local_discriminator(&self) -> NonZeroU32 {
        self.local_discriminator
    }

    /// The minimum TTL of a multihop session (RFC 5883).
    pub(super) fn minimum_ttl(&self) -> u8 {
        self.settings.minimum_ttl.get()
    }

    /// Changes its settings. The state does not change by this.
    pub fn configure(&mut self, now: Instant, settings: &BfdSettings) {
        if self.settings == *settings {
            return;
        }
        if self.settings.authentication != settings.authentication {
            self.sequences.forget();
        }
        let multiplier_changed = self.settings.detect_multiplier != settings.detect_multiplier;
        let echo_changed = self.settings.echo_interval != settings.echo_interval;
        self.settings = settings.clone();
        if multiplier_changed || echo_changed {
            self.speak();
        }
        self.retime(now, self.state == State::Up);
    }

    /// Removes the session: the remote system is sent AdminDown, so that this is not a failure (RFC 5880
    /// §6.8.16), for as long as it would take it to detect our silence.
    pub fn disable(&mut self, now: Instant) {
        if self.state == State::AdminDown {
            return;
        }
        let in_force = self.negotiation.in_force().transmit;
        let theirs = in_force.max(self.remote.min_rx_interval);
        let theirs = theirs.saturating_mul(u32::from(self.settings.detect_multiplier.get()));
        let kept_until = self.detection_at().map_or(now, |at| at.max(now + theirs));
        self.farewell = Some(Farewell {
            until: if self.remote.is_there() {
                kept_until.min(now + CLOSING_TIME_MAX)
            } else {
                now
            },
            interval: in_force,
        });
        self.move_to(now, State::AdminDown, Diagnostic::ADMINISTRATIVELY_DOWN);
    }

    /// Enables the session again before it is deleted.
    pub fn enable(&mut self, now: Instant) {
        if self.farewell.take().is_some() {
            self.move_to(now, State::Down, Diagnostic::NONE);
        }
    }

    /// Whether it may be deleted: it is being removed, and the remote system can be assumed to know.
    pub fn is_closed(&self, now: Instant) -> bool {
        self.farewell.as_ref().is_some_and(|farewell| farewell.until <= now)
    }

    /// When to act next.
    pub fn next_deadline(&self) -> Option<Instant> {
        let deadlines = [
            self.schedule.due_at,
            self.echo.due_at(),
            self.farewell.as_ref().map(|farewell| farewell.until),
            self.next_expiry(),
        ];
        deadlines.into_iter().flatten().min()
    }

    /// When to act next, whether or not a packet is ready to be sent.
    pub(super) fn next_expiry(&self) -> Option<Instant> {
        let deadlines =
            [self.detection_at(), self.negotiation.next_deadline(), self.echo.detection_at()];
        deadlines.into_iter().flatten().min()
    }

    /// Processes expired timers, without sending. `own_stall`: see [`super::Sessions::expire`].
    pub fn expire(&mut self, now: Instant, own_stall: Option<Duration>) {
        if self.detection_at().is_some_and(|at| at <= now) {
            let agreed = self.agreed_receive_interval();
            match agreed.filter(|agreed| is_more_than_half(own_stall, *agreed)) {
                Some(agreed) if self.may_put_off() => {
                    self.detection.put_off_until = Some(now + agreed);
                    self.count_put_off();
                }
                _ => self.detection_expired(now),
            }
        }
        let echo_interval = self.echo.interval();
        let is_late = echo_interval.is_some_and(|interval| is_more_than_half(own_stall, interval));
        match self.echo.detect(now, is_late) {
            Detection::Pending => {}
            Detection::PutOff => self.count_put_off(),
            Detection::Failed => {
                self.move_to(now, State::Down, Diagnostic::ECHO_FUNCTION_FAILED);
            }
        }
        if self.negotiation.expire(now, self.state == State::Up) {
            self.speak();
            self.reschedule(now);
        }
    }

    /// This process was late by `own_stall`.
    pub(super) fn note_stall(&mut self, own_stall: Duration) {
        let agreed = self.agreed_receive_interval();
        if agreed.is_some_and(|interval| is_more_than_half(Some(own_stall), interval)) {
            self.counters.stalls = self.counters.stalls.saturating_add(1);
        }
    }

    fn may_put_off(&self) -> bool {
        self.detection.put_off_until.is_none() && self.state >= State::Init
    }

    fn count_put_off(&mut self) {
        self.counters.detections_put_off = self.counters.detections_put_off.saturating_add(1);
    }

    /// The negotiated interval between two packets of the remote system.
    fn agreed_receive_interval(&self) -> Option<Duration> {
        let timers = self.remote.timers?;
        Some(self.negotiation.in_force().receive.max(micros(timers.desired_min_tx)))
    }

    /// How long the remote system may be silent.
    fn detection_time(&self) -> Option<Duration> {
        let timers = self.remote.timers?;
        Some(timing::detection_time(
            timers.detect_multiplier,
            self.negotiation.in_force().receive,
            micros(timers.desired_min_tx),
        ))
    }

    fn detection_at(&self) -> Option<Instant> {
        let heard_at = self.detection.heard_at.filter(|_| self.detection.is_running)?;
        let at = heard_at + self.detection_time()?;
        Some(self.detection.put_off_until.map_or(at, |until| until.max(at)))
    }

    /// No packet was received for a detection time: the remote system is gone (RFC 5880 §6.8.1, §6.8.4,
    /// §6.8.18).
    fn detection_expired(&mut self, now: Instant) {
        self.detection.is_running = false;
        self.detection.put_off_until = None;
        let was_admin_down = self.remote.state == State::AdminDown;
        let Remote { diagnostic, timers, control_plane_independent, .. } = self.remote;
        self.remote = Remote { diagnostic, timers, control_plane_independent, ..Remote::UNHEARD };
        self.negotiation.forget_question();
        match self.state {
            State::Init | State::Up => {
                self.move_to(now, State::Down, Diagnostic::CONTROL_DETECTION_TIME_EXPIRED);
            }
            State::Down if was_admin_down => self.tell_down(false),
            State::Down | State::AdminDown => {}
        }
        self.reschedule(now);
    }

    /// Changes the state, and everything that depends on it.
    fn move_to(&mut self, now: Instant, state: State, diagnostic: Diagnostic) {
        let before = self.state;
        if before == state {
            return;
        }
        self.state = state;
        self.diagnostic = diagnostic;
        if before == State::Up || state == State::Up {
            self.changed_at = now;
        }
        match (before, state) {
            (_, State::Up) => {
                self.counters.ups = self.counters.ups.saturating_add(1);
                self.untold.add(BfdChange::Up);
            }
            (State::Up, State::Down) => {
                self.counters.downs = self.counters.downs.saturating_add(1);
                self.tell_down(true);
            }
            (State::Init, State::Down) => self.tell_down(false),
            _ => {} // A change by the user is not reported to it.
        }
        self.speak();
        self.retime(now, false);
    }

    fn tell_down(&mut self, was_up: bool) {
        let is_told = self.diagnostic == Diagnostic::NEIGHBOR_SIGNALED_SESSION_DOWN;
        let cause = match self.remote.diagnostic {
            _ if self.remote.state == State::AdminDown => DownCause::SwitchedOff,
            Diagnostic::NONE if is_told => DownCause::BeganAnew,
            _ => DownCause::Failed,
        };
        self.untold.add(BfdChange::Down {
            cause,
            diagnostic: self.diagnostic,
            remote_control_plane_independent: self.remote.control_plane_independent,
            was_up,
        });
    }

    /// The next packet differs from the last: it is sent at once (RFC 5880 §6.8.7). A remote system in demand
    /// mode is polled (§6.6).
    fn speak(&mut self) {
        self.schedule.is_urgent = true;
        if self.remote_demand_is_active() {
            self.negotiation.ask();
        }
    }

    /// bfd.RemoteDemandMode, if it is in effect (RFC 5880 §6.8).
    fn remote_demand_is_active(&self) -> bool {
        self.remote.demand && self.state == State::Up && self.remote.state == State::Up
    }

    /// Called after anything that may change an interval. `stays_up`: it was up, and is.
    fn retime(&mut self, now: Instant, stays_up: bool) {
        let echo = self.echo_interval();
        self.echo.set(now, echo, self.settings.detect_multiplier, &mut self.rng);
        let is_up = self.state == State::Up;
        let wanted = intervals(&self.settings, is_up, self.echo.is_proven());
        if self.negotiation.want(now, wanted, stays_up, self.remote.is_there()) {
            self.speak();
        }
        self.reschedule(now);
    }

    /// The interval of echo packets (RFC 5880 §6.8.9, RFC 5883 §3).
    fn echo_interval(&self) -> Option<Duration> {
        let ours = self.settings.echo_interval.filter(|_| self.may_echo())?;
        let theirs = micros(self.remote.timers?.required_min_echo_rx);
        (!theirs.is_zero()).then(|| ours.max(theirs).max(BfdSettings::INTERVAL_MIN))
    }

    fn may_echo(&self) -> bool {
        self.state == State::Up && !self.multihop
    }

    /// Reports the state again to a user that lost track of it. A session without a report is assumed not to
    /// be up.
    pub(super) fn tell_again(&mut self) {
        if self.state == State::Up {
            self.untold.add(BfdChange::Up);
        }
    }

    /// Whether there is a change to report.
    pub(super) fn has_event(&self) -> bool {
        self.untold.is_some()
    }

    /// The next change.
    pub fn poll_event(&mut self) -> Option<BfdChange> {
        let change = self.untold.take()?;
        self.counters.events = self.counters.events.saturating_add(1);
        Some(change)
    }
}

/// Our intervals in this state. While echo packets monitor the path, control packets may be slow (RFC 5880
/// §6.8.3).
fn intervals(settings: &BfdSettings, is_up: bool, echo_watches: bool) -> Intervals {
    let transmit = settings.transmit_interval.max(BfdSettings::INTERVAL_MIN);
    let receive = settings.receive_interval.max(BfdSettings::INTERVAL_MIN);
    Intervals {
        transmit: timing::desired_transmit_interval(transmit, is_up),
        receive: if echo_watches { receive.max(timing::SLOW_INTERVAL) } else { receive },
    }
}

fn is_more_than_half(own_stall: Option<Duration>, interval: Duration) -> bool {
    own_stall.is_some_and(|late| late > interval / 2)
}

fn micros(micros: u32) -> Duration {
    Duration::from_micros(micros.into())
}

fn timers_of(packet: &ControlPacket) -> Timers {
    Timers {
        desired_min_tx: packet.desired_min_tx_interval,
        required_min_rx: packet.required_min_rx_interval,
        required_min_echo_rx: packet.required_min_echo_rx_interval,
        detect_multiplier: packet.detect_multiplier,
    }
}

#[cfg(test)]
mod tests;
