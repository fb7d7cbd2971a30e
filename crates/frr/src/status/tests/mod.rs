//! FRR of two generations, recorded by `scripts/frr-answers.sh`, and answers that FRR never gives.

mod hostile;
mod recorded;

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use fairway_ground::{
    AddressFamily, Asn, BfdSettings, GracefulRestart, ListenRange, PeerKey, Prefix, Remote,
    RemoteAs, RouterId, ShutdownMessage,
};
use fairway_seam::{
    BgpView, Desired, DesiredRoute, PeerBfd, PeerConfig, PeerView, RouteAttributes, ViewScope,
};

use super::{Picture, Sessions, bfd};

/// The releases that were recorded.
const RELEASES: [&str; 2] = ["8.4", "10.3"];

/// The answers of one release in one scene.
struct Recording(String);

impl Recording {
    fn of(release: &str, scene: &str) -> Self {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/answers");
        let file = folder.join(release).join(format!("{scene}.txt"));
        Self(std::fs::read_to_string(&file).unwrap_or_else(|error| panic!("{file:?}: {error}")))
    }

    fn answer(&self, question: &str) -> &str {
        let mut answers = self.0.split("=== ").filter_map(|it| it.split_once('\n'));
        let found = answers.find(|(it, _)| *it == question);
        found.unwrap_or_else(|| panic!("{question} was not recorded")).1
    }

    fn sessions(&self) -> Sessions {
        Sessions::parse(self.answer(super::SUMMARY), self.answer(super::NEIGHBORS)).unwrap()
    }

    /// The view of an observer that asks for everything.
    fn view(&self, desired: &Desired) -> BgpView {
        let sessions = self.sessions();
        let mut picture = Picture::new(desired, ViewScope::EVERYTHING, &sessions);
        let (peers, counters) = (self.answer(bfd::PEERS), self.answer(bfd::COUNTERS));
        picture.bfd(Some(bfd::sessions(peers, counters).unwrap()));
        for (vrf, family) in picture.tables() {
            if vrf.is_none() {
                let text = self.answer(&picture.table_question(vrf, family));
                picture.table(vrf, family, text).unwrap();
            }
        }
        for (key, family) in picture.told() {
            let recorded = ["10.1.1.2", "fd01::2", "e3"].contains(&key.to_string().as_str());
            if !recorded || (family == AddressFamily::Ipv6Unicast && key.interface().is_some()) {
                continue;
            }
            let mut text = self.0.as_str();
            for detail in [true, false] {
                let question = picture.advertised_question(key, family, detail);
                if self.0.contains(&question) {
                    text = self.answer(&question);
                }
                if picture.advertised(key, family, text).is_ok() {
                    break;
                }
            }
        }
        picture.finish()
    }
}

fn key(remote: &str) -> PeerKey {
    match remote.parse() {
        Ok(address) => PeerKey { remote: Remote::Address(address), vrf: None },
        Err(_) => PeerKey { remote: Remote::Interface(remote.parse().unwrap()), vrf: None },
    }
}

fn peer(remote: &str, number_of_peer: u32) -> PeerConfig {
    let asn = |number| Asn::new(number).unwrap();
    let router_id: RouterId = "10.0.0.1".parse().unwrap();
    PeerConfig::new(key(remote), asn(65_001), RemoteAs::Asn(asn(number_of_peer)), router_id)
}

/// The configuration of FRR in the script: neighbours, and the routes.
fn desired() -> Desired {
    let watched =
        PeerBfd { profile: "fast".to_owned(), settings: BfdSettings::default(), strict: false };
    let range: Prefix = "10.2.0.0/24".parse().unwrap();
    let ranged = PeerConfig {
        key: PeerKey { remote: Remote::Range(range), vrf: None },
        name: "range".to_owned(),
        listen_range: Some(ListenRange { prefix: range, limit: 7 }),
        remote_as: RemoteAs::External,
        ..peer("10.2.0.0", 65_020)
    };
    let red = PeerKey { vrf: "red".parse().ok(), ..key("10.9.1.2") };
    let peers = vec![
        ranged,
        PeerConfig {
            name: "one".to_owned(),
            bfd: Some(watched.clone()),
            graceful_restart: Some(GracefulRestart::default()),
            ..peer("10.1.1.2", 65_010)
        },
        PeerConfig { name: "six".to_owned(), ..peer("fd01::2", 65_010) },
        PeerConfig { remote_as: RemoteAs::External, ..peer("e3", 65_020) },
        peer("10.1.1.97", 65_097),
        PeerConfig {
            shutdown: ShutdownMessage::new("maintenance").ok(),
            ..peer("10.1.1.98", 65_098)
        },
        PeerConfig { bfd: Some(watched), ..peer("10.1.1.99", 65_099) },
        PeerConfig { key: red, ..peer("10.9.1.2", 65_009) },
        // This neighbour is not configured in FRR.
        peer("10.1.1.96", 65_096),
    ];
    let told: BTreeSet<PeerKey> = peers.iter().map(|peer| peer.key).collect();
    let attributes = Arc::new(RouteAttributes {
        communities: vec!["65001:100".parse().unwrap(), "no-export".parse().unwrap()],
        large_communities: vec!["65001:1:10".parse().unwrap()],
        med: Some(20),
        as_path_prepend: 1,
        ..RouteAttributes::default()
    });
    let route = |prefix: &str| DesiredRoute {
        prefix: prefix.parse().unwrap(),
        peers: Arc::new(told.clone()),
        attributes: Arc::clone(&attributes),
    };
    let prefixes = ["2001:db8:aaaa::10/128", "203.0.113.11/32", "203.0.113.10/32"];
    Desired {
        generation: 7,
        peers,
        routes: prefixes.map(route).to_vec().into(),
        ..Desired::default()
    }
}

fn find<'a>(view: &'a BgpView, name: &str) -> &'a PeerView {
    let mut peers = view.peers.iter();
    peers.find(|peer| peer.config.key.to_string() == name).unwrap()
}
