//! One block: which of its addresses are free, and which Pod has which.
//!
//! It is what a store writes at once, so that no two writers give one address twice. Each change raises the sequence
//! number; an assignment remembers the number before it, so that an address that was given to another Pod since is told from
//! what it was. Knows no pool, no other block and no store.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fmt;
use std::net::IpAddr;

use fairway_ground::Prefix;

use crate::moment::{Moment, Seconds};

/// The handle of addresses that Windows takes of each block for itself: no Pod has them.
pub const WINDOWS_RESERVED_HANDLE: &str = "windows-reserved-ipam-handle";
/// The handle of the address of a block that is its gateway.
pub const GATEWAY_HANDLE: &str = "fairway-gateway";

/// Whether a handle is of an address that is for no Pod: it has no object.
pub fn is_for_no_pod(handle: &str) -> bool {
    matches!(handle, WINDOWS_RESERVED_HANDLE | GATEWAY_HANDLE)
}

/// The most addresses of a block, as a power of 2: /20, or /116.
pub(crate) const SIZE_BITS_MAX: u8 = 12;

/// Who has a block.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Owner {
    /// A node.
    Host(String),
    /// No node, but a purpose, such as `load-balancer`.
    Virtual(String),
}

impl fmt::Display for Owner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Host(name) => write!(f, "host:{name}"),
            Self::Virtual(name) => write!(f, "virtual:{name}"),
        }
    }
}

/// Whose an address is.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Attributes {
    /// What releases it; none while it cools.
    pub handle: Option<String>,
    /// Of the Pod: `node`, `namespace`, `pod`, and what other writers have.
    pub secondary: BTreeMap<String, String>,
    /// Of a virtual machine's next Pod, which takes the address over. Kept as it is.
    pub alternate: BTreeMap<String, String>,
    /// When it was released, if it must not be given yet.
    pub released_at: Option<Seconds>,
}

/// Addresses of each new block that are for no Pod.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostReserved {
    /// So many at its beginning.
    pub start: u32,
    /// So many at its end.
    pub end: u32,
    /// Whose they are.
    pub attributes: Attributes,
}

/// A prefix that no block can have.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0} has too many addresses for a block: /20 or /116 is the shortest")]
pub struct BlockSizeError(pub Prefix);

/// Why an address is not given.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum AssignError {
    /// It is in another block.
    #[error("it is not in this block")]
    NotInBlock,
    /// Somebody has it, or it cools.
    #[error("it is assigned already, or was released a short time ago")]
    AlreadyAssigned,
}

/// An address to release.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Release {
    /// The address.
    pub address: IpAddr,
    /// Only if it is of this handle.
    pub handle: Option<String>,
    /// Only if it was given when the block had this sequence number.
    pub sequence: Option<u64>,
}

/// Why nothing of a request is released.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ReleaseError {
    /// It was given to somebody else since.
    #[error("{0} was assigned to somebody else since")]
    Sequence(IpAddr),
    /// It is somebody else's.
    #[error("{0} has another handle")]
    Handle(IpAddr),
}

/// What was released.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Released {
    /// How many addresses of each handle.
    pub handles: BTreeMap<String, u32>,
    /// The addresses.
    pub released: Vec<IpAddr>,
    /// Those that nobody had.
    pub unallocated: Vec<IpAddr>,
}

/// An address that is taken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Taken {
    /// Whose it is.
    pub attributes: Attributes,
    /// The sequence number of the block before it was given.
    pub sequence: u64,
}

/// See the module.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Block {
    prefix: Prefix,
    owner: Option<Owner>,
    claimed_at: Option<Seconds>,
    taken: BTreeMap<u32, Taken>,
    /// The others: taken from the front, returned to the back, so that an address rests for as long as it can.
    free: VecDeque<u32>,
    sequence: u64,
}

impl Block {
    /// A new block of this owner. Its sequence number begins with the time, so that it is above those of an earlier block
    /// with the same prefix.
    ///
    /// # Errors
    /// It would have too many addresses.
    pub fn new(
        prefix: Prefix,
        owner: Owner,
        now: Moment,
        reserved: Option<&HostReserved>,
    ) -> Result<Self, BlockSizeError> {
        let size = size(prefix).ok_or(BlockSizeError(prefix))?;
        let mut block = Self {
            prefix,
            owner: Some(owner),
            claimed_at: Some(now.seconds()),
            taken: BTreeMap::new(),
            free: (0..size).collect(),
            sequence: now.nanoseconds(),
        };
        if let Some(HostReserved { start, end, attributes }) = reserved {
            let last = size.saturating_sub(*end);
            for ordinal in (0..size).filter(|it| it < start || *it >= last) {
                block.take(ordinal, attributes.clone());
            }
        }
        Ok(block)
    }

