//! Whether another service proxy has this node.
//!
//! Two of them would each undo what the other does. Knows kube-proxy, by its interface and its process.

use std::path::Path;

/// The interface of kube-proxy's IPVS mode.
const INTERFACE: &str = "kube-ipvs0";
/// The name of its process.
const PROCESS: &str = "kube-proxy";

/// Why this node cannot have our proxy now.
pub(super) fn running() -> Option<String> {
    if let Some(process) = process() {
        return Some(format!(
            "kube-proxy is running (process {process}); stop it first, and remove its rules: kube-proxy --cleanup"
        ));
    }
    Path::new("/sys/class/net").join(INTERFACE).exists().then(|| {
        format!(
            "kube-proxy has left its interface {INTERFACE}; remove what it left: kube-proxy --cleanup"
        )
    })
}

fn process() -> Option<u32> {
    let processes = std::fs::read_dir("/proc").ok()?;
    processes.flatten().find_map(|entry| {
        let id = entry.file_name().to_str()?.parse().ok()?;
        let name = std::fs::read_to_string(entry.path().join("comm")).ok()?;
        (name.trim_end() == PROCESS).then_some(id)
    })
}
