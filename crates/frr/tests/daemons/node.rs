//! A node with FRR configured by the backend, and its router, with a session between them.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use fairway_frr::io::{FrrBackend, FrrOptions};
use fairway_frr::owner::Owner;
use fairway_ground::{Asn, PeerKey, Remote, RemoteAs, RouterId};
use fairway_seam::{
    Backend, Desired, DesiredRoute, Extras, PeerConfig, RouteAttributes, ViewScope,
};

use crate::lab::{Host, Release, node_and_router, wait_until};

/// Both, and the desired state of the node.
pub(crate) struct Node {
    pub(crate) host: Host,
    pub(crate) router: Host,
    pub(crate) backend: FrrBackend,
    pub(crate) desired: Desired,
}

pub(crate) fn route(number: usize, community: &str) -> DesiredRoute {
    let prefix = format!("198.51.{}.{}/32", 100 + number / 250, number % 250 + 1);
    let communities = vec![community.parse().unwrap()];
    DesiredRoute {
        prefix: prefix.parse().unwrap(),
        peers: Arc::new(BTreeSet::from([peer().key])),
        attributes: Arc::new(RouteAttributes { communities, ..RouteAttributes::default() }),
    }
}

fn peer() -> PeerConfig {
    let key = PeerKey { remote: Remote::Address("10.77.0.2".parse().unwrap()), vrf: None };
    let asn = |it| Asn::new(it).unwrap();
    let router_id = RouterId::new(0x0A4D_0001).unwrap();
    let basis = PeerConfig::new(key, asn(65_001), RemoteAs::Asn(asn(65_002)), router_id);
    PeerConfig { name: "tor".to_owned(), connect_retry_interval: Duration::from_secs(1), ..basis }
}

pub(crate) fn backend(host: &Host) -> FrrBackend {
    let min_interval = Duration::from_millis(100);
    FrrBackend::start(FrrOptions {
        socket_dir: host.directory.clone(),
        min_interval,
        owner: Owner::default(),
    })
}

impl Node {
    /// With three routes, and an established session.
    pub(crate) async fn start(release: Release) -> Result<Self> {
        let (host, router) = node_and_router(release)?;
        router.start()?;
        host.start()?;
        router
            .configure(&[
                "router bgp 65002",
                "no bgp ebgp-requires-policy",
                "neighbor 10.77.0.1 remote-as 65001",
                "neighbor 10.77.0.1 timers connect 1",
            ])
            .await?;
        let routes: Vec<DesiredRoute> = (0..3).map(|it| route(it, "65001:1")).collect();
        let desired = Desired {
            generation: 1,
            peers: vec![peer()],
            routes: routes.into(),
            ..Desired::default()
        };
        let backend = backend(&host);
        let mut node = Self { host, router, backend, desired };
        node.apply(|_| {});
        node.wait_for_route(0, "65001:1").await.context("the first route")?;
        Ok(node)
    }

    /// Changes the desired state.
    pub(crate) fn apply(&mut self, change: impl FnOnce(&mut Desired)) {
        change(&mut self.desired);
        self.desired.generation += 1;
        self.desired.change_age = Some(Duration::ZERO);
        self.backend.apply(self.desired.clone());
    }

    pub(crate) fn set_routes(&mut self, routes: Vec<DesiredRoute>) {
        self.apply(|desired| desired.routes = routes.into());
    }

    pub(crate) fn set_extras(&mut self, text: Option<&str>) {
        let extras = text.map(|text| Extras {
            origin: "ConfigMap metallb-system/bgpextras".to_owned(),
            text: text.to_owned(),
        });
        self.apply(|desired| desired.extras = extras.map(Arc::new));
    }

    /// Waits until the router has a route with a community.
    pub(crate) async fn wait_for_route(&self, number: usize, community: &str) -> Result<Duration> {
        let command = format!("show bgp ipv4 unicast {} json", route(number, community).prefix);
        wait_until(&format!("{command} with {community}"), || async {
            Ok(self.router.ask(&command).await?.contains(&format!("\"{community}\"")))
        })
        .await
    }

    /// The number of our routes on the router.
    pub(crate) async fn routes_there(&self) -> Result<u64> {
        let text = self.router.ask("show bgp ipv4 unicast summary json").await?;
        let summary: serde_json::Value = serde_json::from_str(&text)?;
        summary["peers"]["10.77.0.1"]["pfxRcd"].as_u64().context("no count")
    }

    pub(crate) async fn wait_for_count(&self, count: u64) -> Result<Duration> {
        let what = format!("{count} routes on the router");
        wait_until(&what, || async { Ok(self.routes_there().await? == count) }).await
    }

    /// How often the session was established, as the router counts.
    pub(crate) async fn sessions(&self) -> Result<u64> {
        let text = self.router.ask("show bgp neighbors 10.77.0.1 json").await?;
        let neighbors: serde_json::Value = serde_json::from_str(&text)?;
        neighbors["10.77.0.1"]["connectionsEstablished"].as_u64().context("no count")
    }

    pub(crate) async fn faults(&self) -> Result<Vec<String>> {
        Ok(self.backend.view(ViewScope::SESSIONS).await?.faults)
    }

    pub(crate) async fn wait_for_faults(
        &self,
        is_so: impl Fn(&[String]) -> bool,
    ) -> Result<Duration> {
        let mut last = Vec::new();
        let begun = tokio::time::Instant::now();
        loop {
            let faults = self.faults().await?;
            if is_so(&faults) {
                return Ok(begun.elapsed());
            }
            last.clone_from(&faults);
            anyhow::ensure!(begun.elapsed() < crate::lab::PATIENCE, "the faults are {last:?}");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    pub(crate) async fn wait_for_force(&self) -> Result<()> {
        let withdrawn = self.backend.withdrawn(self.desired.generation);
        let waited = tokio::time::timeout(crate::lab::PATIENCE, withdrawn).await;
        let faults = self.faults().await?;
        waited.with_context(|| format!("it is not in force: {faults:?}"))
    }

    /// The running configuration of the daemons other than bgpd.
    pub(crate) async fn running_of_others(&self) -> String {
        let mut all = String::new();
        for daemon in ["mgmtd", "staticd", "zebra"] {
            let Ok(mut vty) = self.host.vty(daemon).await else { continue };
            all += &vty.command("show running-config").await.map(|it| it.text).unwrap_or_default();
        }
        all
    }

    pub(crate) async fn running(&self) -> Result<String> {
        self.host.ask("show running-config").await
    }
}
