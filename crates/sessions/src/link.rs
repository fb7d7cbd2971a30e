//! The link of an unnumbered neighbour: which router is at its other end.
//!
//! One task for each such neighbour drives [`Discovery`] and reports what it finds. An interface
//! may come, go and come back as another one of the same name.

use std::net::Ipv6Addr;
use std::time::Duration;

use fairway_netlink::{Machine, Scope, Watch};
use nix::errno::Errno;
use tokio::sync::mpsc;
use tokio::task::AbortHandle;
use tracing::{debug, info, warn};

use super::clock::Clock;
use super::icmpv6::{Icmpv6Socket, PACKET_LENGTH_BYTES_MAX, Received};
use super::link_state::{LinkState, LinkTrouble};
use super::news::{NetworkEvent, News};
use fairway_bgp::ndp::{Discovery, Message, Packet, router_advertisement};
use fairway_ground::{Instant, InterfaceName, PeerKey};

/// How long until a link that cannot be used is tried again, if no event reports a change: the socket may
/// have failed for a temporary reason.
const RETRY_WAIT: Duration = Duration::from_millis(500);

/// The task of a link; dropping it ends the task.
#[derive(Debug)]
pub(super) struct LinkWatch(AbortHandle);

impl LinkWatch {
    /// Starts watching `interface` for neighbour `key`; it reports to `events`.
    pub(super) fn start(
        key: PeerKey,
        interface: InterfaceName,
        seed: u64,
        events: mpsc::Sender<NetworkEvent>,
    ) -> Self {
        let reporter = Reporter { key, interface, events, state: LinkState::default() };
        Self(tokio::spawn(watch(reporter, seed)).abort_handle())
    }
}

impl Drop for LinkWatch {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Reports a change to the core.
struct Reporter {
    key: PeerKey,
    interface: InterfaceName,
    events: mpsc::Sender<NetworkEvent>,
    state: LinkState,
}

/// The core is gone, and the task is not needed any more.
struct Gone;

impl Reporter {
    async fn report(&mut self, state: LinkState) -> Result<(), Gone> {
        if self.state == state {
            return Ok(());
        }
        let (peer, interface) = (self.key, self.interface);
        match (&state.router, &state.trouble) {
            (Some((address, _)), _) if self.state.router != state.router => {
                info!(%peer, %interface, %address, "router discovered");
            }
            (_, Some(trouble)) if self.state.trouble.as_ref() != Some(trouble) => {
                warn!(%peer, %interface, %trouble, "cannot discover the neighbor; trying again");
            }
            (None, None) if self.state.router.is_some() => {
                info!(%peer, %interface, "router lost: its lifetime expired");
            }
            _ => {}
        }
        self.state = state.clone();
        let event = NetworkEvent { key: self.key, news: News::Link(state) };
        self.events.send(event).await.map_err(|_| Gone)
    }
}

async fn watch(mut reporter: Reporter, seed: u64) {
    let clock = Clock::start();
    let Ok(mut machine) = follow_machine(&mut reporter).await else { return };
    loop {
        let outcome = match Link::open(reporter.interface, &machine.snapshot()) {
            Ok(link) => link.run(clock, seed, &mut reporter, &mut machine).await,
            Err(trouble) => {
                reporter.report(LinkState { router: None, trouble: Some(trouble) }).await
            }
        };
        if outcome.is_err() {
            return;
        }
        // Whichever is first: the interface may be about to come up.
        let _ = tokio::time::timeout(RETRY_WAIT, machine.changed()).await;
    }
}

/// Follows the interfaces of the machine, once there is a socket for that.
async fn follow_machine(reporter: &mut Reporter) -> Result<Watch, Gone> {
    loop {
        let error = match Watch::open(Scope::default()) {
            Ok(machine) => return Ok(machine),
            Err(error) => error.to_string(),
        };
        let trouble = LinkTrouble::Interfaces(reporter.interface, error);
        reporter.report(LinkState { router: None, trouble: Some(trouble) }).await?;
        tokio::time::sleep(RETRY_WAIT).await;
    }
}

/// An interface that is up.
struct Link {
    interface: InterfaceName,
    index: u32,
    socket: Icmpv6Socket,
    own: Vec<Ipv6Addr>,
    /// The address of the interface on its link, where that is of the usual kind.
    link_layer_address: Option<[u8; 6]>,
}

impl Link {
    fn open(interface: InterfaceName, machine: &Machine) -> Result<Self, LinkTrouble> {
        let link = machine.link_named(interface.as_str());
        let link = link.ok_or(LinkTrouble::NoInterface(interface))?;
        let (index, link_layer_address) = (link.index, link.mac);
        let own: Vec<Ipv6Addr> = machine.link_local(index).collect();
        if own.is_empty() {
            return Err(LinkTrouble::NoAddress(interface));
        }
        let socket = Icmpv6Socket::open(interface, index).map_err(|error| {
            match error.raw_os_error().map(Errno::from_raw) {
                Some(Errno::EPERM | Errno::EACCES) => LinkTrouble::NotPermitted(interface),
                _ => LinkTrouble::Socket(interface, error.to_string()),
            }
        })?;
        Ok(Self { interface, index, socket, own, link_layer_address })
    }

