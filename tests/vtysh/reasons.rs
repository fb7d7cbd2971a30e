//! Why do our answers differ from FRR's? A row for each reason; `compare` sees to it that each is
//! true and none is missing.

use crate::compare::Way;

/// A reason, and what it explains.
#[derive(Debug)]
pub(crate) struct Reason {
    pub(crate) way: Way,
    /// The last names of paths.
    pub(crate) keys: &'static [&'static str],
    /// Words that the command has.
    pub(crate) command: &'static str,
    pub(crate) why: &'static str,
}

impl Reason {
    const fn new(way: Way, keys: &'static [&'static str], why: &'static str) -> Self {
        Self { way, keys, command: "", why }
    }

    const fn of(self, command: &'static str) -> Self {
        Self { command, ..self }
    }
}

pub(crate) const REASONS: &[Reason] = &[
    Reason::new(Way::Missing, &["lastUpdate"], "When a path came or changed is not kept with it."),
    Reason::new(
        Way::Missing,
        &["multipath"],
        "One path of those that were heard is the best; there are no multiple ones.",
    ),
    Reason::new(
        Way::Missing,
        &["multiPathRelax"],
        "An option of FRR, which is not there when it is off either.",
    ),
    Reason::new(
        Way::Missing,
        &["gracefulStalepathTimerMsecs", "stalePathTimerRemaining"],
        "FRR counts from the loss of the session on, and goes on when the neighbor has said all \
         its routes again. Here there is nothing to wait for then; until then the two are there.",
    ),
    Reason::new(
        Way::Sometimes,
        &["gracefulRestartSecondsRemaining", "stale"],
        "FRR was asked for this route only while its neighbor was away.",
    )
    .of("10.40.0.0/16"),
    Reason::new(
        Way::Missing,
        &["addPath", "hostName"],
        "Capabilities that FRR always offers: Fairway offers `addPath` to a BGPPeer with `addPath`, \
         and tells nobody its name. What the neighbor offers is shown.",
    ),
    Reason::new(Way::Missing, &["extendedOptionalParametersLength"], "Not shown."),
    Reason::new(
        Way::Missing,
        &["reducePrefixNumAndClearIpBgp"],
        "A session that ended for too many prefixes comes back by itself, after a wait.",
    ),
    Reason::new(
        Way::Missing,
        &["interface"],
        "A session is bound to an interface where the address of the neighbor is of its link alone.",
    )
    .of("show bfd peers"),
    Reason::new(
        Way::Missing,
        &["peerGroup", "peerGroupCount", "peerGroupMember", "peerGroupMemory", "UPLINK"],
        "There are no peer groups; a BGPPeer says everything itself.",
    ),
    Reason::new(
        Way::Missing,
        &["routeMapForIncomingAdvertisements", "routeMapForOutgoingAdvertisements"],
        "There are no route maps; `toReceive`, `toAdvertise` and the advertisements are the policy.",
    ),
    Reason::new(
        Way::Missing,
        &["inboundSoftConfigPermit"],
        "An option of FRR. What was accepted can always be shown, what was refused never.",
    ),
    Reason::new(
        Way::Missing,
        &["updateGroupId", "subGroupId", "packetQueueLength"],
        "Update groups have no numbers, and there is no queue of packets: UPDATEs are built when the socket has \
         room.",
    ),
    Reason::new(
        Way::Missing,
        &["readThread", "writeThread"],
        "Each connection has a reader and a writer of its own, always.",
    ),
    Reason::new(
        Way::Missing,
        &["bgpTimerConfiguredConditionalAdvertisementsSec"],
        "There are no conditional advertisements.",
    ),
    Reason::new(
        Way::Missing,
        &["bgpInUpdateElapsedTimeMsecs", "estimatedRttInMsecs"],
        "Not known.",
    ),
    Reason::new(
        Way::Missing,
        &["nexthop", "nexthopGlobal", "nexthopLocal", "bgpConnection"],
        "Next hops are chosen by family and shown with each route, in `advertised-routes`.",
    )
    .of("neighbors"),
    Reason::new(
        Way::Missing,
        &["isConnected", "nexthops", "resolvedPrefix"],
        "Which interface leads to a next hop is not known; those that are not on a network of this \
         machine are not accepted, and not listed.",
    )
    .of("nexthop"),
    Reason::new(
        Way::Missing,
        &["PREFIX", "[]"],
        "Fairway does not read the kernel's routes: an FRR that has heard of none says the same.",
    )
    .of("route"),
    Reason::new(
        Way::Sometimes,
        &["bgpTimerLastRead", "bgpTimerLastWrite"],
        "Absent before the first message, where FRR counts from the start of the machine.",
    ),
    Reason::new(
        Way::Ours,
        &["community", "largeCommunity"],
        "Of one's own routes these are the communities that they are sent with; FRR adds them in a \
         route map on the way out, and shows none.",
    ),
    Reason::new(Way::Ours, &["refusedBecause"], "The rule that refused a route; FRR does not say."),
    Reason::new(Way::Ours, &["nextHopLinkLocal"], "The second of two next hops of an IPv6 route."),
    Reason::new(
        Way::Ours,
        &["peerUptimeEstablishedEpoch"],
        "As FRR has it of neighbors that were up once, of which there were none when its answer \
         was written down.",
    )
    .of("failed"),
    Reason::new(Way::Ours, &["lostAt"], "Why a path is not the best."),
    Reason::new(
        Way::Ours,
        &[
            "agreed-transmit-interval",
            "detection-time",
            "polling",
            "remote-control-plane-independent",
            "remote-demand",
            "realtime",
            "echo-looped",
            "transmit-failures",
            "stalls",
            "detections-put-off",
            "dropped",
        ],
        "What both ends agreed on; how often this machine was late, and what was not heard.",
    )
    .of("show bfd peers"),
    Reason::new(
        Way::Ours,
        &[
            "attributeBytes",
            "attributeBytesMax",
            "lastErrorText",
            "lastNotification",
            "malformedUpdates",
            "pfxRefused",
            "prefixesRefused",
            "refusedPrefixes",
            "staleRoutes",
            "unannounced",
        ],
        "What Fairway says beside: why a session ended, what was refused, what routes take in memory, \
         what is kept of a neighbor that restarts, and what it does not get.",
    ),
];

