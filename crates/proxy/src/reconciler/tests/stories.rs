//! Stories of one Service: the operations in their order, on a kernel that does what it is told.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use fairway_ground::Instant;
use fairway_model::{IpvsScheduler, ObjectName, TransportProtocol};

use super::super::*;
use crate::wanted::{Entry, FilterRule, Masquerade, NoEndpoints, RealServer, VirtualServer};

pub(super) const NOW: Instant = Instant::from_micros(1_000_000);

pub(super) fn at(text: &str) -> VirtualAddress {
    let (socket, protocol) = text.split_once('/').unwrap();
    let socket: std::net::SocketAddr = socket.parse().unwrap();
    let protocol = match protocol {
        "TCP" => TransportProtocol::Tcp,
        _ => TransportProtocol::Udp,
    };
    VirtualAddress { address: socket.ip(), port: socket.port(), protocol }
}

fn real(last: u8) -> RealServer {
    RealServer { address: std::net::Ipv4Addr::new(10, 1, 0, last).into(), port: 8080 }
}

pub(super) fn entry(service: &str, reals: &[u8]) -> Entry {
    Entry {
        service: ObjectName::new("default", service),
        server: VirtualServer {
            scheduler: IpvsScheduler::RoundRobin,
            persistence: None,
            real_servers: reals.iter().map(|it| real(*it)).collect(),
        },
        rule: FilterRule {
            allowed_sources: None,
            allows_node: false,
            no_endpoints: reals.is_empty().then_some(NoEndpoints::Reject),
            serves_pods: false,
            masquerade: Masquerade::Always,
        },
        is_bound: true,
        is_of_balancer: true,
    }
}

pub(super) fn wanted(entries: &[(&str, Entry)]) -> Wanted {
    let entries: BTreeMap<_, _> = entries.iter().map(|(text, it)| (at(text), it.clone())).collect();
    let bound_addresses = entries.keys().map(|it| it.address).collect();
    Wanted { entries, bound_addresses, ..Wanted::default() }
}

/// A machine that has read a kernel, and knows all that is wanted.
pub(super) fn started(options: ReconcilerOptions, kernel: Kernel, wanted: &Wanted) -> Reconciler {
    let record = kernel.servers.keys().map(|it| (*it, Recorded::Made)).collect();
    let mut reconciler = Reconciler::new(options, Some(record));
    reconciler.observe(kernel, wanted);
    reconciler.complete(wanted);
    reconciler
}

/// What it does until nothing is left, all of it well.
pub(super) fn run(reconciler: &mut Reconciler, wanted: &Wanted, now: Instant) -> Vec<String> {
    let mut done = Vec::new();
    loop {
        let batch = reconciler.next_batch(wanted, now).to_vec();
        if batch.is_empty() {
            return done;
        }
        done.extend(batch.iter().map(ToString::to_string));
        reconciler.finish(vec![Outcome::Done; batch.len()], wanted, now);
    }
}

pub(super) fn change(reconciler: &mut Reconciler, now: &Wanted) {
    let virtual_addresses =
        now.entries.keys().chain(reconciler.kernel().servers.keys()).copied().collect();
    let bound = &reconciler.kernel().bound_addresses;
    let bound_addresses = now.bound_addresses.union(bound).copied().collect();
    reconciler.touch(&Touched { virtual_addresses, bound_addresses, ..Touched::default() });
}

pub(super) const WEB: &str = "198.18.0.1:80/TCP";

#[test]
fn the_filter_comes_first_and_the_address_last_and_the_reverse() {
    let wanted_ = wanted(&[(WEB, entry("web", &[1, 2]))]);
    let mut reconciler = started(ReconcilerOptions::default(), Kernel::default(), &wanted_);
    assert_eq!(
        run(&mut reconciler, &wanted_, NOW),
        [
            "recording virtual server 198.18.0.1:80/TCP",
            "setting the filter rule of 198.18.0.1:80/TCP",
            "adding virtual server 198.18.0.1:80/TCP",
            "recording virtual server 198.18.0.1:80/TCP",
            "adding real server 10.1.0.1:8080 to 198.18.0.1:80/TCP",
            "adding real server 10.1.0.2:8080 to 198.18.0.1:80/TCP",
            "adding address 198.18.0.1",
        ]
    );
    let nothing = Wanted::default();
    change(&mut reconciler, &nothing);
    assert_eq!(
        run(&mut reconciler, &nothing, NOW),
        [
            "removing address 198.18.0.1",
            "removing virtual server 198.18.0.1:80/TCP",
            "removing the filter rule of 198.18.0.1:80/TCP",
            "removing virtual server 198.18.0.1:80/TCP from the record",
        ]
    );
    assert_eq!(*reconciler.kernel(), Kernel::default());
}

