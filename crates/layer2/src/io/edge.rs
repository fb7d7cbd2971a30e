//! The task that owns the responder: frames, links, addresses and time in, frames out.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::net::IpAddr;
use std::time::Duration;

use fairway_ground::Instant;
use fairway_netlink::{Address, Machine, Scope, Watch};
use fairway_seam::{AddressAnswer, Layer2View};
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::AbortHandle;
use tracing::{info, warn};

use super::bound::{Bound, interface_for};
use super::fence::Fence;
use super::groups::{Group, Groups};
use super::interface::{Interface, readable};
use super::kernel::{answers_as_well, forwards_ipv6};
use super::orders::{Member, Orders, Reach};
use super::socket::{FRAME_LENGTH_BYTES_MAX, FrameSocket};
use crate::ndp::solicited_node;
use crate::responder::{Conflict, Responder, Terms};
use crate::segment::{Excluded, Segment, Unsuited, segment};
use crate::witness::{Finding, Owner, Place, Standby, Witness};

/// Readers that wait for a view.
const QUESTIONS_MAX: usize = 16;
/// Between lines of the log about foreign claims: a hostile host can claim all addresses at once. The lines name
/// how many were left out, and `show l2` has each.
const CLAIMS_INTERVAL: Duration = Duration::from_millis(100);
/// Between looks at a fence that is closed.
const FENCED_INTERVAL: Duration = Duration::from_millis(20);
/// Between attempts to open what could not be opened: for lack of memory, or of a right that is granted late.
const RETRY_INTERVAL: Duration = Duration::from_secs(5);

/// The responder of this machine. Ends with its last owner.
#[derive(Debug)]
pub struct Edge {
    addresses: watch::Sender<BTreeMap<IpAddr, Terms>>,
    questions: mpsc::Sender<oneshot::Sender<Layer2View>>,
    orders: watch::Sender<Orders>,
    changes: watch::Receiver<u64>,
    reach: watch::Receiver<Reach>,
    task: AbortHandle,
}

impl Drop for Edge {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Edge {
    /// Answers on the interfaces of the network namespace of this thread, without those of `excluded`, while
    /// `fence` is open.
    ///
    /// Must be called inside a tokio runtime.
    ///
    /// # Errors
    /// The links of the machine cannot be read.
    pub fn start(
        excluded: Excluded,
        seed: u64,
        refresh: Option<Duration>,
        fence: Fence,
    ) -> io::Result<Self> {
        let watch = Watch::open(Scope::default())?;
        let (addresses, wanted) = watch::channel(BTreeMap::new());
        let (questions, asked) = mpsc::channel(QUESTIONS_MAX);
        let (changed, changes) = watch::channel(0);
        let (orders, ordered) = watch::channel(Orders::default());
        let (tell_reach, reach) = watch::channel(Reach::default());
        let task = Task {
            start: tokio::time::Instant::now(),
            responder: Responder::new(seed, refresh),
            witness: Witness::new(seed),
            excluded,
            machine: watch.snapshot(),
            interfaces: BTreeMap::new(),
            groups: Groups::default(),
            names: BTreeMap::new(),
            unsuited: BTreeMap::new(),
            troubles: BTreeMap::new(),
            retry: None,
            changed,
            tell_reach,
            fence,
            obeyed: Orders::default(),
            binds: false,
            bound: Bound::default(),
            lacks_right: false,
            claims_said_at: None,
            claims_unsaid: 0,
        };
        let task = tokio::spawn(task.run(watch, wanted, asked, ordered)).abort_handle();
        Ok(Self { addresses, questions, orders, changes, reach, task })
    }

    /// The addresses that this machine owns from now on.
    pub fn own(&self, addresses: BTreeMap<IpAddr, Terms>) {
        self.addresses.send_if_modified(|before| {
            let is_other = *before != addresses;
            *before = addresses;
            is_other
        });
    }

    /// The other members, by name: what they say is no conflict.
    pub fn know_members(&self, members: &BTreeMap<String, Member>) {
        self.orders.send_if_modified(|orders| {
            let is_other = orders.members != *members;
            orders.members.clone_from(members);
            is_other
        });
    }

    /// The addresses of other members that this machine would own next: it asks for them now and then.
    pub fn check(&self, checks: BTreeMap<IpAddr, Standby>) {
        self.orders.send_if_modified(|orders| {
            let is_other = orders.checks != checks;
            orders.checks = checks;
            is_other
        });
    }

