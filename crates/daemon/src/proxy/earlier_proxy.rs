//! Whether another service proxy has this node.
//!
//! Two of them would each undo what the other does. Knows kube-proxy: by its process, its port, and what it leaves in the
//! kernel.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::path::Path;
use std::time::Duration;

use fairway_dataplane::nftables::Family;
use fairway_dataplane::{KUBE_PROXY_INTERFACE, KUBE_PROXY_TABLE, Nftables};

/// The name of its process.
const PROCESS: &str = "kube-proxy";
/// Where it says its mode, which a container sees that does not see its process.
const METRICS: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 10249);
const MODES: [&str; 4] = ["iptables", "ipvs", "nftables", "userspace"];
/// The chain to which every packet to a Service jumps in its mode iptables.
const CHAIN: (&str, &str) = ("nat", "KUBE-SERVICES");

/// The proxy that is running.
pub(super) fn running() -> Option<String> {
    if let Some(process) = process() {
        return Some(format!("kube-proxy is running (process {process})"));
    }
    let mode = mode()?;
    Some(format!("a service proxy is running: {METRICS} answers that its mode is {mode}"))
}

/// What one that has ended has left.
pub(super) fn left() -> Option<String> {
    if Path::new("/sys/class/net").join(KUBE_PROXY_INTERFACE).exists() {
        return Some(format!("kube-proxy has left its interface {KUBE_PROXY_INTERFACE}"));
    }
    let mut filter = Nftables::open().ok()?;
    let (table, chain) = CHAIN;
    Family::ALL.into_iter().find_map(|family| {
        let name = family.name();
        if filter.has_table(family, KUBE_PROXY_TABLE).unwrap_or(false) {
            return Some(format!("kube-proxy has left its table {name} {KUBE_PROXY_TABLE}"));
        }
        let has_chain = filter.has_chain(family, table, chain).unwrap_or(false);
        has_chain.then(|| format!("kube-proxy has left its chain {chain} in table {name} {table}"))
    })
}

/// One in the network of this process: a machine may have others in containers that are nodes themselves.
fn process() -> Option<u32> {
    let network = |of: &Path| std::fs::read_link(of.join("ns/net")).ok();
    let own = network(Path::new("/proc/self"));
    let processes = std::fs::read_dir("/proc").ok()?;
    processes.flatten().find_map(|entry| {
        let id = entry.file_name().to_str()?.parse().ok()?;
        let name = std::fs::read_to_string(entry.path().join("comm")).ok()?;
        (name.trim_end() == PROCESS && network(&entry.path()) == own).then_some(id)
    })
}

fn mode() -> Option<String> {
    /// It is on this machine.
    const TIMEOUT: Duration = Duration::from_millis(500);
    /// A mode, and the head of an answer.
    const BYTES_MAX: u64 = 4096;
    let mut stream = TcpStream::connect_timeout(&METRICS, TIMEOUT).ok()?;
    stream.set_read_timeout(Some(TIMEOUT)).ok()?;
    stream.set_write_timeout(Some(TIMEOUT)).ok()?;
    stream.write_all(b"GET /proxyMode HTTP/1.0\r\nHost: localhost\r\n\r\n").ok()?;
    let mut answer = String::new();
    // What arrives until the end, or until it takes too long.
    let _ = stream.take(BYTES_MAX).read_to_string(&mut answer);
    let (_, body) = answer.split_once("\r\n\r\n")?;
    MODES.into_iter().find(|it| *it == body.trim()).map(str::to_owned)
}
