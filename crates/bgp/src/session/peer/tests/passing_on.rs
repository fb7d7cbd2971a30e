//! Five neighbours around one speaker: whatever happened before, each is sent what it would be sent over
//! a new session, and the RIB holds what would be learned over new sessions. With some of them several
//! paths to a prefix are exchanged, in one direction or both.

mod drawn;

use std::num::NonZeroU8;

use super::*;
use crate::example;
use crate::rib::{Importer, Route, Rulings};
use crate::session;
use crate::sim::tests::seeds;
use crate::speaker::{self, PeerAction, Report, Speaker};
use crate::wire::announce::{AttributeBlock, announcement, withdrawal};
use crate::wire::attribute::code;
use crate::wire::{AddPathOffer, Capability, Framing, RouteRefresh, Update, UpdateContext};
use fairway_ground::{
    AddPath, AsPath, ClientKind, Community, ImportPolicy, MaximumPrefixes, NextHop, Nlri, PathId,
    PeerKey, PrefixFilter, PrefixRange, RemoteAs, Rng, RoaPayload,
};
use fairway_rpki::{PayloadChange, Payloads};
use fairway_seam::{
    AdvertisedScope, Clear, Desired, DrainState, Origin, PathAttributes, UnknownAttribute,
};

const OUR_ASN: u32 = 65_001;
const PEERS: usize = 5;
/// What happens in one history.
const EVENTS: u64 = 200;

type Table = BTreeMap<Nlri, PathAttributes>;

/// The far end of one neighbour: announces what the story wants, and keeps what it receives.
#[derive(Default)]
struct Far {
    /// What it agreed on with us.
    add_path: AddPath,
    /// What it announces, over every session.
    said: Table,
    told: Table,
    /// What it received before a refresh began, and not since (RFC 7313).
    stale: BTreeSet<Nlri>,
    framing: Framing,
    /// Bytes on their way to us.
    sent: BytesMut,
    /// Bytes of ours that its socket took and that have not arrived.
    on_the_way: Option<(ConnectionId, BytesMut)>,
}

struct Hub {
    seed: u64,
    now: Instant,
    rng: Rng,
    speaker: Speaker,
    /// What is desired, of all neighbours.
    configs: Vec<PeerConfig>,
    originated: Vec<DesiredRoute>,
    /// What the RPKI cache says.
    payloads: Payloads,
    drain: DrainState,
    generation: u64,
    far: Vec<Far>,
    end: Connected,
}

/// Peers 2 and 4 are in our system, the others in others. The seed decides which of them exchange
/// several paths, and in which directions.
fn hub_config(seed: u64, number: usize) -> PeerConfig {
    let number = u8::try_from(number).unwrap();
    let add_path = AddPath {
        send: NonZeroU8::new(2).filter(|_| seed >> (2 * number) & 1 != 0),
        receive: seed >> (2 * number) & 2 != 0,
    };
    let remote_asn = [65_002, 65_003, OUR_ASN, 65_004, OUR_ASN][usize::from(number)];
    let key = PeerKey::from(std::net::IpAddr::from([192, 0, 2, number + 2]));
    let pass_on = PrefixFilter::Everything;
    // Half of them support the marks around a refresh.
    let enhanced_refresh = (seed + u64::from(number)).is_multiple_of(2);
    // A third of them are clients.
    let kind = if remote_asn == OUR_ASN { ClientKind::Reflector } else { ClientKind::RouteServer };
    let client = Some(kind).filter(|_| (seed / 2 + u64::from(number)).is_multiple_of(3));
    let rest = config(OUR_ASN, remote_asn, 1);
    // A quarter have rules, in one direction or in both.
    let ruled = |it: u64| (seed / 6 + u64::from(number) + it).is_multiple_of(4);
    let rules = |is_ruled, seed| if is_ruled { example::rules(seed) } else { Arc::default() };
    let import = ImportPolicy { rules: rules(ruled(0), seed), ..rest.import };
    let pass_on_rules = rules(ruled(seed % 2), seed / 2);
    PeerConfig { key, pass_on, pass_on_rules, add_path, enhanced_refresh, client, import, ..rest }
}

