//! Why is there no session with a neighbour? The causes that the evidence allows, the most likely one first.
//!
//! Evidence is what both sides said (NOTIFICATIONs), what the system said of the last attempt, the state of BFD, our own
//! settings, and segments that the kernel dropped. Each cause names its evidence and what to do. Decides nothing else.

use std::fmt::Write;

use fairway_ground::{PeerKind, RemoteAs};
use fairway_seam::notification::{self, cease};
use fairway_seam::{
    LastReset, Liveness, PeerView, RejectedSegments, ResetCause, SessionState, Stall,
};

/// A cause.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Cause {
    /// For programs.
    pub(super) word: &'static str,
    /// What is wrong, as the end of a sentence about the neighbour, with the evidence.
    pub(super) what: String,
    /// What mends it; empty if it needs nothing.
    pub(super) remedy: String,
}

fn cause(word: &'static str, what: impl Into<String>, remedy: impl Into<String>) -> Cause {
    Cause { word, what: what.into(), remedy: remedy.into() }
}

/// The errors of a connection attempt (errno(3)); the same on all architectures that Fairway runs on.
mod system {
    pub(super) const NOT_PERMITTED: i32 = 1;
    pub(super) const ACCESS_DENIED: i32 = 13;
    pub(super) const NETWORK_UNREACHABLE: i32 = 101;
    pub(super) const TIMED_OUT: i32 = 110;
    pub(super) const CONNECTION_REFUSED: i32 = 111;
    pub(super) const HOST_UNREACHABLE: i32 = 113;
}

/// The number in `... (os error 111)`.
fn system_error(text: &str) -> Option<i32> {
    let (_, rest) = text.rsplit_once("(os error ")?;
    rest.split(')').next()?.parse().ok()
}

/// The causes; empty for a neighbour with a session, unless its BFD does not work or it does not get what we send.
pub(super) fn causes(peer: &PeerView, rejected: RejectedSegments) -> Vec<Cause> {
    if peer.state == SessionState::Established {
        let lacks_bfd = peer.config.bfd.is_some() && peer.liveness != Liveness::Up;
        let lacks_bfd = lacks_bfd.then(|| without_bfd(peer));
        return peer.stall.map(stalled).into_iter().chain(lacks_bfd).collect();
    }
    if let Some(shutdown) = &peer.config.shutdown {
        let text = shutdown.as_str();
        let why = if text.is_empty() { String::new() } else { format!(": {text}") };
        let what = format!("is shut down by its BGPPeer{why}");
        return vec![cause("shutdown", what, "remove spec.shutdown from the BGPPeer")];
    }
    if let Some(why) = &peer.set_aside {
        let what = format!("is not supported by this machine: {why}");
        return vec![cause("setAside", what, "")];
    }
    let mut causes = Vec::new();
    if peer.waits_for_bfd {
        causes.push(by_bfd(peer));
    }
    if let Some(reset) = &peer.last_reset {
        causes.extend(by_reset(peer, reset, rejected));
    }
    if let Some(why) = peer.not_accepted {
        causes.push(not_accepted(peer, why));
    }
    if causes.is_empty() {
        causes.push(match peer.state {
            SessionState::OpenSent | SessionState::OpenConfirm => without_answer(peer, rejected),
            _ => not_tried(peer),
        });
    }
    causes
}

/// What an operator looks at.
const BFD_REMEDY: &str = "check that the router has BFD for this neighbor, and that UDP ports 3784 and 4784 pass; \
                          `show bfd peers` has the details";

fn by_bfd(peer: &PeerView) -> Cause {
    cause("bfd", format!("waits for BFD, which {}", state_of_bfd(peer)), BFD_REMEDY)
}

/// BGP works, and BFD does not.
fn without_bfd(peer: &PeerView) -> Cause {
    let state = state_of_bfd(peer);
    let what =
        format!("has a session, but BFD {state}: a failure is noticed by the hold time only");
    cause("bfd", what, BFD_REMEDY)
}

