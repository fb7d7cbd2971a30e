//! What a station hears of the thread, over a real connection.

use std::time::Duration;

use bytes::Bytes;
use fairway_bgp::session::{SessionDown, SessionUp};
use fairway_bgp::wire::{Capability, Open};
use fairway_ground::{
    AddressFamily, AsPath, FamilySet, HoldTime, NextHop, PathId, PeerKind, Prefix, Remote, RouterId,
};
use fairway_seam::{
    DesiredRoute, LearnedRoute, Path, PathAttributes, PathSource, PeerConfig, PeerRoute, PeerView,
    RouteAttributes,
};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

use super::*;
use crate::example::Example as _;

const PATIENCE: Duration = Duration::from_secs(20);
const ALL: BmpTables = BmpTables {
    adj_rib_in_pre_policy: true,
    adj_rib_in_post_policy: true,
    adj_rib_out_post_policy: true,
    loc_rib: true,
};
/// In routes of the scene; in four octets only.
const FAR_ASN: u32 = 4_200_000_001;

/// A message of the thread.
#[derive(Debug)]
struct Message {
    kind: u8,
    body: Vec<u8>,
}

impl Message {
    /// Its kind, and of a route its table.
    fn name(&self) -> &'static str {
        match (self.kind, self.body.first(), self.body.get(1)) {
            (0, Some(3), _) if self.is_end() => "loc-rib end",
            (0, Some(3), _) => "loc-rib",
            (0, _, Some(flags)) => match (flags & 0x10 != 0, flags & 0x40 != 0, self.is_end()) {
                (true, _, true) => "out end",
                (true, _, false) => "out",
                (_, true, true) => "post end",
                (_, true, false) => "post",
                (_, false, true) => "pre end",
                (_, false, false) => "pre",
            },
            (1, Some(3), _) => "loc-rib statistics",
            (1, ..) => "statistics",
            (2, ..) => "peer down",
            (3, Some(3), _) => "loc-rib up",
            (3, ..) => "peer up",
            (4, ..) => "initiation",
            (5, ..) => "termination",
            _ => "unknown",
        }
    }

    fn flags(&self) -> u8 {
        self.body[1]
    }

    fn time(&self) -> &[u8] {
        &self.body[34..42]
    }

    fn update(&self) -> &[u8] {
        self.body.get(42..).unwrap_or_default()
    }

    /// Type codes and values of the path attributes of its UPDATE, which withdraws nothing.
    fn attributes(&self) -> Vec<(u8, Vec<u8>)> {
        let update = &self.update()[19..];
        let length = usize::from(u16::from_be_bytes([update[2], update[3]]));
        let mut rest = &update[4..4 + length];
        let mut attributes = Vec::new();
        while let [flags, code, after @ ..] = rest {
            let (length, value) = match flags & 0x10 != 0 {
                true => (usize::from(u16::from_be_bytes([after[0], after[1]])), &after[2..]),
                false => (usize::from(after[0]), &after[1..]),
            };
            attributes.push((*code, value[..length].to_vec()));
            rest = &value[length..];
        }
        attributes
    }

    /// Of IPv4, or of a family of MP_UNREACH_NLRI.
    fn is_end(&self) -> bool {
        matches!(self.update()[19..], [0, 0, 0, 0] | [0, 0, 0, _, _, 15, .., 0, 2, 1])
    }
}

async fn read(stream: &mut TcpStream) -> Option<Message> {
    let read = async {
        let mut header = [0; 6];
        stream.read_exact(&mut header).await.ok()?;
        let length = u32::from_be_bytes([header[1], header[2], header[3], header[4]]);
        let mut body = vec![0; usize::try_from(length).unwrap() - 6];
        stream.read_exact(&mut body).await.ok()?;
        Some(Message { kind: header[5], body })
    };
    tokio::time::timeout(PATIENCE, read).await.expect("a message in time")
}

/// The thread's work, and a station.
struct Scene {
    listener: TcpListener,
    wanted: watch::Sender<Wanted>,
    feed: mpsc::UnboundedSender<(usize, Feed)>,
    asks: mpsc::Receiver<Ask>,
    _views: watch::Receiver<Views>,
}

