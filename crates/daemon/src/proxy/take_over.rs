//! Taking a node over from a kube-proxy that has ended: its virtual servers are adopted, and once Fairway's own filter and
//! addresses are in the kernel, its interface, rules and sets go.
//!
//! The only part of the proxy that starts processes: for rules of the older iptables, and for sets. What has
//! one of kube-proxy's own names goes; chains of others that jump there keep what they jump to.

use std::io::{self, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use fairway_dataplane::nftables::foreign::{Rule, removal};
use fairway_dataplane::remove_chains;
use fairway_ground::printable;
use tokio::time::sleep;
use tracing::{info, warn};

use super::earlier_proxy;

/// How often it is looked whether kube-proxy has ended.
const WAIT: Duration = Duration::from_secs(1);
/// How often it is said what is waited for.
const SAID_EVERY: u32 = 30;

/// kube-proxy's chains, and how the names of those of one Service or endpoint begin.
const CHAINS: [&str; 14] = [
    "KUBE-SERVICES",
    "KUBE-EXTERNAL-SERVICES",
    "KUBE-NODEPORTS",
    "KUBE-POSTROUTING",
    "KUBE-MARK-MASQ",
    "KUBE-FORWARD",
    "KUBE-LOAD-BALANCER",
    "KUBE-NODE-PORT",
    "KUBE-IPVS-FILTER",
    "KUBE-IPVS-OUT-FILTER",
    "KUBE-PROXY-FIREWALL",
    "KUBE-SOURCE-RANGES-FIREWALL",
    "KUBE-PROXY-CANARY",
    "KUBE-MARK-DROP",
];
const CHAINS_OF_SERVICES: [&str; 5] =
    ["KUBE-SVC-", "KUBE-SEP-", "KUBE-FW-", "KUBE-SVL-", "KUBE-EXT-"];
/// The kernel's limit.
const SET_NAME_LENGTH_MAX: usize = 31;
/// kube-proxy's sets, without the `6-` of IPv6.
const SETS: [&str; 16] = [
    "LOOP-BACK",
    "CLUSTER-IP",
    "EXTERNAL-IP",
    "EXTERNAL-IP-LOCAL",
    "LOAD-BALANCER",
    "LOAD-BALANCER-LOCAL",
    "LOAD-BALANCER-FW",
    "LOAD-BALANCER-SOURCE-IP",
    "LOAD-BALANCER-SOURCE-CIDR",
    "NODE-PORT-TCP",
    "NODE-PORT-UDP",
    "NODE-PORT-LOCAL-TCP",
    "NODE-PORT-LOCAL-UDP",
    "NODE-PORT-SCTP-HASH",
    "HEALTH-CHECK-NODE-PORT",
    "IPVS-IPS",
];

/// Waits until kube-proxy has ended. It may be removed from this node only now.
pub(super) async fn wait_for_its_end() {
    let mut waited = 0_u32;
    while let Some(other) = earlier_proxy::running() {
        if waited.is_multiple_of(SAID_EVERY) {
            info!("{other}; waiting until it is removed from this node, to take over");
        }
        waited = waited.wrapping_add(1);
        sleep(WAIT).await;
    }
}

/// Removes its rules and sets; says what was done and what stays.
pub(super) fn remove_rules() {
    match remove_chains(is_chain) {
        Ok(0) => {}
        Ok(count) => info!("{count} chains of kube-proxy are removed"),
        Err(error) => warn!("chains of kube-proxy stay: {}", printable(&error.to_string())),
    }
    for (program, names) in
        [("iptables-legacy", "ip_tables_names"), ("ip6tables-legacy", "ip6_tables_names")]
    {
        let tables = std::fs::read_to_string(Path::new("/proc/net").join(names));
        if tables.is_ok_and(|it| !it.trim().is_empty()) {
            remove_legacy_rules(program);
        }
    }
    match remove_sets() {
        Ok(0) => {}
        Ok(count) => info!("{count} sets of kube-proxy are removed"),
        // Without rules they do nothing.
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => warn!("sets of kube-proxy stay: {}", printable(&error.to_string())),
    }
}

/// What the older iptables made has no other way than its own programs.
fn remove_legacy_rules(program: &str) {
    let removed = || {
        let saved = run(&format!("{program}-save"), &[], None)?;
        let (script, chains) = script(&saved);
        if chains > 0 {
            run(&format!("{program}-restore"), &["--noflush"], Some(&script))?;
        }
        Ok::<_, io::Error>(chains)
    };
    match removed() {
        Ok(0) => {}
        Ok(count) => info!("{program}: {count} chains of kube-proxy are removed"),
        // kube-proxy --cleanup would remove all virtual servers, ours as well.
        Err(error) => warn!(
            "rules of kube-proxy may be left, since {program}-save or {program}-restore cannot be used: {}; remove its \
             chains on the node by hand, and do not run kube-proxy --cleanup, which removes all virtual servers",
            printable(&error.to_string())
        ),
    }
}

fn remove_sets() -> io::Result<usize> {
    let names = run("ipset", &["list", "-n"], None)?;
    let ours: Vec<&str> = names.lines().filter(|it| is_set(it)).collect();
    let mut failed = None;
    for name in &ours {
        failed = run("ipset", &["destroy", name], None).err().or(failed);
    }
    failed.map_or(Ok(ours.len()), Err)
}

/// The output of a program, which is given this input.
fn run(program: &str, arguments: &[&str], input: Option<&str>) -> io::Result<String> {
    let mut child = Command::new(program)
        .args(arguments)
        .stdin(if input.is_some() { Stdio::piped() } else { Stdio::null() })
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()?;
    if let (Some(input), Some(mut pipe)) = (input, child.stdin.take()) {
        pipe.write_all(input.as_bytes())?;
    }
    let output = child.wait_with_output()?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        return Err(io::Error::other(format!("{program}: {}", said.trim())));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

fn is_chain(name: &str) -> bool {
    CHAINS.contains(&name) || CHAINS_OF_SERVICES.iter().any(|it| name.starts_with(it))
}

fn is_set(name: &str) -> bool {
    let Some(rest) = name.strip_prefix("KUBE-") else { return false };
    let rest = rest.strip_prefix("6-").unwrap_or(rest);
    // Names of sets have 31 characters at most, so the end of the longest is missing.
    let is_cut = name.len() == SET_NAME_LENGTH_MAX && SETS.iter().any(|it| it.starts_with(rest));
    SETS.contains(&rest) || rest.starts_with("NODE-PORT-LOCAL-SCTP") || is_cut
}

/// What iptables-restore takes to remove kube-proxy's chains from what iptables-save prints, and how many go.
fn script(saved: &str) -> (String, usize) {
    let (mut script, mut count) = (String::new(), 0_usize);
    for table in saved.split_inclusive("COMMIT\n") {
        let lines: Vec<&str> = table.lines().filter(|it| !it.starts_with('#')).collect();
        let Some(name) = lines.iter().find_map(|it| it.strip_prefix('*')) else { continue };
        // A chain of the kernel has a policy; one that somebody made has a dash.
        let declared = lines.iter().filter_map(|it| it.strip_prefix(':')?.split_once(' '));
        let chains =
            declared.map(|(name, rest)| (name.to_owned(), !rest.starts_with('-'))).collect();
        let rules: Vec<Rule<&str>> = lines.iter().filter_map(|it| rule(it)).collect();
        let removal = removal(&chains, &rules, is_chain);
        if removal.chains.is_empty() {
            continue;
        }
        script += &format!("*{name}\n");
        removal.chains.iter().for_each(|it| script += &format!(":{it} - [0:0]\n"));
        removal.rules.iter().for_each(|it| script += &format!("-D {} {}\n", it.chain, it.id));
        removal.chains.iter().for_each(|it| script += &format!("-X {it}\n"));
        script += "COMMIT\n";
        count = count.saturating_add(removal.chains.len());
    }
    (script, count)
}

/// A rule by the rest of its line.
fn rule(line: &str) -> Option<Rule<&str>> {
    let (chain, rest) = line.strip_prefix("-A ")?.split_once(' ')?;
    let mut words = rest.split(' ').rev();
    let last = words.next()?;
    // A target without options is the last word.
    let is_jump = words.next().is_some_and(|it| matches!(it, "-j" | "-g"));
    Some(Rule { chain: chain.to_owned(), id: rest, target: is_jump.then(|| last.to_owned()) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_kube_proxy_made_goes_and_what_others_made_or_need_stays() {
        let saved = r#"# Generated by iptables-nft-save
*nat
:PREROUTING ACCEPT [0:0]
:POSTROUTING ACCEPT [0:0]
:CNI-HOSTPORT-DNAT - [0:0]
:KUBE-KUBELET-CANARY - [0:0]
:KUBE-MARK-MASQ - [0:0]
:KUBE-NODE-PORT - [0:0]
:KUBE-NWPLCY-DEFAULT - [0:0]
:KUBE-POSTROUTING - [0:0]
:KUBE-SERVICES - [0:0]
:KUBE-SVC-ABC - [0:0]
-A PREROUTING -m comment --comment "kubernetes service portals" -j KUBE-SERVICES
-A PREROUTING -m addrtype --dst-type LOCAL -j CNI-HOSTPORT-DNAT
-A POSTROUTING -m comment --comment "kubernetes postrouting rules" -j KUBE-POSTROUTING
-A CNI-HOSTPORT-DNAT -p tcp -m tcp --dport 8080 -j KUBE-MARK-MASQ
-A KUBE-MARK-MASQ -j MARK --set-xmark 0x4000/0x4000
-A KUBE-SERVICES -m set --match-set KUBE-CLUSTER-IP dst,dst -j KUBE-MARK-MASQ
-A KUBE-SERVICES -m addrtype --dst-type LOCAL -j KUBE-NODE-PORT
COMMIT
*filter
:INPUT DROP [0:0]
:KUBE-FIREWALL - [0:0]
-A INPUT -j KUBE-FIREWALL
COMMIT
"#;
        let expected = "*nat\n:KUBE-NODE-PORT - [0:0]\n:KUBE-POSTROUTING - [0:0]\n:KUBE-SERVICES - [0:0]\n\
                      :KUBE-SVC-ABC - [0:0]\n\
                      -D PREROUTING -m comment --comment \"kubernetes service portals\" -j KUBE-SERVICES\n\
                      -D POSTROUTING -m comment --comment \"kubernetes postrouting rules\" -j KUBE-POSTROUTING\n\
                      -X KUBE-NODE-PORT\n-X KUBE-POSTROUTING\n-X KUBE-SERVICES\n-X KUBE-SVC-ABC\nCOMMIT\n";
        assert_eq!(script(saved), (expected.to_owned(), 4));
        assert_eq!(script(""), (String::new(), 0));
    }

    #[test]
    fn sets_have_the_names_of_kube_proxy() {
        let cut = "KUBE-6-LOAD-BALANCER-SOURCE-CID";
        for name in ["KUBE-CLUSTER-IP", "KUBE-6-LOOP-BACK", "KUBE-NODE-PORT-LOCAL-SCTP-HASH", cut] {
            assert!(is_set(name), "{name}");
        }
        for name in ["KUBE-DST-2FAIIK2E4RIPMTGF", "KUBE-ROUTER-IPS", "web", "KUBE-"] {
            assert!(!is_set(name), "{name}");
        }
    }
}
