//! The state that a case begins with.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use fairway_ground::{AddressFamily, Prefix};
use serde::Deserialize;
use serde_json::Value;

use super::CaseError;
use crate::affinity::{Affinity, AffinityState};
use crate::block::{Attributes, Block, HostReserved, Owner, Taken, WINDOWS_RESERVED_HANDLE};
use crate::census::{PodName, PodState};
use crate::facts::Config;
use crate::moment::{Moment, Seconds};
use crate::pool::{Pool, Use};
use crate::selector::Selector;
use crate::store::{Handle, Object};

/// A case.
#[derive(Debug, Deserialize)]
pub(super) struct Case {
    #[serde(default)]
    pub(super) state: State,
    #[serde(default)]
    pub(super) ops: Vec<Value>,
}

/// See the module.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct State {
    pub(super) pools: Vec<PoolSpec>,
    pub(super) nodes: Vec<NodeSpec>,
    pub(super) namespaces: BTreeMap<String, NamespaceSpec>,
    pub(super) pods: Vec<PodSpec>,
    pub(super) reservations: Vec<Prefix>,
    pub(super) config: ConfigSpec,
    blocks: Vec<BlockSpec>,
    affinities: Option<Vec<AffinitySpec>>,
    handles: BTreeMap<String, BTreeMap<Prefix, u32>>,
}

/// An IPPool's spec.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct PoolSpec {
    name: Option<String>,
    cidr: Prefix,
    block_size: Option<u8>,
    #[serde(default)]
    disabled: bool,
    #[serde(default, rename = "disableBGPExport")]
    disable_bgp_export: bool,
    #[serde(default)]
    node_selector: String,
    #[serde(default)]
    namespace_selector: String,
    #[serde(default)]
    allowed_uses: Vec<Use>,
    assignment_mode: Option<AssignmentMode>,
}

#[derive(Debug, Clone, Copy, Deserialize)]
enum AssignmentMode {
    Automatic,
    Manual,
}

#[derive(Debug, Clone, Deserialize)]
pub(super) struct NodeSpec {
    pub(super) name: String,
    #[serde(default)]
    pub(super) labels: BTreeMap<String, String>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(super) struct NamespaceSpec {
    pub(super) labels: BTreeMap<String, String>,
    pub(super) annotations: BTreeMap<String, String>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(super) struct PodSpec {
    pub(super) namespace: String,
    pub(super) name: String,
    node: String,
    ips: Vec<IpAddr>,
    phase: String,
    reason: String,
    pub(super) annotations: BTreeMap<String, String>,
}

/// The fields of IPAMConfig that are given.
#[derive(Debug, Clone, Copy, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct ConfigSpec {
    strict_affinity: Option<bool>,
    auto_allocate_blocks: Option<bool>,
    max_blocks_per_host: Option<u32>,
    ip_cooldown_seconds: Option<Seconds>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct BlockSpec {
    cidr: Prefix,
    affinity: Option<String>,
    #[serde(default)]
    allocations: BTreeMap<IpAddr, AllocationSpec>,
    #[serde(default)]
    cooling: BTreeMap<IpAddr, Seconds>,
    claimed_ago: Option<Seconds>,
    #[serde(default)]
    seq: u64,
    #[serde(default)]
    deleted: bool,
}

#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum AllocationSpec {
    Handle(Option<String>),
    Whole {
        handle: Option<String>,
        #[serde(default)]
        attrs: BTreeMap<String, String>,
        seq: Option<u64>,
    },
}

#[derive(Debug, Deserialize)]
struct AffinitySpec {
    host: String,
    cidr: Prefix,
    state: Option<String>,
    #[serde(default, rename = "type")]
    kind: String,
    #[serde(default)]
    deleted: bool,
}

/// What Windows or another system takes of each block.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct HostReservedSpec {
    #[serde(default)]
    start: u32,
    #[serde(default)]
    end: u32,
    handle: Option<String>,
    note: Option<String>,
}

/// A claim of this age is given to blocks that do not say.
const CLAIMED_AGO_DEFAULT: Seconds = 3600;