#[test]
fn what_the_kernel_answers_unexpectedly_is_read_before_anything_else_is_done() {
    const OTHER: &str = "198.18.0.2:80/TCP";
    let wanted_ = wanted(&[(WEB, entry("web", &[1])), (OTHER, entry("other", &[1]))]);
    let mut reconciler = started(ReconcilerOptions::default(), Kernel::default(), &wanted_);
    let adds = |it: &Operation| matches!(it, Operation::AddServer(..));
    while !reconciler.next_batch(&wanted_, NOW).iter().any(adds) {
        let done = vec![Outcome::Done; reconciler.in_flight.len()];
        reconciler.finish(done, &wanted_, NOW);
    }
    assert_eq!(reconciler.in_flight.len(), 2);
    reconciler.finish(vec![Outcome::Done, Outcome::Exists], &wanted_, NOW);
    assert_eq!(reconciler.next_batch(&wanted_, NOW), [Operation::Look(at(OTHER))]);
}

#[test]
fn nothing_goes_before_all_that_is_wanted_is_known() {
    let before = wanted(&[(WEB, entry("web", &[1, 2]))]);
    let mut first = started(ReconcilerOptions::default(), Kernel::default(), &before);
    run(&mut first, &before, NOW);
    let record = BTreeMap::from([(at(WEB), Recorded::Made)]);
    let mut second = Reconciler::new(ReconcilerOptions::default(), Some(record));
    assert!(second.next_batch(&Wanted::default(), NOW).is_empty(), "the kernel was not read");
    second.observe(first.kernel().clone(), &Wanted::default());
    assert_eq!(run(&mut second, &Wanted::default(), NOW), [""; 0]);
    let fewer = wanted(&[(WEB, entry("web", &[1, 3]))]);
    change(&mut second, &fewer);
    assert_eq!(
        run(&mut second, &fewer, NOW),
        ["adding real server 10.1.0.3:8080 to 198.18.0.1:80/TCP"]
    );
    second.complete(&fewer);
    let lowered = "setting the weight of real server 10.1.0.2:8080 of 198.18.0.1:80/TCP to 0";
    assert_eq!(run(&mut second, &fewer, NOW), [lowered]);
}

/// A Service with two Pods, one of which has left.
fn leaving() -> (Reconciler, Wanted) {
    let before = wanted(&[(WEB, entry("web", &[1, 2]))]);
    let mut reconciler = started(ReconcilerOptions::default(), Kernel::default(), &before);
    run(&mut reconciler, &before, NOW);
    let after = wanted(&[(WEB, entry("web", &[1]))]);
    change(&mut reconciler, &after);
    run(&mut reconciler, &after, NOW);
    (reconciler, after)
}

const REMOVED: &str = "removing real server 10.1.0.2:8080 of 198.18.0.1:80/TCP";

#[test]
fn a_pod_that_leaves_keeps_its_connections_until_they_end_or_their_time_is_up() {
    let (mut reconciler, wanted) = leaving();
    assert_eq!(reconciler.draining().collect::<Vec<_>>(), [(at(WEB), real(2))]);
    let limit = ReconcilerOptions::default().drain_limit;
    assert_eq!(reconciler.next_deadline(NOW), Some(NOW + limit));
    assert_eq!(run(&mut reconciler, &wanted, NOW + (limit - Duration::from_secs(1))), [""; 0]);
    let mut ended = reconciler.clone();
    ended.observe_idle([(at(WEB), real(2))]);
    assert_eq!(run(&mut ended, &wanted, NOW), [REMOVED]);
    assert_eq!(run(&mut reconciler, &wanted, NOW + limit), [REMOVED]);
    assert_eq!(reconciler.next_deadline(NOW), None);
}

