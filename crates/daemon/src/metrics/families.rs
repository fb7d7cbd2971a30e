//! Every metric: its name, what it counts and who shows it. The page `docs/metrics.md` is made of it.

use super::page::{Family, Type};

/// Which daemons show a family.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shown {
    /// All.
    Everywhere,
    /// `fairway run` and `fairway speaker`.
    Node,
    /// `fairway run`, and of the controllers the one that leads.
    Allocator,
    /// All three, but of the controllers the one that leads.
    Services,
    /// `fairway controller` and `fairway speaker`.
    Kubernetes,
    /// `fairway controller`.
    Controller,
}

impl Shown {
    /// For people.
    pub fn words(self) -> &'static str {
        match self {
            Self::Everywhere => "all",
            Self::Node => "run, speaker",
            Self::Allocator => "run, leader",
            Self::Services => "run, speaker, leader",
            Self::Kubernetes => "controller, speaker",
            Self::Controller => "controller",
        }
    }
}

/// One line for each family: its place in the code, type, who shows it, name, labels and meaning.
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
        "Addresses of the pool that can be given out, used or not";
    ADDRESSES_IN_USE: Gauge, Allocator, "metallb_allocator_addresses_in_use_total" ["pool"]
        "Addresses of the pool that Services have; a shared one counts once";
    IPV4_ADDRESSES: Gauge, Allocator, "metallb_allocator_ipv4_addresses_total" ["pool"]
        "IPv4 addresses of the pool that can be given out, used or not";
    IPV4_ADDRESSES_IN_USE: Gauge, Allocator, "metallb_allocator_ipv4_addresses_in_use_total" ["pool"]
        "IPv4 addresses of the pool that Services have";
    IPV6_ADDRESSES: Gauge, Allocator, "metallb_allocator_ipv6_addresses_total" ["pool"]
        "IPv6 addresses of the pool that can be given out, used or not";
    IPV6_ADDRESSES_IN_USE: Gauge, Allocator, "metallb_allocator_ipv6_addresses_in_use_total" ["pool"]
        "IPv6 addresses of the pool that Services have";
    SERVICES_ALLOCATED: Gauge, Allocator, "metallb_allocator_services_allocated_total" ["pool"]
        "Services that have an address of the pool";
    UPDATES: Counter, Everywhere, "metallb_k8s_client_updates_total" []
        "Objects that the API server sent, in lists and watches; in run, files that changed";
    UPDATE_ERRORS: Counter, Everywhere, "metallb_k8s_client_update_errors_total" []
        "Faults that came with them";
    CONFIG_LOADED: Gauge, Everywhere, "metallb_k8s_client_config_loaded_bool" []
        "1 when everything that there is has been seen once";
    CONFIG_STALE: Gauge, Everywhere, "metallb_k8s_client_config_stale_bool" []
        "1 while an object is at fault, so that it is left out or an older version of it is in force";
    ANNOUNCED: Gauge, Node, "metallb_speaker_announced" ["service", "protocol", "node", "ip"]
        "1 for each address of a Service that this node is to announce";
    BGP_SESSION_UP: Gauge, Node, "metallb_bgp_session_up" ["peer", "vrf"]
        "1 while the session is Established";
    BGP_ANNOUNCED: Gauge, Node, "metallb_bgp_announced_prefixes_total" ["peer", "vrf"]
        "Prefixes that the neighbour has been told and has";
    BGP_PENDING: Gauge, Node, "metallb_bgp_pending_prefixes_total" ["peer", "vrf"]
        "Prefixes of this node that the neighbour should have, told or not";
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
        "BFD control packets that were heard";
    BFD_CONTROL_OUT: Counter, Node, "metallb_bfd_control_packet_output" ["peer", "vrf"]
        "BFD control packets sent";
    BFD_ECHO_IN: Counter, Node, "metallb_bfd_echo_packet_input" ["peer", "vrf"]
        "Echo packets of ours that came back";
    BFD_ECHO_OUT: Counter, Node, "metallb_bfd_echo_packet_output" ["peer", "vrf"]
        "Echo packets sent";
    BFD_SESSION_UPS: Counter, Node, "metallb_bfd_session_up_events" ["peer", "vrf"]
        "Times that the BFD session came up";
    BFD_SESSION_DOWNS: Counter, Node, "metallb_bfd_session_down_events" ["peer", "vrf"]
        "Times that it went down from that";
    BFD_NOTIFICATIONS: Counter, Node, "metallb_bfd_zebra_notifications" ["peer", "vrf"]
        "Times that BGP was told what became of it";

    // Ours.
    BFD_STALLS: Counter, Node, "fairway_bfd_stalls_total" ["peer", "vrf"]
        "Times that this process was late for the BFD session by more than half an interval";
    BFD_PUT_OFF: Counter, Node, "fairway_bfd_detections_put_off_total" ["peer", "vrf"]
        "Detections that were put off once, since the silence may have been our own";
    BFD_DROPPED: Counter, Node, "fairway_bfd_dropped_packets_total" ["reason"]
        "BFD packets that were not heard, by reason";
    BFD_REALTIME: Gauge, Node, "fairway_bfd_realtime" []
        "1 while BFD goes before all other work (--bfd-realtime, and the kernel grants it)";
    EVENT_TO_UPDATE: Histogram, Node, "fairway_event_to_update_seconds" []
        "From an event (a file was written, a watch brought an object) to the moment its UPDATEs were written to the socket; once for each neighbour that had to be told";
    BGP_PEER: Gauge, Node, "fairway_bgp_peer_info" ["peer", "vrf", "desc", "state"]
        "Always 1: the name of the BGPPeer and the state of RFC 4271, for joins over peer and vrf";
    BGP_ESTABLISHED: Counter, Node, "fairway_bgp_connections_established_total" ["peer", "vrf"]
        "Times that the session became Established";
    BGP_DROPPED: Counter, Node, "fairway_bgp_connections_dropped_total" ["peer", "vrf"]
        "Times that it ended after that";
    BGP_NOTIFICATIONS_RECEIVED: Counter, Node, "fairway_bgp_notifications_received_total" ["peer", "vrf"]
        "NOTIFICATION messages received";
    BGP_REFRESHES_RECEIVED: Counter, Node, "fairway_bgp_route_refreshes_received_total" ["peer", "vrf"]
        "ROUTE-REFRESH messages received";
    BGP_UNANNOUNCED: Gauge, Node, "fairway_bgp_unannounced_prefixes" ["peer", "vrf"]
        "Prefixes that the neighbour should have and cannot be told; fairway show bgp neighbors says why";
    BGP_ACCEPTED: Gauge, Node, "fairway_bgp_received_prefixes" ["peer", "vrf", "family"]
        "Routes that the neighbour announces and that were accepted";
    BGP_STALE: Gauge, Node, "fairway_bgp_stale_prefixes" ["peer", "vrf", "family"]
        "Routes that are kept while the neighbour restarts (RFC 4724)";
    BGP_REFUSED: Counter, Node, "fairway_bgp_refused_routes_total" ["peer", "vrf", "family"]
        "Announcements of routes that were refused, since the session began";
    BGP_MALFORMED: Counter, Node, "fairway_bgp_malformed_updates_total" ["peer", "vrf", "action"]
        "Malformed UPDATEs by what became of them (RFC 7606)";
    BGP_FAULTS: Counter, Node, "fairway_bgp_faults_total" ["peer", "vrf"]
        "Sessions that ended by a fault of Fairway's own; please report any";
    RIB_PREFIXES: Gauge, Node, "fairway_rib_prefixes" ["family"]
        "Prefixes that are originated or were accepted";
    DRAIN: Gauge, Node, "fairway_drain_state" ["state"]
        "1 for the state that the node is in, 0 for the others";
    SERVICES: Gauge, Services, "fairway_services" []
        "Services of type LoadBalancer and of our class";
    SERVICES_PENDING: Gauge, Services, "fairway_services_pending" []
        "Those of them that wait for an address";
    SERVICES_ANNOUNCED: Gauge, Node, "fairway_services_announced" []
        "Those of them that this node is to announce";
    ADDRESSES_FREE: Gauge, Allocator, "fairway_pool_addresses_free" ["pool", "family"]
        "Addresses of the pool that are left for a Service that asks for none of them";
    LEADER: Gauge, Controller, "fairway_controller_leader" []
        "1 for the controller that gives addresses and writes them";
    FINDINGS: Gauge, Node, "fairway_config_findings" ["severity"]
        "What is wrong (fault) or suspicious (warning) about objects; fairway show config lists it";
    STALE_OBJECTS: Gauge, Node, "fairway_config_stale_objects" []
        "Objects of which an older version is in force, for the newest has a fault";
    NOT_IN_FORCE: Gauge, Node, "fairway_bgp_not_in_force" []
        "Things that who speaks BGP could not bring about; fairway show config lists them";
    KUBERNETES_REQUESTS: Counter, Kubernetes, "fairway_kubernetes_requests_total" ["verb", "code"]
        "Requests to the API server by their answers; none where there was no answer";
    BUILD: Gauge, Everywhere, "fairway_build_info" ["version", "commit"]
        "Always 1";

    // What every process shows.
    CPU_SECONDS: Counter, Everywhere, "process_cpu_seconds_total" []
        "Time of processors that the process has used";
    OPEN_FILES: Gauge, Everywhere, "process_open_fds" []
        "Open file descriptors";
    OPEN_FILES_MAX: Gauge, Everywhere, "process_max_fds" []
        "How many there may be";
    RESIDENT_BYTES: Gauge, Everywhere, "process_resident_memory_bytes" []
        "Memory that is in use";
    VIRTUAL_BYTES: Gauge, Everywhere, "process_virtual_memory_bytes" []
        "Memory that is reserved";
    START_TIME: Gauge, Everywhere, "process_start_time_seconds" []
        "When the process began, Unix time";
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    /// What stands for one metric in PromQL.
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
        let ours = FAMILIES.iter().filter(|it| !it.name.starts_with("metallb_"));
        for Family { name, kind, .. } in ours {
            assert_eq!(name.ends_with("_total"), *kind == Type::Counter, "{name}");
        }
    }
}
