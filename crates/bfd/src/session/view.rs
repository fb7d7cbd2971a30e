//! The session as `show` sees it.

use super::{Session, Timers, micros};
use crate::{BfdSessionView, Drops, RemoteTimers, State};
use fairway_ground::{BfdPath, Instant};

impl Session {
    /// The whole session, including dropped packets.
    pub(crate) fn view(&self, now: Instant, path: BfdPath, drops: Drops) -> BfdSessionView {
        let settings = &self.settings;
        BfdSessionView {
            path,
            local: path.local.or(self.local),
            local_discriminator: self.local_discriminator.get(),
            remote_discriminator: self.remote.discriminator,
            passive: settings.passive,
            state: self.state,
            remote_state: self.remote.state,
            since: now.since(self.changed_at),
            diagnostic: self.diagnostic,
            remote_diagnostic: self.remote.diagnostic,
            is_closing: self.state == State::AdminDown,
            transmit_interval: settings.transmit_interval,
            receive_interval: settings.receive_interval,
            echo_interval: settings.echo_interval,
            detect_multiplier: settings.detect_multiplier.get(),
            minimum_ttl: settings.minimum_ttl.get(),
            authentication: settings.authentication.as_ref().map(|it| it.kind()),
            remote_timers: self.remote.timers.map(remote_timers),
            agreed_transmit_interval: self.schedule.interval,
            detection_time: self.detection_time(),
            agreed_echo_interval: self.echo.interval(),
            is_polling: self.negotiation.is_polling(),
            remote_demand: self.remote.demand,
            remote_control_plane_independent: self.remote.control_plane_independent,
            round_trip: self.echo.round_trip(),
            counters: self.counters,
            drops,
        }
    }
}

fn remote_timers(timers: Timers) -> RemoteTimers {
    RemoteTimers {
        transmit_interval: micros(timers.desired_min_tx),
        receive_interval: micros(timers.required_min_rx),
        echo_receive_interval: micros(timers.required_min_echo_rx),
        detect_multiplier: timers.detect_multiplier.get(),
    }
}
