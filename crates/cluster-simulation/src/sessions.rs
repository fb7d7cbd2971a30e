//! The layer between a speaker and the routers: a backend that announces what it is given, as the
//! real one does.
//!
//! Carries plans to routers, and judges what they lose: I2, I4, I9, I10, I12.

use std::time::Duration;

use fairway_ground::Prefix;
use fairway_model::{Kind, ObjectKey, ObjectName};
use fairway_seam::{Announcements, PeerConfig};

use crate::objects::{node_name, peer_place, secret_place};
use crate::router::{DEFERRAL, RESTART_TIME, Routes, router_of};
use crate::rules::{Violation, broken};
use crate::schedule::Who;
use crate::truth::GRACE;
use crate::world::{Event, World};

/// The interval at which a speaker requests a Secret, whatever happens to it meanwhile.
const SECRET_PAUSE: Duration = Duration::from_secs(75);

/// Why a router lost a route.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Loss {
    Withdrawn,
    EndOfRib,
    TimeOver,
    SessionEnded,
}

impl World {
    /// A speaker passes the desired announcements to its backend.
    pub(crate) fn announce(&mut self, who: Who, announced: Announcements) {
        let Who::Speaker(node) = who else { return };
        let Some(process) = self.processes.get_mut(&who) else { return };
        let run = process.run;
        let before = process.announced.replace(announced.clone());
        if !announced.awaits_sources {
            process.excused.clear();
        }
        let (count, complete) = (announced.routes.len(), !announced.awaits_sources);
        self.tell(|| format!("{who} announces {count} routes, complete: {complete}"));
        let before = before.map(|it| it.peers.clone()).unwrap_or_default();
        let peers = &announced.peers;
        for gone in before.iter().filter(|old| peers.iter().all(|new| new.key != old.key)) {
            self.end_session(node, gone);
        }
        for peer in peers {
            let Some(router) = router_of(&peer.key) else { continue };
            match before.iter().find(|old| old.key == peer.key) {
                None => self.after_millis(20, 400, Event::SessionUp { node, run, router }),
                Some(old) if old.needs_reset(peer) => self.reset_session(node, run, router),
                Some(_) => {}
            }
        }
        for router in 0..self.adjacencies.get(node).map_or(0, Vec::len) {
            self.say(node, router);
        }
    }

    /// Announces the desired routes to one router, if there is a session.
    fn say(&mut self, node: usize, router: usize) {
        let who = Who::Speaker(node);
        let Some(process) = self.processes.get(&who) else { return };
        let Some(announced) = process.announced.clone() else { return };
        let mut routes = Routes::new();
        for route in announced.routes.iter() {
            if route.peers.iter().any(|key| router_of(key) == Some(router)) {
                routes.insert(route.prefix, route.attributes.clone());
            }
        }
        let Some(adjacency) = self.adjacency(node, router).filter(|it| it.is_up) else { return };
        let new: Vec<Prefix> =
            routes.keys().filter(|it| !adjacency.routes.contains_key(it)).copied().collect();
        let withdrawn = adjacency.update(routes);
        let is_told_all = !announced.awaits_sources && !adjacency.is_complete;
        let lost = if is_told_all { adjacency.end_of_rib() } else { Vec::new() };
        for prefix in new {
            self.told(node, router, prefix);
        }
        self.lose(node, router, withdrawn, Loss::Withdrawn);
        self.lose(node, router, lost, Loss::EndOfRib);
    }

    fn adjacency(&mut self, node: usize, router: usize) -> Option<&mut crate::router::Adjacency> {
        self.adjacencies.get_mut(node)?.get_mut(router)
    }

    pub(crate) fn session_up(&mut self, node: usize, run: u64, router: usize) {
        let process = self.processes.get(&Who::Speaker(node)).filter(|it| it.run == run);
        let Some(process) = process.filter(|it| it.core.is_some()) else { return };
        let Some(announced) = &process.announced else { return };
        if announced.peers.iter().all(|peer| router_of(&peer.key) != Some(router)) {
            return;
        }
        let Some(adjacency) = self.adjacency(node, router).filter(|it| !it.is_up) else { return };
        adjacency.begins();
        self.tell(|| format!("node {node} and router {router}: session up"));
        self.at(self.now + DEFERRAL, Event::Deferred { node, run, router });
        self.say(node, router);
    }