impl Scene {
    async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let (wanted, changed) = watch::channel(Wanted::default());
        let (feed, told) = mpsc::unbounded_channel();
        let (ask, asks) = mpsc::channel(1);
        let (show, views) = watch::channel(Views::from([]));
        let ends = thread::Ends {
            wanted: changed,
            feed: told,
            waiting_bytes: Arc::new(AtomicUsize::new(0)),
            ask,
            views: show,
        };
        tokio::spawn(thread::run(Clock::start(), ends));
        Self { listener, wanted, feed, asks, _views: views }
    }

    /// The station is told these from now on.
    async fn connect(&self, tables: BmpTables, statistics_interval_seconds: u16) -> TcpStream {
        let port = self.listener.local_addr().unwrap().port();
        let host = Arc::from("127.0.0.1");
        let station = BmpStation { host, port, tables, statistics_interval_seconds };
        self.wanted.send(Arc::new(BTreeSet::from([station]))).unwrap();
        let accepted = tokio::time::timeout(PATIENCE, self.listener.accept()).await;
        accepted.expect("a connection in time").unwrap().0
    }

    fn tell(&self, feed: Feed) {
        self.feed.send((0, feed)).unwrap();
    }

    async fn asked(&mut self) -> Ask {
        tokio::time::timeout(PATIENCE, self.asks.recv()).await.expect("a question in time").unwrap()
    }

    /// A session comes up, and a station connects and hears everything.
    async fn introduce(&mut self, tables: BmpTables) -> (TcpStream, Vec<Message>) {
        self.tell(Feed::Peer(key(), vec![Monitored::Up(Box::new(up()))]));
        let mut stream = self.connect(tables, 0).await;
        assert_eq!(self.asked().await, Ask::Tables(tables));
        self.tell(Feed::Tables(Box::new(view())));
        let mut heard = Vec::new();
        // End-of-RIB of IPv6 in the Loc-RIB is the last of all.
        while heard.iter().filter(|it: &&Message| it.name() == "loc-rib end").count() < 2 {
            heard.push(read(&mut stream).await.unwrap());
        }
        (stream, heard)
    }
}

fn key() -> PeerKey {
    PeerConfig::example(1).key
}

fn open(asn: u32) -> Bytes {
    let router_id = RouterId::new(asn).unwrap();
    Open { asn, hold_time: HoldTime::default(), router_id, capabilities: Vec::new() }.encode()
}

/// A session without AS numbers of four octets.
fn up() -> SessionUp {
    SessionUp {
        local: "192.0.2.1:179".parse().unwrap(),
        remote: "192.0.2.2:40000".parse().unwrap(),
        asn: 65002,
        router_id: 2,
        four_octet_as: false,
        families: FamilySet::only(AddressFamily::Ipv4Unicast),
        add_path_received: FamilySet::EMPTY,
        add_path_sent: FamilySet::EMPTY,
        opens: [open(65001), open(65002)],
    }
}

fn attributes() -> Arc<PathAttributes> {
    let next_hop = NextHop::Ipv4([192, 0, 2, 2].into());
    Arc::new(PathAttributes::originated(AsPath::sequence(vec![65002, FAR_ASN]), next_hop))
}

fn own(prefix: &str) -> DesiredRoute {
    DesiredRoute {
        prefix: prefix.parse().unwrap(),
        peers: Arc::new(BTreeSet::from([key()])),
        attributes: Arc::new(RouteAttributes::default()),
    }
}

/// A route of our own, and one of the neighbor that it is sent, too.
fn view() -> BgpView {
    let prefix: Prefix = "198.51.100.0/24".parse().unwrap();
    let route = PeerRoute { prefix, path_id: PathId::NONE, attributes: attributes(), stale: false };
    let (received, advertised) = (vec![route.clone()], vec![route]);
    let peer = PeerView { received, advertised, ..PeerView::idle(PeerConfig::example(1)) };
    let config = PeerConfig::example(2);
    let source = Arc::new(PathSource {
        key: key(),
        address: [192, 0, 2, 2].into(),
        kind: PeerKind::External,
        remote_asn: config.router_asn,
        router_id: config.router_id,
        is_client: false,
    });
    let path = Path { source, path_id: PathId::NONE, attributes: attributes() };
    let learned =
        LearnedRoute { prefix, path, lost_at: None, stale: false, origin_validation: None };
    BgpView {
        peers: vec![peer],
        routes: vec![own("203.0.113.7/32")],
        learned: vec![learned],
        ..BgpView::default()
    }
}

//= RFC 7854 §4.3 MUST: the first message is an Initiation.
//= RFC 7854 §5 MUST: the end of the routes of a neighbor is marked in each of its tables that is kept.
//= RFC 9069 §4.2 MUST: routes of our own are told as those of the Loc-RIB.
//= RFC 9069 §6.1.1 MUST: the Loc-RIB is a peer of its own, which comes up before its routes.
//+ RFC 7854 §3.3: a session that is up when a station connects is told first.
#[tokio::test]
async fn a_station_hears_who_speaks_then_the_sessions_then_each_table_and_its_end() {
    let (_stream, heard) = Scene::start().await.introduce(ALL).await;
    let names: Vec<_> = heard.iter().map(Message::name).collect();
    let expected = [
        "initiation",
        "peer up",
        "post",
        "post end",
        "out",
        "out end",
        "loc-rib up",
        "loc-rib",
        "loc-rib",
        "loc-rib end",
        "loc-rib end",
    ];
    assert_eq!(names, expected);
    let own = heard.iter().find(|it| it.update().ends_with(&[32, 203, 0, 113, 7]));
    assert_eq!(own.map(Message::name), Some("loc-rib"));
}

