//! The state of FRR, from its own JSON: the view that every backend provides.
//!
//! It contains every neighbour of the desired state, even if FRR does not report it, and none of those that
//! the operator configured in FRR directly. Pure: texts come in, a [`BgpView`] goes out; `io::observer` runs
//! the commands. Answers are hostile: an invalid one is an [`AnswerError`] and becomes a fault of the view,
//! and its part of the view stays empty.

mod answer;
mod attributes;
pub mod bfd;
mod capabilities;
mod digest;
mod neighbor;
mod reset;
mod sessions;
mod tables;
mod told;
mod words;

use fairway_ground::{AddressFamily, BfdPath, InterfaceName, PeerKey};
use fairway_seam::bfd::{BfdSessionView, BfdView};
use fairway_seam::{AdvertisedScope, BgpView, Desired, PeerRoute, SessionState, ViewScope};

pub use answer::{ANSWER_BYTES_MAX, AnswerError};
pub use digest::{Digest, SessionChange};
pub use sessions::{NEIGHBORS, SUMMARY, Sessions};
pub use tables::show_word;
use tables::{advertised_question, table_question};

use told::Wanted;

/// A view under construction.
#[derive(Debug)]
pub struct Picture<'a> {
    desired: &'a Desired,
    scope: ViewScope,
    sessions: &'a Sessions,
    view: BgpView,
}

impl<'a> Picture<'a> {
    /// The neighbours of `desired` as FRR reports them.
    pub fn new(desired: &'a Desired, scope: ViewScope, sessions: &'a Sessions) -> Self {
        let (peers, listen_ranges) = sessions.peers(desired);
        let mut routes = if scope.originated { desired.routes.to_vec() } else { Vec::new() };
        routes.sort_by_key(|route| route.prefix);
        let view = BgpView {
            generation: desired.generation,
            drain: desired.drain,
            peers,
            listen_ranges,
            routes,
            prefixes: sessions.prefixes(),
            ..BgpView::default()
        };
        Self { desired, scope, sessions, view }
    }

    /// Part of the desired state is not in force, or unknown.
    pub fn fault(&mut self, fault: String) {
        if !self.view.faults.contains(&fault) {
            self.view.faults.push(fault);
        }
    }

    /// bgpd did not answer: nothing is known of any session.
    pub fn unanswered(&mut self) {
        for peer in &mut self.view.peers {
            peer.state = SessionState::Unknown;
        }
    }

    /// The BFD sessions of bfdd; `None` if it did not answer.
    pub fn bfd(&mut self, sessions: Option<Vec<BfdSessionView>>) {
        let unanswered = sessions.is_none();
        let sessions = sessions.unwrap_or_default();
        for peer in self.view.peers.iter_mut().filter(|peer| peer.config.bfd.is_some()) {
            let session = peer.session.as_ref();
            let Some(remote) = peer.config.key.address().or(session.map(|it| it.remote.ip()))
            else {
                continue;
            };
            let is_it = |path: &BfdPath| path.remote == remote && path.vrf == peer.config.key.vrf;
            peer.bfd_path = sessions.iter().map(|it| it.path).find(is_it);
        }
        self.view.bfd = Some(BfdView { sessions, unanswered, ..BfdView::default() });
    }

    /// The tables that the scope needs: those of the families and VRFs of its neighbours.
    pub fn tables(&self) -> Vec<(Option<InterfaceName>, AddressFamily)> {
        if !(self.scope.learned || self.scope.received) {
            return Vec::new();
        }
        let peers = self.view.peers.iter().map(|peer| (peer.config.key.vrf, peer.config.families));
        let mut tables: Vec<_> = peers
            .flat_map(|(vrf, families)| families.iter().map(move |family| (vrf, family)))
            .filter(|(vrf, _)| self.sessions.has_instance(vrf.as_ref()))
            .collect();
        tables.sort_unstable();
        tables.dedup();
        tables
    }

    fn instance<'n>(&self, vrf: Option<&'n InterfaceName>) -> &'n str {
        self.sessions.instance(vrf)
    }

    /// The command for a table.
    pub fn table_question(&self, vrf: Option<InterfaceName>, family: AddressFamily) -> String {
        table_question(self.instance(vrf.as_ref()), family)
    }

    /// The command for the advertised routes of a neighbour.
    pub fn advertised_question(&self, key: PeerKey, family: AddressFamily, detail: bool) -> String {
        advertised_question(self.instance(key.vrf.as_ref()), key.remote, family, detail)
    }

    /// Takes the answer to [`Self::table_question`].
    pub fn table(
        &mut self,
        vrf: Option<InterfaceName>,
        family: AddressFamily,
        text: &str,
    ) -> Result<(), AnswerError> {
        let paths = tables::table(&table_question(self.instance(vrf.as_ref()), family), text)?;
        let learned = tables::learned(&paths, vrf, &self.view.peers);
        for peer in self.view.peers.iter_mut().filter(|peer| peer.config.key.vrf == vrf) {
            let key = peer.config.key;
            let own = learned.iter().filter(|route| route.path.source.key == key);
            let stale = own.clone().filter(|route| route.stale).count();
            if let Some(view) = peer.stale.as_mut() {
                *view.routes.of_mut(family) = u32::try_from(stale).unwrap_or(u32::MAX);
            }
            if self.scope.received {
                peer.received.extend(own.map(|route| PeerRoute {
                    prefix: route.prefix,
                    path_id: route.path.path_id,
                    attributes: std::sync::Arc::clone(&route.path.attributes),
                    stale: route.stale,
                }));
            }
        }
        if self.scope.learned {
            self.view.learned.extend(learned);
        }
        Ok(())
    }

    /// The neighbours and families with advertised routes that the scope needs.
    pub fn told(&self) -> Vec<(PeerKey, AddressFamily)> {
        if self.scope.advertised == AdvertisedScope::None {
            return Vec::new();
        }
        let peers = self.view.peers.iter();
        let sessions = peers.filter_map(|peer| Some((peer, peer.session.as_ref()?)));
        sessions
            .flat_map(|(peer, session)| {
                let told = peer.prefixes_advertised;
                let families = session.families.iter().filter(move |family| *told.of(*family) > 0);
                families.map(|family| (peer.config.key, family))
            })
            .collect()
    }

    /// Takes the answer to [`Self::advertised_question`].
    pub fn advertised(
        &mut self,
        key: PeerKey,
        family: AddressFamily,
        text: &str,
    ) -> Result<(), AnswerError> {
        let told = tables::advertised(&self.advertised_question(key, family, false), text)?;
        let here = self.sessions.own_next_hop(key, family);
        let Some(peer) = self.view.peers.iter_mut().find(|peer| peer.config.key == key) else {
            return Ok(());
        };
        let wanted = Wanted::of(self.desired, &peer.config);
        let routes: Vec<_> =
            told.into_iter().map(|it| wanted.as_sent(it, &peer.config, here)).collect();
        peer.advertised.extend(routes);
        Ok(())
    }

    /// The view.
    pub fn finish(mut self) -> BgpView {
        self.view.learned.sort_by_key(|route| (route.prefix, route.lost_at.is_some()));
        for peer in &mut self.view.peers {
            peer.advertised.sort_by_key(|route| (route.prefix, route.path_id));
            peer.received.sort_by_key(|route| (route.prefix, route.path_id));
            told::note_unannounced(peer, self.desired);
        }
        self.view
    }
}

#[cfg(test)]
mod tests;