fn remote_asn(config: &PeerConfig) -> Asn {
    let RemoteAs::Asn(asn) = config.remote_as else { panic!("each has its own") };
    asn
}

fn speak_up(config: &PeerConfig) -> Vec<u8> {
    let both_ways =
        |family: AddressFamily| AddPathOffer { family: family.into(), receive: true, send: true };
    let open = Open {
        asn: remote_asn(config).get(),
        hold_time: config.hold_time,
        router_id: config.key.to_string().parse().unwrap(),
        capabilities: vec![
            Capability::Multiprotocol(AddressFamily::Ipv4Unicast.into()),
            Capability::Multiprotocol(AddressFamily::Ipv6Unicast.into()),
            Capability::RouteRefresh,
            Capability::EnhancedRouteRefresh,
            Capability::FourOctetAs(remote_asn(config).get()),
            Capability::AddPath(AddressFamily::ALL.into_iter().map(both_ways).collect()),
        ],
    };
    [open.encode(), keepalive()].concat()
}

fn announced(nlri: Nlri, path_ids: bool, attributes: &PathAttributes) -> BytesMut {
    let block = AttributeBlock::encode(attributes, true).unwrap();
    let mut bytes = BytesMut::new();
    let family = nlri.prefix.family();
    announcement(family, path_ids, &block, &mut BTreeSet::from([nlri]), &mut bytes);
    bytes
}

impl Far {
    /// Reads what was sent, and answers what has to be answered.
    fn hear(&mut self, bytes: &[u8], kind: fairway_ground::PeerKind) {
        self.framing.push(bytes);
        while let Some(message) = self.framing.next_message().unwrap() {
            match message.kind {
                MessageType::Update => {
                    let add_path = match self.add_path.send {
                        Some(_) => FamilySet::BOTH,
                        None => FamilySet::EMPTY,
                    };
                    let context = UpdateContext { add_path, ..UpdateContext::new(kind) };
                    let update = Update::parse(&message.body, context).unwrap();
                    assert_eq!(update.faults, []);
                    for nlri in update.withdrawn {
                        assert!(self.told.remove(&nlri).is_some(), "withdrawn for nothing");
                        self.stale.remove(&nlri);
                    }
                    for group in update.announced {
                        for nlri in &group.prefixes {
                            self.stale.remove(nlri);
                        }
                        let one = |nlri| (nlri, (*group.attributes).clone());
                        self.told.extend(group.prefixes.into_iter().map(one));
                    }
                }
                MessageType::RouteRefresh => {
                    let refresh = RouteRefresh::parse(&message.body).unwrap();
                    let family = refresh.family.family();
                    let concerns = |prefix: &Prefix| Some(prefix.family()) == family;
                    match refresh.subtype {
                        RouteRefresh::REQUEST => self.say_all(concerns),
                        RouteRefresh::BEGIN => {
                            let told = self.told.keys().filter(|nlri| concerns(&nlri.prefix));
                            self.stale.extend(told);
                        }
                        _ => {
                            let Self { told, stale, .. } = self;
                            told.retain(|nlri, _| !concerns(&nlri.prefix) || !stale.contains(nlri));
                            stale.retain(|nlri| !concerns(&nlri.prefix));
                        }
                    }
                }
                _ => {}
            }
        }
    }

    fn say_all(&mut self, wanted: impl Fn(&Prefix) -> bool) {
        for (nlri, attributes) in self.said.iter().filter(|(nlri, _)| wanted(&nlri.prefix)) {
            self.sent.extend_from_slice(&announced(*nlri, self.add_path.receive, attributes));
        }
    }

    fn hang_up(&mut self) {
        self.told.clear();
        self.stale.clear();
        self.sent.clear();
        self.on_the_way = None;
        self.framing = Framing::default();
    }
}

