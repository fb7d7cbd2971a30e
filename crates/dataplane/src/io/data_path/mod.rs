//! Operations of the service proxy on the kernel of this machine, and what is there.
//!
//! Knows no reason for an operation. Blocks for as long as the kernel works, so it belongs on a thread of its own.

mod operations;

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::net::IpAddr;
use std::path::{Path, PathBuf};

use fairway_ground::Prefix;
use fairway_model::IpvsTimeouts;
use fairway_netlink::Requests;
use fairway_proxy::{FilterRule, Hairpin, Kernel, RealServerPlace, VirtualAddress};
use nix::errno::Errno;

use crate::io::conntrack::Conntrack;
use crate::io::error::DataPathError;
use crate::io::interface::{INTERFACE, machine, make_interface};
use crate::io::ipvs::{Ipvs, IpvsError};
use crate::io::nftables::{FilterWatch, Nftables};
use crate::io::record::{Earlier, Record};
use crate::io::settings::SettingsRecord;
use crate::io::sysctl::Sysctl;
use crate::ipvs::{ListedRealServer, Timeouts, Traffic};
use crate::nftables::elements::{Element, change, rules_of};
use crate::nftables::{Family, PodDetection, TABLE, Transaction, is_ours, layout, remove, tag};

/// The name of the record of virtual servers in the run directory.
pub(super) const SERVERS_FILE: &str = "proxy-servers";
/// The name of the record of settings there.
pub(super) const SETTINGS_FILE: &str = "proxy-settings";
/// The name of IPVS' timeouts in the record of settings.
pub(super) const TIMEOUTS: &str = "ipvs-timeouts";
/// An address without an end.
const FOR_EVER: u32 = u32::MAX;

/// See the module.
#[derive(Debug)]
pub struct DataPath {
    ipvs: Ipvs,
    filter: Nftables,
    conntrack: Conntrack,
    links: Requests,
    record: Record,
    settings: SettingsRecord,
    pods: PodDetection,
    pod_networks: Vec<Prefix>,
    mark: u32,
    interface: u32,
    /// What our tables have.
    rules: BTreeMap<VirtualAddress, FilterRule>,
    /// It has been made once, so what is missing of it was removed by something else.
    is_made: bool,
    repairs: Vec<String>,
    filter_failures: u64,
}

/// How packets are recognized that need another source address.
#[derive(Debug, Clone, Default)]
pub struct FilterOptions {
    /// Which are from Pods.
    pub pods: PodDetection,
    /// The networks of Pods, for [`PodDetection::Networks`].
    pub pod_networks: Vec<Prefix>,
    /// The bit of the mark that is used.
    pub mark: u32,
}

impl DataPath {
    /// For the network namespace of this thread: makes our interface where it is missing, and opens the records in
    /// `run_dir`.
    ///
    /// # Errors
    /// The kernel lacks something, the process may not, or the record cannot be used.
    pub fn open(options: FilterOptions, run_dir: &Path) -> Result<(Self, Earlier), DataPathError> {
        let ipvs = Ipvs::open()?;
        let file = |name: &str| run_dir.join(name);
        let of_file = |path: PathBuf| {
            move |error| DataPathError::Record { path: path.display().to_string(), error }
        };
        let (record, earlier) =
            Record::open(&file(SERVERS_FILE)).map_err(of_file(file(SERVERS_FILE)))?;
        let settings =
            SettingsRecord::open(&file(SETTINGS_FILE)).map_err(of_file(file(SETTINGS_FILE)))?;
        let mut links = Requests::open().map_err(DataPathError::Interface)?;
        let interface = make_interface(&mut links)?;
        let FilterOptions { pods, pod_networks, mark } = options;
        let path = Self {
            ipvs,
            filter: Nftables::open().map_err(DataPathError::Filter)?,
            conntrack: Conntrack::open().map_err(DataPathError::Filter)?,
            links,
            record,
            settings,
            pods,
            pod_networks,
            mark,
            interface,
            rules: BTreeMap::new(),
            is_made: false,
            repairs: Vec::new(),
            filter_failures: 0,
        };
        Ok((path, earlier))
    }