    /// The deferral of End-of-RIB of a speaker that is not synchronised is over.
    pub(crate) fn deferred(&mut self, node: usize, run: u64, router: usize) {
        let is_same = self.processes.get(&Who::Speaker(node)).is_some_and(|it| it.run == run);
        let adjacency = self.adjacency(node, router);
        let Some(adjacency) = adjacency.filter(|it| is_same && it.is_up && !it.is_complete) else {
            return;
        };
        let lost = adjacency.end_of_rib();
        self.lose(node, router, lost, Loss::EndOfRib);
    }

    pub(crate) fn stale_over(&mut self, node: usize, router: usize, ends: u64) {
        let Some(adjacency) = self.adjacency(node, router) else { return };
        let lost = adjacency.time_is_over(ends);
        self.lose(node, router, lost, Loss::TimeOver);
    }

    /// The process ended: routers see TCP end, and keep its routes for a while.
    pub(crate) fn sessions_break(&mut self, node: usize) {
        for router in 0..self.adjacencies.get(node).map_or(0, Vec::len) {
            self.break_session(node, router);
        }
    }

    fn break_session(&mut self, node: usize, router: usize) {
        let Some(adjacency) = self.adjacency(node, router) else { return };
        if adjacency.is_up {
            adjacency.restarts();
            let ends = adjacency.ends;
            self.at(self.now + RESTART_TIME, Event::StaleOver { node, router, ends });
        }
    }

    /// The speaker leaves for good.
    pub(crate) fn sessions_end(&mut self, node: usize) {
        for router in 0..self.adjacencies.get(node).map_or(0, Vec::len) {
            let Some(adjacency) = self.adjacency(node, router) else { continue };
            let lost = adjacency.ends();
            self.lose(node, router, lost, Loss::SessionEnded);
        }
    }

    fn end_session(&mut self, node: usize, peer: &PeerConfig) {
        let Some(router) = router_of(&peer.key) else { return };
        let wanted = self
            .truth
            .plans
            .get(node)
            .is_some_and(|plan| plan.peers.iter().any(|it| it.key == peer.key));
        let result = match self.settings_changed(node, router) {
            false if wanted => {
                let what = format!("node {node} ends its session with router {router}");
                Err(broken("I12", format!("{what}, and no setting of it changed")))
            }
            _ => Ok(()),
        };
        self.judge(result);
        let Some(adjacency) = self.adjacency(node, router) else { return };
        let lost = adjacency.ends();
        self.lose(node, router, lost, Loss::SessionEnded);
    }

    fn reset_session(&mut self, node: usize, run: u64, router: usize) {
        let result = match self.settings_changed(node, router) {
            true => Ok(()),
            false => {
                let what = format!("node {node} resets its session with router {router}");
                Err(broken("I12", format!("{what}, and no setting of it changed")))
            }
        };
        self.judge(result);
        self.break_session(node, router);
        self.after_millis(50, 500, Event::SessionUp { node, run, router });
    }

    /// Whether the peer or the node changed since this speaker may have looked last.
    fn settings_changed(&self, node: usize, router: usize) -> bool {
        // A speaker polls a Secret once a minute, and notices a dispute and its end with that delay.
        if self.truth.is_disputed(self.now, GRACE + SECRET_PAUSE) {
            return true;
        }
        let Ok(number) = u8::try_from(router) else { return true };
        let place = peer_place(number);
        let peer =
            ObjectKey { kind: Kind::BgpPeer, name: ObjectName::new(place.namespace, &place.name) };
        let node_key = ObjectKey { kind: Kind::Node, name: ObjectName::new("", node_name(node)) };
        let informed_at = match self.processes.get(&Who::Speaker(node)) {
            Some(_) if self.is_settled(node) => self.now,
            Some(process) => process.informed_at,
            None => return true,
        };
        let changes = [peer, node_key];
        let mut changes = changes.iter().filter_map(|key| self.truth.sessions_changed.get(key));
        let place = secret_place();
        let secret =
            ObjectKey { kind: Kind::Secret, name: ObjectName::new(place.namespace, place.name) };
        let secret = self.truth.sessions_changed.get(&secret);
        changes.any(|at| *at + GRACE >= informed_at)
            || secret.is_some_and(|at| *at + GRACE + SECRET_PAUSE >= informed_at)
    }