    /// Handles a change of the interface; an error says why nothing can run over it any more.
    fn follow(&mut self, machine: &Machine) -> Result<(), LinkTrouble> {
        let link = machine.link_named(self.interface.as_str());
        let same = link.filter(|link| link.index == self.index);
        let link = same.ok_or(LinkTrouble::NoInterface(self.interface))?;
        self.link_layer_address = link.mac;
        self.own = machine.link_local(self.index).collect();
        if self.own.is_empty() { Err(LinkTrouble::NoAddress(self.interface)) } else { Ok(()) }
    }

    /// Sends and listens until the interface has changed or is gone.
    async fn run(
        mut self,
        clock: Clock,
        seed: u64,
        reporter: &mut Reporter,
        machine: &mut Watch,
    ) -> Result<(), Gone> {
        let mut discovery = Discovery::new(clock.now(), seed.wrapping_add(self.index.into()));
        let mut buffer = vec![0; PACKET_LENGTH_BYTES_MAX];
        let mut trouble = None;
        let mut has_changed = false;
        loop {
            let now = clock.now();
            if std::mem::take(&mut has_changed)
                && let Err(gone) = self.follow(&machine.snapshot())
            {
                return reporter.report(LinkState { router: None, trouble: Some(gone) }).await;
            }
            if discovery.is_due(now) {
                trouble = self.advertise(now, &mut discovery);
            }
            let router = discovery.neighbour(now).map(|address| (address, self.index));
            reporter.report(LinkState { router, trouble: trouble.clone() }).await?;
            let wake_at = discovery.next_deadline(now);
            tokio::select! {
                received = self.socket.receive(&mut buffer) => match received {
                    Ok(received) => self.hear(clock.now(), received, &buffer, &mut discovery),
                    Err(error) => {
                        debug!(interface = %self.interface, %error, "cannot receive router advertisements");
                        return Ok(());
                    }
                },
                _ = machine.changed() => has_changed = true,
                () = tokio::time::sleep_until(clock.at(wake_at)) => {}
            }
        }
    }

    fn advertise(&self, now: Instant, discovery: &mut Discovery) -> Option<LinkTrouble> {
        match self.socket.send(&router_advertisement(self.link_layer_address)) {
            Ok(()) => {
                discovery.sent(now);
                None
            }
            Err(error) => {
                discovery.failed(now);
                Some(LinkTrouble::Socket(self.interface, error.to_string()))
            }
        }
    }

    fn hear(&self, now: Instant, received: Received, buffer: &[u8], discovery: &mut Discovery) {
        let Received { source, hop_limit, length } = received;
        if self.own.contains(&source) {
            return; // Ours, or that of another daemon of this machine.
        }
        let bytes = buffer.get(..length).unwrap_or_default();
        match Message::parse(Packet { source, hop_limit, bytes }) {
            Ok(message) => discovery.hear(now, message),
            Err(fault) => {
                debug!(interface = %self.interface, %source, %fault, "router discovery: dropped");
            }
        }
    }
}
