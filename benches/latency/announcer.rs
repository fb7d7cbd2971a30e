//! The announcers: one address at a time, changed by renaming a file into place.

use std::fs;
use std::path::PathBuf;
use std::time::Instant;

use anyhow::{Context, Result};

use lab::bird::{self, Bird};
use lab::fairway::Fairway;
use lab::resources::{self, Advertisement};
use lab::{Family, Lab, Wiring};

/// The prefix that is announced after change `number`; neighbours in the sequence differ.
pub(crate) fn prefix(number: usize) -> String {
    format!("203.0.113.{}", number % 250 + 1)
}

/// A daemon that announces routes.
pub(crate) trait Announcer {
    /// Announces only [`prefix`]`(number)`; returns when the file was renamed.
    fn announce(&mut self, number: usize) -> Result<Instant>;
}

/// Fairway, with a Service that requests another address each time.
pub(crate) struct FairwayAnnouncer {
    fairway: Fairway,
}

impl FairwayAnnouncer {
    /// Starts it with `others` Services besides the one that changes, all in one file.
    pub(crate) fn start(lab: &Lab, others: usize) -> Result<Self> {
        let mut fairway = Fairway::prepare(lab)?;
        fairway.log_level = "info";
        let router = Wiring::Direct.router_address(Family::Ipv4)?;
        fairway.apply("peer", &peer("router", &router.to_string()))?;
        fairway.apply("pool", &resources::pool("pool", &["203.0.113.0/24"]))?;
        if others > 0 {
            fairway.apply("others-pool", &resources::pool("others", &["10.128.0.0/16"]))?;
            let services = (0..others)
                .map(|number| resources::service(&format!("other-{number}"), None) + "---\n");
            fairway.apply("others", &services.collect::<String>())?;
        }
        let advertisement = Advertisement { name: "all", ..Advertisement::default() };
        fairway.apply("advertisement", &advertisement.yaml())?;
        fairway.start(&lab.node)?;
        Ok(Self { fairway })
    }
}

/// A BGPPeer of this lab.
pub(crate) fn peer(name: &str, address: &str) -> String {
    format!(
        "apiVersion: metallb.io/v1beta2\nkind: BGPPeer\nmetadata: {{name: {name}}}\n\
         spec: {{myASN: 65001, peerASN: 65002, peerAddress: \"{address}\"}}\n"
    )
}

impl Announcer for FairwayAnnouncer {
    fn announce(&mut self, number: usize) -> Result<Instant> {
        let text = resources::service("web", Some(&prefix(number)));
        self.fairway.apply_timed("web", &text)
    }
}

/// BIRD, with a static route in an included file, and `configure` on its open socket.
pub(crate) struct BirdAnnouncer {
    bird: Bird,
    routes: PathBuf,
}

impl BirdAnnouncer {
    pub(crate) fn start(lab: &Lab) -> Result<Self> {
        let routes = lab.directory.join("routes.conf");
        fs::write(&routes, "").context("writing the first routes")?;
        let configuration = bird::announcing(&routes);
        let bird = Bird::start(&lab.node, &lab.directory, "announcer", &configuration)?;
        Ok(Self { bird, routes })
    }
}

impl Announcer for BirdAnnouncer {
    fn announce(&mut self, number: usize) -> Result<Instant> {
        let staged = self.routes.with_extension("new");
        fs::write(&staged, format!("route {}/32 blackhole;\n", prefix(number)))?;
        let now = Instant::now();
        fs::rename(&staged, &self.routes)?;
        self.bird.configure()?;
        Ok(now)
    }
}