//+ RFC 7854 §4.2: peer type and distinguisher tell peers apart that look the same in all else.
#[tokio::test]
async fn unnumbered_neighbors_with_the_same_address_are_two_peers() {
    let scene = Scene::start().await;
    let up = SessionUp { remote: "[fe80::1]:179".parse().unwrap(), ..up() };
    for interface in ["eth0", "eth1"] {
        let key = PeerKey { remote: Remote::Interface(interface.parse().unwrap()), vrf: None };
        scene.tell(Feed::Peer(key, vec![Monitored::Up(Box::new(up.clone()))]));
    }
    let mut stream = scene.connect(BmpTables::NONE, 0).await;
    assert_eq!(read(&mut stream).await.unwrap().name(), "initiation");
    let (first, second) = (read(&mut stream).await.unwrap(), read(&mut stream).await.unwrap());
    assert_eq!([first.name(), second.name()], ["peer up"; 2]);
    let of = |it: &Message| (it.body[..10].to_vec(), it.body[10..34].to_vec());
    assert_ne!(of(&first).0, of(&second).0, "type and distinguisher");
    assert_eq!(of(&first).1, of(&second).1, "address, AS and BGP identifier");
}

//= RFC 7854 §5 MUST: the time of a route is 0 where it is not known.
//= RFC 7854 §5 MAY: a change is told with its time.
#[tokio::test]
async fn routes_of_a_table_have_no_time_and_changes_have_theirs() {
    let mut scene = Scene::start().await;
    let (mut stream, heard) = scene.introduce(ALL).await;
    let routes = heard.iter().filter(|it| it.kind == 0);
    assert!(routes.clone().count() > 0 && routes.clone().all(|it| it.time() == [0; 8]));
    let update = tables::marker(AddressFamily::Ipv4Unicast);
    scene.tell(Feed::Peer(key(), vec![Monitored::Received(update)]));
    let change = read(&mut stream).await.unwrap();
    assert_eq!(change.name(), "pre end");
    assert_ne!(change.time(), [0; 8]);
}

//= RFC 7854 §4.2 MUST: the A flag says whether AS numbers in a message have two octets.
//= RFC 7854 §4.2 MAY: all AS numbers are told with four octets, whatever the neighbor uses.
//= RFC 7854 §4.2 SHOULD NOT: AS4_PATH is told where AS numbers have four octets.
//= RFC 9069 §5.4.1 MUST: AS numbers of the Loc-RIB have four octets.
#[tokio::test]
async fn as_numbers_have_two_octets_only_in_what_the_neighbor_sends_and_is_sent() {
    let mut scene = Scene::start().await;
    let (mut stream, mut heard) = scene.introduce(ALL).await;
    let update = tables::marker(AddressFamily::Ipv4Unicast);
    scene.tell(Feed::Peer(key(), vec![Monitored::Received(update)]));
    heard.push(read(&mut stream).await.unwrap());
    let path = |it: &Message, code: u8| {
        it.attributes().into_iter().find(|(of, _)| *of == code).map(|(_, value)| value)
    };
    let four = [&[2, 2][..], &65002_u32.to_be_bytes(), &FAR_ASN.to_be_bytes()].concat();
    let two = [&[2, 2][..], &65002_u16.to_be_bytes(), &23456_u16.to_be_bytes()].concat();
    let is_learned = |it: &&Message| it.update().ends_with(&[24, 198, 51, 100]);
    let learned: Vec<&Message> = heard.iter().filter(is_learned).collect();
    let names: Vec<_> = learned.iter().map(|it| it.name()).collect();
    assert_eq!(names, ["post", "out", "loc-rib"]);
    for it in learned {
        let has_two = it.name() == "out";
        assert_eq!(path(it, 2), Some(if has_two { two.clone() } else { four.clone() }));
        assert_eq!(path(it, 17).is_some(), has_two, "AS4_PATH in {}", it.name());
        assert_eq!(it.flags() & 0x20 != 0, has_two, "the A flag of {}", it.name());
    }
    assert_eq!(heard.last().map(Message::flags), Some(0x20), "as it came");
}

