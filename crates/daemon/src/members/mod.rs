//! The members that share layer 2 addresses with this machine: sockets, keys and the clock around
//! [`Membership`].
//!
//! One task sends and receives heartbeats, and publishes who owns addresses. Decides nothing.

mod look;
mod options;

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use fairway_ground::{Abstention, Instant, MacAddress};
use fairway_layer2::{Fence, Member};
use fairway_members::heartbeat::ABSTENTIONS_MAX;
use fairway_members::{Heartbeat, Keys, MemberView, Membership, Sealer, Settings};
use fairway_seam::MemberStatus;
use nix::sys::socket::{setsockopt, sockopt};
use tokio::net::UdpSocket;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::AbortHandle;
use tracing::{error, info, warn};

use look::{Found, Look};
pub(crate) use options::{KeyFileError, MemberOptions, MemberTarget};

/// Octets of a datagram that are read: no heartbeat is longer.
const DATAGRAM_LENGTH_BYTES_MAX: usize = 1_500;
/// Datagrams that are read before the task does anything else.
const BURST_MAX: usize = 64;
/// Between attempts to open a port that another process has.
const OPEN_INTERVAL: Duration = Duration::from_secs(2);
/// Between clean-ups of what is kept of members that are gone.
const FORGET_INTERVAL: Duration = Duration::from_secs(60);
/// Readers that wait for a view.
const QUESTIONS_MAX: usize = 16;
/// Between looks for what an operator has to mend.
const CHECK_INTERVAL: Duration = Duration::from_secs(1);
/// How long this machine may have nothing to answer with before the log says so: it has just started, or an interface
/// is about to come back.
const IDLE_AFTER: Duration = Duration::from_secs(5);
/// Datagrams that may wait: some thousands, so that strangers who flood the port do not displace heartbeats soon.
const RECEIVE_BUFFER_BYTES: usize = 1 << 20;

/// What the members are at one moment.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct MembersState {
    /// The members that own addresses, by the names of their nodes, each with what it is no candidate for; `None` while
    /// this machine owns none because it does not know.
    pub(crate) owners: Option<BTreeMap<String, BTreeSet<Abstention>>>,
    /// The other members, by name.
    pub(crate) others: BTreeMap<String, Member>,
    /// Counts the times that a member came back that was taken for dead.
    pub(crate) heals: u64,
    /// Others own what was our own.
    has_left: bool,
}

/// What the task is told of this machine and of the others.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
struct NodeFacts {
    /// The others, where they are not named by options.
    targets: Option<BTreeSet<SocketAddr>>,
    /// The hardware addresses with which this machine answers.
    macs: BTreeSet<MacAddress>,
    /// It could answer for an address.
    can_answer: bool,
    /// What it is no candidate for.
    abstentions: BTreeSet<Abstention>,
    /// Others are to take over what it owns.
    is_leaving: bool,
}

/// The members, and this machine among them. Ends with its last owner.
#[derive(Debug)]
pub(crate) struct Members {
    state: watch::Receiver<MembersState>,
    told: watch::Sender<NodeFacts>,
    questions: mpsc::Sender<oneshot::Sender<Vec<MemberStatus>>>,
    task: AbortHandle,
}

impl Drop for Members {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Members {
    /// Joins the members that `options` name, as `node`. `incarnation` is higher than that of an earlier process
    /// (milliseconds of Unix time), `instance` differs from those of all others. `fence` is closed whenever the others
    /// may take this machine for dead.
    ///
    /// # Errors
    /// The key file cannot be used.
    pub(crate) fn start(
        node: &str,
        options: MemberOptions,
        incarnation: u64,
        instance: u64,
        fence: Fence,
    ) -> Result<Self, KeyFileError> {
        let keys = options.keys()?;
        let (publish, state) = watch::channel(MembersState::default());
        let (told, tells) = watch::channel(NodeFacts::default());
        let (questions, asked) = mpsc::channel(QUESTIONS_MAX);
        // The nodes of a cluster are not known yet.
        let expected = Some(options.targets.len()).filter(|count| *count > 0);
        let name = node.to_owned();
        let settings = Settings { name, incarnation, instance, expected, is_able: false };
        let start = tokio::time::Instant::now();
        let task = Task {
            start,
            membership: Membership::new(Instant::ZERO, settings),
            sealer: Sealer::new(keys.clone()),
            keys,
            key_file: options.key_file,
            listen: options.listen,
            named: options.targets,
            addresses: BTreeSet::new(),
            socket: None,
            is_port_taken: false,
            fence,
            publish,
            heals: 0,
            sources: BTreeMap::new(),
            obeyed: NodeFacts::default(),
            deaf: BTreeSet::new(),
            has_namesake: false,
            is_idle: false,
        };
        let task = tokio::spawn(task.run(tells, asked)).abort_handle();
        Ok(Self { state, told, questions, task })
    }

