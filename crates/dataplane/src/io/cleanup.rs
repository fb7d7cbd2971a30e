//! Takes away what the service proxy put into the kernel, and nothing else.
//!
//! What is ours is what the record says; where it is lost, virtual servers at an address of our interface. The address
//! goes first: no packet meets a virtual server without its rules.

use std::io;
use std::path::Path;

use fairway_netlink::Requests;
use fairway_proxy::{Recorded, VirtualAddress};
use nix::errno::Errno;

use super::data_path::{SERVERS_FILE, SETTINGS_FILE, TIMEOUTS};
use super::error::DataPathError;
use super::interface::{machine, our_interface};
use super::ipvs::{Ipvs, IpvsError};
use super::kube_proxy::kube_proxy_has_rules;
use super::nftables::Nftables;
use super::record::Record;
use super::settings::{Changed, SettingsRecord};
use super::sysctl;
use crate::ipvs::Change;
use crate::nftables::{Family, is_ours, remove};

/// Without them the node routes for nobody: Pods, containers and machines need them as well.
const FORWARDING: [&str; 2] = ["net.ipv4.ip_forward", "net.ipv6.conf.all.forwarding"];

/// What became of it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Cleaned {
    /// Virtual servers that were removed.
    pub servers: usize,
    /// Virtual servers that stay for a successor.
    pub handed_over: usize,
    /// There was our interface.
    pub interface: bool,
    /// Tables that were removed.
    pub tables: usize,
    /// Settings that have their earlier values again, with these.
    pub settings: Vec<(String, String)>,
    /// Settings that stay, which other programs may need by now, with their values before.
    pub settings_left: Vec<(String, String)>,
    /// What could not be done, or is not ours.
    pub left: Vec<String>,
}

/// Takes everything away. With `hand_over`, virtual servers stay, and settings that they need, for a kube-proxy that has
/// written its rules; nobody has them in a record then.
///
/// # Errors
/// Another process uses the records, or something cannot be removed.
pub fn clean_up(run_dir: &Path, hand_over: bool) -> Result<Cleaned, DataPathError> {
    let mut cleaned = Cleaned::default();
    if hand_over && !kube_proxy_has_rules()? {
        return Err(DataPathError::NoSuccessor);
    }
    let (servers_file, settings_file) = (run_dir.join(SERVERS_FILE), run_dir.join(SETTINGS_FILE));
    let of_file = |path: &Path| {
        let path = path.display().to_string();
        move |error| DataPathError::Record { path, error }
    };
    // Locked until the end.
    let record = match run_dir.is_dir() {
        true => Some(Record::open(&servers_file).map_err(of_file(&servers_file))?),
        false => None,
    };
    let earlier = record.as_ref().and_then(|(_, earlier)| earlier.as_ref());
    let ours = our_servers(earlier)?;
    remove_interface(&mut cleaned)?;
    match ours {
        Some((_, ours)) if hand_over => cleaned.handed_over = ours.len(),
        Some((mut ipvs, ours)) => {
            let changes: Vec<Change> = ours.iter().map(|at| Change::Remove(*at)).collect();
            for (outcome, at) in ipvs.change(&changes)?.into_iter().zip(ours) {
                match outcome {
                    Ok(()) => cleaned.servers = cleaned.servers.saturating_add(1),
                    Err(error) if error.raw_os_error() == Some(Errno::ESRCH as i32) => {}
                    Err(error) => return Err(failed(at, error)),
                }
            }
        }
        None => {}
    }
    remove_tables(&mut cleaned)?;
    if !hand_over {
        let settings = SettingsRecord::open(&settings_file).map_err(of_file(&settings_file))?;
        restore(&settings, &mut cleaned);
    }
    for file in [&servers_file, &settings_file] {
        match std::fs::remove_file(file) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(of_file(file)(error));
            }
            _ => {}
        }
    }
    Ok(cleaned)
}

fn failed(at: VirtualAddress, error: io::Error) -> DataPathError {
    let message = format!("virtual server {at} cannot be removed: {error}");
    DataPathError::Ipvs(IpvsError::Io(io::Error::other(message)))
}