//= RFC 9069 §5.2 MUST: the OPEN of the Loc-RIB has AS numbers of four octets and all that its routes need.
#[tokio::test]
async fn the_open_of_the_table_of_the_node_has_what_its_routes_need() {
    let (_stream, heard) = Scene::start().await.introduce(ALL).await;
    let up = heard.iter().find(|it| it.name() == "loc-rib up").unwrap();
    // Behind the header and the ends.
    let open = &up.body[62..];
    let length = usize::from(u16::from_be_bytes([open[16], open[17]]));
    let open = Open::parse(&open[19..length]).unwrap();
    let families = AddressFamily::ALL.map(|it| Capability::Multiprotocol(it.into()));
    let own = PeerConfig::example(1).router_asn.get();
    for needed in families.into_iter().chain([Capability::FourOctetAs(own)]) {
        assert!(open.capabilities.contains(&needed), "{needed:?}: {open:?}");
    }
    let is_next_hop = |it: &Capability| matches!(it, Capability::ExtendedNextHop(_));
    assert!(open.capabilities.iter().any(is_next_hop), "RFC 8950: {open:?}");
}

//= RFC 7854 §3.2 MAY: what a station sends is dropped.
#[tokio::test]
async fn what_a_station_says_changes_nothing() {
    let mut scene = Scene::start().await;
    let (mut stream, _) = scene.introduce(ALL).await;
    stream.write_all(&[0xFF; 5000]).await.unwrap();
    scene.tell(Feed::Peer(key(), vec![Monitored::Down(SessionDown::Closed)]));
    assert_eq!(read(&mut stream).await.unwrap().name(), "peer down");
}

//= RFC 7854 §3.3 MAY: the last message is a Termination.
//= RFC 7854 §4.5 SHOULD: why a connection is ended is told with a Termination.
//= RFC 7854 §4.5 MUST: nothing follows a Termination but the end of the connection.
#[tokio::test]
async fn a_station_that_is_told_something_else_hears_the_end_and_begins_again() {
    let mut scene = Scene::start().await;
    let (mut first, _) = scene.introduce(ALL).await;
    let mut second = scene.connect(BmpTables::DEFAULT, 0).await;
    assert_eq!(read(&mut first).await.unwrap().name(), "termination");
    assert!(read(&mut first).await.is_none());
    assert_eq!(read(&mut second).await.unwrap().name(), "initiation");
    assert_eq!(read(&mut second).await.unwrap().name(), "peer up");
    // No session ends because nobody is told any more.
    scene.wanted.send(Wanted::default()).unwrap();
    assert_eq!(read(&mut second).await.unwrap().name(), "termination");
    assert!(read(&mut second).await.is_none());
}

//= RFC 7854 §3.3 MAY: statistics are reported periodically, as configured.
//= RFC 7854 §4.8 MUST: a Statistics Report has at least one number.
//= RFC 7854 §4.8 MUST: a counter of 32 bits begins again at 0.
#[tokio::test]
async fn statistics_come_when_they_are_due() {
    let mut scene = Scene::start().await;
    scene.tell(Feed::Peer(key(), vec![Monitored::Up(Box::new(up()))]));
    let mut stream = scene.connect(BmpTables { loc_rib: true, ..BmpTables::NONE }, 1).await;
    assert!(matches!(scene.asked().await, Ask::Tables(_)));
    scene.tell(Feed::Tables(Box::new(view())));
    assert_eq!(scene.asked().await, Ask::Statistics);
    let mut view = view();
    view.peers[0].malformed.treated_as_withdraw = (1 << 32) + 5;
    scene.tell(Feed::Statistics(Box::new(view)));
    let mut reports = Vec::new();
    while reports.len() < 2 {
        let message = read(&mut stream).await.unwrap();
        reports.extend((message.kind == 1).then_some(message));
    }
    assert_eq!(reports[0].name(), "statistics");
    assert_eq!(reports[1].name(), "loc-rib statistics");
    assert!(reports.iter().all(|it| it.body[42..46] > [0; 4][..]), "{reports:?}");
    let withdrawn = [0, 11, 0, 4, 0, 0, 0, 5];
    assert!(reports[0].body.windows(8).any(|it| it == withdrawn), "{reports:?}");
    assert_eq!(scene.asked().await, Ask::Statistics, "and again");
}

//= RFC 7854 §11 SHOULD: nobody is told anything who is not configured.
#[tokio::test]
async fn without_a_station_there_is_no_thread_and_nothing_is_noted() {
    let mut stations = Stations::new(Clock::start());
    assert_eq!(stations.want(&Wanted::default()), None);
    assert!(stations.running.is_none());
}