    /// Announces all addresses again, as after a take-over: a machine is back that may have owned them.
    pub fn announce_again(&self) {
        self.orders.send_modify(|orders| {
            orders.announcements = orders.announcements.wrapping_add(1);
        });
    }

    /// Others take over what this machine owns, or no longer do: it announces nothing more, and answers for an
    /// address until its next owner announces it.
    pub fn hand_over(&self, is_handing_over: bool) {
        self.orders.send_modify(|orders| orders.is_handing_over = is_handing_over);
    }

    /// With what this machine can answer, and its changes.
    pub fn reach(&self) -> watch::Receiver<Reach> {
        self.reach.clone()
    }

    /// Waits until something other than a counter differs from what it was at the change of number `seen`;
    /// returns the number of that change. Never returns when the task has ended. Cancel-safe.
    pub async fn changed(&self, seen: u64) -> u64 {
        let mut changes = self.changes.clone();
        match changes.wait_for(|number| *number != seen).await {
            Ok(number) => *number,
            Err(_) => std::future::pending().await,
        }
    }

    /// What is answered now; nothing when the task has ended.
    pub async fn view(&self) -> Layer2View {
        let (answer, view) = oneshot::channel();
        if self.questions.send(answer).await.is_err() {
            return Layer2View::default();
        }
        view.await.unwrap_or_default()
    }
}

struct Task {
    start: tokio::time::Instant,
    responder: Responder,
    witness: Witness,
    excluded: Excluded,
    machine: Machine,
    interfaces: BTreeMap<u32, Interface>,
    groups: Groups,
    names: BTreeMap<u32, String>,
    unsuited: BTreeMap<String, Unsuited>,
    troubles: BTreeMap<String, String>,
    /// When to try again what has failed.
    retry: Option<Instant>,
    /// Counts changes.
    changed: watch::Sender<u64>,
    tell_reach: watch::Sender<Reach>,
    fence: Fence,
    obeyed: Orders,
    /// Addresses are to be on interfaces, and those that are.
    binds: bool,
    bound: Bound,
    /// There is no right to open packet sockets.
    lacks_right: bool,
    claims_said_at: Option<Instant>,
    claims_unsaid: u64,
}

impl Task {
    async fn run(
        mut self,
        mut watch: Watch,
        mut wanted: watch::Receiver<BTreeMap<IpAddr, Terms>>,
        mut questions: mpsc::Receiver<oneshot::Sender<Layer2View>>,
        mut orders: watch::Receiver<Orders>,
    ) {
        let mut buffer = vec![0; FRAME_LENGTH_BYTES_MAX];
        self.look_at_links();
        self.update_sockets();
        loop {
            self.bind();
            self.transmit();
            let sending = match self.fence.is_open() {
                true => {
                    let all = [
                        self.responder.next_deadline(),
                        self.witness.next_deadline(),
                        self.bound.next_deadline(),
                    ];
                    all.into_iter().flatten().min()
                }
                // What is due is kept until then.
                false => Some(self.now() + FENCED_INTERVAL),
            };
            let deadline = [sending, self.retry].into_iter().flatten().min();
            let deadline = deadline.map(|it| self.start + it.since(Instant::ZERO));
            let interfaces = &self.interfaces;
            // Cancel-safe, each of them.
            tokio::select! {
                () = readable(interfaces) => self.receive(&mut buffer),
                changed = wanted.changed() => {
                    if changed.is_err() {
                        return;
                    }
                    self.follow_addresses(&mut wanted);
                }
                _ = watch.changed() => {
                    self.machine = watch.snapshot();
                    self.look_at_links();
                    self.update_sockets();
                }
                Ok(()) = orders.changed() => {
                    // What is no longer owned is not announced again.
                    if wanted.has_changed().unwrap_or(false) {
                        self.follow_addresses(&mut wanted);
                    }
                    let orders = orders.borrow_and_update().clone();
                    self.obey(orders);
                }
                Some(answer) = questions.recv() => {
                    // Who has just handed addresses over reads what came of them.
                    if wanted.has_changed().unwrap_or(false) {
                        self.follow_addresses(&mut wanted);
                    }
                    // The reader may be gone.
                    drop(answer.send(self.view()));
                }
                () = at(deadline) => {
                    if self.retry.is_some_and(|it| it <= self.now()) {
                        self.update_sockets();
                    }
                }
            }
        }
    }

    fn now(&self) -> Instant {
        Instant::ZERO + self.start.elapsed()
    }

