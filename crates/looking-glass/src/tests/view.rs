//! A node with two routers, of which one is down, and a Service.

use fairway_show::overview::{
    EventRow, FamilyCount, Overview, PoolRow, PrefixRow, SegmentRow, ServiceCounts, ServiceRow,
    SessionRow,
};

pub(super) const NOW_EPOCH_SECONDS: u64 = 1_795_192_683;

pub(super) fn session(neighbor: &str, name: &str, is_established: bool) -> SessionRow {
    SessionRow {
        neighbor: neighbor.to_owned(),
        name: name.to_owned(),
        remote_as: 64512,
        state: if is_established { "Established" } else { "Active" }.to_owned(),
        is_established,
        since_seconds: Some(300),
        accepted: FamilyCount { ipv4: 17, ipv6: 4 },
        refused: FamilyCount { ipv4: 2, ipv6: 0 },
        advertised: FamilyCount { ipv4: 12, ipv6: 0 },
        messages_received: 1_000,
        messages_sent: 1_000,
        updates_received: 1,
        updates_sent: 12,
        connections_established: 1,
        bfd: is_established.then(|| "Up".to_owned()),
        is_restarting: false,
        reason: if is_established { "" } else { "connection refused" }.to_owned(),
    }
}

pub(super) fn overview() -> Overview {
    let event = |ago: u64, about: &str, what: &str, is_warning| EventRow {
        at_epoch_seconds: NOW_EPOCH_SECONDS - ago,
        about: about.to_owned(),
        what: what.to_owned(),
        is_warning,
    };
    Overview {
        now_epoch_seconds: NOW_EPOCH_SECONDS,
        started_epoch_seconds: NOW_EPOCH_SECONDS - 93_790,
        version: "0.1.0 (0123abcd)".to_owned(),
        node: "node-a".to_owned(),
        router_id: "10.0.0.1".to_owned(),
        local_as: vec![65001],
        drain: None,
        outage: None,
        faults: 0,
        prefixes: FamilyCount { ipv4: 14, ipv6: 3 },
        sessions: vec![session("192.0.2.1", "tor-1", true), session("192.0.2.2", "tor-2", false)],
        service_counts: ServiceCounts { total: 1, pending: 0, lacking: 1 },
        services: vec![ServiceRow {
            namespace: "shop".to_owned(),
            name: "web".to_owned(),
            addresses: vec!["198.51.100.10".to_owned()],
            pool: Some("public".to_owned()),
            announced_to: vec!["tor-1".to_owned()],
            reason: "tor-2 has no session".to_owned(),
        }],
        pools: vec![PoolRow {
            name: "public".to_owned(),
            addresses: vec!["198.51.100.0/24".to_owned()],
            used: FamilyCount { ipv4: 1, ipv6: 0 },
            total: FamilyCount { ipv4: 256, ipv6: 0 },
            services: 1,
            auto_assign: true,
        }],
        segment: vec![SegmentRow {
            address: "203.0.113.9".to_owned(),
            owner: Some("node-b".to_owned()),
            is_mine: false,
            interfaces: vec!["eth0".to_owned()],
            services: vec!["shop/local".to_owned()],
            requests: 9,
            conflicts: 0,
            reason: String::new(),
        }],
        prefixes_of_node: vec![PrefixRow {
            prefix: "10.244.3.0/24".to_owned(),
            announced_to: vec!["tor-1".to_owned()],
        }],
        events: vec![
            event(300, "neighbor tor-1 (192.0.2.1)", "session Established", false),
            event(400, "neighbor tor-2 (192.0.2.2)", "session down: connection refused", true),
        ],
    }
}
