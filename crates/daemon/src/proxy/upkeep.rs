//! The kernel as it really is: what others removed, connections of Pods that leave, what kube-proxy has left.

use std::collections::BTreeSet;

use fairway_dataplane::{kube_proxy_addresses, remove_kube_proxy};
use fairway_proxy::{Kernel, RealServerPlace};
use tracing::{info, warn};

use super::{Proxy, take_over};

impl Proxy {
    /// Reads the kernel: what others changed is mended.
    pub(super) fn audit(&mut self) {
        self.begun = Some(self.clock.now().monotonic);
        self.rounds.is_full = true;
        self.follow_place();
        self.observe();
    }

    pub(super) fn observe(&mut self) {
        self.has_read = true;
        match self.data_path.observe() {
            Ok(kernel) => {
                self.is_observed = true;
                self.reported.clear();
                self.report_repairs(&kernel);
                self.reconciler.observe(kernel, self.planner.wanted());
                self.telling.doubt_all(self.planner.wanted());
                self.adopt();
            }
            Err(error) => {
                self.is_observed = false;
                self.say(error.to_string());
            }
        }
    }

    /// What kube-proxy has left is ours.
    fn adopt(&mut self) {
        if !self.is_taking_over {
            return;
        }
        match kube_proxy_addresses() {
            Ok(theirs) => self.reconciler.adopt(&theirs, self.planner.wanted()),
            // What is not adopted counts as another program's: that is no answer to anybody.
            Err(error) => {
                self.is_observed = false;
                self.say(error.to_string());
            }
        }
    }

    /// Once everything is in the kernel that Services need, what kube-proxy has left may go.
    pub(super) fn finish_take_over(&mut self) {
        if !self.is_taking_over || !self.is_complete {
            return;
        }
        if self.reconciler.faults().next().is_some() {
            self.say(
                "what kube-proxy has left stays until the kernel has taken everything; `fairway show proxy` says what it \
                 has refused"
                    .to_owned(),
            );
            return;
        }
        match remove_kube_proxy() {
            Ok(removed) => {
                self.is_taking_over = false;
                take_over::remove_rules();
                let removed = match removed.is_empty() {
                    true => "its rules".to_owned(),
                    false => removed.join(", "),
                };
                info!("this node is taken over from kube-proxy; removed: {removed}");
            }
            Err(error) => self.say(error.to_string()),
        }
    }

    /// Says what of ours something else has removed.
    fn report_repairs(&mut self, kernel: &Kernel) {
        let believed = self.reconciler.kernel();
        let wanted = self.planner.wanted();
        let is_lost = |at: &&_| wanted.entries.contains_key(at) && !kernel.servers.contains_key(at);
        let servers = believed.servers.keys().filter(is_lost).count();
        let addresses = believed.bound_addresses.difference(&kernel.bound_addresses);
        let addresses = addresses.filter(|it| wanted.bound_addresses.contains(it)).count();
        let mut repairs = self.data_path.take_repairs();
        if servers > 0 {
            repairs.push(format!("{servers} virtual servers"));
        }
        if addresses > 0 {
            repairs.push(format!("{addresses} addresses"));
        }
        if !repairs.is_empty() {
            self.rounds.repairs = self.rounds.repairs.saturating_add(1);
            warn!(
                "something else had removed or changed, and Fairway makes again: {}",
                repairs.join(", ")
            );
        }
    }

    pub(super) fn count_connections(&mut self) {
        let leaving: BTreeSet<RealServerPlace> = self.reconciler.draining().collect();
        if leaving.is_empty() {
            return;
        }
        match self.data_path.idle(&leaving) {
            Ok(idle) => self.reconciler.observe_idle(idle),
            Err(error) => self.say(error.to_string()),
        }
    }
}