    fn obey(&mut self, orders: Orders) {
        let has_other_members = orders.members != self.obeyed.members;
        if has_other_members {
            let macs = orders.members.values().flat_map(|it| &it.macs);
            self.responder.set_members(macs.copied().collect());
        }
        let has_other_checks = orders.checks != self.obeyed.checks;
        if has_other_checks {
            self.witness.set_checks(self.now(), orders.checks.clone());
        }
        self.responder.hand_over(orders.is_handing_over);
        if orders.announcements != self.obeyed.announcements {
            self.responder.announce_all_again();
        }
        self.obeyed = orders;
        if has_other_members {
            self.look_for_members();
        }
        if has_other_members || has_other_checks {
            self.update_sockets();
        }
    }

    /// On which links the other members are: those where the address at which they were heard needs no router.
    fn look_for_members(&mut self) {
        let on_link = |index: &u32, member: &Member| {
            let networks = self.machine.addresses_of(*index).iter().filter_map(Address::network);
            let mut networks = networks.filter(|it| it.prefix_len() < it.max_prefix_len());
            member.address.is_some_and(|address| networks.any(|it| it.contains(&address)))
        };
        let of = |(name, member): (&String, &Member)| {
            let interfaces = self.names.keys().filter(|index| on_link(index, member)).copied();
            (name.clone(), Owner { macs: member.macs.clone(), interfaces: interfaces.collect() })
        };
        let owners = self.obeyed.members.iter().map(of).collect();
        self.witness.set_owners(owners);
    }

    fn follow_addresses(&mut self, wanted: &mut watch::Receiver<BTreeMap<IpAddr, Terms>>) {
        let addresses = wanted.borrow_and_update().clone();
        let now = self.now();
        self.binds = addresses.values().any(|it| it.bind);
        self.responder.set_addresses(now, addresses);
        self.update_sockets();
    }

    /// Which interfaces can be answered on, from what the kernel says of them.
    fn look_at_links(&mut self) {
        let mut segments: Vec<Segment> = Vec::new();
        let mut unsuited = BTreeMap::new();
        for link in self.machine.links() {
            match segment(&self.machine, link, &self.excluded, forwards_ipv6(&link.name)) {
                Ok(segment) => segments.push(segment),
                Err(reason) => {
                    unsuited.insert(link.name.clone(), reason);
                }
            }
        }
        let names: BTreeMap<u32, String> =
            segments.iter().map(|it| (it.index, it.name.clone())).collect();
        if names != self.names {
            let interfaces: Vec<&str> = names.values().map(String::as_str).collect();
            info!(?interfaces, "interfaces that can be answered on");
        }
        let lacks_right =
            FrameSocket::open().is_err_and(|error| error.kind() == io::ErrorKind::PermissionDenied);
        if lacks_right && !self.lacks_right {
            warn!("cannot open packet sockets: the capability NET_RAW is missing");
        }
        self.lacks_right = lacks_right;
        let reach = Reach {
            macs: segments.iter().map(|it| it.mac).collect(),
            interfaces: segments.iter().flat_map(Segment::names).map(str::to_owned).collect(),
            can_answer: !segments.is_empty() && !lacks_right,
        };
        self.tell_reach.send_if_modified(|before| {
            let is_other = *before != reach;
            *before = reach;
            is_other
        });
        self.names = names;
        self.unsuited = unsuited;
        let place = |segment: &Segment| Place {
            segment: segment.clone(),
            link_local: self.machine.link_local(segment.index).next(),
        };
        self.witness.set_places(segments.iter().map(place).collect());
        self.responder.set_segments(segments);
        self.look_for_members();
    }

    /// Sockets, filters and groups for what is answered now. Before anything is announced, so that the
    /// questions that follow arrive.
    fn update_sockets(&mut self) {
        let mut wanted = self.responder.wanted();
        self.witness.add_wanted(&mut wanted);
        let mut troubles = BTreeMap::new();
        self.interfaces.retain(|index, _| wanted.contains_key(index));
        let mut groups: BTreeSet<Group> = BTreeSet::new();
        for (index, wanted) in wanted {
            groups.extend(wanted.ipv6.iter().map(|it| (index, solicited_node(*it))));
            let name = self.name(index);
            let mut unbound = wanted.ipv4.clone();
            unbound.retain(|it| !self.bound.has((*it).into()));
            let as_well = answers_as_well(&self.machine, &name, index, &unbound);
            troubles.extend(as_well.map(|it| (name, it)));
            let interface = self.interfaces.entry(index).or_insert_with(|| Interface::new(index));
            if let Err(error) = interface.receive_only(wanted) {
                let right = match error.kind() {
                    io::ErrorKind::PermissionDenied => " (the capability NET_RAW is missing)",
                    _ => "",
                };
                troubles.insert(self.name(index), format!("cannot receive frames: {error}{right}"));
            }
        }
        for ((index, group), error) in self.groups.become_members(&groups) {
            let text = format!("cannot join {group} for neighbor solicitations: {error}");
            troubles.entry(self.name(index)).or_insert(text);
        }
        for (interface, trouble) in &troubles {
            if self.troubles.get(interface) != Some(trouble) {
                warn!(interface, trouble, "layer 2 does not work as it should");
            }
        }
        let now = self.now();
        self.retry = (!troubles.is_empty()).then(|| now + RETRY_INTERVAL);
        self.troubles = troubles;
        self.changed.send_modify(|number| *number = number.wrapping_add(1));
    }