    /// The state, and its changes.
    pub(crate) fn states(&self) -> watch::Receiver<MembersState> {
        self.state.clone()
    }

    /// The addresses of the others, where they are not named by options.
    pub(crate) fn reach(&self, targets: BTreeSet<SocketAddr>) {
        self.tell(|told| told.targets = Some(targets));
    }

    /// The hardware addresses with which this machine answers, and whether it could answer for an address.
    pub(crate) fn answer_with(&self, macs: BTreeSet<MacAddress>, can_answer: bool) {
        self.tell(|told| (told.macs, told.can_answer) = (macs, can_answer));
    }

    /// What this machine is no candidate for.
    pub(crate) fn abstain(&self, abstentions: &BTreeSet<Abstention>) {
        self.tell(|told| told.abstentions.clone_from(abstentions));
    }

    /// Others are to take over what this machine owns; it answers until they do.
    pub(crate) fn leave(&self) {
        self.tell(|told| told.is_leaving = true);
    }

    /// This machine is in service again.
    pub(crate) fn come_back(&self) {
        self.tell(|told| told.is_leaving = false);
    }

    fn tell(&self, change: impl FnOnce(&mut NodeFacts)) {
        self.told.send_if_modified(|told| {
            let before = told.clone();
            change(told);
            *told != before
        });
    }

    /// Waits until others own what was our own.
    pub(crate) async fn left(&self) {
        let mut state = self.state.clone();
        // The task ends with the process.
        drop(state.wait_for(|it| it.has_left).await);
    }

    /// This machine, and the others by name.
    pub(crate) async fn view(&self) -> Vec<MemberStatus> {
        let (answer, view) = oneshot::channel();
        if self.questions.send(answer).await.is_err() {
            return Vec::new();
        }
        view.await.unwrap_or_default()
    }
}

struct Task {
    start: tokio::time::Instant,
    membership: Membership,
    sealer: Sealer,
    keys: Keys,
    key_file: PathBuf,
    listen: SocketAddr,
    /// Hosts by name or address.
    named: Vec<MemberTarget>,
    addresses: BTreeSet<SocketAddr>,
    socket: Option<UdpSocket>,
    is_port_taken: bool,
    fence: Fence,
    publish: watch::Sender<MembersState>,
    heals: u64,
    /// Where heartbeats of the members came from, by name: as many as there are members.
    sources: BTreeMap<String, SocketAddr>,
    obeyed: NodeFacts,
    /// Members of which the log says that they do not hear this machine.
    deaf: BTreeSet<String>,
    has_namesake: bool,
    /// The log says that this machine has nothing to answer with.
    is_idle: bool,
}

impl Task {
    async fn run(
        mut self,
        mut tells: watch::Receiver<NodeFacts>,
        mut questions: mpsc::Receiver<oneshot::Sender<Vec<MemberStatus>>>,
    ) {
        let mut buffer = vec![0; DATAGRAM_LENGTH_BYTES_MAX];
        let mut forget = tokio::time::interval(FORGET_INTERVAL);
        let mut look = Look::start(self.key_file.clone(), self.named.clone());
        let mut open = tokio::time::interval(OPEN_INTERVAL);
        let mut check = tokio::time::interval(CHECK_INTERVAL);
        loop {
            if let Some(heartbeat) = self.membership.tick(self.now()) {
                self.send(&heartbeat);
            }
            self.tell();
            let deadline = self.start + self.membership.next_deadline().since(Instant::ZERO);
            // Cancel-safe, each of them.
            tokio::select! {
                () = readable(self.socket.as_ref()) => self.receive(&mut buffer),
                () = tokio::time::sleep_until(deadline) => {}
                changed = tells.changed() => {
                    if changed.is_err() {
                        return;
                    }
                    let told = tells.borrow_and_update().clone();
                    self.obey(told);
                }
                // The reader may be gone.
                Some(answer) = questions.recv() => drop(answer.send(self.view())),
                _ = check.tick() => self.check(),
                _ = open.tick(), if self.socket.is_none() => self.open(),
                found = look.found() => match found {
                    Found::Keys(keys) => self.replace_keys(keys),
                    Found::Addresses(addresses) => self.addresses = addresses,
                },
                _ = forget.tick() => {
                    let known = self.membership.view();
                    self.sources.retain(|name, _| known.iter().any(|it| it.name == *name));
                }
            }
        }
    }

