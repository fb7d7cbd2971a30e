//! Every metric: its name, its meaning and the daemons that show it. The page `docs/metrics.md` is generated
//! from it.

use super::page::{Family, Type};

/// Which daemons show a family.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shown {
    /// All.
    Everywhere,
    /// `fairway run` and `fairway speaker`.
    Node,
    /// `fairway run`, and the leading controller.
    Allocator,
    /// All three, but of the controllers only the leading one.
    Services,
    /// `fairway controller`, `fairway speaker` and `fairway proxy`.
    Kubernetes,
    /// `fairway controller`.
    Controller,
    /// `fairway proxy`.
    Proxy,
    /// `fairway run` and `fairway speaker` with `--ipam`.
    PodAddresses,
    /// The leading controller with `--ipam`.
    PodPools,
}

impl Shown {
    /// As text.
    pub fn words(self) -> &'static str {
        match self {
            Self::Everywhere => "all",
            Self::Node => "run, speaker",
            Self::Allocator => "run, leader",
            Self::Services => "run, speaker, leader",
            Self::Kubernetes => "controller, speaker, proxy",
            Self::Controller => "controller",
            Self::Proxy => "proxy",
            Self::PodAddresses => "run, speaker (with `--ipam`)",
            Self::PodPools => "leader (with `--ipam`)",
        }
    }
}

/// One line per family: its identifier, type, daemons, name, labels and meaning.
macro_rules! families {
    ($($id:ident: $kind:ident, $shown:ident, $name:literal [$($label:literal),*] $help:literal;)*) => {
        $(
            #[doc = $help]
            pub(super) const $id: Family = Family {
                name: $name,
                kind: Type::$kind,
                labels: &[$($label),*],
                shown: Shown::$shown,
                help: $help,
            };
        )*
        /// All of them.
        pub const FAMILIES: &[Family] = &[$($id),*];
    };
}