impl Hub {
    fn new(seed: u64) -> Self {
        let far = |number| Far { add_path: hub_config(seed, number).add_path, ..Far::default() };
        let mut hub = Self {
            seed,
            now: Instant::ZERO,
            rng: Rng::seeded(seed),
            speaker: Speaker::new(Instant::ZERO, seed, None),
            configs: (0..PEERS).map(|number| hub_config(seed, number)).collect(),
            originated: Vec::new(),
            payloads: Payloads::default(),
            drain: DrainState::default(),
            generation: 0,
            far: (0..PEERS).map(far).collect(),
            end: Connected {
                networks: vec!["192.0.2.0/24".parse().unwrap(), "2001:db8::/64".parse().unwrap()],
                ..ends(1)
            },
        };
        hub.apply();
        hub
    }

    /// The ends of a session with a neighbour. Each has another address of ours.
    fn end_of(&self, number: usize) -> Connected {
        let mut end = self.end.clone();
        let address = std::net::Ipv4Addr::from([192, 0, 2, u8::try_from(101 + number).unwrap()]);
        end.local = (address, 179).into();
        end.next_hops.ipv4 = Some(address);
        if let Some(ipv6) = &mut end.next_hops.ipv6 {
            *ipv6 = (u128::from(*ipv6) + u128::try_from(number).unwrap()).into();
        }
        end.remote = (self.configs[number].key.address().unwrap(), 179).into();
        end
    }

    fn draw(&mut self, bound: usize) -> usize {
        usize::try_from(self.rng.next_u64() % u64::try_from(bound).unwrap()).unwrap()
    }

    fn peer(&self, number: usize) -> &Peer {
        self.speaker.peer(self.configs[number].key).unwrap()
    }

    fn is_up(&self, number: usize) -> bool {
        self.peer(number).established.is_some()
    }

    /// The speaker is given the desired state.
    fn apply(&mut self) {
        self.generation += 1;
        let desired = Desired {
            generation: self.generation,
            peers: self.configs.clone(),
            routes: self.originated.clone().into(),
            drain: self.drain,
            ..Desired::default()
        };
        self.speaker.handle(self.now, speaker::Event::Desired(Arc::new(desired), None));
        self.turn();
    }

    fn hear(&mut self, number: usize, event: session::Event<'_>) {
        let key = self.configs[number].key;
        self.speaker.handle(self.now, speaker::Event::Peer(key, event));
        self.turn();
    }

    /// The speaker acts, and sockets that have room take a chunk.
    fn turn(&mut self) {
        self.carry_out();
        self.speaker.handle(self.now, speaker::Event::Tick);
        self.carry_out();
        let mut bytes = BytesMut::new();
        while let Some((key, id)) = self.speaker.poll_transmit(self.now, 4_200, &mut bytes) {
            let number = self.number_of(key);
            assert!(self.far[number].on_the_way.is_none(), "a socket without room was given more");
            self.far[number].on_the_way = Some((id, bytes.split()));
        }
        self.carry_out();
    }

    fn number_of(&self, key: PeerKey) -> usize {
        self.configs.iter().position(|config| config.key == key).unwrap()
    }

    fn carry_out(&mut self) {
        while let Some(action) = self.speaker.poll_action() {
            let speaker::Action::Peer(key, action) = action else { continue };
            let number = self.number_of(key);
            match action {
                PeerAction::Connect(id) => {
                    let connected = self.end_of(number);
                    self.far[number].hang_up();
                    let opening = speak_up(&self.configs[number]);
                    self.far[number].sent.extend(opening);
                    let event = session::Event::Connected(id, connected);
                    self.speaker.handle(self.now, speaker::Event::Peer(key, event));
                }
                PeerAction::Close(..) | PeerAction::StartedOver(_) => self.far[number].hang_up(),
                PeerAction::Report(Report::Up(_)) => self.far[number].say_all(|_| true),
                _ => {}
            }
        }
    }

    /// What the far end sent arrives.
    fn receive(&mut self, number: usize) {
        let bytes = std::mem::take(&mut self.far[number].sent);
        for id in self.peer(number).connection_ids() {
            self.hear(number, session::Event::Received(id, &bytes));
        }
    }