    fn now(&self) -> Instant {
        Instant::ZERO + self.start.elapsed()
    }

    fn obey(&mut self, told: NodeFacts) {
        let now = self.now();
        self.membership.set_macs(told.macs.iter().copied().collect());
        if let Some(targets) =
            told.targets.as_ref().filter(|it| Some(*it) != self.obeyed.targets.as_ref())
        {
            self.membership.expect(targets.len());
            self.addresses.clone_from(targets);
        }
        // One that is drained as it becomes able to answer is not to own anything in between.
        if told.is_leaving && !self.obeyed.is_leaving {
            self.membership.leave(now);
        }
        let fits = told.abstentions.len() <= ABSTENTIONS_MAX;
        if !fits && self.obeyed.abstentions.len() <= ABSTENTIONS_MAX {
            warn!(
                count = told.abstentions.len(),
                most = ABSTENTIONS_MAX,
                "more health checks fail, the service proxy does not deliver to more addresses, or more L2Advertisements \
                 are without an interface here, than heartbeats can tell: this machine owns no layer 2 address"
            );
        }
        self.membership.set_able(now, told.can_answer && fits);
        if fits {
            self.membership.abstain(now, &told.abstentions);
        }
        if self.obeyed.is_leaving && !told.is_leaving {
            self.membership.come_back(now);
        }
        self.obeyed = told;
    }

    /// Logs what an operator has to mend: nothing to answer with, two machines with one name, and a path that works
    /// one way.
    fn check(&mut self) {
        let now = self.now();
        let since = self.membership.own_view().since;
        let is_idle = !self.obeyed.can_answer && now.since(since) >= IDLE_AFTER;
        if is_idle && !self.is_idle {
            warn!(
                "this machine owns no layer 2 address: it has no interface to answer on or no right to \
                 (`fairway show l2`), or does not know its Services yet; other members own all addresses"
            );
        } else if self.is_idle && !is_idle {
            info!("this machine can own layer 2 addresses");
        }
        self.is_idle = is_idle;
        let has_namesake = self.membership.has_namesake(now);
        if has_namesake && !self.has_namesake {
            let name = self.membership.own_view().name;
            error!(
                name,
                option = "--node",
                "another machine has the same name: both answer for the same addresses; give each its own name"
            );
        }
        self.has_namesake = has_namesake;
        let deaf: BTreeSet<String> =
            self.membership.deaf(now).into_iter().map(str::to_owned).collect();
        for member in deaf.difference(&self.deaf) {
            let address = self.sources.get(member);
            warn!(
                member,
                ?address,
                listen = %self.listen,
                "a member does not hear the heartbeats of this machine: both may answer for the same addresses; \
                 check its firewall and its list of members"
            );
        }
        for member in self.deaf.difference(&deaf) {
            info!(member, "the member hears this machine, or is gone");
        }
        self.deaf = deaf;
    }