    /// A block as it was written: these addresses are taken, and the others free, first those of `queue` in its order.
    ///
    /// # Errors
    /// It has too many addresses.
    pub fn restore(
        prefix: Prefix,
        owner: Option<Owner>,
        claimed_at: Option<Seconds>,
        sequence: u64,
        taken: BTreeMap<u32, Taken>,
        queue: &[u32],
    ) -> Result<Self, BlockSizeError> {
        let size = size(prefix).ok_or(BlockSizeError(prefix))?;
        let taken: BTreeMap<u32, Taken> = taken.into_iter().filter(|(it, _)| *it < size).collect();
        let mut left: BTreeSet<u32> = (0..size).filter(|it| !taken.contains_key(it)).collect();
        let mut free: VecDeque<u32> = queue.iter().copied().filter(|it| left.remove(it)).collect();
        free.extend(left);
        Ok(Self { prefix, owner, claimed_at, taken, free, sequence })
    }

    /// Its addresses.
    pub fn prefix(&self) -> Prefix {
        self.prefix
    }

    /// Who gives addresses out of it; nobody, once its owner has given it up while some are taken.
    pub fn owner(&self) -> Option<&Owner> {
        self.owner.as_ref()
    }

    /// Since when it has its owner.
    pub fn claimed_at(&self) -> Option<Seconds> {
        self.claimed_at
    }

    /// It rises with each change.
    pub fn sequence(&self) -> u64 {
        self.sequence
    }

    /// How many addresses are free; some of them may be reserved.
    pub fn free_count(&self) -> usize {
        self.free.len()
    }

    /// Whether no Pod has an address of it, nor had one a short time ago.
    pub fn is_empty(&self) -> bool {
        self.taken.values().all(|it| it.attributes.handle.as_deref().is_some_and(is_for_no_pod))
    }

    /// Whether it has an address that is neither taken nor reserved.
    pub fn has_room(&self, is_reserved: impl Fn(IpAddr) -> bool) -> bool {
        self.free.iter().filter_map(|it| self.address(*it)).any(|it| !is_reserved(it))
    }

    /// The addresses that are free, the one that is given next first.
    pub fn free(&self) -> impl Iterator<Item = IpAddr> {
        self.free.iter().filter_map(|it| self.address(*it))
    }

    /// Gives it to another owner, or to nobody. What was decided by its earlier state conflicts.
    pub fn set_owner(&mut self, owner: Option<Owner>, now: Seconds) {
        self.claimed_at = owner.as_ref().map(|_| now);
        self.owner = owner;
        self.changed();
    }

    /// Makes what others have read of it conflict.
    pub fn touch(&mut self) {
        self.changed();
    }

    /// Each address that is taken, and whose it is; that of one that cools has `released_at`.
    pub fn taken(&self) -> impl Iterator<Item = (IpAddr, &Attributes)> {
        self.taken
            .iter()
            .filter_map(|(ordinal, it)| Some((self.address(*ordinal)?, &it.attributes)))
    }

    /// The addresses of a handle.
    pub fn addresses_of(&self, handle: &str) -> impl Iterator<Item = IpAddr> {
        let is_of = move |it: &Attributes| it.handle.as_deref() == Some(handle);
        self.taken().filter(move |(_, it)| is_of(it)).map(|(address, _)| address)
    }

    /// Whose an address is, and the sequence number before it was given.
    pub fn inspect(&self, address: IpAddr) -> Option<(&Attributes, u64)> {
        let taken = self.taken.get(&self.ordinal(address)?)?;
        Some((&taken.attributes, taken.sequence))
    }

    /// Gives addresses that are not reserved, the one that has rested longest first; fewer where there are no more.
    pub fn assign(
        &mut self,
        count: usize,
        attributes: &Attributes,
        is_reserved: impl Fn(IpAddr) -> bool,
    ) -> Vec<IpAddr> {
        let free = self.free.iter().filter_map(|it| Some((*it, self.address(*it)?)));
        let chosen: Vec<(u32, IpAddr)> =
            free.filter(|(_, address)| !is_reserved(*address)).take(count).collect();
        for (ordinal, _) in &chosen {
            self.take(*ordinal, attributes.clone());
        }
        if !chosen.is_empty() {
            self.changed();
        }
        chosen.into_iter().map(|(_, address)| address).collect()
    }

    /// Takes back what [`Self::assign`] gave and nobody has written: it is the next to be given.
    pub(crate) fn take_back(&mut self, addresses: &[IpAddr]) {
        for address in addresses.iter().rev() {
            if let Some(ordinal) = self.ordinal(*address)
                && self.taken.remove(&ordinal).is_some()
            {
                self.free.push_front(ordinal);
            }
        }
    }

    /// Gives this address, reserved or not.
    ///
    /// # Errors
    /// It is not free.
    pub fn assign_address(
        &mut self,
        address: IpAddr,
        attributes: &Attributes,
    ) -> Result<(), AssignError> {
        let ordinal = self.ordinal(address).ok_or(AssignError::NotInBlock)?;
        if self.taken.contains_key(&ordinal) {
            return Err(AssignError::AlreadyAssigned);
        }
        self.take(ordinal, attributes.clone());
        self.changed();
        Ok(())
    }

