//! Processes a control packet for this session (RFC 5880 §6.8.6, from authentication on).

use std::net::IpAddr;

use super::{Remote, Session, timers_of};
use crate::arrival::Dropped;
use crate::echo::EchoPacket;
use crate::packet::ControlPacket;
use crate::{Diagnostic, State};
use fairway_ground::Instant;

impl Session {
    /// Processes a packet that was received at `at`; `bytes` is everything that its length field covers.
    pub fn receive(
        &mut self,
        now: Instant,
        at: Instant,
        packet: &ControlPacket,
        bytes: &[u8],
    ) -> Result<(), Dropped> {
        self.authenticate(at, packet, bytes)?;
        let remote_was = self.remote.state;
        self.remote = Remote {
            discriminator: packet.my_discriminator.get(),
            state: packet.state,
            diagnostic: packet.diagnostic,
            demand: packet.demand,
            control_plane_independent: packet.control_plane_independent,
            min_rx_interval: super::micros(packet.required_min_rx_interval),
            timers: Some(timers_of(packet)),
        };
        let is_up = self.state == State::Up;
        if packet.is_final {
            self.negotiation.answered(now);
        }
        if self.state == State::AdminDown {
            self.reschedule(now);
            return Err(Dropped::AdminDown);
        }
        self.counters.control_in = self.counters.control_in.saturating_add(1);
        // The kernel's time counts, and packets may be read in another order than they were received.
        let heard_at = self.detection.heard_at.map_or(at, |before| before.max(at));
        self.detection.heard_at = Some(heard_at);
        self.detection.is_running = true;
        self.detection.put_off_until = None;
        self.follow(now, packet.state);
        let is_news = packet.state == State::AdminDown && remote_was != State::AdminDown;
        if is_news && self.state == State::Down && !is_up {
            self.tell_down(false);
        }
        self.retime(now, is_up && self.state == State::Up);
        self.schedule.is_final_due |= packet.poll;
        Ok(())
    }

    /// The state machine (RFC 5880 §6.2, §6.8.6).
    fn follow(&mut self, now: Instant, remote: State) {
        let signaled = Diagnostic::NEIGHBOR_SIGNALED_SESSION_DOWN;
        let (state, diagnostic) = match (self.state, remote) {
            (State::Init | State::Up, State::AdminDown) => (State::Down, signaled),
            (State::Up, State::Down) => (State::Down, signaled),
            (State::Down, State::Down) => (State::Init, self.diagnostic),
            (State::Down, State::Init) => (State::Up, Diagnostic::NONE),
            (State::Init, State::Init | State::Up) => (State::Up, Diagnostic::NONE),
            _ => return,
        };
        self.move_to(now, state, diagnostic);
    }

    fn authenticate(
        &mut self,
        at: Instant,
        packet: &ControlPacket,
        bytes: &[u8],
    ) -> Result<(), Dropped> {
        // After twice the detection time the remote system may have restarted (RFC 5880 §6.8.1).
        let silence = self.detection.heard_at.map(|heard_at| at.since(heard_at));
        let enough = self.detection_time().map(|time| time.saturating_mul(2));
        if silence.zip(enough).is_some_and(|(silence, enough)| silence >= enough) {
            self.sequences.forget();
        }
        match &self.settings.authentication {
            Some(_) if !packet.authentication_present => {
                Err(Dropped::AuthenticationPresence { expected: true })
            }
            None if packet.authentication_present => {
                Err(Dropped::AuthenticationPresence { expected: false })
            }
            Some(authentication) => self.sequences.verify(authentication, packet, bytes),
            None => Ok(()),
        }
    }

    /// Processes one of our echo packets that came back.
    pub(crate) fn receive_echo(
        &mut self,
        now: Instant,
        at: Instant,
        packet: &EchoPacket,
    ) -> Result<(), Dropped> {
        let was_proven = self.echo.is_proven();
        self.echo.receive(at, packet)?;
        self.counters.echo_in = self.counters.echo_in.saturating_add(1);
        if !was_proven {
            self.retime(now, true);
        }
        Ok(())
    }

    /// Whether to return an echo packet of the remote system: only if we offered that, and while the session
    /// is up (RFC 5880 §6.8.9).
    pub(crate) fn loop_back(&mut self) -> Result<(), Dropped> {
        if !self.may_echo() || self.settings.echo_interval.is_none() {
            return Err(Dropped::Echo);
        }
        self.counters.echo_looped = self.counters.echo_looped.saturating_add(1);
        Ok(())
    }

    /// Our address that the remote system sends to.
    pub(crate) fn heard_on(&mut self, local: Option<IpAddr>) {
        self.local = local.or(self.local);
    }
}