    /// What its socket took arrives at the far end. Returns whether there was anything.
    fn transmit(&mut self, number: usize) -> bool {
        let Some((id, bytes)) = self.far[number].on_the_way.take() else { return false };
        let config = &self.configs[number];
        self.far[number].hear(&bytes, config.kind());
        self.speaker.handle(self.now, speaker::Event::Written(config.key, id));
        self.turn();
        true
    }

    fn settle(&mut self) {
        let mut idle = false;
        while !idle {
            idle = self.speaker.next_deadline() != Some(Instant::ZERO);
            if !idle {
                self.turn();
            }
            for number in 0..PEERS {
                idle &= self.far[number].sent.is_empty();
                self.receive(number);
                idle &= !self.transmit(number);
            }
        }
    }

    /// Time passes; far ends that are not `silent` keep their sessions alive.
    fn wait(&mut self, duration: Duration, silent: Option<usize>) {
        let end = self.now + duration;
        while self.now < end {
            self.now = self.now + seconds(1);
            self.follow_addresses();
            for number in 0..PEERS {
                if self.is_up(number) && silent != Some(number) {
                    self.far[number].sent.extend_from_slice(&keepalive());
                }
                self.receive(number);
                self.turn();
            }
        }
    }

    /// The neighbour announces or withdraws something, or garbles an announcement.
    fn far_speaks(&mut self, number: usize) {
        let prefix = self.prefix();
        let family = prefix.family();
        let path_ids = self.far[number].add_path.receive;
        let path_id = if path_ids { PathId::new([0, 1, 7][self.draw(3)]) } else { PathId::NONE };
        let nlri = Nlri { prefix, path_id };
        let mut bytes = BytesMut::new();
        match self.draw(8) {
            0 | 1 => {
                self.far[number].said.remove(&nlri);
                withdrawal(family, path_ids, &mut BTreeSet::from([nlri]), &mut bytes);
            }
            2 => {
                bytes = announced(nlri, path_ids, &self.attributes(number, family));
                let origin = bytes.windows(3).position(|it| it == [0x40, 1, 1]).unwrap();
                bytes[origin + 3] = 9;
                self.far[number].said.remove(&nlri);
            }
            _ => {
                let attributes = self.attributes(number, family);
                bytes = announced(nlri, path_ids, &attributes);
                self.far[number].said.insert(nlri, attributes);
            }
        }
        if self.is_up(number) {
            self.far[number].sent.extend_from_slice(&bytes);
        }
    }

    fn originate(&mut self) {
        let mut wanted = BTreeMap::new();
        for _ in 0..self.draw(4) {
            let keys = self.configs.iter().map(|config| config.key).collect::<Vec<_>>();
            let keys = keys.into_iter().filter(|_| self.rng.next_u64().is_multiple_of(2)).collect();
            let route = DesiredRoute {
                prefix: self.prefix(),
                peers: Arc::new(keys),
                attributes: Arc::new(RouteAttributes {
                    communities: vec![Community(u32::try_from(self.draw(3)).unwrap())],
                    ..RouteAttributes::default()
                }),
            };
            wanted.insert(route.prefix, route);
        }
        self.originated = wanted.into_values().collect();
        self.apply();
    }

    /// The RPKI cache says something else.
    fn validate(&mut self) {
        let said: BTreeSet<RoaPayload> = self.payloads.table().iter().collect();
        let drawn: BTreeSet<RoaPayload> = (0..=self.draw(6)).map(|_| self.payload()).collect();
        let toggled = |payload: &RoaPayload| match said.contains(payload) {
            true => PayloadChange::Withdrawn(*payload),
            false => PayloadChange::Announced(*payload),
        };
        let changes: Vec<PayloadChange> = drawn.iter().map(toggled).collect();
        let concerned = self.payloads.apply(&changes);
        let origins = Arc::new(self.payloads.table());
        self.speaker.handle(self.now, speaker::Event::Origins(origins, concerned));
        self.turn();
    }