    /// Whether another process has the records in `run_dir` open.
    pub fn is_in_use(run_dir: &Path) -> bool {
        Record::is_in_use(&run_dir.join(SERVERS_FILE))
    }

    /// Watches for what others remove from our tables; and whether nobody else has changed the packet filter since the last
    /// [`Self::observe`].
    ///
    /// # Errors
    /// There is no socket, or the kernel does not answer.
    pub fn watch_filter(&mut self) -> Result<(FilterWatch, bool), DataPathError> {
        let watch = self.filter.watch().map_err(DataPathError::Filter)?;
        let is_undisturbed = self.filter.is_undisturbed().map_err(DataPathError::Filter)?;
        Ok((watch, is_undisturbed))
    }

    /// Sets a setting where it differs, and returns what it was before; `None` if it is as it should be.
    ///
    /// # Errors
    /// It cannot be read, noted or written; `NotFound` where this kernel does not have it.
    pub fn set(&mut self, sysctl: Sysctl) -> io::Result<Option<String>> {
        let before = sysctl.read()?;
        if before == sysctl.value() {
            return Ok(None);
        }
        self.settings.note(sysctl.name, &before, sysctl.value())?;
        sysctl.write(sysctl.value())?;
        Ok(Some(before))
    }

    /// Sets the timeouts of IPVS that an operator chose where they differ, and returns what they were before.
    ///
    /// # Errors
    /// They cannot be read, noted or written.
    pub fn set_timeouts(
        &mut self,
        chosen: IpvsTimeouts,
    ) -> Result<Option<(Timeouts, Timeouts)>, DataPathError> {
        if chosen == IpvsTimeouts::default() {
            return Ok(None);
        }
        let before = self.ipvs.timeouts()?;
        let after = before.with(chosen);
        if before == after {
            return Ok(None);
        }
        let noted = self.settings.note(TIMEOUTS, &before.to_string(), &after.to_string());
        noted.map_err(IpvsError::Io)?;
        self.ipvs.set_timeouts(after)?;
        Ok(Some((before, after)))
    }

    /// The kernel as it is. Makes our interface and our tables where they are missing.
    ///
    /// # Errors
    /// Something cannot be read or made.
    pub fn observe(&mut self) -> Result<Kernel, DataPathError> {
        let interface = make_interface(&mut self.links)?;
        if std::mem::replace(&mut self.interface, interface) != interface {
            self.repairs.push(format!("interface {INTERFACE}"));
        }
        let servers = self.ipvs.servers()?;
        let bound_addresses = self.bound_addresses()?;
        let mut elements = BTreeSet::new();
        self.filter.note_generation().map_err(DataPathError::Filter)?;
        for family in Family::ALL {
            let present = self.table(family, &bound_addresses).map_err(DataPathError::Filter)?;
            elements.extend(present);
        }
        self.rules = rules_of(&elements);
        let hairpin = |it: &Element| match it {
            Element::Hairpin(it) => Some(*it),
            _ => None,
        };
        let hairpins: BTreeSet<Hairpin> = elements.iter().filter_map(hairpin).collect();
        self.is_made = true;
        Ok(Kernel { servers, bound_addresses, rules: self.rules.clone(), hairpins })
    }

    /// What something else had removed or changed, and was made again since the last call.
    pub fn take_repairs(&mut self) -> Vec<String> {
        std::mem::take(&mut self.repairs)
    }

    /// Recognizes packets from Pods in another way from the next [`Self::observe`] on; returns whether it is another one.
    pub fn follow_pods(&mut self, options: FilterOptions) -> bool {
        let FilterOptions { pods, pod_networks, mark } = options;
        if (&pods, &pod_networks, mark) == (&self.pods, &self.pod_networks, self.mark) {
            return false;
        }
        (self.pods, self.pod_networks, self.mark) = (pods, pod_networks, mark);
        true
    }

    fn bound_addresses(&self) -> Result<BTreeSet<IpAddr>, DataPathError> {
        let machine = machine()?;
        Ok(machine.addresses_of(self.interface).iter().map(|it| it.address).collect())
    }

