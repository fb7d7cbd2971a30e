//! What BMP stations are told of the speaker: asked for, and told from the beginning where something was lost.
//!
//! Another part of [`CoreTask`]; the connections are [`crate::bmp`]'s.

use std::collections::BTreeSet;
use std::sync::Arc;

use fairway_ground::{BmpStation, Instant};
use fairway_seam::{AdvertisedScope, ViewScope};

use super::{Ask, CoreTask};

impl CoreTask {
    /// These stations are to be told.
    pub(super) fn monitor(&mut self, now: Instant, stations: &Arc<BTreeSet<BmpStation>>) {
        let tables = self.bmp.want(stations);
        self.speaker.monitor(now, tables);
        self.carry_out(now);
    }

    /// Answers what the stations' thread asks, after all that happened before.
    pub(super) fn answer_stations(&mut self, ask: Ask) {
        let now = self.clock.now();
        let scope = match ask {
            Ask::Tables(tables) => {
                if tables.adj_rib_in_pre_policy {
                    self.speaker.request_routes(now);
                }
                ViewScope {
                    received: tables.adj_rib_in_post_policy,
                    advertised: match tables.adj_rib_out_post_policy {
                        true => AdvertisedScope::All,
                        false => AdvertisedScope::None,
                    },
                    learned: tables.loc_rib,
                    originated: tables.loc_rib,
                    ..ViewScope::SESSIONS
                }
            }
            Ask::Statistics => ViewScope::SESSIONS,
        };
        self.carry_out(now);
        let (view, _) = self.speaker.view(now, scope);
        self.bmp.answer(ask, view);
    }

    /// The stations' thread had no room for a while: the speaker tells everything from the beginning.
    pub(super) fn start_stations_over(&mut self, now: Instant) {
        if self.bmp.starts_over() {
            let tables = self.speaker.monitored();
            self.speaker.monitor(now, None);
            self.speaker.monitor(now, tables);
            self.carry_out(now);
        }
    }
}
