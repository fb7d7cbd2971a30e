//! Calls are answered out of the store: what all commands need, and all commands but ADD.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use fairway_ground::{AddressFamily, Prefix};
use futures_util::future::join_all;
use serde_json::Value;

use super::PodNotes;
use super::error::{CniError, Code};
use super::request::{Attachment, Command, Request};
use crate::addressing::Addressing;
use crate::assign::Assigned;
use crate::block::{Attributes, Release, is_for_no_pod};
use crate::census::{PodName, pod_of};
use crate::error::IpamError;
use crate::pool::Use;
use crate::request::{AddressRequest, FamilyRequest};
use crate::store::Store;

/// The attributes of an address that a Pod has.
const NODE: &str = "node";
const INTERFACE: &str = "interface";

/// What precedes the annotations that decide about addresses.
pub(crate) const ANNOTATIONS: &str = "cni.projectcalico.org/";

/// A call with what it is answered from.
pub(super) struct Call<'a, S> {
    pub(super) addressing: &'a Addressing<'a, S>,
    pub(super) request: &'a Request,
    pub(super) node: &'a str,
    pub(super) notes: PodNotes,
    pub(super) handle: String,
}

/// How far a call is answered.
pub(super) enum Begun {
    /// What is printed.
    Done(Option<Value>),
    /// It needs these addresses.
    Asks(Box<AddressRequest>),
}

/// Answers calls, each about another container.
pub(super) async fn serve_together<S: Store>(
    addressing: &Addressing<'_, S>,
    requests: &[&Request],
    node: &str,
    notes: impl Fn(&PodName) -> PodNotes,
) -> Vec<Result<Option<Value>, CniError>> {
    let mut calls = Vec::with_capacity(requests.len());
    for request in requests {
        let notes = request.pod.as_ref().map(&notes).unwrap_or_default();
        calls.push(Call::new(addressing, request, node, notes));
    }
    release_together(addressing, &calls).await;
    let begun = join_all(calls.iter().map(Call::begin)).await;
    let asked: Vec<AddressRequest> = begun
        .iter()
        .filter_map(|it| match it {
            Ok(Begun::Asks(request)) => Some(AddressRequest::clone(request)),
            _ => None,
        })
        .collect();
    let mut answered = addressing.assign_together(&asked).await.into_iter();
    let mut outcomes = Vec::with_capacity(calls.len());
    for (call, begun) in calls.iter().zip(begun) {
        outcomes.push(match begun {
            Ok(Begun::Done(stdout)) => Ok(stdout),
            Ok(Begun::Asks(_)) => {
                call.finish_add(answered.next().unwrap_or_default()).await.map(Some)
            }
            Err(error) => Err(error),
        });
    }
    outcomes
}

/// Claims blocks where Pods such as this one have few addresses left.
pub(super) async fn keep_stock<S: Store>(
    addressing: &Addressing<'_, S>,
    request: &Request,
    node: &str,
) -> Result<(), CniError> {
    let call = Call::new(addressing, request, node, PodNotes::default());
    let families = &request.configuration.families;
    let asked = call.address_request(families)?;
    for family in families {
        let outcome = addressing.keep_stock(&asked.scope(*family)).await;
        outcome.map_err(|it| CniError::refused(&it))?;
    }
    Ok(())
}

/// Releases what containers have that are deleted: one write for each block. Each of the calls looks for what is left of it.
async fn release_together<S: Store>(addressing: &Addressing<'_, S>, calls: &[Call<'_, S>]) {
    let deleting: Vec<&Call<'_, S>> =
        calls.iter().filter(|it| it.request.command == Command::Delete).collect();
    if deleting.len() < 2 {
        return;
    }
    let held = join_all(deleting.iter().map(|it| it.held(&it.handle))).await;
    let mut releases = Vec::new();
    for (call, held) in deleting.iter().zip(held) {
        let mine = held.into_iter().flatten().filter(|it| call.is_of_interface(it));
        releases.extend(mine.map(|it| call.release(it.assigned.address)));
    }
    // What fails is released, or fails, again with its call.
    _ = addressing.release(&releases).await;
}

/// The handle of a container in a network.
fn handle(network: &str, container: &str) -> String {
    format!("{network}.{container}").to_lowercase()
}

/// An address of a handle, and the interface that it is for, where that is known.
pub(super) struct Held {
    pub(super) assigned: Assigned,
    interface: Option<String>,
    node: Option<String>,
    pod: Option<PodName>,
}