/// There is a session, and what we send does not arrive.
fn stalled(stall: Stall) -> Cause {
    let Stall { repetitions, segments, segment_bytes, has_later } = stall;
    let counted = format!("{segments} waiting, the first repeated {repetitions} times");
    if has_later {
        let what = format!(
            "has a session, but segments of {segment_bytes} bytes do not arrive there, and smaller ones do: the MTU of \
             the path is too small ({counted})"
        );
        let remedy = "`ping -M do -s SIZE` to the router finds the size that passes; raise the MTU on the way, let ICMP \
                      \"fragmentation needed\" pass, or set a smaller MTU on the route to the router";
        return cause("mtu", what, remedy);
    }
    let what = format!("has a session, but does not acknowledge what it is sent ({counted})");
    cause(
        "loss",
        what,
        "check the path for loss in this direction, its MTU, and whether the router is up",
    )
}

fn state_of_bfd(peer: &PeerView) -> &'static str {
    match peer.liveness {
        Liveness::Unknown => "has not come up",
        _ => "is down",
    }
}

fn not_accepted(peer: &PeerView, why: &str) -> Cause {
    if peer.config.passive {
        let what = format!("is passive and cannot connect to this node: {why}");
        let remedy = "free the port (`ss -ltnp 'sport = :179'` shows who has it), or set --bgp-listen; it is tried \
                      again by itself";
        return cause("notAccepted", what, remedy);
    }
    cause("notAccepted", format!("can only be dialled from here: {why}"), "")
}

/// There is a TCP connection, and BGP goes no further.
fn without_answer(peer: &PeerView, rejected: RejectedSegments) -> Cause {
    let hops = peer.config.ttl_security_hops.filter(|_| rejected.ttl_too_low > 0);
    if let Some(hops) = hops {
        let dropped = rejected.ttl_too_low;
        let what = format!(
            "is connected, but its packets come from farther away than the {hops} hops of GTSM (RFC 5082): the kernel \
             dropped {dropped} of them since the start"
        );
        let remedy = "set GTSM (ttl-security) on the router as well, or raise the number of hops on both sides";
        return cause("ttl", what, remedy);
    }
    let what = match peer.state {
        SessionState::OpenSent => {
            "accepts TCP connections and sends no OPEN: its BGP process hangs or is overloaded"
        }
        _ => {
            "has sent its OPEN and does not answer ours: our packets do not arrive, or its BGP process hangs"
        }
    };
    let remedy =
        "look at the router's BGP process; with GTSM on its side only, set ttlSecurityHops";
    cause("noAnswer", what, remedy)
}

/// Before any attempt has ended.
fn not_tried(peer: &PeerView) -> Cause {
    if peer.config.passive || peer.config.listen_range.is_some() {
        let what = "is passive: the router has to connect, and has not";
        let remedy = "check that the router dials an address of this node, and that TCP port 179 is open here";
        return cause("passive", what, remedy);
    }
    let wait =
        peer.next_connect_in.map(|wait| format!(", the next attempt is in {} s", wait.as_secs()));
    cause("starting", format!("is being connected{}", wait.unwrap_or_default()), "")
}

fn by_reset(peer: &PeerView, reset: &LastReset, rejected: RejectedSegments) -> Vec<Cause> {
    match &reset.cause {
        ResetCause::NotificationSent(code, subcode) => {
            vec![by_sent(peer, (*code, *subcode), &reset.text)]
        }
        ResetCause::NotificationReceived(code, subcode, text) => {
            vec![by_received(peer, (*code, *subcode), text.as_deref())]
        }
        ResetCause::Left => {
            vec![cause("restarting", format!("is connected again: {}", reset.text), "")]
        }
        ResetCause::PeerClosed => {
            by_signature(peer, rejected).into_iter().chain([by_close(peer, &reset.text)]).collect()
        }
        ResetCause::ConnectFailed => by_attempt(peer, &reset.text, rejected),
    }
}