    fn drain(&mut self) {
        let states = [DrainState::InService, DrainState::Draining, DrainState::Drained];
        self.drain = states[self.draw(3)];
        self.apply();
    }

    fn reconfigure(&mut self, number: usize) {
        let mut config = self.configs[number].clone();
        match self.draw(5) {
            0 => config.import.allowed = self.filter(),
            1 => config.pass_on = self.filter(),
            2 => {
                let limit = u32::try_from(self.draw(4) + 1).unwrap();
                let maximum = MaximumPrefixes { limit, warn_percent: 75, attribute_bytes: None };
                config.import.maximum = [None, None, Some(maximum)][self.draw(3)];
            }
            3 => {
                let limit = NonZeroU8::new(u8::try_from(self.draw(4) + 1).unwrap());
                config.add_path.send = config.add_path.send.and(limit);
            }
            _ => config.router_id = RouterId::new([1, 77][self.draw(2)]).unwrap(),
        }
        self.configs[number] = config;
        self.apply();
    }

    /// Ends a session in one of the ways there are.
    fn interrupt(&mut self, number: usize) {
        let ids = self.peer(number).connection_ids();
        let key = self.configs[number].key;
        match (self.draw(7), ids.first()) {
            (0, Some(id)) => self.hear(number, session::Event::Closed(*id, None)),
            (1, Some(id)) => {
                let cease = Notification::cease(cease::UNSPECIFIC).encode();
                self.hear(number, session::Event::Received(*id, &cease));
            }
            (2, Some(id)) => self.hear(number, session::Event::Received(*id, &[0; 19])),
            (3, _) => self.wait(seconds(15), Some(number)),
            (4, _) => self.clear(number, Clear::Hard),
            (5, _) => {
                // Removed, and configured again.
                self.remove(number);
                self.apply();
            }
            _ => {
                // A panic in the work on it.
                self.speaker.start_over(self.now, key);
                self.turn();
            }
        }
    }

    /// All neighbours but one are desired.
    fn remove(&mut self, number: usize) {
        let key = self.configs[number].key;
        let others = self.configs.iter().filter(|config| config.key != key);
        let desired = Desired {
            peers: others.cloned().collect(),
            routes: self.originated.clone().into(),
            drain: self.drain,
            ..Desired::default()
        };
        self.speaker.handle(self.now, speaker::Event::Desired(Arc::new(desired), None));
        self.turn();
        assert!(self.speaker.peer(key).is_none());
    }

    fn clear(&mut self, number: usize, how: Clear) {
        // A neighbour without a session sends and receives nothing.
        let _ = self.speaker.clear(self.now, self.configs[number].key, how);
        self.turn();
    }

    /// The machine's addresses change.
    fn renumber(&mut self) {
        let own = [None, Some("2001:db8::1".parse().unwrap()), "2001:db8::7".parse().ok()];
        self.end.next_hops.ipv6 = own[self.draw(3)];
        let networks = ["192.0.2.0/24", "192.0.2.9/32", "fe80::/64", "2001:db8::/64"];
        let known = networks.into_iter().filter(|_| self.rng.next_u64().is_multiple_of(2));
        self.end.networks = known.map(|text| text.parse().unwrap()).collect();
        self.follow_addresses();
    }

    /// What the edge does every two seconds.
    fn follow_addresses(&mut self) {
        let ends = (0..PEERS).map(|number| self.end_of(number)).collect::<Vec<_>>();
        self.speaker.follow_addresses(self.now, |local, _| {
            let end = ends.iter().find(|end| end.local == local).unwrap();
            (end.next_hops, end.networks.clone())
        });
        self.turn();
    }

    fn step(&mut self) {
        let number = self.draw(PEERS);
        match self.draw(40) {
            0..20 => self.far_speaks(number),
            20..23 => self.receive(number),
            23..26 => drop(self.transmit(number)),
            26..28 => self.originate(),
            28..31 => self.reconfigure(number),
            31 => self.interrupt(number),
            32 => self.renumber(),
            33 => self.clear(number, Clear::SoftOut),
            34 => self.clear(number, Clear::SoftIn),
            35 if self.is_up(number) => {
                let family = AddressFamily::ALL[self.draw(2)];
                self.far[number].sent.extend_from_slice(&RouteRefresh::request(family).encode());
            }
            36 => self.drain(),
            37 => self.validate(),
            _ => self.wait(seconds(1), None),
        }
    }