#[test]
fn a_pod_that_comes_back_gets_its_weight_back() {
    let (mut reconciler, _) = leaving();
    let wanted = wanted(&[(WEB, entry("web", &[1, 2]))]);
    change(&mut reconciler, &wanted);
    let raised = "setting the weight of real server 10.1.0.2:8080 of 198.18.0.1:80/TCP to 1";
    assert_eq!(run(&mut reconciler, &wanted, NOW), [raised]);
    assert_eq!(reconciler.draining().count(), 0);
}

#[test]
fn connections_never_reach_a_pod_of_another_service_that_has_the_address_by_now() {
    let other = "198.18.0.2:80/TCP";
    for (service, ends) in [("mail", true), ("web", false)] {
        let (mut reconciler, _) = leaving();
        let wanted = wanted(&[(WEB, entry("web", &[1])), (other, entry(service, &[2]))]);
        change(&mut reconciler, &wanted);
        let done = run(&mut reconciler, &wanted, NOW);
        assert_eq!(done.iter().any(|it| it == REMOVED), ends, "{service}: {done:?}");
    }
}

#[test]
fn without_connections_a_real_server_goes_at_once_and_so_do_its_flows() {
    let dns = "198.18.0.1:53/UDP";
    let before = wanted(&[(dns, entry("dns", &[1, 2]))]);
    let mut reconciler = started(ReconcilerOptions::default(), Kernel::default(), &before);
    run(&mut reconciler, &before, NOW);
    let after = wanted(&[(dns, entry("dns", &[1]))]);
    change(&mut reconciler, &after);
    assert_eq!(
        run(&mut reconciler, &after, NOW),
        [
            "removing real server 10.1.0.2:8080 of 198.18.0.1:53/UDP",
            "ending flows of 198.18.0.1:53/UDP to 10.1.0.2:8080",
        ]
    );
}

#[test]
fn another_scheduler_is_set_and_nothing_is_made_again() {
    let mut wanted = wanted(&[(WEB, entry("web", &[1, 2]))]);
    let mut reconciler = started(ReconcilerOptions::default(), Kernel::default(), &wanted);
    run(&mut reconciler, &wanted, NOW);
    wanted.entries.get_mut(&at(WEB)).unwrap().server.scheduler = IpvsScheduler::MaglevHash;
    change(&mut reconciler, &wanted);
    assert_eq!(run(&mut reconciler, &wanted, NOW), ["changing virtual server 198.18.0.1:80/TCP"]);
}

#[test]
fn without_a_record_what_has_an_address_of_our_interface_is_ours() {
    let all = wanted(&[(WEB, entry("web", &[1]))]);
    let mut first = started(ReconcilerOptions::default(), Kernel::default(), &all);
    run(&mut first, &all, NOW);
    let mut kernel = first.kernel().clone();
    let theirs = KernelServer::default();
    kernel.servers.insert(at("192.0.2.1:80/TCP"), theirs);
    let mut second = Reconciler::new(ReconcilerOptions::default(), None);
    let nothing = Wanted::default();
    second.observe(kernel, &nothing);
    second.complete(&nothing);
    run(&mut second, &nothing, NOW);
    let left: Vec<_> = second.kernel().servers.keys().map(ToString::to_string).collect();
    assert_eq!(left, ["192.0.2.1:80/TCP"]);
}

