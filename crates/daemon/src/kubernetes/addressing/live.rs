//! Calico's objects of a cluster as they are now, for `fairway ipam`; and giving addresses back by hand.

use std::net::IpAddr;
use std::time::Duration;

use fairway_ipam::calico::Cluster;
use fairway_ipam::{Addressing, Collected, Collector, Facts, Freed, IpamError, Moment, Release};
use fairway_model::Kind;
use serde_json::Value;
use tokio::time::sleep;

use super::super::api::{Api, ConnectError, ConnectionOptions, Problem};
use super::super::resource::{
    BLOCK_AFFINITY, IP_POOL, IP_RESERVATION, IPAM_BLOCK, IPAM_CONFIG, IPAM_HANDLE,
    NETWORK_POLICIES, POD, Resource,
};
use super::collecting::pass;
use super::store::{ApiStore, for_each};
use crate::host::epoch_milliseconds;

/// Where Calico's own programs are, which go with it, and their policies.
const NAMESPACES_OF_CALICO: [&str; 3] = ["calico-system", "calico-apiserver", "tigera-operator"];
/// How the names of policies begin that its operator makes in other namespaces, of Calico's own kinds.
const TIERS_OF_CALICO: [&str; 2] = ["allow-tigera.", "calico-system."];
const KUBERNETES: &str = "networking.k8s.io/v1";

/// Why a cluster cannot be asked.
#[derive(Debug, thiserror::Error)]
pub(crate) enum LiveError {
    /// There is no API server.
    #[error(transparent)]
    Connect(#[from] ConnectError),
    /// A kind cannot be listed.
    #[error("cannot list {0}: {1}")]
    List(&'static str, String),
    /// What is unused cannot be taken back.
    #[error("cannot put it right: {0}")]
    Collect(String),
    /// Addresses cannot be released.
    #[error(transparent)]
    Release(#[from] IpamError),
}

/// The connection.
pub(crate) struct LiveObjects(Api);

impl LiveObjects {
    pub(crate) async fn connect(options: &ConnectionOptions) -> Result<Self, LiveError> {
        Ok(Self(Api::connect(options).await?))
    }

    /// All objects, with the Nodes and Pods.
    pub(crate) async fn read(&self) -> Result<Cluster, LiveError> {
        let mut cluster = Cluster::default();
        let kinds = [
            IP_POOL,
            IPAM_CONFIG,
            IP_RESERVATION,
            BLOCK_AFFINITY,
            IPAM_BLOCK,
            IPAM_HANDLE,
            Resource::read(Kind::Node),
            POD,
        ];
        for resource in kinds {
            let read = for_each(&self.0, resource, |object| cluster.read(&object));
            let failed = |it: Problem| LiveError::List(resource.plural, it.to_string());
            read.await.map_err(failed)?;
        }
        Ok(cluster)
    }

    /// The names of all NetworkPolicies, of Kubernetes and of Calico, but those of Calico's own programs.
    pub(crate) async fn network_policies(&self) -> Result<Vec<String>, LiveError> {
        let mut names = Vec::new();
        for resource in NETWORK_POLICIES {
            let read = for_each(&self.0, resource, |object| {
                let metadata = |field: &str| object.pointer(field).and_then(Value::as_str);
                let namespace = metadata("/metadata/namespace");
                let name = metadata("/metadata/name").unwrap_or_default();
                let is_of_tier = TIERS_OF_CALICO.iter().any(|it| name.starts_with(it));
                let is_of_calico = (is_of_tier && resource.api_version != KUBERNETES)
                    || namespace.is_some_and(|it| NAMESPACES_OF_CALICO.contains(&it));
                if !is_of_calico {
                    let namespace = namespace.map(|it| format!("{it}/")).unwrap_or_default();
                    names.push(format!("{} {namespace}{name}", resource.kind));
                }
            });
            match read.await {
                // Calico's kinds are not defined here.
                Err(Problem { code: Some(404), .. }) | Ok(()) => {}
                Err(it) => return Err(LiveError::List(resource.plural, it.to_string())),
            }
        }
        Ok(names)
    }

    /// Takes back what the leading controller takes back: what nodes that are gone left now, and the rest where it is so after
    /// this time as well.
    pub(crate) async fn put_right(&self, grace: Duration) -> Result<Collected, LiveError> {
        let store = ApiStore::new(self.0.clone());
        let mut collector = Collector::default();
        let pass = async |collector: &mut Collector| {
            pass(&self.0, &store, collector, grace).await.map_err(LiveError::Collect)
        };
        let (first, _) = pass(&mut collector).await?;
        // The clock of blocks counts whole seconds.
        sleep(grace.saturating_add(Duration::from_secs(1))).await;
        let (mut collected, _) = pass(&mut collector).await?;
        collected.released.extend(first.released);
        collected.blocks.extend(first.blocks);
        collected.hosts.extend(first.hosts);
        Ok(collected)
    }

    /// Releases addresses that were given before these sequence numbers, and not since.
    pub(crate) async fn release(
        &self,
        facts: &Facts,
        addresses: &[(IpAddr, u64)],
    ) -> Result<Freed, LiveError> {
        let store = ApiStore::new(self.0.clone());
        let now = Moment::from_nanoseconds(epoch_milliseconds().saturating_mul(1_000_000));
        let releases = addresses.iter().map(|(address, sequence)| Release {
            address: *address,
            handle: None,
            sequence: Some(*sequence),
        });
        let releases: Vec<Release> = releases.collect();
        Ok(Addressing { store: &store, facts, now }.release(&releases).await?)
    }
}