    fn check(&mut self) {
        self.settle();
        self.follow_addresses();
        self.settle();
        let why = format!("seed {}", self.seed);
        let mut anew = LocRib::default();
        anew.set(self.originated.clone());
        for ((_, peer), far) in self.speaker.peers().zip(&self.far) {
            let Some(up) = &peer.established else { continue };
            let accepted = up.inbound.adj_rib_in.routes();
            let accepted: BTreeMap<Nlri, Arc<PathAttributes>> =
                accepted.map(|(nlri, it)| (nlri, Arc::clone(it))).collect();
            let importer = self.importer(&peer.config);
            let wanted: BTreeMap<Nlri, Arc<PathAttributes>> = (far.said.iter())
                .filter(|(nlri, _)| importer.allows(nlri.prefix).is_ok())
                .filter(|(_, attributes)| importer.judge(attributes).is_ok())
                .filter_map(|(nlri, it)| {
                    let marked = importer.marked(Arc::new(it.clone()));
                    let (origins, mut known) = (self.speaker.origins(), Rulings::default());
                    Some((*nlri, importer.ruled(nlri.prefix, &marked, origins, &mut known).ok()?))
                })
                .collect();
            assert_eq!(accepted, wanted, "{why}: Adj-RIB-In of {}", peer.config.key);
            assert_eq!(up.inbound.adj_rib_in.counts(), count(accepted.keys()), "{why}");
            let source = Arc::new(fairway_seam::PathSource {
                key: peer.config.key,
                kind: peer.config.kind(),
                address: peer.config.key.address().unwrap(),
                remote_asn: remote_asn(&peer.config),
                is_client: peer.config.client == Some(ClientKind::Reflector),
                router_id: peer
                    .connection(up.connection)
                    .unwrap()
                    .negotiated
                    .as_ref()
                    .unwrap()
                    .remote_router_id,
            });
            let change = |(nlri, attributes): (&Nlri, &Arc<PathAttributes>)| RouteChange {
                nlri: *nlri,
                attributes: Some(Arc::clone(attributes)),
            };
            anew.learn(&source, wanted.iter().map(change));
        }
        let sorted = |rib: &LocRib| {
            let mut learned: Vec<_> = rib.learned().collect();
            learned.sort_by_key(|it| (it.prefix, it.path.source.key, it.path.path_id));
            learned
        };
        assert_eq!(sorted(self.speaker.rib()), sorted(&anew), "{why}: Loc-RIB");
        assert_eq!(self.speaker.rib().counts(), anew.counts(), "{why}");
        for number in 0..PEERS {
            if self.is_up(number) {
                self.check_told(number, &why);
            }
        }
    }

    fn importer(&self, config: &PeerConfig) -> Importer {
        let end = self.end_of(self.number_of(config.key));
        let own = [Some(end.local.ip()), end.next_hops.ipv6.map(Into::into)];
        let own = own.into_iter().flatten().collect();
        Importer::new(config, remote_asn(config), end.remote.ip(), own, &end.networks)
    }