    fn open(&mut self) {
        let any_ipv4 = SocketAddr::new(Ipv4Addr::UNSPECIFIED.into(), self.listen.port());
        let is_any = self.listen.ip() == IpAddr::V6(Ipv6Addr::UNSPECIFIED);
        let opened = std::net::UdpSocket::bind(self.listen).or_else(|error| match is_any {
            // A kernel without IPv6; a port that is taken stays so.
            true if error.kind() != io::ErrorKind::AddrInUse => std::net::UdpSocket::bind(any_ipv4),
            _ => Err(error),
        });
        let opened = opened.and_then(|socket| {
            socket.set_nonblocking(true)?;
            // The kernel gives what `net.core.rmem_max` allows; with less, heartbeats arrive all the same.
            let _ = setsockopt(&socket, sockopt::RcvBuf, &RECEIVE_BUFFER_BYTES);
            UdpSocket::from_std(socket)
        });
        match opened {
            Ok(socket) => {
                info!(listen = %self.listen, "heartbeats of members");
                (self.socket, self.is_port_taken) = (Some(socket), false);
            }
            Err(error) if !self.is_port_taken => {
                self.is_port_taken = true;
                warn!(
                    listen = %self.listen,
                    option = "--member-listen",
                    %error,
                    "cannot open the port of members: this machine owns no layer 2 address until it can"
                );
            }
            Err(_) => {}
        }
    }

    fn receive(&mut self, buffer: &mut [u8]) {
        for _ in 0..BURST_MAX {
            let Some(socket) = &self.socket else { return };
            let (length, source) = match socket.try_recv_from(buffer) {
                Ok(received) => received,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                // An ICMP error of a member that is gone.
                Err(_) => continue,
            };
            // What is not sealed with our key is of nobody that we know.
            let content = self.keys.open(buffer.get(..length).unwrap_or_default());
            if let Some(heartbeat) = content.and_then(|it| Heartbeat::decode(&it)) {
                let now = self.now();
                if self.membership.receive(now, &heartbeat) {
                    let address = SocketAddr::new(source.ip().to_canonical(), source.port());
                    self.sources.insert(heartbeat.name, address);
                }
            }
        }
    }

    fn send(&mut self, heartbeat: &Heartbeat) {
        let Some(datagram) = self.sealer.seal(&heartbeat.encode()) else { return };
        let Some(socket) = &self.socket else { return };
        // A member has another address than the one that was looked up for it, while names are slow or out of date.
        let heard = self.membership.present().filter_map(|name| self.sources.get(name));
        let all: BTreeSet<&SocketAddr> = self.addresses.iter().chain(heard).collect();
        for address in all {
            // A full buffer loses it, and the next one follows.
            drop(socket.try_send_to(&datagram, *address));
        }
    }

    /// Keys are replaced while this runs.
    fn replace_keys(&mut self, keys: Keys) {
        if keys != self.keys {
            info!(file = %self.key_file.display(), "the keys of the members are other ones now");
            self.sealer.set_keys(keys.clone());
            self.keys = keys;
        }
    }

    fn view(&self) -> Vec<MemberStatus> {
        let now = self.now();
        let own = self.membership.own_view();
        let of = |it: MemberView| MemberStatus {
            address: self.sources.get(&it.name).copied(),
            state: it.state.word(),
            age: now.since(it.since),
            name: it.name,
        };
        [own].into_iter().chain(self.membership.view()).map(of).collect()
    }

    /// Publishes what changed, and moves the fence.
    fn tell(&mut self) {
        if self.membership.take_healed(self.now()) {
            self.heals = self.heals.wrapping_add(1);
        }
        let until = self.membership.answers_until();
        self.fence.close_at(self.start + until.since(Instant::ZERO));
        // Without a port nothing is heard, and others may own what would be our own.
        let owners = self.membership.owners().filter(|_| self.socket.is_some());
        let others = self.membership.macs().into_iter().map(|(name, macs)| {
            let address = self.sources.get(name).map(SocketAddr::ip);
            (name.to_owned(), Member { macs, address })
        });
        let others = others.collect();
        let state = MembersState {
            owners: owners.map(|all| {
                let abstentions = self.membership.abstentions();
                let of = |name| abstentions.get(name).copied().cloned().unwrap_or_default();
                all.into_iter().map(|name| (name.to_owned(), of(name))).collect()
            }),
            others,
            heals: self.heals,
            has_left: self.membership.has_left(),
        };
        self.publish.send_if_modified(|before| {
            let is_other = *before != state;
            *before = state;
            is_other
        });
    }
}

/// Waits for a datagram; for ever without a socket.
async fn readable(socket: Option<&UdpSocket>) {
    match socket {
        // An error is found by reading.
        Some(socket) => drop(socket.readable().await),
        None => std::future::pending().await,
    }
}