    /// The elements of our table, which is made if it is missing. One with other rules is replaced in one transaction: no
    /// packet meets a table without elements.
    fn table(&mut self, family: Family, bound: &BTreeSet<IpAddr>) -> io::Result<BTreeSet<Element>> {
        let networks: Vec<_> = self.pod_networks.clone();
        let wanted = tag(&self.pods, &networks, self.mark);
        let present = self.filter.tag(family).map_err(|error| lacking(error, family))?;
        if present.as_ref().is_some_and(|tag| !is_ours(tag)) {
            return Err(io::Error::other(format!(
                "table {TABLE} is not Fairway's, which has the comment \"Fairway service proxy\"; rename or remove it"
            )));
        }
        let layout = layout(family, &self.pods, self.mark, &wanted);
        let elements = self.filter.elements(family)?;
        if present.as_ref() == Some(&wanted)
            && let Some(elements) = &elements
            && self.filter.rule_count(family)? == layout.rule_count()
            && bound
                .iter()
                .all(|it| Family::of(*it) != family || elements.contains(&Element::Vip(*it)))
            && (networks.iter().all(|it| Family::of(it.address()) != family)
                || self.filter.has_pods(family)?)
        {
            return Ok(elements.clone());
        }
        let mut transaction = Transaction::default();
        if present.is_some() {
            transaction = transaction.then(remove(family));
        }
        let elements = elements.unwrap_or_default();
        let vips = bound.iter().map(|it| Element::Vip(*it));
        let networks = networks.into_iter().map(Element::Pods);
        let all: BTreeSet<Element> = elements.iter().copied().chain(vips).chain(networks).collect();
        let filled = change([], all.iter().filter(|it| it.family() == family));
        transaction = transaction.then(layout).then(filled);
        self.filter.commit(transaction).map_err(|error| lacking(error, family))?;
        // Our own options may have changed; everything else is not ours.
        if self.is_made && present.is_none_or(|it| it == wanted) {
            self.repairs.push(format!("table {} {TABLE}", family.name()));
        }
        Ok(elements)
    }

    /// How many transactions of operations the packet filter has refused.
    pub fn filter_failures(&self) -> u64 {
        self.filter_failures
    }

    /// The real servers of a virtual one, with their connections.
    ///
    /// # Errors
    /// The kernel does not answer.
    pub fn real_servers(
        &mut self,
        at: VirtualAddress,
    ) -> Result<Vec<ListedRealServer>, DataPathError> {
        Ok(self.ipvs.real_servers(at)?)
    }

    /// What each virtual server has carried.
    ///
    /// # Errors
    /// The kernel does not answer.
    pub fn traffic(&mut self) -> Result<BTreeMap<VirtualAddress, Traffic>, DataPathError> {
        Ok(self.ipvs.traffic()?)
    }

    /// Those of the given places that have no connection.
    ///
    /// # Errors
    /// They cannot be counted.
    pub fn idle(
        &mut self,
        places: &BTreeSet<RealServerPlace>,
    ) -> Result<Vec<RealServerPlace>, DataPathError> {
        let servers: BTreeSet<VirtualAddress> = places.iter().map(|(at, _)| *at).collect();
        let mut idle = Vec::new();
        for at in servers {
            let listed = self.ipvs.real_servers(at)?;
            let without = listed.iter().filter(|it| it.connections == 0);
            let without = without.map(|it| (at, it.real_server));
            idle.extend(without.filter(|it| places.contains(it)));
        }
        Ok(idle)
    }
}

/// What a kernel without a part of the packet filter answers.
fn lacking(error: io::Error, family: Family) -> io::Error {
    let name = family.name();
    match error.raw_os_error().map(Errno::from_raw) {
        Some(Errno::ENOENT | Errno::EOPNOTSUPP | Errno::EPROTONOSUPPORT | Errno::EAFNOSUPPORT) => {
            io::Error::other(format!(
                "table {name} {TABLE} cannot be made: {error}; this kernel lacks nftables, or one of its modules \
                 nft_chain_nat, nft_masq, nft_reject_ipv4, nft_reject_ipv6, nft_ct"
            ))
        }
        _ => error,
    }
}