/// The virtual servers in the kernel that are ours; `None` on a kernel without IPVS.
fn our_servers(
    record: Option<&std::collections::BTreeMap<VirtualAddress, Recorded>>,
) -> Result<Option<(Ipvs, Vec<VirtualAddress>)>, DataPathError> {
    let mut ipvs = match Ipvs::open() {
        Ok(ipvs) => ipvs,
        Err(IpvsError::NoModule) => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    let machine = machine()?;
    // One of somebody else is reported with the interface.
    let index = our_interface(&machine).unwrap_or_default();
    let bound: Vec<_> = index.map_or_else(Vec::new, |it| machine.addresses_of(it).to_vec());
    let servers = ipvs.servers()?.into_iter().filter(|(at, server)| match record {
        None => bound.iter().any(|it| it.address == at.address),
        Some(record) => match record.get(at) {
            Some(Recorded::Made) => true,
            Some(Recorded::Intended(settings)) => {
                server.settings == Some(*settings) && server.real_servers.is_empty()
            }
            None => false,
        },
    });
    let ours = servers.map(|(at, _)| at).collect();
    Ok(Some((ipvs, ours)))
}

fn remove_interface(cleaned: &mut Cleaned) -> Result<(), DataPathError> {
    match our_interface(&machine()?) {
        Ok(None) => {}
        Ok(Some(index)) => {
            let mut links = Requests::open().map_err(DataPathError::Interface)?;
            links.remove_link(index).map_err(DataPathError::Interface)?;
            cleaned.interface = true;
        }
        Err(error) => cleaned.left.push(error.to_string()),
    }
    Ok(())
}

fn remove_tables(cleaned: &mut Cleaned) -> Result<(), DataPathError> {
    let mut filter = Nftables::open().map_err(DataPathError::Filter)?;
    for family in Family::ALL {
        match filter.tag(family) {
            Ok(Some(tag)) if is_ours(&tag) => {
                filter.commit(remove(family)).map_err(DataPathError::Filter)?;
                cleaned.tables = cleaned.tables.saturating_add(1);
            }
            Ok(Some(_)) => {
                let name = crate::nftables::TABLE;
                cleaned.left.push(format!("table {name} is not Fairway's, and stays"));
            }
            Ok(None) => {}
            // A kernel without nftables has no table of ours.
            Err(error) if error.raw_os_error() == Some(Errno::EOPNOTSUPP as i32) => {}
            Err(error) => return Err(DataPathError::Filter(error)),
        }
    }
    Ok(())
}

/// Puts settings back that nobody has changed since.
fn restore(settings: &SettingsRecord, cleaned: &mut Cleaned) {
    for (name, Changed { before, after }) in settings.changes() {
        if FORWARDING.contains(&&**name) {
            cleaned.settings_left.push((name.clone(), before.clone()));
            continue;
        }
        let restored = if name == TIMEOUTS {
            restore_timeouts(before, after)
        } else {
            sysctl::read(name).and_then(|now| match now {
                now if now == *after => sysctl::write(name, before).map(|()| true),
                // It could not be changed.
                now => Ok(now == *before),
            })
        };
        match restored {
            Ok(true) => cleaned.settings.push((name.clone(), before.clone())),
            Ok(false) => {
                cleaned.left.push(format!("{name} was changed since by something else, and stays"));
            }
            Err(error) => {
                cleaned.left.push(format!("{name} cannot be set back to {before}: {error}"));
            }
        }
    }
}

fn restore_timeouts(before: &str, after: &str) -> io::Result<bool> {
    let mut ipvs = Ipvs::open().map_err(io::Error::other)?;
    if ipvs.timeouts().map_err(io::Error::other)?.to_string() != after {
        return Ok(false);
    }
    let before = before.parse().map_err(io::Error::other)?;
    ipvs.set_timeouts(before).map_err(io::Error::other)?;
    Ok(true)
}