/// The neighbour is at fault, as we told it.
fn by_sent(peer: &PeerView, code: (u8, u8), text: &str) -> Cause {
    let detail = text.strip_prefix("notification sent: ").unwrap_or(text);
    match code {
        (2, 2) if detail.contains(&format!("it is AS {};", peer.config.local_asn)) => cause(
            "remoteAs",
            format!(
                "has our own AS, not the one that its BGPPeer says ({}): is its address one of this node?",
                wanted_as(peer)
            ),
            "correct peerAddress, or set peerASN to our own AS for an internal session",
        ),
        (2, 2) => cause(
            "remoteAs",
            format!("has another AS than its BGPPeer says ({}): {detail}", wanted_as(peer)),
            "set peerASN of the BGPPeer to the AS of the router, or correct the router",
        ),
        (2, 7) => cause(
            "families",
            format!("has no address family in common with its BGPPeer: {detail}"),
            "enable IPv4 or IPv6 unicast at the router as here: dualStackAddressFamily, or the family of peerAddress",
        ),
        (2, 3) => cause(
            "routerId",
            format!("has a BGP identifier that is not acceptable: {detail}"),
            format!("give the router another identifier than ours, {}", peer.config.router_id),
        ),
        (2, 6) => cause(
            "holdTime",
            format!("offers a hold time that is not acceptable: {detail}"),
            "set the hold time of the router to 0 or to 3 s and more",
        ),
        (2, 11) => cause(
            "role",
            format!("has a role that does not match ours: {detail}"),
            "set the roles (RFC 9234) of the two sides to a pair such as provider and customer",
        ),
        (4, 0) => cause(
            "holdTimer",
            format!("was not heard for the hold time: {detail}"),
            "check the link and the router's CPU; with large tables, the MTU of the path",
        ),
        (6, cease::MAXIMUM_PREFIXES | cease::OUT_OF_RESOURCES) => cause(
            "maximumPrefixes",
            format!("announces more than is accepted from it: {detail}"),
            "raise toReceive.maxPrefixes, or filter at the router; the session is tried again every 30 s",
        ),
        (6, cease::BFD_DOWN) => cause(
            "bfd",
            "lost its session because BFD went down",
            "check the path; `show bfd peers` has the details",
        ),
        (6, cease::COLLISION) => cause(
            "collision",
            "connected at the same time as we did; one connection was closed",
            "",
        ),
        (6, _) => cause("closedHere", format!("was closed from here: {detail}"), ""),
        (code, subcode) => cause(
            "protocolError",
            format!(
                "sent what BGP does not permit ({}): {detail}",
                notification::reason(code, subcode)
            ),
            "update the router's software, and report its UPDATE: `show bgp neighbors` has the bytes",
        ),
    }
}

fn wanted_as(peer: &PeerView) -> String {
    match peer.config.remote_as {
        RemoteAs::Asn(asn) => format!("AS {asn}"),
        RemoteAs::Internal => format!("our own, AS {}", peer.config.local_asn),
        RemoteAs::External => format!("any but AS {}", peer.config.local_asn),
    }
}

/// We are at fault, as the neighbour says.
fn by_received(peer: &PeerView, code: (u8, u8), text: Option<&str>) -> Cause {
    let said = text.map(|text| format!(": {text:?}")).unwrap_or_default();
    let known = match code {
        (2, subcode) => by_open(peer, subcode),
        (4, 0) => Some(cause(
            "holdTimer",
            "did not hear us for its hold time",
            "check the path for loss in this direction, its MTU, and the load of this node",
        )),
        (6, subcode) => by_cease(subcode, &said),
        _ => None,
    };
    known.unwrap_or_else(|| {
        let (code, subcode) = code;
        let reason = notification::reason(code, subcode);
        let what = format!("ended the session: {reason} ({code}/{subcode}){said}");
        cause("refusedThere", what, "the log of the router has the reason")
    })
}