/// The same for lines, by how they begin.
pub(crate) const LINES: &[(Way, &[&str], &str)] = &[
    (Way::Missing, &["Last update:"], "When a path came or changed is not kept with it."),
    (
        Way::Missing,
        &["Peer groups", "Member of peer-group", "UPLINK peer-group member"],
        "There are no peer groups.",
    ),
    (
        Way::Missing,
        &["AddPath:", "IPvN Unicast: RX advertised", "Hostname Capability: advertised"],
        "Capabilities that FRR always offers; see the keys.",
    ),
    (
        Way::Missing,
        &["Inbound soft reconfiguration allowed", "Route map for"],
        "Options of FRR; see the keys.",
    ),
    (
        Way::Missing,
        &["Packet Queue length", "Update group", "Read thread"],
        "How FRR sends; see the keys.",
    ),
    (
        Way::Missing,
        &["Configured conditional advertisements", "Estimated round trip time"],
        "See the keys.",
    ),
    (
        Way::Missing,
        &["BGP connection: shared network", "Nexthop"],
        "Next hops are shown with each route, in `advertised-routes`.",
    ),
    (Way::Missing, &["Last read T, Last write never"], "A moment that was not met."),
    (
        Way::Missing,
        &["Reduce the no. of prefix"],
        "A session that ended for too many prefixes comes back by itself, after a wait.",
    ),
    (
        Way::Missing,
        &["A invalid, #paths", "Must be Connected", "if ethN"],
        "Next hops without a network of this machine are not accepted, and interfaces not known.",
    ),
    (
        Way::Missing,
        &["A valid [IGP metric N], #paths N"],
        "Of the two next hops of an IPv6 route FRR takes the link-local one, Fairway the global one.",
    ),
    (Way::Missing, &["*= (row)"], "One path of those that were heard is the best."),
    (Way::Missing, &["Origin IGP, valid, external"], "Fairway says why a path is not the best."),
    (
        Way::Ours,
        &["A A N N i", "Refused because", "A toReceive does not allow the prefix"],
        "A refused route is not marked as valid and best, and the rule is named.",
    ),
    (
        Way::Ours,
        &["Origin IGP, valid, external, not best"],
        "The same lines with what Fairway knows.",
    ),
    (
        Way::Ours,
        &["Community:", "Large Community:"],
        "Of one's own routes: the communities that they are sent with.",
    ),
    (
        Way::Missing,
        &["Long-lived Graceful Restart: advertised and received"],
        "Fairway offers it to a BGPPeer with `gracefulRestart.longLivedStaleTime`.",
    ),
    (
        Way::Ours,
        &["Long-lived Graceful Restart: received"],
        "A capability that only the neighbor offers.",
    ),
    (
        Way::Missing,
        &["Local GR Mode: Restart*", "Global BGP GR Mode : Restart"],
        "Each BGPPeer says for itself whether it has graceful restart: there is no mode to inherit.",
    ),
    (Way::Ours, &["Local GR Mode:", "Global BGP GR Mode : Disable"], "The same lines, thus."),
    (
        Way::Missing,
        &["The remaining time of stalepath timer", "Stale Path Remaining"],
        "Until the neighbor has said all its routes again; see the keys.",
    ),
    (
        Way::Ours,
        &["F bit: True", "IPvN Unicast(preserved)", "R bit: True", "S (row)"],
        "Of a neighbor that is back, and of a stale path that is not the best: moments in which \
         FRR was not asked.",
    ),
    (Way::Ours, &["Last read never"], "FRR counts from the start of the machine."),
    (
        Way::Ours,
        &[
            "Last error:",
            "Refused announcements:",
            "Stale routes:",
            "N bytes of path attributes of both families, N allowed",
            "N refused prefixes",
            "N sent prefixes",
        ],
        "What Fairway says beside.",
    ),
];