impl Held {
    fn new(assigned: Assigned, attributes: &Attributes) -> Self {
        Self {
            assigned,
            interface: attributes.secondary.get(INTERFACE).cloned(),
            node: attributes.secondary.get(NODE).cloned(),
            pod: pod_of(attributes),
        }
    }

    /// Whether it is of an attachment that is left.
    fn is_valid(&self, container: &str, valid: &BTreeSet<Attachment>) -> bool {
        let mut of_container = valid.iter().filter(|it| it.container == container);
        of_container.any(|it| self.interface.as_ref().is_none_or(|own| *own == it.interface))
    }

    fn is_named_after_pod(&self, handle: &str) -> bool {
        let name = |it: &PodName| format!("{}.{}", it.namespace, it.name).to_lowercase();
        self.pod.as_ref().is_some_and(|it| name(it) == handle)
    }
}

impl<'a, S> Call<'a, S> {
    fn new(
        addressing: &'a Addressing<'a, S>,
        request: &'a Request,
        node: &'a str,
        notes: PodNotes,
    ) -> Self {
        Self {
            addressing,
            request,
            node: request.configuration.node.as_deref().unwrap_or(node),
            notes,
            handle: handle(&request.configuration.network, &request.attachment.container),
        }
    }
}

impl<S: Store> Call<'_, S> {
    /// The answer, but where it takes addresses that several calls are given together.
    async fn begin(&self) -> Result<Begun, CniError> {
        let done = |()| Begun::Done(None);
        match self.request.command {
            Command::Add => self.begin_add().await,
            Command::Delete => self.delete().await.map(done),
            Command::Check => self.check().await.map(done),
            Command::Status => self.status().await.map(done),
            Command::CollectGarbage => self.collect_garbage().await.map(done),
            Command::Version => Ok(Begun::Done(None)),
        }
    }

    /// Releases what this call was given before it failed.
    pub(super) async fn take_back(&self, addresses: &[IpAddr]) -> Result<(), CniError> {
        let releases: Vec<Release> = addresses.iter().map(|it| self.release(*it)).collect();
        let failed = |it: &IpamError| CniError {
            message: "the addresses are not released".to_owned(),
            code: match CniError::refused(it).code {
                Code::Unavailable => Code::Unavailable,
                _ => Code::TryAgain,
            },
            details: it.to_string(),
        };
        let freed = self.addressing.release(&releases).await.map_err(|it| failed(&it))?;
        // One that is somebody else's by now is not to be released.
        let is_theirs = |it: &&IpamError| matches!(it, IpamError::Release(_));
        freed.errors.iter().find(|it| !is_theirs(it)).map_or(Ok(()), |it| Err(failed(it)))
    }

    pub(super) fn release(&self, address: IpAddr) -> Release {
        Release { address, handle: Some(self.handle.clone()), sequence: None }
    }

    async fn delete(&self) -> Result<(), CniError> {
        let held = self.held(&self.handle).await?;
        let mine = held.iter().filter(|it| self.is_of_interface(it));
        let mine: Vec<IpAddr> = mine.map(|it| it.assigned.address).collect();
        self.take_back(&mine).await?;
        // It may count an address that was never written.
        self.addressing.settle_handle(&self.handle).await.map_err(|it| CniError::refused(&it))?;
        // What releases of long ago have called it. One that notes an interface is of another container, and of this one's name
        // by chance.
        let earlier = match &self.request.pod {
            Some(PodName { namespace, name }) => format!("{namespace}.{name}"),
            None => self.request.attachment.container.clone(),
        };
        let earlier = earlier.to_lowercase();
        let held = self.held(&earlier).await?;
        let is_other = held.iter().any(|it| it.interface.is_some()) || is_for_no_pod(&earlier);
        if held.is_empty() || is_other {
            return Ok(());
        }
        self.release_handle(&earlier).await
    }

    async fn release_handle(&self, handle: &str) -> Result<(), CniError> {
        match self.addressing.release_handle(handle).await {
            Ok(_) | Err(IpamError::NoSuchHandle(_)) => Ok(()),
            Err(error) => Err(CniError::refused(&error)),
        }
    }

    async fn check(&self) -> Result<(), CniError> {
        let held = self.held(&self.handle).await?;
        if held.is_empty() {
            let details = format!("{} has no address", self.request.attachment.container);
            return Err(CniError::new(Code::UnknownContainer, "the container is unknown", details));
        }
        let earlier = self.request.configuration.earlier.as_deref().unwrap_or_default();
        if earlier.is_empty() {
            return Err(CniError::configuration("prevResult has no ips; expected the container's"));
        }
        let has = |address: &IpAddr| {
            held.iter().any(|it| it.assigned.address == *address && self.is_of_interface(it))
        };
        match earlier.iter().find(|it| !has(it)) {
            None => Ok(()),
            Some(address) => Err(CniError::new(
                Code::Mismatch,
                "an address is not the container's",
                format!("{address} is not assigned to it"),
            )),
        }
    }

    async fn status(&self) -> Result<(), CniError> {
        let request = self.address_request(&self.request.configuration.families);
        let mut request = request.map_err(|error| CniError::not_available(error.details))?;
        request.ipv4.named = self.pools_for_some_pod(request.ipv4.named, |it| it.is_ipv4());
        request.ipv6.named = self.pools_for_some_pod(request.ipv6.named, |it| it.is_ipv6());
        for family in &self.request.configuration.families {
            match self.addressing.has_room(&request.scope(*family)).await {
                Ok(true) => {}
                Ok(false) => {
                    let details =
                        format!("the IPPools have no free {family} address for this node");
                    return Err(CniError::not_available(details));
                }
                Err(error) => return Err(CniError::not_available(error)),
            }
        }
        Ok(())
    }

    /// The pools that are named; else all that some Pod of this node may have an address of, as its namespace or its
    /// annotations decide.
    fn pools_for_some_pod(
        &self,
        named: Vec<Prefix>,
        is_of_family: impl Fn(IpAddr) -> bool,
    ) -> Vec<Prefix> {
        let Some(labels) = self.addressing.facts.nodes.get(self.node) else { return named };
        if !named.is_empty() {
            return named;
        }
        let pools = self.addressing.facts.pools.iter();
        let for_pods = pools.filter(|it| it.is_usable() && it.uses.contains(&Use::Workload));
        let of_node =
            for_pods.filter(|it| it.is_manual || it.selects_node(labels).unwrap_or(false));
        of_node.map(|it| it.prefix).filter(|it| is_of_family(it.address())).collect()
    }

    /// Releases what containers of this network have on this node, but those that are named.
    async fn collect_garbage(&self) -> Result<(), CniError> {
        let Some(valid) = &self.request.configuration.valid else { return Ok(()) };
        let network = format!("{}.", self.request.configuration.network.to_lowercase());
        let mut releases: BTreeMap<String, Vec<Release>> = BTreeMap::new();
        for (handle, held) in self.held_on_node().await? {
            // A name with a point in it may be of another network, whose name begins alike.
            let container = handle.strip_prefix(&network).filter(|it| !it.contains('.'));
            let Some(container) = container else { continue };
            // NAMESPACE.POD of old releases, where the network is called as the namespace.
            if held.iter().any(|it| it.is_named_after_pod(&handle)) {
                continue;
            }
            let unused = held.iter().filter(|it| !it.is_valid(container, valid));
            let release = |it: &Held| Release {
                address: it.assigned.address,
                handle: Some(handle.clone()),
                sequence: None,
            };
            releases.insert(handle.clone(), unused.map(release).collect());
        }
        let mut errors = Vec::new();
        for releases in releases.into_values().filter(|it| !it.is_empty()) {
            let freed = self.addressing.release(&releases).await;
            match freed.map(|it| it.errors.into_iter().next()) {
                Ok(None) => {}
                Ok(Some(error)) | Err(error) => errors.push(error.to_string()),
            }
        }
        match errors.is_empty() {
            true => Ok(()),
            false => Err(CniError::new(
                Code::TryAgain,
                "not all addresses are released",
                errors.join("; "),
            )),
        }
    }

    /// What containers have on this node, by their handle: out of what the store knows of the node, else of all blocks.
    async fn held_on_node(&self) -> Result<BTreeMap<String, Vec<Held>>, CniError> {
        let blocks = match self.addressing.store.blocks_of_node() {
            Some(blocks) => blocks,
            None => {
                let listed = self.addressing.load_all().await.map_err(IpamError::from);
                let listed = listed.map_err(|it| CniError::refused(&it))?;
                listed.into_iter().map(|it| it.value).collect()
            }
        };
        let mut held: BTreeMap<String, Vec<Held>> = BTreeMap::new();
        for block in blocks {
            for (address, attributes) in block.taken() {
                let assigned = Assigned { address, block: block.prefix() };
                let of = Held::new(assigned, attributes);
                if let Some(handle) = &attributes.handle
                    && of.node.as_deref() == Some(self.node)
                {
                    held.entry(handle.clone()).or_default().push(of);
                }
            }
        }
        Ok(held)
    }

    /// The addresses of a handle.
    pub(super) async fn held(&self, handle: &str) -> Result<Vec<Held>, CniError> {
        match self.addressing.assignments_of_handle(handle).await {
            Err(IpamError::NoSuchHandle(_)) => Ok(Vec::new()),
            Ok(found) => Ok(found.into_iter().map(|(it, of)| Held::new(it, &of)).collect()),
            Err(error) => Err(CniError::refused(&error)),
        }
    }

    /// Whether an address is for the interface that is asked about. Other writers do not say.
    pub(super) fn is_of_interface(&self, held: &Held) -> bool {
        held.interface.as_ref().is_none_or(|it| *it == self.request.attachment.interface)
    }

    fn attributes(&self) -> Attributes {
        let mut secondary = BTreeMap::from([
            (NODE.to_owned(), self.node.to_owned()),
            (INTERFACE.to_owned(), self.request.attachment.interface.clone()),
            ("timestamp".to_owned(), self.addressing.now.to_string()),
        ]);
        if let Some(PodName { namespace, name }) = &self.request.pod {
            secondary.insert("namespace".to_owned(), namespace.clone());
            secondary.insert("pod".to_owned(), name.clone());
        }
        Attributes { handle: Some(self.handle.clone()), secondary, ..Attributes::default() }
    }

    pub(super) fn address_request(
        &self,
        families: &BTreeSet<AddressFamily>,
    ) -> Result<AddressRequest, CniError> {
        let configuration = &self.request.configuration;
        let family = |family: AddressFamily, key: &str, pools: &[String]| {
            let count = usize::from(families.contains(&family));
            let named = if count > 0 { self.pools(key, pools)? } else { Vec::new() };
            Ok::<_, CniError>(FamilyRequest { count, named, host_reserved: None })
        };
        Ok(AddressRequest {
            host: self.node.to_owned(),
            attributes: self.attributes(),
            ipv4: family(AddressFamily::Ipv4Unicast, "ipv4pools", &configuration.ipv4_pools)?,
            ipv6: family(AddressFamily::Ipv6Unicast, "ipv6pools", &configuration.ipv6_pools)?,
            purpose: Some(Use::Workload),
            namespace: self.request.pod.as_ref().map(|it| it.namespace.clone()),
            blocks_max: None,
            per_handle_max: None,
            is_windows: false,
            is_first: false,
            edges: configuration.gateways.edges(),
        })
    }

    /// The pools that are named: by the Pod, else its namespace, else the configuration.
    fn pools(&self, key: &str, configured: &[String]) -> Result<Vec<Prefix>, CniError> {
        let annotated = match self.annotation(&self.notes.of_pod, key)? {
            Some(names) => Some(names),
            None => self.annotation(&self.notes.of_namespace, key)?,
        };
        let names = annotated.unwrap_or_else(|| configured.to_vec());
        let pools = &self.addressing.facts.pools;
        let named = |name: &String| {
            let of_name = pools.iter().find(|it| it.name == *name).map(|it| it.prefix);
            let unknown = || {
                CniError::configuration(format!(
                    "there is no IPPool {name:?}; expected a name or prefix"
                ))
            };
            of_name.or_else(|| name.parse().ok()).ok_or_else(unknown)
        };
        names.iter().map(named).collect()
    }

    /// An annotation whose value is a JSON list of texts.
    pub(super) fn annotation(
        &self,
        notes: &BTreeMap<String, String>,
        key: &str,
    ) -> Result<Option<Vec<String>>, CniError> {
        let key = format!("{ANNOTATIONS}{key}");
        let Some(text) = notes.get(&key) else { return Ok(None) };
        serde_json::from_str(text).map(Some).map_err(|_| {
            CniError::configuration(format!("{key} is {text:?}; expected a JSON list of texts"))
        })
    }
}
