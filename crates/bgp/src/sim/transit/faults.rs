//! Faults, and changes by operators: another part of [`Network`].

use std::time::Duration;

use super::network::{Due, Network};
use super::topology::{filter, one_of, originated};
use fairway_seam::Clear;

impl Network {
    /// One fault happens, and another one soon.
    pub(super) fn draw_fault(&mut self) {
        let node = one_of(&mut self.rng, self.nodes.len());
        match one_of(&mut self.rng, 20) {
            0..=8 => {
                self.all[node].originated = originated(&mut self.rng, node, &self.all[node]);
                self.apply(node);
            }
            9..=11 => self.reset_one(),
            12 => self.restart(node),
            13..=15 => self.change_policy(node),
            16..=18 => {
                let how = [Clear::Hard, Clear::SoftIn, Clear::SoftOut, Clear::Soft];
                let how = how[one_of(&mut self.rng, 4)];
                let neighbour = self.any_neighbour(node);
                self.nodes[node].clear(self.now, neighbour, how);
                self.follow_up(node);
            }
            _ => {
                self.all[node].drained = !self.all[node].drained;
                self.apply(node);
            }
        }
        let after = Duration::from_millis(50 + self.rng.next_u64() % 400);
        self.schedule(after, Due::Chance);
    }

    fn any_neighbour(&mut self, node: usize) -> usize {
        let neighbours: Vec<usize> = self.all[node].neighbours.keys().copied().collect();
        neighbours[one_of(&mut self.rng, neighbours.len())]
    }

    fn apply(&mut self, node: usize) {
        self.nodes[node].apply(self.now, &self.all);
        self.follow_up(node);
    }

    fn change_policy(&mut self, node: usize) {
        let neighbour = self.any_neighbour(node);
        let (import, pass_on) = (filter(&mut self.rng), filter(&mut self.rng));
        let is_import = one_of(&mut self.rng, 2) == 0;
        if let Some(policy) = self.all[node].neighbours.get_mut(&neighbour) {
            if is_import {
                policy.import = import;
            } else {
                policy.pass_on = pass_on;
            }
        }
        self.apply(node);
    }

    fn reset_one(&mut self) {
        let open = (0..self.cables.len()).filter(|cable| !self.cables[*cable].is_closed);
        let open: Vec<usize> = open.collect();
        if !open.is_empty() {
            let cable = open[one_of(&mut self.rng, open.len())];
            self.reset(cable);
        }
    }

    /// A process ends without a NOTIFICATION, and another one starts a little later.
    fn restart(&mut self, node: usize) {
        if !self.nodes[node].is_running {
            return;
        }
        let cables = self.nodes[node].sockets.values().map(|socket| socket.cable);
        for cable in cables.collect::<Vec<_>>() {
            self.reset(cable);
        }
        self.nodes[node].stop();
        let run = self.nodes[node].run;
        let after = Duration::from_millis(self.rng.next_u64() % 3_000);
        self.schedule(after, Due::Start { node, run });
    }
}