#[test]
fn what_another_proxy_has_left_is_adopted_with_its_connections() {
    const NODE_PORT: &str = "192.0.2.11:30080/TCP";
    const STALE: &str = "198.18.0.9:80/TCP";
    const THEIRS: &str = "203.0.113.1:80/TCP";
    let on_node = Entry { is_bound: false, ..entry("web", &[1]) };
    let wanted_ = wanted(&[(WEB, entry("web", &[1])), (NODE_PORT, on_node)]);
    let server = |weight: u32| KernelServer {
        settings: Some(ServerSettings::default()),
        real_servers: BTreeMap::from([(real(1), 1), (real(2), weight)]),
    };
    let servers = [(WEB, 0), (NODE_PORT, 1), (STALE, 1), (THEIRS, 1)];
    let servers = servers.into_iter().map(|(it, weight)| (at(it), server(weight))).collect();
    let mut reconciler = Reconciler::new(ReconcilerOptions::default(), Some(BTreeMap::new()));
    reconciler.observe(Kernel { servers, ..Kernel::default() }, &wanted_);
    let theirs = BTreeSet::from([at(WEB).address, at(STALE).address]);
    reconciler.adopt(&theirs, &wanted_);
    reconciler.complete(&wanted_);
    let done = run(&mut reconciler, &wanted_, NOW);
    assert!(reconciler.foreign().is_empty());
    let added = |it: &&String| it.starts_with("adding virtual") || it.starts_with("adding real");
    assert_eq!(done.iter().filter(added).count(), 0, "{done:?}");
    let removed: Vec<_> = done.iter().filter(|it| it.starts_with("removing virtual")).collect();
    assert_eq!(removed.len(), 2, "{removed:?}: the stale one, and from the record");
    assert!(removed.iter().all(|it| it.contains(STALE)), "{removed:?}");
    let draining: Vec<_> = reconciler.draining().collect();
    assert_eq!(
        draining,
        [(at(NODE_PORT), real(2)), (at(WEB), real(2))],
        "until their connections end"
    );
    assert!(reconciler.kernel().servers.contains_key(&at(THEIRS)));
}

#[test]
fn a_server_of_somebody_else_stays_and_is_named() {
    let wanted = wanted(&[(WEB, entry("web", &[1])), ("198.18.0.1:81/TCP", entry("web", &[1]))]);
    let mut kernel = Kernel::default();
    kernel.servers.insert(at(WEB), KernelServer::default());
    let mut reconciler = Reconciler::new(ReconcilerOptions::default(), Some(BTreeMap::new()));
    reconciler.observe(kernel, &wanted);
    reconciler.complete(&wanted);
    let done = run(&mut reconciler, &wanted, NOW);
    assert!(done.iter().all(|it| !it.contains(WEB)), "{done:?}");
    assert_eq!(*reconciler.foreign(), BTreeSet::from([at(WEB)]));
    let bound = &reconciler.kernel().bound_addresses;
    assert_eq!(bound.len(), 1, "the other port is served");
}

#[test]
fn virtual_servers_in_excluded_networks_are_never_removed() {
    let all = wanted(&[(WEB, entry("web", &[1]))]);
    let options = ReconcilerOptions {
        excluded: vec!["198.18.0.0/24".parse().unwrap()],
        ..ReconcilerOptions::default()
    };
    let mut reconciler = started(options, Kernel::default(), &all);
    run(&mut reconciler, &all, NOW);
    let nothing = Wanted::default();
    change(&mut reconciler, &nothing);
    assert_eq!(run(&mut reconciler, &nothing, NOW), ["removing address 198.18.0.1"]);
}

#[test]
fn what_fails_is_tried_again_later_and_later_and_said() {
    let wanted = wanted(&[(WEB, entry("web", &[1]))]);
    let mut reconciler = started(ReconcilerOptions::default(), Kernel::default(), &wanted);
    let mut now = NOW;
    let mut waits = Vec::new();
    for _ in 0..7 {
        let count = reconciler.next_batch(&wanted, now).len();
        assert_eq!(count, 1);
        reconciler.finish(vec![Outcome::Failed("read-only".to_owned())], &wanted, now);
        assert!(reconciler.next_batch(&wanted, now).is_empty());
        let deadline = reconciler.next_deadline(now).unwrap();
        waits.push(deadline.since(now).as_secs());
        now = deadline;
    }
    assert_eq!(waits, [1, 2, 4, 8, 16, 30, 30]);
    let faults: Vec<_> = reconciler.faults().map(|(at, why)| format!("{at}: {why}")).collect();
    assert_eq!(
        faults,
        ["198.18.0.1:80/TCP: recording virtual server 198.18.0.1:80/TCP: read-only"]
    );
    run(&mut reconciler, &wanted, now);
    assert_eq!(reconciler.faults().count(), 0);
    assert!(reconciler.kernel().bound_addresses.contains(&at(WEB).address));
}