    /// Releases addresses: all of them, or none where one is another's. They cool until [`Self::collect`] frees them;
    /// without `cooldown`, they are free at once.
    ///
    /// # Errors
    /// One was given to somebody else since, or has another handle.
    pub fn release(
        &mut self,
        releases: &[Release],
        now: Seconds,
        cooldown: Seconds,
    ) -> Result<Released, ReleaseError> {
        let mut chosen = BTreeSet::new();
        let mut outcome = Released::default();
        for Release { address, handle, sequence } in releases {
            let found = self.ordinal(*address).and_then(|it| Some((it, self.taken.get(&it)?)));
            let Some((ordinal, taken)) =
                found.filter(|(_, it)| it.attributes.released_at.is_none())
            else {
                outcome.unallocated.push(*address);
                continue;
            };
            if sequence.is_some_and(|it| it != taken.sequence) {
                return Err(ReleaseError::Sequence(*address));
            }
            if handle.is_some() && *handle != taken.attributes.handle {
                return Err(ReleaseError::Handle(*address));
            }
            if chosen.insert(ordinal) {
                outcome.released.push(*address);
            }
        }
        self.let_go(&chosen, now, cooldown, &mut outcome);
        Ok(outcome)
    }

    /// Releases all addresses of a handle.
    pub fn release_handle(&mut self, handle: &str, now: Seconds, cooldown: Seconds) -> Released {
        let is_of = |it: &Taken| it.attributes.handle.as_deref() == Some(handle);
        let chosen = self.taken.iter().filter(|(_, it)| is_of(it)).map(|(ordinal, _)| *ordinal);
        let chosen: BTreeSet<u32> = chosen.collect();
        let mut outcome = Released {
            released: chosen.iter().filter_map(|it| self.address(*it)).collect(),
            ..Released::default()
        };
        self.let_go(&chosen, now, cooldown, &mut outcome);
        outcome
    }

    /// Frees addresses that have cooled. Returns whether there were any. The result is stored with the next change: it
    /// raises no number by itself.
    pub fn collect(&mut self, now: Seconds, cooldown: Seconds) -> bool {
        let has_cooled = |it: &Taken| {
            let since = it.attributes.released_at;
            since.is_some_and(|since| now.saturating_sub(since) > cooldown || cooldown == 0)
        };
        let mut cooled: Vec<(Seconds, u32)> = self
            .taken
            .iter()
            .filter(|(_, it)| has_cooled(it))
            .map(|(ordinal, it)| (it.attributes.released_at.unwrap_or_default(), *ordinal))
            .collect();
        // The one that was released last rests longest.
        cooled.sort_unstable();
        for (_, ordinal) in &cooled {
            self.taken.remove(ordinal);
            self.free.push_back(*ordinal);
        }
        !cooled.is_empty()
    }

    fn let_go(
        &mut self,
        chosen: &BTreeSet<u32>,
        now: Seconds,
        cooldown: Seconds,
        outcome: &mut Released,
    ) {
        for ordinal in chosen {
            let Some(taken) = self.taken.get_mut(ordinal) else { continue };
            if let Some(handle) = taken.attributes.handle.take() {
                let count = outcome.handles.entry(handle).or_default();
                *count = count.saturating_add(1);
            }
            taken.attributes.released_at = Some(now);
            if cooldown == 0 {
                self.taken.remove(ordinal);
                self.free.push_back(*ordinal);
            }
        }
        if !chosen.is_empty() {
            self.changed();
        }
    }

    fn take(&mut self, ordinal: u32, attributes: Attributes) {
        self.free.retain(|it| *it != ordinal);
        self.taken.insert(ordinal, Taken { attributes, sequence: self.sequence });
    }

    fn changed(&mut self) {
        self.sequence = self.sequence.saturating_add(1);
    }

    /// The number of an address in it, from 0.
    pub fn ordinal(&self, address: IpAddr) -> Option<u32> {
        if !self.prefix.contains(address) {
            return None;
        }
        let offset = match (address, self.prefix.address()) {
            (IpAddr::V4(it), IpAddr::V4(first)) => {
                u128::from(it.to_bits().checked_sub(first.to_bits())?)
            }
            (IpAddr::V6(it), IpAddr::V6(first)) => it.to_bits().checked_sub(first.to_bits())?,
            _ => return None,
        };
        u32::try_from(offset).ok()
    }

    fn address(&self, ordinal: u32) -> Option<IpAddr> {
        Some(match self.prefix.address() {
            IpAddr::V4(first) => IpAddr::V4(first.to_bits().checked_add(ordinal)?.into()),
            IpAddr::V6(first) => IpAddr::V6(first.to_bits().checked_add(ordinal.into())?.into()),
        })
    }
}

/// How many addresses a block has; `None` if they are too many.
fn size(prefix: Prefix) -> Option<u32> {
    let bits = prefix.family().address_bits().checked_sub(prefix.length())?;
    let bits = Some(bits).filter(|it| *it <= SIZE_BITS_MAX)?;
    1_u32.checked_shl(bits.into())
}