/// It refuses our OPEN.
fn by_open(peer: &PeerView, subcode: u8) -> Option<Cause> {
    let ours = peer.config.local_asn;
    Some(match subcode {
        2 => cause(
            "localAs",
            format!("refuses our AS {ours} (Bad Peer AS)"),
            format!(
                "the router has another AS for this node: set it to {ours} there, or correct myASN"
            ),
        ),
        3 => cause(
            "routerId",
            format!("refuses our BGP identifier {}", peer.config.router_id),
            "set spec.routerID to one that no other router has",
        ),
        5 => cause("password", "refuses our authentication", "set the same password on both sides"),
        6 => cause(
            "holdTime",
            format!("refuses our hold time of {} s", peer.config.hold_time.seconds()),
            "set holdTime to what the router accepts",
        ),
        7 => cause(
            "families",
            "refuses our capabilities: it requires an address family, or another capability, that we do not offer",
            "set dualStackAddressFamily if the router requires both families; the log of the router has what it lacks",
        ),
        11 => cause(
            "role",
            "refuses our role (RFC 9234)",
            "set the roles of the two sides to a pair such as provider and customer",
        ),
        _ => return None,
    })
}

/// It ends the session for good or for now.
fn by_cease(subcode: u8, said: &str) -> Option<Cause> {
    Some(match subcode {
        cease::MAXIMUM_PREFIXES => cause(
            "maximumPrefixes",
            "accepts no more routes of us (maximum number of prefixes)",
            "raise the limit of the router, or announce less: aggregationLength",
        ),
        cease::ADMINISTRATIVE_SHUTDOWN => cause(
            "shutdownThere",
            format!("was shut down by its operator{said}"),
            "enable the neighbor at the router",
        ),
        cease::PEER_DECONFIGURED => cause(
            "deconfigured",
            format!("no longer has this node as a neighbor{said}"),
            "configure it there",
        ),
        cease::ADMINISTRATIVE_RESET | cease::CONFIGURATION_CHANGE => {
            cause("resetThere", format!("was reset by its operator{said}"), "")
        }
        cease::CONNECTION_REJECTED => cause(
            "rejected",
            format!("rejects our connection{said}"),
            "configure this node as a neighbor at the router, or raise the limit of its dynamic \
             neighbors",
        ),
        cease::COLLISION => cause(
            "collision",
            "connected at the same time as we did; one connection was closed",
            "",
        ),
        cease::OUT_OF_RESOURCES => cause("resources", format!("is out of resources{said}"), ""),
        cease::BFD_DOWN => cause(
            "bfd",
            "closed the session because its BFD went down",
            "check the path; `show bfd peers` has the details",
        ),
        _ => return None,
    })
}

/// A password that differs leaves a trace only in the kernel.
fn by_signature(peer: &PeerView, rejected: RejectedSegments) -> Option<Cause> {
    let RejectedSegments { unsigned, unexpectedly_signed, badly_signed, .. } = rejected;
    let evidence = |count: u64| format!("the kernel dropped {count} such segments since the start");
    if peer.config.password.is_some() && badly_signed > 0 {
        let what = format!("has another TCP-MD5 password: {}", evidence(badly_signed));
        return Some(cause("password", what, "set the same password on both sides"));
    }
    if peer.config.password.is_some() && unsigned > 0 {
        let what = format!("sends without a TCP-MD5 signature: {}", evidence(unsigned));
        return Some(cause("password", what, "set the password at the router, or remove it here"));
    }
    if peer.config.password.is_none() && unexpectedly_signed > 0 {
        let what = format!("signs with a TCP-MD5 password: {}", evidence(unexpectedly_signed));
        return Some(cause("password", what, "set passwordSecret or password of the BGPPeer"));
    }
    None
}