impl PoolSpec {
    pub(super) fn pool(self) -> Pool {
        let block_length = self.block_size.unwrap_or(match self.cidr.family() {
            AddressFamily::Ipv4Unicast => 26,
            AddressFamily::Ipv6Unicast => 122,
        });
        let uses: BTreeSet<Use> = self.allowed_uses.into_iter().collect();
        let is_all = self.namespace_selector.trim().is_empty();
        Pool {
            name: self.name.unwrap_or_else(|| self.cidr.to_string().replace(['.', ':', '/'], "-")),
            prefix: self.cidr,
            block_length,
            is_disabled: self.disabled,
            is_manual: matches!(self.assignment_mode, Some(AssignmentMode::Manual)),
            is_hidden_from_bgp: self.disable_bgp_export,
            is_translated: false,
            nodes: Selector::parse(&self.node_selector),
            namespaces: (!is_all).then(|| Selector::parse(&self.namespace_selector)),
            uses: if uses.is_empty() { Use::DEFAULT.into() } else { uses },
        }
    }
}

impl ConfigSpec {
    /// The configuration with what is given here.
    pub(super) fn over(self, before: Config) -> Config {
        Config {
            is_strict: self.strict_affinity.unwrap_or(before.is_strict),
            allocates_blocks: self.auto_allocate_blocks.unwrap_or(before.allocates_blocks),
            blocks_per_host_max: self.max_blocks_per_host.unwrap_or(before.blocks_per_host_max),
            cooldown: self.ip_cooldown_seconds.unwrap_or(before.cooldown),
        }
    }
}

impl PodSpec {
    pub(super) fn pod_name(&self) -> PodName {
        PodName { namespace: self.namespace.clone(), name: self.name.clone() }
    }

    pub(super) fn state(&self) -> PodState {
        let has_ended = matches!(self.phase.as_str(), "Succeeded" | "Failed");
        PodState {
            node: self.node.clone(),
            addresses: self.ips.clone(),
            is_finished: has_ended || self.reason == "Evicted",
        }
    }
}

impl HostReservedSpec {
    pub(super) fn reserved(self) -> HostReserved {
        let handle = self.handle.unwrap_or_else(|| WINDOWS_RESERVED_HANDLE.to_owned());
        let attributes = Attributes {
            handle: Some(handle.to_lowercase()),
            secondary: self.note.into_iter().map(|it| ("note".to_owned(), it)).collect(),
            ..Attributes::default()
        };
        HostReserved { start: self.start, end: self.end, attributes }
    }
}

/// An owner by the word for its kind and its name.
pub(super) fn owner(kind: &str, name: &str) -> Option<Owner> {
    match kind {
        "" | "host" => Some(Owner::Host(name.to_owned())),
        "virtual" => Some(Owner::Virtual(name.to_owned())),
        _ => None,
    }
}

fn bad(field: String, reason: impl ToString) -> CaseError {
    CaseError::State { field, reason: reason.to_string() }
}

impl State {
    /// The largest sequence number that is given.
    pub(super) fn sequence_max(&self) -> u64 {
        self.blocks.iter().map(|it| it.seq).max().unwrap_or(0)
    }

    /// What the store has at the beginning. Objects that are marked as deleted are none.
    pub(super) fn objects(&self, now: Moment) -> Result<Vec<Object>, CaseError> {
        let mut blocks = Vec::new();
        for (index, spec) in self.blocks.iter().enumerate().filter(|(_, it)| !it.deleted) {
            blocks.push(spec.block(index, now)?);
        }
        let mut objects = self.affinities(&blocks)?;
        objects.extend(self.handles(&blocks));
        objects.extend(blocks.into_iter().map(Object::Block));
        Ok(objects)
    }