#[test]
fn a_cold_start_goes_in_batches_that_the_kernel_bears() {
    let names: Vec<String> = (1..=200_u32).map(|it| format!("198.18.0.{it}:80/TCP")).collect();
    let entries: Vec<_> = names.iter().map(|it| (it.as_str(), entry("web", &[1]))).collect();
    let wanted = wanted(&entries);
    let mut reconciler = started(ReconcilerOptions::default(), Kernel::default(), &wanted);
    let mut count = 0;
    loop {
        let batch = reconciler.next_batch(&wanted, NOW).len();
        if batch == 0 {
            break;
        }
        assert!(batch <= BATCH_MAX, "{batch}");
        count += batch;
        reconciler.finish(vec![Outcome::Done; batch], &wanted, NOW);
    }
    // The record twice, rule, server, real server, address.
    assert_eq!(count, 6 * 200);
}

#[test]
fn a_drain_whose_end_fails_does_not_keep_the_machine_awake() {
    let (mut reconciler, wanted) = leaving();
    let now = NOW + ReconcilerOptions::default().drain_limit;
    assert_eq!(reconciler.next_batch(&wanted, now).len(), 1);
    reconciler.finish(vec![Outcome::Failed("busy".to_owned())], &wanted, now);
    assert!(reconciler.next_batch(&wanted, now).is_empty());
    assert_eq!(reconciler.next_deadline(now), Some(now + Duration::from_secs(1)));
}

/// Runs until an operation with this name, which fails.
fn run_until_failed(reconciler: &mut Reconciler, wanted: &Wanted, name: &str) {
    loop {
        let batch = reconciler.next_batch(wanted, NOW).to_vec();
        let fails = batch.iter().any(|it| it.to_string().starts_with(name));
        assert!(!batch.is_empty(), "{name} never comes");
        let outcome = |it: &Operation| match it.to_string().starts_with(name) {
            true => Outcome::Failed("busy".to_owned()),
            false => Outcome::Done,
        };
        reconciler.finish(batch.iter().map(outcome).collect(), wanted, NOW);
        if fails {
            return;
        }
    }
}

#[test]
fn a_server_goes_once_its_address_is_gone_however_long_that_takes() {
    let all = wanted(&[(WEB, entry("web", &[1]))]);
    let mut reconciler = started(ReconcilerOptions::default(), Kernel::default(), &all);
    run(&mut reconciler, &all, NOW);
    let nothing = Wanted::default();
    change(&mut reconciler, &nothing);
    run_until_failed(&mut reconciler, &nothing, "removing address");
    assert_eq!(run(&mut reconciler, &nothing, NOW), [""; 0], "packets still arrive");
    run(&mut reconciler, &nothing, NOW + Duration::from_secs(1));
    assert_eq!(*reconciler.kernel(), Kernel::default());
}

#[test]
fn what_comes_where_a_server_of_ours_was_is_somebody_elses_even_if_the_record_cannot_be_written() {
    let all = wanted(&[(WEB, entry("web", &[1]))]);
    let mut reconciler = started(ReconcilerOptions::default(), Kernel::default(), &all);
    run(&mut reconciler, &all, NOW);
    let nothing = Wanted::default();
    change(&mut reconciler, &nothing);
    run_until_failed(&mut reconciler, &nothing, "removing virtual server 198.18.0.1:80/TCP from");
    let theirs = KernelServer { real_servers: BTreeMap::from([(real(9), 1)]), settings: None };
    let servers = BTreeMap::from([(at(WEB), theirs)]);
    reconciler.observe(Kernel { servers, ..Kernel::default() }, &nothing);
    assert_eq!(
        run(&mut reconciler, &nothing, NOW + Duration::from_secs(1)),
        ["removing virtual server 198.18.0.1:80/TCP from the record"]
    );
}