families! {
    // MetalLB's.
    ADDRESSES: Gauge, Allocator, "metallb_allocator_addresses_total" ["pool"]
        "Addresses of the pool that can be assigned, used or not";
    ADDRESSES_IN_USE: Gauge, Allocator, "metallb_allocator_addresses_in_use_total" ["pool"]
        "Addresses of the pool that are assigned to Services; a shared one counts once";
    IPV4_ADDRESSES: Gauge, Allocator, "metallb_allocator_ipv4_addresses_total" ["pool"]
        "IPv4 addresses of the pool that can be assigned, used or not";
    IPV4_ADDRESSES_IN_USE: Gauge, Allocator, "metallb_allocator_ipv4_addresses_in_use_total" ["pool"]
        "IPv4 addresses of the pool that are assigned to Services";
    IPV6_ADDRESSES: Gauge, Allocator, "metallb_allocator_ipv6_addresses_total" ["pool"]
        "IPv6 addresses of the pool that can be assigned, used or not";
    IPV6_ADDRESSES_IN_USE: Gauge, Allocator, "metallb_allocator_ipv6_addresses_in_use_total" ["pool"]
        "IPv6 addresses of the pool that are assigned to Services";
    SERVICES_ALLOCATED: Gauge, Allocator, "metallb_allocator_services_allocated_total" ["pool"]
        "Services that have an address of the pool";
    UPDATES: Counter, Everywhere, "metallb_k8s_client_updates_total" []
        "Objects received from the API server, in lists and watches; in run, changed files";
    UPDATE_ERRORS: Counter, Everywhere, "metallb_k8s_client_update_errors_total" []
        "Faults in received objects or changed files";
    CONFIG_LOADED: Gauge, Everywhere, "metallb_k8s_client_config_loaded_bool" []
        "1 once all objects or files have been read";
    CONFIG_STALE: Gauge, Everywhere, "metallb_k8s_client_config_stale_bool" []
        "1 while an object is faulty, so that it is left out or an older version of it is in force, or the \
         BGP speaker lacks something of what it is to do";
    LIST_HELD: Gauge, Everywhere, "fairway_kubernetes_list_held_bool" []
        "1 while objects stay in force that the API server does not have: it lists none of their kind any more, their \
         CustomResourceDefinition is being removed, or it lists older objects than it did";
    ANNOUNCED: Gauge, Node, "metallb_speaker_announced" ["service", "protocol", "node", "ip"]
        "1 for each address of a Service that this node announces";
    BGP_SESSION_UP: Gauge, Node, "metallb_bgp_session_up" ["peer", "vrf"]
        "1 while the session is Established";
    BGP_ANNOUNCED: Gauge, Node, "metallb_bgp_announced_prefixes_total" ["peer", "vrf"]
        "Prefixes that are advertised to the neighbor";
    BGP_PENDING: Gauge, Node, "metallb_bgp_pending_prefixes_total" ["peer", "vrf"]
        "Prefixes that this node plans for the neighbor, of the families that its session is to carry, advertised or not";
    BGP_UPDATES_SENT: Counter, Node, "metallb_bgp_updates_total" ["peer", "vrf"]
        "UPDATE messages sent";
    BGP_UPDATES_RECEIVED: Counter, Node, "metallb_bgp_updates_total_received" ["peer", "vrf"]
        "UPDATE messages received";
    BGP_OPENS_SENT: Counter, Node, "metallb_bgp_opens_sent" ["peer", "vrf"]
        "OPEN messages sent";
    BGP_OPENS_RECEIVED: Counter, Node, "metallb_bgp_opens_received" ["peer", "vrf"]
        "OPEN messages received";
    BGP_NOTIFICATIONS_SENT: Counter, Node, "metallb_bgp_notifications_sent" ["peer", "vrf"]
        "NOTIFICATION messages sent";
    BGP_KEEPALIVES_SENT: Counter, Node, "metallb_bgp_keepalives_sent" ["peer", "vrf"]
        "KEEPALIVE messages sent";
    BGP_KEEPALIVES_RECEIVED: Counter, Node, "metallb_bgp_keepalives_received" ["peer", "vrf"]
        "KEEPALIVE messages received";
    BGP_REFRESHES_SENT: Counter, Node, "metallb_bgp_route_refresh_sent" ["peer", "vrf"]
        "ROUTE-REFRESH messages sent";
    BGP_SENT: Counter, Node, "metallb_bgp_total_sent" ["peer", "vrf"]
        "Messages sent";
    BGP_RECEIVED: Counter, Node, "metallb_bgp_total_received" ["peer", "vrf"]
        "Messages received";
    BFD_SESSION_UP: Gauge, Node, "metallb_bfd_session_up" ["peer", "vrf"]
        "1 while the BFD session is Up";
    BFD_CONTROL_IN: Counter, Node, "metallb_bfd_control_packet_input" ["peer", "vrf"]
        "BFD control packets received";
    BFD_CONTROL_OUT: Counter, Node, "metallb_bfd_control_packet_output" ["peer", "vrf"]
        "BFD control packets sent";
    BFD_ECHO_IN: Counter, Node, "metallb_bfd_echo_packet_input" ["peer", "vrf"]
        "BFD echo packets of this node that came back";
    BFD_ECHO_OUT: Counter, Node, "metallb_bfd_echo_packet_output" ["peer", "vrf"]
        "BFD echo packets sent";
    BFD_SESSION_UPS: Counter, Node, "metallb_bfd_session_up_events" ["peer", "vrf"]
        "Times that the BFD session came up";
    BFD_SESSION_DOWNS: Counter, Node, "metallb_bfd_session_down_events" ["peer", "vrf"]
        "Times that the BFD session went down";
    BFD_NOTIFICATIONS: Counter, Node, "metallb_bfd_zebra_notifications" ["peer", "vrf"]
        "Notifications to BGP that the BFD session went up or down";
    LAYER2_REQUESTS: Counter, Node, "metallb_layer2_requests_received" ["ip"]
        "ARP requests and neighbor solicitations for the address, since this node owns it";
    LAYER2_RESPONSES: Counter, Node, "metallb_layer2_responses_sent" ["ip"]
        "Answers to them";
    LAYER2_GRATUITOUS: Counter, Node, "metallb_layer2_gratuitous_sent" ["ip"]
        "Announcements of the address that nobody asked for";

    // Ours.
    MEMBERS: Gauge, Node, "fairway_layer2_members" ["state"]
        "Machines that share layer 2 addresses, this one among them, by state";
    LAYER2_CONFLICTS: Counter, Node, "fairway_layer2_conflicts_total" ["ip"]
        "Times that a foreign host claimed the address, since this node owns it";
    LAYER2_CHECKED: Gauge, Node, "fairway_layer2_checked_addresses" ["answer"]
        "Addresses of other members that this node asks for every 30 s, by who answers: owner, several, other, nobody";
    HEALTH: Gauge, Node, "fairway_health_check_success" ["service"]
        "1 while this machine serves the Service by its health check, else 0 (fairway.dev/health-check, `fairway run`)";
    BFD_STALLS: Counter, Node, "fairway_bfd_stalls_total" ["peer", "vrf"]
        "Times that this process ran late for the BFD session by more than half an interval";
    BFD_PUT_OFF: Counter, Node, "fairway_bfd_detections_put_off_total" ["peer", "vrf"]
        "Detections that were postponed once, because this process ran late itself";
    BFD_DROPPED: Counter, Node, "fairway_bfd_dropped_packets_total" ["reason"]
        "BFD packets dropped, by reason";
    BFD_REALTIME: Gauge, Node, "fairway_bfd_realtime" []
        "1 while BFD runs with real-time priority (--bfd-realtime, if the kernel allows it)";
    EVENT_TO_UPDATE: Histogram, Node, "fairway_event_to_update_seconds" []
        "Time from an event (a file was written, a watch delivered an object) until its UPDATEs were written to the socket; one observation for each neighbor that got one";
    BGP_PEER: Gauge, Node, "fairway_bgp_peer_info" ["peer", "vrf", "desc", "state"]
        "Always 1: the name of the BGPPeer and the state of RFC 4271, for joins over peer and vrf";
    BGP_SHUTDOWN: Gauge, Node, "fairway_bgp_peer_shutdown_bool" ["peer", "vrf"]
        "1 while its BGPPeer has `shutdown`, so that the session is down as planned";
    BGP_ESTABLISHED: Counter, Node, "fairway_bgp_connections_established_total" ["peer", "vrf"]
        "Times that the session became Established";
    BGP_DROPPED: Counter, Node, "fairway_bgp_connections_dropped_total" ["peer", "vrf"]
        "Times that the session left Established";
    BGP_NOTIFICATIONS_RECEIVED: Counter, Node, "fairway_bgp_notifications_received_total" ["peer", "vrf"]
        "NOTIFICATION messages received";
    BGP_REFRESHES_RECEIVED: Counter, Node, "fairway_bgp_route_refreshes_received_total" ["peer", "vrf"]
        "ROUTE-REFRESH messages received";
    BGP_UNANNOUNCED: Gauge, Node, "fairway_bgp_unannounced_prefixes" ["peer", "vrf"]
        "Planned prefixes that cannot be advertised to the neighbor; fairway show bgp neighbors has the reasons";
    BGP_ACCEPTED: Gauge, Node, "fairway_bgp_received_prefixes" ["peer", "vrf", "family"]
        "Routes of the neighbor that were accepted";
    BGP_ATTRIBUTE_BYTES: Gauge, Node, "fairway_bgp_received_attribute_bytes" ["peer", "vrf"]
        "Memory of the path attributes of the neighbor's accepted routes";
    BGP_STALE: Gauge, Node, "fairway_bgp_stale_prefixes" ["peer", "vrf", "family"]
        "Routes that are kept while the neighbor restarts (RFC 4724)";
    BGP_REFUSED: Counter, Node, "fairway_bgp_refused_routes_total" ["peer", "vrf", "family"]
        "Announced routes that were refused, since the start of the session";
    BGP_MALFORMED: Counter, Node, "fairway_bgp_malformed_updates_total" ["peer", "vrf", "action"]
        "Malformed UPDATEs, by the action taken (RFC 7606)";
    BGP_FAULTS: Counter, Node, "fairway_bgp_faults_total" ["peer", "vrf"]
        "Sessions that were reset by an internal error; please report it with the log";
    BGP_LIMIT_EXCEEDED: Counter, Node, "fairway_bgp_limit_exceeded_total" ["peer", "vrf"]
        "Sessions that were ended by toReceive.maxPrefixes or --memory-limit";
    RIB_PREFIXES: Gauge, Node, "fairway_rib_prefixes" ["family"]
        "Prefixes that are originated or were accepted";
    DRAIN: Gauge, Node, "fairway_drain_state" ["state"]
        "1 for the state that the node is in, 0 for the others";
    SERVICES: Gauge, Services, "fairway_services" []
        "Services of type LoadBalancer and of the class of this daemon";
    SERVICES_PENDING: Gauge, Services, "fairway_services_pending" []
        "Services of type LoadBalancer that wait for an address";
    SERVICES_ANNOUNCED: Gauge, Node, "fairway_services_announced" []
        "Services of type LoadBalancer that this node announces";
    ADDRESSES_FREE: Gauge, Allocator, "fairway_pool_addresses_free" ["pool", "family"]
        "Addresses of the pool that are free for automatic assignment";
    LEADER: Gauge, Controller, "fairway_controller_leader" []
        "1 for the controller that leads";
    FINDINGS: Gauge, Node, "fairway_config_findings" ["severity"]
        "Faults and warnings about objects; fairway show config lists them";
    STALE_OBJECTS: Gauge, Node, "fairway_config_stale_objects" []
        "Objects with an older version in force because the newest is faulty";
    NOT_IN_FORCE: Gauge, Node, "fairway_bgp_not_in_force" []
        "Settings that the BGP backend could not apply; fairway show config lists them";
    KUBERNETES_REQUESTS: Counter, Kubernetes, "fairway_kubernetes_requests_total" ["verb", "code"]
        "Requests to the API server, by the code of the answer; none if there was no answer";
    BOUNDS: Counter, Everywhere, "fairway_bound_reached_total" ["bound"]
        "Times that a bound held something back; the runbook says what to do about each";
    BUILD: Gauge, Everywhere, "fairway_build_info" ["version", "commit"]
        "Always 1";

    // kube-proxy's.
    SYNC: Histogram, Proxy, "kubeproxy_sync_proxy_rules_duration_seconds" ["ip_family"]
        "Time that a round took, from the plan until the kernel has it";
    SYNC_FULL: Histogram, Proxy, "kubeproxy_sync_full_proxy_rules_duration_seconds" ["ip_family"]
        "The same of rounds in which the whole kernel was read";
    SYNC_PARTIAL: Histogram, Proxy, "kubeproxy_sync_partial_proxy_rules_duration_seconds" ["ip_family"]
        "The same of rounds that followed from changed objects";
    SYNC_LAST: Gauge, Proxy, "kubeproxy_sync_proxy_rules_last_timestamp_seconds" ["ip_family"]
        "When the kernel was last as wanted, Unix time";
    SYNC_QUEUED: Gauge, Proxy, "kubeproxy_sync_proxy_rules_last_queued_timestamp_seconds" ["ip_family"]
        "When the last change arrived, Unix time";
    ENDPOINT_CHANGES: Counter, Proxy, "kubeproxy_sync_proxy_rules_endpoint_changes_total" []
        "EndpointSlices that came, changed or went";
    SERVICE_CHANGES: Counter, Proxy, "kubeproxy_sync_proxy_rules_service_changes_total" []
        "Services that came, changed or went";
    ENDPOINT_CHANGES_PENDING: Gauge, Proxy, "kubeproxy_sync_proxy_rules_endpoint_changes_pending" []
        "Changes of EndpointSlices that the kernel does not have yet";
    SERVICE_CHANGES_PENDING: Gauge, Proxy, "kubeproxy_sync_proxy_rules_service_changes_pending" []
        "Changes of Services that the kernel does not have yet";
    NETWORK_PROGRAMMING: Histogram, Proxy, "kubeproxy_network_programming_duration_seconds" ["ip_family"]
        "Time from the change of a Pod or Service, as its EndpointSlice says, until the kernel has it";
    NO_LOCAL_ENDPOINTS: Gauge, Proxy, "kubeproxy_sync_proxy_rules_no_local_endpoints_total" ["traffic_policy"]
        "Services whose policy is Local, of which no endpoint of this node is usable";
    FILTER_FAILURES: Counter, Proxy, "kubeproxy_sync_proxy_rules_nftables_sync_failures_total" []
        "Transactions that the packet filter refused";
    PROXY_HEALTHZ: Counter, Proxy, "kubeproxy_proxy_healthz_total" ["code"]
        "Answers to /healthz, by their code";
    PROXY_LIVEZ: Counter, Proxy, "kubeproxy_proxy_livez_total" ["code"]
        "Answers to /livez, by their code";
    IPAM_BLOCKS: Gauge, PodAddresses, "fairway_ipam_blocks" ["pool"]
        "Blocks of the IPPool that this node owns";
    IPAM_IN_USE: Gauge, PodAddresses, "fairway_ipam_addresses_in_use" ["pool"]
        "Addresses of the IPPool that Pods of this node have";
    IPAM_FREE: Gauge, PodAddresses, "fairway_ipam_addresses_free" ["pool"]
        "Free addresses in this node's blocks of the IPPool";
    IPAM_BORROWED: Gauge, PodAddresses, "fairway_ipam_addresses_borrowed" ["pool"]
        "Addresses that Pods of this node have of other nodes' blocks";
    IPAM_CALLS: Counter, PodAddresses, "fairway_ipam_calls_total" ["command", "code"]
        "Calls of the CNI plugin, by the code of their answer; 0 is success";
    IPAM_ADD: Histogram, PodAddresses, "fairway_ipam_add_seconds" []
        "Time from an ADD of the CNI plugin to its addresses";
    IPAM_WAITING: Gauge, PodAddresses, "fairway_ipam_deletions_waiting" []
        "Deleted containers whose addresses are not released yet";
    IPAM_POOL: Gauge, PodPools, "fairway_ipam_pool_addresses" ["pool"]
        "Addresses of the IPPool, without those that are reserved, and without the free first two and last ones of blocks";
    IPAM_POOL_AVAILABLE: Gauge, PodPools, "fairway_ipam_pool_addresses_available" ["pool"]
        "Those of them that nobody has, or had a short time ago, on any node";
    IPAM_LEAKED: Gauge, PodPools, "fairway_ipam_addresses_leaked" []
        "Addresses without a Pod that are taken back if nothing changes";
    IPAM_COLLECTED: Counter, PodPools, "fairway_ipam_addresses_collected_total" []
        "Addresses without a Pod that were taken back";
    IPAM_PASS_FAILURES: Counter, PodPools, "fairway_ipam_collector_failures_total" []
        "Passes of the collector of unused addresses that failed, at least in part; the log has the reasons";
    PROXY_SERVERS: Gauge, Proxy, "fairway_proxy_virtual_servers" []
        "Virtual servers that Services lead to on this node";
    PROXY_DRAINING: Gauge, Proxy, "fairway_proxy_draining_endpoints" []
        "Endpoints that get no new connections and still have some, each counted once for each of its virtual servers";
    PROXY_FAULTS: Gauge, Proxy, "fairway_proxy_faults" []
        "Virtual servers, addresses and endpoints that the kernel refused, or that something else has; the log has the reasons";
    PROXY_REPAIRS: Counter, Proxy, "fairway_proxy_repairs_total" []
        "Times that something else had removed or changed what this proxy has in the kernel";
    PROXY_CONNECTIONS: Counter, Proxy, "fairway_proxy_service_connections_total" ["service"]
        "Connections, and flows of UDP, to the addresses of the Service on this node";
    PROXY_PACKETS_IN: Counter, Proxy, "fairway_proxy_service_received_packets_total" ["service"]
        "Packets from clients of the Service";
    PROXY_PACKETS_OUT: Counter, Proxy, "fairway_proxy_service_sent_packets_total" ["service"]
        "Packets to clients of the Service";
    PROXY_BYTES_IN: Counter, Proxy, "fairway_proxy_service_received_bytes_total" ["service"]
        "Octets from clients of the Service";
    PROXY_BYTES_OUT: Counter, Proxy, "fairway_proxy_service_sent_bytes_total" ["service"]
        "Octets to clients of the Service";

    // The standard metrics of a process.
    CPU_SECONDS: Counter, Everywhere, "process_cpu_seconds_total" []
        "CPU time that the process has used";
    OPEN_FILES: Gauge, Everywhere, "process_open_fds" []
        "Open file descriptors";
    OPEN_FILES_MAX: Gauge, Everywhere, "process_max_fds" []
        "Limit of open file descriptors";
    RESIDENT_BYTES: Gauge, Everywhere, "process_resident_memory_bytes" []
        "Resident memory";
    VIRTUAL_BYTES: Gauge, Everywhere, "process_virtual_memory_bytes" []
        "Virtual memory";
    START_TIME: Gauge, Everywhere, "process_start_time_seconds" []
        "Start of the process, Unix time";
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    /// A family as a PromQL expression.
    fn is_name(text: &str) -> bool {
        !text.is_empty()
            && text.chars().all(|it| it.is_ascii_lowercase() || it == '_' || it.is_ascii_digit())
    }

    #[test]
    fn every_name_is_one_and_is_there_once() {
        let names: BTreeSet<&str> = FAMILIES.iter().map(|it| it.name).collect();
        assert_eq!(names.len(), FAMILIES.len());
        for Family { name, labels, help, .. } in FAMILIES {
            assert!(is_name(name) && labels.iter().all(|it| is_name(it)), "{name} {labels:?}");
            assert!(!help.contains(['\n', '\\', '|']), "{name}: {help}");
        }
    }

    #[test]
    fn names_of_our_own_say_what_they_are() {
        let ours = FAMILIES.iter().filter(|it| {
            !["metallb_", "kubeproxy_"].iter().any(|theirs| it.name.starts_with(theirs))
        });
        for Family { name, kind, .. } in ours {
            assert_eq!(name.ends_with("_total"), *kind == Type::Counter, "{name}");
        }
    }
}