    fn affinities(&self, blocks: &[Block]) -> Result<Vec<Object>, CaseError> {
        let Some(specs) = &self.affinities else {
            let confirmed = |block: &Block| {
                let owner = block.owner()?.clone();
                let state = AffinityState::Confirmed;
                Some(Object::Affinity(Affinity { owner, prefix: block.prefix(), state }))
            };
            return Ok(blocks.iter().filter_map(confirmed).collect());
        };
        let mut affinities = Vec::new();
        for (index, spec) in specs.iter().enumerate().filter(|(_, it)| !it.deleted) {
            let field = |name: &str| format!("affinities[{index}].{name}");
            let owner = owner(&spec.kind, &spec.host)
                .ok_or_else(|| bad(field("type"), "expected host or virtual"))?;
            let state = match spec.state.as_deref().unwrap_or_default() {
                "" | "confirmed" => AffinityState::Confirmed,
                "pending" => AffinityState::Pending,
                "pendingDeletion" => AffinityState::PendingDeletion,
                _ => {
                    let expected = "expected pending, confirmed or pendingDeletion";
                    return Err(bad(field("state"), expected));
                }
            };
            affinities.push(Object::Affinity(Affinity { owner, prefix: spec.cidr, state }));
        }
        Ok(affinities)
    }

    fn handles(&self, blocks: &[Block]) -> Vec<Object> {
        let mut handles: BTreeMap<String, BTreeMap<Prefix, u32>> = BTreeMap::new();
        for block in blocks {
            for handle in block.taken().filter_map(|(_, it)| it.handle.clone()) {
                let count = handles.entry(handle).or_default().entry(block.prefix()).or_default();
                *count = count.saturating_add(1);
            }
        }
        handles.remove(WINDOWS_RESERVED_HANDLE);
        for (id, counts) in &self.handles {
            handles.insert(id.to_lowercase(), counts.clone());
        }
        let object = |(id, counts)| Object::Handle(Handle { id, counts });
        handles.into_iter().map(object).collect()
    }
}

impl BlockSpec {
    fn block(&self, index: usize, now: Moment) -> Result<Block, CaseError> {
        let field = |name: &str| format!("blocks[{index}].{name}");
        let owner = match self.affinity.as_deref() {
            None | Some("") => None,
            Some(text) => {
                let parsed = text.split_once(':').and_then(|(kind, name)| owner(kind, name));
                let expected = "expected host:NAME or virtual:NAME";
                Some(parsed.ok_or_else(|| bad(field("affinity"), expected))?)
            }
        };
        let claimed_ago = self.claimed_ago.unwrap_or(CLAIMED_AGO_DEFAULT);
        let claimed_at = owner.as_ref().map(|_| now.seconds().saturating_sub(claimed_ago));
        let whole =
            Block::restore(self.cidr, owner.clone(), claimed_at, self.seq, BTreeMap::new(), &[]);
        let whole = whole.map_err(|error| bad(field("cidr"), error))?;
        let mut taken = BTreeMap::new();
        for (address, spec) in &self.allocations {
            let ordinal = whole.ordinal(*address).ok_or_else(|| {
                bad(field("allocations"), format!("{address} is not in {}", self.cidr))
            })?;
            taken.insert(ordinal, spec.taken(owner.as_ref()));
        }
        for (address, ago) in &self.cooling {
            let ordinal = whole.ordinal(*address).ok_or_else(|| {
                bad(field("cooling"), format!("{address} is not in {}", self.cidr))
            })?;
            let released_at = Some(now.seconds().saturating_sub(*ago));
            let attributes = Attributes { released_at, ..Attributes::default() };
            taken.insert(ordinal, Taken { attributes, sequence: 0 });
        }
        Block::restore(self.cidr, owner, claimed_at, self.seq, taken, &[])
            .map_err(|error| bad(field("cidr"), error))
    }
}

impl AllocationSpec {
    fn taken(&self, owner: Option<&Owner>) -> Taken {
        let (handle, mut secondary, sequence) = match self {
            Self::Handle(handle) => (handle, BTreeMap::new(), 0),
            Self::Whole { handle, attrs, seq } => (handle, attrs.clone(), seq.unwrap_or(0)),
        };
        let handle = handle.as_ref().map(|it| it.to_lowercase());
        if let Some(Owner::Host(host)) = owner {
            secondary.entry("node".to_owned()).or_insert_with(|| host.clone());
        }
        Taken { attributes: Attributes { handle, secondary, ..Attributes::default() }, sequence }
    }
}