    /// Puts owned addresses on interfaces, and takes away what is no longer owned.
    fn bind(&mut self) {
        if !self.binds && self.bound.is_empty() {
            return;
        }
        let is_open = self.fence.is_open();
        let to_bind = self.responder.to_bind().filter(|_| is_open);
        let wanted = to_bind.filter_map(|(address, on)| {
            Some((address, interface_for(&self.machine, address, &on)?))
        });
        let wanted = wanted.collect();
        self.bound.follow(self.now(), wanted, &self.machine);
    }

    fn name(&self, index: u32) -> String {
        self.names.get(&index).cloned().unwrap_or_else(|| index.to_string())
    }

    fn receive(&mut self, buffer: &mut [u8]) {
        let now = self.now();
        for (index, interface) in &mut self.interfaces {
            interface.serve(buffer, |frame| match self.fence.is_open() {
                true => {
                    self.witness.receive(frame);
                    self.responder.receive(now, *index, frame)
                }
                // It may have waited while this process did not run, and others own the address now.
                false => Vec::new(),
            });
        }
        let mut has_conflict = false;
        while let Some(conflict) = self.responder.poll_conflict() {
            has_conflict = true;
            if self.claims_said_at.is_some_and(|at| now.since(at) < CLAIMS_INTERVAL) {
                self.claims_unsaid = self.claims_unsaid.saturating_add(1);
                continue;
            }
            self.claims_said_at = Some(now);
            let others = std::mem::take(&mut self.claims_unsaid);
            let Conflict { address, interface, mac } = conflict;
            warn!(%address, interface, %mac, others, "another host claims an address that this node owns; announced it again");
        }
        if has_conflict {
            self.changed.send_modify(|number| *number = number.wrapping_add(1));
        }
    }

    fn transmit(&mut self) {
        let now = self.now();
        while self.fence.is_open()
            && let Some((index, frames)) = self.responder.poll_transmit(now)
        {
            if let Some(interface) = self.interfaces.get(&index) {
                interface.send(&frames);
            }
        }
        while self.fence.is_open()
            && let Some((index, question)) = self.witness.poll_question(now)
        {
            if let Some(interface) = self.interfaces.get(&index) {
                interface.send(&[question]);
            }
        }
        self.log_checks();
    }

    /// One line for the failures and one for the recoveries: all addresses of an owner often fail together.
    fn log_checks(&mut self) {
        let findings = std::iter::from_fn(|| self.witness.poll_finding());
        let (well, failed): (Vec<Finding>, Vec<Finding>) =
            findings.partition(|it| it.answer == AddressAnswer::Owner);
        if let Some((Finding { address, owner, answer }, others)) = failed.split_first() {
            let others = others.len();
            warn!(%address, owner, %answer, others, "asked for an address that another member owns");
        }
        if let Some((Finding { address, owner, .. }, others)) = well.split_first() {
            let others = others.len();
            info!(%address, owner, others, "the owner of the address answers for it again");
        }
        if !(well.is_empty() && failed.is_empty()) {
            self.changed.send_modify(|number| *number = number.wrapping_add(1));
        }
    }

    fn view(&self) -> Layer2View {
        let text = |(name, reason): (&String, &Unsuited)| (name.clone(), reason.to_string());
        let mut addresses = self.responder.view(self.now());
        for (address, it) in &mut addresses {
            it.is_bound = self.bound.has(*address);
            it.why_not_bound = self.bound.refused().get(address).cloned();
        }
        Layer2View {
            addresses,
            checks: self.witness.view(self.now()),
            unsuited: self.unsuited.iter().map(text).collect(),
            troubles: self.troubles.clone(),
        }
    }
}

async fn at(deadline: Option<tokio::time::Instant>) {
    match deadline {
        Some(deadline) => tokio::time::sleep_until(deadline).await,
        None => std::future::pending().await,
    }
}