fn by_close(peer: &PeerView, text: &str) -> Cause {
    if peer.connections_established > 0 {
        return cause(
            "closed",
            format!("went away without a reason: {text}"),
            "the log of the router has the reason",
        );
    }
    // A reset is the same: it depends on whether our OPEN arrives before the end.
    cause(
        "closed",
        "closes each connection without a reason, so it does not expect this node".to_owned(),
        format!(
            "configure this node at the router, with the address that it connects from and AS {}",
            peer.config.local_asn
        ),
    )
}

/// TCP did not come up.
fn by_attempt(peer: &PeerView, text: &str, rejected: RejectedSegments) -> Vec<Cause> {
    let port = peer.config.port;
    let detail = text.strip_prefix("cannot connect: ").unwrap_or(text);
    let is_silent = detail.contains(": no answer within");
    let error = if is_silent { Some(system::TIMED_OUT) } else { system_error(detail) };
    let mut causes = Vec::new();
    match error {
        Some(system::CONNECTION_REFUSED) => causes.push(cause(
            "refused",
            format!("refuses TCP port {port}: no BGP speaker listens there, or a filter rejects us"),
            "start BGP at the router, or correct peerAddress and peerPort",
        )),
        Some(system::HOST_UNREACHABLE) => {
            causes.push(cause(
                "unreachable",
                "does not answer at its address (no route to host): it is down, on another network, or unplugged",
                "check the link, and peerAddress; `ip neigh` shows whether ARP or neighbor discovery is answered",
            ));
            causes.extend(by_distance(peer));
        }
        Some(system::ACCESS_DENIED) => causes.push(cause(
            "prohibited",
            "is behind a route of this node that prohibits it (type prohibit)",
            "remove the route: `ip route get` with the address of the router shows it",
        )),
        Some(system::NOT_PERMITTED) => causes.push(cause(
            "filteredHere",
            "is not reached, because a filter of this node rejects what it sends",
            "allow TCP port 179 to the router in the output rules of this node",
        )),
        Some(system::NETWORK_UNREACHABLE) => causes.push(cause(
            "noRoute",
            "is on a network to which this node has no route",
            "add a route or an address on the router's network to this node, check that its interface is up, or correct \
             peerAddress",
        )),
        Some(system::TIMED_OUT) => {
            causes.extend(by_signature(peer, rejected));
            causes.extend(by_distance(peer).filter(|_| rejected.ttl_too_low > 0));
            let signed = peer.config.password.is_some() || !peer.config.tcp_ao.is_empty();
            let mut what = "does not answer SYNs: a filter drops them".to_owned();
            if signed {
                let _ = write!(what, ", or the two sides have different passwords");
            }
            let remedy = if signed {
                "compare the passwords; check filters for TCP port 179, and the route of the router back to this node"
            } else {
                "check filters for TCP port 179, the route of the router back to this node, and whether the router \
                 demands a password"
            };
            causes.push(cause("silent", what, remedy));
            if rejected.ttl_too_low == 0 {
                causes.extend(by_distance(peer));
            }
        }
        _ => causes.push(cause("attemptFailed", format!("could not be dialled: {detail}"), "")),
    }
    causes
}

/// A router behind another one, which a TTL of 1 or GTSM does not reach.
fn by_distance(peer: &PeerView) -> Option<Cause> {
    let config = &peer.config;
    if let Some(hops) = config.ttl_security_hops {
        let what = format!("may be farther away than the {hops} hops of GTSM (RFC 5082)");
        return Some(cause("ttl", what, "raise the number of hops on both sides"));
    }
    if config.multihop || config.kind() == PeerKind::Internal {
        return None;
    }
    let what = "may be behind another router, which our packets with a TTL of 1 do not reach";
    Some(cause("ttl", what, "set ebgpMultiHop if the router is not on a network of this node"))
}

#[cfg(test)]
mod tests;