    /// The neighbour has what a new session would send it.
    fn check_told(&self, number: usize, why: &str) {
        let (config, rib) = (self.configs[number].clone(), self.speaker.rib());
        let mut fresh = Peer::new(self.now, config.clone(), 0, 0);
        fresh.set_drain(rib, self.drain);
        fresh.set_origins(Arc::new(self.payloads.table()));
        fresh.handle(self.now, session::Event::Tick);
        let id = fresh.connection_ids()[0];
        let connected = self.end_of(number);
        fresh.handle(self.now, session::Event::Connected(id, connected));
        fresh.handle(self.now, session::Event::Received(id, &speak_up(&config)));
        fresh.announce_all(rib);
        let mut far = Far { add_path: self.far[number].add_path, ..Far::default() };
        let mut bytes = BytesMut::new();
        fresh.poll_transmit(self.now, id, rib, &mut ExportGroups::default(), 1 << 20, &mut bytes);
        far.hear(&bytes, config.kind());
        let told = &self.far[number].told;
        assert_eq!(by_prefix(told), by_prefix(&far.told), "{why}: told to {}", config.key);
        let (up, fresh) = (self.peer(number).established.as_ref(), fresh.established.as_ref());
        let (up, fresh) = (up.unwrap(), fresh.unwrap());
        let advertised = up.outbound.advertised(rib, AdvertisedScope::All);
        let own = up.outbound.advertised(rib, AdvertisedScope::Own);
        let originated: BTreeSet<_> = rib.originated().map(|route| route.prefix).collect();
        let mut of_own = advertised.iter().filter(|(nlri, _)| originated.contains(&nlri.prefix));
        assert!(of_own.all(|it| own.contains(it)), "{why}: own routes to {}", config.key);
        assert!(own.iter().all(|it| advertised.contains(it)), "{why}: to {}", config.key);
        let advertised = advertised.iter().map(|(nlri, it)| (nlri, &**it));
        assert!(advertised.eq(told), "{why}: {}", config.key);
        assert_eq!(up.outbound.adj_rib_out.counts(), count(far.told.keys()), "{why}");
        assert_eq!(
            up.outbound.unannounced, fresh.outbound.unannounced,
            "{why}: not announced to {}",
            config.key
        );
        let several = config.add_path.send.map(|limit| usize::from(limit.get()));
        let chooses = config.client == Some(ClientKind::RouteServer);
        for (prefix, paths) in by_prefix(&far.told) {
            assert!((1..=several.unwrap_or(1)).contains(&paths.len()), "{why}: {paths:?}");
            let routes = rib.routes_to(prefix).unwrap();
            if let Some(Route::Learned(path)) = routes.route_for(config.key) {
                let goes_back = path.source.key == config.key;
                assert!(several.is_some() || chooses || !goes_back, "{why}: {prefix} goes back");
                let kept = |it: &PathAttributes| it.communities.contains(&Community::NO_ADVERTISE);
                assert!(!paths.into_iter().any(kept), "{why}");
            }
        }
    }
}

fn count<'a>(routes: impl Iterator<Item = &'a Nlri>) -> fairway_ground::PerFamily<u32> {
    let mut counts = fairway_ground::PerFamily::default();
    routes.for_each(|nlri| *counts.of_mut(nlri.prefix.family()) += 1);
    counts
}

/// The paths to each prefix, whatever their identifiers are.
fn by_prefix(table: &Table) -> BTreeMap<Prefix, Vec<&PathAttributes>> {
    let mut paths: BTreeMap<Prefix, Vec<&PathAttributes>> = BTreeMap::new();
    for (nlri, attributes) in table {
        paths.entry(nlri.prefix).or_default().push(attributes);
    }
    paths.values_mut().for_each(|paths| paths.sort_unstable());
    paths
}

//+ RFC 4271 §6: the end of a session clears its Adj-RIB-In and the Loc-RIB of its routes.
//+ RFC 4271 §9.1.3: a route that is excluded after it was told is withdrawn.
//+ RFC 4271 §9.2: every route that is new and every route that is gone is told.
#[test]
fn every_neighbour_has_what_a_new_session_would_tell_it() {
    let (count, [events, checked]) = seeds::tell("passing_on", seeds::asked(300), |seed| {
        let mut hub = Hub::new(seed);
        hub.wait(seconds(2), None);
        let mut checked = 0;
        for event in 1..=EVENTS {
            hub.step();
            if event == EVENTS || hub.draw(16) == 0 {
                hub.check();
                checked += hub.far.iter().map(|far| far.told.len() as u64).sum::<u64>();
            }
        }
        [EVENTS, checked]
    });
    println!("{count} histories, {events} events, {checked} routes compared");
    assert!(checked > 100 * count, "the stories cover too little: {checked}");
}