    /// Whether a speaker has received everything but the most recent changes.
    fn is_settled(&self, node: usize) -> bool {
        let who = Who::Speaker(node);
        self.is_reachable(who)
            && self.processes.get(&who).is_some_and(|it| {
                it.core.is_some()
                    && it.started_at + GRACE < self.now
                    && it.link.trouble + GRACE * 3 < self.now
                    && it.doubted_at + GRACE < self.now
            })
    }

    pub(crate) fn restart_router(&mut self, router: usize) {
        for node in 0..self.adjacencies.len() {
            let Some(adjacency) = self.adjacency(node, router) else { continue };
            adjacency.ends(); // The router's own loss, which is no violation.
            let Some(process) = self.processes.get(&Who::Speaker(node)) else { continue };
            let run = process.run;
            self.after_millis(200, 3000, Event::SessionUp { node, run, router });
        }
    }

    /// I2 and I4: a router receives a prefix.
    fn told(&mut self, node: usize, router: usize, prefix: Prefix) {
        let result = match self.truth.allowed_until(prefix) {
            None => Err(broken("I4", format!("node {node} announces {prefix} to router {router}"))),
            Some(until) => {
                let is_settled = self.is_settled(node);
                let is_over = until + GRACE * 2 < self.now;
                if is_settled && is_over && !prefix.to_string().starts_with("100.64.") {
                    let what =
                        format!("node {node} announces {prefix} to router {router}, long deleted");
                    Err(broken("I2", what))
                } else {
                    Ok(())
                }
            }
        };
        self.tell(|| format!("router {router} receives {prefix} from node {node}"));
        self.judge(result);
    }

    fn lose(&mut self, node: usize, router: usize, prefixes: Vec<Prefix>, loss: Loss) {
        for prefix in prefixes {
            self.tell(|| format!("router {router} loses {prefix} of node {node}: {loss:?}"));
            let result = self.check_loss(node, router, prefix, loss);
            self.judge(result);
        }
    }

    /// I9 and I10.
    fn check_loss(
        &self,
        node: usize,
        router: usize,
        prefix: Prefix,
        loss: Loss,
    ) -> Result<(), Violation> {
        let who = Who::Speaker(node);
        let Some(process) = self.processes.get(&who) else { return Ok(()) };
        let what = || format!("router {router} loses {prefix} of node {node} ({loss:?})");
        if process.excused.contains(&prefix) {
            return Ok(());
        }
        let is_away = process.core.is_none() || self.now < process.started_at + GRACE;
        if loss == Loss::TimeOver && is_away {
            return Ok(()); // Routes are not kept for ever.
        }
        let was_wanted = process.wanted_when_cut_off.contains(&(prefix, router));
        if !self.is_reachable(who) && was_wanted && loss != Loss::SessionEnded {
            return Err(broken("I9", format!("{}, and the API server is away", what())));
        }
        let since = self.truth.wanted_since(node, prefix, router);
        let is_long_wanted = since.is_some_and(|since| since + GRACE < self.now);
        if is_long_wanted && !self.settings_changed(node, router) {
            return Err(broken("I10", format!("{}, and it is wanted", what())));
        }
        Ok(())
    }

    /// I2, periodically: routes in a router that no node may announce.
    pub(crate) fn look(&mut self) {
        for node in 0..self.adjacencies.len() {
            if self.is_settled(node) {
                let process = self.processes.get_mut(&Who::Speaker(node));
                process.into_iter().for_each(|it| it.informed_at = self.now);
            }
        }
        let mut result = Ok(());
        for (node, adjacencies) in self.adjacencies.iter().enumerate() {
            let running = self.processes.get(&Who::Speaker(node));
            let running = running.is_some_and(|it| {
                it.core.is_some()
                    && it.started_at + RESTART_TIME + Duration::from_secs(10) < self.now
            });
            if !running || !self.is_settled(node) {
                continue;
            }
            for prefix in adjacencies.iter().flat_map(|it| it.routes.keys()) {
                let until = self.truth.allowed_until(*prefix);
                let is_over = until.is_none_or(|until| until + GRACE * 2 < self.now);
                if is_over && !prefix.to_string().starts_with("100.64.") {
                    result = Err(broken("I2", format!("node {node} still announces {prefix}")));
                }
            }
        }
        self.judge(result);
    }
}
